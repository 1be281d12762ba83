"""One process's connection to the simulated database: every statement is a request, and meets the weather on its way.

A statement whose answer is lost breaks its transaction, as a broken connection does: it can only be rolled back.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from functools import partial
from typing import TypeVar

from actorflow.abc.world import World
from actorflow.simulation.database import Database, Held, Session
from actorflow.simulation.database_seam import DatabaseTransaction, Locked, Row, TransactionGone
from actorflow.simulation.weather import Service
from actorflow.simulation.wire import Wire, process_of

__all__ = ("SimulatedDatabaseClient",)

T = TypeVar("T")

LOCK_TIMEOUT_MS = 5_000
"""How long a statement waits for a key that another transaction holds (``lock_timeout``)."""

_FIRST_LOOK_MS, _LATEST_LOOK_MS = 5, 200


class SimulatedDatabaseClient:
    """See ``DatabaseClient``; ``world`` is the world of the process."""

    def __init__(self, world: World) -> None:
        self._process = process_of(world, "this database")
        self._database: Database = self._process.universe.database
        self._wire = Wire(self._process, Service.DATABASE)

    async def create_table(self, table: str) -> None:
        await self._wire.request("create", table, lambda: self._database.create_table(table))

    async def rows(self, table: str) -> list[Row]:
        return await self._wire.request("rows", table, lambda: self._database.rows(table))

    async def get(self, table: str, key: bytes) -> bytes | None:
        return await self._wire.request("get", table, lambda: self._database.look(table, key))

    async def begin(self) -> DatabaseTransaction:
        process, database = self._process, self._database
        session = await self._wire.request("begin", process.name, lambda: database.begin(process))
        return _Transaction(self._database, self._wire, session, process.name, process.world)

    async def most_prepared(self) -> int:
        return await self._wire.request("most_prepared", self._process.name, lambda: self._database.most_prepared)

    async def prepared(self, prefix: str) -> list[str]:
        return await self._wire.request("prepared", prefix, lambda: self._database.prepared(prefix))

    async def commit_prepared(self, gid: str) -> bool:
        return await self._wire.request("commit_prepared", gid, lambda: self._database.end_prepared(gid, commit=True))

    async def rollback_prepared(self, gid: str) -> bool:
        return await self._wire.request(
            "rollback_prepared", gid, lambda: self._database.end_prepared(gid, commit=False)
        )


class _Transaction:
    """See ``DatabaseTransaction``."""

    def __init__(self, database: Database, wire: Wire, session: Session, name: str, world: World) -> None:
        self._database, self._wire, self._session, self._name, self._world = database, wire, session, name, world
        self._broken, self._is_over = "", False

    async def get(self, table: str, key: bytes, *, share: bool = False) -> bytes | None:
        return await self._statement("get", table, lambda: self._database.get(self._session, table, key, share=share))

    async def insert(self, table: str, rows: Sequence[Row]) -> None:
        rows = tuple(rows)
        await self._statement("insert", table, lambda: self._database.write(self._session, table, rows, replace=False))

    async def upsert(self, table: str, rows: Sequence[Row]) -> None:
        rows = tuple(rows)
        assert all(row.key is not None for row in rows), "only a row that has a key can take the place of another"
        await self._statement("upsert", table, lambda: self._database.write(self._session, table, rows, replace=True))

    async def delete(self, table: str, keys: Sequence[bytes]) -> None:
        keys = tuple(keys)
        await self._statement("delete", table, lambda: self._database.delete(self._session, table, keys))

    async def commit(self) -> None:
        await self._statement("commit", self._name, lambda: self._database.commit(self._session))
        self._broken, self._is_over = "it was committed", True

    async def rollback(self) -> None:
        if self._is_over:
            return
        self._broken = self._broken or "it was rolled back"
        await self._request("rollback", self._name, lambda: self._database.rollback(self._session))
        self._is_over = True

    async def prepare(self, gid: str) -> None:
        await self._statement("prepare", gid, lambda: self._database.prepare(self._session, gid))
        self._broken, self._is_over = f"it was prepared as {gid!r}", True

    async def _request(self, operation: str, name: str, effect: Callable[[], T]) -> T:
        try:
            return await self._wire.request(operation, name, effect)
        except asyncio.CancelledError:  # whoever is cancelled closes the connection
            self._database.hang_up(self._session)
            raise

    async def _statement(self, operation: str, name: str, effect: Callable[[], T]) -> T:
        """Carry out a statement, after waiting for whoever holds a key of its."""
        if self._broken:
            raise TransactionGone(f"{name}: {operation} can't be done in a transaction that is over: {self._broken}")
        waited_ms, look_ms = 0, _FIRST_LOOK_MS
        self._broken = f"an earlier {operation} did not end well"
        while True:
            answer = await self._request(operation, name, partial(_or_held, effect))
            if not isinstance(answer, Held):
                self._broken = ""
                return answer
            if waited_ms >= LOCK_TIMEOUT_MS:
                raise Locked(f"{answer}, and has been for {waited_ms} ms (lock_timeout)")
            await self._world.clock.sleep(look_ms)
            waited_ms += look_ms
            look_ms = min(2 * look_ms, _LATEST_LOOK_MS)


def _or_held(effect: Callable[[], T]) -> T | Held:
    try:
        return effect()
    except Held as held:
        return held
