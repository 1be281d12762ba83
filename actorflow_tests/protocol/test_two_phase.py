from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest

from actorflow.protocol.two_phase import (
    Abandoned,
    CheckpointAborted,
    CheckpointCompleted,
    Close,
    Closed,
    Closing,
    Commit,
    CommitAnswered,
    Committing,
    Discard,
    Event,
    Fail,
    Failed,
    Finished,
    Idle,
    Pending,
    Prepared,
    Restored,
    Retry,
    RetryDue,
    TwoPhaseCommit,
    Waiting,
)
from actorflow_tests.protocol.owners import the_permit
from actorflow_tests.protocol.walking import Edges, explore

# ── commit what completed, and nothing else ──────────────────────────────────────────────────


def test_inv_12_2_nothing_is_committed_before_its_checkpoint_completed() -> None:
    sink = TwoPhaseCommit()

    assert [] == sink.on(Prepared(1, ("a", "b")))
    assert [Commit(1, ("a", "b"), the_permit(1, 1))] == sink.on(CheckpointCompleted(the_permit(1, 1)))
    assert [] == sink.on(CommitAnswered(1))
    assert () == sink.pending


def test_r001_what_a_failed_checkpoint_prepared_is_in_the_next_snapshot_and_committed_with_it() -> None:
    sink = TwoPhaseCommit()
    sink.on(Prepared(1, ("r1", "r2", "r3")))
    assert [] == sink.on(CheckpointAborted(1))

    sink.on(Prepared(2, ("r4",)))

    assert (Pending(1, ("r1", "r2", "r3")), Pending(2, ("r4",))) == sink.pending
    assert [Commit(1, ("r1", "r2", "r3"), the_permit(2, 1))] == sink.on(CheckpointCompleted(the_permit(2, 1)))
    assert [Commit(2, ("r4",), the_permit(2, 1))] == sink.on(CommitAnswered(1))


def test_r117_inv_12_5_a_checkpoint_waits_until_the_one_before_is_committed_whole() -> None:
    sink = TwoPhaseCommit(first_delay_ms=100)
    for number in (1, 2, 3):
        sink.on(Prepared(number, (f"t{number}",)))
    permit = the_permit(3, 1)
    sink.on(CheckpointCompleted(permit))
    assert [Commit(2, ("t2",), permit)] == sink.on(CommitAnswered(1))

    assert [Retry(2, after_ms=100, attempt=1)] == sink.on(CommitAnswered(2, "the server is away"))
    assert [Commit(2, ("t2",), permit)] == sink.on(RetryDue(2))
    assert [Commit(3, ("t3",), permit)] == sink.on(CommitAnswered(2))
    assert [] == sink.on(CommitAnswered(3))


def test_a_checkpoint_that_completes_during_a_commit_is_committed_after_it() -> None:
    sink = TwoPhaseCommit()
    sink.on(Prepared(1, ("a",)))
    sink.on(CheckpointCompleted(the_permit(1, 1)))
    sink.on(Prepared(2, ("b",)))

    assert [] == sink.on(CheckpointCompleted(the_permit(2, 1)))
    assert (Pending(1, ("a",)), Pending(2, ("b",))) == sink.pending
    assert [Commit(2, ("b",), the_permit(2, 1))] == sink.on(CommitAnswered(1))


def test_what_was_cut_after_the_permit_stays_pending() -> None:
    sink = TwoPhaseCommit()
    sink.on(Prepared(1, ("a",)))
    sink.on(Prepared(2, ("b",)))
    sink.on(CheckpointCompleted(the_permit(1, 1)))
    sink.on(CommitAnswered(1))

    assert (Pending(2, ("b",)),) == sink.pending
    assert Idle() == sink.phase


def test_an_empty_cut_leaves_nothing_to_commit() -> None:
    sink = TwoPhaseCommit()
    sink.on(Prepared(1, ()))

    assert [] == sink.on(CheckpointCompleted(the_permit(1, 1)))


def test_a_permit_that_comes_late_takes_nothing_back() -> None:
    sink = TwoPhaseCommit()
    sink.on(CheckpointCompleted(the_permit(5, 1)))
    sink.on(CheckpointCompleted(the_permit(4, 1)))

    sink.on(Restored((), None))
    sink.on(Prepared(6, ("a",)))

    assert [] == sink.on(CheckpointCompleted(the_permit(3, 1)))
    assert [Commit(6, ("a",), the_permit(6, 1))] == sink.on(CheckpointCompleted(the_permit(6, 1)))


