"""When did a record happen, and how far has event time come?

A *strategy* is a value that says both: a function that reads a record's timestamp, and what is known about disorder.
``monotonous_timestamps`` expects none, ``bounded_out_of_orderness`` at most so much, ``punctuated`` reads watermarks
from marks in the stream itself, and ``watermarks_by`` takes a generator of your own.  A watermark says that nothing
with its time or an earlier one is expected any more, so it is one millisecond below the earliest still possible.

Each split of a source has a generator of its own, which is told of whole batches: no call per record, but where the
user asks for one.  ``timestamps.py`` puts a strategy to work; merging splits, subtasks and channels is for the machines
in ``protocol``.  Refuses to read a clock: what has no timestamp gets none from us.
"""

from __future__ import annotations

import inspect
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, ClassVar, Generic, TypeVar

from actorflow.errors import InvalidJob
from actorflow.model.event_time import MAX_TIMESTAMP, MIN_TIMESTAMP, WhenIdle, milliseconds

__all__ = (
    "BoundedDisorder",
    "MaximumDrift",
    "Punctuated",
    "Time",
    "WatermarkGenerator",
    "WatermarkStrategy",
    "bounded_out_of_orderness",
    "monotonous_timestamps",
    "punctuated",
    "watermarks_by",
)

T = TypeVar("T")
T_contra = TypeVar("T_contra", contravariant=True)

Time = int | datetime
"""Milliseconds since 1970, or an aware datetime."""

INTERVAL = timedelta(milliseconds=200)
"""How often a watermark is emitted where nobody says otherwise."""


# ── generators ───────────────────────────────────────────────────────────────────────────────


class WatermarkGenerator(ABC, Generic[T_contra]):
    """What one split of a source knows about its event time.

    Nothing of it is stored: after a restore a new one begins, and the watermark with it.
    """

    at_once: ClassVar[bool] = False
    """Whether a watermark is emitted right behind the batch that raised it, and not only every ``interval``."""

    @abstractmethod
    def on_batch(self, records: list[T_contra], times: list[int], largest_ms: int) -> None:
        """Take note of some records, in the order in which they will be emitted; ``largest_ms`` is ``max(times)``.

        Neither list is empty, and neither may be kept or changed.
        """

    @abstractmethod
    def current(self) -> Time | None:
        """Return the watermark as of now, or ``None`` before there is one; one that is not larger changes nothing."""


class BoundedDisorder(WatermarkGenerator[Any]):
    """Nothing comes later than ``delay_ms`` behind the latest."""

    __slots__ = ("delay_ms", "largest_ms")

    def __init__(self, delay_ms: int) -> None:
        self.delay_ms = delay_ms
        self.largest_ms: int | None = None

    def on_batch(self, records: list[Any], times: list[int], largest_ms: int) -> None:
        if self.largest_ms is None or largest_ms > self.largest_ms:
            self.largest_ms = largest_ms

    def current(self) -> int | None:
        if self.largest_ms is None or self.largest_ms - self.delay_ms <= MIN_TIMESTAMP:
            return None
        return self.largest_ms - self.delay_ms - 1


class Punctuated(WatermarkGenerator[T]):
    """Asks the user's function about each record; ``in_hand`` shows how far it has come."""

    __slots__ = ("_function", "_newest_ms", "in_hand")

    at_once = True

    def __init__(self, function: Callable[[T, int], Time | None]) -> None:
        self._function = function
        self._newest_ms: int | None = None
        self.in_hand: Iterator[T] = iter(())

    def on_batch(self, records: list[T], times: list[int], largest_ms: int) -> None:
        self.in_hand = iter(records)
        function, newest = self._function, self._newest_ms
        for record, time_ms in zip(self.in_hand, times, strict=True):
            mark = function(record, time_ms)
            if mark is not None:
                mark = milliseconds(mark)
                if newest is None or mark > newest:
                    newest = mark
        self._newest_ms = newest

    def current(self) -> int | None:
        return self._newest_ms


# ── strategies ───────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True)
class MaximumDrift:
    """Keep the sources of a ``group`` together: none reads on while its watermark is ``at_most`` ahead of the slowest.

    Readers report and are told ``every`` so often.  A pause begins up to ``intervals`` of these later, because what is
    known of the others is as old; 0 pauses at once.
    """

    group: str
    at_most: timedelta
    every: timedelta = timedelta(seconds=1)
    intervals: int = 3

    def __post_init__(self) -> None:
        if not isinstance(self.group, str) or not self.group:
            raise InvalidJob(f"the group of a maximum drift has a name, not {self.group!r}")
        _whole_ms("the maximum drift", self.at_most, least=0)
        _whole_ms("the update interval of a maximum drift", self.every, least=1)
        if type(self.intervals) is not int or self.intervals < 0:
            raise InvalidJob(f"the intervals of a maximum drift are a whole number, 0 or more, not {self.intervals!r}")

    @property
    def at_most_ms(self) -> int:
        """The drift in milliseconds."""
        return _ms(self.at_most)


