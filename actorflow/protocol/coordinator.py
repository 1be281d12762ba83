"""What becomes of a checkpoint: does it complete, or is it aborted, and what does that mean for the others and the job?

A checkpoint completes when every actor that was told of it has acknowledged and its manifest is in storage.  One
manifest is written at a time, so completed ids increase.  Then the checkpoints that are too many are subsumed, older
ones that are still under way are aborted, and everyone is told.  The time that a checkpoint may take counts from its
trigger and ends with the last acknowledgement: from then on its manifest decides.

A failure that counts (``AbortReason.counts``) more often in a row than is tolerated ends the attempt.

Nothing is deleted that a manifest may name: not when it is unknown whether the manifest was written, not when the
attempt ends while it is on its way, and never by one who was fenced.

Pure: ids are handed out here, time comes with the events, and files are deleted by whoever carries out the effects.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from actorflow.config.policies import Ending, Retention
from actorflow.errors import AbortReason
from actorflow.model.elements import Alignment, Barrier, CheckpointKind
from actorflow.model.ids import ActorId
from actorflow.protocol.machine import Machine

__all__ = (
    "MOST_REMEMBERED_DOUBTS",
    "Acknowledged",
    "AttemptEnded",
    "CheckpointCoordinator",
    "Collecting",
    "Declined",
    "DiscardAck",
    "DiscardPieces",
    "Effect",
    "Ended",
    "Event",
    "FailAttempt",
    "Idle",
    "ManifestFailed",
    "ManifestWritten",
    "NotifyAborted",
    "NotifyCompleted",
    "Pending",
    "PlaceTaken",
    "Publishing",
    "SendBarriers",
    "SetTimeout",
    "Subsume",
    "TimedOut",
    "TriggerFailed",
    "Triggered",
    "WriteManifest",
    "kept_on",
)

MOST_REMEMBERED_DOUBTS = 64
"""How many checkpoints are remembered of which nobody knows whether their manifest was written."""


def kept_on(retention: Retention, ending: Ending) -> bool:
    """Whether a completed checkpoint is kept when this happens to it or to its job (semantics 3.7)."""
    return retention.keeps(ending)


# ── events ───────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True)
class Triggered:
    """A checkpoint starts now; ``expected`` are the actors that have to acknowledge it."""

    kind: CheckpointKind
    expected: tuple[ActorId, ...]
    at_ms: int


@dataclass(frozen=True, slots=True)
class TriggerFailed:
    """A checkpoint could not start; it has no id."""

    reason: AbortReason
    kind: CheckpointKind = CheckpointKind.PERIODIC


@dataclass(frozen=True, slots=True)
class Acknowledged:
    """An actor's snapshot is durable."""

    checkpoint_id: int
    actor: ActorId


@dataclass(frozen=True, slots=True)
class Declined:
    """No snapshot will come from an actor."""

    checkpoint_id: int
    actor: ActorId
    reason: AbortReason
    detail: str = ""


@dataclass(frozen=True, slots=True)
class TimedOut:
    """The time of ``SetTimeout`` has come."""

    checkpoint_id: int


@dataclass(frozen=True, slots=True)
class ManifestWritten:
    """The manifest is in storage and may be acted upon."""

    checkpoint_id: int


@dataclass(frozen=True, slots=True)
class ManifestFailed:
    """The manifest is not in storage, or (``MANIFEST_IN_DOUBT``) nobody knows; or we may not publish (``FENCED``)."""

    checkpoint_id: int
    reason: AbortReason
    detail: str = ""


@dataclass(frozen=True, slots=True)
class PlaceTaken:
    """An older generation's manifest stands where this one was to be written."""

    checkpoint_id: int


@dataclass(frozen=True, slots=True)
class AttemptEnded:
    """The actors are gone, or about to be."""

    reason: AbortReason


Event = (
    Triggered
    | TriggerFailed
    | Acknowledged
    | Declined
    | TimedOut
    | ManifestWritten
    | ManifestFailed
    | PlaceTaken
    | AttemptEnded
)


