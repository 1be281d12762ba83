"""What must every database hold that a transactional sink is written for?

One body for each promise of ``database_seam.py``.  The simulated database keeps them; what talks to a real one has to,
so that what the simulator proves about a job holds outside.

    @pytest.mark.parametrize("check", DATABASE_CHECKS)
    def test_my_database(check):
        asyncio.run(check(DatabaseArm(connect=lambda: my_client("…"), sleep=asyncio.sleep)))

A check is a coroutine function; it raises ``AssertionError`` and returns nothing.  It creates tables and prepared
transactions of its own, whose names begin with the arm's ``prefix``.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TypeVar

from actorflow.errors import ObjectMissing, StorageFailed
from actorflow.simulation.database_seam import (
    DatabaseClient,
    DatabaseTransaction,
    Locked,
    Row,
    TransactionGone,
    UniqueViolation,
)

__all__ = ("DATABASE_CHECKS", "DatabaseArm")

_E = TypeVar("_E", bound=BaseException)


@dataclass(frozen=True, slots=True, kw_only=True)
class DatabaseArm:
    """A database, how a fresh process connects to it, and how time passes for it (``sleep`` takes seconds).

    ``doomed`` gives the connection of a process and what kills that process; ``idle_s`` is after how long the database
    rolls back a transaction in which nothing happens.  Without them the checks that need them check nothing, and with
    ``prepares=False`` those of prepared transactions.
    """

    connect: Callable[[], DatabaseClient]
    sleep: Callable[[float], Awaitable[None]]
    prefix: str = "contract"
    prepares: bool = True
    doomed: Callable[[], tuple[DatabaseClient, Callable[[], None]]] | None = None
    idle_s: float | None = None

    async def table(self, check: Callable[..., object]) -> str:
        """A table that no other check has; it is empty."""
        name = f"{self.prefix}_{check.__name__}"
        await self.connect().create_table(name)
        assert await self.seen(name) == []
        return name

    async def seen(self, table: str) -> list[bytes]:
        """The values that an outsider sees now, in order."""
        return [row.value for row in await self.connect().rows(table)]

    async def written(self, table: str, *rows: Row) -> DatabaseTransaction:
        """A transaction of a fresh process that has inserted rows and is open."""
        transaction = await self.connect().begin()
        await transaction.insert(table, rows)
        return transaction


async def a_commit_shows_all_at_once(arm: DatabaseArm) -> None:
    """Nothing of a transaction is seen from outside before its commit, and then all of it, in order."""
    table = await arm.table(a_commit_shows_all_at_once)
    first = await arm.written(table, Row(b"a"), Row(b"b", b"key"))
    second = await arm.written(table, Row(b"c"))
    await first.insert(table, [Row(b"d")])
    assert await arm.seen(table) == []
    assert await arm.connect().get(table, b"key") is None
    await second.commit()
    assert await arm.seen(table) == [b"c"]
    await first.commit()
    assert await arm.seen(table) == [b"c", b"a", b"b", b"d"]
    assert await arm.connect().get(table, b"key") == b"b"
    assert [row.key for row in await arm.connect().rows(table)] == [None, None, b"key", None]


async def a_rollback_shows_nothing(arm: DatabaseArm) -> None:
    """What was rolled back was never there; a second time is fine, and nothing more can be done in it."""
    table = await arm.table(a_rollback_shows_nothing)
    transaction = await arm.written(table, Row(b"a"), Row(b"b", b"key"))
    await transaction.rollback()
    await transaction.rollback()
    assert await arm.seen(table) == []
    await _raises(TransactionGone, transaction.insert(table, [Row(b"c")]))
    await _raises(TransactionGone, transaction.commit())
    later = await arm.written(table, Row(b"d", b"key"))
    await later.commit()
    assert await arm.seen(table) == [b"d"]


async def an_ended_transaction_is_over(arm: DatabaseArm) -> None:
    """After a commit there is nothing to commit and nothing to roll back."""
    table = await arm.table(an_ended_transaction_is_over)
    transaction = await arm.written(table, Row(b"a"))
    await transaction.commit()
    await _raises(TransactionGone, transaction.commit())
    await _raises(TransactionGone, transaction.insert(table, [Row(b"b")]))
    await transaction.rollback()
    assert await arm.seen(table) == [b"a"]


async def a_transaction_sees_what_it_wrote(arm: DatabaseArm) -> None:
    """Its own rows first, what is committed else; rows take the place of those of their keys, and can be removed."""
    table = await arm.table(a_transaction_sees_what_it_wrote)
    await (await arm.written(table, Row(b"1", b"a"), Row(b"2", b"b"), Row(b"3", b"c"))).commit()
    transaction = await arm.connect().begin()
    await transaction.upsert(table, [Row(b"1!", b"a"), Row(b"4", b"d"), Row(b"4!", b"d")])
    await transaction.delete(table, [b"b", b"absent"])
    seen = [await transaction.get(table, key) for key in (b"a", b"b", b"c", b"d", b"e")]
    assert seen == [b"1!", None, b"3", b"4!", None]
    await transaction.insert(table, [Row(b"2!", b"b")])
    await transaction.commit()
    assert sorted(await arm.seen(table)) == [b"1!", b"2!", b"3", b"4!"]


async def a_key_is_there_once(arm: DatabaseArm) -> None:
    """A second row of a key is refused; the transaction can then only be rolled back, and nothing of it is seen."""
    table = await arm.table(a_key_is_there_once)
    await (await arm.written(table, Row(b"1", b"a"))).commit()
    transaction = await arm.written(table, Row(b"2"))
    refused = await _raises(UniqueViolation, transaction.insert(table, [Row(b"3"), Row(b"4", b"a")]))
    assert refused.key == b"a"
    await _raises(TransactionGone, transaction.insert(table, [Row(b"5")]))
    await _raises(TransactionGone, transaction.commit())
    await transaction.rollback()
    twice = await arm.connect().begin()
    await _raises(UniqueViolation, twice.insert(table, [Row(b"6", b"b"), Row(b"7", b"b")]))
    await twice.rollback()
    assert await arm.seen(table) == [b"1"]


async def one_waits_for_the_other(arm: DatabaseArm) -> None:
    """Who inserts a key that an open transaction holds waits for its end, and is refused or not by how it ended."""
    table = await arm.table(one_waits_for_the_other)
    for key, commits in ((b"a", True), (b"b", False)):
        first = await arm.written(table, Row(b"first", key))
        waiting = asyncio.ensure_future(arm.written(table, Row(b"second", key)))
        await arm.sleep(0.1)
        assert not waiting.done()
        if commits:
            await first.commit()
            await _raises(UniqueViolation, waiting)
        else:
            await first.rollback()
            await (await waiting).commit()
    assert await arm.seen(table) == [b"first", b"second"]


async def no_change_is_lost(arm: DatabaseArm) -> None:
    """Of many who look at a row and change it, each sees what the one before it wrote."""
    table = await arm.table(no_change_is_lost)

    async def count() -> None:
        transaction = await arm.connect().begin()
        before = await transaction.get(table, b"count")
        await arm.sleep(0.01)
        await transaction.upsert(table, [Row(b"%d" % (int(before or 0) + 1), b"count")])
        await transaction.commit()

    await asyncio.gather(*(count() for _ in range(5)))
    assert await arm.seen(table) == [b"5"]


async def those_who_only_look_may_share(arm: DatabaseArm) -> None:
    """Two who share a row do not wait for one another; who changes it waits for both."""
    table = await arm.table(those_who_only_look_may_share)
    await (await arm.written(table, Row(b"1", b"a"))).commit()
    readers = [await arm.connect().begin() for _ in range(2)]
    for reader in readers:
        assert await reader.get(table, b"a", share=True) == b"1"
    writer = await arm.connect().begin()
    waiting = asyncio.ensure_future(writer.upsert(table, [Row(b"2", b"a")]))
    await arm.sleep(0.1)
    assert not waiting.done()
    await readers[0].commit()
    await arm.sleep(0.1)
    assert not waiting.done()
    await readers[1].rollback()
    await waiting
    await writer.commit()
    assert await arm.seen(table) == [b"2"]


async def nobody_waits_for_ever(arm: DatabaseArm) -> None:
    """Of two who wait for one another at least one is refused, and can begin again."""
    table = await arm.table(nobody_waits_for_ever)
    first, second = await arm.written(table, Row(b"1", b"a")), await arm.written(table, Row(b"2", b"b"))
    crossed = await asyncio.gather(
        first.insert(table, [Row(b"1", b"b")]), second.insert(table, [Row(b"2", b"a")]), return_exceptions=True
    )
    assert any(isinstance(answer, Locked) for answer in crossed), crossed
    assert all(answer is None or isinstance(answer, Locked) for answer in crossed), crossed
    for transaction, answer in zip((first, second), crossed, strict=True):
        if answer is not None:
            await _raises(TransactionGone, transaction.commit())
        await transaction.rollback()
    assert await arm.seen(table) == []
    await (await arm.written(table, Row(b"3", b"a"), Row(b"4", b"b"))).commit()
    assert await arm.seen(table) == [b"3", b"4"]


async def what_is_prepared_outlives_its_process(arm: DatabaseArm) -> None:
    """Another process commits it or rolls it back by its name, once; until then it is invisible and holds its rows."""
    if not arm.prepares:
        return
    table, client = await arm.table(what_is_prepared_outlives_its_process), arm.connect()
    first, second = f"{table}:1", f"{table}:2"
    await (await arm.written(table, Row(b"a", b"a"))).prepare(first)
    await (await arm.written(table, Row(b"b", b"b"))).prepare(second)
    assert await arm.seen(table) == []
    await _raises(Locked, arm.written(table, Row(b"c", b"a")))
    assert await client.commit_prepared(first)
    assert await client.rollback_prepared(second)
    assert await arm.seen(table) == [b"a"]
    for gid in (first, second):
        assert not await arm.connect().commit_prepared(gid)
        assert not await arm.connect().rollback_prepared(gid)
    await (await arm.written(table, Row(b"d", b"b"))).commit()
    assert await arm.seen(table) == [b"a", b"d"]


async def what_is_prepared_is_found_by_its_prefix(arm: DatabaseArm) -> None:
    """Whoever comes after a dead process finds what it left, and touches nothing that belongs to others (R116)."""
    if not arm.prepares:
        return
    table, client = await arm.table(what_is_prepared_is_found_by_its_prefix), arm.connect()
    mine, also_mine, foreign = f"{table}:mine:1", f"{table}:mine:2", f"{table}:yours:1"
    for gid in (also_mine, mine, foreign):
        await (await arm.written(table, Row(gid.encode()))).prepare(gid)
    assert await client.prepared(f"{table}:mine:") == [mine, also_mine]
    taken = await arm.written(table, Row(b"again"))
    await _raises(StorageFailed, taken.prepare(mine))
    for gid in await client.prepared(f"{table}:mine:"):
        assert await client.rollback_prepared(gid)
    assert await client.prepared(f"{table}:") == [foreign]
    assert await client.commit_prepared(foreign)
    assert await arm.seen(table) == [foreign.encode()]


async def a_prepared_transaction_can_do_no_more(arm: DatabaseArm) -> None:
    """Who prepared it has let go of it: nothing more is written in it, and it is ended by its name alone."""
    if not arm.prepares:
        return
    table = await arm.table(a_prepared_transaction_can_do_no_more)
    transaction = await arm.written(table, Row(b"a"))
    await transaction.prepare(f"{table}:1")
    await _raises(TransactionGone, transaction.insert(table, [Row(b"b")]))
    await _raises(TransactionGone, transaction.commit())
    await transaction.rollback()
    assert await arm.connect().commit_prepared(f"{table}:1")
    assert await arm.seen(table) == [b"a"]


async def a_dead_process_holds_nothing_up(arm: DatabaseArm) -> None:
    """What it had begun is rolled back by the database, soon enough that others do not have to give up for long."""
    if arm.doomed is None:
        return
    table = await arm.table(a_dead_process_holds_nothing_up)
    client, kill = arm.doomed()
    transaction = await client.begin()
    await transaction.insert(table, [Row(b"a", b"key")])
    kill()
    await (await arm.written(table, Row(b"b", b"key"))).commit()
    assert await arm.seen(table) == [b"b"]


async def a_forgotten_transaction_is_rolled_back(arm: DatabaseArm) -> None:
    """A process that stalls with a transaction open has lost it, and is told so when it goes on."""
    if arm.idle_s is None:
        return
    table = await arm.table(a_forgotten_transaction_is_rolled_back)
    transaction = await arm.written(table, Row(b"a", b"key"))
    await arm.sleep(arm.idle_s * 1.5)
    await (await arm.written(table, Row(b"b", b"key"))).commit()
    await _raises(TransactionGone, transaction.commit())
    assert await arm.seen(table) == [b"b"]


async def tables_are_created_once(arm: DatabaseArm) -> None:
    """Creating a table again changes nothing; one that is not there is missing."""
    table = await arm.table(tables_are_created_once)
    await (await arm.written(table, Row(b"a"))).commit()
    await arm.connect().create_table(table)
    assert await arm.seen(table) == [b"a"]
    await _raises(ObjectMissing, arm.connect().rows(f"{table}_absent"))
    await _raises(ObjectMissing, arm.written(f"{table}_absent", Row(b"a")))


async def _raises(kind: type[_E], call: Awaitable[object]) -> _E:
    try:
        answer = await call
    except kind as error:
        return error
    raise AssertionError(f"{kind.__name__} was not raised; the answer was {answer!r}")


DATABASE_CHECKS: tuple[Callable[[DatabaseArm], Awaitable[None]], ...] = (
    a_commit_shows_all_at_once,
    a_rollback_shows_nothing,
    an_ended_transaction_is_over,
    a_transaction_sees_what_it_wrote,
    a_key_is_there_once,
    one_waits_for_the_other,
    no_change_is_lost,
    those_who_only_look_may_share,
    nobody_waits_for_ever,
    what_is_prepared_outlives_its_process,
    what_is_prepared_is_found_by_its_prefix,
    a_prepared_transaction_can_do_no_more,
    a_dead_process_holds_nothing_up,
    a_forgotten_transaction_is_rolled_back,
    tables_are_created_once,
)
