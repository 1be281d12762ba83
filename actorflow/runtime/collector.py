"""Python's collector, in a process that is ours alone.

A full collection walks every object that could be part of a cycle: over 100 ms with a million mutable values, which is a
stall.  State is not garbage, so after a restore, and again when snapshots have left many new objects behind, everything
alive is frozen out of the collector's sight; full collections are left to quiet moments.  Inside somebody else's process
none of this is touched.
"""

from __future__ import annotations

import gc

__all__ = ("after_checkpoint", "after_restore")

YOUNG, MIDDLE, OLD = 20_000, 20, 1_000_000
"""Thresholds: the third says that the oldest generation is never collected by itself."""


def after_restore() -> None:
    """Collect once, then freeze what is alive; called before the first record of an attempt."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(YOUNG, MIDDLE, OLD)


def after_checkpoint() -> None:
    """Freeze what has grown old; cheap, whatever the size of the state."""
    gc.freeze()
