"""How are entries of the journal named in a scenario, with the fields they must have?

Only entries that there are, and of each only fields that a seed decides: what is measured (a duration, the text of a
foreign exception) differs from machine to machine, and a trigger that waits for it would not replay.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import Any

from actorflow.errors import AbortReason
from actorflow.model import journal
from actorflow.simulation.scenario import Mention
from actorflow.simulation.scenario_kinds import NAME, OPEN, TEXT, Kind, a_list_of, nearest, type_of

__all__ = ("ENTRY", "FIELDS_OF", "MENTION", "read_where", "write_where")

FIELDS_OF: dict[str, dict[str, str]] = {
    name: {f.name: str(f.type) for f in fields(kind) if not f.metadata.get("volatile")}
    for name in journal.__all__
    if isinstance(kind := getattr(journal, name), type) and issubclass(kind, journal.Entry) and name != "Entry"
}
"""Every entry of the journal, with the fields that a seed decides and their types."""

_TYPES = {"str": str, "int": int, "int | None": int, "bool": bool}
_NONE = "none"
"""How a field that is empty is said in a file."""


def _entry(value: Any) -> str:
    if TEXT.read(value) not in FIELDS_OF:
        raise ValueError(f"is not an entry of the journal; {nearest(value, FIELDS_OF)}")
    return str(value)


def read_where(entry: str, where: Mapping[str, Any]) -> tuple[dict[str, Any], list[str]]:
    """Read fields of an entry and the values they must have; what is wrong comes back as sentences."""
    known = FIELDS_OF[entry]
    found: dict[str, Any] = {}
    wrong: list[str] = []
    for name, value in where.items():
        if name not in known:
            wrong.append(_unknown_field(entry, name))
        elif known[name] == "int | None" and value == _NONE:
            found[name] = None
        elif not isinstance(value, kind := _TYPES[known[name]]) or isinstance(value, bool) is not (kind is bool):
            wrong.append(f"{name} of {entry} must be {type_of(kind())}, not {type_of(value)}")
        elif name == "reason" and value not in AbortReason.__members__:
            wrong.append(f"{name} = {value!r} of {entry} is none; {nearest(str(value), AbortReason.__members__)}")
        else:
            found[name] = value
    return found, wrong


def _unknown_field(entry: str, name: str) -> str:
    if name in {f.name for f in fields(getattr(journal, entry))}:
        return f"{name!r} of {entry} is measured, and no seed decides it"
    return f"{entry} has no field {name!r}; {nearest(name, FIELDS_OF[entry])}"


def write_where(where: Mapping[str, Any]) -> dict[str, Any]:
    """Return fields and their values as they stand in a file."""
    return {name: _NONE if value is None else value for name, value in where.items()}


def _mention(value: Any) -> Mention:
    if isinstance(value, str):
        return Mention(entry=_entry(value))
    table = OPEN.read(value)
    if "journal" not in table:
        raise ValueError('must be the name of an entry, or a table such as { journal = "SinkCommitted" }')
    entry = _entry(table.pop("journal"))
    same = a_list_of(NAME).read(table.pop("same")) if "same" in table else ()
    where, wrong = read_where(entry, table)
    wrong += [_unknown_field(entry, name) for name in same if name not in FIELDS_OF[entry]]
    if wrong:
        raise ValueError(f"is wrong: {'; '.join(wrong)}")
    return Mention(entry=entry, where=where, same=same)


def _mention_back(mention: Mention) -> Any:
    if not mention.where and not mention.same:
        return mention.entry
    same = {"same": list(mention.same)} if mention.same else {}
    return {"journal": mention.entry, **write_where(mention.where), **same}


ENTRY = Kind(_entry)
MENTION = Kind(_mention, _mention_back)
