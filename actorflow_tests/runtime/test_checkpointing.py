"""One attempt's checkpoints, from the request to the commit: how they complete, fail, count, and are cleaned up."""

from __future__ import annotations

import asyncio
import re
from datetime import timedelta
from itertools import pairwise
from typing import Any

import pytest

import actorflow as af
from actorflow.abc.connectors import Prepared, SinkContext
from actorflow.connectors import generator, memory
from actorflow.errors import AbortReason
from actorflow.model import journal
from actorflow.simulation.weather import (
    After,
    At,
    FailObjects,
    Kill,
    LoseAnswer,
    OnObject,
    Raise,
    Slow,
    SlowObjects,
    TearObjects,
)
from actorflow.simulation.world import Universe
from actorflow_tests.runtime.support import (
    STORAGE,
    again,
    completed,
    count_job,
    counted,
    entries,
    environment,
    play,
    running_counts,
    seeds,
    start,
)


def word(index: int) -> str:
    return f"w{index % 7}"


def endless(sink: Any, *, per_second: float = 200, records: int | None = None) -> af.Job:
    return count_job(generator.generate(word, per_second=per_second, splits=2, records=records), sink)


def times(universe: Universe, entry: type[journal.Entry], /, **fields: Any) -> list[int]:
    return [
        line.at_ms
        for line in universe.journal
        if isinstance(line.entry, entry) and all(getattr(line.entry, name) == value for name, value in fields.items())
    ]


def folders(universe: Universe, job: str = "count") -> list[int]:
    """The ids of checkpoints that have a manifest that is one."""
    found = set()
    for name, data in universe.machine().platter.files().items():
        if name.startswith(f"{STORAGE}/{job}/chk-") and name.endswith("/_metadata") and b"aborted" not in data[:64]:
            found.add(int(name.split("chk-")[1].split("/")[0]))
    return sorted(found)


# ── when they come ───────────────────────────────────────────────────────────────────────────


def test_periodic_checkpoints_keep_their_rate_and_ids_grow_by_one() -> None:
    async def story(universe: Universe) -> None:
        async with environment(universe.world("p"), every_ms=100).run(endless(memory.collect())):
            await asyncio.sleep(1.05)
        triggered = times(universe, journal.CheckpointTriggered, kind="periodic")
        assert {later - one for one, later in pairwise(triggered)} == {100}
        assert len(triggered) >= 9
        assert completed(universe) == list(range(1, len(completed(universe)) + 1))

    play(story)


def test_inv_3_2_the_minimum_pause_is_kept_after_a_slow_checkpoint() -> None:
    async def story(universe: Universe) -> None:
        universe.expect(SlowObjects(At(150), "put_if_absent", "*chk-*", count=3, by_ms=250))
        settings = environment(universe.world("p"), every_ms=100, min_pause_ms=80)
        async with settings.run(endless(memory.collect())) as handle:
            await asyncio.sleep(2)
            await handle.cancel()
        ends = times(universe, journal.CheckpointCompleted)
        starts = times(universe, journal.CheckpointTriggered)
        for start_ms in starts[1:]:
            before = [end for end in ends if end <= start_ms]
            assert not before or start_ms - before[-1] >= 80
        assert entries(universe, journal.CheckpointRejected, reason="MINIMUM_PAUSE")

    play(story)


@pytest.mark.parametrize("most", [1, 3])
def test_inv_3_1_never_more_under_way_than_allowed(most: int) -> None:
    async def story(universe: Universe) -> None:
        sink = memory.collect()
        for at in (200, 500, 900):
            universe.expect(SlowObjects(At(at), "put*", "*chk-*", count=2, by_ms=180))
        settings = environment(universe.world("p"), every_ms=20, max_concurrent=most)
        async with settings.run(endless(sink, records=300)) as handle:
            await handle.wait()
        under_way = highest = 0
        for line in universe.journal:
            under_way += isinstance(line.entry, journal.CheckpointTriggered)
            under_way -= isinstance(line.entry, journal.CheckpointCompleted | journal.CheckpointAborted)
            highest = max(highest, under_way)
        assert highest == most
        assert sorted(sink.rows) == running_counts(map(word, range(300)))

    play(story)


