"""What can go wrong, and whose move it is.

One class per thing that a caller may do differently.  A reason that only needs to be read, counted or shown is a
member of :class:`AbortReason`, with its sentence, and not a class.  Mistakes of ours are assertions and stay on.
"""

from __future__ import annotations

from enum import StrEnum

__all__ = (
    "AbortReason",
    "ActorflowError",
    "CheckpointAborted",
    "CorruptObject",
    "Fenced",
    "IncompatibleState",
    "InvalidConfig",
    "InvalidJob",
    "InvalidRecording",
    "InvalidScenario",
    "InvalidValue",
    "JobFailed",
    "MissingExtra",
    "ObjectMissing",
    "OperatorFailed",
    "RestoreFailed",
    "StorageFailed",
)


class ActorflowError(Exception):
    """The root of every exception that this package raises on purpose."""


class InvalidJob(ActorflowError):
    """Raised when a job is built in a way that could never run; the message names the operator and the way out."""


class InvalidConfig(ActorflowError):
    """Raised when settings are unknown, malformed or contradict each other; one error names all of them.

    ``problems`` holds one sentence per mistake.
    """

    def __init__(self, problems: list[str] | tuple[str, ...] | str) -> None:
        self.problems: tuple[str, ...] = (problems,) if isinstance(problems, str) else tuple(problems)
        super().__init__("\n".join(self.problems))


class InvalidRecording(ActorflowError):
    """Raised when a file is no recording, is damaged, or was written by a newer version; names the file and place."""


class InvalidScenario(ActorflowError):
    """Raised when a scenario can't be understood, or expects what could never be there; one error names all mistakes.

    ``problems`` holds one sentence per mistake, each with the file and the table.
    """

    def __init__(self, problems: list[str] | tuple[str, ...] | str) -> None:
        self.problems: tuple[str, ...] = (problems,) if isinstance(problems, str) else tuple(problems)
        super().__init__("\n".join(self.problems))


class InvalidValue(ActorflowError):
    """Raised when a key, a record or a state value can't be written down exactly; says which and what to add."""


class OperatorFailed(ActorflowError):
    """Raised when the code of an operator raised; the original is ``__cause__``.

    ``operator`` and ``subtask`` say where; ``key`` and ``record`` hold short forms, or ``None`` where there is none
    or records must not be shown.
    """

    def __init__(
        self, operator: str, subtask: int, *, key: str | None = None, record: str | None = None, cause: str = ""
    ) -> None:
        self.operator, self.subtask, self.key, self.record = operator, subtask, key, record
        parts = [f"operator {operator!r}, subtask {subtask}"]
        if key is not None:
            parts.append(f"key {key}")
        if record is not None:
            parts.append(f"record {record}")
        super().__init__(", ".join(parts) + (f": {cause}" if cause else ""))


class JobFailed(ActorflowError):
    """Raised when a job failed for good; the last failure, or a group of them, is ``__cause__``."""


class CheckpointAborted(ActorflowError):
    """Raised to whoever waits for a checkpoint that was aborted, with its :class:`AbortReason`."""

    def __init__(self, reason: AbortReason, *, checkpoint_id: int | None = None, detail: str = "") -> None:
        self.reason, self.checkpoint_id, self.detail = reason, checkpoint_id, detail
        name = "the checkpoint" if checkpoint_id is None else f"checkpoint {checkpoint_id}"
        super().__init__(f"{name} was aborted: {reason.value}" + (f" ({detail})" if detail else ""))


class RestoreFailed(ActorflowError):
    """Raised before any record is processed when a snapshot can't be restored; names the object or the setting."""


class IncompatibleState(RestoreFailed):
    """Raised when a snapshot is sound but does not fit this job: another key scheme, kind of state, or parallelism."""


class StorageFailed(ActorflowError):
    """Raised when storage or disk refused or lost an operation; the message names the object or the file."""


class ObjectMissing(StorageFailed):
    """Raised when an object that should be there is not."""


class CorruptObject(StorageFailed):
    """Raised when an object is truncated, fails its checksum or is not of the kind it should be; names it."""


class Fenced(ActorflowError):
    """Raised when a newer owner claimed the job's home; names its host and process.  Nothing was committed since."""

    def __init__(self, explanation: str, *, generation: int = 0) -> None:
        self.generation = generation
        super().__init__(explanation)


class MissingExtra(ActorflowError):
    """Raised when an optional dependency is needed and absent; names the extra to install."""


class AbortReason(StrEnum):
    """Why a checkpoint did not complete, or was not started; the value is a sentence for people.

    ``counts`` says whether it counts against ``checkpoints.tolerable_failures`` (Flink's table, semantics 3.6).
    ``is_preflight`` says that no id was consumed.
    """

    # before it started
    TOO_MANY_REQUESTS = "too many checkpoints are already waiting to start"
    MINIMUM_PAUSE = "the minimum pause since the last checkpoint has not passed"
    NOT_ALL_RUNNING = "not every actor is running yet"
    ALREADY_IN_PROGRESS = "a periodic checkpoint is already waiting"
    COORDINATOR_SUSPENDED = "the job is not running"
    # while it was under way
    EXPIRED = "it did not complete within its timeout"
    SUBSUMED = "a newer checkpoint completed first"
    DECLINED = "an actor could not take its snapshot"
    SNAPSHOT_FAILED = "an actor could not write its snapshot"
    STORAGE_FAILED = "its state could not be written"
    MANIFEST_FAILED = "its manifest could not be written"
    MANIFEST_IN_DOUBT = "it is not known whether its manifest was written; its files were kept"
    MANIFEST_PLACE_TAKEN = "an older attempt had already taken its place; the next id is used"
    TRIGGER_FAILED = "it could not be started"
    TRIGGER_IO_FAILED = "it could not be started because storage failed"
    CANCELLATION_MARKER = "an actor upstream had aborted it"
    INPUT_ENDED = "an input ended while its barrier was awaited"
    DECLINED_NOT_READY = "an actor was not ready yet"
    DECLINED_CLOSING = "an actor was closing"
    DECLINED_SUBSUMED = "a barrier of a newer checkpoint arrived first"
    SHARED_FILE_ABORTED = "another actor that writes into the same file aborted it"
    NOTIFICATION_FAILED = "an actor could not be told"
    JOB_RESTARTED = "the job was restarted"
    JOB_ENDED = "the job ended"
    ACTOR_FAILED = "an actor failed"
    FENCED = "a newer owner has taken over the job"

    @property
    def counts(self) -> bool:
        """Whether it counts against ``checkpoints.tolerable_failures``."""
        return self in _COUNTED

    @property
    def is_preflight(self) -> bool:
        """Whether it was refused before an id was consumed."""
        return self in _PREFLIGHT


_COUNTED = frozenset(
    {
        AbortReason.EXPIRED,
        AbortReason.DECLINED,
        AbortReason.SNAPSHOT_FAILED,
        AbortReason.STORAGE_FAILED,
        AbortReason.MANIFEST_FAILED,
        AbortReason.MANIFEST_IN_DOUBT,
        AbortReason.TRIGGER_IO_FAILED,
    }
)
_PREFLIGHT = frozenset(
    {
        AbortReason.TOO_MANY_REQUESTS,
        AbortReason.MINIMUM_PAUSE,
        AbortReason.NOT_ALL_RUNNING,
        AbortReason.ALREADY_IN_PROGRESS,
        AbortReason.COORDINATOR_SUSPENDED,
    }
)
