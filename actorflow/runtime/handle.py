"""What a program holds while its job runs: how it is doing, and the ways to end it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from actorflow.errors import JobFailed
from actorflow.protocol.lifecycle import JobStatus

if TYPE_CHECKING:
    from actorflow.dataflow.plan import Plan
    from actorflow.runtime.levels import ActorLevel
    from actorflow.runtime.supervisor import Supervisor

__all__ = ("CheckpointInfo", "JobHandle", "OperatorProgress", "Progress", "Status")


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckpointInfo:
    """A completed checkpoint.  Times are milliseconds; ``path`` is the folder or object that holds it."""

    checkpoint_id: int
    kind: str
    bytes: int
    duration_ms: int
    completed_at_ms: int
    path: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Status:
    """How a job is doing.  ``waiting_for`` is a sentence when it is not simply running, else empty."""

    status: JobStatus
    attempt: int
    restarts: int
    restored_checkpoint: int | None
    last_checkpoint: CheckpointInfo | None
    checkpoint_age_ms: int | None
    waiting_for: str
    failure: str = ""

    def __str__(self) -> str:
        sentence = f"{self.status.value}, attempt {self.attempt}"
        return f"{sentence}: {self.waiting_for}" if self.waiting_for else sentence


@dataclass(frozen=True, slots=True, kw_only=True)
class OperatorProgress:
    """What the actors of one chain have done in this attempt."""

    operators: tuple[str, ...]
    records_in: int
    records_out: int
    waiting_batches: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """What the job has done in this attempt; records are counted where they leave their source."""

    records_read: int
    records_written: int
    checkpoints_completed: int
    checkpoints_failed: int
    chains: tuple[OperatorProgress, ...] = field(default=())


class JobHandle:
    """A running job.  All methods may be called from the event loop in which the job runs, and only from there."""

    def __init__(self, supervisor: Supervisor) -> None:
        self._supervisor = supervisor

    @property
    def name(self) -> str:
        """The job's name."""
        return self._supervisor.plan.job

    @property
    def plan(self) -> Plan:
        """The physical plan: print it, or ask it for a picture."""
        return self._supervisor.plan

    @property
    def status(self) -> Status:
        """How the job is doing now, and what it waits for."""
        return self._supervisor.status()

    @property
    def progress(self) -> Progress:
        """What the job has done since this attempt began."""
        return self._supervisor.progress()

    @property
    def levels(self) -> tuple[ActorLevel, ...]:
        """What waits at each actor at this moment, in the order of the plan; empty while nothing runs."""
        return self._supervisor.levels()

    async def wait(self) -> JobStatus:
        """Wait for the end and say which one it was.

        Raises ``JobFailed`` or ``Fenced`` when it was one of those.
        """
        await self._supervisor.ended.wait()
        failure = self._supervisor.failure
        if failure is not None:
            raise failure
        return self._supervisor.life.status

    async def checkpoint(self) -> CheckpointInfo:
        """Take a checkpoint now and wait for it.  Raises ``CheckpointAborted`` with the reason."""
        return await self._supervisor.checkpoint()

    async def stop(self) -> CheckpointInfo | None:
        """Stop with a last checkpoint, from which the next start goes on.

        Raises ``CheckpointAborted`` when that checkpoint fails, or the attempt before it came to its end; then the job
        goes on.  ``None``: it had ended already.
        """
        return await self._supervisor.stop()

    async def leave(self) -> None:
        """End as leaving the block does: stop, and cancel when there is no last checkpoint within ``stop_within``."""
        await self._supervisor.leave()

    async def drain(self) -> None:
        """End the input here, let everything that is under way come out, commit it, and finish for good.

        Raises ``CheckpointAborted`` when an attempt fails meanwhile; then the job goes on, and is not drained any more.
        """
        await self._supervisor.drain()

    async def cancel(self) -> None:
        """End now, without a last checkpoint."""
        await self._supervisor.cancel()

    async def query(self, state: str, *, key: Any) -> Any:
        """Return the value of a keyed state, such as ``"score.level"``, as it is at this moment; ``None`` when unset.

        It may be newer than the last checkpoint and so be undone by a failure.  Raises ``KeyError`` for a state that
        the job does not have, ``InvalidValue`` for a key that can't be one, and ``JobFailed`` when the job does not
        run.
        """
        return await self._supervisor.query(state, key)

    def __repr__(self) -> str:
        return f"<JobHandle {self.name!r}: {self.status}>"


def not_running(name: str, status: JobStatus) -> JobFailed:
    """The error of asking a job that does not run."""
    return JobFailed(f"job {name!r} does not run: it is {status.value}")
