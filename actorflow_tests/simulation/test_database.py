from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from actorflow.abc.connectors import SinkContext, TransactionalWriter
from actorflow.errors import CorruptObject, Fenced, InvalidConfig, InvalidJob, ObjectMissing, StorageFailed
from actorflow.model.journal import OrphanRemoved, WeatherStruck
from actorflow.simulation import DatabaseSink, Severed, Universe, run
from actorflow.simulation.contracts_connectors import Permit
from actorflow.simulation.database_client import SimulatedDatabaseClient
from actorflow.simulation.database_seam import Locked, Row, TransactionGone
from actorflow.simulation.database_sink import LEDGER_TABLE
from actorflow.simulation.weather import (
    At,
    FailRequests,
    Kill,
    LoseAnswers,
    Moment,
    OnDatabase,
    Partition,
    Rewind,
    Service,
    Stall,
)

SEEDS = range(20)

HOME = "s3://home/job"


def client_of(universe: Universe, process: str | None = None) -> SimulatedDatabaseClient:
    """The connection of a fresh process."""
    return SimulatedDatabaseClient(universe.world(process or f"client {len(universe.processes)}"))


def rows(universe: Universe, table: str = "rows") -> list[bytes]:
    """What is committed."""
    return [row.value for row in universe.database.visible(table)]


async def writer_of(
    universe: Universe,
    generation: int = 1,
    process: str | None = None,
    *,
    sink: DatabaseSink | None = None,
    home: str = HOME,
    operator: str = "rows",
) -> TransactionalWriter[Any]:
    """The writer of a subtask, as a fresh process opens it."""
    world = universe.world(process or f"writer {len(universe.processes)}")
    context = SinkContext(operator=operator, subtask=0, parallelism=1, generation=generation, home=home, world=world)
    return await (sink or DatabaseSink("rows")).open(context)


async def prepared(writer: TransactionalWriter[Any], checkpoint_id: int, *records: Any) -> list[Any]:
    """Write some rows and cut."""
    await writer.write(list(records))
    cut = writer.prepare(checkpoint_id)
    if cut.rest is not None:
        await cut.rest
    return cut.committables


async def visible(universe: Universe, sink: DatabaseSink | None = None) -> list[Any]:
    """What an outsider sees of the sink's table."""
    return await (sink or DatabaseSink("rows")).visible(universe.world(f"outsider {len(universe.processes)}"))


# ── statements in the weather ────────────────────────────────────────────────────────────────


def test_a_statement_that_did_not_end_well_breaks_its_transaction() -> None:
    async def main() -> None:
        universe = Universe(1)
        client = client_of(universe)
        await client.create_table("rows")
        transaction = await client.begin()
        await transaction.insert("rows", [Row(b"a")])
        universe.strike(LoseAnswers(At(0), Service.DATABASE, "insert"))
        with pytest.raises(StorageFailed, match="the answer to insert was lost"):
            await transaction.insert("rows", [Row(b"b")])
        with pytest.raises(TransactionGone, match="an earlier insert did not end well"):
            await transaction.commit()
        await transaction.rollback()
        assert rows(universe) == []
        assert universe.journal[0].entry == WeatherStruck(verb="lose_answer", target="rows")

    run(main)


def test_a_commit_whose_answer_is_lost_took_effect() -> None:
    async def main() -> None:
        universe = Universe(1)
        client = client_of(universe)
        await client.create_table("rows")
        transaction = await client.begin()
        await transaction.insert("rows", [Row(b"a")])
        universe.strike(LoseAnswers(At(0), Service.DATABASE, "commit"))
        with pytest.raises(StorageFailed, match="the answer to commit was lost"):
            await transaction.commit()
        await transaction.rollback()
        assert rows(universe) == [b"a"]

    run(main)


@pytest.mark.parametrize(("moment", "outcomes"), [(Moment.BEFORE, {0}), (Moment.DURING, {0, 1}), (Moment.AFTER, {1})])
def test_a_commit_of_a_process_that_dies_arrives_or_does_not(moment: Moment, outcomes: set[int]) -> None:
    async def main(seed: int) -> int:
        universe = Universe(seed)
        client = client_of(universe, "p")
        await client.create_table("rows")
        transaction = await client.begin()
        await transaction.insert("rows", [Row(b"a", b"key")])
        universe.expect(Kill(OnDatabase("commit", "p", moment), "p"))
        with pytest.raises(Severed):
            await transaction.commit()
            await asyncio.sleep(0.001)
            await client.rows("rows")
        await universe.settle()
        count = len(rows(universe))
        again = await client_of(universe).begin()  # whatever became of it, it holds nothing any more
        await again.upsert("rows", [Row(b"b", b"key")])
        await again.commit()
        return count

    assert {run(main, seed, seed=seed) for seed in SEEDS} == outcomes


