"""Does a scenario speak of what its job has?

Before anything runs, every name in it is looked up in the job's plan: sources, sinks, operators, actors, states.  What
could never be there is refused, all of it in one :class:`~actorflow.errors.InvalidScenario`: an expectation over it
would pass or fail whatever happens, and weather that waits for it would never come.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sized
from pathlib import Path
from typing import Any

from actorflow.config import Settings
from actorflow.dataflow.job import Job
from actorflow.dataflow.plan import Plan, compile_plan
from actorflow.dataflow.targets import function_of
from actorflow.errors import InvalidJob, InvalidScenario
from actorflow.model.elements import Alignment, CheckpointKind
from actorflow.simulation.scenario import (
    AboutCheckpoint,
    AboutJournal,
    AboutOutput,
    AboutState,
    AboutStorage,
    Expectation,
    Mention,
    Scenario,
)
from actorflow.simulation.scenario_kinds import nearest
from actorflow.simulation.scenario_storage import can_match, examples
from actorflow.simulation.scenario_weather import VERBS
from actorflow.simulation.swarm import PROCESS
from actorflow.simulation.weather import After, Raise, Slow, Trigger, Weather

__all__ = ("check_cast",)

MACHINE = "m1"
"""The machine on which a scenario's processes run."""


def check_cast(scenario: Scenario, job: Job) -> None:
    """Refuse what this job could never show; ``job`` is what will run, with its stand-ins.

    Raises ``InvalidScenario``; ``InvalidJob`` where a life has a parallelism that the job can't have.
    """
    lives = list(scenario.lives) or [Settings.from_mapping(scenario.environment).parallelism]
    lives += [step.parallelism for step in scenario.steps if step.parallelism is not None]
    cast = _Cast([compile_plan(job, parallelism=parallelism) for parallelism in dict.fromkeys(lives)])
    critic = _Critic(scenario, cast)
    critic.read()
    if critic.problems:
        raise InvalidScenario(list(dict.fromkeys(critic.problems)))


class _Cast:
    """Who plays, in any of the lives."""

    def __init__(self, plans: list[Plan]) -> None:
        plan = plans[0]
        self.job = plan.job
        self.operators = [operator.name for vertex in plan.vertices for operator in vertex.operators]
        self.sources = [operator.name for operator in plan.sources()]
        self.sinks = [operator.name for operator in plan.sinks()]
        self.states = [
            f"{operator.name}.{state}"
            for vertex in plan.vertices
            for operator in vertex.operators
            for state, _ in operator.states
        ]
        # What is one chain at one parallelism may be two at another, so each life has actors of its own.
        vertices = [vertex for one in plans for vertex in one.vertices]
        actors = (f"{vertex.name}/{number}" for vertex in vertices for number in range(vertex.parallelism))
        self.actors = list(dict.fromkeys(actors))
        self.subtasks: dict[str, int] = {}
        for vertex in vertices:
            for operator in vertex.operators:
                self.subtasks[operator.name] = max(vertex.parallelism, self.subtasks.get(operator.name, 0))


