"""Which words does a table of a scenario know, and what may stand behind each of them?

A :class:`Kind` reads what a TOML file says and writes it back; a :class:`Word` puts a kind and a field of
``scenario.py`` under a name.  Reading and writing go by the same tables, so that they can't disagree.  Triggers and
weather have a vocabulary of their own, ``scenario_weather.py``.

A kind refuses with ``ValueError`` and half a sentence that fits behind a name; ``scenario_reading.py`` says where.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, fields
from datetime import timedelta
from pathlib import PurePosixPath
from typing import Any, get_args

from actorflow.config import duration_text, milliseconds, parse_duration, parse_size
from actorflow.errors import AbortReason
from actorflow.model import journal
from actorflow.simulation.scenario import Act, Mention, TimedRecord

__all__ = (
    "CALM",
    "COUNT",
    "DURATION",
    "EXPECT",
    "FIELDS_OF",
    "INPUT",
    "NAME",
    "OPEN",
    "OUTPUT",
    "SAME",
    "SCHEDULE",
    "SEEDS",
    "STEP",
    "SUBJECT_OF",
    "TEXT",
    "TOP",
    "Kind",
    "Word",
    "entry_fields",
    "nearest",
    "one_of",
    "read_where",
    "write_where",
)

SAME, AT_LEAST, EVERY_SINK = "same as the calm run", "at least the calm run", "every sink"
EVERY = "every"


def _as_it_is(value: Any) -> Any:
    return value


@dataclass(frozen=True, slots=True)
class Kind:
    """How a value is read from a file, and how it is written into one."""

    read: Callable[[Any], Any]
    write: Callable[[Any], Any] = _as_it_is


@dataclass(frozen=True, slots=True)
class Word:
    """A name in a table, the field that it fills, and what may stand behind it."""

    name: str
    field: str
    kind: Kind
    required: bool = False


def nearest(word: str, known: Iterable[str]) -> str:
    """Return how to go on after an unknown word: with the known one that is most like it."""
    found = difflib.get_close_matches(word, list(known), n=1, cutoff=0.0)
    return f"the nearest is {found[0]!r}" if found else "nothing is known here"


# ── plain values ─────────────────────────────────────────────────────────────────────────────


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise ValueError(f"must be text, not {_type_of(value)}")
    if not value.strip():
        raise ValueError("must not be empty")
    return value


def _line(value: Any) -> str:
    if len(_text(value).splitlines()) != 1 or value != value.strip():
        raise ValueError("must be one line, without blanks around it")
    return str(value)


def _story(value: Any) -> str:
    if not isinstance(value, str):
        raise ValueError(f"must be text, not {_type_of(value)}")
    return value


def _whole(least: int) -> Callable[[Any], int]:
    def read(value: Any) -> int:
        if isinstance(value, bool) or not isinstance(value, int):
            raise ValueError(f"must be a whole number, not {_type_of(value)}")
        if value < least:
            raise ValueError(f"must be at least {least}")
        return value

    return read


def _rate(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ValueError(f"must be a number, not {_type_of(value)}")
    if not 0 < value <= 1e9:
        raise ValueError("must be more than 0 and at most 1_000_000_000")
    return value


def _switch(value: Any) -> bool:
    if not isinstance(value, bool):
        raise ValueError(f"must be true or false, not {_type_of(value)}")
    return value


def _duration(value: Any) -> int:
    return milliseconds(parse_duration(value))


def _duration_back(ms: int) -> str:
    return duration_text(timedelta(milliseconds=ms))


def _some_duration(value: Any) -> int:
    if not (ms := _duration(value)):
        raise ValueError("must be more than nothing")
    return ms


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


def _list(value: Any) -> tuple[Any, ...]:
    if not isinstance(value, list | tuple):
        raise ValueError(f"must be a list, not {_type_of(value)}")
    return tuple(value)


def _list_of(kind: Kind, *, empty: bool = False) -> Kind:
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


def one_of(choices: Iterable[str]) -> Kind:
    """Return the kind that is one of these texts."""
    known = tuple(choices)

    def read(value: Any) -> str:
        if value not in known:
            shown = nearest(value, known) if isinstance(value, str) else f"not {_type_of(value)}"
            raise ValueError(f"must be one of {', '.join(map(repr, known))}; {shown}")
        return str(value)

    return Kind(read, str)


def _table(value: Any) -> dict[str, Any]:
    if not isinstance(value, Mapping):
        raise ValueError(f"must be a table, not {_type_of(value)}")
    return dict(value)


def _type_of(value: Any) -> str:
    names = ((bool, "true or false"), (int, "a number"), (float, "a number"), (str, "text"), (Mapping, "a table"))
    return next((name for kind, name in names if isinstance(value, kind)), f"a {type(value).__name__}")


TEXT, NAME = Kind(_text), Kind(_line)
WHOLE, COUNT = Kind(_whole(0)), Kind(_whole(1))
NUMBER = Kind(_rate)
SWITCH = Kind(_switch)
DURATION = Kind(_duration, _duration_back)
SOME_DURATION = Kind(_some_duration, _duration_back)
SIZE = Kind(parse_size)
FUNCTION = Kind(_function)
BESIDE = Kind(_beside)
OPEN = Kind(_table, dict)
VALUES = Kind(_list, list)


# ── what a scenario has of its own ───────────────────────────────────────────────────────────


def _records(value: Any) -> int | tuple[TimedRecord, ...]:
    if isinstance(value, int) and not isinstance(value, bool):
        return _whole(1)(value)
    if not isinstance(value, list):
        raise ValueError(f"must be how many, or a list of records, not {_type_of(value)}")
    return tuple(_record(item, number) for number, item in enumerate(value, 1))


def _record(item: Any, number: int) -> TimedRecord:
    """Read a record: a table that says ``value``, and nothing else but ``at``, is about the record, not the record."""
    if not isinstance(item, Mapping) or "value" not in item or not item.keys() <= {"at", "value"}:
        return TimedRecord(value=item)
    if "at" not in item:
        return TimedRecord(value=item["value"])
    try:
        return TimedRecord(value=item["value"], at_ms=_duration(item["at"]))
    except ValueError as error:
        raise ValueError(f"has something wrong at place {number}: at = {item['at']!r} {error}") from None


def _records_back(records: int | tuple[TimedRecord, ...]) -> int | list[Any]:
    return records if isinstance(records, int) else [_record_back(record) for record in records]


def _record_back(record: TimedRecord) -> Any:
    if record.at_ms is not None:
        return {"at": _duration_back(record.at_ms), "value": record.value}
    looks_placed = isinstance(record.value, Mapping) and "value" in record.value
    return {"value": record.value} if looks_placed else record.value


def _keys(value: Any) -> tuple[tuple[Any, Any], ...]:
    if isinstance(value, Mapping):
        pairs = tuple(value.items())
    else:
        pairs = tuple(tuple(pair) for pair in _list(value) if isinstance(pair, list | tuple) and len(pair) == 2)
        if len(pairs) != len(value):
            raise ValueError("must be a table of keys, or a list of [key, value]")
    if not pairs:
        raise ValueError("must not be empty")
    return pairs


def _keys_back(pairs: tuple[tuple[Any, Any], ...]) -> Any:
    names = [key for key, _ in pairs]
    if all(isinstance(name, str) for name in names) and len(dict.fromkeys(names)) == len(names):
        return dict(pairs)
    return [list(pair) for pair in pairs]


def _checkpoint(value: Any) -> int | None:
    if value == EVERY:
        return None
    if isinstance(value, str):
        raise ValueError(f"must be the number of a checkpoint, or {EVERY!r}")
    return _whole(1)(value)


def entry_fields(entry: str) -> dict[str, str]:
    """Return the fields of a journal's entry that a seed decides, each with its type; ``KeyError`` for no entry."""
    return FIELDS_OF[entry]


