"""Barriers at one actor: wait for all of them, or not, and when is the snapshot taken?

Exactly once: a channel whose barrier came is blocked until the barrier came on every other channel, so that no record
behind a barrier is counted before the snapshot.  At least once: nothing is ever blocked; barriers are only counted.

Barriers and cancel markers of one channel come in the order of their ids, and so they leave.  So whoever sees a newer
one on a channel that still owes the barrier of an older checkpoint knows that the older can't complete any more: it is
aborted here, the coordinator is told, and a cancel marker goes on downstream so that nobody waits there.  An id at or
below the newest that was begun or cancelled never begins again.

``ChannelEnded`` means that not even barriers will follow on that channel.  The end of *records* (``EndOfInput``) is not
that event: barriers still come behind it.

Pure, and blind to what a barrier does to data: the runtime blocks, forwards and freezes.
"""

from __future__ import annotations

from bisect import insort
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from actorflow.config.policies import Guarantee
from actorflow.errors import AbortReason
from actorflow.model.elements import Barrier
from actorflow.model.ids import ChannelId
from actorflow.protocol.machine import Machine

__all__ = (
    "MOST_PENDING",
    "MOST_REMEMBERED_ABORTS",
    "Aligning",
    "Alignment",
    "BarrierArrived",
    "BarrierInjected",
    "BlockChannel",
    "CancelArrived",
    "ChannelEnded",
    "CheckpointAborted",
    "Counted",
    "Counting",
    "Decline",
    "Effect",
    "Event",
    "ForwardBarrier",
    "ForwardCancel",
    "ResumeAllChannels",
    "ResumeChannel",
    "StartAlignment",
    "TakeSnapshot",
    "Waiting",
)

MOST_PENDING = 50
"""How many checkpoints are counted at once when nothing is blocked; the oldest is given up for one more."""

MOST_REMEMBERED_ABORTS = 64
"""How many aborts of checkpoints that have not come here yet are remembered.

It must not be less than the number of checkpoints that may be under way at once: an id that lies further behind the
newest abort is taken for aborted as well.
"""


# ── events ───────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True)
class BarrierArrived:
    """A barrier was taken from a channel."""

    channel: ChannelId
    barrier: Barrier


@dataclass(frozen=True, slots=True)
class BarrierInjected:
    """The coordinator hands a barrier to an actor that has no open channel: a source."""

    barrier: Barrier


@dataclass(frozen=True, slots=True)
class CancelArrived:
    """A cancel marker was taken from a channel: the checkpoint was aborted upstream."""

    channel: ChannelId
    checkpoint_id: int


@dataclass(frozen=True, slots=True)
class ChannelEnded:
    """Nothing will follow on the channel, not even barriers."""

    channel: ChannelId


@dataclass(frozen=True, slots=True)
class CheckpointAborted:
    """The coordinator has aborted a checkpoint."""

    checkpoint_id: int


Event = BarrierArrived | BarrierInjected | CancelArrived | ChannelEnded | CheckpointAborted


# ── effects ──────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True)
class BlockChannel:
    """Take nothing more from this channel."""

    channel: ChannelId


@dataclass(frozen=True, slots=True)
class ResumeChannel:
    """Take from this channel again, if it was blocked."""

    channel: ChannelId


@dataclass(frozen=True, slots=True)
class ResumeAllChannels:
    """Take from every channel again."""


@dataclass(frozen=True, slots=True)
class StartAlignment:
    """The first of several barriers came: announce that the others are awaited."""

    checkpoint_id: int


@dataclass(frozen=True, slots=True)
class ForwardBarrier:
    """Send the barrier to every output, before the snapshot: downstream must not wait for it."""

    barrier: Barrier


@dataclass(frozen=True, slots=True)
class TakeSnapshot:
    """Freeze the state now."""

    barrier: Barrier


@dataclass(frozen=True, slots=True)
class ForwardCancel:
    """Send a cancel marker to every output."""

    checkpoint_id: int


@dataclass(frozen=True, slots=True)
class Decline:
    """Tell the coordinator that no snapshot will come from here."""

    checkpoint_id: int
    reason: AbortReason


Effect = (
    BlockChannel
    | ResumeChannel
    | ResumeAllChannels
    | StartAlignment
    | ForwardBarrier
    | TakeSnapshot
    | ForwardCancel
    | Decline
)


# ── phases ───────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True)
class Waiting:
    """Exactly once: no checkpoint is pending here and no channel is blocked."""


@dataclass(frozen=True, slots=True)
class Aligning:
    """Exactly once: the channels ``arrived`` are blocked until the others follow."""

    barrier: Barrier
    arrived: frozenset[ChannelId]


