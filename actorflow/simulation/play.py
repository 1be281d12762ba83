"""How is a scenario played?

``prepare`` imports the job and puts its stand-ins in place, ``play`` runs it once, and ``play_seed`` says whether what
must be true is true: a calm run where an expectation needs one, and the storm twice, with equal digests.
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from actorflow.dataflow.targets import function_of
from actorflow.errors import InvalidConfig, InvalidJob
from actorflow.model.journal import Line
from actorflow.simulation.acts import ENDS_AS
from actorflow.simulation.arguments import bound
from actorflow.simulation.course import course_of_scenario
from actorflow.simulation.expectations import failures, needs_calm
from actorflow.simulation.inputs import records_of
from actorflow.simulation.running import first_difference, many, run_course, some_seeds
from actorflow.simulation.runs import Run, SeedFailed
from actorflow.simulation.scenario import Scenario, Step
from actorflow.simulation.scenario_cast import check_cast
from actorflow.simulation.scenario_triggers import write_trigger
from actorflow.simulation.scenario_writing import toml_value
from actorflow.simulation.subject import Subject

__all__ = ("Played", "check_scenario", "play", "play_seed", "prepare")


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
        """What replays this seed: a command, or a call where the scenario is in no file."""
        if not self.scenario.file:
            return f"simulation.check(scenario, seeds=[{self.seed}])"
        return f"actorflow simulate {shlex.quote(os.path.relpath(self.scenario.file))} --seed {self.seed}"

    def __str__(self) -> str:
        if not self.failures:
            return f"{self.scenario.title}: seed {self.seed} passed"
        sentences = "\n".join(f"  {sentence}" for sentence in self.failures)
        return f"{self.scenario.title}: seed {self.seed} failed\n{sentences}\nreplay it with: {self.command}"


def prepare(scenario: Scenario) -> Subject:
    """Import the job of a scenario and put stand-ins in the place of what reaches the outside.

    Raises ``InvalidJob`` for what can't be simulated, ``InvalidConfig`` for settings that can't be, ``InvalidScenario``
    for names that the job does not have; each names the file.
    """
    try:
        return _prepared(scenario)
    except InvalidJob as error:
        if not scenario.file:
            raise
        raise InvalidJob(f"{scenario.file}: {error}") from error.__cause__
    except InvalidConfig as error:
        named = [said if scenario.file in said else f"{scenario.file}: {said}" for said in error.problems]
        raise InvalidConfig(named) from error.__cause__


def _prepared(scenario: Scenario) -> Subject:
    folder = Path(scenario.file).parent if scenario.file else None
    function = function_of(scenario.job, folder)
    course = course_of_scenario(scenario, storm=True)
    for parallelism in (*course.parallelism, *(step.parallelism for step in scenario.steps if step.parallelism)):
        course.settings(parallelism)  # which refuses what no job can have, while nothing has run yet
    for step in scenario.steps:
        if step.act == "rescale" and step.parallelism is None:
            raise InvalidJob("step 'rescale' needs a parallelism")
    subject = Subject(
        bound(function, scenario.arguments, what=scenario.job),
        inputs={one.source: records_of(one, folder) for one in scenario.inputs},
        outputs={one.sink: one.stand_in for one in scenario.outputs},
        is_ended=any(step.act in ENDS_AS and step.act != "rescale" for step in scenario.steps),
    )
    check_cast(scenario, subject.job())
    return subject


def play(scenario: Scenario, seed: int, *, storm: bool = True, subject: Subject | None = None) -> Run:
    """Run a scenario once, in its weather or in none.  Raises ``SeedFailed`` when something false was said or done."""
    subject = prepare(scenario) if subject is None else subject
    return run_course(subject, seed, course_of_scenario(scenario, storm=storm), storm=storm)


def play_seed(scenario: Scenario, seed: int, subject: Subject | None = None) -> Played:
    """Run what a seed of a scenario needs, and judge it."""
    subject = prepare(scenario) if subject is None else subject
    calm = run = None
    try:
        calm = play(scenario, seed, storm=False, subject=subject) if needs_calm(scenario) else None
        run = play(scenario, seed, subject=subject)
        again = play(scenario, seed, subject=subject)
    except SeedFailed as failed:
        return Played(scenario=scenario, seed=seed, run=run, calm=calm, failures=(str(failed),), lines=failed.lines)
    wrong: list[str] = []
    if run.digest != again.digest:
        wrong.append(f"seed {seed} is not deterministic: {first_difference(run.lines, again.lines)}")
    wrong += [f"the job was over before this step came: {_told(step)}" for step in run.unperformed if not step.perhaps]
    wrong += failures(scenario, calm, run)
    return Played(scenario=scenario, seed=seed, run=run, calm=calm, failures=tuple(wrong), lines=run.lines)


def _told(step: Step) -> str:
    """A step as its table says it."""
    word, when = write_trigger(step.when)
    return f"do = {toml_value(step.act)}, {word} = {toml_value(when)}"


def check_scenario(what: Scenario | str | Path, seeds: Iterable[int] | None = None) -> Iterator[Run]:
    """Play a scenario, or the file of one, under many seeds.

    Raises ``SeedFailed`` for the first that fails, ``ValueError`` when there is no seed at all.
    """
    from actorflow.simulation.scenario_reading import read_scenario

    scenario = what if isinstance(what, Scenario) else read_scenario(Path(what))
    subject = prepare(scenario)
    named = range(scenario.seeds.first, scenario.seeds.first + scenario.seeds.count)
    with many():
        for seed in some_seeds(named if seeds is None else seeds):
            played = play_seed(scenario, seed, subject)
            if played.failures or played.run is None:
                raise SeedFailed(str(played), played.lines)
            yield played.run
