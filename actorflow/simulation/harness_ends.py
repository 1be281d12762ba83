"""What stands in for the sources and sinks of a job in a test's hands?

A :class:`PushedSource` is a log that the test writes and that can be read again from any record, as a broker's can: a
job that is killed reads on from the position in its checkpoint.  A :class:`KeptSink` is exactly-once, and knows of each
row whether it is committed.  Both live in the test, outside of every simulated process, so they survive a kill; rows
and records stay the objects that they are.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable, Sequence
from typing import Any, ClassVar

from actorflow.abc.connectors import (
    Chunk,
    CommitPermit,
    Prepared,
    SinkContext,
    Source,
    SourceContext,
    TransactionalSink,
    TransactionalWriter,
)
from actorflow.abc.world import World
from actorflow.errors import InvalidJob

__all__ = ("KeptSink", "PushedSource")

_CHUNK_RECORDS = 256

_Row = tuple[int, Any]
"""A row, and when it was written: the number of rows that the sink had taken before."""


class PushedSource(Source[Any]):
    """A log in memory, of one split; it ends once it is closed and read."""

    runs_in_simulation: ClassVar[bool] = True

    def __init__(self, name: str) -> None:
        self.name = name
        self.records: list[Any] = []
        self.is_closed = False
        self._waiting: list[asyncio.Future[None]] = []

    def push(self, records: Iterable[Any]) -> None:
        """Add records to the log."""
        if self.is_closed:
            raise InvalidJob(f"source {self.name!r} has ended: nothing can be pushed any more")
        self.records.extend(records)
        self._wake()

    def close(self) -> None:
        """Let the log end here."""
        self.is_closed = True
        self._wake()

    def _wake(self) -> None:
        waiting, self._waiting = self._waiting, []
        for future in waiting:
            if not future.done():
                future.set_result(None)

    async def discover(self, world: World) -> Sequence[str]:
        return ["pushed"]

    async def read(self, context: SourceContext[Any]) -> AsyncIterator[Chunk[Any]]:
        index = context.resume_at or 0
        while True:
            if records := self.records[index : index + _CHUNK_RECORDS]:
                index += len(records)
                yield Chunk(records, resume_at=index)
            elif self.is_closed:
                return
            else:
                arrival = asyncio.get_running_loop().create_future()
                self._waiting.append(arrival)
                await arrival


class KeptSink(TransactionalSink[Any]):
    """A list as an exactly-once sink; what is written and not committed yet can be seen apart."""

    runs_in_simulation: ClassVar[bool] = True

    def __init__(self, parallelism: int | None = None) -> None:
        self.parallelism = parallelism
        self._committed: list[_Row] = []
        self._cuts: dict[tuple[int, int, int], list[_Row]] = {}  # (generation, subtask, checkpoint) → rows
        self._open: dict[tuple[int, int], list[_Row]] = {}  # (generation, subtask) → what is in no cut yet
        self._generation = 0
        self._taken = 0

    def committed(self) -> list[Any]:
        """What an outsider sees now, in the order in which it was written."""
        return [row for _, row in sorted(self._committed, key=_number)]

    def written(self) -> list[Any]:
        """What is committed, and what the living attempt has written besides."""
        rows = list(self._committed)
        rows += (row for cut, cut_rows in self._cuts.items() if cut[0] == self._generation for row in cut_rows)
        rows += (row for part, part_rows in self._open.items() if part[0] == self._generation for row in part_rows)
        return [row for _, row in sorted(rows, key=_number)]

    async def open(self, context: SinkContext) -> TransactionalWriter[Any]:
        self._generation = context.generation
        self._open[context.generation, context.subtask] = []
        return _KeptWriter(self, context)

    async def visible(self, world: World) -> list[Any]:
        return self.committed()

    def take(self, generation: int, subtask: int, rows: list[Any]) -> None:
        """Write some rows."""
        self._open.setdefault((generation, subtask), []).extend(enumerate(rows, self._taken))
        self._taken += len(rows)

    def cut(self, generation: int, subtask: int, checkpoint_id: int) -> list[Any]:
        """Close what was written so far; return what names it in a checkpoint, if there is anything."""
        rows = self._open.pop((generation, subtask), None)
        if not rows:
            return []
        self._cuts[generation, subtask, checkpoint_id] = rows
        return [[generation, subtask, checkpoint_id]]

    def commit(self, names: list[Any]) -> None:
        """Make cuts visible, each once."""
        for generation, subtask, checkpoint_id in names:
            self._committed += self._cuts.pop((generation, subtask, checkpoint_id), [])

    def discard(self, names: list[Any]) -> None:
        """Throw cuts away."""
        for generation, subtask, checkpoint_id in names:
            self._cuts.pop((generation, subtask, checkpoint_id), None)


class _KeptWriter(TransactionalWriter[Any]):
    def __init__(self, sink: KeptSink, context: SinkContext) -> None:
        self._sink, self._subtask, self._generation = sink, context.subtask, context.generation
        self._clock = context.world.clock

    async def write(self, records: list[Any]) -> None:
        self._clock.now_ms()  # raises in a simulated process that has died: it has no effect any more
        self._sink.take(self._generation, self._subtask, records)

    def prepare(self, checkpoint_id: int) -> Prepared:
        return Prepared(self._sink.cut(self._generation, self._subtask, checkpoint_id))

    async def commit(self, committables: list[Any], permit: CommitPermit) -> None:
        self._clock.now_ms()
        self._sink.commit(committables)

    async def discard(self, committables: list[Any]) -> None:
        self._clock.now_ms()
        self._sink.discard(committables)


def _number(row: _Row) -> int:
    return row[0]
