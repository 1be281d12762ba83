"""What can an operator remember, and what does its code hold in hand?

State is declared on the class and used on the instance:

    class Score(KeyedOperator[str, Click, float]):
        level = ValueState(float)                   # one value per key; 0.0 until it is set
        recent = ListState(Click)                   # a list per key
        pages = MapState(str, int)                  # a dict per key

        def on_record(self, click, context):
            self.level.value += 1

Keyed state (:class:`ValueState`, :class:`ListState`, :class:`MapState`, :class:`ReducingState`,
:class:`AggregatingState`) belongs to the key of the record in hand.  Operator state (:class:`SplitList`,
:class:`UnionList`, :class:`BroadcastState`) belongs to the subtask, and the declaration says who receives it after a
restore.  A declaration is only a description; what ``self.level`` gives inside ``on_record`` is a handle from
``handles.py``, placed on the instance, which wins over the class because a declaration defines no ``__set__``.

A value of ``None`` is no value: setting it forgets the key.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, Generic, TypeVar, overload

from actorflow.abc.state import MISSING
from actorflow.dataflow.functions import check_function, describe
from actorflow.dataflow.handles import Aggregating, Items, Mapped, Reducing, Rules, Shared, Value
from actorflow.errors import InvalidJob
from actorflow.model.manifest import Redistribution

__all__ = (
    "AggregatingState",
    "BroadcastState",
    "Declaration",
    "KeyedDeclaration",
    "ListDeclaration",
    "ListState",
    "MapState",
    "ReducingState",
    "SplitList",
    "UnionList",
    "ValueState",
)

V = TypeVar("V")
M = TypeVar("M")
A = TypeVar("A")
R = TypeVar("R")
_Self = TypeVar("_Self", bound="Declaration[Any]")
H_co = TypeVar("H_co", covariant=True)


class Declaration(Generic[H_co]):
    """A state that an operator class declares; the name is that of the attribute."""

    name: str = ""
    annotated: tuple[Any, ...] = ()

    def __set_name__(self, owner: type, name: str) -> None:
        if self.name and self.name != name:
            raise InvalidJob(
                f"{owner.__qualname__}: {self.name!r} and {name!r} are one and the same declaration; write it twice"
            )
        self.name = name

    @overload
    def __get__(self: _Self, instance: None, owner: type) -> _Self: ...
    @overload
    def __get__(self, instance: object, owner: type) -> H_co: ...
    def __get__(self, instance: object | None, owner: type) -> Any:
        """Give the declaration itself; on an instance that runs, its handle is found before this is asked."""
        if instance is None:
            return self
        raise InvalidJob(
            f"state {self.name!r} of {owner.__qualname__} is not there yet: an operator's state can be used in its "
            "hooks and in on_record, not in __init__ and not outside a job"
        )


class KeyedDeclaration(Declaration[H_co]):
    """A state by key; ``kind`` is what a checkpoint calls it."""

    kind: str = ""


class ListDeclaration(Declaration[H_co]):
    """A state of the subtask, written as a list of elements."""

    redistribution: Redistribution


class ValueState(KeyedDeclaration[Value[V]]):
    """One value per key.

    ``ValueState(float)`` begins with ``float()``, so do all types and functions that need no argument.  A type that
    needs some is declared with what to begin with, ``ValueState(Order, default=None)`` or a function of no argument.
    """

    kind = "value"

    @overload
    def __init__(self, begin: Callable[[], V]) -> None: ...
    @overload
    def __init__(self: ValueState[A | None], begin: Callable[..., A], *, default: None) -> None: ...
    @overload
    def __init__(self, begin: Callable[..., V], *, default: V) -> None: ...
    def __init__(self, begin: Any, *, default: Any = MISSING) -> None:
        if not callable(begin):
            raise InvalidJob(
                f"ValueState takes a type or a function of no argument, not {begin!r:.80}; write "
                f"ValueState({type(begin).__name__}, default={begin!r:.40}) to begin with that value"
            )
        self.annotated = (begin,)
        self.begin: Callable[[], Any] = begin
        self.default = default
        if default is not MISSING:
            return
        try:
            inspect.signature(begin).bind()
        except TypeError:
            raise InvalidJob(
                f"ValueState({describe(begin)}): {describe(begin)} needs arguments, so it can't say what a new key "
                f"begins with: write ValueState({describe(begin)}, default=None), or a function of no argument"
            ) from None
        except ValueError:
            pass  # a built-in type that does not tell its arguments; those need none


class ListState(KeyedDeclaration[Items[V]]):
    """A list per key.  An empty one is the same as none."""

    kind = "list"

    def __init__(self, element: Callable[..., V]) -> None:
        self.annotated = (element,)


class MapState(KeyedDeclaration[Mapped[M, V]]):
    """A dict per key of the stream, with keys of its own.  An empty one is the same as none."""

    kind = "map"

    def __init__(self, key: Callable[..., M], value: Callable[..., V]) -> None:
        self.annotated = (key, value)


class ReducingState(KeyedDeclaration[Reducing[V]]):
    """One value per key, into which ``add`` folds another of its kind."""

    kind = "reducing"

    def __init__(self, function: Callable[[V, V], V]) -> None:
        check_function("ReducingState", function, 2)
        self.function = function
        self.annotated = (function,)


class AggregatingState(KeyedDeclaration[Aggregating[V, R]]):
    """An accumulator per key, into which ``add`` puts values of another kind, and a result read out of it."""

    kind = "aggregating"

    def __init__(self, create: Callable[[], A], add: Callable[[A, V], A], result: Callable[[A], R]) -> None:
        check_function("AggregatingState", create, 0, what="create")
        check_function("AggregatingState", add, 2, what="add")
        check_function("AggregatingState", result, 1, what="result")
        self.create, self.add, self.result = create, add, result
        self.annotated = (create, add, result)


class SplitList(ListDeclaration[Shared[V]]):
    """A list of the subtask; after a restore at another parallelism its elements are dealt out, each to one subtask."""

    redistribution = Redistribution.SPLIT

    def __init__(self, element: Callable[..., V]) -> None:
        self.annotated = (element,)


class UnionList(ListDeclaration[Shared[V]]):
    """A list of the subtask; after a restore every subtask receives the elements of all."""

    redistribution = Redistribution.UNION

    def __init__(self, element: Callable[..., V]) -> None:
        self.annotated = (element,)


class BroadcastState(ListDeclaration[Rules[M, V]]):
    """A dict that is the same in every subtask, because only the broadcast side writes it."""

    redistribution = Redistribution.BROADCAST

    def __init__(self, key: Callable[..., M], value: Callable[..., V]) -> None:
        self.annotated = (key, value)
