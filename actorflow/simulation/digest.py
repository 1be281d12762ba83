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
from collections.abc import Iterable, Mapping
from dataclasses import fields, is_dataclass
from typing import Any

from actorflow.model.journal import Line, lasting_fields

__all__ = ("canonical", "digest_of_digests", "journal_digest")


def journal_digest(lines: Iterable[Line], visible: Iterable[Any] = ()) -> str:
    """Return the digest of a run: its journal, and the values that are visible in the end, in any order."""
    digest = hashlib.sha256()
    for line in lines:
        values = [value for _, value in lasting_fields(line.entry)]
        digest.update(canonical([line.at_ms, line.process, line.name, *values]))
    digest.update(hashlib.sha256(b"".join(sorted(canonical(value) for value in visible))).digest())
    return digest.hexdigest()


def digest_of_digests(digests: Iterable[str]) -> str:
    """Return the digest of many seeds: over theirs, in order of seeds."""
    return hashlib.sha256("".join(digests).encode()).hexdigest()


def canonical(value: Any) -> bytes:
    """Return the canonical CBOR of a plain value; dataclasses become arrays of their fields."""
    match value:
        case None:
            return b"\xf6"
        case bool():
            return b"\xf5" if value else b"\xf4"
        case int():
            return _integer(value)
        case float():
            return b"\xfb" + struct.pack(">d", value)
        case str():
            data = str(value).encode("utf-8", "surrogatepass")
            return _head(3, len(data)) + data
        case bytes() | bytearray():
            return _head(2, len(value)) + value
        case list() | tuple():
            return _head(4, len(value)) + b"".join(canonical(item) for item in value)
        case set() | frozenset():
            return _head(4, len(value)) + b"".join(sorted(canonical(item) for item in value))
        case Mapping():
            pairs = sorted((canonical(key), canonical(item)) for key, item in value.items())
            return _head(5, len(pairs)) + b"".join(key + item for key, item in pairs)
    if is_dataclass(value):
        return canonical([getattr(value, field.name) for field in fields(value)])
    return canonical(repr(value))


def _integer(value: int) -> bytes:
    major, number = (0, value) if value >= 0 else (1, -1 - value)
    if number < 1 << 64:
        return _head(major, number)
    data = number.to_bytes((number.bit_length() + 7) // 8, "big")
    return bytes([0xC2 + major]) + _head(2, len(data)) + data


def _head(major: int, number: int) -> bytes:
    for code, bits, limit in ((24, ">BB", 1 << 8), (25, ">BH", 1 << 16), (26, ">BI", 1 << 32), (27, ">BQ", 1 << 64)):
        if number < 24:
            return bytes([major << 5 | number])
        if number < limit:
            return struct.pack(bits, major << 5 | code, number)
    raise ValueError(f"{number} is too long to be a length")
