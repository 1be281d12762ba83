"""What can an object store do to those who use it?

A :class:`Shelf` holds what everybody sees.  :class:`ShelfStore` is one process's connection to it: requests take their
time, are carried out whole at one instant, and answers take their time too; a request of a process that has died may
still arrive.  Listing is consistent, because fencing needs it and real stores give it.

:class:`StormyStore` puts the weather around any store, also one of files on a simulated disk: refused, half written
under a temporary name, written but the answer is lost, slow, out of reach.  Half an object under its own name is
corruption and not weather, so that never happens.
"""

from __future__ import annotations

from collections.abc import AsyncIterable, Awaitable, Callable
from functools import partial
from typing import TypeVar

from actorflow.abc.objects import ObjectStore
from actorflow.errors import ObjectMissing, StorageFailed
from actorflow.simulation.process import Process
from actorflow.simulation.sky import Action, at_moment
from actorflow.simulation.weather import LoseAnswer, Moment, Service, SlowObjects, TearObjects, Way
from actorflow.storage.memory import collect, cut
from actorflow.storage.names import check_name, check_prefix

__all__ = ("Shelf", "ShelfStore", "StormyStore")

T = TypeVar("T")

_REQUEST_US, _ANSWER_US = 4_000, 2_000
_TIMEOUT_MS = (1_000, 5_000)
"""How long a process waits for a store that is out of reach."""

_LONGEST_DOOM = 9
"""How many operations on disk one on objects consists of, about."""


class Shelf:
    """What is in a store: whole objects, and by name what was begun and never finished."""

    def __init__(self) -> None:
        self.objects: dict[str, bytes] = {}
        self.unfinished: dict[int, tuple[str, bytes]] = {}
        self._begun = 0

    def begin(self, name: str, data: bytes) -> int:
        """Keep a part of an object where nobody looks."""
        self._begun += 1
        self.unfinished[self._begun] = (name, data)
        return self._begun


