"""One process whose loop is watched: at work with much state and snapshots of it, or idle, for comparison.

``latency.py`` starts these processes, pinned to one core or free on two:

    python -m actorflow.benchmarks.stall load --values lists --cores 1 --seconds 30
    python -m actorflow.benchmarks.stall idle

The load prints ``ready`` once its state is filled and the probe begins, and in the end a JSON object.  The idle one
watches until its standard input is closed.

The load is 1,000,000 keys in memory, updated flat out in an order that is not theirs, with a checkpoint to disk each
four seconds.  Values are integers, or small lists that the user's function changes in place.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import logging
import os
import shutil
import sys
import tempfile
from collections.abc import AsyncIterator, Callable, Sequence
from datetime import timedelta
from time import perf_counter
from typing import Any

import actorflow as af
from actorflow.abc.connectors import Sink, SinkContext, SinkWriter, Source, SourceContext
from actorflow.abc.world import World
from actorflow.benchmarks.plain import count_word, make_sink
from actorflow.benchmarks.probe import stalls_of, watch_loop
from actorflow.model import journal
from actorflow.runtime.real_world import JournalObserver, real_world

__all__ = ("VALUES", "main", "run_idle", "run_load")

CHUNK = 250
EVERY = timedelta(seconds=4)
CHECKPOINTS = 5
LONGEST_S = 180.0
STRIDE = 7_919


def mean_length(state: list[int] | None, word: str) -> tuple[list[int], tuple[str, int]]:
    """A user's function whose state is a small list, changed in place: how many there were, and their length in all."""
    if state is None:
        state = [0, 0]
    state[0] += 1
    state[1] += len(word)
    return state, (word, state[1] // state[0])


VALUES: dict[str, Callable[..., Any]] = {"integers": count_word, "lists": mean_length}


class Keys(Source[str]):
    """All keys once, and then round and round in another order until it is cut off."""

    parallelism = 1

    def __init__(self, keys: int, on_filled: Callable[[], None]) -> None:
        assert keys % CHUNK == 0
        self._keys = [f"key-{index:07d}" for index in range(keys)]
        self._mixed = [self._keys[index * STRIDE % keys] for index in range(keys)]
        self._on_filled = on_filled

    async def discover(self, world: World) -> Sequence[str]:
        return ["keys"]

    async def read(self, context: SourceContext[int]) -> AsyncIterator[af.Chunk[str]]:
        words = self._keys
        for at in range(0, len(words), CHUNK):
            yield af.Chunk(words[at : at + CHUNK], resume_at=at)
        self._on_filled()
        words = self._mixed
        while True:
            for at in range(0, len(words), CHUNK):
                yield af.Chunk(words[at : at + CHUNK], resume_at=at)


class Called(Sink[Any]):
    """Calls a function per record."""

    def __init__(self, function: Callable[[Any], None]) -> None:
        self._function = function

    async def open(self, context: SinkContext) -> SinkWriter[Any]:
        return _CalledWriter(self._function)


class _CalledWriter(SinkWriter[Any]):
    def __init__(self, function: Callable[[Any], None]) -> None:
        self._function = function

    async def write(self, records: list[Any]) -> None:
        function = self._function
        for record in records:
            function(record)


class Snapshots:
    """What the journal tells about checkpoints: how many completed, and how long the loop worked for each."""

    def __init__(self) -> None:
        self.completed: list[int] = []
        self._us: dict[int, int] = {}

    def __call__(self, line: journal.Line) -> None:
        match line.entry:
            case journal.SnapshotTaken(checkpoint=checkpoint, instant_us=us):
                self._us[checkpoint] = self._us.get(checkpoint, 0) + us
            case journal.SnapshotSettled(checkpoint=checkpoint, loop_us=us):
                self._us[checkpoint] = self._us.get(checkpoint, 0) + us
            case journal.CheckpointCompleted(checkpoint=checkpoint):
                self.completed.append(checkpoint)

    def loop_s(self) -> list[float]:
        """The loop's time for each checkpoint that completed, in seconds."""
        return [round(self._us.get(checkpoint, 0) / 1_000_000, 3) for checkpoint in self.completed]


async def run_load(
    *,
    values: str,
    keys: int,
    seconds: float,
    checkpoints: int = CHECKPOINTS,
    every: timedelta = EVERY,
    on_ready: Callable[[], None] = lambda: None,
) -> dict[str, Any]:
    """Run the load in this process's loop and watch it."""
    filled = asyncio.Event()
    sink, box = make_sink()
    job = af.Job("stall")
    (
        job.read(Keys(keys, filled.set), name="keys")
        .key_by(str)
        .stateful_map(VALUES[values], name="count")
        .write(Called(sink), name="sink")
    )
    world = real_world(owns_process=True)
    assert isinstance(world.observer, JournalObserver)
    folder = tempfile.mkdtemp(prefix="actorflow-bench-")
    environment = af.Environment(checkpoints=af.Checkpoints(storage=folder, every=every), world=world)
    try:
        async with environment.run(job) as handle:
            await filled.wait()
            snapshots = Snapshots()
            stop_reading = world.observer.subscribe(snapshots)
            on_ready()
            began, records = perf_counter(), box[0]

            def is_over() -> bool:
                lasted = perf_counter() - began
                return lasted >= LONGEST_S or (lasted >= seconds and len(snapshots.completed) >= checkpoints)

            late_ms = await watch_loop(is_over)
            lasted, records = perf_counter() - began, box[0] - records
            stop_reading()
            await handle.cancel()
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    completed = len(snapshots.completed)
    assert completed >= checkpoints, f"{completed} checkpoints in {lasted:.0f} s, at least {checkpoints} are needed"
    assert box[0] >= keys, "not every key was met"
    stalls = stalls_of(late_ms)
    return {
        **stalls.figures(),
        "seconds": round(lasted, 1),
        "records_per_s": round(records / lasted),
        "checkpoints": completed,
        "snapshot_loop_s": snapshots.loop_s(),
        "late_ms": sorted((round(late, 1) for late in late_ms), reverse=True)[:10],
    }


async def run_idle() -> dict[str, Any]:
    """Watch an idle loop until standard input is closed."""
    loop = asyncio.get_running_loop()
    closed = asyncio.Event()
    loop.add_reader(sys.stdin.fileno(), closed.set)
    late_ms = await watch_loop(closed.is_set)
    loop.remove_reader(sys.stdin.fileno())
    return stalls_of(late_ms).figures()


def main(arguments: Sequence[str] | None = None) -> None:
    """Run as a process of its own."""
    parser = argparse.ArgumentParser(prog="python -m actorflow.benchmarks.stall")
    parser.add_argument("what", choices=("load", "idle"))
    parser.add_argument("--values", choices=tuple(VALUES), default="integers")
    parser.add_argument("--cores", type=int, default=0, help="how many cores the load may use; 0: as it comes")
    parser.add_argument("--keys", type=int, default=1_000_000)
    parser.add_argument("--seconds", type=float, default=30.0)
    parser.add_argument("--checkpoints", type=int, default=CHECKPOINTS)
    parser.add_argument("--every", type=float, default=EVERY.total_seconds(), help="seconds between checkpoints")
    given = parser.parse_args(arguments)
    if given.what == "idle":
        print(json.dumps(asyncio.run(run_idle())), flush=True)
        return
    logging.getLogger("actorflow.journal").setLevel(logging.ERROR)  # that the end aborts a checkpoint is no news
    if given.cores:
        with contextlib.suppress(AttributeError):  # not every system can pin a process
            os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[: given.cores])
    figures = asyncio.run(
        run_load(
            values=given.values,
            keys=given.keys,
            seconds=given.seconds,
            checkpoints=given.checkpoints,
            every=timedelta(seconds=given.every),
            on_ready=lambda: print("ready", flush=True),
        )
    )
    print(json.dumps(figures), flush=True)


if __name__ == "__main__":
    main()
