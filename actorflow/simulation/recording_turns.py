"""In which order does a recorded run take its steps, so that a replay can take them in the same?

What belongs to the run is told by a context variable: a callback whose context has ``INSIDE`` set is a *turn*, counted
and run first come first served; any other is the outside's.  Turns that one turn calls for together are put in order of
the tasks that they step, since they may come out of a set, and a set walks by addresses.  Tasks are numbered and hash
by their number, so that sets of them walk in the same order too.

A :class:`Door` is what the inside waits at for something outside.  A cancellation goes through it to the other side,
as it goes through any task that awaits another one; what comes back, and when, is what a recording says.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Coroutine
from contextvars import Context, ContextVar, copy_context
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol

from actorflow.simulation.recording_values import Form

if TYPE_CHECKING:
    from actorflow.simulation.replay_files import Files

__all__ = ("INSIDE", "Door", "InsideTask", "Operation", "Turn", "Turns", "outside", "work_in_thread")

INSIDE: ContextVar[bool] = ContextVar("actorflow_inside_recording", default=False)
"""Whether code belongs to the recorded run."""


class Cancellable(Protocol):
    """What stands behind a turn that waits for its time."""

    def cancel(self) -> object: ...


class InsideTask(asyncio.Task[Any]):
    """A task of the run, known by its number."""

    def __init__(self, number: int, coroutine: Coroutine[Any, Any, Any], **options: Any) -> None:
        self.number = number  # before the base class, which files the task in a set
        super().__init__(coroutine, **options)

    def __hash__(self) -> int:
        return self.number


class Turn(asyncio.TimerHandle):
    """One callback of the run, now or when its timer is due; ``owner`` is the number of the task that it steps."""

    __slots__ = ("arguments", "at", "callback", "context", "number", "owner", "timer")

    def __init__(
        self, callback: Callable[..., object], arguments: tuple[Any, ...], context: Context, owner: int, at: float = 0.0
    ) -> None:
        self.callback: Callable[..., object] | None = callback
        self.arguments, self.context, self.owner, self.at = arguments, context, owner, at
        self.number = 0
        self.timer: Cancellable | None = None

    def cancel(self) -> None:
        self.callback, self.arguments = None, ()
        if self.timer is not None:
            self.timer.cancel()

    def cancelled(self) -> bool:
        return self.callback is None

    def get_context(self) -> Context:
        return self.context

    def when(self) -> float:
        return self.at

    def __hash__(self) -> int:
        return object.__hash__(self)

    def __eq__(self, other: object) -> bool:
        return self is other

    def __repr__(self) -> str:
        return f"<turn {self.callback!r} of {self.owner}>"


class Turns:
    """The turns that wait, and how many were run."""

    __slots__ = ("fresh", "owner", "ready", "run")

    def __init__(self) -> None:
        self.ready: deque[Turn] = deque()
        self.fresh: list[Turn] = []
        self.owner = 0
        self.run = 0

    def make(
        self, callback: Callable[..., object], arguments: tuple[Any, ...], context: Context, at: float = 0.0
    ) -> Turn:
        """Return a turn that nobody waits for yet."""
        target = getattr(callback, "__self__", None)
        owner = target.number if type(target) is InsideTask else self.owner
        return Turn(callback, arguments, context, owner, at)

    def settle(self) -> None:
        """Queue what was called for together."""
        fresh = self.fresh
        if len(fresh) > 1:
            fresh.sort(key=_owner)
        self.ready.extend(fresh)
        fresh.clear()

    def take(self, count: int, failed: Callable[[Turn, BaseException], None]) -> None:
        """Run the next turns."""
        ready, fresh = self.ready, self.fresh
        try:
            for _ in range(count):
                turn = ready.popleft()
                callback = turn.callback
                if callback is None:
                    continue
                self.run += 1
                self.owner = turn.owner
                try:
                    turn.context.run(callback, *turn.arguments)
                except (SystemExit, KeyboardInterrupt):
                    raise
                except BaseException as error:  # a callback has no caller
                    failed(turn, error)
                if len(fresh) == 1:
                    ready.append(fresh.pop())
                elif fresh:
                    self.settle()
        finally:
            self.owner = 0
            if fresh:
                self.settle()


def outside(context: Context | None = None) -> Context:
    """A copy of a context, by default of the current one, in which code does not belong to the run."""
    copied = copy_context() if context is None else context.copy()
    copied.run(INSIDE.set, False)
    return copied


def work_in_thread(function: Callable[..., Any]) -> Callable[..., Any]:
    """Take a function that the run gives to a thread out of the run: what it reads there comes in with its result."""
    if isinstance(function, partial) and isinstance(context := getattr(function.func, "__self__", None), Context):
        context.run(INSIDE.set, False)  # the copy that asyncio.to_thread made for it
    return function


def _owner(turn: Turn) -> int:
    return turn.owner


class Operation:
    """Something that is asked of the outside: its name, arguments that can be written down, the form of its result.

    ``leaves_a_trace`` says whether it changes anything out there.  The rest is for the files of a replay: ``effect`` is
    what it does to them, ``seen`` what its result says of them, ``substitute`` how they give what was redacted.
    """

    __slots__ = ("arguments", "effect", "form", "leaves_a_trace", "name", "number", "seen", "substitute")

    def __init__(
        self,
        name: str,
        arguments: tuple[Any, ...],
        form: Form,
        *,
        leaves_a_trace: bool = False,
        effect: Callable[[Files], object] | None = None,
        seen: Callable[[Files, Any], object] | None = None,
        substitute: Callable[[Files, int], Any] | None = None,
    ) -> None:
        self.name, self.arguments, self.form, self.leaves_a_trace = name, arguments, form, leaves_a_trace
        self.effect, self.seen, self.substitute = effect, seen, substitute
        self.number = 0

    def __str__(self) -> str:
        return f"{self.name}({', '.join(map(repr, self.arguments))})"


class Door(asyncio.Future[Any]):
    """What the inside awaits until something comes in from outside."""

    def __init__(
        self, operation: Operation, loop: asyncio.AbstractEventLoop, cancel: Callable[[Any], object] | None = None
    ) -> None:
        self.operation, self._forward = operation, cancel
        self.has_answer = self.is_dropped = False
        self.message: Any = None
        super().__init__(loop=loop)

    def cancel(self, msg: Any = None) -> bool:
        """Let the outside be cancelled; what becomes of it comes back through the door."""
        if self.done():
            return False
        self.message = msg
        if self.has_answer:
            self.is_dropped = True  # it came too late to be awaited, so it is as if it had not come
        elif self._forward is not None:
            self._forward(msg)
        return True

    def open_cancelled(self) -> None:
        """Say inside that it was cancelled."""
        super().cancel(self.message)

    def __hash__(self) -> int:
        return self.operation.number
