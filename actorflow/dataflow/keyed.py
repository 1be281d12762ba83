"""What does a user's operator look like?

A class: state declared on it, ``on_record`` called for each record, and hooks for the moments in between.

    class Score(KeyedOperator[str, Click, tuple[str, float]]):
        level = ValueState(float)

        def on_record(self, click, context):
            self.level.value = 1.0 + self.level.value * 0.9
            yield context.key, self.level.value

``on_record`` may be plain (returning nothing, or a list or anything else to iterate over), a generator, ``async def``
or an async generator.  ``yield`` reads best; returning a list, or ``context.emit``, is faster.  An async one takes the
async lane: its writes are buffered and take effect at one stroke with its output.

:class:`KeyedOperator` runs behind ``key_by`` and may declare keyed state; :class:`Operator` runs on any stream and has
only operator state; :class:`KeyedBroadcastOperator` has a second input, whose records all subtasks see.

Hooks are plain functions.  None of them has a key in hand, so none may use keyed state but through
``context.entries``.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any, ClassVar, Generic, TypeVar

from actorflow.abc.state import MISSING
from actorflow.dataflow.handles import Aggregating, Items, Mapped, Reducing, Value
from actorflow.dataflow.seat import Seat
from actorflow.dataflow.states import BroadcastState, Declaration, KeyedDeclaration
from actorflow.errors import InvalidJob
from actorflow.model.key_groups import key_of_token

__all__ = (
    "BaseOperator",
    "Context",
    "HookContext",
    "KeyedBroadcastOperator",
    "KeyedOperator",
    "Operator",
    "check_declarations",
    "declarations_of",
)

K = TypeVar("K")
K_contra = TypeVar("K_contra", contravariant=True)
K_co = TypeVar("K_co", covariant=True)
T_contra = TypeVar("T_contra", contravariant=True)
B_contra = TypeVar("B_contra", contravariant=True)
R_co = TypeVar("R_co", covariant=True)
V = TypeVar("V")

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class Context(Generic[K_co]):
    """What ``on_record`` knows besides the record.  One object serves all records of a subtask; don't keep it."""

    __slots__ = ("_seat", "emit", "key")

    key: K_co
    """The key of the record in hand, as ``key_by`` computed it."""

    emit: Callable[[Any], None]
    """Give one record to the main output."""

    def __init__(self, seat: Seat) -> None:
        self._seat = seat

    def emit_to(self, tag: str, value: Any) -> None:
        """Give one record to the side output ``tag``, which is read with ``stream.side_output(tag)``."""
        self._seat.sides.column(tag).append(value)

    @property
    def operator(self) -> str:
        """The operator's name."""
        return self._seat.operator

    @property
    def subtask(self) -> int:
        """Which of the operator's subtasks this is, from 0."""
        return self._seat.subtask

    @property
    def parallelism(self) -> int:
        """How many subtasks the operator has."""
        return self._seat.parallelism

    def now(self) -> datetime:
        """Return the time on this machine's clock (in a simulation: the simulated one); it may jump."""
        return _EPOCH + timedelta(milliseconds=self._seat.clock.wall_ms())


class HookContext(Context[Any]):
    """What a hook knows.  There is no key; ``checkpoint_id`` is ``None`` where no checkpoint is in hand."""

    __slots__ = ("_names", "checkpoint_id")

    def __init__(self, seat: Seat, names: Any) -> None:
        super().__init__(seat)
        self._names = names
        self.checkpoint_id: int | None = None

    @property
    def key(self) -> Any:  # a hook has none, and says so instead of showing an old one
        raise InvalidJob("there is no key here: a hook runs between records; context.entries(state) has all keys")

    def entries(self, state: Any) -> Iterator[tuple[Any, Any]]:
        """Iterate over (key, value) of a keyed state, in no particular order; nothing may be written meanwhile.

        ``state`` is a handle such as ``self.level``.  The keys are those of this subtask.
        """
        if not isinstance(state, Value | Items | Mapped | Reducing | Aggregating):
            raise InvalidJob(f"entries() takes a keyed state such as self.level, not {type(state).__name__}")
        cell: Any = state._cell  # noqa: SLF001 - a handle is opaque to users, not to its own room
        table = cell.table
        read = state._result if isinstance(state, Aggregating) else None  # noqa: SLF001
        for token, value in table.items():
            if value is not MISSING:
                yield key_of_token(token, self._names), value if read is None else read(value)


