"""How do mappings (a file's tables, ``-D key=value``, a scenario's ``[environment]``) become settings?

Layers lie above each other: later ones win, and only the result is judged for contradictions, so a command line can put
right what a file says.  Every mistake of every layer is told in one :class:`~actorflow.errors.InvalidConfig`: a key
nobody knows with the nearest one that is known, a value that can't be read with what would do, a key of Flink's that
means nothing here with the reason.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import fields
from datetime import timedelta
from typing import Any, TypeVar

from actorflow.config.keys import RESTART_KNOBS, Unreadable, flatten, interpret
from actorflow.config.settings import (
    Buffers,
    Checkpoints,
    ExponentialDelay,
    FailureRate,
    FixedDelay,
    NoRestart,
    Restart,
    Settings,
)
from actorflow.config.values import read_value
from actorflow.errors import InvalidConfig

__all__ = ("flat", "parse_assignments", "read", "strategy_of")

G = TypeVar("G", bound=Settings | Checkpoints | Buffers | Restart)
_Said = dict[str, tuple[str, object]]  # target → the key as written, and what it says

_STRATEGY_TYPES: dict[str, type[Restart]] = {
    "none": NoRestart,
    "fixed-delay": FixedDelay,
    "failure-rate": FailureRate,
    "exponential-delay": ExponentialDelay,
}
_SHOWN = 80  # characters of a value in a message


def read(layers: Iterable[tuple[str, Mapping[str, object]]], *, base: Settings) -> Settings:
    """Return ``base`` with what the layers say; each is a source, for messages, and a mapping."""
    reader = _Reader(base)
    for source, mapping in layers:
        reader.read_layer(source, mapping)
    return reader.finish()


def parse_assignments(assignments: Iterable[str]) -> dict[str, object]:
    """Return what a list such as ``["parallelism=4", "checkpoints.every=10s"]`` says; later ones win."""
    said: dict[str, object] = {}
    problems = []
    for assignment in assignments:
        key, equals, value = assignment.partition("=")
        if not equals or not key.strip():
            problems.append(f"{assignment!r} is not of the form key=value, such as checkpoints.every=10s")
        else:
            said[key.strip()] = value.strip()
    if problems:
        raise InvalidConfig(problems)
    return said


def flat(settings: Settings) -> dict[str, object]:
    """Return every setting by its full name; ``restart`` and ``buffers.debloat`` are one value each."""
    values: dict[str, object] = {}
    for group in (settings, settings.checkpoints, settings.buffers):
        for field in fields(group):
            if not (group is settings and field.name in {"checkpoints", "buffers"}):
                values[f"{group.group}.{field.name}".lstrip(".")] = getattr(group, field.name)
    return values


def strategy_of(restart: Restart) -> str:
    """Return what a restart strategy is called in text."""
    return next(name for name, kind in _STRATEGY_TYPES.items() if isinstance(restart, kind))


class _Reader:
    """Collects what the layers say, and what is wrong with it."""

    def __init__(self, base: Settings) -> None:
        self.values = flat(base)
        self.problems: list[str] = []
        self.unsound: set[str] = set()  # our names whose value could not be read
        self.spelled: dict[str, str] = {}  # our name → the key that said it last, with its source
        self.parts: dict[str, Any] = {}  # what Flink's paired keys said, kept over the layers
        self.folder_missing = ""  # the key that asks for a folder, until one is named

    def read_layer(self, source: str, mapping: Mapping[str, object]) -> None:
        """Take in one mapping."""
        said: _Said = {}
        for key, value in flatten(mapping):
            written = f"{key} ({source})" if source else key
            try:
                for target, meaning in interpret(key, value):
                    earlier = said.setdefault(target, (written, meaning))
                    if earlier[1] != meaning:
                        self._clash(target, earlier[0], written)
            except Unreadable as unreadable:
                self._complain(f"{written} = {_short(value)} {unreadable.complaint}", *unreadable.targets)
        self._take_restart(said)
        self._take_alignment(said)
        self._take_storage(said)
        for name, (written, meaning) in said.items():
            self.values[name], self.spelled[name] = meaning, written

    def finish(self) -> Settings:
        """Judge the whole, and return it."""
        if self.folder_missing and self.values["checkpoints.storage"] is None:
            self._complain(f"{self.folder_missing} = 'filesystem' needs a folder; say execution.checkpointing.dir too")
        checkpoints, buffers = self._judged(Checkpoints), self._judged(Buffers)
        restart = self.values["restart"]
        if isinstance(restart, Restart):
            self.problems += restart.check(naming=self._naming, unsound=self.unsound)
        settings = _unchecked(Settings, self.values | {"checkpoints": checkpoints, "buffers": buffers})
        self.problems += settings.check(naming=self._naming, unsound=self.unsound)
        if self.problems:
            raise InvalidConfig(list(dict.fromkeys(self.problems)))
        return settings

    # ── what takes more than one key ────────────────────────────────────────────────────────────────────────────────

    def _take_restart(self, said: _Said) -> None:
        """Put a strategy together from its type and its fields; a new type begins with its own defaults."""
        whole, kind = said.get("restart"), said.pop("restart.type", None)
        given = [(target, *said.pop(target)) for target in list(said) if target.startswith(("restart.", "restart["))]
        if whole is not None and kind is not None:
            self._clash("restart", whole[0], kind[0])
        now = self.values["restart"] if whole is None else whole[1]
        if kind is not None:
            strategy = str(kind[1])
        elif isinstance(now, Restart):
            strategy = strategy_of(now)
        else:
            if given:
                self._complain(f"{given[0][1]} needs restart.type: {', '.join(_STRATEGY_TYPES)}", "restart")
            return
        made = now if isinstance(now, _STRATEGY_TYPES[strategy]) else _STRATEGY_TYPES[strategy]()
        values: dict[str, Any] = {}
        for target, written, meaning in given:
            by_us, field = target.startswith("restart."), target.rpartition(".")[2]
            knob = RESTART_KNOBS.get((strategy, field))
            if knob is None or not (by_us or target == f"restart[{strategy}].{field}"):
                self._complain(f"{written} = {_short(meaning)} does not belong to the restart strategy {strategy}")
                continue
            try:
                value = read_value(knob, meaning) if by_us else meaning
            except ValueError as error:
                self._complain(f"{written} = {_short(meaning)} {error}", knob.name)
                continue
            if values.setdefault(field, value) != value:
                self._clash(knob.name, self.spelled[knob.name], written)
            self.spelled[knob.name] = written
        if kind is not None or given:
            current = {field.name: getattr(made, field.name) for field in fields(made)}
            said["restart"] = (given[0][1] if kind is None else kind[0], _unchecked(type(made), current | values))

    def _take_alignment(self, said: _Said) -> None:
        """Flink switches overtaking on with one key, and says with another after which time."""
        name = "checkpoints.align_at_most"
        given = {part: said.pop(part) for part in ("align.enabled", "align.timeout") if part in said}
        if name in said:
            self.parts.clear()
            for written, _ in given.values():
                self._clash(name, said[name][0], written)
        elif given:
            now = self.values[name]
            self.parts |= {part: meaning for part, (_, meaning) in given.items()}
            timeout = self.parts.get("align.timeout", timedelta(0) if now is None else now)
            enabled = self.parts.get("align.enabled", now is not None)
            said[name] = (next(iter(given.values()))[0], timeout if enabled else None)

    def _take_storage(self, said: _Said) -> None:
        """Flink says the kind of storage with one key, and its folder with another."""
        name = "checkpoints.storage"
        kind, folder = said.pop("storage.kind", None), said.pop("storage.dir", None)
        if name in said:
            for given in (kind, folder):
                if given is not None:
                    self._clash(name, said[name][0], given[0])
            return
        if folder is not None:
            said[name] = folder
        if kind is None:
            return
        match str(kind[1]).strip().lower():
            case "filesystem":
                self.folder_missing = kind[0]
            case "jobmanager":
                self.folder_missing = ""
                if folder is not None:
                    self._complain(
                        f"{kind[0]} = 'jobmanager' is this process's memory, and contradicts {folder[0]}", name
                    )
                said[name] = (kind[0], None)
            case _:
                self._complain(f"{kind[0]} = {_short(kind[1])} must be jobmanager or filesystem", name)

    # ── telling ─────────────────────────────────────────────────────────────────────────────────────────────────────

    def _judged(self, group: type[G]) -> G:
        prefix = f"{group.group}."
        values = {name.removeprefix(prefix): value for name, value in self.values.items() if name.startswith(prefix)}
        made = _unchecked(group, values)
        self.problems += made.check(naming=self._naming, unsound=self.unsound)
        return made

    def _naming(self, name: str) -> str:
        return self.spelled.get(name, name)

    def _complain(self, problem: str, *names: str) -> None:
        self.problems.append(problem)
        self.unsound.update(names)

    def _clash(self, name: str, one: str, other: str) -> None:
        self._complain(f"{one} and {other} are one setting; say it once", name)


def _unchecked(group: type[G], values: Mapping[str, object]) -> G:
    """Make a group without letting it judge itself, because whoever reads tells all mistakes at once."""
    made = object.__new__(group)
    for field in fields(group):
        object.__setattr__(made, field.name, values[field.name])
    return made


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"
