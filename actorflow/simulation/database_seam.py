"""What does a transactional database promise to whoever talks to it?

The page that a sink on a database is written against: values, errors, and :class:`DatabaseClient`, one process's
connection.  The simulated database is behind it here; what talks to PostgreSQL can stand behind it too, and
``contracts_database.py`` says what both must hold.

Transactions are serialisable by the keys of rows: whoever writes a key, or looks at it within a transaction, holds it
until the transaction ends, and others wait for a bounded time.  A transaction whose process is gone is rolled back by
the database after a while; one that was *prepared* stays, with its locks, until somebody ends it by its name.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from actorflow.errors import StorageFailed

__all__ = ("DatabaseClient", "DatabaseTransaction", "Locked", "Row", "TransactionGone", "UniqueViolation")


class UniqueViolation(StorageFailed):
    """Raised when a row is inserted whose key is there; ``key`` is the key's bytes."""

    def __init__(self, explanation: str, *, key: bytes) -> None:
        self.key = key
        super().__init__(explanation)


class Locked(StorageFailed):
    """Raised when another transaction held a key for longer than one waits; the transaction can only be rolled back."""


class TransactionGone(StorageFailed):
    """Raised when a transaction has ended, or was rolled back by the database."""


@dataclass(frozen=True, slots=True)
class Row:
    """A row: a value and, where the table has them, a key that is there once."""

    value: bytes
    key: bytes | None = None


class DatabaseTransaction(Protocol):
    """A transaction that is open.  After an error of any of its statements it can only be rolled back."""

    async def get(self, table: str, key: bytes, *, share: bool = False) -> bytes | None:
        """Return the value of a key, as this transaction sees it, and hold the key; ``share`` lets others share it."""
        ...

    async def insert(self, table: str, rows: Sequence[Row]) -> None:
        """Add rows, in order.  Raises ``UniqueViolation``."""
        ...

    async def upsert(self, table: str, rows: Sequence[Row]) -> None:
        """Add rows that have keys, in order, each in the place of the one of its key."""
        ...

    async def delete(self, table: str, keys: Sequence[bytes]) -> None:
        """Remove the rows of these keys; those that are absent are fine."""
        ...

    async def commit(self) -> None:
        """Make all of it visible at once.

        A plain ``StorageFailed`` leaves that in doubt: look for something that was written.  ``TransactionGone`` says
        that nothing was.
        """
        ...

    async def rollback(self) -> None:
        """Undo all of it; a second time is fine."""
        ...

    async def prepare(self, gid: str) -> None:
        """Let go of the transaction, so that it stays, whoever dies, until it is committed or rolled back by ``gid``.

        Raises ``InvalidConfig`` naming the setting where the database allows none, and ``StorageFailed`` where there
        are as many as it allows or the name is taken.
        """
        ...


class DatabaseClient(Protocol):
    """One process's connection to a database.  A plain ``StorageFailed`` leaves in doubt whether it was done."""

    async def create_table(self, table: str) -> None:
        """Create a table unless it is there."""
        ...

    async def rows(self, table: str) -> list[Row]:
        """Return the committed rows, in the order in which they were committed; raises ``ObjectMissing``."""
        ...

    async def get(self, table: str, key: bytes) -> bytes | None:
        """Return the committed value of a key; waits for nobody."""
        ...

    async def begin(self) -> DatabaseTransaction:
        """Begin a transaction."""
        ...

    async def most_prepared(self) -> int:
        """Return how many prepared transactions the database allows (PostgreSQL: ``max_prepared_transactions``)."""
        ...

    async def prepared(self, prefix: str) -> list[str]:
        """Return the names of prepared transactions that begin with ``prefix``, sorted."""
        ...

    async def commit_prepared(self, gid: str) -> bool:
        """Commit a prepared transaction; return whether there was one."""
        ...

    async def rollback_prepared(self, gid: str) -> bool:
        """Undo a prepared transaction; return whether there was one."""
        ...
