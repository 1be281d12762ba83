"""Are two values the same in every respect, at every level?

``==`` is not enough: ``1 == True``, ``nan != nan``, ``-0.0 == 0.0``, and two times of one
instant are equal in any zone.
"""

from __future__ import annotations

import dataclasses
import struct
from collections import Counter, OrderedDict, defaultdict, deque
from datetime import datetime, time
from decimal import Decimal
from enum import Enum
from typing import Any

__all__ = ("same",)


def same(left: Any, right: Any) -> bool:
    """Whether the two could be exchanged without anybody noticing; two NaNs of the same bits are the same."""
    if type(left) is not type(right):
        return False
    cls = type(left)
    if cls is float:
        return struct.pack("d", left) == struct.pack("d", right)
    if cls is complex:
        return same(left.real, right.real) and same(left.imag, right.imag)
    if cls is Decimal:
        return bool(left.as_tuple() == right.as_tuple())
    if cls in {datetime, time}:
        return (
            bool(left.replace(tzinfo=None) == right.replace(tzinfo=None))
            and left.fold == right.fold
            and type(left.tzinfo) is type(right.tzinfo)
            and repr(left.tzinfo) == repr(right.tzinfo)
        )
    if cls in {set, frozenset}:
        return _pairs(list(left), list(right))
    if isinstance(left, dict):
        assert cls in {dict, OrderedDict, Counter, defaultdict}
        factories = getattr(left, "default_factory", None) is getattr(right, "default_factory", None)
        return factories and _all(list(left), list(right)) and _all(list(left.values()), list(right.values()))
    if cls is deque:
        return left.maxlen == right.maxlen and _all(list(left), list(right))
    if cls is list or isinstance(left, tuple):
        return _all(list(left), list(right))
    if isinstance(left, Enum):
        return left is right
    names = _fields(cls)
    if names is not None:
        return _all([getattr(left, name) for name in names], [getattr(right, name) for name in names])
    return bool(left == right) and repr(left) == repr(right)


def _all(left: list[Any], right: list[Any]) -> bool:
    return len(left) == len(right) and all(map(same, left, right))


def _pairs(left: list[Any], right: list[Any]) -> bool:
    for element in left:
        found = next((index for index, other in enumerate(right) if same(element, other)), None)
        if found is None:
            return False
        del right[found]
    return not right


def _fields(cls: type) -> list[str] | None:
    if dataclasses.is_dataclass(cls):
        return [field.name for field in dataclasses.fields(cls)]
    if hasattr(cls, "__attrs_attrs__"):
        return [attribute.name for attribute in cls.__attrs_attrs__]
    if hasattr(cls, "__struct_fields__"):
        return list(cls.__struct_fields__)
    return None
