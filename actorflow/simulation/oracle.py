"""The storm run must equal the calm run.

The oracle needs no knowledge of the job.  It runs it once in calm weather and twice in one storm, and compares what an
outsider sees in the end: the committed output as a multiset, and the final state per key.  Both storms must have done
the same, step by step, or something decides that no seed knows.

A job that asks for at-least-once gets what it asked for: every row of the calm run must be there, at least as often;
and where it keeps no state, no row that the calm run lacks.

Its limit, said plainly: a job whose result depends on the order of arrival between channels may differ without being
wrong.  Such a job names an ``invariant`` of its own, which is asked about the output in place of the comparison.
"""

from __future__ import annotations

import os
import shlex
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from actorflow.config import Guarantee
from actorflow.dataflow.job import Job
from actorflow.simulation.course import course_of_draw
from actorflow.simulation.digest import digest_of_digests
from actorflow.simulation.running import first_difference, many, run_course, some_seeds
from actorflow.simulation.runs import Run, SeedFailed
from actorflow.simulation.scenario import Scenario
from actorflow.simulation.subject import Subject
from actorflow.simulation.swarm import draw
from actorflow.simulation.virtual_clock import off_the_loop
from actorflow.simulation.world import Universe

__all__ = (
    "Invariant",
    "Report",
    "Run",
    "SeedFailed",
    "add",
    "calm_run",
    "check",
    "differences",
    "many",
    "run_seed",
    "storm_run",
)

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
    return run_course(subject, seed, course_of_draw(draw(seed, subject.shape), storm=True), storm=True)


def calm_run(subject: Subject, seed: int) -> Run:
    """Run a job with the knobs of a seed and no weather."""
    return run_course(subject, seed, course_of_draw(draw(seed, subject.shape), storm=False), storm=False)


def run_seed(subject: Subject, seed: int, invariant: Invariant | None = None) -> Run:
    """Run a seed's calm, its storm, and its storm again; return the storm.  Raises ``SeedFailed``."""
    calm = calm_run(subject, seed)
    storm = storm_run(subject, seed)
    again = storm_run(subject, seed)
    if storm.digest != again.digest:
        raise SeedFailed(f"seed {seed} is not deterministic: {first_difference(storm.lines, again.lines)}", storm.lines)
    if invariant is not None:
        for name, run in (("calm weather", calm), ("its storm", storm)):
            try:
                invariant(run.output)
            except AssertionError as error:
                raise SeedFailed(f"seed {seed}, in {name}: {error}", run.lines) from error
    else:
        knobs = draw(seed, subject.shape).knobs
        guarantee = subject.settled(knobs.settings(knobs.parallelism[0])).checkpoints.guarantee
        for sentence in differences(calm, storm, guarantee):
            raise SeedFailed(f"seed {seed}: {sentence}", storm.lines)
    return storm


def differences(calm: Run, storm: Run, guarantee: Guarantee = Guarantee.EXACTLY_ONCE) -> list[str]:
    """Say in what a storm differs from its calm, as far as the guarantee does not allow it."""
    found = []
    is_exact = guarantee is Guarantee.EXACTLY_ONCE
    for name, rows in calm.output.items():
        there = storm.output.get(name, Counter())
        if dict.__eq__(rows, there):
            continue  # as most are; to subtract takes longer
        missing, surplus = rows - there, there - rows
        if not is_exact:
            keeps_state = bool(calm.state)
            surplus = Counter() if keeps_state else Counter({row: n for row, n in there.items() if row not in rows})
        if missing or surplus:
            found.append(
                f"output of {name!r} differs from the calm run: {sum(missing.values())} rows are missing"
                f"{_such_as(missing)}, {sum(surplus.values())} are there too often or wrong{_such_as(surplus)}"
            )
    if is_exact and calm.state != storm.state:
        keys = sorted(key for key in {*calm.state, *storm.state} if calm.state.get(key) != storm.state.get(key))
        operator, state, _ = keys[0]
        found.append(f"the final state {operator}.{state} differs from the calm run for {len(keys)} keys")
    return found


def _such_as(rows: Counter[bytes]) -> str:
    return f" ({min(rows)[:200].decode(errors='replace')} …)" if rows else ""


def check(
    what: Callable[[], Job] | Scenario | str | Path,
    *,
    seeds: Iterable[int] | None = None,
    invariant: Invariant | None = None,
    outside: Callable[[Universe], None] | None = None,
) -> Report:
    """Run a job under the storms of many seeds; raise ``SeedFailed`` for the first that does not equal its calm run.

    ``ValueError`` when there is no seed at all.

    def test_my_job_survives_anything() -> None:
        simulation.check(my_job, seeds=range(200))

    ``outside`` puts what the job reads into the world of each run: files of ``universe.machine()``, objects.

    A scenario, or the path of one, is played instead, with the seeds that it names unless others are given; what it
    expects is what must be true.

    A plain call, also where an event loop runs: that one waits meanwhile.
    """
    if not isinstance(what, Scenario | str | Path):
        return off_the_loop(partial(_check, what, seeds, invariant, outside))
    if invariant is not None or outside is not None:
        raise ValueError("a scenario says itself what it expects (invariant) and what is outside of it")
    return off_the_loop(partial(_check_scenario, what, seeds))


def _check_scenario(what: Scenario | str | Path, seeds: Iterable[int] | None) -> Report:
    from actorflow.simulation.play import check_scenario

    report = Report()
    for run in check_scenario(what, seeds):
        add(report, run)
    return report


def _check(
    what: Callable[[], Job],
    seeds: Iterable[int] | None,
    invariant: Invariant | None,
    outside: Callable[[Universe], None] | None,
) -> Report:
    report, subject = Report(), Subject(what, outside)
    with many():
        for seed in some_seeds(range(1, 51) if seeds is None else seeds):
            try:
                add(report, run_seed(subject, seed, invariant))
            except SeedFailed as failed:
                replayed = _replayed(what, seed, alone=invariant is None and outside is None)
                raise SeedFailed(f"{failed}\nreplay it with: {replayed}", failed.lines, failed.weather) from failed
    return report


def _replayed(build: Callable[[], Job], seed: int, *, alone: bool) -> str:
    """What replays a seed: the command, where a job stands in a file and ``alone``, else the call."""
    name, code = getattr(build, "__qualname__", "job"), getattr(build, "__code__", None)
    if not alone or not name.isidentifier() or code is None or not Path(code.co_filename).is_file():
        return f"simulation.check({name}, …, seeds=[{seed}])"
    where = f"{Path(os.path.relpath(code.co_filename)).as_posix()}:{name}"
    return f"actorflow simulate {shlex.quote(where)} --seed {seed}"


def add(report: Report, run: Run) -> None:
    """Count a run that equals its calm one."""
    report.seeds += 1
    report.faults.update(run.faults)
    report.kills_at.update(run.kills_at)
    report.killed_again += run.again
    report.digests.append(run.digest)
