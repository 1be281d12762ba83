from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from actorflow.abc.connectors import Chunk, SinkContext, SourceContext, TransactionalWriter
from actorflow.errors import CorruptObject, InvalidConfig, InvalidJob, RestoreFailed, StorageFailed
from actorflow.model.journal import FellBack, OrphanRemoved, WeatherStruck
from actorflow.simulation import BrokerSink, BrokerSource, Severed, Universe, run
from actorflow.simulation.broker_client import SimulatedBrokerClient
from actorflow.simulation.broker_seam import LogTruncated, Message, Producer, ProducerFenced, TransactionLost
from actorflow.simulation.contracts_connectors import Permit
from actorflow.simulation.weather import (
    At,
    FailRequests,
    Kill,
    LoseAnswers,
    Moment,
    OnBroker,
    Partition,
    Rewind,
    Service,
    SlowRequests,
    Stall,
    Way,
    Weather,
)

SEEDS = range(20)


def committed(universe: Universe, topic: str = "rows") -> list[bytes]:
    """What a committed reader sees."""
    return universe.broker.committed(topic)


async def begun(universe: Universe, process: str = "p") -> tuple[SimulatedBrokerClient, Producer]:
    """A process with an open transaction of one record."""
    client = SimulatedBrokerClient(universe.world(process))
    await client.create_topic("rows")
    producer = await client.init_transactions("id", 10_000)
    await client.append(producer, "rows", 0, [Message(b"a")], sequence=0)
    return client, producer


async def writer_of(
    universe: Universe, generation: int = 1, process: str | None = None, *, sink: BrokerSink | None = None, **said: Any
) -> TransactionalWriter[Any]:
    """The writer of a subtask, as a fresh process opens it."""
    world = universe.world(process or f"generation {generation}")
    context = SinkContext(
        operator="rows", subtask=0, parallelism=1, generation=generation, home="s3://home/job", world=world, **said
    )
    return await (sink or BrokerSink("rows")).open(context)


async def prepared(writer: TransactionalWriter[Any], checkpoint_id: int, *rows: Any) -> list[Any]:
    """Write some rows and cut."""
    await writer.write(list(rows))
    cut = writer.prepare(checkpoint_id)
    if cut.rest is not None:
        await cut.rest
    return cut.committables


async def visible(universe: Universe, sink: BrokerSink | None = None) -> list[Any]:
    """What an outsider sees of the sink's topic."""
    return await (sink or BrokerSink("rows")).visible(universe.world(f"outsider {len(universe.processes)}"))


# ── requests in the weather ──────────────────────────────────────────────────────────────────


def test_a_refused_request_has_no_effect() -> None:
    async def main() -> None:
        universe = Universe(1)
        client, producer = await begun(universe)
        universe.strike(FailRequests(At(0), Service.BROKER, "commit", "id"))
        with pytest.raises(StorageFailed, match="id: commit was refused by the weather"):
            await client.commit(producer)
        assert committed(universe) == []
        await client.commit(producer)
        assert committed(universe) == [b"a"]
        assert universe.journal[0].entry == WeatherStruck(verb="fail", target="id")

    run(main)


def test_a_commit_whose_answer_is_lost_took_effect_and_may_repeat() -> None:
    async def main() -> None:
        universe = Universe(1)
        client, producer = await begun(universe)
        universe.strike(LoseAnswers(At(0), Service.BROKER, "commit"))
        with pytest.raises(StorageFailed, match="the answer to commit was lost"):
            await client.commit(producer)
        assert committed(universe) == [b"a"]
        await client.commit(producer)
        assert committed(universe) == [b"a"]

    run(main)


def test_faults_of_the_database_leave_the_broker_alone() -> None:
    async def main() -> None:
        universe = Universe(1)
        client, producer = await begun(universe)
        universe.strike(FailRequests(At(0), Service.DATABASE, "*", count=5))
        universe.strike(Stall(At(0), Service.DATABASE, 100_000))
        await client.commit(producer)
        assert universe.now_ms() < 1_000

    run(main)


