from __future__ import annotations

import asyncio
import gc

import anyio
import pytest

from actorflow.abc.world import World
from actorflow.errors import InvalidConfig, OperatorFailed
from actorflow.model.ids import ActorId
from actorflow.model.journal import (
    ActorStarted,
    CalmBegan,
    CheckpointAcknowledged,
    CheckpointCompleted,
    Entry,
    WeatherStruck,
)
from actorflow.simulation import Severed, SimulatedLoop, run
from actorflow.simulation.digest import journal_digest
from actorflow.simulation.weather import (
    After,
    At,
    Drift,
    Jump,
    Kill,
    LoseDisk,
    OnDisk,
    Pause,
    PowerCut,
    Raise,
    Slow,
)
from actorflow.simulation.world import Ending, Universe
from actorflow_tests.simulation.programs import storm


def acknowledged(checkpoint: int, actor: str = "count/0") -> Entry:
    return CheckpointAcknowledged(checkpoint=checkpoint, actor=actor)


async def count_in_file(world: World, until: int, home: str = "/home") -> int:
    """A job in small: goes on from what is durable, acknowledges each number once it is."""
    store = world.objects.open(home)
    count = len(await store.list("chk-"))
    while count < until:
        count += 1
        assert await store.put_if_absent(f"chk-{count}", b"%d" % count)
        world.observer.announce(acknowledged(count))
    return count


def test_a_process_returns_or_raises() -> None:
    async def main() -> None:
        universe = Universe(0)

        async def fails(world: World) -> None:
            await world.clock.sleep(1)
            raise KeyError("no")

        first, second = await universe.start("p", count_in_file, 3), await universe.start("q", fails)
        assert (await first.wait()).result() == 3
        outcome = await second.wait()
        assert outcome.ending is Ending.RAISED
        with pytest.raises(KeyError):
            outcome.result()

    run(main)


@pytest.mark.parametrize("seed", range(10))
def test_killed_at_the_second_acknowledgement_and_started_again(seed: int) -> None:
    async def main() -> str:
        kill = Kill(After("CheckpointAcknowledged", occurrence=2), step="acknowledged")
        universe = Universe(seed, weather=[kill])
        first = await universe.start("p", count_in_file, 5)
        assert (await first.wait()).ending is Ending.KILLED
        assert [line.name for line in universe.journal] == ["CheckpointAcknowledged"] * 2 + ["WeatherStruck"]
        again = await universe.start("p", count_in_file, 5)
        assert (await again.wait()).result() == 5
        assert [line.entry for line in universe.journal[3:]] == [acknowledged(n) for n in (3, 4, 5)]
        return journal_digest(universe.journal)

    assert run(main, seed=seed) == run(main, seed=seed)


def test_triggers_look_at_fields_processes_and_occurrences() -> None:
    async def main() -> None:
        when = After("CheckpointAcknowledged", {"actor": "a/1"}, 2, later_ms=5, process="p")
        universe = Universe(0, weather=[Kill(when, "q", "step")])
        p, q = universe.world("p"), universe.world("q")
        for world, actor in ((q, "a/1"), (p, "a/0"), (p, "a/1"), (q, "a/1"), (p, "a/1")):
            assert universe.processes["q"].is_alive
            world.observer.announce(acknowledged(1, actor))
        assert universe.processes["q"].is_alive
        await p.clock.sleep(6)
        assert not universe.processes["q"].is_alive
        assert universe.journal[-1].entry == WeatherStruck(verb="kill", target="q", step="step")
        assert universe.journal[-1].at_ms == 5

    run(main)


def test_a_trigger_that_can_never_occur_is_refused() -> None:
    with pytest.raises(InvalidConfig, match="no entry of this name"):
        After("CheckpointAcknowleged")
    with pytest.raises(InvalidConfig, match="no field 'chekpoint', but checkpoint, actor"):
        After("CheckpointAcknowledged", {"chekpoint": 3})


def test_an_actor_s_name_means_the_process_that_runs_it() -> None:
    async def story() -> list[str]:
        universe = Universe(weather=[Kill(At(5), "map/1"), Kill(At(8), "chained")])
        worlds = {name: universe.world(name) for name in ("p", "q")}
        for name, actor in (("q", "map/1"), ("p", "map/0")):
            worlds[name].observer.announce(ActorStarted(actor=actor))
        dead = []
        for _ in range(10):
            await asyncio.sleep(0.001)
            dead += [name for name in worlds if name not in dead and not universe.processes[name].is_alive]
        return dead

    assert ["q", "p"] == run(story)


