"""How is a scenario played?

``prepare`` imports the job and puts its stand-ins in place, ``play`` runs it once, and ``play_seed`` says whether what
must be true is true: a calm run where an expectation needs one, and the storm twice, with equal digests.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from actorflow.model.journal import Line
from actorflow.simulation.runs import Run
from actorflow.simulation.scenario import Scenario
from actorflow.simulation.subject import Subject

__all__ = ("Played", "play", "play_seed", "prepare")


@dataclass(frozen=True, slots=True, kw_only=True)
class Played:
    """What one seed of a scenario came to; ``failures`` are sentences, and without any it passed.

    ``run`` is the storm, ``calm`` the calm run if one was needed; either is ``None`` when it did not come to its end.
    """

    scenario: Scenario
    seed: int
    run: Run | None
    calm: Run | None
    failures: tuple[str, ...]
    lines: Sequence[Line] = field(default=(), repr=False)
    """The journal of the storm, also of one that failed."""

    @property
    def digest(self) -> str:
        """The digest of the storm; empty when it did not come to its end."""
        return "" if self.run is None else self.run.digest

    @property
    def command(self) -> str:
        """What replays this seed."""
        return f"actorflow simulate {self.scenario.file or self.scenario.job} --seed {self.seed}"


def prepare(scenario: Scenario) -> Subject:
    """Import the job of a scenario and put stand-ins in the place of what reaches the outside.

    Raises ``InvalidJob`` for what can't be simulated.
    """
    raise NotImplementedError


def play(scenario: Scenario, seed: int, *, storm: bool = True, subject: Subject | None = None) -> Run:
    """Run a scenario once, in its weather or in none.  Raises ``SeedFailed`` when something false was said or done."""
    raise NotImplementedError


def play_seed(scenario: Scenario, seed: int, subject: Subject | None = None) -> Played:
    """Run what a seed of a scenario needs, and judge it."""
    raise NotImplementedError
