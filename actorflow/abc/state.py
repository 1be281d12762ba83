"""What a state backend is: tables by key, an instant, and blocks of bytes.

A table holds the value of one declared state for each key of one subtask.  Keys are *tokens*
(``model/key_groups.tokens_of``): the user's key itself where it is exactly a ``str``, ``bytes`` or ``int``, and a
one-tuple of its canonical bytes otherwise, so that ``1``, ``1.0`` and ``True`` stay three keys.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final, Literal, final

__all__ = (
    "MISSING",
    "KeyedTable",
    "KeyedTimers",
    "StateBackend",
    "StateSnapshot",
    "TimeKind",
    "Timer",
    "TimerService",
)

TimeKind = Literal["event", "processing"]
"""What a timer's timestamp is compared with: the watermark, or the clock."""

Timer = tuple[int, Any, bytes, str]
"""Timestamp in milliseconds, token, namespace, and the name of the service that registered it."""


@final
class _Missing:
    __slots__ = ()

    def __repr__(self) -> str:
        return "MISSING"

    def __bool__(self) -> bool:
        return False


MISSING: Final = _Missing()
"""What a table answers for a key that it does not hold."""


class KeyedTable(ABC):
    """The values of one declared state, by token."""

    __slots__ = ()

    plain: dict[Any, Any] | None
    """The dict that holds everything, while reading and writing it directly is right; ``None`` while it is not.

    A caller may take it for the length of one batch, must not keep it, and calls ``settle`` after the batch.
    """

    @abstractmethod
    def load(self, token: Any) -> Any:
        """Return the value, or ``MISSING``.  The caller may change it in place and store it again."""

    @abstractmethod
    def peek(self, token: Any) -> Any:
        """Return the value for reading only, or ``MISSING``."""

    @abstractmethod
    def store(self, token: Any, value: Any) -> None:
        """Set the value of a key."""

    @abstractmethod
    def remove(self, token: Any) -> None:
        """Forget a key; one that is absent is fine."""

    @abstractmethod
    def items(self) -> Iterator[tuple[Any, Any]]:
        """Iterate over all keys and values as they are now; the table must not be changed meanwhile."""

    @abstractmethod
    def settle(self) -> None:
        """Do a bounded piece of upkeep; called between batches."""

    @abstractmethod
    def __len__(self) -> int:
        """How many keys there are; may be a few too many while a snapshot is written."""


class TimerService(ABC):
    """Registers timers under one name; they are told apart by timestamp, key and namespace."""

    __slots__ = ()

    @abstractmethod
    def register(self, timestamp: int, token: Any, namespace: bytes = b"") -> None:
        """Add a timer, at any time, also one that is past; one that is there already stays one."""

    @abstractmethod
    def delete(self, timestamp: int, token: Any, namespace: bytes = b"") -> None:
        """Take a timer out; one that is absent is fine."""


class KeyedTimers(ABC):
    """The timers of one operator in one subtask, by one kind of time."""

    __slots__ = ()

    @abstractmethod
    def service(self, name: str, namespaces: str = "") -> TimerService:
        """Return the service of a name, creating it.

        ``namespaces`` names the kind of its namespaces, whose canonical bytes it is given; without, there are none.
        Raises ``IncompatibleState`` when what was declared or restored under the name is of another kind.
        """

    @abstractmethod
    def services(self) -> list[str]:
        """The names that were declared or restored, sorted."""

    @abstractmethod
    def due(self, until: int, most: int) -> Iterator[Timer]:
        """Take up to ``most`` timers out, one after the other, that are not later than ``until``.

        The order is: timestamp, canonical bytes of the key, namespace, name of the service.  What is registered or
        deleted meanwhile counts at once.  Whoever iterates may stop after any of them: it is taken out, and nothing
        else is.  Fewer than ``most`` say that nothing is due any more.
        """

    @abstractmethod
    def next_timestamp(self) -> int | None:
        """Return the timestamp of the timer that comes next, due or not; ``None`` if there is none."""

    @abstractmethod
    def __len__(self) -> int:
        """How many timers there are; this counts them, so it is for tests and metrics."""


class StateSnapshot(ABC):
    """The state of one actor as it was at an instant, to be written behind."""

    @abstractmethod
    def operators(self) -> list[str]:
        """The operators that have keyed state, sorted."""

    @abstractmethod
    def blocks(self, operator: str) -> Iterator[bytes]:
        """Encode an operator's state, one block per step; a step takes about half a millisecond.

        An empty block only says that a step is over.
        """

    @abstractmethod
    def release(self) -> None:
        """Let go of what the snapshot holds; a second time is fine."""


class StateBackend(ABC):
    """The keyed state of one actor."""

    @abstractmethod
    def table(self, operator: str, state: str, kind: str) -> KeyedTable:
        """Return the table of a declared state, creating it; ``kind`` is ``value``, ``list``, ``map`` and so on.

        Raises ``IncompatibleState`` when what was restored under that name is of another kind.
        """

    def timers(self, operator: str, time: TimeKind) -> KeyedTimers:
        """Return the timers of an operator, creating them; they are part of the snapshot as tables are."""
        raise NotImplementedError(f"{type(self).__name__} keeps no timers")

    @abstractmethod
    def freeze(self) -> StateSnapshot:
        """Take the instant: what is written from now on does not show in the snapshot.  Never a copy of everything."""

    @abstractmethod
    def upkeep(self) -> Iterator[None]:
        """Fold what a released snapshot left behind, in steps of about half a millisecond."""

    @abstractmethod
    def restore(
        self, operator: str, blocks: Iterable[bytes], *, keep: Callable[[Any], bool] | None = None
    ) -> Iterator[int]:
        """Read blocks back, in steps; each step gives the number of entries that it kept.

        ``keep`` says of a token whether it belongs to this subtask; ``None`` keeps all.
        Raises ``CorruptObject`` for a block that is not what was written.
        """

    def close(self) -> None:
        """Let go of memory and files."""
