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

from actorflow.errors import CorruptObject, InvalidValue

__all__ = ("MAX_DEPTH", "ClassNames", "decode_key", "encode_key")

MAX_DEPTH: Final = 100
"""How deep a key may nest."""

_NONE: Final = b"\x00"
_NESTED_NONE: Final = b"\x00\xff"  # inside a tuple, where a lone zero ends it
_END: Final = b"\x00"
_NEGATIVE, _ZERO, _POSITIVE = 0x0B, 0x14, 0x1D

_SHORT_INT: Final = 8  # an int of up to so many bytes has its length in the code
_LONG_LENGTH: Final = 255  # a length from here on takes eight bytes more

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND: Final = timedelta(microseconds=1)
_FIRST_US: Final = (datetime(1, 1, 1, tzinfo=UTC) - _EPOCH) // _MICROSECOND
_LAST_US: Final = (datetime.max.replace(tzinfo=UTC) - _EPOCH) // _MICROSECOND

_DECIMAL_KINDS: Final = {1: Decimal("-Infinity"), 3: Decimal(0), 5: Decimal("Infinity"), 6: Decimal("NaN")}
# A dataclass that is one of these holds more than its fields.
_OPAQUE: Final = (str, bytes, bytearray, int, float, complex, tuple, list, set, frozenset, dict)
_COMPLEMENT: Final = bytes(255 - byte for byte in range(256))


class ClassNames(Protocol):
    """The registered names of classes, both ways (``model.registry.Registry``)."""

    def name_of(self, cls: type) -> str:
        """Return the registered name of a class, or raise :class:`InvalidValue`."""
        ...

    def class_of(self, name: str) -> type:
        """Return the class that was registered under a name, or raise :class:`InvalidValue`."""
        ...


def encode_key(key: Any, names: ClassNames | None = None) -> bytes:
    """Return the canonical bytes of a key; ``names`` are the registered classes, by default those of the process."""
    return _encode(key, names, 0)


def decode_key(data: bytes, names: ClassNames | None = None) -> Any:
    """Return the key of these canonical bytes, in its canonical form; all else raises :class:`CorruptObject`."""
    reader = _Reader(data, names)
    try:
        key = reader.read(0)
        canonical = encode_key(key, names)
    except (IndexError, ValueError, ArithmeticError) as error:
        raise _corrupt(data) from error
    if canonical != data or reader.at != len(data):
        raise _corrupt(data)
    return key


def _corrupt(data: bytes) -> CorruptObject:
    shown = data[:40].hex() + ("…" if len(data) > 40 else "")
    return CorruptObject(f"these bytes are not a key in canonical form: {shown}")


# ── writing ──────────────────────────────────────────────────────────────────────────────────


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
    if is_dataclass(type(key)) and not isinstance(key, _OPAQUE):
        return _encode_record(key, [getattr(key, name) for name in _dataclass_fields(type(key))], names, depth)
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
        return bytes((_ZERO + size,)) + body if size <= _SHORT_INT else b"\x1d" + _length(size) + body
    if key == 0:
        return b"\x14"
    size = ((-key).bit_length() + 7) >> 3
    body = (-key).to_bytes(size, "big").translate(_COMPLEMENT)
    if size <= _SHORT_INT:
        return bytes((_ZERO - size,)) + body
    return b"\x0b" + _length(size).translate(_COMPLEMENT) + body


def _length(size: int) -> bytes:
    return bytes((size,)) if size < _LONG_LENGTH else b"\xff" + size.to_bytes(8, "big")


def _encode_float(key: float) -> bytes:
    if key != key:  # noqa: PLR0124 - the one value that is not itself
        return b"\x21\xff\xf8\x00\x00\x00\x00\x00\x00"
    body = struct.pack(">d", key + 0.0)  # the sum turns -0.0 into 0.0
    return b"\x21" + (body.translate(_COMPLEMENT) if body[0] & 0x80 else bytes((body[0] | 0x80,)) + body[1:])


def _encode_decimal(key: Decimal) -> bytes:
    sign, digits, exponent = key.as_tuple()
    if not isinstance(exponent, int):
        return b"\x40\x06" if exponent != "F" else (b"\x40\x01" if sign else b"\x40\x05")
    if not key:
        return b"\x40\x03"
    text = "".join(map(str, digits)).lstrip("0")  # not normalize(): that one rounds
    # The place of the first digit, then the digits without trailing zeros: this sorts as the numbers do.
    body = _encode_int(len(text) + exponent) + text.rstrip("0").encode() + _END
    return b"\x40\x02" + body.translate(_COMPLEMENT) if sign else b"\x40\x04" + body


def _encode_datetime(key: datetime) -> bytes:
    if key.utcoffset() is None:
        raise InvalidValue(
            f"a datetime without a time zone can't be a key, as it names no instant: {key!r}; "
            "give it a zone, for example with .replace(tzinfo=datetime.UTC)"
        )
    instant_us = (key - _EPOCH) // _MICROSECOND
    if not _FIRST_US <= instant_us <= _LAST_US:
        raise InvalidValue(f"a datetime whose instant lies outside the years 1 to 9999 in UTC can't be a key: {key!r}")
    return b"\x42" + _encode_int(instant_us)


def _encode_enum(key: Enum, names: ClassNames | None) -> bytes:
    cls = type(key)
    if cls.__members__.get(key.name) is not key:
        raise InvalidValue(f"a combination of flags can't be a key: {key!r}; use its value")
    return b"\x43" + _text(_names(names).name_of(cls)) + _text(key.name)


def _encode_record(key: Any, items: list[Any], names: ClassNames | None, depth: int) -> bytes:
    return b"\x44" + _text(_names(names).name_of(type(key))) + _encode_items(items, names, depth)


