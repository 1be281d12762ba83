"""What does an operator's code hold in hand when it says ``self.level``?

A handle.  :class:`Value` is the hot one: the chain loads the value of the record's key into its plain ``value`` slot
before the call and writes it back after it, so ``self.level.value += 1`` costs what an attribute costs (244 ns against
409 for a property).  Where that is not possible or does not pay (a snapshot is being written, a state that recent
records did not use, an async operator) the very same object changes its class for one whose ``value`` is a property,
and outside of any key for one that refuses.

The other handles (:class:`Items`, :class:`Mapped`, :class:`Reducing`, :class:`Aggregating`) go to their cell when they
are used and cost nothing otherwise.  :class:`Shared` and :class:`Rules` belong to the subtask.

A handle is always about the record in hand.  What was taken out of one and can be changed in place (an element, a
value) must not be kept for a later record: it is not the state any more.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, MutableMapping
from typing import Any, Generic, TypeVar

from actorflow.abc.state import MISSING
from actorflow.dataflow.cells import Cell
from actorflow.errors import InvalidJob

__all__ = (
    "Aggregating",
    "Items",
    "Mapped",
    "Reducing",
    "Rules",
    "Shared",
    "ThroughValue",
    "UnboundValue",
    "Value",
)

V = TypeVar("V")
M = TypeVar("M")
R_co = TypeVar("R_co", covariant=True)
I_contra = TypeVar("I_contra", contravariant=True)


class Value(Generic[V]):
    """One value per key, as the plain attribute ``value``.

    ``blank`` is what an absent key shows when that can't be changed in place, else every absent key is given a new
    ``begin()``.
    """

    __slots__ = ("_begin", "_blank", "_cell", "_name", "cleared", "loaded", "uses", "value")

    value: V
    loaded: Any
    """The object that was loaded beforehand, to see whether it was replaced."""

    def __init__(self, name: str, cell: Cell, begin: Callable[[], V], blank: Any) -> None:
        self._name, self._cell, self._begin, self._blank = name, cell, begin, blank
        self.cleared = False
        self.uses = 0  # how often it was used while it was not loaded beforehand

    def clear(self) -> None:
        """Forget the value; it shows what it began with again."""
        self.value = self._blank
        self.cleared = True

    def __repr__(self) -> str:
        return f"<state {self._name!r}>"


def _get_through(handle: ThroughValue) -> Any:
    handle.uses += 1
    cell = handle._cell  # noqa: SLF001 - the property of this very class
    value = cell.load()
    if value is not MISSING:
        return value
    if handle._blank is not MISSING:  # noqa: SLF001
        return handle._blank  # noqa: SLF001
    fresh = handle._begin()  # noqa: SLF001
    cell.hand_out(fresh)
    return fresh


def _set_through(handle: ThroughValue, value: Any) -> None:
    handle.uses += 1
    if value is None:
        handle._cell.remove()  # noqa: SLF001
    else:
        handle._cell.store(value)  # noqa: SLF001


class ThroughValue(Value[Any]):
    """A value that goes to its cell at every use."""

    __slots__ = ()

    value = property(_get_through, _set_through)  # the same name, on purpose: see above

    def clear(self) -> None:
        self._cell.remove()


def _refuse(handle: UnboundValue, _value: Any = None) -> Any:
    raise InvalidJob(
        f"state {handle._name!r} belongs to a key, and here is none: use it in on_record"  # noqa: SLF001
    )


class UnboundValue(Value[Any]):
    """A value outside of any key."""

    __slots__ = ()

    value = property(_refuse, _refuse)  # the same name, on purpose: see above

    def clear(self) -> None:
        _refuse(self)


class Items(Generic[V]):
    """A list per key."""

    __slots__ = ("_cell",)

    def __init__(self, cell: Cell) -> None:
        self._cell = cell

    def append(self, value: V) -> None:
        """Add one element at the end."""
        found = self._cell.load()
        if found is MISSING:
            self._cell.store([value])
        else:
            found.append(value)

    def extend(self, values: Iterable[V]) -> None:
        """Add elements at the end."""
        more = list(values)
        found = self._cell.load()
        if found is not MISSING:
            found += more
        elif more:
            self._cell.store(more)

    def replace(self, values: Iterable[V]) -> None:
        """Put other elements in the place of all."""
        whole = list(values)
        if whole:
            self._cell.store(whole)
        else:
            self._cell.remove()

    def get(self) -> list[V]:
        """Return the elements as a list of the caller's own."""
        found = self._cell.load()
        return [] if found is MISSING else list(found)

    def clear(self) -> None:
        """Forget all elements."""
        self._cell.remove()

    def __iter__(self) -> Iterator[V]:
        found = self._cell.load()
        return iter(()) if found is MISSING else iter(found)

    def __len__(self) -> int:
        found = self._cell.load()
        return 0 if found is MISSING else len(found)

    def __getitem__(self, index: int) -> V:
        found = self._cell.load()
        if found is MISSING:
            raise IndexError("the list of this key is empty")
        value: V = found[index]
        return value


