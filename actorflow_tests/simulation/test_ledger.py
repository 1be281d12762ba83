"""A ledger shows what was committed, once, whatever happens to whom commits."""

from __future__ import annotations

from typing import Any

import pytest

from actorflow.abc.connectors import SinkContext, TransactionalWriter
from actorflow.abc.world import World
from actorflow.errors import StorageFailed
from actorflow.model.codec import Codec
from actorflow.simulation import run
from actorflow.simulation.ledger import BUCKET, Ledger
from actorflow.simulation.weather import Kill, LoseAnswer, OnObject
from actorflow.simulation.world import Universe

LEDGER = Ledger("rows", Codec())


def context(world: World, *, generation: int = 1, subtask: int = 0) -> SinkContext:
    return SinkContext(
        operator="rows", subtask=subtask, parallelism=1, generation=generation, home="/home", world=world
    )


class Permit:
    checkpoint_id, generation = 99, 1


async def cut(writer: TransactionalWriter[Any], checkpoint_id: int, rows: list[Any]) -> list[Any]:
    await writer.write(rows)
    prepared = writer.prepare(checkpoint_id)
    if prepared.rest is not None:
        await prepared.rest
    return prepared.committables


def tell(story: Any, seed: int = 0) -> None:
    async def whole() -> None:
        await story(Universe(seed))

    run(whole, seed=seed)


def test_rows_are_visible_after_their_commit_and_once() -> None:
    async def story(universe: Universe) -> None:
        world = universe.world("p")
        writer = await LEDGER.open(context(world))
        first = await cut(writer, 1, ["a", "b", ("c", 1)])
        second = await cut(writer, 2, ["d"])
        assert await LEDGER.visible(world) == []
        for _ in range(2):
            await writer.commit(first, Permit())
        assert await LEDGER.visible(world) == ["a", "b", ("c", 1)]
        await writer.commit(second, Permit())
        assert await LEDGER.visible(world) == ["a", "b", ("c", 1), "d"]
        assert (await cut(writer, 3, [])) == []
        counted = LEDGER.commits(universe.shelf(BUCKET).objects)
        assert counted[1] == len(first)
        assert counted[2] == len(second)

    tell(story)


def test_another_process_commits_what_was_prepared() -> None:
    async def story(universe: Universe) -> None:
        process = universe.process("p")
        prepared = await cut(await LEDGER.open(context(process.world)), 1, [1, 2, 3, 4])
        process.kill()
        await process.wait()
        world = universe.world("q")
        writer = await LEDGER.open(context(world, generation=2, subtask=3))
        await writer.commit(prepared, Permit())
        assert sorted(await LEDGER.visible(world)) == [1, 2, 3, 4]

    tell(story)


@pytest.mark.parametrize("seed", range(8))
def test_a_kill_in_the_middle_of_a_commit_is_finished_by_the_next_one(seed: int) -> None:
    async def story(universe: Universe) -> None:
        rows = list(range(10))
        process = universe.process("p")
        prepared = await cut(await LEDGER.open(context(process.world)), 1, rows)
        universe.expect(Kill(OnObject("*", "rows/*", "during", occurrence=1 + seed)))

        async def commit(world: World) -> None:
            await (await LEDGER.open(context(world))).commit(prepared, Permit())

        first = await universe.start("c", commit)
        await first.wait()
        second = await universe.start("d", commit)
        await second.wait()
        assert sorted(await LEDGER.visible(universe.world("reader"))) == rows

    tell(story, seed)


def test_a_lost_answer_doubles_nothing() -> None:
    async def story(universe: Universe) -> None:
        world = universe.world("p")
        writer = await LEDGER.open(context(world))
        prepared = await cut(writer, 1, [1, 2, 3])
        universe.expect(LoseAnswer(OnObject("put_if_absent", "rows/committed/*"), "put_if_absent", "rows/committed/*"))
        with pytest.raises(StorageFailed):
            await writer.commit(prepared, Permit())
            await writer.commit(prepared, Permit())
        await writer.commit(prepared, Permit())
        assert sorted(await LEDGER.visible(world)) == [1, 2, 3]

    tell(story)


def test_what_is_discarded_is_gone_and_what_is_committed_can_not_be_discarded() -> None:
    async def story(universe: Universe) -> None:
        world = universe.world("p")
        writer = await LEDGER.open(context(world))
        first, second = await cut(writer, 1, [1]), await cut(writer, 2, [2])
        await writer.commit(first, Permit())
        with pytest.raises(StorageFailed):
            await writer.discard(first)
        await writer.discard(second)
        assert await LEDGER.visible(world) == [1]
        assert [name for name in universe.shelf(BUCKET).objects if "staged" in name] == []

    tell(story)


def test_a_sweep_removes_what_older_generations_left_and_nobody_names() -> None:
    async def story(universe: Universe) -> None:
        world = universe.world("p")
        old = await LEDGER.open(context(world, generation=1))
        kept, left = await cut(old, 1, [1]), await cut(old, 2, [2])
        new = await LEDGER.open(context(world, generation=2))
        mine = await cut(new, 3, [3])
        assert await new.sweep(kept) == len(left)
        await new.commit([*kept, *mine], Permit())
        assert await LEDGER.visible(world) == [1, 3]

    tell(story)
