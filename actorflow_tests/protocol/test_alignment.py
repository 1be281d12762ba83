from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest

from actorflow.config.policies import Guarantee
from actorflow.errors import AbortReason
from actorflow.model.elements import Barrier, CheckpointKind
from actorflow.model.ids import ActorId, ChannelId
from actorflow.protocol.alignment import (
    MOST_PENDING,
    MOST_REMEMBERED_ABORTS,
    Aligning,
    Alignment,
    BarrierArrived,
    BarrierInjected,
    BlockChannel,
    CancelArrived,
    ChannelEnded,
    CheckpointAborted,
    Counting,
    Decline,
    ForwardBarrier,
    ForwardCancel,
    ResumeAllChannels,
    ResumeChannel,
    StartAlignment,
    TakeSnapshot,
    Waiting,
)
from actorflow.protocol.machine import replay
from actorflow_tests.protocol.walking import Edges, explore

LEFT = ChannelId(0, ActorId("read", 0), ActorId("count", 0))
RIGHT = ChannelId(0, ActorId("read", 1), ActorId("count", 0))
THIRD = ChannelId(0, ActorId("read", 2), ActorId("count", 0))

EXACTLY, AT_LEAST = Guarantee.EXACTLY_ONCE, Guarantee.AT_LEAST_ONCE
SUBSUMED, CANCELLED = AbortReason.DECLINED_SUBSUMED, AbortReason.CANCELLATION_MARKER


def both(guarantee: Guarantee = EXACTLY) -> Alignment:
    return Alignment([LEFT, RIGHT], guarantee)


def story(alignment: Alignment, *events: Any) -> list[list[Any]]:
    return [alignment.on(event) for event in events]


def left(checkpoint_id: int) -> BarrierArrived:
    return BarrierArrived(LEFT, Barrier(checkpoint_id))


def right(checkpoint_id: int) -> BarrierArrived:
    return BarrierArrived(RIGHT, Barrier(checkpoint_id))


def snapshot(checkpoint_id: int) -> list[Any]:
    return [ForwardBarrier(Barrier(checkpoint_id)), TakeSnapshot(Barrier(checkpoint_id))]


# ── the small world ──────────────────────────────────────────────────────────────────────────


class Actor:
    """An actor with a few channels, each of which carries barriers and cancel markers in the order of their ids."""

    def __init__(self, channels: list[ChannelId], guarantee: Guarantee, edges: Edges, ids: int, aborts: bool) -> None:
        self.alignment = Alignment(channels, guarantee)
        self.channels = channels
        self.guarantee = guarantee
        self.edges = edges
        self.ids = ids
        self.aborts = aborts
        self.passed = dict.fromkeys(channels, 0)  # the newest id that came on the channel
        self.ended: set[ChannelId] = set()
        self.blocked: set[ChannelId] = set()
        self.behind: dict[ChannelId, int] = {}  # the barrier behind which a channel's records now are
        self.injected = 0
        self.told: set[int] = set()  # what the coordinator aborted
        self.suppressed: set[int] = set()
        self.sent = 0  # the newest id that left downstream

    def moves(self) -> Iterable[Any]:
        for channel in self.channels:
            if channel in self.ended or channel in self.blocked:
                continue
            for checkpoint_id in range(self.passed[channel] + 1, self.ids + 1):
                yield BarrierArrived(channel, Barrier(checkpoint_id))
                yield CancelArrived(channel, checkpoint_id)
            yield ChannelEnded(channel)
            if not self.passed[channel]:
                break  # channels are alike: the first one that moves may as well be called the first
        if len(self.ended) == len(self.channels):
            for checkpoint_id in range(self.injected + 1, self.ids + 1):
                yield BarrierInjected(Barrier(checkpoint_id))
        if self.aborts:
            for checkpoint_id in range(1, self.ids + 1):
                if checkpoint_id not in self.told:
                    yield CheckpointAborted(checkpoint_id)

    def make(self, move: Any) -> None:
        match move:
            case BarrierArrived(channel, barrier):
                self.passed[channel] = barrier.checkpoint_id
                self.behind[channel] = barrier.checkpoint_id
            case CancelArrived(channel, checkpoint_id):
                self.passed[channel] = checkpoint_id
                self.suppressed.add(checkpoint_id)
            case ChannelEnded(channel):
                self.ended.add(channel)
            case BarrierInjected(barrier):
                self.injected = barrier.checkpoint_id
            case CheckpointAborted(checkpoint_id):
                self.told.add(checkpoint_id)
                self.suppressed.add(checkpoint_id)
        for effect in self.edges.step(self.alignment, move):
            self.carry_out(effect)
        self.see()

    def carry_out(self, effect: Any) -> None:
        match effect:
            case BlockChannel(channel):
                assert self.guarantee is EXACTLY, "INV-2.6: at least once never blocks"
                self.blocked.add(channel)
            case ResumeChannel(channel):
                self.blocked.discard(channel)
            case ResumeAllChannels():
                self.blocked.clear()
            case ForwardBarrier(barrier):
                self.leave(barrier.checkpoint_id)
            case ForwardCancel(checkpoint_id):
                self.leave(checkpoint_id)
            case Decline(checkpoint_id):
                assert checkpoint_id not in self.told, "the coordinator is told what it said"
                self.suppressed.add(checkpoint_id)
            case TakeSnapshot(barrier):
                checkpoint_id = barrier.checkpoint_id
                assert self.sent == checkpoint_id, "the barrier leaves before the snapshot"
                assert checkpoint_id not in self.suppressed, "what was cancelled or aborted stays so"
                for channel in self.channels:
                    passed = self.passed[channel]
                    if self.guarantee is EXACTLY:
                        assert passed <= checkpoint_id, "INV-2.6: a record behind a later barrier was processed"
                    assert passed >= checkpoint_id or channel in self.ended, "a barrier was not waited for"

    def leave(self, checkpoint_id: int) -> None:
        assert checkpoint_id > self.sent, "downstream sees ids grow, and each once"
        self.sent = checkpoint_id

    def see(self) -> None:
        phase = self.alignment.phase
        if isinstance(phase, Waiting):
            assert not self.blocked, "INV-2.4: a channel stays blocked and no checkpoint is pending"
        if isinstance(phase, Aligning):
            assert self.blocked | self.ended >= phase.arrived, "INV-2.6: a channel whose barrier came is not blocked"
            assert self.blocked <= phase.arrived, "INV-2.4: a channel is blocked for nothing"
        if len(self.ended) == len(self.channels):
            assert phase in {Waiting(), Counting()}, "nobody is left whose barrier could come"


