from __future__ import annotations

import asyncio
import gzip
import itertools
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from actorflow.abc.connectors import Chunk, SourceContext
from actorflow.abc.world import World
from actorflow.connectors import files, function, generator, memory
from actorflow.simulation import run
from actorflow.simulation.contracts_connectors import (
    SINK_CHECKS,
    SOURCE_CHECKS,
    TRANSACTIONAL_SINK_CHECKS,
    SinkArm,
    SourceArm,
    TransactionalSinkArm,
)
from actorflow.simulation.process import Ending
from actorflow.simulation.weather import Kill, Moment, OnDisk
from actorflow.simulation.world import Universe
from actorflow.storage.disk import LocalDisk
from actorflow_tests.connectors.support import Death, DyingDisk, MemoryDisk, world_of

# ── sources ──────────────────────────────────────────────────────────────────────────────────

TEXT = "".join(f"line {index} " + "x" * (index % 90) + ("\r\n" if index % 7 else "\n") for index in range(300))


@function.source(runs_in_simulation=True)
async def counted(context: SourceContext[int], last: int) -> AsyncIterator[Chunk[int]]:
    for index in range(context.resume_at or 0, last):
        yield Chunk([index], resume_at=index + 1)


def disk_of_texts() -> MemoryDisk:
    disk = MemoryDisk()
    disk.put("/in/a.txt", TEXT.encode() + b"no line break at the end")
    disk.put("/in/b.txt.gz", gzip.compress(TEXT.encode(), mtime=0) + gzip.compress(b"second member\nlast", mtime=0))
    disk.put("/in/c.txt", b"")
    disk.put("/in/d.txt", b"\n\n \n")
    return disk


SOURCES: dict[str, Callable[[], SourceArm]] = {
    "memory": lambda: SourceArm(make=lambda: memory.source(list(range(70)), splits=3, chunk_records=8), world=world_of),
    "memory, round and round": lambda: SourceArm(
        make=lambda: memory.source("abc", records=20, splits=2, chunk_records=4), world=world_of
    ),
    "generator": lambda: SourceArm(
        make=lambda: generator.generate(lambda index, draw: (index, draw), records=50, splits=3, chunk_records=7),
        world=world_of,
    ),
    "generator, paced": lambda: SourceArm(make=lambda: generator.numbers(30, per_second=7, splits=2), world=world_of),
    "generator, endless": lambda: SourceArm(
        make=lambda: generator.numbers(chunk_records=9), world=world_of, most_records=60
    ),
    "function": lambda: SourceArm(make=lambda: counted(12), world=world_of),
    "files": lambda: _file_arm(chunk_bytes=700),
    "files, paced": lambda: _file_arm(per_second=2_000, chunk_bytes=3_000),
    "files, followed": lambda: _file_arm(most_records=299, follow=True),
}


def _file_arm(most_records: int | None = None, **settings: Any) -> SourceArm:
    disk = disk_of_texts()
    settings = {"chunk_bytes": 900, **settings}
    names = ["/in/a.txt", "/in/b.txt.gz"] if most_records else ["/in"]
    return SourceArm(
        make=lambda: files.lines(names, **settings), world=lambda: world_of(disk), most_records=most_records
    )


@pytest.mark.parametrize("check", SOURCE_CHECKS, ids=lambda check: check.__name__)
@pytest.mark.parametrize("name", SOURCES)
def test_each_source_keeps_the_contract(name: str, check: Callable[[SourceArm], Any]) -> None:
    asyncio.run(check(SOURCES[name]()))


# ── sinks ────────────────────────────────────────────────────────────────────────────────────


def _append_arm() -> SinkArm:
    rows: list[Any] = []
    return SinkArm(
        make=lambda: memory.append(rows), world=world_of, batches=[["a", "b"], ["c"]], seen=lambda: list(rows)
    )


def _call_arm(is_async: bool) -> SinkArm:
    rows: list[Any] = []

    async def later(record: Any) -> None:
        await asyncio.sleep(0)
        rows.append(record)

    return SinkArm(
        make=lambda: function.call(later if is_async else rows.append),
        world=world_of,
        batches=[[1, 2], [], [3]],
        seen=lambda: list(rows),
    )


SINKS: dict[str, Callable[[], SinkArm]] = {
    "memory": _append_arm,
    "function": lambda: _call_arm(is_async=False),
    "async function": lambda: _call_arm(is_async=True),
}


@pytest.mark.parametrize("check", SINK_CHECKS, ids=lambda check: check.__name__)
@pytest.mark.parametrize("name", SINKS)
def test_each_sink_keeps_the_contract(name: str, check: Callable[[SinkArm], Any]) -> None:
    asyncio.run(check(SINKS[name]()))


