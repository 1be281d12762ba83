"""Where does the value of a state come from while a record is processed?

A handle (``self.level``, ``self.items``) asks its *cell*; the cell knows the table and the key in hand.  There are two
kinds, so that handles exist once: :class:`TableCell` of a plain operator goes to the table directly and remembers what
it handed out to be changed in place, and ``lane.InvocationCell`` of an async one goes through the invocation's own
buffer.

A value handed out for changing is stored again after the record wherever the table does not share its objects with us
(``KeyedTable.load``).  Where the table offers its dict (``plain``), the object *is* the state and nothing is left to
do.
"""

from __future__ import annotations

from typing import Any, Protocol

from actorflow.abc.state import MISSING, KeyedTable
from actorflow.dataflow.loops import PLAIN_TYPES

__all__ = ("Cell", "Cursor", "TableCell", "is_empty_container")


class Cell(Protocol):
    """One state under the key in hand."""

    def load(self) -> Any:
        """Return the value, or ``MISSING``; it may be changed in place."""

    def store(self, value: Any) -> None:
        """Set the value."""

    def remove(self) -> None:
        """Forget the value."""

    def hand_out(self, fresh: Any) -> None:
        """Note a new object that may be changed in place, and is kept unless it is still empty after the record."""


class Cursor:
    """The key in hand of one subtask, and what was handed out since it came to it."""

    __slots__ = ("token", "touched")

    def __init__(self) -> None:
        self.token: Any = MISSING
        self.touched: dict[TableCell, Any] = {}

    def settle(self) -> None:
        """Store what was handed out under this key; called after a record that touched something."""
        token, touched = self.token, self.touched
        for cell, value in touched.items():
            if cell.fresh is value and is_empty_container(value):
                continue
            cell.table.store(token, value)
        touched.clear()


class TableCell:
    """A state of a plain operator: straight to the table."""

    __slots__ = ("cursor", "fresh", "plain", "table")

    def __init__(self, table: KeyedTable, cursor: Cursor) -> None:
        self.table, self.cursor = table, cursor
        self.plain: dict[Any, Any] | None = None  # the table's dict, for the length of one batch
        self.fresh: Any = MISSING

    def load(self) -> Any:
        cursor = self.cursor
        if cursor.touched and self in cursor.touched:
            return cursor.touched[self]
        plain = self.plain
        if plain is not None:
            return plain.get(cursor.token, MISSING)
        value = self.table.load(cursor.token)
        if value is not MISSING and type(value) not in PLAIN_TYPES:
            cursor.touched[self] = value
        return value

    def store(self, value: Any) -> None:
        cursor = self.cursor
        self.fresh = MISSING
        if self.plain is not None:
            cursor.touched.pop(self, None)
            self.plain[cursor.token] = value
        elif type(value) in PLAIN_TYPES:
            cursor.touched.pop(self, None)
            self.table.store(cursor.token, value)
        else:
            cursor.touched[self] = value  # may still be changed in place under this key, so stored after the record

    def remove(self) -> None:
        cursor = self.cursor
        cursor.touched.pop(self, None)
        self.table.remove(cursor.token)

    def hand_out(self, fresh: Any) -> None:
        self.fresh = fresh
        self.cursor.touched[self] = fresh


def is_empty_container(value: Any) -> bool:
    """Whether a value is a container with nothing in it, so that keeping it or not is the same to the user."""
    try:
        return len(value) == 0
    except Exception:
        return False
