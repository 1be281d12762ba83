"""How are the language's own values that CBOR does not have taken apart?

A *leaf* is a value without parts of the user's: a date, a ``Decimal``, a ``range``.  It is written as a fixed number of
plain values, and those say everything: a ``Decimal`` keeps its exponent and a signalling NaN its payload, a datetime
keeps its zone, ``fold`` and microseconds, and stays naive if it was.

Zones come back as what they were: ``timezone.utc``, an offset (to the microsecond, with its name if it has one), or a
``ZoneInfo`` by its key.  Other zones are refused.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta, timezone, tzinfo
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Final
from uuid import UUID, SafeUUID

from actorflow.errors import RestoreFailed

if TYPE_CHECKING:
    from zoneinfo import ZoneInfo

__all__ = ("LEAVES", "PLAIN", "Leaf", "Unwritable", "leaf_named", "leaf_of")

PLAIN: Final = frozenset({type(None), bool, int, float, str, bytes})
"""What CBOR itself has, exactly."""

_MICROSECOND: Final = timedelta(microseconds=1)


class Unwritable(Exception):
    """Says why a value can't be written down; becomes an ``InvalidValue`` with the path to it."""


@dataclass(frozen=True, slots=True)
class Leaf:
    """One type: ``take`` gives ``width`` plain values (bare where it is one), ``build`` the value back from them."""

    name: str
    width: int
    take: Callable[[Any], Any]
    build: Callable[..., Any]


# ── zones ────────────────────────────────────────────────────────────────────────────────────


def _zone_text(zone: tzinfo | None) -> str | None:
    if zone is None:
        return None
    if zone is UTC:
        return "utc"
    cls = type(zone)
    if cls is timezone:
        # What a timezone says to be copied by: its offset, and its name where it was given one.
        offset, *names = zone.__getinitargs__()  # type: ignore[attr-defined]  # typeshed leaves it out
        return ":".join(("offset", str(offset // _MICROSECOND), *names))
    if _is_zone_info(cls):
        return f"zone:{_zone_key(zone)}"
    raise Unwritable(
        f"its time zone is a {cls.__module__}.{cls.__qualname__}; use datetime.timezone or zoneinfo.ZoneInfo instead"
    )


def _zone(text: str | None) -> tzinfo | None:
    if text is None:
        return None
    if text == "utc":
        return UTC
    kind, _, rest = text.partition(":")
    if kind == "zone":
        return _zone_info(rest)
    if kind != "offset":
        raise ValueError("no such kind of zone")
    offset, colon, name = rest.partition(":")
    return timezone(int(offset) * _MICROSECOND, name) if colon else timezone(int(offset) * _MICROSECOND)


def _is_zone_info(cls: type) -> bool:
    return cls.__module__ == "zoneinfo" and cls.__qualname__ == "ZoneInfo"


def _zone_key(zone: Any) -> str:
    key = zone.key
    if type(key) is not str:
        raise Unwritable("its zone was read from a file and has no key; make it with ZoneInfo(key)")
    return key


def _zone_info(key: str) -> ZoneInfo:
    from zoneinfo import ZoneInfo, ZoneInfoNotFoundError  # most jobs never meet it, and it is slow to load

    try:
        return ZoneInfo(key)
    except ZoneInfoNotFoundError as error:
        raise RestoreFailed(f"the time zone {key!r} is not known on this machine; install tzdata") from error


# ── the types ────────────────────────────────────────────────────────────────────────────────


def _take_datetime(value: datetime) -> tuple[str, str | None, int]:
    zone = value.tzinfo
    if zone is None:
        return value.isoformat(), None, value.fold
    return value.replace(tzinfo=None).isoformat(), _zone_text(zone), value.fold


def _build_datetime(text: str, zone: str | None, fold: int) -> datetime:
    value = datetime.fromisoformat(text)
    if value.tzinfo is not None:
        raise ValueError("a zone where none belongs")
    return value if zone is None and not fold else value.replace(tzinfo=_zone(zone), fold=fold)


def _take_time(value: time) -> tuple[str, str | None, int]:
    return value.replace(tzinfo=None).isoformat(), _zone_text(value.tzinfo), value.fold


def _build_time(text: str, zone: str | None, fold: int) -> time:
    value = time.fromisoformat(text)
    if value.tzinfo is not None:
        raise ValueError("a zone where none belongs")
    return value.replace(tzinfo=_zone(zone), fold=fold)


def _take_uuid(value: UUID) -> bytes:
    # Equal UUIDs may differ in whether they were made safely, which uuid1() on some systems says.
    return value.bytes if value.is_safe is SafeUUID.unknown else value.bytes + value.is_safe.name.encode()


def _build_uuid(data: bytes) -> UUID:
    return UUID(bytes=data[:16], is_safe=SafeUUID[data[16:].decode()] if len(data) > 16 else SafeUUID.unknown)


_COMPLEX: Final = struct.Struct("<dd")


def _build_fraction(numerator: int, denominator: int) -> Any:
    from fractions import Fraction  # slow to load, and rare

    value = Fraction(numerator, denominator)
    if value.numerator != numerator or value.denominator != denominator:
        raise ValueError("a fraction that was not in its lowest terms")
    return value


def _build_date(ordinal: int) -> date:
    return date.fromordinal(ordinal)


def _build_timedelta(days: int, seconds: int, microseconds: int) -> timedelta:
    value = timedelta(days, seconds, microseconds)
    if (value.days, value.seconds, value.microseconds) != (days, seconds, microseconds):
        raise ValueError("a duration that was not in its lowest terms")
    return value


def _build_timezone(text: str) -> tzinfo:
    value = _zone(text)
    if type(value) is not timezone:
        raise ValueError("no offset")
    return value


LEAVES: Final[dict[type, Leaf]] = {
    complex: Leaf(
        "complex", 1, lambda value: _COMPLEX.pack(value.real, value.imag), lambda data: complex(*_COMPLEX.unpack(data))
    ),
    bytearray: Leaf("bytearray", 1, bytes, bytearray),
    range: Leaf("range", 3, lambda value: (value.start, value.stop, value.step), range),
    Decimal: Leaf("Decimal", 1, str, Decimal),
    UUID: Leaf("UUID", 1, _take_uuid, _build_uuid),
    date: Leaf("date", 1, date.toordinal, _build_date),
    time: Leaf("time", 3, _take_time, _build_time),
    datetime: Leaf("datetime", 3, _take_datetime, _build_datetime),
    timedelta: Leaf("timedelta", 3, lambda value: (value.days, value.seconds, value.microseconds), _build_timedelta),
    timezone: Leaf("timezone", 1, _zone_text, _build_timezone),
}
"""The leaves whose types are always loaded, by type."""

_FRACTION: Final = Leaf("Fraction", 2, lambda value: (value.numerator, value.denominator), _build_fraction)
_ZONE_INFO: Final = Leaf("ZoneInfo", 1, _zone_key, _zone_info)
_BY_NAME: Final = {leaf.name: leaf for leaf in (*LEAVES.values(), _FRACTION, _ZONE_INFO)}


def leaf_of(cls: type) -> Leaf | None:
    """Return the leaf of exactly this type."""
    if (leaf := LEAVES.get(cls)) is not None:
        return leaf
    if _is_zone_info(cls):
        return _ZONE_INFO
    if cls.__module__ == "fractions" and cls.__qualname__ == "Fraction":
        return _FRACTION
    return None


def leaf_named(name: str) -> Leaf | None:
    """Return the leaf of this name."""
    return _BY_NAME.get(name)
