"""To which windows does a record belong?

An *assigner* is a frozen value that answers for one timestamp, and for a whole column of them at once:

* ``tumbling(size)``: one window, ``[n * size, (n + 1) * size)``, moved by an offset;
* ``sliding(size, slide)``: every window of that size that begins at a multiple of ``slide`` and holds the timestamp;
* ``session(gap)``: ``[timestamp, timestamp + gap)``, which grows together with what it overlaps or touches
  (``sessions.py``); the gap may be a function of the record;
* ``global_window()``: one window for everything.

Days, weeks, months and years of a time zone are in ``calendar.py``.  All arithmetic is on whole milliseconds since 1970
with a modulo that is never negative, so the time before 1970 is time like any other (R077).

Refuses to know anything of watermarks, triggers and state: that is in ``lateness.py``, ``triggers.py``, ``slices.py``.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from typing import Any, ClassVar, Final, NamedTuple

from actorflow.dataflow.functions import Colour, check_function, colour_of
from actorflow.dataflow.lateness import MAX_TIME, MIN_TIME
from actorflow.errors import InvalidJob, InvalidValue

__all__ = (
    "GlobalWindow",
    "Session",
    "Sliding",
    "TimeDomain",
    "Tumbling",
    "Window",
    "WindowAssigner",
    "global_window",
    "session",
    "sliding",
    "time_domain",
    "tumbling",
    "whole_milliseconds",
)

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MILLISECOND: Final = timedelta(milliseconds=1)


class Window(NamedTuple):
    """The instants from ``start`` up to, but without, ``end``, in milliseconds since 1970.

    It equals the tuple ``(start, end)``, and that is what state keeps of it.
    """

    start: int
    end: int

    @property
    def last(self) -> int:
        """The last millisecond inside; the window is complete once the watermark has reached it."""
        return self.end - 1

    @property
    def starts_at(self) -> datetime:
        """``start`` as a time in UTC; ``OverflowError`` outside of the years 1 to 9999."""
        return _EPOCH + timedelta(milliseconds=self.start)

    @property
    def ends_at(self) -> datetime:
        """``end`` as a time in UTC; ``OverflowError`` outside of the years 1 to 9999."""
        return _EPOCH + timedelta(milliseconds=self.end)


class TimeDomain(StrEnum):
    """Whose time a window tells."""

    EVENT = "event"  # that of the records; the watermark says how far it has come
    PROCESSING = "processing"  # that of the clock at the moment when a record is taken up


class WindowAssigner(ABC):
    """What all assigners have in common.  Own ones are welcome: frozen, and never a look at a clock."""

    merges: ClassVar[bool] = False
    """Whether windows of a key that overlap or touch become one."""

    by: TimeDomain = TimeDomain.EVENT

    @abstractmethod
    def windows(self, timestamp: int, value: Any = None) -> list[Window]:
        """Return the windows of one record, the earliest first; none where it falls between windows."""

    def windows_of(self, timestamps: Sequence[int], values: Sequence[Any]) -> list[list[Window]]:
        """Return the windows of each record of a batch; records of one window may share a list, so don't change it."""
        windows = self.windows
        return [windows(timestamp, value) for timestamp, value in zip(timestamps, values, strict=True)]


class OneWindow(WindowAssigner):
    """An assigner that gives each record exactly one window, wherever its neighbours are."""

    @abstractmethod
    def window(self, timestamp: int) -> Window:
        """Return the window that holds a timestamp."""

    def windows(self, timestamp: int, value: Any = None) -> list[Window]:
        return [self.window(timestamp)]

    def windows_of(self, timestamps: Sequence[int], values: Sequence[Any]) -> list[list[Window]]:
        """Look at the clock face once where a batch stays in one window, which most do."""
        if not timestamps:
            return []
        here = self.window(min(timestamps))
        if max(timestamps) < here.end:
            return [[here]] * len(timestamps)
        (start, end), shared = here, [here]
        found = []
        for timestamp in timestamps:
            if not start <= timestamp < end:
                here = self.window(timestamp)
                (start, end), shared = here, [here]
            found.append(shared)
        return found