def test_a_checkpoint_that_is_asked_for_answers_with_where_it_lies_and_others_may_ask_at_once() -> None:
    async def story(universe: Universe) -> None:
        async with environment(universe.world("p")).run(endless(memory.collect())) as handle:
            await asyncio.sleep(0.1)
            infos = await asyncio.gather(*(handle.checkpoint() for _ in range(3)))
            infos.sort(key=lambda info: info.checkpoint_id)
            assert [info.checkpoint_id for info in infos] == [1, 2, 3]
            assert infos[-1].path == f"{STORAGE}/count/chk-3"
            assert infos[-1].kind == "requested"
            assert handle.status.last_checkpoint == infos[-1]
            assert handle.progress.checkpoints_completed == 3
            await asyncio.sleep(0.5)
            assert handle.status.checkpoint_age_ms is not None
            assert handle.status.checkpoint_age_ms >= 500

    play(story)


# ── how they fail ────────────────────────────────────────────────────────────────────────────


def test_inv_3_9_a_checkpoint_expires_at_its_timeout_and_the_next_one_takes_the_next_id() -> None:
    async def story(universe: Universe) -> None:
        sink = memory.collect()
        universe.expect(Slow(After("CheckpointTriggered", occurrence=3), "count", by_ms=500, for_ms=20))
        settings = environment(universe.world("p"), every_ms=100, timeout_ms=150, tolerable_failures=9)
        async with settings.run(endless(sink, records=300)) as handle:
            await handle.wait()
        aborted = entries(universe, journal.CheckpointAborted)[0]
        assert aborted.reason == "EXPIRED"
        assert "not yet acknowledged: count/0" in aborted.detail
        [triggered] = times(universe, journal.CheckpointTriggered, checkpoint=aborted.checkpoint)
        assert times(universe, journal.CheckpointAborted)[0] == triggered + 150
        started = [entry.checkpoint for entry in entries(universe, journal.CheckpointTriggered)]
        assert started == list(range(1, len(started) + 1))
        assert sorted(sink.rows) == running_counts(map(word, range(300)))
        assert handle.status.restarts == 0

    for seed in seeds(3):
        play(story, seed)


@pytest.mark.parametrize("tolerated", [0, 1, 2])
def test_inv_3_8_one_more_failure_in_a_row_than_is_tolerated_restarts_the_job_and_a_success_resets(
    tolerated: int,
) -> None:
    async def story(universe: Universe) -> None:
        sink = memory.collect()

        def fail(first: int, count: int) -> None:
            """Let `count` checkpoints in a row fail, from the first on, by refusing what their actors write."""
            for number in range(first, first + count):
                universe.expect(
                    FailObjects(After("CheckpointTriggered", where={"checkpoint": number}), "put", "*chk-*", count=1)
                )

        fail(3, tolerated)
        fail(3 + tolerated + 1, tolerated)
        fail(20, tolerated + 1)
        settings = af.Environment(
            checkpoints=af.Checkpoints(
                storage=STORAGE, every=timedelta(milliseconds=40), tolerable_failures=tolerated, inline_below=0
            ),
            restart=again(),
            world=universe.world("p"),
        )
        async with settings.run(endless(sink, records=400)) as handle:
            await handle.wait()
        assert handle.status.restarts == 1
        [restarting] = times(universe, journal.JobRestarting)
        failures = [entry.checkpoint for entry in entries(universe, journal.CheckpointAborted)]
        assert [one for one in failures if one < 20] == [
            *range(3, 3 + tolerated),
            *range(4 + tolerated, 4 + 2 * tolerated),
        ]
        assert all(at <= restarting for at in times(universe, journal.CheckpointAborted, checkpoint=20 + tolerated))
        assert sorted(sink.rows) == running_counts(map(word, range(400)))

    play(story)


