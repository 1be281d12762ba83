"""The life of a job: its ends, its restarts, and what each leaves behind."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from datetime import timedelta
from functools import partial
from typing import Any

import pytest

import actorflow as af
from actorflow.abc.connectors import Prepared, SinkContext, TransactionalSink, TransactionalWriter
from actorflow.connectors import Inbox, function, generator, memory
from actorflow.model import journal
from actorflow.simulation.weather import After, At, FailObjects, Kill, OnObject, Pause, SlowObjects
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

WORDS = [f"w{index * index % 37}" for index in range(600)]


def endless(sink: Any, *, per_second: float = 100) -> af.Job:
    job = af.Job("endless")
    source = generator.generate(lambda index: f"w{index % 5}", per_second=per_second)
    job.read(source, name="read").key_by(lambda word: word).count(name="count").write(sink, name="write")
    return job


def files_of(universe: Universe) -> list[str]:
    return sorted(universe.machine().platter.files())


# ── the table of ends ────────────────────────────────────────────────────────────────────────


def test_a_bounded_job_finishes_commits_its_last_row_and_keeps_no_checkpoint() -> None:
    """INV-4.1, INV-3.5."""

    async def story(universe: Universe) -> None:
        sink = memory.collect()
        async with environment(universe.world("p"), every_ms=10).run(count_job(memory.source(WORDS), sink)) as handle:
            assert await handle.wait() is af.JobStatus.FINISHED
            assert sorted(sink.rows) == running_counts(WORDS)
        assert [name for name in files_of(universe) if "/chk-" in name] == []
        assert f"{STORAGE}/count/finished" in files_of(universe)
        assert len(entries(universe, journal.JobFinished)) == 1

    play(story)


@pytest.mark.parametrize("ending", ["finished", "stopped", "canceled", "failed"])
@pytest.mark.parametrize("retention", list(af.Retention))
def test_what_is_kept_of_checkpoints_when_a_job_ends(retention: af.Retention, ending: str) -> None:
    """The table of semantics 3.7: what an end deletes is gone, and what it keeps can be gone on from."""
    kept = {
        "finished": False,
        "stopped": retention is af.Retention.RETAIN_ON_CANCELLATION,
        "canceled": retention is af.Retention.RETAIN_ON_CANCELLATION,
        "failed": retention is not af.Retention.NO_EXTERNALIZED_CHECKPOINTS,
    }[ending]

    async def story(universe: Universe) -> None:
        sink = memory.collect()
        broken: list[int] = []

        def sometimes(word: str) -> str:
            if broken:
                raise ValueError("broken")
            return word

        job = af.Job("job")
        records = 50 if ending == "finished" else None
        source = generator.generate(lambda index: f"w{index % 5}", per_second=1_000, records=records)
        job.read(source, name="read").map(sometimes).key_by(str.lower).count(name="count").write(sink, name="write")
        ends = environment(universe.world("p"), every_ms=20, retention=retention)
        handle: af.JobHandle | None = None
        try:
            async with ends.run(job) as handle:
                await asyncio.sleep(0.2)
                match ending:
                    case "finished":
                        await handle.wait()
                    case "stopped":
                        await handle.stop()
                    case "canceled":
                        await handle.cancel()
                    case _:
                        broken.append(1)
                        await asyncio.sleep(1)
        except af.JobFailed:
            assert ending == "failed"
        assert handle is not None
        assert handle.status.status == ending
        assert completed(universe)
        assert any("/chk-" in name for name in files_of(universe)) == kept
        broken.clear()

        async with environment(universe.world("q"), every_ms=20).run(job) as handle:
            await asyncio.sleep(0.1)
            first = handle.status
            await handle.cancel()
        if ending == "finished":
            assert first.status is af.JobStatus.FINISHED
        else:
            assert (first.restored_checkpoint is not None) == kept

    play(story)


def test_stop_halts_the_sources_at_the_barrier_and_the_next_life_goes_on_there() -> None:
    """INV-4.2: on a stop nothing finishes; the next start has every record once."""
    ended: list[str] = []

    class Ends(af.KeyedOperator[str, str, Any]):
        seen = af.ValueState(int)

        def on_record(self, word: str, context: af.Context[str]) -> Any:
            self.seen.value += 1
            return [(word, self.seen.value)]

        def on_end_of_input(self, context: af.HookContext) -> None:
            ended.append("end")

    async def story(universe: Universe) -> None:
        sink = memory.collect()
        job = af.Job("job")
        source = generator.generate(lambda index: f"w{index % 5}", records=300, per_second=300, splits=2)
        job.read(source, name="read").key_by(str.lower).process(Ends, name="count").write(sink, name="write")
        async with environment(universe.world("p"), parallelism=2).run(job) as handle:
            await asyncio.sleep(0.5)
            info = await handle.stop()
            assert info is not None
            assert info.kind == "stop"
            assert handle.status.status is af.JobStatus.STOPPED
            assert ended == []
            assert await handle.stop() is not None
        assert 0 < len(sink.rows) < 300
        assert sorted(sink.rows) == running_counts(f"w{index % 5}" for index in range(len(sink.rows)))
        async with environment(universe.world("q"), parallelism=2).run(job) as handle:
            assert handle.status.restored_checkpoint == info.checkpoint_id
            await handle.wait()
        assert ended == ["end", "end"]
        assert sorted(sink.rows) == running_counts(f"w{index % 5}" for index in range(300))

    play(story)


def test_leaving_the_block_stops_with_a_last_checkpoint() -> None:
    async def story(universe: Universe) -> None:
        sink = memory.collect()
        async with environment(universe.world("p")).run(endless(sink)) as handle:
            await asyncio.sleep(1)
        assert handle.status.status is af.JobStatus.STOPPED
        assert len(sink.rows) > 50
        assert [entry.kind for entry in entries(universe, journal.CheckpointCompleted)] == ["stop"]

    play(story)


def test_leaving_the_block_by_an_exception_cancels_and_the_exception_goes_on() -> None:
    async def story(universe: Universe) -> None:
        sink = memory.collect()
        with pytest.raises(ZeroDivisionError):
            async with environment(universe.world("p")).run(endless(sink)) as handle:
                await asyncio.sleep(1)
                raise ZeroDivisionError
        assert handle.status.status is af.JobStatus.CANCELED
        assert sink.rows == []
        assert len(entries(universe, journal.JobCanceled)) == 1

    play(story)


@pytest.mark.parametrize("after_ms", [0, 1, 5, 300])
def test_cancelling_the_program_around_the_job_cancels_the_job_and_leaves_nothing(after_ms: int) -> None:
    async def story(universe: Universe) -> None:
        async def host() -> None:
            async with environment(universe.world("p"), every_ms=20).run(endless(memory.collect())):
                await asyncio.sleep(60)

        task = asyncio.ensure_future(host())
        await asyncio.sleep(after_ms / 1_000)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert task.cancelled()

    for seed in seeds(5):
        play(story, seed)


def test_a_second_cancellation_of_the_program_does_not_tear_the_job_either() -> None:
    async def story(universe: Universe) -> None:
        handles = []

        async def host() -> None:
            async with environment(universe.world("p"), every_ms=20).run(endless(memory.collect())) as handle:
                handles.append(handle)
                await asyncio.sleep(60)

        task = asyncio.ensure_future(host())
        await asyncio.sleep(0.3)
        task.cancel()
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert handles[0].status.status is af.JobStatus.CANCELED

    for seed in seeds(5):
        play(story, seed)


def test_drain_ends_an_endless_input_finishes_the_operators_and_the_job() -> None:
    class Ends(af.KeyedOperator[str, str, Any]):
        seen = af.ValueState(int)

        def on_record(self, word: str, context: af.Context[str]) -> None:
            self.seen.value += 1

        def on_end_of_input(self, context: af.HookContext) -> Any:
            yield from context.entries(self.seen)

    async def story(universe: Universe) -> None:
        sink = memory.collect()
        job = af.Job("job")
        source = generator.generate(lambda index: f"w{index % 5}", per_second=100)
        job.read(source, name="read").key_by(str.lower).process(Ends, name="count").write(sink, name="write")
        async with environment(universe.world("p")).run(job) as handle:
            await asyncio.sleep(1)
            await handle.drain()
            assert handle.status.status is af.JobStatus.FINISHED
        assert sorted(key for key, _ in sink.rows) == [f"w{index}" for index in range(5)]
        assert sum(count for _, count in sink.rows) > 50

    play(story)


def test_a_job_that_had_finished_is_finished_at_once_and_says_so() -> None:
    async def story(universe: Universe) -> None:
        sink = memory.collect()
        job = count_job(memory.source(WORDS), sink)
        for process in "ab":
            async with environment(universe.world(process)).run(job) as handle:
                assert await handle.wait() is af.JobStatus.FINISHED
        assert len(sink.rows) == len(WORDS)
        assert len(entries(universe, journal.JobFinished)) == 2
        assert len(entries(universe, journal.JobStarted)) == 1

    play(story)


def test_a_finished_job_begins_again_from_nothing_when_told_and_ids_go_on() -> None:
    async def story(universe: Universe) -> None:
        sink = memory.collect()
        job = count_job(memory.source(WORDS), sink)
        for process, told in (("a", "latest"), ("b", "nothing")):
            async with environment(universe.world(process)).run(job, resume_from=told) as handle:
                await handle.wait()
        assert len(sink.rows) == 2 * len(WORDS)
        ids, generations = completed(universe), [e.generation for e in entries(universe, journal.JobStarted)]
        assert ids == sorted(set(ids))
        assert generations == [1, 2]

    play(story)


# ── a stop that fails, and a stop in bad company ─────────────────────────────────────────────


def test_r009_a_stop_whose_last_checkpoint_fails_raises_and_the_job_goes_on() -> None:
    async def story(universe: Universe) -> None:
        sink = memory.collect()
        async with environment(universe.world("p"), every_ms=100).run(endless(sink)) as handle:
            await asyncio.sleep(0.5)
            for fault in ("put", "put_if_absent"):
                universe.expect(FailObjects(At(0), fault, "*chk-*", count=1_000))
            await asyncio.sleep(0)
            with pytest.raises(af.CheckpointAborted):
                await handle.stop()
            universe.sky.clear()
            assert handle.status.status is af.JobStatus.RUNNING
            read = handle.progress.records_read
            await asyncio.sleep(0.5)
            assert handle.progress.records_read > read
            assert await handle.stop() is not None
        assert sorted(sink.rows) == running_counts(f"w{index % 5}" for index in range(len(sink.rows)))

    play(story)


def test_a_stop_that_nobody_waits_for_any_more_and_that_fails_lets_the_job_go_on_to_its_end() -> None:
    async def story(universe: Universe) -> None:
        sink = memory.collect()
        source = generator.generate(lambda index: f"w{index % 5}", records=200, per_second=100)
        job = count_job(source, sink)
        async with environment(universe.world("p"), timeout_ms=300, tolerable_failures=5).run(job) as handle:
            await asyncio.sleep(0.5)
            universe.expect(SlowObjects(At(0), "put*", "*chk-*", count=1, by_ms=1_000))
            await asyncio.sleep(0)
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(0.1):
                    await handle.stop()
            assert await handle.wait() in (af.JobStatus.FINISHED, af.JobStatus.STOPPED)
        if handle.status.status is af.JobStatus.FINISHED:
            assert sorted(sink.rows) == running_counts(f"w{index % 5}" for index in range(200))

    for seed in seeds(5):
        play(story, seed)


def test_two_stops_at_once_are_answered_by_one_checkpoint() -> None:
    async def story(universe: Universe) -> None:
        async with environment(universe.world("p")).run(endless(memory.collect())) as handle:
            await asyncio.sleep(0.5)
            one, other = await asyncio.gather(handle.stop(), handle.stop())
            assert one == other

    for seed in seeds(5):
        play(story, seed)


def test_stop_while_an_attempt_fails_raises_instead_of_waiting_for_ever() -> None:
    async def story(universe: Universe) -> None:
        inbox: Inbox[int] = Inbox(int)
        fails: list[int] = []

        def slow_then_failing(number: int) -> int:
            if fails:
                raise ValueError(number)
            return number

        job = af.Job("job")
        job.read(inbox, name="read").map(slow_then_failing).write(memory.collect(), name="write")
        settings = environment(universe.world("p"), every_ms=50, restart=again(delay_ms=1_000))
        async with settings.run(job) as handle:
            for number in range(20):
                await inbox.send(number)
            fails.append(1)
            with pytest.raises(af.CheckpointAborted):
                await handle.stop()
            fails.clear()
            await handle.cancel()

    for seed in seeds(5):
        play(story, seed)


def test_a_stop_whose_checkpoint_completed_but_whose_attempt_then_failed_raises_with_the_checkpoint() -> None:
    """As in semantics 3.12: the snapshot is good, the next attempt commits what it prepared and the job goes on."""

    class Bad(TransactionalSink[Any]):
        def __init__(self) -> None:
            self.rows: list[Any] = []
            self.broken = False

        async def open(self, context: SinkContext) -> TransactionalWriter[Any]:
            return BadWriter(self)

        async def visible(self, world: Any) -> list[Any]:
            return self.rows

    class BadWriter(TransactionalWriter[Any]):
        def __init__(self, sink: Bad) -> None:
            self.sink, self.pending = sink, list[Any]()

        async def write(self, records: list[Any]) -> None:
            self.pending += records

        def prepare(self, checkpoint_id: int) -> Prepared:
            rows, self.pending = self.pending, []
            return Prepared([rows])

        async def commit(self, committables: list[Any], permit: Any) -> None:
            if self.sink.broken:
                raise OSError("the outside is broken")
            for rows in committables:
                self.sink.rows += rows

        async def discard(self, committables: list[Any]) -> None:
            raise AssertionError("nothing is to be discarded")

    async def story(universe: Universe) -> None:
        sink = Bad()
        settings = environment(universe.world("p"), restart=again(delay_ms=10))
        async with settings.run(endless(sink)) as handle:
            await asyncio.sleep(0.5)
            sink.broken = True

            async def mend() -> None:
                await asyncio.sleep(60)
                sink.broken = False

            mending = asyncio.ensure_future(mend())
            with pytest.raises(af.CheckpointAborted) as caught:
                await handle.stop()
            await mending
            assert caught.value.checkpoint_id == completed(universe)[-1]
            await asyncio.sleep(60)
            meanwhile = handle.status.status
        assert (meanwhile, handle.status.status) == (af.JobStatus.RUNNING, af.JobStatus.STOPPED)
        assert sorted(sink.rows) == running_counts(f"w{index % 5}" for index in range(len(sink.rows)))

    play(story)


def test_a_drain_whose_attempt_fails_raises_and_the_job_goes_on() -> None:
    """What was read after the restored checkpoint is read again, so the end would be another one: ask again."""

    async def story(universe: Universe) -> None:
        sink, failures = memory.collect(), [1]

        class FailsAtTheEnd(af.Operator[Any, Any]):
            def on_record(self, value: Any, context: af.Context[None]) -> list[Any]:
                return [value]

            def on_end_of_input(self, context: af.HookContext) -> None:
                if failures:
                    failures.pop()
                    raise ValueError("once")

        job = af.Job("job")
        job.read(generator.numbers(per_second=100), name="read").process(FailsAtTheEnd, name="fails").write(
            sink, name="write"
        )
        async with environment(universe.world("p"), every_ms=50, restart=again()).run(job) as handle:
            await asyncio.sleep(0.5)
            with pytest.raises(af.CheckpointAborted, match="the job goes on"):
                await handle.drain()
            await asyncio.sleep(0.5)
            meanwhile = handle.status.status
            await handle.drain()
        assert (meanwhile, handle.status.status) == (af.JobStatus.RUNNING, af.JobStatus.FINISHED)
        assert handle.status.restarts == 1
        assert sink.rows == list(range(len(sink.rows)))
        assert len(sink.rows) > 80

    play(story)


def test_an_inbox_whose_stop_failed_can_still_be_drained() -> None:
    async def story(universe: Universe) -> None:
        inbox: Inbox[int] = Inbox(int)
        sink = memory.collect()
        job = af.Job("job")
        job.read(inbox, name="read").write(sink, name="write")
        async with environment(universe.world("p")).run(job) as handle:
            for number in range(20):
                await inbox.send(number)
            universe.expect(FailObjects(At(0), "put*", "*chk-*", count=1))
            await asyncio.sleep(0)
            with pytest.raises(af.CheckpointAborted):
                await handle.stop()
            async with asyncio.timeout(60):
                await handle.drain()
            assert handle.status.status is af.JobStatus.FINISHED
        assert sink.rows == list(range(20))

    play(story)


def test_a_stop_that_failed_with_its_attempt_never_lets_the_job_finish_for_good() -> None:
    """The inbox was closed by the stop, not by its program: the home must not say that the job has finished."""

    async def story(universe: Universe) -> None:
        inbox: Inbox[int] = Inbox(int)
        fails: list[int] = []

        def failing(number: int) -> int:
            if fails:
                fails.pop()
                raise ValueError(number)
            return number

        job = af.Job("job")
        job.read(inbox, name="read").map(failing).write(memory.collect(), name="write")
        async with environment(universe.world("p"), restart=again(delay_ms=1)).run(job) as handle:
            for number in range(20):
                await inbox.send(number)
            fails.append(1)
            with pytest.raises(af.CheckpointAborted):
                await handle.stop()
            await asyncio.sleep(5)
            meanwhile = handle.status.status
            await handle.stop()
        assert (meanwhile, handle.status.status) == (af.JobStatus.RUNNING, af.JobStatus.STOPPED)

    play(story)


def test_r153_stop_and_cancel_act_though_everything_is_full() -> None:
    """A sink that hangs holds up every channel; leaving gives up after ``stop_within``, and cancelling is at once."""

    class Hangs(memory.Append[Any]):
        async def open(self, context: SinkContext) -> Any:
            writer = await super().open(context)

            async def write(records: list[Any]) -> None:
                await asyncio.sleep(10**6)

            writer.write = write  # type: ignore[method-assign]
            return writer

    async def story(universe: Universe, ending: str) -> None:
        job = af.Job("job")
        job.read(memory.source(range(100_000)), name="read").rebalance().write(Hangs([]), name="write")
        began = universe.now_ms()
        settings = environment(
            universe.world("p"),
            every_ms=50,
            parallelism=2,
            stop_within=timedelta(seconds=3),
            buffers=af.Buffers(per_channel=1, floating_per_gate=0, most_per_channel=1),
        )
        async with settings.run(job) as handle:
            await asyncio.sleep(1)
            if ending == "cancel":
                await handle.cancel()
        took = universe.now_ms() - began
        assert handle.status.status is af.JobStatus.CANCELED
        assert took < (1_100 if ending == "cancel" else 4_100)
        if ending != "cancel":
            assert "the next start replays" in entries(universe, journal.FellBack)[-1].taken

    for ending in ("cancel", "leave"):
        play(partial(story, ending=ending))


def test_r129_a_stop_in_the_tick_in_which_a_wait_completes_is_not_lost() -> None:
    """One hundred offsets around the moment at which a handler's ``wait_for`` completes."""

    async def story(universe: Universe, offset_us: int) -> None:
        async def handler(number: int) -> int:
            event = asyncio.Event()
            asyncio.get_running_loop().call_later(0.0005, event.set)
            await asyncio.wait_for(event.wait(), 0.0005)
            return number

        async def patient(number: int) -> int:
            try:
                return await handler(number)
            except TimeoutError:
                return number

        job = af.Job("job")
        job.read(generator.numbers(per_second=10_000), name="read").map(patient, name="call", in_flight=3).write(
            memory.collect(), name="write"
        )
        async with environment(universe.world("p"), storage=None).run(job) as handle:
            await asyncio.sleep(0.005 + offset_us / 1e6)
            began = universe.now_ms()
            if offset_us % 2:
                await handle.stop()
            else:
                await handle.cancel()
        assert universe.now_ms() - began < 1_000

    for offset in range(100):
        play(partial(story, offset_us=offset * 10), seed=offset)


