from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest

from actorflow.errors import AbortReason
from actorflow.model.elements import CheckpointKind
from actorflow.protocol.admission import (
    LONGEST_PAUSE_MS,
    MOST_WAITING,
    Admission,
    BacklogChanged,
    CheckpointEnded,
    CheckpointRequested,
    CheckpointStarted,
    CleanupChanged,
    Ready,
    Reject,
    SetTimer,
    Started,
    Starting,
    Stopped,
    Suspended,
    TimerFired,
    Trigger,
    TriggerFailed,
    Unstarted,
)
from actorflow_tests.protocol.walking import Edges, explore

PERIODIC, REQUESTED = CheckpointKind.PERIODIC, CheckpointKind.REQUESTED
FINAL, STOP = CheckpointKind.FINAL, CheckpointKind.STOP
LAST = (FINAL, STOP)

INTERVAL_TRIGGER = Trigger(None, PERIODIC)


def started(*, every_ms: int | None = 10_000, draw: float = 0.0, **settings: Any) -> Admission:
    admission = Admission(every_ms, **settings)
    admission.on(Started(0, draw))
    return admission


def complete(admission: Admission, kind: CheckpointKind, *, started_ms: int, ended_ms: int) -> list[Any]:
    effects = admission.on(CheckpointStarted(started_ms))
    return [*effects, *admission.on(CheckpointEnded(True, ended_ms, kind))]


# ── the small world ──────────────────────────────────────────────────────────────────────────


class Checkpoints:
    """A job whose checkpoints start, fail and end in every order, whose clock moves in steps."""

    def __init__(self, admission: Admission, edges: Edges, kinds: tuple[CheckpointKind, ...]) -> None:
        self.admission = admission
        self.edges = edges
        self.kinds = kinds
        self.now_ms = 0
        self.timer_ms: int | None = None
        self.under_way: list[CheckpointKind] = []
        self.forced_under_way = 0
        self.completed_ms: int | None = None
        self.last_completed = False
        self.waiting: set[int] = set()
        self.forced: set[int] = set()
        self.requested = 0

    def moves(self) -> Iterable[Any]:
        now_ms, phase = self.now_ms, self.admission.phase
        if isinstance(phase, (Unstarted, Suspended)) and not self.last_completed:
            yield Started(now_ms, 0.5)
        yield Stopped(now_ms)
        if self.requested < len(self.kinds):
            kind = self.kinds[self.requested]
            yield CheckpointRequested(self.requested, kind, now_ms)
            if kind is REQUESTED:
                yield CheckpointRequested(self.requested, kind, now_ms, forced=True)
        if self.timer_ms is not None:
            yield TimerFired(max(now_ms, self.timer_ms))
        yield TimerFired(now_ms)
        if isinstance(phase, Starting) or (isinstance(phase, Suspended) and phase.starting is not None):
            yield CheckpointStarted(now_ms + 1)
            yield TriggerFailed(now_ms)
        for kind in dict.fromkeys(self.under_way):
            yield CheckpointEnded(True, now_ms + 2, kind)
            yield CheckpointEnded(False, now_ms, kind)
        yield BacklogChanged(not self.admission.in_backlog, now_ms)
        yield CleanupChanged(0 if self.admission.cleaning else 3, now_ms)

    def make(self, move: Any) -> None:
        self.now_ms = move.at_ms
        match move:
            case CheckpointRequested(request_id, _, _, forced):
                self.requested += 1
                self.waiting.add(request_id)
                if forced:
                    self.forced.add(request_id)
            case CheckpointStarted():
                phase = self.admission.phase
                assert isinstance(phase, (Starting, Suspended))
                kind = phase.kind if isinstance(phase, Starting) else phase.starting
                assert kind is not None
                self.under_way.append(kind)
            case CheckpointEnded(completed, at_ms, kind):
                self.under_way.remove(kind)
                if completed:
                    self.completed_ms = at_ms
                    self.last_completed |= kind in LAST
            case TimerFired(at_ms):
                if self.timer_ms is not None and at_ms >= self.timer_ms:
                    self.timer_ms = None
        cleaning = self.admission.cleaning
        triggered = False
        for effect in self.edges.step(self.admission, move):
            match effect:
                case SetTimer(timer_ms):
                    self.timer_ms = timer_ms
                case Reject(asked, _, reason):
                    assert reason.is_preflight
                    self.answer(asked)
                case Trigger(asked, kind):
                    assert not triggered, "one at a time"
                    triggered = True
                    self.answer(asked)
                    self.see_trigger(asked, kind, cleaning if not isinstance(move, CleanupChanged) else move.pending)
        if isinstance(self.admission.phase, (Unstarted, Suspended)):
            assert self.timer_ms is None
            assert not self.waiting, "whoever waits is told that it will not happen"

    def answer(self, request_id: int | None) -> None:
        if request_id is not None:
            assert request_id in self.waiting, "an answer to nobody"
            self.waiting.remove(request_id)

    def see_trigger(self, request_id: int | None, kind: CheckpointKind, cleaning: int) -> None:
        assert not self.last_completed, "nothing starts after the last checkpoint"
        assert not any(one in LAST for one in self.under_way), "nothing starts beside the last checkpoint"
        assert cleaning <= self.admission.max_concurrent, "slow deletion throttles"
        if request_id not in self.forced:
            assert len(self.under_way) < self.admission.max_concurrent, "INV-3.1"
        if kind is PERIODIC and self.completed_ms is not None:
            assert self.now_ms - self.completed_ms >= self.admission.min_pause_ms, "INV-3.2"


