"""Sources that must not run away from each other: how far may each go, and which split waits?

What a fast source reads ahead of a slow one has to be kept downstream until the slow one's watermark comes by.  So the
readers of a group report their watermarks each update interval, and each is told the lowest of all plus its own drift:
``DriftGroup``, once per group.  At each reader ``DriftHold`` holds the splits that are beyond that limit, and releases
them when the limit has come to them.

A reader that is idle reports the end of time and holds nobody back, and so does one without splits.  One that has no
watermark yet is not counted: there is nothing yet from which others could drift.  The slowest is never held by what is
true of now, for its own watermark is the lowest; it may be held by an old limit, until the next.

A limit is old when it comes: for one interval or two the slow source has gone on.  Were a split judged by where it
stands now, a group that catches up could not go faster than its drift per interval.  So it is judged by where it stood
``intervals`` updates ago, which delays a pause by up to as many; 0 judges the present.

Pure: an interval is an event, and watermarks come in events.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from typing import Generic, TypeVar

from actorflow.model.event_time import MAX_WATERMARK, MIN_WATERMARK
from actorflow.protocol.machine import Machine

__all__ = (
    "Announce",
    "Announced",
    "Bound",
    "DriftGroup",
    "DriftHold",
    "Free",
    "GroupEvent",
    "HoldEffect",
    "HoldEvent",
    "HoldSplit",
    "Holding",
    "Reader",
    "ReaderJoined",
    "ReaderLeft",
    "ReleaseSplit",
    "Reported",
    "SplitEnded",
    "SplitMoved",
    "Unbound",
    "UpdateDue",
)

Reader = TypeVar("Reader", bound=Hashable)


# ── a group ──────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True)
class ReaderJoined(Generic[Reader]):
    """A reader begins; it may be ahead of the slowest by ``drift_ms``."""

    reader: Reader
    drift_ms: int


@dataclass(frozen=True, slots=True)
class Reported(Generic[Reader]):
    """How far a reader has come: ``MAX_WATERMARK`` while it is idle, ``MIN_WATERMARK`` before its first watermark."""

    reader: Reader
    time_ms: int


@dataclass(frozen=True, slots=True)
class ReaderLeft(Generic[Reader]):
    """A reader has ended."""

    reader: Reader


@dataclass(frozen=True, slots=True)
class UpdateDue:
    """One update interval has passed."""


GroupEvent = ReaderJoined[Reader] | Reported[Reader] | ReaderLeft[Reader] | UpdateDue


@dataclass(frozen=True, slots=True)
class Announce(Generic[Reader]):
    """Tell a reader how far it may go; ``MAX_WATERMARK`` is as far as it likes."""

    reader: Reader
    limit_ms: int


@dataclass(frozen=True, slots=True)
class Unbound:
    """Nobody is known who could be left behind."""


@dataclass(frozen=True, slots=True)
class Bound:
    """The slowest has come this far."""

    lowest_ms: int


class DriftGroup(Machine[GroupEvent[Reader], Announce[Reader]], Generic[Reader]):
    """How far may each reader of a group go?  Every one is told at each update, in the order in which they joined.

    | phase   | event                              | effects → next phase   |
    |---------|------------------------------------|------------------------|
    | Unbound | ReaderJoined, Reported, ReaderLeft | – → Unbound            |
    | Unbound | Reported                           | – → Bound              |
    | Unbound | UpdateDue                          | Announce? → Unbound    |
    | Bound   | ReaderJoined, Reported, ReaderLeft | – → Bound              |
    | Bound   | Reported, ReaderLeft               | – → Unbound            |
    | Bound   | UpdateDue                          | Announce → Bound       |
    """

    __slots__ = ("drifts", "reports")

    phase: Unbound | Bound

    def __init__(self) -> None:
        super().__init__(Unbound())
        self.drifts: dict[Reader, int] = {}
        self.reports: dict[Reader, int] = {}

    def decide(self, event: GroupEvent[Reader]) -> list[Announce[Reader]]:
        match event:
            case ReaderJoined(reader, drift_ms):
                assert drift_ms >= 0, "nobody can be asked to stay behind the slowest"
                self.drifts[reader] = drift_ms
                self.reports[reader] = MIN_WATERMARK
            case Reported(reader, time_ms):
                if reader in self.reports:  # a report may still be under way when its reader has left
                    self.reports[reader] = time_ms
            case ReaderLeft(reader):
                self.drifts.pop(reader, None)
                self.reports.pop(reader, None)
            case UpdateDue():
                return [Announce(reader, self._limit(drift_ms)) for reader, drift_ms in self.drifts.items()]
        self.phase = self._lowest()
        return []

    def _lowest(self) -> Unbound | Bound:
        lowest = min((time_ms for time_ms in self.reports.values() if time_ms > MIN_WATERMARK), default=MAX_WATERMARK)
        return Unbound() if lowest == MAX_WATERMARK else Bound(lowest)

    def _limit(self, drift_ms: int) -> int:
        match self.phase:
            case Unbound():
                return MAX_WATERMARK
            case Bound(lowest_ms):
                return min(lowest_ms + drift_ms, MAX_WATERMARK)

    def check(self) -> None:
        assert list(self.drifts) == list(self.reports), "a reader without a drift"
        assert self.phase == self._lowest()


# ── a reader ─────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True)
class SplitMoved:
    """A split's watermark has come this far; the first time, the split is new."""

    split: str
    time_ms: int


