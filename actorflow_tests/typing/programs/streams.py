"""Streams that part, meet and are folded; broadcast connect; how records travel."""

from __future__ import annotations

from typing import assert_type

import actorflow as af
from actorflow.connectors import memory


class Limits(af.KeyedBroadcastOperator[str, tuple[str, int], int, str]):
    limits = af.BroadcastState(str, int)
    sums = af.ValueState(int)

    def on_record(self, paid: tuple[str, int], context: af.Context[str]) -> list[str]:
        assert_type(self.limits["most"], int)
        self.sums.value += paid[1]
        return [context.key] if self.sums.value > self.limits["most"] else []

    def on_broadcast(self, most: int, context: af.HookContext) -> None:
        assert_type(self.limits.get("most"), int | None)
        self.limits["most"] = most


def running(total: int | None, paid: tuple[str, int]) -> tuple[int, tuple[str, int]]:
    total = (total or 0) + paid[1]
    return total, (paid[0], total)


def name_of(paid: tuple[str, int]) -> str:
    return paid[0]


def job() -> af.Job:
    paying = af.Job("payments")
    paid = paying.read(memory.source([("ada", 3), ("bob", 5)]), name="payments")
    limits = paying.read(memory.source([4]), name="limits", parallelism=1)
    assert_type(paid, af.Stream[tuple[str, int]])

    large, small = paid.branch(lambda one: one[1] > 4)
    assert_type(large, af.Stream[tuple[str, int]])
    assert_type(
        small.branch(name_of, name_of),
        tuple[af.Stream[tuple[str, int]], af.Stream[tuple[str, int]], af.Stream[tuple[str, int]]],
    )
    assert_type(large.map(name_of).union(limits), af.Stream[str | int])

    by_name = paid.key_by(name_of)
    assert_type(by_name, af.KeyedStream[str, tuple[str, int]])
    assert_type(by_name.stateful_map(running, name="running"), af.Stream[tuple[str, int]])
    assert_type(by_name.reduce(max, name="largest"), af.Stream[tuple[str, tuple[str, int]]])
    assert_type(by_name.aggregate(lambda: 0, lambda total, one: total + one[1], name="sum"), af.Stream[tuple[str, int]])
    assert_type(
        by_name.aggregate(lambda: 0, lambda total, one: total + one[1], float, name="sum-2"),
        af.Stream[tuple[str, float]],
    )
    assert_type(by_name.connect_broadcast(limits, Limits, name="over"), af.Stream[str])
    assert_type(by_name.union(small.key_by(lambda one: one[1])), af.KeyedStream[str | int, tuple[str, int]])
    assert_type(by_name.union(small), af.Stream[tuple[str, int]])

    for travelling in (
        paid.rebalance(),
        paid.shuffle(),
        paid.rescale(),
        paid.global_(),
        paid.broadcast(),
        paid.forward(),
        paid.break_chain(),
        paid.partition_by(lambda one, subtasks: one[1] % subtasks),
    ):
        assert_type(travelling, af.Stream[tuple[str, int]])
    return paying