@dataclass(frozen=True, slots=True)
class Tumbling(OneWindow):
    """Windows of one size, end to end; see :func:`tumbling`."""

    size_ms: int
    offset_ms: int = 0
    by: TimeDomain = TimeDomain.EVENT

    def window(self, timestamp: int) -> Window:
        start = timestamp - (timestamp - self.offset_ms) % self.size_ms
        return Window(start, start + self.size_ms)

    def starts(self, timestamps: Sequence[int]) -> list[int]:
        """Return the start of each timestamp's window."""
        size, offset = self.size_ms, self.offset_ms
        if not timestamps:
            return []
        least = min(timestamps)
        start = least - (least - offset) % size
        if max(timestamps) < start + size:
            return [start] * len(timestamps)
        return [timestamp - (timestamp - offset) % size for timestamp in timestamps]


@dataclass(frozen=True, slots=True)
class Sliding(WindowAssigner):
    """Windows of one size, one beginning at every multiple of the slide; see :func:`sliding`.

    What windows share is counted once, in *slices*: the pieces between two neighbouring edges of windows.  In every
    slide there is one edge where windows begin and, unless the size is a multiple of the slide, one more where they
    end, so a slide has at most two slices however large the window is.
    """

    size_ms: int
    slide_ms: int
    offset_ms: int = 0
    by: TimeDomain = TimeDomain.EVENT

    def windows(self, timestamp: int, value: Any = None) -> list[Window]:
        size, slide = self.size_ms, self.slide_ms
        last = timestamp - (timestamp - self.offset_ms) % slide
        # The first start above timestamp - size: windows that do not hold the record are not among them (R080).
        first = last - (last - timestamp + size - 1) // slide * slide
        return [Window(start, start + size) for start in range(first, last + 1, slide)]

    @property
    def edge_ms(self) -> int:
        """How long after a window's start another one ends: the length of a slide's first slice; 0 for only one."""
        return self.size_ms % self.slide_ms

    def slice_of(self, timestamp: int) -> int:
        """Return the start of the slice that holds a timestamp."""
        past = (timestamp - self.offset_ms) % self.slide_ms
        edge = self.size_ms % self.slide_ms
        return timestamp - past if past < edge or not edge else timestamp - past + edge

    def slice_end(self, start: int) -> int:
        """Return where the slice ends that begins at ``start``."""
        edge = self.size_ms % self.slide_ms
        if edge and (start - self.offset_ms) % self.slide_ms == 0:
            return start + edge
        return start + self.slide_ms - edge

    def slices_of(self, timestamps: Sequence[int]) -> list[int]:
        """Return the start of each timestamp's slice."""
        if not timestamps:
            return []
        start = self.slice_of(min(timestamps))
        if max(timestamps) < self.slice_end(start):
            return [start] * len(timestamps)
        slide, offset, edge = self.slide_ms, self.offset_ms, self.size_ms % self.slide_ms
        if not edge:
            return [timestamp - (timestamp - offset) % slide for timestamp in timestamps]
        slice_of = self.slice_of
        return [slice_of(timestamp) for timestamp in timestamps]

    def first_end(self, start: int) -> int:
        """Return the end of the earliest window that holds the slice at ``start``, if any holds it."""
        return start + self.slide_ms - (start - self.offset_ms - self.size_ms) % self.slide_ms

    def last_end(self, start: int) -> int:
        """Return the end of the latest window that holds the slice at ``start``, if any holds it."""
        return start - (start - self.offset_ms) % self.slide_ms + self.size_ms

    def end_up_to(self, time: int) -> int:
        """Return the latest end of a window that is not after ``time``."""
        return time - (time - self.offset_ms - self.size_ms) % self.slide_ms


@dataclass(frozen=True, slots=True)
class Session(WindowAssigner):
    """Windows that a silence of ``gap`` ends; see :func:`session`."""

    gap: int | Callable[[Any], timedelta]
    """In milliseconds where it is the same for all."""
    by: TimeDomain = TimeDomain.EVENT
    merges: ClassVar[bool] = True

    def windows(self, timestamp: int, value: Any = None) -> list[Window]:
        gap = self.gap
        if callable(gap):
            gap = _gap_of_record(gap(value))
        return [Window(timestamp, timestamp + gap)]


