"""How are facts found in a journal?

Line by line: each entry begins or ends something of :class:`~actorflow.simulation.picture.facts.Facts`.

A barrier's departure is not in the journal by itself: an actor forwards it and takes its snapshot at one stroke, so it
left with ``SnapshotTaken`` of the actor upstream.

Entries that are not known here (of later versions) are left alone; those of an actor stay in its lane as notes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from actorflow.model import journal
from actorflow.model.journal import Line
from actorflow.simulation.levels import Levels
from actorflow.simulation.picture.facts import (
    DEADLY,
    Arrow,
    Band,
    Blocked,
    Checkpoint,
    Commit,
    Facts,
    Key,
    Lane,
    Lived,
    Snapshot,
    Strike,
)

__all__ = ("facts_of",)


def facts_of(lines: Sequence[Line], levels: Levels | None = None) -> Facts:
    """Read a journal, and what was seen beside it."""
    times = [line.at_ms * 1_000 for line in lines]
    if levels is not None and len(levels.times_us) >= len(lines):
        times = levels.times_us[: len(lines)]
    reader = _Reader(Facts(lines=lines, times_us=times, levels=levels))
    for moment, line in enumerate(lines):
        reader.read(moment, line.process, line.entry)
    return reader.done()


class _Reader:
    """Reads a journal line by line."""

    def __init__(self, facts: Facts) -> None:
        self._facts = facts
        self._lives: dict[str, int] = {}
        self._waiting: dict[Key, list[Blocked]] = {}
        self._came: dict[tuple[str, int, str], int] = {}
        self._sent: dict[tuple[str, int, str], int] = {}
        self._arrived: dict[tuple[str, int, str], Arrow] = {}
        self._over: dict[tuple[str, int, str], str] = {}
        if facts.levels is not None:
            for (process, actor), seen in facts.levels.actors.items():
                self._lane(process, actor).operators = seen.operators
            for process, channel in facts.levels.channels:
                self._channel(process, channel)

    def done(self) -> Facts:
        facts = self._facts
        facts.lanes = dict(sorted(facts.lanes.items(), key=_Order(facts).of))
        return facts

    def _lane(self, process: str, actor: str) -> Lane:
        lanes = self._facts.lanes
        if (process, actor) not in lanes:
            lanes[process, actor] = Lane(process=process, actor=actor)
        return lanes[process, actor]

    def _channel(self, process: str, channel: str) -> Lane:
        lane = self._lane(process, channel.partition(">")[2])
        if channel not in lane.channels:
            lane.channels.append(channel)
        return lane

    def _band(self, process: str) -> Band | None:
        mine = [band for band in self._facts.bands if band.process == process]
        return mine[-1] if mine and mine[-1].until is None else None

    def _checkpoint(self, process: str, number: int) -> Checkpoint | None:
        for one in reversed(self._facts.checkpoints):
            if (one.process, one.checkpoint) == (process, number):
                return one
        return None

    # ── one line ──

    def read(self, at: int, process: str, entry: journal.Entry) -> None:
        match entry:
            case journal.GenerationClaimed(generation=generation):
                self._begin(at, process, generation)
            case journal.JobStarted(attempt=attempt, generation=generation, restored_checkpoint=restored):
                band = self._band(process)
                if band is None or band.generation != generation:
                    band = self._begin(at, process, generation)
                band.attempt, band.restored = attempt, restored
            case journal.JobRunning():
                if (band := self._band(process)) is not None:
                    band.running = at
            case journal.JobRestarting(cause=cause):
                self._end(at, process, f"failed: {cause}")
            case journal.JobFinished():
                self._end(at, process, "finished")
            case journal.JobStopped():
                self._end(at, process, "stopped")
            case journal.JobCanceled():
                self._end(at, process, "cancelled")
            case journal.JobFailed(cause=cause):
                self._end(at, process, f"failed for good: {cause}")
            case journal.JobFenced(generation=generation):
                for band in self._facts.bands:
                    if (band.process, band.generation, band.until) == (process, generation, None):
                        self._end(at, process, "fenced")
                    elif (band.process, band.generation) == (process, generation):
                        band.how = "fenced"  # whoever took its place goes on
            case journal.WeatherStruck(verb=verb, target=target, step=step):
                self._facts.strikes.append(Strike(at=at, verb=verb, target=target, step=step))
                if verb in DEADLY:
                    self._die(at, verb, target)
            case journal.CalmBegan():
                self._facts.calm = at
            case journal.CheckpointRequested(kind=kind):
                self._facts.requested.append((at, kind))
            case journal.StorageRetried() | journal.StorageFailed() | journal.FellBack() | journal.ActorFailed():
                self._facts.troubles.append(at)
            case _:
                self._read_actor(at, process, entry)

    def _begin(self, at: int, process: str, generation: int) -> Band:
        if self._band(process) is not None:  # another one of this name: who stalls is still there
            self._end(at, process, "replaced")
        if process not in self._lives or self._is_over(process):
            self._lives[process] = self._lives.get(process, 0) + 1
        band = Band(process=process, life=self._lives[process], attempt=0, generation=generation, since=at)
        self._facts.bands.append(band)
        return band

    def _is_over(self, process: str) -> bool:
        mine = [band for band in self._facts.bands if band.process == process]
        return bool(mine) and not mine[-1].how.startswith("failed: ")

    def _end(self, at: int, process: str, how: str, *, killed: bool = False) -> None:
        facts = self._facts
        band = self._band(process)
        if band is not None:
            band.until, band.how, band.killed = at, how, killed
        for lane in facts.lanes.values():
            if lane.process != process:
                continue
            for lived in lane.lives[-1:]:
                lived.until = at if lived.until is None else lived.until
            for snapshot in lane.snapshots:
                if snapshot.acknowledged is None and snapshot.until is None:
                    snapshot.until = at
            for blocked in self._waiting.pop((process, lane.actor), []):
                blocked.until = at
        for checkpoint in facts.checkpoints:
            if checkpoint.process == process and checkpoint.until is None:
                checkpoint.lost = at

    def _die(self, at: int, verb: str, target: str) -> None:
        machines = {} if self._facts.levels is None else self._facts.levels.machines
        hit = [
            process
            for process in self._facts.processes
            if process == target or (verb != "kill" and machines.get(process, target) == target)
        ]
        for process in hit:
            self._end(at, process, verb.replace("_", " "), killed=True)

    # ── actors and checkpoints ──

    def _read_actor(self, at: int, process: str, entry: Any) -> None:
        facts = self._facts
        match entry:
            case journal.ActorRestored(actor=actor):
                self._life(process, actor, at).restored = at
            case journal.ActorStarted(actor=actor):
                self._life(process, actor, at).started = at
            case journal.ActorFinished(actor=actor):
                self._life(process, actor, at).finished = at
            case journal.CheckpointTriggered(checkpoint=number, kind=kind):
                facts.checkpoints.append(Checkpoint(process=process, checkpoint=number, kind=kind, triggered=at))
            case journal.BarrierArrived(checkpoint=number, actor=actor, channel=channel):
                self._arrive(at, process, number, actor, channel)
            case journal.AlignmentStarted(checkpoint=number, actor=actor):
                self._align(at, process, number, actor)
            case journal.SnapshotTaken(checkpoint=number, actor=actor):
                self._take(at, process, number, actor)
            case journal.SnapshotSettled(checkpoint=number, actor=actor):
                if (snapshot := self._snapshot(process, number, actor)) is not None:
                    snapshot.settled = at
            case journal.CheckpointAcknowledged(checkpoint=number, actor=actor, bytes=size):
                if (snapshot := self._snapshot(process, number, actor)) is not None:
                    snapshot.acknowledged, snapshot.bytes = at, size
                if (checkpoint := self._checkpoint(process, number)) is not None:
                    checkpoint.acknowledged.append(at)
            case journal.CheckpointDeclined(checkpoint=number, actor=actor):
                if (snapshot := self._snapshot(process, number, actor)) is not None:
                    snapshot.declined = snapshot.until = at
                self._release(at, process, number, actor)
                self._lane(process, actor).notes.append(at)
            case journal.ManifestWritten(checkpoint=number):
                if (checkpoint := self._checkpoint(process, number)) is not None:
                    checkpoint.manifest = at
            case journal.CheckpointCompleted(checkpoint=number):
                if (checkpoint := self._checkpoint(process, number)) is not None:
                    checkpoint.completed = at
            case journal.CheckpointAborted(checkpoint=number, reason=why):
                self._abort(at, process, number, why)
            case journal.SinkPrepared(checkpoint=number, actor=actor, operator=operator, committables=count):
                self._commit(at, process, actor, operator, "prepared", number, count)
            case journal.SinkCommitted(checkpoint=number, actor=actor, operator=operator, committables=count):
                self._commit(at, process, actor, operator, "committed", number, count)
            case journal.SinkDiscarded(actor=actor, operator=operator, committables=count):
                self._commit(at, process, actor, operator, "discarded", None, count)
            case _:
                self._read_other(at, process, entry)

    def _read_other(self, at: int, process: str, entry: Any) -> None:
        """What later versions tell; an overtaking barrier says so before it is said to have arrived, or after."""
        actor, channel = getattr(entry, "actor", None), getattr(entry, "channel", None)
        number = getattr(entry, "checkpoint", None)
        if type(entry).__name__ == "BarrierOvertook" and isinstance(number, int) and isinstance(actor, str):
            over = f"{getattr(entry, 'batches', '?')} batches"
            for known in [channel] if isinstance(channel, str) else self._lane(process, actor).channels:
                self._over[process, number, known] = over
                if (arrow := self._arrived.get((process, number, known))) is not None:
                    arrow.over = over
        elif isinstance(actor, str):
            self._lane(process, actor).notes.append(at)

    def _life(self, process: str, actor: str, at: int) -> Lived:
        lane, band = self._lane(process, actor), self._band(process)
        since = at if band is None else band.since
        if not lane.lives or lane.lives[-1].until is not None:
            lane.lives.append(Lived(since=since))
        return lane.lives[-1]

    def _snapshot(self, process: str, number: int, actor: str) -> Snapshot | None:
        for snapshot in reversed(self._lane(process, actor).snapshots):
            if snapshot.checkpoint == number:
                return snapshot
        return None

    def _arrive(self, at: int, process: str, number: int, actor: str, channel: str) -> None:
        self._channel(process, channel)
        sender = channel.partition(">")[0]
        arrow = Arrow(
            checkpoint=number,
            process=process,
            sender=sender,
            receiver=actor,
            channel=channel,
            sent=self._sent.get((process, number, sender), at),
            arrived=at,
            over=self._over.get((process, number, channel), ""),
        )
        self._arrived[process, number, channel] = arrow
        self._came[process, number, actor] = at
        self._facts.arrows.append(arrow)
        if any(one.checkpoint == number for one in self._waiting.get((process, actor), ())):
            self._block(process, actor, Blocked(checkpoint=number, channel=channel, since=at))

    def _align(self, at: int, process: str, number: int, actor: str) -> None:
        self._block(process, actor, Blocked(checkpoint=number, channel="", since=at))
        for arrow in reversed(self._facts.arrows):  # the barrier that began it has just arrived
            if (arrow.process, arrow.receiver, arrow.checkpoint) == (process, actor, number):
                self._block(process, actor, Blocked(checkpoint=number, channel=arrow.channel, since=arrow.arrived))
                break

    def _block(self, process: str, actor: str, blocked: Blocked) -> None:
        self._lane(process, actor).blocked.append(blocked)
        self._waiting.setdefault((process, actor), []).append(blocked)

    def _release(self, at: int, process: str, number: int, actor: str) -> None:
        waiting = self._waiting.pop((process, actor), [])
        for blocked in waiting:
            if blocked.checkpoint == number:
                blocked.until = at
        if left := [blocked for blocked in waiting if blocked.until is None]:
            self._waiting[process, actor] = left

    def _take(self, at: int, process: str, number: int, actor: str) -> None:
        lane = self._lane(process, actor)
        lane.snapshots.append(Snapshot(checkpoint=number, taken=at))
        self._release(at, process, number, actor)
        self._sent[process, number, actor] = at
        checkpoint = self._checkpoint(process, number)
        if checkpoint is not None and self._came.get((process, number, actor), -1) < checkpoint.triggered:
            self._facts.arrows.append(
                Arrow(
                    checkpoint=number,
                    process=process,
                    sender="",
                    receiver=actor,
                    channel="",
                    sent=checkpoint.triggered,
                    arrived=at,
                )
            )

    def _abort(self, at: int, process: str, number: int, why: str) -> None:
        checkpoint = self._checkpoint(process, number)
        if checkpoint is not None and checkpoint.until is None:
            checkpoint.aborted, checkpoint.why = at, str(why)
        for lane in self._facts.lanes.values():
            if lane.process == process:
                self._release(at, process, number, lane.actor)
                snapshot = self._snapshot(process, number, lane.actor)
                if snapshot is not None and snapshot.acknowledged is None and snapshot.until is None:
                    snapshot.until = at

    def _commit(
        self, at: int, process: str, actor: str, operator: str, what: str, number: int | None, count: int
    ) -> None:
        self._facts.commits.append(
            Commit(process=process, actor=actor, operator=operator, at=at, what=what, checkpoint=number, count=count)
        )


class _Order:
    """Lanes from upstream to downstream: a chain stands below those it reads from, in the order of the plan."""

    def __init__(self, facts: Facts) -> None:
        self._processes = {name: place for place, name in enumerate(facts.processes)}
        self._reads: dict[str, dict[str, None]] = {}
        for lane in facts.lanes.values():
            reads = self._reads.setdefault(_chain(lane.actor), {})
            reads.update(dict.fromkeys(_chain(channel.partition(">")[0]) for channel in lane.channels))
        self._depths: dict[str, int] = {}
        known = [] if facts.levels is None else [_chain(actor) for _, actor in facts.levels.actors]
        self._plan = {name: place for place, name in enumerate(dict.fromkeys([*known, *sorted(self._reads)]))}

    def _depth(self, chain: str) -> int:
        if chain not in self._depths:
            self._depths[chain] = 0  # a loop, which there is not, would end here
            self._depths[chain] = 1 + max((self._depth(one) for one in self._reads.get(chain, ())), default=-1)
        return self._depths[chain]

    def of(self, item: tuple[Key, Lane]) -> tuple[int, int, int, int]:
        (process, actor), _ = item
        chain, subtask = _chain(actor), actor.rpartition("/")[2]
        place = self._processes.get(process, len(self._processes))
        return place, self._depth(chain), self._plan[chain], int(subtask) if subtask.isdecimal() else 0


def _chain(actor: str) -> str:
    return actor.rpartition("/")[0]
