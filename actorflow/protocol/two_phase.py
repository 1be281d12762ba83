"""What of a sink's prepared output may be made visible now, and what becomes of the rest?

At a barrier a writer cuts: what it wrote before becomes *committables* of that checkpoint.  They are committed when the
checkpoint, or a later one, completed, and not before.  Hence the rule at the heart of this module: *all* committables
that are not known to be committed are in every snapshot, those of failed checkpoints included, so that whichever
checkpoint is restored holds all that its state has consumed and nobody has seen.

Committing goes checkpoint by checkpoint, in ascending order, each fully before the next, so later output never shows
before earlier one.  It may repeat, also in another process, so a commit that failed or whose answer was lost is simply
tried again, a bounded number of times.

Nothing is thrown away that a manifest may name.  It refuses to look into committables.

Pure: the permit comes from fencing, the runtime waits.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

from actorflow.protocol.fencing import CommitPermit
from actorflow.protocol.machine import Machine

__all__ = (
    "Abandoned",
    "CheckpointAborted",
    "CheckpointCompleted",
    "Close",
    "Closed",
    "Closing",
    "Commit",
    "CommitAnswered",
    "Committing",
    "Discard",
    "Effect",
    "Event",
    "Fail",
    "Failed",
    "Finished",
    "Idle",
    "Pending",
    "Prepared",
    "Restored",
    "Retry",
    "RetryDue",
    "TwoPhaseCommit",
    "Waiting",
)


@dataclass(frozen=True, slots=True)
class Pending:
    """What was prepared for one checkpoint and is not known to be committed."""

    checkpoint_id: int
    committables: tuple[Any, ...]


# ── events ───────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True)
class Restored:
    """The attempt starts from a snapshot that left this; several old subtasks may have contributed, in any order.

    ``permit`` is the one of the base.  It is ``None`` only where nothing was restored.
    """

    pending: tuple[Pending, ...]
    permit: CommitPermit | None


@dataclass(frozen=True, slots=True)
class Prepared:
    """The writer cut at a barrier; there may be nothing."""

    checkpoint_id: int
    committables: tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class CheckpointCompleted:
    """Everything up to the permit's checkpoint may be committed."""

    permit: CommitPermit


@dataclass(frozen=True, slots=True)
class CheckpointAborted:
    """A checkpoint did not complete.  What was prepared for it stays, to be committed with a later one."""

    checkpoint_id: int


@dataclass(frozen=True, slots=True)
class CommitAnswered:
    """``commit`` returned, or raised for this ``reason``; ``is_final`` says that no repetition can help."""

    checkpoint_id: int
    reason: str | None = None
    is_final: bool = False


@dataclass(frozen=True, slots=True)
class RetryDue:
    """The delay of ``Retry`` is over."""

    checkpoint_id: int


@dataclass(frozen=True, slots=True)
class Finished:
    """``finish()`` ran: the next cut takes the last output, those after it have none."""


@dataclass(frozen=True, slots=True)
class Closing:
    """The job is over for this writer: finish what was permitted, discard what no manifest can name.

    ``published`` is the newest checkpoint whose manifest may be in storage (``Fencing.published``).
    """

    published: int


@dataclass(frozen=True, slots=True)
class Abandoned:
    """The attempt failed and another follows, or a newer owner took over: touch nothing any more."""


Event = (
    Restored
    | Prepared
    | CheckpointCompleted
    | CheckpointAborted
    | CommitAnswered
    | RetryDue
    | Finished
    | Closing
    | Abandoned
)


# ── effects ──────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True)
class Commit:
    """Make these visible → ``CommitAnswered``."""

    checkpoint_id: int
    committables: tuple[Any, ...]
    permit: CommitPermit


@dataclass(frozen=True, slots=True)
class Retry:
    """Wait, then ``RetryDue``.  ``attempt`` counts from 1."""

    checkpoint_id: int
    after_ms: int
    attempt: int


@dataclass(frozen=True, slots=True)
class Fail:
    """The attempt can't go on: committing failed too often.  All stays pending in the latest snapshot."""

    checkpoint_id: int
    reason: str


@dataclass(frozen=True, slots=True)
class Discard:
    """Throw these away: no manifest names them and none ever will."""

    checkpoint_id: int
    committables: tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class Close:
    """Close the writer; nothing follows."""


Effect = Commit | Retry | Fail | Discard | Close


# ── phases ───────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True)
class Idle:
    """Everything that is permitted is committed."""


