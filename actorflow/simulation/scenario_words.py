"""Which words do the tables of a scenario know?

Those of its head, its inputs and outputs, its steps, its expectations and its schedule.  Triggers and weather have
words of their own, in ``scenario_triggers.py`` and ``scenario_weather.py``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, get_args

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
    Act,
    Expectation,
    TimedRecord,
)
from actorflow.simulation.scenario_entries import ENTRY, MENTION
from actorflow.simulation.scenario_kinds import (
    BESIDE,
    COUNT,
    DURATION,
    FUNCTION,
    NAME,
    OPEN,
    RATE,
    SIZE,
    SOME_DURATION,
    SWITCH,
    TEXT,
    VALUES,
    WHOLE,
    Kind,
    a_list_of,
    one_of,
    type_of,
)
from actorflow.simulation.scenario_tables import Word

__all__ = ("CALM", "EVERY_SINK", "INPUT", "OUTPUT", "SAME", "SCHEDULE", "SEEDS", "STEP", "SUBJECTS", "TOP")


def _records(value: Any) -> int | tuple[TimedRecord, ...]:
    if isinstance(value, int) and not isinstance(value, bool):
        return int(COUNT.read(value))
    if not isinstance(value, list):
        raise ValueError(f"must be how many, or a list of records, not {type_of(value)}")
    return tuple(_record(item, number) for number, item in enumerate(value, 1))


def _record(item: Any, number: int) -> TimedRecord:
    """Read a record: a table that says ``value``, and nothing else but ``at``, is about the record, not the record."""
    if not isinstance(item, Mapping) or "value" not in item or not item.keys() <= {"at", "value"}:
        return TimedRecord(value=item)
    if "at" not in item:
        return TimedRecord(value=item["value"])
    try:
        return TimedRecord(value=item["value"], at_ms=DURATION.read(item["at"]))
    except ValueError as error:
        raise ValueError(f"has something wrong at place {number}: at = {item['at']!r} {error}") from None


def _records_back(records: int | tuple[TimedRecord, ...]) -> int | list[Any]:
    return records if isinstance(records, int) else [_record_back(record) for record in records]


def _record_back(record: TimedRecord) -> Any:
    if record.at_ms is not None:
        return {"at": DURATION.write(record.at_ms), "value": record.value}
    looks_placed = isinstance(record.value, Mapping) and "value" in record.value
    return {"value": record.value} if looks_placed else record.value


TOP = (
    Word("title", "title", NAME, required=True),
    Word("story", "story", TEXT),
    Word("job", "job", FUNCTION, required=True),
    Word("arguments", "arguments", OPEN),
    Word("lives", "lives", a_list_of(COUNT)),
)
SEEDS = (Word("first", "first", WHOLE), Word("count", "count", COUNT))
CALM = (Word("within", "calm_within_ms", SOME_DURATION, required=True),)
SCHEDULE = (
    Word("shuffle_rounds", "shuffle_rounds", WHOLE),
    Word("batch_us", "batch_us", WHOLE),
    Word("earlier_parallelism", "earlier_parallelism", SWITCH),
)
INPUT = (
    Word("source", "source", NAME, required=True),
    Word("make", "make", FUNCTION),
    Word("records", "records", Kind(_records, _records_back)),
    Word("lines", "lines", BESIDE),
    Word("per_second", "per_second", RATE),
    Word("splits", "splits", COUNT),
    Word("broker", "broker", SWITCH),
)
OUTPUT = (
    Word("sink", "sink", NAME, required=True),
    Word("stand_in", "stand_in", one_of(("ledger", "broker", "database", "files")), required=True),
)
STEP = (
    Word("do", "act", one_of(get_args(Act)), required=True),
    Word("parallelism", "parallelism", COUNT),
    Word("perhaps", "perhaps", SWITCH),
)


# ── what can be expected ─────────────────────────────────────────────────────────────────────

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
        Word("status", "status", one_of(("FINISHED", "STOPPED", "CANCELED", "FAILED"))),
        Word("lives", "lives", COUNT),
        Word("attempts", "attempts", COUNT),
        Word("message_contains", "message_contains", TEXT),
    ),
}
"""The words of each subject."""