class ShelfStore(ObjectStore):
    """One process's connection to a shelf; ``prefix`` is the part of all names that its location gives."""

    def __init__(self, shelf: Shelf, process: Process, prefix: str = "") -> None:
        self._shelf, self._process, self._prefix = shelf, process, prefix

    async def _ask(
        self, operation: str, name: str, effect: Callable[[], T], partly: Callable[[], None] | None = None
    ) -> T:
        answer_us = self._process.chance.between("answer", 1, _ANSWER_US)
        return await self._process.perform(
            Action("wire", operation, name), effect, partly=partly, most_us=_REQUEST_US, answer_us=answer_us
        )

    async def put(self, name: str, body: bytes | AsyncIterable[bytes]) -> int:
        check_name(name)
        shelf, full = self._shelf, self._prefix + name
        if isinstance(body, (bytes, bytearray, memoryview)):
            data = bytes(body)

            def publish() -> int:
                shelf.objects[full] = data
                return len(data)

            return await self._ask("put", name, publish, lambda: self.tear(name, data))
        number = await self._ask("begin", name, lambda: shelf.begin(full, b""))
        try:
            async for piece in body:
                await self._ask("append", name, partial(self._append, number, piece))
            return await self._ask("publish", name, lambda: self._publish(number))
        except BaseException:
            if self._process.is_alive:  # the dead can't clean up
                shelf.unfinished.pop(number, None)
            raise

    def _append(self, number: int, piece: bytes) -> None:
        if (begun := self._shelf.unfinished.get(number)) is not None:
            self._shelf.unfinished[number] = (begun[0], begun[1] + piece)

    def _publish(self, number: int) -> int:
        begun = self._shelf.unfinished.pop(number, None)
        if begun is None:
            raise StorageFailed("the upload was given up before it was published")
        self._shelf.objects[begun[0]] = begun[1]
        return len(begun[1])

    async def put_if_absent(self, name: str, body: bytes) -> bool:
        check_name(name)
        shelf, full, data = self._shelf, self._prefix + name, bytes(body)

        def publish() -> bool:
            return shelf.objects.setdefault(full, data) is data

        return await self._ask("put_if_absent", name, publish, lambda: self.tear(name, data))

    async def get(self, name: str, *, start: int = 0, length: int | None = None) -> bytes:
        check_name(name)

        def read() -> bytes:
            data = self._shelf.objects.get(self._prefix + name)
            if data is None:
                raise ObjectMissing(f"{name}: there is no such object in the store")
            return cut(name, data, start, length)

        return await self._ask("get", name, read)

    async def list(self, prefix: str = "") -> list[str]:
        check_prefix(prefix)
        full, cut_off = self._prefix + prefix, len(self._prefix)

        def read() -> list[str]:
            return sorted(name[cut_off:] for name in self._shelf.objects if name.startswith(full))

        return await self._ask("list", prefix, read)

    async def delete(self, name: str) -> None:
        check_name(name)
        await self._ask("delete", name, lambda: self._shelf.objects.pop(self._prefix + name, None))

    def tear(self, name: str, data: bytes) -> None:
        """Leave half of an object where nobody looks."""
        self._shelf.begin(self._prefix + name, data[: len(data) // 2])


class StormyStore(ObjectStore):
    """A store in the weather.

    ``remote`` says that a partition cuts it off; ``tear`` leaves half of an object under a temporary name.
    """

    def __init__(
        self, inner: ObjectStore, process: Process, tear: Callable[[str, bytes], Awaitable[None]], *, remote: bool
    ) -> None:
        self._inner, self._process, self._tear, self._remote = inner, process, tear, remote

    async def put(self, name: str, body: bytes | AsyncIterable[bytes]) -> int:
        return await self._weathered("put", name, lambda: self._inner.put(name, body), body)

    async def put_if_absent(self, name: str, body: bytes) -> bool:
        return await self._weathered("put_if_absent", name, lambda: self._inner.put_if_absent(name, body), body)

    async def get(self, name: str, *, start: int = 0, length: int | None = None) -> bytes:
        return await self._weathered("get", name, lambda: self._inner.get(name, start=start, length=length))

    async def list(self, prefix: str = "") -> list[str]:
        return await self._weathered("list", prefix, lambda: self._inner.list(prefix))

    async def settle(self, name: str) -> None:
        self._process.check()
        await self._inner.settle(name)

    async def delete(self, name: str) -> None:
        await self._weathered("delete", name, lambda: self._inner.delete(name))

    async def sweep(self, prefix: str = "") -> int:
        return await self._weathered("sweep", prefix, lambda: self._inner.sweep(prefix))

    async def close(self) -> None:
        self._process.check()
        await self._inner.close()

    async def _weathered(
        self,
        operation: str,
        name: str,
        call: Callable[[], Awaitable[T]],
        body: bytes | AsyncIterable[bytes] | None = None,
    ) -> T:
        process = self._process
        process.check()
        universe = process.universe
        action = Action("objects", operation, name)
        due = universe.sky.during(action, process.name)
        if due:
            universe.strike_all(at_moment(due, Moment.BEFORE), process)
            process.check()
        if self._remote and process.cut_off and process.unreachable(Service.STORE) in {Way.BOTH, Way.OUT}:
            await self._give_up(action)
        fault = universe.sky.fault(action, process.name)
        if fault is not None:
            universe.weather_struck(_verb(fault), name)
            if isinstance(fault, SlowObjects):
                await process.world.clock.sleep(fault.by_ms)
            elif not isinstance(fault, LoseAnswer):
                if isinstance(fault, TearObjects) and body is not None:
                    await self._tear(name, await collect(body))
                raise StorageFailed(f"{name}: {operation} was refused by the weather")
        if due and (torn := at_moment(due, Moment.TORN)):
            if body is not None:
                await self._tear(name, await collect(body))
            universe.strike_all(torn, process)
            process.check()
        during = at_moment(due, Moment.DURING) if due else ()
        if during:
            process.doom = (process.chance.below("doom", _LONGEST_DOOM), during)
        answer = await call()
        if during and process.doom is not None:  # it was over sooner than we thought
            process.doom = None
            universe.strike_all(during, process)
        if due:
            universe.strike_all(at_moment(due, Moment.UNANSWERED), process)
        process.check()
        if self._remote and process.cut_off and process.unreachable(Service.STORE) in {Way.BOTH, Way.IN}:
            await self._give_up(action)
        if isinstance(fault, LoseAnswer):
            raise StorageFailed(f"{name}: the answer to {operation} was lost by the weather")
        if due:
            universe.strike_soon(at_moment(due, Moment.AFTER), process)
        return answer

    async def _give_up(self, action: Action) -> None:
        waits_ms = self._process.chance.between("timeout", *_TIMEOUT_MS)
        await self._process.world.clock.sleep(waits_ms)
        raise StorageFailed(f"{action.name}: {action.operation} got no answer within {waits_ms} ms: a partition")


def _verb(fault: object) -> str:
    """Return the verb of the weather under which a fault of a store is counted."""
    if isinstance(fault, SlowObjects):
        return "slow"
    if isinstance(fault, LoseAnswer):
        return "lose_answer"
    return "tear" if isinstance(fault, TearObjects) else "fail"
