"""Are the checkpoints, the journal, storage and the end of a run as a scenario says?"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Any

from actorflow.model.journal import Line
from actorflow.simulation.runs import CheckpointRecord, Run
from actorflow.simulation.scenario import (
    AboutCheckpoint,
    AboutJournal,
    AboutRegistry,
    AboutStatus,
    AboutStorage,
    Mention,
)
from actorflow.simulation.scenario_entries import write_where
from actorflow.simulation.scenario_kinds import DURATION

__all__ = ("about_checkpoint", "about_journal", "about_registry", "about_status", "about_storage", "times")

_MOST_TOLD = 3  # sentences about checkpoints that are alike


def times(count: int) -> str:
    """Return how often something happened, in words."""
    return "once" if count == 1 else f"{count} times"


# ── checkpoints ──────────────────────────────────────────────────────────────────────────────


def about_checkpoint(about: AboutCheckpoint, run: Run) -> Iterator[str]:
    """Judge one checkpoint, or every one that completed."""
    if about.checkpoint is None:
        completed = [record for record in run.checkpoints if record.completed_at_ms is not None]
        if not completed:
            yield "no checkpoint was completed"
        wrong = [sentence for record in completed for sentence in _completed(about, record)]
        yield from wrong[:_MOST_TOLD]
        if len(wrong) > _MOST_TOLD:
            yield f"… and {len(wrong) - _MOST_TOLD} more of them"
        return
    name = f"checkpoint {about.checkpoint}"
    records = [record for record in run.checkpoints if record.checkpoint == about.checkpoint]
    done = [record for record in records if record.completed_at_ms is not None]
    if not records:
        numbers = ", ".join(str(number) for number in dict.fromkeys(one.checkpoint for one in run.checkpoints))
        yield f"{name} was never triggered, only {numbers or 'none'}"
    elif about.aborted is not None or about.declined_by is not None:
        reasons = [record.why for record in records if record.why]
        if about.aborted is not None and about.aborted not in reasons:
            yield f"{name} was not aborted because of {about.aborted}, but {', '.join(reasons) or _fate(records)}"
        decliners = [actor for record in records for actor in record.declined]
        if about.declined_by is not None and not any(_is_of(actor, about.declined_by) for actor in decliners):
            yield f"{name} was not declined by {about.declined_by}, but by {', '.join(decliners) or 'nobody'}"
    elif not done:
        yield f"{name} did not complete: {_fate(records)}"
    else:
        yield from _completed(about, done[-1])


def _is_of(actor: str, name: str) -> bool:
    return name in {actor, actor.rpartition("/")[0]}


def _fate(records: Sequence[CheckpointRecord]) -> str:
    last = records[-1]
    if last.completed_at_ms is not None:
        return "it completed"
    return f"it was aborted because of {last.why}" if last.why else "its process ended before it did"


def _completed(about: AboutCheckpoint, record: CheckpointRecord) -> Iterator[str]:
    name, duration, size = f"checkpoint {record.checkpoint}", record.duration_ms, record.bytes
    assert duration is not None
    if about.kind is not None and record.kind != about.kind:
        yield f"{name} is {record.kind} and not {about.kind}"
    if about.completes_within_ms is not None and duration > about.completes_within_ms:
        yield f"{name} took {duration} ms, and not {DURATION.write(about.completes_within_ms)} at most"
    if about.takes_at_least_ms is not None and duration < about.takes_at_least_ms:
        yield f"{name} took {duration} ms, and not {DURATION.write(about.takes_at_least_ms)} at least"
    if about.bytes_at_least is not None and size < about.bytes_at_least:
        yield f"{name} has {size} bytes, and not {about.bytes_at_least} at least"
    if about.bytes_at_most is not None and size > about.bytes_at_most:
        yield f"{name} has {size} bytes, and not {about.bytes_at_most} at most"
    if about.actors is not None and sorted(record.acknowledged) != sorted(about.actors):
        yield f"{name} holds {', '.join(sorted(record.acknowledged))} and not {', '.join(sorted(about.actors))}"


# ── journal ──────────────────────────────────────────────────────────────────────────────────


def about_journal(about: AboutJournal, run: Run) -> Iterator[str]:
    """Judge how often an entry is there, and what surrounds each."""
    name = _entry_told(about.entry, about.where)
    found = [place for place, line in enumerate(run.lines) if _fits(line, about.entry, about.where)]
    least = about.at_least if about.at_least is not None else int(about.at_most is None)
    if about.before is not None or about.after is not None:
        least = max(least, 1)
    if len(found) < least:
        others = sum(line.name == about.entry for line in run.lines) - len(found)
        beside = f" ({times(others)} with other fields)" if others else ""
        yield f"{name} is in the journal {times(len(found))}{beside}, and not at least {times(least)}"
    if about.at_most is not None and len(found) > about.at_most:
        yield f"{name} is in the journal {times(len(found))}, and not at most {times(about.at_most)}"
    if about.before is not None:
        yield from _misplaced(f"{name} in line", "before", about.before, found, run)
    if about.after is not None:
        yield from _misplaced(f"{name} in line", "after", about.after, found, run)


def _misplaced(name: str, comes: str, mention: Mention, found: Sequence[int], run: Run) -> Iterator[str]:
    """Tell the first of these lines that does not come before all that is mentioned, or after some of it."""
    first: dict[tuple[Any, ...], int] = {}
    last: dict[tuple[Any, ...], int] = {}
    for place, line in enumerate(run.lines):
        if _fits(line, mention.entry, mention.where):
            last[_same(line, mention)] = place
            first.setdefault(_same(line, mention), place)
    for place in found:
        line = run.lines[place]
        same = _same(line, mention)
        is_after = first.get(same, place) < place
        is_before = not is_after and last.get(same, place) > place
        if not (is_before if comes == "before" else is_after):
            other = _entry_told(mention.entry, mention.where)
            yield f"{name} {line.sequence}, at {line.at_ms} ms, does not come {comes} {other}"
            return


def _fits(line: Line, entry: str, where: Mapping[str, Any]) -> bool:
    return line.name == entry and all(getattr(line.entry, name) == value for name, value in where.items())


def _same(line: Line, mention: Mention) -> tuple[Any, ...]:
    return tuple(getattr(line.entry, name) for name in mention.same)


def _entry_told(entry: str, where: Mapping[str, Any]) -> str:
    said = ", ".join(f"{name} = {value!r}" for name, value in write_where(where).items())
    return f"{entry} ({said})" if said else entry


# ── storage and the end ──────────────────────────────────────────────────────────────────────


def about_storage(about: AboutStorage, run: Run) -> Iterator[str]:
    """Judge which objects or files are there."""
    if about.on_disk:
        there, place = run.disk, "on the disk in the end"
    elif about.after_checkpoint not in run.storage:
        yield f"nobody looked at the storage {_when(about.after_checkpoint)}: it never completed"
        return
    else:
        there, place = run.storage[about.after_checkpoint], f"in storage {_when(about.after_checkpoint)}"
    found = sorted(name for name in there if fnmatchcase(name, about.pattern))
    shown = f" ({', '.join(found[:5])}{' …' if len(found) > 5 else ''})" if found else ""
    if about.names is not None:
        if found != sorted(about.names):
            expected = ", ".join(about.names) or "nothing"
            yield f"{about.pattern} {place} is {', '.join(found) or 'nothing'}, and not {expected}"
        return
    least = about.at_least if about.at_least is not None else int(about.at_most is None)
    if len(found) < least:
        yield f"{about.pattern} is there {times(len(found))} {place}, and not at least {times(least)}{shown}"
    if about.at_most is not None and len(found) > about.at_most:
        yield f"{about.pattern} is there {times(len(found))} {place}, and not at most {times(about.at_most)}{shown}"


def about_registry(about: AboutRegistry, run: Run) -> Iterator[str]:
    """Judge which checkpoints are retained."""
    if about.after_checkpoint not in run.retained:
        yield f"nobody looked at what is retained {_when(about.after_checkpoint)}: it never completed"
    elif (there := run.retained[about.after_checkpoint]) != tuple(sorted(about.retained)):
        yield f"retained {_when(about.after_checkpoint)} is {_numbers(there)} and not {_numbers(about.retained)}"


def _numbers(numbers: Sequence[int]) -> str:
    return ", ".join(map(str, numbers)) or "nothing"


def _when(checkpoint: int | None) -> str:
    return "in the end" if checkpoint is None else f"after checkpoint {checkpoint}"


def about_status(about: AboutStatus, run: Run) -> Iterator[str]:
    """Judge how the job ended."""
    if about.status is not None and run.status != about.status:
        yield f"the job is {run.status} and not {about.status}{f': {run.error}' if run.error else ''}"
    if about.lives is not None and run.lives != about.lives:
        yield f"its process lived {times(run.lives)} and not {times(about.lives)}"
    if about.attempts is not None and run.attempts != about.attempts:
        yield f"{run.attempts} attempts began and not {about.attempts}"
    if about.message_contains is not None and about.message_contains not in run.error:
        yield f"the job's error does not say {about.message_contains!r}, but {run.error or 'nothing'}"