# ── transactional sinks ──────────────────────────────────────────────────────────────────────

BATCHES = [["a", "b"], ["c"], ["d", "e", "f"], ["g"]]


def _collect_arm() -> TransactionalSinkArm:
    sink = memory.collect()
    return TransactionalSinkArm(make=lambda: sink, world=world_of, batches=BATCHES)


def _files_arm(*, cuts_power: bool) -> TransactionalSinkArm:
    disk = MemoryDisk()

    async def mortal(step: int, life: Callable[[World], Awaitable[None]]) -> bool:
        try:
            await life(world_of(DyingDisk(disk, step)))
        except Death:
            return True
        return False

    return TransactionalSinkArm(
        make=lambda: files.write("/out"),
        world=lambda: world_of(disk),
        batches=BATCHES,
        mortal=mortal,
        power_cut=disk.power_cut if cuts_power else None,
    )


TRANSACTIONAL_SINKS: dict[str, Callable[[], TransactionalSinkArm]] = {
    "memory": _collect_arm,
    "files": lambda: _files_arm(cuts_power=False),
    "files, power cut": lambda: _files_arm(cuts_power=True),
}


@pytest.mark.parametrize("check", TRANSACTIONAL_SINK_CHECKS, ids=lambda check: check.__name__)
@pytest.mark.parametrize("name", TRANSACTIONAL_SINKS)
def test_each_transactional_sink_keeps_the_contract(name: str, check: Callable[[TransactionalSinkArm], Any]) -> None:
    asyncio.run(check(TRANSACTIONAL_SINKS[name]()))


@pytest.mark.parametrize("check", TRANSACTIONAL_SINK_CHECKS, ids=lambda check: check.__name__)
@pytest.mark.parametrize("moment", [Moment.DURING, Moment.AFTER])
@pytest.mark.parametrize("cuts_power", [False, True])
def test_the_file_sink_keeps_the_contract_in_the_simulated_world(
    check: Callable[[TransactionalSinkArm], Any], moment: Moment, *, cuts_power: bool
) -> None:
    async def story() -> None:
        universe = Universe(7)
        names = map("p{}".format, itertools.count())

        async def mortal(step: int, life: Callable[[World], Awaitable[None]]) -> bool:
            name = next(names)
            universe.expect(Kill(OnDisk("*", "*", moment, step + 1, name), process=name))
            process = await universe.start(name, life)
            outcome = await process.wait()
            if outcome.ending is Ending.RAISED:
                outcome.result()
            return outcome.ending is Ending.KILLED

        await check(
            TransactionalSinkArm(
                make=lambda: files.write("/out"),
                world=lambda: universe.world(next(names)),
                batches=BATCHES,
                mortal=mortal,
                power_cut=universe.power_cut if cuts_power else None,
            )
        )

    run(story, seed=7)


@pytest.mark.parametrize("check", SOURCE_CHECKS, ids=lambda check: check.__name__)
def test_the_file_source_keeps_the_contract_in_the_simulated_world(check: Callable[[SourceArm], Any]) -> None:
    async def story() -> None:
        universe = Universe(3)
        names = map("p{}".format, itertools.count())
        disk = universe.world("writer").disk
        await disk.make_folder("/in")
        for path, file in disk_of_texts().files.items():
            writer = await disk.create(path)
            await writer.write(bytes(file.data))
            await writer.close()
        await check(
            SourceArm(make=lambda: files.lines("/in", chunk_bytes=700), world=lambda: universe.world(next(names)))
        )

    run(story, seed=3)


@pytest.mark.parametrize("check", TRANSACTIONAL_SINK_CHECKS, ids=lambda check: check.__name__)
def test_the_file_sink_keeps_the_contract_on_this_machine(
    check: Callable[[TransactionalSinkArm], Any], tmp_path: Path
) -> None:
    arm = TransactionalSinkArm(
        make=lambda: files.write(tmp_path / "out"), world=lambda: world_of(LocalDisk()), batches=BATCHES
    )
    asyncio.run(check(arm))


@pytest.mark.parametrize("check", SOURCE_CHECKS, ids=lambda check: check.__name__)
def test_the_file_source_keeps_the_contract_on_this_machine(check: Callable[[SourceArm], Any], tmp_path: Path) -> None:
    for path, file in disk_of_texts().files.items():
        (tmp_path / Path(path).name).write_bytes(bytes(file.data))
    asyncio.run(
        check(SourceArm(make=lambda: files.lines(tmp_path, chunk_bytes=3_000), world=lambda: world_of(LocalDisk())))
    )
