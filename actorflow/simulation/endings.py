"""How may a process end, and has the job come to its end with it?

Killed, it is started again.  An end that somebody asked for is one; so is failing for good where the course allows it.
A store that is out of reach is the weather's.  Anything else is wrong.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from actorflow.errors import (
    ActorflowError,
    CorruptObject,
    Fenced,
    JobFailed,
    ObjectMissing,
    RestoreFailed,
    StorageFailed,
)
from actorflow.protocol.lifecycle import JobStatus
from actorflow.runtime.attempt import leaves_of
from actorflow.simulation.acts import ENDS_AS, Desk
from actorflow.simulation.process import Process
from actorflow.simulation.runs import SeedFailed
from actorflow.simulation.world import Ending

__all__ = ("GOES_ON", "Verdict", "judge")


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """Whether the job is over, and how; ``rescales_to`` is the parallelism at which it goes on."""

    status: JobStatus | None = None
    error: str = ""
    rescales_to: int | None = None

    @property
    def is_over(self) -> bool:
        """Whether nobody starts a process in the place of this one."""
        return self.status is not None


GOES_ON = Verdict()


def judge(process: Process, desk: Desk, *, several: bool, is_calm: bool, may_fail: Callable[[], bool]) -> Verdict:
    """Judge the end of a process; raises ``SeedFailed`` when it ended as none may.

    ``several``: more than one process ran the job.  ``may_fail`` says whether failing for good is an end like others.
    """
    outcome = process.outcome
    assert outcome is not None
    match outcome.ending:
        case Ending.KILLED:
            return GOES_ON
        case Ending.RETURNED:
            return _asked_for(process, desk, outcome.value)
    error = outcome.error
    assert error is not None
    if not isinstance(error, ActorflowError):
        raise SeedFailed(f"the process ended with {error!r}") from error
    if isinstance(error, JobFailed) and process.asked_to_stop.is_set():
        return GOES_ON  # after a stop that failed it is cancelled, and what fails then is told
    if several and _is_because_of_another(error):
        return GOES_ON
    if not isinstance(error, StorageFailed) or isinstance(error, CorruptObject | ObjectMissing):
        if may_fail():
            return Verdict(status=JobStatus.FAILED, error=str(error))
        raise SeedFailed(f"the process ended with {type(error).__name__}: {error}") from error
    if is_calm:
        raise SeedFailed(f"the job failed in calm weather: {error}") from error
    return GOES_ON


def _asked_for(process: Process, desk: Desk, status: JobStatus) -> Verdict:
    """Judge a process that ended by itself."""
    if status is JobStatus.FINISHED:
        return Verdict(status=status)
    asked = [record for record in desk.asked if status in ENDS_AS.get(record.act, ())]
    if asked and asked[-1].act == "rescale":
        return Verdict(rescales_to=asked[-1].parallelism)
    if asked:
        return Verdict(status=status)
    if not process.asked_to_stop.is_set():
        raise SeedFailed(f"the job is {status}, and nobody asked for that")
    return GOES_ON


def _is_because_of_another(error: ActorflowError) -> bool:
    """Whether a process ended because another one owns the home, or removed from it what this one still knew."""
    causes = [error, *leaves_of(error.__cause__)]
    return any(isinstance(cause, Fenced | ObjectMissing | RestoreFailed) for cause in causes)
