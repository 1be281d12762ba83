"""What can go wrong, as values; and every kind of it does what it says."""

from __future__ import annotations

import asyncio
import inspect
from dataclasses import FrozenInstanceError, fields

import pytest

from actorflow.abc.world import World
from actorflow.errors import InvalidConfig, StorageFailed
from actorflow.model.journal import WeatherStruck
from actorflow.simulation import Ending, Universe, run, weather
from actorflow.simulation.sky import Action, Sky
from actorflow.simulation.weather import (
    At,
    FailDisk,
    FailObjects,
    FailRequests,
    Kill,
    LoseAnswers,
    LoseDisk,
    LoseDiskAnswer,
    Moment,
    OnBroker,
    OnDatabase,
    OnDisk,
    OnObject,
    Partition,
    PowerCut,
    Rewind,
    Service,
    SlowDisk,
    SlowRequests,
    Stall,
    Way,
    Weather,
)


def kinds() -> list[type[Weather]]:
    """Every kind of weather there is."""
    named = [getattr(weather, name) for name in weather.__all__]
    return [kind for kind in named if inspect.isclass(kind) and issubclass(kind, Weather) and kind is not Weather]


@pytest.mark.parametrize("kind", kinds(), ids=lambda kind: kind.__name__)
def test_every_kind_of_weather_is_a_value_and_is_known_to_the_world(kind: type[Weather]) -> None:
    fault = kind(At(1))
    assert fault == kind(At(1))
    assert fault != kind(At(2))
    assert repr(fault).startswith(f"{kind.__name__}(when=At(ms=1)")
    with pytest.raises(FrozenInstanceError):
        fault.when = At(3)  # type: ignore[misc]
    assert next(field.name for field in fields(kind)) == "when"

    async def main() -> None:
        universe = Universe(1)
        universe.process("p")
        universe.strike(fault, universe.processes["p"])
        universe.calm()

    run(main)


@pytest.mark.parametrize("kind", [FailRequests, LoseAnswers, SlowRequests, Stall, Rewind])
def test_faults_of_services_are_not_about_stores(kind: type[FailRequests | Stall | Rewind]) -> None:
    with pytest.raises(InvalidConfig, match="stores have FailObjects"):
        kind(At(0), Service.STORE)


def test_a_database_goes_back_as_a_whole() -> None:
    with pytest.raises(InvalidConfig, match="only all of it goes back"):
        Rewind(At(0), Service.DATABASE, "rows")


@pytest.mark.parametrize("kind", [OnBroker, OnDatabase])
def test_a_request_is_never_torn(kind: type[OnBroker]) -> None:
    with pytest.raises(InvalidConfig, match="can't be torn"):
        kind("commit", "*", Moment.TORN)
    with pytest.raises(ValueError, match="no moment"):
        kind("commit", "*", "no moment")


def test_a_trigger_waits_for_its_own_seam() -> None:
    sky = Sky()
    faults: dict[str, Weather] = {
        "objects": Kill(OnObject("commit")),
        "disk": Kill(OnDisk("commit")),
        "broker": Kill(OnBroker("commit")),
        "database": Kill(OnDatabase("commit")),
    }
    for fault in faults.values():
        sky.expect(fault)
    assert sky.during(Action("wire", "commit", "x"), "p") == ()
    for seam, fault in faults.items():
        assert list(sky.during(Action(seam, "commit", "x"), "p")) == [fault]
        assert list(sky.during(Action(seam, "commit", "x"), "p")) == []


def test_a_fault_meets_operations_of_its_own_seam_only_and_as_many_as_it_says() -> None:
    sky = Sky()
    faults: dict[str, FailObjects | FailDisk | FailRequests] = {
        "objects": FailObjects(At(0), count=2),
        "disk": FailDisk(At(0), count=1),
        "broker": FailRequests(At(0), Service.BROKER, count=1),
        "database": FailRequests(At(0), Service.DATABASE, "commit*", "rows", process="p"),
    }
    for fault in faults.values():
        sky.lie_in_wait(fault)
    assert sky.fault(Action("wire", "commit", "rows"), "p") is None
    assert sky.fault(Action("database", "commit", "rows"), "q") is None
    assert sky.fault(Action("database", "commit", "other"), "p") is None
    assert sky.fault(Action("database", "begin", "rows"), "p") is None
    for seam, fault in faults.items():
        for _ in range(fault.count):
            assert sky.fault(Action(seam, "commit", "rows"), "p") is fault
        assert sky.fault(Action(seam, "commit", "rows"), "p") is None