# ── failures and restarts ────────────────────────────────────────────────────────────────────


def failing_job(sink: Any, at: list[int], *, records: int = 100) -> af.Job:
    """A job that fails once at each of these records."""

    def fail(number: int) -> int:
        if number in at:
            at.remove(number)
            raise ValueError(f"no {number}")
        return number

    job = af.Job("job")
    job.read(generator.numbers(records, per_second=100), name="read").map(fail, name="fail").write(sink, name="write")
    return job


def delays(universe: Universe) -> list[int]:
    return [entry.delay_ms for entry in entries(universe, journal.JobRestarting)]


@pytest.mark.parametrize(
    ("strategy", "expected", "ends"),
    [
        (af.FixedDelay(attempts=3, delay=timedelta(seconds=7)), [7_000] * 3, True),
        (af.FixedDelay(attempts=2, delay=timedelta(seconds=7)), [7_000] * 2, False),
        (af.NoRestart(), [], False),
        (af.ExponentialDelay(jitter=0.0), [1_000, 1_500, 2_250], True),
        (
            af.FailureRate(max_failures=3, interval=timedelta(minutes=10), delay=timedelta(seconds=2)),
            [2_000] * 3,
            True,
        ),
        (
            af.FailureRate(max_failures=2, interval=timedelta(minutes=10), delay=timedelta(seconds=2)),
            [2_000] * 2,
            False,
        ),
    ],
)
def test_an_attempt_that_failed_is_followed_by_another_as_the_strategy_says(
    strategy: Any, expected: list[int], ends: bool
) -> None:
    """INV-11.3, and INV-11.1: each attempt goes on from the newest completed checkpoint."""

    async def story(universe: Universe) -> None:
        sink = memory.collect()
        job = failing_job(sink, [20, 50, 80])
        settings = environment(universe.world("p"), every_ms=50, restart=strategy)
        if ends:
            async with settings.run(job) as handle:
                await handle.wait()
            assert handle.status.restarts == len(expected)
            assert sink.rows == list(range(100))
        else:
            with pytest.raises(af.JobFailed) as caught:
                async with settings.run(job) as handle:
                    await handle.wait()
            assert isinstance(caught.value.__cause__, af.OperatorFailed)
            assert "'fail', subtask 0" in str(caught.value)
        assert delays(universe) == expected
        restored = [entry.restored_checkpoint for entry in entries(universe, journal.JobStarted)]
        assert restored[0] is None
        before: list[int] = []
        seen: list[Any] = []
        for line in universe.journal:
            if isinstance(line.entry, journal.CheckpointCompleted):
                before.append(line.entry.checkpoint)
            if isinstance(line.entry, journal.JobStarted):
                seen.append(before[-1] if before else None)
        assert restored == seen

    play(story)


