"""How far has event time come, given idle channels?

A *valve* merges the watermarks of one input's channels: the lowest of those that count, and only if it grows.  An idle
channel counts for nothing and holds nobody back; a channel that ended counts as the end of time.  One that comes back
from idleness behind the output does not count until it has caught up.  An operator with several inputs takes the
lowest over those that are not idle.

Where **all** are idle, the output is the largest of them, and follows the largest: the watermark of an idle source goes
on at the pace of the clock, so that a quiet stream closes its windows.  So the watermark of an idle channel is taken
down and not ignored.  A channel that ended says nothing about when the idle ones will speak again: only when all have
ended is it the end of time.

Watermarks are no part of a snapshot: every channel begins at ``MIN_WATERMARK``, active, after a restore too.

Pure.  Refuses to judge who is idle: that is what a split of a source is (``idleness.py``), never a channel by itself.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from actorflow.model.event_time import MAX_WATERMARK, MIN_WATERMARK
from actorflow.model.ids import ChannelId
from actorflow.protocol.machine import Machine

__all__ = (
    "Active",
    "ActiveArrived",
    "ChannelEnded",
    "Effect",
    "EmitActive",
    "EmitIdle",
    "EmitWatermark",
    "Ended",
    "Event",
    "Idle",
    "IdleArrived",
    "Inputs",
    "Member",
    "Merge",
    "Valve",
    "WatermarkArrived",
)

Name = TypeVar("Name", bound=Hashable)


# ── events ───────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True)
class WatermarkArrived:
    """A watermark was taken from a channel; ``MAX_WATERMARK`` ends it."""

    channel: ChannelId
    time_ms: int


@dataclass(frozen=True, slots=True)
class IdleArrived:
    """What feeds the channel is idle from here on."""

    channel: ChannelId


@dataclass(frozen=True, slots=True)
class ActiveArrived:
    """What feeds the channel is not idle any more: records may follow."""

    channel: ChannelId


@dataclass(frozen=True, slots=True)
class ChannelEnded:
    """No record will follow on the channel, ever.  A job that stops to go on later does not end its channels."""

    channel: ChannelId


Event = WatermarkArrived | IdleArrived | ActiveArrived | ChannelEnded


# ── effects ──────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True)
class EmitWatermark:
    """Event time has come this far: fire what is due, then send it to every output."""

    time_ms: int


@dataclass(frozen=True, slots=True)
class EmitIdle:
    """Tell every output that nobody needs to wait for this one."""


@dataclass(frozen=True, slots=True)
class EmitActive:
    """Tell every output that it counts again, before any record that follows."""


Effect = EmitWatermark | EmitIdle | EmitActive


# ── phases ───────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True)
class Active:
    """Somebody may send a record at any time."""


@dataclass(frozen=True, slots=True)
class Idle:
    """Everybody who has not ended is idle."""


@dataclass(frozen=True, slots=True)
class Ended:
    """Everybody has ended: the end of time was emitted."""


# ── the rule ─────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True)
class Member:
    """One of those whose watermarks are merged."""

    time_ms: int = MIN_WATERMARK
    idle: bool = False


class Merge(Generic[Name]):
    """The lowest watermark of all who are active; the largest of all when nobody is; only grows.

    ``catches_up`` says that an active member behind the output does not count until it has caught up; otherwise the
    output waits for it.  A member that ended is forgotten, but for the largest watermark that any such had.

    ``waited_for`` counts those that keep the output where it is, so that most watermarks, which are not theirs or not
    the last of theirs, need no look at all members.  It is right after each ``advance``.
    """

    __slots__ = ("active", "catches_up", "largest_ended_ms", "members", "output_ms", "waited_for")

    def __init__(self, names: Iterable[Name] = (), *, catches_up: bool) -> None:
        self.catches_up = catches_up
        self.members = {name: Member() for name in names}
        self.active = self.waited_for = len(self.members)
        self.largest_ended_ms = MIN_WATERMARK
        self.output_ms = MIN_WATERMARK

    @property
    def is_idle(self) -> bool:
        """Whether nobody is active."""
        return not self.active

    def add(self, name: Name) -> None:
        """One more joins, active and at ``MIN_WATERMARK``."""
        self.members[name] = Member()
        self.active += 1

    def end(self, name: Name) -> None:
        """One leaves for good."""
        member = self.members.pop(name, None)
        if member is not None:
            self.active -= not member.idle
            self.largest_ended_ms = max(self.largest_ended_ms, member.time_ms)

    def reach(self, name: Name, time_ms: int) -> bool:
        """Take down how far one has come, idle or not; what is not larger is ignored.

        Returns whether the output may follow: it can't while it waits for somebody else.
        """
        member = self.members.get(name)
        if member is None or time_ms <= member.time_ms:
            return False
        if time_ms >= MAX_WATERMARK:
            self.end(name)
            return True
        self.members[name] = Member(time_ms, member.idle)
        if member.idle:
            return not self.active
        if self._is_waited_for(member.time_ms) and time_ms > self.output_ms:
            self.waited_for -= 1
        return not self.waited_for

    def mark(self, name: Name, *, idle: bool) -> None:
        """One is idle, or active again."""
        member = self.members.get(name)
        if member is not None and member.idle != idle:
            self.members[name] = Member(member.time_ms, idle)
            self.active += -1 if idle else 1

    def advance(self) -> bool:
        """Let the output follow; return whether it grew."""
        active = [member.time_ms for member in self.members.values() if not member.idle]
        if not active:
            largest = max((member.time_ms for member in self.members.values()), default=MIN_WATERMARK)
            grew = self.raise_to(max(largest, self.largest_ended_ms))
        else:
            counted = [time_ms for time_ms in active if time_ms >= self.output_ms] if self.catches_up else active
            grew = self.raise_to(min(counted, default=self.output_ms))
        self.waited_for = sum(map(self._is_waited_for, active))
        return grew

    def _is_waited_for(self, time_ms: int) -> bool:
        return time_ms == self.output_ms or (time_ms < self.output_ms and not self.catches_up)

    def raise_to(self, time_ms: int) -> bool:
        """Let the output be this, if it is larger; return whether it is."""
        if time_ms <= self.output_ms:
            return False
        self.output_ms = time_ms
        return True


# ── the machines ─────────────────────────────────────────────────────────────────────────────


class _Merging(Machine[Event, Effect], Generic[Name]):
    """What the merge of channels and the merge of inputs share: when is something said, and in which order?"""

    __slots__ = ("before_ms", "merge", "settled")

    phase: Active | Idle | Ended

    def __init__(self, merge: Merge[Name]) -> None:
        assert merge.members, "nothing to merge: a source has its watermarks from its splits"
        super().__init__(Active())
        self.merge = merge
        self.before_ms = MIN_WATERMARK  # the output before anything was last said
        self.settled = False  # whether the last event could change anything

    @property
    def output_ms(self) -> int:
        """The last watermark that was emitted."""
        return self.merge.output_ms

    @property
    def is_idle(self) -> bool:
        """Whether the last thing said was that nobody needs to wait."""
        return isinstance(self.phase, Idle)

    def _settle(self) -> list[Effect]:
        merge, effects = self.merge, list[Effect]()
        self.settled = True
        self.before_ms = merge.output_ms
        if isinstance(self.phase, Ended):
            return effects
        if not merge.members:
            self.phase = Ended()
            merge.raise_to(MAX_WATERMARK)
            return [EmitWatermark(MAX_WATERMARK)]
        is_idle = merge.is_idle
        if isinstance(self.phase, Idle) and not is_idle:
            self.phase = Active()
            effects.append(EmitActive())
        if merge.advance():
            effects.append(EmitWatermark(merge.output_ms))
        if isinstance(self.phase, Active) and is_idle:
            self.phase = Idle()
            effects.append(EmitIdle())
        return effects

    def check(self) -> None:
        if not self.settled:
            return
        merge = self.merge
        assert merge.active == sum(not member.idle for member in merge.members.values()), "miscounted"
        assert merge.output_ms >= self.before_ms, "INV-5.4: a watermark went backwards"
        assert all(member.time_ms < MAX_WATERMARK for member in merge.members.values()), "ended and still counted"
        match self.phase:
            case Ended():
                assert not merge.members, "it ended although somebody may still speak"
                assert merge.output_ms == MAX_WATERMARK, "the end is the end of time"
            case Idle():
                assert merge.is_idle, "idle although somebody is active"
                assert all(member.time_ms <= merge.output_ms for member in merge.members.values()), "follow the largest"
            case Active():
                assert not merge.is_idle, "active although everybody is idle"
        if not isinstance(self.phase, Ended):
            assert merge.output_ms < MAX_WATERMARK, "the end of time came before all have ended"


class Valve(_Merging[ChannelId]):
    """How far has event time come on the channels of one input?

    | phase  | event                                       | effects → next phase             |
    |--------|---------------------------------------------|----------------------------------|
    | Active | WatermarkArrived, ActiveArrived             | EmitWatermark? → Active          |
    | Active | WatermarkArrived, IdleArrived, ChannelEnded | EmitWatermark?, EmitIdle → Idle  |
    | Active | IdleArrived, ChannelEnded                   | EmitWatermark? → Active          |
    | Active | WatermarkArrived, ChannelEnded              | EmitWatermark → Ended            |
    | Idle   | WatermarkArrived                            | EmitWatermark? → Idle            |
    | Idle   | IdleArrived, ChannelEnded, ActiveArrived    | – → Idle                         |
    | Idle   | ActiveArrived                               | EmitActive → Active              |
    | Idle   | WatermarkArrived, ChannelEnded              | EmitWatermark → Ended            |
    | Ended  | WatermarkArrived, IdleArrived, ActiveArrived, ChannelEnded | – → Ended         |
    """

    __slots__ = ("channels",)

    def __init__(self, channels: Sequence[ChannelId]) -> None:
        super().__init__(Merge(channels, catches_up=True))
        self.channels = frozenset(channels)

    def decide(self, event: Event) -> list[Effect]:
        assert event.channel in self.channels, f"{event.channel} is none of ours"
        self.settled = False
        match event:
            case WatermarkArrived(channel, time_ms):
                if not self.merge.reach(channel, time_ms):
                    return []
            case IdleArrived(channel):
                self.merge.mark(channel, idle=True)
            case ActiveArrived(channel):
                self.merge.mark(channel, idle=False)
            case ChannelEnded(channel):
                self.merge.end(channel)
        return self._settle()


class Inputs(_Merging[int]):
    """How far has event time come at an operator?  ``inputs`` are the channels of each; one valve merges each.

    An input that comes back from idleness behind the output is waited for, unlike a channel.

    | phase  | event                                       | effects → next phase             |
    |--------|---------------------------------------------|----------------------------------|
    | Active | WatermarkArrived, ActiveArrived             | EmitWatermark? → Active          |
    | Active | WatermarkArrived, IdleArrived, ChannelEnded | EmitWatermark?, EmitIdle → Idle  |
    | Active | IdleArrived, ChannelEnded                   | EmitWatermark? → Active          |
    | Active | WatermarkArrived, ChannelEnded              | EmitWatermark → Ended            |
    | Idle   | WatermarkArrived                            | EmitWatermark? → Idle            |
    | Idle   | IdleArrived, ChannelEnded, ActiveArrived    | – → Idle                         |
    | Idle   | ActiveArrived                               | EmitActive → Active              |
    | Idle   | WatermarkArrived, ChannelEnded              | EmitWatermark → Ended            |
    | Ended  | WatermarkArrived, IdleArrived, ActiveArrived, ChannelEnded | – → Ended         |
    """

    __slots__ = ("_input_of", "valves")

    def __init__(self, inputs: Sequence[Sequence[ChannelId]]) -> None:
        super().__init__(Merge(range(len(inputs)), catches_up=False))
        self.valves = [Valve(channels) for channels in inputs]
        self._input_of = {channel: number for number, channels in enumerate(inputs) for channel in channels}
        assert len(self._input_of) == sum(map(len, inputs)), "a channel belongs to one input"

    def decide(self, event: Event) -> list[Effect]:
        number = self._input_of[event.channel]
        self.settled = False
        effects = self.valves[number].on(event)
        if not effects:
            return effects
        for effect in effects:
            match effect:
                case EmitWatermark(time_ms):
                    self.merge.reach(number, time_ms)
                case EmitIdle():
                    self.merge.mark(number, idle=True)
                case EmitActive():
                    self.merge.mark(number, idle=False)
        return self._settle()
