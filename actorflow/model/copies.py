"""How does a value get a copy of its own, without being written down?

State that is handed to a user while a snapshot still needs it is copied first.  What can't change is given as it is, a
flat list costs little more than a slice, and nested values are copied as deep as something in them can change.

It takes what the codec takes: a class that could not be written is refused here too.
"""

from __future__ import annotations

from collections import Counter as CounterType
from collections import OrderedDict, defaultdict, deque
from collections.abc import Callable
from functools import partial
from operator import is_
from typing import Any, Final

from actorflow.errors import InvalidValue
from actorflow.model.leaves import PLAIN, Unwritable, leaf_of
from actorflow.model.locating import MAX_DEPTH, locate
from actorflow.model.registry import Registry, advice
from actorflow.model.shapes import EnumShape, RecordShape

__all__ = ("Copier",)

_SHORT: Final = 8

_Copy = Callable[[Any, int], Any]


class Copier:
    """Copies values, with the classes of one registry."""

    def __init__(self, registry: Registry) -> None:
        self._registry = registry
        self._fixed: set[type] = {*PLAIN, complex}
        self._copiers: dict[type, _Copy] = {
            bytearray: lambda value, _depth: value[:],
            list: self._list,
            tuple: partial(self._immutable, tuple),
            frozenset: partial(self._immutable, frozenset),
            set: self._set,
            deque: self._deque,
            dict: self._mapping,
            OrderedDict: self._mapping,
            CounterType: self._mapping,
            defaultdict: self._mapping,
        }

    def copy(self, value: Any) -> Any:
        """Return a copy that shares nothing with ``value`` that can change."""
        cls = type(value)
        if cls in self._fixed:
            return value
        if cls is list and len(value) <= _SHORT:  # what state holds most often, and a loop is quicker than a map there
            for item in value:
                if type(item) not in self._fixed:
                    break
            else:
                return value[:]
        try:
            return self._copy(value, 0)
        except (Unwritable, RecursionError) as error:
            reason = error if isinstance(error, Unwritable) else Unwritable("it nests too deep, or it holds itself")
            path, reason = locate(value, "value", self._registry, lambda part: self._copy(part, 0), reason)
            raise InvalidValue(f"{path} can't be copied: {reason}") from None

    def is_immutable(self, value: Any) -> bool:
        """Whether nothing in the value can change."""
        cls = type(value)
        if cls in self._fixed:
            return True
        try:
            if (copier := self._copiers.get(cls) or self._find(cls)) is None:
                return True
            if cls not in {tuple, frozenset} and not self._is_frozen(cls):
                return False
            return copier(value, 0) is value
        except Unwritable:
            return False

    def _is_frozen(self, cls: type) -> bool:
        entry = self._registry.entry_of(cls)
        return entry is not None and entry.shape.frozen

    def _copy(self, value: Any, depth: int) -> Any:
        cls = type(value)
        if cls in self._fixed or (copier := self._copiers.get(cls) or self._find(cls)) is None:
            return value
        if depth >= MAX_DEPTH:
            raise Unwritable(f"it nests more than {MAX_DEPTH} deep, or it holds itself")
        return copier(value, depth)

    def _find(self, cls: type) -> _Copy | None:
        copier: _Copy | None = None
        if leaf_of(cls) is None:
            if (entry := self._registry.entry_of(cls)) is None:
                raise Unwritable(f"it is {advice(cls)}")
            if not isinstance(entry.shape, EnumShape):
                copier = partial(self._record, entry.shape)
        if copier is None:
            self._fixed.add(cls)
        else:
            self._copiers[cls] = copier
        return copier

    def _list(self, value: list[Any], depth: int) -> list[Any]:
        if self._fixed.issuperset(map(type, value)):
            return value[:]
        return [self._copy(item, depth + 1) for item in value]

    def _set(self, value: set[Any], depth: int) -> set[Any]:
        if self._fixed.issuperset(map(type, value)):
            return value.copy()
        return {self._copy(item, depth + 1) for item in value}

    def _deque(self, value: deque[Any], depth: int) -> deque[Any]:
        if self._fixed.issuperset(map(type, value)):
            return value.copy()
        return deque([self._copy(item, depth + 1) for item in value], value.maxlen)

    def _immutable(self, make: Any, value: Any, depth: int) -> Any:
        if self._fixed.issuperset(map(type, value)):
            return value
        before = tuple(value)
        after = [self._copy(item, depth + 1) for item in before]
        return value if all(map(is_, before, after)) else make(after)

    def _mapping(self, value: Any, depth: int) -> Any:
        copy = value.copy()
        if not self._fixed.issuperset(map(type, value)):
            copy.clear()
            for key, item in value.items():
                copy[self._copy(key, depth + 1)] = self._copy(item, depth + 1)
        elif not self._fixed.issuperset(map(type, value.values())):
            for key, item in value.items():
                copy[key] = self._copy(item, depth + 1)
        return copy

    def _record(self, shape: RecordShape, value: Any, depth: int) -> Any:
        parts = shape.take_one(value)
        if self._fixed.issuperset(map(type, parts)):
            return value if shape.frozen else shape.build_one(parts)
        after = [self._copy(item, depth + 1) for item in parts]
        if shape.frozen and all(map(is_, parts, after)):
            return value
        return shape.build_one(after)
