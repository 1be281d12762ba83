"""One run of a job, calm or in a storm: the lives of its process, one after the other, until the job has ended.

Whoever watches the process starts it again when it died, as a service manager does, with the same command line (or with
another parallelism, as whoever rescales a job does).  A job that somebody stopped, drained or cancelled stays ended,
until somebody starts it.  When the weather has lifted the job must come to its end within the time that its course
gives, else it is not alive.

The swarm's runs and those of scenarios go through here alike; ``course.py`` says what each goes through.
"""

from __future__ import annotations

import asyncio

import anyio

from actorflow.abc.world import World
from actorflow.config import Settings
from actorflow.errors import ActorflowError, IncompatibleState
from actorflow.model import journal
from actorflow.protocol.lifecycle import JobStatus
from actorflow.runtime.environment import Environment
from actorflow.runtime.handle import JobHandle
from actorflow.runtime.homes import homes_of_process
from actorflow.simulation.acts import Agenda, Desk
from actorflow.simulation.course import Course
from actorflow.simulation.endings import GOES_ON, Verdict, judge
from actorflow.simulation.mistakes import Mistakes
from actorflow.simulation.process import Process
from actorflow.simulation.runs import Run, SeedFailed, StepRecord
from actorflow.simulation.scenario import Fault, Step
from actorflow.simulation.steps import current_process
from actorflow.simulation.stories import stories_of
from actorflow.simulation.storm import Storm
from actorflow.simulation.subject import Subject
from actorflow.simulation.swarm import PROCESS
from actorflow.simulation.witness import Witness
from actorflow.simulation.world import Universe

__all__ = ("Lives",)

RESTARTS_AFTER_MS = 200
"""How long whoever watches the process waits before it starts it again."""