# ── effects ──────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True)
class SetTimeout:
    """Say ``TimedOut`` at this time, if the checkpoint is still under way then."""

    checkpoint_id: int
    at_ms: int


@dataclass(frozen=True, slots=True)
class SendBarriers:
    """Hand the barrier to every source."""

    barrier: Barrier
    at_ms: int


@dataclass(frozen=True, slots=True)
class WriteManifest:
    """Write the manifest; ``retained`` are the ids that are kept once it is there, oldest first, itself the last."""

    checkpoint_id: int
    kind: CheckpointKind
    retained: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Subsume:
    """Delete a completed checkpoint: enough newer ones are kept."""

    checkpoint_id: int


@dataclass(frozen=True, slots=True)
class NotifyCompleted:
    """Tell everyone that the checkpoint, and all before it, completed; ``subsumed`` is the newest that is deleted."""

    checkpoint_id: int
    subsumed: int | None
    kind: CheckpointKind


@dataclass(frozen=True, slots=True)
class NotifyAborted:
    """Tell everyone that the checkpoint will not complete."""

    checkpoint_id: int
    reason: AbortReason
    latest_completed: int | None
    kind: CheckpointKind
    detail: str = ""


@dataclass(frozen=True, slots=True)
class DiscardPieces:
    """Delete what actors acknowledged for an aborted checkpoint, as far as no other checkpoint shares it."""

    checkpoint_id: int


@dataclass(frozen=True, slots=True)
class DiscardAck:
    """Delete what came with an acknowledgement that nobody waits for, as far as no other checkpoint shares it."""

    checkpoint_id: int
    actor: ActorId


@dataclass(frozen=True, slots=True)
class FailAttempt:
    """End the attempt: more checkpoints in a row failed than are tolerated."""

    reason: AbortReason
    detail: str = ""


Effect = (
    SetTimeout
    | SendBarriers
    | WriteManifest
    | Subsume
    | NotifyCompleted
    | NotifyAborted
    | DiscardPieces
    | DiscardAck
    | FailAttempt
)


# ── phases ───────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True)
class Pending:
    """A checkpoint under way."""

    checkpoint_id: int
    kind: CheckpointKind
    expected: tuple[ActorId, ...]
    awaited: tuple[ActorId, ...]


@dataclass(frozen=True, slots=True)
class Idle:
    """Nothing is under way."""


@dataclass(frozen=True, slots=True)
class Collecting:
    """Acknowledgements are awaited; oldest first."""

    pending: tuple[Pending, ...]


@dataclass(frozen=True, slots=True)
class Publishing:
    """The manifest of ``checkpoint_id``, one of those pending, is being written."""

    checkpoint_id: int
    pending: tuple[Pending, ...]


@dataclass(frozen=True, slots=True)
class Ended:
    """The attempt is over."""

    reason: AbortReason


# ── the machine ──────────────────────────────────────────────────────────────────────────────


