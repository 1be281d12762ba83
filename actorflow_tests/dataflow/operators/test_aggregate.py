from __future__ import annotations

import pytest

from actorflow.errors import InvalidJob, OperatorFailed
from actorflow_tests.dataflow.support import Run, chain_of, given, keyed_batch


def add(sums: tuple[int, int], x: int) -> tuple[int, int]:
    return sums[0] + x, sums[1] + 1


@pytest.mark.parametrize("careful", [False, True])
def test_an_accumulator_of_another_kind_gives_a_result_of_a_third(careful: bool) -> None:
    job, stream, sink = given(2, 4, 9)
    keyed = stream.key_by(lambda x: x % 2)
    keyed.aggregate(lambda: (0, 0), add, lambda sums: sums[0] / sums[1], name="mean").write(sink, name="out")

    run = Run(job, careful=careful).to_end()

    assert [(0, 2.0), (0, 3.0), (1, 9.0)] == sink.rows
    assert {0: (6, 2), 1: (9, 1)} == run.state("mean")


@pytest.mark.parametrize("careful", [False, True])
def test_an_accumulator_that_is_changed_in_place_is_given_away_as_a_copy(careful: bool) -> None:
    def append(found: list[int], x: int) -> list[int]:
        found.append(x)
        return found

    job, stream, sink = given(1, 2, 3)
    stream.key_by(lambda _: "k").aggregate(list, append, name="all").write(sink, name="out")

    run = Run(job, careful=careful).to_end()

    assert [("k", [1]), ("k", [1, 2]), ("k", [1, 2, 3])] == sink.rows
    assert {"k": [1, 2, 3]} == run.state("all")


def test_an_add_that_forgets_to_return_is_told() -> None:
    job, stream, sink = given(1)
    stream.key_by(str).aggregate(list, lambda found, x: found.append(x), name="all").write(sink, name="out")

    with pytest.raises(OperatorFailed, match="must return the accumulator") as caught:
        chain_of(job, "all").process(keyed_batch([7], ["k"]))

    assert "7" == caught.value.record


def test_functions_with_the_wrong_number_of_arguments_are_refused() -> None:
    _job, stream, _ = given(1)
    with pytest.raises(InvalidJob, match="operator 'all': its add"):
        stream.key_by(str).aggregate(list, lambda found: found, name="all")