FIELDS_OF: dict[str, dict[str, str]] = {
    name: {f.name: str(f.type) for f in fields(kind) if not f.metadata.get("volatile")}
    for name in journal.__all__
    if isinstance(kind := getattr(journal, name), type) and issubclass(kind, journal.Entry) and name != "Entry"
}
"""Every entry of the journal, with the fields that belong to a digest."""

_TYPES = {"str": str, "int": int, "int | None": int, "bool": bool}
NONE = "none"
"""How a field that is empty is said in a file."""


def _entry(value: Any) -> str:
    if _text(value) not in FIELDS_OF:
        raise ValueError(f"is not an entry of the journal; {nearest(value, FIELDS_OF)}")
    return str(value)


def read_where(entry: str, where: Mapping[str, Any]) -> tuple[dict[str, Any], list[str]]:
    """Read fields of an entry and the values they must have; what is wrong comes back as sentences."""
    known = FIELDS_OF[entry]
    found: dict[str, Any] = {}
    wrong: list[str] = []
    for name, value in where.items():
        if name not in known:
            if name in {f.name for f in fields(getattr(journal, entry))}:
                wrong.append(f"{name!r} of {entry} is measured and not decided by a seed")
            else:
                wrong.append(f"{entry} has no field {name!r}; {nearest(name, known)}")
        elif known[name] == "int | None" and value == NONE:
            found[name] = None
        elif not isinstance(value, kind := _TYPES[known[name]]) or isinstance(value, bool) is not (kind is bool):
            wrong.append(f"{name!r} of {entry} must be {known[name]}, not {_type_of(value)}")
        elif name == "reason" and value not in AbortReason.__members__:
            wrong.append(f"{name} = {value!r} of {entry} is no reason; {nearest(str(value), AbortReason.__members__)}")
        else:
            found[name] = value
    return found, wrong


def write_where(where: Mapping[str, Any]) -> dict[str, Any]:
    """Return fields and their values as they stand in a file."""
    return {name: NONE if value is None else value for name, value in where.items()}


