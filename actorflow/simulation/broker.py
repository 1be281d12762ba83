"""What can a replayable log do to those who use it?  A broker in the role of Kafka.

It stands in the universe, outside of every process, and outlives them all: topics with partitions, append-only, and
transactions that belong to whoever initialised their id last.  Everything here is carried out at once;
``broker_client.py`` is how a process reaches it, through the weather.

**A transaction has a time limit.**  One that is open for longer than it had asked for is aborted by the broker, also
when its writer had written all of it and a checkpoint relies on it: that is how real users lost data.  Whoever commits
it then is told so (``TransactionLost``), with the times; and nobody gets a limit that is longer than the broker's
own.

What a ``rewind`` takes away, the broker had confirmed.  Readers who were further are told (``LogTruncated``), writers
whose open transaction lost records too (``OutOfOrder``, ``TransactionLost``); committed output that is gone is gone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import Any
from zlib import crc32

from actorflow.errors import InvalidConfig, ObjectMissing
from actorflow.model.codec import Codec
from actorflow.simulation.broker_log import Log
from actorflow.simulation.broker_seam import (
    Appended,
    Fetched,
    Message,
    Offsets,
    OutOfOrder,
    Producer,
    ProducerFenced,
    Transaction,
    TransactionLost,
    TransactionState,
)

__all__ = ("LONGEST_TRANSACTION_MS", "Broker")

LONGEST_TRANSACTION_MS = 900_000
"""What Kafka's ``transaction.max.timeout.ms`` is unless somebody changed it."""

_REMEMBERED_MS = 7 * 24 * 3_600_000
"""For how long an id that nobody uses is known (Kafka: ``transactional.id.expiration.ms``)."""


@dataclass(slots=True)
class _Held:
    """A transactional id: who holds it, and the one transaction of that holder."""

    producer: Producer
    number: int
    timeout_ms: int
    state: TransactionState = TransactionState.EMPTY
    changed_ms: int = 0
    why: str = ""
    batches: dict[str, list[tuple[int, int, int]]] = field(default_factory=dict)
    """By partition: (sequence, offset, count) of each batch."""

    def written(self, log: str) -> int:
        """How many records were appended to a partition."""
        batches = self.batches.get(log)
        return batches[-1][0] + batches[-1][2] if batches else 0


