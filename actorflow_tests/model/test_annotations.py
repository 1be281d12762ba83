from __future__ import annotations

import functools
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import dataclass
from enum import Enum
from typing import Annotated, Any, Generic, Literal, NamedTuple, NewType, Optional, TypedDict, TypeVar, Union

import attr
import attrs
import msgspec
import pytest

from actorflow.errors import InvalidJob, InvalidValue
from actorflow.model.annotations import function_types
from actorflow.model.codec import Codec, Registry, types_in


class Color(Enum):
    RED = 1


@dataclass
class Leaf:
    color: Color


@dataclass
class Node:
    leaf: Leaf | None
    children: list[Node]
    missing: NotThere  # type: ignore[name-defined]  # noqa: F821
    named: Pair


class Pair(NamedTuple):
    left: Struct
    right: int


class Struct(msgspec.Struct):
    ball: Ball


@attrs.define
class Ball:
    size: int


@attr.s
class OldStyle:
    color = attr.ib(type=Color)


T = TypeVar("T")
B = TypeVar("B", bound=Leaf)


@dataclass
class Box(Generic[T]):
    content: T


class Fields(TypedDict):
    leaf: Leaf


class NoFields:
    node: Node


Order = NewType("Order", Leaf)
EVERYTHING = [Node, Leaf, Color, Pair, Struct, Ball]


@pytest.mark.parametrize(
    ("annotation", "expected"),
    [
        (None, []),
        (int, []),
        (Any, []),
        (NoFields, []),
        (Color, [Color]),
        (Leaf, [Leaf, Color]),
        (list[Color], [Color]),
        (dict[str, tuple[Color, ...]], [Color]),
        (Optional[Color], [Color]),  # noqa: UP045
        (Union[int, Leaf], [Leaf, Color]),  # noqa: UP007
        (Leaf | int, [Leaf, Color]),
        (Annotated[Color, "metadata", Leaf], [Color]),
        (Literal[Color.RED, 1], [Color]),
        (Callable[[Leaf], Ball], [Leaf, Color, Ball]),
        (AsyncIterator[Color], [Color]),
        (Box[Color], [Box, Color]),
        (Order, [Leaf, Color]),
        (B, [Leaf, Color]),
        (Fields, [Leaf, Color]),
        (OldStyle, [OldStyle, Color]),
        (type[Color], [Color]),
        (Pair, [Pair, Struct, Ball]),
    ],
)
def test_the_classes_that_an_annotation_names_are_found(annotation: Any, expected: list[type]) -> None:
    assert expected == types_in(annotation)


def test_classes_that_name_each_other_are_followed_and_what_is_not_there_is_passed_over() -> None:
    assert EVERYTHING == types_in(Node)


def test_text_is_looked_up_in_the_scope_that_is_given() -> None:
    assert [Color] == types_in("list[Color]", scope={"Color": Color})
    assert [] == types_in("list[Color]")
    assert [] == types_in("list[")


def test_classes_inside_of_functions_are_found_through_what_the_function_closes_over() -> None:
    @dataclass
    class Local:
        x: int

    def make(value: Local) -> list[Node]:
        return [value, Local(1)]  # type: ignore[list-item]

    assert [Local, *EVERYTHING] == function_types(make)


def test_methods_of_an_instance_partials_and_wrapped_functions_are_followed() -> None:
    class Base(Generic[T]):
        def on_record(self, record: T) -> None: ...

    class Mine(Base[Ball]):
        color: Color

        def on_end(self) -> Iterator[Leaf]: ...  # type: ignore[empty-body]

    def function(leaf: Leaf, n: int) -> None: ...

    @functools.wraps(function)
    def wrapper(*args: Any) -> None: ...

    assert {Ball, Color, Leaf} == set(function_types(Mine()))
    assert {Ball, Color, Leaf} == set(function_types(Mine))
    assert [Leaf, Color] == function_types(Mine().on_end)
    assert [Leaf, Color] == function_types(functools.partial(function, n=1))
    assert [Leaf, Color] == function_types(wrapper)
    assert [] == function_types(len)
    assert [] == function_types(lambda value: value)


def test_a_registry_takes_what_annotations_name_once() -> None:
    registry = Registry(alone=True)
    registry.register(Color, name="color")
    assert EVERYTHING == registry.register_annotations(list[Node])
    registry.register_annotations(Node)
    assert "color" == registry.name_of(Color)
    assert 6 == len(registry.names())
    value = Node(Leaf(Color.RED), [], None, Pair(Struct(Ball(1)), 2))
    codec = Codec(registry)
    assert value == codec.decode(codec.encode(value))


def test_a_registry_takes_what_a_function_names() -> None:
    def count(total: int | None, leaf: Leaf) -> tuple[int, Ball]: ...  # type: ignore[empty-body]

    registry = Registry(alone=True)
    assert [Leaf, Color, Ball] == registry.register_function(count)
    with pytest.raises(InvalidValue):
        registry.name_of(Node)


def test_two_classes_of_one_default_name_are_refused() -> None:
    registry = Registry(alone=True)
    registry.register(Leaf, name="x")
    with pytest.raises(InvalidJob, match="two classes are called 'x'"):
        registry.register(Ball, name="x")
