"""Which keys wait for which watermark, and in which order do they come?

Keys come by the watermark that they wait for, and of one watermark by their own bytes (semantics 5.5), the same live,
in replay and after a restore.  Many keys that were put in order are not sorted again, which is the rule where windows
follow one another.  A key that waits for another time by now is not looked for: whoever takes it sees that itself.
"""

from __future__ import annotations

from collections.abc import Callable
from heapq import heappop, heappush
from typing import Any

__all__ = ("DueKeys",)


class DueKeys:
    """Tokens by the watermark that they wait for.  ``order`` gives a token its bytes, ``None`` if it is gone."""

    __slots__ = ("_due", "_order", "_times", "_unsorted")

    def __init__(self, order: Callable[[Any], bytes | None]) -> None:
        self._order = order
        self._due: dict[int, list[Any]] = {}  # the first in order stand last
        self._times: list[int] = []  # a heap
        self._unsorted: set[int] = set()

    def put(self, time: int, tokens: list[Any]) -> None:
        """Let these wait for a time; they are in order, and belong to us from here on."""
        waiting = self._due.get(time)
        if waiting is not None:
            waiting += tokens
            self._unsorted.add(time)
            return
        tokens.reverse()
        self._due[time] = tokens
        heappush(self._times, time)

    def is_due(self, watermark: int) -> bool:
        """Whether any waits for a time up to ``watermark``."""
        return bool(self._times) and self._times[0] <= watermark

    def take(self, at_most: int) -> tuple[int, list[Any]]:
        """Take up to so many out that wait for the earliest time, and return that time and them, in order."""
        time = self._times[0]
        waiting = self._due[time]
        if time in self._unsorted:
            self._unsorted.discard(time)
            orders = {token: order for token in waiting if (order := self._order(token)) is not None}
            waiting = self._due[time] = sorted(orders, key=orders.__getitem__, reverse=True)
        if at_most < len(waiting):
            taken = waiting[: -at_most - 1 : -1]
            del waiting[-at_most:]
            return time, taken
        heappop(self._times)
        del self._due[time]
        waiting.reverse()
        return time, waiting
