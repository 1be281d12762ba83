from __future__ import annotations

import asyncio
import inspect
from collections.abc import AsyncIterator
from typing import Any

import pytest

from actorflow.abc.connectors import Chunk, SourceContext
from actorflow.connectors import function
from actorflow.errors import InvalidJob, InvalidValue, OperatorFailed
from actorflow_tests.connectors.support import drain, sink_context, source_context, world_of

CLOSED: list[str] = []


@function.source
async def words(context: SourceContext[int], text: str, *, repeat: int = 1) -> AsyncIterator[Chunk[str]]:
    """Words of a text."""
    every = text.split() * repeat
    try:
        for index in range(context.resume_at or 0, len(every)):
            yield Chunk([every[index]], resume_at=index + 1)
    finally:
        CLOSED.append(text)


def test_an_async_generator_is_a_source_with_one_split() -> None:
    source = words("a b", repeat=2)
    assert asyncio.run(source.discover(world_of())) == ["0"]
    assert asyncio.run(drain(source, world_of(), "0")) == ["a", "b", "a", "b"]
    assert asyncio.run(drain(source, world_of(), "0", 3)) == ["b"]
    assert source.bounded
    assert not source.runs_in_simulation
    assert source.parallelism == 1


def test_it_looks_like_the_function_without_the_context() -> None:
    assert list(inspect.signature(words).parameters) == ["text", "repeat"]
    assert words.__doc__ == "Words of a text."
    assert "words" in repr(words("a"))


def test_a_wrong_argument_is_refused_when_the_job_is_built() -> None:
    for arguments in ({}, {"text": "a", "again": 1}):
        with pytest.raises(TypeError):
            words(**arguments)  # type: ignore[arg-type]


def test_what_it_is_can_be_said() -> None:
    @function.source(bounded=False, runs_in_simulation=True)
    async def ticks(context: SourceContext[int]) -> AsyncIterator[Chunk[int]]:
        yield Chunk([1], resume_at=1)

    source = ticks()
    assert not source.bounded
    assert source.runs_in_simulation
    assert not words("a").runs_in_simulation


def test_whatever_the_generator_holds_is_let_go_when_the_reader_leaves() -> None:
    async def story() -> None:
        CLOSED.clear()
        reading: Any = words("x y").read(source_context(world_of()))
        await anext(reading)
        assert CLOSED == []
        await reading.aclose()
        assert CLOSED == ["x y"]

    asyncio.run(story())


def test_something_else_than_a_chunk_is_refused_with_what_to_write() -> None:
    @function.source
    async def wrong(context: SourceContext[int]) -> AsyncIterator[Any]:
        yield 7

    with pytest.raises(InvalidValue, match=r"operator 'read': .*wrong yielded int; yield Chunk\(\[records\]"):
        asyncio.run(drain(wrong(), world_of(), "0"))


def test_a_function_of_another_kind_is_refused() -> None:
    async def coroutine(context: Any) -> None: ...

    def generator(context: Any) -> Any:
        yield 1

    async def without_context() -> Any:
        yield 1

    async def with_keywords_only(*, context: Any) -> Any:
        yield 1

    others: list[Any] = [coroutine, generator, len]
    for kind in others:
        with pytest.raises(InvalidJob, match="async generator"):
            function.source(kind)
    contextless: list[Any] = [without_context, with_keywords_only]
    for kind in contextless:
        with pytest.raises(InvalidJob, match="first parameter"):
            function.source(kind)


# ── sinks ────────────────────────────────────────────────────────────────────────────────────


def test_a_function_is_called_once_per_record_in_order() -> None:
    async def story() -> None:
        rows: list[int] = []
        writer = await function.call(rows.append).open(sink_context(world_of()))
        await writer.write([1, 2])
        await writer.write([])
        await writer.write([3])
        assert rows == [1, 2, 3]

    asyncio.run(story())


@pytest.mark.parametrize("is_async", [False, True])
def test_r114_a_function_that_raises_is_named_with_the_place_and_order_is_kept(*, is_async: bool) -> None:
    async def story() -> None:
        rows: list[int] = []

        def take(record: int) -> None:
            if record == 7:
                raise ValueError("no sevens")
            rows.append(record)

        async def take_later(record: int) -> None:
            await asyncio.sleep(0)
            take(record)

        sink: Any = function.call(take_later if is_async else take)
        writer = await sink.open(sink_context(world_of(), 2))
        with pytest.raises(
            OperatorFailed, match=r"operator 'out', subtask 2: record 7 of a batch of 10 raised"
        ) as caught:
            await writer.write(list(range(1, 11)))
        assert isinstance(caught.value.__cause__, ValueError)
        assert rows == [1, 2, 3, 4, 5, 6]

    asyncio.run(story())


def test_whatever_gives_something_to_wait_for_is_awaited() -> None:
    class Sender:
        def __init__(self) -> None:
            self.rows: list[int] = []

        async def __call__(self, record: int) -> None:
            await asyncio.sleep(0)
            self.rows.append(record)

    async def story() -> None:
        sender = Sender()
        for callee in (sender, lambda record: sender(record)):  # noqa: PLW0108 - a function that is not async itself
            sink: Any = function.call(callee)
            writer = await sink.open(sink_context(world_of()))
            await writer.write([])
            await writer.write([1])
            await writer.write([2, 3])
        assert sender.rows == [1, 2, 3] * 2

    asyncio.run(story())
