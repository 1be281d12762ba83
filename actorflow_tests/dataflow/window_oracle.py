"""What must windows give?  Plain Python over all records, written without a line of the operators.

The oracle is told what one operator saw, in order: records, and watermarks between them.  So it needs no excuse for
disorder beyond the bound: whether a record is late follows from the watermarks that were really there.  It holds every
window of every key with all its values, looks through all of them each time, and is as slow as it is simple.

Windows fire by event time (semantics 5.7): when a watermark completes them, and again for each record that still comes
within the allowed lateness.  A watermark that is not larger than the one before is no news.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from functools import cache
from typing import Any
from zoneinfo import ZoneInfo

FIRST_WATERMARK = -(2**63)
LAST_WATERMARK = 2**63 - 1
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

Span = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Came:
    """A record came."""

    key: Any
    timestamp: int
    value: Any = None


@dataclass(frozen=True, slots=True)
class Reached:
    """A watermark came."""

    time: int


@dataclass(frozen=True, slots=True)
class Kind:
    """Which windows there are: those of one timestamp and value, and whether they grow together."""

    spans: Callable[[int, Any], list[Span]]
    merges: bool = False


@dataclass(frozen=True, slots=True)
class Fired:
    """A window gave its result: everything in it, in the order in which it came."""

    key: Any
    start: int
    end: int
    values: tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class Late:
    """A record came too late, by so many milliseconds."""

    key: Any
    timestamp: int
    value: Any
    late_by: int


@dataclass(slots=True)
class Expected:
    fired: list[Fired] = field(default_factory=list)
    late: list[Late] = field(default_factory=list)

    def last_results(self) -> dict[tuple[Any, int, int], tuple[Any, ...]]:
        """What each window gave last."""
        return {(one.key, one.start, one.end): one.values for one in self.fired}


@dataclass(slots=True)
class _Open:
    start: int
    end: int
    values: list[Any]
    waits: bool = True


def expected(kind: Kind, seen: Iterable[Came | Reached], *, allowed: int = 0, order: Callable[[Any], Any]) -> Expected:
    """What windows of that kind give for what was seen.  ``order`` is what keys are sorted by within one instant."""
    result, watermark = Expected(), FIRST_WATERMARK
    windows: dict[Any, list[_Open]] = {}

    def is_late(end: int) -> bool:
        return min(end - 1 + allowed, LAST_WATERMARK) <= watermark

    def fire(key: Any, window: _Open) -> None:
        window.waits = False
        result.fired.append(Fired(key, window.start, window.end, tuple(window.values)))

    for event in seen:
        if isinstance(event, Reached):
            watermark = max(watermark, event.time)
            due = [
                (window.end, order(key), window.start, key, window)
                for key, of_key in windows.items()
                for window in of_key
                if window.waits and window.end - 1 <= watermark
            ]
            for *_, key, window in sorted(due, key=lambda one: one[:3]):
                fire(key, window)
            windows = {key: [window for window in of_key if not is_late(window.end)] for key, of_key in windows.items()}
            continue
        of_key = windows.setdefault(event.key, [])
        found_one = False
        for start, end in kind.spans(event.timestamp, event.value):
            if kind.merges:
                window = _merged(of_key, start, end, event.value)
            else:
                same = [window for window in of_key if (window.start, window.end) == (start, end)]
                window = same[0] if same else _Open(start, end, [])
                window.values.append(event.value)
                if not same:
                    of_key.append(window)
            if is_late(window.end):
                of_key.remove(window)
                continue
            found_one = True
            window.waits = True
            if window.end - 1 <= watermark:
                fire(event.key, window)
        if not found_one and min(event.timestamp + allowed, LAST_WATERMARK) <= watermark:
            result.late.append(Late(event.key, event.timestamp, event.value, watermark - event.timestamp + 1))
    return result


def _merged(of_key: list[_Open], start: int, end: int, value: Any) -> _Open:
    touching = sorted((one for one in of_key if one.start <= end and start <= one.end), key=lambda one: one.start)
    for one in touching:
        of_key.remove(one)
    window = _Open(
        min([start, *(one.start for one in touching)]),
        max([end, *(one.end for one in touching)]),
        [*(each for one in touching for each in one.values), value],
    )
    of_key.append(window)
    return window


# ── kinds ──


def tumbling(size: int, offset: int = 0) -> Kind:
    return sliding(size, size, offset)


def sliding(size: int, slide: int, offset: int = 0) -> Kind:
    def spans(time: int, _value: Any) -> list[Span]:
        # Every start near by is looked at; no formula.
        near = time // slide * slide + offset % slide
        around = range(near - (size // slide + 2) * slide, near + 2 * slide, slide)
        return [(start, start + size) for start in around if start <= time < start + size]

    return Kind(spans)


def session(gap: int | Callable[[Any], int]) -> Kind:
    return Kind(lambda time, value: [(time, time + (gap(value) if callable(gap) else gap))], merges=True)


def calendar(unit: str, zone: str, count: int = 1) -> Kind:
    """Clocks are read every quarter of an hour: right for zones and years whose clocks change on such instants."""
    tz = ZoneInfo(zone)

    def number(day: date) -> int:
        whole = {
            "day": (day - date(1970, 1, 1)).days,
            "week": (day - date(1969, 12, 29)).days // 7,
            "month": day.year * 12 + day.month - 1970 * 12 - 1,
            "year": day.year - 1970,
        }
        return whole[unit] // count

    @cache
    def first_instant(day: date) -> int:
        """When did clocks first show that date, or a later one?"""
        quarter = (int(datetime(day.year, day.month, day.day, tzinfo=UTC).timestamp()) - 27 * 3_600) // 900
        while datetime.fromtimestamp(quarter * 900, tz).date() < day:
            quarter += 1
        return quarter * 900_000

    def spans(time: int, _value: Any) -> list[Span]:
        day = datetime.fromtimestamp(time // 1_000, tz).date()
        while first_instant(day + timedelta(1)) <= time:
            day += timedelta(1)
        start, end = day, day + timedelta(1)
        while number(start - timedelta(1)) == number(day):
            start -= timedelta(1)
        while number(end) == number(day):
            end += timedelta(1)
        return [(first_instant(start), first_instant(end))]

    return Kind(spans)


def batch_sessions(times: Iterable[int], gap: int) -> list[Span]:
    """The sessions of timestamps, once all are known."""
    found: list[Span] = []
    for time in sorted(times):
        if found and time <= found[-1][1]:
            found[-1] = (found[-1][0], time + gap)
        else:
            found.append((time, time + gap))
    return found
