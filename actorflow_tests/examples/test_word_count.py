from __future__ import annotations

import asyncio
import hashlib
from collections import Counter
from datetime import timedelta
from typing import Any

import pytest

import actorflow as af
from actorflow.abc.world import World
from actorflow.connectors import files
from actorflow.examples.word_count import made_up, word_count
from actorflow.simulation import run
from actorflow.simulation.process import Ending
from actorflow.simulation.world import Universe

TEXT = [made_up(index) for index in range(1_000)]


def rows_of(lines: list[str]) -> Counter[str]:
    """What a running count of each word comes to, whatever the order."""
    words = Counter(word.lower() for line in lines for word in line.split())
    return Counter(f"{word}\t{count}" for word, last in words.items() for count in range(1, last + 1))


def test_the_made_up_text_is_the_same_on_every_machine() -> None:
    assert sum(len(line.split()) for line in TEXT) == 10_000
    assert hashlib.sha256("\n".join(TEXT).encode()).hexdigest() == (
        "1f85fc3160b761ee6daed1179d932342001cb0b4ee44794cd17738d8e1bce8de"
    )


@pytest.mark.parametrize("parallelism", [1, 3])
@pytest.mark.parametrize("path", ["", "/in", "/in/b*.txt"])
def test_it_counts_every_word_once(path: str, parallelism: int) -> None:
    async def story() -> None:
        universe = Universe(1)
        world = universe.world("p")
        await write_texts(world)
        job = word_count(path, "/out")
        async with af.Environment(parallelism=parallelism, world=world).run(job) as handle:
            await handle.wait()
        expected = TEXT if not path else TEXT[:300] if path == "/in" else TEXT[100:200]
        assert Counter(await files.write("/out").visible(world)) == rows_of(expected)

    run(story, seed=1)


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("path", ["", "/in"])
def test_it_counts_every_word_once_however_often_it_is_killed(path: str, seed: int) -> None:
    async def live(world: World) -> None:
        checkpoints = af.Checkpoints(storage="/checkpoints", every=timedelta(milliseconds=20))
        environment = af.Environment(parallelism=1 + seed % 3, checkpoints=checkpoints, world=world)
        async with environment.run(word_count(path, "/out")) as handle:
            await handle.wait()

    async def story() -> None:
        universe = Universe(seed, batch_us=20_000)
        await write_texts(universe.world("writer"))
        kills = 0
        while True:
            process = await universe.start("p", live)
            if kills < 6:
                delay = universe.chance.between("until the kill", 1, 100 if path else 700)
                asyncio.get_running_loop().call_later(delay / 1_000, process.kill)
            outcome = await process.wait()
            if outcome.ending is not Ending.KILLED:
                outcome.result()
                break
            kills += 1
        assert kills
        expected = TEXT if not path else TEXT[:300]
        found: Any = Counter(await files.write("/out").visible(universe.world("reader")))
        assert found == rows_of(expected), f"missing {rows_of(expected) - found}, too many {found - rows_of(expected)}"

    run(story, seed=seed)


async def write_texts(world: World) -> None:
    await world.disk.make_folder("/in")
    for number, name in enumerate("abc"):
        writer = await world.disk.create(f"/in/{name}1.txt")
        await writer.write("".join(f"{line}\r\n" for line in TEXT[number * 100 : number * 100 + 100]).encode())
        await writer.sync()
        await writer.close()
    await world.disk.sync_folder("/in")
