"""What stands in for a sink that the simulator can't run: a transactional table of rows.

A ledger writes in two phases, as any exactly-once sink does.  Rows of a cut are staged in up to three pages, each
under a name of its own, so that a process can die between two commits; the commit moves a page, whole or not at all,
and a second commit of the same name finds it there.  It lives in an object store of the simulated world, so the weather
can refuse it, tear it and lose its answers, and what is visible is what an outsider would see, whatever the runtime
claims.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from posixpath import commonprefix
from typing import Any, ClassVar

from actorflow.abc.connectors import CommitPermit, Prepared, SinkContext, TransactionalSink, TransactionalWriter
from actorflow.abc.objects import ObjectStore
from actorflow.abc.world import World
from actorflow.connectors.pending_file import Rest
from actorflow.errors import StorageFailed
from actorflow.model.codec import Codec

__all__ = ("BUCKET", "LEDGER", "Ledger")

BUCKET = "ledger"
LEDGER = f"s3://{BUCKET}"
"""Where ledgers live in a simulated universe."""

PAGES = 3
"""Into how many committables a cut is parted, at most."""


class Ledger(TransactionalSink[Any]):
    """A table of rows; ``name`` is the operator that it stands in for."""

    runs_in_simulation: ClassVar[bool] = True

    def __init__(self, name: str, codec: Codec, parallelism: int | None = None) -> None:
        self._name, self._codec = name, codec
        self.parallelism = parallelism

    async def open(self, context: SinkContext) -> TransactionalWriter[Any]:
        return _LedgerWriter(context, self._codec)

    def commits(self, objects: Iterable[str]) -> Counter[int]:
        """How many pages are committed, per checkpoint, by the names of all objects there are."""
        prefix = f"{self._name}/committed/"
        return Counter(int(name[len(prefix) :].partition("-")[0]) for name in objects if name.startswith(prefix))

    async def visible(self, world: World) -> list[Any]:
        store = world.objects.open(LEDGER)
        rows: list[Any] = []
        for name in await store.list(f"{self._name}/committed/"):
            rows += self._codec.decode(await store.get(name))
        return rows


class _LedgerWriter(TransactionalWriter[Any]):
    def __init__(self, context: SinkContext, codec: Codec) -> None:
        self._context, self._codec = context, codec
        self._store: ObjectStore = context.world.objects.open(LEDGER)
        self._rows: list[Any] = []
        self._cuts = 0

    async def write(self, records: list[Any]) -> None:
        self._rows += records

    def prepare(self, checkpoint_id: int) -> Prepared:
        rows, self._rows = self._rows, []
        if not rows:
            return Prepared([])
        self._cuts += 1
        stem = f"{checkpoint_id:08}-{self._context.subtask}-{self._context.generation}-{self._cuts}"
        size = -(-len(rows) // PAGES)
        starts = range(0, len(rows), size)
        pages = {f"{stem}-{page}": rows[start : start + size] for page, start in enumerate(starts)}
        return Prepared(list(pages), Rest(lambda: self._stage(pages)))

    async def _stage(self, pages: dict[str, list[Any]]) -> None:
        for name, rows in pages.items():
            await self._store.put(self._staged(name), self._codec.encode(rows, path=self._context.operator))

    async def commit(self, committables: list[Any], permit: CommitPermit) -> None:
        done = set(await self._store.list(self._committed(commonprefix(committables))))
        for name in committables:
            if self._committed(name) in done:
                continue
            body = await self._store.get(self._staged(name))
            await self._store.put_if_absent(self._committed(name), body)
        for name in committables:
            await self._store.delete(self._staged(name))

    async def discard(self, committables: list[Any]) -> None:
        for name in committables:
            if self._committed(name) in await self._store.list(self._committed(name)):
                raise StorageFailed(f"{self._committed(name)} is committed and can't be discarded")
            await self._store.delete(self._staged(name))

    async def sweep(self, keep: list[Any]) -> int:
        kept = {self._staged(name) for name in keep}
        count = 0
        for name in await self._store.list(self._staged("")):
            generation = int(name.rsplit("-", 3)[1])
            if generation < self._context.generation and name not in kept:
                await self._store.delete(name)
                count += 1
        return count

    def _staged(self, name: str) -> str:
        return f"{self._context.operator}/staged/{name}"

    def _committed(self, name: str) -> str:
        return f"{self._context.operator}/committed/{name}"
