"""Which setting does a key mean, and what does its value say?

A key is ours (``checkpoints.every``), or Flink's, by today's name or an older one.  The answer is a list of *targets*
with values, for ``reading.py`` to put together: mostly the name of one setting, but also ``restart.…`` (whose fields
depend on the strategy) and the parts that Flink says with two keys (``align.enabled`` and ``align.timeout``).
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from actorflow.config import flink
from actorflow.config.knobs import KNOBS, STRATEGIES, Kind, Knob
from actorflow.config.settings import Buffers, Checkpoints, Restart
from actorflow.config.values import read_switch, read_value

__all__ = ("RESTART_KNOBS", "Unreadable", "flatten", "interpret")

# A restart strategy's fields share names, so they are found by strategy and name.
RESTART_KNOBS: dict[tuple[str, str], Knob] = {(knob.strategy, knob.field): knob for knob in KNOBS if knob.strategy}

_OURS = {knob.name: knob for knob in KNOBS if not knob.strategy}
_OUR_NAMES = tuple(dict.fromkeys([*(knob.name for knob in KNOBS), "restart.type"]))
_GROUPS = {"checkpoints": Checkpoints, "buffers": Buffers}
_LETTER_CASE_FREE = "execution.checkpointing.unaligned.max-subtasks-per-channel-state-file"


@dataclass(frozen=True, slots=True)
class Unreadable(Exception):
    """Raised for a key or a value that says nothing; ``targets`` are what it would have been about."""

    complaint: str
    targets: tuple[str, ...] = ()


def flatten(mapping: Mapping[Any, object], prefix: str = "") -> list[tuple[str, object]]:
    """Return the keys of nested mappings joined by dots, with their values, in order."""
    pairs: list[tuple[str, object]] = []
    for part, value in mapping.items():
        key = f"{prefix}{part}"
        if isinstance(value, Mapping) and value:
            pairs += flatten(value, f"{key}.")
        elif isinstance(value, Checkpoints | Buffers) and isinstance(value, _GROUPS.get(key, ())):
            pairs += [(f"{key}.{knob.field}", getattr(value, knob.field)) for knob in KNOBS if knob.group == key]
        else:
            pairs.append((key, value))
    return pairs


def interpret(key: str, value: object) -> list[tuple[str, object]]:
    """Return what a key and its value say: targets and what they are.  Raises :class:`Unreadable`."""
    if isinstance(value, Mapping):  # an empty one; others were flattened
        if any(known.startswith(f"{key}.") for known in (*_OUR_NAMES, *flink.known_flink_keys())):
            return []
        raise Unreadable(_unknown(key))
    if key in _GROUPS:
        raise Unreadable(f"must be a table of settings, or {_GROUPS[key].__name__}(…)")
    if key == "restart" or key.startswith("restart."):
        return _restart(key, value)
    if key in _OURS:
        return _of_knob(_OURS[key], value, flinks=False)
    return _flinks(key, value)


def _restart(key: str, value: object) -> list[tuple[str, object]]:
    if key in {"restart", "restart.type"}:
        if isinstance(value, Restart):
            return [("restart", value)]
        if value is None or (isinstance(value, str) and value.strip().lower() == "default"):
            return [("restart", None)]
        return [("restart.type", _strategy(value, flinks=False))]
    if key in _OUR_NAMES:
        return [(key, value)]  # read when the strategy is known
    raise Unreadable(_unknown(key))


def _strategy(value: object, *, flinks: bool) -> str:
    name = value.strip().lower() if isinstance(value, str) else ""
    known = flink.STRATEGY_NAMES if flinks else {strategy: strategy for strategy in STRATEGIES}
    if name not in known:
        raise Unreadable(f"must be one of {', '.join(STRATEGIES)}", ("restart",))
    return known[name]


def _debloat(knob: Knob, value: object, *, flinks: bool) -> list[tuple[str, object]]:
    """Debloating can be switched off, which it is; anything else is not possible yet."""
    off = value is None or (isinstance(value, str) and value.strip().lower() == "none")
    if knob.name == "buffers.debloat" and (not _switch(value) if flinks else off):
        return [(knob.name, None)]
    if knob.name != "buffers.debloat":
        _value(knob, value, flinks=flinks)
    raise Unreadable("is not possible yet: debloating comes with a later version", (knob.name,))


def _of_knob(knob: Knob, value: object, *, flinks: bool) -> list[tuple[str, object]]:
    if knob.name.startswith("buffers.debloat"):
        return _debloat(knob, value, flinks=flinks)
    target = f"restart[{knob.strategy}].{knob.field}" if knob.strategy else knob.name
    return [(target, _value(knob, value, flinks=flinks))]


def _value(knob: Knob, value: object, *, flinks: bool) -> object:
    try:
        return read_value(knob, value, flink=flinks)
    except ValueError as error:
        raise Unreadable(str(error), (knob.name,)) from None


def _flinks(key: str, value: object) -> list[tuple[str, object]]:
    canonical = _LETTER_CASE_FREE if key.lower() == _LETTER_CASE_FREE else flink.ALIASES.get(key, key)
    if canonical in flink.FLINK:
        return _of_knob(flink.FLINK[canonical], value, flinks=True)
    if canonical in flink.PAIRED:
        return [_part(*flink.PAIRED[canonical], value)]
    if canonical in flink.FIXED:
        only, reason = flink.FIXED[canonical]
        if _switch(value) is not only:
            raise Unreadable(f"is not possible: {reason}")
        return []
    near = difflib.get_close_matches(key, _every_key(), n=1, cutoff=0.9)
    why_not = flink.why_not(canonical)
    if why_not is not None and (canonical in flink.known_flink_keys() or not near):
        raise Unreadable(f"means nothing here: {why_not}")
    raise Unreadable(_unknown(key))


def _part(part: str, kind: Kind, value: object) -> tuple[str, object]:
    if part == "restart.type":
        return part, _strategy(value, flinks=True)
    if kind is Kind.SWITCH:
        return part, _switch(value)
    knob = next(knob for knob in KNOBS if knob.name == _PART_OF[part])
    return part, _value(knob, value, flinks=True)


_PART_OF = {
    "storage.kind": "checkpoints.storage",
    "storage.dir": "checkpoints.storage",
    "align.timeout": "checkpoints.align_at_most",
}


def _switch(value: object) -> bool:
    try:
        return read_switch(value)
    except ValueError as error:
        raise Unreadable(str(error)) from None


def _every_key() -> tuple[str, ...]:
    return (*_OUR_NAMES, *flink.known_flink_keys())


def _unknown(key: str) -> str:
    """Say which known key is nearest; a name without its group (``every``) or of Flink's (``num_retained``) too."""
    last = key.rpartition(".")[2].replace("_", "-")
    words = {knob.name: {knob.field.replace("_", "-"), knob.flink.rpartition(".")[2]} for knob in KNOBS}
    homes = [name for name, known in words.items() if last in known and name != key]
    group = key.rpartition(".")[0]
    homes = [name for name in homes if name.rpartition(".")[0] == group] or homes
    nearest = homes or difflib.get_close_matches(key, _every_key(), n=1, cutoff=0.0)
    return f"is not a setting; the nearest is {' or '.join(nearest)}"
