"""What is promised to a sink, and what is kept of a job's checkpoints when it ends?

Names and rules are Flink's.  Our default retention differs (``RETAIN_ON_CANCELLATION``), because a job goes on from its
latest checkpoint by itself, so a stop must not delete it.
"""

from __future__ import annotations

from enum import StrEnum

__all__ = ("Ending", "Guarantee", "Retention")


class Guarantee(StrEnum):
    """What a checkpoint promises about state: each record counted exactly once, or at least once."""

    EXACTLY_ONCE = "EXACTLY_ONCE"
    AT_LEAST_ONCE = "AT_LEAST_ONCE"


class Ending(StrEnum):
    """What may happen to a completed checkpoint, or to its job, that asks whether to keep it."""

    SUBSUMED = "subsumed"  # more than ``retained`` newer ones completed
    FINISHED = "finished"  # the job reached its end
    CANCELED = "canceled"
    FAILED = "failed"  # for good
    SUSPENDED = "suspended"  # stopped with a last checkpoint, to go on later


class Retention(StrEnum):
    """Which checkpoints outlive their job.

    ==========================  ========  ========  ========  ======  =========
    policy                      subsumed  finished  canceled  failed  suspended
    ==========================  ========  ========  ========  ======  =========
    NO_EXTERNALIZED_CHECKPOINTS  delete    delete    delete    delete  delete
    DELETE_ON_CANCELLATION       delete    delete    delete    keep    delete
    RETAIN_ON_CANCELLATION       delete    delete    keep      keep    keep
    ==========================  ========  ========  ========  ======  =========

    A savepoint is the user's: no policy deletes it, whatever happens.
    """

    NO_EXTERNALIZED_CHECKPOINTS = "NO_EXTERNALIZED_CHECKPOINTS"
    DELETE_ON_CANCELLATION = "DELETE_ON_CANCELLATION"
    RETAIN_ON_CANCELLATION = "RETAIN_ON_CANCELLATION"

    def keeps(self, ending: Ending) -> bool:
        """Whether a checkpoint is kept when this happens."""
        return ending in _KEPT[self]


_KEPT = {
    Retention.NO_EXTERNALIZED_CHECKPOINTS: frozenset[Ending](),
    Retention.DELETE_ON_CANCELLATION: frozenset({Ending.FAILED}),
    Retention.RETAIN_ON_CANCELLATION: frozenset({Ending.CANCELED, Ending.FAILED, Ending.SUSPENDED}),
}
