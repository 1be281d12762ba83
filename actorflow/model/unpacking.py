"""How does a tree of plain arrays become values again, and which trees were never written?

The mirror of ``packing.py``, and suspicious: every type, length and count is checked before anything is made from it,
so that what was damaged or made up is refused.  No count runs ahead of the bytes that carry it, so reading needs no
more memory than a small multiple of what was read.

Classes are looked up by their registered names and nowhere else.  Tools that open snapshots of others show an unknown
class as a mapping with its name under ``"@"``.
"""

from __future__ import annotations

import sys
from array import array
from collections import Counter, OrderedDict, defaultdict, deque
from collections.abc import Callable, Iterable
from io import BytesIO
from itertools import islice, repeat
from typing import Any, Final, NoReturn

from cbor2 import CBORDecoder

from actorflow.errors import ActorflowError, IncompatibleState
from actorflow.model.leaves import PLAIN, leaf_named
from actorflow.model.locating import MAX_DEPTH
from actorflow.model.packing import FACTORIES, Tag
from actorflow.model.registry import Registry, unknown

__all__ = ("Malformed", "Unpacker", "load")

# A value takes at most five levels of CBOR: a tag and an array for a union, its list of columns, a tag and an array.
_CBOR_DEPTH: Final = 6 * (MAX_DEPTH + 1)
_WIDE: Final = 256  # up to here a call with so many arguments is the quickest way to cut
_BIGNUMS: Final = (2, 3)
_FACTORY_OF: Final = {name: factory for factory, name in FACTORIES.items()}
_SEQUENCES: Final[dict[str, Callable[[Iterable[Any]], Any]]] = {
    "list": list,
    "tuple": tuple,
    "set": set,
    "frozenset": frozenset,
}
_MAPPINGS: Final[dict[str, Callable[[Any], Any]]] = {
    "dict": dict,
    "OrderedDict": OrderedDict,
    "Counter": lambda pairs: Counter(dict(pairs)),
    "defaultdict": dict,
}


class Malformed(Exception):
    """Says what is wrong with a tree; becomes a ``CorruptObject`` that names the object."""


class _Decoders(dict[int, Callable[[Any, bool], Any]]):
    """Our tags give pairs; integers that need more than 64 bits are left to cbor2, and there are no others."""

    def __missing__(self, tag: int) -> NoReturn:
        if tag in _BIGNUMS:
            raise KeyError(tag)
        raise Malformed(f"tag {tag} is none of ours; a newer actorflow may have written it")


def _decoder(tag: Tag) -> Callable[[Any, bool], Any]:
    def decode(payload: Any, _immutable: bool) -> tuple[Tag, Any]:
        return tag, payload

    return decode


_DECODERS: Final = _Decoders({int(tag): _decoder(tag) for tag in Tag})


def load(data: bytes) -> Any:
    """Return the tree of these bytes, all of them; a node is a pair of its tag and its payload."""
    stream = BytesIO(data)
    decoder = CBORDecoder(
        stream,
        semantic_decoders=_DECODERS,
        read_size=max(1, len(data)),
        max_depth=_CBOR_DEPTH,
        allow_indefinite=False,
        allow_duplicate_keys=False,
    )
    tree = decoder.decode()
    if (rest := len(data) - stream.tell()) != 0:
        raise Malformed(f"{rest} bytes follow after its end")
    return tree