@dataclass(frozen=True, slots=True)
class Committing:
    """A commit is under way; ``failures`` of it went before.  ``closing`` holds ``published`` once the job is over."""

    checkpoint_id: int
    failures: int
    closing: int | None = None


@dataclass(frozen=True, slots=True)
class Waiting:
    """A commit failed and is tried again after a while."""

    checkpoint_id: int
    failures: int
    closing: int | None = None


@dataclass(frozen=True, slots=True)
class Failed:
    """Committing failed too often."""


@dataclass(frozen=True, slots=True)
class Closed:
    """The writer is closed."""


class TwoPhaseCommit(Machine[Event, Effect]):
    """The prepared output of one sink writer.

    | phase                             | event                               | effects → next phase            |
    |-----------------------------------|-------------------------------------|---------------------------------|
    | Idle                              | Restored                            | – → Idle                        |
    | Idle                              | Restored                            | Commit → Committing             |
    | Idle                              | CheckpointCompleted                 | – → Idle                        |
    | Idle                              | CheckpointCompleted                 | Commit → Committing             |
    | Committing, Waiting, Failed       | CheckpointCompleted                 | – → same                        |
    | Committing                        | CommitAnswered                      | Commit → Committing             |
    | Committing                        | CommitAnswered                      | – → Idle                        |
    | Committing                        | CommitAnswered                      | Retry → Waiting                 |
    | Committing                        | CommitAnswered                      | Fail → Failed                   |
    | Committing                        | CommitAnswered                      | Discard?, Close, Fail? → Closed |
    | Waiting                           | RetryDue                            | Commit → Committing             |
    | Idle, Committing, Waiting, Failed | Prepared, Finished                  | – → same                        |
    | Idle, Committing, Waiting, Failed | CheckpointAborted                   | – → same                        |
    | Idle, Failed                      | Closing                             | Discard?, Close → Closed        |
    | Committing, Waiting               | Closing                             | – → same                        |
    | Idle, Committing, Waiting, Failed | Abandoned                           | Close → Closed                  |
    | Closed                            | CheckpointCompleted, CommitAnswered | – → Closed                      |
    | Closed                            | CheckpointAborted, RetryDue         | – → Closed                      |
    | Closed                            | Closing, Abandoned                  | – → Closed                      |
    """

    __slots__ = (
        "_cuts_left",
        "_first_delay_ms",
        "_last_cut",
        "_longest_delay_ms",
        "_pending",
        "_permit",
        "_retries",
        "_was_restored",
    )
    phase: Idle | Committing | Waiting | Failed | Closed

    def __init__(self, *, retries: int = 10, first_delay_ms: int = 100, longest_delay_ms: int = 10_000) -> None:
        super().__init__(Idle())
        self._retries, self._first_delay_ms, self._longest_delay_ms = retries, first_delay_ms, longest_delay_ms
        self._pending: tuple[Pending, ...] = ()
        self._permit: CommitPermit | None = None
        self._last_cut = 0
        self._cuts_left: int | None = None  # how many may still hold something; None while the writer has no end
        self._was_restored = False

    @property
    def pending(self) -> tuple[Pending, ...]:
        """What a snapshot holds: all that is not known to be committed, in the order in which it will be."""
        return self._pending

    def decide(self, event: Event) -> list[Effect]:
        """Decide; see the table."""
        match self.phase, event:
            case Closed(), Prepared() | Finished() | Restored():
                raise AssertionError(f"the writer is closed and yet {event!r}")
            case Closed(), _:
                return []
            case _, Abandoned():
                self.phase = Closed()
                return [Close()]
            case _, CheckpointAborted():
                return []
            case Committing(closing=int()) | Waiting(closing=int()), Prepared() | Finished():
                raise AssertionError(f"the writer is being closed and yet {event!r}")
            case _, Prepared(checkpoint_id, committables):
                return self._cut(checkpoint_id, committables)
            case _, Finished():
                assert self._cuts_left is None, "a writer finishes once"
                self._cuts_left = 1
                return []
            case Idle(), Restored(pending, permit):
                return self._restore(pending, permit)
            case phase, CheckpointCompleted(permit):
                return self._completed(permit, is_idle=isinstance(phase, Idle))
            case Committing(expected, failures, closing), CommitAnswered(checkpoint_id, reason, is_final):
                assert checkpoint_id == expected, f"checkpoint {expected} is being committed, not {checkpoint_id}"
                if reason is not None and (is_final or failures >= self._retries):
                    return self._fail(checkpoint_id, failures + 1, closing, reason)
                if reason is not None:
                    self.phase = Waiting(checkpoint_id, failures + 1, closing)
                    after_ms = min(self._first_delay_ms << failures, self._longest_delay_ms)
                    return [Retry(checkpoint_id, after_ms, failures + 1)]
                self._pending = self._pending[1:]
                return self._go_on(closing)
            case Waiting(checkpoint_id, failures, closing), RetryDue():
                return self._commit(failures, closing)
            case (Committing() | Waiting()) as busy, Closing(published):
                self.phase = replace(busy, closing=published)
                return []
            case Idle() | Failed(), Closing(published):
                return self._close(published)
        raise AssertionError(f"{type(self.phase).__name__} can't be followed by {event!r}")

    def _restore(self, pending: Iterable[Pending], permit: CommitPermit | None) -> list[Effect]:
        assert not self._was_restored, "an attempt is restored once"
        assert not self._last_cut, "an attempt is restored before anything is cut"
        self._was_restored = True
        if permit is None:
            assert not list(pending), "what a snapshot left comes with the permit of the base"
            return []
        self._permit = permit
        merged: dict[int, tuple[Any, ...]] = {}
        for left in sorted(pending, key=lambda left: left.checkpoint_id):
            # the ids of a snapshot that came by path are somebody else's: here all of it is older than what comes
            filed = min(left.checkpoint_id, permit.checkpoint_id)
            merged[filed] = merged.get(filed, ()) + left.committables
        self._pending = tuple(Pending(number, held) for number, held in merged.items() if held)
        self._last_cut = permit.checkpoint_id
        return self._go_on(None)

    def _cut(self, checkpoint_id: int, committables: tuple[Any, ...]) -> list[Effect]:
        assert checkpoint_id > self._last_cut, f"checkpoint {checkpoint_id} was cut after {self._last_cut}"
        assert self._cuts_left != 0 or not committables, "nothing is written after the last cut"
        if self._cuts_left:
            self._cuts_left = 0
        self._last_cut = checkpoint_id
        if committables:
            self._pending += (Pending(checkpoint_id, committables),)
        return []

    def _completed(self, permit: CommitPermit, *, is_idle: bool) -> list[Effect]:
        """Remember the permit; a later one covers an earlier one, and one that comes late changes nothing."""
        if self._permit is None or permit.checkpoint_id > self._permit.checkpoint_id:
            self._permit = permit
        return self._go_on(None) if is_idle else []

    def _permitted(self) -> bool:
        return (
            bool(self._pending)
            and self._permit is not None
            and self._pending[0].checkpoint_id <= self._permit.checkpoint_id
        )

    def _go_on(self, closing: int | None) -> list[Effect]:
        if self._permitted():
            return self._commit(0, closing)
        if closing is not None:
            return self._close(closing)
        self.phase = Idle()
        return []

    def _commit(self, failures: int, closing: int | None) -> list[Effect]:
        oldest = self._pending[0]
        assert self._permit is not None
        self.phase = Committing(oldest.checkpoint_id, failures, closing)
        return [Commit(oldest.checkpoint_id, oldest.committables, self._permit)]

    def _fail(self, checkpoint_id: int, failures: int, closing: int | None, reason: str) -> list[Effect]:
        times = "failed" if failures == 1 else f"failed {failures} times, the last time"
        sentence = (
            f"committing what was prepared for checkpoint {checkpoint_id} {times} with: {reason}; "
            "it is still prepared, and the next start commits it"
        )
        if closing is not None:
            return [*self._close(closing), Fail(checkpoint_id, sentence)]
        self.phase = Failed()
        return [Fail(checkpoint_id, sentence)]

    def _close(self, published: int) -> list[Effect]:
        """Discard what was cut after the newest checkpoint that a manifest may stand for, and go."""
        self.phase = Closed()
        unnamed = [left for left in self._pending if left.checkpoint_id > published]
        return [*(Discard(left.checkpoint_id, left.committables) for left in unnamed), Close()]

    def check(self) -> None:
        """Nothing is committed without a permit, and the order is that of the checkpoints."""
        assert all(one.checkpoint_id < other.checkpoint_id for one, other in pairwise(self._pending))
        match self.phase:
            case Committing(checkpoint_id) | Waiting(checkpoint_id):
                assert self._permitted(), "nothing is committed without a permit"
                assert self._pending[0].checkpoint_id == checkpoint_id, "the oldest goes first"
            case Idle():
                assert not self._permitted(), "what is permitted is committed"
