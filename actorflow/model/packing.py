"""How does a list of values become a tree of plain arrays?

Values are written in *columns*: many of one kind side by side.  What CBOR itself has goes as it is; everything else
becomes a node with one of our tags, whose parts are columns again: a column of pairs is one column of what stands in
them, a column of instances one column per field.  So nearly all work is done by C code over whole columns, and a
single value is a column of one.

Types are compared exactly: ``bool`` is not ``int``, and a subclass is another type.  Values that are shared come back
as copies; a value that holds itself is refused.

No clock, no storage; it knows neither paths (``locating.py`` finds them) nor bytes.
"""

from __future__ import annotations

import sys
from array import array
from collections import Counter as CounterType
from collections import OrderedDict, defaultdict, deque
from collections.abc import Callable
from enum import IntEnum
from functools import partial
from itertools import chain
from operator import attrgetter, countOf
from struct import Struct
from typing import Any, Final

import cbor2
from cbor2 import CBORTag

from actorflow.model.leaves import PLAIN, Leaf, Unwritable, leaf_of
from actorflow.model.locating import MAX_DEPTH, holds_itself
from actorflow.model.registry import Registered, Registry, advice
from actorflow.model.shapes import EnumShape, RecordShape

__all__ = ("FACTORIES", "Packer", "Tag", "dump")


class Tag(IntEnum):
    """Our tags: what a node of a tree holds.  A number never changes its meaning."""

    FLOATS = 41_000  # bytes: doubles, so that every bit of a NaN is kept
    UNION = 41_001  # [which column, value by value; columns]: values of several types
    SEQUENCES = 41_002  # [type, lengths, one column of all elements]
    TABLE = 41_003  # [type, one column per position]: sequences of one length
    MAPPINGS = 41_004  # [type, lengths, column of all keys, column of all values, factories]
    KEYED_TABLE = 41_005  # [type, keys, one column per key, factories]: mappings with the same text keys
    LEAVES = 41_006  # [name, plain values, so many for each]
    RECORDS = 41_007  # [registered name, version, count, {field: column} as names and columns]
    MEMBERS = 41_008  # [registered name, version, names of members]
    QUEUES = 41_009  # [bounds, lengths, one column of all elements]


FACTORIES: Final[dict[Any, str]] = {
    cls: cls.__name__ for cls in (bool, int, float, str, bytes, list, dict, set, frozenset, tuple, deque)
}
"""What a defaultdict may make its values with; any other function could not be found again."""

_WIDEST_TABLE: Final = 64
_SUSPICIOUS: Final = 65_536  # so many parts in a column that lies deep may be a value that holds itself
_FOUR_DEEP: Final = 4
_NAN: Final = Struct("<d").pack(float("nan"))
_DOUBLE: Final = Struct("<d")
_NOT_FLOAT: Final = PLAIN - {float}

_Pack = Callable[[list[Any], int], Any]


def dump(tree: Any) -> bytes:
    """Return a tree's bytes."""
    try:
        return cbor2.dumps(tree)
    except UnicodeEncodeError as error:
        raise Unwritable(
            f"it is text with a lone surrogate ({error.object[error.start]!a} at {error.start}), which is no "
            "character; decode it with errors='replace', or keep it as bytes"
        ) from error


