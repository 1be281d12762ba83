"""The storm run must equal the calm run.

The oracle needs no knowledge of the job.  It runs it once in calm weather and twice in one storm, and compares what an
outsider sees in the end: the committed output as a multiset, and the final state per key.  Both storms must have done
the same, step by step, or something decides that no seed knows.

Its limit, said plainly: a job whose result depends on the order of arrival between channels may differ without being
wrong.  Such a job names an ``invariant`` of its own, which is asked about the output in place of the comparison.
"""

from __future__ import annotations

import gc
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field

from actorflow.dataflow.job import Job
from actorflow.model import journal
from actorflow.simulation.digest import digest_of_digests
from actorflow.simulation.lives import Lives
from actorflow.simulation.loop import run as run_simulated
from actorflow.simulation.loop import surroundings_frozen
from actorflow.simulation.runs import Run, SeedFailed
from actorflow.simulation.subject import Subject
from actorflow.simulation.swarm import draw
from actorflow.simulation.world import Universe

__all__ = ("Invariant", "Report", "Run", "SeedFailed", "add", "calm_run", "check", "many", "run_seed", "storm_run")

Invariant = Callable[[Mapping[str, Counter[bytes]]], None]
"""Raises ``AssertionError`` about the rows of each sink, each as the ``repr`` of the row, and how often it is there."""


@dataclass(slots=True)
class Report:
    """What many seeds came to.  ``killed_again`` of them were also killed in the life that followed."""

    seeds: int = 0
    faults: Counter[str] = field(default_factory=Counter)
    kills_at: Counter[str] = field(default_factory=Counter)
    killed_again: int = 0
    failures: list[tuple[int, str]] = field(default_factory=list)
    digests: list[str] = field(default_factory=list)

    @property
    def digest(self) -> str:
        """The digest of all seeds, in their order."""
        return digest_of_digests(self.digests)


def storm_run(subject: Subject, seed: int) -> Run:
    """Run a job in the storm of a seed."""
    return _run(subject, seed, storm=True)


def calm_run(subject: Subject, seed: int) -> Run:
    """Run a job with the knobs of a seed and no weather."""
    return _run(subject, seed, storm=False)


def _run(subject: Subject, seed: int, *, storm: bool) -> Run:
    drawn = draw(seed, subject.shape)
    begun: list[Lives] = []

    async def run() -> Run:
        begun.append(Lives(subject, seed, drawn, storm=storm))
        return await begun[0].run()

    with surroundings_frozen():
        try:
            return run_simulated(run, seed=seed)
        except Exception as error:
            weather = "its storm" if storm else "calm weather"
            lines = begun[0].told if begun else ()
            raise SeedFailed(f"seed {seed}, in {weather}: {_told(error)}", lines) from error
        finally:
            gc.collect()  # nothing was collected meanwhile


def _told(error: Exception) -> str:
    return str(error) if isinstance(error, SeedFailed) else f"{type(error).__name__}: {error}"


def run_seed(subject: Subject, seed: int, invariant: Invariant | None = None) -> Run:
    """Run a seed's calm, its storm, and its storm again; return the storm.  Raises ``SeedFailed``."""
    calm = calm_run(subject, seed)
    storm = storm_run(subject, seed)
    again = storm_run(subject, seed)
    if storm.digest != again.digest:
        raise SeedFailed(f"seed {seed} is not deterministic: {_first_difference(storm.lines, again.lines)}")
    if invariant is not None:
        for name, run in (("calm weather", calm), ("its storm", storm)):
            try:
                invariant(run.output)
            except AssertionError as error:
                raise SeedFailed(f"seed {seed}, in {name}: {error}") from error
    else:
        _compare(seed, calm, storm)
    return storm


@contextmanager
def many() -> Iterator[None]:
    """Where many runs follow one another: the collector does not look at their surroundings again and again."""
    gc.collect()
    with surroundings_frozen():
        yield


def _compare(seed: int, calm: Run, storm: Run) -> None:
    for name, rows in calm.output.items():
        missing, surplus = rows - storm.output[name], storm.output[name] - rows
        if missing or surplus:
            raise SeedFailed(
                f"seed {seed}: output of {name!r} differs from the calm run: {sum(missing.values())} rows are missing"
                f"{_such_as(missing)}, {sum(surplus.values())} are there too often or wrong{_such_as(surplus)}"
            )
    if calm.state != storm.state:
        keys = sorted(key for key in {*calm.state, *storm.state} if calm.state.get(key) != storm.state.get(key))
        operator, state, _ = keys[0]
        raise SeedFailed(
            f"seed {seed}: the final state {operator}.{state} differs from the calm run for {len(keys)} keys"
        )


def _such_as(rows: Counter[bytes]) -> str:
    return f" ({min(rows)[:200].decode(errors='replace')} …)" if rows else ""


def _first_difference(one: list[journal.Line], other: list[journal.Line]) -> str:
    for left, right in zip(one, other, strict=False):
        if (left.at_ms, left.process, left.entry) != (right.at_ms, right.process, right.entry):
            return (
                f"line {left.sequence} is {left.entry} at {left.at_ms} ms, and then {right.entry} at {right.at_ms} ms"
            )
    return f"one journal has {len(one)} lines and the other {len(other)}"


def check(
    build: Callable[[], Job],
    *,
    seeds: Iterable[int],
    invariant: Invariant | None = None,
    outside: Callable[[Universe], None] | None = None,
) -> Report:
    """Run a job under the storms of many seeds; raise ``SeedFailed`` for the first that does not equal its calm run.

    def test_my_job_survives_anything() -> None:
        simulation.check(my_job, seeds=range(200))

    ``outside`` puts what the job reads into the world of each run: files of ``universe.machine()``, objects.
    """
    report, subject = Report(), Subject(build, outside)
    with many():
        for seed in seeds:
            add(report, run_seed(subject, seed, invariant))
    return report


def add(report: Report, run: Run) -> None:
    """Count a run that equals its calm one."""
    report.seeds += 1
    report.faults.update(run.faults)
    report.kills_at.update(run.kills_at)
    report.killed_again += run.again
    report.digests.append(run.digest)