def test_restarts_come_exactly_after_their_delay() -> None:
    async def story(universe: Universe) -> None:
        settings = environment(
            universe.world("p"), every_ms=50, restart=af.FixedDelay(attempts=3, delay=timedelta(seconds=7))
        )
        async with settings.run(failing_job(memory.collect(), [20, 50, 80])) as handle:
            await handle.wait()
        waits: list[int] = []
        restarting = None
        for line in universe.journal:
            if isinstance(line.entry, journal.JobRestarting):
                restarting = line.at_ms
            if isinstance(line.entry, journal.GenerationClaimed) and restarting is not None:
                waits.append(line.at_ms - restarting)
        assert len(waits) == 3
        assert all(7_000 <= wait < 7_200 for wait in waits)

    play(story)


def test_a_failure_that_every_attempt_would_meet_again_is_not_tried_again() -> None:
    async def story(universe: Universe) -> None:
        job = af.Job("job")
        job.read(memory.source([[1]]), name="read").key_by(lambda value: value).count(name="count").write(
            memory.collect(), name="write"
        )
        with pytest.raises(af.JobFailed) as caught:
            async with environment(universe.world("p"), every_ms=50, restart=again()).run(job) as handle:
                await handle.wait()
        assert delays(universe) == []
        assert isinstance(caught.value.__cause__, af.InvalidValue)
        assert "operator 'key_by', subtask 0, key [1]: a value of type list" in str(caught.value)

    play(story)


