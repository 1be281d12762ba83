"""How fast is a job, measured against the loop that a person would write?

* **W1**: 2,000,000 words, keyed by a user's function, counted by a user's function, given to a user's sink function;
  source, keyed exchange (a real channel), count and sink in one process.  Nothing here knows that the function counts.
* **W1x4**: the same with four counters on the one loop.
* **W1p**: the same with a checkpoint each second to disk, long enough for ten seconds and eight completed checkpoints;
  ``over_W1`` compares it with the same number of records without checkpoints, in the same round.
* **W2**: map, filter, map over 5,000,000 integers.

Plain loop and job take turns; of each, one round before is not counted.  Time runs from the first record leaving the
source to the last one at the sink.  A ratio is the median over rounds of ours to plain in the same round.
"""

from __future__ import annotations

import asyncio
import gc
import math
import shutil
import tempfile
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from statistics import median
from time import perf_counter
from typing import Any

import actorflow as af
from actorflow.abc.connectors import Sink, SinkContext, SinkWriter, Source, SourceContext
from actorflow.abc.world import World
from actorflow.benchmarks import plain
from actorflow.runtime.real_world import real_world

__all__ = ("Sizes", "measure")

MARGIN = 1.2
"""By how much a run with checkpoints is made longer than it must be, for machines that speed up."""

CHUNK = len(plain.WORDS)
"""Records that leave the source together: the list of words, which exists already."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sizes:
    """How much each workload is; tests take less."""

    w1_records: int = 2_000_000
    w2_records: int = 5_000_000
    w1p_records: int = 20_000_000
    w1p_seconds: float = 10.0
    w1p_checkpoints: int = 8
    every: timedelta = timedelta(seconds=1)


class Stopwatch:
    """When the first record left and the last one arrived."""

    def __init__(self) -> None:
        self.first = self.last = 0.0

    @property
    def seconds(self) -> float:
        return self.last - self.first


class Words(Source[str]):
    """The list of words, cycled."""

    runs_in_simulation = True
    parallelism = 1

    def __init__(self, records: int, watch: Stopwatch) -> None:
        self._records, self._watch = records, watch

    async def discover(self, world: World) -> Sequence[str]:
        return ["words"]

    async def read(self, context: SourceContext[int]) -> AsyncIterator[af.Chunk[str]]:
        words, records = plain.WORDS, self._records
        self._watch.first = perf_counter()
        for at in range(context.resume_at or 0, records, CHUNK):
            yield af.Chunk(words if records - at >= CHUNK else words[: records - at], resume_at=at + CHUNK)


class Numbers(Source[int]):
    """The list of integers."""

    runs_in_simulation = True
    parallelism = 1

    def __init__(self, records: int, watch: Stopwatch) -> None:
        self._records, self._watch = records, watch

    async def discover(self, world: World) -> Sequence[str]:
        return ["numbers"]

    async def read(self, context: SourceContext[int]) -> AsyncIterator[af.Chunk[int]]:
        self._watch.first = perf_counter()
        for at in range(context.resume_at or 0, self._records, CHUNK):
            yield af.Chunk(plain.NUMBERS[at : min(at + CHUNK, self._records)], resume_at=at + CHUNK)


class Called(Sink[Any]):
    """A user's function, called once per record; the time is noted when the last one has been called."""

    def __init__(self, function: Callable[[Any], None], watch: Stopwatch) -> None:
        self._function, self._watch = function, watch

    async def open(self, context: SinkContext) -> SinkWriter[Any]:
        return _CalledWriter(self._function, self._watch)


class _CalledWriter(SinkWriter[Any]):
    def __init__(self, function: Callable[[Any], None], watch: Stopwatch) -> None:
        self._function, self._watch = function, watch
        self.each = function

    async def write(self, records: list[Any]) -> None:
        function = self._function
        for record in records:
            function(record)

    async def flush(self) -> None:
        self._watch.last = perf_counter()


class Run:
    """One run of a job: how long it took, what the sink saw, how many checkpoints completed."""

    def __init__(self, seconds: float, calls: int, checkpoints: int) -> None:
        self.seconds, self.calls, self.checkpoints = seconds, calls, checkpoints


def run_job(
    build: Callable[[Callable[[Any], None], Stopwatch], af.Job],
    *,
    parallelism: int = 1,
    every: timedelta | None = None,
    sink: Callable[[Any], None] | None = None,
) -> Run:
    """Run a job to its end in a loop of its own."""
    counted, box = plain.make_sink()
    watch = Stopwatch()
    folder = tempfile.mkdtemp(prefix="actorflow-bench-") if every is not None else None
    checkpoints = af.Checkpoints(storage=folder, every=every)
    job = build(sink or counted, watch)

    async def main() -> int:
        environment = af.Environment(
            parallelism=parallelism, checkpoints=checkpoints, world=real_world(owns_process=True)
        )
        async with environment.run(job) as handle:
            await handle.wait()
            return handle.progress.checkpoints_completed - 1  # without the final one

    try:
        completed = asyncio.run(main())
    finally:
        if folder is not None:
            shutil.rmtree(folder)
        gc.unfreeze()
    return Run(watch.seconds, box[0], completed)


def w1_job(records: int) -> Callable[[Callable[[Any], None], Stopwatch], af.Job]:
    """The job of W1."""

    def build(sink: Callable[[Any], None], watch: Stopwatch) -> af.Job:
        job = af.Job("w1")
        (
            job.read(Words(records, watch), name="words")
            .key_by(plain.key_of)
            .stateful_map(plain.count_word, name="count")
            .write(Called(sink, watch), name="sink")
        )
        return job

    return build


