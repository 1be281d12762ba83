from __future__ import annotations

import pytest

from actorflow.errors import InvalidJob, OperatorFailed
from actorflow_tests.dataflow.support import Kept, Run, chain_of, given


def test_one_predicate_parts_a_stream_in_two() -> None:
    job, stream, odd = given(1, 2, 3, 4)
    even = Kept()
    odds, evens = stream.branch(lambda x: x % 2)
    odds.write(odd, name="odd")
    evens.map(str).write(even, name="even")

    Run(job).to_end()

    assert ([1, 3], ["2", "4"]) == (odd.rows, even.rows)


def test_the_first_predicate_that_holds_has_the_record_and_the_rest_is_last() -> None:
    job, stream, small = given(*range(8))
    even, rest = Kept(), Kept()
    smalls, evens, others = stream.branch(lambda x: x < 3, lambda x: x % 2 == 0)
    smalls.write(small, name="small")
    evens.write(even, name="even")
    others.write(rest, name="rest")

    Run(job).to_end()

    assert ([0, 1, 2], [4, 6], [3, 5, 7]) == (small.rows, even.rows, rest.rows)


@pytest.mark.parametrize("predicates", [1, 2])
def test_the_record_in_hand_is_named_when_a_predicate_fails(predicates: int) -> None:
    job, stream, sink = given(1)
    for way in stream.branch(*[lambda x: 1 // x > 5] * predicates):
        way.discard()
    stream.write(sink, name="out")

    with pytest.raises(OperatorFailed) as caught:
        chain_of(job, "branch").process_values([3, 0, 2])

    assert ("branch", "0") == (caught.value.operator, caught.value.record)


def test_a_way_that_nobody_reads_is_a_mistake_unless_it_is_discarded() -> None:
    job, stream, sink = given(1)
    odds, evens = stream.branch(lambda x: x % 2)
    odds.write(sink, name="out")

    with pytest.raises(InvalidJob, match=r"operator 'branch': its rest .* is read by nobody.*discard"):
        job.plan()

    evens.discard()
    assert 2 == len(job.plan().vertices)


def test_the_way_of_a_predicate_that_nobody_reads_is_told_too() -> None:
    job, stream, sink = given(1)
    _, evens = stream.branch(lambda x: x % 2)
    evens.write(sink, name="out")

    with pytest.raises(InvalidJob, match="output 'branch-1' is read by nobody"):
        job.plan()


def test_an_async_predicate_is_refused() -> None:
    async def is_odd(x: int) -> bool:
        return x % 2 == 1

    _job, stream, _ = given(1)
    with pytest.raises(InvalidJob, match="in a map before it"):
        stream.branch(is_odd)