def test_a_job_that_failed_for_good_cancels_the_block_unless_it_is_to_be_reported() -> None:
    async def story(universe: Universe) -> None:
        reached = []
        with pytest.raises(af.JobFailed):
            async with environment(universe.world("p")).run(failing_job(memory.collect(), [20])):
                await asyncio.sleep(3_600)
                reached.append("the end of the block")
        assert reached == []
        async with environment(universe.world("q")).run(
            failing_job(memory.collect(), [20]), on_failure="report", resume_from="nothing"
        ) as handle:
            await asyncio.sleep(3_600)
            assert handle.status.status is af.JobStatus.FAILED
            assert "no 20" in handle.status.failure
            with pytest.raises(af.JobFailed):
                await handle.wait()
            for ask in (handle.checkpoint(), handle.stop(), handle.query("count.state", key="a"), handle.drain()):
                with pytest.raises((af.ActorflowError, KeyError)):
                    assert await ask is None
                    raise af.JobFailed("answered with nothing, which is an answer")
            await handle.cancel()

    play(story)


def test_r131_two_failures_arrive_as_a_group_and_no_checkpoint_completes_meanwhile() -> None:
    async def story(universe: Universe) -> None:
        class Fails(af.Operator[Any, Any]):
            def on_record(self, value: Any, context: af.Context[None]) -> list[Any]:
                if value >= 10:
                    raise ValueError(f"subtask {context.subtask}")
                return [value]

        job = af.Job("job")
        job.read(memory.source([1, 10] * 2, splits=2, chunk_records=1), name="read").process(Fails, name="fails").write(
            memory.collect(), name="write"
        )
        with pytest.raises(af.JobFailed) as caught:
            async with environment(universe.world("p"), parallelism=2).run(job) as handle:
                await handle.wait()
        cause = caught.value.__cause__
        if isinstance(cause, ExceptionGroup):
            groups.append(cause)
        else:
            assert isinstance(cause, af.OperatorFailed)
        assert completed(universe) == []

    groups: list[ExceptionGroup[Any]] = []
    for seed in range(30):
        play(story, seed)
    assert groups
    assert all(len(group.exceptions) == 2 for group in groups)
    assert {str(error.__cause__) for error in groups[0].exceptions} == {"subtask 0", "subtask 1"}


