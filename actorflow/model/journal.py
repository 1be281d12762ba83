"""What the runtime announces: the one stream of facts.

Metrics, logs, the live line, the simulator's timeline and its triggers are all readers of it.  Names and fields are
public and change only with an entry in the CHANGELOG.  No record's content is in the journal.

A field marked ``volatile`` (measured durations, process ids, temporary paths, the text of foreign exceptions) stays out
of the digest of a simulated run.
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import Any

__all__ = (
    "ActorFailed",
    "ActorFinished",
    "ActorRestored",
    "ActorStarted",
    "AlignmentStarted",
    "BarrierArrived",
    "CalmBegan",
    "CheckpointAborted",
    "CheckpointAcknowledged",
    "CheckpointCompleted",
    "CheckpointDeclined",
    "CheckpointDiscarded",
    "CheckpointRejected",
    "CheckpointRequested",
    "CheckpointSubsumed",
    "CheckpointTriggered",
    "Entry",
    "FellBack",
    "GenerationClaimed",
    "JobCanceled",
    "JobFailed",
    "JobFenced",
    "JobFinished",
    "JobRestarting",
    "JobRunning",
    "JobStarted",
    "JobStopped",
    "Line",
    "LoopBlocked",
    "ManifestWritten",
    "OrphanRemoved",
    "SettingIgnored",
    "SinkCommitted",
    "SinkDiscarded",
    "SinkPrepared",
    "SnapshotSettled",
    "SnapshotTaken",
    "StorageFailed",
    "StorageRetried",
    "WeatherStruck",
    "lasting_fields",
    "lasting_names",
)


def _volatile(default: Any) -> Any:
    return field(default=default, metadata={"volatile": True})


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One fact; the class is its name."""


@dataclass(frozen=True, slots=True)
class Line:
    """An entry as readers see it: numbered, timed (milliseconds of the process's monotonic clock), and whose it is."""

    sequence: int
    at_ms: int
    process: str
    entry: Entry

    @property
    def name(self) -> str:
        """The entry's public name, such as ``CheckpointCompleted``."""
        return type(self.entry).__name__


def lasting_fields(entry: Entry) -> list[tuple[str, Any]]:
    """The fields that belong to a digest, in declared order."""
    return [(name, getattr(entry, name)) for name in lasting_names(type(entry))]


def lasting_names(kind: type[Entry]) -> tuple[str, ...]:
    """The names of those fields."""
    if (names := _lasting.get(kind)) is None:
        names = _lasting[kind] = tuple(f.name for f in fields(kind) if not f.metadata.get("volatile"))
    return names


_lasting: dict[type[Entry], tuple[str, ...]] = {}


# ── job ──────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True, kw_only=True)
class GenerationClaimed(Entry):
    """An attempt claimed the next generation of the job's home."""

    job: str
    generation: int


@dataclass(frozen=True, slots=True, kw_only=True)
class JobStarted(Entry):
    """An attempt begins; ``restored_checkpoint`` is ``None`` when it starts without state."""

    job: str
    attempt: int
    generation: int
    restored_checkpoint: int | None
    restored_from: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class JobRunning(Entry):
    """All actors of the attempt run."""

    job: str
    attempt: int


@dataclass(frozen=True, slots=True, kw_only=True)
class JobRestarting(Entry):
    """An attempt failed and the next one follows after ``delay_ms``."""

    job: str
    attempt: int
    delay_ms: int
    cause: str
    detail: str = _volatile("")


@dataclass(frozen=True, slots=True, kw_only=True)
class JobFinished(Entry):
    """The input is exhausted and its last row committed."""

    job: str


@dataclass(frozen=True, slots=True, kw_only=True)
class JobStopped(Entry):
    """Stopped with a last checkpoint."""

    job: str
    checkpoint: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class JobCanceled(Entry):
    """Cancelled without a last checkpoint."""

    job: str


@dataclass(frozen=True, slots=True, kw_only=True)
class JobFailed(Entry):
    """Failed for good."""

    job: str
    cause: str
    detail: str = _volatile("")


@dataclass(frozen=True, slots=True, kw_only=True)
class JobFenced(Entry):
    """A newer owner claimed the home."""

    job: str
    generation: int
    by_generation: int
    by: str = _volatile("")


# ── actors ───────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True, kw_only=True)
class ActorStarted(Entry):
    """An actor is open and takes input."""

    actor: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ActorRestored(Entry):
    """An actor has its state of a checkpoint back."""

    actor: str
    checkpoint: int
    entries: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class ActorFinished(Entry):
    """All inputs of an actor ended and its operators have finished."""

    actor: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ActorFailed(Entry):
    """The code of an operator, a source or a sink failed."""

    operator: str
    subtask: int
    cause: str
    detail: str = _volatile("")