def test_a_partition_from_the_database_alone() -> None:
    async def main() -> None:
        universe = Universe(1)
        universe.broker.fill("orders", [1])
        world = universe.world("p")
        client = SimulatedDatabaseClient(world)
        await client.create_table("rows")
        universe.strike(Partition(At(0), "p", 60_000, service=Service.DATABASE))
        with pytest.raises(StorageFailed, match="a partition"):
            await client.begin()
        await world.objects.open("s3://bucket").put("reachable", b"yes")

    run(main)


def test_a_stalled_database_answers_when_the_stall_is_over() -> None:
    async def main() -> None:
        universe = Universe(1)
        client = client_of(universe)
        universe.strike(Stall(At(0), Service.DATABASE, 800))
        await client.create_table("rows")
        assert 800 <= universe.now_ms() < 900

    run(main)


def test_a_cancelled_statement_closes_its_connection_and_lets_others_go_on() -> None:
    async def main() -> None:
        universe = Universe(1)
        client = client_of(universe)
        await client.create_table("rows")
        first, second = await client.begin(), await client.begin()
        await first.insert("rows", [Row(b"a", b"key")])
        writing = asyncio.ensure_future(first.insert("rows", [Row(b"b")]))
        await asyncio.sleep(0)
        writing.cancel()
        await asyncio.wait([writing])
        await second.insert("rows", [Row(b"c", b"key")])
        await second.commit()
        assert rows(universe) == [b"c"]
        assert universe.now_ms() < 1_000

    run(main)


def test_a_rewind_undoes_the_last_transactions_that_were_committed() -> None:
    async def main() -> None:
        universe = Universe(1)
        client = client_of(universe)
        await client.create_table("rows")
        for number in range(5):
            transaction = await client.begin()
            await transaction.upsert("rows", [Row(b"%d" % number, b"key"), Row(b"%d" % number, b"%d" % number)])
            await transaction.commit()
        held = await client.begin()
        await held.insert("rows", [Row(b"open", b"open")])
        universe.strike(Rewind(At(0), Service.DATABASE, "*", 2))
        assert rows(universe) == [b"2", b"0", b"1", b"2"]
        with pytest.raises(TransactionGone, match="set back"):
            await held.commit()
        assert universe.journal[0].entry == WeatherStruck(verb="rewind", target="2 transactions")

    run(main)


def test_prepared_transactions_are_as_many_as_the_setting_says() -> None:
    async def main() -> None:
        universe = Universe(1)
        universe.database.most_prepared = 1
        client = client_of(universe)
        await client.create_table("rows")
        for gid in ("1", "2"):
            transaction = await client.begin()
            await transaction.insert("rows", [Row(gid.encode())])
            if gid == "2":
                with pytest.raises(StorageFailed, match="max_prepared_transactions"):
                    await transaction.prepare(gid)
            else:
                await transaction.prepare(gid)
        assert await client.prepared("") == ["1"]
        universe.database.most_prepared = 0
        transaction = await client.begin()
        with pytest.raises(InvalidConfig, match="max_prepared_transactions"):
            await transaction.prepare("3")

    run(main)


def test_a_universe_without_a_database_has_none() -> None:
    async def main() -> None:
        universe = Universe(1)
        universe.strike(Rewind(At(0), Service.DATABASE))
        await universe.settle()
        assert universe._outside == {}

    run(main)


# ── the sink ─────────────────────────────────────────────────────────────────────────────────

WAYS = [False, True]


@pytest.mark.parametrize("prepare", WAYS)
def test_a_commit_whose_answer_is_lost_is_found_in_the_ledger(prepare: bool) -> None:
    async def main() -> None:
        universe = Universe(1)
        writer = await writer_of(universe, sink=DatabaseSink("rows", prepare=prepare))
        committables = await prepared(writer, 1, "a", "b")
        universe.strike(LoseAnswers(At(0), Service.DATABASE, "commit*"))
        with pytest.raises(StorageFailed):
            await writer.commit(committables, Permit(1, 1))
        assert await visible(universe) == ["a", "b"]
        await writer.commit(committables, Permit(1, 1))
        assert await visible(universe) == ["a", "b"]

    run(main)


