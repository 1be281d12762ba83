"""Whatever a program does with its job, at whatever moment and in whatever weather, nothing hangs, leaks or doubles."""

from __future__ import annotations

import asyncio
import os
from collections import Counter
from functools import partial
from typing import Any

import pytest

import actorflow as af
from actorflow.connectors import files, generator, memory
from actorflow.model import journal
from actorflow.simulation.chance import Chance
from actorflow.simulation.weather import After, At, FailDisk, FailObjects, LoseAnswer, Raise, Slow, SlowObjects, Weather
from actorflow.simulation.world import Universe
from actorflow_tests.runtime.support import entries, environment, play, running_counts

RECORDS = 160


def word(index: int) -> str:
    return f"w{index * 7 % 13}"


async def look_up(record: str) -> str:
    await asyncio.sleep(len(record) % 3 / 1_000)
    return record


class Counts(af.KeyedOperator[str, str, Any]):
    seen = af.ValueState(int)

    async def on_record(self, record: str, context: af.Context[str]) -> Any:
        self.seen.value += 1
        await asyncio.sleep(0)
        return [(record, self.seen.value)]


def rich_job(sink: Any, folder: str) -> af.Job:
    """An async lane, a keyed lane, two sinks of which one is files."""
    job = af.Job("rich")
    source = generator.generate(word, records=RECORDS, per_second=800, splits=3, chunk_records=4)
    counted = (
        job.read(source, name="read")
        .map(look_up, name="look-up", in_flight=3)
        .key_by(str.lower)
        .process(Counts, name="count", in_flight=4, ordered=False)
    )
    counted.write(sink, name="rows")
    counted.map(lambda row: f"{row[0]} {row[1]}").write(files.write(folder), name="files")
    return job


def weather(chance: Chance) -> list[Weather]:
    at = At(chance.between("at", 0, 250))
    count = 1 + chance.below("count", 3)
    kinds: list[Weather] = [
        FailObjects(at, "put*", count=count),
        FailObjects(at, "list", count=count),
        FailObjects(at, "delete", count=count),
        LoseAnswer(at, "put_if_absent", count=count),
        SlowObjects(at, "*", count=count, by_ms=150),
        FailDisk(at, "*", "/out/*", count=count),
        FailDisk(at, "*", count=count),
        Raise(After("SnapshotTaken", occurrence=1 + chance.below("snapshot", 12)), "count"),
        Raise(After("CheckpointCompleted", occurrence=1 + chance.below("completed", 6)), "look-up"),
        Slow(at, "rows", by_ms=50, for_ms=100),
    ]
    return [kinds[chance.below("kind", len(kinds))] for _ in range(chance.below("how many", 4))]


async def use(handle: af.JobHandle, chance: Chance) -> None:
    """Do something with a running job."""
    what = chance.below("what", 9)
    try:
        match what:
            case 0:
                await handle.checkpoint()
            case 1:
                await handle.stop()
            case 2:
                await handle.cancel()
            case 3:
                await asyncio.gather(handle.stop(), handle.stop(), handle.checkpoint())
            case 4:
                await handle.query("count.seen", key="w1")
            case 5:
                async with asyncio.timeout(chance.between("patience", 0, 30) / 1_000):
                    await handle.stop()
            case 6:
                await asyncio.gather(handle.cancel(), handle.stop(), handle.checkpoint(), return_exceptions=True)
            case 7:
                raise ZeroDivisionError("the program's own mistake")
            case _:
                await handle.wait()
    except (af.CheckpointAborted, af.JobFailed, TimeoutError):
        pass


async def program(universe: Universe, chance: Chance, sink: Any, life: int) -> str:
    """One life of a program that holds the job; say how it ended."""
    settings = environment(
        universe.world(f"p{life}"),
        every_ms=(15, 40, None)[chance.below("every", 3)],
        parallelism=1 + chance.below("parallelism", 3),
        tolerable_failures=chance.below("tolerable", 3),
        timeout_ms=(100, 600_000)[chance.below("timeout", 2)],
        restart=af.FixedDelay(attempts=chance.below("attempts", 4)),
        retained=1 + chance.below("retained", 2),
    )
    handles: list[af.JobHandle] = []
    try:
        async with settings.run(
            rich_job(sink, "/out"), on_failure=("raise", "report")[chance.below("on_failure", 2)]
        ) as handle:
            handles.append(handle)
            for _ in range(1 + chance.below("uses", 3)):
                await asyncio.sleep(chance.between("pause", 0, 80) / 1_000)
                await use(handle, chance)
    except (af.ActorflowError, ZeroDivisionError, ExceptionGroup) as error:
        ended = type(error).__name__
    else:
        ended = "left"
    if handles:
        assert handles[0].status.status in ("finished", "stopped", "canceled", "failed"), handles[0].status
        assert handles[0].status.waiting_for == ""
    return ended


async def story(universe: Universe, seed: int) -> Counter[str]:
    chance, sink, ends = Chance(seed, "programs"), memory.collect(), Counter[str]()
    for life in range(4):
        for fault in weather(chance):
            universe.expect(fault)
        living = asyncio.ensure_future(program(universe, chance.scoped("life", str(life)), sink, life))
        if chance.happens("killed from outside", 0.3):
            await asyncio.sleep(chance.between("cancelled after", 0, 200) / 1_000)
            for _ in range(1 + chance.below("how often", 2)):
                living.cancel()
                await asyncio.sleep(0)
        [done], _ = await asyncio.wait([living])
        ends["cancelled" if done.cancelled() else done.result()] += 1
        await asyncio.sleep(0.01)
    universe.calm()
    last = environment(universe.world("last"), every_ms=20, parallelism=2)
    async with last.run(rich_job(sink, "/out")) as handle:
        assert await handle.wait() is af.JobStatus.FINISHED
    wanted = running_counts(map(word, range(RECORDS)))
    assert sorted(sink.rows) == wanted
    rows = await files.write("/out").visible(universe.world("reader"))
    assert Counter(rows) == Counter(f"{key} {count}" for key, count in wanted)
    assert universe.machine().platter.list_tree("/out/.pending") == []
    mistakes = ("AssertionError", "KeyError", "RuntimeError", "AttributeError", "TypeError", "ValueError")
    for entry in entries(universe, journal.JobFailed) + entries(universe, journal.JobRestarting):
        assert entry.cause not in mistakes, entry
    return ends


@pytest.mark.parametrize("first", [0, pytest.param(1, marks=pytest.mark.slow)])
def test_whatever_a_program_does_with_its_job_the_output_is_right_in_the_end(first: int) -> None:
    begin, count = (0, 8) if first == 0 else (int(os.environ.get("ACTORFLOW_FIRST_SEED", "8")), 150)
    ends = Counter[str]()
    for seed in range(begin, begin + count):
        try:
            ends += play(partial(story, seed=seed), seed)
        except BaseException:
            print(f"seed {seed}")
            raise
    assert len(ends) >= 3