def test_r131_an_actor_that_fails_while_it_is_being_cancelled_is_heard() -> None:
    async def story(universe: Universe) -> None:
        async def stubborn(number: int) -> int:
            try:
                await asyncio.sleep(3_600)
            except asyncio.CancelledError:
                raise RuntimeError("what a way to go") from None
            return number

        job = af.Job("job")
        job.read(memory.source([1, 2]), name="read").map(stubborn, name="call").write(memory.collect(), name="write")
        with pytest.raises(af.JobFailed) as caught:
            async with environment(universe.world("p"), every_ms=1_000, restart=again()).run(job) as handle:
                await asyncio.sleep(0.5)
                await handle.cancel()
        assert "what a way to go" in repr(caught.value.__cause__)
        assert handle.status.status is af.JobStatus.FAILED
        assert delays(universe) == []

    play(story)


# ── cancelling at bad moments ────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("every_us", [7_700, pytest.param(500, marks=pytest.mark.slow)])
@pytest.mark.parametrize("retention", [af.Retention.RETAIN_ON_CANCELLATION, af.Retention.NO_EXTERNALIZED_CHECKPOINTS])
def test_a_job_can_be_cancelled_at_every_moment_of_its_life(retention: af.Retention, every_us: int) -> None:
    """Starting, running, restarting, claiming again, finishing: it always comes to an end that the table knows."""
    ends: dict[str, int] = {}

    async def story(universe: Universe, after_us: int) -> None:
        sink = memory.collect()
        job = failing_job(sink, [3], records=8)
        settings = environment(universe.world("p"), every_ms=10, restart=again(delay_ms=15), retention=retention)
        statuses: list[str] = []

        async def host() -> None:
            async with settings.run(job) as handle:
                handles.append(handle)
                await handle.wait()

        handles: list[af.JobHandle] = []
        task = asyncio.ensure_future(host())
        await asyncio.sleep(after_us / 1e6)
        if handles:
            statuses.append(handles[0].status.status)
            await handles[0].cancel()
            assert handles[0].status.status in (af.JobStatus.CANCELED, af.JobStatus.FINISHED)
            await task
        else:
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
        for status in statuses:
            ends[status] = ends.get(status, 0) + 1
        if handles and handles[0].status.status is af.JobStatus.FINISHED:
            assert sink.rows == list(range(8))
        if retention is not af.Retention.RETAIN_ON_CANCELLATION and handles:
            assert [name for name in files_of(universe) if name.endswith("_metadata")] == []

    for after_us in range(0, 154_000, every_us):
        play(partial(story, after_us=after_us), seed=after_us)
    assert {"running", "restarting"} <= {*ends}
    assert every_us > 1_000 or {"claiming", "finishing"} <= {*ends}


