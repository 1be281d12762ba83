from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest

from actorflow.config.policies import Ending, Retention
from actorflow.errors import AbortReason
from actorflow.model.elements import Alignment, Barrier, CheckpointKind
from actorflow.model.ids import ActorId
from actorflow.protocol.coordinator import (
    Acknowledged,
    AttemptEnded,
    CheckpointCoordinator,
    Collecting,
    Declined,
    DiscardAck,
    DiscardPieces,
    Ended,
    FailAttempt,
    Idle,
    ManifestFailed,
    ManifestWritten,
    NotifyAborted,
    NotifyCompleted,
    PlaceTaken,
    Publishing,
    SendBarriers,
    SetTimeout,
    Subsume,
    TimedOut,
    Triggered,
    TriggerFailed,
    WriteManifest,
    kept_on,
)
from actorflow.protocol.machine import replay
from actorflow_tests.protocol.walking import Edges, explore

READ, COUNT, STRANGER = ActorId("read", 0), ActorId("count", 0), ActorId("stranger", 0)
BOTH = (READ, COUNT)
PERIODIC, STOP = CheckpointKind.PERIODIC, CheckpointKind.STOP


def coordinator(
    *, next_id: int = 1, retained: int = 1, tolerable: int | None = 0, completed: tuple[int, ...] = ()
) -> CheckpointCoordinator:
    return CheckpointCoordinator(next_id, retained, tolerable, 1_000, completed)


def trigger(machine: CheckpointCoordinator, kind: CheckpointKind = PERIODIC, at_ms: int = 0) -> int:
    machine.on(Triggered(kind, BOTH, at_ms))
    return machine.next_id - 1


def acknowledge(machine: CheckpointCoordinator, checkpoint_id: int) -> list[Any]:
    return [effect for actor in BOTH for effect in machine.on(Acknowledged(checkpoint_id, actor))]


def complete(machine: CheckpointCoordinator, kind: CheckpointKind = PERIODIC) -> list[Any]:
    checkpoint_id = trigger(machine, kind)
    acknowledge(machine, checkpoint_id)
    return machine.on(ManifestWritten(checkpoint_id))


def expire(machine: CheckpointCoordinator) -> list[Any]:
    return machine.on(TimedOut(trigger(machine)))


# ── the small world ──────────────────────────────────────────────────────────────────────────


