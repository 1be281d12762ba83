"""How are durations and sizes said in text, and read back?

A duration is ``"250ms"``, ``"10s"``, ``"5min"``, ``"1h"``, ``"2d"`` or ``"0"``; a size is a number of bytes or
``"20KiB"``.  Nothing is guessed: a bare number has no unit and is refused (but for 0), ``KB`` is refused because people
mean two things by it, and a duration that is not a whole number of milliseconds because nothing here counts finer.
Flink's spelling has readers of its own, where a bare number keeps its Flink unit.

Raises ``ValueError`` with half a sentence that fits behind a name; ``reading.py`` turns that into ``InvalidConfig``.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from datetime import timedelta
from fractions import Fraction

__all__ = (
    "duration_text",
    "milliseconds",
    "parse_duration",
    "parse_flink_duration",
    "parse_flink_size",
    "parse_size",
    "size_text",
)

_QUANTITY = re.compile(r"\s*([+-]?)(\d+(?:\.\d+)?|\.\d+)\s*([A-Za-zµμ]*)\s*\Z", re.ASCII)
_DURATION_UNITS_MS = {"ms": 1, "s": 1_000, "min": 60_000, "h": 3_600_000, "d": 86_400_000}
_SIZE_UNITS = {"B": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30, "TiB": 1 << 40}
# What Flink calls its units; sizes there are all powers of 1,024.
_FLINK_DURATION_UNITS_MS = {
    **dict.fromkeys(("ms", "milli", "millis", "millisecond", "milliseconds"), 1),
    **dict.fromkeys(("s", "sec", "secs", "second", "seconds"), 1_000),
    **dict.fromkeys(("m", "min", "minute", "minutes"), 60_000),
    **dict.fromkeys(("h", "hour", "hours"), 3_600_000),
    **dict.fromkeys(("d", "day", "days"), 86_400_000),
}
_FLINK_SIZE_UNITS = {
    **dict.fromkeys(("b", "bytes"), 1),
    **dict.fromkeys(("k", "kb", "kibibytes"), 1 << 10),
    **dict.fromkeys(("m", "mb", "mebibytes"), 1 << 20),
    **dict.fromkeys(("g", "gb", "gibibytes"), 1 << 30),
    **dict.fromkeys(("t", "tb", "tebibytes"), 1 << 40),
}
_LONGEST_MS = timedelta.max // timedelta(milliseconds=1)


def parse_duration(said: object) -> timedelta:
    """Return the duration that a text such as ``"10s"`` says; of bare numbers only 0 is one."""
    amount, unit = _quantity(said, "a duration such as '250ms', '10s', '5min', '1h' or '0'")
    if not unit:
        if amount == 0:
            return timedelta(0)
        raise ValueError(f"needs a unit: '{_plain(amount)}ms', '{_plain(amount)}s', '{_plain(amount)}min' …")
    if unit not in _DURATION_UNITS_MS:
        raise ValueError(_unknown_unit(unit, _DURATION_UNITS_MS))
    return _whole(amount * _DURATION_UNITS_MS[unit])


def parse_flink_duration(said: object) -> timedelta:
    """Return the duration that Flink would read: a bare number counts milliseconds."""
    amount, unit = _quantity(said, "a duration such as '10 s', or a number of milliseconds")
    unit = unit.lower() or "ms"
    if unit not in _FLINK_DURATION_UNITS_MS:
        raise ValueError(_unknown_unit(unit, ("ms", "s", "min", "h", "d")))
    return _whole(amount * _FLINK_DURATION_UNITS_MS[unit])


def parse_size(said: object) -> int:
    """Return the number of bytes that a number or a text such as ``"20KiB"`` says."""
    amount, unit = _quantity(said, "a number of bytes, or a size such as '20KiB'")
    if unit and unit not in _SIZE_UNITS:
        raise ValueError(_unknown_unit(unit, _SIZE_UNITS))
    return _whole_bytes(amount * _SIZE_UNITS[unit or "B"])


def parse_flink_size(said: object) -> int:
    """Return the number of bytes that Flink would read: ``kb`` and ``k`` are 1,024."""
    amount, unit = _quantity(said, "a number of bytes, or a size such as '20kb'")
    unit = unit.lower() or "b"
    if unit not in _FLINK_SIZE_UNITS:
        raise ValueError(_unknown_unit(unit, ("b", "kb", "mb", "gb", "tb")))
    return _whole_bytes(amount * _FLINK_SIZE_UNITS[unit])


def milliseconds(duration: timedelta) -> int:
    """Return the whole milliseconds that machines and journal count in."""
    return duration // timedelta(milliseconds=1)


def duration_text(duration: timedelta) -> str:
    """Return the shortest text that :func:`parse_duration` reads back as this duration."""
    total_ms = milliseconds(duration)
    if total_ms == 0:
        return "0"
    unit = max((u for u, ms in _DURATION_UNITS_MS.items() if total_ms % ms == 0), key=_DURATION_UNITS_MS.__getitem__)
    return f"{total_ms // _DURATION_UNITS_MS[unit]}{unit}"


def size_text(size: int) -> str:
    """Return the shortest text that :func:`parse_size` reads back as this size."""
    if size == 0:
        return "0"
    unit = max((u for u, count in _SIZE_UNITS.items() if size % count == 0), key=_SIZE_UNITS.__getitem__)
    return f"{size // _SIZE_UNITS[unit]}{unit}" if unit != "B" else str(size)


def _quantity(said: object, expected: str) -> tuple[Fraction, str]:
    if isinstance(said, bool) or not isinstance(said, str | int | float):
        raise ValueError(f"must be {expected}, not {type(said).__name__}")
    match = _QUANTITY.match(str(said))
    if match is None:
        raise ValueError(f"is not {expected}")
    sign, digits, unit = match.groups()
    if sign == "-":
        raise ValueError("must not be negative")
    if len(digits) > 40:
        raise ValueError("is longer than any quantity")
    return Fraction(digits), unit


def _whole(amount_ms: Fraction) -> timedelta:
    if amount_ms.denominator != 1:
        raise ValueError("is not a whole number of milliseconds")
    if amount_ms > _LONGEST_MS:
        raise ValueError("is longer than can be counted")
    return timedelta(milliseconds=int(amount_ms))


def _whole_bytes(amount: Fraction) -> int:
    if amount.denominator != 1:
        raise ValueError("is not a whole number of bytes")
    return int(amount)


def _plain(amount: Fraction) -> str:
    return str(int(amount)) if amount.denominator == 1 else str(float(amount))


def _unknown_unit(unit: str, known: Iterable[str]) -> str:
    hint = ""
    if unit in {"KB", "kB", "kb", "K", "k"}:
        hint = "; 1,024 bytes are 1KiB"
    elif unit in {"MB", "mb", "M"}:
        hint = "; 1,024 KiB are 1MiB"
    elif unit in {"m", "minutes", "minute"}:
        hint = "; minutes are 'min'"
    return f"has the unit {unit!r}, which is none of {', '.join(known)}{hint}"