def test_cancel_finishes_what_was_permitted_and_discards_the_rest() -> None:
    async def story(universe: Universe) -> None:
        discarded, committed = [], []

        class Sink(memory.Collect[Any]):
            async def open(self, context: SinkContext) -> Any:
                writer: Any = await super().open(context)
                commit = writer.commit

                async def slow_commit(committables: list[Any], permit: Any) -> None:
                    await asyncio.sleep(0.5)
                    await commit(committables, permit)
                    committed.append(permit.checkpoint_id)

                async def discard(committables: list[Any]) -> None:
                    discarded.extend(committables)

                writer.commit, writer.discard = slow_commit, discard
                return writer

        sink = Sink([])
        async with environment(universe.world("p"), every_ms=100, max_concurrent=3).run(endless(sink)) as handle:
            await asyncio.sleep(0.3)
            while not entries(universe, journal.CheckpointCompleted):
                await asyncio.sleep(0.001)
            await asyncio.sleep(0.02)
            await handle.cancel()
        assert handle.status.status is af.JobStatus.CANCELED
        assert committed
        assert sorted(sink.rows) == running_counts(f"w{index % 5}" for index in range(len(sink.rows)))

        settled = memory.collect()
        settled.rows, settled._committed = sink.rows, sink._committed
        async with environment(universe.world("q"), every_ms=100).run(endless(settled)) as handle:
            await asyncio.sleep(1)
        assert sorted(sink.rows) == running_counts(f"w{index % 5}" for index in range(len(sink.rows)))

    for seed in seeds(5):
        play(story, seed)


def test_r137_a_close_that_waits_is_not_cut_short_and_one_that_hangs_is_left_alone() -> None:
    async def story(universe: Universe, needs_s: float) -> None:
        closed = []

        class Slow(memory.Append[Any]):
            async def open(self, context: SinkContext) -> Any:
                writer = await super().open(context)

                async def close() -> None:
                    await asyncio.sleep(needs_s)
                    closed.append(universe.now_ms())

                writer.close = close  # type: ignore[method-assign]
                return writer

        job = af.Job("job")
        job.read(generator.numbers(per_second=100), name="read").write(Slow([]), name="write")
        began = universe.now_ms()
        async with environment(universe.world("p")).run(job) as handle:
            await asyncio.sleep(0.1)
            await handle.cancel()
        took = universe.now_ms() - began
        if needs_s < 10:
            assert closed
            assert took < 1_000
        else:
            assert not closed
            assert took < 11_000
            assert entries(universe, journal.FellBack)[-1].subject == "closing write/0"

    for needs in (0.5, 3_600.0):
        play(partial(story, needs_s=needs))


def test_cancel_does_not_wait_for_ever_for_a_commit_that_hangs() -> None:
    async def story(universe: Universe) -> None:
        class Hangs(memory.Collect[Any]):
            async def open(self, context: SinkContext) -> Any:
                writer: Any = await super().open(context)

                async def commit(committables: list[Any], permit: Any) -> None:
                    await asyncio.sleep(10**6)

                writer.commit = commit
                return writer

        async with environment(universe.world("p"), every_ms=50).run(endless(Hangs([]))) as handle:
            await asyncio.sleep(0.5)
            began = universe.now_ms()
            await handle.cancel()
            assert universe.now_ms() - began < 30_000
        assert handle.status.status is af.JobStatus.CANCELED
        told = entries(universe, journal.FellBack)[-1]
        assert "committed by the next start" in told.taken

    play(story)


