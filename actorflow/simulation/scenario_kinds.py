"""What may stand behind a word of a scenario, how is it read, and how is it written back?

A :class:`Kind` refuses with ``ValueError`` and half a sentence that fits behind a name; ``scenario_tables.py`` says
where.  Nothing is guessed: a number is no text, a duration has a unit, ``true`` is no number.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum
from pathlib import PurePosixPath
from typing import Any

from actorflow.config import duration_text, milliseconds, parse_duration, parse_size

__all__ = (
    "BESIDE",
    "COUNT",
    "DURATION",
    "FUNCTION",
    "JUMP",
    "MILLIONTHS",
    "NAME",
    "OPEN",
    "RATE",
    "SIZE",
    "SOME_DURATION",
    "SWITCH",
    "TEXT",
    "VALUES",
    "WHOLE",
    "Kind",
    "a_list_of",
    "a_member_of",
    "nearest",
    "one_of",
    "type_of",
)


def _as_it_is(value: Any) -> Any:
    return value


@dataclass(frozen=True, slots=True)
class Kind:
    """How a value is read from a file, and how it is written into one."""

    read: Callable[[Any], Any]
    write: Callable[[Any], Any] = _as_it_is


def nearest(word: str, known: Iterable[str]) -> str:
    """Return how to go on after an unknown word: with the known one that is most like it, whatever their case."""
    names = {name.casefold(): name for name in known}
    found = difflib.get_close_matches(word.casefold(), list(names), n=1, cutoff=0.0)
    return f"the nearest is {names[found[0]]!r}" if found else "there is none at all"


def type_of(value: Any) -> str:
    """Return what a value is, in the words of a person who writes a file."""
    names = ((bool, "true or false"), (int | float, "a number"), (str, "text"), (Mapping, "a table"), (list, "a list"))
    return next((name for kind, name in names if isinstance(value, kind)), f"a {type(value).__name__}")


# ── text ─────────────────────────────────────────────────────────────────────────────────────


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise ValueError(f"must be text, not {type_of(value)}")
    return value


def _line(value: Any) -> str:
    if len(_text(value).splitlines()) != 1 or value != value.strip():
        raise ValueError("must be one line of text, without blanks around it")
    return str(value)


def _function(value: Any) -> str:
    if not re.fullmatch(r"(?:[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*|[^:]*\.py):[A-Za-z_]\w*", _line(value)):
        raise ValueError("must be module:function, such as 'actorflow.examples.word_count:word_count'")
    return str(value)


def _beside(value: Any) -> str:
    """A path that stays beside the scenario, whatever machine it is on."""
    path = PurePosixPath(_line(value))
    if path.is_absolute() or ".." in path.parts or "\\" in value or ":" in value or "\0" in value:
        raise ValueError("must stay beside the scenario: a relative path, without '..', a backslash or a colon")
    return str(value)


def one_of(choices: Iterable[str]) -> Kind:
    """Return the kind that is one of these texts."""
    known = tuple(choices)

    def read(value: Any) -> str:
        if value not in known:
            shown = nearest(value, known) if isinstance(value, str) else f"it is {type_of(value)}"
            raise ValueError(f"must be one of {', '.join(map(repr, known))}; {shown}")
        return str(value)

    return Kind(read, str)


def a_member_of(choices: type[StrEnum]) -> Kind:
    """Return the kind that is one of an enumeration, by its value."""
    texts = one_of(choice.value for choice in choices)
    return Kind(lambda value: choices(texts.read(value)), str)


# ── numbers ──────────────────────────────────────────────────────────────────────────────────


def _whole(least: int) -> Callable[[Any], int]:
    def read(value: Any) -> int:
        if isinstance(value, bool) or not isinstance(value, int):
            raise ValueError(f"must be a whole number, not {type_of(value)}")
        if value < least:
            raise ValueError(f"must be at least {least}")
        return value

    return read


def _rate(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ValueError(f"must be a number, not {type_of(value)}")
    if not 0 < value <= 1e9:
        raise ValueError("must be more than 0 and at most 1_000_000_000")
    return value


def _millionths(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not 0 < abs(value) <= 500_000:
        raise ValueError("must be a whole number of millionths between -500_000 and 500_000, and not 0")
    return value


def _switch(value: Any) -> bool:
    if not isinstance(value, bool):
        raise ValueError(f"must be true or false, not {type_of(value)}")
    return value


def _duration(value: Any) -> int:
    return milliseconds(parse_duration(value))


def _some_duration(value: Any) -> int:
    if not (ms := _duration(value)):
        raise ValueError("must be more than nothing")
    return ms


def _duration_back(ms: int) -> str:
    return duration_text(timedelta(milliseconds=ms))


def _jump(value: Any) -> int:
    if isinstance(value, str) and value.startswith("-"):
        return -_some_duration(value[1:])
    return _some_duration(value)


def _jump_back(ms: int) -> str:
    return f"-{_duration_back(-ms)}" if ms < 0 else _duration_back(ms)


# ── lists and tables ─────────────────────────────────────────────────────────────────────────


def _list(value: Any) -> tuple[Any, ...]:
    if not isinstance(value, list):
        raise ValueError(f"must be a list, not {type_of(value)}")
    return tuple(value)


def a_list_of(kind: Kind, *, empty: bool = False) -> Kind:
    """Return the kind that is a list of others."""

    def read(value: Any) -> tuple[Any, ...]:
        found = []
        for number, item in enumerate(_list(value), 1):
            try:
                found.append(kind.read(item))
            except ValueError as error:
                raise ValueError(f"has something wrong at place {number}: {item!r} {error}") from None
        if not found and not empty:
            raise ValueError("must not be empty")
        return tuple(found)

    return Kind(read, lambda items: [kind.write(item) for item in items])


def _table(value: Any) -> dict[str, Any]:
    if not isinstance(value, Mapping):
        raise ValueError(f"must be a table, not {type_of(value)}")
    return dict(value)


TEXT, NAME = Kind(_text), Kind(_line)
FUNCTION, BESIDE = Kind(_function), Kind(_beside)
WHOLE, COUNT = Kind(_whole(0)), Kind(_whole(1))
RATE, MILLIONTHS, SWITCH, SIZE = Kind(_rate), Kind(_millionths), Kind(_switch), Kind(parse_size)
DURATION, SOME_DURATION = Kind(_duration, _duration_back), Kind(_some_duration, _duration_back)
JUMP = Kind(_jump, _jump_back)
OPEN, VALUES = Kind(_table, dict), Kind(_list, list)