def test_a_requested_checkpoint_that_fails_says_why_and_the_job_goes_on_when_that_is_tolerated() -> None:
    async def story(universe: Universe) -> None:
        settings = af.Environment(
            checkpoints=af.Checkpoints(storage=STORAGE, tolerable_failures=3, inline_below=0), world=universe.world("p")
        )
        async with settings.run(endless(memory.collect())) as handle:
            await asyncio.sleep(0.1)
            universe.expect(FailObjects(At(0), "put", "*chk-*", count=1))
            await asyncio.sleep(0)
            with pytest.raises(af.CheckpointAborted) as caught:
                await handle.checkpoint()
            assert caught.value.reason is AbortReason.STORAGE_FAILED
            assert caught.value.checkpoint_id == 1
            assert "refused by the weather" in caught.value.detail
            assert "checkpoint 1 was aborted" in handle.status.waiting_for
            assert (await handle.checkpoint()).checkpoint_id == 2
            assert handle.status.waiting_for == ""
            assert handle.progress.checkpoints_failed == 1

    play(story)


@pytest.mark.parametrize("fault", [FailObjects, LoseAnswer, TearObjects])
@pytest.mark.parametrize("operation", ["put", "put_if_absent", "list", "get", "delete"])
def test_a_store_that_fails_now_and_then_costs_checkpoints_and_never_a_row(fault: Any, operation: str) -> None:
    async def story(universe: Universe) -> None:
        sink = memory.collect()
        for at in range(20, 900, 110):
            universe.expect(fault(At(at), operation, count=1 + at % 3))
        settings = af.Environment(
            checkpoints=af.Checkpoints(
                storage=STORAGE,
                every=timedelta(milliseconds=40),
                retained=2,
                inline_below=0,
                tolerable_failures=2,
            ),
            restart=again(),
            parallelism=2,
            world=universe.world("p"),
        )
        async with settings.run(endless(sink, records=120)) as handle:
            assert await handle.wait() is af.JobStatus.FINISHED
        assert sorted(sink.rows) == running_counts(map(word, range(120)))

    play(story)


def test_inv_3_6_every_checkpoint_that_started_ends_once_also_when_its_attempt_does() -> None:
    async def story(universe: Universe) -> None:
        for occurrence in (3, 8):
            universe.expect(Raise(After("BarrierArrived", occurrence=occurrence), "count"))
        settings = environment(universe.world("p"), every_ms=30, parallelism=2, restart=again())
        async with settings.run(endless(memory.collect(), records=200)) as handle:
            await handle.wait()
        assert handle.status.restarts == 2
        started = [entry.checkpoint for entry in entries(universe, journal.CheckpointTriggered)]
        ended = completed(universe) + [entry.checkpoint for entry in entries(universe, journal.CheckpointAborted)]
        assert sorted(started) == sorted(ended)
        assert started == sorted(set(started)), "INV-3.3"

    for seed in seeds(4):
        play(story, seed)


def test_r003_an_input_that_ends_while_its_barrier_is_awaited_holds_up_nothing() -> None:
    """Two inputs; one ends before its barrier: the checkpoint completes, and so does the one after it."""

    async def story(universe: Universe) -> None:
        sink = memory.collect()
        job = af.Job("job")
        short = job.read(generator.numbers(3, per_second=100), name="short")
        long = job.read(generator.numbers(100, per_second=200), name="long")
        short.union(long).rebalance().write(sink, name="write", parallelism=2)
        async with environment(universe.world("p"), every_ms=10).run(job) as handle:
            await handle.wait()
        assert sorted(sink.rows) == sorted([*range(3), *range(100)])
        assert entries(universe, journal.CheckpointAborted) == []
        assert len(completed(universe)) > 20

    for seed in seeds(4):
        play(story, seed)


