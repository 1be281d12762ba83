"""One run of a job, calm or in a storm: the lives of its process, one after the other, until the job has finished.

Whoever watches the process starts it again when it died, as a service manager does, with the same command line (or with
another parallelism, as whoever rescales a job does).  When the weather has lifted the job must finish within
``CALM_WITHIN_MS``, else it is not alive.

Besides, nobody may make a mistake that a restart hides: an assertion that fails, an object that is missing though one
process only was about, an exception that nobody heard.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable

import anyio

from actorflow.abc.world import World
from actorflow.config import Settings
from actorflow.errors import (
    ActorflowError,
    CorruptObject,
    Fenced,
    IncompatibleState,
    JobFailed,
    ObjectMissing,
    RestoreFailed,
    StorageFailed,
)
from actorflow.model import journal
from actorflow.protocol.lifecycle import JobStatus
from actorflow.runtime.environment import Environment
from actorflow.runtime.handle import JobHandle
from actorflow.runtime.homes import homes_of_process
from actorflow.simulation.digest import journal_digest
from actorflow.simulation.final_state import final_state
from actorflow.simulation.moments import Moments
from actorflow.simulation.process import Process
from actorflow.simulation.runs import Run, SeedFailed
from actorflow.simulation.steps import current_process
from actorflow.simulation.subject import Subject
from actorflow.simulation.swarm import PROCESS, Draw
from actorflow.simulation.weather import At, Kill
from actorflow.simulation.world import Ending, Universe

__all__ = ("Lives",)

MOST_LIVES = 12
"""After so many lives the weather lifts."""

STORM_MS = 120_000
"""After so long the weather lifts."""

CALM_WITHIN_MS = 60_000
"""Within this the job must finish once the weather has lifted."""

RESTARTS_AFTER_MS = 200
"""How long whoever watches the process waits before it starts it again."""

MISTAKES = (
    "AssertionError",
    "AttributeError",
    "CorruptObject",
    "IndexError",
    "InvalidConfig",
    "InvalidJob",
    "InvalidStateError",
    "InvalidValue",
    "KeyError",
    "NameError",
    "RecursionError",
    "RestoreFailed",
    "RuntimeError",
    "StopAsyncIteration",
    "StopIteration",
    "TypeError",
    "UnboundLocalError",
    "ZeroDivisionError",
)
"""Causes of a failure that are never the weather's."""


async def _life(world: World, subject: Subject, settings: Settings, show: Callable[[JobHandle], None]) -> JobStatus:
    """Be a program that runs the job to its end, and stops it when asked to."""
    homes_of_process.set({})
    process = current_process.get()
    assert isinstance(process, Process)
    failure: ActorflowError | None = None
    status = JobStatus.FAILED
    async with Environment(settings=settings, world=world).run(subject.job(), on_failure="report") as handle:
        process.handle = handle
        show(handle)
        async with anyio.create_task_group() as group:
            group.start_soon(_stop_when_asked, process, handle)
            try:
                status = await handle.wait()
            except ActorflowError as error:
                failure = error
            group.cancel_scope.cancel()
    if failure is not None:
        raise failure
    return status


async def _stop_when_asked(process: Process, handle: JobHandle) -> None:
    await process.asked_to_stop.wait()
    await handle.leave()


