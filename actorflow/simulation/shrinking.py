"""How is a failing scenario made less, as long as it fails in the same way?

A :class:`Search` holds the smallest scenario so far and tries others; each function below makes one thing of it less:
faults, lives, settings, records, steps, and how much of the order of events is the seed's.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from actorflow.errors import ActorflowError
from actorflow.simulation.expectations import failures as failures_of
from actorflow.simulation.expectations import needs_calm
from actorflow.simulation.inlining import inputs_of
from actorflow.simulation.narrowing import fewest, least
from actorflow.simulation.play import play, prepare
from actorflow.simulation.runs import SeedFailed
from actorflow.simulation.scenario import Scenario, TimedRecord
from actorflow.simulation.simpler import simpler_weather
from actorflow.simulation.subject import Subject

__all__ = ("PASSES", "NotFailing", "Search", "bare", "kind_of", "size_of")


_PATIENCE_MS = 10_000
"""Whatever is well finishes within this, once the weather has lifted."""


class NotFailing(ActorflowError):
    """Raised when there is nothing to shrink: the run passes."""


def kind_of(failure: str) -> str:
    """Return how a run failed, without what differs from run to run: numbers, samples, who else waited."""
    sentence = re.sub(r"\([^()]*\)", "", bare(failure).partition(";")[0])
    return re.sub(r"\d+", "#", sentence)[:100].strip()


def bare(failure: str) -> str:
    """A failure without its place in a file, or in a list of seeds."""
    return re.sub(r"^(\[\[expect\]\] \d+: |seed \d+: |seed \d+, )", "", failure).partition("\n")[0]


class Search:
    """The smallest scenario so far that fails in the same way."""

    def __init__(self, scenario: Scenario, seed: int, budget: int, told: Callable[[str], None]) -> None:
        self.best, self.seed = scenario, seed
        self.tried, self.rounds = 0, 0
        self._budget, self._told = budget, told
        self._known: dict[str, bool] = {}
        self.failures = self.judge(scenario)
        if not self.failures:
            raise NotFailing(f"{scenario.title or scenario.job}: seed {seed} passes, so there is nothing to shrink")
        self.kind = kind_of(self.failures[0])

    @property
    def is_spent(self) -> bool:
        """Whether no try is left."""
        return self.tried >= self._budget

    def fails(self, candidate: Scenario) -> bool:
        """Try a scenario; one that fails in the same way is the best so far."""
        if candidate == self.best:
            return True
        key = repr(candidate)
        if key not in self._known:
            if self.is_spent:
                return False
            self.tried += 1
            self._known[key] = self._is_alike(candidate)
        if self._known[key]:
            self.best = candidate
            self._told(size_of(candidate))
        return self._known[key]

    def _is_alike(self, candidate: Scenario) -> bool:
        try:
            found = self.judge(candidate)
        except ActorflowError:  # it makes no sense any more
            return False
        if self.kind not in map(kind_of, found):
            return False
        self.failures = found
        return True

    def judge(self, scenario: Scenario) -> tuple[str, ...]:
        """Play a scenario once, with its calm run where one is needed, and say what is wrong."""
        subject = prepare(scenario)
        try:
            storm = play(scenario, self.seed, subject=subject)
            self.rounds = storm.rounds
            found = self._differing(scenario, subject, storm.digest)
            calm = play(scenario, self.seed, storm=False, subject=subject) if needs_calm(scenario) else None
        except SeedFailed as failed:
            return (str(failed),)
        return (*found, *failures_of(scenario, calm, storm))

    def _differing(self, scenario: Scenario, subject: Subject, digest: str) -> tuple[str, ...]:
        """Look for what no seed decides, but only where that is what is being shrunk."""
        if "is not deterministic" not in getattr(self, "kind", "is not deterministic"):
            return ()
        again = play(scenario, self.seed, subject=subject)
        return () if again.digest == digest else (f"seed {self.seed} is not deterministic",)


# ── one thing after the other is made less ───────────────────────────────────────────────────


def patience(search: Search) -> None:
    """A job that never ends is not waited for as long: each run is over sooner."""
    if "does not finish" in search.kind and search.best.calm_within_ms > _PATIENCE_MS:
        search.fails(replace(search.best, calm_within_ms=_PATIENCE_MS))


def faults(search: Search) -> None:
    fewest(search.best.weather, lambda some: search.fails(replace(search.best, weather=some)))


def steps(search: Search) -> None:
    fewest(search.best.steps, lambda some: search.fails(replace(search.best, steps=some)))


def simpler_faults(search: Search) -> None:
    for index in range(len(search.best.weather)):
        for simpler in simpler_weather(search.best.weather[index]):
            weather = search.best.weather
            search.fails(replace(search.best, weather=(*weather[:index], simpler, *weather[index + 1 :])))


def lives(search: Search) -> None:
    """Fewer changes of parallelism, and less of it."""
    if lives := search.best.lives:
        for count in range(1, len(lives)):
            if search.fails(replace(search.best, lives=lives[:count])):
                break
    for index in range(len(search.best.lives)):
        for fewer in range(1, search.best.lives[index]):
            lives = search.best.lives
            if search.fails(replace(search.best, lives=(*lives[:index], fewer, *lives[index + 1 :]))):
                break
    if set(search.best.lives) == {1} and "parallelism" not in search.best.environment:
        search.fails(replace(search.best, lives=()))


def knobs(search: Search) -> None:
    """As few settings as can be that are not as they would be unsaid."""
    knobs = tuple(_flat(search.best.environment))
    fewest(knobs, lambda some: search.fails(replace(search.best, environment=_nested(some))))


def records(search: Search) -> None:
    if not search.best.inputs and (inputs := inputs_of(prepare(search.best).job())):
        search.fails(replace(search.best, inputs=inputs))
    for index in range(len(search.best.inputs)):
        one = search.best.inputs[index]

        if one.count is not None:
            least(1, one.count, partial(_is_enough, search, index, "count"))
        elif one.records is not None:
            _is_enough(search, index, "splits", 1)
            _is_enough(search, index, "records", tuple(TimedRecord(value=record.value) for record in one.records))
            fewest(search.best.inputs[index].records or (), partial(_is_enough, search, index, "records"))


def _is_enough(search: Search, index: int, field: str, value: Any) -> bool:
    """Whether it still fails when one of the inputs has this in a field."""
    inputs = search.best.inputs
    smaller = replace(inputs[index], **{field: value})
    return search.fails(replace(search.best, inputs=(*inputs[:index], smaller, *inputs[index + 1 :])))


def order(search: Search) -> None:
    """As little of the order of events as can be is the seed's; batches take no time."""
    schedule = search.best.schedule
    if schedule.batch_us:
        search.fails(replace(search.best, schedule=replace(schedule, batch_us=0)))
    if schedule.earlier_parallelism:
        search.fails(replace(search.best, schedule=replace(search.best.schedule, earlier_parallelism=False)))
    schedule = search.best.schedule
    most = search.rounds if schedule.shuffle_rounds is None else schedule.shuffle_rounds

    def shuffled(rounds: int) -> bool:
        return search.fails(replace(search.best, schedule=replace(search.best.schedule, shuffle_rounds=rounds)))

    if most and shuffled(most):
        least(0, most, shuffled)


