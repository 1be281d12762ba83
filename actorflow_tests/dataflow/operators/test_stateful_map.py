from __future__ import annotations

from typing import Any

import pytest

from actorflow.errors import InvalidJob, OperatorFailed
from actorflow_tests.dataflow.support import Run, chain_of, given, keyed_batch


def running_total(total: int | None, x: int) -> tuple[int | None, int]:
    new = (total or 0) + x
    return new, new


@pytest.mark.parametrize("careful", [False, True])
def test_each_key_has_its_own_state(careful: bool) -> None:
    job, stream, sink = given(1, 2, 3, 4, 5)
    stream.key_by(lambda x: x % 2).stateful_map(running_total, name="total").write(sink, name="out")

    run = Run(job, careful=careful).to_end()

    assert [1, 2, 4, 6, 9] == sink.rows
    assert {1: 9, 0: 6} == run.state("total")


@pytest.mark.parametrize("careful", [False, True])
def test_an_unseen_key_has_none_and_returning_none_forgets_it(careful: bool) -> None:
    def until_three(seen: int | None, word: str) -> tuple[int | None, tuple[str, int | None]]:
        new = (seen or 0) + 1
        return (None if new == 3 else new), (word, seen)

    job, stream, sink = given("a", "a", "a", "a", "b")
    stream.key_by(str).stateful_map(until_three, name="three").write(sink, name="out")

    run = Run(job, careful=careful).to_end()

    assert [("a", None), ("a", 1), ("a", 2), ("a", None), ("b", None)] == sink.rows
    assert {"a": 1, "b": 1} == run.state("three")


@pytest.mark.parametrize("careful", [False, True])
def test_keys_that_are_one_key_to_a_dict_stay_apart(careful: bool) -> None:
    """1, 1.0, True and "1" are four keys (architecture 13)."""

    def count(seen: int | None, _: Any) -> tuple[int, int]:
        return (seen or 0) + 1, (seen or 0) + 1

    job, stream, sink = given(1, 1.0, True, "1", 1, True)
    stream.key_by(lambda x: x).stateful_map(count, name="n").write(sink, name="out")

    Run(job, careful=careful, size=6).to_end()

    assert [1, 1, 1, 1, 2, 2] == sink.rows


@pytest.mark.parametrize("careful", [False, True])
@pytest.mark.parametrize("bad", [0, 2, 3])
def test_the_record_and_its_key_are_named(careful: bool, bad: int) -> None:
    def divide(_: int | None, x: int) -> tuple[int, int]:
        return x, 1 // x

    job, stream, sink = given(1)
    stream.key_by(str).stateful_map(divide, name="divide").write(sink, name="out")
    chain = chain_of(job, "divide", careful=careful)
    chain.process(keyed_batch([1], ["k"]))
    values = [4, 3, 2, 1]
    values[bad] = 0

    with pytest.raises(OperatorFailed) as caught:
        chain.process(keyed_batch(values, [f"key-{index}" for index in range(4)]))

    assert ("divide", repr(f"key-{bad}"), "0") == (caught.value.operator, caught.value.key, caught.value.record)


def test_what_is_not_a_pair_is_an_error_at_that_record() -> None:
    job, stream, sink = given(1)
    stream.key_by(str).stateful_map(lambda state, x: x, name="odd").write(sink, name="out")

    with pytest.raises(OperatorFailed) as caught:
        chain_of(job, "odd").process(keyed_batch([5], ["k"]))

    assert ("'k'", "5") == (caught.value.key, caught.value.record)


def test_a_name_is_required_because_state_is_kept_under_it() -> None:
    _job, stream, _ = given(1)
    with pytest.raises(InvalidJob, match=r"stateful_map\(\) needs a name=.*name='stateful-map'"):
        stream.key_by(str).stateful_map(running_total)


def test_an_async_function_is_refused_with_the_way_out() -> None:
    async def total(state: int | None, x: int) -> tuple[int, int]:
        return x, x

    _job, stream, _ = given(1)
    with pytest.raises(InvalidJob, match="async on_record"):
        stream.key_by(str).stateful_map(total, name="total")