# ── restore ──────────────────────────────────────────────────────────────────────────────────


def test_what_the_restored_checkpoint_left_is_committed_first_with_the_permit_of_the_base() -> None:
    sink = TwoPhaseCommit()
    permit = the_permit(5, 2)

    assert [Commit(4, ("a",), permit)] == sink.on(Restored((Pending(5, ("b",)), Pending(4, ("a",))), permit))
    sink.on(Prepared(6, ("c",)))
    sink.on(CheckpointCompleted(the_permit(6, 2)))

    assert [Commit(5, ("b",), the_permit(6, 2))] == sink.on(CommitAnswered(4))
    assert [Commit(6, ("c",), the_permit(6, 2))] == sink.on(CommitAnswered(5))


def test_r113_after_a_scale_in_one_writer_commits_what_several_had_prepared() -> None:
    sink = TwoPhaseCommit()
    left = (Pending(1, ("a1",)), Pending(2, ("a2",)), Pending(1, ("b1",)), Pending(3, ()))

    assert [Commit(1, ("a1", "b1"), the_permit(3, 2))] == sink.on(Restored(left, the_permit(3, 2)))
    assert [Commit(2, ("a2",), the_permit(3, 2))] == sink.on(CommitAnswered(1))
    assert [] == sink.on(CommitAnswered(2))


def test_a_writer_that_was_restored_and_died_before_it_committed_leaves_all_of_it_to_the_next() -> None:
    first, second = TwoPhaseCommit(), TwoPhaseCommit()
    first.on(Restored((Pending(1, ("a",)), Pending(2, ("b",))), the_permit(2, 2)))
    first.on(Prepared(3, ("c",)))

    assert [Commit(1, ("a",), the_permit(3, 3))] == second.on(Restored(first.pending, the_permit(3, 3)))
    assert (Pending(1, ("a",)), Pending(2, ("b",)), Pending(3, ("c",))) == second.pending


def test_r028_ids_of_a_snapshot_that_came_by_path_never_stand_in_the_way_of_new_output() -> None:
    sink = TwoPhaseCommit()
    sink.on(Restored((Pending(50, ("old",)), Pending(51, ("older?",))), the_permit(7, 9)))

    sink.on(Prepared(8, ("new",)))

    assert (Pending(7, ("old", "older?")), Pending(8, ("new",))) == sink.pending
    sink.on(CommitAnswered(7))
    assert [Commit(8, ("new",), the_permit(8, 9))] == sink.on(CheckpointCompleted(the_permit(8, 9)))


def test_what_a_snapshot_left_is_never_taken_without_a_permit() -> None:
    with pytest.raises(AssertionError, match="permit of the base"):
        TwoPhaseCommit().on(Restored((Pending(1, ("a",)),), None))


# ── when committing fails ────────────────────────────────────────────────────────────────────


def test_a_commit_is_repeated_with_growing_delays_a_bounded_number_of_times() -> None:
    sink = TwoPhaseCommit(retries=10, first_delay_ms=100, longest_delay_ms=10_000)
    sink.on(Prepared(1, ("a",)))
    sink.on(CheckpointCompleted(the_permit(1, 1)))
    delays = []
    for _ in range(10):
        [retry] = sink.on(CommitAnswered(1, "no route"))
        assert isinstance(retry, Retry)
        delays.append(retry.after_ms)
        sink.on(RetryDue(1))

    [fail] = sink.on(CommitAnswered(1, "no route"))

    assert [100, 200, 400, 800, 1_600, 3_200, 6_400, 10_000, 10_000, 10_000] == delays
    assert isinstance(fail, Fail)
    assert "checkpoint 1 failed 11 times, the last time with: no route" in fail.reason
    assert (Pending(1, ("a",)),) == sink.pending


def test_a_refusal_that_no_repetition_can_mend_fails_at_once() -> None:
    sink = TwoPhaseCommit()
    sink.on(Prepared(1, ("a",)))
    sink.on(CheckpointCompleted(the_permit(1, 1)))

    [fail] = sink.on(CommitAnswered(1, "part-0-1 is there and differs", is_final=True))

    assert isinstance(fail, Fail)
    assert Failed() == sink.phase


