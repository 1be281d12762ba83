"""How can a table be written to while what it held at an instant is still being read?

A table is a pile of layers, oldest first.  Reading looks from the newest down; what a layer says of a key hides what
those below say.  The instant of a snapshot only lays an empty layer on top and remembers how many lie below it: these
are *frozen* for as long as the snapshot lives.  Writing goes to the lowest layer that is not frozen, and takes the key
out of those above; so once nothing is frozen any more, upper layers only get emptier, and are folded down in slices.

* A removal leaves a mark (``MISSING``) where a frozen layer still holds the key.
* A value that a frozen layer holds and that can be changed in place is copied up before it is handed out.  A reference
  that user code kept from an earlier call can't be seen here; changing one is not allowed (semantics 5.2).
* When a snapshot is through with a dict it needs it no more: what was written above it meanwhile goes down at once,
  while both are at hand, and from then on that dict is written to directly.  So little is copied and little left
  to fold.
* While there is one layer and it is one dict, that dict is ``plain`` and may be used directly: no snapshot, no cost.

A table that grows past what one dict should hold gets an empty, divided layer *below*, and is folded into it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import compress, islice
from typing import Any, Final

from actorflow.abc.state import MISSING, KeyedTable
from actorflow.errors import CorruptObject, InvalidValue
from actorflow.model.codec import Codec
from actorflow.state.layers import ABSENT, PLACES, Layer, place_of

__all__ = ("MemoryTable", "Pin", "Sizes")

_PARTS: Final = 16  # of a new layer that is divided from the start
_SCANNED_AT_ONCE: Final = 1_000
_FIXED: Final = frozenset({type(MISSING), type(None), bool, int, float, complex, str, bytes})  # can't change in place


@dataclass(frozen=True, slots=True, kw_only=True)
class Sizes:
    """How large things may become before upkeep sets in, in entries.

    The dict that is a whole table is divided above ``plain_up_to``, because its next resize would take several
    milliseconds.  A part of a divided layer is cut in two above ``split_above``, which takes about 1 ms.  A step of
    folding moves about ``folded_at_once``, and ``folded_by_the_way`` where it comes between batches.
    """

    plain_up_to: int = 87_000
    split_above: int = 4_096
    folded_at_once: int = 1_000
    folded_by_the_way: int = 128


class Pin:
    """The layers that a table consisted of at an instant, frozen until it is released."""

    __slots__ = ("_table", "layers")

    def __init__(self, table: MemoryTable, layers: list[Layer]) -> None:
        self._table: MemoryTable | None = table
        self.layers = layers

    @property
    def is_live(self) -> bool:
        """Whether the layers are still as they were."""
        return self._table is not None

    def release(self) -> None:
        """Let go; a second time is fine."""
        table, self._table = self._table, None
        if table is not None:
            table.unpin(len(self.layers))
            self.layers = []

    def columns(self, count: int, *, thaw: bool = False) -> Iterator[tuple[list[Any], list[Any], bool]]:
        """Iterate over tokens and values, after looking at up to ``count`` entries each time, so perhaps over none.

        The third part is true with the last of a dict.  With ``thaw`` that dict is not frozen any more after it, when
        the next is asked for: whoever iterates must not need its values then.
        """
        for index, layer in enumerate(self.layers, 1):
            newer = [above for above in self.layers[index:] if not above.is_empty]
            for number, entries in enumerate(layer.parts()):
                # Frozen dicts never change, so their keys and values stay in step, without a look-up each.
                following_tokens, following_values = iter(entries), iter(entries.values())
                missing = len(entries)
                while missing > 0:
                    missing -= count
                    tokens, values = list(islice(following_tokens, count)), list(islice(following_values, count))
                    for above in newer:
                        fresh = above.is_news(tokens)
                        tokens, values = list(compress(tokens, fresh)), list(compress(values, fresh))
                    if layer.has_marks:
                        present = [value is not MISSING for value in values]
                        tokens, values = list(compress(tokens, present)), list(compress(values, present))
                    yield tokens, values, missing <= 0
                    assert self.is_live, "a snapshot was released while it was read"
                if thaw and self._table is not None:
                    self._table.was_read(number)


class MemoryTable(KeyedTable):
    """The values of one declared state, in memory.  ``where`` names operator and state, for errors."""

    __slots__ = (
        "_above",
        "_codec",
        "_frozen",
        "_layers",
        "_newest_first",
        "_only",
        "_pins",
        "_sizes",
        "_written",
        "kind",
        "plain",
        "where",
    )

    def __init__(self, codec: Codec, where: str, kind: str, sizes: Sizes) -> None:
        self._codec, self.where, self.kind, self._sizes = codec, where, kind, sizes
        self._layers = [Layer(sizes.split_above)]  # oldest first
        self._pins: list[int] = []  # of each live pin, how many layers it holds
        # What follows from these two, laid out by _arrange() for quick access:
        self._frozen = 0  # how many of the oldest layers are frozen
        self._written = self._layers[0]
        self._above: list[Layer] = []
        self._newest_first: list[Layer] = []
        self._only: list[dict[Any, Any]] | None = None  # the places of a layer that is divided and alone
        self.plain: dict[Any, Any] | None = None
        self._arrange()

    # ── access ──

    def load(self, token: Any) -> Any:
        dicts = self._only
        if dicts is not None:
            return dicts[place_of(token) % PLACES].get(token, MISSING)
        plain = self.plain
        if plain is not None:
            return plain.get(token, MISSING)
        place = place_of(token)
        for layer in self._newest_first:
            value = layer.dicts[place % layer.places].get(token, ABSENT)
            if value is not ABSENT:
                return self._own(token, value) if layer.is_frozen and type(value) not in _FIXED else value
        return MISSING

    def _own(self, token: Any, value: Any) -> Any:
        """Copy a value that a frozen layer holds into the layer that is written to, unless nothing can change it."""
        try:
            copied = self._codec.copy(value)
        except InvalidValue as error:
            raise InvalidValue(f"{self.where}: {error}") from error
        if copied is not value:
            layer = self._written
            layer.dicts[place_of(token) % layer.places][token] = copied
        return copied

    def peek(self, token: Any) -> Any:
        plain = self.plain
        if plain is not None:
            return plain.get(token, MISSING)
        place = place_of(token)
        for layer in self._newest_first:
            value = layer.dicts[place % layer.places].get(token, ABSENT)
            if value is not ABSENT:
                return value
        return MISSING

    def store(self, token: Any, value: Any) -> None:
        dicts = self._only
        if dicts is not None:
            dicts[place_of(token) % PLACES][token] = value
            return
        plain = self.plain
        if plain is not None:
            plain[token] = value
            return
        place = place_of(token)
        layer = self._written
        layer.dicts[place % layer.places][token] = value
        for layer in self._above:
            layer.dicts[place % layer.places].pop(token, None)

    def remove(self, token: Any) -> None:
        plain = self.plain
        if plain is not None:
            plain.pop(token, None)
            return
        place = place_of(token)
        written = self._written
        for layer in self._newest_first:
            if not layer.is_frozen:
                layer.dicts[place % layer.places].pop(token, None)
            elif (value := layer.dicts[place % layer.places].get(token, ABSENT)) is not ABSENT:
                if value is not MISSING:
                    written.dicts[place % written.places][token] = MISSING
                    written.has_marks = True
                return

    def items(self) -> Iterator[tuple[Any, Any]]:
        """Iterate over what is there at the first step; what is written meanwhile does not show."""
        pin = self.pin()
        try:
            for tokens, values, _ in pin.columns(_SCANNED_AT_ONCE):
                yield from zip(tokens, values, strict=True)
        finally:
            pin.release()

    def __len__(self) -> int:
        return sum(len(layer) for layer in self._layers)

    # ── instants ──

    def pin(self) -> Pin:
        """Freeze what is there now."""
        if not self._layers[-1].is_empty:
            self._layers.append(self._layers[-1].another())
        held = len(self._layers) - 1
        self._pins.append(held)
        self._arrange()
        return Pin(self, self._layers[:held])

    def unpin(self, held: int) -> None:
        """Take back one pin over so many layers."""
        self._pins.remove(held)
        self._arrange()

    def was_read(self, number: int) -> None:
        """A snapshot is through with one dict of the lowest layer; if nobody else needs that, it is frozen no more."""
        if self._pins == [1] and len(self._layers) == 2:
            self._written.merge(self._layers[0], number, 2 * self._sizes.split_above)

    def _arrange(self) -> None:
        """Find out what is frozen, forget upper layers that are empty, and see whether one plain dict is all."""
        self._frozen = frozen = max(self._pins, default=0)
        layers = self._layers
        layers[frozen + 1 :] = [layer for layer in layers[frozen + 1 :] if not layer.is_empty]
        for index, layer in enumerate(layers):
            layer.is_frozen = index < frozen
            layer.give_back()
        self._newest_first = layers[::-1]
        self._written, self._above = layers[frozen], layers[frozen + 1 :]
        only = layers[0] if len(layers) == 1 else None
        self.plain = only.dicts[0] if only is not None and only.places == 1 else None
        self._only = only.dicts if only is not None and only.places > 1 else None

    # ── upkeep ──

    def settle(self) -> None:
        plain = self.plain
        if plain is None or len(plain) > self._sizes.plain_up_to:
            self._grow()
            if self._above:
                self._fold(self._sizes.folded_by_the_way)

    def fold(self) -> Iterator[None]:
        """Fold what is not frozen into one layer, in steps."""
        self._grow()
        while self._above:
            self._fold(self._sizes.folded_at_once)
            self._grow()
            yield

    def _grow(self) -> None:
        lowest = self._written
        if self._frozen or lowest.places > 1:
            lowest.grow()
        elif len(lowest) > self._sizes.plain_up_to:
            self._layers.insert(0, Layer.divided(_PARTS, self._sizes.split_above))
            self._arrange()

    def _fold(self, count: int) -> None:
        """Move some entries from the oldest upper layer into the one that is written to."""
        upper = self._above[0]
        upper.pour(self._written, count, keep_marks=self._frozen > 0)
        if upper.is_empty:
            self._arrange()

    def fill(self, tokens: list[Any], values: list[Any]) -> None:
        """Take entries of a snapshot, before anything else happens to the table."""
        assert not self._pins, f"{self.where}: restored while a snapshot is written"
        before = len(self)
        self._layers[0].update(tokens, values)
        if len(self) - before != len(tokens):
            raise CorruptObject(f"{self.where}: a key stands twice in what is restored")