class Attempt:
    """Two actors, a store and a clock that do what they like with a few checkpoints."""

    def __init__(self, machine: CheckpointCoordinator, edges: Edges, most: int) -> None:
        self.machine, self.edges, self.most = machine, edges, most
        self.triggered: list[int] = []
        self.completed: list[int] = list(machine.completed)
        self.aborted: dict[int, AbortReason] = {}
        self.in_store: set[int] = set(machine.completed)  # written, or nobody knows
        self.writing: int | None = None
        self.deleted: set[int] = set()
        self.strikes = 0
        self.failed = 0

    def moves(self) -> Iterable[Any]:
        ended = isinstance(self.machine.phase, Ended)
        if len(self.triggered) < self.most and not ended:
            yield Triggered(PERIODIC, BOTH, 0)
        for checkpoint_id in self.triggered:
            for actor in BOTH:
                yield Acknowledged(checkpoint_id, actor)
            yield Declined(checkpoint_id, READ, AbortReason.DECLINED_SUBSUMED)
            yield TimedOut(checkpoint_id)
        if self.triggered:
            yield Acknowledged(self.triggered[-1], STRANGER)
        yield TriggerFailed(AbortReason.TRIGGER_IO_FAILED)
        if self.writing is not None:
            yield ManifestWritten(self.writing)
            yield ManifestFailed(self.writing, AbortReason.MANIFEST_FAILED)
            yield ManifestFailed(self.writing, AbortReason.MANIFEST_IN_DOUBT)
            yield ManifestFailed(self.writing, AbortReason.FENCED)
            yield PlaceTaken(self.writing)
        yield AttemptEnded(AbortReason.JOB_RESTARTED)

    def make(self, move: Any) -> None:
        failure: AbortReason | None = None
        match move:
            case ManifestWritten(checkpoint_id):
                self.in_store.add(checkpoint_id)
                self.writing = None
            case ManifestFailed(checkpoint_id, reason):
                if reason is AbortReason.MANIFEST_IN_DOUBT:
                    self.in_store.add(checkpoint_id)
                self.writing = None
            case PlaceTaken():
                self.writing = None
            case AttemptEnded() if self.writing is not None:
                self.in_store.add(self.writing)
            case TriggerFailed(reason):
                failure = reason
        was_over = isinstance(self.machine.phase, Ended)
        for effect in self.edges.step(self.machine, move):
            failure = self.carry_out(effect) or failure
            if isinstance(effect, FailAttempt):
                self.failed += 1
        self.see(move, failure, was_over)

    def carry_out(self, effect: Any) -> AbortReason | None:
        match effect:
            case SendBarriers(barrier):
                assert barrier.checkpoint_id > max([*self.triggered, *self.completed], default=0), "INV-3.3"
                self.triggered.append(barrier.checkpoint_id)
            case WriteManifest(checkpoint_id, _, retained):
                assert self.writing is None, "one manifest at a time"
                assert retained == (*self.completed, checkpoint_id)[-self.machine.retained :]
                self.writing = checkpoint_id
            case NotifyCompleted(checkpoint_id):
                assert checkpoint_id in self.in_store, "INV-3.7"
                assert checkpoint_id not in self.aborted, "INV-3.6"
                assert checkpoint_id > max(self.completed, default=0), "completed ids increase"
                self.completed.append(checkpoint_id)
                self.strikes = 0
            case NotifyAborted(checkpoint_id, reason):
                assert checkpoint_id not in self.completed, "INV-3.6"
                assert checkpoint_id not in self.aborted, "INV-3.6: twice"
                self.aborted[checkpoint_id] = reason
                return reason
            case Subsume(checkpoint_id):
                assert checkpoint_id in self.completed
                self.deleted.add(checkpoint_id)
            case DiscardPieces(checkpoint_id) | DiscardAck(checkpoint_id):
                if not (isinstance(effect, DiscardAck) and effect.actor == STRANGER):
                    assert checkpoint_id not in self.in_store - self.deleted, "a manifest may name what is deleted"
                    assert checkpoint_id in self.aborted or checkpoint_id in self.deleted
        return None

    def see(self, move: Any, failure: AbortReason | None, was_over: bool) -> None:
        if failure is not None and failure.counts and not was_over:
            self.strikes += 1
        tolerable = self.machine.tolerable_failures
        if tolerable is not None and self.strikes > tolerable:
            self.strikes, self.failed = 0, self.failed - 1
        assert self.failed == 0, "INV-3.8"
        assert self.machine.pending == () or not isinstance(self.machine.phase, Ended)
        assert max(self.completed, default=None) not in self.deleted, "the latest is never deleted"
        under_way = {one.checkpoint_id for one in self.machine.pending}
        for checkpoint_id in self.triggered:  # INV-3.6: exactly one of the three
            ends = (checkpoint_id in self.completed, checkpoint_id in self.aborted, checkpoint_id in under_way)
            assert sum(ends) == 1, f"INV-3.6: {checkpoint_id} {ends}"