@dataclass(frozen=True, slots=True, kw_only=True)
class LoopBlocked(Entry):
    """The event loop stood still for long inside one operator's code."""

    actor: str
    blocked_ms: int = _volatile(0)


# ── checkpoints ──────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckpointRequested(Entry):
    """Somebody, or the interval, asked for a checkpoint."""

    kind: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckpointRejected(Entry):
    """A request was refused before it had an id."""

    kind: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckpointTriggered(Entry):
    """A checkpoint has an id and its barriers are on their way."""

    checkpoint: int
    kind: str


@dataclass(frozen=True, slots=True, kw_only=True)
class BarrierArrived(Entry):
    """A barrier was taken from a channel."""

    checkpoint: int
    actor: str
    channel: str


@dataclass(frozen=True, slots=True, kw_only=True)
class AlignmentStarted(Entry):
    """An actor waits for the same barrier on its other channels."""

    checkpoint: int
    actor: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SnapshotTaken(Entry):
    """The instant of an actor's snapshot is over; its bytes are written behind."""

    checkpoint: int
    actor: str
    instant_us: int = _volatile(0)


@dataclass(frozen=True, slots=True, kw_only=True)
class SnapshotSettled(Entry):
    """Nothing of an actor's snapshot is left in its state; ``loop_us``: the loop's work for it after the instant."""

    checkpoint: int
    actor: str
    loop_us: int = _volatile(0)


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckpointAcknowledged(Entry):
    """An actor's snapshot is durable."""

    checkpoint: int
    actor: str
    bytes: int = 0
    duration_ms: int = _volatile(0)


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckpointDeclined(Entry):
    """An actor could not take its snapshot."""

    checkpoint: int
    actor: str
    reason: str
    detail: str = _volatile("")


@dataclass(frozen=True, slots=True, kw_only=True)
class ManifestWritten(Entry):
    """A checkpoint's manifest is in storage."""

    checkpoint: int
    bytes: int = _volatile(0)


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckpointCompleted(Entry):
    """A checkpoint can be restored and what it prepared may be committed."""

    checkpoint: int
    kind: str
    bytes: int = 0
    duration_ms: int = _volatile(0)


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckpointAborted(Entry):
    """A checkpoint that had started ended without completing."""

    checkpoint: int
    reason: str
    detail: str = _volatile("")


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckpointSubsumed(Entry):
    """A newer checkpoint took the place of a completed one."""

    checkpoint: int


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckpointDiscarded(Entry):
    """The files of a checkpoint are gone."""

    checkpoint: int
    objects: int = _volatile(0)


# ── delivery and storage ─────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True, kw_only=True)
class SinkPrepared(Entry):
    """A sink's output up to a barrier is durable but not yet visible."""

    checkpoint: int
    actor: str
    operator: str
    committables: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SinkCommitted(Entry):
    """What a sink had prepared is visible."""

    checkpoint: int
    actor: str
    operator: str
    committables: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SinkDiscarded(Entry):
    """What a sink had begun and no checkpoint names was thrown away."""

    actor: str
    operator: str
    committables: int


@dataclass(frozen=True, slots=True, kw_only=True)
class StorageRetried(Entry):
    """An operation on storage failed and is tried again."""

    operation: str
    name: str = _volatile("")
    attempt: int = 1
    cause: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class StorageFailed(Entry):
    """An operation on storage failed for good."""

    operation: str
    name: str = _volatile("")
    cause: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class FellBack(Entry):
    """Something did not work as asked and another way was taken."""

    subject: str
    wanted: str
    taken: str
    why: str = _volatile("")


@dataclass(frozen=True, slots=True, kw_only=True)
class OrphanRemoved(Entry):
    """Something that an older generation left behind, and that nothing refers to, was removed."""

    where: str
    name: str = _volatile("")


@dataclass(frozen=True, slots=True, kw_only=True)
class SettingIgnored(Entry):
    """A setting has no effect here; ``why`` says what to do instead."""

    setting: str
    why: str


# ── simulation ───────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True, kw_only=True)
class WeatherStruck(Entry):
    """A fault of the simulated world took effect."""

    verb: str
    target: str = ""
    step: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class CalmBegan(Entry):
    """The weather has lifted: from here on the job must recover and drain its input."""