def w2_job(records: int) -> Callable[[Callable[[Any], None], Stopwatch], af.Job]:
    """The job of W2."""

    def build(sink: Callable[[Any], None], watch: Stopwatch) -> af.Job:
        job = af.Job("w2")
        (
            job.read(Numbers(records, watch), name="numbers")
            .map(plain.increment)
            .filter(plain.is_even)
            .map(plain.double)
            .write(Called(sink, watch), name="sink")
        )
        return job

    return build


def check_counts(parallelism: int, *, every: timedelta | None = None) -> None:
    """Compare the counts of a job with those of the plain loop, in a round that is not measured."""
    records = len(plain.WORDS) * 20 + 17
    latest: dict[str, int] = {}

    def keep(output: tuple[str, int]) -> None:
        word, count = output
        assert count == latest.get(word, 0) + 1, f"{word} was counted {count} after {latest.get(word, 0)}"
        latest[word] = count

    run_job(w1_job(records), parallelism=parallelism, every=every, sink=keep)
    _, counts, _ = plain.plain_w1(records)
    assert latest == counts, "the counts of the job are not those of the plain loop"


def measure(*, rounds: int = 5, sizes: Sizes | None = None, tell: Callable[[str], None]) -> dict[str, dict[str, float]]:
    """Measure all workloads; ``tell`` is given a line after each round."""
    rounds, sizes = max(1, rounds), sizes or Sizes()
    plain.prepare_numbers(sizes.w2_records)
    results = {"W1": _measure_w1(1, rounds, sizes, tell), "W1x4": _measure_w1(4, rounds, sizes, tell)}
    results["W1p"] = _measure_w1p(rounds, sizes, tell)
    results["W2"] = _compare(
        "W2",
        rounds,
        sizes.w2_records,
        lambda: _checked_w2(sizes.w2_records),
        lambda: _checked(run_job(w2_job(sizes.w2_records)), sizes.w2_records // 2),
        tell,
    )
    return results


def _measure_w1(parallelism: int, rounds: int, sizes: Sizes, tell: Callable[[str], None]) -> dict[str, float]:
    check_counts(parallelism)
    records = sizes.w1_records
    return _compare(
        "W1" if parallelism == 1 else f"W1x{parallelism}",
        rounds,
        records,
        lambda: _checked_w1(records),
        lambda: _checked(run_job(w1_job(records), parallelism=parallelism), records),
        tell,
    )


def _checked_w1(records: int) -> float:
    seconds, counts, calls = plain.plain_w1(records)
    assert calls == records == sum(counts.values())
    return seconds


def _checked_w2(records: int) -> float:
    seconds, calls = plain.plain_w2(records)
    assert calls == records // 2
    return seconds


def _checked(run: Run, calls: int) -> float:
    assert run.calls == calls, f"the sink was called {run.calls} times instead of {calls}"
    return run.seconds


def _compare(
    name: str,
    rounds: int,
    records: int,
    run_plain: Callable[[], float],
    run_ours: Callable[[], float],
    tell: Callable[[str], None],
) -> dict[str, float]:
    plains, ours = [], []
    for number in range(rounds + 1):
        gc.collect()
        plain_s = run_plain()
        gc.collect()
        ours_s = run_ours()
        if number == 0:
            continue
        plains.append(plain_s)
        ours.append(ours_s)
        tell(f"{name} round {number} of {rounds}: {plain_s / ours_s:.3f} of the plain loop")
    return {
        "plain_per_s": round(records / median(plains)),
        "actorflow_per_s": round(records / median(ours)),
        "ratio": round(median(one / other for one, other in zip(plains, ours, strict=True)), 3),
    }


def _measure_w1p(rounds: int, sizes: Sizes, tell: Callable[[str], None]) -> dict[str, float]:
    """W1 with checkpoints, beside W1 without them and the plain loop, each over the same number of records.

    How many that are is found in the round that is not counted, and again if a machine turns out faster later.
    """
    check_counts(1, every=sizes.every)
    records = sizes.w1p_records
    counted: list[tuple[float, float, float, int]] = []
    per_s: list[tuple[float, float]] = []
    number = 0
    while number <= rounds:
        gc.collect()
        plain_s = _checked_w1(records)
        gc.collect()
        without_s = _checked(run_job(w1_job(records)), records)
        gc.collect()
        run = run_job(w1_job(records), every=sizes.every)
        ours_s = _checked(run, records)
        short = min(ours_s / sizes.w1p_seconds, run.checkpoints / sizes.w1p_checkpoints)
        if short < 1 or (number == 0 and short < MARGIN):
            records = math.ceil(records * MARGIN / max(short, 0.1) / CHUNK) * CHUNK
            tell(f"W1p took {ours_s:.1f} s with {run.checkpoints} checkpoints: once more with {records:,} records")
            if short < 1:
                continue
        if number > 0:
            counted.append((plain_s, without_s, ours_s, run.checkpoints))
            per_s.append((records / plain_s, records / ours_s))
            tell(
                f"W1p round {number} of {rounds}: {plain_s / ours_s:.3f} of the plain loop, "
                f"{without_s / ours_s:.3f} of W1, {run.checkpoints} checkpoints, {records:,} records"
            )
        number += 1
    return {
        "plain_per_s": round(median(one for one, _ in per_s)),
        "actorflow_per_s": round(median(other for _, other in per_s)),
        "ratio": round(median(plain_s / ours_s for plain_s, _, ours_s, _ in counted), 3),
        "checkpoints": min(checkpoints for *_, checkpoints in counted),
        "over_W1": round(median(without_s / ours_s for _, without_s, ours_s, _ in counted), 3),
    }