@dataclass(frozen=True, slots=True, kw_only=True)
class WatermarkStrategy(Generic[T]):
    """What a stream says about its event time; made by the functions of this module.

    ``timestamp`` gives a record's time.  ``generator`` makes what knows about one split.  A split from which nothing
    came for ``idle_after`` while it could have (``None``: never) holds nobody back; when all splits of the source are
    idle, event time goes on with the clock, or stands still (``when_idle="hold"``).  ``alignment`` keeps a group of
    sources together.  A watermark is emitted every ``interval``.

    Raises ``InvalidJob`` for what can't be meant.
    """

    timestamp: Callable[[T], Time]
    generator: Callable[[], WatermarkGenerator[T]]
    idle_after: timedelta | None = None
    when_idle: WhenIdle | str = WhenIdle.ADVANCE
    alignment: MaximumDrift | None = None
    interval: timedelta = INTERVAL

    def __post_init__(self) -> None:
        _check_function("the function that gives a record's timestamp", self.timestamp)
        if not callable(self.generator):
            raise InvalidJob("a watermark generator is made by a function or class without arguments, one per split")
        if self.idle_after is not None:
            _whole_ms("idle_after", self.idle_after, least=1)
        _whole_ms("the interval of watermarks", self.interval, least=1)
        try:
            object.__setattr__(self, "when_idle", WhenIdle(self.when_idle))
        except ValueError:
            choices = " or ".join(f"{choice.value!r}" for choice in WhenIdle)
            raise InvalidJob(f"when_idle is {choices}, not {self.when_idle!r}") from None
        if self.alignment is not None and not isinstance(self.alignment, MaximumDrift):
            raise InvalidJob(f"alignment is a MaximumDrift, not {type(self.alignment).__name__}")

    @property
    def idle_after_ms(self) -> int | None:
        """``idle_after`` in milliseconds, rounded up."""
        return None if self.idle_after is None else _ms(self.idle_after)

    @property
    def interval_ms(self) -> int:
        """``interval`` in milliseconds, rounded up."""
        return _ms(self.interval)


def monotonous_timestamps(
    timestamp: Callable[[T], Time],
    *,
    idle_after: timedelta | None = None,
    when_idle: WhenIdle | str = WhenIdle.ADVANCE,
    alignment: MaximumDrift | None = None,
    interval: timedelta = INTERVAL,
) -> WatermarkStrategy[T]:
    """Expect no disorder within a split: the watermark is one millisecond behind the latest record."""
    return bounded_out_of_orderness(
        timestamp,
        at_most=timedelta(0),
        idle_after=idle_after,
        when_idle=when_idle,
        alignment=alignment,
        interval=interval,
    )


def bounded_out_of_orderness(
    timestamp: Callable[[T], Time],
    *,
    at_most: timedelta,
    idle_after: timedelta | None = None,
    when_idle: WhenIdle | str = WhenIdle.ADVANCE,
    alignment: MaximumDrift | None = None,
    interval: timedelta = INTERVAL,
) -> WatermarkStrategy[T]:
    """Expect that a record comes ``at_most`` behind the latest one of its split; what comes later is late."""
    _whole_ms("at_most", at_most, least=0)
    delay_ms = _ms(at_most)
    return WatermarkStrategy(
        timestamp=timestamp,
        generator=lambda: BoundedDisorder(delay_ms),
        idle_after=idle_after,
        when_idle=when_idle,
        alignment=alignment,
        interval=interval,
    )


def punctuated(
    timestamp: Callable[[T], Time],
    watermark: Callable[[T, int], Time | None],
    *,
    idle_after: timedelta | None = None,
    when_idle: WhenIdle | str = WhenIdle.ADVANCE,
    alignment: MaximumDrift | None = None,
    interval: timedelta = INTERVAL,
) -> WatermarkStrategy[T]:
    """Read watermarks from the stream: ``watermark(record, timestamp)`` gives one, or ``None`` for most records.

    It is emitted behind the batch that holds the record, and without waiting for the interval.
    """
    _check_function("the function that gives a watermark", watermark)
    return WatermarkStrategy(
        timestamp=timestamp,
        generator=lambda: Punctuated(watermark),
        idle_after=idle_after,
        when_idle=when_idle,
        alignment=alignment,
        interval=interval,
    )


def watermarks_by(
    generator: Callable[[], WatermarkGenerator[T]],
    timestamp: Callable[[T], Time],
    *,
    idle_after: timedelta | None = None,
    when_idle: WhenIdle | str = WhenIdle.ADVANCE,
    alignment: MaximumDrift | None = None,
    interval: timedelta = INTERVAL,
) -> WatermarkStrategy[T]:
    """Use a ``WatermarkGenerator`` of your own: ``generator()`` makes one for each split."""
    return WatermarkStrategy(
        timestamp=timestamp,
        generator=generator,
        idle_after=idle_after,
        when_idle=when_idle,
        alignment=alignment,
        interval=interval,
    )


# ── checks ───────────────────────────────────────────────────────────────────────────────────


def _ms(duration: timedelta) -> int:
    """Milliseconds, rounded up: a bound that is a little too wide drops nothing."""
    whole, rest = divmod(duration, timedelta(milliseconds=1))
    return whole + bool(rest)


def _whole_ms(what: str, duration: object, *, least: int) -> None:
    if not isinstance(duration, timedelta):
        raise InvalidJob(f"{what} is a timedelta, not {type(duration).__name__}: timedelta(seconds=…)")
    if not least <= _ms(duration) <= MAX_TIMESTAMP:
        raise InvalidJob(f"{what} is {'positive' if least else 'not negative'} and not beyond all time: {duration}")


def _check_function(what: str, function: object) -> None:
    if not callable(function):
        raise InvalidJob(f"{what} is callable, not a {type(function).__name__}")
    if inspect.iscoroutinefunction(function):
        raise InvalidJob(f"{what} is called once per record and can't be async")
