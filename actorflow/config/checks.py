"""What is wrong with a group of settings?

First each value by itself (type, range, not possible yet), then those that contradict each other.  Everything that is
wrong is told, not only the first.  A setting is called what the person who wrote it called it: ``naming`` turns our
name into that.  What reads text has its own complaints; it names those settings as ``unsound``, and they are left out.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass, fields
from datetime import timedelta
from enum import StrEnum
from math import isfinite
from typing import Any

from actorflow.config.knobs import Kind, Knob, knobs_of
from actorflow.config.text import duration_text, size_text

__all__ = ("Naming", "problems_of", "value_text")

Naming = Callable[[str], str]

_ZERO = timedelta(0)
_MILLISECOND = timedelta(milliseconds=1)


def problems_of(group: str, values: Any, *, naming: Naming = str, unsound: Collection[str] = ()) -> list[str]:
    """Return a sentence for everything that is wrong with the values of a group, a dataclass."""
    problems = []
    wrong = set(unsound)
    defaults = {field.name: field.default for field in fields(values)}
    for knob in knobs_of(group):
        value = getattr(values, knob.field)
        if knob.name in wrong:
            continue
        if knob.kind is Kind.GROUP:
            if knob.later and value is not None:
                problems.append(f"{naming(knob.name)} is not possible yet: {knob.later}")
        elif (complaint := _complaint(knob, value)) is not None:
            wrong.add(knob.name)
            problems.append(f"{naming(knob.name)} = {value_text(value, knob.kind)} {complaint}")
        elif knob.later and value != defaults[knob.field]:
            problems.append(f"{naming(knob.name)} = {value_text(value, knob.kind)} is not possible yet: {knob.later}")
    kinds = {knob.name: knob.kind for knob in knobs_of(group)}
    for rule in _CONTRADICTIONS.get(group, ()):
        if wrong.isdisjoint(rule.names) and rule.broken_by(values):
            said = [f"{naming(name)} = {value_text(_value(values, name), kinds[name])}" for name in rule.names]
            problems.append(rule.text.format(*said))
    return problems


def value_text(value: object, kind: Kind | None = None) -> str:
    """Return a value as a person would write it."""
    match value:
        case None:
            return "none"
        case bool():
            return "true" if value else "false"
        case timedelta() if value >= _ZERO and not value % _MILLISECOND:
            return duration_text(value)
        case StrEnum():
            return value.value
        case int() if kind is Kind.SIZE and value >= 0:
            return size_text(value)
        case str() if kind in {Kind.CHOICE, None}:
            return value
        case _:
            return repr(value)


def _complaint(knob: Knob, value: Any) -> str | None:
    """Return what is wrong with one value, as half a sentence, or None."""
    if value is None:
        return None if knob.optional else f"must be {_EXPECTED[knob.kind]}"
    match knob.kind, value:
        case Kind.DURATION, timedelta():
            if value % _MILLISECOND:
                return "is not a whole number of milliseconds"
        case (Kind.COUNT | Kind.SIZE, int()) | (Kind.NUMBER, int() | float()) if not isinstance(value, bool):
            if not isfinite(value):
                return "is not a finite number"
        case Kind.SWITCH, bool():
            return None
        case Kind.TEXT, str():
            return _complaint_about_text(value)
        case Kind.CHOICE, str() if isinstance(knob.choices, tuple):
            return None if value in knob.choices else f"must be one of {', '.join(knob.choices)}"
        case Kind.CHOICE, StrEnum() if not isinstance(knob.choices, tuple) and isinstance(value, knob.choices):
            return None
        case _:
            return f"must be {expected(knob)}, not {type(value).__name__}"
    return _out_of_range(knob, value)


def _complaint_about_text(value: str) -> str | None:
    if not value.strip() or "\0" in value:
        return "must not be empty or hold a zero byte"
    # In files and on command lines that word is no value at all, so nobody may mean a folder by it.
    return "is how text says no value; a folder of that name is ./none" if value.strip().lower() == "none" else None


def expected(knob: Knob) -> str:
    """Return what a value of this setting has to be, in Python."""
    if knob.kind is Kind.CHOICE:
        return (
            f"one of {', '.join(knob.choices)}"
            if isinstance(knob.choices, tuple)
            else f"a member of {knob.choices.__name__}"
        )
    return _EXPECTED[knob.kind]


_EXPECTED = {
    Kind.DURATION: "a timedelta",
    Kind.SIZE: "a number of bytes",
    Kind.COUNT: "a whole number",
    Kind.NUMBER: "a number",
    Kind.SWITCH: "true or false",
    Kind.TEXT: "a text",
    Kind.CHOICE: "a choice",
}


def _out_of_range(knob: Knob, value: Any) -> str | None:
    if knob.least is not None and value < knob.least:
        return f"must be at least {value_text(knob.least, knob.kind)}"
    if knob.most is not None and value > knob.most:
        return f"must be at most {value_text(knob.most, knob.kind)}"
    return None


@dataclass(frozen=True, slots=True)
class _Rule:
    """Settings of one group that do not go together; ``{0}`` in the text is the first one with its value."""

    names: tuple[str, ...]
    broken_by: Callable[[Any], bool]
    text: str


def _value(values: Any, name: str) -> object:
    return getattr(values, name.rpartition(".")[2])


_CONTRADICTIONS: dict[str, tuple[_Rule, ...]] = {
    "": (
        _Rule(
            ("max_parallelism", "parallelism"),
            lambda s: s.max_parallelism is not None and s.max_parallelism < s.parallelism,
            "{0} is below {1}; there can't be more subtasks than key groups",
        ),
    ),
    "restart[exponential-delay]": (
        _Rule(
            ("restart.at_most", "restart.first"),
            lambda r: r.at_most < r.first,
            "{0} is below {1}; the longest delay can't be shorter than the first",
        ),
    ),
    "checkpoints": (
        _Rule(
            ("checkpoints.every_during_backlog", "checkpoints.every"),
            lambda c: c.every_during_backlog is not None and c.every is None,
            "{0} needs checkpoints every so often to stretch, and {1}",
        ),
        _Rule(
            ("checkpoints.every_during_backlog", "checkpoints.every"),
            lambda c: bool(c.every_during_backlog) and c.every is not None and c.every_during_backlog < c.every,
            "{0} is below {1}; it must be 0 (no periodic checkpoints then) or at least as long",
        ),
        _Rule(
            ("checkpoints.min_pause", "checkpoints.max_concurrent"),
            lambda c: c.min_pause > _ZERO and c.max_concurrent > 1,
            "{0} contradicts {1}: between checkpoints that overlap there is no pause",
        ),
        _Rule(
            ("checkpoints.align_at_most", "checkpoints.max_concurrent"),
            lambda c: c.align_at_most is not None and c.max_concurrent > 1,
            "{0} contradicts {1}: while barriers may overtake, one checkpoint is under way at a time",
        ),
        _Rule(
            ("checkpoints.align_at_most", "checkpoints.guarantee"),
            lambda c: c.align_at_most is not None and c.guarantee == "AT_LEAST_ONCE",
            "{0} contradicts {1}: where records count at least once, no barrier is waited for that could overtake",
        ),
    ),
}
