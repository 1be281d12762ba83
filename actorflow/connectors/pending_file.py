"""One file that is written, cut at a barrier, and made durable before the snapshot counts.

Bytes are kept until there are enough of them for one call to the disk; length and digest are known at any moment, so
the cut itself does not wait.

A write or a sync that failed, or that never came back, leaves nobody knowing what is in the file.  It is never tried
again on the same file: the attempt must end, and the rows come again from the last checkpoint.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Awaitable, Callable, Coroutine, Generator
from typing import Any

from actorflow.abc.disk import Disk, FileWriter
from actorflow.errors import StorageFailed

__all__ = ("BUFFER_BYTES", "PendingFile", "Rest", "digest_of")

BUFFER_BYTES = 256 * 1024


class PendingFile:
    """What was written between two barriers."""

    def __init__(self, disk: Disk, folder: str, name: str) -> None:
        self._disk, self._folder, self.name = disk, folder, name
        self.path = f"{folder}/{name}"
        self._buffer: list[bytes] = []
        self._buffered = 0
        self._digest = hashlib.sha256()
        self._file: FileWriter | None = None
        self._is_torn = False  # a write was begun and has not come back
        self._turn = asyncio.Lock()  # two checkpoints under way may both want to finish an earlier file
        self._is_durable = False
        self.length = 0
        self.failure: StorageFailed | None = None

    @property
    def digest(self) -> bytes:
        """SHA-256 of everything added so far."""
        return self._digest.digest()

    @property
    def is_full(self) -> bool:
        """Whether there is enough for one call to the disk."""
        return self._buffered >= BUFFER_BYTES

    def add(self, data: bytes) -> None:
        """Take some bytes; does not wait."""
        self._buffer.append(data)
        self._buffered += len(data)
        self.length += len(data)
        self._digest.update(data)

    async def drain(self) -> None:
        """Give what is buffered to the disk."""
        if self._is_torn:
            raise StorageFailed(f"{self.path}: a write to it never came back, so what it holds is not known")
        if not self._buffer:
            return
        self._is_torn = True
        if self._file is None:
            try:
                self._file = await self._disk.create(self.path)
            except FileExistsError as error:
                raise StorageFailed(f"{self.path} is there already: does another process write as this one?") from error
        data = b"".join(self._buffer)
        self._buffer, self._buffered = [], 0
        await self._file.write(data)
        self._is_torn = False

    async def finish(self) -> None:
        """Return once the file would survive a power cut, name and all; a second time is fine."""
        async with self._turn:
            if self._is_durable:
                return
            if self.failure is not None:
                raise StorageFailed(f"{self.path} could not be finished before: {self.failure}")
            try:
                await self.drain()
                assert self._file is not None
                await self._file.sync()
                await self._file.close()
                await self._disk.sync_folder(self._folder)
            except StorageFailed as error:
                self.failure = error
                raise
            self._is_durable = True

    async def let_go(self, *, remove: bool) -> None:
        """Close the file, and remove it where nothing will ever ask for it."""
        try:
            if self._file is not None:
                await self._file.close()
            if remove and (self._file is not None or self._is_torn):
                await self._disk.remove(self.path)
        except StorageFailed:
            pass  # the next generation sweeps it away


class Rest(Awaitable[None]):
    """What is to be awaited before a snapshot counts; nothing happens, and nothing is missed, if nobody does."""

    def __init__(self, function: Callable[[], Coroutine[Any, Any, None]]) -> None:
        self._function = function

    def __await__(self) -> Generator[Any, None, None]:
        return self._function().__await__()


async def digest_of(disk: Disk, path: str) -> bytes:
    """SHA-256 of a file."""
    digest = hashlib.sha256()
    reader = await disk.open_reader(path)
    try:
        while piece := await reader.read(BUFFER_BYTES):
            digest.update(piece)
    finally:
        await reader.close()
    return digest.digest()