class Packer:
    """Turns columns into trees, with the classes of one registry."""

    def __init__(self, registry: Registry) -> None:
        self._registry = registry
        self._packers: dict[type, _Pack] = {
            float: _pack_floats,
            list: partial(self._sequences, "list"),
            tuple: partial(self._sequences, "tuple"),
            set: partial(self._sets, "set"),
            frozenset: partial(self._sets, "frozenset"),
            deque: self._queues,
            dict: partial(self._mappings, "dict"),
            OrderedDict: partial(self._mappings, "OrderedDict"),
            CounterType: partial(self._mappings, "Counter"),
            defaultdict: partial(self._mappings, "defaultdict"),
        }

    def column(self, values: list[Any], depth: int = 0) -> Any:
        """Return the tree of a list of values."""
        return self._typed(values, _types(values), depth)

    def _typed(self, values: list[Any], types: dict[type, None], depth: int) -> Any:
        if len(types) == 1:
            (cls,) = types
            return values if cls in _NOT_FLOAT else (self._packers.get(cls) or self._find(cls))(values, depth)
        if _NOT_FLOAT.issuperset(types):
            return values
        if PLAIN.issuperset(types) and not any(value != value for value in values):  # noqa: PLR0124  # a NaN
            return values
        return self._union(values, types, depth)

    def _find(self, cls: type) -> _Pack:
        pack: _Pack
        if (leaf := leaf_of(cls)) is not None:
            pack = partial(_pack_leaves, leaf)
        elif (entry := self._registry.entry_of(cls)) is None:
            raise Unwritable(f"it is {advice(cls)}")
        elif isinstance(entry.shape, EnumShape):
            pack = partial(_pack_members, entry, entry.shape)
        else:
            pack = partial(self._records, entry, entry.shape)
        self._packers[cls] = pack
        return pack

    def _union(self, values: list[Any], types: dict[type, None], depth: int) -> Any:
        """Types that CBOR has share a column; floats do not, as there is a NaN."""
        codes: dict[type, int] = {}
        count = 0
        for cls in types:
            if cls in _NOT_FLOAT and (shared := [codes[other] for other in codes if other in _NOT_FLOAT]):
                codes[cls] = shared[0]
            else:
                codes[cls] = count
                count += 1
        which = list(map(codes.__getitem__, map(type, values)))
        groups: list[list[Any]] = [[] for _ in range(count)]
        for code, value in zip(which, values, strict=True):
            groups[code].append(value)
        return CBORTag(Tag.UNION, [_counts(which), [self.column(group, depth) for group in groups]])

    # ── containers ──

    def _sequences(self, kind: str, values: list[Any], depth: int) -> Any:
        lengths = self._lengths(values, depth)
        flat = list(chain.from_iterable(values))
        types = _types(flat)
        if len(types) > 1 and len(values) > 1 and not _NOT_FLOAT.issuperset(types) and _is_table(lengths):
            return CBORTag(Tag.TABLE, [kind, self._columns(flat, lengths[0], depth)])
        return CBORTag(Tag.SEQUENCES, [kind, _lengths(lengths), self._typed(flat, types, depth + 1)])

    def _sets(self, kind: str, values: list[Any], depth: int) -> Any:
        lengths = self._lengths(values, depth)
        if set(map(type, chain.from_iterable(values))) in ({int}, {str}):
            ordered = list(map(sorted, values))  # as good as an order of their bytes, and far quicker
        else:
            ordered = [self._ordered(value, depth + 1) for value in values]
        flat = list(chain.from_iterable(ordered))
        return CBORTag(Tag.SEQUENCES, [kind, _lengths(lengths), self.column(flat, depth + 1)])

    def _ordered(self, elements: set[Any] | frozenset[Any], depth: int) -> list[Any]:
        """One set has one order, whatever its history: that of its elements' bytes."""
        if set(map(type, elements)) in ({int}, {str}):
            return sorted(elements)
        return sorted(elements, key=lambda element: dump(self.column([element], depth)))

    def _queues(self, values: list[deque[Any]], depth: int) -> Any:
        lengths = self._lengths(values, depth)
        bounds = list(map(attrgetter("maxlen"), values))
        flat = list(chain.from_iterable(values))
        return CBORTag(Tag.QUEUES, [bounds, _lengths(lengths), self.column(flat, depth + 1)])

    def _mappings(self, kind: str, values: list[Any], depth: int) -> Any:
        lengths = self._lengths(values, depth)
        factories = list(map(_factory, values)) if kind == "defaultdict" else None
        keys = list(chain.from_iterable(values))
        # An OrderedDict has an order of its own, which dict.values does not know.
        items = list(chain.from_iterable(map(type(values[0]).values, values)))
        if len(values) > 1 and 0 < lengths[0] <= _WIDEST_TABLE and set(map(type, keys)) == {str}:
            first = tuple(values[0])
            if set(map(tuple, values)) == {first}:
                return CBORTag(Tag.KEYED_TABLE, [kind, list(first), self._columns(items, len(first), depth), factories])
        return CBORTag(
            Tag.MAPPINGS,
            [kind, _lengths(lengths), self.column(keys, depth + 1), self.column(items, depth + 1), factories],
        )

    def _records(self, entry: Registered, shape: RecordShape, values: list[Any], depth: int) -> Any:
        self._lengths(values, depth, size=len(shape.fields))
        columns = [self.column(column, depth + 1) for column in shape.take(values)]
        # Without a field there is nothing to count by; a byte each keeps the declared size honest.
        count = None if shape.fields else bytes(len(values))
        return CBORTag(Tag.RECORDS, [entry.name, entry.version, list(shape.fields), columns, count])

    def _columns(self, flat: list[Any], width: int, depth: int) -> list[Any]:
        return [self.column(flat[start::width], depth + 1) for start in range(width)]

    def _lengths(self, values: list[Any], depth: int, size: int | None = None) -> list[int]:
        """Return how many parts each has, and refuse what holds itself before it is followed without end."""
        if depth >= MAX_DEPTH:
            raise Unwritable(f"it nests more than {MAX_DEPTH} deep, or it holds itself")
        lengths = list(map(len, values)) if size is None else []
        if depth >= _FOUR_DEEP:
            total = sum(lengths) if size is None else size * len(values)
            if total > _SUSPICIOUS and holds_itself(values, self._registry):
                raise Unwritable("it holds itself, or has more than ten million parts; keep a key instead of the value")
        return lengths


