"""How does a test hold the time in its hand?

``simulation.run`` runs a program to its end and lets time jump.  A :class:`VirtualClock` runs it as far as a test says:

    clock = VirtualClock()
    reminder = clock.start(remind(after=timedelta(minutes=5)))
    clock.advance(minutes=4, seconds=59)
    assert not reminder.done()
    clock.advance(seconds=1)
    assert reminder.done()

All methods are plain calls, so a plain ``def`` of a test is enough; an ``async def`` of one can use them as well, and
its own loop stands still meanwhile.  No real time passes, nothing is drawn that ``seed`` does not decide, and what a
started coroutine raises is raised by the very call during which it happened.
"""

from __future__ import annotations

import asyncio
import math
import sys
import threading
from collections.abc import Callable, Coroutine
from contextvars import copy_context
from datetime import timedelta
from types import TracebackType
from typing import Any, Self, TypeVar

from actorflow.simulation.loop import SimulatedLoop

__all__ = ("VirtualClock", "off_the_loop")

T = TypeVar("T")


class VirtualClock:
    """A simulated loop whose time moves when it is told to."""

    def __init__(self, seed: int = 0) -> None:
        self.loop = SimulatedLoop(seed)
        self._runner = asyncio.Runner(loop_factory=lambda: self.loop)
        self._runner.get_loop()
        self._now = timedelta()
        self._started: list[asyncio.Task[Any]] = []

    def now(self) -> timedelta:
        """How much virtual time has passed."""
        return self._now

    def start(self, coroutine: Coroutine[Any, Any, T], *, name: str | None = None) -> asyncio.Task[T]:
        """Begin a coroutine, and run it as far as it comes without time passing."""
        task: asyncio.Task[T] = self.loop.create_task(coroutine, name=name)
        self._started.append(task)
        self.settle()
        return task

    def run(self, coroutine: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine to its end, whatever time that takes, and return what it returns."""
        try:
            return off_the_loop(lambda: self.loop.run_until_complete(coroutine))
        finally:
            # Up to a whole millisecond, so that from here on times are round again.
            self._now = max(self._now, timedelta(milliseconds=math.ceil(self.loop.time() * 1e3 - 1e-6)))
            self.settle()

    def advance(
        self,
        by: timedelta = timedelta(),
        *,
        days: float = 0,
        hours: float = 0,
        minutes: float = 0,
        seconds: float = 0,
        milliseconds: float = 0,
    ) -> None:
        """Let time pass, and run everything that is due meanwhile, at its time."""
        by += timedelta(days=days, hours=hours, minutes=minutes, seconds=seconds, milliseconds=milliseconds)
        if by < timedelta():
            raise ValueError(f"time does not go back: advance by {by.total_seconds():g} s")
        self._now += by
        self.settle()

    def settle(self) -> None:
        """Run everything that is ready, and what becomes ready by that, without time passing."""
        self.loop.horizon = self._now.total_seconds()
        try:
            off_the_loop(self.loop.run_forever)
        finally:
            self.loop.horizon = None
        self._tell()

    def close(self) -> None:
        """Cancel what still runs, and close the loop; raise what nobody has heard of."""
        if self.loop.is_closed():
            return
        off_the_loop(self._runner.close)
        for context in self.loop.unhandled:
            raise AssertionError(f"nobody heard of {context.get('message')}") from context.get("exception")

    def _tell(self) -> None:
        """Raise what a started coroutine raised, once."""
        ended = [task for task in self._started if task.done()]
        self._started = [task for task in self._started if not task.done()]
        errors = [error for task in ended if not task.cancelled() and (error := task.exception()) is not None]
        if errors:
            raise errors[0]

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

    def __repr__(self) -> str:
        return f"<VirtualClock at {self._now}>"


def off_the_loop(function: Callable[[], T]) -> T:
    """Call a function that runs an event loop, also where one is running already.

    That one waits meanwhile, as for any call that takes long; the function gets a thread of its own, because a thread
    has at most one running loop.
    """
    if not _is_in_a_loop():
        return function()
    answers: list[T] = []
    errors: list[BaseException] = []

    def call() -> None:
        if (sniffio := sys.modules.get("sniffio")) is not None:
            sniffio.current_async_library_cvar.set(None)  # in the copy: what runs here is asyncio's
        try:
            answers.append(function())
        except BaseException as error:  # it belongs to the caller, who waits for it
            errors.append(error)

    context = copy_context()
    thread = threading.Thread(target=context.run, args=(call,), name="actorflow simulation")
    thread.start()
    thread.join()
    if errors:
        raise errors[0]
    return answers[0]


def _is_in_a_loop() -> bool:
    """Whether an event loop runs in this thread: asyncio's, or that of another library which anyio knows."""
    if asyncio._get_running_loop() is not None:  # noqa: SLF001  # the public one raises
        return True
    sniffio = sys.modules.get("sniffio")
    return sniffio is not None and sniffio.thread_local.name is not None
