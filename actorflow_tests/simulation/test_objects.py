from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

from actorflow.errors import ObjectMissing, StorageFailed
from actorflow.model.journal import WeatherStruck
from actorflow.simulation import Severed, run
from actorflow.simulation.weather import (
    At,
    FailObjects,
    Kill,
    LoseAnswer,
    Moment,
    OnObject,
    Partition,
    SlowObjects,
    TearObjects,
    Way,
    Weather,
)
from actorflow.simulation.world import Ending, Universe

LOCATIONS = ["s3://bucket/home", "/home"]


def visible(universe: Universe) -> dict[str, bytes]:
    """What an outsider sees, whichever kind of store it is."""
    objects = {name.removeprefix("home/"): data for name, data in universe.shelf("bucket").objects.items()}
    files = {
        path.removeprefix("/home/"): data
        for path, data in universe.machine().platter.files().items()
        if "/." not in path
    }
    return objects | files


@pytest.mark.parametrize("location", LOCATIONS)
def test_a_refused_operation_has_no_effect(location: str) -> None:
    async def main() -> None:
        universe = Universe(1, weather=[FailObjects(At(0), "put*", "chk-1/*", count=2)])
        store = universe.world("p").objects.open(location)
        await asyncio.sleep(0.001)
        await store.put("other", b"x")
        with pytest.raises(StorageFailed, match="chk-1/_metadata: put_if_absent was refused"):
            await store.put_if_absent("chk-1/_metadata", b"m")
        with pytest.raises(StorageFailed):
            await store.put("chk-1/a", b"m")
        assert visible(universe) == {"other": b"x"}
        assert await store.put_if_absent("chk-1/_metadata", b"m")
        assert universe.journal[0].entry == WeatherStruck(verb="fail", target="chk-1/_metadata")

    run(main)


@pytest.mark.parametrize("location", LOCATIONS)
def test_a_torn_object_is_never_visible_and_is_swept(location: str) -> None:
    async def main() -> None:
        universe = Universe(1, weather=[TearObjects(At(0), "put*", count=2)])
        store = universe.world("p").objects.open(location)
        await asyncio.sleep(0.001)

        async def pieces() -> AsyncIterator[bytes]:
            yield b"0123"
            yield b"4567"

        with pytest.raises(StorageFailed):
            await store.put_if_absent("a", b"01234567")
        with pytest.raises(StorageFailed):
            await store.put("b", pieces())
        assert visible(universe) == {}
        assert await store.list() == []
        with pytest.raises(ObjectMissing):
            await store.get("a")
        halves = [data for _, data in universe.shelf("bucket").unfinished.values()]
        halves += [data for path, data in universe.machine().platter.files().items() if path.endswith(".part")]
        assert halves == [b"0123"] * len(halves)
        assert halves
        if location == "/home":
            assert await store.sweep() == len(halves)

    run(main)


@pytest.mark.parametrize("location", LOCATIONS)
def test_an_answer_can_be_lost_though_the_object_is_there(location: str) -> None:
    async def main() -> None:
        universe = Universe(1, weather=[LoseAnswer(At(0), "put_if_absent")])
        store = universe.world("p").objects.open(location)
        await asyncio.sleep(0.001)
        with pytest.raises(StorageFailed, match="answer"):
            await store.put_if_absent("a", b"1")
        assert await store.get("a") == b"1"
        assert not await store.put_if_absent("a", b"2")

    run(main)


def test_weather_finds_operations_and_not_what_they_are_made_of() -> None:
    """A request that is on its way when a fault begins is not what the fault is about."""

    async def main(seed: int) -> None:
        universe = Universe(seed, weather=[LoseAnswer(At(1), "*", count=2)])
        store = universe.world("p").objects.open("s3://bucket")
        first = asyncio.create_task(store.put_if_absent("first", b"1"))
        await asyncio.sleep(0.002)
        answers = await asyncio.gather(*(store.put(str(n), b"2") for n in range(4)), return_exceptions=True)
        assert await first
        assert sum(isinstance(answer, StorageFailed) for answer in answers) == 2

    for seed in range(5):
        run(main, seed, seed=seed)


def test_a_slow_store_takes_its_time() -> None:
    async def main() -> None:
        universe = Universe(1, weather=[SlowObjects(At(0), "get", by_ms=5_000)])
        world = universe.world("p")
        store = world.objects.open("s3://bucket")
        await store.put("a", b"1")
        before = world.clock.now_ms()
        assert await store.get("a") == b"1"
        assert world.clock.now_ms() - before >= 5_000

    run(main)


