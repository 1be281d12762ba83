"""After how many seeds is a planted fault found?

A seed of a hunt is what a seed of the oracle is: a calm run and a storm, compared.  That the storm is run twice is left
out: it finds what no seed decides, and every mutant decides.  The jobs of a mutant take turns, seed by seed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import cache
from statistics import median_low
from typing import Any

from actorflow.simulation.mutants.jobs import JOBS
from actorflow.simulation.mutants.mutant import MUTANTS
from actorflow.simulation.oracle import SeedFailed, calm_run, differences, many, storm_run
from actorflow.simulation.subject import Subject

__all__ = ("control", "hunt", "hunt_one", "summary")

SEEDS = 2_000
"""Within so many seeds every mutant must be found."""


@cache
def _subject(job: str) -> Subject:
    return Subject(JOBS[job])


def hunt_one(name: str, seeds: int = SEEDS) -> int | None:
    """Return after how many seeds a mutant was found, or ``None``.  Raises ``KeyError`` for a name there is not."""
    mutant = MUTANTS[name]
    with many(), mutant.planted():
        for seed in range(1, seeds + 1):
            if fails(mutant.jobs[seed % len(mutant.jobs)], seed):
                return seed
    return None


def fails(job: str, seed: int) -> str:
    """Return what is wrong with a seed as things are now; empty when nothing is."""
    subject = _subject(job)
    try:
        calm = calm_run(subject, seed)
        return next(iter(differences(calm, storm_run(subject, seed))), "")
    except SeedFailed as failed:
        return str(failed)


def hunt(seeds: int = SEEDS, names: Iterable[str] = ()) -> dict[str, Any]:
    """Look for all mutants, or for those of these names, one after the other, and return their ``summary``.

    A mutant is seen by everything in its interpreter; whoever wants several at a time, as the command line does, lets
    processes of their own call ``hunt_one``.
    """
    return summary({name: hunt_one(name, seeds) for name in (*names,) or MUTANTS})


def summary(each: Mapping[str, int | None]) -> dict[str, Any]:
    """Return what a hunt came to: how many mutants there are, how many were found, and after how many seeds."""
    found = [seeds for seeds in each.values() if seeds is not None]
    return {
        "mutants": len(each),
        "found": len(found),
        "median_seeds": median_low(found) if found else None,
        "each": dict(each),
    }


def control(first: int, last: int, each: Callable[[int, str, str], None] | None = None) -> int:
    """Run the same jobs, in turns, under these seeds with nothing planted; return how many seeds failed.

    ``each`` hears of every seed: its number, its job, and what was wrong.
    """
    failures, jobs = 0, list(JOBS)
    with many():
        for seed in range(first, last + 1):
            job = jobs[seed % len(jobs)]
            wrong = fails(job, seed)
            failures += bool(wrong)
            if each is not None:
                each(seed, job, wrong)
    return failures
