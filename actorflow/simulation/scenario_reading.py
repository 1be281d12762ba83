"""How does a file become a scenario, and what is told when it can't?

``tomllib`` reads it; everything that it says must be a word that is known, with a value of the right kind.  Whatever
else stands there is refused, with the file, the table and the nearest known word, and all mistakes of a file are told
at once in one :class:`~actorflow.errors.InvalidScenario`.

Nothing is imported and no job is built: whether the job has what a scenario speaks of is for ``scenario_cast.py``.
"""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar

from actorflow.config import Settings
from actorflow.errors import InvalidConfig, InvalidScenario
from actorflow.simulation.scenario import Expectation, Input, Output, Scenario, Schedule, Seeds, Step
from actorflow.simulation.scenario_subjects import read_expectation
from actorflow.simulation.scenario_tables import Table, Words, short
from actorflow.simulation.scenario_triggers import TRIGGERS, read_trigger
from actorflow.simulation.scenario_weather import read_fault
from actorflow.simulation.scenario_words import CALM, INPUT, OUTPUT, SCHEDULE, SEEDS, STEP, TOP

__all__ = ("parse_scenario", "read_scenario")

T = TypeVar("T")

_ONCE = ("seeds", "environment", "calm", "schedule")
_OFTEN = ("input", "output", "weather", "step", "expect")


def read_scenario(path: Path) -> Scenario:
    """Read a scenario from a file.  Raises ``InvalidScenario`` with every mistake."""
    try:
        text = path.read_bytes().decode("utf-8")
    except UnicodeDecodeError as error:
        raise InvalidScenario(f"{path}: is not UTF-8: {error}") from error
    except OSError as error:
        raise InvalidScenario(f"{path}: can't be read: {error.strerror}") from error
    return parse_scenario(text, file=str(path))


def parse_scenario(text: str, *, file: str = "") -> Scenario:
    """Read a scenario from the text of a file, which ``file`` names.  Raises ``InvalidScenario`` with every mistake."""
    try:
        said = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise InvalidScenario(f"{file or 'the scenario'}: is not TOML: {error}") from error
    reader = _Reader(file, said)
    scenario = reader.scenario()
    if reader.problems or scenario is None:
        raise InvalidScenario(list(dict.fromkeys(reader.problems)))
    return scenario


class _Reader:
    """Reads one file and collects what is wrong with it."""

    def __init__(self, file: str, said: Mapping[str, Any]) -> None:
        self.problems: list[str] = []
        self._file, self._said = file, said

    def scenario(self) -> Scenario | None:
        """Return what the file says; ``None`` when something is wrong."""
        head = {name: value for name, value in self._said.items() if name not in {*_ONCE, *_OFTEN}}
        top = self._table("", head)
        found = top.read(TOP, beside=(*_ONCE, *_OFTEN))
        seeds, calm, schedule = self._once("seeds", SEEDS), self._once("calm", CALM), self._once("schedule", SCHEDULE)
        environment = self._environment()
        inputs, outputs = self._often("input", _input), self._often("output", _output)
        weather, steps = self._often("weather", read_fault), self._often("step", _step)
        expectations: list[Expectation] = self._often("expect", read_expectation)
        if not expectations and "expect" not in self._said:
            top.lacks("[[expect]] is missing: say what must be true", "expect")
        _unique(top, "input", [one.source for one in inputs])
        _unique(top, "output", [one.sink for one in outputs])
        if not top.close() or self.problems:
            return None
        return Scenario(
            **found,
            seeds=Seeds(**seeds),
            environment=environment,
            inputs=tuple(inputs),
            outputs=tuple(outputs),
            weather=tuple(weather),
            steps=tuple(steps),
            expectations=tuple(expectations),
            schedule=Schedule(**schedule),
            file=self._file,
            **calm,
        )

    def _table(self, place: str, said: Mapping[str, Any]) -> Table:
        return Table(self.problems, self._file, place, said)

    def _once(self, name: str, words: Words) -> dict[str, Any]:
        """Read a table that is there once, or not at all."""
        if name not in self._said:
            return {}
        if (table := self._plain(name)) is None:
            return {}
        found = table.read(words)
        table.close()
        return found

    def _plain(self, name: str) -> Table | None:
        said = self._said.get(name, {})
        if isinstance(said, Mapping):
            return self._table(f"[{name}]", said)
        self._table(f"[{name}]", {}).tell(f"must be a table, not {short(said)}")
        return None

    def _often(self, name: str, read: Callable[[Table], T | None]) -> list[T]:
        """Read each table of a list of them; what is wrong is left out."""
        said = self._said.get(name, [])
        if not isinstance(said, list) or not all(isinstance(one, Mapping) for one in said):
            self._table(f"[[{name}]]", {}).tell(f"must be tables: begin each of them with [[{name}]]")
            return []
        found = [read(self._table(f"[[{name}]] {number}", one)) for number, one in enumerate(said, 1)]
        return [one for one in found if one is not None]

    def _environment(self) -> dict[str, Any]:
        if (table := self._plain("environment")) is None:
            return {}
        try:
            Settings.from_mapping(table.said)
        except InvalidConfig as error:
            for problem in error.problems:
                table.tell(problem)
        return table.said


def _unique(top: Table, table: str, names: list[str]) -> None:
    for name in dict.fromkeys(names):
        if (count := names.count(name)) > 1:
            top.tell(f"[[{table}]]: {name!r} is there {count} times")


def _input(table: Table) -> Input | None:
    found = table.read(INPUT)
    if isinstance(records := found.get("records"), int):
        found["count"] = found.pop("records")
        records = None
    ways = [way for way in ("count", "records", "lines") if way in found]
    if table.is_sound and (len(ways) != 1 or ("make" in found) != ("count" in found)):
        table.lacks(
            "needs one of: records = N with make = 'module:function', records = [ … ], or lines = 'FILE'",
            *("make", "records", "lines"),
        )
    if "per_second" in found and any(record.at_ms is not None for record in records or ()):
        table.tell("says per_second, and its records say by themselves when they come")
    return Input(**found) if table.close() else None


def _output(table: Table) -> Output | None:
    found = table.read(OUTPUT)
    return Output(**found) if table.close() else None


def _step(table: Table) -> Step | None:
    when = read_trigger(table, ("at", "after"))
    found = table.read(STEP, beside=TRIGGERS)
    act = found.get("act", "")
    if act == "rescale" and "parallelism" not in found:
        table.lacks("do = 'rescale' needs parallelism", "parallelism")
    if act not in {"", "rescale", "start"} and "parallelism" in found:
        table.tell(f"do = {act!r} takes no parallelism")
    if not table.close():
        return None
    assert when is not None
    return Step(when=when, **found)
