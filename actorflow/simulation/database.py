"""What can a transactional database do to those who use it?  One in the role of PostgreSQL.

It stands in the universe, outside of every process, and outlives them all: tables of rows, transactions that are
serialisable by the keys of rows, and prepared transactions that outlive whoever prepared them.  Everything here is
carried out at once; ``database_client.py`` is how a process reaches it, through the weather.

A transaction holds every key that it wrote or looked at until it ends.  The one of a process that is gone is rolled
back after a while, as a server notices a dead connection late; one in which nothing happens for long, too.  A prepared
one stays for ever: whoever forgets it blocks others, and takes up one of ``most_prepared`` places.

What a ``rewind`` undoes are the transactions that were committed last, as when a replica that lags takes over.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING

from actorflow.errors import InvalidConfig, ObjectMissing, StorageFailed
from actorflow.simulation.database_seam import Row, TransactionGone, UniqueViolation

if TYPE_CHECKING:
    from actorflow.simulation.process import Process

__all__ = ("Database", "Held", "Session")

IDLE_MS = 10_000
"""After so long without a statement a transaction is rolled back (``idle_in_transaction_session_timeout``)."""

HANGS_UP_MS = 20

_NOTICED_MS = (0, 2_000)
"""How long it takes a server to notice that a process is gone."""


class Held(Exception):
    """A key is held by another transaction: wait."""


class _Lock(Enum):
    SHARED = 0
    ALONE = 1


@dataclass(slots=True, eq=False)
class Session:
    """A transaction, open or prepared.  ``process`` is who is at the other end; ``None`` is nobody of this world."""

    number: int
    process: Process | None
    used_ms: int
    dead_ms: int | None = None
    over: str = ""
    changes: list[tuple[str, bytes | None, bytes | None]] = field(default_factory=list)
    """(table, key, value) in the order of writing; a value of ``None`` removes, a key of ``None`` adds."""
    holds: dict[tuple[str, bytes], None] = field(default_factory=dict)


class Database:
    """Tables and transactions.  ``most_prepared`` is PostgreSQL's ``max_prepared_transactions``, there 0 by default."""

    def __init__(self, now_ms: Callable[[], int], *, most_prepared: int = 100) -> None:
        self._now_ms, self.most_prepared = now_ms, most_prepared
        self._tables: dict[str, dict[bytes | int, bytes]] = {}
        self._log: list[list[tuple[str, bytes | int, bytes | None]]] = []  # what each commit replaced
        self._locks: dict[tuple[str, bytes], dict[Session, _Lock]] = {}
        self._open: dict[Session, None] = {}
        self._prepared: dict[str, Session] = {}
        self._numbers = 0

    # ── for whoever tells the story ──

    def visible(self, table: str) -> list[Row]:
        """Return the committed rows, in the order in which they came."""
        rows = self._tables.get(table, {})
        return [Row(value, key if isinstance(key, bytes) else None) for key, value in rows.items()]

    def commits(self) -> int:
        """Return how many transactions that changed something are committed."""
        return len(self._log)

    def rewind(self, pattern: str, count: int) -> list[str]:
        """Undo the last transactions that were committed; return what was lost.  Only all of it goes back."""
        assert pattern == "*", pattern
        undone = 0
        while self._log and undone < count:
            for table, key, before in reversed(self._log.pop()):
                if before is None:
                    self._tables[table].pop(key, None)
                else:
                    self._tables[table][key] = before
            undone += 1
        for session in list(self._open):
            self._end(session, "the database was set back")
        return [f"{undone} transactions"] if undone else []

    def unsettled_until_ms(self) -> int | None:
        """Return when the last open transaction is rolled back at the latest; ``None`` when none is open."""
        self._reap()
        return max((session.used_ms + IDLE_MS for session in self._open), default=None)

    # ── tables ──

    def create_table(self, table: str) -> None:
        """See ``DatabaseClient``."""
        self._tables.setdefault(table, {})

    def rows(self, table: str) -> list[Row]:
        """See ``DatabaseClient``."""
        self._table(table)
        return self.visible(table)

    def look(self, table: str, key: bytes) -> bytes | None:
        """Return the committed value of a key."""
        return self._table(table).get(key)

    def _table(self, table: str) -> dict[bytes | int, bytes]:
        rows = self._tables.get(table)
        if rows is None:
            raise ObjectMissing(f"{table}: the database has no such table")
        return rows

    # ── transactions ──

    def begin(self, process: Process | None = None) -> Session:
        """Begin a transaction."""
        self._reap()
        self._numbers += 1
        session = Session(self._numbers, process, self._now_ms())
        self._open[session] = None
        return session

    def get(self, session: Session, table: str, key: bytes, *, share: bool = False) -> bytes | None:
        """See ``DatabaseTransaction``; raises ``Held`` when one has to wait."""
        self._use(session)
        rows = self._table(table)
        self._lock(session, table, [key], _Lock.SHARED if share else _Lock.ALONE)
        return self._seen(session, table, key, rows)

    def write(self, session: Session, table: str, rows: Sequence[Row], *, replace: bool) -> None:
        """Insert or upsert rows, all or none; raises ``Held`` when one has to wait."""
        self._use(session)
        there = self._table(table)
        self._lock(session, table, [row.key for row in rows if row.key is not None], _Lock.ALONE)
        if not replace:
            self._refuse_doubles(session, table, rows, there)
        session.changes += [(table, row.key, row.value) for row in rows]

    def _refuse_doubles(
        self, session: Session, table: str, rows: Sequence[Row], there: dict[bytes | int, bytes]
    ) -> None:
        keys: dict[bytes, None] = {}
        for row in rows:
            if row.key is None:
                continue
            if row.key in keys or self._seen(session, table, row.key, there) is not None:
                raise UniqueViolation(f"{table}: the key {row.key!r} is there already", key=row.key)
            keys[row.key] = None

    def delete(self, session: Session, table: str, keys: Sequence[bytes]) -> None:
        """See ``DatabaseTransaction``; raises ``Held`` when one has to wait."""
        self._use(session)
        self._table(table)
        self._lock(session, table, keys, _Lock.ALONE)
        session.changes += [(table, key, None) for key in keys]

    def commit(self, session: Session) -> None:
        """See ``DatabaseTransaction``."""
        self._use(session)
        self._apply(session)
        self._end(session, "it was committed")

    def rollback(self, session: Session) -> None:
        """See ``DatabaseTransaction``."""
        if session in self._open:
            self._end(session, "it was rolled back")

    def hang_up(self, session: Session) -> None:
        """The other end closes its connection: what it had begun is rolled back soon."""
        if session in self._open and session.dead_ms is None:
            session.dead_ms = self._now_ms() + HANGS_UP_MS

    def prepare(self, session: Session, gid: str) -> None:
        """See ``DatabaseTransaction``."""
        self._use(session)
        if not self.most_prepared:
            self._end(session, "prepared transactions are switched off")
            raise InvalidConfig(
                f"gid {gid!r}: the database allows no prepared transactions; set max_prepared_transactions on the"
                " server to more than twice as many as there are writers"
            )
        if gid in self._prepared or len(self._prepared) >= self.most_prepared:
            taken = gid in self._prepared
            why = (
                "its name is taken" if taken else f"there are {self.most_prepared} already (max_prepared_transactions)"
            )
            self._end(session, f"it could not be prepared: {why}")
            raise StorageFailed(f"gid {gid!r}: the transaction can't be prepared: {why}")
        del self._open[session]
        session.process, session.over = None, f"it was prepared as {gid!r}"
        self._prepared[gid] = session

    def prepared(self, prefix: str) -> list[str]:
        """See ``DatabaseClient``."""
        return sorted(gid for gid in self._prepared if gid.startswith(prefix))

    def end_prepared(self, gid: str, *, commit: bool) -> bool:
        """Commit or undo a prepared transaction; return whether there was one."""
        session = self._prepared.pop(gid, None)
        if session is None:
            return False
        if commit:
            self._apply(session)
        self._release(session)
        return True

    def _seen(self, session: Session, table: str, key: bytes, rows: dict[bytes | int, bytes]) -> bytes | None:
        for changed, name, value in reversed(session.changes):
            if changed == table and name == key:
                return value
        return rows.get(key)

    def _apply(self, session: Session) -> None:
        replaced: list[tuple[str, bytes | int, bytes | None]] = []
        for table, key, value in session.changes:
            rows = self._tables[table]
            if key is None:
                self._numbers += 1
            name = self._numbers if key is None else key
            replaced.append((table, name, rows.get(name)))
            if value is None:
                rows.pop(name, None)
            else:
                rows[name] = value
        if replaced:
            self._log.append(replaced)

    def _lock(self, session: Session, table: str, keys: Sequence[bytes], lock: _Lock) -> None:
        """Hold keys, all of them or none."""
        self._reap()
        for key in keys:
            for other, held in self._locks.get((table, key), {}).items():
                if other is not session and _Lock.ALONE in {lock, held}:
                    raise Held(f"{table}: a row is held by transaction {other.number}")
        for key in keys:
            session.holds[table, key] = None
            holders = self._locks.setdefault((table, key), {})
            if holders.get(session) is not _Lock.ALONE:
                holders[session] = lock

    def _use(self, session: Session) -> None:
        self._reap()
        if session not in self._open:
            raise TransactionGone(f"transaction {session.number}: {session.over}")
        session.used_ms = self._now_ms()

    def _end(self, session: Session, why: str) -> None:
        del self._open[session]
        session.over = why
        self._release(session)

    def _release(self, session: Session) -> None:
        for key in session.holds:
            holders = self._locks[key]
            del holders[session]
            if not holders:
                del self._locks[key]
        session.holds = {}

    def _reap(self) -> None:
        """Roll back what nobody will end."""
        now = self._now_ms()
        for session in list(self._open):
            process = session.process
            if process is not None and process.severed and session.dead_ms is None:
                session.dead_ms = now + process.universe.chance.between("a dead connection", *_NOTICED_MS)
            if session.dead_ms is not None and now >= session.dead_ms:
                self._end(session, "its connection is gone")
            elif now >= session.used_ms + IDLE_MS:
                self._end(session, f"nothing happened in it for {IDLE_MS} ms (idle_in_transaction_session_timeout)")
