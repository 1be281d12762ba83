from __future__ import annotations

from collections import Counter, OrderedDict, defaultdict, deque
from dataclasses import dataclass, field
from datetime import UTC, datetime
from decimal import Decimal
from enum import Enum
from typing import Any, NamedTuple

import attrs
import msgspec
import pytest

from actorflow.errors import InvalidValue
from actorflow.model.codec import Codec, Registry
from actorflow_tests.model.likeness import same


class Color(Enum):
    RED = 1


@dataclass
class Total:
    count: int
    seen: list[Any] = field(default_factory=list)


@dataclass(slots=True)
class Single:
    count: int


@dataclass(frozen=True)
class Mark:
    at: datetime
    of: Any = None


@attrs.define
class Ball:
    marks: list[int]


@attrs.frozen
class Stone:
    marks: Any


class Pair(NamedTuple):
    left: Any
    right: Any


class Trade(msgspec.Struct):
    notes: list[Any]


class Fixed(msgspec.Struct, frozen=True):
    notes: Any


CLASSES: tuple[type, ...] = (Color, Total, Single, Mark, Ball, Stone, Pair, Trade, Fixed)
REGISTRY = Registry(alone=True)
for each in CLASSES:
    REGISTRY.register(each)
CODEC = Codec(REGISTRY)
NOW = datetime(2024, 1, 1, tzinfo=UTC)

IMMUTABLE: list[Any] = [
    *(None, True, 1, 1.5, "a", b"b", 1j, range(3), Decimal(1), NOW, Color.RED),
    *((), (1, "a"), ((1,), (2, (None,))), frozenset({1, (2, 3)}), (Color.RED, NOW)),
    *(Mark(NOW), Mark(NOW, (1, 2)), Mark(NOW, Mark(NOW)), Stone((1, 2)), Pair(1, (2,)), Fixed("x")),
]
MUTABLE: list[Any] = [
    *([], [1], [[1]], [(1, [2])], {}, {"a": 1}, {"a": [1]}, {(1, 2): {3}}, set(), {1}, {(1, 2)}, bytearray(b"x")),
    *(deque([1], maxlen=2), deque([[1]], maxlen=2), OrderedDict(b=[1], a=2), Counter("aab"), defaultdict(list, a=[1])),
    *(Total(1), Total(1, [Total(2)]), Single(1), Ball([1]), Trade([1]), Trade([[1]])),
]
DEEP: list[Any] = [
    *((1, [2]), ((), [])),
    *(Mark(NOW, [1]), Mark(NOW, (1, [2])), Stone([1]), Pair(1, [2]), Pair((1, [2]), 3), Fixed([1])),
]


@pytest.mark.parametrize("value", IMMUTABLE, ids=repr)
def test_what_can_not_change_is_given_as_it_is(value: Any) -> None:
    assert CODEC.copy(value) is value
    assert CODEC.is_immutable(value)


@pytest.mark.parametrize("value", MUTABLE + DEEP, ids=repr)
def test_what_can_change_is_copied_exactly_and_shares_nothing_that_can_change(value: Any) -> None:
    copy = CODEC.copy(value)
    assert same(value, copy)
    assert copy is not value
    assert not CODEC.is_immutable(value)
    assert not (_changeable(value) & _changeable(copy))


def test_a_copy_keeps_what_can_not_change() -> None:
    inner = (1, (2, 3))
    assert CODEC.copy([inner])[0] is inner
    assert CODEC.copy({"a": inner})["a"] is inner
    assert CODEC.copy(Total(1, [inner])).seen[0] is inner


def test_a_change_of_the_copy_does_not_show_in_the_value() -> None:
    value = {"a": [1], "b": Total(1, [[2]])}
    copy = CODEC.copy(value)
    copy["a"].append(2)
    copy["b"].seen[0].append(3)
    copy["b"].count += 1
    copy["c"] = 1
    assert {"a": [1], "b": Total(1, [[2]])} == value


def test_what_could_not_be_written_is_not_copied_either() -> None:
    class Unknown:
        pass

    with pytest.raises(InvalidValue, match=r"^value\['a'\]\[1\] can't be copied: .*Unknown"):
        CODEC.copy({"a": [1, Unknown()]})
    assert not CODEC.is_immutable(Unknown())
    assert not CODEC.is_immutable((1, Unknown()))


def _changeable(value: Any) -> set[int]:
    """The addresses of everything in a value that could be changed."""
    found: set[int] = set()
    if isinstance(value, dict):
        parts: list[Any] = [*value, *value.values()]
    elif isinstance(value, list | tuple | set | frozenset | deque):
        parts = list(value)
    elif type(value) in CLASSES and not isinstance(value, Enum):
        parts = [getattr(value, name) for name in ("seen", "of", "marks", "notes") if hasattr(value, name)]
    else:
        parts = []
    if isinstance(value, list | dict | set | bytearray | deque | Total | Single | Ball | Trade):
        found.add(id(value))
    for part in parts:
        found |= _changeable(part)
    return found
