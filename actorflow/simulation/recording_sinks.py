"""How does a sink that reaches the outside stand there?

The job is given a stand-in whose writers ask the passage for each ``write``, ``flush``, ``prepare`` and so on.  What is
given away is written down by its number and its digest, so that a replay compares it without anybody taking it.

A function that is called once for each record is called straight from the loop of the operator before, as ever: a door
for each record would cost more than the record.  Of it only is written down that it raised, and in which batch.
"""

from __future__ import annotations

from collections.abc import Callable
from hashlib import blake2b
from typing import TYPE_CHECKING, Any

from actorflow.abc.connectors import (
    CommitPermit,
    Prepared,
    Sink,
    SinkContext,
    SinkWriter,
    TransactionalSink,
    TransactionalWriter,
)
from actorflow.abc.world import World
from actorflow.connectors.pending_file import Rest
from actorflow.errors import InvalidValue
from actorflow.model.codec import Codec
from actorflow.simulation.recording_turns import Operation
from actorflow.simulation.recording_values import NOTHING, PLAIN, Form

if TYPE_CHECKING:
    from actorflow.simulation.recording_world import Passage

__all__ = ("OutsideWriter", "stand_in_for_sink")


def stand_in_for_sink(name: str, real: Sink[Any], codec: Codec, passage: Passage, *, redact: bool) -> Sink[Any]:
    """What takes the place of a sink."""
    kind = _OutsideTransactionalSink if isinstance(real, TransactionalSink) else _OutsideSink
    return kind(name, real, _Asks(passage, codec, redact=redact))


class _Asks:
    """How stand-ins of sinks ask: what they give away is written down by its number and its digest."""

    def __init__(self, passage: Passage, codec: Codec, *, redact: bool) -> None:
        self.passage, self._codec, self._redact = passage, codec, redact

    def told_of(self, values: list[Any]) -> tuple[Any, ...]:
        if self._redact:
            return (len(values),)
        try:
            return (len(values), blake2b(self._codec.encode_column(values), digest_size=16).digest())
        except InvalidValue:  # of a class that can't be written down; it is counted
            return (len(values),)

    @property
    def committables(self) -> Form:
        return Form(lambda found: bytes([found[1]]) + self._codec.encode(found[0]), self._take, holds_records=True)

    def _take(self, body: bytes) -> tuple[list[Any], bool]:
        return self._codec.decode(body[1:]), bool(body[0])


class _OutsideSink(Sink[Any]):
    runs_in_simulation = True

    def __init__(self, name: str, real: Sink[Any], asks: _Asks) -> None:
        self.name, self.real, self.asks = name, real, asks
        self.parallelism = real.parallelism
        self.function = getattr(real, "function", None)

    async def open(self, context: SinkContext) -> SinkWriter[Any]:
        opened: list[SinkWriter[Any]] = []

        async def work() -> list[bool]:
            opened.append(await self.real.open(context))
            return [isinstance(opened[0], TransactionalWriter), opened[0].each is not None]

        asked = Operation(f"open of {self.name}/{context.subtask}", (), PLAIN, leaves_a_trace=True)
        commits, has_each = await self.asks.passage.go_out(asked, work)
        kind = _OutsideTransactionalWriter if commits else OutsideWriter
        return kind(f"{self.name}/{context.subtask}", asked.number, opened, self.asks, has_each)


class _OutsideTransactionalSink(_OutsideSink, TransactionalSink[Any]):  # type: ignore[misc]  # its writer has two phases
    async def visible(self, world: World) -> list[Any]:
        assert isinstance(self.real, TransactionalSink)
        return await self.real.visible(world)


class OutsideWriter(SinkWriter[Any]):
    """Stands for the writer of one subtask; ``batches`` counts those that went to a function without a door."""

    def __init__(self, name: str, number: int, opened: list[Any], asks: _Asks, has_each: bool) -> None:
        self.name, self.number = name, number
        self.batches = 0
        self.is_in_batch = False
        self._opened, self._asks, self._has_each = opened, asks, has_each

    @property
    def each(self) -> Any:  # type: ignore[override]  # nobody sets it here
        """The real function itself, so that it costs nothing: who asks for it is about to call it for a batch."""
        if not self._has_each:
            return None
        self.batches += 1
        self.is_in_batch = True
        return self._asks.passage.each(self, self._opened[0].each if self._opened else None)

    async def write(self, records: list[Any]) -> None:
        async def work() -> bool:
            await self._opened[0].write(records)
            return self._opened[0].each is not None

        self._has_each = await self._ask("write", self._asks.told_of(records), work, PLAIN)

    async def flush(self) -> None:
        await self._ask("flush", (), self._real("flush"))

    async def close(self) -> None:
        await self._ask("close", (), self._real("close"))

    def _real(self, name: str) -> Callable[[], Any]:
        """A method of the real writer, which a replay has not."""

        async def work() -> Any:
            return await getattr(self._opened[0], name)()

        return work

    async def _ask(self, name: str, arguments: tuple[Any, ...], work: Callable[[], Any], form: Form = NOTHING) -> Any:
        self.is_in_batch = False
        operation = Operation(f"{name} of {self.name}", arguments, form, leaves_a_trace=True)
        return await self._asks.passage.go_out(operation, work)


class _OutsideTransactionalWriter(OutsideWriter, TransactionalWriter[Any]):
    def prepare(self, checkpoint_id: int) -> Prepared:
        rests: list[Any] = []

        def prepare() -> tuple[list[Any], bool]:
            prepared = self._opened[0].prepare(checkpoint_id)
            rests.append(prepared.rest)
            return prepared.committables, prepared.rest is not None

        asked = Operation(f"prepare of {self.name}", (checkpoint_id,), self._asks.committables, leaves_a_trace=True)
        committables, has_rest = self._asks.passage.say(asked, prepare)
        return Prepared(committables, Rest(lambda: self._rest(rests)) if has_rest else None)

    async def _rest(self, rests: list[Any]) -> None:
        async def work() -> None:
            await rests[0]

        await self._ask("rest", (), work)

    async def commit(self, committables: list[Any], permit: CommitPermit) -> None:
        told = (permit.checkpoint_id, *self._asks.told_of(committables))
        await self._ask("commit", told, lambda: self._opened[0].commit(committables, permit))

    async def discard(self, committables: list[Any]) -> None:
        await self._ask("discard", self._asks.told_of(committables), lambda: self._opened[0].discard(committables))

    async def sweep(self, keep: list[Any]) -> int:
        swept: int = await self._ask("sweep", self._asks.told_of(keep), lambda: self._opened[0].sweep(keep), PLAIN)
        return swept
