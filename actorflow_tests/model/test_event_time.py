from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone, tzinfo
from decimal import Decimal
from enum import IntEnum
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from actorflow.errors import InvalidValue
from actorflow.model.event_time import MAX_TIMESTAMP, MAX_WATERMARK, MIN_TIMESTAMP, MIN_WATERMARK, milliseconds


def test_the_ends_of_time_are_those_of_64_bits_and_of_timestamps_those_that_every_system_reads() -> None:
    assert (MIN_WATERMARK, MAX_WATERMARK) == (-(2**63), 2**63 - 1)
    assert (MIN_TIMESTAMP, MAX_TIMESTAMP) == (1 - 2**53, 2**53 - 1)


@pytest.mark.parametrize("value", [0, -1, 1_700_000_000_000, MAX_TIMESTAMP, MIN_TIMESTAMP])
def test_a_whole_number_is_milliseconds(value: int) -> None:
    assert milliseconds(value) == value


def test_a_member_of_a_whole_enum_becomes_a_plain_number() -> None:
    class Era(IntEnum):
        START = 5

    assert type(milliseconds(Era.START)) is int


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (datetime(1970, 1, 1, tzinfo=UTC), 0),
        (datetime(1970, 1, 1, 0, 0, 0, 999, tzinfo=UTC), 0),
        (datetime(1969, 12, 31, 23, 59, 59, 999_999, tzinfo=UTC), -1),  # rounded down, also before 1970 (R077)
        (datetime(2026, 3, 29, 3, 0, tzinfo=ZoneInfo("Europe/Berlin")), 1_774_746_000_000),
        (datetime(2026, 3, 29, 1, 0, tzinfo=UTC), 1_774_746_000_000),
        (datetime(2000, 1, 1, tzinfo=timezone(timedelta(hours=-5))), 946_702_800_000),
        (datetime(1, 1, 1, tzinfo=UTC), -62_135_596_800_000),
        (datetime(9999, 12, 31, 23, 59, 59, 999_999, tzinfo=UTC), 253_402_300_799_999),
    ],
)
def test_an_aware_datetime_is_its_instant(value: datetime, expected: int) -> None:
    assert milliseconds(value) == expected


def test_the_hour_that_comes_twice_is_two_hours() -> None:
    first = datetime(2026, 10, 25, 2, 30, tzinfo=ZoneInfo("Europe/Berlin"))

    assert milliseconds(first.replace(fold=1)) - milliseconds(first) == 3_600_000


class Nowhere(tzinfo):
    def utcoffset(self, _: datetime | None) -> timedelta | None:
        return None

    def dst(self, _: datetime | None) -> timedelta | None:
        return None

    def tzname(self, _: datetime | None) -> str | None:
        return None


class Broken(Nowhere):
    def utcoffset(self, _: datetime | None) -> timedelta | None:
        raise RuntimeError("no idea")


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        (1.5, "round it"),
        (float("nan"), "a float can't be"),
        (True, "a bool can't be"),
        (None, "a NoneType can't be"),
        ("2026-01-01", "a str can't be"),
        (Decimal(5), "a Decimal can't be"),
        (timedelta(5), "a timedelta can't be"),
        (MAX_TIMESTAMP + 1, "lies outside"),
        (MIN_TIMESTAMP - 1, "lies outside"),
        (MAX_WATERMARK, "lies outside"),
        (datetime(2026, 1, 1), "naive"),  # noqa: DTZ001
        (datetime(2026, 1, 1, tzinfo=Nowhere()), "naive"),
        (datetime(2026, 1, 1, tzinfo=Broken()), "no idea"),
        (datetime(2026, 1, 1, tzinfo=UTC).date(), "a date can't be"),
    ],
)
def test_what_could_mean_two_things_is_refused(value: Any, reason: str) -> None:
    with pytest.raises(InvalidValue, match=reason):
        milliseconds(value)
