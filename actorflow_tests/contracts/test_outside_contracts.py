"""The simulated broker and database keep their contracts, and so do the source and the sinks on them."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import Any

import pytest

from actorflow.abc.connectors import TransactionalSink
from actorflow.abc.world import World
from actorflow.simulation import Universe, run
from actorflow.simulation.broker_client import SimulatedBrokerClient
from actorflow.simulation.broker_sink import BrokerSink
from actorflow.simulation.broker_source import BrokerSource
from actorflow.simulation.contracts_broker import BROKER_CHECKS, BrokerArm
from actorflow.simulation.contracts_connectors import (
    SOURCE_CHECKS,
    TRANSACTIONAL_SINK_CHECKS,
    SourceArm,
    TransactionalSinkArm,
)
from actorflow.simulation.contracts_database import DATABASE_CHECKS, DatabaseArm
from actorflow.simulation.database import IDLE_MS
from actorflow.simulation.database_client import SimulatedDatabaseClient
from actorflow.simulation.database_sink import DatabaseSink
from actorflow.simulation.process import Ending
from actorflow.simulation.weather import Kill, Moment, OnBroker, OnDatabase, OnObject

SEEDS = range(3)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("check", BROKER_CHECKS, ids=lambda check: check.__name__)
def test_the_broker_keeps_its_contract(check: Callable[[BrokerArm], Any], seed: int) -> None:
    async def story() -> None:
        universe = Universe(seed)
        names = map("p{}".format, itertools.count())

        async def trim(topic: str, partition: int, first: int) -> None:
            universe.broker.trim(topic, partition, first)

        async def lose(topic: str, partition: int, count: int) -> None:
            assert universe.broker.rewind(f"{topic}/{partition}", count)

        await check(
            BrokerArm(
                connect=lambda: SimulatedBrokerClient(universe.world(next(names))),
                sleep=asyncio.sleep,
                trim=trim,
                lose=lose,
            )
        )

    run(story, seed=seed)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("check", DATABASE_CHECKS, ids=lambda check: check.__name__)
def test_the_database_keeps_its_contract(check: Callable[[DatabaseArm], Any], seed: int) -> None:
    async def story() -> None:
        universe = Universe(seed)
        names = map("p{}".format, itertools.count())

        def doomed() -> tuple[SimulatedDatabaseClient, Callable[[], None]]:
            process = universe.process(next(names))
            return SimulatedDatabaseClient(process.world), process.kill

        await check(
            DatabaseArm(
                connect=lambda: SimulatedDatabaseClient(universe.world(next(names))),
                sleep=asyncio.sleep,
                doomed=doomed,
                idle_s=IDLE_MS / 1_000,
            )
        )

    run(story, seed=seed)


BATCHES = [["a", "b"], ["c"], ["d", "e", "f"], ["g"]]


def itself(row: str) -> str:
    return row


SINKS: dict[str, tuple[Callable[[], TransactionalSink[Any]], type[OnObject]]] = {
    "broker": (lambda: BrokerSink("rows"), OnBroker),
    "database": (lambda: DatabaseSink("rows"), OnDatabase),
    "database, by key": (lambda: DatabaseSink("rows", key=itself), OnDatabase),
    "database, prepared": (lambda: DatabaseSink("rows", prepare=True), OnDatabase),
}


@pytest.mark.parametrize("check", TRANSACTIONAL_SINK_CHECKS, ids=lambda check: check.__name__)
@pytest.mark.parametrize("name", SINKS)
@pytest.mark.parametrize("moment", [Moment.DURING, Moment.AFTER])
def test_each_stand_in_keeps_the_contract_of_sinks(
    name: str, check: Callable[[TransactionalSinkArm], Any], moment: Moment
) -> None:
    make, on = SINKS[name]

    async def story() -> None:
        universe = Universe(7)
        names = map("p{}".format, itertools.count())

        async def mortal(step: int, life: Callable[[World], Awaitable[None]]) -> bool:
            name = next(names)
            universe.expect(Kill(on("*", "*", moment, step + 1, name), process=name))
            process = await universe.start(name, life)
            outcome = await process.wait()
            if outcome.ending is Ending.RAISED:
                outcome.result()
            return outcome.ending is Ending.KILLED

        await check(
            TransactionalSinkArm(
                make=make,
                world=lambda: universe.world(next(names)),
                batches=BATCHES,
                mortal=None if "by key" in name else mortal,  # its rows come again and again there
            )
        )

    run(story, seed=7)


RECORDS = [f"record {index}" for index in range(70)]


@pytest.mark.parametrize("check", SOURCE_CHECKS, ids=lambda check: check.__name__)
@pytest.mark.parametrize("until", ["now", "given", None])
def test_the_broker_source_keeps_the_contract_of_sources(check: Callable[[SourceArm], Any], until: str | None) -> None:
    async def story() -> None:
        universe = Universe(3)
        names = map("p{}".format, itertools.count())
        ends = universe.broker.fill("orders", RECORDS, partitions=3)
        await check(
            SourceArm(
                make=lambda: BrokerSource(
                    "orders",
                    until=ends if until == "given" else until,  # type: ignore[arg-type]
                    chunk_records=5,
                    poll_every=timedelta(milliseconds=10),
                ),
                world=lambda: universe.world(next(names)),
                most_records=20 if until is None else None,
            )
        )

    run(story, seed=3)
