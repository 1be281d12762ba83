"""Programs that mypy reads strictly together with the tests; ``assert_type`` says what it must find."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, assert_type

from actorflow.connectors import Inbox, console, files
from actorflow.dataflow.job import Job
from actorflow.dataflow.keyed import Context, HookContext, KeyedBroadcastOperator, KeyedOperator, Operator
from actorflow.dataflow.states import (
    AggregatingState,
    BroadcastState,
    ListState,
    MapState,
    ReducingState,
    SplitList,
    ValueState,
)
from actorflow.dataflow.stream import KeyedStream, Stream
from actorflow_tests.dataflow.support import Given, Kept


def word_count(path: str) -> Job:
    """The first program of the architecture."""
    job = Job("word-count")
    (
        job.read(files.lines(path), name="lines")
        .flat_map(str.split)
        .key_by(str.lower)
        .count(name="count")
        .write(console.lines(), name="print")
    )
    return job


def test_the_word_count_of_the_architecture_is_a_job() -> None:
    assert [["lines", "flat_map"], ["count", "print"]] == [
        [one.name for one in vertex.operators] for vertex in word_count("book.txt").plan().vertices
    ]


@dataclass(frozen=True, slots=True)
class Click:
    user: str
    at: float


class Score(KeyedOperator[str, Click, tuple[str, float]]):
    """An exponentially fading count of a user's clicks."""

    level = ValueState(float)
    last_click = ValueState(float)

    def on_record(self, click: Click, context: Context[str]) -> Iterator[tuple[str, float]]:
        quiet_s = click.at - self.last_click.value
        self.level.value = 1.0 + self.level.value * 0.5 ** (quiet_s / 60)
        self.last_click.value = click.at
        yield context.key, self.level.value


def scores() -> Job:
    """The third program of the architecture, without the web framework around it."""
    clicks = Inbox(Click, capacity=10_000)
    job = Job("scores")
    (
        job.read(clicks, name="clicks")
        .key_by(lambda click: click.user)
        .process(Score, name="score")
        .write(console.lines(), name="log")
    )
    return job


def test_the_scores_of_the_architecture_are_a_job() -> None:
    assert (("level", "value"), ("last_click", "value")) == scores().plan().vertex_of("score").operators[0].states


@dataclass(frozen=True, slots=True)
class Order:
    order_id: str
    cents: int


def nothing_yet() -> tuple[int, int]:
    return 0, 0


def add(sums: tuple[int, int], x: int) -> tuple[int, int]:
    return sums[0] + x, sums[1] + 1


def mean_of(sums: tuple[int, int]) -> float:
    return sums[0] / sums[1]


class Kinds(KeyedOperator[str, Order, int]):
    order = ValueState(Order, default=None)
    limit = ValueState(int, default=7)
    words = ListState(str)
    lengths = MapState(str, int)
    longest = ReducingState[int](max)
    mean = AggregatingState(nothing_yet, add, mean_of)
    waiting = SplitList(int)

    def on_record(self, value: Order, context: Context[str]) -> list[int]:
        assert_type(self.order.value, Order | None)
        assert_type(self.limit.value, int)
        assert_type(self.words.get(), list[str])
        assert_type(self.lengths.get("a"), int | None)
        assert_type(self.longest.get(), int | None)
        assert_type(self.mean.get(), float | None)
        self.mean.add(3)
        assert_type(list(self.waiting), list[int])
        assert_type(context.key, str)
        self.order.value = value
        return [value.cents]


class Rules(KeyedBroadcastOperator[str, Order, int, str]):
    rules = BroadcastState(str, int)

    def on_record(self, value: Order, context: Context[str]) -> list[str]:
        assert_type(self.rules["a"], int)
        return []

    def on_broadcast(self, value: int, context: HookContext) -> None:
        self.rules["a"] = value


class Plain(Operator[Order, bytes]):
    def on_record(self, value: Order, context: Context[None]) -> list[bytes]:
        return []


async def fetch(order: Order) -> float:
    return 1.0


async def pieces(order: Order) -> AsyncIterator[str]:
    yield ""


def running(state: int | None, order: Order) -> tuple[int, tuple[str, int]]:
    return (state or 0) + 1, (order.order_id, 0)


def cents_of(order: Order) -> int:
    return order.cents


def identifier(order: Order) -> str:
    return order.order_id


def test_streams_know_what_they_hold() -> None:
    job = Job("typed")
    orders = job.read(Given([Order("a", 1)]), name="orders")
    assert_type(orders, Stream[Order])
    assert_type(orders.map(cents_of), Stream[int])
    assert_type(orders.map(fetch, name="fetch", in_flight=3, timeout=timedelta(seconds=1)), Stream[float])
    assert_type(orders.map(cents_of, name="slow", in_thread=True), Stream[int])
    assert_type(orders.filter(cents_of), Stream[Order])
    assert_type(orders.flat_map(lambda order: [order.order_id]), Stream[str])
    assert_type(orders.flat_map(pieces, name="pieces"), Stream[str])
    assert_type(orders.process(Plain, name="plain"), Stream[bytes])
    assert_type(orders.branch(cents_of), tuple[Stream[Order], Stream[Order]])
    assert_type(orders.union(orders.map(cents_of)), Stream[Order | int])
    assert_type(orders.rebalance(), Stream[Order])
    keyed = orders.key_by(identifier)
    assert_type(keyed, KeyedStream[str, Order])
    assert_type(keyed.count(name="count"), Stream[tuple[str, int]])
    assert_type(keyed.stateful_map(running, name="running"), Stream[tuple[str, int]])
    assert_type(keyed.reduce(lambda old, new: new, name="last"), Stream[tuple[str, Order]])
    assert_type(
        keyed.aggregate(lambda: 0, lambda acc, order: acc + order.cents, float, name="sum"), Stream[tuple[str, float]]
    )
    assert_type(keyed.process(Kinds, name="kinds"), Stream[int])
    assert_type(keyed.process(Plain, name="plain-2"), Stream[bytes])
    rules = job.read(Given([1]), name="rules")
    assert_type(keyed.connect_broadcast(rules, Rules, name="ruled"), Stream[str])
    assert_type(keyed.union(orders.key_by(cents_of)), KeyedStream[str | int, Order])
    assert_type(keyed.union(orders), Stream[Order])
    assert_type(keyed.process(Kinds, name="kinds-2").side_output("late", Order), Stream[Order])
    assert_type(keyed.process(Kinds, name="kinds-3").side_output("late"), Stream[Any])
    orders.write(Kept(), name="out")
