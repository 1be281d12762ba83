"""How does a test of a job look, when the test decides what happens next?

The job runs as it is, checkpoints and all, on virtual time; its sources and sinks are the test's hands.

    def test_words_are_counted_across_a_kill() -> None:
        with Harness(word_count) as job:
            job.push("to be", "or not")
            assert job.rows() == [("to", 1), ("be", 1), ("or", 1), ("not", 1)]
            job.checkpoint()
            job.push("to be")
            job.kill()
            job.restore()
            job.expect([("to", 1), ("be", 1), ("or", 1), ("not", 1), ("to", 2), ("be", 2)])

Each call returns once the job has done all it can do without time passing; ``advance`` lets time pass.  All of them are
plain calls, usable from ``def`` and ``async def`` alike.  What ends the job for good is raised by the very call during
which it happened.

``check`` looks for what nobody thought of; a harness tells one story, exactly.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from contextlib import suppress
from datetime import timedelta
from types import TracebackType
from typing import Any, Self, TypeVar

from actorflow.abc.connectors import Sink, Source
from actorflow.abc.world import World
from actorflow.config import Settings
from actorflow.dataflow.job import Job
from actorflow.errors import InvalidJob
from actorflow.model.journal import Line
from actorflow.protocol.lifecycle import JobStatus
from actorflow.runtime.environment import Environment
from actorflow.runtime.handle import CheckpointInfo, JobHandle, Status
from actorflow.runtime.homes import homes_of_process
from actorflow.simulation.harness_ends import KeptSink, PushedSource
from actorflow.simulation.process import Ending, Process
from actorflow.simulation.steps import is_severed
from actorflow.simulation.virtual_clock import VirtualClock
from actorflow.simulation.weather import Weather
from actorflow.simulation.world import Universe

__all__ = ("Harness",)

T = TypeVar("T")

_PROCESS = "job"
_STORAGE = "s3://checkpoints"

_WITHIN_S = 600.0
"""Whatever a test waits for (a checkpoint, an end) has to come within this much virtual time."""


class _Unanswered(InvalidJob):
    """Raised when the process that was asked is no more."""


class Harness:
    """A running job in a test's hands.

    ``job`` is a function that returns a job, called again for every life of the process; a ``Job`` itself will do.
    ``settings`` are those of an ``Environment``, by their names; checkpoints are taken when the test asks for one,
    unless ``checkpoints.every`` is among them.  Sources and sinks whose names are in ``keep`` stay what they are.
    ``clock`` may be shared with other things that a test runs; the harness leaves it open.
    """

    def __init__(
        self,
        job: Job | Callable[[], Job],
        *,
        settings: Mapping[str, object] | None = None,
        parallelism: int = 1,
        keep: Iterable[str] = (),
        seed: int = 0,
        clock: VirtualClock | None = None,
    ) -> None:
        self._build: Callable[[], Job] = (lambda: job) if isinstance(job, Job) else job
        self._settings = Settings.from_mapping({"parallelism": parallelism, "checkpoints.storage": _STORAGE}).merged(
            settings or {}
        )
        self._keep = tuple(keep)
        self._ends: list[str] = []
        self._owns_clock = clock is None
        self.clock = VirtualClock(seed) if clock is None else clock
        self._sources: dict[str, PushedSource] = {}
        self._sinks: dict[str, KeptSink] = {}
        self._process: Process | None = None
        self._handle: JobHandle | None = None
        self._last_status: Status | None = None
        self._is_told = False
        try:
            self.universe: Universe = self.clock.run(_universe(seed))
            self.restore()
        except BaseException:
            self.close()
            raise

    # ── what goes in, and what comes out ──

    def push(self, *records: Any, source: str | None = None) -> None:
        """Give records to a source (which one must be said where there are several), and let the job process them."""
        _one(self._sources, source, "source").push(records)
        self._settle()

    def rows(self, sink: str | None = None) -> list[Any]:
        """What the job has written so far, committed or not; what a killed attempt wrote in vain is not there."""
        kept = _one(self._sinks, sink, "sink")
        return kept.written() if self._is_alive else kept.committed()

    def committed(self, sink: str | None = None) -> list[Any]:
        """What an outsider sees: rows whose checkpoint has completed."""
        return _one(self._sinks, sink, "sink").committed()

    def expect(self, rows: Sequence[Any], *, sink: str | None = None, in_order: bool = False) -> None:
        """Raise ``AssertionError`` unless just these rows were written, each as often; their order matters if said."""
        written = self.rows(sink)
        if in_order or list(rows) == written:
            assert list(rows) == written, f"expected {list(rows)}, written {written}"
            return
        lacking, surplus = _differences(rows, written)
        assert not lacking, f"missing {', '.join(map(repr, lacking))}; written {written}"
        assert not surplus, f"not expected {', '.join(map(repr, surplus))}; written {written}"

    def query(self, state: str, *, key: Any) -> Any:
        """Return what a keyed state such as ``"count.state"`` holds for a key now; ``None`` when it is unset."""
        return self._ask(lambda job: job.query(state, key=key))

    # ── time ──

    def advance(self, by: timedelta = timedelta(), **parts: float) -> None:
        """Let time pass: ``advance(minutes=1, seconds=30)``, in the parts that ``VirtualClock.advance`` takes."""
        self.clock.advance(by, **parts)
        self._tell()

    def now(self) -> timedelta:
        """How much virtual time has passed."""
        return self.clock.now()

    # ── the life of the job ──

    def checkpoint(self) -> CheckpointInfo:
        """Take a checkpoint, and commit what it holds.  Raises ``CheckpointAborted`` with the reason."""
        taken = self._ask(lambda job: job.checkpoint())
        self._settle()
        return taken

    def kill(self) -> None:
        """End the process as ``kill -9`` would: what is in no checkpoint is lost."""
        self.clock.run(_kill(self._living()))

    def restore(self, *, parallelism: int | None = None) -> None:
        """Start the process again (after a kill, or an end): the job goes on from its latest checkpoint."""
        if self._is_alive:
            raise InvalidJob("the job still runs: kill or stop it before it can be started again")
        if parallelism is not None:
            self._settings = self._settings.merged({"parallelism": parallelism})
        self.clock.run(self._start())
        self._settle()

    def finish(self) -> JobStatus:
        """Let all sources end, and wait until the job has finished and everything is committed."""
        for source in self._sources.values():
            source.close()
        return self._end()

    def stop(self) -> JobStatus:
        """Stop with a last checkpoint, as SIGTERM does."""
        return self._end_by(lambda job: job.stop())

    def drain(self) -> JobStatus:
        """End the input here, let everything come out, commit it, and finish."""
        return self._end_by(lambda job: job.drain())

    def cancel(self) -> JobStatus:
        """End at once, without a last checkpoint."""
        return self._end_by(lambda job: job.cancel())

    def strike(self, weather: Weather) -> None:
        """Let something go wrong, now or when its trigger says."""
        self.universe.expect(weather)
        self._settle()

    @property
    def status(self) -> Status:
        """How the job is doing, or how it was when it ended."""
        if self._is_alive and self._handle is not None:
            return self._handle.status
        if self._last_status is None:
            raise InvalidJob("the process was killed and says nothing any more")
        return self._last_status

    @property
    def journal(self) -> list[Line]:
        """What the job, all its lives, and the weather have told."""
        return list(self.universe.journal)

    def entries(self, name: str) -> list[Any]:
        """The journal's entries of one name, such as ``CheckpointCompleted``."""
        return [line.entry for line in self.universe.journal if line.name == name]

    def close(self) -> None:
        """End the process, if it still lives; raise what nobody has heard of."""
        if self._is_alive and not self.clock.loop.is_closed():
            self.kill()
        if self._owns_clock:
            self.clock.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        try:
            self.close()
        except AssertionError:
            if error is None:  # else that one is the story, and this its consequence
                raise

    # ── inside ──

    async def _start(self) -> None:
        started = asyncio.Event()

        def show(handle: JobHandle) -> None:
            self._handle = handle
            started.set()

        self._is_told, self._last_status = False, None
        self._process = await self.universe.start(_PROCESS, self._live, self._job(), show)
        await self._wait(started, self._process.ended)

    def _job(self) -> Job:
        job = self._build()
        if not isinstance(job, Job):
            raise InvalidJob(f"what a harness runs must return a Job, not {type(job).__name__}")
        self._ends = []
        job.replace_sources(self._source)
        job.replace_sinks(self._sink)
        for name in self._keep:
            if name not in self._ends:
                raise InvalidJob(f"keep = {name!r}: the job has no source and no sink of this name, but {self._ends}")
        return job

    def _source(self, name: str, source: Source[Any]) -> Source[Any]:
        self._ends.append(name)
        return source if name in self._keep else self._sources.setdefault(name, PushedSource(name))

    def _sink(self, name: str, sink: Sink[Any]) -> Sink[Any]:
        self._ends.append(name)
        return sink if name in self._keep else self._sinks.setdefault(name, KeptSink(sink.parallelism))

    @property
    def _is_alive(self) -> bool:
        return self._process is not None and self._process.is_alive

    def _living(self) -> Process:
        self._tell()
        if self._process is None or not self._process.is_alive:
            raise InvalidJob("the job does not run; restore() starts it again")
        return self._process

    def _ask(self, question: Callable[[JobHandle], Coroutine[Any, Any, T]]) -> T:
        """Ask the job something, from inside of its process, and wait for the answer."""
        process = self._living()
        assert self._handle is not None
        asked: asyncio.Task[T] = self.clock.loop.create_task(question(self._handle), context=process.context.copy())
        answered = asyncio.Event()
        asked.add_done_callback(lambda _: answered.set())
        try:
            self.clock.run(self._wait(answered))
        finally:
            asked.cancel()
        if asked.cancelled() or is_severed(asked.exception()):
            self._tell()
            was_killed = process.outcome is not None and process.outcome.ending is Ending.KILLED
            raise _Unanswered(f"the process {'was killed' if was_killed else 'ended'} meanwhile")
        return asked.result()

    def _end_by(self, question: Callable[[JobHandle], Coroutine[Any, Any, object]]) -> JobStatus:
        """Ask for an end; the process may have ended before whoever asked is answered."""
        with suppress(_Unanswered):
            self._ask(question)
        return self._end()

    def _end(self) -> JobStatus:
        process = self._process
        assert process is not None
        self.clock.run(self._wait(process.ended))
        self._settle()
        assert process.outcome is not None
        if process.outcome.ending is Ending.KILLED:
            raise InvalidJob("the process was killed meanwhile")
        status: JobStatus = process.outcome.value
        return status

    async def _live(self, world: World, job: Job, show: Callable[[JobHandle], None]) -> JobStatus:
        """Be a program that runs the job to its end."""
        homes_of_process.set({})
        environment = Environment(settings=self._settings, world=world)
        async with environment.run(job, on_failure="report") as handle:
            show(handle)
            try:
                return await handle.wait()
            finally:
                self._last_status = handle.status

    async def _wait(self, *events: asyncio.Event) -> None:
        """Wait for one of these."""
        waiting = [asyncio.ensure_future(event.wait()) for event in events]
        try:
            await asyncio.wait(waiting, timeout=_WITHIN_S, return_when=asyncio.FIRST_COMPLETED)
            if not any(event.is_set() for event in events):
                raise AssertionError(self.universe.loop.report(f"nothing came of it within {_WITHIN_S:g} virtual s"))
        finally:
            for future in waiting:
                future.cancel()

    def _settle(self) -> None:
        self.clock.settle()
        self._tell()

    def _tell(self) -> None:
        """Raise what ended the process, once."""
        outcome = None if self._process is None else self._process.outcome
        if outcome is not None and outcome.error is not None and not self._is_told:
            self._is_told = True
            raise outcome.error


async def _universe(seed: int) -> Universe:
    return Universe(seed)


async def _kill(process: Process) -> None:
    process.kill()
    await process.wait()


def _differences(rows: Sequence[Any], written: Sequence[Any]) -> tuple[list[Any], list[Any]]:
    """Return which rows are missing and which are there beside them; equal is what Python holds for equal."""
    try:
        expected, there = Counter(rows), Counter(written)
    except TypeError:  # they can't be hashed
        lacking, surplus = [], list(written)
        for row in rows:
            if row in surplus:
                surplus.remove(row)
            else:
                lacking.append(row)
        return lacking, surplus
    return list((expected - there).elements()), list((there - expected).elements())


def _one(ends: Mapping[str, T], name: str | None, kind: str) -> T:
    """Return the source or sink of a name, or the only one that there is."""
    if name is None and len(ends) == 1:
        return next(iter(ends.values()))
    if name is None or name not in ends:
        asked = f"which {kind}?" if name is None else f"the test has no {kind} {name!r} in its hands;"
        raise InvalidJob(f"{asked} there is {', '.join(map(repr, ends)) or 'none'}")
    return ends[name]