def test_the_table_tells_every_edge_of_a_small_world_and_no_other() -> None:
    edges = Edges()
    for machine, most, depth in (
        (coordinator(), 2, 6),
        (coordinator(tolerable=1), 3, 4),
        (coordinator(next_id=8, tolerable=1, completed=(6, 7)), 2, 6),
    ):
        explore(Attempt(machine, edges, most), depth=depth)
    second, third = [Acknowledged(9, actor) for actor in BOTH], [Acknowledged(10, actor) for actor in BOTH]
    for completed, acknowledged in (
        ((), [*second, *third]),  # three at once: the second is on its way and the third ready to follow
        ((6, 7), [*second, *third]),
        ((), [*second, Acknowledged(8, READ)]),
    ):
        attempt = Attempt(coordinator(next_id=8, tolerable=1, completed=completed), edges, most=3)
        for move in (*[Triggered(PERIODIC, BOTH, 0)] * 3, *acknowledged):
            attempt.make(move)
        explore(attempt, depth=3)

    edges.compare(CheckpointCoordinator)


# ── completion ───────────────────────────────────────────────────────────────────────────────


def test_a_trigger_starts_the_clock_and_sends_the_barriers_INV_3_9() -> None:
    assert coordinator(next_id=5).on(Triggered(STOP, BOTH, 70)) == [
        SetTimeout(5, 1_070),
        SendBarriers(Barrier(5, STOP), 70),
    ]


def test_barriers_say_how_they_travel() -> None:
    machine = CheckpointCoordinator(1, 1, 0, 1_000, alignment=Alignment.AT_LEAST_ONCE)

    assert machine.on(Triggered(PERIODIC, BOTH, 0))[-1] == SendBarriers(
        Barrier(1, PERIODIC, Alignment.AT_LEAST_ONCE), 0
    )


def test_a_checkpoint_completes_when_all_acknowledged_and_its_manifest_is_written_INV_3_7() -> None:
    machine = coordinator()
    trigger(machine)

    assert machine.on(Acknowledged(1, READ)) == []
    assert machine.on(Acknowledged(1, COUNT)) == [WriteManifest(1, PERIODIC, (1,))]
    assert machine.on(ManifestWritten(1)) == [NotifyCompleted(1, None, PERIODIC)]
    assert machine.phase == Idle()


def test_an_acknowledgement_that_comes_twice_is_ignored() -> None:
    machine = coordinator()
    trigger(machine)
    machine.on(Acknowledged(1, READ))

    assert machine.on(Acknowledged(1, READ)) == []
    machine.on(Acknowledged(1, COUNT))
    assert machine.on(Acknowledged(1, READ)) == []
    machine.on(ManifestWritten(1))
    assert machine.on(Acknowledged(1, READ)) == []  # its pieces belong to a completed checkpoint


def test_an_acknowledgement_that_nobody_waits_for_is_discarded() -> None:
    machine = coordinator()
    trigger(machine)

    assert machine.on(Acknowledged(1, STRANGER)) == [DiscardAck(1, STRANGER)]
    assert machine.on(Acknowledged(7, READ)) == [DiscardAck(7, READ)]
    machine.on(TimedOut(1))
    assert machine.on(Acknowledged(1, READ)) == [DiscardAck(1, READ)]


def test_the_newest_are_retained_and_the_rest_is_subsumed() -> None:
    machine = coordinator(retained=2)

    assert complete(machine) == [NotifyCompleted(1, None, PERIODIC)]
    assert complete(machine) == [NotifyCompleted(2, None, PERIODIC)]
    assert complete(machine) == [Subsume(1), NotifyCompleted(3, 1, PERIODIC)]
    assert machine.completed == [2, 3]


def test_a_manifest_names_what_is_retained_with_it() -> None:
    machine = coordinator(next_id=8, retained=3, completed=(4, 5, 7))
    trigger(machine)

    assert acknowledge(machine, 8) == [WriteManifest(8, PERIODIC, (5, 7, 8))]


def test_fewer_retained_than_before_subsumes_all_that_are_too_many() -> None:
    assert complete(coordinator(next_id=8, retained=1, completed=(4, 5, 7))) == [
        Subsume(4),
        Subsume(5),
        Subsume(7),
        NotifyCompleted(8, 7, PERIODIC),
    ]


