"""Did two runs do the same?

The digest of a run is SHA-256 over its journal: per line the canonical CBOR (RFC 8949, 4.2: shortest forms, definite
lengths, keys in the order of their bytes) of an array of virtual milliseconds, process, the entry's name and its
lasting fields in declared order; then the digest of what an outsider would see at the end, sorted.  It agrees over
versions of Python and hash seeds.

The encoding is written out here, because a digest must never change with a library.
"""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Callable, Iterable, Mapping
from dataclasses import fields, is_dataclass
from operator import attrgetter
from typing import Any

from actorflow.model.journal import Entry, Line, lasting_names

__all__ = ("canonical", "digest_of_digests", "journal_digest")

_Form = tuple[bytes, bytes, Callable[[Entry], tuple[Any, ...]]]

_KEPT_AT_MOST = 50_000
"""How many encoded texts are remembered; then all are forgotten."""


def journal_digest(lines: Iterable[Line], visible: Iterable[Any] = ()) -> str:
    """Return the digest of a run: its journal, and the values that are visible in the end, in any order."""
    parts: list[bytes] = []
    for line in lines:
        entry = line.entry
        kind = type(entry)
        head, name, values_of = _forms.get(kind) or _form(kind)
        parts += head, _integer(line.at_ms), _text(line.process), name
        for value in values_of(entry):
            encode = _PLAIN.get(type(value), canonical)
            parts.append(encode(value))
    digest = hashlib.sha256(b"".join(parts))
    digest.update(hashlib.sha256(b"".join(sorted(map(canonical, visible)))).digest())
    return digest.hexdigest()


def digest_of_digests(digests: Iterable[str]) -> str:
    """Return the digest of many seeds: over theirs, in order of seeds."""
    return hashlib.sha256("".join(digests).encode()).hexdigest()


def _form(kind: type[Entry]) -> _Form:
    """How the array of a line begins, the name of its entry, and what takes the values out of one."""
    names = lasting_names(kind)
    values_of: Callable[[Entry], tuple[Any, ...]]
    if len(names) > 1:
        values_of = attrgetter(*names)
    else:

        def values_of(entry: Entry) -> tuple[Any, ...]:
            return tuple(getattr(entry, name) for name in names)

    form = _forms[kind] = _head(4, 3 + len(names)), canonical(kind.__name__), values_of
    return form


def canonical(value: Any) -> bytes:
    """Return the canonical CBOR of a plain value; dataclasses become arrays of their fields."""
    encode = _PLAIN.get(type(value))
    if encode is not None:
        return encode(value)
    match value:
        case int():
            return _integer(value)
        case float():
            return _float(value)
        case str():
            return _text(str(value))
        case bytes() | bytearray():
            return _bytes(value)
        case list() | tuple():
            return _head(4, len(value)) + b"".join(map(canonical, value))
        case set() | frozenset():
            return _head(4, len(value)) + b"".join(sorted(map(canonical, value)))
        case Mapping():
            pairs = sorted((canonical(key), canonical(item)) for key, item in value.items())
            return _head(5, len(pairs)) + b"".join(key + item for key, item in pairs)
    if is_dataclass(value):
        return canonical([getattr(value, field.name) for field in fields(value)])
    return canonical(repr(value))


def _none(_: None) -> bytes:
    return b"\xf6"


def _bool(value: bool) -> bytes:
    return b"\xf5" if value else b"\xf4"


def _float(value: float) -> bytes:
    return b"\xfb" + struct.pack(">d", value)


def _bytes(value: bytes | bytearray) -> bytes:
    return _head(2, len(value)) + value


def _text(value: str) -> bytes:
    if (encoded := _texts.get(value)) is None:
        data = value.encode("utf-8", "surrogatepass")
        encoded = _head(3, len(data)) + data
        if len(_texts) >= _KEPT_AT_MOST:
            _texts.clear()
        if len(data) < 200:
            _texts[value] = encoded
    return encoded


def _integer(value: int) -> bytes:
    if 0 <= value < 24:
        return _SMALL[value]
    major, number = (0, value) if value >= 0 else (1, -1 - value)
    if number < 1 << 64:
        return _head(major, number)
    data = number.to_bytes((number.bit_length() + 7) // 8, "big")
    return bytes([0xC2 + major]) + _head(2, len(data)) + data


def _head(major: int, number: int) -> bytes:
    for code, pack, limit in _SIZES:
        if number < 24:
            return bytes((major << 5 | number,))
        if number < limit:
            return pack(major << 5 | code, number)
    raise ValueError(f"{number} is too long to be a length")


_SIZES = [
    (code, struct.Struct(form).pack, 1 << bits)
    for code, form, bits in ((24, ">BB", 8), (25, ">BH", 16), (26, ">BI", 32), (27, ">BQ", 64))
]
_SMALL = [bytes((number,)) for number in range(24)]
_forms: dict[type[Entry], _Form] = {}
_texts: dict[str, bytes] = {}
_PLAIN: dict[type, Callable[[Any], bytes]] = {
    type(None): _none,
    bool: _bool,
    int: _integer,
    float: _float,
    str: _text,
    bytes: _bytes,
}