def test_r003_a_checkpoint_that_is_cancelled_half_way_ends_once_and_leaves_no_file() -> None:
    async def story(universe: Universe) -> None:
        sink = memory.collect()
        universe.expect(Slow(After("BarrierArrived", occurrence=5), "count", by_ms=300, for_ms=10))
        settings = af.Environment(
            checkpoints=af.Checkpoints(
                storage=STORAGE,
                every=timedelta(milliseconds=50),
                timeout=timedelta(milliseconds=100),
                tolerable_failures=5,
                inline_below=0,
            ),
            parallelism=2,
            world=universe.world("p"),
            restart=af.NoRestart(),
        )
        async with settings.run(endless(sink, records=200)) as handle:
            await handle.wait()
        aborted = [entry.checkpoint for entry in entries(universe, journal.CheckpointAborted)]
        assert aborted
        assert len(aborted) == len(set(aborted))
        assert not {*aborted} & {*completed(universe)}
        left = [name for name in universe.machine().platter.files() if "/chk-" in name]
        assert left == []
        assert sorted(sink.rows) == running_counts(map(word, range(200)))

    for seed in seeds(4):
        play(story, seed)


def test_r001_what_was_written_after_the_barrier_of_a_failed_checkpoint_is_in_the_next_one() -> None:
    async def story(universe: Universe) -> None:
        sink = memory.collect()
        universe.expect(FailObjects(After("CheckpointTriggered", where={"checkpoint": 1}), "put", "*chk-*", count=1))
        universe.expect(Kill(After("ManifestWritten", where={"checkpoint": 2})))
        settings = af.Environment(
            checkpoints=af.Checkpoints(
                storage=STORAGE, every=timedelta(milliseconds=50), tolerable_failures=1, inline_below=0
            )
        )
        process = await start(universe, endless(sink, records=100), settings)
        assert (await process.wait()).ending == "killed"
        assert [entry.checkpoint for entry in entries(universe, journal.CheckpointAborted)] == [1]
        process = await start(universe, endless(sink, records=100), settings)
        assert (await process.wait()).result() is af.JobStatus.FINISHED
        assert sorted(sink.rows) == running_counts(map(word, range(100)))
        assert [entry.restored_checkpoint for entry in entries(universe, journal.JobStarted)] == [None, 2]

    for seed in seeds(4):
        play(story, seed)


def test_r004_a_checkpoint_that_not_everybody_acknowledged_is_not_restored() -> None:
    async def story(universe: Universe) -> None:
        sink = memory.collect()
        universe.expect(Kill(After("CheckpointAcknowledged", where={"checkpoint": 1}, occurrence=1)))
        process = await start(universe, endless(sink, records=90), environment(every_ms=30, parallelism=3))
        assert (await process.wait()).ending == "killed"
        process = await start(universe, endless(sink, records=90), environment(every_ms=30, parallelism=3))
        await process.wait()
        assert [entry.restored_checkpoint for entry in entries(universe, journal.JobStarted)] == [None, None]
        assert sum(counted(sink.rows).values()) == 90
        assert sorted(sink.rows) == running_counts(map(word, range(90)))

    for seed in seeds(4):
        play(story, seed)


@pytest.mark.parametrize("moment", ["before", "during", "torn", "unanswered", "after"])
def test_a_kill_at_the_manifest_is_told_by_what_storage_holds(moment: str) -> None:
    async def story(universe: Universe) -> None:
        sink = memory.collect()
        universe.expect(Kill(OnObject("put_if_absent", "*chk-*/_metadata", moment, occurrence=2)))
        for _ in range(2):
            process = await start(universe, endless(sink, records=150), environment(every_ms=40, parallelism=2))
            await process.wait()
        restored = entries(universe, journal.JobStarted)[1].restored_checkpoint
        if moment in ("unanswered", "after"):
            assert restored == 2
        elif moment in ("before", "torn"):
            assert restored == 1
        else:
            assert restored in (1, 2)
        assert sorted(sink.rows) == running_counts(map(word, range(150)))

    for seed in seeds(4):
        play(story, seed)