def test_a_completed_checkpoint_drops_the_older_ones_that_are_under_way() -> None:
    machine = coordinator()
    trigger(machine)
    machine.on(Acknowledged(1, READ))
    trigger(machine)
    acknowledge(machine, 2)

    assert machine.on(ManifestWritten(2)) == [
        NotifyAborted(1, AbortReason.SUBSUMED, 2, PERIODIC),
        DiscardPieces(1),
        NotifyCompleted(2, None, PERIODIC),
    ]
    assert machine.failures == 0


def test_one_manifest_is_written_at_a_time() -> None:
    machine = coordinator()
    trigger(machine)
    trigger(machine)
    acknowledge(machine, 1)

    assert acknowledge(machine, 2) == []
    assert machine.on(ManifestWritten(1)) == [NotifyCompleted(1, None, PERIODIC), WriteManifest(2, PERIODIC, (2,))]


def test_ids_strictly_increase_and_failed_ones_are_not_used_again_INV_3_3() -> None:
    machine = coordinator(next_id=6, tolerable=None, completed=(4,))

    expire(machine)
    complete(machine)

    assert machine.completed == [7]
    assert machine.next_id == 8
    with pytest.raises(AssertionError, match=r"INV-3\.3"):
        coordinator(next_id=4, completed=(4,))


# ── abort ────────────────────────────────────────────────────────────────────────────────────


def test_a_checkpoint_that_takes_too_long_expires_and_says_whom_it_waits_for() -> None:
    machine = coordinator(tolerable=1)
    trigger(machine)
    machine.on(Acknowledged(1, READ))

    assert machine.on(TimedOut(1)) == [
        NotifyAborted(1, AbortReason.EXPIRED, None, PERIODIC, "not yet acknowledged: count/0"),
        DiscardPieces(1),
    ]


def test_what_everyone_acknowledged_in_time_does_not_expire() -> None:
    machine = coordinator()
    trigger(machine)
    acknowledge(machine, 1)

    assert machine.on(TimedOut(1)) == []
    assert machine.on(ManifestWritten(1)) == [NotifyCompleted(1, None, PERIODIC)]


def test_a_late_timeout_is_ignored() -> None:
    machine = coordinator()
    complete(machine)

    assert machine.on(TimedOut(1)) == []


def test_an_actor_that_declines_aborts_the_checkpoint() -> None:
    machine = coordinator(next_id=4, completed=(3,))
    trigger(machine)

    assert machine.on(Declined(4, COUNT, AbortReason.CANCELLATION_MARKER)) == [
        NotifyAborted(4, AbortReason.CANCELLATION_MARKER, 3, PERIODIC, "count/0")
    ]
    assert machine.on(Declined(4, READ, AbortReason.CANCELLATION_MARKER)) == []


def test_a_place_that_is_taken_costs_only_the_id() -> None:
    machine = coordinator()
    trigger(machine)
    acknowledge(machine, 1)

    assert machine.on(PlaceTaken(1)) == [
        NotifyAborted(1, AbortReason.MANIFEST_PLACE_TAKEN, None, PERIODIC),
        DiscardPieces(1),
    ]
    assert complete(machine) == [NotifyCompleted(2, None, PERIODIC)]


def test_a_manifest_in_doubt_keeps_every_file() -> None:
    machine = coordinator(tolerable=1)
    trigger(machine)
    acknowledge(machine, 1)

    assert machine.on(ManifestFailed(1, AbortReason.MANIFEST_IN_DOUBT, "no answer")) == [
        NotifyAborted(1, AbortReason.MANIFEST_IN_DOUBT, None, PERIODIC, "no answer")
    ]
    assert machine.on(Acknowledged(1, READ)) == []


