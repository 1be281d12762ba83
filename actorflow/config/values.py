"""What value does one setting's text stand for?

Texts come from files and command lines, and so do plain numbers and switches; a value that a field could hold is taken
as it is.  Raises ``ValueError`` with half a sentence that fits behind the name and the value.
"""

from __future__ import annotations

import re
from datetime import timedelta
from enum import StrEnum

from actorflow.config.flink import STATE_BACKENDS
from actorflow.config.knobs import Kind, Knob
from actorflow.config.text import parse_duration, parse_flink_duration, parse_flink_size, parse_size

__all__ = ("read_switch", "read_value")

_WHOLE = re.compile(r"[+-]?\d{1,20}\Z", re.ASCII)
_NO_LIMIT = 2**31 - 1  # what Flink writes for "as often as it takes"


def read_value(knob: Knob, value: object, *, flink: bool = False) -> object:
    """Return the value of a setting; ``flink`` reads it as Flink would."""
    if value is None or (not flink and knob.optional and isinstance(value, str) and value.strip().lower() == "none"):
        if knob.optional:
            return None
        raise ValueError("has no value")
    match knob.kind:
        case Kind.DURATION:
            return _duration(value, flink=flink)
        case Kind.SIZE:
            return (parse_flink_size if flink else parse_size)(value)
        case Kind.COUNT:
            return _flink_count(knob, _whole(value)) if flink else _whole(value)
        case Kind.NUMBER:
            return _number(value)
        case Kind.SWITCH:
            return read_switch(value)
        case Kind.CHOICE:
            return _choice(knob, value, flink=flink)
        case _:
            if not isinstance(value, str):
                raise ValueError(f"must be a text, not {type(value).__name__}")
            return value


def read_switch(value: object) -> bool:
    """Return what ``true`` or ``false`` says."""
    if isinstance(value, bool):
        return value
    if isinstance(value, str) and value.strip().lower() in {"true", "false"}:
        return value.strip().lower() == "true"
    raise ValueError("must be true or false")


def _duration(value: object, *, flink: bool) -> timedelta:
    if isinstance(value, timedelta):
        return value
    return (parse_flink_duration if flink else parse_duration)(value)


def _whole(value: object) -> int:
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    if isinstance(value, str) and _WHOLE.match(value.strip()):
        return int(value.strip())
    raise ValueError("must be a whole number")


def _flink_count(knob: Knob, value: int) -> int | None:
    if knob.name == "max_parallelism" and value == -1:
        return None  # derived from the parallelism
    if knob.name == "restart.attempts" and knob.optional and value == _NO_LIMIT:
        return None
    return value


def _number(value: object) -> float:
    if isinstance(value, int | float) and not isinstance(value, bool):
        return float(value)
    if isinstance(value, str):
        try:
            return float(value.strip())
        except ValueError:
            pass
    raise ValueError("must be a number")


def _choice(knob: Knob, value: object, *, flink: bool) -> object:
    if isinstance(value, StrEnum) and not isinstance(knob.choices, tuple) and isinstance(value, knob.choices):
        return value
    choices = {_plain(choice): choice for choice in knob.choices}
    if flink and knob.name == "state":
        choices = STATE_BACKENDS
    if flink and knob.name == "checkpoints.compression":
        return "snappy" if read_switch(value) else None  # Flink's is snappy, on or off
    if isinstance(value, str) and _plain(value) in choices:
        return choices[_plain(value)]
    raise ValueError(f"must be one of {', '.join(choices if flink else map(str, knob.choices))}")


def _plain(choice: str) -> str:
    """Letter case, and whether words are joined by ``-`` or ``_``, make no difference."""
    return choice.strip().lower().replace("_", "-")
