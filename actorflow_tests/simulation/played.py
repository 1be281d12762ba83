"""Jobs for scenarios in tests; each is a target: ``actorflow_tests.simulation.played:NAME``."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import actorflow as af
from actorflow.abc.connectors import Source
from actorflow.abc.world import World
from actorflow.connectors import console, generator
from actorflow.simulation.scenario import Expectation, Input, Scenario, TimedRecord

HERE = "actorflow_tests.simulation.played"


class Wire(Source[Any]):
    """A source that would reach the outside."""

    async def discover(self, world: World) -> Sequence[str]:
        raise AssertionError("the simulator asked for the outside")

    async def read(self, context: af.SourceContext[Any]) -> AsyncIterator[af.Chunk[Any]]:
        raise AssertionError("the simulator asked for the outside")
        yield af.Chunk([])


@dataclass(frozen=True)
class Order:
    number: int
    price: float


def make_order(index: int, draw: float) -> Order:
    return Order(index, draw)


def make_number(index: int) -> int:
    return index


def price(order: Order) -> float:
    return order.price


def third(number: int) -> int:
    return number % 3


def counting(name: str = "counting") -> af.Job:
    """Each record gives one row, (key, how many so far), and the state of a key is how many."""
    job = af.Job(name)
    job.read(Wire(), name="numbers").key_by(third).count(name="count").write(console.lines(), name="rows")
    return job


def orders() -> af.Job:
    job = af.Job("orders")
    job.read(Wire(), name="orders").write(console.lines(), name="rows")
    return job


def endless() -> af.Job:
    """Its source never ends."""
    job = af.Job("endless")
    source = generator.numbers(per_second=2_000)
    job.read(source, name="numbers").key_by(third).count(name="count").write(console.lines(), name="rows")
    return job


def picky(refuses: int, *, with_type: bool = False) -> af.Job:
    """A job that can't take one number, and fails again whenever it meets it."""

    def refuse(number: int) -> int:
        if number == refuses:
            if with_type:
                raise TypeError(f"{number} is refused")
            raise ValueError(f"{number} is refused")
        return number

    job = af.Job("picky")
    job.read(Wire(), name="numbers").map(refuse, name="refuse").write(console.lines(), name="rows")
    return job


async def never(number: int) -> int:
    if number == 7:
        await asyncio.Event().wait()
    return number


def stuck() -> af.Job:
    """The seventh call never returns."""
    job = af.Job("stuck")
    job.read(Wire(), name="numbers").map(never, name="call", in_flight=2).key_by(third).count(name="count").write(
        console.lines(), name="rows"
    )
    return job


class _Lasts(af.Operator[int, int]):
    """Tells at the end what it has seen, so it must not be rescaled when only some of its subtasks have ended."""

    seen = af.SplitList(int)

    def on_record(self, number: int, context: af.Context[Any]) -> None:
        self.seen.append(number)

    def on_end_of_input(self, context: af.HookContext) -> Iterator[int]:
        yield from self.seen


def lasting() -> af.Job:
    job = af.Job("lasting")
    job.read(Wire(), name="numbers").process(_Lasts, name="keep").write(console.lines(), name="rows")
    return job


class _Lives:
    builds = 0


def builds_differently() -> af.Job:
    """What it does depends on how often it was built: no two runs are the same."""
    _Lives.builds += 1
    job = af.Job("differently")
    source = generator.numbers(40 + _Lives.builds, per_second=1_000)
    job.read(source, name="numbers").write(console.lines(), name="rows")
    return job


NUMBERS = Input(source="numbers", make=f"{HERE}:make_number", count=400, per_second=400, splits=2)


def scenario(job: str = "counting", *expectations: Expectation, every: str = "50ms", **said: Any) -> Scenario:
    """A scenario over one of these jobs, which reads 400 numbers within a second unless something else is said."""
    environment = {"parallelism": 2, "checkpoints": {"every": every}, **said.pop("environment", {})}
    return Scenario(
        title=f"a test of {job}",
        job=f"{HERE}:{job}",
        environment=environment,
        inputs=said.pop("inputs", (NUMBERS,)),
        expectations=expectations,
        **said,
    )


def records(*values: Any) -> tuple[TimedRecord, ...]:
    return tuple(value if isinstance(value, TimedRecord) else TimedRecord(value=value) for value in values)
