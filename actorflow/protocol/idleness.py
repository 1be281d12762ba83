"""Is a source quiet, or only slow?

Idle is what a *split* of a source is: while the source was ready to emit, nothing came from outside for ``idle_after``.
So a split's clock runs only while its subtask waits for records with empty hands.  It stands still while the subtask
waits for credit, is inside a user's call or has not yet been restored (``NotReady``), and while the split is held back
by alignment (``SplitHeld``): whoever is not read from can't be told from whoever is silent.  A subtask without splits
is idle at once, whatever ``idle_after`` says.

The watermarks of the splits are merged into one of the subtask: the lowest of those that are not idle.

When **all** splits of **all** subtasks are idle, the source is quiet, and event time goes on at the pace of the clock:
by as much as the clock of the subtask runs from then on, so it stands still again whenever the subtask isn't ready.
The subtask still counts as idle and holds nobody back.  ``WhenIdle.HOLD``, or no ``idle_after``, lets it stand.

Pure: the time comes with the event, from a clock that is never set (one that steps back stands still here); idleness is
found at a tick, never between.  Who knows of the other subtasks is ``quiet.py``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from actorflow.model.event_time import MAX_WATERMARK, MIN_WATERMARK, WhenIdle
from actorflow.protocol.machine import Machine
from actorflow.protocol.watermarks import EmitActive, EmitIdle, EmitWatermark, Merge

__all__ = (
    "Active",
    "Effect",
    "Event",
    "Idle",
    "Idleness",
    "NotReady",
    "Passing",
    "Ready",
    "RecordsRead",
    "ReportQuiet",
    "ReportStirred",
    "SplitAdded",
    "SplitClock",
    "SplitEnded",
    "SplitHeld",
    "SplitReleased",
    "Ticked",
    "TimeHeld",
    "TimePasses",
    "WatermarkReached",
)


# ── events of a subtask ──────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True)
class SplitAdded:
    """The subtask begins to read a split, or goes on with it after a restore; its watermark begins anew."""

    split: str
    at_ms: int


@dataclass(frozen=True, slots=True)
class SplitEnded:
    """The split came to its end; its last watermark was told before."""

    split: str
    at_ms: int


@dataclass(frozen=True, slots=True)
class RecordsRead:
    """Records of a split were taken and are about to be emitted."""

    split: str
    at_ms: int


@dataclass(frozen=True, slots=True)
class WatermarkReached:
    """How far the strategy says that a split has come; it is emitted at the next tick."""

    split: str
    time_ms: int


@dataclass(frozen=True, slots=True)
class Ready:
    """The subtask begins to wait for records: it has none in hand and could emit at once what comes."""

    at_ms: int


@dataclass(frozen=True, slots=True)
class NotReady:
    """The subtask does something else: it emits, waits for credit, is inside a user's call."""

    at_ms: int


@dataclass(frozen=True, slots=True)
class SplitHeld:
    """The split is not read from, because it is too far ahead of others."""

    split: str
    at_ms: int


@dataclass(frozen=True, slots=True)
class SplitReleased:
    """The split is read from again."""

    split: str
    at_ms: int


@dataclass(frozen=True, slots=True)
class TimePasses:
    """The whole source is quiet: event time may go on with the clock."""

    at_ms: int


@dataclass(frozen=True, slots=True)
class TimeHeld:
    """The source is not quiet any more."""

    at_ms: int


@dataclass(frozen=True, slots=True)
class Ticked:
    """One interval has passed: say how far event time has come, and look who is idle."""

    at_ms: int


Event = (
    SplitAdded
    | SplitEnded
    | RecordsRead
    | WatermarkReached
    | Ready
    | NotReady
    | SplitHeld
    | SplitReleased
    | TimePasses
    | TimeHeld
    | Ticked
)


# ── effects of a subtask ─────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True)
class ReportQuiet:
    """Tell ``Quiet`` that nothing comes here."""


@dataclass(frozen=True, slots=True)
class ReportStirred:
    """Tell ``Quiet`` that this may not be said any more."""


Effect = EmitWatermark | EmitIdle | EmitActive | ReportQuiet | ReportStirred


# ── phases of a subtask ──────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True)
class Active:
    """A split is not idle, or reading has not begun."""


@dataclass(frozen=True, slots=True)
class Idle:
    """Every split is idle, found at ``since_ms``; event time stands still."""

    since_ms: int


@dataclass(frozen=True, slots=True)
class Passing:
    """The whole source is quiet; event time has gone on until the subtask's own clock showed ``until_ms``."""

    since_ms: int
    until_ms: int


