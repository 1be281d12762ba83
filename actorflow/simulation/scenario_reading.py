"""How does a file become a scenario, and what is told when it can't?

``tomllib`` reads it; everything that it says must be a word that ``scenario_words.py`` or ``scenario_weather.py``
knows, with a value of the right kind.  Whatever else stands there is refused, with the file, the table and the nearest
known word, and all mistakes of a file are told at once in one :class:`~actorflow.errors.InvalidScenario`.

Nothing is imported and no job is built: what can only be seen in the job is judged by ``expectations.py``.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from actorflow.config import Settings
from actorflow.errors import InvalidConfig, InvalidScenario
from actorflow.simulation.scenario import (
    AboutCheckpoint,
    AboutJournal,
    AboutOutput,
    AboutRegistry,
    AboutState,
    AboutStatus,
    AboutStorage,
    Expectation,
    Fault,
    Input,
    Output,
    Scenario,
    Schedule,
    Seeds,
    Step,
)
from actorflow.simulation.scenario_weather import TRIGGERS, VERBS, read_target, read_trigger, verbs_of
from actorflow.simulation.scenario_words import (
    CALM,
    COUNT,
    DURATION,
    EVERY_SINK,
    EXPECT,
    FIELDS_OF,
    INPUT,
    OUTPUT,
    SAME,
    SCHEDULE,
    SEEDS,
    STEP,
    SUBJECT_OF,
    TOP,
    Word,
    nearest,
    read_where,
)
from actorflow.simulation.weather import At, OnObject, Trigger

__all__ = ("parse_scenario", "read_scenario")

_TABLES = ("seeds", "environment", "calm", "schedule")
_LISTS = ("input", "output", "weather", "step", "expect")
_ABOUT: dict[str, type[Expectation]] = {
    "output": AboutOutput,
    "state": AboutState,
    "checkpoint": AboutCheckpoint,
    "journal": AboutJournal,
    "storage": AboutStorage,
    "retained": AboutRegistry,
    "status": AboutStatus,
}


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
    reader = _Reader(file)
    scenario = reader.scenario(said)
    if reader.problems or scenario is None:
        raise InvalidScenario(list(dict.fromkeys(reader.problems)))
    return scenario


class _Table:
    """A table under reading: what it says, and where its mistakes go."""

    def __init__(self, problems: list[str], file: str, place: str, said: Mapping[str, Any]) -> None:
        self._problems, self._file, self._place, self.said = problems, file, place, dict(said)
        self.is_sound = True

    def tell(self, sentence: str) -> None:
        """Note a mistake."""
        self.is_sound = False
        where = " ".join(part for part in (self._file, self._place) if part)
        self._problems.append(f"{where}: {sentence}" if where else sentence)

    def read(
        self, said: Mapping[str, Any], words: tuple[Word, ...], within: str = "", beside: tuple[str, ...] = ()
    ) -> dict[str, Any] | None:
        """Read by words, and refuse what is none of them or of those ``beside``; ``None`` when something was wrong."""
        before, prefix = len(self._problems), f"{within}: " if within else ""
        known = {word.name: word for word in words}
        found: dict[str, Any] = {}
        for name, value in said.items():
            if name not in known:
                self.tell(f"{prefix}{name!r} is no word of this table; {nearest(name, (*known, *beside))}")
                continue
            try:
                found[known[name].field] = known[name].kind.read(value)
            except ValueError as error:
                self.tell(f"{prefix}{name} = {_short(value)} {error}")
        if len(self._problems) == before:
            for word in words:
                if word.required and word.name not in said:
                    self.tell(f"{prefix}{word.name} is missing")
        return found if len(self._problems) == before else None


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 80 else f"{text[:80]}…"


class _Reader:
    """Reads one file and collects what is wrong with it."""

    def __init__(self, file: str) -> None:
        self.problems: list[str] = []
        self._file = file

    def scenario(self, said: Mapping[str, Any]) -> Scenario | None:
        """Return what the file says; ``None`` when something was wrong."""
        top = self._table("", {name: value for name, value in said.items() if name not in {*_TABLES, *_LISTS}})
        found = top.read(top.said, TOP, beside=(*_TABLES, *_LISTS))
        seeds = self._one(said, "seeds", SEEDS)
        calm = self._one(said, "calm", CALM)
        schedule = self._one(said, "schedule", SCHEDULE)
        environment = self._environment(said)
        inputs = [self._input(table) for table in self._many(said, "input")]
        outputs = [self._output(table) for table in self._many(said, "output")]
        weather = [self._fault(table) for table in self._many(said, "weather")]
        steps = [self._step(table) for table in self._many(said, "step")]
        expectations = [self._expectation(table) for table in self._many(said, "expect")]
        if "expect" not in said:
            top.tell("[[expect]] is missing: say what must be true")
        self._once(top, "input", [one.source for one in inputs if one is not None])
        self._once(top, "output", [one.sink for one in outputs if one is not None])
        if self.problems or found is None:
            return None
        return Scenario(
            **found,
            seeds=Seeds(**(seeds or {})),
            environment=environment,
            inputs=tuple(one for one in inputs if one is not None),
            outputs=tuple(one for one in outputs if one is not None),
            weather=tuple(one for one in weather if one is not None),
            steps=tuple(one for one in steps if one is not None),
            expectations=tuple(one for one in expectations if one is not None),
            schedule=Schedule(**(schedule or {})),
            file=self._file,
            **(calm or {}),
        )

    # ── tables ──

    def _table(self, place: str, said: Mapping[str, Any]) -> _Table:
        return _Table(self.problems, self._file, place, said)

    def _one(self, said: Mapping[str, Any], name: str, words: tuple[Word, ...]) -> dict[str, Any] | None:
        if name not in said:
            return None
        table = said[name]
        if not isinstance(table, Mapping):
            self._table(f"[{name}]", {}).tell(f"must be a table, not {_short(table)}")
            return None
        reading = self._table(f"[{name}]", table)
        return reading.read(reading.said, words)

    def _many(self, said: Mapping[str, Any], name: str) -> list[_Table]:
        tables = said.get(name, [])
        if not isinstance(tables, list) or not all(isinstance(table, Mapping) for table in tables):
            self._table(f"[[{name}]]", {}).tell(f"must be tables: begin each of them with [[{name}]]")
            return []
        return [self._table(f"[[{name}]] {number}", table) for number, table in enumerate(tables, 1)]

    def _environment(self, said: Mapping[str, Any]) -> dict[str, Any]:
        table = said.get("environment", {})
        if not isinstance(table, Mapping):
            self._table("[environment]", {}).tell(f"must be a table, not {_short(table)}")
            return {}
        try:
            Settings.from_mapping(table)
        except InvalidConfig as error:
            reading = self._table("[environment]", table)
            for problem in error.problems:
                reading.tell(problem)
        return dict(table)

    @staticmethod
    def _once(top: _Table, table: str, names: list[str]) -> None:
        for name in dict.fromkeys(names):
            if names.count(name) > 1:
                top.tell(f"[[{table}]]: {name!r} is there {names.count(name)} times")

    # ── inputs and outputs ──

    @staticmethod
    def _input(table: _Table) -> Input | None:
        found = table.read(table.said, INPUT)
        if found is None:
            return None
        records = found.pop("records", None)
        if isinstance(records, int):
            found["count"] = records
        elif records is not None:
            found["records"] = records
        ways = ("make" in found or "count" in found) + ("records" in found) + ("lines" in found)
        if ways != 1 or ("make" in found) != ("count" in found):
            table.tell(
                "needs one of: records = N with make = module:function, records = [...], or lines = 'a file beside'"
            )
        if "per_second" in found and any(record.at_ms is not None for record in found.get("records", ())):
            table.tell("says per_second, and the records say when by themselves")
        return Input(**found) if table.is_sound else None

    @staticmethod
    def _output(table: _Table) -> Output | None:
        found = table.read(table.said, OUTPUT)
        return None if found is None else Output(**found)

    # ── weather and steps ──

    def _trigger(self, table: _Table, allowed: tuple[str, ...]) -> Trigger | None:
        said = [word for word in TRIGGERS if word in table.said]
        values = [(word, table.said.pop(word)) for word in said]
        for word in said:
            if word not in allowed:
                table.tell(f"{word!r} is no trigger here, only {' and '.join(allowed)}")
                return None
        if len(said) > 1:
            table.tell(f"has {len(said)} triggers, {' and '.join(said)}: one is enough")
        found = [read_trigger(word, value, table.tell, table.read) for word, value in values]
        return found[0] if len(found) == 1 else None

    def _fault(self, table: _Table) -> Fault | None:
        said = dict.fromkeys(table.said)
        when = self._trigger(table, TRIGGERS)
        life = table.said.pop("life", 1)
        try:
            life = COUNT.read(life)
        except ValueError as error:
            table.tell(f"life = {_short(life)} {error}")
        known = list(dict.fromkeys(verb.word for verb in VERBS))
        words = [word for word in table.said if word in known]
        if len(words) != 1:
            if words:
                table.tell(
                    f"has {len(words)} verbs, {' and '.join(words)}: say one, and the other in a table of its own"
                )
            else:
                options = {word.name for verb in VERBS for word in verb.words} | {"until"}
                for word in [word for word in table.said if word not in options]:
                    table.tell(
                        f"{word!r} is no word of this table; {nearest(word, (*TRIGGERS, *known, *sorted(options)))}"
                    )
                if table.is_sound:
                    table.tell(f"has no verb: one of {', '.join(known)}")
            return None
        if not any(word in said for word in TRIGGERS):
            unknown = [word for word in table.said if nearest(word, (*TRIGGERS, *known))[-4:].strip("'") in TRIGGERS]
            if not unknown:
                table.tell(f"has no trigger: one of {', '.join(TRIGGERS)}")
        target = read_target(verbs_of(words[0]), table.said.pop(words[0]), table.tell, table.read)
        if target is None:
            return None
        verb, struck = target
        if "until" in table.said and any(word.name == "for" for word in verb.words):
            self._until(table, when)
        found = table.read(table.said, verb.words, beside=TRIGGERS)
        if isinstance(when, At) and verb.names and struck[verb.names] is None:
            table.tell(f"{verb.word} = true means where the trigger occurred, and at a time that is nowhere: name it")
        if found is None or when is None or not table.is_sound:
            return None
        return Fault(weather=verb.weather(when, **struck, **found), life=life)

    @staticmethod
    def _until(table: _Table, when: Trigger | None) -> None:
        """Turn ``until`` into ``for``."""
        until = table.said.pop("until")
        if "for" in table.said:
            table.tell("says for and until: one is enough")
        elif when is not None and not isinstance(when, At):
            table.tell("until is a time, and goes with at only: say for")
        else:
            try:
                ms = DURATION.read(until)
            except ValueError as error:
                table.tell(f"until = {_short(until)} {error}")
                return
            if when is not None and ms <= when.ms:
                table.tell(f"until = {_short(until)} is not later than at")
            table.said["for"] = f"{ms - (when.ms if when is not None else 0)}ms"

    def _step(self, table: _Table) -> Step | None:
        when = self._trigger(table, ("at", "after"))
        found = table.read(table.said, STEP, beside=TRIGGERS)
        if found is None:
            return None
        if when is None and table.is_sound:
            table.tell("has no trigger: at or after")
        if found["act"] == "rescale" and "parallelism" not in found:
            table.tell("do = 'rescale' needs parallelism")
        if found["act"] not in {"rescale", "start"} and "parallelism" in found:
            table.tell(f"do = {found['act']!r} takes no parallelism")
        if when is None or not table.is_sound:
            return None
        assert not isinstance(when, OnObject)
        return Step(when=when, **found)

    # ── expectations ──

    def _expectation(self, table: _Table) -> Expectation | None:
        subjects = list(dict.fromkeys(SUBJECT_OF[word] for word in table.said if word in SUBJECT_OF))
        if len(subjects) != 1:
            if subjects:
                words = [word for word in table.said if word in SUBJECT_OF]
                table.tell(f"has {len(subjects)} subjects, {', '.join(words)}: give each a table of its own")
                return None
            known = sorted({word.name for about in EXPECT.values() for word in about})
            for word in [word for word in table.said if word not in known]:
                table.tell(f"{word!r} is no word of this table; {nearest(word, known)}")
            if table.is_sound:
                table.tell(f"has no subject: one of {', '.join(SUBJECT_OF)}")
            return None
        found = table.read(table.said, EXPECT[subjects[0]])
        if found is None:
            return None
        match subjects[0]:
            case "output":
                self._about_output(table, found)
            case "state":
                self._about_state(table, found)
            case "checkpoint":
                self._about_checkpoint(table, found)
            case "journal":
                self._about_journal(table, found)
            case "storage":
                self._about_storage(table, found)
        return _ABOUT[subjects[0]](**found) if table.is_sound else None

    @staticmethod
    def _about_output(table: _Table, found: dict[str, Any]) -> None:
        if found.get("compare") == EVERY_SINK:
            del found["compare"]
            if "sink" in found:
                table.tell("says every sink, and names one")
        if not found.keys() - {"sink"}:
            table.tell(
                "says nothing about the output: rows, contains, count, doubled_at_least, invariant, or output = "
                f"{SAME!r}"
            )

    @staticmethod
    def _about_state(table: _Table, found: dict[str, Any]) -> None:
        if found.get("state") == SAME:
            del found["state"]
            found.setdefault("compare", SAME)
        if "state" not in found and "keys" in found:
            table.tell("names keys and not whose: say state = 'operator.state'")
        elif "compare" not in found and "keys" not in found:
            table.tell(f"says nothing about the state: keys = {{ … }}, or compare = {SAME!r}")

    @staticmethod
    def _about_checkpoint(table: _Table, found: dict[str, Any]) -> None:
        completed = [name for name in found if name not in {"checkpoint", "aborted", "declined_by"}]
        if ("aborted" in found or "declined_by" in found) and (completed or found["checkpoint"] is None):
            table.tell("says that a checkpoint is aborted or declined, and something that only completed ones have")
        _range(table, found, "bytes_at_least", "bytes_at_most")
        _range(table, found, "takes_at_least_ms", "completes_within_ms")

    @staticmethod
    def _about_journal(table: _Table, found: dict[str, Any]) -> None:
        where, wrong = read_where(found["entry"], found.pop("where", {}))
        for sentence in wrong:
            table.tell(f"where: {sentence}")
        found["where"] = where
        for side in ("before", "after"):
            for name in found[side].same if side in found else ():
                if name not in FIELDS_OF[found["entry"]]:
                    table.tell(f"{side}: {found['entry']} has no field {name!r} that could be the same")
        if found.get("at_most") == 0 and ("before" in found or "after" in found):
            table.tell("must not be there at all, and is to come before or after something")
        _range(table, found, "at_least", "at_most")

    @staticmethod
    def _about_storage(table: _Table, found: dict[str, Any]) -> None:
        if "disk" in found:
            if "pattern" in found:
                table.tell("is about storage and about the disk: give each a table of its own")
            if "after_checkpoint" in found:
                table.tell("looks at the disk after a checkpoint: what is on it is known in the end only")
            found["pattern"], found["on_disk"] = found.pop("disk"), True
        if "names" in found and ("at_least" in found or "at_most" in found):
            table.tell("says all names, and how many there are")
        _range(table, found, "at_least", "at_most")


def _range(table: _Table, found: Mapping[str, Any], low: str, high: str) -> None:
    if low in found and high in found and found[low] > found[high]:
        table.tell(f"{low.removesuffix('_ms')} is more than {high.removesuffix('_ms')}")