class Unpacker:
    """Turns trees into columns, with the classes of one registry."""

    def __init__(self, registry: Registry, *, foreign: bool = False) -> None:
        self._registry = registry
        self._foreign = foreign
        self._unpackers: dict[Tag, Callable[[Any, int], list[Any]]] = {
            Tag.FLOATS: _floats,
            Tag.UNION: self._union,
            Tag.SEQUENCES: self._sequences,
            Tag.TABLE: self._table,
            Tag.MAPPINGS: self._mappings,
            Tag.KEYED_TABLE: self._keyed_table,
            Tag.LEAVES: _leaves,
            Tag.RECORDS: self._records,
            Tag.MEMBERS: self._members,
            Tag.QUEUES: self._queues,
        }

    def column(self, tree: Any, depth: int = 0) -> list[Any]:
        """Return the values of a tree."""
        if type(tree) is list:
            if not PLAIN.issuperset(map(type, tree)):
                raise Malformed("a list holds what is no plain value")
            return tree
        if type(tree) is not tuple:
            raise Malformed("a column is neither a list nor one of our nodes")
        tag, payload = tree
        return self._unpackers[tag](payload, depth)

    def _union(self, payload: Any, depth: int) -> list[Any]:
        which, columns = _fields(payload, 2)
        sources = []
        for column in _list(columns):
            if type(column) is tuple and column[0] is Tag.UNION:
                raise Malformed("a union in a union")
            sources.append(self.column(column, depth))
        codes = _whole_numbers(which)
        if Counter(codes) != {code: len(source) for code, source in enumerate(sources)}:
            raise Malformed("a union of other lengths")
        iterators = list(map(iter, sources))
        return list(map(next, map(iterators.__getitem__, codes)))

    # ── containers ──

    def _sequences(self, payload: Any, depth: int) -> list[Any]:
        kind, lengths, column = _fields(payload, 3)
        make = _named(_SEQUENCES, kind)
        flat = self.column(column, _deeper(depth))
        rows = _cut(flat, lengths)
        if make in {list, tuple}:
            return list(rows) if make is tuple else list(map(list, rows))
        return [self._set(make, row) for row in rows]

    def _set(self, make: Callable[[Any], Any], elements: tuple[Any, ...]) -> Any:
        try:
            made = make(elements)
        except TypeError as error:
            if self._foreign:
                return {"@": "set", "items": list(elements)}
            raise Malformed("a set of what can't be in one") from error
        if len(made) != len(elements):
            raise Malformed("a set holds an element twice")
        return made

    def _table(self, payload: Any, depth: int) -> list[Any]:
        kind, trees = _fields(payload, 2)
        if kind not in {"list", "tuple"}:
            raise Malformed("a table of what is no list and no tuple")
        rows = _rows([self.column(tree, _deeper(depth)) for tree in _list(trees)])
        return rows if kind == "tuple" else list(map(list, rows))

    def _queues(self, payload: Any, depth: int) -> list[Any]:
        bounds, lengths, column = _fields(payload, 3)
        rows = list(_cut(self.column(column, _deeper(depth)), lengths))
        if len(_list(bounds)) != len(rows):
            raise Malformed("other numbers of queues and of bounds")
        for bound, row in zip(bounds, rows, strict=True):
            if bound is not None and (type(bound) is not int or bound < len(row)):
                raise Malformed("a queue beyond its bound")
        return list(map(deque, rows, bounds))

    def _mappings(self, payload: Any, depth: int) -> list[Any]:
        kind, lengths, key_tree, item_tree, factories = _fields(payload, 5)
        keys = self.column(key_tree, _deeper(depth))
        items = self.column(item_tree, _deeper(depth))
        if len(keys) != len(items):
            raise Malformed("other numbers of keys and of values")
        numbers = _numbers(lengths, len(keys))
        make = _named(_MAPPINGS, kind)
        try:
            # A zip asks its first part first, so that a mapping's last key takes no value of the next one.
            pairs, left = iter(items), iter(keys)
            made = [make(zip(islice(left, number), pairs)) for number in numbers]  # noqa: B905
        except TypeError as error:
            if not self._foreign:
                raise Malformed("a mapping with a key that can't be one") from error
            shown = [list(pair) for pair in zip(keys, items, strict=True)]
            return [{"@": kind, "items": list(row)} for row in _cut(shown, lengths)]
        if list(map(len, made)) != list(numbers):
            raise Malformed("a mapping holds a key twice")
        return _with_factories(made, kind, factories)

    def _keyed_table(self, payload: Any, depth: int) -> list[Any]:
        kind, keys, trees, factories = _fields(payload, 4)
        _check_names(keys)
        if len(_list(trees)) != len(keys):
            raise Malformed("a table with other keys than columns")
        rows = _rows([self.column(tree, _deeper(depth)) for tree in trees])
        make = _named(_MAPPINGS, kind)
        return _with_factories([make(zip(keys, row)) for row in rows], kind, factories)  # noqa: B905  # all as long

    def _records(self, payload: Any, depth: int) -> list[Any]:
        name, version, fields, trees, unary = _fields(payload, 5)
        _check_head(name, version)
        _check_names(fields)
        if len(_list(trees)) != len(fields):
            raise Malformed("other numbers of fields and of columns")
        columns = [self.column(tree, _deeper(depth)) for tree in trees]
        if fields:
            count = len(columns[0])
            if unary is not None or any(len(column) != count for column in columns):
                raise Malformed("columns of other lengths")
        elif type(unary) is bytes:
            count = len(unary)
        else:
            raise Malformed("instances without a number")
        if (entry := self._registry.entry_named(name)) is not None:
            return entry.restore(version, dict(zip(fields, columns, strict=True)), count)
        if not self._foreign:
            raise IncompatibleState(unknown(name))
        rows = zip(*columns, strict=True) if columns else repeat((), count)
        return [{"@": name, **dict(zip(fields, row, strict=True))} for row in rows]

    def _members(self, payload: Any, _depth: int) -> list[Any]:
        name, version, names = _fields(payload, 3)
        _check_head(name, version)
        if not {str}.issuperset(map(type, _list(names))):
            raise Malformed("a member that has no name")
        if (entry := self._registry.entry_named(name)) is not None:
            return entry.restore_members(version, names)
        if not self._foreign:
            raise IncompatibleState(unknown(name))
        return [{"@": name, "member": member} for member in names]