def test_the_table_tells_every_edge_of_a_small_world_and_no_other() -> None:
    edges = Edges()
    completed = [CheckpointRequested(0, REQUESTED, 0), CheckpointStarted(1), CheckpointEnded(True, 3, REQUESTED)]
    for prologue, kinds, most, depth in (
        ([], (STOP, REQUESTED), 1, 4),
        ([Started(0, 0.5)], (REQUESTED, STOP), 1, 5),
        ([Started(0, 0.5)], (REQUESTED, FINAL), 2, 5),
        ([Started(0, 0.5), *completed], (REQUESTED, REQUESTED), 2, 3),
    ):
        admission = Admission(10, min_pause_ms=8, max_concurrent=most, every_during_backlog_ms=0, most_waiting=1)
        world = Checkpoints(admission, edges, kinds)
        for move in prologue:
            world.make(move)
        explore(world, depth=depth)
    explore(Checkpoints(Admission(None), edges, (REQUESTED,)), depth=4)

    edges.compare(Admission)


# ── the period ───────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(("draw", "first_ms"), [(0.0, 2_000), (0.5, 6_000), (0.999999, 10_000)])
def test_the_first_trigger_comes_after_a_uniform_delay_from_minimum_pause_to_interval(
    draw: float, first_ms: int
) -> None:
    admission = Admission(10_000, min_pause_ms=2_000)

    assert admission.on(Started(5, draw)) == [SetTimer(5 + first_ms)]


def test_without_an_interval_there_is_no_timer_and_requests_are_served() -> None:
    admission = Admission(None)

    assert admission.on(Started(0, 0.3)) == []
    assert admission.on(CheckpointRequested(1, REQUESTED, 7)) == [Trigger(1, REQUESTED)]
    assert admission.on(BacklogChanged(True, 8)) == []


def test_the_rate_is_fixed_and_a_late_timer_fires_at_once() -> None:
    admission = started()  # the first is due at 0

    assert admission.on(TimerFired(0)) == [SetTimer(10_000), INTERVAL_TRIGGER]
    complete(admission, PERIODIC, started_ms=1, ended_ms=2)
    assert admission.on(TimerFired(13_000)) == [SetTimer(20_000), INTERVAL_TRIGGER]


def test_periods_that_passed_unnoticed_are_one_request() -> None:
    admission = started()

    assert admission.on(TimerFired(35_000)) == [SetTimer(40_000), INTERVAL_TRIGGER]


def test_a_timer_that_comes_too_early_never_loses_the_real_one() -> None:
    admission = started()
    admission.on(TimerFired(0))

    assert admission.on(TimerFired(9_999)) == [SetTimer(10_000)]


def test_an_interval_below_the_minimum_pause_is_the_minimum_pause() -> None:
    admission = started(every_ms=1_000, min_pause_ms=4_000)

    assert admission.on(TimerFired(4_000)) == [SetTimer(8_000), INTERVAL_TRIGGER]


def test_a_minimum_pause_is_at_most_a_year() -> None:
    assert Admission(1, min_pause_ms=10 * LONGEST_PAUSE_MS).min_pause_ms == LONGEST_PAUSE_MS


def test_queued_periodic_requests_are_one() -> None:
    admission = started()
    admission.on(TimerFired(0))
    admission.on(CheckpointStarted(1))

    assert admission.on(TimerFired(10_000)) == [SetTimer(20_000)]
    assert admission.on(TimerFired(20_000)) == [
        SetTimer(30_000),
        Reject(None, PERIODIC, AbortReason.ALREADY_IN_PROGRESS),
    ]
    assert admission.on(CheckpointEnded(True, 25_000, PERIODIC)) == [INTERVAL_TRIGGER]
    assert complete(admission, PERIODIC, started_ms=25_000, ended_ms=26_000) == []