def test_every_seam_of_a_dead_process_is_severed() -> None:
    async def main() -> None:
        universe = Universe(0)
        world = universe.world("p")
        disk, store = world.disk, world.objects.open("/home")
        file = await disk.create("/file")
        universe.processes["p"].kill()
        for call in (
            world.clock.now_ms,
            world.clock.now_us,
            world.clock.wall_ms,
            world.clock.slice_is_over,
            lambda: world.entropy.uniform("x"),
            lambda: world.observer.announce(acknowledged(1)),
            lambda: world.objects.open(None),
            lambda: world.load.before_batch(ActorId("a", 0), ("a",)) if world.load else None,
        ):
            with pytest.raises(Severed):
                call()
        for wait in (
            world.clock.sleep(1),
            file.write(b"x"),
            file.sync(),
            disk.create("/other"),
            disk.list_tree("/"),
            disk.resolve("/"),
            store.put("a", b""),
            store.put_if_absent("a", b""),
            store.get("a"),
            store.list(),
            store.delete("a"),
        ):
            with pytest.raises(Severed):
                await wait
        assert universe.machine().platter.files() == {"/file": b""}
        assert [line.name for line in universe.journal] == ["WeatherStruck"]

    run(main)


def test_the_clean_up_of_a_dead_process_has_no_effect() -> None:
    async def main() -> None:
        universe = Universe(0)
        reached: list[str] = []

        async def child(world: World) -> None:
            try:
                await anyio.sleep_forever()
            finally:
                with anyio.CancelScope(shield=True):
                    reached.append("child")
                    await world.disk.create("/from-finally")

        async def body(world: World) -> None:
            try:
                async with anyio.create_task_group() as group:
                    group.start_soon(child, world)
                    group.start_soon(child, world)
            finally:
                reached.append("root")
                world.observer.announce(acknowledged(1))

        process = await universe.start("p", body)
        await asyncio.sleep(1)
        process.kill()
        outcome = await process.wait()
        assert outcome.ending is Ending.KILLED
        with pytest.raises(Severed):
            outcome.result()
        assert sorted(reached) == ["child", "child", "root"]
        assert universe.machine().platter.files() == {}
        assert [line.name for line in universe.journal] == ["WeatherStruck"]
        loop = asyncio.get_running_loop()
        assert isinstance(loop, SimulatedLoop)
        assert loop.unhandled == []

    run(main)


def test_a_process_that_refuses_to_die_is_buried() -> None:
    async def main() -> None:
        universe = Universe(0)
        turns: list[int] = []

        async def body(world: World) -> None:
            while True:
                try:
                    await asyncio.sleep(1)
                except asyncio.CancelledError:
                    turns.append(1)

        process = await universe.start("p", body)
        await asyncio.sleep(1)
        process.kill()
        await process.wait()
        count = len(turns)
        await asyncio.sleep(10)
        assert len(turns) == count

    run(main)


def test_a_process_that_dies_by_its_own_hand_stops_at_once() -> None:
    async def main() -> None:
        universe = Universe(0, weather=[Kill(After("CheckpointAcknowledged"))])
        reached: list[str] = []

        async def body(world: World) -> None:
            world.observer.announce(acknowledged(1))
            reached.append("after")

        process = await universe.start("p", body)
        assert (await process.wait()).ending is Ending.KILLED
        assert reached == []

    run(main)


def test_a_finished_process_leaves_nothing_running() -> None:
    async def main() -> None:
        universe = Universe(0)
        ticks: list[int] = []

        async def body(world: World) -> str:
            async def tick() -> None:
                while True:
                    await world.clock.sleep(1)
                    ticks.append(1)

            other = asyncio.create_task(tick())
            await world.clock.sleep(10.5)
            return other.get_name()

        process = await universe.start("p", body)
        await process.wait()
        assert len(ticks) == 10
        assert not process.is_alive
        await asyncio.sleep(1)
        assert len(ticks) == 10

    run(main)


def test_a_paused_process_misses_time_and_nothing_else() -> None:
    async def main() -> None:
        universe = Universe(0, weather=[Pause(At(2_500), "p", 4_000)])
        seen: list[int] = []

        async def body(world: World) -> None:
            for _ in range(4):
                await world.clock.sleep(1_000)
                seen.append(world.clock.now_ms())

        process = await universe.start("p", body)
        (await process.wait()).result()
        assert seen == [1_000, 2_000, 6_500, 7_500]

    run(main)


def test_a_paused_process_can_be_killed() -> None:
    async def main() -> None:
        universe = Universe(0)
        process = await universe.start("p", count_in_file, 1_000)
        await asyncio.sleep(0.01)
        process.pause(3_600_000)
        process.kill()
        await process.wait()
        assert universe.now_ms() < 1_000

    run(main)


