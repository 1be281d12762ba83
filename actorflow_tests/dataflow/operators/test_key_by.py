from __future__ import annotations

from typing import Any

import pytest

from actorflow.dataflow.plan import ExchangeKind
from actorflow.errors import InvalidJob
from actorflow_tests.dataflow.support import Run, given


def test_the_exchange_carries_the_key_function_and_whom_to_name() -> None:
    job, stream, sink = given("a")
    stream.key_by(str.lower, name="by-word").count(name="count").write(sink, name="out")

    (exchange,) = job.plan().exchanges

    assert (ExchangeKind.KEYED, "by-word") == (exchange.kind, exchange.operator)
    assert exchange.key is str.lower


def test_a_keyed_stream_may_be_used_without_state_and_its_records_still_meet() -> None:
    job, stream, sink = given("a1", "b1", "a2")
    stream.key_by(lambda word: word[0]).map(str.upper, parallelism=2).write(sink, name="out")

    Run(job, parallelism=2).to_end()

    assert ["A1", "A2", "B1"] == sorted(sink.rows)


def test_a_keyed_operator_begins_an_actor_even_at_parallelism_one() -> None:
    job, stream, sink = given("a")
    stream.key_by(str).count(name="count").write(sink, name="out")

    assert [["in"], ["count", "out"]] == [[one.name for one in vertex.operators] for vertex in job.plan().vertices]


def test_keying_twice_is_refused_because_one_of_the_two_has_no_effect() -> None:
    _job, stream, _ = given("a")
    with pytest.raises(InvalidJob, match=r"key_by\(\) follows by-word\(\)"):
        stream.key_by(str, name="by-word").key_by(len)


@pytest.mark.parametrize("function", [None, lambda: 1])
def test_a_key_function_that_can_not_be_called_is_refused(function: Any) -> None:
    _job, stream, _ = given("a")
    with pytest.raises(InvalidJob, match="its key function"):
        stream.key_by(function)


def test_an_async_key_function_is_refused() -> None:
    async def key(word: str) -> str:
        return word

    _job, stream, _ = given("a")
    with pytest.raises(InvalidJob, match="in a map before it"):
        stream.key_by(key)
