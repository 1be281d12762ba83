"""Which code of users reaches the outside, and how does it come to stand there?

A source or a sink that does not say ``runs_in_simulation`` and every async function or handler: the job is given
stand-ins for them, which ask the passage.  In a recorded run the real thing works behind it, in tasks of its own; in a
replay nothing is there but the answers.  An inbox stands there too, for it is filled from outside.

What an async function awaits, with whichever helpers and in whichever order its tasks end, is its own affair: what it
came to is what enters the run (R158, R159).
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from hashlib import blake2b
from typing import TYPE_CHECKING, Any

from actorflow.abc.connectors import (
    Chunk,
    CommitPermit,
    Prepared,
    Sink,
    SinkContext,
    SinkWriter,
    Source,
    SourceContext,
    TransactionalSink,
    TransactionalWriter,
)
from actorflow.abc.world import World
from actorflow.connectors.inbox import Inbox
from actorflow.connectors.pending_file import Rest
from actorflow.dataflow.job import Job
from actorflow.dataflow.lane import AsyncOperator
from actorflow.errors import InvalidValue
from actorflow.model.codec import Codec
from actorflow.simulation.recording_turns import Door, Operation
from actorflow.simulation.recording_values import NOTHING, PLAIN, Form, chunk_form, outcome_form

if TYPE_CHECKING:
    from actorflow.dataflow.job import OpensCall
    from actorflow.dataflow.primitives import Call
    from actorflow.dataflow.seat import Seat
    from actorflow.simulation.recording_world import Passage

__all__ = ("OutsideWriter", "stand_outside")


def stand_outside(job: Job, codec: Codec, passage: Passage, *, redact: bool) -> None:
    """Put what reaches the outside behind the passage; ``codec`` is the job's."""

    def source(name: str, real: Source[Any]) -> Source[Any]:
        if real.runs_in_simulation and not isinstance(real, Inbox):
            return real
        return _OutsideSource(name, real, passage, codec)

    def sink(name: str, real: Sink[Any]) -> Sink[Any]:
        if real.runs_in_simulation:
            return real
        kind = _OutsideTransactionalSink if isinstance(real, TransactionalSink) else _OutsideSink
        return kind(name, real, _Asks(passage, codec, redact=redact))

    def call(name: str, opens: OpensCall) -> OpensCall:
        return _outside_call(name, opens, passage, codec)

    job.replace_sources(source)
    job.replace_sinks(sink)
    job.replace_calls(call)


# ── async functions and handlers ─────────────────────────────────────────────────────────────


def _outside_call(name: str, opens: OpensCall, passage: Passage, codec: Codec) -> OpensCall:
    def opens_outside(seat: Seat, description: Call) -> AsyncOperator:
        operator = opens(seat, description)
        real = operator.call

        async def call(record: Any, key: Any, token: Any) -> Any:
            asked = Operation(f"call of {name}/{seat.subtask}", (), outcome_form(codec, token))
            return await passage.go_out(asked, lambda: real(record, key, token))

        operator.call = call
        return operator

    return opens_outside


# ── sources ──────────────────────────────────────────────────────────────────────────────────


class _OutsideSource(Source[Any]):
    runs_in_simulation = True

    def __init__(self, name: str, real: Source[Any], passage: Passage, codec: Codec) -> None:
        self.name, self.real, self.passage, self.form = name, real, passage, chunk_form(codec)
        self.bounded, self.splits_at_once = real.bounded, real.splits_at_once
        self.discover_every, self.parallelism = real.discover_every, real.parallelism

    def halt(self) -> bool:
        ends_by_itself: bool = self.passage.say(Operation(f"halt of {self.name}", (), PLAIN), self.real.halt)
        return ends_by_itself

    async def discover(self, world: World) -> Sequence[str]:
        async def work() -> list[str]:
            return list(await self.real.discover(world))

        found: list[str] = await self.passage.go_out(Operation(f"discover of {self.name}", (), PLAIN), work)
        return found

    async def verify(self, world: World, splits: Sequence[str], known: Sequence[str]) -> None:
        await self.passage.go_out(
            Operation(f"verify of {self.name}", (list(splits), list(known)), NOTHING),
            lambda: self.real.verify(world, splits, known),
        )

    async def read(self, context: SourceContext[Any]) -> AsyncIterator[Chunk[Any]]:
        reading = _Reading(self, context)
        try:
            while (chunk := await reading.following()) is not None:
                yield chunk
        finally:
            await reading.close()


class _Reading:
    """A generator of a source, in one task of its own outside from its first step to its last."""

    def __init__(self, source: _OutsideSource, context: SourceContext[Any]) -> None:
        self._source, self._context = source, context
        self._what = f"{source.name}/{context.subtask}, {context.split}"
        self._door: Door | None = None
        self._wanted: asyncio.Future[bool] | None = None
        self._task: asyncio.Task[None] | None = None
        self._has_begun = self._is_over = self._is_closing = False

    # inside

    async def following(self) -> Chunk[Any] | None:
        """The next chunk, or ``None`` at the end."""
        asked = Operation(f"chunk of {self._what}", (), self._source.form)
        try:
            chunk: Chunk[Any] | None = await self._ask(asked, wanted=True)
        except Exception:
            self._is_over = True
            raise
        self._is_over = chunk is None
        return chunk

    async def close(self) -> None:
        """Let the generator end, where it has not."""
        if self._has_begun and not self._is_over:
            self._is_over = self._is_closing = True
            await self._ask(Operation(f"close of {self._what}", (), NOTHING), wanted=False)

    def _ask(self, operation: Operation, *, wanted: bool) -> Door:
        self._has_begun = True
        door = self._door = self._source.passage.begin(operation, self._cancel)
        self._source.passage.aside(self._go_on, wanted)
        return door

    def _cancel(self, message: Any) -> None:
        if self._task is not None:
            self._task.cancel(message)

    # outside

    def _go_on(self, wanted: bool) -> None:
        if self._task is None:
            self._task = asyncio.get_running_loop().create_task(self._run(), name=f"reads {self._what}")
            self._task.add_done_callback(self._ended)
        elif self._task.done():
            self._ended(self._task)
        elif self._wanted is not None and not self._wanted.done():
            self._wanted.set_result(wanted)

    async def _run(self) -> None:
        generator: Any = self._source.real.read(self._context)
        try:
            async for chunk in generator:
                self._wanted = asyncio.get_running_loop().create_future()
                self._answer(chunk)
                if not await self._wanted:
                    return
        finally:
            close = getattr(generator, "aclose", None)
            if close is not None:
                await close()

    def _ended(self, task: asyncio.Task[None]) -> None:
        error = asyncio.CancelledError() if task.cancelled() else task.exception()
        if self._is_closing and isinstance(error, asyncio.CancelledError):
            error = None  # it has ended, which is what was asked for
        self._answer(None, error)

    def _answer(self, value: Any, error: BaseException | None = None) -> None:
        door, self._door = self._door, None
        if door is not None:
            self._source.passage.answer(door, value, error)


# ── sinks ────────────────────────────────────────────────────────────────────────────────────


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
