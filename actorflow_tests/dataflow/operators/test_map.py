from __future__ import annotations

from typing import Any

import pytest

from actorflow.errors import InvalidJob, OperatorFailed
from actorflow_tests.dataflow.support import Run, chain_of, given


def test_each_record_becomes_another() -> None:
    job, stream, sink = given(1, 2, 3, 4)
    stream.map(lambda x: x * 10).write(sink, name="out")

    Run(job).to_end()

    assert [10, 20, 30, 40] == sink.rows


def test_the_record_in_hand_is_named_when_the_function_fails() -> None:
    job, stream, sink = given(1)
    stream.map(str).map(lambda text: 1 // int(text)).write(sink, name="out")

    with pytest.raises(OperatorFailed) as caught:
        chain_of(job, "in").process_values([3, 2, 0, 5])

    assert ("map-2", 0, None, "'0'") == (
        caught.value.operator,
        caught.value.subtask,
        caught.value.key,
        caught.value.record,
    )
    assert isinstance(caught.value.__cause__, ZeroDivisionError)
    assert "ZeroDivisionError" in str(caught.value)


@pytest.mark.parametrize("bad", [0, 1, 4])
def test_it_is_the_right_record_at_the_beginning_in_the_middle_and_at_the_end(bad: int) -> None:
    job, stream, sink = given(1)
    stream.map(lambda x: 1 // x).write(sink, name="out")
    chain = chain_of(job, "in")
    chain.process_values([7])
    values = [9, 8, 7, 6, 5]
    values[bad] = 0

    with pytest.raises(OperatorFailed) as caught:
        chain.process_values(values)

    assert "0" == caught.value.record


def test_a_stop_iteration_of_the_function_does_not_end_the_batch_in_silence() -> None:
    job, stream, sink = given(1)
    stream.map(lambda x: next(iter(()))).write(sink, name="out")

    with pytest.raises(OperatorFailed) as caught:
        chain_of(job, "in").process_values([1, 2])

    assert isinstance(caught.value.__cause__, StopIteration)


def test_a_lambda_around_an_async_function_is_told_instead_of_passing_coroutines_on() -> None:
    async def fetch(x: int) -> int:
        return x

    job, stream, sink = given(1)
    stream.map(lambda x: fetch(x)).write(sink, name="out")  # noqa: PLW0108 - the lambda is the mistake

    with pytest.raises(OperatorFailed, match="async def"):
        chain_of(job, "in").process_values([1])


def test_an_async_function_takes_the_lane_and_keeps_its_options() -> None:
    async def double(x: int) -> int:
        return x * 2

    job, stream, sink = given(1, 2)
    stream.map(double, name="double", in_flight=7, ordered=False, retries=2).write(sink, name="out")

    run = Run(job).to_end()

    assert [2, 4] == sink.rows
    operator = run.chains[1, 0].async_operator
    assert operator is not None
    assert (False, 7, False, None, 2) == (
        operator.keyed,
        operator.in_flight,
        operator.ordered,
        operator.timeout_ms,
        operator.retries,
    )


def test_a_plain_function_can_ask_for_a_thread() -> None:
    job, stream, sink = given(1, 2)
    stream.map(lambda x: x + 1, name="slow", in_thread=True).write(sink, name="out")

    run = Run(job).to_end()

    assert [2, 3] == sink.rows
    operator = run.chains[1, 0].async_operator
    assert operator is not None
    assert (1, True) == (operator.in_flight, operator.ordered)


def test_an_async_function_without_a_name_is_refused_because_a_checkpoint_keeps_its_inputs() -> None:
    async def double(x: int) -> int:
        return x

    _job, stream, _ = given(1)
    with pytest.raises(InvalidJob, match=r"map\(.*double\).*name="):
        stream.map(double)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"in_flight": 5}, "runs on the spot"),
        ({"in_thread": True, "in_flight": 0, "name": "a"}, "in_flight= is how many"),
        ({"in_thread": True, "in_flight": True, "name": "a"}, "in_flight= is how many"),
        ({"in_thread": True, "retries": -1, "name": "a"}, "retries="),
        ({"in_thread": True, "timeout": 3, "name": "a"}, "timeout= is a timedelta"),
        ({"parallelism": 0}, "parallelism= is a whole number"),
        ({"parallelism": True}, "parallelism= is a whole number"),
        ({"max_parallelism": 40_000}, "max_parallelism= is a whole number"),
    ],
)
def test_options_that_make_no_sense_are_refused_naming_the_operator(options: dict[str, Any], words: str) -> None:
    _job, stream, _ = given(1)
    with pytest.raises(InvalidJob, match=words) as caught:
        stream.map(lambda x: x, **options)
    assert f"operator {options.get('name', 'map')!r}" in str(caught.value)


@pytest.mark.parametrize("function", [None, 3, lambda: 1, lambda a, b: 1])
def test_what_can_not_be_called_with_one_record_is_refused_when_the_job_is_built(function: Any) -> None:
    _job, stream, _ = given(1)
    with pytest.raises(InvalidJob, match="operator 'odd'"):
        stream.map(function, name="odd")


def test_a_generator_function_is_refused_in_favour_of_flat_map() -> None:
    def pieces(text: str) -> Any:
        yield text

    _job, stream, _ = given("a")
    with pytest.raises(InvalidJob, match="flat_map"):
        stream.map(pieces)
