"""May a checkpoint start now, and which of those that were asked for?

Requests wait in a bounded queue.  The last checkpoint of a job (final, or of a stop) goes first, then those that are
forced, then those that somebody asked for, then the periodic one, of which never more than one waits: a checkpoint that
takes three intervals is not followed by three more at once.  Slow deletion of old checkpoints throttles new ones.

The period is a fixed rate with a random start, so that many jobs do not keep step.  The minimum pause counts from the
last *completed* checkpoint and binds periodic ones alone.

Whether all actors run, and what becomes of a checkpoint once it started, is the coordinator's business.

Pure: there is one timer, set by an effect; time comes with every event.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

from actorflow.errors import AbortReason
from actorflow.model.elements import CheckpointKind
from actorflow.protocol.machine import Machine

__all__ = (
    "LONGEST_PAUSE_MS",
    "MOST_WAITING",
    "Admission",
    "BacklogChanged",
    "CheckpointEnded",
    "CheckpointRequested",
    "CheckpointStarted",
    "CleanupChanged",
    "Effect",
    "Event",
    "Ready",
    "Reject",
    "Request",
    "SetTimer",
    "Started",
    "Starting",
    "Stopped",
    "Suspended",
    "TimerFired",
    "Trigger",
    "TriggerFailed",
    "Unstarted",
)

MOST_WAITING = 1_000
"""How many requests may wait, unless told otherwise."""

LONGEST_PAUSE_MS = 365 * 24 * 60 * 60 * 1_000
"""A minimum pause of more than a year is taken for a year."""


# ── events ───────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True)
class Started:
    """All actors of the attempt run; ``draw`` from [0, 1) spreads the first trigger."""

    at_ms: int
    draw: float


@dataclass(frozen=True, slots=True)
class Stopped:
    """The job left RUNNING."""

    at_ms: int


@dataclass(frozen=True, slots=True)
class CheckpointRequested:
    """Somebody asks for a checkpoint; ``forced`` ignores how many are under way."""

    request_id: int
    kind: CheckpointKind
    at_ms: int
    forced: bool = False


@dataclass(frozen=True, slots=True)
class TimerFired:
    """The time of the last ``SetTimer`` has come."""

    at_ms: int


@dataclass(frozen=True, slots=True)
class CheckpointStarted:
    """What was triggered has an id and is under way."""

    at_ms: int


@dataclass(frozen=True, slots=True)
class TriggerFailed:
    """What was triggered could not start; it has no id."""

    at_ms: int


@dataclass(frozen=True, slots=True)
class CheckpointEnded:
    """A checkpoint that had started completed or was aborted."""

    completed: bool
    at_ms: int
    kind: CheckpointKind


@dataclass(frozen=True, slots=True)
class BacklogChanged:
    """Whether at least one source works through a backlog."""

    active: bool
    at_ms: int


@dataclass(frozen=True, slots=True)
class CleanupChanged:
    """How many checkpoints are being deleted."""

    pending: int
    at_ms: int


Event = (
    Started
    | Stopped
    | CheckpointRequested
    | TimerFired
    | CheckpointStarted
    | TriggerFailed
    | CheckpointEnded
    | BacklogChanged
    | CleanupChanged
)


# ── effects ──────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True)
class Trigger:
    """Start a checkpoint; answer with ``CheckpointStarted`` or ``TriggerFailed``.  A periodic one has no request id."""

    request_id: int | None
    kind: CheckpointKind


@dataclass(frozen=True, slots=True)
class Reject:
    """Tell whoever asked that it will not start, and why."""

    request_id: int | None
    kind: CheckpointKind
    reason: AbortReason


@dataclass(frozen=True, slots=True)
class SetTimer:
    """Fire at this time, instead of whatever was set before; ``None`` cancels."""

    at_ms: int | None


Effect = Trigger | Reject | SetTimer


# ── phases ───────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True)
class Unstarted:
    """Not all actors run yet."""


@dataclass(frozen=True, slots=True)
class Ready:
    """The next one may start as soon as the rules allow."""


@dataclass(frozen=True, slots=True)
class Starting:
    """One was triggered and its start is not over."""

    kind: CheckpointKind


@dataclass(frozen=True, slots=True)
class Suspended:
    """The job does not run, or has taken its last checkpoint; ``starting`` was triggered before and may still start."""

    starting: CheckpointKind | None = None


@dataclass(frozen=True, slots=True)
class Request:
    """A wish that waits; a periodic one has no id."""

    request_id: int | None
    kind: CheckpointKind
    forced: bool = False

    @property
    def rank(self) -> int:
        """Lower goes first; among equals, who came first."""
        if self.kind in _LAST:
            return 0
        if self.forced:
            return 1
        return 3 if self.kind is CheckpointKind.PERIODIC else 2


_LAST = (CheckpointKind.FINAL, CheckpointKind.STOP)
"""Sources produce nothing behind the barrier of such a checkpoint, so nothing starts beside or after it."""


# ── the machine ──────────────────────────────────────────────────────────────────────────────


class Admission(Machine[Event, Effect]):
    """Which checkpoint starts, and when?

    | phase     | event                                         | effects → next phase                    |
    |-----------|-----------------------------------------------|-----------------------------------------|
    | Unstarted | Started                                       | SetTimer? → Ready                       |
    | Unstarted, Suspended | CheckpointRequested                | Reject → same                           |
    | Unstarted, Suspended | TimerFired, BacklogChanged, CleanupChanged, Stopped | – → same               |
    | Ready     | CheckpointRequested                           | Reject → Ready                          |
    | Ready     | CheckpointRequested                           | Reject?, Trigger → Starting             |
    | Ready     | TimerFired                                    | SetTimer, Reject?, SetTimer? → Ready    |
    | Ready     | TimerFired                                    | SetTimer, Trigger → Starting            |
    | Ready     | CheckpointEnded, CleanupChanged               | Trigger → Starting                      |
    | Ready     | CheckpointEnded, CleanupChanged               | Reject, SetTimer → Ready                |
    | Ready     | CheckpointEnded, Stopped                      | Reject?, SetTimer? → Suspended          |
    | Ready     | BacklogChanged                                | SetTimer → Ready                        |
    | Ready     | CheckpointRequested, TimerFired, CheckpointEnded, CleanupChanged, BacklogChanged | – → Ready |
    | Starting  | CheckpointStarted, TriggerFailed              | Trigger → Starting                      |
    | Starting  | CheckpointStarted, TriggerFailed              | Reject, SetTimer → Ready                |
    | Starting  | CheckpointStarted, TriggerFailed              | – → Ready                               |
    | Starting  | CheckpointRequested                           | Reject → Starting                       |
    | Starting  | TimerFired                                    | SetTimer, Reject? → Starting            |
    | Starting  | BacklogChanged                                | SetTimer → Starting                     |
    | Starting  | CheckpointRequested, TimerFired, CheckpointEnded, CleanupChanged, BacklogChanged | – → Starting |
    | Starting  | Stopped                                       | Reject?, SetTimer? → Suspended          |
    | Suspended | CheckpointStarted, TriggerFailed, CheckpointEnded | – → Suspended                       |
    | Suspended | Started                                       | SetTimer? → Ready                       |
    | Suspended | Started                                       | SetTimer? → Starting                    |
    """

    __slots__ = (
        "cleaning",
        "completed_at_ms",
        "every_during_backlog_ms",
        "every_ms",
        "in_backlog",
        "last_under_way",
        "max_concurrent",
        "min_pause_ms",
        "most_waiting",
        "next_at_ms",
        "queue",
        "under_way",
    )

    phase: Unstarted | Ready | Starting | Suspended

    def __init__(
        self,
        every_ms: int | None,
        min_pause_ms: int = 0,
        max_concurrent: int = 1,
        every_during_backlog_ms: int | None = None,
        most_waiting: int = MOST_WAITING,
    ) -> None:
        super().__init__(Unstarted())
        self.min_pause_ms = min(min_pause_ms, LONGEST_PAUSE_MS)
        self.every_ms = every_ms
        self.every_during_backlog_ms = every_during_backlog_ms
        self.max_concurrent = max_concurrent
        self.most_waiting = most_waiting
        self.queue: list[Request] = []
        self.under_way = 0
        self.last_under_way = 0  # how many of them are FINAL or STOP
        self.cleaning = 0
        self.in_backlog = False
        self.completed_at_ms: int | None = None
        self.next_at_ms: int | None = None  # what the timer is set to

    def decide(self, event: Event) -> list[Effect]:
        match self.phase, event:
            case Unstarted(), Started(at_ms, draw):
                self.phase = Ready()
                return [*self._first_timer(at_ms, draw), *self._next(at_ms)]
            case Suspended(starting), Started(at_ms, draw):
                self.phase = Ready() if starting is None else Starting(starting)
                return [*self._first_timer(at_ms, draw), *self._next(at_ms)]
            case Ready(), Stopped():
                return self._suspend(None)
            case Starting(kind), Stopped():
                return self._suspend(kind)
            case _, Stopped():
                return []

            case Unstarted(), CheckpointRequested(request_id, kind):
                return [Reject(request_id, kind, AbortReason.NOT_ALL_RUNNING)]
            case Suspended(), CheckpointRequested(request_id, kind):
                return [Reject(request_id, kind, AbortReason.COORDINATOR_SUSPENDED)]
            case _, CheckpointRequested(request_id, kind, at_ms, forced):
                return [*self._enqueue(Request(request_id, kind, forced)), *self._next(at_ms)]
            case _, TimerFired(at_ms):
                return self._fired(at_ms)

            case Starting(kind), CheckpointStarted(at_ms):
                self._began(kind)
                self.phase = Ready()
                return self._next(at_ms)
            case Starting(), TriggerFailed(at_ms):
                self.phase = Ready()
                return self._next(at_ms)
            case Suspended(kind), CheckpointStarted() if kind is not None:
                self._began(kind)
                self.phase = Suspended()
                return []
            case Suspended(kind), TriggerFailed() if kind is not None:
                self.phase = Suspended()
                return []
            case _, CheckpointEnded(completed, at_ms, kind):
                return self._ended(completed, at_ms, kind)

            case _, BacklogChanged(active, at_ms):
                return self._backlog(active, at_ms)
            case _, CleanupChanged(pending, at_ms):
                self.cleaning = pending
                return self._next(at_ms)
        raise AssertionError(f"{event!r} can't happen in {self.phase!r}")

    # ── the period ───────────────────────────────────────────────────────────────────────────

    @property
    def interval_ms(self) -> int | None:
        """The time from one periodic trigger to the next, as things are; ``None``: there are no periodic ones."""
        every_ms = self.every_ms
        if every_ms is not None and self.in_backlog and self.every_during_backlog_ms is not None:
            every_ms = self.every_during_backlog_ms or None
        return None if every_ms is None else max(every_ms, self.min_pause_ms, 1)

    def _first_timer(self, at_ms: int, draw: float) -> list[Effect]:
        assert 0 <= draw < 1, f"a draw is from [0, 1), not {draw}"
        if self.every_ms is None:
            return []
        widest_ms = max(self.every_ms, self.min_pause_ms, 1) - self.min_pause_ms
        return self._set_timer(at_ms + self.min_pause_ms + int(draw * (widest_ms + 1)))

    def _set_timer(self, at_ms: int | None) -> list[Effect]:
        self.next_at_ms = at_ms
        return [SetTimer(at_ms)]

    def _fired(self, at_ms: int) -> list[Effect]:
        if self.next_at_ms is None:
            return []
        if at_ms < self.next_at_ms:
            return [SetTimer(self.next_at_ms)]  # a replaced timer, or one that came too early: never lose the real one
        interval_ms = self.interval_ms
        if interval_ms is None:
            self.next_at_ms = None  # in a backlog that wants none; its end sets the timer again
            return []
        # A fixed rate.  Periods that passed unnoticed are one request, just as requests that wait are.
        missed = (at_ms - self.next_at_ms) // interval_ms
        timer = self._set_timer(self.next_at_ms + (missed + 1) * interval_ms)
        return [*timer, *self._enqueue(Request(None, CheckpointKind.PERIODIC)), *self._next(at_ms)]

    def _backlog(self, active: bool, at_ms: int) -> list[Effect]:
        self.in_backlog = active
        interval_ms = self.interval_ms
        if active or interval_ms is None or isinstance(self.phase, (Unstarted, Suspended)):
            return []
        if self.next_at_ms is not None and self.next_at_ms <= at_ms + interval_ms:
            return []
        return self._set_timer(at_ms + interval_ms)

    # ── the queue ────────────────────────────────────────────────────────────────────────────

    def _enqueue(self, request: Request) -> list[Effect]:
        if request.kind is CheckpointKind.PERIODIC and any(one.kind is CheckpointKind.PERIODIC for one in self.queue):
            return [_rejected(request, AbortReason.ALREADY_IN_PROGRESS)]
        place = len(self.queue)
        while place > 0 and self.queue[place - 1].rank > request.rank:
            place -= 1
        self.queue.insert(place, request)
        if len(self.queue) <= self.most_waiting:
            return []
        # One has to go: the newcomer, unless it is the job's last or a periodic one waits.
        last = self.queue[-1]
        loser = last if last.kind is CheckpointKind.PERIODIC or request.rank == 0 else request
        self.queue.remove(loser)
        return [_rejected(loser, AbortReason.TOO_MANY_REQUESTS)]

    def _next(self, at_ms: int) -> list[Effect]:
        """Look at the head of the queue: may it start?"""
        effects: list[Effect] = []
        while self.queue and isinstance(self.phase, Ready) and not self.last_under_way:
            head = self.queue[0]
            if self.cleaning > self.max_concurrent:
                break
            if self.under_way >= self.max_concurrent and not head.forced:
                break
            del self.queue[0]
            if head.kind is CheckpointKind.PERIODIC and self.completed_at_ms is not None:
                earliest_ms = self.completed_at_ms + self.min_pause_ms
                if at_ms < earliest_ms:
                    effects += [_rejected(head, AbortReason.MINIMUM_PAUSE), *self._set_timer(earliest_ms)]
                    continue
            self.phase = Starting(head.kind)
            effects.append(Trigger(head.request_id, head.kind))
        return effects

    # ── what becomes of them ─────────────────────────────────────────────────────────────────

    def _began(self, kind: CheckpointKind) -> None:
        self.under_way += 1
        self.last_under_way += kind in _LAST

    def _ended(self, completed: bool, at_ms: int, kind: CheckpointKind) -> list[Effect]:
        assert self.under_way > 0, "a checkpoint ended that never started"
        self.under_way -= 1
        self.last_under_way -= kind in _LAST
        if completed:
            self.completed_at_ms = at_ms
            if kind in _LAST and not isinstance(self.phase, Suspended):
                assert isinstance(self.phase, Ready), "something starts beside the last checkpoint"
                return self._suspend(None)
        return self._next(at_ms)

    def _suspend(self, starting: CheckpointKind | None) -> list[Effect]:
        self.phase = Suspended(starting)
        effects: list[Effect] = [_rejected(request, AbortReason.COORDINATOR_SUSPENDED) for request in self.queue]
        self.queue.clear()
        return [*effects, *(self._set_timer(None) if self.next_at_ms is not None else [])]

    def check(self) -> None:
        assert 0 <= self.last_under_way <= self.under_way, "more of the last kind under way than there are"
        assert len(self.queue) <= self.most_waiting
        assert all(one.rank <= later.rank for one, later in pairwise(self.queue)), "the queue is out of order"
        assert sum(one.kind is CheckpointKind.PERIODIC for one in self.queue) <= 1
        if isinstance(self.phase, (Unstarted, Suspended)):
            assert not self.queue, "somebody waits for what will not happen"
            assert self.next_at_ms is None
        if isinstance(self.phase, Starting):
            assert not self.last_under_way, "nothing starts beside the last checkpoint"


def _rejected(request: Request, reason: AbortReason) -> Reject:
    return Reject(request.request_id, request.kind, reason)
