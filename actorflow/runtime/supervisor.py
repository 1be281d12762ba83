"""Owns one job in this process: claims its home, runs attempt after attempt, and brings it to one of its ends.

A life goes: claim, restore, run; fail and restart as the strategy says; finish, stop, cancel, fail for good, or stand
down before a newer owner.  ``protocol.lifecycle`` holds the legal edges, ``protocol.restart`` the delays.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import anyio

from actorflow.abc.world import World
from actorflow.config import Ending, Settings
from actorflow.dataflow.job import Job
from actorflow.dataflow.plan import Plan, compile_plan
from actorflow.errors import (
    AbortReason,
    ActorflowError,
    CheckpointAborted,
    Fenced,
    InvalidConfig,
    InvalidJob,
    InvalidValue,
    JobFailed,
    RestoreFailed,
    StorageFailed,
)
from actorflow.model import journal
from actorflow.protocol.lifecycle import JobStatus, Life, job_life
from actorflow.protocol.machine import Machine
from actorflow.protocol.restart import AttemptFailed, GiveUp, RestartAfter
from actorflow.runtime.attempt import Attempt, Outcome, leaves_of
from actorflow.runtime.handle import CheckpointInfo, Progress, Status, not_running
from actorflow.runtime.homes import claim_home_in_process, release_home_in_process
from actorflow.runtime.levels import ActorLevel, levels_of
from actorflow.runtime.ownership import Begin, Ownership
from actorflow.runtime.restarts import make_restart_strategy
from actorflow.runtime.restorer import check_fit

__all__ = ("Supervisor",)

FINAL = (JobStatus.FINISHED, JobStatus.STOPPED, JobStatus.CANCELED, JobStatus.FAILED, JobStatus.FENCED)

NOT_TRIED_AGAIN = (RestoreFailed, InvalidJob, InvalidConfig, InvalidValue, Fenced)
"""Failures that the next attempt would meet again."""


class Supervisor:
    """One job, from its first claim to its end."""

    def __init__(self, job: Job, settings: Settings, world: World, *, resume_from: str, rewind: bool) -> None:
        self.settings = job.settings_over(settings)
        self.plan: Plan = compile_plan(
            job, parallelism=self.settings.parallelism, max_parallelism=self.settings.max_parallelism
        )
        self.world = world
        self.life = job_life(self.plan.job)
        self.started, self.ended = anyio.Event(), anyio.Event()
        self.failure: ActorflowError | None = None
        self.has_run = False
        self.on_failure: Callable[[], None] | None = None
        self._resume_from, self._rewind = resume_from, rewind
        self._store = world.objects.open(self.settings.checkpoints.storage)
        self._ownership = Ownership(
            world,
            self._store,
            self.settings,
            self.plan.job,
            resume_from=resume_from,
            rewind=rewind,
            check_fit=partial(check_fit, self.plan),
        )
        self._strategy = make_restart_strategy(self.settings)
        self._attempt: Attempt | None = None
        self._number = 0
        self._restarts = 0
        self._restored: int | None = None
        self._scope: anyio.CancelScope | None = None
        self._cancelled = self._left_uncommitted = False
        self._halted: dict[str, None] = {}
        self._last_checkpoint: CheckpointInfo | None = None
        self._waiting_for = "its turn"
        self._decided_on: Exception | None = None
        self._decision: RestartAfter | GiveUp | None = None
        self._completed = self._failed = 0

    # ── life ─────────────────────────────────────────────────────────────────────────────────

    async def run(self) -> None:
        """Live; never raises an ``Exception``: what went wrong is in ``failure``."""
        home, held = "", False
        try:
            await self._ownership.locate()
            if not self._ownership.is_in_memory:
                home = self._ownership.identity
                claim_home_in_process(home)
                held = True
            with anyio.CancelScope() as self._scope:
                if self._cancelled:
                    self._scope.cancel()
                await self._live()
            if self._scope.cancelled_caught:
                await self._end_canceled()
        except Exception as error:
            await self._end_failed(error)
        except anyio.get_cancelled_exc_class():
            await self._end_canceled()  # not by us: whoever runs this job did not wait for its end
            raise
        finally:
            if held:
                release_home_in_process(home)
            self.started.set()
            self.ended.set()
        with anyio.move_on_after(5, shield=True):
            await self._store.close()

    async def _live(self) -> None:
        while True:
            self._enter(JobStatus.CLAIMING)
            self._waiting_for = f"the claim of {self._ownership.identity}"
            try:
                begin = await self._ownership.take()
                outcome = Outcome.FINISHED_BEFORE if begin is None else await self._try(begin)
                with anyio.CancelScope(shield=True):
                    await self._end(outcome)
            except Exception as error:
                await self._after_failure(error)
            else:
                return

    async def _try(self, begin: Begin) -> Outcome:
        self._number += 1
        self._enter(JobStatus.RESTORING)
        self._restored = begin.restored_checkpoint
        self._announce(
            journal.JobStarted(
                job=self.plan.job,
                attempt=self._number,
                generation=begin.generation,
                restored_checkpoint=begin.restored_checkpoint,
                restored_from=begin.restored_from,
            )
        )
        attempt = Attempt(
            plan=self.plan,
            settings=self.settings,
            world=self.world,
            store=self._store,
            ownership=self._ownership,
            begin=begin,
            number=self._number,
            halted=self._halted,
            on_running=self._on_running,
            on_completed=self._on_completed,
            is_final=self._is_final,
            go=self._go,
        )
        self._attempt = attempt
        try:
            return await attempt.run()
        finally:
            self._completed += attempt.checkpoints_completed
            self._failed += attempt.checkpoints_failed
            self._left_uncommitted = attempt.left_uncommitted
            self._attempt = None

    def _on_running(self) -> None:
        self._enter(JobStatus.RUNNING)
        self.has_run = True
        self._announce(journal.JobRunning(job=self.plan.job, attempt=self._number))
        self.started.set()

    def _enter(self, status: JobStatus) -> None:
        """Take a step, unless a cancellation that is on its way came first."""
        if not self._cancelled:
            self.life.go(status)

    def _go(self, status: JobStatus) -> None:
        """Take a step if it is one."""
        if status is not self.life.status and self.life.may_go(status):
            self.life.go(status)

    def _on_completed(self, info: CheckpointInfo) -> None:
        self._last_checkpoint = info

    def _is_final(self, error: Exception) -> bool:
        """Decide, once per failure, whether no attempt follows it."""
        if self._decided_on is not error:
            self._decided_on, self._decision = error, None
            if self.has_run and not self._cancelled and not isinstance(_cause(error), NOT_TRIED_AGAIN):
                draw = self.world.entropy.uniform("restart jitter")
                (self._decision,) = self._strategy.on(AttemptFailed(at_ms=self.world.clock.now_ms(), draw=draw))
        return not isinstance(self._decision, RestartAfter)

    async def _after_failure(self, error: Exception) -> None:
        """Wait for the time of the next attempt; raises when there is none."""
        cause = _cause(error)
        if self._is_final(error):
            if isinstance(self._decision, GiveUp):
                error.add_note(self._decision.reason)
            raise error
        assert isinstance(self._decision, RestartAfter)
        delay_ms = self._decision.delay_ms
        self._enter(JobStatus.RESTARTING)
        self._restarts += 1
        self._waiting_for = f"restart in {delay_ms / 1_000:g} s, after {_short(cause)}"
        self._announce(
            journal.JobRestarting(
                job=self.plan.job,
                attempt=self._number,
                delay_ms=delay_ms,
                cause=type(cause).__name__,
                detail=str(cause),
            )
        )
        await self.world.clock.sleep(delay_ms)

    # ── ends ─────────────────────────────────────────────────────────────────────────────────

    async def _end(self, outcome: Outcome) -> None:
        if outcome is Outcome.FINISHED_BEFORE:
            self._announce(journal.JobFinished(job=self.plan.job))
            self.life.go(JobStatus.FINISHED)
        elif outcome is Outcome.FINISHED:
            await self._ownership.end(finished=True, next_id=0)
            self._announce(journal.JobFinished(job=self.plan.job))
            self.life.go(JobStatus.FINISHED)
        else:
            await self._retire_or_tell(Ending.SUSPENDED)
            checkpoint = self._last_checkpoint.checkpoint_id if self._last_checkpoint is not None else None
            self._announce(journal.JobStopped(job=self.plan.job, checkpoint=checkpoint))
            self.life.go(JobStatus.STOPPED)

    async def _end_canceled(self) -> None:
        with anyio.CancelScope(shield=True):
            self._cancelled = True
            self._go(JobStatus.CANCELING)
            await self._retire_or_tell(Ending.CANCELED)
            self._announce(journal.JobCanceled(job=self.plan.job))
            self.life.go(JobStatus.CANCELED)

    async def _end_failed(self, error: Exception) -> None:
        cause = _cause(error)
        if isinstance(cause, RestoreFailed) and (fenced := await self._ownership.newer_owner()) is not None:
            # It stalled, and what it was about to restore is gone because its successor needs it no more.
            fenced.__cause__, error, cause = error, fenced, fenced
        if isinstance(cause, Fenced):
            self.failure = cause
            self.life.go(JobStatus.FENCED)
            self._announce(
                journal.JobFenced(
                    job=self.plan.job,
                    generation=self._ownership.generation,
                    by_generation=cause.generation,
                    by=str(cause),
                )
            )
        else:
            if self.has_run:
                failure = JobFailed(f"job {self.plan.job!r} failed for good: {_short(cause)}")
                failure.__cause__ = error
                for note in getattr(error, "__notes__", ()):
                    failure.add_note(note)
                self.failure = failure
            elif isinstance(cause, ActorflowError):
                self.failure = cause
            else:
                self.failure = JobFailed(f"job {self.plan.job!r} could not start: {_short(cause)}")
                self.failure.__cause__ = error
            self.life.go(JobStatus.FAILED)
            self._announce(journal.JobFailed(job=self.plan.job, cause=type(cause).__name__, detail=str(cause)))
            with anyio.CancelScope(shield=True):
                try:
                    await self._retire(Ending.FAILED)
                except ActorflowError as second:
                    self.failure.add_note(f"and its checkpoints could not be cleaned up: {second}")
        if self.on_failure is not None:
            self.on_failure()

    async def _retire(self, ending: Ending) -> None:
        """Delete the checkpoints, where the retention policy says so."""
        if not self.has_run or self.settings.checkpoints.retention.keeps(ending):
            return
        if self._left_uncommitted:
            raise StorageFailed("the next start needs them to commit what is prepared")
        await self._ownership.end(finished=False, next_id=0)

    async def _retire_or_tell(self, ending: Ending) -> None:
        """The same at an end that stays what it is, whatever becomes of the checkpoints."""
        try:
            await self._retire(ending)
        except StorageFailed as error:
            self._announce(
                journal.FellBack(
                    subject=f"checkpoints of job {self.plan.job!r}",
                    wanted=f"deleted, as retention={self.settings.checkpoints.retention} says",
                    taken="kept",
                    why=str(error),
                )
            )

    async def leave(self) -> None:
        """The block was left normally: stop with a last checkpoint, or give up on it after ``stop_within``."""
        if self.ended.is_set():
            return
        reason = ""
        with anyio.move_on_after(self.settings.stop_within.total_seconds()) as limit:
            try:
                await self.stop()
            except CheckpointAborted as aborted:
                reason = str(aborted)
            except ActorflowError:
                await self.ended.wait()  # it failed for good, which is told by whoever runs the job
        if limit.cancelled_caught:
            reason = f"no last checkpoint within stop_within={self.settings.stop_within.total_seconds():g} s"
        if not self.ended.is_set() and reason:
            last = self._last_checkpoint
            self._announce(
                journal.FellBack(
                    subject=f"stopping job {self.plan.job!r}",
                    wanted="a last checkpoint",
                    taken=f"the next start replays from checkpoint {last.checkpoint_id}"
                    if last is not None
                    else "the next start replays from where this one began",
                    why=reason,
                )
            )
            await self.cancel()
        await self.ended.wait()

    # ── what a handle asks for ───────────────────────────────────────────────────────────────

    async def checkpoint(self) -> CheckpointInfo:
        """See ``JobHandle.checkpoint``."""
        if self._attempt is None:
            raise CheckpointAborted(AbortReason.COORDINATOR_SUSPENDED, detail=f"job {self.plan.job!r}: {self.status()}")
        return await self._attempt.checkpoint()

    async def stop(self) -> CheckpointInfo | None:
        """See ``JobHandle.stop``."""
        while self._attempt is None and not self.ended.is_set():
            if self.life.status is JobStatus.RESTARTING:
                raise CheckpointAborted(
                    AbortReason.COORDINATOR_SUSPENDED, detail=f"job {self.plan.job!r}: {self.status()}"
                )
            await self.world.clock.sleep(10)
        attempt = self._attempt
        if attempt is None or self.life.status is JobStatus.FINISHING:
            await self.ended.wait()
            return self._last_checkpoint
        info = await attempt.stop(self._halted)
        await self._end_of(attempt, f"its snapshot {info.path} is complete", info.checkpoint_id)
        return info

    async def drain(self) -> None:
        """See ``JobHandle.drain``."""
        attempt = self._attempt
        if attempt is None:
            raise not_running(self.plan.job, self.life.status)
        attempt.drain()
        await self._end_of(attempt, "it is not drained any more")

    async def _end_of(self, attempt: Attempt, but: str, checkpoint_id: int | None = None) -> None:
        """Wait for the end of the job; raises when it goes on instead, or failed."""
        await attempt.gone.wait()
        if attempt.has_failed and not self.life.is_over and not self._cancelled:
            raise CheckpointAborted(
                AbortReason.JOB_RESTARTED,
                checkpoint_id=checkpoint_id,
                detail=f"the attempt failed before it came to its end, so the job goes on; {but}",
            )
        await self.ended.wait()
        if self.failure is not None:
            raise self.failure

    async def cancel(self) -> None:
        """See ``JobHandle.cancel``."""
        self._cancelled = True
        if not self.life.is_over:
            self._go(JobStatus.CANCELING)
        if self._scope is not None:
            self._scope.cancel()
        await self.ended.wait()

    async def query(self, state: str, key: Any) -> Any:
        """See ``JobHandle.query``."""
        if self._attempt is None or not self._attempt.is_running:
            raise not_running(self.plan.job, self.life.status)
        return self._attempt.query(state, key)

    def status(self) -> Status:
        """See ``JobHandle.status``."""
        last, attempt = self._last_checkpoint, self._attempt
        now = self.world.clock.now_ms()
        waiting_for = self._waiting_for
        if attempt is not None:
            waiting_for = attempt.waiting_for()
        elif self.life.status in FINAL:
            waiting_for = ""
        return Status(
            status=self.life.status,
            attempt=self._number,
            restarts=self._restarts,
            restored_checkpoint=self._restored,
            last_checkpoint=last,
            checkpoint_age_ms=None if last is None else now - last.completed_at_ms,
            waiting_for=waiting_for,
            failure="" if self.failure is None else str(self.failure),
        )

    def progress(self) -> Progress:
        """See ``JobHandle.progress``."""
        attempt = self._attempt
        if attempt is None:
            return Progress(
                records_read=0,
                records_written=0,
                checkpoints_completed=self._completed,
                checkpoints_failed=self._failed,
            )
        return attempt.progress(self._completed, self._failed)

    def levels(self) -> tuple[ActorLevel, ...]:
        """See ``JobHandle.levels``."""
        return () if self._attempt is None else levels_of(self._attempt.actors.values())

    def machines(self) -> list[tuple[str, Machine[Any, Any] | Life[Any]]]:
        """All that decides in this job now, by name; each tells its story to whoever asks why nothing happens."""
        own: list[tuple[str, Machine[Any, Any] | Life[Any]]] = [
            (f"job {self.plan.job}", self.life),
            ("restarts", self._strategy),
            *self._ownership.machines(),
        ]
        return own if self._attempt is None else [*own, *self._attempt.machines()]

    def _announce(self, entry: journal.Entry) -> None:
        self.world.observer.announce(entry)


def _cause(error: BaseException) -> BaseException:
    """The one of several failures that decides what follows: one that no attempt can mend, else the first."""
    leaves = leaves_of(error)
    fenced = [leaf for leaf in leaves if isinstance(leaf, Fenced)]
    hopeless = [leaf for leaf in leaves if isinstance(leaf, NOT_TRIED_AGAIN)]
    return [*fenced, *hopeless, *leaves][0]


def _short(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}"
