"""How is a topic read exactly once?

A split is a partition, a position is an offset and the epoch of the leader before it.  The source reads what is
committed and no further.  A bounded one ends where the partition ended when it was first looked at, or at ends that
are given: the end is part of the position, so a reader that goes on ends at the same place.

A partition that does not hold the position any more (retention, or a leader that lost what it had confirmed) is an
error that names topic, partition and offsets; with ``on_truncated="skip"`` the job goes on with what there is, and
says so.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from datetime import timedelta
from functools import partial
from typing import Any, Literal

from actorflow.abc.connectors import Chunk, Source, SourceContext
from actorflow.abc.world import World
from actorflow.errors import InvalidJob, RestoreFailed
from actorflow.model.codec import Codec
from actorflow.model.journal import FellBack
from actorflow.simulation.broker_client import SimulatedBrokerClient, patiently
from actorflow.simulation.broker_seam import BrokerClient, Fetched, LogTruncated

__all__ = ("BrokerSource", "Until")

Until = Literal["now"] | Sequence[int] | None


class BrokerSource(Source[Any]):
    """A topic of the simulated broker as a source.

    ``until="now"`` ends where each partition ended at first sight, a sequence has one end for each partition (as
    ``Broker.fill`` returns them), ``None`` reads for ever.
    """

    runs_in_simulation = True
    splits_at_once = None

    def __init__(
        self,
        topic: str,
        *,
        codec: Codec | None = None,
        until: Until = "now",
        chunk_records: int = 256,
        poll_every: timedelta = timedelta(milliseconds=100),
        on_truncated: Literal["fail", "skip"] = "fail",
        parallelism: int | None = None,
    ) -> None:
        if not topic:
            raise InvalidJob("broker source: the topic has no name")
        if chunk_records < 1 or poll_every <= timedelta(0):
            raise InvalidJob("broker source: chunk_records must be at least 1, poll_every longer than nothing")
        if on_truncated not in ("fail", "skip"):
            raise InvalidJob(f"broker source: on_truncated={on_truncated!r}; it must be 'fail' or 'skip'")
        self.topic, self._codec = topic, codec or Codec()
        self._until, self._chunk_records = until, chunk_records
        self._poll_ms = poll_every / timedelta(milliseconds=1)
        self._on_truncated = on_truncated
        self.bounded = until is not None
        self.parallelism = parallelism
        if until is None:
            self.discover_every = timedelta(seconds=1)

    def __repr__(self) -> str:
        return f"broker source({self.topic})"

    async def discover(self, world: World) -> Sequence[str]:
        """Return ``0``, ``1`` …: one name per partition."""
        client = SimulatedBrokerClient(world)
        count = await patiently(world.clock, partial(client.partitions, self.topic))
        if not (self._until is None or self._until == "now") and len(self._until) != count:
            raise InvalidJob(f"{self!r}: {len(self._until)} ends are given, and the topic has {count} partitions")
        return [str(partition) for partition in range(count)]

    async def read(self, context: SourceContext[Any]) -> AsyncIterator[Chunk[Any]]:
        """Read one partition from its position on."""
        client: BrokerClient = SimulatedBrokerClient(context.world)
        clock, partition = context.world.clock, int(context.split)
        position = context.resume_at or await self._beginning(client, context, partition)
        offset, epoch, end = position["offset"], position["epoch"], position["end"]
        while end is None or offset < end:
            try:
                fetched = await self._fetch(client, context, partition, offset, epoch)
            except LogTruncated as truncated:
                offset, epoch = self._truncated(context, truncated), None
                continue
            if fetched.next_offset == offset:
                await clock.sleep(self._poll_ms)
                continue
            offset, epoch = fetched.next_offset, fetched.leader_epoch
            records = [
                self._codec.decode(record.value, f"{self.topic}/{partition}, offset {record.offset}")
                for record in fetched.records
                if end is None or record.offset < end
            ]
            yield Chunk(records, resume_at={"offset": offset, "epoch": epoch, "end": end})

    async def _beginning(self, client: BrokerClient, context: SourceContext[Any], partition: int) -> dict[str, Any]:
        offsets = await patiently(context.world.clock, partial(client.offsets, self.topic, partition))
        end = None if self._until is None else offsets.end if self._until == "now" else self._until[partition]
        return {"offset": offsets.first, "epoch": None, "end": end}

    async def _fetch(
        self, client: BrokerClient, context: SourceContext[Any], partition: int, offset: int, epoch: int | None
    ) -> Fetched:
        fetch = partial(client.read, self.topic, partition, offset, leader_epoch=epoch, most=self._chunk_records)
        return await patiently(context.world.clock, fetch)

    def _truncated(self, context: SourceContext[Any], truncated: LogTruncated) -> int:
        """Where to go on, if that is allowed."""
        if self._on_truncated == "fail":
            raise RestoreFailed(
                f"operator {context.operator!r}: {truncated}.  Go on with what there is with on_truncated='skip'"
            ) from truncated
        on = min(max(truncated.offset, truncated.first), truncated.end)
        context.world.observer.announce(
            FellBack(
                subject=f"operator {context.operator!r}",
                wanted=f"all of {self.topic}/{context.split}",
                taken=f"going on from offset {on}",
                why=str(truncated),
            )
        )
        return on
