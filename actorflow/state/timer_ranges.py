"""How are very many owners of timers at one timestamp kept, so that neither adding nor sorting them ever takes long?

In dicts, each with a range of owners.  A dict keeps no order while owners are added, which is cheap; it is sorted once,
when its turn comes, and it is never large: one that is full is cut in two, two that are nearly empty become one.

A dict that was cut or joined is left as it was, and new ones take its place, so a snapshot may hold on to it.
"""

from __future__ import annotations

from bisect import bisect_right
from typing import Any, Final

__all__ = ("FEW", "MOST", "Opened", "Ranges")

MOST: Final = 4_096
"""How many owners a dict may hold; to sort so many takes about a millisecond."""

FEW: Final = MOST // 8
"""A dict that removals leave with less than this is joined with its neighbour, if there is room."""

_SAMPLED: Final = 63


class Ranges:
    """Dicts by range of owners: ``dicts[i]`` has those from ``bounds[i]`` on; the first bound says nothing."""

    __slots__ = ("bounds", "dicts")

    def __init__(self, bounds: list[Any], dicts: list[dict[Any, None]]) -> None:
        self.bounds, self.dicts = bounds, dicts

    def copy(self) -> Ranges:
        """Return ranges that have the same dicts."""
        return Ranges(self.bounds.copy(), self.dicts.copy())

    def index_of(self, owner: Any) -> int:
        """Return which dict an owner belongs into."""
        return bisect_right(self.bounds, owner, 1) - 1

    def split(self, index: int) -> None:
        """Put two dicts in the place of one, if it holds more than it may."""
        owners = list(self.dicts[index])
        if len(owners) <= MOST:
            return
        sample = sorted(owners[:: max(1, len(owners) // _SAMPLED)])
        middle = sample[len(sample) // 2]
        self.dicts[index : index + 1] = (
            dict.fromkeys([owner for owner in owners if owner < middle]),
            dict.fromkeys([owner for owner in owners if owner >= middle]),
        )
        self.bounds.insert(index + 1, middle)

    def join(self, index: int) -> None:
        """Put one dict in the place of two neighbours, if that one and another have become small."""
        dicts = self.dicts
        if len(dicts[index]) >= FEW:
            return
        for left in (index, index - 1):
            if 0 <= left < len(dicts) - 1 and len(dicts[left]) + len(dicts[left + 1]) <= MOST // 2:
                dicts[left : left + 2] = (dicts[left] | dicts[left + 1],)
                del self.bounds[left + 1]
                return


class Opened:
    """A group in order: ``owners[at:]``, then what ``rest`` holds, all of which is larger than any that was there."""

    __slots__ = ("at", "owners", "rest")

    def __init__(self, group: dict[Any, None] | Ranges) -> None:
        self.at = 0
        self.owners: list[Any]
        self.rest: Ranges | None
        if isinstance(group, Ranges):
            self.owners, self.rest = [], group.copy()
        else:
            self.owners, self.rest = sorted(group), None

    def is_over(self) -> bool:
        """Whether nothing is left, after the next range was sorted if there is one."""
        while self.at == len(self.owners):
            rest = self.rest
            if rest is None:
                return True
            self.owners, self.at = sorted(rest.dicts.pop(0)), 0
            del rest.bounds[0]
            if not rest.dicts:
                self.rest = None
        return False

    def closed(self) -> Ranges:
        """Return what is left as a group that nobody has opened."""
        left: dict[Any, None] = dict.fromkeys(self.owners[self.at :])
        rest = self.rest
        if rest is None:
            return Ranges([None], [left])
        # The range is divided again if need be, and what is in ``left`` is smaller than all else.
        ranges = rest.copy()
        ranges.dicts[0] = left | ranges.dicts[0]
        ranges.split(0)
        return ranges