@pytest.mark.parametrize("prepare", WAYS)
def test_a_zombie_doubles_nothing_and_writes_nothing_of_its_own(prepare: bool) -> None:
    """R111: process 1 stalls before its commit, process 2 goes on from the same checkpoint, process 1 comes back."""

    async def main() -> None:
        universe = Universe(1)
        sink = DatabaseSink("rows", prepare=prepare)
        zombie = await writer_of(universe, 1, sink=sink)
        committables = await prepared(zombie, 1, "a", "b")
        successor = await writer_of(universe, 2, sink=sink)
        await successor.commit(committables, Permit(1, 2))
        await successor.sweep(committables)
        if prepare:
            await zombie.commit(committables, Permit(1, 1))
            with pytest.raises(Fenced, match="generation 2 writes to rows now"):
                await prepared(zombie, 2, "never")
        else:
            with pytest.raises(Fenced, match="generation 2 writes to rows now"):
                await zombie.commit(committables, Permit(1, 1))
        await successor.commit(await prepared(successor, 2, "c"), Permit(2, 2))
        assert await visible(universe) == ["a", "b", "c"]

    run(main)


def test_an_older_generation_that_opens_late_takes_nothing_over() -> None:
    async def main() -> None:
        universe = Universe(1)
        new = await writer_of(universe, 2)
        old = await writer_of(universe, 1)
        with pytest.raises(Fenced):
            await old.commit(await prepared(old, 1, "never"), Permit(1, 1))
        await new.commit(await prepared(new, 1, "a"), Permit(1, 2))
        assert await visible(universe) == ["a"]

    run(main)


def test_homes_in_memory_begin_again_with_the_same_generation_and_checkpoint_and_lose_nothing() -> None:
    async def main() -> None:
        universe = Universe(1)
        for run_number in range(3):
            writer = await writer_of(universe, 1, home="memory of process p.1: job")
            await writer.commit(await prepared(writer, 1, run_number), Permit(1, 1))
        assert await visible(universe) == [0, 1, 2]

    run(main)


@pytest.mark.parametrize("prepare", WAYS)
@pytest.mark.parametrize("lost", [1, 2, 3])
def test_a_database_that_forgot_what_was_committed_is_an_error_and_never_silence(prepare: bool, lost: int) -> None:
    async def main() -> None:
        universe = Universe(1)
        sink = DatabaseSink("rows", prepare=prepare)
        writer = await writer_of(universe, sink=sink)
        for checkpoint_id in range(1, 5):
            await writer.commit(await prepared(writer, checkpoint_id, checkpoint_id), Permit(checkpoint_id, 1))
        universe.strike(Rewind(At(0), Service.DATABASE, "*", lost))
        assert await visible(universe) == list(range(1, 5 - lost))
        with pytest.raises(ObjectMissing, match=r"committed to rows are gone: .* actorflow_ledger"):
            await writer.commit(await prepared(writer, 5, 5), Permit(5, 1))

    run(main)


def test_a_commit_that_only_the_newest_checkpoint_needs_is_made_up_for_when_it_was_forgotten() -> None:
    async def main() -> None:
        universe = Universe(1)
        writer = await writer_of(universe)
        await writer.commit(await prepared(writer, 1, "a"), Permit(1, 1))
        newest = await prepared(writer, 2, "b")
        await writer.commit(newest, Permit(2, 1))
        universe.strike(Rewind(At(0), Service.DATABASE, "*", 1))
        later = await writer_of(universe, 2)
        await later.commit(newest, Permit(2, 2))
        assert await visible(universe) == ["a", "b"]
        universe.strike(Rewind(At(0), Service.DATABASE, "*", 2))  # the commit and the new owner
        with pytest.raises(ObjectMissing):  # the chain goes on over generations
            await later.commit(await prepared(later, 3, "c"), Permit(3, 2))

    run(main)


def test_rows_with_keys_take_each_others_place() -> None:
    async def main() -> None:
        universe = Universe(1)
        writer = await writer_of(universe, sink=DatabaseSink("rows", key=lambda row: row[0]))
        await writer.commit(await prepared(writer, 1, ("a", 1), ("b", 1), ("a", 2)), Permit(1, 1))
        await writer.commit(await prepared(writer, 2, ("b", 2), ("c", 2)), Permit(2, 1))
        assert await visible(universe) == [("a", 2), ("b", 2), ("c", 2)]

    run(main)