def test_whoever_is_fenced_deletes_nothing() -> None:
    machine = coordinator()
    trigger(machine)
    trigger(machine)
    acknowledge(machine, 1)
    machine.on(Acknowledged(2, READ))

    assert machine.on(ManifestFailed(1, AbortReason.FENCED)) == [
        NotifyAborted(1, AbortReason.FENCED, None, PERIODIC),
        NotifyAborted(2, AbortReason.FENCED, None, PERIODIC),
    ]
    assert machine.phase == Ended(AbortReason.FENCED)
    assert machine.on(Acknowledged(2, COUNT)) == []


def test_the_end_of_the_attempt_aborts_what_is_under_way_once_INV_3_6() -> None:
    machine = coordinator()
    trigger(machine)
    machine.on(Acknowledged(1, READ))

    assert machine.on(AttemptEnded(AbortReason.JOB_RESTARTED)) == [
        NotifyAborted(1, AbortReason.JOB_RESTARTED, None, PERIODIC),
        DiscardPieces(1),
    ]
    assert machine.on(AttemptEnded(AbortReason.JOB_RESTARTED)) == []
    assert machine.on(Acknowledged(1, COUNT)) == [DiscardAck(1, COUNT)]


def test_a_manifest_that_is_on_its_way_when_the_attempt_ends_keeps_its_pieces() -> None:
    machine = coordinator()
    trigger(machine)
    acknowledge(machine, 1)

    assert machine.on(AttemptEnded(AbortReason.JOB_RESTARTED)) == [
        NotifyAborted(1, AbortReason.JOB_RESTARTED, None, PERIODIC)
    ]
    assert machine.on(Acknowledged(1, READ)) == []
    assert machine.on(ManifestWritten(1)) == []


def test_a_trigger_after_the_end_is_a_mistake_of_ours() -> None:
    machine = coordinator()
    machine.on(AttemptEnded(AbortReason.JOB_ENDED))

    with pytest.raises(AssertionError, match="can't happen"):
        trigger(machine)


# ── tolerable failures ───────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("tolerable", [0, 1, 3])
def test_one_failure_more_than_tolerated_in_a_row_ends_the_attempt_INV_3_8(tolerable: int) -> None:
    machine = coordinator(tolerable=tolerable)

    for _ in range(tolerable):
        assert not any(isinstance(effect, FailAttempt) for effect in expire(machine))
    assert isinstance(expire(machine)[-1], FailAttempt)
    assert machine.failures == 0  # and it is counted anew


def test_a_success_in_between_resets_the_count_INV_3_8() -> None:
    machine = coordinator(tolerable=1)
    expire(machine)
    complete(machine)

    assert not any(isinstance(effect, FailAttempt) for effect in expire(machine))
    assert isinstance(expire(machine)[-1], FailAttempt)


def test_one_id_counts_once_however_often_it_is_declined() -> None:
    machine = coordinator(tolerable=1)
    trigger(machine)
    machine.on(Declined(1, READ, AbortReason.SNAPSHOT_FAILED))
    machine.on(Declined(1, COUNT, AbortReason.SNAPSHOT_FAILED))
    machine.on(TimedOut(1))

    assert machine.failures == 1


def test_failures_older_than_the_last_success_never_count() -> None:
    machine = coordinator(tolerable=0)
    trigger(machine)
    trigger(machine)
    acknowledge(machine, 2)
    machine.on(ManifestWritten(2))

    assert machine.on(Declined(1, READ, AbortReason.SNAPSHOT_FAILED)) == []
    assert machine.on(TimedOut(1)) == []


def test_unlimited_tolerance_counts_nothing() -> None:
    machine = coordinator(tolerable=None)

    for _ in range(100):
        assert not any(isinstance(effect, FailAttempt) for effect in expire(machine))


def test_failures_before_an_id_exists_count_one_by_one_if_they_count() -> None:
    machine = coordinator(tolerable=1)

    assert machine.on(TriggerFailed(AbortReason.TRIGGER_FAILED)) == []
    assert machine.on(TriggerFailed(AbortReason.NOT_ALL_RUNNING)) == []
    assert machine.on(TriggerFailed(AbortReason.TRIGGER_IO_FAILED)) == []
    assert machine.on(TriggerFailed(AbortReason.TRIGGER_IO_FAILED)) == [FailAttempt(AbortReason.TRIGGER_IO_FAILED)]


