"""When does something happen in a scenario, and on which operation?  ``at``, ``after`` and ``on``.

    at = "12s"
    after = { journal = "CheckpointAcknowledged", checkpoint = 3, occurrence = 2, later = "5ms" }
    on = { object = "put_if_absent", name = "*chk-*/_metadata", moment = "torn" }

A seam is named by what is done to it: an ``object``, the ``disk``, the ``broker``, the ``database``.
"""

from __future__ import annotations

from collections.abc import Mapping
from fnmatch import fnmatchcase
from typing import Any

from actorflow.simulation.scenario_entries import FIELDS_OF, read_where, write_where
from actorflow.simulation.scenario_kinds import COUNT, DURATION, NAME, TEXT, Kind, a_member_of, nearest
from actorflow.simulation.scenario_tables import WRONG, Table, Word, Words, short, write_words
from actorflow.simulation.weather import After, At, Moment, OnBroker, OnDatabase, OnDisk, OnObject, Trigger

__all__ = ("OPERATIONS", "TRIGGERS", "operation_words", "read_trigger", "write_trigger")

TRIGGERS = ("at", "after", "on")

OPERATIONS: dict[str, tuple[str, ...]] = {
    "object": ("put", "put_if_absent", "get", "list", "delete", "sweep"),
    "disk": (
        *("create", "write", "sync", "rename", "link", "remove", "make_folder", "remove_folder", "sync_folder"),
        *("open", "read", "size", "list_folder", "list_tree"),
    ),
    "broker": (
        *("init", "commit", "abort", "append", "read", "offsets"),
        *("create", "partitions", "transactions"),
    ),
    "database": (
        *("get", "insert", "upsert", "delete", "create", "rows", "begin", "commit", "rollback"),
        *("prepare", "commit_prepared", "rollback_prepared", "prepared", "most_prepared"),
    ),
}
"""What is done to each seam, by the word that names it."""

_ON: dict[str, type[OnObject]] = {"object": OnObject, "disk": OnDisk, "broker": OnBroker, "database": OnDatabase}
_TORN: dict[str, tuple[str, ...]] = {"object": ("put", "put_if_absent"), "disk": ("write",)}
"""What can be torn."""

_OCCURRENCE = Word("occurrence", "occurrence", COUNT)
_PROCESS = Word("process", "process", NAME)
_AFTER = (_OCCURRENCE, Word("later", "later_ms", DURATION), _PROCESS)
_MOMENT = Word("moment", "moment", a_member_of(Moment))


def operation_words(seam: str) -> Words:
    """Return the words of a table that names operations on a seam: which, on what, and whose."""

    def read(value: Any) -> str:
        pattern = str(TEXT.read(value))
        if not any(fnmatchcase(operation, pattern) for operation in OPERATIONS[seam]):
            raise ValueError(f"is nothing that is done here; {nearest(pattern, OPERATIONS[seam])}")
        return pattern

    name = "path" if seam == "disk" else "name"
    return (Word(seam, "operation", Kind(read), required=True), Word(name, "pattern", TEXT), _PROCESS)


def read_trigger(table: Table, allowed: tuple[str, ...] = TRIGGERS) -> Trigger | None:
    """Take the trigger out of a table; ``None`` when something is wrong, which is noted."""
    said = {word: table.said.pop(word) for word in TRIGGERS if word in table.said}
    if len(said) > 1:
        table.tell(f"has {len(said)} triggers, {' and '.join(said)}: one is enough")
    if not said:
        table.lacks(f"has no trigger: one of {', '.join(allowed)}", *TRIGGERS)
    found = [_read_one(table, word, value, allowed) for word, value in said.items()]
    return found[0] if len(found) == 1 else None


def _read_one(table: Table, word: str, value: Any, allowed: tuple[str, ...]) -> Trigger | None:
    if word not in allowed:
        table.tell(f"{word} is no trigger here: only {' and '.join(allowed)}")
        return None
    if word == "at":
        ms = table.read_one(word, DURATION, value)
        return None if ms is WRONG else At(ms)
    if not isinstance(value, Mapping):
        such_as = '{ journal = "SnapshotTaken" }' if word == "after" else '{ object = "put", name = "*" }'
        table.tell(f"{word} = {short(value)} must be a table such as {such_as}")
        return None
    return _read_after(table, value) if word == "after" else _read_on(table, value)


def _read_after(table: Table, said: Mapping[str, Any]) -> After | None:
    entry = said.get("journal")
    if entry not in FIELDS_OF:
        shown = nearest(entry, FIELDS_OF) if isinstance(entry, str) else 'say journal = "SnapshotTaken", for one'
        table.tell(f"after: journal = {short(entry)} is not an entry of the journal; {shown}")
        return None
    own = [word.name for word in _AFTER]
    found = table.read_within("after", {name: value for name, value in said.items() if name in own}, _AFTER)
    fields = {name: value for name, value in said.items() if name not in {*own, "journal"}}
    where, wrong = read_where(entry, fields)
    for sentence in wrong:
        table.tell(f"after: {sentence}")
    return After(entry, where=where, **found)


def _read_on(table: Table, said: Mapping[str, Any]) -> OnObject | None:
    seams = [seam for seam in OPERATIONS if seam in said]
    if len(seams) != 1:
        table.tell(f"on: needs one of {', '.join(OPERATIONS)}, and the operation on it")
        return None
    (seam,) = seams
    found = table.read_within("on", said, (*operation_words(seam), _MOMENT, _OCCURRENCE))
    if not table.is_sound:
        return None
    torn = _TORN.get(seam, ())
    if found.get("moment") is Moment.TORN and not any(fnmatchcase(name, found["operation"]) for name in torn):
        table.tell(f"on: moment = 'torn' is not for {found['operation']!r} on the {seam}")
        return None
    return _ON[seam](**found)


def write_trigger(trigger: Trigger) -> tuple[str, Any]:
    """Return a trigger's word, and what stands behind it."""
    match trigger:
        case At(ms=ms):
            return "at", DURATION.write(ms)
        case After(entry=entry, where=where):
            return "after", {"journal": entry, **write_where(where), **write_words(trigger, _AFTER)}
        case _:
            seam = next(seam for seam, kind in _ON.items() if type(trigger) is kind)
            return "on", write_words(trigger, (*operation_words(seam), _MOMENT, _OCCURRENCE))
