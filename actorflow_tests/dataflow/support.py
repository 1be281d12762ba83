"""A job run to its end without a runtime: actor after actor, batch after batch; for tests of the language.

What it leaves out is what the runtime is for: channels, barriers, several attempts, calls at the same time.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from typing import Any, Generic, TypeVar

from actorflow.abc.connectors import Chunk, Sink, SinkContext, SinkWriter, Source, SourceContext
from actorflow.abc.world import World
from actorflow.dataflow.chaining import Chain, ChainContext
from actorflow.dataflow.job import Job
from actorflow.dataflow.plan import Exchange, ExchangeKind, OperatorKind, Plan
from actorflow.model.codec import Codec
from actorflow.model.elements import Batch
from actorflow.model.key_groups import KeyRouter, tokens_of
from actorflow.state import MemoryBackend

__all__ = ("Given", "Kept", "Run", "StillClock", "chain_of", "given", "keyed_batch")

T = TypeVar("T")


class Given(Source[T], Generic[T]):
    """A source of these records."""

    def __init__(self, records: Sequence[T]) -> None:
        self.records = list(records)

    async def discover(self, world: World) -> Sequence[str]:
        return ["0"]

    async def read(self, context: SourceContext[Any]) -> AsyncIterator[Chunk[T]]:
        yield Chunk(self.records, resume_at=len(self.records))


class Kept(Sink[Any]):
    """A sink whose records the run keeps."""

    def __init__(self) -> None:
        self.rows: list[Any] = []

    async def open(self, context: SinkContext) -> SinkWriter[Any]:
        raise AssertionError("the run fills `rows` itself")


class StillClock:
    """A clock that stands."""

    def now_ms(self) -> int:
        return 0

    def now_us(self) -> int:
        return 0

    def wall_ms(self) -> int:
        return 1_700_000_000_123

    def slice_is_over(self) -> bool:
        return False

    async def sleep(self, delay_ms: float) -> None:
        raise AssertionError("nothing waits here")


def given(*records: T) -> tuple[Job, Any, Kept]:
    """Begin a job with records, all of one type; return the job, its stream and a sink."""
    job = Job("job")
    return job, job.read(Given(records), name="in"), Kept()


class Run:
    """Runs a job; ``careful`` keeps a snapshot open all the time, so that no table offers its dict."""

    def __init__(
        self, job: Job, *, parallelism: int = 1, size: int = 3, careful: bool = False, show_records: bool = True
    ) -> None:
        self.plan: Plan = job.plan(parallelism=parallelism)
        self.codec = Codec(self.plan.registry)
        self.size = size
        self.chains: dict[tuple[int, int], Chain] = {}
        self.backends: dict[tuple[int, int], MemoryBackend] = {}
        self.snapshots = []
        self._inputs: dict[tuple[int, int], list[tuple[Batch, int]]] = {}
        self._turns: dict[int, int] = {}
        for vertex in self.plan.vertices:
            for subtask in range(vertex.parallelism):
                place = (vertex.index, subtask)
                backend = self.backends[place] = MemoryBackend(self.codec)
                self.chains[place] = Chain(
                    vertex,
                    ChainContext(
                        subtask=subtask,
                        backend=backend,
                        codec=self.codec,
                        clock=StillClock(),
                        show_records=show_records,
                    ),
                )
                if careful:
                    self.snapshots.append(backend.freeze())

    def to_end(self) -> Run:
        """Run until all input is used up."""
        for chain in self.chains.values():
            chain.open()
        for vertex in self.plan.vertices:
            for subtask in range(vertex.parallelism):
                place = (vertex.index, subtask)
                chain = self.chains[place]
                first = vertex.operators[0]
                if first.kind is OperatorKind.READ:
                    records = first.source.records[subtask :: vertex.parallelism]  # type: ignore[attr-defined]  # Given
                    for start in range(0, len(records), self.size):
                        self._deliver(place, chain.process_values(records[start : start + self.size]))
                for batch, role in self._inputs.get(place, []):
                    self._deliver(place, self._through(chain, batch, role))
                self._deliver(place, chain.finish())
        return self

    def _through(self, chain: Chain, batch: Batch, role: int) -> list[Any]:
        operator = chain.async_operator
        if operator is None or role:
            return chain.process(batch, role)

        async def call_all() -> list[Any]:
            outputs: list[Any] = []
            keys: Sequence[Any] = batch.keys or [None] * len(batch)
            tokens: Sequence[Any] = batch.tokens or keys
            for record, key, token in zip(batch.values, keys, tokens, strict=True):
                outputs += operator.apply(await operator.call(record, key, token))
            return outputs

        return chain.process_values(asyncio.run(call_all()))

    def _deliver(self, place: tuple[int, int], values: list[Any]) -> None:
        vertex = self.plan.vertices[place[0]]
        outputs: dict[Any, list[Any]] = {None: values, **(self.chains[place].take_side() or {})}
        last = vertex.operators[-1]
        if last.kind is OperatorKind.WRITE:
            last.sink.rows += values  # type: ignore[attr-defined]  # Kept
        for index in vertex.outputs:
            exchange = self.plan.exchanges[index]
            records = outputs.get(exchange.tag)
            if records:
                self._send(exchange, place[1], records)

    def _send(self, exchange: Exchange, subtask: int, records: list[Any]) -> None:
        downstream = self.plan.vertices[exchange.downstream]
        count = downstream.parallelism
        keys = None
        match exchange.kind:
            case ExchangeKind.KEYED:
                assert exchange.key is not None
                keys = [exchange.key(record) for record in records]
                tokens = tokens_of(keys)
                router = KeyRouter(downstream.max_parallelism, count)
                channels = router.channels(keys if tokens is None else tokens) if count > 1 else [0] * len(keys)
            case ExchangeKind.CUSTOM:
                assert exchange.partition is not None
                channels = [exchange.partition(record, count) for record in records]
            case ExchangeKind.FORWARD:
                channels = [subtask] * len(records)
            case ExchangeKind.GLOBAL:
                channels = [0] * len(records)
            case ExchangeKind.BROADCAST:
                for channel in range(count):
                    self._batch(exchange, channel, records, None)
                return
            case _:
                turn = self._turns.get(exchange.index, 0)
                channels = [(turn + index) % count for index in range(len(records))]
                self._turns[exchange.index] = turn + len(records)
        for channel in range(count):
            chosen = [index for index, one in enumerate(channels) if one == channel]
            if chosen:
                own_keys = None if keys is None else [keys[index] for index in chosen]
                self._batch(exchange, channel, [records[index] for index in chosen], own_keys)

    def _batch(self, exchange: Exchange, channel: int, records: list[Any], keys: list[Any] | None) -> None:
        tokens = None if keys is None else tokens_of(keys)
        self._inputs.setdefault((exchange.downstream, channel), []).append(
            (Batch(records, keys, tokens), exchange.role)
        )

    def state(self, operator: str, state: str = "state") -> dict[Any, Any]:
        """Return what an operator holds, over all its subtasks, by token."""
        vertex = self.plan.vertex_of(operator)
        found: dict[Any, Any] = {}
        for subtask in range(vertex.parallelism):
            place = (vertex.index, subtask)
            kind = self.chains[place].states()[operator][state]
            found |= dict(self.backends[place].table(operator, state, kind).items())
        return found


def chain_of(job: Job, operator: str, *, careful: bool = False, show_records: bool = True) -> Chain:
    """Return the one chain that an operator of a job runs in."""
    run = Run(job, careful=careful, show_records=show_records)
    return run.chains[run.plan.vertex_of(operator).index, 0]


def keyed_batch(values: list[Any], keys: list[Any]) -> Batch:
    """Return a batch as it comes out of a keyed exchange."""
    return Batch(values, keys, tokens_of(keys))
