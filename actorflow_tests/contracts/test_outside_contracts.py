"""Sources and sinks on the simulated broker and database keep the contracts of every source and every sink."""

from __future__ import annotations

import itertools
from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import Any

import pytest

from actorflow.abc.connectors import TransactionalSink
from actorflow.abc.world import World
from actorflow.simulation import Universe, run
from actorflow.simulation.broker_sink import BrokerSink
from actorflow.simulation.broker_source import BrokerSource
from actorflow.simulation.contracts_connectors import (
    SOURCE_CHECKS,
    TRANSACTIONAL_SINK_CHECKS,
    SourceArm,
    TransactionalSinkArm,
)
from actorflow.simulation.database_sink import DatabaseSink
from actorflow.simulation.process import Ending
from actorflow.simulation.weather import Kill, Moment, OnBroker, OnDatabase, OnObject

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
