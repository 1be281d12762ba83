"""An async generator as a source, and a plain function as a sink.

    @source
    async def lines(context: SourceContext[int], path: str) -> AsyncIterator[Chunk[str]]:
        ...
        yield Chunk(records, resume_at=position)

``lines("book.txt")`` is then a source with one split.  The generator goes on from ``context.resume_at`` and yields
chunks, each with the position after it; whatever it holds is let go in its own ``finally``.

``call(f)`` is a sink that calls ``f(record)`` once per record, at-least-once: after a restart it is called again for
records since the last checkpoint.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Iterator, Sequence
from contextlib import aclosing
from operator import length_hint
from typing import Any, Concatenate, ParamSpec, TypeVar, overload

from actorflow.abc.connectors import Chunk, Sink, SinkContext, SinkWriter, Source, SourceContext
from actorflow.abc.world import World
from actorflow.errors import InvalidJob, InvalidValue, OperatorFailed

__all__ = ("CallSink", "GeneratorSource", "call", "source")

T = TypeVar("T")
Arguments = ParamSpec("Arguments")
Reader = Callable[Concatenate[SourceContext[Any], Arguments], AsyncIterator[Chunk[T]]]

_SPLIT = "0"


@overload
def source(
    function: Callable[Concatenate[SourceContext[Any], Arguments], AsyncIterator[Chunk[T]]], /
) -> Callable[Arguments, GeneratorSource[T]]: ...
@overload
def source(
    *, bounded: bool = True, runs_in_simulation: bool = False
) -> Callable[
    [Callable[Concatenate[SourceContext[Any], Arguments], AsyncIterator[Chunk[T]]]],
    Callable[Arguments, GeneratorSource[T]],
]: ...
def source(function: Any = None, /, *, bounded: bool = True, runs_in_simulation: bool = False) -> Any:
    """Turn an async generator function into a function that makes sources.

    ``bounded=False`` says that it never ends; ``runs_in_simulation=True`` that it reaches the world only through
    ``context.world``.
    """
    if function is None:
        return functools.partial(_decorate, bounded=bounded, runs_in_simulation=runs_in_simulation)
    return _decorate(function, bounded=bounded, runs_in_simulation=runs_in_simulation)


def _decorate(function: Callable[..., Any], *, bounded: bool, runs_in_simulation: bool) -> Callable[..., Any]:
    if not inspect.isasyncgenfunction(function):
        raise InvalidJob(f"@source: {function!r} must be an async generator: `async def` with `yield Chunk(…)` inside")
    signature = inspect.signature(function)
    parameters = list(signature.parameters.values())
    if not parameters or parameters[0].kind not in (
        inspect.Parameter.POSITIONAL_ONLY,
        inspect.Parameter.POSITIONAL_OR_KEYWORD,
    ):
        raise InvalidJob(f"@source: {function.__qualname__} must take the SourceContext as its first parameter")
    visible = signature.replace(parameters=parameters[1:])

    @functools.wraps(function)
    def make(*args: Any, **kwargs: Any) -> GeneratorSource[Any]:
        visible.bind(*args, **kwargs)  # a wrong argument is a TypeError here and not when the job runs
        return GeneratorSource(function, args, kwargs, bounded=bounded, runs_in_simulation=runs_in_simulation)

    make.__signature__ = visible  # type: ignore[attr-defined]  # what inspect.signature looks for
    return make


class GeneratorSource(Source[T]):
    """An async generator as a source with one split."""

    parallelism = 1

    def __init__(
        self,
        function: Callable[..., Any],
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        *,
        bounded: bool,
        runs_in_simulation: bool,
    ) -> None:
        self.function, self.bounded = function, bounded
        self.runs_in_simulation = runs_in_simulation  # type: ignore[misc]  # here it is said per function
        self._args, self._kwargs = args, kwargs

    def __repr__(self) -> str:
        return f"<source {self.function.__qualname__}>"

    async def discover(self, world: World) -> Sequence[str]:
        """Return the one split."""
        return [_SPLIT]

    async def read(self, context: SourceContext[Any]) -> AsyncIterator[Chunk[T]]:
        """Run the generator from ``context.resume_at``."""
        generator: AsyncGenerator[Chunk[T], None] = self.function(context, *self._args, **self._kwargs)
        async with aclosing(generator):
            async for chunk in generator:
                if type(chunk) is not Chunk:
                    raise InvalidValue(
                        f"operator {context.operator!r}: {self.function.__qualname__} yielded"
                        f" {type(chunk).__qualname__}; yield Chunk([records], resume_at=position)"
                    )
                yield chunk


def call(function: Callable[[T], object] | Callable[[T], Awaitable[object]]) -> CallSink[T]:
    """Call ``function`` once per record; an async one is awaited before the next record."""
    return CallSink(function)


class CallSink(Sink[T]):
    """A user's function as an at-least-once sink."""

    def __init__(self, function: Callable[[T], object]) -> None:
        self.function = function

    async def open(self, context: SinkContext) -> SinkWriter[T]:
        """Open the writer of one subtask."""
        return _CallWriter(self.function, context)


class _CallWriter(SinkWriter[T]):
    def __init__(self, function: Callable[[T], Any], context: SinkContext) -> None:
        self._function, self._context = function, context
        self._waits: bool | None = None  # whether calls are to be awaited; the first answer tells

    async def write(self, records: list[T]) -> None:
        function, remaining = self._function, iter(records)
        try:
            if self._waits is None:
                await self._first(remaining)
                if self._waits is False:
                    self.each = function
            if self._waits:
                for record in remaining:
                    await function(record)
            else:
                for record in remaining:
                    function(record)
        except Exception as error:
            raise _failed(self._context, error, records, length_hint(remaining)) from error

    async def _first(self, remaining: Iterator[T]) -> None:
        for record in remaining:
            answer = self._function(record)
            self._waits = inspect.isawaitable(answer)
            if self._waits:
                await answer
            return


def _failed(context: SinkContext, error: Exception, records: list[Any], remaining: int) -> OperatorFailed:
    """The error with its place; the record itself stays out, for whether it may be shown is not known here."""
    place = f"record {len(records) - remaining} of a batch of {len(records)}"
    return OperatorFailed(context.operator, context.subtask, cause=f"{place} raised {type(error).__name__}: {error}")
