from __future__ import annotations

import asyncio
from typing import Any

import pytest

from actorflow.abc.connectors import TransactionalWriter
from actorflow.connectors import memory
from actorflow.errors import InvalidJob, RestoreFailed
from actorflow.simulation import Severed, run
from actorflow.simulation.contracts_connectors import Permit
from actorflow.simulation.world import Universe
from actorflow_tests.connectors.support import drain, sink_context, world_of


def everything(source: memory.MemorySource[Any]) -> list[list[Any]]:
    async def story() -> list[list[Any]]:
        world = world_of()
        return [await drain(source, world, split) for split in await source.discover(world)]

    return asyncio.run(story())


def test_splits_are_runs_of_neighbours() -> None:
    assert everything(memory.source(range(7), splits=3)) == [[0, 1], [2, 3], [4, 5, 6]]
    assert everything(memory.source([1], splits=2)) == [[], [1]]
    assert everything(memory.source([])) == [[]]


def test_a_list_may_be_read_round_and_round() -> None:
    assert everything(memory.source("abc", records=8, chunk_records=2)) == [list("abcabcab")]
    assert everything(memory.source("abc", records=8, splits=2)) == [list("abca"), list("bcab")]
    assert everything(memory.source("abc", records=2)) == [list("ab")]
    assert everything(memory.source([], records=0)) == [[]]


@pytest.mark.parametrize("settings", [{"splits": 0}, {"chunk_records": 0}, {"records": 5}])
def test_settings_that_mean_nothing_are_refused(settings: dict[str, int]) -> None:
    with pytest.raises(InvalidJob, match=r"memory\.source"):
        memory.source([], **settings)


def test_r015_a_position_that_the_list_does_not_have_is_an_error() -> None:
    with pytest.raises(RestoreFailed, match="record 50 of split 0, which has 10"):
        asyncio.run(drain(memory.source(range(10)), world_of(), "0", 50))


def test_two_runs_of_one_job_in_memory_are_two_runs() -> None:
    async def story() -> None:
        sink = memory.collect()
        for _ in range(2):
            writer = await sink.open(sink_context(world_of()))
            await writer.write([1, 2])
            committables = writer.prepare(1).committables
            for _ in range(2):
                await writer.commit(committables, Permit(1, 1))
        assert sink.rows == [1, 2, 1, 2]

    asyncio.run(story())


def test_a_simulated_process_that_died_has_no_effect_any_more() -> None:
    async def story() -> None:
        universe = Universe()
        collect, append = memory.collect(), memory.append()
        for sink in (collect, append):
            process = universe.process("p")
            writer: Any = await sink.open(sink_context(process.world))
            process.kill()
            with pytest.raises(Severed):
                if isinstance(writer, TransactionalWriter):
                    await writer.write([1])
                    await writer.commit(writer.prepare(1).committables, Permit(1, 1))
                else:
                    await writer.write([1])
            assert sink.rows == []

    run(story)


def test_the_list_itself_may_be_given() -> None:
    rows: list[Any] = []
    assert memory.collect(rows).rows is rows
    assert memory.append(rows).rows is rows
    assert memory.collect().rows == []