# ── settings ─────────────────────────────────────────────────────────────────────────────────

_TOGETHER = ("restart",)
"""Tables whose words mean something only together."""


def _flat(table: Mapping[str, Any], *above: str) -> Iterator[tuple[tuple[str, ...], Any]]:
    for key, value in table.items():
        if isinstance(value, Mapping) and key not in _TOGETHER:
            yield from _flat(value, *above, key)
        else:
            yield (*above, key), value


def _nested(knobs: Sequence[tuple[tuple[str, ...], Any]]) -> dict[str, Any]:
    table: dict[str, Any] = {}
    for path, value in knobs:
        inner = table
        for key in path[:-1]:
            inner = inner.setdefault(key, {})
        inner[path[-1]] = value
    return table


PASSES = (patience, faults, lives, knobs, records, steps, simpler_faults, order)
"""What is made less in turn: first what a person sees first."""


# ── telling ──────────────────────────────────────────────────────────────────────────────────


def size_of(scenario: Scenario) -> str:
    """Say how much there is in a scenario."""
    records = [len(one.records) if one.records is not None else one.count for one in scenario.inputs]
    said = [
        _counted(len(scenario.weather), "fault"),
        _counted(len(tuple(_flat(scenario.environment))), "setting"),
        *([_counted(sum(count or 0 for count in records), "record")] if records else []),
    ]
    if scenario.schedule.shuffle_rounds is not None:
        said.append(_counted(scenario.schedule.shuffle_rounds, "shuffled round"))
    return ", ".join(said[:-1]) + f" and {said[-1]}"


def _counted(number: int, what: str) -> str:
    return f"{number} {what}" if number == 1 else f"{number} {what}s"
