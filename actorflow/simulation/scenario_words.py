"""Which words do the plain tables of a scenario know?

Those of its head, its inputs and outputs, its steps and its schedule.  Triggers, weather and expectations have words of
their own: ``scenario_triggers.py``, ``scenario_weather.py``, ``scenario_subjects.py``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, get_args

from actorflow.simulation.scenario import Act, TimedRecord
from actorflow.simulation.scenario_kinds import (
    BESIDE,
    COUNT,
    DURATION,
    FUNCTION,
    NAME,
    OPEN,
    RATE,
    SOME_DURATION,
    SWITCH,
    TEXT,
    WHOLE,
    Kind,
    a_list_of,
    one_of,
    type_of,
)
from actorflow.simulation.scenario_tables import Word

__all__ = ("CALM", "INPUT", "OUTPUT", "SCHEDULE", "SEEDS", "STEP", "TOP")


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
SCHEDULE = (Word("shuffle_rounds", "shuffle_rounds", WHOLE), Word("batch_us", "batch_us", WHOLE))
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
STEP = (Word("do", "act", one_of(get_args(Act)), required=True), Word("parallelism", "parallelism", COUNT))