def test_a_slow_request_takes_longer() -> None:
    async def main() -> None:
        universe = Universe(1)
        client, producer = await begun(universe)
        before = universe.now_ms()
        universe.strike(SlowRequests(At(0), Service.BROKER, "commit", by_ms=700))
        await client.commit(producer)
        assert 700 <= universe.now_ms() - before < 800

    run(main)


@pytest.mark.parametrize(("moment", "outcomes"), [(Moment.BEFORE, {0}), (Moment.DURING, {0, 1}), (Moment.AFTER, {1})])
def test_a_request_of_a_process_that_dies_arrives_or_does_not(moment: Moment, outcomes: set[int]) -> None:
    async def main(seed: int) -> int:
        universe = Universe(seed)
        client, producer = await begun(universe)
        universe.expect(Kill(OnBroker("commit", "id", moment), "p"))
        with pytest.raises(Severed):
            await client.commit(producer)
            await asyncio.sleep(0.001)
            await client.partitions("rows")
        await asyncio.sleep(6)  # what was on its way may be late
        return len(committed(universe))

    assert {run(main, seed, seed=seed) for seed in SEEDS} == outcomes


@pytest.mark.parametrize("way", list(Way))
def test_a_partition_cuts_off_one_service_one_way_or_both(way: Way) -> None:
    async def main() -> None:
        universe = Universe(1)
        client, producer = await begun(universe)
        universe.strike(Partition(At(0), "p", 60_000, way, Service.BROKER))
        store = client._wire._process.world.objects.open("s3://bucket")
        await store.put("reachable", b"yes")
        with pytest.raises(StorageFailed, match=r"commit got no answer within .* ms: a partition"):
            await client.commit(producer)
        assert committed(universe) == ([b"a"] if way is Way.IN else [])
        other = SimulatedBrokerClient(universe.world("other"))
        await other.commit(producer)
        assert committed(universe) == [b"a"]

    run(main)


def test_a_partition_of_all_services_cuts_off_the_broker_too() -> None:
    async def main() -> None:
        universe = Universe(1)
        client, producer = await begun(universe)
        universe.strike(Partition(At(0), "p", 10_000))
        with pytest.raises(StorageFailed, match="a partition"):
            await client.commit(producer)
        universe.calm()
        await client.commit(producer)

    run(main)


def test_a_short_stall_is_waited_out_and_a_long_one_is_not() -> None:
    async def main() -> None:
        universe = Universe(1)
        client, producer = await begun(universe)
        before = universe.now_ms()
        universe.strike(Stall(At(0), Service.BROKER, 500))
        await client.append(producer, "rows", 0, [Message(b"b")], sequence=1)
        assert 500 <= universe.now_ms() - before < 600
        universe.strike(Stall(At(0), Service.BROKER, 60_000))
        with pytest.raises(StorageFailed, match="the broker stalls"):
            await client.commit(producer)
        assert 1_500 <= universe.now_ms() - before < 6_600
        assert [line.entry for line in universe.journal] == [WeatherStruck(verb="stall", target="broker")] * 2

    run(main)


def test_what_nobody_waits_for_any_more_may_be_carried_out_when_the_stall_is_over() -> None:
    async def main(seed: int) -> int:
        universe = Universe(seed)
        client, producer = await begun(universe)
        universe.strike(Stall(At(0), Service.BROKER, 6_000))
        with pytest.raises(StorageFailed):
            await client.commit(producer)
        assert committed(universe) == []
        await asyncio.sleep(7)
        return len(committed(universe))

    assert {run(main, seed, seed=seed) for seed in SEEDS} == {0, 1}


def test_a_rewind_says_in_the_journal_what_is_lost() -> None:
    async def main() -> None:
        universe = Universe(1)
        universe.broker.fill("orders", range(10), partitions=2)
        universe.broker.fill("other", range(10))
        universe.strike(Rewind(At(0), Service.BROKER, "orders/*", 3))
        universe.strike(Rewind(At(0), Service.BROKER, "absent/*", 3))
        universe.strike(Rewind(At(0), Service.DATABASE, "*", 3))
        lost = [WeatherStruck(verb="rewind", target=f"orders/{partition} 2-4") for partition in (0, 1)]
        assert [line.entry for line in universe.journal] == lost

    run(main)


