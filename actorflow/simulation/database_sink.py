"""How are rows written to a table exactly once?  In one transaction with a row of a ledger that says so.

*The ledger way* (the usual one).  Rows of a checkpoint stay in its committable until it completes; then one
transaction writes the name of the committable into a ledger table, and the rows.  A second commit, by whoever and
however late, finds the name and does nothing; when the answer to the first is lost, the next one finds out.  Nothing
needs to be prepared, no setting of the server, and nothing is left behind by whoever dies.

*The prepared way* (``prepare=True``).  Rows are written and prepared at the barrier, and the commit names the prepared
transaction: for rows that are too many to be kept in a checkpoint.  The server must allow prepared transactions, which
is refused at the start where it does not (R116); what a dead generation prepared is rolled back by the next one, and
no other.  It holds its rows until then, so rows with keys, which a later checkpoint may write again, are refused.

*The name* is home, operator, subtask, generation and checkpoint.  It names the one before it, too: when the database
has forgotten that one (it was set back, a replica that lagged took over), the commit fails and says so.  Names stay in
the ledger; whoever cleans it up must keep those that a retained checkpoint holds.

*Fencing.*  Each generation writes its number into the ledger when it opens, and a commit of an older one is refused.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any
from urllib.parse import quote

import anyio

from actorflow.abc.connectors import CommitPermit, Prepared, SinkContext, TransactionalSink, TransactionalWriter
from actorflow.abc.world import World
from actorflow.connectors.pending_file import Rest
from actorflow.errors import CorruptObject, Fenced, InvalidConfig, InvalidJob, ObjectMissing, StorageFailed
from actorflow.model.codec import Codec
from actorflow.model.journal import OrphanRemoved
from actorflow.simulation.broker_client import patiently
from actorflow.simulation.database_client import SimulatedDatabaseClient
from actorflow.simulation.database_seam import DatabaseClient, DatabaseTransaction, Row, UniqueViolation

__all__ = ("LEDGER_TABLE", "DatabaseSink")

LEDGER_TABLE = "actorflow_ledger"
"""The table in which commits are noted, beside the tables of rows."""

MEMORY = "memory of process "
"""How a home that ends with its process begins: its generations begin again, so they fence nobody."""


class DatabaseSink(TransactionalSink[Any]):
    """A table of the simulated database as an exactly-once sink.

    With ``key`` a row takes the place of the one of its key, without it rows are added.
    """

    runs_in_simulation = True

    def __init__(
        self,
        table: str,
        *,
        codec: Codec | None = None,
        key: Callable[[Any], Any] | None = None,
        prepare: bool = False,
        parallelism: int | None = None,
    ) -> None:
        if not table or table == LEDGER_TABLE:
            raise InvalidJob(f"database sink: {table!r} can't be the table")
        if prepare and key is not None:
            raise InvalidJob(
                f"database sink {table!r}: a prepared transaction holds the keys that it wrote until its checkpoint is"
                " complete, and the next checkpoint would wait for them; leave out prepare, or key"
            )
        self.table, self.codec, self.key, self.prepares = table, codec or Codec(), key, prepare
        self.parallelism = parallelism
        self.function = key  # its annotations say which classes travel

    def __repr__(self) -> str:
        return f"database sink({self.table})"

    async def open(self, context: SinkContext) -> TransactionalWriter[Any]:
        """Create the tables unless they are there, and note which generation writes from now on."""
        client, clock = SimulatedDatabaseClient(context.world), context.world.clock
        for table in (self.table, LEDGER_TABLE):
            await patiently(clock, partial(client.create_table, table))
        if self.prepares and not await patiently(clock, client.most_prepared):
            raise InvalidConfig(
                f"operator {context.operator!r}: the database allows no prepared transactions; set"
                " max_prepared_transactions on the server to more than twice as many as there are subtasks, or leave"
                " out prepare=True"
            )
        writer = (_PreparingWriter if self.prepares else _LedgerWriter)(self, context, client)
        await patiently(clock, writer.take_over)
        return writer

    async def visible(self, world: World) -> list[Any]:
        """Return the committed rows, in the order in which they came."""
        client = SimulatedDatabaseClient(world)
        try:
            rows = await patiently(world.clock, partial(client.rows, self.table))
        except ObjectMissing:
            return []
        return [self.codec.decode(row.value, self.table) for row in rows]


class _Writer(TransactionalWriter[Any]):
    """What both ways share: names, and the transaction that notes one in the ledger."""

    def __init__(self, sink: DatabaseSink, context: SinkContext, client: DatabaseClient) -> None:
        self._sink, self._context, self._client = sink, context, client
        self._prefix = f"{quote(context.home, safe='')}:{quote(context.operator, safe='')}:"
        self._owner = f"{self._prefix}owner".encode()
        self._lasts = not context.home.startswith(MEMORY)
        # Generations of a home in memory begin again, and names must not.
        self._draw = f"{int(context.world.entropy.uniform('database sink') * 2**32):08x}"
        self._last: str | None = None  # of what was cut, or else of what was committed
        self._committed: str | None = None
        self._rows: list[Row] = []
        self._cuts = 0

    async def write(self, records: list[Any]) -> None:
        encode, key, operator = self._sink.codec.encode, self._sink.key, self._context.operator
        self._rows += [
            Row(encode(record, operator), None if key is None else encode(key(record), operator)) for record in records
        ]

    async def take_over(self) -> None:
        """Note that this generation writes from now on, unless a newer one does."""
        if not self._lasts:
            return
        async with _Begun(self._client) as transaction:
            found = await transaction.get(LEDGER_TABLE, self._owner)
            if found is None or int(found) < self._context.generation:
                await transaction.upsert(LEDGER_TABLE, [Row(b"%d" % self._context.generation, self._owner)])
                await transaction.commit()

    def _check_owner(self, found: bytes | None) -> None:
        if found is not None and int(found) > self._context.generation:
            raise Fenced(
                f"operator {self._context.operator!r}: generation {int(found)} writes to {self._sink.table} now, so"
                f" generation {self._context.generation} does not",
                generation=int(found),
            )

    def _note_committed(self, name: str) -> None:
        self._committed = name
        if not self._cuts:
            self._last = name

    def _next_name(self, checkpoint_id: int) -> str:
        context = self._context
        self._cuts += 1
        return f"{self._prefix}{context.subtask}:{context.generation}:{checkpoint_id}:{self._draw}-{self._cuts}"

    async def _note(self, transaction: DatabaseTransaction, name: str, last: str | None) -> None:
        """Write a name into the ledger; raises ``UniqueViolation`` when it is there."""
        await transaction.insert(LEDGER_TABLE, [Row(b"", name.encode())])
        if last is not None and await transaction.get(LEDGER_TABLE, last.encode(), share=True) is None:
            raise self._forgotten(name, last)

    def _forgotten(self, name: str, last: str) -> ObjectMissing:
        return ObjectMissing(
            f"operator {self._context.operator!r}: rows that were committed to {self._sink.table} are gone: the"
            f" database has forgotten {last!r} in {LEDGER_TABLE}, which came before {name!r}; was it set back?"
        )

    def _checked(self, committable: Any) -> tuple[str, str | None, list[Row]]:
        """A committable of the right shape; a manifest may come from anywhere."""
        try:
            name, last, rows = committable
            if isinstance(name, str) and (last is None or isinstance(last, str)):
                return name, last, [Row(value, key) for value, key in rows]
        except (TypeError, ValueError):
            pass
        raise CorruptObject(
            f"operator {self._context.operator!r}: a checkpoint holds something that is no row for a database"
        )


class _LedgerWriter(_Writer):
    """Rows stay in the committable."""

    def prepare(self, checkpoint_id: int) -> Prepared:
        rows, self._rows = self._rows, []
        if not rows:
            return Prepared([])
        name, last = self._next_name(checkpoint_id), self._last
        self._last = name
        return Prepared([[name, last, [[row.value, row.key] for row in rows]]])

    async def commit(self, committables: list[Any], permit: CommitPermit) -> None:
        for name, last, rows in map(self._checked, committables):
            await self._commit(name, last, rows)
            self._note_committed(name)

    async def _commit(self, name: str, last: str | None, rows: list[Row]) -> None:
        async with _Begun(self._client) as transaction:
            if self._lasts:
                self._check_owner(await transaction.get(LEDGER_TABLE, self._owner, share=True))
            try:
                await self._note(transaction, name, last)
            except UniqueViolation:
                return  # it is committed
            if self._sink.key is None:
                await transaction.insert(self._sink.table, rows)
            else:
                await transaction.upsert(self._sink.table, rows)
            await transaction.commit()

    async def discard(self, committables: list[Any]) -> None:
        self._last = self._committed  # rows that are only in a checkpoint need no clearing away


class _PreparingWriter(_Writer):
    """Rows go to the database at the barrier, where nobody sees them."""

    def __init__(self, sink: DatabaseSink, context: SinkContext, client: DatabaseClient) -> None:
        super().__init__(sink, context, client)
        self._unfinished: list[tuple[str, str | None, list[Row]]] = []
        self._finishing = anyio.Lock()

    def prepare(self, checkpoint_id: int) -> Prepared:
        committables: list[Any] = []
        rows, self._rows = self._rows, []
        if rows:
            name, last = self._next_name(checkpoint_id), self._last
            self._last = name
            self._unfinished.append((name, last, rows))
            committables.append([name, last, []])
        unfinished = list(self._unfinished)
        return Prepared(committables, Rest(lambda: self._finish(unfinished)) if unfinished else None)

    async def _finish(self, unfinished: list[tuple[str, str | None, list[Row]]]) -> None:
        async with self._finishing:  # the next checkpoint may begin before an aborted one has ended
            for each in unfinished:
                if each in self._unfinished:
                    await self._finish_one(each[0], each[2])
                    self._unfinished.remove(each)

    async def _finish_one(self, name: str, rows: list[Row]) -> None:
        if self._lasts:
            self._check_owner(await self._client.get(LEDGER_TABLE, self._owner))
        async with _Begun(self._client) as transaction:
            await self._note(transaction, name, None)
            await transaction.insert(self._sink.table, rows)
            await transaction.prepare(name)

    async def commit(self, committables: list[Any], permit: CommitPermit) -> None:
        for name, last, _ in map(self._checked, committables):
            if last is not None and await self._client.get(LEDGER_TABLE, last.encode()) is None:
                raise self._forgotten(name, last)
            if (
                not await self._client.commit_prepared(name)
                and await self._client.get(LEDGER_TABLE, name.encode()) is None
            ):
                raise ObjectMissing(
                    f"operator {self._context.operator!r}: the prepared transaction {name!r}, which checkpoint"
                    f" {permit.checkpoint_id} relies on, is gone, and its rows are not in {self._sink.table}"
                )
            self._note_committed(name)

    async def discard(self, committables: list[Any]) -> None:
        clock = self._context.world.clock
        for name, _, _ in map(self._checked, committables):
            await patiently(clock, partial(self._client.rollback_prepared, name))
        self._last = self._committed

    async def sweep(self, keep: list[Any]) -> int:
        clock, kept = self._context.world.clock, {name for name, _, _ in map(self._checked, keep)}
        removed = 0
        for name in await patiently(clock, partial(self._client.prepared, self._prefix)):
            if name in kept or _generation_of(name) >= self._context.generation:
                continue
            if await self._client.rollback_prepared(name):
                removed += 1
                self._context.world.observer.announce(OrphanRemoved(where=self._sink.table, name=name))
        return removed


class _Begun:
    """A transaction that is rolled back unless it was committed, as far as the database can be reached."""

    def __init__(self, client: DatabaseClient) -> None:
        self._client = client

    async def __aenter__(self) -> DatabaseTransaction:
        self._transaction = await self._client.begin()
        return self._transaction

    async def __aexit__(self, *_: object) -> None:
        try:
            await self._transaction.rollback()
        except StorageFailed:
            return  # the database does, when it notices


def _generation_of(name: str) -> int:
    return int(name.rsplit(":", 3)[1])