# ── what is kept of them ─────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("retained", [1, 3])
def test_inv_3_4_the_newest_are_kept_and_the_others_go(retained: int) -> None:
    async def story(universe: Universe) -> None:
        async with environment(universe.world("p"), every_ms=50, retained=retained).run(endless(memory.collect())):
            await asyncio.sleep(1)
        assert folders(universe) == completed(universe)[-retained:]
        subsumed = [entry.checkpoint for entry in entries(universe, journal.CheckpointSubsumed)]
        assert subsumed == completed(universe)[:-retained]
        discarded = [entry.checkpoint for entry in entries(universe, journal.CheckpointDiscarded)]
        assert sorted(discarded) == subsumed, "the end of the job waited for what was being deleted"

    for seed in seeds(4):
        play(story, seed)


def test_retained_checkpoints_of_an_earlier_life_count_and_are_subsumed_in_turn() -> None:
    async def story(universe: Universe) -> None:
        for life in range(3):
            settings = environment(universe.world(f"p{life}"), retained=2)
            async with settings.run(endless(memory.collect())) as handle:
                await asyncio.sleep(0.05)
                await handle.checkpoint()
                await asyncio.sleep(0.05)
                await handle.cancel()
            assert folders(universe) == completed(universe)[-2:]

    play(story)


def test_r010_ids_go_on_after_failed_checkpoints_and_restores() -> None:
    async def story(universe: Universe) -> None:
        settings = af.Checkpoints(storage=STORAGE, tolerable_failures=5, retained=2, inline_below=0)
        world = universe.world("a")
        async with af.Environment(checkpoints=settings, world=world).run(endless(memory.collect())) as handle:
            await asyncio.sleep(0.05)
            for _ in range(4):
                await handle.checkpoint()
            universe.expect(FailObjects(At(0), "put", "*chk-*", count=1))
            await asyncio.sleep(0)
            with pytest.raises(af.CheckpointAborted):
                await handle.checkpoint()
            await asyncio.sleep(0.1)
            await handle.cancel()
        before = {name: data for name, data in universe.machine().platter.files().items() if "/chk-4/" in name}
        async with af.Environment(checkpoints=settings, world=universe.world("b")).run(
            endless(memory.collect())
        ) as handle:
            assert handle.status.restored_checkpoint == 4
            info = await handle.checkpoint()
            assert info.checkpoint_id > 5
            after = {name: data for name, data in universe.machine().platter.files().items() if "/chk-4/" in name}
            assert before == after
            await handle.cancel()

    play(story)


def test_the_place_of_an_aborted_checkpoint_is_held_until_a_later_one_completes() -> None:
    async def story(universe: Universe) -> None:
        settings = af.Environment(
            checkpoints=af.Checkpoints(storage=STORAGE, tolerable_failures=5, inline_below=0), world=universe.world("p")
        )
        async with settings.run(endless(memory.collect())) as handle:
            await asyncio.sleep(0.05)
            universe.expect(FailObjects(At(0), "put", "*chk-*", count=1))
            await asyncio.sleep(0)
            with pytest.raises(af.CheckpointAborted):
                await handle.checkpoint()
            await asyncio.sleep(0.1)
            names = [name for name in universe.machine().platter.files() if "/chk-" in name]
            assert names == [f"{STORAGE}/count/chk-1/_metadata"]
            await handle.checkpoint()
            await asyncio.sleep(0.1)
            names = [name for name in universe.machine().platter.files() if "/chk-1/" in name]
            assert names == []

    play(story)


# ── at least once ────────────────────────────────────────────────────────────────────────────


def test_at_least_once_never_blocks_a_channel_and_loses_nothing_over_kills() -> None:
    async def story(universe: Universe) -> None:
        rows: list[Any] = []
        sink = memory.append(rows)
        settings = environment(every_ms=20, parallelism=2, guarantee=af.Guarantee.AT_LEAST_ONCE)
        for _ in range(3):
            process = await start(universe, endless(sink, records=300), settings)
            await asyncio.sleep(universe.chance.between("life", 100, 500) / 1_000)
            process.kill()
            await process.wait()
        process = await start(universe, endless(sink, records=300), settings)
        assert (await process.wait()).result() is af.JobStatus.FINISHED
        wanted = counted(running_counts(map(word, range(300))))
        got = counted(rows)
        assert all(got[key] >= count for key, count in wanted.items())
        assert {key for key, _ in rows} == {*wanted}

    for seed in seeds(4):
        play(story, seed)


