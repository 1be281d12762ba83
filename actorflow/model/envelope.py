"""Are these the bytes that were written, all of them, and of what kind are they?

Every object that actorflow stores is *sealed*: a magic word, what kind of object it is, the version of that kind, the
length of what follows, and a CRC-32 over all of it.  So a file that was cut short, mixed up with another or damaged is
refused with its name before anything in it is believed.

A checksum guards against accidents, not against somebody who may write to the storage; the codec below it takes care
that such a person can't run code.
"""

from __future__ import annotations

import struct
import zlib
from typing import Final

from actorflow.errors import CorruptObject

__all__ = ("seal", "unseal")

# The first byte is no text and the line feeds suffer when a transfer takes it for text; the last byte is this layout.
_MAGIC: Final = b"\xafflow\r\n"
_LAYOUT: Final = 1
_FIRST: Final = struct.Struct(">7sBB")  # magic, layout, length of the kind
_REST: Final = struct.Struct(">IQI")  # version, length of the body, checksum
_LARGEST_VERSION: Final = 0xFFFF_FFFF


def seal(kind: str, version: int, body: bytes) -> bytes:
    """Return ``body`` with what is needed to know it again."""
    name = kind.encode("ascii")
    assert 0 < len(name) < 256, kind
    assert 0 < version <= _LARGEST_VERSION, version
    head = _FIRST.pack(_MAGIC, _LAYOUT, len(name)) + name
    return b"".join((head, _REST.pack(version, len(body), _checksum(head, version, body)), body))


def unseal(
    kind: str, data: bytes | bytearray | memoryview, name: str, *, newest: int | None = None
) -> tuple[int, bytes]:
    """Return the version and the body of a sealed object; ``name`` is what errors call it.

    ``newest`` is the highest version that the caller can read; ``None`` leaves that to the caller.
    """
    data = bytes(data)
    if len(data) < _FIRST.size:
        if data and not _MAGIC.startswith(data[: len(_MAGIC)]):
            raise CorruptObject(f"{name}: this is no object of actorflow")
        raise CorruptObject(f"{name}: cut short; {len(data)} bytes are not even the head of an object")
    magic, layout, size = _FIRST.unpack_from(data)
    if magic != _MAGIC:
        raise CorruptObject(f"{name}: this is no object of actorflow")
    if layout != _LAYOUT:
        raise CorruptObject(
            f"{name}: sealed in layout {layout}, and this actorflow knows layout {_LAYOUT}: it is damaged, or a newer "
            "actorflow wrote it; read it with that one"
        )
    head = data[: _FIRST.size + size]
    start = len(head) + _REST.size
    if len(data) < start:
        raise CorruptObject(f"{name}: cut short; its head alone has {start} bytes and {len(data)} are there")
    version, length, checksum = _REST.unpack_from(data, len(head))
    body = data[start:]
    if len(body) < length:
        raise CorruptObject(f"{name}: cut short; {length} bytes were written and {len(body)} are there")
    if len(body) > length:
        raise CorruptObject(f"{name}: {len(body) - length} bytes too long; something was appended to it")
    if checksum != _checksum(head, version, body):
        raise CorruptObject(f"{name}: its checksum does not fit; it was damaged after it was written")
    found = head[_FIRST.size :].decode("ascii", "replace")
    if found != kind:
        raise CorruptObject(f"{name}: this is a {found!r}, and a {kind!r} is needed here")
    if newest is not None and version > newest:
        raise CorruptObject(
            f"{name}: version {version} of a {kind!r}, and this actorflow reads up to version {newest}; a newer "
            "actorflow wrote it, so read it with that one"
        )
    return version, body


def _checksum(head: bytes, version: int, body: bytes) -> int:
    return zlib.crc32(body, zlib.crc32(struct.pack(">IQ", version, len(body)), zlib.crc32(head)))
