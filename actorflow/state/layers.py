"""How does a large dict grow without standing still?

A dict that outgrows its room moves all its entries at once: 24 ms near 700,000 of them.  So a layer of a table is one
dict only while it is small.  Later it is several, each with a range of *places*, and one that grows too large is cut
in two between batches.  A token's place comes from Python's own hash, which is at hand and fast.  It never leaves the
process, and what a snapshot holds does not depend on it.

A layer knows nothing of snapshots; ``tables.py`` decides which layer is written to.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any, Final

__all__ = ("ABSENT", "PLACES", "Layer", "place_of")

PLACES: Final = 4093
"""How many places there are: a prime, so that no regular pattern in keys that are numbers crowds a few of them."""

ABSENT: Final = object()
"""What a layer answers for a token of which it holds nothing, not even that it was removed."""

place_of: Final = hash
"""The one use of Python's own hash in the house: a token's place, modulo the places of a layer."""

_LOOKED_AT: Final = 8  # dicts in one call of grow()


class _Part:
    """One dict and the range of places that it stands at."""

    __slots__ = ("end", "entries", "start")

    def __init__(self, start: int, end: int) -> None:
        self.start, self.end = start, end
        self.entries: dict[Any, Any] = {}


class Layer:
    """Entries by token, in one dict or in several.

    The dict of a token is ``layer.dicts[place_of(token) % layer.places]``; who needs it often writes just that.
    """

    __slots__ = ("_next", "_parts", "_split_above", "dicts", "places")

    def __init__(self, parts: int, split_above: int) -> None:
        bounds = [PLACES * index // parts for index in range(parts + 1)]
        self._parts = [_Part(start, end) for start, end in pairwise(bounds)]
        self.places = 1 if parts == 1 else PLACES
        self.dicts: list[dict[Any, Any]] = []
        for part in self._parts:
            self.dicts += [part.entries] * (part.end - part.start if parts > 1 else 1)
        self._split_above = split_above
        self._next = 0

    def __len__(self) -> int:
        return sum(len(part.entries) for part in self._parts)

    @property
    def is_empty(self) -> bool:
        """Whether it holds nothing."""
        return not any(part.entries for part in self._parts)

    def parts(self) -> list[dict[Any, Any]]:
        """Return the dicts that hold the entries."""
        return [part.entries for part in self._parts]

    def get(self, token: Any) -> Any:
        """Return what is held of a token, or ``ABSENT``."""
        return self.dicts[place_of(token) % self.places].get(token, ABSENT)

    def update(self, tokens: list[Any], values: list[Any]) -> None:
        """Set many entries."""
        if self.places == 1:
            self.dicts[0].update(zip(tokens, values, strict=True))
            return
        dicts = self.dicts
        for token, value in zip(tokens, values, strict=True):
            dicts[place_of(token) % PLACES][token] = value

    def is_news(self, tokens: list[Any]) -> list[bool]:
        """Say of each token whether nothing is held of it."""
        if self.places == 1:
            entries = self.dicts[0]
            return [token not in entries for token in tokens]
        dicts = self.dicts
        return [token not in dicts[place_of(token) % PLACES] for token in tokens]

    def grow(self) -> bool:
        """Look at a few of the dicts in turn and cut the first that is too large; say whether one was."""
        parts = self._parts
        for _ in range(min(_LOOKED_AT, len(parts))):
            self._next = (self._next + 1) % len(parts)
            part = parts[self._next]
            if len(part.entries) > self._split_above and part.end - part.start > 1:
                self._split(self._next, part)
                return True
        return False

    def _split(self, index: int, part: _Part) -> None:
        middle = (part.start + part.end) // 2
        upper = _Part(middle, part.end)
        upper.entries = {token: value for token, value in part.entries.items() if place_of(token) % PLACES >= middle}
        for token in upper.entries:
            del part.entries[token]
        part.end = middle
        self._parts.insert(index + 1, upper)
        if self.places == 1:
            self.places, self.dicts = PLACES, [part.entries] * PLACES
        self.dicts[middle : upper.end] = [upper.entries] * (upper.end - middle)

    def take(self, count: int) -> list[tuple[Any, Any]]:
        """Take out up to ``count`` entries, any of them; none only when none is left."""
        for part in self._parts:
            entries = part.entries
            if entries:
                taken = [entries.popitem() for _ in range(min(count, len(entries)))]
                if not entries:
                    self._renew(part)
                return taken
        return []

    def _renew(self, part: _Part) -> None:
        """An emptied dict keeps its room; a new one has none."""
        part.entries = {}
        start, end = (0, 1) if self.places == 1 else (part.start, part.end)
        self.dicts[start:end] = [part.entries] * (end - start)
