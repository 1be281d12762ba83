"""Drives admission and coordinator: one attempt's checkpoints, from the request to the commit.

The machines decide; here their effects are carried out: barriers are handed to the sources, acknowledgements
collected, the manifest written and published under the fence, actors told, old files deleted.  Timers only put an
event into a queue, so that everything that can fail fails inside the attempt's task group.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Coroutine
from datetime import timedelta
from functools import partial
from typing import Any

import anyio

from actorflow.abc.objects import ObjectStore
from actorflow.abc.world import World
from actorflow.config import Guarantee, Settings, milliseconds
from actorflow.dataflow.plan import Plan
from actorflow.errors import AbortReason, ActorflowError, CheckpointAborted, Fenced, InvalidValue, StorageFailed
from actorflow.model import journal
from actorflow.model.codec import Codec
from actorflow.model.elements import Alignment, CheckpointKind
from actorflow.model.ids import ActorId
from actorflow.model.key_groups import SCHEME
from actorflow.model.manifest import Manifest, OperatorSnapshot, SubtaskSnapshot
from actorflow.protocol import admission, coordinator
from actorflow.protocol.fencing import CommitPermit
from actorflow.protocol.lifecycle import JobStatus
from actorflow.protocol.machine import Machine
from actorflow.runtime.actor import Actor, CheckpointDone, Inject
from actorflow.runtime.collector import Collector
from actorflow.runtime.handle import CheckpointInfo
from actorflow.runtime.mailbox import Signal
from actorflow.runtime.ownership import Begin, Ownership, Permitted, Refused, Taken
from actorflow.runtime.pace import Duty, Meter
from actorflow.runtime.sheltered import Spawn
from actorflow.runtime.snapshots import ActorSnapshot, Instant, write_behind

__all__ = ("Checkpointing",)

FINAL_AGAIN_MS = 500
"""How long a final checkpoint that failed, and was tolerated, waits before it is tried again."""


class _Pending:
    """What is known of a checkpoint under way, beside what its machine knows."""

    def __init__(self, kind: CheckpointKind, at_ms: int, requests: list[int]) -> None:
        self.kind, self.at_ms, self.requests = kind, at_ms, requests
        self.acknowledged: dict[ActorId, ActorSnapshot] = {}
        self.scopes: dict[ActorId, anyio.CancelScope] = {}
        self.committed: set[ActorId] = set()


class Checkpointing:
    """The checkpoints of one attempt; also whom the actors report to."""

    def __init__(
        self,
        *,
        plan: Plan,
        settings: Settings,
        world: World,
        store: ObjectStore,
        ownership: Ownership,
        begin: Begin,
        codec: Codec,
        spawn: Spawn,
        deliver: Callable[[CheckpointDone], None],
        inject: Callable[[Inject], None],
        on_completed: Callable[[CheckpointInfo], None],
        on_final: Callable[[CheckpointKind], None],
        on_failed: Callable[[BaseException], None],
        go: Callable[[JobStatus], None],
        collector: Collector | None = None,
    ) -> None:
        checkpoints = settings.checkpoints
        self._plan, self._settings, self._world, self._store = plan, settings, world, store
        self._ownership, self._begin, self._codec, self._spawn = ownership, begin, codec, spawn
        self._deliver, self._inject = deliver, inject
        self._on_completed, self._on_final, self._on_failed, self._go = on_completed, on_final, on_failed, go
        self._admission = admission.Admission(
            every_ms=_ms(checkpoints.every),
            min_pause_ms=milliseconds(checkpoints.min_pause),
            max_concurrent=checkpoints.max_concurrent,
            every_during_backlog_ms=_ms(checkpoints.every_during_backlog),
        )
        self._coordinator = coordinator.CheckpointCoordinator(
            next_id=begin.next_id,
            retained=checkpoints.retained,
            tolerable_failures=checkpoints.tolerable_failures,
            timeout_ms=milliseconds(checkpoints.timeout),
            completed=begin.retained,
            alignment=Alignment.ALIGNED if checkpoints.guarantee is Guarantee.EXACTLY_ONCE else Alignment.AT_LEAST_ONCE,
        )
        self._duty, self._collector = Duty(world.clock), collector
        self._actors: dict[ActorId, Actor] = {}
        self._pending: dict[int, _Pending] = {}
        self._waiters: dict[int, list[asyncio.Future[CheckpointInfo]]] = {}
        self._next_request = 1
        self._timer: asyncio.TimerHandle | None = None
        self._timeouts: dict[int, asyncio.TimerHandle] = {}
        self._events: deque[Callable[[], None]] = deque()
        self._signal = Signal()
        self._permit: CommitPermit | None = None
        self._ended: set[ActorId] = set()
        self._final: int | None = None
        self._final_requested = False
        self._stop_request: int | None = None
        self._final_commits: set[ActorId] = set()
        self._final_kind = CheckpointKind.FINAL
        self._cleaning = self._working_on_files = 0
        self._files_settled = Signal()
        self._discarded: dict[int, None] = {}
        self._stopped = False
        self._began_ms = world.clock.now_ms()
        self._last_completed: CheckpointInfo | None = None
        self._last_abort = ""
        self.completed_count = self.failed_count = 0

    def machines(self) -> list[tuple[str, Machine[Any, Any]]]:
        """What decides here, by name."""
        return [("admission", self._admission), ("coordinator", self._coordinator)]

    # ── life ─────────────────────────────────────────────────────────────────────────────────

    def start(self, actors: dict[ActorId, Actor]) -> None:
        """All actors run: checkpoints may begin."""
        self._actors = actors
        self._spawn(self._run, name="checkpointing")
        draw = self._world.entropy.uniform("first checkpoint")
        self._admit(admission.Started(at_ms=self._now(), draw=draw))
        self._request_final_when_ended()

    def stop(self, reason: AbortReason) -> None:
        """The attempt is over: what was under way is aborted, nothing starts any more, and whoever waits is told.

        The pieces of what was under way stay where they are; the next attempt, or the end of the job, sweeps them.
        """
        self._stopped = True
        for timer in (self._timer, *self._timeouts.values()):
            if timer is not None:
                timer.cancel()
        for effect in self._coordinator.on(coordinator.AttemptEnded(reason)):
            if isinstance(effect, coordinator.NotifyAborted):
                pending = self._pending.pop(effect.checkpoint_id)
                self._note_aborted(effect.checkpoint_id, pending, reason, "")
        for request_id in list(self._waiters):
            self._settle(request_id, CheckpointAborted(reason))

    async def files_settled(self) -> None:
        """Return when what is being deleted is gone."""
        while self._working_on_files:
            await self._files_settled.wait()

    async def _run(self) -> None:
        while True:
            while self._events:
                self._events.popleft()()
            await self._signal.wait()

    def _later(self, delay_ms: int, function: Callable[[], None]) -> asyncio.TimerHandle:
        def due() -> None:
            self._events.append(function)
            self._signal.set()

        return asyncio.get_running_loop().call_later(max(0, delay_ms) / 1_000, due)

    def _now(self) -> int:
        return self._world.clock.now_ms()

    def _announce(self, entry: journal.Entry) -> None:
        self._world.observer.announce(entry)

    # ── requests ─────────────────────────────────────────────────────────────────────────────

    async def request(self, kind: CheckpointKind) -> CheckpointInfo:
        """Ask for a checkpoint and wait for it."""
        if kind is CheckpointKind.STOP and self._final is not None and self._last_completed is not None:
            return self._last_completed
        if self._stopped or not self._actors:
            raise CheckpointAborted(AbortReason.COORDINATOR_SUSPENDED)
        request_id = self._stop_request if kind is CheckpointKind.STOP else None
        is_new = request_id is None  # one last checkpoint answers everybody who asks for it
        if request_id is None:
            request_id = self._next_request
            self._next_request += 1
        waiter: asyncio.Future[CheckpointInfo] = asyncio.get_running_loop().create_future()
        self._waiters.setdefault(request_id, []).append(waiter)
        if is_new:
            if kind is CheckpointKind.STOP:
                self._go(JobStatus.STOPPING)
                self._stop_request = request_id
            self._announce(journal.CheckpointRequested(kind=kind.value))
            self._admit(admission.CheckpointRequested(request_id, kind, self._now()))
        return await waiter

    def _go_on_after_stop(self) -> None:
        """The last checkpoint of a stop failed: the job goes on, whether or not anybody still waits for that stop."""
        self._stop_request = None
        if not self._stopped:
            self._go(JobStatus.RUNNING)
            self._request_final_when_ended()

    def _admit(self, event: admission.Event) -> None:
        if self._stopped:
            return
        for effect in self._admission.on(event):
            match effect:
                case admission.SetTimer(at_ms):
                    if self._timer is not None:
                        self._timer.cancel()
                        self._timer = None
                    if at_ms is not None:
                        self._timer = self._later(
                            at_ms - self._now(), lambda: self._admit(admission.TimerFired(self._now()))
                        )
                case admission.Reject(request_id, kind, reason):
                    if reason is not AbortReason.ALREADY_IN_PROGRESS:  # one that waits stands for all that follow
                        self._announce(journal.CheckpointRejected(kind=kind.value, reason=reason.name))
                    self._settle(request_id, CheckpointAborted(reason))
                    if kind is CheckpointKind.STOP:
                        self._go_on_after_stop()
                case admission.Trigger(request_id, kind):
                    self._trigger(request_id, kind)
                case _:  # pragma: no cover
                    raise AssertionError(f"can't carry out {effect!r}")

    def _settle(self, request_id: int | None, result: CheckpointInfo | CheckpointAborted) -> None:
        for waiter in self._waiters.pop(request_id, ()) if request_id is not None else ():
            if waiter.done():
                continue  # whoever asked has gone
            if isinstance(result, CheckpointAborted):
                waiter.set_exception(result)
                waiter.exception()  # looked at, also when whoever asked goes before hearing it
            else:
                waiter.set_result(result)

    def _trigger(self, request_id: int | None, kind: CheckpointKind) -> None:
        at_ms = self._now()
        self._starting = _Pending(kind, at_ms, [] if request_id is None else [request_id])
        self._coordinate(coordinator.Triggered(kind, tuple(sorted(self._actors)), at_ms))
        self._admit(admission.CheckpointStarted(self._now()))

    # ── what the coordinator wants done ──────────────────────────────────────────────────────

    def _coordinate(self, event: coordinator.Event) -> None:
        if self._stopped:
            return
        for effect in self._coordinator.on(event):
            match effect:
                case coordinator.SetTimeout(checkpoint_id, at_ms):
                    expired = partial(self._coordinate, coordinator.TimedOut(checkpoint_id))
                    self._timeouts[checkpoint_id] = self._later(at_ms - self._now(), expired)
                case coordinator.SendBarriers(barrier, _):
                    self._pending[barrier.checkpoint_id] = self._starting
                    self._ownership.use(barrier.checkpoint_id)
                    self._announce(
                        journal.CheckpointTriggered(checkpoint=barrier.checkpoint_id, kind=barrier.kind.value)
                    )
                    self._inject(Inject(barrier, halt=barrier.kind is CheckpointKind.STOP))
                case coordinator.WriteManifest(checkpoint_id, kind, retained):
                    self._spawn(self._write_manifest, checkpoint_id, kind, retained, name=f"manifest {checkpoint_id}")
                case coordinator.NotifyCompleted(checkpoint_id, _, kind):
                    self._completed(checkpoint_id, kind)
                case coordinator.NotifyAborted(checkpoint_id, reason, _, kind, detail):
                    self._aborted(checkpoint_id, reason, kind, detail)
                case coordinator.Subsume(checkpoint_id):
                    self._announce(journal.CheckpointSubsumed(checkpoint=checkpoint_id))
                    self._delete(checkpoint_id)
                case coordinator.DiscardPieces(checkpoint_id):
                    self._discard(checkpoint_id)
                case coordinator.DiscardAck(checkpoint_id, actor):
                    self._discard_ack(checkpoint_id, actor)
                case coordinator.FailAttempt(reason, detail):
                    self._on_failed(CheckpointAborted(reason, detail=detail or "more in a row than is tolerated"))
                case _:  # pragma: no cover
                    raise AssertionError(f"can't carry out {effect!r}")

    def _drop_timeout(self, checkpoint_id: int) -> None:
        timer = self._timeouts.pop(checkpoint_id, None)
        if timer is not None:
            timer.cancel()

    async def _write_manifest(self, checkpoint_id: int, kind: CheckpointKind, retained: tuple[int, ...]) -> None:
        pending = self._pending[checkpoint_id]
        manifest = self._manifest(checkpoint_id, kind, retained, pending)
        try:
            answer = await self._ownership.publish(manifest)
        except Fenced as error:
            self._coordinate(coordinator.ManifestFailed(checkpoint_id, AbortReason.FENCED, str(error)))
            self._stopped = True
            self._on_failed(error)
            return
        except StorageFailed as error:
            self._coordinate(coordinator.ManifestFailed(checkpoint_id, AbortReason.MANIFEST_IN_DOUBT, str(error)))
            self._on_failed(error)
            return
        match answer:
            case Permitted(permit):
                self._permit = permit
                self._coordinate(coordinator.ManifestWritten(checkpoint_id))
            case Taken():
                self._coordinate(coordinator.PlaceTaken(checkpoint_id))
            case Refused(reason, detail):
                self._coordinate(coordinator.ManifestFailed(checkpoint_id, reason, detail))

    def _manifest(
        self, checkpoint_id: int, kind: CheckpointKind, retained: tuple[int, ...], pending: _Pending
    ) -> Manifest:
        operators = []
        for vertex in self._plan.vertices:
            actors = [self._actors[ActorId(vertex.name, subtask)] for subtask in range(vertex.parallelism)]
            states = actors[0].chain.states()
            for operator in vertex.operators:
                subtasks = []
                for actor in actors:
                    snapshot = pending.acknowledged[actor.id]
                    part = snapshot.parts.get(operator.name)
                    subtasks.append(
                        SubtaskSnapshot(
                            subtask=actor.id.subtask,
                            finished=snapshot.finished,
                            keyed=part.keyed if part is not None else (),
                            lists=part.lists if part is not None else (),
                        )
                    )
                operators.append(
                    OperatorSnapshot(
                        operator=operator.name,
                        parallelism=vertex.parallelism,
                        max_parallelism=vertex.max_parallelism,
                        subtasks=tuple(subtasks),
                        states=dict(states.get(operator.name, {})),
                    )
                )
        return Manifest(
            job=self._plan.job,
            generation=self._begin.generation,
            checkpoint_id=checkpoint_id,
            kind=kind.value,
            key_scheme=SCHEME,
            written_at_ms=self._world.clock.wall_ms(),
            operators=tuple(operators),
            retained=retained,
            bytes=sum(snapshot.bytes for snapshot in pending.acknowledged.values()),
        )

    def _completed(self, checkpoint_id: int, kind: CheckpointKind) -> None:
        pending = self._pending.pop(checkpoint_id)
        self._drop_timeout(checkpoint_id)
        self.completed_count += 1
        if self._collector is not None:
            self._collector.freeze()
        size = sum(snapshot.bytes for snapshot in pending.acknowledged.values())
        now = self._now()
        info = CheckpointInfo(
            checkpoint_id=checkpoint_id,
            kind=kind.value,
            bytes=size,
            duration_ms=now - pending.at_ms,
            completed_at_ms=now,
            path=self._ownership.path_of(checkpoint_id),
        )
        self._last_completed, self._last_abort = info, ""
        self._announce(
            journal.CheckpointCompleted(
                checkpoint=checkpoint_id, kind=kind.value, bytes=size, duration_ms=info.duration_ms
            )
        )
        self._on_completed(info)
        if kind in (CheckpointKind.FINAL, CheckpointKind.STOP):
            self._final, self._final_kind = checkpoint_id, kind
            self._final_commits = set(self._actors)
        self._deliver(CheckpointDone(checkpoint_id, self._permit))
        for request_id in pending.requests:
            self._settle(request_id, info)
        self._work_on_files(self._ownership.tidy, checkpoint_id, name=f"tidy up after {checkpoint_id}")
        self._admit(admission.CheckpointEnded(True, self._now(), kind))

    def _aborted(self, checkpoint_id: int, reason: AbortReason, kind: CheckpointKind, detail: str) -> None:
        pending = self._pending.pop(checkpoint_id)
        self._drop_timeout(checkpoint_id)
        for scope in pending.scopes.values():
            scope.cancel()
        self._deliver(CheckpointDone(checkpoint_id))
        self._note_aborted(checkpoint_id, pending, reason, detail)
        if reason is AbortReason.FENCED:
            return  # nothing starts any more
        if reason not in (AbortReason.MANIFEST_IN_DOUBT, AbortReason.MANIFEST_PLACE_TAKEN, AbortReason.SUBSUMED):
            self._discard(checkpoint_id)  # also when nobody wrote a piece: its id is not given again
        self._admit(admission.CheckpointEnded(False, self._now(), kind))
        if kind is CheckpointKind.STOP:
            self._go_on_after_stop()
        if kind is CheckpointKind.FINAL and not self._stopped:
            self._final_requested = False
            self._later(FINAL_AGAIN_MS, self._request_final_when_ended)

    def _note_aborted(self, checkpoint_id: int, pending: _Pending, reason: AbortReason, detail: str) -> None:
        self.failed_count += 1
        self._last_abort = f"checkpoint {checkpoint_id} was aborted: {reason.value}"
        self._announce(journal.CheckpointAborted(checkpoint=checkpoint_id, reason=reason.name, detail=detail))
        for request_id in pending.requests:
            self._settle(request_id, CheckpointAborted(reason, checkpoint_id=checkpoint_id, detail=detail))

    # ── files ────────────────────────────────────────────────────────────────────────────────

    def _delete(self, checkpoint_id: int) -> None:
        self._cleaning += 1
        self._admit(admission.CleanupChanged(self._cleaning, self._now()))
        self._work_on_files(self._delete_checkpoint, checkpoint_id, name=f"delete {checkpoint_id}")

    async def _delete_checkpoint(self, checkpoint_id: int) -> None:
        try:
            count = await self._ownership.delete_checkpoint(checkpoint_id)
            self._announce(journal.CheckpointDiscarded(checkpoint=checkpoint_id, objects=count))
        except StorageFailed as error:
            self._announce(
                journal.StorageFailed(
                    operation="delete", name=f"checkpoint {checkpoint_id}", cause=type(error).__name__
                )
            )
        finally:
            self._cleaning -= 1
            self._admit(admission.CleanupChanged(self._cleaning, self._now()))

    def _discard(self, checkpoint_id: int) -> None:
        if checkpoint_id not in self._discarded:
            self._discarded[checkpoint_id] = None
            self._work_on_files(self._ownership.discard_aborted, checkpoint_id, name=f"discard {checkpoint_id}")

    def _work_on_files(
        self, function: Callable[[int], Coroutine[Any, Any, None]], checkpoint_id: int, *, name: str
    ) -> None:
        """Do something beside everything else that the end of a job waits for, within bounds."""
        self._working_on_files += 1
        self._spawn(self._until_settled, function, checkpoint_id, name=name)

    async def _until_settled(self, function: Callable[[int], Coroutine[Any, Any, None]], checkpoint_id: int) -> None:
        try:
            await function(checkpoint_id)
        finally:
            self._working_on_files -= 1
            self._files_settled.set()

    def _discard_ack(self, checkpoint_id: int, actor: ActorId) -> None:
        """A snapshot that came too late: its objects lie under an id that was aborted, and go with it."""
        self._work_on_files(self._ownership.discard_aborted, checkpoint_id, name=f"discard {checkpoint_id} of {actor}")

    # ── what actors report ───────────────────────────────────────────────────────────────────

    def took_snapshot(self, actor: Actor, instant: Instant) -> None:
        """The instant of an actor's snapshot is over; its rest is written behind."""
        checkpoint_id = instant.barrier.checkpoint_id
        pending = self._pending.get(checkpoint_id)
        if pending is None:
            instant.keyed.release()
            return
        scope = anyio.CancelScope()
        pending.scopes[actor.id] = scope
        self._spawn(self._write_behind, actor, instant, scope, name=f"snapshot {checkpoint_id} of {actor.id}")

    async def _write_behind(self, actor: Actor, instant: Instant, scope: anyio.CancelScope) -> None:
        checkpoint_id = instant.barrier.checkpoint_id
        clock, started, meter = self._world.clock, self._now(), Meter()
        snapshot: ActorSnapshot | None = None
        try:
            with scope:
                try:
                    snapshot = await write_behind(
                        instant,
                        name=f"{actor.id.operator}-{actor.id.subtask}-{self._begin.generation}",
                        home=self._ownership.home,
                        store=self._store,
                        codec=self._codec,
                        duty=self._duty,
                        inline_below=self._settings.checkpoints.inline_below,
                        meter=meter,
                    )
                except InvalidValue as error:
                    # What can't be written now can't be written by the next attempt either.
                    error.add_note(f"actor {actor.id}, while its state was written for checkpoint {checkpoint_id}")
                    self._on_failed(error)
                    return
                except ActorflowError as error:
                    reason = (
                        AbortReason.STORAGE_FAILED if isinstance(error, StorageFailed) else AbortReason.SNAPSHOT_FAILED
                    )
                    self.declined(actor.id, checkpoint_id, reason, str(error))
                    return
        finally:
            instant.keyed.release()
        if snapshot is not None:
            self._acknowledge(actor.id, checkpoint_id, snapshot, clock.now_ms() - started)
        await self._duty.run(actor.backend.upkeep(), meter)
        self._announce(journal.SnapshotSettled(checkpoint=checkpoint_id, actor=str(actor.id), loop_us=meter.us))

    def _acknowledge(self, actor: ActorId, checkpoint_id: int, snapshot: ActorSnapshot, duration_ms: int) -> None:
        pending = self._pending.get(checkpoint_id)
        if pending is not None:
            pending.acknowledged[actor] = snapshot
            self._announce(
                journal.CheckpointAcknowledged(
                    checkpoint=checkpoint_id, actor=str(actor), bytes=snapshot.bytes, duration_ms=duration_ms
                )
            )
        self._coordinate(coordinator.Acknowledged(checkpoint_id, actor))

    def declined(self, actor: ActorId, checkpoint_id: int, reason: AbortReason, detail: str = "") -> None:
        """No snapshot will come from an actor."""
        self._announce(
            journal.CheckpointDeclined(checkpoint=checkpoint_id, actor=str(actor), reason=reason.name, detail=detail)
        )
        self._coordinate(coordinator.Declined(checkpoint_id, actor, reason, detail))

    def ended(self, actor: ActorId) -> None:
        """All inputs of an actor ended."""
        self._ended.add(actor)
        self._request_final_when_ended()

    def _request_final_when_ended(self) -> None:
        """When all actors wait for the final checkpoint, it is taken at once (semantics 4.2)."""
        if self._stop_request is not None or self._stopped or not self._actors or self._final_requested:
            return
        if len(self._ended) == len(self._actors):
            self._final_requested = True
            self._go(JobStatus.FINISHING)
            self._announce(journal.CheckpointRequested(kind=CheckpointKind.FINAL.value))
            self._admit(admission.CheckpointRequested(0, CheckpointKind.FINAL, self._now()))

    def committed(self, actor: ActorId, checkpoint_id: int) -> None:
        """An actor carried out what a permit allowed."""
        if self._final is not None and checkpoint_id >= self._final:
            self._final_commits.discard(actor)
            if not self._final_commits:
                self._on_final(self._final_kind)

    # ── telling ──────────────────────────────────────────────────────────────────────────────

    def waiting_for(self) -> str:
        """A sentence about checkpoints when they do not get on, else empty."""
        if self._pending:
            checkpoint_id, pending = next(iter(self._pending.items()))
            missing = [str(actor) for actor in self._actors if actor not in pending.acknowledged]
            seconds = (self._now() - pending.at_ms) / 1_000
            whom = ", ".join(missing[:5]) if missing else "its manifest"
            more = f" and {len(missing) - 5} more" if len(missing) > 5 else ""
            return f"checkpoint {checkpoint_id}, for {seconds:.1f} s, waits for {whom}{more}"
        if self._last_abort:
            return self._last_abort
        every = _ms(self._settings.checkpoints.every)
        if every is not None and self._last_completed is None:
            seconds = (self._now() - self._began_ms) / 1_000
            since = "started" if self._begin.restored_checkpoint is None else "restored"
            return f"{since} {seconds:.0f} s ago, no checkpoint yet"
        return ""


def _ms(duration: timedelta | None) -> int | None:
    return None if duration is None else milliseconds(duration)