class Broker:
    """Topics and transactions.  ``longest_transaction_ms`` is the longest time limit that anybody gets."""

    def __init__(self, now_ms: Callable[[], int], *, longest_transaction_ms: int = LONGEST_TRANSACTION_MS) -> None:
        self._now_ms = now_ms
        self.longest_transaction_ms = longest_transaction_ms
        self.timed_out: list[str] = []
        self._topics: dict[str, list[Log]] = {}
        self._held: dict[str, _Held] = {}
        self._open: dict[int, _Held] = {}
        self._numbers = 0

    # ── for whoever tells the story ──

    def fill(
        self,
        topic: str,
        records: Iterable[Any],
        *,
        partitions: int = 1,
        codec: Codec | None = None,
        key: Callable[[Any], Any] | None = None,
        at_ms: Sequence[int | None] | None = None,
    ) -> list[int]:
        """Write records to a topic, as somebody else would have; return where each partition ends with them.

        They go round the partitions, or by ``key``; ``at_ms`` lets each of them come at a virtual time (``None``: now).
        """
        self.create_topic(topic, partitions)
        codec = codec or Codec()
        logs, now = self._topics[topic][:partitions], self._now_ms()
        for index, record in enumerate(records):
            encoded = None if key is None else codec.encode(key(record))
            log = logs[(index if encoded is None else crc32(encoded)) % len(logs)]
            message = Message(codec.encode(record, path=topic), encoded)
            due = at_ms[index] if at_ms is not None else None
            if due is None or due <= now:
                log.append([message], now)
            else:
                log.schedule(due, message)
        return [log.end + log.coming for log in logs]

    def committed(self, topic: str) -> list[bytes]:
        """Return the values that a committed reader sees now, partition by partition."""
        self._advance()
        return [record.value for log in self._logs(topic) for record in self._all_of(log)]

    @staticmethod
    def _all_of(log: Log) -> Iterable[Any]:
        offsets = log.offsets()
        return log.read(offsets.first, None, offsets.end - offsets.first).records

    def trim(self, topic: str, partition: int, first: int) -> None:
        """Keep nothing before an offset, as retention does."""
        self._log(topic, partition).trim(first)

    def rewind(self, pattern: str, count: int) -> list[str]:
        """Lose the last offsets of each partition that matches; return what was lost where."""
        self._advance()
        told = []
        for logs in self._topics.values():
            for log in logs:
                if fnmatchcase(log.name, pattern):
                    first, end = log.lose(count, self._now_ms())
                    if first < end:
                        told.append(f"{log.name} {first}-{end - 1}")
        return told

    def unsettled_until_ms(self) -> int | None:
        """Return when the last open transaction is aborted for its age; ``None`` when none is open."""
        self._advance()
        return max((held.changed_ms + held.timeout_ms for held in self._open.values()), default=None)

    # ── topics ──

    def create_topic(self, topic: str, partitions: int = 1) -> None:
        """See ``BrokerClient``."""
        logs = self._topics.setdefault(topic, [])
        logs += [Log(f"{topic}/{number}") for number in range(len(logs), partitions)]

    def partitions(self, topic: str) -> int:
        """See ``BrokerClient``."""
        return len(self._logs(topic))

    def offsets(self, topic: str, partition: int) -> Offsets:
        """See ``BrokerClient``."""
        self._advance()
        return self._log(topic, partition).offsets()

    def read(self, topic: str, partition: int, offset: int, leader_epoch: int | None, most: int) -> Fetched:
        """See ``BrokerClient``."""
        self._advance()
        return self._log(topic, partition).read(offset, leader_epoch, most)

    def _logs(self, topic: str) -> list[Log]:
        logs = self._topics.get(topic)
        if logs is None:
            raise ObjectMissing(f"{topic}: the broker has no such topic")
        return logs

    def _log(self, topic: str, partition: int) -> Log:
        logs = self._logs(topic)
        if not 0 <= partition < len(logs):
            raise ObjectMissing(f"{topic}/{partition}: the topic has {len(logs)} partitions")
        return logs[partition]

    # ── transactions ──

    def init_transactions(self, transactional_id: str, timeout_ms: int) -> Producer:
        """See ``BrokerClient``."""
        self._advance()
        if timeout_ms > self.longest_transaction_ms:
            raise InvalidConfig(
                f"transactional id {transactional_id!r}: a transaction of {timeout_ms} ms is asked for, and the broker"
                f" aborts every one after {self.longest_transaction_ms} ms (transaction.max.timeout.ms); ask for less,"
                " or let the broker allow more"
            )
        before = self._held.get(transactional_id)
        self._numbers += 1
        if before is None:
            producer = Producer(transactional_id, self._numbers, 0)
        else:
            self._end(before, committed=False, why="somebody else took its transactional id")
            producer = Producer(transactional_id, before.producer.producer_id, before.producer.epoch + 1)
        self._held[transactional_id] = _Held(producer, self._numbers, timeout_ms, changed_ms=self._now_ms())
        return producer

    def append(
        self, producer: Producer, topic: str, partition: int, messages: Sequence[Message], sequence: int
    ) -> Appended:
        """See ``BrokerClient``."""
        self._advance()
        log, held = self._log(topic, partition), self._holder(producer)
        if held.state not in {TransactionState.EMPTY, TransactionState.OPEN}:
            raise ProducerFenced(f"{_named(producer)}: its transaction has ended: {held.why or held.state}")
        expected = held.written(log.name)
        if sequence < expected:
            for earlier, offset, count in held.batches[log.name]:
                if earlier == sequence and count == len(messages):
                    return Appended(offset, offset + count)
        there = log.count_of(held.number) if log.leader_epoch else expected
        if not sequence == there == expected:
            raise OutOfOrder(
                f"{_named(producer)}: {log.name} has {there} records of this transaction, of {expected} that were"
                f" confirmed; number {sequence} can't follow"
            )
        offset = log.append(list(messages), self._now_ms(), held.number)
        held.batches.setdefault(log.name, []).append((sequence, offset, len(messages)))
        if held.state is TransactionState.EMPTY:
            held.state, held.changed_ms = TransactionState.OPEN, self._now_ms()
            self._open[held.number] = held
        return Appended(offset, offset + len(messages))

    def commit(self, producer: Producer) -> None:
        """See ``BrokerClient``."""
        self._advance()
        held = self._holder(producer, to_commit=True)
        if held.state is TransactionState.COMMITTED:
            return
        if held.state is not TransactionState.OPEN:
            raise TransactionLost(f"{_named(producer)}: its transaction can't be committed: {held.why or held.state}")
        for name, batches in held.batches.items():
            log = self._log_of(name)
            if log.leader_epoch and log.count_of(held.number) != held.written(name):
                last = batches[-1][1] + batches[-1][2] - 1
                held_offsets = f"{name} offsets {batches[0][1]} to {last}"
                self._end(held, committed=False, why=f"the broker lost some of {held_offsets}, which it had confirmed")
                raise TransactionLost(f"{_named(producer)}: its transaction can't be committed: {held.why}")
        self._end(held, committed=True)

    def abort(self, producer: Producer) -> None:
        """See ``BrokerClient``."""
        self._advance()
        held = self._holder(producer)
        if held.state in {TransactionState.EMPTY, TransactionState.OPEN}:
            self._end(held, committed=False, why="it was aborted")

    def transactions(self, prefix: str) -> list[Transaction]:
        """See ``BrokerClient``."""
        self._advance()
        return [
            Transaction(self._held[name].producer, self._held[name].state)
            for name in sorted(self._held)
            if name.startswith(prefix)
        ]

    def _holder(self, producer: Producer, *, to_commit: bool = False) -> _Held:
        held = self._held.get(producer.transactional_id)
        if held is None or producer.producer_id != held.producer.producer_id:
            explanation = f"{_named(producer)}: the broker does not know it, or no longer"
            raise TransactionLost(explanation) if to_commit else ProducerFenced(explanation)
        if producer.epoch != held.producer.epoch:
            raise ProducerFenced(f"{_named(producer)}: somebody else took it; its epoch is {held.producer.epoch} now")
        return held

    def _log_of(self, name: str) -> Log:
        topic, _, partition = name.rpartition("/")
        return self._log(topic, int(partition))

    def _end(self, held: _Held, *, committed: bool, why: str = "") -> None:
        if held.state in {TransactionState.COMMITTED, TransactionState.ABORTED}:
            return
        self._open.pop(held.number, None)
        held.state = TransactionState.COMMITTED if committed else TransactionState.ABORTED
        held.why, held.changed_ms = why, self._now_ms()
        for name in held.batches:
            self._log_of(name).mark(held.number, self._now_ms(), committed=committed)

    def _advance(self) -> None:
        """Do what was due since anybody asked last."""
        now = self._now_ms()
        for logs in self._topics.values():
            for log in logs:
                if log.coming:
                    log.advance(now)
        for held in list(self._open.values()):
            if now >= held.changed_ms + held.timeout_ms:
                self._end(
                    held,
                    committed=False,
                    why=f"the broker aborted it, because it was open for longer than {held.timeout_ms} ms "
                    "(transaction.timeout.ms)",
                )
                self.timed_out.append(held.producer.transactional_id)
        if self._held:
            oldest = next(iter(self._held.values()))
            if oldest.number not in self._open and now >= oldest.changed_ms + _REMEMBERED_MS:
                del self._held[oldest.producer.transactional_id]


def _named(producer: Producer) -> str:
    return f"transactional id {producer.transactional_id!r}, producer {producer.producer_id}, epoch {producer.epoch}"