def _mention(value: Any) -> Mention:
    if isinstance(value, str):
        return Mention(entry=_entry(value))
    table = _table(value)
    if "journal" not in table:
        raise ValueError('must be the name of an entry, or a table such as { journal = "SinkCommitted" }')
    entry = _entry(table.pop("journal"))
    same = _list_of(NAME).read(table.pop("same")) if "same" in table else ()
    where, wrong = read_where(entry, table)
    wrong += [
        f"{entry} has no field {name!r}; {nearest(name, FIELDS_OF[entry])}"
        for name in same
        if name not in FIELDS_OF[entry]
    ]
    if wrong:
        raise ValueError(f"is wrong: {'; '.join(wrong)}")
    return Mention(entry=entry, where=where, same=same)


def _mention_back(mention: Mention) -> Any:
    if not mention.where and not mention.same:
        return mention.entry
    same = {"same": list(mention.same)} if mention.same else {}
    return {"journal": mention.entry, **write_where(mention.where), **same}


RECORDS = Kind(_records, _records_back)
KEYS = Kind(_keys, _keys_back)
CHECKPOINT = Kind(_checkpoint, lambda number: EVERY if number is None else number)
ENTRY = Kind(_entry)
MENTION = Kind(_mention, _mention_back)
REASON = one_of(AbortReason.__members__)

# ── the tables ───────────────────────────────────────────────────────────────────────────────

TOP = (
    Word("title", "title", NAME, required=True),
    Word("story", "story", Kind(_story)),
    Word("job", "job", FUNCTION, required=True),
    Word("arguments", "arguments", OPEN),
    Word("lives", "lives", _list_of(COUNT)),
)
SEEDS = (Word("first", "first", WHOLE), Word("count", "count", COUNT))
CALM = (Word("within", "calm_within_ms", SOME_DURATION, required=True),)
SCHEDULE = (Word("shuffle_rounds", "shuffle_rounds", WHOLE), Word("batch_us", "batch_us", WHOLE))
INPUT = (
    Word("source", "source", NAME, required=True),
    Word("make", "make", FUNCTION),
    Word("records", "records", RECORDS),
    Word("lines", "lines", BESIDE),
    Word("per_second", "per_second", NUMBER),
    Word("splits", "splits", COUNT),
    Word("broker", "broker", SWITCH),
)
OUTPUT = (
    Word("sink", "sink", NAME, required=True),
    Word("stand_in", "stand_in", one_of(("ledger", "broker", "database", "files")), required=True),
)
STEP = (Word("do", "act", one_of(get_args(Act)), required=True), Word("parallelism", "parallelism", COUNT))

_HOW_OFTEN = (Word("at_least", "at_least", COUNT), Word("at_most", "at_most", WHOLE))
EXPECT: dict[str, tuple[Word, ...]] = {
    "output": (
        Word("output", "compare", one_of((SAME, AT_LEAST, EVERY_SINK))),
        Word("sink", "sink", NAME),
        Word("rows", "rows", VALUES),
        Word("contains", "contains", VALUES),
        Word("count", "count", WHOLE),
        Word("doubled_at_least", "doubled_at_least", COUNT),
        Word("invariant", "invariant", FUNCTION),
    ),
    "state": (
        Word("state", "state", NAME),
        Word("compare", "compare", one_of((SAME,))),
        Word("keys", "keys", KEYS),
    ),
    "checkpoint": (
        Word("checkpoint", "checkpoint", CHECKPOINT),
        Word("kind", "kind", NAME),
        Word("completes_within", "completes_within_ms", DURATION),
        Word("takes_at_least", "takes_at_least_ms", SOME_DURATION),
        Word("bytes_at_least", "bytes_at_least", SIZE),
        Word("bytes_at_most", "bytes_at_most", SIZE),
        Word("actors", "actors", _list_of(NAME)),
        Word("aborted", "aborted", REASON),
        Word("declined_by", "declined_by", NAME),
    ),
    "journal": (
        Word("journal", "entry", ENTRY),
        Word("where", "where", OPEN),
        *_HOW_OFTEN,
        Word("before", "before", MENTION),
        Word("after", "after", MENTION),
    ),
    "storage": (
        Word("storage", "pattern", NAME),
        Word("disk", "disk", NAME),
        Word("after_checkpoint", "after_checkpoint", COUNT),
        Word("names", "names", _list_of(NAME, empty=True)),
        *_HOW_OFTEN,
    ),
    "retained": (
        Word("retained", "retained", _list_of(COUNT, empty=True)),
        Word("after_checkpoint", "after_checkpoint", COUNT),
    ),
    "status": (
        Word("status", "status", one_of(("FINISHED", "STOPPED", "CANCELED", "FAILED", "FENCED"))),
        Word("lives", "lives", COUNT),
        Word("attempts", "attempts", COUNT),
        Word("message_contains", "message_contains", TEXT),
    ),
}
"""By subject; the words that make one the subject of an expectation are those of :data:`SUBJECT_OF`."""

SUBJECT_OF: dict[str, str] = {
    "output": "output",
    "sink": "output",
    "state": "state",
    "checkpoint": "checkpoint",
    "journal": "journal",
    "storage": "storage",
    "disk": "storage",
    "retained": "retained",
    "status": "status",
    "lives": "status",
    "attempts": "status",
    "message_contains": "status",
}
"""Which subject a word makes."""
