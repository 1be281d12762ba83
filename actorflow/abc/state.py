"""What a state backend is: tables by key, an instant, and blocks of bytes.

A table holds the value of one declared state for each key of one subtask.  Keys are *tokens*
(``model/key_groups.tokens_of``): the user's key itself where it is exactly a ``str``, ``bytes`` or ``int``, and a
one-tuple of its canonical bytes otherwise, so that ``1``, ``1.0`` and ``True`` stay three keys.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final, final

__all__ = ("MISSING", "KeyedTable", "StateBackend", "StateSnapshot")


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
