"""Which key do canonical bytes stand for?

The other direction of ``key_encoding.py``.  Bytes that nobody could have written (cut short, with a rest, not in
canonical form) raise :class:`CorruptObject`; a key of a class that is not registered, or that has changed, raises what
says so.  No class is searched for and no code of one runs.
"""

from __future__ import annotations

import struct
from dataclasses import is_dataclass
from datetime import date
from decimal import Decimal
from enum import Enum
from typing import Any
from uuid import UUID

from actorflow.errors import CorruptObject, IncompatibleState
from actorflow.model.key_encoding import (
    COMPLEMENT,
    DECIMAL_KINDS,
    EPOCH,
    LONG_LENGTH,
    MAX_DEPTH,
    MICROSECOND,
    NEGATIVE,
    OPAQUE,
    POSITIVE,
    SHORT_INT,
    ZERO,
    ClassNames,
    encode_key,
    fields_of,
    registered,
)

__all__ = ("decode_key",)


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


class _Reader:
    """Walks over canonical bytes; what does not fit raises ``ValueError`` or ``IndexError``."""

    def __init__(self, data: bytes, names: ClassNames | None) -> None:
        self.data, self.names, self.at = data, names, 0

    def read(self, depth: int) -> Any:
        """Read one value."""
        if depth > MAX_DEPTH:
            raise ValueError("nested too deep")
        code = self.take(1)[0]
        if NEGATIVE <= code <= POSITIVE:
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
                return EPOCH + self.integer(self.take(1)[0]) * MICROSECOND
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
        if not NEGATIVE <= code <= POSITIVE:
            raise ValueError("not an int")
        negative = code < ZERO
        size = abs(code - ZERO)
        if size > SHORT_INT:
            size = self._unsigned(1, negative=negative)
            if size == LONG_LENGTH:
                size = self._unsigned(8, negative=negative)
        value = self._unsigned(size, negative=negative)
        return -value if negative else value

    def _unsigned(self, size: int, *, negative: bool) -> int:
        piece = self.take(size)
        return int.from_bytes(piece.translate(COMPLEMENT) if negative else piece, "big")

    def float(self) -> float:
        """Take a float."""
        body = self.take(8)
        body = bytes((body[0] & 0x7F,)) + body[1:] if body[0] & 0x80 else body.translate(COMPLEMENT)
        value: float = struct.unpack(">d", body)[0]
        return value

    def decimal(self) -> Decimal:
        """Take a Decimal."""
        kind = self.take(1)[0]
        if kind in DECIMAL_KINDS:
            return DECIMAL_KINDS[kind]
        if kind == 4:
            return self._digits(0)
        if kind == 2:
            rest = _Reader(self.data[self.at :].translate(COMPLEMENT), None)
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
        cls = registered(self.names).class_of(self.escaped().decode())
        name = self.escaped().decode()
        if not issubclass(cls, Enum):
            raise ValueError("not an Enum")
        if name not in cls.__members__:
            raise IncompatibleState(
                f"{cls.__qualname__} has no member {name!r} any more, and a key names it; give it back"
            )
        return cls.__members__[name]

    def record(self, depth: int) -> Any:
        """Take a dataclass or a NamedTuple; no code of the class runs."""
        cls: Any = registered(self.names).class_of(self.escaped().decode())
        items = self.items(depth)
        is_named_tuple = issubclass(cls, tuple) and hasattr(cls, "_fields")
        if not is_named_tuple and (issubclass(cls, OPAQUE) or not is_dataclass(cls)):
            raise ValueError("neither a dataclass nor a NamedTuple")
        declared: list[str] = list(cls._fields) if is_named_tuple else fields_of(cls)
        if len(declared) != len(items):
            raise IncompatibleState(
                f"a key of {cls.__qualname__} was written with {len(items)} fields, and the class now has "
                f"{len(declared)}; keys of a class stay the same only while its fields do"
            )
        if is_named_tuple:
            return tuple.__new__(cls, items)
        key: Any = object.__new__(cls)
        for name, item in zip(declared, items, strict=True):
            object.__setattr__(key, name, item)
        return key