def test_checkpoints_that_the_next_start_needs_are_kept_whatever_the_policy_says() -> None:
    """What was permitted could not be committed in time, so deleting its checkpoint would lose rows."""

    async def story(universe: Universe) -> None:
        hangs = [True]

        class Hangs(memory.Collect[Any]):
            async def open(self, context: SinkContext) -> Any:
                writer: Any = await super().open(context)
                commit = writer.commit

                async def hang(committables: list[Any], permit: Any) -> None:
                    if hangs:
                        await asyncio.sleep(10**6)
                    await commit(committables, permit)

                writer.commit = hang
                return writer

        sink = Hangs([])
        settings: dict[str, Any] = {"every_ms": 50, "retention": af.Retention.NO_EXTERNALIZED_CHECKPOINTS}
        async with environment(universe.world("p"), **settings).run(endless(sink)) as handle:
            await asyncio.sleep(0.5)
            await handle.cancel()
        told = [entry for entry in entries(universe, journal.FellBack) if entry.taken == "kept"]
        assert len(told) == 1
        assert "the next start needs them" in told[0].why
        hangs.clear()
        async with environment(universe.world("q"), **settings).run(endless(sink)) as handle:
            assert handle.status.restored_checkpoint is not None
            await asyncio.sleep(0.3)
        assert sorted(sink.rows) == running_counts(f"w{index % 5}" for index in range(len(sink.rows)))

    play(story)


@pytest.mark.parametrize("operation", ["put", "list", "delete"])
def test_a_home_that_can_not_be_told_that_the_job_finished_is_told_by_the_next_attempt(operation: str) -> None:
    async def story(universe: Universe) -> None:
        sink = memory.collect()
        universe.expect(
            FailObjects(
                After("SinkCommitted", where={"checkpoint": 1}), operation, count=6 if operation == "list" else 9
            )
        )
        settings = environment(universe.world("p"), restart=again(delay_ms=50))
        async with settings.run(count_job(memory.source(WORDS), sink)) as handle:
            assert await handle.wait() is af.JobStatus.FINISHED
        assert sorted(sink.rows) == running_counts(WORDS)
        assert len(entries(universe, journal.JobFinished)) == 1

    play(story)


# ── one home, one owner ──────────────────────────────────────────────────────────────────────


def test_r052_a_home_is_refused_to_a_second_job_of_the_process_until_the_first_has_ended() -> None:
    async def story(universe: Universe) -> None:
        world = universe.world("p")
        async with environment(world).run(endless(memory.collect())):
            with pytest.raises(af.InvalidJob, match="already runs in this process"):
                async with environment(world).run(endless(memory.collect())):
                    raise AssertionError("it must not run")
            await asyncio.sleep(0.1)
        async with environment(world).run(endless(memory.collect())) as handle:
            assert handle.status.restored_checkpoint is not None

    play(story)


@pytest.mark.parametrize(
    ("step", "occurrence"),
    [
        ("GenerationClaimed", 1),
        ("ActorStarted", 1),
        ("CheckpointTriggered", 2),
        ("SnapshotTaken", 2),
        ("CheckpointAcknowledged", 3),
        ("ManifestWritten", 2),
        ("CheckpointCompleted", 2),
        ("SinkCommitted", 2),
        ("CheckpointSubsumed", 1),
    ],
)
def test_r111_a_process_that_stalled_is_fenced_by_the_one_that_started_after_it(step: str, occurrence: int) -> None:
    async def story(universe: Universe) -> None:
        sink = memory.collect()
        universe.expect(Pause(After(step, occurrence=occurrence, process="one"), "one", 5_000))
        one = await start(universe, endless(sink), environment(every_ms=100), process="one")
        while not any(isinstance(line.entry, journal.WeatherStruck) for line in universe.journal):
            await asyncio.sleep(0.01)
        two = await start(universe, endless(sink), environment(every_ms=100), process="two")
        outcome = await one.wait()
        assert isinstance(outcome.error, af.Fenced), outcome
        assert "two" in str(outcome.error)
        [fenced] = entries(universe, journal.JobFenced)
        assert fenced.by_generation > fenced.generation
        await asyncio.sleep(1)
        two.kill()
        await two.wait()
        assert sorted(sink.rows) == running_counts(f"w{index % 5}" for index in range(len(sink.rows)))

    for seed in seeds(3):
        play(story, seed)


def test_a_process_that_stalled_while_it_restored_is_fenced_though_what_it_needs_is_gone() -> None:
    async def story(universe: Universe) -> None:
        sink = memory.collect()
        checkpoints = af.Checkpoints(storage="/c", every=timedelta(milliseconds=50), inline_below=0)
        settings = af.Environment(checkpoints=checkpoints, restart=af.NoRestart())
        first = await start(universe, endless(sink), settings, process="first")
        while not completed(universe):
            await asyncio.sleep(0.01)
        first.kill()
        await first.wait()
        universe.expect(Pause(After("ActorRestored", process="one"), "one", 5_000))
        one = await start(universe, endless(sink), settings, process="one")
        while not any(struck.verb == "pause" for struck in entries(universe, journal.WeatherStruck)):
            await asyncio.sleep(0.01)
        two = await start(universe, endless(sink), settings, process="two")
        outcome = await one.wait()
        assert isinstance(outcome.error, af.Fenced), outcome
        assert "two" in str(outcome.error)
        assert isinstance(outcome.error.__cause__, af.RestoreFailed)
        assert not entries(universe, journal.JobFailed)
        two.kill()
        await two.wait()

    for seed in seeds(3):
        play(story, seed)


def test_r113_owners_that_take_over_from_each_other_at_other_parallelisms_show_each_row_once() -> None:
    async def story(universe: Universe) -> None:
        sink = memory.collect()
        chance = universe.chance.scoped("takeover")
        processes = []
        for index in range(6):
            parallelism = 1 + index % 3
            name = f"owner{index}"
            processes.append(
                await start(universe, endless(sink), environment(every_ms=40, parallelism=parallelism), process=name)
            )
            await asyncio.sleep(chance.between("wait", 50, 400) / 1_000)
            match chance.below("what", 3):
                case 0:
                    processes[-1].kill()
                case 1:
                    processes[-1].pause(chance.between("pause", 10, 2_000))
        await asyncio.sleep(3)
        processes.append(await start(universe, endless(sink), environment(every_ms=40), process="last"))
        await asyncio.sleep(1)
        for process in processes:
            process.kill()
            await process.wait()
        assert sorted(sink.rows) == running_counts(f"w{index % 5}" for index in range(len(sink.rows)))
        assert len(sink.rows) > 100

    for seed in seeds(8):
        play(story, seed)