@dataclass(frozen=True, slots=True)
class GlobalWindow(OneWindow):
    """One window that holds everything and ends with the end of time; see :func:`global_window`."""

    by: TimeDomain = TimeDomain.EVENT

    def window(self, timestamp: int) -> Window:
        return _EVERYTHING


_EVERYTHING: Final = Window(MIN_TIME, MAX_TIME + 1)


def tumbling(size: timedelta, *, offset: timedelta = timedelta(0), by: TimeDomain | str = "event") -> Tumbling:
    """Windows of ``size``, end to end, the first of them beginning ``offset`` after 1970-01-01 00:00 UTC.

    ``by="processing"`` tells time by the clock of the machine.  Days of a time zone are ``calendar("day", zone=…)``:
    those of 24 hours and an offset slide off local midnight.  Raises ``InvalidJob`` for a size that is not a positive
    number of whole milliseconds.
    """
    size_ms = whole_milliseconds("tumbling: size", size, least=1)
    return Tumbling(size_ms, whole_milliseconds("tumbling: offset", offset) % size_ms, time_domain("tumbling", by))


def sliding(
    size: timedelta, slide: timedelta, *, offset: timedelta = timedelta(0), by: TimeDomain | str = "event"
) -> Sliding:
    """Windows of ``size``, one beginning every ``slide``, so that a record is in about ``size / slide`` of them.

    With a slide longer than the size there are gaps, whose records are in no window.  What a record costs does not
    depend on how many windows hold it.  Raises ``InvalidJob`` for a duration that is not a positive number of whole
    milliseconds.
    """
    size_ms = whole_milliseconds("sliding: size", size, least=1)
    slide_ms = whole_milliseconds("sliding: slide", slide, least=1)
    offset_ms = whole_milliseconds("sliding: offset", offset) % slide_ms
    return Sliding(size_ms, slide_ms, offset_ms, time_domain("sliding", by))


def session(gap: timedelta | Callable[[Any], timedelta], *, by: TimeDomain | str = "event") -> Session:
    """Windows of records that follow one another within ``gap``, key by key.

    A function gives each record a gap of its own; it must be plain, and depend on nothing but the record.  Raises
    ``InvalidJob`` for a gap that is not a positive number of whole milliseconds, ``InvalidValue`` where a function
    gives such a one.
    """
    domain = time_domain("session", by)
    if isinstance(gap, timedelta):
        return Session(whole_milliseconds("session: gap", gap, least=1), domain)
    if not callable(gap):
        raise InvalidJob(f"session: gap must be a timedelta, or a function from a record to one, not {gap!r:.80}")
    check_function("session", gap, 1, what="gap")
    if colour_of(gap) is not Colour.PLAIN:
        raise InvalidJob(f"session: its gap is {colour_of(gap)}; a gap is found on the spot, by a plain function")
    return Session(gap, domain)


def global_window(*, by: TimeDomain | str = "event") -> GlobalWindow:
    """One window for all records of a key; say with a trigger when it gives results, for by itself it never does."""
    return GlobalWindow(time_domain("global_window", by))


def time_domain(where: str, by: object) -> TimeDomain:
    """Return the time that ``by`` names, or raise ``InvalidJob``."""
    try:
        return TimeDomain(by)  # type: ignore[arg-type]  # what it is, is what is asked
    except ValueError:
        raise InvalidJob(f"{where}: by= is 'event' or 'processing', not {by!r:.80}") from None


def whole_milliseconds(what: str, duration: object, *, least: int | None = None) -> int:
    """Return a duration in milliseconds, or raise ``InvalidJob`` where it has a fraction or is too short."""
    if not isinstance(duration, timedelta):
        raise InvalidJob(f"{what} must be a timedelta, not {duration!r:.80}")
    whole, rest = divmod(duration, _MILLISECOND)
    if rest:
        raise InvalidJob(f"{what} must be whole milliseconds, not {duration!r}")
    if least is not None and whole < least:
        raise InvalidJob(f"{what} must be at least {least} ms, not {duration!r}")
    return whole


def _gap_of_record(gap: object) -> int:
    if not isinstance(gap, timedelta) or gap < _MILLISECOND or gap % _MILLISECOND:
        raise InvalidValue(f"the gap of a record must be a timedelta of whole milliseconds, 1 or more, not {gap!r:.80}")
    return gap // _MILLISECOND