async def _life(world: World, subject: Subject, settings: Settings, desk: Desk, seed: int) -> JobStatus:
    """Be a program that runs the job to its end, and does with it what it is asked to."""
    homes_of_process.set({})
    process = current_process.get()
    assert isinstance(process, Process)
    failure: ActorflowError | None = None
    status = JobStatus.FAILED
    async with Environment(settings=settings, world=world).run(subject.job(seed), on_failure="report") as handle:
        process.handle = handle
        async with anyio.create_task_group() as group:
            group.start_soon(_stop_when_asked, process, handle)
            group.start_soon(desk.serve, handle, group)
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
    """The lives of one run, on its course; made on a simulated loop."""

    def __init__(self, subject: Subject, seed: int, course: Course, *, storm: bool) -> None:
        self._subject, self._course, self._is_storm = subject, course, storm
        self._universe = Universe(seed, batch_us=course.batch_us)
        self._universe.loop.shuffle_rounds = course.shuffle_rounds
        self._universe.loop.stories.append(lambda: stories_of(self._universe.loop))
        subject.prepare(self._universe)
        self._storm = Storm(self._universe, course, subject.commits(self._universe), calm=not storm)
        self._witness = Witness(self._universe, subject, course)
        self._mistakes = Mistakes(course, storm=storm)
        self._universe.subscribe(self._mistakes.read, *Mistakes.READS)
        self._name, self._processes = PROCESS, 1
        self._current: tuple[Process, Desk] | None = None
        self._left: list[tuple[Process, Desk]] = []
        self._ran: dict[int, int] = {}
        self._refused: dict[int, None] = {}
        self._instead: int | None = None
        self._rescaled_to: int | None = None
        self._end = GOES_ON
        self._undone: list[StepRecord] = []
        self._performed: list[StepRecord] = []
        self._starts_due = 0
        self._start_came = asyncio.Event()
        self._agenda = Agenda(self._universe, course.steps, self._perform)

    @property
    def told(self) -> list[journal.Line]:
        """What has been told so far."""
        return list(self._universe.journal)

    @property
    def expected(self) -> list[Fault]:
        """What has been expected so far, and in which life."""
        return list(self._storm.expected)

    async def run(self) -> Run:
        """Live until the job has ended; raise ``SeedFailed`` for whatever is wrong."""
        while True:
            self._end = await self._live()
            if self._end.is_over and not await self._is_started_again():
                break
            self._storm.begin_next_life()
            self._witness.life += 1
            if self._starts_due:
                self._starts_due -= 1
                self._name_one_more()
            else:
                await asyncio.sleep(RESTARTS_AFTER_MS / 1_000)
            self._storm.look()
        if self._course.always_kills:
            assert self._storm.moments.kills, "every storm kills at least once"
        if unheard := self._universe.loop.unhandled:
            raise SeedFailed(f"nobody heard of {unheard[0].get('exception')!r}: {unheard[0].get('message')}")
        return await self._told()

    async def _told(self) -> Run:
        universe, status = self._universe, self._end.status
        assert status is not None
        self._storm.lift()
        if status is not JobStatus.FINISHED:
            self._witness.keep_newest_state()
        await universe.settle()
        outsider = await universe.start("outsider", self._subject.look)
        return self._witness.told(
            (await outsider.wait()).result(),
            self._storm.moments,
            storm=self._is_storm,
            status=status.name,
            error=self._end.error,
            performed=self._performed,
            unperformed=self._agenda.to_come,
            weather=self._storm.expected,
            unstruck=self._storm.unstruck,
        )

    # ── one life ──

    async def _live(self) -> Verdict:
        """Let a process live once; return whether the job has ended."""
        parallelism = self._parallelism()
        desk = Desk()
        process = await self._universe.start(
            self._name, _life, self._subject, self._course.settings(parallelism), desk, self._universe.seed
        )
        self._current = process, desk
        undone, self._undone = self._undone, []
        for record in undone:
            desk.ask(record)
        if self._starts_due:
            process.replaced.set()  # somebody started one more just before
        await self._watch(process, process.replaced)
        if self._is_refused(process, parallelism):
            return GOES_ON
        if process.replaced.is_set() and process.is_alive:
            self._left.append((process, desk))
            return GOES_ON
        self._storm.end_life()
        return self._judge(process, desk)

    def _judge(self, process: Process, desk: Desk, *, was_left: bool = False) -> Verdict:
        self._mistakes.check()
        verdict = judge(
            process,
            desk,
            several=self._mistakes.several,
            is_calm=self._storm.is_calm,
            may_fail=lambda: self._course.may_fail or self._is_start_sure(),
        )
        assert process.outcome is not None
        # What one was asked that another took the place of is not asked of that other.
        is_over = verdict.is_over or was_left
        self._undone += desk.close(process.outcome, self._universe.now_ms(), is_over=is_over)
        if not was_left:
            self._rescaled_to = verdict.rescales_to or self._rescaled_to
        return verdict

    def _parallelism(self) -> int:
        if self._instead is not None:
            return self._instead
        return self._rescaled_to or self._course.parallelism_of(self._storm.life - 1)

    def _is_refused(self, process: Process, parallelism: int) -> bool:
        """Whether the checkpoint can't be restored at another parallelism; then it is tried with earlier ones.

        Some jobs have operators that must not be rescaled when only some of their subtasks had finished.
        """
        is_refused = process.outcome is not None and isinstance(process.outcome.error, IncompatibleState)
        if not is_refused or not self._course.earlier_parallelism or parallelism == self._rescaled_to:
            self._ran[parallelism] = self._storm.life
            self._instead, self._refused = None, {}
            return False
        assert process.outcome is not None
        self._refused[parallelism] = None
        tries = [earlier for earlier in self._ran if earlier not in self._refused]
        if not tries:
            raise SeedFailed(f"no parallelism fits: {process.outcome.error}")
        self._instead = max(tries, key=self._ran.__getitem__)
        return True

    async def _watch(self, process: Process, *wakes: asyncio.Event) -> None:
        """Wait until a process has ended, or something else is to be done first."""
        waits = [asyncio.ensure_future(process.wait()), *(asyncio.ensure_future(event.wait()) for event in wakes)]
        try:
            while not any(wait.done() for wait in waits):
                await asyncio.wait(waits, timeout=1.0, return_when=asyncio.FIRST_COMPLETED)
                self._storm.look()
                self._mistakes.check()
                if self._storm.is_overdue:
                    raise SeedFailed(self._overdue())
        finally:
            for wait in waits:
                wait.cancel()

    def _overdue(self) -> str:
        status: object = "not started"
        if self._current is not None and (handle := self._current[0].handle) is not None:
            # Whoever died is asked nothing any more, and yet its code may be what does not come to an end.
            status = handle.status if self._current[0].is_alive else "dead, and its code still unwinds"
        problem = f"the job does not finish within {self._course.calm_within_ms} ms of calm weather"
        remedy = f"; if it needs longer, {where} can say so" if (where := self._course.calm_said_in) else ""
        return f"{problem}; it is {status}{remedy}\n{self._universe.loop.report('who waits where')}"

    # ── what is done from outside ──

    def _perform(self, step: Step) -> None:
        """Do what a step says; called when it is due."""
        now = self._storm.asked_last_ms = self._universe.now_ms()
        record = StepRecord(step=step, life=self._storm.life, asked_at_ms=now)
        self._performed.append(record)
        if step.act == "start":
            record.outcome, record.ended_at_ms = "done", now
            self._starts_due += 1
            self._start_came.set()
            self._rescaled_to = step.parallelism or self._rescaled_to
            if self._current is not None and self._current[0].is_alive:
                self._current[0].replaced.set()
            return
        if self._end.is_over:
            record.outcome, record.ended_at_ms = f"the job is {self._end.status}", now
            return
        alive = [desk for process, desk in self._started() if process.is_alive]
        if alive:
            alive[-1].ask(record)
        else:
            self._undone.append(record)

    def _started(self) -> list[tuple[Process, Desk]]:
        """The processes that may still be alive, in the order in which they were started."""
        return [*self._left, self._current] if self._current is not None else []

    def _name_one_more(self) -> None:
        """Name the process that is started beside others, so that it can be told from them."""
        if any(process.is_alive for process, _ in self._started()):
            self._processes += 1
            self._mistakes.several = True
            self._name = f"{PROCESS}-{self._processes}"

    def _is_start_sure(self) -> bool:
        return self._starts_due > 0 or any(step.act == "start" for step in self._agenda.sure)

    async def _is_started_again(self) -> bool:
        """Wait for the end of those that others took the place of; return whether somebody starts the job once more."""
        while not self._starts_due:
            self._start_came.clear()
            if self._left:
                process, desk = self._left[0]
                await self._watch(process, self._start_came)
                if not process.is_alive:
                    self._left.pop(0)
                    await process.wait()
                    self._judge(process, desk, was_left=True)
            elif self._is_start_sure():
                await self._start_came.wait()
            else:
                return False
        self._end = GOES_ON
        return True
