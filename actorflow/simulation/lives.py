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
from actorflow.runtime.attempt import leaves_of
from actorflow.runtime.environment import Environment
from actorflow.runtime.handle import JobHandle
from actorflow.runtime.homes import homes_of_process
from actorflow.simulation.acts import ENDINGS, Agenda, Desk
from actorflow.simulation.course import Course
from actorflow.simulation.mistakes import Mistakes
from actorflow.simulation.moments import Moments
from actorflow.simulation.process import Process
from actorflow.simulation.runs import Run, SeedFailed, StepRecord
from actorflow.simulation.scenario import Act, Fault, Step
from actorflow.simulation.steps import current_process
from actorflow.simulation.stories import stories_of
from actorflow.simulation.subject import Subject
from actorflow.simulation.swarm import PROCESS
from actorflow.simulation.weather import After, At, Kill, Weather
from actorflow.simulation.witness import Witness
from actorflow.simulation.world import Ending, Universe

__all__ = ("Lives",)

RESTARTS_AFTER_MS = 200
"""How long whoever watches the process waits before it starts it again."""

_ENDS_AS: dict[Act, tuple[JobStatus, ...]] = {
    "stop": (JobStatus.STOPPED,),
    "rescale": (JobStatus.STOPPED,),
    "drain": (JobStatus.FINISHED,),
    "cancel": (JobStatus.CANCELED,),
}
"""How the job ends that is asked to."""


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
        self._subject, self._course, self._storm = subject, course, storm
        self._weather = [fault for fault in course.faults if fault.life <= 1]
        self._universe = Universe(seed, weather=[fault.weather for fault in self._weather], batch_us=course.batch_us)
        self._universe.loop.shuffle_rounds = course.shuffle_rounds
        self._universe.loop.stories.append(lambda: stories_of(self._universe.loop))
        subject.prepare(self._universe)
        self._moments = Moments(subject.commits(self._universe))
        self._kills_due = 1 if course.always_kills else 0
        self._calm_since: int | None = None if storm else 0
        self._asked_last_ms = 0
        self._name, self._processes = PROCESS, 1
        self._current: tuple[Process, Desk] | None = None
        self._left: list[tuple[Process, Desk]] = []
        self._ran: dict[int, int] = {}
        self._refused: dict[int, None] = {}
        self._instead: int | None = None
        self._rescaled_to: int | None = None
        self._status, self._error = JobStatus.CREATED, ""
        self._undone: list[StepRecord] = []
        self._performed: list[StepRecord] = []
        self._starts_due = 0
        self._start_came = asyncio.Event()
        self._unstruck: list[Weather] = []
        self._universe.subscribe(self._moments.read)
        self._witness = Witness(self._universe, subject, course)
        self._mistakes = Mistakes(course, storm=storm)
        self._universe.subscribe(self._mistakes.read, *Mistakes.READS)
        if course.always_kills:
            self._universe.subscribe(self._kill_at_the_last_moment, journal.CheckpointTriggered)
        self._agenda = Agenda(self._universe, course.steps, self._perform)

    @property
    def told(self) -> list[journal.Line]:
        """What has been told so far."""
        return list(self._universe.journal)

    @property
    def expected(self) -> list[Fault]:
        """What has been expected so far, and in which life."""
        return list(self._weather)

    async def run(self) -> Run:
        """Live until the job has ended; raise ``SeedFailed`` for whatever is wrong."""
        while True:
            is_over = await self._live()
            if is_over and not await self._is_started_again():
                break
            self._begin_next_life()
            if self._starts_due:
                self._starts_due -= 1
                self._name_one_more()
            else:
                await asyncio.sleep(RESTARTS_AFTER_MS / 1_000)
            self._look_at_the_sky()
        if self._course.always_kills:
            assert self._moments.kills, "every storm kills at least once"
        if unheard := self._universe.loop.unhandled:
            raise SeedFailed(f"nobody heard of {unheard[0].get('exception')!r}: {unheard[0].get('message')}")
        return await self._told()

    async def _told(self) -> Run:
        universe = self._universe
        self._note_unstruck()
        universe.calm()
        if self._status is not JobStatus.FINISHED:
            self._witness.keep_newest_state()
        await universe.settle()
        outsider = await universe.start("outsider", self._subject.look)
        return self._witness.told(
            (await outsider.wait()).result(),
            self._moments,
            storm=self._storm,
            status=self._status.name,
            error=self._error,
            performed=self._performed,
            unperformed=self._agenda.to_come,
            weather=self._weather,
            unstruck=[fault for fault in self._weather if any(fault.weather is one for one in self._unstruck)],
        )

    # ── one life ──

    async def _live(self) -> bool:
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
            return False
        if process.replaced.is_set() and process.is_alive:
            self._left.append((process, desk))
            return False
        if self._kills_due == self._moments.kills == 1 and self._course.second is not None:
            self._kills_due = 2
            self._expect(Fault(weather=self._course.second, life=self._moments.life + 2))
        is_over = self._judge(process, desk)
        self._settle(process, desk, is_over=is_over)
        return is_over

    def _parallelism(self) -> int:
        if self._instead is not None:
            return self._instead
        return self._rescaled_to if self._rescaled_to is not None else self._course.parallelism_of(self._moments.life)

    def _begin_next_life(self) -> None:
        self._moments.life += 1
        self._witness.life += 1
        for fault in self._course.faults:
            if fault.life == self._moments.life + 1 and self._calm_since is None:
                self._expect(fault)

    def _expect(self, fault: Fault) -> None:
        self._weather.append(fault)
        self._universe.expect(fault.weather)

    def _is_refused(self, process: Process, parallelism: int) -> bool:
        """Whether the checkpoint can't be restored at another parallelism; then it is tried with earlier ones.

        Some jobs have operators that must not be rescaled when only some of their subtasks had finished.
        """
        is_refused = process.outcome is not None and isinstance(process.outcome.error, IncompatibleState)
        if not is_refused or parallelism == self._rescaled_to:
            self._ran[parallelism] = self._moments.life
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
                self._look_at_the_sky()
                self._mistakes.check()
                self._check_deadline()
        finally:
            for wait in waits:
                wait.cancel()

    def _check_deadline(self) -> None:
        if self._calm_since is None:
            return
        course, universe = self._course, self._universe
        since = max(self._calm_since, self._asked_last_ms, course.busy_until_ms)
        if universe.now_ms() - since <= course.calm_within_ms:
            return
        status: object = "not started"
        if self._current is not None and (handle := self._current[0].handle) is not None:
            # Whoever died is asked nothing any more, and yet its code may be what does not come to an end.
            status = handle.status if self._current[0].is_alive else "dead, and its code still unwinds"
        problem = f"the job does not finish within {course.calm_within_ms} ms of calm weather"
        raise SeedFailed(f"{problem}; it is {status}\n" + universe.loop.report("who waits where"))

    def _judge(self, process: Process, desk: Desk) -> bool:
        """Return whether the job has ended; raises when a process ended as none may."""
        outcome = process.outcome
        assert outcome is not None
        self._mistakes.check()
        match outcome.ending:
            case Ending.KILLED:
                return False
            case Ending.RETURNED:
                return self._judge_end(process, desk, outcome.value)
        error = outcome.error
        assert error is not None
        if not isinstance(error, ActorflowError):
            raise SeedFailed(f"the process ended with {error!r}") from error
        if isinstance(error, JobFailed) and process.asked_to_stop.is_set():
            return False  # after a stop that failed it is cancelled, and what fails then is told
        if self._mistakes.several and _is_because_of_another(error):
            return False
        if not isinstance(error, StorageFailed) or isinstance(error, CorruptObject | ObjectMissing):
            if self._course.may_fail or self._is_start_sure():
                self._status, self._error = JobStatus.FAILED, str(error)
                return True
            raise SeedFailed(f"the process ended with {type(error).__name__}: {error}") from error
        if self._calm_since is not None and self._universe.now_ms() > self._calm_since:
            raise SeedFailed(f"the job failed in calm weather: {error}") from error
        return False

    def _judge_end(self, process: Process, desk: Desk, status: JobStatus) -> bool:
        """Return whether the job has ended, when its process ended with this status by itself."""
        if status is JobStatus.FINISHED:
            self._status = status
            return True
        asked = [record for record in desk.asked if record.act in _ENDS_AS and status in _ENDS_AS[record.act]]
        if not asked:
            if not process.asked_to_stop.is_set():
                raise SeedFailed(f"the job is {status}, and nobody asked for that")
            return False
        if asked[-1].act == "rescale":
            self._rescaled_to = asked[-1].parallelism
            return False
        self._status = status
        return True

    def _settle(self, process: Process, desk: Desk, *, is_over: bool) -> None:
        """Write down what came of what the process was asked for, or ask the next one."""
        assert process.outcome is not None
        status = process.outcome.value
        for record in desk.open:
            if status in _ENDS_AS.get(record.act, ()):
                record.outcome = "done"
            elif not is_over and record.act in ENDINGS:
                self._undone.append(record)
                continue
            else:
                record.outcome = record.outcome or "the process ended"
            record.ended_at_ms = self._universe.now_ms()

    def _look_at_the_sky(self) -> None:
        course, now = self._course, self._universe.now_ms()
        if self._calm_since is None and (self._moments.life >= course.most_lives or now > course.storm_ms):
            self._note_unstruck()
            self._universe.calm()
            self._calm_since = now

    def _note_unstruck(self) -> None:
        if self._calm_since is None:
            now = self._universe.now_ms()
            self._unstruck = self._universe.sky.waiting()
            self._unstruck += [
                fault.weather
                for fault in self._weather
                if isinstance(fault.weather.when, At) and fault.weather.when.ms > now
            ]

    def _kill_at_the_last_moment(self, line: journal.Line) -> None:
        """A kill that was drawn for something that never came strikes at the final checkpoint."""
        entry = line.entry
        if (
            isinstance(entry, journal.CheckpointTriggered)
            and entry.kind == "final"
            and self._moments.kills < self._kills_due
        ):
            at = After("CheckpointTriggered", {"kind": "final"}, process=line.process)
            self._expect(Fault(weather=Kill(at, None, "triggered"), life=self._moments.life + 1))

    # ── what is done from outside ──

    def _perform(self, step: Step) -> None:
        """Do what a step says; called when it is due."""
        now = self._asked_last_ms = self._universe.now_ms()
        record = StepRecord(act=step.act, life=self._moments.life + 1, asked_at_ms=now, parallelism=step.parallelism)
        self._performed.append(record)
        if step.act == "start":
            record.outcome, record.ended_at_ms = "done", now
            self._starts_due += 1
            self._start_came.set()
            self._rescaled_to = step.parallelism or self._rescaled_to
            if self._current is not None and self._current[0].is_alive:
                self._current[0].replaced.set()
            return
        if self._status.is_terminal:
            record.outcome, record.ended_at_ms = f"the job is {self._status}", now
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
                    self._settle(process, desk, is_over=self._judge(process, desk))
            elif self._is_start_sure():
                await self._start_came.wait()
            else:
                return False
        self._status, self._error = JobStatus.CREATED, ""
        return True


def _is_because_of_another(error: ActorflowError) -> bool:
    """Whether a process ended because another one owns the home, or removed from it what this one still knew."""
    causes = [error, *leaves_of(error.__cause__)]
    return any(isinstance(cause, Fenced | ObjectMissing | RestoreFailed) for cause in causes)
