"""What can be expected, how is it said in a scenario, and how is it written back?

Every ``[[expect]]`` has one subject, whose word comes first: output, state, a checkpoint, the journal, storage, the
retained checkpoints, or how the job ended.  Each must claim something: an expectation that says nothing is refused.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from fnmatch import fnmatchcase
from typing import Any

from actorflow.errors import AbortReason
from actorflow.model.elements import Alignment, CheckpointKind
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
from actorflow.simulation.scenario_entries import ENTRY, FIELDS_OF, MENTION, read_where, write_where
from actorflow.simulation.scenario_kinds import (
    COUNT,
    DURATION,
    FUNCTION,
    NAME,
    OPEN,
    SIZE,
    SOME_DURATION,
    TEXT,
    VALUES,
    WHOLE,
    Kind,
    a_list_of,
    one_of,
)
from actorflow.simulation.scenario_tables import Table, Word, write_words

__all__ = ("SAME", "SUBJECTS", "read_expectation", "write_expectation")

SAME, AT_LEAST, EVERY_SINK = "same as the calm run", "at least the calm run", "every sink"
EVERY = "every"


def _checkpoint(value: Any) -> int | None:
    if value == EVERY:
        return None
    if isinstance(value, str):
        raise ValueError(f"must be the number of a checkpoint, or {EVERY!r}")
    return int(COUNT.read(value))


def _keys(value: Any) -> tuple[tuple[Any, Any], ...]:
    if isinstance(value, Mapping):
        pairs = tuple(value.items())
    else:
        said = VALUES.read(value)
        if any(not isinstance(pair, list) or len(pair) != 2 for pair in said):
            raise ValueError("must be a table of keys, or a list of [key, value]")
        pairs = tuple((key, one) for key, one in said)
    if not pairs:
        raise ValueError("must not be empty")
    return pairs


def _keys_back(pairs: tuple[tuple[Any, Any], ...]) -> Any:
    names = [key for key, _ in pairs]
    if all(isinstance(name, str) for name in names) and len(dict.fromkeys(names)) == len(names):
        return dict(pairs)
    return [list(pair) for pair in pairs]


def _some_values(value: Any) -> tuple[Any, ...]:
    if not (values := VALUES.read(value)):
        raise ValueError("must not be empty")
    return tuple(values)


_HOW_OFTEN = (Word("at_least", "at_least", COUNT), Word("at_most", "at_most", WHOLE))
SUBJECTS: dict[type[Expectation], tuple[Word, ...]] = {
    AboutOutput: (
        Word("output", "compare", one_of((SAME, AT_LEAST, EVERY_SINK))),
        Word("sink", "sink", NAME),
        Word("rows", "rows", VALUES),
        Word("contains", "contains", Kind(_some_values, list)),
        Word("count", "count", WHOLE),
        Word("doubled_at_least", "doubled_at_least", COUNT),
        Word("invariant", "invariant", FUNCTION),
    ),
    AboutState: (
        Word("state", "state", NAME),
        Word("compare", "compare", one_of((SAME,))),
        Word("keys", "keys", Kind(_keys, _keys_back)),
    ),
    AboutCheckpoint: (
        Word(
            "checkpoint",
            "checkpoint",
            Kind(_checkpoint, lambda number: EVERY if number is None else number),
            required=True,
        ),
        Word("kind", "kind", one_of((*(kind.value for kind in CheckpointKind), *(way.value for way in Alignment)))),
        Word("completes_within", "completes_within_ms", DURATION),
        Word("takes_at_least", "takes_at_least_ms", SOME_DURATION),
        Word("bytes_at_least", "bytes_at_least", SIZE),
        Word("bytes_at_most", "bytes_at_most", SIZE),
        Word("actors", "actors", a_list_of(NAME)),
        Word("aborted", "aborted", one_of(AbortReason.__members__)),
        Word("declined_by", "declined_by", NAME),
    ),
    AboutJournal: (
        Word("journal", "entry", ENTRY),
        Word("where", "where", OPEN),
        *_HOW_OFTEN,
        Word("before", "before", MENTION),
        Word("after", "after", MENTION),
    ),
    AboutStorage: (
        Word("storage", "pattern", NAME),
        Word("disk", "disk", NAME),
        Word("after_checkpoint", "after_checkpoint", COUNT),
        Word("names", "names", a_list_of(NAME, empty=True)),
        *_HOW_OFTEN,
    ),
    AboutRegistry: (
        Word("retained", "retained", a_list_of(COUNT, empty=True)),
        Word("after_checkpoint", "after_checkpoint", COUNT),
    ),
    AboutStatus: (
        Word("status", "status", one_of(("FINISHED", "STOPPED", "CANCELED", "FAILED", "FENCED"))),
        Word("lives", "lives", COUNT),
        Word("attempts", "attempts", COUNT),
        Word("message_contains", "message_contains", TEXT),
    ),
}
"""The words of each subject."""

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
