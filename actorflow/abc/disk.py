"""Files of this machine, with an honest ``sync``: what is not synced may be lost with the power.

Connectors and stores reach files through the world's ``Disk`` alone, so that a storm can tear them.  All paths are
strings as the operating system takes them.  Every method raises ``StorageFailed`` (``ObjectMissing`` where a file
should be and is not), naming the path.
"""

from __future__ import annotations

from abc import ABC, abstractmethod

__all__ = ("Disk", "FileReader", "FileWriter")


class FileReader(ABC):
    """An open file, read from a position of the caller's own."""

    @abstractmethod
    async def read(self, size: int) -> bytes:
        """Return up to ``size`` bytes from the current position and move past them; empty at the end."""

    @abstractmethod
    async def seek(self, position: int) -> None:
        """Move to ``position``, counted in bytes from the start."""

    @abstractmethod
    async def close(self) -> None:
        """Close the file; a second time is fine."""


class FileWriter(ABC):
    """A file that is being written, from its start to its end."""

    @abstractmethod
    async def write(self, data: bytes) -> None:
        """Append ``data``."""

    @abstractmethod
    async def sync(self) -> None:
        """Return once everything written so far would survive a power cut (the name may still need ``sync_folder``)."""

    @abstractmethod
    async def close(self) -> None:
        """Close the file without syncing it; a second time is fine."""


class Disk(ABC):
    """The files of one machine."""

    @abstractmethod
    async def open_reader(self, path: str) -> FileReader:
        """Open an existing file for reading."""

    @abstractmethod
    async def create(self, path: str) -> FileWriter:
        """Create a file that must not exist yet; a name that is taken raises ``FileExistsError``."""

    @abstractmethod
    async def rename(self, source: str, target: str) -> None:
        """Rename within one file system, replacing ``target``; durable after ``sync_folder``."""

    @abstractmethod
    async def link(self, source: str, target: str) -> None:
        """Give a file a second name; a name that is taken raises ``FileExistsError``."""

    @abstractmethod
    async def remove(self, path: str) -> None:
        """Remove a file; one that is absent is fine."""

    @abstractmethod
    async def remove_folder(self, path: str) -> None:
        """Remove an empty folder; one that is absent or not empty is left alone."""

    @abstractmethod
    async def make_folder(self, path: str) -> None:
        """Create a folder and its parents; one that exists is fine.  Durable, parents included, when it returns."""

    @abstractmethod
    async def sync_folder(self, path: str) -> None:
        """Return once the names in the folder would survive a power cut."""

    @abstractmethod
    async def list_folder(self, path: str) -> list[str]:
        """Return the names of the files in a folder, sorted, without those of sub-folders; none when it is absent."""

    @abstractmethod
    async def list_tree(self, path: str) -> list[str]:
        """Return the paths of all files below a folder, relative to it, with ``/`` between parts, sorted."""

    @abstractmethod
    async def size(self, path: str) -> int | None:
        """Return a file's length in bytes, or ``None`` when there is none."""

    @abstractmethod
    async def resolve(self, path: str) -> str:
        """Return the absolute path with every symbolic link followed; the last parts need not exist."""

    async def read_whole(self, path: str) -> bytes:
        """Return all bytes of a file."""
        reader = await self.open_reader(path)
        try:
            pieces = []
            while piece := await reader.read(1 << 20):
                pieces.append(piece)
            return b"".join(pieces)
        finally:
            await reader.close()
