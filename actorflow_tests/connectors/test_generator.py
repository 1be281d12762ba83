from __future__ import annotations

import asyncio
from typing import Any

import pytest

from actorflow.connectors import generator
from actorflow.errors import InvalidJob, OperatorFailed
from actorflow_tests.connectors.support import drain, source_context, world_of


def everything(source: generator.Generator[Any]) -> list[list[Any]]:
    async def story() -> list[list[Any]]:
        world = world_of()
        return [await drain(source, world, split) for split in await source.discover(world)]

    return asyncio.run(story())


def test_splits_share_the_records() -> None:
    assert everything(generator.numbers(10, splits=3)) == [[0, 3, 6, 9], [1, 4, 7], [2, 5, 8]]
    assert everything(generator.numbers(2, splits=3)) == [[0], [1], []]
    assert everything(generator.numbers(0)) == [[]]


def test_a_draw_belongs_to_its_record_and_its_seed() -> None:
    def make(index: int, draw: float) -> float:
        return draw

    one = everything(generator.generate(make, records=1_000, seed=1))[0]
    two = everything(generator.generate(make, records=1_000, seed=1, splits=2))
    assert one[::2] == two[0]
    assert one[1::2] == two[1]
    assert everything(generator.generate(make, records=1_000, seed=2))[0] != one
    assert len(dict.fromkeys(one)) == 1_000
    assert all(0 <= draw < 1 for draw in one)
    assert 0.45 < sum(one) / 1_000 < 0.55


def test_draws_are_the_same_on_every_machine() -> None:
    assert [generator.draw(7, index) for index in range(2)] == [generator.draw(7, 0), generator.draw(7, 1)]
    assert generator.draw(0, 0) == 0.8833108082136426


def scaled(index: int, scale: int = 3) -> int:
    return index * scale


def test_a_draw_is_given_only_to_who_asks_for_it() -> None:
    assert everything(generator.generate(lambda index: index * 2, records=3)) == [[0, 2, 4]]
    assert everything(generator.generate(scaled, records=3)) == [[0, 3, 6]]
    assert everything(generator.generate(chr, records=2)) == [["\0", "\1"]]
    assert everything(generator.generate(str, records=2)) == [["0", "1"]]


@pytest.mark.parametrize("make", [lambda a, b, c: 1, lambda index, *, more: 1])
def test_a_function_that_takes_something_else_is_refused(make: Any) -> None:
    with pytest.raises(InvalidJob, match=r"\(index\) or \(index, draw\)"):
        generator.generate(make)


@pytest.mark.parametrize("settings", [{"splits": 0}, {"chunk_records": 0}, {"per_second": 0}, {"records": -1}])
def test_settings_that_mean_nothing_are_refused(settings: dict[str, Any]) -> None:
    with pytest.raises(InvalidJob, match="generator"):
        generator.numbers(**settings)


def test_the_splits_keep_the_rate_together() -> None:
    async def story() -> None:
        world = world_of()
        source = generator.numbers(600, per_second=100, splits=3)
        assert source.splits_at_once is None
        counts = await asyncio.gather(*(drain(source, world, split) for split in await source.discover(world)))
        assert sum(map(len, counts)) == 600
        assert 5_960 <= world.clock.now_ms() <= 6_000

    asyncio.run(story())


def test_after_a_restart_the_pace_begins_anew() -> None:
    async def story() -> None:
        world = world_of()
        world.clock.at_ms = 1_000_000.0  # type: ignore[attr-defined]
        source = generator.numbers(100, per_second=10)
        reading = source.read(source_context(world, "0", 50))
        count = 0
        async for chunk in reading:
            count += len(chunk.records)
            assert count <= (world.clock.now_ms() - 1_000_000) / 100 + 1
        assert count == 50

    asyncio.run(story())


def test_a_function_that_raises_is_named_with_the_records() -> None:
    with pytest.raises(OperatorFailed, match=r"operator 'read', subtask 0: making records 0 to 9 raised ZeroDivision"):
        everything(generator.generate(lambda index: 1 // (index - 5), records=10))