class Lives:
    """The lives of one run, with the knobs of a seed, in its weather or in none; made on a simulated loop."""

    def __init__(self, subject: Subject, seed: int, drawn: Draw, *, storm: bool) -> None:
        self._subject, self._drawn, self._storm = subject, drawn, storm
        self._universe = Universe(seed, weather=drawn.weather if storm else (), batch_us=drawn.batch_us)
        subject.prepare(self._universe)
        self._moments = Moments(subject.commits(self._universe))
        self._kills_due = 1 if storm else 0
        self._calm_since: int | None = None if storm else 0
        self._left: list[Process] = []
        self._handle: JobHandle | None = None
        self._wrong = ""
        self._ran: dict[int, int] = {}
        self._refused: dict[int, None] = {}
        self._instead: int | None = None
        self._state: dict[tuple[str, str, bytes], bytes] = {}
        self._universe.subscribe(self._moments.read)
        self._universe.subscribe(self._keep_final_state)
        self._universe.subscribe(self._find_mistakes)
        if storm:
            self._universe.subscribe(self._kill_at_the_last_moment)

    @property
    def told(self) -> list[journal.Line]:
        """What has been told so far."""
        return list(self._universe.journal)

    async def run(self) -> Run:
        """Live until the job has finished; raise ``SeedFailed`` for whatever is wrong."""
        while not await self._live():
            self._moments.life += 1
            await asyncio.sleep(RESTARTS_AFTER_MS / 1_000)
            self._look_at_the_sky()
        for process in self._left:
            await self._watch(process)
            self._judge(process)
        if self._storm:
            assert self._moments.kills, "every storm kills at least once"
        if unheard := self._universe.loop.unhandled:
            raise SeedFailed(f"nobody heard of {unheard[0].get('exception')!r}: {unheard[0].get('message')}")
        self._universe.calm()
        outsider = await self._universe.start("outsider", self._subject.look)
        output: dict[str, Counter[bytes]] = (await outsider.wait()).result()
        return self._told(output)

    async def _live(self) -> bool:
        """Let the process live once; return whether the job has finished."""
        knobs = self._drawn.knobs
        parallelism = self._instead if self._instead is not None else knobs.parallelism_of(self._moments.life)
        process = await self._universe.start(PROCESS, _life, self._subject, knobs.settings(parallelism), self._show)
        await self._watch(process)
        if self._is_refused(process, parallelism):
            return False
        if process.replaced.is_set() and process.is_alive:
            self._left.append(process)
            return False
        if self._kills_due == self._moments.kills == 1 and self._drawn.second is not None:
            self._kills_due = 2
            self._universe.expect(self._drawn.second)
        return self._judge(process)

    def _is_refused(self, process: Process, parallelism: int) -> bool:
        """Whether the checkpoint can't be restored at another parallelism; then it is tried with earlier ones.

        Some jobs have operators that must not be rescaled when only some of their subtasks had finished.
        """
        if process.outcome is None or not isinstance(process.outcome.error, IncompatibleState):
            self._ran[parallelism] = self._moments.life
            self._instead, self._refused = None, {}
            return False
        self._refused[parallelism] = None
        tries = [earlier for earlier in self._ran if earlier not in self._refused]
        if not tries:
            raise SeedFailed(f"no parallelism fits: {process.outcome.error}")
        self._instead = max(tries, key=self._ran.__getitem__)
        return True

    def _show(self, handle: JobHandle) -> None:
        self._handle = handle

    async def _watch(self, process: Process) -> None:
        """Wait until a process has ended or another is to take its place."""
        universe = self._universe
        ended = asyncio.ensure_future(process.wait())
        replaced = asyncio.ensure_future(process.replaced.wait())
        was_replaced = process in self._left
        try:
            while not ended.done() and (was_replaced or not replaced.done()):
                waits_for = [ended] if was_replaced else [ended, replaced]
                await asyncio.wait(waits_for, timeout=1.0, return_when=asyncio.FIRST_COMPLETED)
                self._look_at_the_sky()
                if self._wrong:
                    raise SeedFailed(self._wrong)
                if self._calm_since is not None and universe.now_ms() - self._calm_since > CALM_WITHIN_MS:
                    status = self._handle.status if self._handle is not None else "not started"
                    raise SeedFailed(
                        f"the job does not finish within {CALM_WITHIN_MS} ms of calm weather; it is {status}\n"
                        + universe.loop.report("who waits where")
                    )
        finally:
            ended.cancel()
            replaced.cancel()

    def _judge(self, process: Process) -> bool:
        """Return whether the job has finished; raises when a process ended as none may."""
        outcome = process.outcome
        assert outcome is not None
        if self._wrong:
            raise SeedFailed(self._wrong)
        if outcome.ending is Ending.RETURNED:
            if outcome.value is JobStatus.FINISHED:
                return True
            ends = {JobStatus.STOPPED, JobStatus.CANCELED} if process.asked_to_stop.is_set() else {}
            assert outcome.value in ends, f"the job is {outcome.value}"
            return False
        error = outcome.error
        if outcome.ending is Ending.KILLED:
            return False
        assert error is not None
        if not isinstance(error, ActorflowError):
            raise SeedFailed(f"the process ended with {error!r}") from error
        if isinstance(error, JobFailed) and process.asked_to_stop.is_set():
            return False  # after a stop that failed it is cancelled, and what fails then is told
        two_were_about = process.replaced.is_set() or bool(self._left)
        if isinstance(error, Fenced | ObjectMissing | RestoreFailed) and two_were_about:
            return False
        if not isinstance(error, StorageFailed) or isinstance(error, CorruptObject | ObjectMissing):
            raise SeedFailed(f"the process ended with {type(error).__name__}: {error}") from error
        if self._calm_since is not None and self._universe.now_ms() > self._calm_since:
            raise SeedFailed(f"the job failed in calm weather: {error}") from error
        return False

    def _look_at_the_sky(self) -> None:
        if self._calm_since is None and (self._moments.life >= MOST_LIVES or self._universe.now_ms() > STORM_MS):
            self._universe.calm()
            self._calm_since = self._universe.now_ms()

    # ── readers of the journal ──

    def _keep_final_state(self, line: journal.Line) -> None:
        entry = line.entry
        if isinstance(entry, journal.CheckpointCompleted) and entry.kind == "final":
            storage = self._drawn.knobs.storage
            found = final_state(self._universe, storage, self._subject.name, entry.checkpoint, self._subject.codec)
            # Another owner may have restored and finished it while the one that stalled had its permit in hand.
            self._state = self._state if found is None else found

    def _kill_at_the_last_moment(self, line: journal.Line) -> None:
        """A kill that was drawn for something that never came strikes at the final checkpoint."""
        entry = line.entry
        if (
            isinstance(entry, journal.CheckpointTriggered)
            and entry.kind == "final"
            and self._moments.kills < self._kills_due
            and isinstance(process := current_process.get(), Process)
        ):
            self._universe.strike(Kill(At(0), None, "triggered"), process)

    def _find_mistakes(self, line: journal.Line) -> None:
        """Raise for what went wrong and neither the weather nor the user did, even if the next attempt mends it."""
        match line.entry:
            case journal.ActorFailed(cause=cause, detail=detail) | journal.JobFailed(cause=cause, detail=detail):
                self._wrong = self._wrong or (f"{cause}: {detail}" if cause in MISTAKES else "")
            case journal.JobRestarting(cause=cause, detail=detail):
                if cause in MISTAKES or not self._storm:
                    self._wrong = self._wrong or f"the job restarts after {cause}: {detail}"
            case journal.FellBack(subject=subject, why=why) if why.partition(":")[0] in MISTAKES:
                self._wrong = self._wrong or f"{subject}: {why}"

    # ── the end ──

    def _told(self, output: dict[str, Counter[bytes]]) -> Run:
        visible = [
            b"\n".join(b"%d %s" % (count, row) for row, count in sorted(rows.items()))
            for _, rows in sorted(output.items())
        ]
        visible += [
            b"%s.%s %s = %s" % (operator.encode(), name.encode(), key, value)
            for (operator, name, key), value in sorted(self._state.items())
        ]
        lines = self.told
        struck = self._moments.lives_struck
        return Run(
            output=output,
            state=self._state,
            digest=journal_digest(lines, visible),
            lives=self._moments.life + 1,
            faults=Counter(line.entry.verb for line in lines if isinstance(line.entry, journal.WeatherStruck)),
            kills_at=self._moments.kills_at,
            again=any(life + 1 in struck for life in struck),
            lines=lines,
            steps=self._universe.loop.steps,
        )