def test_a_universe_without_a_broker_has_none() -> None:
    async def main() -> None:
        universe = Universe(1)
        universe.strike(Rewind(At(0)))
        await universe.settle()
        universe.calm()
        assert universe._outside == {}

    run(main)


# ── filling a topic ──────────────────────────────────────────────────────────────────────────


def test_records_go_round_the_partitions_or_by_their_key_and_come_when_it_is_time() -> None:
    async def main() -> None:
        universe = Universe(1)
        broker = universe.broker
        assert broker.fill("round", range(7), partitions=3) == [3, 2, 2]
        ends = broker.fill("keyed", range(20), partitions=3, key=lambda number: number % 2)
        assert sorted(ends) == [0, 10, 10]
        assert broker.fill("timed", "abc", at_ms=[None, 500, 900]) == [3]
        assert len(broker.committed("timed")) == 1
        await asyncio.sleep(0.6)
        assert len(broker.committed("timed")) == 2
        await asyncio.sleep(0.6)
        assert len(broker.committed("timed")) == 3
        assert [record.timestamp_ms for record in broker.read("timed", 0, 0, None, 9).records] == [0, 500, 900]

    run(main)


# ── the source ───────────────────────────────────────────────────────────────────────────────


async def read(universe: Universe, source: BrokerSource, resume_at: Any = None, most: int = 1_000) -> list[Chunk[Any]]:
    """What a fresh process reads of partition 0."""
    world = universe.world(f"reader {len(universe.processes)}")
    context = SourceContext(operator="orders", split="0", resume_at=resume_at, subtask=0, parallelism=1, world=world)
    chunks: list[Chunk[Any]] = []
    async for chunk in source.read(context):
        chunks.append(chunk)
        if len(chunks) >= most:
            break
    return chunks


def records(chunks: list[Chunk[Any]]) -> list[Any]:
    return [record for chunk in chunks for record in chunk.records]


def test_a_bounded_source_ends_where_the_topic_ended_at_first_sight_also_when_it_goes_on_later() -> None:
    async def main() -> None:
        universe = Universe(1)
        universe.broker.fill("orders", range(10))
        source = BrokerSource("orders", chunk_records=4)
        first = (await read(universe, source, most=1))[0]
        universe.broker.fill("orders", range(10, 20))
        assert records(await read(universe, source, first.resume_at)) == list(range(4, 10))
        assert records(await read(universe, source)) == list(range(20))

    run(main)


def test_a_source_reads_what_comes_later_up_to_the_end_that_it_was_given() -> None:
    async def main() -> None:
        universe = Universe(1)
        ends = universe.broker.fill("orders", range(10), at_ms=[100 * number for number in range(10)])
        assert records(await read(universe, BrokerSource("orders", until=ends))) == list(range(10))
        assert universe.now_ms() >= 900

    run(main)


def test_a_source_neither_reads_an_open_transaction_nor_past_it() -> None:
    async def main() -> None:
        universe = Universe(1)
        universe.broker.fill("rows", ["a"])
        client, producer = SimulatedBrokerClient(universe.world("p")), Producer("", 0, 0)
        producer = await client.init_transactions("id", 10_000)
        await client.append(producer, "rows", 0, [Message(b"\x61b")], sequence=0)
        universe.broker.fill("rows", ["c"])
        reading = asyncio.ensure_future(read(universe, BrokerSource("rows", until=[3])))
        await asyncio.sleep(5)
        assert not reading.done()
        await client.abort(producer)
        assert records(await reading) == ["a", "c"]

    run(main)


