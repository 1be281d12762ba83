"""How is a key written down?

One canonical encoding serves routing, storage, timers and snapshots alike, so that two keys are the same everywhere
or nowhere.  It has the shape of the tuple layer that FoundationDB publishes: a code for the type, then bytes that say
where they end and that sort as the values of that type do.  Beyond its codes we use ``40`` to ``44``.

Equal means equal bytes: ``1``, ``1.0``, ``True`` and ``"1"`` are four keys, ``-0.0`` is ``0.0``, every NaN is one NaN,
``Decimal("1.0")`` is ``Decimal("1")``, and two datetimes of one instant are one key.  Text is not normalised.

Everything that could change, that names no instant, or whose bytes another process might write differently is refused
with :class:`InvalidValue`.  Whoever calls adds the name of the operator.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from dataclasses import fields, is_dataclass
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from enum import Enum
from typing import Any, Final, Protocol
from uuid import UUID

from actorflow.errors import InvalidValue

__all__ = (
    "COMPLEMENT",
    "DECIMAL_KINDS",
    "EPOCH",
    "LONG_LENGTH",
    "MAX_DEPTH",
    "MICROSECOND",
    "NEGATIVE",
    "OPAQUE",
    "POSITIVE",
    "SHORT_INT",
    "ZERO",
    "ClassNames",
    "encode_key",
    "fields_of",
    "registered",
)

MAX_DEPTH: Final = 100
"""How deep a key may nest."""

NEGATIVE, ZERO, POSITIVE = 0x0B, 0x14, 0x1D
"""The codes of a long negative int, of zero, and of a long positive int."""
SHORT_INT: Final = 8
"""An int of up to so many bytes has its length in the code."""
LONG_LENGTH: Final = 255
"""A length from here on stands in eight bytes more."""
EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
MICROSECOND: Final = timedelta(microseconds=1)
DECIMAL_KINDS: Final = {1: Decimal("-Infinity"), 3: Decimal(0), 5: Decimal("Infinity"), 6: Decimal("NaN")}
"""The Decimals that have no digits; 2 and 4 are the others, below and above zero."""
OPAQUE: Final = (str, bytes, bytearray, int, float, complex, tuple, list, set, frozenset, dict)
"""A dataclass that is one of these holds more than its fields."""
COMPLEMENT: Final = bytes(255 - byte for byte in range(256))
"""Turns the bytes of what is below zero around, so that they sort."""

_NONE: Final = b"\x00"
_NESTED_NONE: Final = b"\x00\xff"  # inside a tuple, where a lone zero ends it
_END: Final = b"\x00"
_FIRST_US: Final = (datetime(1, 1, 1, tzinfo=UTC) - EPOCH) // MICROSECOND
_LAST_US: Final = (datetime.max.replace(tzinfo=UTC) - EPOCH) // MICROSECOND


class ClassNames(Protocol):
    """The registered names of classes, both ways (``model.registry.Registry``)."""

    def name_of(self, cls: type) -> str:
        """Return the registered name of a class, or raise :class:`InvalidValue`."""
        ...

    def class_of(self, name: str) -> type:
        """Return the class that was registered under a name, or raise ``IncompatibleState``."""
        ...


def encode_key(key: Any, names: ClassNames | None = None) -> bytes:
    """Return the canonical bytes of a key; ``names`` are the registered classes, by default those of the process."""
    return _encode(key, names, 0)


def _encode(key: Any, names: ClassNames | None, depth: int) -> bytes:
    encoder = _ENCODERS.get(type(key))
    if encoder is not None:
        return encoder(key)
    if depth >= MAX_DEPTH:
        raise InvalidValue(f"a key nests more than {MAX_DEPTH} deep")
    if type(key) is tuple:
        return b"\x05" + _encode_items(key, names, depth)
    if isinstance(key, Enum):
        return _encode_enum(key, names)
    if is_dataclass(type(key)) and not isinstance(key, OPAQUE):
        return _encode_record(key, [getattr(key, name) for name in fields_of(type(key))], names, depth)
    if isinstance(key, tuple) and hasattr(key, "_fields"):
        return _encode_record(key, list(key), names, depth)
    raise InvalidValue(f"{_describe(key)} can't be a key, or a part of one{_advice(key)}")


def _encode_items(items: Any, names: ClassNames | None, depth: int) -> bytes:
    parts = [_NESTED_NONE if item is None else _encode(item, names, depth + 1) for item in items]
    parts.append(_END)
    return b"".join(parts)


def _encode_bytes(key: bytes) -> bytes:
    return b"\x01" + key.replace(b"\x00", b"\x00\xff") + _END


def _encode_str(key: str) -> bytes:
    return b"\x02" + _text(key)


def _text(text: str) -> bytes:
    try:
        return text.encode().replace(b"\x00", b"\x00\xff") + _END
    except UnicodeEncodeError as error:
        raise InvalidValue(
            f"a str with a lone surrogate can't be a key: {text[error.start]!a} at position {error.start} of "
            f"{text[:40]!a} has no form in UTF-8"
        ) from None


def _encode_int(key: int) -> bytes:
    if key > 0:
        size = (key.bit_length() + 7) >> 3
        body = key.to_bytes(size, "big")
        return bytes((ZERO + size,)) + body if size <= SHORT_INT else b"\x1d" + _length(size) + body
    if key == 0:
        return b"\x14"
    size = ((-key).bit_length() + 7) >> 3
    body = (-key).to_bytes(size, "big").translate(COMPLEMENT)
    if size <= SHORT_INT:
        return bytes((ZERO - size,)) + body
    return b"\x0b" + _length(size).translate(COMPLEMENT) + body


def _length(size: int) -> bytes:
    return bytes((size,)) if size < LONG_LENGTH else b"\xff" + size.to_bytes(8, "big")


def _encode_float(key: float) -> bytes:
    if key != key:  # noqa: PLR0124 - the one value that is not itself
        return b"\x21\xff\xf8\x00\x00\x00\x00\x00\x00"
    body = struct.pack(">d", key + 0.0)  # the sum turns -0.0 into 0.0
    return b"\x21" + (body.translate(COMPLEMENT) if body[0] & 0x80 else bytes((body[0] | 0x80,)) + body[1:])


def _encode_decimal(key: Decimal) -> bytes:
    sign, digits, exponent = key.as_tuple()
    if not isinstance(exponent, int):
        return b"\x40\x06" if exponent != "F" else (b"\x40\x01" if sign else b"\x40\x05")
    if not key:
        return b"\x40\x03"
    text = "".join(map(str, digits)).lstrip("0")  # not normalize(): that one rounds
    # The place of the first digit, then the digits without trailing zeros: this sorts as the numbers do.
    body = _encode_int(len(text) + exponent) + text.rstrip("0").encode() + _END
    return b"\x40\x02" + body.translate(COMPLEMENT) if sign else b"\x40\x04" + body


def _encode_datetime(key: datetime) -> bytes:
    if key.utcoffset() is None:
        raise InvalidValue(
            f"a datetime without a time zone can't be a key, as it names no instant: {key!r}; "
            "give it a zone, for example with .replace(tzinfo=datetime.UTC)"
        )
    instant_us = (key - EPOCH) // MICROSECOND
    if not _FIRST_US <= instant_us <= _LAST_US:
        raise InvalidValue(f"a datetime whose instant lies outside the years 1 to 9999 in UTC can't be a key: {key!r}")
    return b"\x42" + _encode_int(instant_us)


def _encode_enum(key: Enum, names: ClassNames | None) -> bytes:
    cls = type(key)
    if cls.__members__.get(key.name) is not key:
        raise InvalidValue(f"a combination of flags can't be a key: {key!r}; use its value")
    return b"\x43" + _name_of(cls, names) + _text(key.name)


def _encode_record(key: Any, items: list[Any], names: ClassNames | None, depth: int) -> bytes:
    return b"\x44" + _name_of(type(key), names) + _encode_items(items, names, depth)


def _name_of(cls: type, names: ClassNames | None) -> bytes:
    try:
        name = registered(names).name_of(cls)
    except InvalidValue as error:  # it says of what class, and what to add
        raise InvalidValue(f"a key holds a value {error}") from None
    return _text(name)


def fields_of(cls: Any) -> list[str]:
    """Return the names of a dataclass's fields in declared order, or say why it can't be a key."""
    if not cls.__dataclass_params__.frozen:
        raise InvalidValue(f"a dataclass that is not frozen can't be a key: {cls.__qualname__}; declare it frozen=True")
    for field in fields(cls):
        if not field.compare:
            raise InvalidValue(
                f"{cls.__qualname__}.{field.name} has compare=False, so two equal keys could be written differently; "
                "leave the field out of the key"
            )
    return [field.name for field in fields(cls)]


_ENCODERS: Final[dict[type, Callable[[Any], bytes]]] = {
    type(None): lambda _: _NONE,
    bytes: _encode_bytes,
    str: _encode_str,
    int: _encode_int,
    float: _encode_float,
    bool: lambda key: b"\x27" if key else b"\x26",
    UUID: lambda key: b"\x30" + key.bytes,
    Decimal: _encode_decimal,
    date: lambda key: b"\x41" + key.toordinal().to_bytes(4, "big"),
    datetime: _encode_datetime,
}


def _describe(key: Any) -> str:
    cls = type(key)
    name = cls.__qualname__ if cls.__module__ == "builtins" else f"{cls.__module__}.{cls.__qualname__}"
    return f"a value of type {name}"


def _advice(key: Any) -> str:
    if isinstance(key, list | set | dict | bytearray | memoryview):
        return ", as it can change; use " + ("bytes" if isinstance(key, bytearray | memoryview) else "a tuple")
    for plain in (str, bytes, bool, int, float, tuple, Decimal, UUID, datetime, date):
        if isinstance(key, plain):
            return f", as it is a subclass of {plain.__name__}; turn it into an exact {plain.__name__}"
    return (
        "; use None, bool, int, float, str, bytes, UUID, Decimal, date, an aware datetime, a tuple of these, "
        "or a registered Enum, frozen dataclass or NamedTuple"
    )


def registered(names: ClassNames | None) -> ClassNames:
    """Return these registered classes, or those of the process."""
    if names is not None:
        return names
    from actorflow.model.registry import default_registry

    return default_registry