@dataclass(frozen=True, slots=True)
class Counted:
    """A checkpoint whose barrier came on some channels; one that the coordinator aborted leaves as a cancel marker."""

    barrier: Barrier
    arrived: frozenset[ChannelId]
    aborted: bool = False

    @property
    def checkpoint_id(self) -> int:
        return self.barrier.checkpoint_id


@dataclass(frozen=True, slots=True)
class Counting:
    """At least once: any number of checkpoints may be pending, oldest first."""

    pending: tuple[Counted, ...] = ()


# ── the machine ──────────────────────────────────────────────────────────────────────────────


class Alignment(Machine[Event, Effect]):
    """When does this actor take its snapshot?  ``channels`` are its input; a source has none.

    | phase    | event                        | effects → next phase                                             |
    |----------|------------------------------|------------------------------------------------------------------|
    | Waiting  | BarrierArrived               | BlockChannel, StartAlignment → Aligning                          |
    | Waiting  | BarrierArrived               | ForwardBarrier, TakeSnapshot → Waiting                           |
    | Waiting  | BarrierArrived               | ResumeChannel → Waiting                                          |
    | Waiting  | BarrierArrived               | ForwardCancel → Waiting                                          |
    | Waiting  | CancelArrived                | Decline?, ForwardCancel → Waiting                                |
    | Waiting  | CancelArrived                | – → Waiting                                                      |
    | Waiting  | ChannelEnded                 | – → Waiting                                                      |
    | Waiting  | CheckpointAborted            | – → Waiting                                                      |
    | Aligning | BarrierArrived               | BlockChannel → Aligning                                          |
    | Aligning | BarrierArrived, ChannelEnded | ForwardBarrier, TakeSnapshot, ResumeAllChannels → Waiting        |
    | Aligning | BarrierArrived               | ResumeChannel → Aligning                                         |
    | Aligning | BarrierArrived | Decline, ForwardCancel, ResumeAllChannels, BlockChannel, StartAlignment → Aligning |
    | Aligning | BarrierArrived | Decline, ForwardCancel, ResumeAllChannels, ForwardCancel → Waiting             |
    | Aligning | CancelArrived                | Decline, ForwardCancel, ResumeAllChannels → Waiting              |
    | Aligning | CheckpointAborted            | ForwardCancel, ResumeAllChannels → Waiting                       |
    | Aligning | CancelArrived, ChannelEnded, CheckpointAborted | – → Aligning                                   |
    | Counting | BarrierArrived               | Decline?, ForwardCancel?, StartAlignment → Counting              |
    | Counting | BarrierArrived, ChannelEnded | Decline?, ForwardCancel?, ForwardBarrier, TakeSnapshot → Counting |
    | Counting | BarrierArrived, ChannelEnded | Decline?, ForwardCancel → Counting                               |
    | Counting | CancelArrived                | Decline?, ForwardCancel → Counting                               |
    | Counting | BarrierArrived, CancelArrived, ChannelEnded, CheckpointAborted | – → Counting                   |
    | Waiting, Counting | BarrierInjected     | ForwardBarrier, TakeSnapshot → same                              |
    | Waiting, Counting | BarrierInjected     | ForwardCancel → same                                             |
    | Waiting, Counting | BarrierInjected     | – → same                                                         |
    """

    __slots__ = ("aborted", "channels", "latest", "newest_abort", "open", "taken")

    phase: Waiting | Aligning | Counting

    def __init__(self, channels: Sequence[ChannelId], guarantee: Guarantee = Guarantee.EXACTLY_ONCE) -> None:
        super().__init__(Waiting() if guarantee is Guarantee.EXACTLY_ONCE else Counting())
        self.channels = tuple(channels)
        self.open = list(channels)
        self.latest = 0  # the newest id that was begun or cancelled here
        self.taken = 0  # the newest id of which a snapshot was taken
        self.aborted: list[int] = []  # the coordinator's aborts of ids that have not come here yet, ascending
        self.newest_abort = 0

    def decide(self, event: Event) -> list[Effect]:
        match self.phase, event:
            case _, BarrierInjected(barrier):
                return self._inject(barrier)

            case Waiting(), BarrierArrived(channel, barrier):
                return self._begin(channel, barrier)
            case Aligning(pending, arrived), BarrierArrived(channel, barrier):
                assert channel not in arrived, f"{channel} is blocked and yet {barrier} came from it"
                if barrier.checkpoint_id < pending.checkpoint_id:
                    return [ResumeChannel(channel)]
                if barrier.checkpoint_id > pending.checkpoint_id:
                    return [*self._give_up(pending.checkpoint_id), *self._begin(channel, barrier)]
                self.phase = Aligning(_merged(pending, barrier), arrived | {channel})
                return self._complete_or(BlockChannel(channel))
            case Counting(pending), BarrierArrived(channel, barrier):
                return self._count(pending, channel, barrier)

            case Waiting(), CancelArrived(_, checkpoint_id):
                return self._cancel(checkpoint_id) if checkpoint_id > self.latest else []
            case Aligning(pending, arrived), CancelArrived(channel, checkpoint_id):
                assert channel not in arrived, f"{channel} is blocked and yet a cancel marker came from it"
                return self._cancel_aligning(pending.checkpoint_id, checkpoint_id)
            case Counting(pending), CancelArrived(_, checkpoint_id):
                return self._cancel_counted(pending, checkpoint_id)

            case phase, ChannelEnded(channel):
                assert channel in self.open, f"{channel} ended twice, or is none of ours"
                self.open.remove(channel)
                match phase:
                    case Aligning():
                        return self._complete_or()
                    case Counting(pending):
                        return self._complete_newest(pending)
                return []

            case phase, CheckpointAborted(checkpoint_id):
                return self._aborted_by_coordinator(phase, checkpoint_id)
        raise AssertionError(f"{event!r} can't happen in {self.phase!r}")

    # ── what both guarantees share ───────────────────────────────────────────────────────────

    def _inject(self, barrier: Barrier) -> list[Effect]:
        assert not self.open, f"{barrier} was injected although {self.open[0]} is open"
        if barrier.checkpoint_id <= self.latest:
            return []
        if self._reach(barrier.checkpoint_id):
            return [ForwardCancel(barrier.checkpoint_id)]
        return self._snapshot(barrier)

    def _reach(self, checkpoint_id: int) -> bool:
        """Let nothing at or below this id begin again; say whether the coordinator had aborted it before it came."""
        aborted = checkpoint_id in self.aborted or checkpoint_id < self.newest_abort - MOST_REMEMBERED_ABORTS
        self.latest = checkpoint_id
        self.aborted = [later for later in self.aborted if later > checkpoint_id]
        return aborted

    def _cancel(self, checkpoint_id: int) -> list[Effect]:
        """Suppress an id that has not come here yet, for ever."""
        declined = [] if self._reach(checkpoint_id) else [Decline(checkpoint_id, AbortReason.CANCELLATION_MARKER)]
        return [*declined, ForwardCancel(checkpoint_id)]

    def _snapshot(self, barrier: Barrier) -> list[Effect]:
        assert barrier.checkpoint_id > self.taken, f"a second snapshot for {barrier}, after that of {self.taken}"
        self.taken = barrier.checkpoint_id
        return [ForwardBarrier(barrier), TakeSnapshot(barrier)]

    def _aborted_by_coordinator(self, phase: Waiting | Aligning | Counting, checkpoint_id: int) -> list[Effect]:
        self.newest_abort = max(self.newest_abort, checkpoint_id)
        if checkpoint_id > self.latest:
            if checkpoint_id not in self.aborted:
                insort(self.aborted, checkpoint_id)
            del self.aborted[:-MOST_REMEMBERED_ABORTS]
            return []
        match phase:
            case Aligning(pending) if pending.checkpoint_id == checkpoint_id:
                self.phase = Waiting()
                return [ForwardCancel(checkpoint_id), ResumeAllChannels()]
            case Counting(counted):
                # Its cancel marker leaves when its last barrier came: ids leave in order, and older ones may pend.
                self.phase = Counting(
                    tuple(replace(one, aborted=True) if one.checkpoint_id == checkpoint_id else one for one in counted)
                )
        return []

    # ── exactly once ─────────────────────────────────────────────────────────────────────────

    def _begin(self, channel: ChannelId, barrier: Barrier) -> list[Effect]:
        assert channel in self.open, f"{barrier} came from {channel}, which ended or is none of ours"
        if barrier.checkpoint_id <= self.latest:
            return [ResumeChannel(channel)]
        if self._reach(barrier.checkpoint_id):
            return [ForwardCancel(barrier.checkpoint_id)]
        if len(self.open) == 1:
            return self._snapshot(barrier)
        self.phase = Aligning(barrier, frozenset({channel}))
        return [BlockChannel(channel), StartAlignment(barrier.checkpoint_id)]

    def _complete_or(self, *otherwise: Effect) -> list[Effect]:
        assert isinstance(self.phase, Aligning)
        if not self.phase.arrived.issuperset(self.open):
            return list(otherwise)
        barrier = self.phase.barrier
        self.phase = Waiting()
        return [*self._snapshot(barrier), ResumeAllChannels()]

    def _give_up(self, checkpoint_id: int, reason: AbortReason = AbortReason.DECLINED_SUBSUMED) -> list[Effect]:
        self.phase = Waiting()
        return [Decline(checkpoint_id, reason), ForwardCancel(checkpoint_id), ResumeAllChannels()]

    def _cancel_aligning(self, pending_id: int, checkpoint_id: int) -> list[Effect]:
        if checkpoint_id < pending_id:
            return []
        if checkpoint_id > pending_id:
            return _ordered([*self._give_up(pending_id), *self._cancel(checkpoint_id)])
        return self._give_up(pending_id, AbortReason.CANCELLATION_MARKER)

    # ── at least once ────────────────────────────────────────────────────────────────────────

    def _count(self, pending: tuple[Counted, ...], channel: ChannelId, barrier: Barrier) -> list[Effect]:
        assert channel in self.open, f"{barrier} came from {channel}, which ended or is none of ours"
        effects: list[Effect] = []
        if barrier.checkpoint_id > self.latest:
            aborted = self._reach(barrier.checkpoint_id)
            pending = (*pending, Counted(barrier, frozenset({channel}), aborted))
            if len(self.open) > 1 and not aborted:
                effects = [StartAlignment(barrier.checkpoint_id)]
            if len(pending) > MOST_PENDING:
                effects = [*_dropped(pending[:1], AbortReason.DECLINED_SUBSUMED), *effects]
                pending = pending[1:]
        else:
            pending = tuple(
                replace(one, barrier=_merged(one.barrier, barrier), arrived=one.arrived | {channel})
                if one.checkpoint_id == barrier.checkpoint_id
                else one
                for one in pending
            )
        return [*effects, *self._complete_newest(pending)]

    def _complete_newest(self, pending: tuple[Counted, ...]) -> list[Effect]:
        """Take the snapshot of the newest checkpoint whose barriers are all here; the older ones go with it."""
        complete = [place for place, one in enumerate(pending) if one.arrived.issuperset(self.open)]
        self.phase = Counting(pending[complete[-1] + 1 :] if complete else pending)
        if not complete:
            return []
        newest = pending[complete[-1]]
        older = _dropped(pending[: complete[-1]], AbortReason.DECLINED_SUBSUMED)
        return [*older, *([ForwardCancel(newest.checkpoint_id)] if newest.aborted else self._snapshot(newest.barrier))]

    def _cancel_counted(self, pending: tuple[Counted, ...], checkpoint_id: int) -> list[Effect]:
        older = tuple(one for one in pending if one.checkpoint_id < checkpoint_id)
        self.phase = Counting(tuple(one for one in pending if one.checkpoint_id > checkpoint_id))
        effects = _dropped(older, AbortReason.DECLINED_SUBSUMED)
        if checkpoint_id > self.latest:
            return _ordered([*effects, *self._cancel(checkpoint_id)])
        named = tuple(one for one in pending if one.checkpoint_id == checkpoint_id)
        return _ordered([*effects, *_dropped(named, AbortReason.CANCELLATION_MARKER)])

    # ── what must always hold ────────────────────────────────────────────────────────────────

    def check(self) -> None:
        match self.phase:
            case Aligning(barrier, arrived):
                assert barrier.checkpoint_id == self.latest > self.taken, "only the newest checkpoint is aligned"
                assert arrived, "INV-2.4: nothing arrived and yet something is pending"
                assert not arrived.issuperset(self.open), "INV-2.4: all barriers came and channels are blocked"
            case Counting(pending):
                ids = [one.checkpoint_id for one in pending]
                assert all(one < later for one, later in pairwise([self.taken, *ids])), "ids only grow"
                assert all(one <= self.latest for one in ids), "a checkpoint newer than the newest"
                assert len(ids) <= MOST_PENDING
                assert not any(one.arrived.issuperset(self.open) for one in pending), "complete and yet pending"
        assert self.taken <= self.latest, "ids only grow"
        assert all(one > self.latest for one in self.aborted), "an abort is remembered that can't matter any more"
        assert len(self.aborted) <= MOST_REMEMBERED_ABORTS


def _merged(one: Barrier, other: Barrier) -> Barrier:
    """The same barrier from two channels; the one that was longer under way knows better how long that is."""
    assert one.kind is other.kind, f"{one} and {other} differ"
    return one if one.elapsed_ms >= other.elapsed_ms else other


def _dropped(counted: tuple[Counted, ...], reason: AbortReason) -> list[Effect]:
    """Nobody waits for these any more: neither the coordinator, unless it aborted them itself, nor downstream."""
    declines: list[Effect] = [Decline(one.checkpoint_id, reason) for one in counted if not one.aborted]
    return [*declines, *(ForwardCancel(one.checkpoint_id) for one in counted)]


def _ordered(effects: list[Effect]) -> list[Effect]:
    """The coordinator is told first, channels are resumed last; in between, ids leave as they came."""
    return sorted(effects, key=lambda effect: (isinstance(effect, ResumeAllChannels), not isinstance(effect, Decline)))
