from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from enum import StrEnum
from typing import Any

import pytest

from actorflow.protocol.lifecycle import (
    ACTOR_LIVES,
    JOB_LIVES,
    ActorStatus,
    JobStatus,
    actor_life,
    job_life,
)

J, A = JobStatus, ActorStatus

JOBS = {
    "its input ends": (J.CLAIMING, J.RESTORING, J.RUNNING, J.FINISHING, J.FINISHED),
    "it is stopped": (J.CLAIMING, J.RESTORING, J.RUNNING, J.STOPPING, J.STOPPED),
    "its stop fails and it goes on": (
        J.CLAIMING,
        J.RESTORING,
        J.RUNNING,
        J.STOPPING,
        J.RUNNING,
        J.FINISHING,
        J.FINISHED,
    ),
    "it is restarted": (J.CLAIMING, J.RESTORING, J.RUNNING, J.RESTARTING, J.CLAIMING, J.RESTORING, J.RUNNING),
    "it fails for good": (J.CLAIMING, J.RESTORING, J.RUNNING, J.FAILED),
    "it is cancelled while it waits to restart": (J.CLAIMING, J.RESTARTING, J.CANCELING, J.CANCELED),
    "it is fenced": (J.CLAIMING, J.RESTORING, J.RUNNING, J.FENCED),
    "it had finished before": (J.CLAIMING, J.FINISHED),
    "its final checkpoint fails": (J.CLAIMING, J.RESTORING, J.RUNNING, J.FINISHING, J.RESTARTING, J.CLAIMING),
}

ACTORS = {
    "it is new": (A.OPENING, A.RUNNING, A.FINISHED, A.CLOSED),
    "it is restored": (A.RESTORING, A.OPENING, A.RUNNING, A.CLOSED),
    "it had finished before": (A.RESTORING, A.OPENING, A.FINISHED, A.CLOSED),
    "its code fails": (A.OPENING, A.RUNNING, A.FAILED),
    "the attempt ends while it restores": (A.RESTORING, A.CLOSED),
}


@pytest.mark.parametrize("steps", JOBS.values(), ids=JOBS)
def test_a_job_may_live_like_this(steps: tuple[JobStatus, ...]) -> None:
    life = job_life("words")

    for status in steps:
        life.go(status)

    assert life.status is steps[-1]
    assert life.is_over == steps[-1].is_terminal


@pytest.mark.parametrize("steps", ACTORS.values(), ids=ACTORS)
def test_an_actor_may_live_like_this(steps: tuple[ActorStatus, ...]) -> None:
    life = actor_life("count/0")

    for status in steps:
        life.go(status)

    assert life.is_over == steps[-1].is_terminal


@pytest.mark.parametrize("table", [JOB_LIVES, ACTOR_LIVES])
def test_every_status_is_in_the_table_and_can_be_reached_and_every_life_can_end(table: Mapping[Any, Any]) -> None:
    kind: type[StrEnum] = type(next(iter(table)))
    assert list(table) == list(kind)

    def reached_from(start: StrEnum) -> set[StrEnum]:
        seen, ahead = {start}, deque([start])
        while ahead:
            for following in table[ahead.popleft()]:
                if following not in seen:
                    seen.add(following)
                    ahead.append(following)
        return seen

    assert reached_from(next(iter(table))) == set(kind)
    for status in kind:
        assert any(not table[end] for end in reached_from(status)), f"{status} never ends"
        assert status not in table[status], f"{status} leads to itself"
        assert len(set(table[status])) == len(table[status])


def test_every_job_that_lives_can_be_cancelled_or_has_its_end_before_it() -> None:
    for status in JobStatus:
        if not status.is_terminal and status is not J.CANCELING:
            assert J.CANCELING in JOB_LIVES[status]


def test_a_job_never_runs_without_a_claim() -> None:
    for before, following in JOB_LIVES.items():
        if J.RESTORING in following:
            assert before is J.CLAIMING


def test_only_a_claimed_home_can_turn_out_to_be_anothers() -> None:
    assert not any(J.FENCED in JOB_LIVES[status] for status in (J.CREATED, J.RESTARTING))


def test_a_step_that_the_table_does_not_know_is_refused_and_the_story_told() -> None:
    life = job_life("words")
    for status in JOBS["it is stopped"]:
        life.go(status)

    with pytest.raises(
        AssertionError, match=r"job 'words' can't go from stopped to running; it went created → claiming"
    ):
        life.go(J.RUNNING)
    assert life.status is J.STOPPED


@pytest.mark.parametrize(
    ("before", "after"), [(J.FINISHED, J.RUNNING), (J.RUNNING, J.FINISHED), (J.CREATED, J.RUNNING)]
)
def test_shortcuts_are_refused(before: JobStatus, after: JobStatus) -> None:
    assert after not in JOB_LIVES[before]