def test_a_position_that_is_kept_no_longer_is_an_error_that_names_topic_partition_and_offsets() -> None:
    """R015: never idle, never in silence."""

    async def main() -> None:
        universe = Universe(1)
        universe.broker.fill("orders", range(100))
        position = {"offset": 50, "epoch": 0, "end": 100}
        universe.broker.trim("orders", 0, 75)
        with pytest.raises(RestoreFailed, match=r"operator 'orders': orders/0: .* offset 50: .* it holds 75 to 99"):
            await read(universe, BrokerSource("orders"), position)
        skipping = BrokerSource("orders", on_truncated="skip")
        assert records(await read(universe, skipping, position)) == list(range(75, 100))
        told = [line.entry for line in universe.journal if isinstance(line.entry, FellBack)]
        assert [entry.taken for entry in told] == ["going on from offset 75"]

    run(main)


@pytest.mark.parametrize("grows_again", [False, True])
def test_a_topic_that_lost_what_was_read_is_an_error_that_names_topic_partition_and_offsets(
    grows_again: bool,
) -> None:
    async def main() -> None:
        universe = Universe(1)
        universe.broker.fill("orders", range(20))
        position = (await read(universe, BrokerSource("orders")))[-1].resume_at | {"end": None}
        universe.strike(Rewind(At(0), Service.BROKER, "orders/0", 5))
        if grows_again:
            universe.broker.fill("orders", range(100, 130))
        with pytest.raises(RestoreFailed, match=r"orders/0: .* offset 20: what was there .*has been lost"):
            await read(universe, BrokerSource("orders", until=None), position)
        if grows_again:
            skipping = BrokerSource("orders", until=None, on_truncated="skip")
            assert records(await read(universe, skipping, position, most=1)) == list(range(100, 130))

    run(main)


def test_a_source_asks_again_when_the_broker_does_not_answer() -> None:
    async def main() -> None:
        universe = Universe(1)
        universe.broker.fill("orders", range(20))
        universe.strike(FailRequests(At(0), Service.BROKER, "*", count=2))
        universe.strike(LoseAnswers(At(0), Service.BROKER, "read"))
        source = BrokerSource("orders", chunk_records=6)
        assert await source.discover(universe.world("p")) == ["0"]
        assert records(await read(universe, source)) == list(range(20))

    run(main)


def test_ends_must_fit_the_partitions() -> None:
    async def main() -> None:
        universe = Universe(1)
        universe.broker.fill("orders", range(20), partitions=3)
        with pytest.raises(InvalidJob, match="2 ends are given, and the topic has 3 partitions"):
            await BrokerSource("orders", until=[1, 2]).discover(universe.world("p"))

    run(main)


@pytest.mark.parametrize(
    "make",
    [
        lambda: BrokerSource(""),
        lambda: BrokerSource("t", chunk_records=0),
        lambda: BrokerSource("t", on_truncated="no"),  # type: ignore[arg-type]
        lambda: BrokerSink(""),
        lambda: BrokerSink("a/b"),
        lambda: BrokerSink("t", transaction_timeout=timedelta(milliseconds=5)),
        lambda: BrokerSink("t", on_lost="no"),  # type: ignore[arg-type]
    ],
)
def test_what_can_never_work_is_refused_at_once(make: Callable[[], object]) -> None:
    with pytest.raises(InvalidJob):
        make()


# ── the sink ─────────────────────────────────────────────────────────────────────────────────


def test_a_time_limit_that_does_not_cover_a_checkpoint_is_refused_at_the_start() -> None:
    """R109."""

    async def main() -> None:
        universe = Universe(1)
        sink = BrokerSink("rows", transaction_timeout=timedelta(seconds=5))
        with pytest.raises(InvalidConfig, match=r"'rows': a checkpoint may take 0:00:10 .* transaction after 0:00:05"):
            await writer_of(universe, sink=sink, commits_within=timedelta(seconds=10))
        await writer_of(universe, process="q", sink=sink, commits_within=timedelta(seconds=4))

    run(main)


def test_a_time_limit_that_the_broker_does_not_allow_is_refused_at_the_start() -> None:
    async def main() -> None:
        universe = Universe(1)
        universe.broker.longest_transaction_ms = 60_000
        with pytest.raises(InvalidConfig, match=r"transaction\.max\.timeout\.ms"):
            await writer_of(universe)

    run(main)