class CheckpointCoordinator(Machine[Event, Effect]):
    """One attempt's checkpoints: what becomes of each?

    | phase                              | event                | effects → next phase                        |
    |------------------------------------|----------------------|---------------------------------------------|
    | Idle, Collecting                   | Triggered            | SetTimeout, SendBarriers → Collecting       |
    | Publishing                         | Triggered            | SetTimeout, SendBarriers → Publishing       |
    | Idle, Collecting, Publishing       | TriggerFailed        | FailAttempt? → same                         |
    | Idle, Collecting, Publishing, Ended | Acknowledged        | DiscardAck? → same                          |
    | Collecting                         | Acknowledged         | WriteManifest → Publishing                  |
    | Collecting   | Declined, TimedOut         | NotifyAborted, DiscardPieces?, FailAttempt? → Idle          |
    | Collecting   | Declined, TimedOut         | NotifyAborted, DiscardPieces?, FailAttempt? → Collecting    |
    | Publishing   | Declined, TimedOut         | NotifyAborted, DiscardPieces?, FailAttempt? → Publishing    |
    | Idle, Collecting, Publishing       | Declined, TimedOut   | – → same                                    |
    | Publishing   | ManifestWritten | Subsume?, NotifyAborted?, DiscardPieces?, NotifyCompleted → Idle       |
    | Publishing   | ManifestWritten | Subsume?, NotifyAborted?, DiscardPieces?, NotifyCompleted → Collecting |
    | Publishing | ManifestWritten | Subsume?, NotifyAborted?, DiscardPieces?, NotifyCompleted, WriteManifest → same |
    | Publishing   | ManifestFailed             | NotifyAborted, DiscardPieces?, FailAttempt? → Idle          |
    | Publishing   | ManifestFailed             | NotifyAborted, DiscardPieces?, FailAttempt? → Collecting    |
    | Publishing   | ManifestFailed | NotifyAborted, DiscardPieces?, FailAttempt?, WriteManifest → Publishing |
    | Publishing   | ManifestFailed             | NotifyAborted → Ended                                       |
    | Publishing   | PlaceTaken                 | NotifyAborted, DiscardPieces → Idle                         |
    | Publishing   | PlaceTaken                 | NotifyAborted, DiscardPieces → Collecting                   |
    | Publishing   | PlaceTaken                 | NotifyAborted, DiscardPieces, WriteManifest → Publishing    |
    | Idle                               | AttemptEnded         | – → Ended                                   |
    | Collecting, Publishing             | AttemptEnded         | NotifyAborted, DiscardPieces? → Ended       |
    | Ended | TriggerFailed, Declined, TimedOut, ManifestWritten, ManifestFailed, PlaceTaken, AttemptEnded | – → Ended |
    """

    __slots__ = (
        "alignment",
        "completed",
        "failures",
        "in_doubt",
        "next_id",
        "retained",
        "timeout_ms",
        "tolerable_failures",
    )

    phase: Idle | Collecting | Publishing | Ended

    def __init__(
        self,
        next_id: int,
        retained: int,
        tolerable_failures: int | None,
        timeout_ms: int,
        completed: Sequence[int] = (),
        alignment: Alignment = Alignment.ALIGNED,
    ) -> None:
        super().__init__(Idle())
        assert retained >= 1, "the latest checkpoint is always kept"
        assert next_id > max(completed, default=0), "INV-3.3: an id is never used twice"
        self.next_id = next_id
        self.retained = retained
        self.tolerable_failures = tolerable_failures
        self.timeout_ms = timeout_ms
        self.completed = sorted(completed)
        self.alignment = alignment
        self.failures = 0  # those that counted, in a row
        self.in_doubt: deque[int] = deque(maxlen=MOST_REMEMBERED_DOUBTS)

    @property
    def pending(self) -> tuple[Pending, ...]:
        """What is under way, oldest first."""
        return self.phase.pending if isinstance(self.phase, (Collecting, Publishing)) else ()

    @property
    def latest_completed(self) -> int | None:
        """The newest completed checkpoint, if there is one."""
        return self.completed[-1] if self.completed else None

    def decide(self, event: Event) -> list[Effect]:
        match self.phase, event:
            case Ended(reason), Acknowledged(checkpoint_id, actor):
                return [] if reason is AbortReason.FENCED else self._late(checkpoint_id, actor)
            case Ended(), (
                TriggerFailed() | Declined() | TimedOut() | ManifestWritten() | ManifestFailed() | PlaceTaken()
            ):
                return []
            case Ended(), AttemptEnded():
                return []

            case ((Idle() | Collecting() | Publishing()), Triggered(kind, expected, at_ms)):
                return self._begin(kind, expected, at_ms)
            case _, TriggerFailed(reason, kind):
                return self._count(reason, kind, "")
            case _, Acknowledged(checkpoint_id, actor):
                return self._acknowledge(checkpoint_id, actor)
            case _, Declined(checkpoint_id, actor, reason, detail):
                one = self._find(checkpoint_id)
                if one is None or actor not in one.awaited:
                    return []
                return self._abort(one, reason, f"{actor}: {detail}" if detail else str(actor))
            case _, TimedOut(checkpoint_id):
                one = self._find(checkpoint_id)
                if one is None or not one.awaited:
                    return []  # what everyone acknowledged in time is for its manifest to decide
                return self._abort(one, AbortReason.EXPIRED, f"not yet acknowledged: {_names(one.awaited)}")

            case Publishing(publishing), ManifestWritten(checkpoint_id) if publishing == checkpoint_id:
                return self._complete(checkpoint_id)
            case Publishing(publishing), ManifestFailed(checkpoint_id, reason, detail) if publishing == checkpoint_id:
                if reason is AbortReason.FENCED:
                    return self._end(reason)
                return self._unpublished(checkpoint_id, reason, detail)
            case Publishing(publishing), PlaceTaken(checkpoint_id) if publishing == checkpoint_id:
                return self._unpublished(checkpoint_id, AbortReason.MANIFEST_PLACE_TAKEN, "")
            case _, AttemptEnded(reason):
                return self._end(reason)
        raise AssertionError(f"{event!r} can't happen in {self.phase!r}")

    # ── under way ────────────────────────────────────────────────────────────────────────────

    def _begin(self, kind: CheckpointKind, expected: tuple[ActorId, ...], at_ms: int) -> list[Effect]:
        assert expected, "a checkpoint that nobody is to acknowledge"
        checkpoint_id = self.next_id
        self.next_id += 1
        self._hold((*self.pending, Pending(checkpoint_id, kind, expected, expected)))
        return [
            SetTimeout(checkpoint_id, at_ms + self.timeout_ms),  # INV-3.9: from here, not from the first barrier
            SendBarriers(Barrier(checkpoint_id, kind, self.alignment), at_ms),
        ]

    def _acknowledge(self, checkpoint_id: int, actor: ActorId) -> list[Effect]:
        one = self._find(checkpoint_id)
        if one is None or actor not in one.expected:
            return self._late(checkpoint_id, actor)
        if actor not in one.awaited:
            return []  # said twice; what it wrote is part of the checkpoint
        acknowledged = replace(one, awaited=tuple(other for other in one.awaited if other != actor))
        self._hold(tuple(acknowledged if other is one else other for other in self.pending))
        return self._publish()

    def _late(self, checkpoint_id: int, actor: ActorId) -> list[Effect]:
        """Nobody waits for it: what it wrote goes, unless a manifest may name it."""
        if checkpoint_id in self.completed or checkpoint_id in self.in_doubt:
            return []
        return [DiscardAck(checkpoint_id, actor)]

    def _publish(self) -> list[Effect]:
        """Write the manifest of the newest checkpoint that everyone acknowledged, unless one is on its way."""
        ready = [one for one in self.pending if not one.awaited]
        if not ready or isinstance(self.phase, Publishing):
            return []
        newest = ready[-1]
        self.phase = Publishing(newest.checkpoint_id, self.pending)
        retained = (*self.completed, newest.checkpoint_id)[-self.retained :]
        return [WriteManifest(newest.checkpoint_id, newest.kind, retained)]

    def _hold(self, pending: tuple[Pending, ...]) -> None:
        """Replace what is under way; a manifest that is on its way stays so while its checkpoint is among them."""
        publishing = self.phase.checkpoint_id if isinstance(self.phase, Publishing) else None
        if any(one.checkpoint_id == publishing for one in pending):
            assert publishing is not None
            self.phase = Publishing(publishing, pending)
        else:
            self.phase = Collecting(pending) if pending else Idle()

    def _find(self, checkpoint_id: int) -> Pending | None:
        return next((one for one in self.pending if one.checkpoint_id == checkpoint_id), None)

    # ── the ends ─────────────────────────────────────────────────────────────────────────────

    def _complete(self, checkpoint_id: int) -> list[Effect]:
        older = tuple(one for one in self.pending if one.checkpoint_id < checkpoint_id)
        [itself] = (one for one in self.pending if one.checkpoint_id == checkpoint_id)
        self._hold(tuple(one for one in self.pending if one.checkpoint_id > checkpoint_id))
        self.failures = 0
        self.completed.append(checkpoint_id)
        subsumed = self.completed[: -self.retained]
        del self.completed[: -self.retained]
        effects: list[Effect] = [Subsume(one) for one in subsumed]
        # With the older ones gone, no failure of an id older than the last success is left to be counted.
        effects += self._tell_aborted(older, AbortReason.SUBSUMED, "")
        effects.append(NotifyCompleted(checkpoint_id, subsumed[-1] if subsumed else None, itself.kind))
        return [*effects, *self._publish()]

    def _unpublished(self, checkpoint_id: int, reason: AbortReason, detail: str) -> list[Effect]:
        [one] = (one for one in self.pending if one.checkpoint_id == checkpoint_id)
        if reason is AbortReason.MANIFEST_IN_DOUBT:
            self.in_doubt.append(checkpoint_id)
        return self._abort(one, reason, detail)

    def _abort(self, one: Pending, reason: AbortReason, detail: str) -> list[Effect]:
        self._hold(tuple(other for other in self.pending if other is not one))
        told = self._tell_aborted((one,), reason, detail)
        return [*told, *self._count(reason, one.kind, detail), *self._publish()]

    def _tell_aborted(self, aborted: tuple[Pending, ...], reason: AbortReason, detail: str) -> list[Effect]:
        latest = self.latest_completed
        told: list[Effect] = [NotifyAborted(one.checkpoint_id, reason, latest, one.kind, detail) for one in aborted]
        if reason is AbortReason.FENCED:
            return told  # whoever was fenced deletes nothing
        begun = (one for one in aborted if one.awaited != one.expected and one.checkpoint_id not in self.in_doubt)
        return [*told, *(DiscardPieces(one.checkpoint_id) for one in begun)]

    def _count(self, reason: AbortReason, kind: CheckpointKind, detail: str) -> list[Effect]:
        """Count a failure; the last checkpoint of a stop never does, because the job goes on when it fails."""
        if self.tolerable_failures is None or not reason.counts or kind is CheckpointKind.STOP:
            return []
        self.failures += 1
        if self.failures <= self.tolerable_failures:
            return []
        self.failures = 0
        return [FailAttempt(reason, detail)]

    def _end(self, reason: AbortReason) -> list[Effect]:
        pending = self.pending
        if isinstance(self.phase, Publishing):
            self.in_doubt.append(self.phase.checkpoint_id)  # its manifest may yet turn up, and then names these pieces
        self.phase = Ended(reason)
        return self._tell_aborted(pending, reason, "")

    def check(self) -> None:
        ids = [*self.completed, *(one.checkpoint_id for one in self.pending), self.next_id]
        assert all(one < later for one, later in pairwise(ids)), f"INV-3.3: ids strictly increase, not {ids}"
        assert self.tolerable_failures is None or self.failures <= self.tolerable_failures
        for one in self.pending:
            assert all(actor in one.expected for actor in one.awaited)
        match self.phase:
            case Collecting(pending):
                assert pending, "nothing is collected"
                assert all(one.awaited for one in pending), "everyone acknowledged and no manifest is written"
            case Publishing(checkpoint_id):
                one_published = self._find(checkpoint_id)
                assert one_published is not None, "a manifest of nothing"
                assert not one_published.awaited, "complete ⇔ every expected actor acknowledged"


def _names(actors: tuple[ActorId, ...], at_most: int = 3) -> str:
    more = len(actors) - at_most
    return ", ".join(str(actor) for actor in actors[:at_most]) + (f" and {more} more" if more > 0 else "")
