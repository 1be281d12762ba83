"""Python's interpreter and its collector, in a process that is ours alone.

A full collection walks every object that could be part of a cycle: over 100 ms with a million mutable values, which is a
stall.  State is not garbage, so after a restore, and again after each checkpoint, everything alive is frozen out of the
collector's sight.  Garbage in cycles is found young, or never: so when much more is frozen than was alive at the last
full collection, everything is looked at again.

A thread that waits for the interpreter would starve beside a busy loop, so it need not ask for long.

Inside somebody else's process none of this is touched.
"""

from __future__ import annotations

import gc
import sys

__all__ = ("after_checkpoint", "after_restore")

YOUNG, MIDDLE, OLD = 20_000, 5, 1_000_000
"""Thresholds: a young collection takes about a millisecond, one of the middle not over five, and the oldest generation is
never collected by itself."""

SWITCH_S = 0.0005
"""After how long a thread that waits for the interpreter asks for it."""


def after_restore() -> None:
    """Collect all once, then freeze what is alive; called before the first record of an attempt."""
    sys.setswitchinterval(SWITCH_S)
    gc.unfreeze()
    gc.collect()
    gc.freeze()
    gc.set_threshold(YOUNG, MIDDLE, OLD)


def after_checkpoint() -> None:
    """Collect what is young, then freeze what has grown old; cheap, whatever the size of the state."""
    gc.collect(1)
    gc.freeze()