@pytest.mark.parametrize("way", list(Way))
def test_a_partition_cuts_off_what_is_remote(way: Way) -> None:
    async def main() -> None:
        universe = Universe(1, weather=[Partition(At(10), "p", 20_000, way)])
        world = universe.world("p")
        remote, local = world.objects.open("s3://bucket/home"), world.objects.open("/home")
        await world.clock.sleep(20)
        with pytest.raises(StorageFailed, match="partition"):
            await remote.put_if_absent("a", b"1")
        assert visible(universe) == ({"a": b"1"} if way is Way.IN else {})
        assert await local.put_if_absent("b", b"2")
        other = universe.world("q").objects.open("s3://bucket/home")
        assert await other.list() == (["a"] if way is Way.IN else [])
        await world.clock.sleep(20_000)
        assert await remote.put_if_absent("c", b"3")

    run(main)


@pytest.mark.parametrize("location", LOCATIONS)
@pytest.mark.parametrize(
    ("moment", "written", "told"),
    [
        (Moment.BEFORE, {False}, False),
        (Moment.TORN, {False}, False),
        (Moment.DURING, {False, True}, False),
        (Moment.UNANSWERED, {True}, False),
        (Moment.AFTER, {True}, True),
    ],
)
def test_a_process_can_die_at_any_moment_of_an_operation(
    location: str, moment: Moment, written: set[bool], told: bool
) -> None:
    async def main(seed: int) -> bool:
        when = OnObject("put_if_absent", "*_metadata", moment, occurrence=2)
        universe = Universe(seed, weather=[Kill(when, step=f"manifest {moment}")])
        answers: list[int] = []

        async def body(world: object) -> None:
            store = process.world.objects.open(location)
            for checkpoint in range(1, 4):
                await store.put("piece", b"p")
                assert await store.put_if_absent(f"chk-{checkpoint}/_metadata", b"manifest")
                answers.append(checkpoint)

        process = await universe.start("p", body)
        assert (await process.wait()).ending is Ending.KILLED
        assert answers == ([1, 2] if told else [1])
        struck = WeatherStruck(verb="kill", target="p", step=f"manifest {moment}")
        assert [line.entry for line in universe.journal] == [struck]
        seen = visible(universe)
        assert seen["chk-1/_metadata"] == b"manifest"
        assert seen.get("chk-2/_metadata", b"manifest") == b"manifest"
        assert "chk-3/_metadata" not in seen
        again = universe.world("p").objects.open(location)
        assert await again.list("chk-") == sorted(name for name in seen if name.startswith("chk-"))
        return "chk-2/_metadata" in seen

    outcomes = {run(main, seed, seed=seed) for seed in range(25 if moment is Moment.DURING else 3)}
    assert outcomes == written


def test_a_request_of_a_dead_process_may_arrive_late() -> None:
    async def main(seed: int) -> str:
        universe = Universe(seed)

        async def body(world: object) -> None:
            await process.world.objects.open("s3://bucket/home").put("late", b"x")

        process = await universe.start("p", body)
        await asyncio.sleep(0.0001)
        process.kill()
        await process.wait()
        soon = visible(universe)
        await asyncio.sleep(10)
        return f"{bool(soon)} {bool(visible(universe))}"

    assert {run(main, seed, seed=seed) for seed in range(40)} == {"False False", "False True", "True True"}


def test_an_upload_cut_by_death_stays_unfinished() -> None:
    async def main() -> None:
        universe = Universe(1)
        store = universe.world("p").objects.open("s3://bucket/home")

        async def pieces() -> AsyncIterator[bytes]:
            yield b"first"
            universe.processes["p"].kill()
            yield b"second"

        with pytest.raises(Severed):
            await store.put("a", pieces())
        assert visible(universe) == {}
        assert [name for name, _ in universe.shelf("bucket").unfinished.values()] == ["home/a"]

    run(main)


def test_an_upload_given_up_by_a_living_process_leaves_nothing() -> None:
    async def main() -> None:
        universe = Universe(1)
        store = universe.world("p").objects.open("s3://bucket/home")

        async def pieces() -> AsyncIterator[bytes]:
            yield b"first"
            raise ZeroDivisionError

        with pytest.raises(ZeroDivisionError):
            await store.put("a", pieces())
        assert universe.shelf("bucket").unfinished == {}

    run(main)


def test_memory_dies_with_its_process_and_buckets_do_not() -> None:
    async def main() -> None:
        universe = Universe(1)
        world = universe.world("p")
        await world.objects.open(None).put("a", b"1")
        assert await world.objects.open(None).get("a") == b"1"
        await world.objects.open("s3://bucket/one").put("a", b"2")
        universe.processes["p"].kill()
        again = universe.world("p")
        assert await again.objects.open(None).list() == []
        assert await again.objects.open("s3://bucket/one/").get("a") == b"2"
        assert await again.objects.open("s3://bucket").list() == ["one/a"]

    run(main)


def test_weather_is_a_value() -> None:
    fault: Weather = Kill(OnObject("put", "*", "after"), "p", "upload")
    assert fault == Kill(OnObject("put", "*", Moment.AFTER), "p", "upload")
    with pytest.raises(ValueError, match="sometime"):
        OnObject("put", "*", "sometime")