def _types(values: list[Any]) -> dict[type, None]:
    """Return the types there are, in the order in which they are met; mostly there is one, and that is quickly seen."""
    if values and countOf(map(type, values), first := type(values[0])) == len(values):
        return {first: None}
    return dict.fromkeys(map(type, values))


def _factory(value: defaultdict[Any, Any]) -> str | None:
    factory = value.default_factory
    try:
        return None if factory is None else FACTORIES[factory]
    except (KeyError, TypeError):
        name = getattr(factory, "__qualname__", repr(factory))
        raise Unwritable(
            f"it is a defaultdict whose default_factory is {name}, which could not be found again; use a dict, or a "
            "type of the language such as list or int as the factory"
        ) from None


def _lengths(lengths: list[int]) -> int | bytes | list[int]:
    """One number for all where all are the same and not nothing; otherwise one each, so that no number runs ahead."""
    first = lengths[0]
    return first if first and lengths.count(first) == len(lengths) else _counts(lengths)


def _is_table(lengths: list[int]) -> bool:
    width = lengths[0]
    return 0 < width <= _WIDEST_TABLE and lengths.count(width) == len(lengths)


def _counts(counts: list[int]) -> bytes | list[int]:
    return bytes(counts) if max(counts) < 256 else counts


def _pack_floats(values: list[float], _depth: int) -> Any:
    doubles = array("d", values)
    if sys.byteorder == "big":
        doubles.byteswap()
    return CBORTag(Tag.FLOATS, doubles.tobytes())


def _pack_leaves(leaf: Leaf, values: list[Any], _depth: int) -> Any:
    taken = map(leaf.take, values)
    return CBORTag(Tag.LEAVES, [leaf.name, list(taken) if leaf.width == 1 else list(chain.from_iterable(taken))])


def _pack_members(entry: Registered, shape: EnumShape, values: list[Any], _depth: int) -> Any:
    return CBORTag(Tag.MEMBERS, [entry.name, entry.version, shape.take(values)])