def test_a_sweep_rolls_back_what_older_generations_prepared_and_leaves_what_belongs_to_others() -> None:
    """R116."""

    async def main() -> None:
        universe = Universe(1)
        sink = DatabaseSink("rows", prepare=True)
        old = await writer_of(universe, 1, sink=sink)
        kept, left = await prepared(old, 1, "kept"), await prepared(old, 2, "left")
        foreign = await writer_of(universe, 1, sink=sink, operator="foreign")
        theirs = await prepared(foreign, 1, "theirs")
        new = await writer_of(universe, 2, sink=sink)
        own = await prepared(new, 3, "own")
        assert await new.sweep(kept) == 1
        removed = [line.entry for line in universe.journal if isinstance(line.entry, OrphanRemoved)]
        assert removed == [OrphanRemoved(where="rows", name=left[0][0])]
        await new.commit([*kept, *own], Permit(3, 2))
        await foreign.commit(theirs, Permit(1, 1))
        assert await visible(universe) == ["kept", "own", "theirs"]
        with pytest.raises(ObjectMissing, match="is gone, and its rows are not in rows"):
            await new.commit(left, Permit(3, 2))
        assert await client_of(universe).prepared("") == []

    run(main)


def test_without_prepared_transactions_the_prepared_way_is_refused_at_the_start_by_the_settings_name() -> None:
    """R116."""

    async def main() -> None:
        universe = Universe(1)
        universe.database.most_prepared = 0
        with pytest.raises(InvalidConfig, match=r"operator 'rows': .* max_prepared_transactions"):
            await writer_of(universe, sink=DatabaseSink("rows", prepare=True))
        await writer_of(universe)

    run(main)


@pytest.mark.parametrize("prepare", WAYS)
def test_a_group_that_fails_in_the_middle_is_committed_in_order(prepare: bool) -> None:
    """R117."""

    async def main() -> None:
        universe = Universe(1)
        writer = await writer_of(universe, sink=DatabaseSink("rows", prepare=prepare))
        committables = [one for number in (1, 2, 3) for one in await prepared(writer, number, number)]
        universe.strike(FailRequests(At(0), Service.DATABASE, "commit*", count=2))
        seen = []
        for _ in range(3):
            try:
                await writer.commit(committables, Permit(3, 1))
            except StorageFailed:
                seen.append(await visible(universe))
        assert seen == [[], []]
        assert await visible(universe) == [1, 2, 3]

    run(main)


def test_a_second_barrier_while_the_first_is_still_being_prepared_prepares_nothing_twice() -> None:
    async def main() -> None:
        universe = Universe(1)
        writer = await writer_of(universe, sink=DatabaseSink("rows", prepare=True))
        await writer.write([1])
        first = writer.prepare(1)
        await writer.write([2])
        second = writer.prepare(2)
        assert first.rest is not None
        assert second.rest is not None
        await asyncio.gather(first.rest, second.rest)
        await writer.commit([*first.committables, *second.committables], Permit(2, 1))
        assert await visible(universe) == [1, 2]
        assert universe.now_ms() < 1_000

    run(main)


def test_a_row_that_somebody_holds_delays_a_commit_and_fails_it_after_a_while() -> None:
    async def main() -> None:
        universe = Universe(1)
        writer = await writer_of(universe, sink=DatabaseSink("rows", key=lambda row: row))
        committables = await prepared(writer, 1, "a")
        somebody = await client_of(universe).begin()
        await somebody.get("rows", committables[0][2][0][1])
        with pytest.raises(Locked):
            await writer.commit(committables, Permit(1, 1))
        await somebody.rollback()
        await writer.commit(committables, Permit(1, 1))
        assert await visible(universe) == ["a"]

    run(main)


@pytest.mark.parametrize("committable", [None, "text", ["name"], [1, None, []], ["name", None, [["a", "b", "c"]]]])
def test_what_is_no_row_is_refused(committable: Any) -> None:
    async def main() -> None:
        writer = await writer_of(Universe(1))
        with pytest.raises(CorruptObject, match="operator 'rows'"):
            await writer.commit([committable], Permit(1, 1))

    run(main)


@pytest.mark.parametrize(
    "make",
    [lambda: DatabaseSink(""), lambda: DatabaseSink(LEDGER_TABLE), lambda: DatabaseSink("t", key=str, prepare=True)],
)
def test_what_can_never_work_is_refused_at_once(make: Callable[[], object]) -> None:
    with pytest.raises(InvalidJob):
        make()
