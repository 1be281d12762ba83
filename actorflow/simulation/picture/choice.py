"""Which part of a long run is shown?

A picture of everything that a long run did would be a smear.  So a run is cut into *episodes*: a checkpoint with all
its entries, the beginning and the end of an attempt, a fault.  The most telling ones are taken until the picture is
full: the first checkpoint, those that a fault met and what followed it, those that were aborted, and the end.

A checkpoint is shown whole or not at all.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from actorflow.simulation.picture.facts import Band, Facts

__all__ = ("MOST_TELLING", "chosen", "rooms_of")

MOST_TELLING = 850.0
"""How much room entries take for themselves at most; the rest of the width is time."""

_DULL = ("CheckpointDiscarded", "CheckpointRequested", "CheckpointSubsumed", "OrphanRemoved", "SettingIgnored")
"""Entries that get no place of their own."""

_SMALL = ("ActorFinished", "ActorRestored", "ActorStarted", "AlignmentStarted", "SinkPrepared", "SnapshotSettled")
_LARGE = (
    "BarrierArrived",
    "BarrierOvertook",
    "CheckpointAborted",
    "CheckpointCompleted",
    "CheckpointTriggered",
    "JobStarted",
    "ManifestWritten",
    "SinkCommitted",
    "SnapshotTaken",
    "WeatherStruck",
)


class Episode(NamedTuple):
    """Some entries that belong together; the smaller its rank, the more telling."""

    rank: int
    first: int
    moments: tuple[int, ...]


def rooms_of(facts: Facts, since_us: int | None = None, until_us: int | None = None) -> dict[int, float]:
    """How far each entry is from the one before it at least, also at one instant; those that get no place are left out.

    A part of a run may be asked for, between two virtual times.
    """
    return {
        moment: 6.0 if line.name in _LARGE else 1.5 if line.name in _SMALL else 3.5
        for moment, line in enumerate(facts.lines)
        if line.name not in _DULL
        and (since_us is None or facts.times_us[moment] >= since_us)
        and (until_us is None or facts.times_us[moment] <= until_us)
    }


def chosen(facts: Facts, rooms: Mapping[int, float]) -> list[int]:
    """Return the entries that are shown, in order: all of them if there is room."""
    if sum(rooms.values()) <= MOST_TELLING:
        return list(rooms)
    taken: dict[int, None] = {}
    room = MOST_TELLING
    for episode in sorted(_episodes(facts)):
        more = [moment for moment in episode.moments if moment in rooms and moment not in taken]
        needs = sum(rooms[moment] for moment in more)
        if needs <= room or not taken:
            room -= needs
            taken.update(dict.fromkeys(more))
    return sorted(taken)


def _episodes(facts: Facts) -> Iterator[Episode]:
    last = len(facts.lines) - 1
    yield from _checkpoints(facts)
    for number, band in enumerate(facts.bands):
        yield Episode(0 if number == 0 else 2 if number < 4 else 5, band.since, _beginning(facts, band))
        if band.until is not None:
            yield Episode(1 if number < 4 else 5, band.until, (band.until,))
    for count, strike in enumerate(facts.strikes):
        yield Episode(2 if count < 8 else 5, strike.at, (strike.at,))
    yield Episode(1, last, tuple(range(max(0, last - 1), last + 1)))


def _checkpoints(facts: Facts) -> Iterator[Episode]:
    own = _entries(facts)
    struck = [strike.at for strike in facts.strikes]
    seen = aborted = 0
    deaths = [band.until for band in facts.bands if band.killed and band.until is not None]
    after = {bisect_left([one.triggered for one in facts.checkpoints], death) for death in deaths}
    overtaken = {arrow.checkpoint for arrow in facts.arrows if arrow.over}
    for index, one in enumerate(facts.checkpoints):
        until = len(facts.lines) if one.until is None else one.until
        within = struck[bisect_left(struck, one.triggered) : bisect_right(struck, until)]
        rank = 6
        if one.completed is not None:
            seen += 1
            rank = 0 if seen == 1 else 3 if seen == 2 else 6
        elif one.aborted is not None:
            aborted += 1
            rank = 1 if aborted <= 2 else 5
        if one.checkpoint in overtaken or one.lost is not None:
            rank = min(rank, 1)
        if within:
            rank = min(rank, 2)
        if index in after or index == len(facts.checkpoints) - 1:
            rank = min(rank, 4)
        yield Episode(rank, one.triggered, tuple(sorted({*own[index], *within})))


def _entries(facts: Facts) -> list[list[int]]:
    """The entries of each checkpoint, from its trigger to the last of its commits in the same life."""
    running: dict[tuple[str, int], int] = {}
    triggered = {one.triggered: index for index, one in enumerate(facts.checkpoints)}
    found: list[list[int]] = [[] for _ in facts.checkpoints]
    for moment, line in enumerate(facts.lines):
        number = getattr(line.entry, "checkpoint", None)
        if line.name in ("JobStarted", "GenerationClaimed"):
            running = {key: index for key, index in running.items() if key[0] != line.process}
        elif isinstance(number, int):
            if moment in triggered:
                running[line.process, number] = triggered[moment]
            index = running.get((line.process, number))
            if index is not None:
                found[index].append(moment)
    return found


def _beginning(facts: Facts, band: Band) -> tuple[int, ...]:
    """The entries with which an attempt begins: those of its actors, until the last one has started."""
    names = ("GenerationClaimed", "JobStarted", "JobRunning", "ActorRestored", "ActorStarted", "ActorFinished")
    ended = len(facts.lines) if band.until is None else band.until
    started = [
        lived.started
        for lane in facts.lanes.values()
        for lived in lane.lives
        if lived.started is not None and lived.since == band.since and lived.started <= ended
    ]
    until = max([band.since, *([band.running] if band.running is not None else []), *started])
    return tuple(
        moment
        for moment in range(band.since, until + 1)
        if facts.lines[moment].name in names and facts.lines[moment].process == band.process
    ) + tuple(
        commit.at
        for commit in facts.commits
        if commit.what == "committed"
        and commit.process == band.process
        and commit.checkpoint == band.restored
        and band.since <= commit.at <= ended
    )