def test_a_transaction_that_became_too_old_fails_its_checkpoint_before_anything_relies_on_it() -> None:
    """R109."""

    async def main() -> None:
        universe = Universe(1)
        writer = await writer_of(universe, sink=BrokerSink("rows", transaction_timeout=timedelta(seconds=5)))
        await writer.write([f"row {number}" for number in range(200)])
        await asyncio.sleep(6)
        cut = writer.prepare(1)
        assert cut.rest is not None
        with pytest.raises(ProducerFenced, match="was it too old"):
            await cut.rest
        assert universe.broker.timed_out == ["s3%3A%2F%2Fhome%2Fjob:rows:0:1:0"]

    run(main)


def test_rows_that_the_broker_took_away_from_a_checkpoint_are_an_error_and_never_silence() -> None:
    async def main() -> None:
        universe = Universe(1)
        sink = BrokerSink("rows", transaction_timeout=timedelta(seconds=5))
        committables = await prepared(await writer_of(universe, sink=sink), 1, "a")
        await asyncio.sleep(6)
        later = await writer_of(universe, 2, sink=sink)
        with pytest.raises(TransactionLost, match=r"checkpoint 1 had made durable .* open for longer than 5000 ms"):
            await later.commit(committables, Permit(1, 2))
        skipping = await writer_of(
            universe, 3, sink=BrokerSink("rows", transaction_timeout=timedelta(seconds=5), on_lost="skip")
        )
        await skipping.commit(committables, Permit(1, 3))
        assert [line.entry.taken for line in universe.journal if isinstance(line.entry, FellBack)] == [
            "going on without the rows of a transaction that is lost"
        ]
        assert await visible(universe) == []

    run(main)


def test_rows_that_the_broker_had_confirmed_and_lost_are_an_error_that_names_topic_partition_and_offsets() -> None:
    async def main() -> None:
        universe = Universe(1)
        writer = await writer_of(universe)
        committables = await prepared(writer, 1, "a", "b", "c")
        universe.strike(Rewind(At(0), Service.BROKER, "rows/*", 2))
        with pytest.raises(TransactionLost, match="lost some of rows/0 offsets 0 to 2"):
            await writer.commit(committables, Permit(1, 1))
        assert await visible(universe) == []

    run(main)


def test_a_zombie_shows_nothing_of_its_own_and_its_late_commit_doubles_nothing() -> None:
    """R111: process 1 stalls before its commit, process 2 goes on from the same checkpoint, process 1 comes back."""

    async def main() -> None:
        universe = Universe(1)
        zombie = await writer_of(universe, 1)
        committables = await prepared(zombie, 1, "a", "b")
        await zombie.write(["never"])
        successor = await writer_of(universe, 2)
        await successor.commit(committables, Permit(1, 2))
        assert await successor.sweep(committables) == 0  # the zombie had not sent its row yet
        more = await prepared(successor, 2, "c")
        await zombie.commit(committables, Permit(1, 1))
        with pytest.raises(ProducerFenced):
            await prepared(zombie, 2, "never")
        await zombie.close()
        await successor.commit(more, Permit(2, 2))
        assert await visible(universe) == ["a", "b", "c"]

    run(main)


def test_a_sweep_aborts_what_older_generations_of_this_operator_left_and_nothing_else() -> None:
    async def main() -> None:
        universe = Universe(1)
        old = await writer_of(universe, 1)
        kept, left = await prepared(old, 1, "kept"), await prepared(old, 2, "left")
        foreign = SimulatedBrokerClient(universe.world("foreign"))
        producer = await foreign.init_transactions("s3%3A%2F%2Fhome%2Fjob:rows2:0:1:0", 1_000_000 - 100_000)
        await foreign.append(producer, "rows", 0, [Message(b"\x61f")], sequence=0)
        new = await writer_of(universe, 2)
        own = await prepared(new, 3, "own")
        assert await new.sweep(kept) == 1
        removed = [line.entry for line in universe.journal if isinstance(line.entry, OrphanRemoved)]
        assert removed == [OrphanRemoved(where="rows", name=left[0][0])]
        await foreign.commit(producer)
        await new.commit([*kept, *own], Permit(3, 2))
        assert sorted(await visible(universe)) == ["f", "kept", "own"]
        with pytest.raises(TransactionLost):
            await new.commit(left, Permit(3, 2))

    run(main)


