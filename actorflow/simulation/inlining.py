"""What do a job's own sources give, as inputs of a scenario?

A scenario that holds its records can be cut record by record, and read by people.  So the sources that run in the
simulator as they are, and end, are read once, each in a process of its own with nothing else about, and what they gave
is written down with the times.  Records keep their splits as far as a scenario can say it.
"""

from __future__ import annotations

from typing import Any

import anyio

from actorflow.abc.connectors import Source, SourceContext
from actorflow.abc.world import World
from actorflow.dataflow.job import Job
from actorflow.dataflow.plan import compile_plan
from actorflow.simulation.loop import run as run_simulated
from actorflow.simulation.scenario import Input, TimedRecord
from actorflow.simulation.world import Universe

__all__ = ("MOST_RECORDS", "inputs_of")

MOST_RECORDS = 1_000
"""A job that reads more than this is left alone: nobody would read the scenario."""


class _TooMany(Exception):
    """Raised when a source gives more than is wanted."""


def inputs_of(job: Job) -> tuple[Input, ...]:
    """Return what each of the job's sources gives; nothing where that is too much, or a source can't be read alone."""
    found = []
    for operator in compile_plan(job).sources():
        source = operator.source
        if not (source.runs_in_simulation and source.bounded):
            return ()
        try:
            splits = run_simulated(_read, operator.name, source)
        except Exception:  # whatever it is, the scenario reads the source as it is
            return ()
        found.append(Input(source=operator.name, records=tuple(_dealt(splits)), splits=max(1, len(splits))))
    return tuple(found)


async def _read(name: str, source: Source[Any]) -> list[list[TimedRecord]]:
    universe = Universe()
    reading = await universe.start("reader", _read_all, name, source, universe)
    splits: list[list[TimedRecord]] = (await reading.wait()).result()
    return splits


async def _read_all(world: World, name: str, source: Source[Any], universe: Universe) -> list[list[TimedRecord]]:
    splits = list(await source.discover(world))
    read: list[list[TimedRecord]] = [[] for _ in splits]

    async def one(index: int, split: str) -> None:
        context: SourceContext[Any] = SourceContext(
            operator=name, split=split, resume_at=None, subtask=0, parallelism=1, world=world
        )
        async for chunk in source.read(context):
            read[index] += [TimedRecord(value=value, at_ms=universe.now_ms()) for value in chunk.records]
            if sum(map(len, read)) > MOST_RECORDS:
                raise _TooMany

    async with anyio.create_task_group() as group:
        for index, split in enumerate(splits):
            group.start_soon(one, index, split)
    return read


def _dealt(splits: list[list[TimedRecord]]) -> list[TimedRecord]:
    """All records in one list, in which record ``i`` belongs to split ``i % splits`` as long as each has one."""
    dealt: list[TimedRecord] = []
    for index in range(max(map(len, splits), default=0)):
        dealt += [split[index] for split in splits if index < len(split)]
    return dealt