def test_at_least_once_without_failures_is_exactly_once() -> None:
    async def story(universe: Universe) -> None:
        sink = memory.collect()
        settings = environment(
            universe.world("p"), every_ms=10, parallelism=3, guarantee=af.Guarantee.AT_LEAST_ONCE, max_concurrent=3
        )
        async with settings.run(endless(sink, records=300)) as handle:
            await handle.wait()
        assert sorted(sink.rows) == running_counts(map(word, range(300)))
        assert len(completed(universe)) > 20

    play(story, batch_us=500)


# ── the end ──────────────────────────────────────────────────────────────────────────────────


def test_the_final_checkpoint_is_taken_at_once_when_all_wait_for_it_and_tried_again_when_it_fails() -> None:
    async def story(universe: Universe) -> None:
        sink = memory.collect()
        universe.expect(FailObjects(After("CheckpointTriggered", where={"kind": "final"}), "put", "*chk-*", count=1))
        settings = af.Environment(
            checkpoints=af.Checkpoints(storage=STORAGE, tolerable_failures=3, inline_below=0), world=universe.world("p")
        )
        async with settings.run(endless(sink, records=40)) as handle:
            await handle.wait()
        assert [entry.kind for entry in entries(universe, journal.CheckpointTriggered)] == ["final", "final"]
        first, second = times(universe, journal.CheckpointTriggered)
        assert 500 <= second - first < 600
        assert sorted(sink.rows) == running_counts(map(word, range(40)))

    play(story)


def test_an_interval_of_hours_does_not_hold_up_the_end_of_a_bounded_job() -> None:
    async def story(universe: Universe) -> None:
        sink = memory.collect()
        async with environment(universe.world("p"), every_ms=3_600_000).run(endless(sink, records=40)) as handle:
            await handle.wait()
        assert universe.now_ms() < 1_000
        assert sorted(sink.rows) == running_counts(map(word, range(40)))

    play(story)


def test_what_prepares_slowly_is_waited_for_by_its_checkpoint_and_by_nobody_else() -> None:
    async def story(universe: Universe) -> None:
        class SlowToPrepare(memory.Collect[Any]):
            async def open(self, context: SinkContext) -> Any:
                writer: Any = await super().open(context)
                prepare = writer.prepare

                def slow(checkpoint_id: int) -> Prepared:
                    return Prepared(prepare(checkpoint_id).committables, asyncio.sleep(0.3))

                writer.prepare = slow
                return writer

        sink = SlowToPrepare([])
        async with environment(universe.world("p")).run(endless(sink, records=200)) as handle:
            await asyncio.sleep(0.1)
            asking = asyncio.ensure_future(handle.checkpoint())
            await asyncio.sleep(0.1)
            assert sink.rows == []
            read = handle.progress.records_written
            assert read > 25
            assert 300 <= (await asking).duration_ms < 400
            await handle.wait()
        assert sorted(sink.rows) == running_counts(map(word, range(200)))

    play(story)


def test_the_status_names_the_actors_that_a_checkpoint_waits_for() -> None:
    async def story(universe: Universe) -> None:
        universe.expect(Slow(After("CheckpointTriggered"), "write", by_ms=5_000, for_ms=10))
        async with environment(universe.world("p"), every_ms=100).run(endless(memory.collect())) as handle:
            await asyncio.sleep(2)
            waiting_for = handle.status.waiting_for
            assert re.fullmatch(r"checkpoint \d, for 1\.\d s, waits for count/0", waiting_for), waiting_for
            await handle.cancel()

    play(story)
