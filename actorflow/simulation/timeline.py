"""How is the journal of a run read by a person?

As a timeline in fixed columns, one line for each entry: when, in which process, who, what, and the rest.  The columns
are where they are whatever stands in them, so that two timelines can be laid side by side; what is too long for its
column ends in ``…``, and nothing wraps.

         ms  process   who                 what                     details
         21  job       count/1             BarrierArrived           checkpoint=1 channel=lines/0>count/1

Text only, without colours: what a terminal shows is what a pipe gets.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import fields
from typing import Any

from actorflow.model.journal import Entry, Line

__all__ = ("HEADING", "WIDTH", "details_of", "timeline", "timeline_line", "who_of")

WIDTH = 160
"""How long a line is at most, unless whoever prints it has less room."""

_TIME, _PROCESS, _WHO, _WHAT = 9, 9, 19, 24
_BEFORE_DETAILS = _TIME + 2 + _PROCESS + 1 + _WHO + 1 + _WHAT + 1
_LEAST_DETAILS = 20

_NAMES_WHO = ("actor", "operator", "target", "job")
"""Fields that say whom an entry is about; the first one that an entry has is told in a column of its own."""


def timeline(lines: Iterable[Line], width: int = WIDTH) -> Iterator[str]:
    """Return the heading and a line of text for each entry."""
    yield HEADING
    for line in lines:
        yield timeline_line(line, width)


def timeline_line(line: Line, width: int = WIDTH) -> str:
    """Return one entry as a line of at most ``width`` characters, or a few more where that is absurdly narrow."""
    room = max(width - _BEFORE_DETAILS, _LEAST_DETAILS)
    return _columns(f"{line.at_ms:,}", line.process or "-", who_of(line.entry), line.name, details_of(line.entry), room)


def who_of(entry: Entry) -> str:
    """Return whom an entry is about: an actor, an operator, the target of the weather or a job; empty for none."""
    for name in _NAMES_WHO:
        if name in type(entry).__dataclass_fields__:
            who = str(getattr(entry, name))
            subtask = getattr(entry, "subtask", None)
            return who if subtask is None or name != "operator" else f"{who}/{subtask}"
    return ""


def details_of(entry: Entry) -> str:
    """Return everything else that an entry says; numbers and texts of nothing are left out if they are volatile."""
    told = next((name for name in _NAMES_WHO if name in type(entry).__dataclass_fields__), "")
    skipped = {told, "subtask"} if told == "operator" else {told}
    return " ".join(
        f"{field.name}={_plain(getattr(entry, field.name))}"
        for field in fields(entry)
        if field.name not in skipped and (getattr(entry, field.name) or not field.metadata.get("volatile"))
    )


def _plain(value: Any) -> str:
    """A value on one line, whatever stands in it."""
    text = "-" if value is None or value == "" else str(value)
    return text if text.isprintable() else "".join(char if char.isprintable() else "·" for char in text)


def _columns(at: str, process: str, who: str, what: str, details: str, room: int) -> str:
    return (
        f"{_cut(at, _TIME):>{_TIME}}  {_cut(process, _PROCESS):<{_PROCESS}} {_cut(who, _WHO):<{_WHO}} "
        f"{_cut(what, _WHAT):<{_WHAT}} {_cut(details, room)}"
    ).rstrip()


def _cut(text: str, room: int) -> str:
    return text if len(text) <= room else text[: room - 1] + "…"


HEADING = _columns("ms", "process", "who", "what", "details", _LEAST_DETAILS)
"""The first line of a timeline: the names of its columns."""
