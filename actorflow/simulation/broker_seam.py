"""What does a replayable log promise to whoever talks to it?

The page that a source and a sink on a broker are written against: values, errors, and :class:`BrokerClient`, one
process's connection.  The simulated broker is behind it here; what talks to Kafka can stand behind it too, and
``contracts_broker.py`` says what both must hold.

The words are Kafka's.  A topic has partitions; each is a log whose records have offsets.  Whoever initialises a
transactional id *fences* the one who had it before.  One initialisation is good for one transaction: it begins with the
first record and ends with ``commit`` or ``abort``, and what arrives after its end is refused, however late.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

from actorflow.errors import ObjectMissing, StorageFailed

__all__ = (
    "Appended",
    "BrokerClient",
    "Fetched",
    "LogTruncated",
    "Message",
    "Offsets",
    "OutOfOrder",
    "Producer",
    "ProducerFenced",
    "Record",
    "Transaction",
    "TransactionLost",
    "TransactionState",
)


class ProducerFenced(StorageFailed):
    """Raised when a newer owner has initialised the transactional id, or the broker ended its transaction."""


class TransactionLost(ObjectMissing):
    """Raised when a transaction that is to be committed was aborted, or is not known any more."""


class OutOfOrder(StorageFailed):
    """Raised when records before these are missing in the partition, although they had been confirmed."""


class LogTruncated(StorageFailed):
    """Raised when a partition does not reach, or does not go back, to where somebody was; names all offsets.

    ``offset`` is where the reader was; the partition holds ``first`` to before ``end`` of what it read.
    """

    def __init__(self, explanation: str, *, offset: int, first: int, end: int) -> None:
        self.offset, self.first, self.end = offset, first, end
        super().__init__(explanation)


@dataclass(frozen=True, slots=True)
class Message:
    """What is written: a value and, perhaps, a key."""

    value: bytes
    key: bytes | None = None


@dataclass(frozen=True, slots=True)
class Record:
    """What is read."""

    offset: int
    value: bytes
    key: bytes | None
    timestamp_ms: int


@dataclass(frozen=True, slots=True)
class Producer:
    """Who holds a transactional id: all that another process needs to commit for it."""

    transactional_id: str
    producer_id: int
    epoch: int


@dataclass(frozen=True, slots=True)
class Appended:
    """Where records went: the first one's offset, and the offset after the last."""

    offset: int
    end: int


@dataclass(frozen=True, slots=True)
class Fetched:
    """Some records, and where to go on after them: an offset, and the epoch of the leader before it.

    ``next_offset`` is beyond the last record when what follows it was aborted or is no record.  Committed readers get
    no further than ``stable_end`` now; the partition ends at ``end``.
    """

    records: tuple[Record, ...]
    next_offset: int
    leader_epoch: int | None
    stable_end: int
    end: int


@dataclass(frozen=True, slots=True)
class Offsets:
    """A partition's first offset, where committed readers stop, and its end; ``stable_end`` <= ``end``."""

    first: int
    stable_end: int
    end: int
    leader_epoch: int


class TransactionState(StrEnum):
    """What became of a transaction."""

    EMPTY = "empty"  # initialised, nothing written
    OPEN = "open"
    COMMITTED = "committed"
    ABORTED = "aborted"


@dataclass(frozen=True, slots=True)
class Transaction:
    """A transactional id as the broker knows it."""

    producer: Producer
    state: TransactionState


class BrokerClient(Protocol):
    """One process's connection to a broker.

    Whatever raises a plain ``StorageFailed`` is in doubt: it may have been carried out, or may be yet.  Every method
    may be repeated then without harm.
    """

    async def create_topic(self, topic: str, partitions: int = 1) -> None:
        """Create a topic unless it is there; more partitions than it has are added."""
        ...

    async def partitions(self, topic: str) -> int:
        """Return how many partitions a topic has; raises ``ObjectMissing``."""
        ...

    async def offsets(self, topic: str, partition: int) -> Offsets:
        """Return where a partition begins and ends."""
        ...

    async def read(
        self, topic: str, partition: int, offset: int, *, leader_epoch: int | None = None, most: int = 256
    ) -> Fetched:
        """Return committed records from ``offset`` on, at most ``most``, and none at the stable end.

        ``leader_epoch`` is what came with ``offset``, ``None`` where nothing was read before.  Raises ``LogTruncated``
        when the partition begins after ``offset``, or ends before it, or was cut below it and written anew.
        """
        ...

    async def init_transactions(self, transactional_id: str, timeout_ms: int) -> Producer:
        """Take a transactional id: fence whoever had it, abort what it left open.

        Raises ``InvalidConfig`` when the broker allows no transaction to last that long.
        """
        ...

    async def append(
        self, producer: Producer, topic: str, partition: int, messages: Sequence[Message], *, sequence: int
    ) -> Appended:
        """Append within the producer's transaction; ``sequence`` is how many records it wrote there before.

        The same records with the same sequence are appended once, however often this is called.  Raises
        ``ProducerFenced`` and ``OutOfOrder``.
        """
        ...

    async def commit(self, producer: Producer) -> None:
        """End a transaction and show its records; a second time is fine, also from another process.

        Raises ``TransactionLost`` when it was aborted, never was, or is forgotten, and ``ProducerFenced`` when the id
        belongs to somebody else.
        """
        ...

    async def abort(self, producer: Producer) -> None:
        """End a transaction for good unless it has ended; one that was committed stays.  Raises ``ProducerFenced``."""
        ...

    async def transactions(self, prefix: str) -> list[Transaction]:
        """Return the transactional ids that begin with ``prefix``, sorted."""
        ...
