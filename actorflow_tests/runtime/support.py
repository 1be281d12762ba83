"""What the tests of the runtime share: a universe to play in, jobs to run, and a look at what was left behind."""

from __future__ import annotations

import asyncio
import gc
import os
from collections.abc import Awaitable, Callable, Iterable
from datetime import timedelta
from typing import Any, TypeVar

import actorflow as af
from actorflow.abc.world import World
from actorflow.config import Settings
from actorflow.connectors import memory
from actorflow.model import journal
from actorflow.model.journal import Entry
from actorflow.runtime.homes import homes_of_process
from actorflow.simulation import run
from actorflow.simulation.process import Process
from actorflow.simulation.weather import Weather
from actorflow.simulation.world import Universe

__all__ = (
    "STORAGE",
    "again",
    "completed",
    "count_job",
    "counted",
    "entries",
    "environment",
    "killed_again_and_again",
    "nothing_is_left",
    "play",
    "running_counts",
    "seeds",
    "start",
)

T = TypeVar("T")
E = TypeVar("E", bound=Entry)

STORAGE = "/checkpoints"


def play(
    story: Callable[[Universe], Awaitable[T]],
    seed: int = 0,
    *,
    weather: Iterable[Weather] = (),
    batch_us: int = 0,
    within: timedelta = timedelta(hours=3),
) -> T:
    """Tell a story in a universe of its own; nothing may be left behind at its end."""

    async def whole() -> T:
        universe = Universe(seed, weather=weather, batch_us=batch_us)
        result = await story(universe)
        nothing_is_left(universe)
        return result

    return run(whole, seed=seed, within=within)


def nothing_is_left(universe: Universe) -> None:
    """Assert that nobody runs any more but the test itself, and that no error was told to nobody."""
    gc.collect()
    left = [task.get_name() for task in asyncio.all_tasks() if task is not asyncio.current_task()]
    assert left == []
    assert universe.loop.unhandled == []


def environment(
    world: World | None = None,
    *,
    storage: str | None = STORAGE,
    every_ms: int | None = None,
    retained: int = 1,
    retention: af.Retention = af.Retention.RETAIN_ON_CANCELLATION,
    tolerable_failures: int = 0,
    timeout_ms: int = 600_000,
    min_pause_ms: int = 0,
    max_concurrent: int = 1,
    guarantee: af.Guarantee = af.Guarantee.EXACTLY_ONCE,
    restart: Any = None,
    **settings: Any,
) -> af.Environment:
    """Say how a job runs, in milliseconds; without restarts unless told."""
    return af.Environment(
        checkpoints=af.Checkpoints(
            storage=storage,
            every=None if every_ms is None else timedelta(milliseconds=every_ms),
            retained=retained,
            retention=retention,
            tolerable_failures=tolerable_failures,
            timeout=timedelta(milliseconds=timeout_ms),
            min_pause=timedelta(milliseconds=min_pause_ms),
            max_concurrent=max_concurrent,
            guarantee=guarantee,
        ),
        restart=af.NoRestart() if restart is None else restart,
        world=world,
        **settings,
    )


def again(times: int = 1_000, delay_ms: int = 5) -> af.FixedDelay:
    """Restart so many times, each time after the same delay."""
    return af.FixedDelay(attempts=times, delay=timedelta(milliseconds=delay_ms))


def entries(universe: Universe, entry: type[E], /, **fields: Any) -> list[E]:
    """Return the journal's entries of one kind, with these fields."""
    return [
        line.entry
        for line in universe.journal
        if isinstance(line.entry, entry) and all(getattr(line.entry, name) == value for name, value in fields.items())
    ]


def count_job(source: Any, sink: Any, *, name: str = "count") -> af.Job:
    """Running counts of the records of a source, keyed by themselves."""
    job = af.Job(name)
    job.read(source, name="read").key_by(lambda word: word).count(name="count").write(sink, name="write")
    return job


def running_counts(words: Iterable[Any]) -> list[tuple[Any, int]]:
    """What ``count_job`` gives, sorted."""
    seen: dict[Any, int] = {}
    rows = []
    for word in words:
        seen[word] = seen.get(word, 0) + 1
        rows.append((word, seen[word]))
    return sorted(rows)


def counted(rows: Iterable[tuple[Any, int]]) -> dict[Any, int]:
    """The last count of each key."""
    last: dict[Any, int] = {}
    for key, count in rows:
        last[key] = max(count, last.get(key, 0))
    return last


def seeds(count: int) -> range:
    """Return so many seeds when somebody has time (``ACTORFLOW_THOROUGH=1``), and a third of them else."""
    return range(count if os.environ.get("ACTORFLOW_THOROUGH") else max(1, count // 3))


async def live(world: World, settings: Settings, job: af.Job, options: dict[str, Any]) -> af.JobStatus:
    """What a process does that runs one job to its end."""
    homes_of_process.set({})
    async with af.Environment(settings=settings, world=world).run(job, **options) as handle:
        return await handle.wait()


async def start(
    universe: Universe,
    job: af.Job,
    environment: af.Environment,
    *,
    process: str = "p",
    machine: str = "m1",
    **options: Any,
) -> Process:
    """Start a process that runs one job to its end."""
    return await universe.start(process, live, environment.settings, job, options, machine=machine)


async def killed_again_and_again(
    universe: Universe, make_job: Callable[[], af.Job], environment: af.Environment, *, most_lives: int = 20
) -> list[str]:
    """Start a process until its job finishes; return how each life ended."""
    endings: list[str] = []
    while len(endings) < most_lives:
        process = await start(universe, make_job(), environment)
        outcome = await process.wait()
        endings.append(str(outcome.ending))
        if outcome.ending != "killed":
            assert outcome.result() is af.JobStatus.FINISHED
            return endings
        await asyncio.sleep(0.1)
    raise AssertionError(f"not finished after {most_lives} lives")


def completed(universe: Universe) -> list[int]:
    """The ids of completed checkpoints, in order."""
    return [entry.checkpoint for entry in entries(universe, journal.CheckpointCompleted)]


def numbers_and_rows(count: int, **options: Any) -> tuple[Any, memory.Collect[Any]]:
    """A source of numbers and a sink for them."""
    return memory.source(range(count), **options), memory.collect()
