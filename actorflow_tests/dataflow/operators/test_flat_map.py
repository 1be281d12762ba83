from __future__ import annotations

from collections.abc import AsyncIterator, Iterator

import pytest

from actorflow.errors import OperatorFailed
from actorflow_tests.dataflow.support import Run, chain_of, given


def test_each_record_becomes_any_number_of_others() -> None:
    job, stream, sink = given("a b", "", "c")
    stream.flat_map(str.split).write(sink, name="out")

    Run(job).to_end()

    assert ["a", "b", "c"] == sink.rows


def test_a_generator_may_yield_them() -> None:
    def twice(x: int) -> Iterator[int]:
        yield x
        yield -x

    job, stream, sink = given(1, 2)
    stream.flat_map(twice).write(sink, name="out")

    Run(job).to_end()

    assert [1, -1, 2, -2] == sink.rows


def test_a_generator_that_fails_half_way_names_its_record() -> None:
    def fragile(x: int) -> Iterator[int]:
        yield x
        yield 1 // x

    job, stream, sink = given(1)
    stream.flat_map(fragile).write(sink, name="out")

    with pytest.raises(OperatorFailed) as caught:
        chain_of(job, "in").process_values([2, 1, 0, 3])

    assert ("flat_map", "0") == (caught.value.operator, caught.value.record)


def test_returning_nothing_is_an_error_that_names_the_record() -> None:
    job, stream, sink = given(1)
    stream.flat_map(lambda x: [x] if x else None).write(sink, name="out")

    with pytest.raises(OperatorFailed, match="not iterable") as caught:
        chain_of(job, "in").process_values([2, 0])

    assert "0" == caught.value.record


def test_async_functions_and_async_generators_take_the_lane() -> None:
    async def listed(x: int) -> list[int]:
        return [x, x]

    async def yielded(x: int) -> AsyncIterator[int]:
        yield x
        yield -x

    job, stream, sink = given(1, 2)
    stream.flat_map(listed, name="listed").flat_map(yielded, name="yielded").write(sink, name="out")

    Run(job).to_end()

    assert [1, -1, 1, -1, 2, -2, 2, -2] == sink.rows


def test_a_generator_in_a_thread_is_run_there_and_a_stop_iteration_does_not_hang() -> None:
    def fragile(x: int) -> list[int]:
        return [next(iter(()))] if x == 0 else [x]

    job, stream, sink = given(3, 0)
    stream.flat_map(fragile, name="slow", in_thread=True).write(sink, name="out")

    with pytest.raises(RuntimeError, match="StopIteration"):
        Run(job).to_end()