# ── the disk ─────────────────────────────────────────────────────────────────────────────────


async def write(world: World, path: str, data: bytes = b"data") -> None:
    file = await world.disk.create(path)
    await file.write(data)
    await file.sync()
    await file.close()


def test_a_disk_whose_answer_is_lost_has_done_it() -> None:
    async def main() -> None:
        universe = Universe(1)
        world = universe.world("p")
        await write(world, "/a")
        universe.strike(LoseDiskAnswer(At(0), "rename", "/b"))
        with pytest.raises(StorageFailed, match="/b: the answer to rename was lost by the weather"):
            await world.disk.rename("/a", "/b")
        assert universe.machine().platter.files() == {"/b": b"data"}
        assert universe.journal[-1].entry == WeatherStruck(verb="lose_answer", target="/b")

    run(main)


def test_a_write_whose_answer_is_lost_leaves_a_file_that_nobody_trusts() -> None:
    async def main() -> None:
        universe = Universe(1)
        file = await universe.world("p").disk.create("/a")
        universe.strike(LoseDiskAnswer(At(0), "write"))
        with pytest.raises(StorageFailed, match="answer to write was lost"):
            await file.write(b"data")
        with pytest.raises(StorageFailed, match="did not end well"):
            await file.sync()
        assert universe.machine().platter.files() == {"/a": b"data"}

    run(main)


def test_a_slow_disk_takes_longer() -> None:
    async def main() -> None:
        universe = Universe(1)
        universe.strike(SlowDisk(At(0), "sync", count=1, by_ms=400))
        await write(universe.world("p"), "/a")
        assert 400 <= universe.now_ms() < 410
        assert universe.journal[-1].entry == WeatherStruck(verb="slow", target="/a")

    run(main)


@pytest.mark.parametrize("kind", [PowerCut, LoseDisk])
def test_a_power_cut_or_a_lost_disk_kills_all_processes_of_one_machine_and_of_no_other(
    kind: type[PowerCut | LoseDisk],
) -> None:
    async def main() -> None:
        universe = Universe(1)

        async def live(world: World) -> None:
            await write(world, f"/{world.process}")
            await world.disk.sync_folder("/")
            await asyncio.sleep(1_000)

        here = [await universe.start(name, live) for name in ("a", "b")]
        there = await universe.start("c", live, machine="m2")
        await asyncio.sleep(1)
        universe.strike(kind(At(0), "m1"))
        assert [(await process.wait()).ending for process in here] == [Ending.KILLED] * 2
        assert there.is_alive
        assert len(universe.machine("m1").platter.files()) == (0 if kind is LoseDisk else 2)
        assert len(universe.machine("m2").platter.files()) == 1
        there.kill()

    run(main)


# ── the network ──────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("service", [None, *Service])
def test_a_partition_cuts_one_service_or_all_and_then_lifts(service: Service | None) -> None:
    async def main() -> None:
        universe = Universe(1)
        process = universe.process("p")
        universe.strike(Partition(At(0), "p", 1_000, Way.OUT, service))
        cut = {each for each in Service if process.unreachable(each) is Way.OUT}
        assert cut == ({service} if service is not None else set(Service))
        assert process.cut_off_until == pytest.approx(1.0)
        await asyncio.sleep(1.001)
        assert not any(process.unreachable(each) for each in Service)

    run(main)


def test_two_partitions_of_a_process_stand_beside_each_other() -> None:
    async def main() -> None:
        universe = Universe(1)
        process = universe.process("p")
        universe.strike(Partition(At(0), "p", 5_000, Way.IN, Service.BROKER))
        universe.strike(Partition(At(0), "p", 1_000, Way.OUT, Service.STORE))
        await asyncio.sleep(2)
        assert process.unreachable(Service.BROKER) is Way.IN
        assert process.unreachable(Service.STORE) is None
        universe.calm()
        assert process.unreachable(Service.BROKER) is None

    run(main)
