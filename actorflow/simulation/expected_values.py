"""Are the rows and the state in the end as a scenario says, or as in the calm run?

Rows, keys and values are compared as TOML would say them: a tuple is a list, an enumeration its value, and a record
with named fields a table of those that are not ``None``.  Numbers are exact: ``1`` is not ``1.0``.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields, is_dataclass
from enum import Enum
from pathlib import Path
from typing import Any

from actorflow.dataflow.targets import function_of
from actorflow.simulation.arguments import place_of
from actorflow.simulation.digest import canonical
from actorflow.simulation.runs import Run
from actorflow.simulation.scenario import AboutOutput, AboutState
from actorflow.simulation.scenario_words import SAME
from actorflow.simulation.subject import canonical_row

__all__ = ("about_output", "about_state")

_SHOWN = 200  # characters of a value in a sentence


# ── output ───────────────────────────────────────────────────────────────────────────────────


def about_output(about: AboutOutput, folder: Path | None, calm: Run | None, storm: Run) -> Iterator[str]:
    """Judge the rows that an outsider sees in the end; ``folder`` is the scenario's."""
    sinks = list(storm.output) if about.sink is None else [about.sink]
    if not sinks or any(sink not in storm.output for sink in sinks):
        yield f"there is no sink {about.sink or 'at all'}, only {', '.join(storm.output) or 'none'}"
        return
    if calm is not None and (about.compare is not None or about.doubled_at_least is not None):
        yield from _against_calm(about, sinks, calm, storm)
    rows = [row for sink in sinks for row in storm.rows[sink]]
    if about.rows is not None:
        missing, surplus = _differences(about.rows, rows)
        if missing or surplus:
            yield f"output {_of(about.sink)} is not as said:{_told(missing, 'missing')}{_told(surplus, 'there too')}"
    if about.contains is not None and (missing := _differences(about.contains, rows)[0]):
        yield f"output {_of(about.sink)} lacks rows:{_told(missing, 'missing')}"
    if about.count is not None and len(rows) != about.count:
        yield f"output {_of(about.sink)} has {len(rows)} rows and not {about.count}"
    if about.invariant is not None and not rows:
        yield f"output {_of(about.sink)} has no rows, so invariant {about.invariant} is asked about nothing"
    elif about.invariant is not None:
        judged: Any = storm.rows[about.sink] if about.sink is not None else dict(storm.rows)
        yield from _invariant(about.invariant, folder, judged)


def _against_calm(about: AboutOutput, sinks: Sequence[str], calm: Run, storm: Run) -> Iterator[str]:
    if not any(calm.output.get(sink) for sink in sinks):
        yield f"output {_of(about.sink)}: the calm run wrote nothing, so there is nothing to compare with"
        return
    doubled = 0
    for sink in sinks:
        expected, there = calm.output.get(sink, Counter()), storm.output[sink]
        missing, surplus = expected - there, there - expected
        again = Counter({row: count for row, count in surplus.items() if row in expected})
        doubled += sum(again.values())
        wrong = surplus if about.compare == SAME else surplus - again
        if about.compare is not None and (missing or wrong):
            yield (
                f"output of {sink!r} is not {about.compare}:{_told(missing, 'missing', calm.rows.get(sink, ()))}"
                f"{_told(wrong, 'there too often or wrong', storm.rows[sink])}"
            )
    if about.doubled_at_least is not None and doubled < about.doubled_at_least:
        yield f"output {_of(about.sink)}: {doubled} rows are there once more, and not {about.doubled_at_least} at least"


def _invariant(name: str, folder: Path | None, judged: Any) -> Iterator[str]:
    invariant = function_of(name, folder, what="invariant")
    try:
        answer = invariant(judged)
    except AssertionError as error:
        yield f"invariant {name} does not hold: {str(error) or place_of(error, invariant)}"
    except Exception as error:  # it is the user's; the other expectations are judged all the same
        yield f"invariant {name} raised {type(error).__name__}: {error} ({place_of(error, invariant)})"
    else:
        if answer is not None:
            yield f"invariant {name} returned {answer!r:.80}; one that holds returns nothing, another raises"


def _of(sink: str | None) -> str:
    return "of every sink" if sink is None else f"of {sink!r}"


