"""What is the accumulator of a window that slides, when its slices come and go at both ends?

One *fold* stands beside each key and follows its windows from one end to the next.  Two kinds, with one face:

* :class:`RunningTotal`, where the aggregate can subtract: what enters is merged in, what leaves is subtracted.
* :class:`TwoStacks`, where it can't: time is cut into blocks as long as a window, so every window is a *suffix* of one
  block and a *prefix* of the next.  Of a block that is through, all suffixes are made at once, from right to left; the
  prefix grows.  That is three merges for each slice, however many slices a window has.

Blocks lie at fixed times, another place for each key: so a result depends on the slices alone and not on when the fold
was made (a sum of floats has the same last bit after a restore), and not all keys turn over their blocks at once.

A fold is a cache: a restore makes it anew out of the slices, and it is never written down.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from typing import Any, Final
from zlib import crc32

from actorflow.dataflow.aggregates import Aggregate
from actorflow.dataflow.windows import Sliding

__all__ = ("NEVER", "Fold", "RunningSum", "RunningTotal", "TwoStacks", "fold_for")

NEVER: Final = 2**64
"""Later than every time."""


class Fold:
    """One key's place in time, and what its next window already holds."""

    __slots__ = ("at", "end", "kept", "last", "next", "order")

    def __init__(self, order: bytes, end: int) -> None:
        self.order = order  # what keys are sorted by
        self.end = end  # the end of the last window that has given its result, or gave none because it was empty
        self.next = NEVER  # the end of the next one that is not empty
        self.at = NEVER  # the watermark that this key is waiting for
        self.last = -NEVER  # the newest slice before ``end``
        self.kept = NEVER  # no slice is older than this

    def fire(self, slices: dict[int | None, Any], end: int) -> Any:
        """Go on to the window that ends at ``end``, the next that is not empty, and return its accumulator.

        Takes what no later window holds out of the slices, unless they are to be kept for late records.
        """
        raise NotImplementedError

    def add_passed(self, part: Any) -> None:
        """Take note of something that was added to a slice that the next window holds already."""
        raise NotImplementedError

    def follow(self, slices: Mapping[int | None, Any], oldest: int) -> None:
        """Begin with what is there: slices before ``end``, from ``oldest`` on."""
        raise NotImplementedError


def fold_for(windows: Sliding, aggregate: Aggregate) -> Callable[..., Fold]:
    """Return what makes the folds of an aggregate: a function of ``windows, aggregate, order, end, keeps=…``."""
    if aggregate.subtract is None:
        return TwoStacks
    plain = (aggregate.merge, aggregate.subtract, aggregate.own) == (operator.add, operator.sub, None)
    return RunningSum if plain and not windows.edge_ms else RunningTotal


class RunningTotal(Fold):
    """For aggregates that can subtract."""

    __slots__ = ("_edge", "_keeps", "_merge", "_own", "_size", "_slide", "_subtract", "total")

    def __init__(self, windows: Sliding, aggregate: Aggregate, order: bytes, end: int, *, keeps: bool) -> None:
        super().__init__(order, end)
        self._size, self._slide, self._edge, self._keeps = windows.size_ms, windows.slide_ms, windows.edge_ms, keeps
        assert aggregate.subtract is not None
        self._merge, self._subtract, self._own = aggregate.merge, aggregate.subtract, aggregate.own
        self.total: Any = None

    def fire(self, slices: dict[int | None, Any], end: int) -> Any:
        total = self.total
        for start in _between(end - self._slide, end - self._edge, self._edge):
            part = slices.get(start)
            if part is not None:
                total = self._merged(total, part)
                self.last = start
        self.end = end
        # What leaves is taken out at once, so that between two windows the total is of what both of them hold.
        take = slices.get if self._keeps else slices.pop
        leaving, rest = end - self._size, total
        for start in _between(leaving, leaving + self._edge, self._edge):
            part = take(start, None)
            if part is not None:
                rest = self._subtract(rest, part)
        self.total = rest if self.last >= leaving + self._slide else None
        return total

    def _merged(self, total: Any, part: Any) -> Any:
        if total is not None:
            return self._merge(total, part)
        return part if self._own is None else self._own(part)

    def add_passed(self, part: Any) -> None:
        self.total = self._merged(self.total, part)

    def follow(self, slices: Mapping[int | None, Any], oldest: int) -> None:
        self.total = None
        for start, part in slices.items():
            if start is not None and oldest <= start < self.end:
                self.total = self._merged(self.total, part)