def test_in_a_backlog_the_other_interval_counts_from_the_next_firing() -> None:
    admission = started(every_during_backlog_ms=30_000)

    assert admission.on(BacklogChanged(True, 0)) == []
    assert admission.on(TimerFired(0)) == [SetTimer(30_000), INTERVAL_TRIGGER]


def test_leaving_a_backlog_sets_the_timer_earlier_but_never_later() -> None:
    admission = started(every_during_backlog_ms=30_000)
    admission.on(BacklogChanged(True, 0))
    admission.on(TimerFired(0))

    assert admission.on(BacklogChanged(False, 5_000)) == [SetTimer(15_000)]
    assert admission.on(BacklogChanged(True, 6_000)) == []
    assert admission.on(BacklogChanged(False, 6_000)) == []  # 16,000 would be later


def test_a_backlog_may_want_no_periodic_checkpoints_and_its_end_brings_them_back() -> None:
    admission = started(every_during_backlog_ms=0)
    admission.on(BacklogChanged(True, 0))

    assert admission.on(TimerFired(0)) == []
    assert admission.on(TimerFired(1)) == []
    assert admission.on(BacklogChanged(False, 70_000)) == [SetTimer(80_000)]


# ── the minimum pause ────────────────────────────────────────────────────────────────────────


def test_a_periodic_one_too_soon_after_a_completion_is_refused_and_the_timer_set_INV_3_2() -> None:
    admission = started(min_pause_ms=6_000)
    assert admission.on(TimerFired(6_000)) == [SetTimer(16_000), INTERVAL_TRIGGER]
    complete(admission, PERIODIC, started_ms=6_000, ended_ms=14_000)

    assert admission.on(TimerFired(16_000)) == [
        SetTimer(26_000),
        Reject(None, PERIODIC, AbortReason.MINIMUM_PAUSE),
        SetTimer(20_000),
    ]
    assert admission.on(TimerFired(20_000)) == [SetTimer(30_000), INTERVAL_TRIGGER]


def test_a_failed_checkpoint_does_not_restart_the_pause() -> None:
    admission = started(min_pause_ms=6_000)
    admission.on(TimerFired(6_000))
    admission.on(CheckpointStarted(6_000))
    admission.on(CheckpointEnded(False, 15_000, PERIODIC))

    assert admission.on(TimerFired(16_000)) == [SetTimer(26_000), INTERVAL_TRIGGER]


@pytest.mark.parametrize("kind", [REQUESTED, FINAL, STOP])
def test_what_somebody_asked_for_ignores_the_pause(kind: CheckpointKind) -> None:
    admission = started(min_pause_ms=6_000)
    admission.on(TimerFired(6_000))
    complete(admission, PERIODIC, started_ms=6_000, ended_ms=7_000)

    assert admission.on(CheckpointRequested(1, kind, 7_001)) == [Trigger(1, kind)]


# ── the queue ────────────────────────────────────────────────────────────────────────────────


def test_never_more_than_max_concurrent_are_under_way_INV_3_1() -> None:
    admission = started(max_concurrent=2)

    assert admission.on(CheckpointRequested(1, REQUESTED, 1)) == [Trigger(1, REQUESTED)]
    assert admission.on(CheckpointRequested(2, REQUESTED, 2)) == []  # the first has not started yet
    assert admission.on(CheckpointStarted(3)) == [Trigger(2, REQUESTED)]
    assert admission.on(CheckpointStarted(4)) == []
    assert admission.on(CheckpointRequested(3, REQUESTED, 5)) == []
    assert admission.on(CheckpointEnded(False, 6, REQUESTED)) == [Trigger(3, REQUESTED)]


def test_a_forced_one_starts_beside_as_many_as_there_are() -> None:
    admission = started()
    admission.on(CheckpointRequested(1, REQUESTED, 1))
    admission.on(CheckpointStarted(1))

    assert admission.on(CheckpointRequested(2, REQUESTED, 2, forced=True)) == [Trigger(2, REQUESTED)]


def test_the_order_is_last_then_forced_then_asked_for_then_periodic() -> None:
    admission = started(max_concurrent=1)
    admission.on(TimerFired(0))
    for request_id, kind, forced in (
        (1, REQUESTED, False),
        (2, REQUESTED, True),
        (3, STOP, False),
        (4, REQUESTED, True),
    ):
        admission.on(CheckpointRequested(request_id, kind, 1, forced))
    admission.on(TimerFired(10_000))

    assert [request.request_id for request in admission.queue] == [3, 2, 4, 1, None]


