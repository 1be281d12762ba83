"""How are rows written to a topic exactly once?  One transaction for each subtask and checkpoint.

*Names.*  The transactional id is ``home:operator:subtask:generation:number``: stable where a successor must find it,
and never used for two transactions.  So whoever commits one again is told by the broker that it is committed, a
producer that comes late touches nothing but its own, and a request that the broker carries out late fences nobody.
What it costs is the broker's memory: it knows each id for seven days.

*A checkpoint.*  Rows are sent in batches as they come; at the barrier the transaction is cut off, the rest of it is
sent, and it counts when the broker has confirmed every record (R022) and still holds the transaction open (R109).  A
committable is ``[transactional id, producer id, epoch]``: all that another process needs.  No rows, no transaction.

*After a restart* the restored checkpoint's transactions are committed, then subtask 0 aborts whatever older
generations left open, for it would hold up every reader of the topic, until its time limit.  It asks the broker for
them by the prefix of their ids; nothing is probed or guessed.

*The time limit* must cover a whole checkpoint and any time in which the job is down.  When it does not, the broker
aborts what a checkpoint relies on, and no restart brings the rows back: the commit fails and says so, with the times.
With ``on_lost="skip"`` the job goes on without them and says so in the journal.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from functools import partial
from typing import Any, Literal
from urllib.parse import quote
from zlib import crc32

import anyio

from actorflow.abc.connectors import CommitPermit, Prepared, SinkContext, TransactionalSink, TransactionalWriter
from actorflow.abc.world import World
from actorflow.connectors.pending_file import Rest
from actorflow.errors import CorruptObject, InvalidConfig, InvalidJob, ObjectMissing, StorageFailed
from actorflow.model.codec import Codec
from actorflow.model.journal import FellBack, OrphanRemoved
from actorflow.simulation.broker_client import SimulatedBrokerClient, patiently
from actorflow.simulation.broker_seam import (
    BrokerClient,
    Message,
    Producer,
    ProducerFenced,
    TransactionLost,
    TransactionState,
)

__all__ = ("BrokerSink",)

BATCH = 200
"""So many rows are sent together."""

SHORTEST_TRANSACTION = timedelta(seconds=1)
"""A time limit below this does not even cover a slow request."""

MOST_TRIES = 3
"""With how many ids a transaction is tried to be begun."""


class BrokerSink(TransactionalSink[Any]):
    """A topic of the simulated broker as an exactly-once sink.

    ``key`` says by what rows are spread over the partitions; without it each subtask writes to one of them.
    """

    runs_in_simulation = True

    def __init__(
        self,
        topic: str,
        *,
        codec: Codec | None = None,
        partitions: int = 1,
        key: Callable[[Any], Any] | None = None,
        transaction_timeout: timedelta = timedelta(minutes=15),
        on_lost: Literal["fail", "skip"] = "fail",
        parallelism: int | None = None,
    ) -> None:
        if not topic or "/" in topic:
            raise InvalidJob(f"broker sink: {topic!r} can't be the name of a topic")
        if transaction_timeout < SHORTEST_TRANSACTION:
            raise InvalidJob(
                f"broker sink: transaction_timeout={transaction_timeout}; a transaction lasts from a checkpoint to the"
                f" next and over every restart between them, so it must be {SHORTEST_TRANSACTION} at the very least"
            )
        if on_lost not in ("fail", "skip"):
            raise InvalidJob(f"broker sink: on_lost={on_lost!r}; it must be 'fail' or 'skip'")
        self.topic, self.codec, self.key = topic, codec or Codec(), key
        self.partitions, self.on_lost = partitions, on_lost
        self.timeout_ms = transaction_timeout // timedelta(milliseconds=1)
        self.parallelism = parallelism
        self.function = key  # its annotations say which classes travel

    def __repr__(self) -> str:
        return f"broker sink({self.topic})"

    async def open(self, context: SinkContext) -> TransactionalWriter[Any]:
        """Create the topic unless it is there; refuse a time limit that is too short."""
        client, clock = SimulatedBrokerClient(context.world), context.world.clock
        await patiently(clock, partial(client.create_topic, self.topic, self.partitions))
        partitions = await patiently(clock, partial(client.partitions, self.topic))
        if (needed := context.commits_within) is not None and self.timeout_ms < needed / timedelta(milliseconds=1):
            raise InvalidConfig(
                f"operator {context.operator!r}: a checkpoint may take {needed} from one barrier to its commit, and the"
                f" broker aborts each transaction after {timedelta(milliseconds=self.timeout_ms)}: rows that a"
                " checkpoint relies on would be lost.  Set transaction_timeout to more than that and the longest time"
                " that the job may be down, or checkpoints.every and checkpoints.timeout to less"
            )
        writer = _BrokerWriter(self, context, client, partitions)
        await writer.get_ready()
        return writer

    async def visible(self, world: World) -> list[Any]:
        """Return the rows that a committed reader sees now, partition by partition."""
        client, clock = SimulatedBrokerClient(world), world.clock
        try:
            count = await patiently(clock, partial(client.partitions, self.topic))
        except ObjectMissing:
            return []
        rows: list[Any] = []
        for partition in range(count):
            offset = (await patiently(clock, partial(client.offsets, self.topic, partition))).first
            while True:
                fetched = await patiently(clock, partial(client.read, self.topic, partition, offset, most=10_000))
                rows += [self.codec.decode(record.value, self.topic) for record in fetched.records]
                if fetched.next_offset == offset:
                    break
                offset = fetched.next_offset
        return rows


class _Open:
    """A transaction that is being written; rows wait here until they are sent."""

    def __init__(self, producer: Producer, client: BrokerClient, topic: str) -> None:
        self.producer, self._client, self._topic = producer, client, topic
        self._waiting: dict[int, list[Message]] = {}
        self._sent: dict[int, int] = {}
        self.waiting = 0

    def add(self, partition: int, message: Message) -> None:
        """Take one row."""
        self._waiting.setdefault(partition, []).append(message)
        self.waiting += 1

    async def send(self, context: SinkContext) -> None:
        """Have everything confirmed that was taken so far; what is confirmed is not sent again."""
        for partition in sorted(self._waiting):
            while messages := self._waiting.get(partition):
                batch, sequence = tuple(messages[:BATCH]), self._sent.get(partition, 0)
                append = partial(self._client.append, self.producer, self._topic, partition, batch, sequence=sequence)
                await patiently(context.world.clock, append)
                del messages[: len(batch)]
                self.waiting -= len(batch)
                self._sent[partition] = sequence + len(batch)


class _BrokerWriter(TransactionalWriter[Any]):
    def __init__(self, sink: BrokerSink, context: SinkContext, client: BrokerClient, partitions: int) -> None:
        self._sink, self._context, self._client, self._partitions = sink, context, client, partitions
        self._prefix = f"{quote(context.home, safe='')}:{quote(context.operator, safe='')}:"
        self._number = 0
        self._ready: Producer | None = None
        self._current: _Open | None = None
        self._unfinished: list[_Open] = []  # cut, and not yet known to be confirmed
        self._finishing = anyio.Lock()

    async def write(self, records: list[Any]) -> None:
        if not records:
            return
        if self._current is None:
            await self.get_ready()
            assert self._ready is not None
            self._current, self._ready = _Open(self._ready, self._client, self._sink.topic), None
        current, encode, key = self._current, self._sink.codec.encode, self._sink.key
        fixed = self._context.subtask % self._partitions
        for record in records:
            name = None if key is None else encode(key(record), self._context.operator)
            partition = fixed if name is None else crc32(name) % self._partitions
            current.add(partition, Message(encode(record, self._context.operator), name))
        if current.waiting >= BATCH:
            await current.send(self._context)

    async def get_ready(self) -> None:
        """Have a transactional id that nobody has used, and that no late request can take away again.

        Raises ``InvalidConfig`` when the broker allows no such time limit.
        """
        if self._ready is not None:
            return
        for left in reversed(range(MOST_TRIES)):
            name = f"{self._prefix}{self._context.subtask}:{self._context.generation}:{self._number}"
            self._number += 1
            try:
                self._ready = await self._client.init_transactions(name, self._sink.timeout_ms)
            except StorageFailed:
                if not left:
                    raise
            else:
                return

    def prepare(self, checkpoint_id: int) -> Prepared:
        committables: list[Any] = []
        if self._current is not None:
            current, self._current = self._current, None
            self._unfinished.append(current)
            producer = current.producer
            committables.append([producer.transactional_id, producer.producer_id, producer.epoch])
        # What an earlier checkpoint that was aborted had not sent belongs to this one too.
        unfinished = list(self._unfinished)
        return Prepared(committables, Rest(lambda: self._finish(unfinished)) if unfinished else None)

    async def _finish(self, transactions: list[_Open]) -> None:
        async with self._finishing:  # the next checkpoint may begin before an aborted one has ended
            for transaction in transactions:
                if transaction in self._unfinished:
                    await transaction.send(self._context)
                    await self._check_open(transaction.producer)
                    self._unfinished.remove(transaction)

    async def _check_open(self, producer: Producer) -> None:
        """Let the checkpoint fail while the rows can be written again, if the broker has ended the transaction."""
        name = producer.transactional_id
        found = await patiently(self._context.world.clock, partial(self._client.transactions, name))
        state = next((one.state for one in found if one.producer == producer), None)
        if state is not TransactionState.OPEN:
            raise ProducerFenced(
                f"operator {self._context.operator!r}: transaction {name!r} is {state or 'unknown'}, and its checkpoint"
                f" is not complete; one may last {self._sink.timeout_ms} ms (transaction_timeout), so was it too old?"
            )

    async def commit(self, committables: list[Any], permit: CommitPermit) -> None:
        for producer in map(self._checked, committables):
            try:
                await self._client.commit(producer)
            except (TransactionLost, ProducerFenced) as error:
                self._lost(error, permit)

    def _lost(self, error: StorageFailed, permit: CommitPermit) -> None:
        explanation = (
            f"operator {self._context.operator!r}: rows that checkpoint {permit.checkpoint_id} had made durable will"
            f" never be in topic {self._sink.topic!r}: {error}"
        )
        if self._sink.on_lost == "fail":
            raise TransactionLost(f"{explanation}.  Go on without them with on_lost='skip'") from error
        self._context.world.observer.announce(
            FellBack(
                subject=f"operator {self._context.operator!r}",
                wanted="every row once in its topic",
                taken="going on without the rows of a transaction that is lost",
                why=explanation,
            )
        )

    async def discard(self, committables: list[Any]) -> None:
        for producer in map(self._checked, committables):
            await self._give_up(producer)

    async def _give_up(self, producer: Producer) -> None:
        try:
            await patiently(self._context.world.clock, partial(self._client.abort, producer))
        except ProducerFenced:
            return  # somebody else did, or had it committed

    async def sweep(self, keep: list[Any]) -> int:
        clock, kept = self._context.world.clock, {producer.transactional_id for producer in map(self._checked, keep)}
        removed = 0
        for transaction in await patiently(clock, partial(self._client.transactions, self._prefix)):
            name = transaction.producer.transactional_id
            if name in kept or transaction.state not in {TransactionState.EMPTY, TransactionState.OPEN}:
                continue
            generation = _generation_of(name)
            if generation is None or generation >= self._context.generation:
                continue
            await self._give_up(transaction.producer)
            if transaction.state is TransactionState.OPEN:
                removed += 1
                self._context.world.observer.announce(OrphanRemoved(where=self._sink.topic, name=name))
        return removed

    async def close(self) -> None:
        left = [self._ready] if self._current is None else [self._ready, self._current.producer]
        self._ready = self._current = None
        for producer in left:
            if producer is not None:
                try:
                    await self._client.abort(producer)
                except StorageFailed:
                    continue  # the next generation does, or the broker, when its time is over

    def _checked(self, committable: Any) -> Producer:
        """A committable of the right shape; a manifest may come from anywhere."""
        match committable:
            case [str(name), int(producer_id), int(epoch)]:
                return Producer(name, producer_id, epoch)
        raise CorruptObject(
            f"operator {self._context.operator!r}: a checkpoint holds something that is no transaction of a broker"
        )


def _generation_of(transactional_id: str) -> int | None:
    parts = transactional_id.rsplit(":", 2)
    return int(parts[1]) if len(parts) == 3 and parts[1].isascii() and parts[1].isdigit() else None