def test_a_delivery_that_is_refused_fails_the_checkpoint_and_is_not_forgotten() -> None:
    """R022."""

    async def main() -> None:
        universe = Universe(1)
        writer = await writer_of(universe)
        await writer.write(list(range(10)))
        universe.strike(FailRequests(At(0), Service.BROKER, "append", count=4))
        cut = writer.prepare(1)
        assert cut.rest is not None
        with pytest.raises(StorageFailed, match="append was refused"):
            await cut.rest
        again = await prepared(writer, 2, 10)
        await writer.commit([*cut.committables, *again], Permit(2, 1))
        assert await visible(universe) == list(range(11))

    run(main)


@pytest.mark.parametrize("fault", [LoseAnswers, FailRequests])
def test_a_batch_that_is_sent_again_is_there_once_and_in_order(fault: type[FailRequests]) -> None:
    """R114."""

    async def main() -> None:
        universe = Universe(1)
        writer = await writer_of(universe)
        universe.strike(fault(At(0), Service.BROKER, "append", count=3))
        committables = await prepared(writer, 1, *range(450))
        await writer.commit(committables, Permit(1, 1))
        assert await visible(universe) == list(range(450))

    run(main)


def test_a_second_barrier_while_the_first_is_still_being_sent_sends_nothing_twice() -> None:
    async def main() -> None:
        universe = Universe(1)
        writer = await writer_of(universe)
        await writer.write(list(range(150)))
        first = writer.prepare(1)
        await writer.write(list(range(150, 190)))
        second = writer.prepare(2)
        assert first.rest is not None
        assert second.rest is not None
        await asyncio.gather(first.rest, second.rest)
        await writer.commit([*first.committables, *second.committables], Permit(2, 1))
        assert await visible(universe) == list(range(190))

    run(main)


def test_an_id_whose_initialisation_is_in_doubt_is_not_used() -> None:
    async def main() -> None:
        universe = Universe(1)
        universe.strike(LoseAnswers(At(0), Service.BROKER, "init", count=2))
        committables = await prepared(await writer_of(universe), 1, "a")
        assert committables[0][0].endswith(":2")

    run(main)


def test_rows_are_spread_by_their_key_and_keep_its_order() -> None:
    async def main() -> None:
        universe = Universe(1)
        sink = BrokerSink("rows", partitions=3, key=lambda number: number % 5)
        writer = await writer_of(universe, sink=sink)
        await writer.commit(await prepared(writer, 1, *range(50)), Permit(1, 1))
        rows = await visible(universe, sink)
        assert sorted(rows) == list(range(50))
        assert rows != sorted(rows)
        for key in range(5):
            assert [row for row in rows if row % 5 == key] == list(range(key, 50, 5))

    run(main)


@pytest.mark.parametrize("committable", [None, "text", ["id"], ["id", "1", 0], [1, 1, 0], ["id", 1, 0, 0]])
def test_what_is_no_transaction_is_refused(committable: Any) -> None:
    async def main() -> None:
        writer = await writer_of(Universe(1))
        with pytest.raises(CorruptObject, match="operator 'rows'"):
            await writer.commit([committable], Permit(1, 1))

    run(main)


def test_a_reader_that_was_told_too_little_gets_an_error_and_not_an_empty_answer() -> None:
    async def main() -> None:
        universe = Universe(1)
        universe.broker.fill("orders", range(5))
        client = SimulatedBrokerClient(universe.world("p"))
        with pytest.raises(LogTruncated, match=r"orders/0: .* offset 9"):
            await client.read("orders", 0, 9)

    run(main)


def test_weather_of_the_broker_compares_and_prints() -> None:
    fault: Weather = Stall(At(5), Service.BROKER, 7)
    assert fault == Stall(At(5), Service.BROKER, 7)
    assert "BROKER" in repr(fault)
