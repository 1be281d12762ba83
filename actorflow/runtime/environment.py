"""The one way in: settings, and a job that runs inside the loop of whoever asks.

``Environment`` never creates an event loop and never installs a signal handler; :func:`run` and the command line, which
own their loop, do both.
"""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator, Mapping
from contextlib import AbstractContextManager, asynccontextmanager, contextmanager
from datetime import timedelta
from types import FrameType
from typing import Any, Literal

import anyio

from actorflow.abc.world import World
from actorflow.config import Buffers, Checkpoints, Restart, Settings
from actorflow.dataflow.job import Job
from actorflow.errors import ActorflowError
from actorflow.protocol.lifecycle import JobStatus
from actorflow.runtime.handle import JobHandle
from actorflow.runtime.real_world import real_world
from actorflow.runtime.supervisor import Supervisor

__all__ = ("Environment", "Listen", "process_signals", "run", "wait_or_signal")

Listen = Callable[[Callable[[], None]], AbstractContextManager[None]]
"""Hears of signals while its block is open, and then calls what it was given."""


class Environment:
    """How jobs run: see the table of settings in the README.

    >>> Environment(parallelism=2).settings.parallelism
    2
    """

    def __init__(
        self,
        *,
        parallelism: int | None = None,
        max_parallelism: int | None = None,
        state: str | None = None,
        restart: Restart | None = None,
        stop_within: timedelta | None = None,
        show_records: bool | None = None,
        checkpoints: Checkpoints | None = None,
        buffers: Buffers | None = None,
        settings: Settings | None = None,
        world: World | None = None,
    ) -> None:
        given = {
            "parallelism": parallelism,
            "max_parallelism": max_parallelism,
            "state": state,
            "restart": restart,
            "stop_within": stop_within,
            "show_records": show_records,
            "checkpoints": checkpoints,
            "buffers": buffers,
        }
        base = settings if settings is not None else Settings()
        self.settings = base.merged({name: value for name, value in given.items() if value is not None})
        self.world = world

    @classmethod
    def from_mapping(
        cls, mapping: Mapping[str, Any], *, source: str = "the mapping", world: World | None = None
    ) -> Environment:
        """Read settings by our names or by Flink's; all mistakes are told at once in one ``InvalidConfig``."""
        return cls(settings=Settings.from_mapping(mapping, source=source), world=world)

    @asynccontextmanager
    async def run(
        self,
        job: Job,
        *,
        resume_from: str = "latest",
        rewind: bool = False,
        on_failure: Literal["raise", "report"] = "raise",
    ) -> AsyncIterator[JobHandle]:
        """Run a job inside this event loop for as long as the block lasts.

        The job goes on from its latest checkpoint.  ``resume_from="nothing"`` starts over; a path starts from that
        snapshot, once per home, without ever changing it (``rewind`` insists on it again).

        Leaving the block stops the job with a last checkpoint; leaving it by an exception cancels it.  If the job fails
        for good the block is cancelled and ``JobFailed`` is raised; ``on_failure="report"`` leaves the block alone.

        Raises ``InvalidJob``, ``InvalidConfig``, ``RestoreFailed``, ``StorageFailed`` or ``Fenced`` before any record
        is processed.
        """
        world = self.world if self.world is not None else real_world()
        supervisor = Supervisor(job, self.settings, world, resume_from=resume_from, rewind=rewind)
        error: BaseException | None = None
        async with anyio.create_task_group() as group:
            group.start_soon(supervisor.run, name=f"job {job.name}")
            try:
                await supervisor.started.wait()
                if supervisor.failure is None or (on_failure == "report" and supervisor.has_run):
                    with anyio.CancelScope() as block:
                        if on_failure == "raise":
                            supervisor.on_failure = block.cancel
                        yield JobHandle(supervisor)
                    await supervisor.leave()
            except BaseException as left_by:  # whatever it is, the job ends first and it goes on after that
                error = left_by
                with anyio.CancelScope(shield=True):
                    await supervisor.cancel()
            supervisor.on_failure = None
            with anyio.CancelScope(shield=True):
                await supervisor.ended.wait()
        if error is not None:
            if supervisor.failure is not None and supervisor.failure is not error:
                error.add_note(f"and the job failed: {supervisor.failure}")
            raise error
        if supervisor.failure is not None and (on_failure == "raise" or not supervisor.has_run):
            raise supervisor.failure


@contextmanager
def process_signals(heard: Callable[[], None]) -> Iterator[None]:
    """Let the running loop call ``heard`` at the first SIGINT or SIGTERM; a second one leaves the process at once.

    Python's own handlers run even while a user's function keeps the loop busy, so a second signal always ends at once.
    """
    loop = asyncio.get_running_loop()
    was_heard = False

    def hear(number: int, _frame: FrameType | None) -> None:
        nonlocal was_heard
        if was_heard:
            os._exit(128 + number)
        was_heard = True
        loop.call_soon_threadsafe(heard)

    before = [(number, signal.signal(number, hear)) for number in (signal.SIGINT, signal.SIGTERM)]
    try:
        yield
    finally:
        for number, handler in before:
            signal.signal(number, signal.SIG_DFL if handler is None else handler)


async def wait_or_signal(
    handle: JobHandle,
    *,
    beside: Callable[[JobHandle], Coroutine[Any, Any, None]] | None = None,
    listen: Listen = process_signals,
) -> JobStatus:
    """Wait for a job's end; SIGINT or SIGTERM stops it with a last checkpoint, a second one leaves the process at once.

    ``beside`` runs meanwhile; ``listen`` says how signals are heard.  As it is, it installs signal handlers, so only
    whoever owns the process may call it.
    """
    failure: ActorflowError | None = None
    async with anyio.create_task_group() as group:
        group.start_soon(_stop_on_signals, handle, listen)
        if beside is not None:
            group.start_soon(beside, handle)
        try:
            await handle.wait()
        except ActorflowError as error:  # out of the group as it is
            failure = error
        group.cancel_scope.cancel()
    if failure is not None:
        raise failure
    return handle.status.status


async def _stop_on_signals(handle: JobHandle, listen: Listen) -> None:
    """Stop at the first signal as leaving the block does: if the last checkpoint fails there is no going on."""
    first = anyio.Event()
    with listen(first.set):
        await first.wait()
        await handle.leave()


def run(job: Job, **settings: Any) -> None:
    """Run a job to its end in a loop of its own; Ctrl-C once stops it with a last checkpoint, twice at once.

    Takes the arguments of :class:`Environment`, and ``resume_from`` and ``rewind``.
    """
    options = {name: settings.pop(name) for name in ("resume_from", "rewind") if name in settings}
    world = settings.pop("world", None) or real_world(owns_process=True)
    environment = Environment(world=world, **settings)

    async def main() -> None:
        async with environment.run(job, **options) as handle:
            await wait_or_signal(handle)

    anyio.run(main)
