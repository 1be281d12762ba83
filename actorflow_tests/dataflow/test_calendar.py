"""Calendar windows: semantics 5.7 [D], INV-5.8, r097."""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from importlib import resources
from typing import Any
from zoneinfo import ZoneInfo, available_timezones

import pytest

from actorflow.dataflow.calendar import Calendar, calendar
from actorflow.dataflow.windows import Window
from actorflow.errors import InvalidJob, InvalidValue

HOUR = 3_600_000
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
FROM, UNTIL = (int(datetime(year, 1, 1, tzinfo=UTC).timestamp()) * 1_000 for year in (1900, 2101))


def at(zone: str, *local: int, fold: int = 0) -> int:
    return (datetime(*local, tzinfo=ZoneInfo(zone), fold=fold) - EPOCH) // timedelta(milliseconds=1)  # type: ignore[misc, arg-type]


def test_r097_days_begin_at_local_midnight_and_have_23_or_25_hours_where_clocks_change() -> None:
    days = calendar("day", zone="America/New_York")
    zone = ZoneInfo("America/New_York")
    lengths = {}
    for first, hours in ((at(zone.key, 2026, 3, 7), 4 * 24), (at(zone.key, 2026, 11, 1), 25)):
        for hour in range(hours - 1):
            window = days.window(first + hour * HOUR)
            start = datetime.fromtimestamp(window.start / 1000, zone)
            assert (0, 0) == (start.hour, start.minute)
            lengths[f"{start:%m-%d}"] = (window.end - window.start) // HOUR

    assert {"03-07": 24, "03-08": 23, "03-09": 24, "03-10": 24, "11-01": 25} == lengths


def test_r097_both_of_the_repeated_hours_are_in_the_day() -> None:
    days = calendar("day", zone="America/New_York")
    first, second = (at("America/New_York", 2026, 11, 1, 1, 30, fold=fold) for fold in (0, 1))

    assert HOUR == second - first
    assert days.window(first) == days.window(second)


def test_a_skipped_midnight_is_the_instant_at_which_clocks_skip_it() -> None:
    # Beirut, 2022-03-27: 00:00 became 01:00.
    window = calendar("day", zone="Asia/Beirut").window(at("Asia/Beirut", 2022, 3, 27, 12))

    assert at("Asia/Beirut", 2022, 3, 27, 1) == window.start
    assert 23 * HOUR == window.end - window.start


def test_a_gap_that_begins_before_midnight_ends_the_day_where_clocks_jump() -> None:
    # Toronto, 1919-03-30: 23:30 became 00:30 of the next day.
    window = calendar("day", zone="America/Toronto").window(at("America/Toronto", 1919, 3, 31, 12))

    assert at("America/Toronto", 1919, 3, 30, 23, 29, 59) + 1_000 == window.start
    assert at("America/Toronto", 1919, 3, 31, 0, 30) == window.start


def test_of_a_midnight_that_comes_twice_the_earlier_one_counts() -> None:
    # Havana, 2026-11-01: at 01:00 clocks go back to 00:00, so midnight comes twice.
    window = calendar("day", zone="America/Havana").window(at("America/Havana", 2026, 11, 1, 12))

    assert at("America/Havana", 2026, 11, 1, fold=0) == window.start
    assert 25 * HOUR == window.end - window.start


def test_what_clocks_show_again_of_yesterday_belongs_to_today() -> None:
    # St. John's, 2006-10-29: at 00:01 clocks went back to 23:01 of the day before.
    zone = "America/St_Johns"
    again = at(zone, 2006, 10, 28, 23, 30, fold=1)

    assert 29 == datetime.fromtimestamp(calendar("day", zone=zone).window(again).start / 1000, ZoneInfo(zone)).day


def test_a_day_that_never_was_has_no_window() -> None:
    # Samoa went from the end of 2011-12-29 to 2011-12-31.
    days = calendar("day", zone="Pacific/Apia")
    before = days.window(at("Pacific/Apia", 2011, 12, 29, 12))
    after = days.window(at("Pacific/Apia", 2011, 12, 31, 12))

    assert before.end == after.start
    assert [24 * HOUR, 24 * HOUR] == [window.end - window.start for window in (before, after)]


@pytest.mark.parametrize(
    ("unit", "count", "start", "end"),
    [
        ("week", 1, (2026, 6, 29), (2026, 7, 6)),
        ("month", 1, (2026, 7, 1), (2026, 8, 1)),
        ("month", 3, (2026, 7, 1), (2026, 10, 1)),
        ("year", 1, (2026, 1, 1), (2027, 1, 1)),
        ("year", 10, (2020, 1, 1), (2030, 1, 1)),
    ],
)
def test_weeks_begin_on_monday_and_units_are_counted_from_1970(
    unit: str, count: int, start: tuple[int, ...], end: tuple[int, ...]
) -> None:
    window = calendar(unit, count=count, zone="Europe/Berlin").window(at("Europe/Berlin", 2026, 7, 4, 3))

    assert Window(at("Europe/Berlin", *start), at("Europe/Berlin", *end)) == window


