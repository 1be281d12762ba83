"""Which few of many things are needed for something to happen, and how many at least?

Delta debugging: leave out large parts first, then smaller ones, as long as what happened still happens.  It costs about
the logarithm of what there is for each thing that is needed.  What is left can't be made smaller by leaving out any one
thing; it need not be the smallest there is.

Pure: the question is asked of whoever calls.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

__all__ = ("fewest", "least")

T = TypeVar("T")


def fewest(things: Sequence[T], happens: Callable[[tuple[T, ...]], bool]) -> tuple[T, ...]:
    """Return a part of the things, in their order, with which it still happens; it does with all of them."""
    left = tuple(things)
    if left and happens(()):
        return ()
    parts = 2
    while len(left) > 1:
        size = -(-len(left) // parts)
        for start in range(0, len(left), size):
            without = left[:start] + left[start + size :]
            if without and happens(without):
                left, parts = without, max(parts - 1, 2)
                break
        else:
            if size == 1:
                break
            parts = min(len(left), parts * 2)
    return left


def least(low: int, high: int, happens: Callable[[int], bool]) -> int:
    """Return the least number of ``low`` … ``high`` with which it happens, as if it did with every larger one.

    It does with ``high``.  Where it comes and goes, this is some number with which it happens.
    """
    while low < high:
        middle = (low + high) // 2
        if happens(middle):
            high = middle
        else:
            low = middle + 1
    return high
