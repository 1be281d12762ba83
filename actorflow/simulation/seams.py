"""What does a simulated process see of the world?

The seams of ``abc/world.py``, each of which asks first whether its process still lives.  Time is the loop's, chance is
keyed by process and purpose, stores and disk are the universe's, and the journal of all processes is one.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from urllib.parse import urlsplit

from actorflow.abc.objects import ObjectStore
from actorflow.abc.world import World
from actorflow.errors import InvalidConfig, ObjectMissing, OperatorFailed
from actorflow.model.ids import ActorId
from actorflow.model.journal import Entry, Line
from actorflow.simulation.chance import mix
from actorflow.simulation.disk import SimulatedDisk
from actorflow.simulation.objects import Shelf, ShelfStore, StormyStore
from actorflow.simulation.process import Process
from actorflow.simulation.weather import StruckByWeather
from actorflow.storage import FileStore
from actorflow.storage.opening import folder_of

__all__ = ("world_of",)

_MULTIPLIER, _INCREMENT, _MASK = 6364136223846793005, 1442695040888963407, (1 << 64) - 1


def world_of(process: Process) -> World:
    """Build the seams of a process."""
    disk = SimulatedDisk(process)
    return World(
        clock=_Clock(process),
        entropy=_Entropy(process),
        objects=_Stores(process, disk),
        disk=disk,
        observer=_Observer(process),
        host=process.machine.name,
        process=process.identity,
        load=_Load(process),
    )


class _Clock:
    """Virtual time; the wall clock is the machine's."""

    def __init__(self, process: Process) -> None:
        self.process = self._process = process
        self._loop = process.universe.loop
        self._state = mix(process.chance.key, 2)

    def now_ms(self) -> int:
        if self._process.severed:
            self._process.check()
        return int(self._loop.time() * 1e3 + 1e-6)

    def now_us(self) -> int:
        if self._process.severed:
            self._process.check()
        return int(self._loop.time() * 1e6 + 1e-3)

    def wall_ms(self) -> int:
        self._process.check()
        return self._process.machine.wall_ms()

    def slice_is_over(self) -> bool:
        if self._process.severed:
            self._process.check()
        self._state = (self._state * _MULTIPLIER + _INCREMENT) & _MASK
        return self._state >> 62 != 0  # three times of four

    async def sleep(self, delay_ms: float) -> None:
        self._process.check()
        await asyncio.sleep(delay_ms / 1_000)
        self._process.check()


class _Entropy:
    def __init__(self, process: Process) -> None:
        self._process = process
        self._chance = process.chance.scoped("entropy")

    def uniform(self, purpose: str) -> float:
        self._process.check()
        return self._chance.uniform(purpose)


class _Observer:
    """The journal, and whoever of the process itself reads it."""

    def __init__(self, process: Process) -> None:
        self._process = process
        self._readers: list[Callable[[Line], None]] = []

    def subscribe(self, reader: Callable[[Line], None]) -> Callable[[], None]:
        """Add a reader; the call that comes back removes it."""
        self._readers.append(reader)
        return lambda: self._readers.remove(reader) if reader in self._readers else None

    def announce(self, entry: Entry) -> None:
        process = self._process
        process.check()
        line = process.universe.record(process.name, entry)
        for reader in tuple(self._readers):
            reader(line)
        process.universe.strike_after(line, process)
        process.check()  # the entry may have been the last thing it did


class _Load:
    """Work takes time, and operators fail, as the weather says."""

    def __init__(self, process: Process) -> None:
        self._process = process
        self._state = mix(process.chance.key, 3)

    def before_batch(self, actor: ActorId, operators: tuple[str, ...]) -> Awaitable[None] | None:
        process = self._process
        if process.severed:
            process.check()
        universe = process.universe
        if universe.watched is not None:
            universe.watched.before_batch(process, actor)
        if universe.failing and (fault := universe.failure_for(actor, operators)) is not None:
            universe.weather_struck("raise", str(actor))
            struck = StruckByWeather(f"operator {fault.operator!r} was struck by the weather")
            # Of several operators in one actor, it is this one's code that fails.
            raise OperatorFailed(fault.operator, actor.subtask, cause=f"StruckByWeather: {struck}") from struck
        most_us = universe.batch_us
        delay = 0.0
        if most_us:
            self._state = (self._state * _MULTIPLIER + _INCREMENT) & _MASK
            delay = ((self._state >> 32) * (most_us + 1) >> 32) / 1e6
        if universe.slowing:
            delay += universe.slowness_for(operators) / 1e3
        return universe.loop.nap(delay) if delay else None


class _Stores:
    """Opens stores: this process's memory, folders of its machine, and ``s3://`` for everybody."""

    def __init__(self, process: Process, disk: SimulatedDisk) -> None:
        self._process, self._disk = process, disk
        self._memory = Shelf()

    def open(self, location: str | None) -> ObjectStore:
        self._process.check()
        if location is None:
            return self._on_shelf(self._memory, "", remote=False)
        if location.startswith("s3://"):
            url = urlsplit(location)
            if not url.netloc:
                raise InvalidConfig(f"storage {location!r} names no bucket")
            prefix = url.path.strip("/")
            return self._on_shelf(self._process.universe.shelf(url.netloc), prefix and f"{prefix}/", remote=True)
        return self._in_folder(folder_of(location))

    def _on_shelf(self, shelf: Shelf, prefix: str, *, remote: bool) -> ObjectStore:
        inner = ShelfStore(shelf, self._process, prefix)

        async def tear(name: str, data: bytes) -> None:
            inner.tear(name, data)

        return self._seen(StormyStore(inner, self._process, tear, remote=remote))

    def _in_folder(self, root: str) -> ObjectStore:
        inner = FileStore(root, self._disk)

        async def tear(name: str, data: bytes) -> None:
            # As a writer of an earlier life would have left it: half of the bytes, under a hidden name.
            platter = self._process.machine.platter
            folder, _, last = f"{root}/{name}".rpartition("/")
            platter.make_folder(folder)
            try:
                inode = platter.find(f"{folder}/.0000000000-{len(last)}.part")
            except ObjectMissing:
                inode = platter.create(f"{folder}/.0000000000-{len(last)}.part")
            inode.content[:] = data[: len(data) // 2]

        return self._seen(StormyStore(inner, self._process, tear, remote=False))

    def _seen(self, store: ObjectStore) -> ObjectStore:
        watched = self._process.universe.watched
        return store if watched is None else watched.watched(store, self._process)