def test_the_unit_that_holds_1970_01_01_is_the_first_of_its_window() -> None:
    assert Window(0, 2 * 24 * HOUR) == calendar("day", count=2, zone="UTC").window(0)
    assert Window(-3 * 24 * HOUR, 11 * 24 * HOUR) == calendar("week", count=2, zone="UTC").window(0)
    assert Window(-2 * 24 * HOUR, 0) == calendar("day", count=2, zone="UTC").window(-1)


def test_a_batch_gets_the_windows_of_its_records() -> None:
    days = calendar("day", zone="Europe/Berlin")
    times = [at("Europe/Berlin", 2026, 3, day, hour) for day in (28, 30, 29, 28) for hour in (0, 23)]

    assert [[days.window(time)] for time in times] == days.windows_of(times, times)
    assert [[days.window(times[0])]] * 2 == days.windows_of([times[0], times[0] + 5], [None, None])


@pytest.mark.parametrize(
    "wrong", [{"unit": "hour"}, {"count": 0}, {"count": True}, {"zone": "Middle/Earth"}, {"zone": ""}]
)
def test_what_no_calendar_has_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(InvalidJob, match="calendar: "):
        calendar(**({"unit": "day", "zone": "UTC"} | wrong))


def test_a_time_after_the_year_9999_is_refused_at_the_record() -> None:
    with pytest.raises(InvalidValue, match="1 to 9999"):
        calendar("day", zone="Europe/Berlin").window(2**53 - 1)


# ── INV-5.8 ──


def zones() -> Iterator[tuple[str, bytes]]:
    """Every zone of the database that is not another one by a second name, with its data."""
    seen = set()
    for name in sorted(available_timezones()):
        data = resources.files("tzdata.zoneinfo").joinpath(*name.split("/"))
        if not data.is_file():
            continue
        content = data.read_bytes()
        if (digest := hashlib.sha256(content).digest()) not in seen:
            seen.add(digest)
            yield name, content


def changes(data: bytes) -> list[int]:
    """The instants at which a zone's clocks are changed, out of its file (RFC 8536), version 2 or later."""
    header = ">4s c 15x 6l"
    size = struct.calcsize(header)
    _, _, isut, isstd, leap, count, types, chars = struct.unpack_from(header, data)
    second = size + count * 5 + types * 6 + chars + leap * 8 + isstd + isut
    count = struct.unpack_from(header, data, second)[5]
    return [1_000 * change for change in struct.unpack_from(f">{count}q", data, second + size)]


def interesting(data: bytes) -> list[int]:
    """The changes between 1900 and 2101, and of the years that only a rule tells, the changes of three."""
    found = [change for change in changes(data) if FROM <= change < UNTIL]
    for year in (2038, 2072, 2100):
        found += [int(datetime(year, 3, day, 1, tzinfo=UTC).timestamp()) * 1_000 for day in (8, 14, 25, 31)]
        found += [int(datetime(year, month, 1, tzinfo=UTC).timestamp()) * 1_000 for month in (1, 4, 9, 10, 11)]
    return found


def first_instant(zone: ZoneInfo, midnight: datetime) -> int:
    """The definition once more: look for the first instant whose clock shows that midnight or later."""
    around = int(midnight.replace(tzinfo=UTC).timestamp()) * 1_000

    def shows(time: int) -> bool:
        return (EPOCH + timedelta(milliseconds=time)).astimezone(zone).replace(tzinfo=None) >= midnight

    high = next(time for time in range(around - 27 * HOUR, around + 27 * HOUR, HOUR // 4) if shows(time))
    low = high - HOUR // 4
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if shows(middle) else (middle, high)
    return high


def holds_together(windows: Calendar, time: int) -> None:
    window = windows.window(time)
    assert window.start <= time < window.end
    assert window == windows.window(window.start)
    assert window == windows.window(window.last)
    assert window.end == windows.window(window.end).start
    assert window.start == windows.window(window.start - 1).end


def test_inv_5_8_calendar_windows_partition_time_in_every_zone_of_the_database() -> None:
    others = ("week", 1), ("month", 1), ("year", 1), ("day", 3), ("month", 3), ("week", 2)
    checked = 0
    for number, (name, data) in enumerate(zones()):
        days = calendar("day", zone=name)
        for index, change in enumerate(interesting(data)):
            holds_together(days, change)
            window = days.window(change - 1)
            assert window.start <= change - 1 < window.end
            if index % 4 == number % 4:
                unit, count = others[index // 4 % len(others)]
                holds_together(calendar(unit, count=count, zone=name), change)
            checked += 1
    assert checked > 20_000


def test_inv_5_8_a_boundary_is_the_first_instant_that_shows_midnight_or_more() -> None:
    for number, (name, data) in enumerate(zones()):
        zone, days = ZoneInfo(name), calendar("day", zone=name)
        found = interesting(data)
        for change in found[number % 17 :: 17]:
            for time in (change - 1, change):
                window = days.window(time)
                local = (EPOCH + timedelta(milliseconds=window.end)).astimezone(zone)
                midnight = datetime(local.year, local.month, local.day)  # noqa: DTZ001
                assert first_instant(zone, midnight) == window.end, (name, change)
