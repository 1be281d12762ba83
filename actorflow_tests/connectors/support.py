"""A process, its clock and its disk, small enough to be seen through; for the tests of connectors."""

from __future__ import annotations

import asyncio
import posixpath
from collections.abc import Callable
from typing import Any

from actorflow.abc.connectors import SinkContext, Source, SourceContext
from actorflow.abc.disk import Disk, FileReader, FileWriter
from actorflow.abc.world import World
from actorflow.errors import ObjectMissing, StorageFailed
from actorflow.model.journal import Entry

__all__ = (
    "Death",
    "DyingDisk",
    "MemoryDisk",
    "TestClock",
    "TestObserver",
    "drain",
    "noting",
    "sink_context",
    "source_context",
    "world_of",
)


class Death(BaseException):
    """The process is gone."""


class TestClock:
    """Time that passes only where somebody sleeps; several sleepers wake in the order of their moments."""

    __test__ = False

    def __init__(self) -> None:
        self.at_ms = 0.0
        self._sleepers: list[tuple[float, int]] = []
        self._count = 0

    def now_ms(self) -> int:
        return int(self.at_ms)

    def now_us(self) -> int:
        return int(self.at_ms * 1_000)

    def wall_ms(self) -> int:
        return 1_700_000_000_000 + int(self.at_ms)

    def slice_is_over(self) -> bool:
        return False

    async def sleep(self, delay_ms: float) -> None:
        self._count += 1
        mine = (self.at_ms + delay_ms, self._count)
        self._sleepers.append(mine)
        try:
            while True:
                await asyncio.sleep(0)
                if min(self._sleepers) == mine:
                    break
        finally:
            self._sleepers.remove(mine)
        self.at_ms = max(self.at_ms, mine[0])


class TestObserver:
    __test__ = False

    def __init__(self) -> None:
        self.entries: list[Entry] = []

    def announce(self, entry: Entry) -> None:
        self.entries.append(entry)

    def named(self, name: str) -> list[Any]:
        return [entry for entry in self.entries if type(entry).__name__ == name]


class TestEntropy:
    __test__ = False

    def uniform(self, purpose: str) -> float:
        return 0.5


class _File:
    def __init__(self) -> None:
        self.data = bytearray()
        self.synced = 0


class MemoryDisk(Disk):
    """Files in memory that forget what was not synced; ``link_names`` are symbolic links."""

    def __init__(self) -> None:
        self.files: dict[str, _File] = {}
        self.durable: dict[str, _File] = {}
        self.links: dict[str, str] = {}
        self.read_only: tuple[str, ...] = ()
        self.reads = 0
        self.refuse: Callable[[str, str], bool] = lambda _operation, _path: False

    def step(self, operation: str, path: str) -> None:
        """Called before each operation."""
        if self.refuse(operation, path):
            raise StorageFailed(f"{operation} {path}: refused by the test")

    def put(self, path: str, data: bytes) -> None:
        """Put a file there, by the way of the test."""
        file = _File()
        file.data[:], file.synced = data, len(data)
        self.files[path] = self.durable[path] = file

    def append(self, path: str, data: bytes) -> None:
        file = self.files[path]
        file.data += data
        file.synced = len(file.data)

    def take(self, path: str) -> None:
        del self.files[path]
        self.durable.pop(path, None)

    def power_cut(self) -> None:
        for file in self.durable.values():
            del file.data[file.synced :]
        self.files = dict(self.durable)

    def data(self, path: str) -> bytes:
        return bytes(self.files[path].data)

    def names(self, folder: str) -> list[str]:
        return sorted(path.removeprefix(folder + "/") for path in self.files if path.startswith(folder + "/"))

    def real(self, path: str) -> str:
        path = posixpath.normpath(posixpath.join("/here", path))
        for _ in range(8):
            for link, target in self.links.items():
                if path == link or path.startswith(link + "/"):
                    path = posixpath.normpath(target + path[len(link) :])
                    break
            else:
                break
        return path

    async def open_reader(self, path: str) -> FileReader:
        self.step("open", path)
        file = self.files.get(self.real(path))
        if file is None:
            raise ObjectMissing(f"{path}: no such file")
        return _Reader(self, file, path)

    async def create(self, path: str) -> FileWriter:
        self.step("create", path)
        name = self.real(path)
        if name.startswith(self.read_only):
            raise StorageFailed(f"{path}: permission denied")
        if name in self.files:
            raise FileExistsError(path)
        self.files[name] = file = _File()
        return _Writer(self, file, path)

    async def rename(self, source: str, target: str) -> None:
        self.step("rename", target)
        if self.real(source) not in self.files:
            raise ObjectMissing(f"{source}: no such file")
        self.files[self.real(target)] = self.files.pop(self.real(source))

    async def link(self, source: str, target: str) -> None:
        self.step("link", target)
        if self.real(target) in self.files:
            raise FileExistsError(target)
        self.files[self.real(target)] = self.files[self.real(source)]

    async def remove(self, path: str) -> None:
        self.step("remove", path)
        self.files.pop(self.real(path), None)

    async def remove_folder(self, path: str) -> None:
        self.step("remove_folder", path)

    async def make_folder(self, path: str) -> None:
        self.step("make_folder", path)

    async def sync_folder(self, path: str) -> None:
        self.step("sync_folder", path)
        folder = self.real(path)
        for names, others in ((self.files, self.durable), (self.durable, self.files)):
            for name in list(names):
                if posixpath.dirname(name) == folder:
                    if others is self.files and name not in others:
                        del names[name]
                    elif others is self.durable:
                        others[name] = names[name]

    async def list_folder(self, path: str) -> list[str]:
        self.step("list_folder", path)
        return [name for name in self.names(self.real(path).rstrip("/")) if "/" not in name]

    async def list_tree(self, path: str) -> list[str]:
        self.step("list_tree", path)
        return self.names(self.real(path).rstrip("/"))

    async def size(self, path: str) -> int | None:
        self.step("size", path)
        file = self.files.get(self.real(path))
        return None if file is None else len(file.data)

    async def resolve(self, path: str) -> str:
        self.step("resolve", path)
        return self.real(path)


