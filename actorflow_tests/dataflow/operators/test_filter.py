from __future__ import annotations

from typing import Any

import pytest

from actorflow.errors import InvalidJob, OperatorFailed
from actorflow_tests.dataflow.support import Run, chain_of, given


def test_only_what_the_predicate_holds_for_goes_on() -> None:
    job, stream, sink = given(1, 2, 3, 4)
    stream.filter(lambda x: x % 2).write(sink, name="out")

    Run(job).to_end()

    assert [1, 3] == sink.rows


def test_the_record_in_hand_is_named_when_the_predicate_fails() -> None:
    job, stream, sink = given(1)
    stream.filter(lambda x: 1 // x).write(sink, name="out")

    with pytest.raises(OperatorFailed) as caught:
        chain_of(job, "in").process_values([1, 2, 0, 4])

    assert ("filter", "0") == (caught.value.operator, caught.value.record)


def test_an_async_predicate_takes_the_lane() -> None:
    async def is_odd(x: int) -> bool:
        return x % 2 == 1

    job, stream, sink = given(1, 2, 3)
    stream.filter(is_odd, name="odd").write(sink, name="out")

    Run(job).to_end()

    assert [1, 3] == sink.rows


def test_a_coroutine_that_would_always_be_true_is_told() -> None:
    async def is_odd(x: int) -> bool:
        return x % 2 == 1

    job, stream, sink = given(1)
    stream.filter(lambda x: is_odd(x)).write(sink, name="out")  # noqa: PLW0108 - the lambda is the mistake

    with pytest.raises(OperatorFailed, match="async def"):
        chain_of(job, "in").process_values([2])


def test_a_generator_that_would_always_be_true_is_refused() -> None:
    def odd(x: int) -> Any:
        yield x

    _job, stream, _ = given(1)
    with pytest.raises(InvalidJob, match="always true"):
        stream.filter(odd)
