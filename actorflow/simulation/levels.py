"""What does the journal not tell, but a picture needs?

How many records wait in each channel over virtual time, which batches were taken, how many async calls are under way,
and which requests a process has at its stores.  :func:`watching` makes every universe that is made within it hand its
levels to one :class:`Levels`:

    with watching() as watched:
        play_seed(scenario, 7)
    watched[-1].lines, watched[-1].channels

Watching adds no step to the loop and draws nothing: levels are read at each line of the journal and at each batch, by
plain calls.  So a run that is watched has the digest of one that is not.
"""

from __future__ import annotations

from collections.abc import AsyncIterable, Awaitable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

from actorflow.abc.objects import ObjectStore
from actorflow.model.journal import WeatherStruck

if TYPE_CHECKING:
    from actorflow.model.ids import ActorId
    from actorflow.model.journal import Line
    from actorflow.simulation.process import Process
    from actorflow.simulation.world import Universe

__all__ = ("Actor", "Channel", "Levels", "Request", "Series", "watch", "watching")

T = TypeVar("T")


class Series:
    """A number over virtual time: what it is from each instant on, in microseconds."""

    __slots__ = ("points",)

    def __init__(self) -> None:
        self.points: list[tuple[int, int]] = []

    def set(self, at_us: int, value: int) -> None:
        """Note what the number is from now on."""
        points = self.points
        if points and points[-1][0] == at_us:
            points.pop()
        if (points[-1][1] if points else 0) != value:
            points.append((at_us, value))

    @property
    def most(self) -> int:
        """The most it ever was."""
        return max((value for _, value in self.points), default=0)


class Channel:
    """One input channel of an actor: records that wait in it, and whether a barrier blocks it (0 or 1)."""

    __slots__ = ("blocked", "records")

    def __init__(self) -> None:
        self.records, self.blocked = Series(), Series()


class Actor:
    """One actor of one process: records it holds back, async calls under way, and when it took a batch."""

    __slots__ = ("batches", "calls", "held", "operators")

    def __init__(self, operators: tuple[str, ...]) -> None:
        self.operators = operators
        self.held, self.calls = Series(), Series()
        self.batches: list[int] = []


@dataclass(slots=True)
class Request:
    """What a process asked of a store, from when to when; ``until_us`` is ``None`` while there is no answer."""

    process: str
    operation: str
    name: str
    since_us: int
    until_us: int | None = None
    failed: bool = False


_LASTS = {"partition": "cut off", "pause": "paused", "slow": "slow"}
"""Weather that lasts, and what becomes of whom it strikes."""


