"""Cancels a user's code once, and then lets it come to its end.

anyio cancels by level: whatever waits inside a cancelled scope is cancelled again at once, so a ``finally`` that waits
would never get through.  A consumer that says goodbye to its broker, or a session that flushes, has to wait (R137).  So
code of users runs as asyncio would run it: cancelled by one exception, and then given ``CLOSE_WITHIN_S``.  What has not
ended by then is cancelled by level after all.

Each piece of work is two children of the attempt, one that does it and one that hears that it is to end; nothing of it
outlives the attempt.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, Protocol

import anyio

__all__ = ("CLOSE_WITHIN_S", "Sheltered", "Spawn")

CLOSE_WITHIN_S = 10.0
"""How long an operator, a source, a call or a sink may take to close while the attempt is being torn down."""


class Spawn(Protocol):
    """Starts a child coroutine of the attempt."""

    def __call__(self, function: Callable[..., Coroutine[Any, Any, None]], *args: Any, name: str) -> None: ...


class Sheltered:
    """Some work, from its start to its end."""

    __slots__ = ("_abandoned", "_done", "_scope", "_shelter", "_task", "_work", "is_cancelled")

    def __init__(self, work: Callable[[], Awaitable[None]], *, abandoned: Callable[[], None] | None = None) -> None:
        """``abandoned`` is called when the work did not end in time."""
        self._work, self._abandoned = work, abandoned
        self._scope, self._shelter = anyio.CancelScope(), anyio.CancelScope(shield=True)
        self._done = anyio.Event()
        self._task: asyncio.Task[Any] | None = None
        self.is_cancelled = False
        """Whether it was told to end."""

    def start(self, spawn: Spawn, *, name: str) -> None:
        """Begin; both children run in the context of whoever calls this."""
        spawn(self._do, name=name)
        spawn(self._listen, name=f"{name}, and is told when to end")

    def cancel(self) -> None:
        """Let it come to its end."""
        self._scope.cancel()

    async def _do(self) -> None:
        try:
            if self.is_cancelled:
                return
            self._task = asyncio.current_task()
            with self._shelter:
                await self._work()
        except asyncio.CancelledError:
            if not self.is_cancelled:
                raise
        finally:
            self._done.set()

    async def _listen(self) -> None:
        try:
            with self._scope:
                await self._done.wait()
        finally:
            if not self._done.is_set():
                await self._end()

    async def _end(self) -> None:
        self.is_cancelled = True
        if self._task is not None:
            self._task.cancel()
        with anyio.move_on_after(CLOSE_WITHIN_S, shield=True):
            await self._done.wait()
            return
        self._shelter.cancel()
        if self._abandoned is not None:
            self._abandoned()
