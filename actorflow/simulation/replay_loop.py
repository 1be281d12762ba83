"""In which order does a replayed run take its turns?

In that in which the recording loop took them: first come first served, with nothing outside.  What came in then comes
in now, after the same number of turns; what waits for anything else waits for ever, which is a difference, and told
with who waits where.  Where the recording ends because its process was killed, the replay ends too, and what is left
of the life may unwind, without any effect.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Coroutine
from contextvars import Context, copy_context
from typing import Any

from actorflow.simulation.recording_entries import Kind
from actorflow.simulation.recording_turns import INSIDE, InsideTask, Turn
from actorflow.simulation.replay_files import Files
from actorflow.simulation.replay_passage import Halted, ReplayPassage
from actorflow.simulation.replay_script import Script
from actorflow.simulation.steps import where

__all__ = ("ReplayLoop",)

_ROUNDS, _TURNS = 20, 5_000
"""How often what is left of a life is cancelled, and how many turns it may take each time, to come to its end."""

_MOST_TOLD = 5
"""Tasks that a divergence names at most."""


class _Timer:
    """What stands behind a turn that waits until the recording says that its time has come."""

    __slots__ = ("_number", "_timers")

    def __init__(self, timers: dict[int, Turn], number: int) -> None:
        self._timers, self._number = timers, number

    def cancel(self) -> None:
        self._timers.pop(self._number, None)


class ReplayLoop(ReplayPassage):
    """A loop for one life."""

    def __init__(self, script: Script, files: Files) -> None:
        super().__init__(script, files)
        self.errors: list[dict[str, Any]] = []
        self._tasks = self._timers_set = 0
        self._is_running = False

    # ── turns ────────────────────────────────────────────────────────────────────────────────

    def call_soon(self, callback: Any, *args: Any, context: Context | None = None) -> Any:  # type: ignore[override]  # as inherited, in fewer words
        if context is None:
            context = copy_context()
        turn = self.turns.make(callback, args, context)
        if context.get(INSIDE):  # there is nothing outside
            self.turns.fresh.append(turn)
        return turn

    def call_later(self, delay: float, callback: Any, *args: Any, context: Context | None = None) -> Any:  # type: ignore[override]  # as inherited, in fewer words
        return self.call_at(delay, callback, *args, context=context)

    def call_at(self, when: float, callback: Any, *args: Any, context: Context | None = None) -> Any:  # type: ignore[override]  # as inherited, in fewer words
        turn = self.turns.make(callback, args, copy_context() if context is None else context, when)
        if turn.context.get(INSIDE):
            self._timers_set += 1
            turn.number = self._timers_set
            self.timers[turn.number] = turn
            turn.timer = _Timer(self.timers, turn.number)
        return turn

    def call_soon_threadsafe(self, callback: Any, *args: Any, context: Context | None = None) -> Any:  # type: ignore[override]  # as inherited, in fewer words
        raise RuntimeError("a thread called back into a replay, which has no threads")

    def create_future(self) -> asyncio.Future[Any]:
        return asyncio.Future(loop=self)

    def create_task(self, coro: Any, *, name: Any = None, context: Context | None = None, **_options: Any) -> Any:
        inside = INSIDE.get() if context is None else context.get(INSIDE)
        if not inside:
            return asyncio.Task(coro, loop=self, name=name, context=context)
        self._tasks += 1
        named = f"task {self._tasks}" if name is None else str(name)
        return InsideTask(self._tasks, coro, loop=self, name=named, context=context)

    def set_task_factory(self, factory: Any) -> None:
        raise NotImplementedError("a replay makes its tasks itself")

    def get_task_factory(self) -> None:
        return None

    # ── running ──────────────────────────────────────────────────────────────────────────────

    def play(self, life: Coroutine[Any, Any, None], context: Context) -> asyncio.Task[None]:
        """Play a life to its end, or to where the recording ends, or the replay goes another way."""
        hooks = sys.get_asyncgen_hooks()
        sys.set_asyncgen_hooks(firstiter=lambda _: None, finalizer=lambda _: None)
        asyncio._set_running_loop(self)  # noqa: SLF001  # meant for loops
        self._is_running = True
        try:
            task: asyncio.Task[None] = self.create_task(life, name="life", context=context)
            self.turns.settle()
            while not self._has_ended(task):
                self.let_in()
                if not self.is_halted:
                    self._take(task)
            if self.is_halted:
                self._unwind()
        finally:
            self._is_running = False
            asyncio._set_running_loop(None)  # noqa: SLF001  # meant for loops
            sys.set_asyncgen_hooks(*hooks)
        return task

    def _has_ended(self, task: asyncio.Task[None]) -> bool:
        if self.is_halted:
            return True
        entry = self.script.peek()
        if entry is None or entry.kind is not Kind.END:
            return False
        return task.done() or entry.value[0] == "interrupted"

    def _take(self, task: asyncio.Task[None]) -> None:
        if self.turns.ready:
            self.turns.take(1, self._turn_failed)
        else:
            waiting = "its life is over" if task.done() else f"waits; {self._who_waits()}"
            self.divergence = self.script.differs(waiting)
            self.is_halted = True

    def _who_waits(self) -> str:
        tasks = [task for task in asyncio.all_tasks(self) if isinstance(task, InsideTask)]
        told = [
            f"{task.get_name()} in {' < '.join(where(task.get_coro())[:2])}"
            for task in sorted(tasks, key=lambda task: task.number)
        ]
        more = len(told) - _MOST_TOLD
        return "; ".join([*told[:_MOST_TOLD], *([f"and {more} more"] if more > 0 else [])])

    def _turn_failed(self, turn: Turn, error: BaseException) -> None:
        if not isinstance(error, Halted):
            self.call_exception_handler({"message": f"exception in callback {turn!r}", "exception": error})

    def _unwind(self) -> None:
        """Let the code of a life that is over come to its end, as far as it does by itself."""
        for door in self.doors.values():
            if not door.done():
                door.open_cancelled()
        left: list[InsideTask] = []
        for _ in range(_ROUNDS):
            self.turns.settle()
            for _ in range(_TURNS):  # what has not begun begins, so that it can end
                if not self.turns.ready:
                    break
                self.turns.take(1, self._turn_failed)
            left = [task for task in asyncio.all_tasks(self) if isinstance(task, InsideTask)]
            if not left:
                return
            for task in sorted(left, key=lambda task: task.number):
                if not task.cancelling():
                    task.cancel()
        for task in left:
            task._log_destroy_pending = False  # type: ignore[attr-defined]  # noqa: SLF001  # dropped on purpose
            asyncio.tasks._unregister_task(task)  # noqa: SLF001  # closing must not wait for it

    def is_running(self) -> bool:
        return self._is_running

    def is_closed(self) -> bool:
        return False

    def get_debug(self) -> bool:
        return False

    def call_exception_handler(self, context: dict[str, Any]) -> None:
        if not self.is_halted:
            self.errors.append(context)
