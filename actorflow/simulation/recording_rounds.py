"""How does asyncio's own loop run the turns of a run in an order that can be kept?

A callback whose context is inside becomes a turn (``recording_turns.py``); all other callbacks are the loop's as ever.
The turns run in *rounds*, each a callback of the loop itself: first what has arrived from outside is let in, then those
turns run that were ready before.  So what arrives comes in between two turns, and never while one runs.

A callback of the run that is called for outside of a round has found a way past every seam; it runs, and the log says
so, for a replay can't go on from there.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Callable
from contextvars import Context, copy_context
from functools import partial
from typing import Any

from actorflow.simulation.recording_entries import Kind, pack, pack_tree
from actorflow.simulation.recording_log import RecordingLog
from actorflow.simulation.recording_turns import INSIDE, InsideTask, Turn, Turns, outside

__all__ = ("RoundsLoop",)

SLICE_S = 0.002
"""How long the turns of one round may take together before everybody lets the others in."""


class RoundsLoop(asyncio.SelectorEventLoop):
    """A loop with an inside; ``log`` is told which timers and readings of its clock came into it."""

    def __init__(self, log: RecordingLog) -> None:
        self.log = log
        self.turns = Turns()
        self.slice_ends = 0.0
        self._rounds = outside()
        self._arrivals: deque[Callable[[], None]] = deque()
        self._in_round = self._has_begun = self._round_is_due = False
        self._tasks = self._timers = 0
        super().__init__()

    # ── turns ────────────────────────────────────────────────────────────────────────────────

    def call_soon(self, callback: Any, *args: Any, context: Context | None = None) -> Any:  # type: ignore[override]  # as inherited, in fewer words
        if context is None:
            context = copy_context()
        if not context.get(INSIDE):
            return super().call_soon(callback, *args, context=context)
        turns = self.turns
        turn = turns.make(callback, args, context)
        turns.fresh.append(turn)
        if not self._in_round:
            self._enter(callback)
        return turn

    def _enter(self, callback: object) -> None:
        """Take in what comes from outside of a round: the beginning, and what found a way past every seam."""
        if self._has_begun:
            self.log.add(pack_tree(Kind.LEAK, [_short(callback)]))
        self._has_begun = True
        self.turns.settle()
        self._ask_for_round()

    def _ask_for_round(self) -> None:
        if not self._round_is_due:
            self._round_is_due = True
            super().call_soon(self._round, context=self._rounds)

    def _round(self) -> None:
        """Let in what has arrived, and run the turns that were ready before."""
        self._round_is_due = False
        turns = self.turns
        self.slice_ends = time.perf_counter() + SLICE_S
        self._in_round = True
        try:
            while self._arrivals:
                self._arrivals.popleft()()
                turns.settle()
            turns.take(len(turns.ready), self._turn_failed)
        finally:
            self._in_round = False
            if turns.ready or self._arrivals:
                self._ask_for_round()

    def _turn_failed(self, turn: Turn, error: BaseException) -> None:
        self.call_exception_handler({"message": f"exception in callback {turn!r}", "exception": error})

    def arrive(self, arrival: Callable[[], None]) -> None:
        """Let something in before the next turns; ``arrival`` writes it down and takes it in."""
        self._arrivals.append(arrival)
        self._ask_for_round()

    def call_soon_threadsafe(self, callback: Any, *args: Any, context: Context | None = None) -> Any:  # type: ignore[override]  # as inherited, in fewer words
        return super().call_soon_threadsafe(callback, *args, context=outside(context))

    def create_task(self, coro: Any, *, name: Any = None, context: Context | None = None, **options: Any) -> Any:
        inside = INSIDE.get() if context is None else context.get(INSIDE)
        if not inside:
            if context is not None:
                options["context"] = context
            return super().create_task(coro, name=name, **options)
        self._tasks += 1
        named = f"task {self._tasks}" if name is None else str(name)
        return InsideTask(self._tasks, coro, loop=self, name=named, context=context)

    # ── time ─────────────────────────────────────────────────────────────────────────────────

    def time(self) -> float:
        now = super().time()
        if INSIDE.get():
            self.log.add(pack(Kind.LOOP_TIME, now))
        return now

    def call_later(self, delay: float, callback: Any, *args: Any, context: Context | None = None) -> Any:  # type: ignore[override]  # as inherited, in fewer words
        return self.call_at(super().time() + delay, callback, *args, context=context)

    def call_at(self, when: float, callback: Any, *args: Any, context: Context | None = None) -> Any:  # type: ignore[override]  # as inherited, in fewer words
        if context is None:
            context = copy_context()
        if not context.get(INSIDE):
            return super().call_at(when, callback, *args, context=context)
        self._timers += 1
        turn = self.turns.make(callback, args, context, when)
        turn.number = self._timers
        turn.timer = super().call_at(when, self.arrive, partial(self._timer_is_due, turn), context=outside())
        return turn

    def _timer_is_due(self, turn: Turn) -> None:
        if not turn.cancelled():
            self.log.add(pack(Kind.TIMER, turn.number, self.turns.run))
            self.turns.fresh.append(turn)


def _short(callback: object) -> str:
    return f"{getattr(callback, '__qualname__', type(callback).__name__)}"