def test_nothing_starts_beside_the_last_checkpoint_and_all_goes_on_when_it_fails() -> None:
    admission = started(max_concurrent=3)
    admission.on(CheckpointRequested(1, STOP, 1))
    admission.on(CheckpointStarted(1))

    assert admission.on(CheckpointRequested(2, REQUESTED, 2, forced=True)) == []
    assert admission.on(TimerFired(2)) == [SetTimer(10_000)]
    assert admission.on(CheckpointEnded(False, 3, STOP)) == [Trigger(2, REQUESTED)]
    assert admission.on(CheckpointStarted(4)) == [INTERVAL_TRIGGER]


def test_nothing_starts_after_the_last_checkpoint() -> None:
    admission = started()
    admission.on(CheckpointRequested(1, FINAL, 1))
    admission.on(CheckpointStarted(1))
    admission.on(CheckpointRequested(2, REQUESTED, 2))

    assert admission.on(CheckpointEnded(True, 3, FINAL)) == [
        Reject(2, REQUESTED, AbortReason.COORDINATOR_SUSPENDED),
        SetTimer(None),
    ]
    assert admission.on(CheckpointRequested(3, REQUESTED, 4)) == [
        Reject(3, REQUESTED, AbortReason.COORDINATOR_SUSPENDED)
    ]


def full() -> Admission:
    admission = started(most_waiting=2)
    admission.on(CheckpointRequested(1, REQUESTED, 0))
    admission.on(CheckpointStarted(0))
    return admission


def test_a_full_queue_refuses_the_newcomer() -> None:
    admission = full()
    admission.on(CheckpointRequested(2, REQUESTED, 1))
    admission.on(CheckpointRequested(3, REQUESTED, 2))

    assert admission.on(CheckpointRequested(4, REQUESTED, 3)) == [Reject(4, REQUESTED, AbortReason.TOO_MANY_REQUESTS)]
    assert admission.on(TimerFired(4))[-1] == Reject(None, PERIODIC, AbortReason.TOO_MANY_REQUESTS)


def test_a_full_queue_gives_up_its_periodic_request_first() -> None:
    admission = full()
    admission.on(TimerFired(1))
    admission.on(CheckpointRequested(2, REQUESTED, 2))

    assert admission.on(CheckpointRequested(3, REQUESTED, 3)) == [Reject(None, PERIODIC, AbortReason.TOO_MANY_REQUESTS)]


def test_a_full_queue_always_has_room_for_the_last_checkpoint() -> None:
    admission = full()
    admission.on(CheckpointRequested(2, REQUESTED, 1))
    admission.on(CheckpointRequested(3, REQUESTED, 2))

    assert admission.on(CheckpointRequested(4, STOP, 3)) == [Reject(3, REQUESTED, AbortReason.TOO_MANY_REQUESTS)]
    assert admission.on(CheckpointEnded(True, 4, REQUESTED)) == [Trigger(4, STOP)]


def test_a_thousand_may_wait() -> None:
    assert Admission(None).most_waiting == MOST_WAITING == 1_000


def test_slow_deletion_throttles_new_checkpoints() -> None:
    admission = started()
    admission.on(CleanupChanged(2, 0))

    assert admission.on(CheckpointRequested(1, REQUESTED, 1)) == []
    assert admission.on(CleanupChanged(1, 2)) == [Trigger(1, REQUESTED)]


# ── start and end ────────────────────────────────────────────────────────────────────────────


def test_nothing_starts_before_all_actors_run() -> None:
    assert Admission(10_000).on(CheckpointRequested(1, REQUESTED, 0)) == [
        Reject(1, REQUESTED, AbortReason.NOT_ALL_RUNNING)
    ]


def test_a_start_that_failed_makes_room_for_the_next() -> None:
    admission = started()
    admission.on(CheckpointRequested(1, REQUESTED, 1))
    admission.on(CheckpointRequested(2, REQUESTED, 1))

    assert admission.on(TriggerFailed(2)) == [Trigger(2, REQUESTED)]


def test_a_stop_fails_whoever_waits_and_cancels_the_timer() -> None:
    admission = started()
    admission.on(CheckpointRequested(1, REQUESTED, 1))
    admission.on(CheckpointRequested(2, REQUESTED, 2))

    assert admission.on(Stopped(3)) == [
        Reject(2, REQUESTED, AbortReason.COORDINATOR_SUSPENDED),
        SetTimer(None),
    ]
    assert admission.phase == Suspended(starting=REQUESTED)
    assert admission.on(CheckpointStarted(4)) == []
    assert admission.on(CheckpointEnded(False, 5, REQUESTED)) == []


def test_after_a_restart_the_period_begins_anew() -> None:
    admission = started()
    admission.on(Stopped(3))

    assert admission.on(Started(100, 0.5)) == [SetTimer(5_100)]
    assert admission.phase == Ready()