class RunningSum(RunningTotal):
    """The same where accumulators are numbers and a slide has one slice: a third of the time of a firing."""

    __slots__ = ()

    def fire(self, slices: dict[int | None, Any], end: int) -> Any:
        start, leaving, total = end - self._slide, end - self._size, self.total
        part = slices.get(start)
        if part is not None:
            total = part if total is None else total + part
            self.last = start
        self.end = end
        part = slices.get(leaving) if self._keeps else slices.pop(leaving, None)
        if self.last < leaving + self._slide:
            self.total = None
        else:
            self.total = total if part is None else total - part
        return total


class TwoStacks(Fold):
    """For all other aggregates."""

    __slots__ = (
        "_block",
        "_edge",
        "_keeps",
        "_merge",
        "_own",
        "_prefix",
        "_size",
        "_slide",
        "_span",
        "_stale",
        "_starts",
        "_suffixes",
    )

    def __init__(self, windows: Sliding, aggregate: Aggregate, order: bytes, end: int, *, keeps: bool) -> None:
        super().__init__(order, end)
        self._keeps = keeps
        count = -(-windows.size_ms // windows.slide_ms)
        self._size, self._slide, self._edge = windows.size_ms, windows.slide_ms, windows.edge_ms
        self._span = count * windows.slide_ms  # how long a block is
        self._starts = windows.offset_ms + crc32(order) % count * windows.slide_ms  # where this key's blocks lie
        self._merge, self._own = aggregate.merge, aggregate.own
        self._block = 0  # the border between suffix and prefix
        self._prefix: Any = None
        self._suffixes: list[tuple[int, Any]] = []  # (from which slice on, accumulator), the longest last
        self._stale = True

    def fire(self, slices: dict[int | None, Any], end: int) -> Any:
        start, edge, prefix = end - self._size, self._edge, self._prefix
        for entering in _between(end - self._slide, end - edge, edge):
            part = slices.get(entering)
            if part is not None:
                self.last = entering
                if prefix is not None:
                    prefix = self._merge(prefix, part)
                else:
                    prefix = part if self._own is None else self._own(part)
        self.end, self._prefix = end, prefix
        if self._stale or start > self._block:
            self._turn_over(slices, start, end)
            prefix = self._prefix
        suffixes = self._suffixes
        while suffixes and suffixes[-1][0] < start:
            suffixes.pop()
        if not self._keeps:
            for leaving in _between(start, start + edge, edge):
                slices.pop(leaving, None)
        if not suffixes:
            return prefix
        return suffixes[-1][1] if prefix is None else self._merge(suffixes[-1][1], prefix)

    def _turn_over(self, slices: Mapping[int | None, Any], start: int, end: int) -> None:
        """Make the suffixes of the block in which a window begins, and the prefix of the one in which it ends."""
        merge = self._merge
        self._block = block = start + (self._starts - start) % self._span
        inside = sorted(begin for begin in slices if begin is not None and start <= begin < end)
        suffixes: list[tuple[int, Any]] = []
        suffix: Any = None
        prefix: Any = None
        for begin in reversed(inside):
            if begin < block:
                suffix = slices[begin] if suffix is None else merge(slices[begin], suffix)
                suffixes.append((begin, suffix))
        for begin in inside:
            if begin >= block:
                part = slices[begin]
                prefix = merge(prefix, part) if prefix is not None else part if self._own is None else self._own(part)
        self._suffixes, self._prefix, self._stale = suffixes, prefix, False

    def add_passed(self, part: Any) -> None:
        self._stale = True

    def follow(self, slices: Mapping[int | None, Any], oldest: int) -> None:
        self._stale = True


def _between(first: int, second: int, edge: int) -> tuple[int, ...]:
    """Return the starts of a slide's slices, which are one unless windows also end inside of it."""
    return (first, second) if edge else (first,)
