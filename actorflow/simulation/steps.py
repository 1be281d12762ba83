"""What does the simulated loop put in order?  Callbacks, tasks, and work off the loop.

Each says whose it is: a callback which task it steps (its ``owner``), a task which simulated process started it.  That
a task hashes by its number is what makes sets of tasks walk in the same order in every run.
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable, Coroutine
from contextvars import Context, ContextVar, copy_context
from types import FrameType
from typing import Any

__all__ = (
    "Severed",
    "SimulatedTask",
    "Step",
    "Timer",
    "Work",
    "WorkFuture",
    "current_process",
    "frames",
    "is_severed",
    "where",
)

current_process: ContextVar[object | None] = ContextVar("actorflow_current_process", default=None)
"""The simulated process that a callback belongs to; ``None`` is the world itself, or the test."""

_DEEPEST = 50
"""How many functions of one waiting task a report names at most."""


class Severed(BaseException):
    """Raised by every seam of a simulated process that has died: its code can do no more than unwind."""


def is_severed(error: object) -> bool:
    """Whether an exception says only that its process is dead."""
    if isinstance(error, BaseExceptionGroup):
        return all(is_severed(inner) for inner in error.exceptions)
    return isinstance(error, Severed)


class SimulatedTask(asyncio.Task[Any]):
    """A task that knows its creation number and the simulated process that it belongs to."""

    def __init__(self, number: int, coroutine: Coroutine[Any, Any, Any], **options: Any) -> None:
        self.number = number  # before the base class, which files the task in a set
        context: Context | None = options.get("context")
        self.process = current_process.get() if context is None else context.get(current_process)
        super().__init__(coroutine, **options)

    def __hash__(self) -> int:
        return self.number

    @property
    def has_begun(self) -> bool:
        """Whether it took its first step."""
        return inspect.getcoroutinestate(self.get_coro()) != inspect.CORO_CREATED  # type: ignore[arg-type]


class WorkFuture(asyncio.Future[Any]):
    """The outcome of work off the loop; hashes by the number of the work."""

    def __init__(self, number: int, loop: asyncio.AbstractEventLoop) -> None:
        self.number = number
        super().__init__(loop=loop)

    def __hash__(self) -> int:
        return self.number


class Work:
    """A function on its way through the executor that there is not."""

    __slots__ = ("function", "future", "process", "timer")

    def __init__(self, function: Callable[[], Any], future: WorkFuture, process: object | None) -> None:
        self.function, self.future, self.process = function, future, process
        self.timer: asyncio.TimerHandle | None = None


class Step(asyncio.TimerHandle):
    """One callback to be run; ``owner`` is the number of the task whose order it keeps."""

    __slots__ = ("arguments", "callback", "context", "owner")

    def __init__(
        self, callback: Callable[..., object], arguments: tuple[Any, ...], context: Context | None, owner: int
    ) -> None:
        self.callback: Callable[..., object] | None = callback
        self.arguments = arguments
        self.context = copy_context() if context is None else context
        self.owner = owner

    def cancel(self) -> None:
        self.callback, self.arguments = None, ()  # what it held may be large

    def cancelled(self) -> bool:
        return self.callback is None

    def get_context(self) -> Context:
        return self.context

    def when(self) -> float:
        """Return when it was due; what was due at once says 0."""
        return 0.0

    def __hash__(self) -> int:
        return object.__hash__(self)

    def __eq__(self, other: object) -> bool:
        return self is other

    def __repr__(self) -> str:
        return f"<callback {self.callback!r} of {self.owner}>"


class Timer(Step):
    """A callback to be run at a time; ``cancelled_early`` is told when it is not to be run after all."""

    __slots__ = ("at", "cancelled_early")

    def __init__(
        self,
        callback: Callable[..., object],
        arguments: tuple[Any, ...],
        context: Context | None,
        owner: int,
        at: float,
        cancelled_early: Callable[[], None],
    ) -> None:
        self.callback = callback  # and not by way of the class above: naps are many
        self.arguments = arguments
        self.context = copy_context() if context is None else context
        self.owner = owner
        self.at = at
        self.cancelled_early: Callable[[], None] | None = cancelled_early

    def cancel(self) -> None:
        if self.callback is not None:
            super().cancel()
            if self.cancelled_early is not None:
                self.cancelled_early()

    def when(self) -> float:
        return self.at


def frames(coroutine: Any) -> list[FrameType]:
    """Return the frames of a suspended coroutine and of all that it waits for, outermost first."""
    found: list[FrameType] = []
    while coroutine is not None and len(found) < _DEEPEST:
        for kind, waits_for in (("cr", "cr_await"), ("ag", "ag_await"), ("gi", "gi_yieldfrom")):
            if hasattr(coroutine, waits_for):
                frame = getattr(coroutine, f"{kind}_frame")
                if frame is not None:
                    found.append(frame)
                coroutine = getattr(coroutine, waits_for)
                break
        else:
            break
    return found


def where(coroutine: Any) -> list[str]:
    """Return the functions in which a suspended coroutine waits, innermost first."""
    waiting = reversed(frames(coroutine))
    return [f"{frame.f_code.co_name} ({frame.f_code.co_filename}:{frame.f_lineno})" for frame in waiting]
