from __future__ import annotations

import pytest

from actorflow.dataflow.plan import ExchangeKind
from actorflow.errors import InvalidJob
from actorflow_tests.dataflow.support import Run, given

EXCHANGES = [
    ("forward", ExchangeKind.FORWARD),
    ("rebalance", ExchangeKind.REBALANCE),
    ("shuffle", ExchangeKind.SHUFFLE),
    ("rescale", ExchangeKind.RESCALE),
    ("global_", ExchangeKind.GLOBAL),
    ("broadcast", ExchangeKind.BROADCAST),
    ("break_chain", ExchangeKind.FORWARD),
]


@pytest.mark.parametrize(("method", "kind"), EXCHANGES)
def test_each_way_of_travelling_is_an_exchange_of_its_kind(method: str, kind: ExchangeKind) -> None:
    job, stream, sink = given(1, 2, 3)
    getattr(stream, method)().map(str).write(sink, name="out")

    run = Run(job, parallelism=2).to_end()

    if method == "forward":
        assert () == run.plan.exchanges, "forward alone needs no channel"
    else:
        assert [(kind, method)] == [(one.kind, one.operator) for one in run.plan.exchanges][:1]
    copies = 2 if method == "broadcast" else 1
    assert sorted(["1", "2", "3"] * copies) == sorted(sink.rows)


def test_all_records_go_to_one_subtask_unless_more_are_asked_for() -> None:
    job, stream, sink = given(1)
    stream.global_().map(str).write(sink, name="out")
    stream.global_().map(str, parallelism=3).discard()

    plan = job.plan(parallelism=4)

    assert [1, 3] == [plan.parallelism_of(name) for name in ("map", "map-2")]


def test_a_partitioner_of_the_users_chooses_the_subtask() -> None:
    job, stream, sink = given(5, 6, 7)

    def partition(record: int, subtasks: int) -> int:
        return record % subtasks

    stream.partition_by(partition).map(str).write(sink, name="out")
    run = Run(job, parallelism=2).to_end()

    assert ["5", "6", "7"] == sorted(sink.rows)
    (exchange,) = run.plan.exchanges
    assert ExchangeKind.CUSTOM is exchange.kind
    assert exchange.partition is partition
    with pytest.raises(InvalidJob, match="called with 2 arguments"):
        stream.partition_by(lambda record: 0)

    async def later(record: int, subtasks: int) -> int:
        return 0

    with pytest.raises(InvalidJob, match="must be plain"):
        stream.partition_by(later)


def test_forward_between_different_numbers_of_subtasks_is_refused_with_the_way_out() -> None:
    job, stream, sink = given(1)
    stream.forward().map(str, parallelism=3).write(sink, name="out")

    with pytest.raises(InvalidJob, match=r"'map' has parallelism 3 and reads 'in', which has 2.*rebalance\(\)"):
        job.plan(parallelism=2)


@pytest.mark.parametrize("method", [name for name, _ in EXCHANGES])
def test_two_exchanges_in_a_row_are_refused(method: str) -> None:
    _job, stream, _ = given(1)
    with pytest.raises(InvalidJob, match=rf"{method}\(\) follows rebalance\(\)"):
        getattr(stream.rebalance(), method)()


def test_unequal_parallelism_deals_records_out_in_turns() -> None:
    job, stream, sink = given(*range(6))
    stream.map(str, parallelism=3).write(sink, name="out", parallelism=1)

    run = Run(job, parallelism=1).to_end()

    assert [ExchangeKind.REBALANCE] * 2 == [one.kind for one in run.plan.exchanges]
    assert list("012345") == sorted(sink.rows)


def test_union_of_exchanged_streams_keeps_each_way() -> None:
    job, stream, sink = given(1, 2)
    stream.rebalance().union(stream.broadcast()).map(str).write(sink, name="out")

    run = Run(job, parallelism=2).to_end()

    assert [ExchangeKind.REBALANCE, ExchangeKind.BROADCAST] == [one.kind for one in run.plan.exchanges]
    assert sorted(["1", "2"] * 3) == sorted(sink.rows)
