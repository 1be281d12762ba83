"""Which code of users reaches the outside, and how does it come to stand there?

A source or a sink that does not say ``runs_in_simulation`` and every async function or handler: the job is given
stand-ins for them, which ask the passage.  In a recorded run the real thing works behind it, in tasks of its own; in a
replay nothing is there but the answers.  An inbox stands there too, for it is filled from outside.

What an async function awaits, with whichever helpers and in whichever order its tasks end, is its own affair: what it
came to is what enters the run (R158, R159).
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from typing import TYPE_CHECKING, Any

from actorflow.abc.connectors import Chunk, Sink, Source, SourceContext
from actorflow.abc.world import World
from actorflow.connectors.inbox import Inbox
from actorflow.dataflow.job import Job
from actorflow.dataflow.lane import AsyncOperator
from actorflow.model.codec import Codec
from actorflow.simulation.recording_sinks import stand_in_for_sink
from actorflow.simulation.recording_turns import Door, Operation
from actorflow.simulation.recording_values import NOTHING, PLAIN, chunk_form, outcome_form

if TYPE_CHECKING:
    from actorflow.dataflow.job import OpensCall
    from actorflow.dataflow.primitives import Call
    from actorflow.dataflow.seat import Seat
    from actorflow.simulation.recording_world import Passage

__all__ = ("stand_outside",)


def stand_outside(job: Job, codec: Codec, passage: Passage, *, redact: bool) -> None:
    """Put what reaches the outside behind the passage; ``codec`` is the job's."""

    def source(name: str, real: Source[Any]) -> Source[Any]:
        if real.runs_in_simulation and not isinstance(real, Inbox):
            return real
        return _OutsideSource(name, real, passage, codec)

    def sink(name: str, real: Sink[Any]) -> Sink[Any]:
        if real.runs_in_simulation:
            return real
        return stand_in_for_sink(name, real, codec, passage, redact=redact)

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