def walked(
    channels: list[ChannelId], guarantee: Guarantee, edges: Edges, *, ids: int, depth: int, aborts: bool = True
) -> int:
    return explore(Actor(channels, guarantee, edges, ids, aborts), depth=depth)


def test_the_table_tells_every_edge_of_a_small_world_and_no_other() -> None:
    edges = Edges()
    for guarantee in Guarantee:
        walked([LEFT, RIGHT], guarantee, edges, ids=3, depth=3)
        walked([LEFT, RIGHT], guarantee, edges, ids=3, depth=4, aborts=False)
        walked([LEFT, RIGHT], guarantee, edges, ids=2, depth=5)
        walked([LEFT], guarantee, edges, ids=2, depth=4)
        walked([], guarantee, edges, ids=3, depth=5)
    walked([LEFT, RIGHT, THIRD], EXACTLY, edges, ids=1, depth=5)
    counting = both(AT_LEAST)
    for checkpoint_id in range(1, MOST_PENDING + 2):  # one more than it counts at once
        edges.step(counting, left(checkpoint_id))

    edges.compare(Alignment)


# ── exactly once ─────────────────────────────────────────────────────────────────────────────


def test_the_first_barrier_blocks_its_channel_and_the_last_one_takes_the_snapshot() -> None:
    assert story(both(), left(1), right(1)) == [
        [BlockChannel(LEFT), StartAlignment(1)],
        [*snapshot(1), ResumeAllChannels()],
    ]


def test_a_single_channel_never_waits() -> None:
    alignment = Alignment([LEFT])

    assert story(alignment, left(1), left(2)) == [snapshot(1), snapshot(2)]


def test_a_source_takes_its_snapshot_as_the_coordinator_says() -> None:
    source = Alignment([])

    assert story(source, BarrierInjected(Barrier(1)), BarrierInjected(Barrier(3)), BarrierInjected(Barrier(2))) == [
        snapshot(1),
        snapshot(3),
        [],
    ]


def test_a_source_drops_a_barrier_that_the_coordinator_has_aborted_before_it_came() -> None:
    source = Alignment([])

    assert story(source, CheckpointAborted(2), BarrierInjected(Barrier(1)), BarrierInjected(Barrier(2))) == [
        [],
        snapshot(1),
        [ForwardCancel(2)],
    ]


def test_a_newer_barrier_gives_up_the_older_checkpoint_and_tells_both_directions() -> None:
    alignment = both()
    alignment.on(left(1))

    assert alignment.on(right(2)) == [
        Decline(1, SUBSUMED),
        ForwardCancel(1),
        ResumeAllChannels(),
        BlockChannel(RIGHT),
        StartAlignment(2),
    ]
    assert alignment.on(left(2)) == [*snapshot(2), ResumeAllChannels()]