def test_each_checkpoint_has_its_own_tries() -> None:
    sink = TwoPhaseCommit(retries=1)
    sink.on(Prepared(1, ("a",)))
    sink.on(Prepared(2, ("b",)))
    sink.on(CheckpointCompleted(the_permit(2, 1)))
    sink.on(CommitAnswered(1, "away"))
    sink.on(RetryDue(1))
    sink.on(CommitAnswered(1))

    assert [Retry(2, after_ms=100, attempt=1)] == sink.on(CommitAnswered(2, "away"))


# ── the end ──────────────────────────────────────────────────────────────────────────────────


def test_after_finish_the_next_cut_takes_the_last_output_and_later_ones_are_empty() -> None:
    sink = TwoPhaseCommit()
    sink.on(Finished())
    sink.on(Prepared(1, ("the last",)))
    sink.on(CheckpointAborted(1))
    sink.on(Prepared(2, ()))

    assert (Pending(1, ("the last",)),) == sink.pending
    with pytest.raises(AssertionError, match="after the last cut"):
        sink.on(Prepared(3, ("too late",)))


def test_closing_finishes_what_was_permitted_and_discards_what_no_manifest_can_name() -> None:
    sink = TwoPhaseCommit()
    for number in (1, 2, 3, 4):
        sink.on(Prepared(number, (f"t{number}",)))
    sink.on(CheckpointCompleted(the_permit(2, 1)))

    assert [] == sink.on(Closing(published=3))  # nobody knows whether the manifest of 3 is there
    assert [Commit(2, ("t2",), the_permit(2, 1))] == sink.on(CommitAnswered(1))
    assert [Discard(4, ("t4",)), Close()] == sink.on(CommitAnswered(2))
    assert (Pending(3, ("t3",)), Pending(4, ("t4",))) == sink.pending


def test_a_permitted_commit_that_still_fails_while_closing_stays_for_the_next_start() -> None:
    sink = TwoPhaseCommit(retries=0)
    sink.on(Prepared(1, ("a",)))
    sink.on(Prepared(2, ("b",)))
    sink.on(CheckpointCompleted(the_permit(1, 1)))
    sink.on(Closing(published=1))

    discard, close, fail = sink.on(CommitAnswered(1, "away"))

    assert [Discard(2, ("b",)), Close()] == [discard, close]
    assert isinstance(fail, Fail)


def test_r111_whoever_was_fenced_commits_and_discards_nothing_more() -> None:
    sink = TwoPhaseCommit()
    sink.on(Prepared(1, ("a",)))
    sink.on(Prepared(2, ("b",)))
    sink.on(CheckpointCompleted(the_permit(2, 1)))

    assert [Close()] == sink.on(Abandoned())
    assert [] == sink.on(CommitAnswered(1))
    assert [] == sink.on(CheckpointCompleted(the_permit(2, 1)))


def test_a_closed_writer_cuts_no_more() -> None:
    sink = TwoPhaseCommit()
    sink.on(Closing(published=0))

    with pytest.raises(AssertionError, match="is closed"):
        sink.on(Prepared(1, ()))


# ── every order ──────────────────────────────────────────────────────────────────────────────

OUTPUT = {1: ("a",), 2: ("b", "c"), 3: ("d",)}