def test_threads_of_a_dying_process_were_done_or_never_are() -> None:
    async def main(seed: int) -> bool:
        universe = Universe(seed)
        done: list[int] = []

        async def body(world: World) -> None:
            await asyncio.to_thread(done.append, 1)

        process = await universe.start("p", body)
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        process.kill()
        left = bool(done)
        await asyncio.sleep(1)
        assert bool(done) == left
        return left

    assert {run(main, seed, seed=seed) for seed in range(30)} == {False, True}


def test_a_power_cut_kills_all_of_a_machine() -> None:
    async def main() -> None:
        universe = Universe(0, weather=[PowerCut(After("CheckpointAcknowledged", {"checkpoint": 3}), step="power")])
        here = [await universe.start(name, count_in_file, 9, f"/{name}") for name in ("p", "q")]
        there = await universe.start("r", asyncio_sleeps, machine="m2")
        assert [(await process.wait()).ending for process in here] == [Ending.KILLED] * 2
        assert (await there.wait()).ending is Ending.RETURNED
        struck = [line.entry for line in universe.journal if line.name == "WeatherStruck"]
        assert struck == [WeatherStruck(verb="power_cut", target="m1", step="power")]
        again = await universe.start("p", count_in_file, 9, "/p")
        assert (await again.wait()).result() == 9
        assert len([path for path in universe.machine().platter.files() if path.startswith("/p/chk-")]) == 9

    for seed in range(5):
        run(main, seed=seed)


async def asyncio_sleeps(world: World) -> None:
    await asyncio.sleep(10)


def test_a_lost_disk_starts_over() -> None:
    async def main() -> None:
        universe = Universe(0, weather=[LoseDisk(After("CheckpointAcknowledged", {"checkpoint": 3}), "m1")])
        first = await universe.start("p", count_in_file, 9)
        await first.wait()
        again = await universe.start("p", count_in_file, 2)
        assert (await again.wait()).result() == 2

    run(main)


def test_a_kill_between_two_renames() -> None:
    """Commit of a file sink: before the first, between two, after the last."""

    async def main(when: OnDisk) -> list[str]:
        universe = Universe(0, weather=[Kill(when)])

        async def body(world: World) -> None:
            for number in range(3):
                await (await world.disk.create(f"/.pending-{number}")).close()
            for number in range(3):
                await world.disk.rename(f"/.pending-{number}", f"/part-{number}")

        process = await universe.start("p", body)
        await process.wait()
        return sorted(path for path in universe.machine().platter.files() if path.startswith("/part-"))

    assert run(main, OnDisk("rename", "/part-*", "before")) == []
    assert run(main, OnDisk("rename", "/part-*", "unanswered", 1)) == ["/part-0"]
    assert run(main, OnDisk("rename", "/part-*", "before", 3)) == ["/part-0", "/part-1"]
    assert run(main, OnDisk("rename", "/part-2", "after")) == ["/part-0", "/part-1", "/part-2"]


def test_wall_clocks_jump_and_drift_and_monotonic_ones_do_not() -> None:
    async def main() -> None:
        weather = [Jump(At(1_000), "p", -60_000), Drift(At(2_000), "m1", 100_000)]
        universe = Universe(0, weather=weather)
        world, other = universe.world("p"), universe.world("q", "m2")
        begin = world.clock.wall_ms()
        await world.clock.sleep(1_500)
        assert world.clock.wall_ms() == begin + 1_500 - 60_000
        await world.clock.sleep(1_500)
        assert world.clock.wall_ms() == begin + 3_000 - 60_000 + 100
        assert world.clock.now_ms() == 3_000
        assert world.clock.now_us() == 3_000_000
        assert other.clock.wall_ms() == begin + 3_000

    run(main)


def test_operators_fail_and_slow_down() -> None:
    async def main() -> None:
        weather = [Raise(At(10), "count", 1), Slow(At(20), "count", by_ms=50, for_ms=100)]
        universe = Universe(0, weather=weather)
        world = universe.world("p")
        load = world.load
        assert load is not None
        assert load.before_batch(ActorId("count", 1), ("count",)) is None
        await world.clock.sleep(15)
        assert load.before_batch(ActorId("count", 0), ("count", "print")) is None
        with pytest.raises(OperatorFailed, match="operator 'count', subtask 1: StruckByWeather"):
            load.before_batch(ActorId("split", 1), ("split", "count"))
        assert load.before_batch(ActorId("split", 1), ("split", "count")) is None
        await world.clock.sleep(10)
        before = world.clock.now_ms()
        assert load.before_batch(ActorId("lines", 0), ("lines",)) is None
        wait = load.before_batch(ActorId("count", 0), ("count",))
        assert wait is not None
        await wait
        assert world.clock.now_ms() == before + 50
        await world.clock.sleep(100)
        assert load.before_batch(ActorId("count", 0), ("count",)) is None
        assert [line.entry for line in universe.journal] == [
            WeatherStruck(verb="raise", target="split/1"),
            WeatherStruck(verb="slow", target="count"),
        ]

    run(main)