class Levels:
    """What was seen of one universe.

    ``times_us`` holds, for each line of the journal, when exactly it was written.  Channels and actors are filed under
    the name of their process and their own, as they were first seen: those of one life in the order of the plan.
    ``blocks``: whether a barrier ever blocked a channel, were it for an instant.  ``machines`` says where a process
    lives, ``spells`` since when weather lasts, by what it does, to whom, and until when.
    """

    def __init__(self, universe: Universe) -> None:
        self._universe = universe
        self._sampled_us = -1
        self.times_us: list[int] = []
        self.channels: dict[tuple[str, str], Channel] = {}
        self.actors: dict[tuple[str, str], Actor] = {}
        self.requests: list[Request] = []
        self.blocks = False
        self.machines: dict[str, str] = {}
        self.spells: dict[tuple[str, str, int], int] = {}
        self._struck: dict[tuple[str, str], int] = {}
        self._lasting: dict[tuple[str, str], int] = {}
        universe.subscribe(self._read)

    @property
    def lines(self) -> list[Line]:
        """The journal so far."""
        return self._universe.journal

    def _now_us(self) -> int:
        return int(self._universe.loop.time() * 1e6 + 1e-3)

    def _read(self, line: Line) -> None:
        now_us = self._now_us()
        self.times_us.append(now_us)
        if isinstance(line.entry, WeatherStruck) and (what := _LASTS.get(line.entry.verb)) is not None:
            self._struck[what, line.entry.target] = now_us
        self._sample(now_us)

    def before_batch(self, process: Process, actor: ActorId) -> None:
        """An actor takes a batch."""
        now_us = self._now_us()
        self._sample(now_us)
        taken = self.actors.get((process.name, str(actor)))
        if taken is not None and (not taken.batches or taken.batches[-1] != now_us):
            taken.batches.append(now_us)

    def _sample(self, now_us: int) -> None:
        seen: dict[tuple[str, str], None] = {}
        for until, slow in self._universe.slowing:
            self._spell("slow", slow.operator, until, now_us)
        for process in self._universe.processes.values():
            handle, name = process.handle, process.name
            self.machines[name] = process.machine.name
            self._spell("paused", name, process.paused_until, now_us)
            self._spell("cut off", name, process.cut_off_until, now_us)
            if handle is None or not process.is_alive:
                continue
            for level in handle.levels:
                actor = self.actors.get((name, level.actor))
                if actor is None:
                    actor = self.actors[name, level.actor] = Actor(level.operators)
                actor.held.set(now_us, level.held)
                actor.calls.set(now_us, level.calls)
                seen[name, level.actor] = None
                for one in level.channels:
                    channel = self.channels.get((name, one.channel))
                    if channel is None:
                        channel = self.channels[name, one.channel] = Channel()
                    channel.records.set(now_us, one.records)
                    channel.blocked.set(now_us, int(one.blocked))
                    self.blocks = self.blocks or one.blocked
                    seen[name, one.channel] = None
        for actor_key, actor in self.actors.items():
            if actor_key not in seen:
                actor.held.set(now_us, 0)
                actor.calls.set(now_us, 0)
        for channel_key, channel in self.channels.items():
            if channel_key not in seen:
                channel.records.set(now_us, 0)
                channel.blocked.set(now_us, 0)

    def _spell(self, what: str, whom: str, until_s: float, now_us: int) -> None:
        until_us = int(until_s * 1e6 + 1e-3)
        if until_us > 0 and self._lasting.get((what, whom), 0) != until_us:
            # Whoever stalls tells nothing meanwhile, so this may be seen late: it began when the weather struck.
            self._lasting[what, whom] = until_us
            self.spells[what, whom, until_us] = min(self._struck.get((what, whom), now_us), until_us)

    def watched(self, store: ObjectStore, process: Process) -> ObjectStore:
        """The same store; what is asked of it is noted."""
        return _Watched(store, process, self)

    async def requested(self, process: Process, operation: str, name: str, answer: Awaitable[T]) -> T:
        """Note a request, and wait for its answer."""
        request = Request(process.name, operation, name, self._now_us(), failed=True)
        self.requests.append(request)
        try:
            found = await answer
        finally:
            request.until_us = self._now_us()
        request.failed = False
        return found


class _Watched(ObjectStore):
    """A store whose requests are noted."""

    def __init__(self, inner: ObjectStore, process: Process, levels: Levels) -> None:
        self._inner, self._process, self._levels = inner, process, levels

    async def put(self, name: str, body: bytes | AsyncIterable[bytes]) -> int:
        return await self._levels.requested(self._process, "put", name, self._inner.put(name, body))

    async def put_if_absent(self, name: str, body: bytes) -> bool:
        return await self._levels.requested(self._process, "put_if_absent", name, self._inner.put_if_absent(name, body))

    async def get(self, name: str, *, start: int = 0, length: int | None = None) -> bytes:
        asked = self._inner.get(name, start=start, length=length)
        return await self._levels.requested(self._process, "get", name, asked)

    async def list(self, prefix: str = "") -> list[str]:
        return await self._levels.requested(self._process, "list", prefix, self._inner.list(prefix))

    async def settle(self, name: str) -> None:
        await self._levels.requested(self._process, "settle", name, self._inner.settle(name))

    async def delete(self, name: str) -> None:
        await self._levels.requested(self._process, "delete", name, self._inner.delete(name))

    async def sweep(self, prefix: str = "") -> int:
        return await self._levels.requested(self._process, "sweep", prefix, self._inner.sweep(prefix))

    async def close(self) -> None:
        await self._inner.close()


_watched: ContextVar[list[Levels] | None] = ContextVar("actorflow_watched", default=None)


@contextmanager
def watching() -> Iterator[list[Levels]]:
    """Watch every universe that is made within; the list that comes back grows by one for each."""
    found: list[Levels] = []
    token = _watched.set(found)
    try:
        yield found
    finally:
        _watched.reset(token)


def watch(universe: Universe) -> Levels | None:
    """Begin to watch a universe, if somebody asked for it."""
    found = _watched.get()
    if found is None:
        return None
    levels = Levels(universe)
    found.append(levels)
    return levels