class BaseOperator(ABC):  # noqa: B024 - on_record is abstract in those that say what it takes
    """What all operators of users have in common: hooks."""

    optional_outputs: ClassVar[tuple[str, ...]] = ()
    """Side outputs that may stay unread; emitting to any other that nobody reads is an error, for it would be lost."""

    def on_open(self, context: HookContext, /) -> None:
        """Run before the first record of every attempt, after state was restored."""

    def on_restored(self, context: HookContext, /) -> None:
        """Run before the first record when state of ``context.checkpoint_id`` was restored."""

    def on_snapshot(self, checkpoint_id: int, /) -> None:
        """Run right before the state is taken for a checkpoint."""

    def on_checkpoint_completed(self, checkpoint_id: int, /) -> None:
        """Run after a checkpoint completed.  Ids may be skipped: each stands for all before it."""

    def on_checkpoint_aborted(self, checkpoint_id: int, /) -> None:
        """Run after a checkpoint was aborted."""

    def on_end_of_input(self, context: HookContext, /) -> Iterable[Any] | None:
        """Run once when the input has ended; the last chance to emit, by ``yield``, a list, or ``context.emit``."""
        return None

    def on_close(self) -> None:
        """Run at the end of every attempt, also after a failure."""


class Operator(BaseOperator, Generic[T_contra, R_co]):
    """An operator on a stream without keys."""

    @abstractmethod
    def on_record(
        self, value: T_contra, context: Context[None], /
    ) -> Iterable[R_co] | Awaitable[Iterable[R_co] | None] | AsyncIterator[R_co] | None:
        """Take one record and give any number of outputs."""


class KeyedOperator(BaseOperator, Generic[K_contra, T_contra, R_co]):
    """An operator behind ``key_by``, with state by key."""

    @abstractmethod
    def on_record(
        self, value: T_contra, context: Context[K_contra], /
    ) -> Iterable[R_co] | Awaitable[Iterable[R_co] | None] | AsyncIterator[R_co] | None:
        """Take one record and give any number of outputs."""


class KeyedBroadcastOperator(KeyedOperator[K_contra, T_contra, R_co], Generic[K_contra, T_contra, B_contra, R_co]):
    """An operator behind ``key_by`` with a second input that every subtask sees whole.

    What that input says is kept in :class:`~actorflow.dataflow.states.BroadcastState`, which only ``on_broadcast`` may
    change.  All subtasks see its records in the same order when they come from one subtask; from several, write so that
    their order does not matter.
    """

    @abstractmethod
    def on_broadcast(self, value: B_contra, context: HookContext, /) -> Iterable[R_co] | None:
        """Take one record of the broadcast side."""


def declarations_of(cls: type) -> dict[str, Declaration[Any]]:
    """Return the states that an operator class declares, its bases included, in order."""
    found: dict[str, Declaration[Any]] = {}
    for base in reversed(cls.__mro__):
        for name, value in vars(base).items():
            if isinstance(value, Declaration):
                found[name] = value
            elif name in found:
                del found[name]
    return found


def check_declarations(operator: str, cls: type, *, keyed: bool, broadcast: bool) -> None:
    """Refuse states that an operator class can't have where it is used."""
    for name, declaration in declarations_of(cls).items():
        where = f"operator {operator!r}: state {name!r} of {cls.__qualname__}"
        if isinstance(declaration, KeyedDeclaration) and not keyed:
            raise InvalidJob(f"{where} belongs to a key, so the stream needs a key_by before process()")
        if isinstance(declaration, BroadcastState) and not broadcast:
            raise InvalidJob(f"{where} is written by a broadcast side: use connect_broadcast() in place of process()")
