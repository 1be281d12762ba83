"""Python's collector and interpreter, in a process that is ours alone.

A full collection walks every object that could be part of a cycle: over 100 ms with a million mutable values, which
is a stall.  State is not garbage.  So after a restore, and again after each checkpoint, everything alive is frozen
out of the collector's sight.

What is young is collected every few milliseconds, in pieces that take about one: by itself the collector counts what
was created less what went away, and while state is being replaced by new state that says nothing of how much there is
to walk.

Garbage in cycles that lived too long to be found young waits for a quiet moment: then everything is looked at once.

A thread that waits for the interpreter starves beside a busy loop unless it may ask for it soon.

Inside somebody else's process none of this is touched.
"""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable

from actorflow.abc.world import Clock
from actorflow.runtime.pace import breathe

__all__ = ("Collector",)

YOUNG, MIDDLE, OLD = 50_000, 1_000_000, 1_000_000
"""Thresholds: the youngest only, for code that keeps the loop to itself for long."""

SWITCH_S = 0.0005
"""After how long a thread that waits for the interpreter asks for it."""

SOONEST_MS, LATEST_MS = 4, 32
"""Between two collections."""

AIM_US = 500
"""How long a collection of what is young should take."""

MIDDLE_US = 1_000
"""After so much of it, what survived is looked at again."""

AGED_US = 10_000
"""After so much of that, some garbage may have grown too old to be found."""

LOOK_EVERY_MS = 2_000
"""How often it is asked whether the job is quiet."""


class Collector:
    """Tends to the garbage of a process.  ``activity`` is a number that stands still while there is nothing to do."""

    def __init__(self, clock: Clock, activity: Callable[[], int]) -> None:
        self._clock, self._activity = clock, activity
        self._before = gc.get_threshold(), sys.getswitchinterval()
        self._middle_us = self._aged_us = 0

    def begin(self) -> None:
        """Collect all once, then freeze what is alive; called before the first record of an attempt."""
        sys.setswitchinterval(SWITCH_S)
        gc.set_threshold(YOUNG, MIDDLE, OLD)
        self._collect_all()

    def end(self) -> None:
        """Leave everything as it was."""
        thresholds, switch_interval = self._before
        gc.unfreeze()
        gc.set_threshold(*thresholds)
        sys.setswitchinterval(switch_interval)

    def freeze(self) -> None:
        """Freeze what has grown old; cheap, whatever the size of the state.  Called after a checkpoint."""
        self._collect_middle()
        gc.freeze()

    async def run(self) -> None:
        """Collect what is young until cancelled."""
        clock, pause_ms = self._clock, SOONEST_MS
        looked_at, seen = clock.now_ms(), self._activity()
        while True:
            await clock.sleep(pause_ms)
            took = self._collect_young()
            if took > AIM_US:
                pause_ms = max(SOONEST_MS, pause_ms // 2)
            elif took < AIM_US // 4:
                pause_ms = min(LATEST_MS, pause_ms * 2)
            if self._middle_us > MIDDLE_US:
                await breathe()
                self._collect_middle()
            now = clock.now_ms()
            if now - looked_at >= LOOK_EVERY_MS:
                is_quiet, seen, looked_at = seen == (done := self._activity()), done, now
                if is_quiet and self._aged_us > AGED_US:
                    self._collect_all()

    def _collect_young(self) -> int:
        began = self._clock.now_us()
        gc.collect(0)
        took = self._clock.now_us() - began
        self._middle_us += took
        return took

    def _collect_middle(self) -> None:
        began = self._clock.now_us()
        gc.collect(1)
        self._aged_us += self._clock.now_us() - began
        self._middle_us = 0

    def _collect_all(self) -> None:
        gc.unfreeze()
        gc.collect()
        gc.freeze()
        self._middle_us = self._aged_us = 0