def _dataclass_fields(cls: Any) -> list[str]:
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


def _names(names: ClassNames | None) -> ClassNames:
    if names is not None:
        return names
    from actorflow.model.registry import default_registry

    return default_registry


# ── reading ──────────────────────────────────────────────────────────────────────────────────


class _Reader:
    """Walks over canonical bytes; what does not fit raises ``ValueError`` or ``IndexError``."""

    def __init__(self, data: bytes, names: ClassNames | None) -> None:
        self.data, self.names, self.at = data, names, 0

    def read(self, depth: int) -> Any:
        """Read one value."""
        if depth > MAX_DEPTH:
            raise ValueError("nested too deep")
        code = self.take(1)[0]
        if _NEGATIVE <= code <= _POSITIVE:
            return self.integer(code)
        match code:
            case 0x00:
                return None
            case 0x01:
                return self.escaped()
            case 0x02:
                return self.escaped().decode()
            case 0x05:
                return tuple(self.items(depth))
            case 0x21:
                return self.float()
            case 0x26:
                return False
            case 0x27:
                return True
            case 0x30:
                return UUID(bytes=self.take(16))
            case 0x40:
                return self.decimal()
            case 0x41:
                return date.fromordinal(int.from_bytes(self.take(4), "big"))
            case 0x42:
                return _EPOCH + self.integer(self.take(1)[0]) * _MICROSECOND
            case 0x43:
                return self.enum()
            case 0x44:
                return self.record(depth)
        raise ValueError("no such code")

    def take(self, size: int) -> bytes:
        """Take bytes; fewer than asked for raises."""
        piece = self.data[self.at : self.at + size]
        if len(piece) != size:
            raise ValueError("cut short")
        self.at += size
        return piece

    def escaped(self) -> bytes:
        """Take up to the zero byte that is not escaped."""
        start = end = self.at
        while True:
            end = self.data.index(b"\x00", end)
            if self.data[end + 1 : end + 2] != b"\xff":
                break
            end += 2
        self.at = end + 1
        return self.data[start:end].replace(b"\x00\xff", b"\x00")

    def items(self, depth: int) -> list[Any]:
        """Take values up to the end of a tuple."""
        items: list[Any] = []
        while True:
            if self.data[self.at] == 0:
                self.at += 1
                if self.data[self.at : self.at + 1] != b"\xff":
                    return items
                self.at += 1
                items.append(None)
            else:
                items.append(self.read(depth + 1))

    def integer(self, code: int) -> int:
        """Take what follows the code of an int."""
        if not _NEGATIVE <= code <= _POSITIVE:
            raise ValueError("not an int")
        negative = code < _ZERO
        size = abs(code - _ZERO)
        if size > _SHORT_INT:
            size = self._unsigned(1, negative=negative)
            if size == _LONG_LENGTH:
                size = self._unsigned(8, negative=negative)
        value = self._unsigned(size, negative=negative)
        return -value if negative else value

    def _unsigned(self, size: int, *, negative: bool) -> int:
        piece = self.take(size)
        return int.from_bytes(piece.translate(_COMPLEMENT) if negative else piece, "big")

    def float(self) -> float:
        """Take a float."""
        body = self.take(8)
        body = bytes((body[0] & 0x7F,)) + body[1:] if body[0] & 0x80 else body.translate(_COMPLEMENT)
        value: float = struct.unpack(">d", body)[0]
        return value

    def decimal(self) -> Decimal:
        """Take a Decimal."""
        kind = self.take(1)[0]
        if kind in _DECIMAL_KINDS:
            return _DECIMAL_KINDS[kind]
        if kind == 4:
            return self._digits(0)
        if kind == 2:
            rest = _Reader(self.data[self.at :].translate(_COMPLEMENT), None)
            value = rest._digits(1)
            self.at += rest.at
            return value
        raise ValueError("no such kind of Decimal")

    def _digits(self, sign: int) -> Decimal:
        place = self.integer(self.take(1)[0])
        end = self.data.index(b"\x00", self.at)
        text = self.data[self.at : end]
        self.at = end + 1
        if not text.isdigit():
            raise ValueError("not digits")
        return Decimal((sign, tuple(byte - 48 for byte in text), place - len(text)))

    def enum(self) -> Any:
        """Take a member of an Enum."""
        cls = _names(self.names).class_of(self.escaped().decode())
        name = self.escaped().decode()
        if not issubclass(cls, Enum):
            raise ValueError("not an Enum")  # noqa: TRY004 - it is the bytes that are wrong, not a caller
        if name not in cls.__members__:
            raise InvalidValue(f"{cls.__qualname__} has no member {name!r} any more, and a key names it")
        return cls.__members__[name]

    def record(self, depth: int) -> Any:
        """Take a dataclass or a NamedTuple; no code of the class runs."""
        cls: Any = _names(self.names).class_of(self.escaped().decode())
        items = self.items(depth)
        is_named_tuple = issubclass(cls, tuple) and hasattr(cls, "_fields")
        if not is_named_tuple and (issubclass(cls, _OPAQUE) or not is_dataclass(cls)):
            raise ValueError("neither a dataclass nor a NamedTuple")
        declared: list[str] = list(cls._fields) if is_named_tuple else _dataclass_fields(cls)
        if len(declared) != len(items):
            raise InvalidValue(
                f"a key of {cls.__qualname__} was written with {len(items)} fields, "
                f"and the class now has {len(declared)}"
            )
        if is_named_tuple:
            return tuple.__new__(cls, items)
        key: Any = object.__new__(cls)
        for name, item in zip(declared, items, strict=True):
            object.__setattr__(key, name, item)
        return key
