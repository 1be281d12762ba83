"""What is left of a file when the power goes?

A disk in memory that keeps two books: what every process of the machine sees (the page cache), and what would survive.
``sync`` of a file moves its bytes from one book to the other, ``sync_folder`` its names; making a folder is durable at
once, as the seam says.  A dying process changes nothing in either book.

When the power is cut, the seed decides how much of the rest survives: of a file's bytes some prefix that is not shorter
than what was synced, of a folder's changed names some first part in the order of the changes.  A rename between two
folders survives whole or not at all.  So a name can survive without its bytes, and bytes without their name.
"""

from __future__ import annotations

import posixpath
from collections.abc import Callable
from functools import lru_cache
from typing import TypeVar

from actorflow.abc.disk import Disk, FileReader, FileWriter
from actorflow.errors import ObjectMissing, StorageFailed
from actorflow.simulation.chance import Chance
from actorflow.simulation.process import Process
from actorflow.simulation.sky import Action

__all__ = ("Inode", "Platter", "SimulatedDisk")

T = TypeVar("T")

_SYNC_US, _QUICK_US = 3_000, 150
_SURVIVAL = (0.0, 0.5, 0.9, 1.0)


class Inode:
    """The bytes of a file; ``synced`` of them would survive."""

    __slots__ = ("content", "synced")

    def __init__(self) -> None:
        self.content = bytearray()
        self.synced = 0


class _Change:
    """Names that change together: (folder, name, what it means from then on)."""

    __slots__ = ("names",)

    def __init__(self, *names: tuple[str, str, Inode | None]) -> None:
        self.names = names

    def touches(self, folders: dict[str, None]) -> bool:
        for folder, _, _ in self.names:  # noqa: SIM110  # asked for every change at every sync
            if folder in folders:
                return True
        return False

    def apply(self, book: dict[str, dict[str, Inode]]) -> None:
        for folder, name, inode in self.names:
            if inode is None:
                book.get(folder, {}).pop(name, None)
            elif folder in book:
                book[folder][name] = inode