# ── pieces ───────────────────────────────────────────────────────────────────────────────────


def _floats(payload: Any, _depth: int) -> list[Any]:
    if type(payload) is not bytes or len(payload) % 8:
        raise Malformed("numbers that are cut short")
    doubles = array("d")
    doubles.frombytes(payload)
    if sys.byteorder == "big":
        doubles.byteswap()
    return doubles.tolist()


def _leaves(payload: Any, _depth: int) -> list[Any]:
    name, taken = _fields(payload, 2)
    if type(name) is not str or (leaf := leaf_named(name)) is None:
        raise Malformed(f"there is no type {name!r}; a newer actorflow may have written it")
    if not PLAIN.issuperset(map(type, _list(taken))) or len(taken) % leaf.width:
        raise Malformed(f"a {name} that is cut short")
    try:
        return list(map(leaf.build, *[taken[start :: leaf.width] for start in range(leaf.width)]))
    except ActorflowError:
        raise
    except Exception as error:  # whatever the type says of values it does not take
        raise Malformed(f"no {name}: {error}") from error


def _deeper(depth: int) -> int:
    if depth >= MAX_DEPTH:
        raise Malformed(f"it nests more than {MAX_DEPTH} deep")
    return depth + 1


def _fields(payload: Any, count: int) -> list[Any]:
    if type(payload) is not list or len(payload) != count:
        raise Malformed("a node with other parts")
    return payload


def _list(value: Any) -> list[Any]:
    if type(value) is not list:
        raise Malformed("no list where one belongs")
    return value


def _named(table: dict[str, Callable[[Any], Any]], name: Any) -> Callable[[Any], Any]:
    if type(name) is not str or name not in table:
        raise Malformed(f"there is no type {name!r}; a newer actorflow may have written it")
    return table[name]


def _check_head(name: Any, version: Any) -> None:
    if type(name) is not str or type(version) is not int or version < 1:
        raise Malformed("a class without name or version")


def _check_names(names: Any) -> None:
    if not {str}.issuperset(map(type, _list(names))) or len(set(names)) != len(names):
        raise Malformed("names that are no text, or that stand there twice")


def _whole_numbers(counts: Any) -> bytes | list[int]:
    if type(counts) is bytes:
        return counts
    if type(counts) is not list or not {int}.issuperset(map(type, counts)) or (counts and min(counts) < 0):
        raise Malformed("lengths that are no numbers")
    return counts


def _cut(flat: list[Any], lengths: Any) -> Iterable[tuple[Any, ...]]:
    """Cut a column into pieces of these lengths, which must use it up."""
    if type(lengths) is int and 0 < lengths <= _WIDE and flat and len(flat) % lengths == 0:
        return zip(*[iter(flat)] * lengths, strict=True)
    return map(tuple, map(islice, repeat(iter(flat)), _numbers(lengths, len(flat))))


def _numbers(lengths: Any, total: int) -> bytes | list[int]:
    """The lengths one by one."""
    if type(lengths) is int:
        if not 0 < lengths <= total or total % lengths:
            raise Malformed("a length that does not fit")
        return [lengths] * (total // lengths)
    numbers = _whole_numbers(lengths)
    if sum(numbers) != total:
        raise Malformed("lengths that do not fit")
    return numbers


def _rows(columns: list[list[Any]]) -> list[tuple[Any, ...]]:
    if not columns or any(len(column) != len(columns[0]) for column in columns):
        raise Malformed("columns of other lengths")
    return list(zip(*columns, strict=True))


def _with_factories(mappings: list[Any], kind: str, factories: Any) -> list[Any]:
    if kind != "defaultdict":
        if factories is not None:
            raise Malformed("a factory where none belongs")
        return mappings
    if len(_list(factories)) != len(mappings):
        raise Malformed("other numbers of mappings and of factories")
    made = []
    for name, mapping in zip(factories, mappings, strict=True):
        if name is not None and (type(name) is not str or name not in _FACTORY_OF):
            raise Malformed(f"there is no factory {name!r}")
        made.append(defaultdict(None if name is None else _FACTORY_OF[name], mapping))
    return made
