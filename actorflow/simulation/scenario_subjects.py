"""What can be expected, how is it said in a scenario, and how is it written back?

Every ``[[expect]]`` has one subject, whose word comes first: output, state, a checkpoint, the journal, storage, the
retained checkpoints, or how the job ended.  Each must claim something: an expectation that says nothing is refused.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from fnmatch import fnmatchcase
from typing import Any

from actorflow.simulation.scenario import (
    AboutCheckpoint,
    AboutJournal,
    AboutOutput,
    AboutRegistry,
    AboutState,
    AboutStatus,
    AboutStorage,
    Expectation,
)
from actorflow.simulation.scenario_entries import FIELDS_OF, read_where, write_where
from actorflow.simulation.scenario_tables import Table, write_words
from actorflow.simulation.scenario_words import EVERY_SINK, SAME, SUBJECTS

__all__ = ("read_expectation", "write_expectation")

_MAKES: dict[str, type[Expectation]] = {
    "output": AboutOutput,
    "sink": AboutOutput,
    "state": AboutState,
    "checkpoint": AboutCheckpoint,
    "journal": AboutJournal,
    "storage": AboutStorage,
    "disk": AboutStorage,
    "retained": AboutRegistry,
    "status": AboutStatus,
    "lives": AboutStatus,
    "attempts": AboutStatus,
    "message_contains": AboutStatus,
}
"""Which subject a word makes."""


# ── reading ──────────────────────────────────────────────────────────────────────────────────


def read_expectation(table: Table) -> Expectation | None:
    """Read an ``[[expect]]``; ``None`` when something is wrong, which is noted."""
    words = [word for word in table.said if word in _MAKES]
    subjects = list(dict.fromkeys(_MAKES[word] for word in words))
    if len(subjects) != 1:
        if subjects:
            table.tell(f"has {len(subjects)} subjects, {', '.join(words)}: each needs a table of its own")
        else:
            known = [word.name for about in SUBJECTS.values() for word in about]
            table.unknown([word for word in table.said if word not in known], known)
            table.lacks(f"has no subject: one of {', '.join(_MAKES)}", *_MAKES)
        table.close()
        return None
    (subject,) = subjects
    found = table.read(SUBJECTS[subject])
    if table.is_sound and (judge := _JUDGES.get(subject)) is not None:
        judge(table, found)
    return subject(**found) if table.close() else None


def _judge_output(table: Table, found: dict[str, Any]) -> None:
    if found.get("compare") == EVERY_SINK:
        del found["compare"]
        if "sink" in found:
            table.tell("says every sink, and names one")
    if not found.keys() - {"sink"}:
        table.tell(
            f"says nothing about the output: rows, contains, count, doubled_at_least, invariant, or output = {SAME!r}"
        )


def _judge_state(table: Table, found: dict[str, Any]) -> None:
    if found["state" if "state" in found else "compare"] == SAME:
        found.pop("state", None)
        found["compare"] = SAME
    if "state" not in found and "keys" in found:
        table.tell("names keys and not whose: say state = 'operator.state'")
    elif "compare" not in found and "keys" not in found:
        table.tell(f"says nothing about the state: keys = {{ … }}, or compare = {SAME!r}")


def _judge_checkpoint(table: Table, found: dict[str, Any]) -> None:
    completed = [name for name in found if name not in {"checkpoint", "aborted", "declined_by"}]
    if ("aborted" in found or "declined_by" in found) and (completed or found["checkpoint"] is None):
        table.tell("says that a checkpoint is aborted or declined, and something that only completed ones have")
    _judge_range(table, found, "bytes_at_least", "bytes_at_most")
    _judge_range(table, found, "takes_at_least_ms", "completes_within_ms")


def _judge_journal(table: Table, found: dict[str, Any]) -> None:
    entry = found["entry"]
    found["where"], wrong = read_where(entry, found.get("where", {}))
    for sentence in wrong:
        table.tell(f"where: {sentence}")
    for side in ("before", "after"):
        for name in found[side].same if side in found else ():
            if name not in FIELDS_OF[entry]:
                table.tell(f"{side}: {entry} has no field {name!r} that could be the same")
    if found.get("at_most") == 0 and ("before" in found or "after" in found):
        table.tell("must not be there at all, and is to come before or after something")
    _judge_range(table, found, "at_least", "at_most")


def _judge_storage(table: Table, found: dict[str, Any]) -> None:
    if "disk" in found:
        if "pattern" in found:
            table.tell("is about storage and about the disk: each needs a table of its own")
        if "after_checkpoint" in found:
            table.tell("looks at the disk after a checkpoint: what is on it is known in the end only")
        found["pattern"], found["on_disk"] = found.pop("disk"), True
    if "names" in found and ("at_least" in found or "at_most" in found):
        table.tell("says all names, and how many there are")
    for name in found.get("names", ()):
        if not fnmatchcase(name, found["pattern"]):
            table.tell(f"names {name!r}, which {found['pattern']!r} does not match")
    _judge_range(table, found, "at_least", "at_most")


def _judge_status(table: Table, found: dict[str, Any]) -> None:
    if found.get("message_contains") == "":
        table.tell("message_contains is empty, and every message contains that")


def _judge_range(table: Table, found: Mapping[str, Any], low: str, high: str) -> None:
    if low in found and high in found and found[low] > found[high]:
        table.tell(f"{low.removesuffix('_ms')} is more than {high.removesuffix('_ms')}")


_JUDGES: dict[type[Expectation], Callable[[Table, dict[str, Any]], None]] = {
    AboutOutput: _judge_output,
    AboutState: _judge_state,
    AboutCheckpoint: _judge_checkpoint,
    AboutJournal: _judge_journal,
    AboutStorage: _judge_storage,
    AboutStatus: _judge_status,
}


# ── writing ──────────────────────────────────────────────────────────────────────────────────


def write_expectation(about: Expectation) -> dict[str, Any]:
    """Return what an ``[[expect]]`` says."""
    said = write_words(about, SUBJECTS[type(about)])
    match about:
        case AboutOutput(sink=None, compare=None):
            return {"output": EVERY_SINK} | said
        case AboutState(state=None):
            return {"state": SAME}
        case AboutJournal(where=where) if where:
            said["where"] = write_where(where)
        case AboutStorage(on_disk=True):
            return {"disk": said.pop("storage")} | said
    return said