class Platter:
    """The disk of one machine, with all of its operations carried out at once."""

    def __init__(self) -> None:
        self._seen: dict[str, dict[str, Inode]] = {"/": {}}
        self._durable: dict[str, dict[str, Inode]] = {"/": {}}
        self._changes: list[_Change] = []

    # ── for whoever tells the story ──

    def files(self) -> dict[str, bytes]:
        """Return all files as a process of the machine sees them, by path."""
        return {
            posixpath.join(folder, name): bytes(self._seen[folder][name].content)
            for folder in sorted(self._seen)
            for name in sorted(self._seen[folder])
        }

    def cut_power(self, chance: Chance) -> None:
        """Forget what was not synced, as far as the seed says."""
        rate = _SURVIVAL[chance.below("how much survives", len(_SURVIVAL))]
        lost: dict[str, None] = {}
        for change in self._changes:
            if not change.touches(lost) and chance.happens("a name survives", rate):
                change.apply(self._durable)
            else:
                lost.update((folder, None) for folder, _, _ in change.names)
        self._changes.clear()
        settled: dict[Inode, None] = {}
        for folder in sorted(self._durable):
            for name in sorted(self._durable[folder]):
                inode = self._durable[folder][name]
                if inode not in settled:
                    settled[inode] = None
                    whole = chance.happens("all bytes survive", rate)
                    end = len(inode.content) if whole else chance.between("bytes", inode.synced, len(inode.content))
                    del inode.content[end:]
                    inode.synced = end
        self._seen = {folder: dict(names) for folder, names in self._durable.items()}

    def wipe(self) -> None:
        """Lose everything."""
        self.__init__()  # type: ignore[misc]

    # ── what a disk does ──

    def find(self, path: str) -> Inode:
        folder, name = _split(path)
        inode = self._seen.get(folder, {}).get(name)
        if inode is None:
            raise ObjectMissing(f"{path}: there is no such file")
        return inode

    def create(self, path: str) -> Inode:
        folder, name = self._free(path)
        inode = Inode()
        self._change((folder, name, inode))
        return inode

    def link(self, source: str, target: str) -> None:
        inode = self.find(source)
        folder, name = self._free(target)
        self._change((folder, name, inode))

    def rename(self, source: str, target: str) -> None:
        inode = self.find(source)
        folder, name = _split(target)
        if folder not in self._seen:
            raise ObjectMissing(f"{target}: the folder it should be in is not there")
        if _normal(target) in self._seen:
            raise StorageFailed(f"{target}: it is a folder")
        if (folder, name) != _split(source) and self._seen[folder].get(name) is not inode:
            self._change((folder, name, inode), (*_split(source), None))

    def remove(self, path: str) -> None:
        folder, name = _split(path)
        if _normal(path) in self._seen:
            raise StorageFailed(f"{path}: it is a folder")
        if name in self._seen.get(folder, {}):
            self._change((folder, name, None))

    def make_folder(self, path: str) -> None:
        path = _normal(path)
        missing = []
        while path not in self._seen:
            folder, name = _split(path)
            if name in self._seen.get(folder, {}):
                raise StorageFailed(f"{path}: it is a file, and a folder is needed there")
            missing.append(path)
            path = folder
        for folder in missing:
            self._seen[folder] = {}
            self._durable[folder] = {}

    def remove_folder(self, path: str) -> None:
        path = _normal(path)
        beneath = f"{path.rstrip('/')}/"
        if path == "/" or self._seen.get(path, True) or any(other.startswith(beneath) for other in self._seen):
            return
        self.sync_folder(path)
        del self._seen[path], self._durable[path]

    def sync_folder(self, path: str) -> None:
        """Make the names of a folder durable, and with them what must not be separated from them."""
        path = _normal(path)
        if path not in self._seen:
            raise ObjectMissing(f"{path}: there is no such folder")
        folders = {path: None}
        taken: list[_Change] = []
        left: list[_Change] = []
        for change in reversed(self._changes):
            if change.touches(folders):
                folders.update((folder, None) for folder, _, _ in change.names)
                taken.append(change)
            else:
                left.append(change)
        for change in reversed(taken):
            change.apply(self._durable)
        self._changes = left[::-1]

    def list_folder(self, path: str) -> list[str]:
        return sorted(self._seen.get(_normal(path), ()))

    def list_tree(self, path: str) -> list[str]:
        path = _normal(path)
        beneath = f"{path.rstrip('/')}/"
        found: list[str] = []
        for folder, names in self._seen.items():
            if folder == path or folder.startswith(beneath):
                found.extend(posixpath.join(folder, name)[len(beneath) :] for name in names)
        return sorted(found)

    def size(self, path: str) -> int | None:
        folder, name = _split(path)
        inode = self._seen.get(folder, {}).get(name)
        return None if inode is None else len(inode.content)

    def _free(self, path: str) -> tuple[str, str]:
        folder, name = _split(path)
        if folder not in self._seen:
            raise ObjectMissing(f"{path}: the folder it should be in is not there")
        if name in self._seen[folder] or _normal(path) in self._seen:
            raise FileExistsError(f"{path}: the name is taken")
        return folder, name

    def _change(self, *names: tuple[str, str, Inode | None]) -> None:
        change = _Change(*names)
        change.apply(self._seen)
        self._changes.append(change)