class Mapped(MutableMapping[M, V]):
    """A dict per key of the stream."""

    __slots__ = ("_cell",)

    def __init__(self, cell: Cell) -> None:
        self._cell = cell

    def _found(self) -> dict[M, V]:
        found = self._cell.load()
        if found is MISSING:
            return {}
        whole: dict[M, V] = found
        return whole

    def __getitem__(self, key: M) -> V:
        return self._found()[key]

    def __setitem__(self, key: M, value: V) -> None:
        found = self._cell.load()
        if found is MISSING:
            self._cell.store({key: value})
        else:
            found[key] = value

    def __delitem__(self, key: M) -> None:
        found = self._found()
        del found[key]
        if not found:
            self._cell.remove()

    def __iter__(self) -> Iterator[M]:
        return iter(self._found())

    def __len__(self) -> int:
        return len(self._found())

    def __contains__(self, key: object) -> bool:
        return key in self._found()

    def clear(self) -> None:
        """Forget all entries."""
        self._cell.remove()


class Reducing(Generic[V]):
    """One value per key that others are folded into."""

    __slots__ = ("_cell", "_function")

    def __init__(self, cell: Cell, function: Callable[[V, V], V]) -> None:
        self._cell, self._function = cell, function

    def add(self, value: V) -> None:
        """Fold one more value in."""
        found = self._cell.load()
        new = value if found is MISSING else self._function(found, value)
        if new is None:
            self._cell.remove()
        else:
            self._cell.store(new)

    def get(self) -> V | None:
        """Return the value, or ``None`` before the first ``add``."""
        found = self._cell.load()
        return None if found is MISSING else found

    def clear(self) -> None:
        """Forget the value."""
        self._cell.remove()


class Aggregating(Generic[I_contra, R_co]):
    """An accumulator per key."""

    __slots__ = ("_add", "_cell", "_create", "_result")

    def __init__(
        self,
        cell: Cell,
        create: Callable[[], Any],
        add: Callable[[Any, I_contra], Any],
        result: Callable[[Any], R_co],
    ) -> None:
        self._cell, self._create, self._add, self._result = cell, create, add, result

    def add(self, value: I_contra) -> None:
        """Put one more value in."""
        found = self._cell.load()
        new = self._add(self._create() if found is MISSING else found, value)
        if new is None:
            raise TypeError("`add` returned None; it must return the accumulator, changed or new")
        self._cell.store(new)

    def get(self) -> R_co | None:
        """Return the result, or ``None`` before the first ``add``."""
        found = self._cell.load()
        return None if found is MISSING else self._result(found)

    def clear(self) -> None:
        """Forget the accumulator."""
        self._cell.remove()


class Shared(Generic[V]):
    """A list of the subtask."""

    __slots__ = ("elements",)

    def __init__(self) -> None:
        self.elements: list[V] = []

    def append(self, value: V) -> None:
        """Add one element at the end."""
        self.elements.append(value)

    def extend(self, values: Iterable[V]) -> None:
        """Add elements at the end."""
        self.elements.extend(values)

    def replace(self, values: Iterable[V]) -> None:
        """Put other elements in the place of all."""
        self.elements[:] = list(values)

    def clear(self) -> None:
        """Forget all elements."""
        self.elements.clear()

    def __iter__(self) -> Iterator[V]:
        return iter(self.elements)

    def __len__(self) -> int:
        return len(self.elements)

    def __getitem__(self, index: int) -> V:
        return self.elements[index]


class Rules(MutableMapping[M, V]):
    """A dict that is the same in every subtask; may be written only while a record of the broadcast side is in hand."""

    __slots__ = ("_name", "content", "writable")

    def __init__(self, name: str) -> None:
        self._name = name
        self.content: dict[M, V] = {}
        self.writable = False

    def _check(self) -> None:
        if not self.writable:
            raise InvalidJob(
                f"broadcast state {self._name!r} may be changed in on_broadcast only: every subtask sees those "
                "records, and so holds the same state"
            )

    def __getitem__(self, key: M) -> V:
        return self.content[key]

    def __setitem__(self, key: M, value: V) -> None:
        self._check()
        self.content[key] = value

    def __delitem__(self, key: M) -> None:
        self._check()
        del self.content[key]

    def __iter__(self) -> Iterator[M]:
        return iter(self.content)

    def __len__(self) -> int:
        return len(self.content)

    def __contains__(self, key: object) -> bool:
        return key in self.content