@dataclass(frozen=True, slots=True)
class SplitClock:
    """What the subtask's clock showed when the split last gave something, later by what it was held since.

    ``held_ms`` is what it showed when the split was held, ``None`` while it is not.
    """

    read_ms: int
    held_ms: int | None = None


# ── the machine of a subtask ─────────────────────────────────────────────────────────────────


class Idleness(Machine[Event, Effect]):
    """How far has event time come at one subtask of a source, and does anybody need to wait for it?

    | phase   | event                                      | effects → next phase                                |
    |---------|--------------------------------------------|-----------------------------------------------------|
    | Active  | SplitAdded, RecordsRead, WatermarkReached  | – → Active                                          |
    | Active  | SplitHeld, SplitReleased, Ready, NotReady  | – → Active                                          |
    | Active  | TimePasses, TimeHeld                       | – → Active                                          |
    | Active  | SplitEnded, Ticked                         | EmitWatermark? → Active                             |
    | Active  | SplitEnded, Ticked                         | EmitWatermark?, EmitIdle, ReportQuiet? → Idle       |
    | Active  | Ready                                      | EmitIdle, ReportQuiet? → Idle                       |
    | Idle    | SplitAdded, RecordsRead                    | EmitActive, ReportStirred? → Active                 |
    | Idle    | NotReady, SplitHeld                        | ReportStirred? → Idle                               |
    | Idle    | Ready, SplitReleased                       | ReportQuiet? → Idle                                 |
    | Idle    | SplitEnded                                 | EmitWatermark?, ReportQuiet? → Idle                 |
    | Idle    | Ticked                                     | EmitWatermark? → Idle                               |
    | Idle    | WatermarkReached, TimePasses, TimeHeld     | – → Idle                                            |
    | Idle    | TimePasses                                 | – → Passing                                         |
    | Passing | SplitAdded, RecordsRead                    | EmitActive, ReportStirred → Active                  |
    | Passing | NotReady, SplitHeld                        | EmitWatermark?, ReportStirred → Idle                |
    | Passing | TimeHeld                                   | EmitWatermark? → Idle                               |
    | Passing | SplitEnded, Ticked                         | EmitWatermark? → Passing                            |
    | Passing | Ready, SplitReleased, TimePasses, WatermarkReached | – → Passing                                 |
    """

    __slots__ = ("clock_ms", "idle_after_ms", "is_opened", "merge", "now_ms", "ready_ms", "reported", "splits", "when")

    phase: Active | Idle | Passing

    def __init__(self, *, idle_after_ms: int | None = None, when_idle: WhenIdle = WhenIdle.ADVANCE) -> None:
        assert idle_after_ms is None or idle_after_ms > 0, "idle after no time at all"
        super().__init__(Active())
        self.idle_after_ms, self.when = idle_after_ms, when_idle
        self.merge: Merge[str] = Merge(catches_up=False)
        self.splits: dict[str, SplitClock] = {}
        self.is_opened = False  # before the first ``Ready`` no split means that none was given out yet
        self.now_ms = 0
        self.clock_ms = 0  # how long it was ready, until it was last not
        self.ready_ms: int | None = None  # since when it is ready
        self.reported = False

    # ── what others may ask ──────────────────────────────────────────────────────────────────

    @property
    def output_ms(self) -> int:
        """The last watermark that was emitted."""
        return self.merge.output_ms

    @property
    def idle_since_ms(self) -> int | None:
        """Since when every split is idle; ``None`` while one is not."""
        return None if isinstance(self.phase, Active) else self.phase.since_ms

    @property
    def idle_due_ms(self) -> int | None:
        """When a tick will next find a split idle if nothing happens until then; ``None`` if none will."""
        if self.ready_ms is None or self.idle_after_ms is None:
            return None
        read = [clock.read_ms for split, clock in self.splits.items() if self._may_become_idle(split, clock)]
        return self.ready_ms + min(read) + self.idle_after_ms - self.clock_ms if read else None

    def is_idle(self, split: str) -> bool:
        """Whether a split is idle: then its next records have to be announced before they are emitted."""
        return self.merge.members[split].idle

    # ── what happens ─────────────────────────────────────────────────────────────────────────

    def decide(self, event: Event) -> list[Effect]:
        if isinstance(event, WatermarkReached):
            assert event.split in self.splits, f"{event} of a split that is not read"
            assert event.time_ms < MAX_WATERMARK, "the end of a split is an event of its own"
            self.merge.reach(event.split, event.time_ms)
            return []
        self.now_ms = max(self.now_ms, event.at_ms)
        match event:
            case SplitAdded(split):
                assert split not in self.splits, f"{split!r} is read twice"
                self.splits[split] = SplitClock(self._clock())
                self.merge.add(split)
            case SplitEnded(split):
                del self.splits[split]
                self.merge.end(split)
                return self._settle(self._advance())
            case RecordsRead(split):
                clock = self._clock()
                held_ms = None if self.splits[split].held_ms is None else clock
                self.splits[split] = SplitClock(clock, held_ms)
                if not self.merge.members[split].idle:
                    return []
                self.merge.mark(split, idle=False)
            case SplitHeld(split):
                passed = self._pass_time()
                if self.splits[split].held_ms is None:
                    self.splits[split] = replace(self.splits[split], held_ms=self._clock())
                return self._settle(passed)
            case SplitReleased(split):
                held = self.splits[split]
                if held.held_ms is not None:
                    self.splits[split] = SplitClock(held.read_ms + self._clock() - held.held_ms)
            case Ready():
                self.is_opened = True
                if self.ready_ms is None:
                    self.ready_ms = self.now_ms
            case NotReady():
                passed = self._pass_time()
                self.clock_ms, self.ready_ms = self._clock(), None
                return self._settle(passed)
            case TimePasses():
                if self.reported and isinstance(self.phase, Idle):
                    self.phase = Passing(self.phase.since_ms, self._clock())
            case TimeHeld():
                passed = self._pass_time()
                if isinstance(self.phase, Passing):
                    self.phase = Idle(self.phase.since_ms)
                return passed
            case Ticked():
                passed = self._pass_time()
                self._look_who_is_idle()
                return self._settle(self._advance() or passed)
        return self._settle()

    def _clock(self) -> int:
        """For how long the subtask was ready, in all."""
        return self.clock_ms if self.ready_ms is None else self.clock_ms + self.now_ms - self.ready_ms

    def _may_become_idle(self, split: str, clock: SplitClock) -> bool:
        return clock.held_ms is None and not self.merge.members[split].idle

    def _look_who_is_idle(self) -> None:
        if self.idle_after_ms is None:
            return
        latest = self._clock() - self.idle_after_ms
        for split, clock in self.splits.items():
            if clock.read_ms <= latest and self._may_become_idle(split, clock):
                self.merge.mark(split, idle=True)

    def _pass_time(self) -> list[Effect]:
        """Let event time go on by what the clock ran since it last did; never to the end of time."""
        if not isinstance(self.phase, Passing):
            return []
        clock, output = self._clock(), self.merge.output_ms
        passed = clock - self.phase.until_ms
        self.phase = replace(self.phase, until_ms=clock)
        if output == MIN_WATERMARK or not self.merge.raise_to(min(output + passed, MAX_WATERMARK - 1)):
            return []
        return [EmitWatermark(self.merge.output_ms)]

    def _advance(self) -> list[Effect]:
        """Let the output follow the splits."""
        return [EmitWatermark(self.merge.output_ms)] if self.merge.advance() else []

    def _settle(self, advanced: Sequence[Effect] = ()) -> list[Effect]:
        """Say what has changed: that it counts again, how far it has come, that it is idle, and what to report."""
        effects: list[Effect] = []
        is_idle = self.is_opened and self.merge.is_idle
        if not isinstance(self.phase, Active) and not is_idle:
            self.phase = Active()
            effects.append(EmitActive())
        effects += advanced
        if isinstance(self.phase, Active) and is_idle:
            self.phase = Idle(self.now_ms)
            effects.append(EmitIdle())
        is_quiet = self._is_quiet()
        if is_quiet != self.reported:
            self.reported = is_quiet
            effects.append(ReportQuiet() if is_quiet else ReportStirred())
        if isinstance(self.phase, Passing) and not is_quiet:
            self.phase = Idle(self.phase.since_ms)
        return effects

    def _is_quiet(self) -> bool:
        """Whether event time may go on by itself, as far as this subtask knows."""
        if self.idle_after_ms is None or self.when is WhenIdle.HOLD:
            return False  # nobody has said how long a silence means that there is nothing
        return (
            not isinstance(self.phase, Active)
            and self.ready_ms is not None
            and all(clock.held_ms is None for clock in self.splits.values())
        )

    # ── what must always hold ────────────────────────────────────────────────────────────────

    def check(self) -> None:
        assert list(self.splits) == list(self.merge.members), "a split without a clock, or without a watermark"
        clock = self._clock()
        assert all(one.read_ms <= clock for one in self.splits.values()), "a split gave something in the future"
        assert isinstance(self.phase, Active) == (not self.merge.is_idle or not self.is_opened)
        assert self.reported == self._is_quiet(), "what was reported is not so"
        if isinstance(self.phase, Passing):
            assert self.reported, "time passes although this subtask is not quiet"
            assert self.phase.until_ms <= clock, "time passed that has not passed"