def test_a_late_barrier_is_ignored_and_its_channel_resumed() -> None:
    alignment = both()
    story(alignment, left(1), CancelArrived(RIGHT, 1), left(2))

    assert alignment.on(right(1)) == [ResumeChannel(RIGHT)]
    assert alignment.on(right(2)) == [*snapshot(2), ResumeAllChannels()]


def test_a_cancel_marker_for_an_id_never_seen_suppresses_it_for_ever() -> None:
    alignment = both()

    assert alignment.on(CancelArrived(LEFT, 1)) == [Decline(1, CANCELLED), ForwardCancel(1)]
    assert alignment.on(right(1)) == [ResumeChannel(RIGHT)]
    assert alignment.phase == Waiting()


def test_a_cancel_marker_of_the_pending_checkpoint_resumes_every_channel_INV_2_4() -> None:
    alignment = both()
    alignment.on(left(1))

    assert alignment.on(CancelArrived(RIGHT, 1)) == [Decline(1, CANCELLED), ForwardCancel(1), ResumeAllChannels()]


def test_a_cancel_marker_of_a_newer_checkpoint_ends_the_pending_one_too() -> None:
    alignment = both()
    alignment.on(left(1))

    assert alignment.on(CancelArrived(RIGHT, 2)) == [
        Decline(1, SUBSUMED),
        Decline(2, CANCELLED),
        ForwardCancel(1),
        ForwardCancel(2),
        ResumeAllChannels(),
    ]
    assert alignment.on(left(2)) == [ResumeChannel(LEFT)]


def test_the_coordinators_abort_of_the_pending_checkpoint_resumes_every_channel_INV_2_4() -> None:
    alignment = both()
    alignment.on(left(1))

    assert alignment.on(CheckpointAborted(1)) == [ForwardCancel(1), ResumeAllChannels()]
    assert alignment.on(right(1)) == [ResumeChannel(RIGHT)]


def test_the_coordinators_abort_is_remembered_for_an_id_that_has_not_come() -> None:
    alignment = both()
    alignment.on(CheckpointAborted(2))

    assert story(alignment, left(1), right(1)) == [
        [BlockChannel(LEFT), StartAlignment(1)],
        [*snapshot(1), ResumeAllChannels()],
    ]
    assert story(alignment, left(2), right(2)) == [[ForwardCancel(2)], [ResumeChannel(RIGHT)]]


def test_remembered_aborts_are_bounded_and_what_lies_behind_them_counts_as_aborted() -> None:
    alignment = Alignment([LEFT])
    for checkpoint_id in range(2, 3 * MOST_REMEMBERED_ABORTS):
        alignment.on(CheckpointAborted(checkpoint_id))

    assert len(alignment.aborted) == MOST_REMEMBERED_ABORTS
    assert alignment.on(left(1)) == [ForwardCancel(1)]
    assert alignment.on(left(3 * MOST_REMEMBERED_ABORTS)) == snapshot(3 * MOST_REMEMBERED_ABORTS)
    assert not alignment.aborted


def test_an_abort_that_comes_after_the_snapshot_changes_nothing_here() -> None:
    alignment = both()
    story(alignment, left(1), right(1))

    assert alignment.on(CheckpointAborted(1)) == []
    assert alignment.on(left(2)) == [BlockChannel(LEFT), StartAlignment(2)]


def test_the_barrier_that_was_longest_under_way_goes_on() -> None:
    alignment = both()
    alignment.on(BarrierArrived(LEFT, Barrier(1, elapsed_ms=70)))

    [forward, *_] = alignment.on(BarrierArrived(RIGHT, Barrier(1, elapsed_ms=20)))

    assert forward == ForwardBarrier(Barrier(1, elapsed_ms=70))


def test_two_barriers_of_one_id_and_different_kinds_are_a_mistake_of_ours() -> None:
    alignment = both()
    alignment.on(left(1))

    with pytest.raises(AssertionError, match="differ"):
        alignment.on(BarrierArrived(RIGHT, Barrier(1, CheckpointKind.STOP)))


def test_nothing_comes_from_a_blocked_channel() -> None:
    alignment = both()
    alignment.on(left(1))

    with pytest.raises(AssertionError, match="is blocked") as failure:
        alignment.on(left(2))
    assert "BlockChannel" in failure.value.__notes__[0]


# ── ended channels ───────────────────────────────────────────────────────────────────────────


def test_r003_a_channel_that_ends_before_its_barrier_counts_as_that_barrier() -> None:
    alignment = both()

    assert story(alignment, left(1), ChannelEnded(RIGHT)) == [
        [BlockChannel(LEFT), StartAlignment(1)],
        [*snapshot(1), ResumeAllChannels()],
    ]
    assert alignment.on(left(2)) == snapshot(2)  # with the channels that are still alive