class DyingDisk(MemoryDisk):
    """Another process's view of a disk, which dies at its ``step``-th operation, before or after it took effect."""

    def __init__(self, disk: MemoryDisk, steps: int) -> None:
        super().__init__()
        self._disk, self._steps = disk, steps
        self.links = disk.links

    @property
    def files(self) -> dict[str, _File]:
        return self._disk.files

    @files.setter
    def files(self, files: dict[str, _File]) -> None: ...

    @property
    def durable(self) -> dict[str, _File]:
        return self._disk.durable

    @durable.setter
    def durable(self, files: dict[str, _File]) -> None: ...

    def step(self, operation: str, path: str) -> None:
        if self._steps <= 0:
            raise Death(f"before {operation} {path}")
        self._steps -= 1


class _Reader(FileReader):
    def __init__(self, disk: MemoryDisk, file: _File, path: str) -> None:
        self._disk, self._file, self._path, self._at = disk, file, path, 0
        self.is_closed = False

    async def read(self, size: int) -> bytes:
        self._disk.step("read", self._path)
        self._disk.reads += 1
        piece = bytes(self._file.data[self._at : self._at + size])
        self._at += len(piece)
        return piece

    async def seek(self, position: int) -> None:
        self._at = position

    async def close(self) -> None:
        self.is_closed = True


class _Writer(FileWriter):
    def __init__(self, disk: MemoryDisk, file: _File, path: str) -> None:
        self._disk, self._file, self._path = disk, file, path

    async def write(self, data: bytes) -> None:
        try:
            self._disk.step("write", self._path)
        except Death:
            self._file.data += data[: len(data) // 2]  # torn
            raise
        self._file.data += data

    async def sync(self) -> None:
        self._disk.step("sync", self._path)
        self._file.synced = len(self._file.data)

    async def close(self) -> None:
        self._disk.step("close", self._path)


def world_of(disk: Disk | None = None, *, process: str = "p1", clock: TestClock | None = None) -> World:
    return World(
        clock=clock or TestClock(),
        entropy=TestEntropy(),
        objects=None,  # type: ignore[arg-type]  # connectors have no use for it
        disk=disk or MemoryDisk(),
        observer=TestObserver(),
        host="h1",
        process=process,
    )


def source_context(
    world: World, split: str = "0", resume_at: Any = None, *, subtask: int = 0, parallelism: int = 1
) -> SourceContext[Any]:
    return SourceContext(
        operator="read", split=split, resume_at=resume_at, subtask=subtask, parallelism=parallelism, world=world
    )


def sink_context(
    world: World,
    subtask: int = 0,
    *,
    operator: str = "out",
    generation: int = 1,
    home: str = "/store/job",
    restored_checkpoint: int | None = None,
    exactly_once: bool = True,
) -> SinkContext:
    return SinkContext(
        operator=operator,
        subtask=subtask,
        parallelism=2,
        generation=generation,
        home=home,
        world=world,
        restored_checkpoint=restored_checkpoint,
        exactly_once=exactly_once,
    )


def noting(operation: str, notes: list[Any], note: Callable[[str], Any]) -> Callable[[str, str], bool]:
    """What ``refuse`` may be set to, to note operations and refuse none."""

    def refuse(name: str, path: str) -> bool:
        if name == operation:
            notes.append(note(path))
        return False

    return refuse


async def drain(source: Source[Any], world: World, split: str, resume_at: Any = None) -> list[Any]:
    """All records of a split."""
    return [record async for chunk in source.read(source_context(world, split, resume_at)) for record in chunk.records]