class _Critic:
    """Reads a scenario with its cast in hand."""

    def __init__(self, scenario: Scenario, cast: _Cast) -> None:
        self._scenario, self._cast = scenario, cast
        self._folder = Path(scenario.file).parent if scenario.file else None
        self._place = ""
        self.problems: list[str] = []

    def read(self) -> None:
        """Look at every table that names somebody."""
        scenario = self._scenario
        for self._place, one in zip(_places("input", scenario.inputs), scenario.inputs, strict=True):
            self._known("source", one.source, self._cast.sources)
        for self._place, output in zip(_places("output", scenario.outputs), scenario.outputs, strict=True):
            self._known("sink", output.sink, self._cast.sinks)
        for self._place, fault in zip(_places("weather", scenario.weather), scenario.weather, strict=True):
            self._weather(fault.weather)
        for self._place, step in zip(_places("step", scenario.steps), scenario.steps, strict=True):
            self._trigger(step.when)
        for self._place, expectation in zip(
            _places("expect", scenario.expectations), scenario.expectations, strict=True
        ):
            self._expectation(expectation)

    # ── judging ──

    def _tell(self, sentence: str) -> None:
        self.problems.append(" ".join(part for part in (self._scenario.file, self._place) if part) + f": {sentence}")

    def _known(self, what: str, name: str, known: list[str]) -> None:
        if name not in known:
            self._tell(f"{what} = {name!r}: the job {self._cast.job!r} has none of this name; {nearest(name, known)}")

    def _is_a(self, what: str, name: str, known: list[str]) -> None:
        if name not in known:
            self._tell(f"{what} = {name!r}: there is no such {what}; {nearest(name, known)}")

    def _weather(self, weather: Weather) -> None:
        self._trigger(weather.when)
        if (process := getattr(weather, "process", None)) is not None:
            self._is_process("process", process)
        if (machine := getattr(weather, "machine", None)) is not None:
            self._is_a("machine", machine, [MACHINE])
        if (target := getattr(weather, "target", None)) is not None and target != MACHINE:
            self._is_process("clock", target)
        if isinstance(weather, Slow | Raise):
            self._known("operator", weather.operator, self._cast.operators)
        if isinstance(weather, Raise) and weather.subtask is not None:
            self._is_subtask(weather.operator, weather.subtask)

    def _is_process(self, what: str, name: str) -> None:
        """A process by its own name, or by that of whoever runs in it."""
        if re.fullmatch(rf"{PROCESS}(-\d+)?", name) is None:
            self._known(what, name, [PROCESS, *self._cast.operators, *self._cast.actors])

    def _is_subtask(self, operator: str, subtask: int) -> None:
        most = self._cast.subtasks.get(operator)
        if most is not None and subtask >= most:
            self._tell(f"{operator}/{subtask}: operator {operator!r} has {most} subtasks at most, from 0")

    def _trigger(self, trigger: Trigger) -> None:
        if isinstance(trigger, After):
            self._entry(trigger.entry, trigger.where)
        if (process := getattr(trigger, "process", None)) is not None:
            self._is_process("process", process)

    def _entry(self, entry: str, where: Mapping[str, Any]) -> None:
        cast = self._cast
        if entry in _NEVER:
            self._tell(f"{entry} can't occur: {_NEVER[entry]}")
        known = {"actor": cast.actors, "operator": cast.operators, "job": [cast.job]}
        for name, value in where.items():
            if name in known:
                self._known(name, value, known[name])
            elif name in {"kind", "verb"}:
                self._is_a(name, value, _KINDS if name == "kind" else _VERBS)
            elif name == "channel":
                for end in value.split(">"):
                    self._known(name, end, cast.actors)
        if "operator" in where and "subtask" in where:
            self._is_subtask(where["operator"], where["subtask"])

    def _expectation(self, expectation: Expectation) -> None:
        cast = self._cast
        match expectation:
            case AboutOutput(sink=sink, invariant=invariant):
                if sink is not None:
                    self._known("sink", sink, cast.sinks)
                elif not cast.sinks:
                    self._tell(f"the job {cast.job!r} has no sink, so there is no output")
                if invariant is not None:
                    self._function("invariant", invariant)
            case AboutState(state=state):
                if state is not None:
                    self._known("state", state, cast.states)
                elif not cast.states:
                    self._tell(f"the job {cast.job!r} keeps no state by key, so there is none in the end")
            case AboutStorage(pattern=pattern, on_disk=False):
                if not can_match(pattern, cast.actors):
                    near = nearest(pattern, examples(cast.actors))
                    self._tell(f"storage = {pattern!r} matches no name that an object in a home can have; {near}")
            case AboutCheckpoint(kind=kind, actors=actors, declined_by=declined_by):
                if kind in _WAYS:
                    why = "to ask how barriers travelled comes with a later version"
                    self._tell(f"kind = {kind!r}: {why}; the kinds are {', '.join(map(repr, _KINDS))}")
                elif kind is not None:
                    self._is_a("kind", kind, _KINDS)
                for actor in actors or ():
                    self._known("actors", actor, cast.actors)
                if declined_by is not None:
                    self._known("declined_by", declined_by, [*cast.operators, *cast.actors])
            case AboutJournal(entry=entry, where=where, before=before, after=after):
                self._entry(entry, where)
                for mention in (before, after):
                    if isinstance(mention, Mention):
                        self._entry(mention.entry, mention.where)

    def _function(self, what: str, target: str) -> None:
        try:
            function_of(target, self._folder, what=what)
        except InvalidJob as error:
            self._tell(str(error))


_NEVER = {"LoopBlocked": "time stands still while an operator's code runs in the simulator"}
_VERBS = list(dict.fromkeys(verb.word for verb in VERBS))
_KINDS = [kind.value for kind in CheckpointKind]
_WAYS = [way.value for way in Alignment]


def _places(table: str, entries: Sized) -> list[str]:
    return [f"[[{table}]] {number}" for number in range(1, len(entries) + 1)]
