"""How does a large dict grow without standing still?

A dict that outgrows its room moves all its entries at once: 24 ms near 700,000 of them.  So a layer of a table is one
dict only while it is small.  Later it is several, each with a range of *places*, and one that grows too large is cut
in two between batches.  A token's place comes from Python's own hash, which is at hand and fast.  It never leaves the
process, and what a snapshot holds does not depend on it.

A layer knows nothing of snapshots; ``tables.py`` decides which layer is written to.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import Any, Final

from actorflow.abc.state import MISSING

__all__ = ("ABSENT", "PLACES", "Layer", "place_of")

PLACES: Final = 4093
"""How many places there are: a prime, so that no regular pattern in keys that are numbers crowds a few of them."""

ABSENT: Final = object()
"""What a layer answers for a token of which it holds nothing, not even that it was removed."""

place_of: Final = hash
"""The one use of Python's own hash in the house: a token's place, modulo the places of a layer."""

_LOOKED_AT: Final = 8  # dicts in one call of grow()
_WHOLE: Final = 2  # a whole dict is poured faster than entries taken out of it, by more than this


class _Part:
    """One dict and the range of places that it stands at."""

    __slots__ = ("end", "entries", "start")

    def __init__(self, start: int, end: int) -> None:
        self.start, self.end = start, end
        self.entries: dict[Any, Any] = {}


class Layer:
    """Entries by token, in one dict or in several.

    The dict of a token is ``layer.dicts[place_of(token) % layer.places]``; who needs it often writes just that.
    ``is_frozen`` says that a snapshot needs it as it is, and whoever writes has to heed it; ``has_marks`` that some
    values may be ``MISSING``: the key was removed, whatever a lower layer says.

    At some places a layer may *borrow* the dict of a lower layer (``merge``): what is written there is written below.
    """

    __slots__ = ("_borrows", "_next", "_parts", "_split_above", "dicts", "has_marks", "is_frozen", "places")

    def __init__(self, split_above: int, bounds: Sequence[int] = (0, PLACES)) -> None:
        """``bounds`` are the places where the ranges of the dicts begin, and the end."""
        self._parts = [_Part(start, end) for start, end in pairwise(bounds)]
        self.places = 1 if len(self._parts) == 1 else PLACES
        self.dicts: list[dict[Any, Any]] = []
        for part in self._parts:
            self.dicts += [part.entries] * (part.end - part.start if self.places > 1 else 1)
        self.has_marks = self.is_frozen = self._borrows = False
        self._split_above = split_above
        self._next = 0

    @classmethod
    def divided(cls, parts: int, split_above: int) -> Layer:
        """Return an empty layer of several dicts."""
        return cls(split_above, [PLACES * index // parts for index in range(parts + 1)])

    def another(self) -> Layer:
        """Return an empty layer that is divided as this one is now."""
        return Layer(self._split_above, [*(part.start for part in self._parts), PLACES])

    def __len__(self) -> int:
        return sum(len(part.entries) for part in self._parts)

    @property
    def is_empty(self) -> bool:
        """Whether it holds nothing."""
        return not any(part.entries for part in self._parts)

    def parts(self) -> list[dict[Any, Any]]:
        """Return the dicts that hold the entries."""
        return [part.entries for part in self._parts]

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

    def pour(self, lower: Layer, count: int, *, keep_marks: bool) -> None:
        """Move some entries to a lower layer, over what is there: about as many as take the time of ``count`` alone."""
        part = next((part for part in self._parts if part.entries), None)
        if part is None:
            return
        entries, target = part.entries, lower._spanning(part)
        if self.has_marks and not keep_marks:
            target = None
        lower.has_marks |= self.has_marks and keep_marks
        if target is not None and len(entries) <= count * _WHOLE:
            target.update(entries)
            entries.clear()
            return
        taken = [entries.popitem() for _ in range(min(count, len(entries)))]
        if target is not None:
            target.update(taken)
        else:
            lower._set(taken, keep_marks=keep_marks)
        if not entries:
            entries.clear()  # an emptied dict keeps its room, a cleared one does not

    def merge(self, lower: Layer, number: int, most: int) -> None:
        """Move what belongs into one dict of a lower layer there, and borrow that dict; unless it is too much at once.

        This layer is divided as the lower one, or finer.
        """
        below = lower._parts[number]
        above = [part for part in self._parts if below.start <= part.start and part.end <= below.end]
        if sum(len(part.entries) for part in above) > most:
            return
        for part in above:
            if self.has_marks:
                lower._set(part.entries.items(), keep_marks=False)
            else:
                below.entries.update(part.entries)
            part.entries.clear()
            self._put(part, below.entries)
        self._borrows = True

    def give_back(self) -> None:
        """Borrow nothing any more."""
        if self._borrows:
            self._borrows = False
            for part in self._parts:
                self._put(part, part.entries)

    def _put(self, part: _Part, entries: dict[Any, Any]) -> None:
        start, end = (0, 1) if self.places == 1 else (part.start, part.end)
        self.dicts[start:end] = [entries] * (end - start)

    def _spanning(self, other: _Part) -> dict[Any, Any] | None:
        """Return the one dict that holds whatever belongs into a part of another layer, if it is one."""
        if self.places == 1:
            return self.dicts[0]
        first = self.dicts[other.start]
        return first if first is self.dicts[other.end - 1] else None

    def _set(self, pairs: Iterable[tuple[Any, Any]], *, keep_marks: bool) -> None:
        dicts, places = self.dicts, self.places
        for token, value in pairs:
            if value is not MISSING or keep_marks:
                dicts[place_of(token) % places][token] = value
            else:
                dicts[place_of(token) % places].pop(token, None)