@pytest.mark.parametrize("every_us", [8_300, pytest.param(700, marks=pytest.mark.slow)])
def test_kill_at_every_moment_of_a_life_is_survived(every_us: int) -> None:
    """A kill between any two awaits, over the whole of a short life with a restart in it."""

    async def story(universe: Universe, after_us: int) -> None:
        sink = memory.collect()
        at = [3]
        process = await start(universe, failing_job(sink, at, records=8), environment(every_ms=10, restart=again()))
        await asyncio.sleep(after_us / 1e6)
        process.kill()
        await process.wait()
        process = await start(universe, failing_job(sink, at, records=8), environment(every_ms=10, restart=again()))
        await process.wait()
        assert sink.rows == list(range(8))

    for after_us in range(0, 132_000, every_us):
        play(partial(story, after_us=after_us), seed=after_us)


# ── what is asked ────────────────────────────────────────────────────────────────────────────


def test_r163_the_status_says_who_is_waited_for_in_open() -> None:
    async def story(universe: Universe) -> None:
        hang: list[int] = []

        class Opens(memory.Collect[Any]):
            async def open(self, context: SinkContext) -> Any:
                if hang:
                    await asyncio.sleep(3_600)
                return await super().open(context)

        failures: list[int] = []
        sink = Opens([])

        def fail(word: str) -> str:
            if failures:
                raise ValueError(failures.pop())
            return word

        job = af.Job("job")
        source = generator.generate(lambda index: f"w{index % 5}", per_second=100)
        job.read(source, name="read").map(fail).write(sink, name="write")
        async with environment(universe.world("p"), every_ms=50, restart=again()).run(job) as handle:
            await asyncio.sleep(0.5)
            assert str(handle.status) == "running, attempt 1"
            hang.append(1)
            failures.append(1)
            await asyncio.sleep(30.5)
            status = handle.status
            assert status.status is af.JobStatus.RESTORING
            assert "write/0 in open" in status.waiting_for or "read/0 in open" in status.waiting_for
            assert "30 s" in status.waiting_for
            assert f"checkpoint {status.restored_checkpoint}" in status.waiting_for
            await handle.cancel()
        assert str(handle.status) == "canceled, attempt 2"

    play(story)


def test_the_status_says_which_restart_is_waited_for_and_which_checkpoint() -> None:
    async def story(universe: Universe) -> None:
        settings = environment(universe.world("p"), every_ms=50, restart=again(delay_ms=60_000))
        async with settings.run(failing_job(memory.collect(), [20])) as handle:
            await asyncio.sleep(0.5)
            status = handle.status
            assert status.status is af.JobStatus.RESTARTING
            assert status.waiting_for.startswith("restart in 60 s, after OperatorFailed: operator 'fail', subtask 0")
            with pytest.raises(af.CheckpointAborted):
                await handle.stop()
            with pytest.raises(af.JobFailed, match="it is restarting"):
                await handle.query("count.state", key="a")
            await handle.cancel()

    play(story)


def test_r114_a_record_that_fails_once_in_the_middle_of_a_batch_comes_once_and_in_order() -> None:
    async def story(universe: Universe) -> None:
        sink = memory.collect()
        async with environment(universe.world("p"), every_ms=30, restart=again()).run(
            failing_job(sink, [6, 7, 57])
        ) as handle:
            await handle.wait()
        assert sink.rows == list(range(100))

    play(story)


def test_kept_counts_never_creep_over_clean_restarts() -> None:
    """R018: stop and start cleanly three times without new input."""

    async def story(universe: Universe) -> None:
        sink = memory.collect()

        @function.source(bounded=False, runs_in_simulation=True)
        async def five(context: af.SourceContext[int]) -> AsyncIterator[af.Chunk[str]]:
            at = context.resume_at or 0
            for index in range(at, 5):
                yield af.Chunk(["a"], resume_at=index + 1)
            await asyncio.sleep(10**6)

        for life in range(4):
            async with environment(universe.world(f"life{life}"), every_ms=20).run(count_job(five(), sink)) as handle:
                await asyncio.sleep(0.1)
                assert await handle.query("count.state", key="a") == 5
        assert sink.rows == [("a", index) for index in range(1, 6)]
        assert counted(sink.rows) == {"a": 5}

    play(story)


def test_weather_of_every_kind_over_a_job_with_restarts_ends_well() -> None:
    async def story(universe: Universe) -> None:
        sink = memory.collect()
        at = [10, 40, 70]
        endings = []
        for _ in range(8):
            process = await start(
                universe, failing_job(sink, at), environment(every_ms=20, restart=again(), tolerable_failures=3)
            )
            outcome = await process.wait()
            endings.append(outcome.ending)
            if outcome.ending == "returned":
                break
        assert sink.rows == list(range(100))

    for seed in seeds(8):
        weather = [
            Kill(OnObject("put_if_absent", "*", "during", occurrence=3 + seed)),
            Kill(After("SinkCommitted", occurrence=2 + seed)),
            FailObjects(At(300 + 20 * seed), "put*", count=seed % 4),
        ]
        play(story, seed, weather=weather)