class SimulatedDisk(Disk):
    """A machine's disk as one process reaches it: after a while, through the weather, and not when it is dead."""

    def __init__(self, process: Process) -> None:
        self._process = process
        self._platter = process.machine.platter

    async def _perform(self, operation: str, path: str, effect: Callable[[], T], most_us: int = _QUICK_US) -> T:
        return await self._process.perform(Action("disk", operation, path), effect, most_us=most_us)

    async def open_reader(self, path: str) -> FileReader:
        inode = await self._perform("open", path, lambda: self._platter.find(path))
        return _SimulatedReader(self._process, path, inode)

    async def create(self, path: str) -> FileWriter:
        inode = await self._perform("create", path, lambda: self._platter.create(path))
        return _SimulatedWriter(self._process, path, inode)

    async def rename(self, source: str, target: str) -> None:
        await self._perform("rename", target, lambda: self._platter.rename(source, target))

    async def link(self, source: str, target: str) -> None:
        await self._perform("link", target, lambda: self._platter.link(source, target))

    async def remove(self, path: str) -> None:
        await self._perform("remove", path, lambda: self._platter.remove(path))

    async def remove_folder(self, path: str) -> None:
        await self._perform("remove_folder", path, lambda: self._platter.remove_folder(path))

    async def make_folder(self, path: str) -> None:
        await self._perform("make_folder", path, lambda: self._platter.make_folder(path))

    async def sync_folder(self, path: str) -> None:
        await self._perform("sync_folder", path, lambda: self._platter.sync_folder(path), _SYNC_US)

    async def list_folder(self, path: str) -> list[str]:
        return await self._perform("list_folder", path, lambda: self._platter.list_folder(path))

    async def list_tree(self, path: str) -> list[str]:
        return await self._perform("list_tree", path, lambda: self._platter.list_tree(path))

    async def size(self, path: str) -> int | None:
        return await self._perform("size", path, lambda: self._platter.size(path))

    async def resolve(self, path: str) -> str:
        self._process.check()
        return _normal(path)


class _SimulatedReader(FileReader):
    def __init__(self, process: Process, path: str, inode: Inode) -> None:
        self._process, self._path, self._inode = process, path, inode
        self._position = 0
        self._closed = False

    async def read(self, size: int) -> bytes:
        def effect() -> bytes:
            return bytes(self._inode.content[self._position : self._position + size])

        self._process.check()
        if self._closed:
            raise StorageFailed(f"{self._path}: the file is closed")
        data = await self._process.perform(Action("disk", "read", self._path), effect, most_us=_QUICK_US)
        self._position += len(data)
        return data

    async def seek(self, position: int) -> None:
        self._process.check()
        self._position = position

    async def close(self) -> None:
        self._closed = True


class _SimulatedWriter(FileWriter):
    def __init__(self, process: Process, path: str, inode: Inode) -> None:
        self._process, self._path, self._inode = process, path, inode
        self._unfinished: str | None = None
        self._closed = False

    async def write(self, data: bytes) -> None:
        content = self._inode.content

        def partly() -> None:
            content.extend(data[: self._process.chance.between("how much is written", 0, max(0, len(data) - 1))])

        await self._whole("write", lambda: content.extend(data), partly, _QUICK_US)

    async def sync(self) -> None:
        def effect() -> None:
            self._inode.synced = len(self._inode.content)

        await self._whole("sync", effect, None, _SYNC_US)

    async def _whole(
        self, what: str, effect: Callable[[], None], partly: Callable[[], None] | None, most_us: int
    ) -> None:
        self._process.check()
        if self._closed:
            raise StorageFailed(f"{self._path}: the file is closed")
        if self._unfinished is not None:
            raise StorageFailed(
                f"{self._path}: an earlier {self._unfinished} did not end well, so what is in the file is not known"
            )
        self._unfinished = what
        action = Action("disk", what, self._path)
        await self._process.perform(action, effect, partly=partly, most_us=most_us)
        self._unfinished = None

    async def close(self) -> None:
        self._closed = True


@lru_cache(maxsize=4_096)
def _normal(path: str) -> str:
    return posixpath.normpath(posixpath.join("/", path)).replace("//", "/")


@lru_cache(maxsize=4_096)
def _split(path: str) -> tuple[str, str]:
    return posixpath.split(_normal(path))
