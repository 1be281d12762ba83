"""What are the bytes of a text file, compressed or not?

Two streams with one shape over the ``FileReader`` of the world's disk: plain bytes, and the text inside gzip (several
members after one another are one text).  A position always counts bytes of the text.  In a plain file ``skip`` seeks;
in a compressed one it reads again, because there is no other way.

Both may be asked again after their end, which a followed file needs.
"""

from __future__ import annotations

import zlib
from typing import Protocol

from actorflow.abc.disk import Disk, FileReader
from actorflow.errors import CorruptObject

__all__ = ("ByteStream", "open_stream")

BLOCK_BYTES = 128 * 1024

_MAGIC = b"\x1f\x8b"


class ByteStream(Protocol):
    """The bytes of a text, from its start to its end."""

    file_position: int
    """How many bytes of the file itself were read: what its size is compared with."""

    async def read(self) -> bytes:
        """The next bytes; empty at the end, as far as it is there now."""
        ...

    async def skip(self, count: int) -> bool:
        """Leave out ``count`` bytes; ``False`` when the text ends before."""
        ...

    def check_end(self) -> None:
        """Raise ``CorruptObject`` when a text that ends here is not whole."""
        ...

    async def close(self) -> None:
        """Close the file."""
        ...


async def open_stream(disk: Disk, path: str, *, may_grow: bool) -> ByteStream | None:
    """Open a text; ``None`` when it may grow and is too short to say whether it is compressed."""
    reader = await disk.open_reader(path)
    stream: ByteStream | None = None
    try:
        first = await reader.read(BLOCK_BYTES)
        if first == _MAGIC[:1]:
            first += await reader.read(BLOCK_BYTES)
        is_open = may_grow and (first == _MAGIC[:1] or (not first and path.endswith(".gz")))
        if first.startswith(_MAGIC):
            stream = _GzipStream(reader, first, path)
        elif path.endswith(".gz") and first and not is_open:
            raise CorruptObject(f"{path}: its name ends in .gz, but it is not a gzip file")
        elif not is_open:
            stream = _PlainStream(disk, path, reader, first)
        return stream
    finally:
        if stream is None:
            await reader.close()


class _PlainStream:
    def __init__(self, disk: Disk, path: str, reader: FileReader, first: bytes) -> None:
        self._disk, self._path, self._reader = disk, path, reader
        self._first = first
        self.file_position = 0

    async def read(self) -> bytes:
        block, self._first = self._first or await self._reader.read(BLOCK_BYTES), b""
        self.file_position += len(block)
        return block

    async def skip(self, count: int) -> bool:
        self._first = b""
        self.file_position += count
        size = await self._disk.size(self._path)  # because seeking beyond the end is no error
        if size is None or size < self.file_position:
            return False
        await self._reader.seek(self.file_position)
        return True

    def check_end(self) -> None:
        """Any end is a good one."""

    async def close(self) -> None:
        await self._reader.close()


class _GzipStream:
    def __init__(self, reader: FileReader, first: bytes, path: str) -> None:
        self._reader, self._path = reader, path
        self._input = first  # read from the file and not yet taken by the decompressor
        self._member: zlib._Decompress | None = None  # None between two members
        self._is_full = False  # whether the decompressor may hold text without any more input
        self._left = b""  # text that was read to skip what stands before it
        self.file_position = len(first)

    async def read(self) -> bytes:
        if self._left:
            text, self._left = self._left, b""
            return text
        while True:
            if not self._input and not self._is_full:
                self._input = await self._reader.read(BLOCK_BYTES)
                self.file_position += len(self._input)
                if not self._input:
                    return b""
            if text := self._expand():
                return text

    def _expand(self) -> bytes:
        """Text from the input at hand, a block at most; empty when it gave none."""
        if self._member is None:
            self._input = self._input.lstrip(b"\0")  # padding between members
            if not self._input:
                return b""
            self._member = zlib.decompressobj(wbits=31)
        try:
            text = self._member.decompress(self._input, BLOCK_BYTES)
        except zlib.error as error:
            raise CorruptObject(
                f"{self._path}: its gzip data is damaged before byte {self.file_position}: {error}"
            ) from error
        if self._member.eof:
            self._input, self._member, self._is_full = self._member.unused_data, None, False
        else:
            self._input, self._is_full = self._member.unconsumed_tail, len(text) == BLOCK_BYTES
        return text

    async def skip(self, count: int) -> bool:
        while count:
            text = await self.read()
            if not text:
                return False
            if len(text) > count:
                text, self._left = text[:count], text[count:]
            count -= len(text)
        return True

    def check_end(self) -> None:
        if self._member is not None:
            raise CorruptObject(f"{self._path}: its gzip data ends in the middle; the file is not whole")

    async def close(self) -> None:
        await self._reader.close()
