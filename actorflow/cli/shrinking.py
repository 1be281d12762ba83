"""``actorflow simulate --shrink``: a seed that fails becomes a small scenario that fails in the same way."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import NamedTuple

from actorflow.cli.exits import UsageMistake
from actorflow.cli.targets import arguments_of
from actorflow.cli.trials import Trial, Trials
from actorflow.simulation.scenario_writing import write_scenario
from actorflow.simulation.shrink import save, scenario_of_seed, shrink

__all__ = ("REGRESSIONS", "Shrunken", "shrink_trial")

REGRESSIONS = Path("scenarios/regressions")
"""Where small scenarios are kept, below the current folder, unless a file is named."""


class Shrunken(NamedTuple):
    """A failure made small: in which file it is now, how it fails, and how many tries it took."""

    path: Path
    failure: str
    tried: int


def shrink_trial(trials: Trials, trial: Trial, keep: Path | None) -> Shrunken:
    """Shrink a trial that failed, keep what is left, and say where.

    Raises ``NotFailing`` when it does not fail as a scenario, and ``UsageMistake`` when it can't be kept.
    """
    if trial.file:
        scenario = trials.scenario(trial.file)
    else:
        arguments = arguments_of(trials.target, trials.arguments)
        scenario = scenario_of_seed(trials.target, trial.seed, arguments)
    told = 0

    def tell(size: str) -> None:
        nonlocal told
        told += 1
        if sys.stderr.isatty():
            print(f"\r\x1b[Kshrinking seed {trial.seed}: {size}", end="", file=sys.stderr, flush=True)

    try:
        shrunk = shrink(scenario, trial.seed, told=tell)
    finally:
        if told and sys.stderr.isatty():
            print(file=sys.stderr)
    try:
        if keep is None:
            path = save(shrunk, REGRESSIONS)
        else:
            keep.write_text(write_scenario(shrunk.scenario), encoding="utf-8")
            path = keep
    except OSError as error:
        raise UsageMistake(f"what is left can't be kept: {error}") from error
    return Shrunken(path, shrunk.failures[0].partition("\n")[0], shrunk.tried)
