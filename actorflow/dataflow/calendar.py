"""Where do the days, weeks, months and years of a time zone begin and end?

A boundary is the local midnight that begins a unit, as an instant: *the first instant at which local clocks have shown
that midnight or more*.  So where clocks skip it, it is the instant at which they do, and where they show it twice, the
earlier one.  Windows are ``[boundary, next boundary)``: days of 23, 24 or 25 hours (R097); what local clocks show a
second time belongs to the window that had begun; a day that never was, as on Samoa at the end of 2011, has none.
They partition time in every zone (INV-5.8).

Weeks begin on Monday.  With a count above 1, units are counted from the one that holds 1970-01-01.

A window that is stored keeps its two instants, so a new edition of the time-zone database moves no window that is open.
Shorter windows than days are ``tumbling`` ones with an offset: an hour is an hour everywhere.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from functools import lru_cache
from typing import TYPE_CHECKING, Final

from actorflow.dataflow.windows import OneWindow, TimeDomain, Window, time_domain
from actorflow.errors import InvalidJob, InvalidValue

if TYPE_CHECKING:
    from zoneinfo import ZoneInfo

__all__ = ("Calendar", "calendar")

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_LOCAL_EPOCH: Final = datetime(1970, 1, 1)  # noqa: DTZ001 - what a local clock shows has no zone
_MILLISECOND: Final = timedelta(milliseconds=1)
_MONDAY: Final = date(1969, 12, 29).toordinal()  # of the week that holds 1970-01-01
_FIRST_DAY: Final = date(1970, 1, 1).toordinal()
_REMEMBERED: Final = 4_096  # boundaries, of all calendars of the process


# Which unit holds a date, counted from the one that holds 1970-01-01.
_UNIT_OF: Final[dict[str, Callable[[date], int]]] = {
    "day": lambda day: day.toordinal() - _FIRST_DAY,
    "week": lambda day: (day.toordinal() - _MONDAY) // 7,
    "month": lambda day: (day.year - 1970) * 12 + day.month - 1,
    "year": lambda day: day.year - 1970,
}

# With which date a unit begins.
_FIRST_OF: Final[dict[str, Callable[[int], date]]] = {
    "day": lambda unit: date.fromordinal(_FIRST_DAY + unit),
    "week": lambda unit: date.fromordinal(_MONDAY + 7 * unit),
    "month": lambda unit: date(1970 + unit // 12, unit % 12 + 1, 1),
    "year": lambda unit: date(1970 + unit, 1, 1),
}


@dataclass(frozen=True, slots=True)
class Calendar(OneWindow):
    """Windows from local midnight to local midnight; see :func:`calendar`."""

    unit: str
    count: int
    zone: str
    by: TimeDomain = TimeDomain.EVENT

    def window(self, timestamp: int) -> Window:
        try:
            local = (_EPOCH + timedelta(milliseconds=timestamp)).astimezone(_zone(self.zone))
            number = _UNIT_OF[self.unit](local) // self.count
            # Clocks that went back show a date again whose window is over; no other step is further than one.
            while (end := self._boundary(number + 1)) <= timestamp:
                number += 1
            while (start := self._boundary(number)) > timestamp:
                end, number = start, number - 1
        except (OverflowError, ValueError):
            raise InvalidValue(
                f"the timestamp {timestamp} is beyond the calendar, which has the years 1 to 9999"
            ) from None
        return Window(start, end)

    def _boundary(self, number: int) -> int:
        return _boundary(self.zone, self.unit, number * self.count)


def calendar(unit: str, *, count: int = 1, zone: str, by: TimeDomain | str = "event") -> Calendar:
    """Windows of ``count`` days, weeks, months or years of a time zone such as ``"Europe/Berlin"``.

    ``unit`` is ``"day"``, ``"week"``, ``"month"`` or ``"year"``; quarters are three months.  Raises ``InvalidJob`` for
    any other, for a count below 1 and for a zone that the time-zone database does not have.
    """
    if unit not in _UNIT_OF:
        raise InvalidJob(
            f"calendar: a unit is 'day', 'week', 'month' or 'year', not {unit!r:.80}; shorter windows are tumbling()"
        )
    if type(count) is not int or count < 1:
        raise InvalidJob(f"calendar: count= is how many {unit}s a window has, 1 or more, not {count!r:.80}")
    from zoneinfo import ZoneInfoNotFoundError

    try:
        _zone(zone)
    except (ZoneInfoNotFoundError, ValueError, TypeError, OSError):
        raise InvalidJob(
            f"calendar: the time-zone database has no zone {zone!r:.80}; a zone is called like 'Europe/Berlin' or 'UTC'"
        ) from None
    return Calendar(unit, count, zone, time_domain("calendar", by))


@lru_cache(maxsize=1_024)
def _zone(name: str) -> ZoneInfo:
    from zoneinfo import ZoneInfo  # slow to load, and most jobs never meet it

    return ZoneInfo(name)


@lru_cache(maxsize=_REMEMBERED)
def _boundary(zone: str, unit: str, number: int) -> int:
    """Return the first instant at which clocks of the zone have shown the midnight that begins a unit."""
    day = _FIRST_OF[unit](number)
    tz = _zone(zone)
    midnight = datetime(day.year, day.month, day.day, tzinfo=tz)
    shown = (midnight.replace(tzinfo=None) - _LOCAL_EPOCH) // _MILLISECOND
    before, after = _offset(midnight), _offset(midnight.replace(fold=1))
    if after <= before:
        return shown - before  # shown once, or twice: then this is the earlier one
    # Clocks skip it, somewhere between these two instants; the first that shows midnight or more is the end of the gap.
    low, high = shown - after, shown - before
    while high - low > 1:
        middle = (low + high) // 2
        local = (_EPOCH + timedelta(milliseconds=middle)).astimezone(tz)
        if middle + _offset(local) >= shown:
            high = middle
        else:
            low = middle
    return high


def _offset(local: datetime) -> int:
    offset = local.utcoffset()
    assert offset is not None, "a zone of the database always has an offset"
    return offset // _MILLISECOND
