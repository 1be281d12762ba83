"""Records from a list, and records into a list.

A list can be read again from any index, so ``source`` is replayable.  ``collect`` is exactly-once: rows appear in
``rows`` when their checkpoint is committed and not before, and a commit that is repeated adds nothing.  ``append`` is
at-least-once: rows appear at once, and those since the last checkpoint appear again after a restart.

What was committed lives as long as the object that ``collect`` returned.  Prepared rows travel inside the checkpoint,
so another process restores and commits them; rows committed by a process that died are gone with it, as memory is.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Sequence
from typing import Any, Generic, TypeVar

from actorflow.abc.connectors import (
    Chunk,
    CommitPermit,
    Prepared,
    Sink,
    SinkContext,
    SinkWriter,
    Source,
    SourceContext,
    TransactionalSink,
    TransactionalWriter,
)
from actorflow.abc.world import World
from actorflow.errors import InvalidJob, RestoreFailed

__all__ = ("Append", "Collect", "MemorySource", "append", "collect", "source")

T = TypeVar("T")


def source(
    values: Iterable[T], *, splits: int = 1, records: int | None = None, chunk_records: int = 256
) -> MemorySource[T]:
    """Read a list.

    ``splits`` cuts it into that many runs of neighbours, for as many subtasks.  ``records`` reads round and round until
    that many were read, in each split its share.  The values must not be changed while the job runs.
    """
    return MemorySource(list(values), splits=splits, records=records, chunk_records=chunk_records)


def collect(rows: list[Any] | None = None) -> Collect[Any]:
    """Write into ``.rows`` (``rows`` itself, where given) exactly once: what is committed, in order of commits."""
    return Collect([] if rows is None else rows)


def append(rows: list[Any] | None = None) -> Append[Any]:
    """Write into ``.rows`` at once, at least once."""
    return Append([] if rows is None else rows)


class MemorySource(Source[T]):
    """A list as a source; a split is a run of it, a position an index within the run."""

    runs_in_simulation = True

    def __init__(self, values: list[T], *, splits: int, records: int | None, chunk_records: int) -> None:
        if splits < 1 or chunk_records < 1:
            raise InvalidJob("memory.source: splits and chunk_records must be at least 1")
        if records is not None and records > 0 and not values:
            raise InvalidJob("memory.source: records asks for some, but there are no values to repeat")
        total = len(values) if records is None else records
        self._chunk_records, self._runs = chunk_records, []
        for split in range(splits):
            first, last = total * split // splits, total * (split + 1) // splits
            self._runs.append((first, last))
        self._values = values

    async def discover(self, world: World) -> Sequence[str]:
        """Return ``0``, ``1`` …: one name per run."""
        return [str(split) for split in range(len(self._runs))]

    async def read(self, context: SourceContext[Any]) -> AsyncIterator[Chunk[T]]:
        """Read one run from the index in ``resume_at``."""
        first, last = self._runs[int(context.split)]
        index = first + (context.resume_at or 0)
        if not first <= index <= last:
            raise RestoreFailed(
                f"operator {context.operator!r}: its snapshot says record {context.resume_at} of split"
                f" {context.split}, which has {last - first}; give the job the list that it was begun with"
            )
        values = self._values
        while index < last:
            at = index % len(values)
            records = values[at : min(at + self._chunk_records, at + last - index)]
            index += len(records)
            yield Chunk(records, resume_at=index - first)


class Append(Sink[T]):
    """A list as an at-least-once sink."""

    runs_in_simulation = True

    def __init__(self, rows: list[T]) -> None:
        self.rows = rows

    async def open(self, context: SinkContext) -> SinkWriter[T]:
        """Open the writer of one subtask."""
        return _AppendWriter(self.rows, context)

    async def visible(self, world: World) -> list[Any]:
        """Return what was written."""
        return list(self.rows)


class _AppendWriter(SinkWriter[T]):
    def __init__(self, rows: list[T], context: SinkContext) -> None:
        self._rows, self._clock = rows, context.world.clock

    async def write(self, records: list[T]) -> None:
        self._clock.now_ms()  # raises in a simulated process that has died: it has no effect any more
        self._rows.extend(records)


class Collect(TransactionalSink[T], Generic[T]):
    """A list as an exactly-once sink."""

    runs_in_simulation = True

    def __init__(self, rows: list[T]) -> None:
        self.rows = rows
        self._committed: dict[tuple[Any, ...], None] = {}
        self.openings = 0

    async def open(self, context: SinkContext) -> TransactionalWriter[T]:
        """Open the writer of one subtask."""
        return _CollectWriter(self, context)

    async def visible(self, world: World) -> list[Any]:
        """Return what is committed."""
        return list(self.rows)

    def commit(self, committable: Any) -> None:
        """Add the rows of one committable unless they were added before."""
        identity, rows = tuple(committable[0]), committable[1]
        if identity not in self._committed:
            self._committed[identity] = None
            self.rows.extend(rows)


class _CollectWriter(TransactionalWriter[T]):
    def __init__(self, sink: Collect[T], context: SinkContext) -> None:
        self._sink = sink
        # Without a home that lasts, generations begin again at one: two runs of one job are two openings.
        sink.openings += 1
        self._identity = (context.operator, context.subtask, context.generation, sink.openings)
        self._clock = context.world.clock
        self._pending: list[T] = []

    async def write(self, records: list[T]) -> None:
        self._pending.extend(records)

    def prepare(self, checkpoint_id: int) -> Prepared:
        rows, self._pending = self._pending, []
        return Prepared([[[*self._identity, checkpoint_id], rows]] if rows else [])

    async def commit(self, committables: list[Any], permit: CommitPermit) -> None:
        self._clock.now_ms()  # raises in a simulated process that has died: it has no effect any more
        for committable in committables:
            self._sink.commit(committable)

    async def discard(self, committables: list[Any]) -> None:
        """Nothing to do: what was prepared exists in the checkpoint alone."""