class Sinks:
    """One sink and what may happen to it: three cuts, aborts, permits, failing commits, crashes that restore any cut.

    ``visible`` is what an outsider sees, ``snapshots`` what each checkpoint holds.
    """

    def __init__(self, edges: Edges, crashes: int = 2) -> None:
        self.edges, self.crashes = edges, crashes
        self.sink = TwoPhaseCommit(retries=1)
        self.next_id, self.permitted, self.generation = 1, 0, 1
        self.visible: list[str] = []
        self.snapshots: dict[int, tuple[Pending, ...]] = {0: ()}
        self.written: dict[int, tuple[str, ...]] = {0: ()}
        """All output up to each cut, whatever became of it."""
        self.finished = False

    def moves(self) -> Iterable[Any]:
        phase, completed = self.sink.phase, [number for number in self.snapshots if number > self.permitted]
        if isinstance(phase, Committing):
            number = phase.checkpoint_id
            yield from (CommitAnswered(number), CommitAnswered(number, "away"), CommitAnswered(number, "no", True))
        if isinstance(phase, Waiting):
            yield RetryDue(phase.checkpoint_id)
        if isinstance(phase, Closed):
            yield from (CommitAnswered(1), RetryDue(1), Closing(3), Abandoned())
        else:
            yield Abandoned()
        if not isinstance(phase, Closed) and getattr(phase, "closing", None) is None:
            if self.next_id in OUTPUT:
                yield Prepared(self.next_id, () if self.finished and self.next_id == 3 else OUTPUT[self.next_id])
            if self.next_id == 2 and not self.finished:
                yield Finished()
            yield from (Closing(published) for published in self.snapshots if published >= self.permitted)
        yield from (CheckpointCompleted(the_permit(number, self.generation)) for number in completed)
        if self.next_id - 1 > self.permitted:
            yield CheckpointAborted(self.next_id - 1)
        if self.crashes:
            yield from (("crash", number) for number in self.snapshots if number >= self.permitted)

    def make(self, move: Any) -> None:
        if isinstance(move, tuple):
            self.crash(move[1])
            return
        committing = self.sink.phase
        before = self.sink.pending
        effects = self.edges.step(self.sink, move)
        match move:
            case Prepared(number, committables):
                self.next_id = number + 1
                self.snapshots[number] = self.sink.pending
                self.written[number] = self.written[number - 1] + committables
            case CheckpointCompleted(permit):
                self.permitted = max(self.permitted, permit.checkpoint_id)
            case Finished():
                self.finished = True
            case Closing(published):
                self.forget(published)
            case CommitAnswered(_, reason) if isinstance(committing, Committing):
                shown = [value for value in before[0].committables if value not in self.visible]
                self.visible += shown if reason is None else shown[:1]  # a failed one may have shown a part
        for effect in effects:
            match effect:
                case Commit(number, _, permit):
                    assert number <= permit.checkpoint_id <= self.permitted, "INV-12.2"
                case Discard(number):
                    assert number not in self.snapshots
        self.judge()

    def crash(self, restored: int) -> None:
        """The next generation restores a checkpoint that every permitted one leads to, and so it may commit it."""
        self.crashes -= 1
        self.generation += 1
        self.permitted = max(self.permitted, restored)
        self.next_id = restored + 1
        self.finished = False
        self.forget(restored)
        self.sink = TwoPhaseCommit(retries=1)
        permit = the_permit(restored, self.generation) if restored else None
        self.edges.step(self.sink, Restored(self.snapshots[restored], permit))
        self.judge()

    def forget(self, published: int) -> None:
        """No manifest of a later checkpoint is there or will be."""
        for table in (self.snapshots, self.written):
            for number in [later for later in table if later > published]:
                del table[number]

    def judge(self) -> None:
        """What is visible is a beginning of what was permitted (a commit cut short counts as a part of its own)."""
        allowed = self.written[self.permitted]
        assert tuple(self.visible) == allowed[: len(self.visible)], "INV-12.5"
        lost = [value for value in allowed if value not in self.visible and value not in self.held()]
        assert not lost, f"{lost} can never be committed any more"

    def held(self) -> list[str]:
        return [value for left in self.sink.pending for value in left.committables]


def test_inv_12_1_in_every_order_what_is_visible_is_what_was_permitted_in_order_and_nothing_is_lost() -> None:
    edges = Edges()

    assert explore(Sinks(edges), depth=9) > 1_000

    edges.compare(TwoPhaseCommit)


def test_the_walk_finds_a_sink_that_forgets_what_a_failed_checkpoint_prepared() -> None:
    class Forgetful(TwoPhaseCommit):
        __slots__ = ()

        def decide(self, event: Event) -> list[Any]:
            if isinstance(event, CheckpointAborted) and not isinstance(self.phase, Closed):
                self._pending = tuple(left for left in self._pending if left.checkpoint_id != event.checkpoint_id)
            return super().decide(event)

    world = Sinks(Edges())
    world.sink = Forgetful()

    with pytest.raises(AssertionError, match=r"can never be committed|INV-12"):
        explore(world, depth=6)