COUNTED = {
    AbortReason.EXPIRED,
    AbortReason.DECLINED,
    AbortReason.SNAPSHOT_FAILED,
    AbortReason.STORAGE_FAILED,
    AbortReason.MANIFEST_FAILED,
    AbortReason.MANIFEST_IN_DOUBT,
    AbortReason.TRIGGER_IO_FAILED,
}


@pytest.mark.parametrize("reason", [reason for reason in AbortReason if not reason.is_preflight])
def test_only_some_reasons_count(reason: AbortReason) -> None:
    machine = coordinator(tolerable=0)
    trigger(machine)

    effects = machine.on(Declined(1, READ, reason, "why"))

    assert (FailAttempt(reason, "read/0: why") in effects) == (reason in COUNTED)


def test_r009_the_last_checkpoint_of_a_stop_may_fail_and_the_job_goes_on() -> None:
    machine = coordinator(tolerable=0)
    trigger(machine, STOP)
    acknowledge(machine, 1)

    assert machine.on(ManifestFailed(1, AbortReason.MANIFEST_FAILED)) == [
        NotifyAborted(1, AbortReason.MANIFEST_FAILED, None, STOP),
        DiscardPieces(1),
    ]
    assert complete(machine) == [NotifyCompleted(2, None, PERIODIC)]


def test_a_checkpoint_that_is_ready_is_written_although_the_one_before_it_failed() -> None:
    machine = coordinator(tolerable=1)
    trigger(machine)
    trigger(machine)
    acknowledge(machine, 1)
    acknowledge(machine, 2)

    assert machine.on(ManifestFailed(1, AbortReason.MANIFEST_FAILED))[-1] == WriteManifest(2, PERIODIC, (2,))


def test_of_several_that_are_ready_the_newest_is_written_and_takes_the_others_place() -> None:
    machine = coordinator(tolerable=1)
    for _ in range(3):
        trigger(machine)
    for checkpoint_id in (1, 2, 3):
        acknowledge(machine, checkpoint_id)

    assert machine.on(ManifestFailed(1, AbortReason.MANIFEST_FAILED))[-1] == WriteManifest(3, PERIODIC, (3,))
    assert machine.on(ManifestWritten(3)) == [
        NotifyAborted(2, AbortReason.SUBSUMED, 3, PERIODIC),
        DiscardPieces(2),
        NotifyCompleted(3, None, PERIODIC),
    ]


# ── the rest ─────────────────────────────────────────────────────────────────────────────────


def test_phases_say_what_is_under_way() -> None:
    machine = coordinator()
    phases = [machine.phase]
    trigger(machine)
    phases.append(machine.phase)
    acknowledge(machine, 1)
    phases.append(machine.phase)

    assert [type(phase) for phase in phases] == [Idle, Collecting, Publishing]
    assert [one.awaited for one in machine.pending] == [()]


def test_a_story_of_a_coordinator_can_be_told_again() -> None:
    machine = coordinator()
    complete(machine)
    expire(machine)
    complete(machine)

    assert replay(coordinator, machine.story).phase == machine.phase


KEPT = {
    Retention.NO_EXTERNALIZED_CHECKPOINTS: set(),
    Retention.DELETE_ON_CANCELLATION: {Ending.FAILED},
    Retention.RETAIN_ON_CANCELLATION: {Ending.CANCELED, Ending.FAILED, Ending.SUSPENDED},
}


@pytest.mark.parametrize("retention", list(Retention))
@pytest.mark.parametrize("ending", list(Ending))
def test_what_is_kept_is_decided_by_retention_and_ending(retention: Retention, ending: Ending) -> None:
    assert kept_on(retention, ending) == (ending in KEPT[retention])
