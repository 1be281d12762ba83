from __future__ import annotations

from typing import Any

import pytest

from actorflow.errors import OperatorFailed
from actorflow_tests.dataflow.support import Run, chain_of, given, keyed_batch


@pytest.mark.parametrize("careful", [False, True])
def test_the_records_of_a_key_are_folded_into_one(careful: bool) -> None:
    job, stream, sink = given(3, 8, 5, 2)
    stream.key_by(lambda x: x % 2).reduce(max, name="most").write(sink, name="out")

    run = Run(job, careful=careful).to_end()

    assert [(1, 3), (0, 8), (1, 5), (0, 8)] == sink.rows
    assert {1: 5, 0: 8} == run.state("most")


@pytest.mark.parametrize("careful", [False, True])
def test_what_was_given_away_does_not_change_when_the_function_changes_its_first_argument(careful: bool) -> None:
    def merge(old: dict[str, int], new: dict[str, int]) -> dict[str, int]:
        old.update(new)
        return old

    first = {"k": 0, "a": 1}
    job, stream, sink = given(first, {"k": 0, "b": 2})
    stream.key_by(lambda record: record["k"]).reduce(merge, name="merge").write(sink, name="out")

    Run(job, careful=careful, size=2).to_end()

    assert [(0, {"k": 0, "a": 1}), (0, {"k": 0, "a": 1, "b": 2})] == sink.rows
    assert {"k": 0, "a": 1} == first


@pytest.mark.parametrize("careful", [False, True])
def test_a_result_of_none_forgets_the_key(careful: bool) -> None:
    def cancel(old: int, new: int) -> Any:
        return old + new or None

    job, stream, sink = given(1, -1, 4)
    stream.key_by(lambda _: "k").reduce(cancel, name="sum").write(sink, name="out")

    run = Run(job, careful=careful).to_end()

    assert [("k", 1), ("k", None), ("k", 4)] == sink.rows
    assert {"k": 4} == run.state("sum")


@pytest.mark.parametrize("careful", [False, True])
def test_the_record_and_its_key_are_named(careful: bool) -> None:
    job, stream, sink = given(1)
    stream.key_by(str).reduce(lambda old, new: old // new, name="divide").write(sink, name="out")

    with pytest.raises(OperatorFailed) as caught:
        chain_of(job, "divide", careful=careful).process(keyed_batch([8, 7, 0, 4], ["a", "b", "a", "b"]))

    assert ("'a'", "0") == (caught.value.key, caught.value.record)
