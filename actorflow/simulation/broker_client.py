"""One process's connection to the simulated broker: every call is a request, and meets the weather on its way."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import TypeVar

from actorflow.abc.world import Clock, World
from actorflow.errors import InvalidConfig, ObjectMissing, StorageFailed
from actorflow.simulation.broker_seam import (
    Appended,
    Fetched,
    LogTruncated,
    Message,
    Offsets,
    OutOfOrder,
    Producer,
    ProducerFenced,
    Transaction,
)
from actorflow.simulation.weather import Service
from actorflow.simulation.wire import Wire, process_of

__all__ = ("SimulatedBrokerClient", "patiently")

T = TypeVar("T")

TRIES = 4
FIRST_PAUSE_MS = 100

ANSWERS = (InvalidConfig, LogTruncated, ObjectMissing, OutOfOrder, ProducerFenced)
"""What a broker itself answers; asking again changes nothing."""


async def patiently(clock: Clock, call: Callable[[], Awaitable[T]]) -> T:
    """Make a call that may be repeated, and repeat it a few times where it is in doubt, as real clients do."""
    pause_ms = FIRST_PAUSE_MS
    for _ in range(TRIES - 1):
        try:
            return await call()
        except ANSWERS:
            raise
        except StorageFailed:
            await clock.sleep(pause_ms)
            pause_ms *= 2
    return await call()


class SimulatedBrokerClient:
    """See ``BrokerClient``; ``world`` is the world of the process."""

    def __init__(self, world: World) -> None:
        process = process_of(world, "this broker")
        self._broker = process.universe.broker
        self._wire = Wire(process, Service.BROKER)

    async def create_topic(self, topic: str, partitions: int = 1) -> None:
        await self._wire.request("create", topic, lambda: self._broker.create_topic(topic, partitions))

    async def partitions(self, topic: str) -> int:
        return await self._wire.request("partitions", topic, lambda: self._broker.partitions(topic))

    async def offsets(self, topic: str, partition: int) -> Offsets:
        return await self._wire.request(
            "offsets", f"{topic}/{partition}", lambda: self._broker.offsets(topic, partition)
        )

    async def read(
        self, topic: str, partition: int, offset: int, *, leader_epoch: int | None = None, most: int = 256
    ) -> Fetched:
        return await self._wire.request(
            "read", f"{topic}/{partition}", lambda: self._broker.read(topic, partition, offset, leader_epoch, most)
        )

    async def init_transactions(self, transactional_id: str, timeout_ms: int) -> Producer:
        return await self._wire.request(
            "init", transactional_id, lambda: self._broker.init_transactions(transactional_id, timeout_ms)
        )

    async def append(
        self, producer: Producer, topic: str, partition: int, messages: Sequence[Message], *, sequence: int
    ) -> Appended:
        return await self._wire.request(
            "append",
            f"{topic}/{partition}",
            lambda: self._broker.append(producer, topic, partition, messages, sequence),
        )

    async def commit(self, producer: Producer) -> None:
        await self._wire.request("commit", producer.transactional_id, lambda: self._broker.commit(producer))

    async def abort(self, producer: Producer) -> None:
        await self._wire.request("abort", producer.transactional_id, lambda: self._broker.abort(producer))

    async def transactions(self, prefix: str) -> list[Transaction]:
        return await self._wire.request("transactions", prefix, lambda: self._broker.transactions(prefix))