def test_r003_a_cancel_marker_before_the_barrier_aborts_exactly_once() -> None:
    alignment = both()

    assert story(alignment, left(1), CancelArrived(RIGHT, 1), CheckpointAborted(1)) == [
        [BlockChannel(LEFT), StartAlignment(1)],
        [Decline(1, CANCELLED), ForwardCancel(1), ResumeAllChannels()],
        [],
    ]
    assert story(alignment, left(2), right(2))[-1] == [*snapshot(2), ResumeAllChannels()]


def test_r003_no_snapshot_is_taken_when_the_channel_ends_after_the_abort() -> None:
    for guarantee in Guarantee:
        alignment = both(guarantee)

        effects = story(alignment, left(1), CancelArrived(RIGHT, 1), ChannelEnded(RIGHT), left(2))

        taken = [effect for each in effects for effect in each if isinstance(effect, TakeSnapshot)]
        assert taken == [TakeSnapshot(Barrier(2))]


def test_a_channel_that_ends_behind_its_barrier_stands_for_no_other() -> None:
    alignment = Alignment([LEFT, RIGHT, THIRD])
    story(alignment, left(1), ChannelEnded(LEFT))

    assert alignment.on(right(1)) == [BlockChannel(RIGHT)]
    assert alignment.on(BarrierArrived(THIRD, Barrier(1))) == [*snapshot(1), ResumeAllChannels()]


def test_an_actor_whose_channels_have_all_ended_is_told_like_a_source() -> None:
    alignment = both()
    story(alignment, ChannelEnded(LEFT), ChannelEnded(RIGHT))

    assert alignment.on(BarrierInjected(Barrier(4))) == snapshot(4)


def test_a_barrier_is_not_injected_beside_an_open_channel() -> None:
    with pytest.raises(AssertionError, match="is open"):
        both().on(BarrierInjected(Barrier(1)))


# ── at least once ────────────────────────────────────────────────────────────────────────────


def test_at_least_once_counts_barriers_and_blocks_nothing_INV_2_6() -> None:
    alignment = both(AT_LEAST)

    assert story(alignment, left(1), left(2), right(1), right(2)) == [
        [StartAlignment(1)],
        [StartAlignment(2)],
        snapshot(1),
        snapshot(2),
    ]


def test_at_least_once_a_completed_checkpoint_drops_those_before_it() -> None:
    alignment = both(AT_LEAST)

    assert story(alignment, left(1), left(2), right(2), right(1)) == [
        [StartAlignment(1)],
        [StartAlignment(2)],
        [Decline(1, SUBSUMED), ForwardCancel(1), *snapshot(2)],
        [],
    ]


def test_at_least_once_a_cancel_marker_aborts_the_older_ones_and_the_named_one() -> None:
    alignment = both(AT_LEAST)
    story(alignment, left(1), left(2), left(3))

    assert alignment.on(CancelArrived(RIGHT, 2)) == [
        Decline(1, SUBSUMED),
        Decline(2, CANCELLED),
        ForwardCancel(1),
        ForwardCancel(2),
    ]
    assert alignment.on(right(3)) == snapshot(3)


def test_at_least_once_a_cancel_marker_of_an_id_never_seen_suppresses_it_for_ever() -> None:
    alignment = both(AT_LEAST)

    assert alignment.on(CancelArrived(LEFT, 1)) == [Decline(1, CANCELLED), ForwardCancel(1)]
    assert story(alignment, right(1), left(2), right(2)) == [[], [StartAlignment(2)], snapshot(2)]


def test_at_least_once_what_the_coordinator_aborted_leaves_in_its_turn() -> None:
    alignment = both(AT_LEAST)
    story(alignment, left(1), left(2))

    assert story(alignment, CheckpointAborted(2), right(1), right(2)) == [[], snapshot(1), [ForwardCancel(2)]]


def test_at_least_once_at_most_fifty_are_counted_and_the_oldest_is_given_up() -> None:
    alignment = both(AT_LEAST)
    for checkpoint_id in range(1, MOST_PENDING + 1):
        alignment.on(left(checkpoint_id))

    newest = MOST_PENDING + 1

    assert alignment.on(left(newest)) == [Decline(1, SUBSUMED), ForwardCancel(1), StartAlignment(newest)]
    assert alignment.on(right(1)) == []
    assert alignment.on(right(2)) == snapshot(2)


def test_at_least_once_an_ended_channel_completes_the_newest_that_waited_for_it() -> None:
    alignment = both(AT_LEAST)
    story(alignment, left(1), left(2))

    assert alignment.on(ChannelEnded(RIGHT)) == [Decline(1, SUBSUMED), ForwardCancel(1), *snapshot(2)]


def test_a_story_of_an_alignment_can_be_told_again() -> None:
    alignment = both()
    story(alignment, left(1), right(2), CheckpointAborted(3), left(2), left(3))

    assert replay(both, alignment.story).phase == alignment.phase