@dataclass(frozen=True, slots=True)
class SplitEnded:
    """The split came to its end."""

    split: str


@dataclass(frozen=True, slots=True)
class Announced:
    """The group's limit for this reader came: another update interval is over."""

    limit_ms: int


HoldEvent = SplitMoved | SplitEnded | Announced


@dataclass(frozen=True, slots=True)
class HoldSplit:
    """Take no more records of this split."""

    split: str


@dataclass(frozen=True, slots=True)
class ReleaseSplit:
    """Take records of this split again."""

    split: str


HoldEffect = HoldSplit | ReleaseSplit


@dataclass(frozen=True, slots=True)
class Free:
    """Every split may be read."""


@dataclass(frozen=True, slots=True)
class Holding:
    """These splits are too far ahead, sorted."""

    splits: tuple[str, ...]


class DriftHold(Machine[HoldEvent, HoldEffect]):
    """Which splits of a reader wait?  Where a reader can't hold single splits, it is one split of its own.

    | phase   | event                             | effects → next phase                  |
    |---------|-----------------------------------|---------------------------------------|
    | Free    | SplitMoved, SplitEnded, Announced | – → Free                              |
    | Free    | SplitMoved, Announced             | HoldSplit → Holding                   |
    | Holding | SplitMoved, SplitEnded, Announced | – → Holding                           |
    | Holding | SplitMoved                        | HoldSplit → Holding                   |
    | Holding | SplitEnded                        | – → Free                              |
    | Holding | Announced                         | ReleaseSplit → Free                   |
    | Holding | Announced                         | ReleaseSplit?, HoldSplit? → Holding   |
    """

    __slots__ = ("intervals", "limit_ms", "samples")

    phase: Free | Holding

    def __init__(self, *, intervals: int = 3) -> None:
        assert intervals >= 0, "nobody is judged by the future"
        super().__init__(Free())
        self.intervals = intervals
        self.limit_ms = MAX_WATERMARK
        self.samples: dict[str, list[int]] = {}
        """Where each split stands now, last, and where it stood at the updates before."""

    def decide(self, event: HoldEvent) -> list[HoldEffect]:
        match event:
            case SplitMoved(split, time_ms):
                samples = self.samples.setdefault(split, [MIN_WATERMARK])
                samples[-1] = max(samples[-1], time_ms)
            case SplitEnded(split):
                self.samples.pop(split, None)
                if isinstance(self.phase, Holding) and split in self.phase.splits:  # there is nothing to release
                    left = tuple(one for one in self.phase.splits if one != split)
                    self.phase = Holding(left) if left else Free()
                return []
            case Announced(limit_ms):
                self.limit_ms = limit_ms
                for samples in self.samples.values():
                    samples.append(samples[-1])
                    del samples[: -self.intervals - 1]
        return self._judge()

    def _is_ahead(self, split: str) -> bool:
        samples = self.samples[split]
        return len(samples) > self.intervals and samples[0] > self.limit_ms

    def _judge(self) -> list[HoldEffect]:
        before = self.phase.splits if isinstance(self.phase, Holding) else ()
        ahead = tuple(split for split in sorted(self.samples) if self._is_ahead(split))
        if ahead == before:
            return []
        self.phase = Holding(ahead) if ahead else Free()
        released: list[HoldEffect] = [ReleaseSplit(split) for split in before if split not in ahead]
        return [*released, *(HoldSplit(split) for split in ahead if split not in before)]

    def check(self) -> None:
        held = self.phase.splits if isinstance(self.phase, Holding) else ()
        assert held == tuple(split for split in sorted(self.samples) if self._is_ahead(split)), (
            "held for nothing, or not"
        )
        assert all(len(samples) <= self.intervals + 1 for samples in self.samples.values())