def _told(rows: Counter[bytes] | list[Any], what: str, among: Sequence[Any] = ()) -> str:
    """How many rows are what, and one of them; if they are counted, it is one ``among`` those that were counted."""
    if not rows:
        return ""
    if isinstance(rows, Counter):
        shown = next((row for row in among if canonical_row(row) in rows), None)
        return f" {rows.total()} rows are {what} ({_short(shown)} …)"
    return f" {len(rows)} rows are {what} ({_short(rows[0])} …)"


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"


def _differences(said: Sequence[Any], there: Sequence[Any]) -> tuple[list[Any], list[Any]]:
    """Return which of the rows that were said are missing, and which are there beside them."""
    left = Counter(_form(row) for row in there)
    missing = []
    for row in said:
        form = _form(row)
        if left[form] > 0:
            left[form] -= 1
        else:
            missing.append(row)
    surplus = []
    for row in there:
        form = _form(row)
        if left[form] > 0:
            left[form] -= 1
            surplus.append(row)
    return missing, surplus


def _form(value: Any) -> bytes:
    return canonical(_as_said(value))


def _as_said(value: Any) -> Any:
    """A value as TOML would say it."""
    match value:
        case Enum():
            return _as_said(value.value)
        case Mapping():
            return {key: _as_said(one) for key, one in value.items()}
        case list() | tuple() if not hasattr(value, "_fields"):
            return [_as_said(one) for one in value]
    if (names := _field_names(value)) is not None:
        said = {name: getattr(value, name) for name in names}
        return {name: _as_said(one) for name, one in said.items() if one is not None}
    return value


def _field_names(value: Any) -> tuple[str, ...] | None:
    """The fields of a record: a dataclass, a ``NamedTuple``, an attrs class or a msgspec struct."""
    if isinstance(value, type):
        return None
    if is_dataclass(value):
        return tuple(field.name for field in fields(value))
    if isinstance(value, tuple):
        return tuple(getattr(value, "_fields", ()))
    if (attributes := getattr(type(value), "__attrs_attrs__", None)) is not None:
        return tuple(attribute.name for attribute in attributes)
    names: tuple[str, ...] | None = getattr(type(value), "__struct_fields__", None)
    return names


# ── state ────────────────────────────────────────────────────────────────────────────────────


def about_state(about: AboutState, calm: Run | None, storm: Run) -> Iterator[str]:
    """Judge the keyed state that the job left behind."""
    if about.compare is not None:
        assert calm is not None
        expected, ended = _state_of(about.state, calm), _state_of(about.state, storm)
        if not expected:
            yield f"the calm run ended without {about.state or 'any state'}, so there is nothing to compare with"
        elif keys := sorted(key for key in {**expected, **ended} if expected.get(key) != ended.get(key)):
            names = ", ".join(dict.fromkeys(f"{operator}.{state}" for operator, state, _ in keys))
            operator, state, _ = keys[0]
            one = f"{operator}.{state} of {_value_in(calm, storm, keys[0])}"
            yield f"the final state {names} is not {about.compare}: {len(keys)} keys differ ({one} …)"
    if about.keys is not None:
        assert about.state is not None
        if about.state not in storm.values:
            yield f"there is no final state {about.state}, only {', '.join(storm.values) or 'none'}"
            return
        there_by_key = {_form(key): value for key, value in storm.values[about.state]}
        for key, value in about.keys:
            if (form := _form(key)) not in there_by_key:
                yield f"the final state {about.state} has no key {key!r}"
            elif _form(there_by_key[form]) != _form(value):
                there = _short(there_by_key[form])
                yield f"the final state {about.state} of {key!r} is {there} and not {_short(value)}"


def _value_in(calm: Run, storm: Run, at: tuple[str, str, bytes]) -> str:
    """A key, with its value in the storm and in the calm."""
    found = [_keyed(run).get(at) for run in (storm, calm)]
    key = next(_short(pair[0]) for pair in found if pair is not None)
    there, expected = ("absent" if pair is None else _short(pair[1]) for pair in found)
    return f"{key} is {there} and not {expected}"


def _keyed(run: Run) -> dict[tuple[str, str, bytes], tuple[Any, Any]]:
    """Keys and values as Python has them, by their encoded keys: both come in the order of these."""
    return dict(zip(sorted(run.state), (pair for name in _names(run) for pair in run.values[name]), strict=True))


def _names(run: Run) -> list[str]:
    return list(dict.fromkeys(f"{operator}.{state}" for operator, state, _ in sorted(run.state)))


def _state_of(name: str | None, run: Run) -> dict[tuple[str, str, bytes], bytes]:
    return {key: value for key, value in run.state.items() if name is None or f"{key[0]}.{key[1]}" == name}
