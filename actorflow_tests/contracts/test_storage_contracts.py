"""The same body for every store and every disk, real and simulated."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from actorflow.simulation import run
from actorflow.simulation.contracts_storage import check_disk, check_object_store
from actorflow.simulation.world import Universe
from actorflow.storage import FileStore, MemoryStore
from actorflow.storage.disk import LocalDisk

SEEDS = range(3)


def test_memory_store() -> None:
    store = MemoryStore()
    asyncio.run(check_object_store(lambda: store))


def test_file_store_on_this_machine(tmp_path: Path) -> None:
    asyncio.run(check_object_store(lambda: FileStore(str(tmp_path / "store"), LocalDisk())))
    left = [path for path in (tmp_path / "store").rglob("*") if path.parent.name != ".writers"]
    assert left == [tmp_path / "store" / ".writers"]


def test_file_store_on_this_machine_and_a_simulated_loop(tmp_path: Path) -> None:
    run(check_object_store, lambda: FileStore(str(tmp_path / "store"), LocalDisk()), seed=1)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("location", [None, "/checkpoints", "s3://bucket/checkpoints"])
def test_simulated_stores(seed: int, location: str | None) -> None:
    async def main() -> None:
        universe = Universe(seed)
        first, second = universe.world("first"), universe.world("second")
        worlds = iter([first, first if location is None else second])
        await check_object_store(lambda: next(worlds).objects.open(location))

    run(main, seed=seed)


def test_local_disk(tmp_path: Path) -> None:
    asyncio.run(check_disk(LocalDisk, str(tmp_path)))


@pytest.mark.parametrize("seed", [1, 2])
def test_local_disk_on_a_simulated_loop(tmp_path: Path, seed: int) -> None:
    run(check_disk, LocalDisk, str(tmp_path), seed=seed)


@pytest.mark.parametrize("seed", SEEDS)
def test_simulated_disk(seed: int) -> None:
    async def main() -> None:
        universe = Universe(seed)
        disks = iter([universe.world("first").disk, universe.world("second").disk])
        await check_disk(lambda: next(disks), "/root")

    run(main, seed=seed)
