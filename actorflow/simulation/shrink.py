"""A run that fails becomes a small scenario that fails in the same way.

What a person wants to see of a failure is the least of everything: which faults it takes, how many records, which
knobs, how much of the order of events.  So each is made less in turn, again and again, for as long as the run fails in
the same way: the same sentence, but for its numbers.

    scenario = scenario_of_seed("my_jobs:my_job", 7)  # or read_scenario(path)
    shrunk = shrink(scenario, seed=7)
    path = save(shrunk, Path("scenarios/regressions"))  # and `actorflow simulate PATH --seed 7` shows it again

It never gives back anything that it has not seen fail.  What it finds is small and not the smallest: the seed stays the
same, and so does whatever else the seed draws.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from actorflow.simulation.oracle import calm_run, storm_run
from actorflow.simulation.play import prepare
from actorflow.simulation.running import many
from actorflow.simulation.runs import SeedFailed
from actorflow.simulation.scenario import Fault, Scenario, Seeds
from actorflow.simulation.scenario_reading import parse_scenario
from actorflow.simulation.scenario_writing import write_scenario
from actorflow.simulation.shrinking import PASSES, NotFailing, Search, bare, kind_of, size_of
from actorflow.simulation.swarm import draw

__all__ = ("BUDGET", "NotFailing", "Shrunk", "kind_of", "save", "scenario_of_seed", "shrink")

BUDGET = 600
"""How many runs a shrinking may cost, unless told otherwise."""

_ROUNDS = 4
"""How often everything is made less in turn, at most."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Shrunk:
    """A small scenario, and what it was made from."""

    scenario: Scenario
    seed: int
    failures: tuple[str, ...]
    """What is wrong with the small one."""
    tried: int
    """How many scenarios were tried."""
    before: Scenario = field(repr=False)


def shrink(
    scenario: Scenario,
    seed: int,
    *,
    budget: int = BUDGET,
    told: Callable[[str], None] = lambda _: None,
) -> Shrunk:
    """Make a scenario that fails under a seed as small as ``budget`` runs allow; ``told`` hears of progress.

    Raises ``NotFailing`` when it passes.
    """
    with many():
        search = Search(scenario, seed, budget, told)
        for _ in range(_ROUNDS):
            before = search.best
            for make_less in PASSES:
                make_less(search)
            if search.best == before or search.is_spent:
                break
    best = replace(
        search.best,
        title=f"{_job(scenario)}: {_in_short(search.failures[0])} under seed {seed}",
        seeds=Seeds(first=seed, count=1),
        story=_story(search, scenario),
    )
    return Shrunk(scenario=best, seed=seed, failures=search.failures, tried=search.tried, before=scenario)


def scenario_of_seed(job: str, seed: int, arguments: Mapping[str, Any] | None = None) -> Scenario:
    """Return a scenario that does what a seed of the swarm does to the job ``module:function``, failing where it fails.

    Raises what ``prepare`` raises for a job that can't be simulated.
    """
    subject = prepare(Scenario(title=job, job=job, arguments=dict(arguments or {})))
    try:
        keeps_state = bool(calm_run(subject, seed).state)
    except SeedFailed:
        keeps_state = False
    try:
        faults: Sequence[Fault] = storm_run(subject, seed).weather
    except SeedFailed as failed:
        faults = failed.weather
    drawn = draw(seed, subject.shape)
    return drawn.scenario(job, seed, arguments=arguments, faults=faults, keeps_state=keeps_state)


def _job(scenario: Scenario) -> str:
    return scenario.job.rpartition(":")[2]


_SHORT = {
    r"missing.*too often": "rows are wrong",
    r"missing": "rows are missing",
    r"too often": "rows are there too often",
    r"final state": "the final state differs",
    r"does not finish": "it never finishes",
    r"not deterministic": "it is not deterministic",
}
"""How a failure is called in a title, by what its sentence has."""


def _in_short(failure: str) -> str:
    kind = kind_of(failure)
    found = next((name for pattern, name in _SHORT.items() if re.search(pattern, kind)), None)
    if found is None:
        error = re.search(r"\b[A-Z][a-z]+[A-Z]\w+", kind)
        found = f"it ends with {error[0]}" if error else "it is not as expected"
    return found


def _story(search: Search, before: Scenario) -> str:
    sentence = bare(search.failures[0])
    before_it = f"seed {search.seed} of {before.file or before.job}"
    found = f"Shrunk from {before_it}: {size_of(before)} came to {size_of(search.best)}."
    return "\n".join([*textwrap.wrap(f"It failed so: {sentence}", 100), "", *textwrap.wrap(found, 100), ""])


def save(shrunk: Shrunk, folder: Path) -> Path:
    """Write the small scenario into a folder, under a name that says how it fails; return where it is.

    Raises ``InvalidScenario`` when it can't be written down.
    """
    text = write_scenario(shrunk.scenario)
    words = re.sub(r"[^a-z0-9]+", "_", _in_short(shrunk.failures[0]).lower()).strip("_")
    path = folder / f"{_job(shrunk.scenario)}_{words}_{shrunk.seed}.toml"
    parse_scenario(text, file=str(path))
    folder.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path
