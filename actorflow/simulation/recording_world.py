"""Which world does a recorded run live in, and its replay?

The same one for both: its seams ask the loop that they run on (a :class:`Passage`), and that either asks the real thing
and writes the answer down, or reads it from the recording.  Code of users that runs outside may hold these seams too;
for it they are what they stand for, and nothing is written down.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import AbstractContextManager
from hashlib import blake2b
from typing import TYPE_CHECKING, Any, Protocol

from actorflow.abc.disk import Disk, FileReader, FileWriter
from actorflow.abc.world import Entropy, Observer, World
from actorflow.runtime.real_world import LocalObjectStores
from actorflow.simulation.recording_entries import Kind
from actorflow.simulation.recording_turns import INSIDE, Door, Operation
from actorflow.simulation.recording_values import NOTHING, PLAIN, RAW

if TYPE_CHECKING:
    from actorflow.model.journal import Entry
    from actorflow.simulation.recording_sinks import OutsideWriter

__all__ = ("Passage", "RecordedDisk", "recorded_world")

Work = Callable[[], Coroutine[Any, Any, Any]]


class Passage(Protocol):
    """What leads in and out of a run that is recorded or replayed."""

    def read_clock(self, kind: Kind) -> int: ...

    def slice_is_over(self) -> bool: ...

    def draw(self, draw: Callable[[], float]) -> float: ...

    def begin(self, operation: Operation, cancel: Callable[[Any], object] | None = None) -> Door: ...

    def answer(self, door: Door, value: Any, error: BaseException | None = None) -> None: ...

    def go_out(self, operation: Operation, work: Work) -> Awaitable[Any]: ...

    def say(self, operation: Operation, function: Callable[[], Any]) -> Any: ...

    def aside(self, function: Callable[..., object], *args: Any) -> object: ...

    def each(self, writer: OutsideWriter, real: Any) -> Any: ...

    def announce(self, entry: Entry) -> None: ...

    def listen(self, heard: Callable[[], None]) -> AbstractContextManager[None]: ...


class _Clock:
    def __init__(self, passage: Passage) -> None:
        self._read = passage.read_clock
        self.slice_is_over = passage.slice_is_over

    def now_ms(self) -> int:
        return self._read(Kind.NOW_MS)

    def now_us(self) -> int:
        return self._read(Kind.NOW_US)

    def wall_ms(self) -> int:
        return self._read(Kind.WALL_MS)

    async def sleep(self, delay_ms: float) -> None:
        await asyncio.sleep(delay_ms / 1_000)


class _Entropy:
    def __init__(self, passage: Passage, real: Entropy) -> None:
        self._passage, self._real = passage, real

    def uniform(self, purpose: str) -> float:
        return self._passage.draw(lambda: self._real.uniform(purpose))


class RecordedDisk(Disk):
    """A disk behind the passage.  ``real`` is what does it, and in a replay never asked.

    The name of an operation says whose files it is about: ``disk.…`` those of connectors, ``store.…`` checkpoints.
    """

    def __init__(self, passage: Passage, real: Disk, name: str = "disk", *, redact: bool = False) -> None:
        self._passage, self._real, self._name, self._redact = passage, real, name, redact

    async def open_reader(self, path: str) -> FileReader:
        if not INSIDE.get():
            return await self._real.open_reader(path)
        opened: list[FileReader] = []

        async def work() -> None:
            opened.append(await self._real.open_reader(path))

        operation = Operation(
            f"{self._name}.open_reader", (path,), NOTHING, seen=lambda files, _: files.seen(path, is_there=True)
        )
        await self._passage.go_out(operation, work)
        return _Reader(self, path, operation.number, opened)

    async def create(self, path: str) -> FileWriter:
        if not INSIDE.get():
            return await self._real.create(path)
        opened: list[FileWriter] = []

        async def work() -> None:
            opened.append(await self._real.create(path))

        operation = self.operation("create", (path,), effect=lambda files: files.create(path, self._name))
        await self._passage.go_out(operation, work)
        return _Writer(self, path, operation.number, opened)

    async def rename(self, source: str, target: str) -> None:
        operation = self.operation("rename", (source, target), effect=lambda files: files.rename(source, target))
        await self.ask(operation, lambda: self._real.rename(source, target))

    async def link(self, source: str, target: str) -> None:
        operation = self.operation("link", (source, target), effect=lambda files: files.link(source, target))
        await self.ask(operation, lambda: self._real.link(source, target))

    async def remove(self, path: str) -> None:
        operation = self.operation("remove", (path,), effect=lambda files: files.remove(path))
        await self.ask(operation, lambda: self._real.remove(path))

    async def remove_folder(self, path: str) -> None:
        await self.ask(self.operation("remove_folder", (path,)), lambda: self._real.remove_folder(path))

    async def make_folder(self, path: str) -> None:
        await self.ask(self.operation("make_folder", (path,)), lambda: self._real.make_folder(path))

    async def sync_folder(self, path: str) -> None:
        await self.ask(self.operation("sync_folder", (path,)), lambda: self._real.sync_folder(path))

    async def list_folder(self, path: str) -> list[str]:
        operation = Operation(f"{self._name}.list_folder", (path,), PLAIN)
        found: list[str] = await self.ask(operation, lambda: self._real.list_folder(path))
        return found

    async def list_tree(self, path: str) -> list[str]:
        operation = Operation(f"{self._name}.list_tree", (path,), PLAIN)
        found: list[str] = await self.ask(operation, lambda: self._real.list_tree(path))
        return found

    async def size(self, path: str) -> int | None:
        operation = Operation(
            f"{self._name}.size",
            (path,),
            PLAIN,
            seen=lambda files, size: files.seen(path, is_there=size is not None),
        )
        found: int | None = await self.ask(operation, lambda: self._real.size(path))
        return found

    async def resolve(self, path: str) -> str:
        operation = Operation(f"{self._name}.resolve", (path,), PLAIN)
        found: str = await self.ask(operation, lambda: self._real.resolve(path))
        return found

    # ── for the files that it opened ─────────────────────────────────────────────────────────

    def operation(
        self, name: str, arguments: tuple[Any, ...], *, effect: Callable[[Any], object] | None = None
    ) -> Operation:
        """An operation that leaves a trace and gives nothing."""
        return Operation(f"{self._name}.{name}", arguments, NOTHING, leaves_a_trace=True, effect=effect)

    async def ask(self, operation: Operation, work: Work) -> Any:
        """Let it be done outside; from outside, just do it."""
        if not INSIDE.get():
            return await work()
        return await self._passage.go_out(operation, work)

    def reading(self, number: int, path: str, position: int, size: int) -> Operation:
        """The operation of reading some bytes."""
        return Operation(
            f"{self._name}.read",
            (number, position, size),
            RAW,
            substitute=lambda files, length: files.read(path, position, length),
        )

    def told_of(self, data: bytes) -> tuple[Any, ...]:
        """How bytes that are written are written down."""
        return (len(data),) if self._redact else (len(data), blake2b(data, digest_size=16).digest())


class _Reader(FileReader):
    """An open file; its position is kept here, so that going to one asks nobody."""

    def __init__(self, disk: RecordedDisk, path: str, number: int, opened: list[FileReader]) -> None:
        self._disk, self._path, self._number, self._opened = disk, path, number, opened
        self._position = 0
        self._is_sought = False

    async def read(self, size: int) -> bytes:
        is_sought, self._is_sought = self._is_sought, True  # who was cancelled does not know where it stands

        async def work() -> bytes:
            (real,) = self._opened
            if is_sought:
                await real.seek(self._position)
            return await real.read(size)

        operation = self._disk.reading(self._number, self._path, self._position, size)
        data: bytes = await self._disk.ask(operation, work)
        self._is_sought = False
        self._position += len(data)
        return data

    async def seek(self, position: int) -> None:
        self._position, self._is_sought = position, True

    async def close(self) -> None:
        async def work() -> None:
            (real,) = self._opened
            await real.close()

        await self._disk.ask(Operation("close", (self._number,), NOTHING), work)


class _Writer(FileWriter):
    def __init__(self, disk: RecordedDisk, path: str, number: int, opened: list[FileWriter]) -> None:
        self._disk, self._path, self._number, self._opened = disk, path, number, opened

    async def write(self, data: bytes) -> None:
        path = self._path
        operation = self._disk.operation(
            "write", (self._number, *self._disk.told_of(data)), effect=lambda files: files.write(path, data)
        )
        await self._disk.ask(operation, lambda: self._opened[0].write(data))

    async def sync(self) -> None:
        async def work() -> None:
            await self._opened[0].sync()

        await self._disk.ask(self._disk.operation("sync", (self._number,)), work)

    async def close(self) -> None:
        async def work() -> None:
            await self._opened[0].close()

        await self._disk.ask(Operation("close", (self._number,), NOTHING), work)


def recorded_world(
    passage: Passage,
    *,
    disk: Disk,
    entropy: Entropy,
    observer: Observer,
    host: str,
    process: str,
    redact: bool,
) -> World:
    """The world of a recorded run, or of its replay."""
    return World(
        clock=_Clock(passage),
        entropy=_Entropy(passage, entropy),
        objects=LocalObjectStores(RecordedDisk(passage, disk, "store", redact=redact)),
        disk=RecordedDisk(passage, disk, redact=redact),
        observer=observer,
        host=host,
        process=process,
        owns_process=True,
    )
