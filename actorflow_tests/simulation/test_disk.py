from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from actorflow.errors import StorageFailed
from actorflow.simulation import run
from actorflow.simulation.process import Process
from actorflow.simulation.weather import At, FailDisk, TearDisk
from actorflow.simulation.world import Universe

Story = Callable[[Process], Awaitable[None]]


def after_power_cut(story: Story, seed: int) -> dict[str, bytes]:
    async def main() -> dict[str, bytes]:
        universe = Universe(seed)
        await story(universe.process("p"))
        universe.power_cut("m1")
        return universe.machine("m1").platter.files()

    return run(main, seed=seed)


async def write(process: Process, path: str, data: bytes, *, sync: bool) -> None:
    file = await process.world.disk.create(path)
    await file.write(data)
    if sync:
        await file.sync()
    await file.close()


SEEDS = range(40)


def test_what_was_synced_survives_a_power_cut() -> None:
    async def story(process: Process) -> None:
        await process.world.disk.make_folder("/a/b")
        await write(process, "/a/b/file", b"safe", sync=True)
        await process.world.disk.sync_folder("/a/b")

    for seed in SEEDS:
        assert after_power_cut(story, seed) == {"/a/b/file": b"safe"}


def test_bytes_that_were_not_synced_survive_up_to_some_prefix() -> None:
    async def story(process: Process) -> None:
        disk = process.world.disk
        file = await disk.create("/file")
        await file.write(b"synced ")
        await file.sync()
        await file.write(b"not synced")
        await disk.sync_folder("/")

    left = {after_power_cut(story, seed)["/file"] for seed in SEEDS}
    assert all(b"synced not synced".startswith(data) and data.startswith(b"synced ") for data in left)
    assert len(left) > 3


def test_names_that_were_not_synced_survive_in_the_order_of_their_changes() -> None:
    async def story(process: Process) -> None:
        for number in range(4):
            await write(process, f"/{number}", b"x", sync=True)

    left = {tuple(after_power_cut(story, seed)) for seed in SEEDS}
    assert left <= {("/0", "/1", "/2", "/3")[:count] for count in range(5)}
    assert {(), ("/0", "/1", "/2", "/3")} < left


def test_a_rename_survives_whole_or_not_at_all() -> None:
    async def story(process: Process) -> None:
        disk = process.world.disk
        await disk.make_folder("/from")
        await disk.make_folder("/to")
        await write(process, "/from/new", b"new", sync=True)
        await write(process, "/to/name", b"old", sync=True)
        await disk.sync_folder("/from")
        await disk.sync_folder("/to")
        await disk.rename("/from/new", "/to/name")

    left = [after_power_cut(story, seed) for seed in SEEDS]
    before, after = {"/from/new": b"new", "/to/name": b"old"}, {"/to/name": b"new"}
    assert all(files in (before, after) for files in left)
    assert before in left
    assert after in left


def test_syncing_one_folder_takes_along_what_a_rename_ties_to_it() -> None:
    async def story(process: Process) -> None:
        disk = process.world.disk
        await disk.make_folder("/from")
        await disk.make_folder("/to")
        await write(process, "/from/new", b"new", sync=True)
        await disk.rename("/from/new", "/to/name")
        await write(process, "/from/other", b"other", sync=True)
        await disk.sync_folder("/to")

    for seed in SEEDS:
        files = after_power_cut(story, seed)
        assert files.pop("/to/name") == b"new"
        assert files in ({}, {"/from/other": b"other"})


def test_a_name_can_survive_without_its_bytes() -> None:
    async def story(process: Process) -> None:
        await write(process, "/file", b"bytes", sync=False)
        await process.world.disk.sync_folder("/")

    assert {"/file": b""} in [after_power_cut(story, seed) for seed in SEEDS]


def test_a_kill_without_a_power_cut_forgets_nothing() -> None:
    async def main() -> None:
        universe = Universe(0)
        process = universe.process("p")
        await write(process, "/file", b"not synced", sync=False)
        process.kill()
        assert await universe.world("p").disk.read_whole("/file") == b"not synced"

    run(main)


def test_a_lost_disk_is_empty() -> None:
    async def main() -> None:
        universe = Universe(0)
        process = universe.process("p")
        await write(process, "/file", b"x", sync=True)
        await process.world.disk.sync_folder("/")
        universe.power_cut("m1", lose_disk=True)
        assert universe.machine("m1").platter.files() == {}
        await universe.process("p").world.disk.make_folder("/again")

    run(main)


def test_machines_have_disks_of_their_own() -> None:
    async def main() -> None:
        universe = Universe(0)
        first, second = universe.process("p", "m1"), universe.process("q", "m2")
        await write(first, "/file", b"1", sync=True)
        assert await second.world.disk.size("/file") is None
        universe.power_cut("m2")
        assert first.is_alive
        assert not second.is_alive

    run(main)


def test_a_torn_write_leaves_a_part_and_makes_the_file_worthless() -> None:
    async def main(seed: int) -> int:
        universe = Universe(seed, weather=[TearDisk(At(0), "write")])
        process = universe.process("p")
        await process.world.clock.sleep(1)
        file = await process.world.disk.create("/file")
        with pytest.raises(StorageFailed, match="/file"):
            await file.write(b"0123456789")
        with pytest.raises(StorageFailed, match="earlier write"):
            await file.sync()
        return len(universe.machine().platter.files()["/file"])

    lengths = {run(main, seed, seed=seed) for seed in SEEDS}
    assert max(lengths) < 10
    assert len(lengths) > 5


def test_a_refused_operation_has_no_effect() -> None:
    async def main() -> None:
        universe = Universe(0, weather=[FailDisk(At(0), "rename", "/b", count=2)])
        process = universe.process("p")
        await process.world.clock.sleep(1)
        await write(process, "/a", b"1", sync=True)
        for _ in range(2):
            with pytest.raises(StorageFailed, match="/b: rename"):
                await process.world.disk.rename("/a", "/b")
        assert list(universe.machine().platter.files()) == ["/a"]
        await process.world.disk.rename("/a", "/b")
        assert list(universe.machine().platter.files()) == ["/b"]

    run(main)


def test_what_a_dying_process_was_writing_is_decided_by_the_seed() -> None:
    async def main(seed: int) -> bytes:
        universe = Universe(seed)

        async def body(world: object) -> None:
            file = await process.world.disk.create("/file")
            ready.append(True)
            await file.write(b"0123456789")
            await asyncio.sleep(1)

        ready: list[bool] = []
        process = await universe.start("p", body)
        while not ready:
            await asyncio.sleep(0.00001)
        process.kill()
        left = universe.machine().platter.files()["/file"]
        await process.wait()
        assert universe.machine().platter.files()["/file"] == left
        return left

    left = {run(main, seed, seed=seed) for seed in SEEDS}
    assert {b"", b"0123456789"} < left
    assert all(b"0123456789".startswith(data) for data in left)
