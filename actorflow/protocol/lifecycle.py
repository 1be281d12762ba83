"""How may a job live, and how an actor?

Two tables say which status may follow which.  A ``Life`` stands somewhere in one of them and refuses, with an
assertion, any step that the table does not know: such a step is a mistake of ours, never of the world.

What makes a job or an actor take a step is decided elsewhere.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from enum import StrEnum
from typing import Generic, TypeVar

from actorflow.protocol.machine import STORY_LENGTH

__all__ = ("ACTOR_LIVES", "JOB_LIVES", "ActorStatus", "JobStatus", "Life", "actor_life", "job_life")


class JobStatus(StrEnum):
    """What a job is at."""

    CREATED = "created"
    CLAIMING = "claiming"  # an attempt takes its generation, looks at the home and writes its base
    RESTORING = "restoring"  # state is on its way to the actors, which then open
    RUNNING = "running"
    FINISHING = "finishing"  # all input ended: the final checkpoint is awaited
    STOPPING = "stopping"  # the last checkpoint of a stop is awaited
    RESTARTING = "restarting"  # an attempt failed; the next one follows after a delay
    CANCELING = "canceling"
    FINISHED = "finished"
    STOPPED = "stopped"
    CANCELED = "canceled"
    FAILED = "failed"
    FENCED = "fenced"  # a newer owner has taken over

    @property
    def is_terminal(self) -> bool:
        """Whether nothing follows."""
        return not JOB_LIVES[self]


class ActorStatus(StrEnum):
    """What an actor is at."""

    CREATED = "created"
    RESTORING = "restoring"
    OPENING = "opening"
    RUNNING = "running"
    FINISHED = "finished"  # its input ended and its operators finished; it stays and answers barriers
    CLOSED = "closed"
    FAILED = "failed"

    @property
    def is_terminal(self) -> bool:
        """Whether nothing follows."""
        return not ACTOR_LIVES[self]


_J = JobStatus
JOB_LIVES: Mapping[JobStatus, tuple[JobStatus, ...]] = {
    # It ended before it began: a path that can't be read, a home that says that the job is finished.
    _J.CREATED: (_J.CLAIMING, _J.CANCELING, _J.FAILED),
    _J.CLAIMING: (_J.RESTORING, _J.FINISHED, _J.RESTARTING, _J.CANCELING, _J.FAILED, _J.FENCED),
    _J.RESTORING: (_J.RUNNING, _J.RESTARTING, _J.CANCELING, _J.FAILED, _J.FENCED),
    _J.RUNNING: (_J.FINISHING, _J.STOPPING, _J.RESTARTING, _J.CANCELING, _J.FAILED, _J.FENCED),
    # A stop that comes while the final checkpoint is awaited is answered by that checkpoint.
    _J.FINISHING: (_J.FINISHED, _J.RESTARTING, _J.CANCELING, _J.FAILED, _J.FENCED),
    # Its last checkpoint failed: the job goes on.  Or all input ended before the barrier of the stop.
    _J.STOPPING: (_J.STOPPED, _J.RUNNING, _J.FINISHING, _J.RESTARTING, _J.CANCELING, _J.FAILED, _J.FENCED),
    _J.RESTARTING: (_J.CLAIMING, _J.CANCELING, _J.FAILED),
    # Cancelling cuts, but finishes what was permitted; that may still find a newer owner.  And the end may already have
    # been reached when the wish to cancel came.
    _J.CANCELING: (_J.CANCELED, _J.FINISHED, _J.STOPPED, _J.FAILED, _J.FENCED),
    _J.FINISHED: (),
    _J.STOPPED: (),
    _J.CANCELED: (),
    _J.FAILED: (),
    _J.FENCED: (),
}

_A = ActorStatus
ACTOR_LIVES: Mapping[ActorStatus, tuple[ActorStatus, ...]] = {
    _A.CREATED: (_A.RESTORING, _A.OPENING, _A.CLOSED, _A.FAILED),
    _A.RESTORING: (_A.OPENING, _A.CLOSED, _A.FAILED),
    # Straight to finished: its snapshot says that it had finished before.
    _A.OPENING: (_A.RUNNING, _A.FINISHED, _A.CLOSED, _A.FAILED),
    _A.RUNNING: (_A.FINISHED, _A.CLOSED, _A.FAILED),
    _A.FINISHED: (_A.CLOSED, _A.FAILED),
    _A.CLOSED: (),
    _A.FAILED: (),
}

Status = TypeVar("Status", bound=StrEnum)


class Life(Generic[Status]):
    """One life: where it stands, and by which steps it came there."""

    __slots__ = ("status", "story", "table", "who")

    def __init__(self, table: Mapping[Status, tuple[Status, ...]], start: Status, who: str = "") -> None:
        self.table, self.status, self.who = table, start, who
        self.story: deque[Status] = deque([start], maxlen=STORY_LENGTH)

    def may_go(self, status: Status) -> bool:
        """Whether the table knows this step."""
        return status in self.table[self.status]

    def go(self, status: Status) -> None:
        """Take a step; assert that the table knows it."""
        assert self.may_go(status), (
            f"{self.who or 'a life'} can't go from {self.status} to {status}; it went {' → '.join(self.story)}"
        )
        self.status = status
        self.story.append(status)

    @property
    def is_over(self) -> bool:
        """Whether no step is left."""
        return not self.table[self.status]


def job_life(job: str) -> Life[JobStatus]:
    """The life of a new job."""
    return Life(JOB_LIVES, JobStatus.CREATED, f"job {job!r}")


def actor_life(actor: str) -> Life[ActorStatus]:
    """The life of a new actor."""
    return Life(ACTOR_LIVES, ActorStatus.CREATED, f"actor {actor}")
