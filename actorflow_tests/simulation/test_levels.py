"""Watching a run: what is seen, and that nobody notices."""

from __future__ import annotations

import asyncio

import actorflow as af
from actorflow.connectors import generator, memory
from actorflow.simulation import Kill, Partition, Pause, Slow, Universe, run
from actorflow.simulation.levels import Levels, Series, watching
from actorflow.simulation.oracle import storm_run
from actorflow.simulation.subject import Subject
from actorflow.simulation.weather import At


def counted() -> af.Job:
    job = af.Job("counted")
    numbers = job.read(generator.numbers(400, splits=2, chunk_records=8), name="numbers")
    numbers.key_by(lambda number: number % 5).count(name="count").write(memory.collect([]), name="rows")
    return job


async def slowly(number: int) -> int:
    await asyncio.sleep(0.003)
    return number


def called() -> af.Job:
    job = af.Job("called")
    numbers = job.read(generator.numbers(60, splits=2, chunk_records=8), name="numbers")
    numbers.map(slowly, in_flight=4, name="call").write(memory.collect([]), name="rows")
    return job


def watched_storm(subject: Subject, seed: int) -> Levels:
    with watching() as watched:
        storm_run(subject, seed)
    assert len(watched) == 1
    return watched[0]


def test_a_run_that_is_watched_has_the_digest_of_one_that_is_not() -> None:
    for build in (counted, called):
        subject = Subject(build)
        for seed in (2, 3, 11):
            alone = storm_run(subject, seed)
            with watching() as watched:
                seen = storm_run(subject, seed)
            assert alone.digest == seen.digest
            assert alone.steps == seen.steps
            assert [line.entry for line in watched[0].lines] == [line.entry for line in alone.lines]


def test_nobody_is_watched_unless_somebody_asks() -> None:
    async def story() -> object:
        return Universe(1).watched

    assert run(story) is None


def test_actors_and_channels_stand_in_the_order_of_the_plan_and_all_that_waits_is_seen() -> None:
    levels = watched_storm(Subject(counted), 3)
    chains = list(dict.fromkeys(actor.partition("/")[0] for _, actor in levels.actors))

    assert chains == ["numbers", "count"]
    assert {process for process, _ in levels.actors} == {"job"}
    assert any(channel.records.most for channel in levels.channels.values())
    assert all(channel.count(">") == 1 for _, channel in levels.channels)
    assert len(levels.times_us) == len(levels.lines)
    assert all(us // 1_000 == line.at_ms for us, line in zip(levels.times_us, levels.lines, strict=True))
    assert levels.machines["job"] == "m1"


def test_batches_calls_and_requests_are_seen() -> None:
    levels = watched_storm(Subject(called), 3)
    calling = [actor for (_, name), actor in levels.actors.items() if name.startswith("call/")]

    assert all(actor.batches == sorted(actor.batches) for actor in levels.actors.values())
    assert any(actor.batches for actor in calling)
    assert 1 < max(actor.calls.most for actor in calling)
    manifests = [request for request in levels.requests if request.name.endswith("/_metadata")]
    assert any(request.operation == "put_if_absent" and not request.failed for request in manifests)
    assert all(request.until_us is None or request.since_us <= request.until_us for request in levels.requests)


def test_weather_that_lasts_is_seen_from_the_moment_it_struck() -> None:
    async def story() -> Levels:
        weather = [Pause(At(10), "p", 500), Partition(At(600), "p", 50), Slow(At(700), "count", 5, 80)]
        universe = Universe(1, weather=[*weather, Kill(At(900), "p")])

        async def main(world: object) -> None:
            while True:
                await asyncio.sleep(0.004)

        await (await universe.start("p", main)).wait()
        assert universe.watched is not None
        return universe.watched

    with watching():
        levels = run(story)
    assert levels.spells == {
        ("paused", "p", 510_000): 10_000,
        ("cut off", "p", 650_000): 600_000,
        ("slow", "count", 780_000): 700_000,
    }


def test_a_number_over_time_keeps_its_changes_only() -> None:
    series = Series()
    for at_us, value in [(0, 0), (10, 3), (10, 4), (20, 4), (30, 0), (30, 4), (40, 0)]:
        series.set(at_us, value)

    assert series.points == [(10, 4), (40, 0)]
    assert series.most == 4
