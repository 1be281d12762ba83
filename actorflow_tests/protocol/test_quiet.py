from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from actorflow.protocol.quiet import (
    HoldTime,
    LetTimePass,
    Quiet,
    Silent,
    Stirring,
    SubtaskEnded,
    SubtaskQuiet,
    SubtaskStirred,
)
from actorflow_tests.protocol.walking import Edges, walk


def story(quiet: Quiet, *events: Any) -> list[list[Any]]:
    return [quiet.on(event) for event in events]


def reports(quiet: Quiet) -> Iterable[Any]:
    for subtask in sorted([*quiet.quiet, *quiet.stirring]):
        yield from (SubtaskQuiet(subtask), SubtaskStirred(subtask), SubtaskEnded(subtask))


def test_the_table_tells_every_edge_of_a_small_world_and_no_other() -> None:
    edges = Edges()
    for subtasks in (1, 2, 3):
        walk(Quiet(subtasks), reports, depth=6, edges=edges)

    edges.compare(Quiet)


def test_time_passes_when_the_last_subtask_is_quiet_and_is_held_when_the_first_stirs() -> None:
    assert story(Quiet(2), SubtaskQuiet(0), SubtaskQuiet(1), SubtaskStirred(0), SubtaskQuiet(0)) == [
        [],
        [LetTimePass()],
        [HoldTime()],
        [LetTimePass()],
    ]


def test_one_subtask_with_records_keeps_the_whole_source_awake() -> None:
    quiet = Quiet(3)

    assert story(quiet, SubtaskQuiet(0), SubtaskQuiet(2), SubtaskQuiet(0)) == [[], [], []]
    assert quiet.phase == Stirring()


def test_a_subtask_that_ended_is_not_waited_for() -> None:
    quiet = Quiet(2)

    assert story(quiet, SubtaskEnded(1), SubtaskQuiet(0), SubtaskEnded(0)) == [[], [LetTimePass()], []]
    assert quiet.phase == Stirring()


def test_the_end_of_the_last_that_stirred_lets_time_pass() -> None:
    quiet = Quiet(2)

    assert story(quiet, SubtaskQuiet(0), SubtaskEnded(1)) == [[], [LetTimePass()]]
    assert quiet.phase == Silent()