def test_work_takes_virtual_time_where_it_is_asked_to() -> None:
    async def main() -> None:
        universe = Universe(0, batch_us=1_000)
        world = universe.world("p")
        for _ in range(100):
            if world.load is not None and (wait := world.load.before_batch(ActorId("a", 0), ("a",))) is not None:
                await wait
        assert 20 < world.clock.now_ms() < 80

    run(main)


def test_nothing_strikes_in_the_calm() -> None:
    async def main() -> None:
        weather = [Kill(At(100), "p"), Kill(After("CheckpointAcknowledged")), Raise(At(0), "count")]
        universe = Universe(0, weather=weather)
        world = universe.world("p")
        await world.clock.sleep(1)
        universe.calm()
        await world.clock.sleep(200)
        world.observer.announce(acknowledged(1))
        assert world.load is not None
        assert world.load.before_batch(ActorId("count", 0), ("count",)) is None
        assert [line.entry for line in universe.journal] == [CalmBegan(), acknowledged(1)]

    run(main)


def test_draws_of_a_process_depend_on_seed_name_and_incarnation() -> None:
    async def main(seed: int) -> list[float]:
        universe = Universe(seed)
        first = universe.world("p").entropy.uniform("x")
        universe.processes["p"].kill()
        return [first, universe.world("p").entropy.uniform("x"), universe.world("q").entropy.uniform("x")]

    assert len({*run(main, 1), *run(main, 2)}) == 6
    assert run(main, 1) == run(main, 1)


def test_identities_differ_and_names_do_not() -> None:
    async def main() -> None:
        universe = Universe(0)
        first = universe.world("p")
        with pytest.raises(AssertionError, match="still running"):
            universe.world("p")
        universe.processes["p"].kill()
        again = universe.world("p")
        assert (first.process, again.process, again.host) == ("p.1", "p.2", "m1")

    run(main)


def test_readers_of_the_journal_see_every_line() -> None:
    async def main() -> None:
        universe = Universe(0)
        outside: list[str] = []
        inside: list[str] = []
        universe.subscribe(lambda line: outside.append(line.name))
        world = universe.world("p")
        unsubscribe = world.observer.subscribe(lambda line: inside.append(line.name))  # type: ignore[attr-defined]
        world.observer.announce(acknowledged(1))
        unsubscribe()
        world.observer.announce(CheckpointCompleted(checkpoint=1, kind="periodic"))
        assert outside == ["CheckpointAcknowledged", "CheckpointCompleted"]
        assert inside == ["CheckpointAcknowledged"]
        assert [line.sequence for line in universe.journal] == [1, 2]

    run(main)


def test_readers_of_some_entries_see_those_alone_also_when_they_come_late() -> None:
    async def main() -> None:
        universe = Universe(0)
        early: list[str] = []
        late: list[str] = []
        world = universe.world("p")
        universe.subscribe(lambda line: early.append(line.name), CheckpointCompleted)
        world.observer.announce(acknowledged(1))
        universe.subscribe(lambda line: late.append(line.name), CheckpointAcknowledged, CheckpointCompleted)
        world.observer.announce(acknowledged(2))
        world.observer.announce(CheckpointCompleted(checkpoint=1, kind="periodic"))
        assert early == ["CheckpointCompleted"]
        assert late == ["CheckpointAcknowledged", "CheckpointCompleted"]

    run(main)


def test_a_storm_is_a_function_of_its_seed() -> None:
    digests = [storm(seed) for seed in range(10)]
    assert digests == [storm(seed) for seed in range(10)]
    assert len(set(digests)) == 10


def test_a_process_killed_before_its_first_step_does_nothing() -> None:
    async def main() -> None:
        universe = Universe(0)
        reached: list[str] = []

        async def body(world: World) -> None:
            reached.append("began")

        process = await universe.start("p", body)
        process.kill()
        assert (await process.wait()).ending is Ending.KILLED
        assert reached == []

    run(main)


@pytest.mark.parametrize("seed", range(8))
def test_death_right_after_a_child_was_started_warns_of_nothing(seed: int) -> None:
    """A coroutine that is never awaited would warn, and warnings are errors here."""

    async def main() -> None:
        universe = Universe(seed, weather=[Kill(After("CheckpointAcknowledged"))])

        async def child(world: World) -> None:
            await world.clock.sleep(1)

        async def body(world: World) -> None:
            async with anyio.create_task_group() as group:
                await world.clock.sleep(1)
                group.start_soon(child, world)
                waiting = asyncio.create_task(child(world))
                world.observer.announce(acknowledged(1))
                await waiting

        process = await universe.start("p", body)
        assert (await process.wait()).ending is Ending.KILLED

    run(main, seed=seed)
    gc.collect()
