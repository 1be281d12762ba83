"""The way in: inside any running loop, with plain errors, and with nothing left behind."""

from __future__ import annotations

import asyncio
import gc
import signal
from datetime import timedelta
from typing import Any

import anyio
import pytest

import actorflow as af
from actorflow.abc.connectors import SinkContext
from actorflow.connectors import Inbox, files, generator, memory
from actorflow.model import journal
from actorflow.simulation.weather import At, FailObjects, SlowObjects
from actorflow.simulation.world import Universe
from actorflow_tests.runtime.support import (
    completed,
    count_job,
    entries,
    environment,
    play,
    running_counts,
)


def endless(sink: Any, *, name: str = "endless") -> af.Job:
    return count_job(generator.generate(lambda index: f"w{index % 5}", per_second=100), sink, name=name)


# ── settings ─────────────────────────────────────────────────────────────────────────────────


def test_what_is_said_wins_over_settings_and_all_mistakes_are_told_at_once() -> None:
    base = af.Environment.from_mapping({"parallelism": 3, "checkpoints.every": "10s"})
    assert base.settings.parallelism == 3
    over = af.Environment(settings=base.settings, parallelism=2)
    assert over.settings.parallelism == 2
    assert over.settings.checkpoints.every == timedelta(seconds=10)
    with pytest.raises(af.InvalidConfig) as caught:
        af.Environment.from_mapping({"paralelism": 3, "checkpoints.every": "10 parsecs"})
    assert len(caught.value.problems) == 2


def test_what_the_job_says_stands_above_the_environment() -> None:
    async def story(universe: Universe) -> None:
        job = af.Job("job", parallelism=2, settings={"checkpoints.every": "50ms"})
        job.read(generator.numbers(per_second=100), name="read").map(lambda number: number).write(
            memory.collect(), name="write"
        )
        async with environment(universe.world("p"), parallelism=3).run(job) as handle:
            await asyncio.sleep(0.5)
            assert {vertex.parallelism for vertex in handle.plan.vertices} == {2}
        assert len(completed(universe)) > 5

    play(story)


# ── errors before the block ──────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("make", "error"),
    [
        (lambda: af.Job("empty"), af.InvalidJob),
        (lambda: endless(files.write("/proc\0")), af.InvalidJob),
    ],
)
def test_a_job_that_can_not_run_is_refused_on_entering(make: Any, error: type[Exception]) -> None:
    async def story(universe: Universe) -> None:
        with pytest.raises(error):
            async with environment(universe.world("p")).run(make()):
                raise AssertionError("it must not run")

    play(story)


@pytest.mark.parametrize("on_failure", ["raise", "report"])
def test_what_fails_before_the_block_is_raised_on_entering_as_it_is(on_failure: Any) -> None:
    async def story(universe: Universe) -> None:
        class Refuses(memory.Collect[Any]):
            async def open(self, context: SinkContext) -> Any:
                raise PermissionError("not here")

        entered = environment(universe.world("p")).run(endless(Refuses([])), on_failure=on_failure)
        with pytest.raises(af.OperatorFailed) as caught:
            await entered.__aenter__()
        assert "operator 'write', subtask 0: its sink could not be opened: PermissionError: not here" in str(
            caught.value
        )
        assert isinstance(caught.value.__cause__, PermissionError)

    play(story)


def test_an_error_of_the_block_carries_a_note_when_the_job_failed_too() -> None:
    async def story(universe: Universe) -> None:
        async def stubborn(number: int) -> int:
            try:
                await asyncio.sleep(100)
            except asyncio.CancelledError:
                raise RuntimeError("no") from None
            return number

        job = af.Job("job")
        job.read(memory.source([1]), name="read").map(stubborn, name="call").write(memory.collect(), name="write")
        with pytest.raises(ZeroDivisionError) as caught:
            async with environment(universe.world("p")).run(job):
                await asyncio.sleep(0.1)
                raise ZeroDivisionError
        assert any("the job failed" in note for note in caught.value.__notes__)

    play(story)


# ── inside a loop that belongs to somebody else ──────────────────────────────────────────────


def test_no_signal_handler_is_installed_and_nothing_is_left_of_a_job() -> None:
    async def story(universe: Universe) -> None:
        before = [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)]
        async with environment(universe.world("p"), every_ms=20).run(endless(memory.collect())):
            assert before == [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)]
            await asyncio.sleep(0.1)
        assert [task for task in asyncio.all_tasks() if task is not asyncio.current_task()] == []

    play(story)
    assert gc.isenabled()


def test_r135_nothing_vanishes_though_the_collector_runs_all_the_time() -> None:
    async def story(universe: Universe) -> None:
        sink = memory.collect()
        collecting = asyncio.ensure_future(collect())
        job = count_job(generator.generate(lambda index: f"w{index % 5}", records=100, per_second=500), sink)
        async with environment(universe.world("p"), every_ms=10, parallelism=2).run(job) as handle:
            await handle.wait()
        collecting.cancel()
        await asyncio.wait([collecting])
        assert sorted(sink.rows) == running_counts(f"w{index % 5}" for index in range(100))
        started = entries(universe, journal.CheckpointTriggered)
        assert len(started) == len(completed(universe)) > 5

    async def collect() -> None:
        while True:
            await asyncio.sleep(0.01)
            gc.collect()

    play(story)


def test_an_inbox_is_felt_by_its_senders_and_a_query_sees_the_state_of_the_moment() -> None:
    class Score(af.KeyedOperator[str, str, tuple[str, float]]):
        level = af.ValueState(float)
        pages = af.MapState(str, int)

        def on_record(self, click: str, context: af.Context[str]) -> Any:
            self.level.value = 1.0 + self.level.value * 0.5
            self.pages[click] = self.pages.get(click, 0) + 1
            yield context.key, self.level.value

    async def story(universe: Universe) -> None:
        clicks: Inbox[str] = Inbox(str, capacity=10)
        sink = memory.collect()
        job = af.Job("scores")
        job.read(clicks, name="clicks").key_by(lambda click: click[0]).process(Score, name="score").write(
            sink, name="log"
        )
        async with environment(universe.world("p"), parallelism=3).run(job) as handle:
            for _ in range(50):
                for user in "abc":
                    await clicks.send(f"{user}/page")
            while handle.progress.records_written < 150:
                await asyncio.sleep(0.001)
            assert await handle.query("score.level", key="a") == pytest.approx(2.0)
            pages = await handle.query("score.pages", key="b")
            assert pages == {"b/page": 50}
            pages["b/page"] = 0
            assert await handle.query("score.pages", key="b") == {"b/page": 50}, "it was a copy"
            assert await handle.query("score.level", key="z") is None
            for state in ("score.nothing", "nobody.level", "level", ""):
                with pytest.raises(KeyError):
                    await handle.query(state, key="a")
            with pytest.raises(af.InvalidValue):
                await handle.query("score.level", key=["a"])
        assert len(sink.rows) == 150
        with pytest.raises(af.JobFailed, match="it is stopped"):
            await handle.query("score.level", key="a")

    play(story)


def test_a_query_goes_to_the_subtask_that_owns_the_key_also_after_rescaling() -> None:
    async def story(universe: Universe) -> None:
        for life, parallelism in enumerate((2, 3, 1)):
            async with environment(universe.world(f"p{life}"), parallelism=parallelism).run(
                endless(memory.collect())
            ) as handle:
                await asyncio.sleep(0.5)
                counts = [await handle.query("count.state", key=f"w{index}") for index in range(5)]
                assert sum(counts) == pytest.approx(50 * (life + 1), abs=5 * (life + 1))

    play(story)


def test_two_jobs_of_different_names_run_beside_each_other() -> None:
    async def story(universe: Universe) -> None:
        world, one, other = universe.world("p"), memory.collect(), memory.collect()
        async with (
            environment(world, every_ms=20).run(endless(one, name="one")),
            environment(world, every_ms=20).run(endless(other, name="other")) as second,
        ):
            await asyncio.sleep(0.3)
            await second.cancel()
            await asyncio.sleep(0.3)
        assert len(one.rows) > len(other.rows) > 10

    play(story)


@pytest.mark.parametrize("scope", ["anyio", "asyncio"])
def test_a_block_inside_a_time_limit_of_its_program_ends_with_it(scope: str) -> None:
    async def story(universe: Universe) -> None:
        async def block() -> None:
            async with environment(universe.world("p"), every_ms=50).run(endless(memory.collect())):
                await asyncio.sleep(3_600)

        if scope == "anyio":
            with anyio.move_on_after(1) as limit:
                await block()
            assert limit.cancelled_caught
        else:
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(1):
                    await block()
        assert len(entries(universe, journal.JobCanceled)) == 1
        assert universe.now_ms() < 2_000

    play(story)


def test_leaving_gives_up_on_the_last_checkpoint_after_stop_within_and_says_from_where_the_next_start_replays() -> None:
    async def story(universe: Universe) -> None:
        settings = environment(universe.world("p"), every_ms=100, stop_within=timedelta(seconds=2))
        async with settings.run(endless(memory.collect())) as handle:
            await asyncio.sleep(0.5)
            universe.expect(SlowObjects(At(0), "put_if_absent", "*chk-*", count=10, by_ms=60_000))
            await asyncio.sleep(0)
            began = universe.now_ms()
        assert universe.now_ms() - began < 2_500
        assert handle.status.status is af.JobStatus.CANCELED
        told = entries(universe, journal.FellBack)[-1]
        last = handle.status.last_checkpoint
        assert last is not None
        assert told.taken == f"the next start replays from checkpoint {last.checkpoint_id}"
        assert "stop_within=2 s" in told.why

    play(story)


def test_leaving_cancels_when_the_last_checkpoint_fails() -> None:
    async def story(universe: Universe) -> None:
        async with environment(universe.world("p")).run(endless(memory.collect())) as handle:
            await asyncio.sleep(0.2)
            universe.expect(FailObjects(At(0), "put*", "*chk-*", count=100))
            await asyncio.sleep(0)
        assert handle.status.status is af.JobStatus.CANCELED
        told = entries(universe, journal.FellBack)[-1]
        assert told.taken == "the next start replays from where this one began"

    play(story)


def test_the_handle_says_what_it_is_and_counts() -> None:
    async def story(universe: Universe) -> None:
        sink = memory.collect()
        job = count_job(generator.generate(lambda index: f"w{index % 5}", records=100), sink)
        async with environment(universe.world("p"), parallelism=2).run(job) as handle:
            assert handle.name == "count"
            assert "count" in repr(handle)
            await handle.wait()
            assert repr(handle) == "<JobHandle 'count': finished, attempt 1>"
            with pytest.raises(af.CheckpointAborted):
                await handle.checkpoint()
        progress = handle.progress
        assert (progress.checkpoints_completed, progress.checkpoints_failed) == (1, 0)

    play(story)


def test_progress_counts_records_in_and_out_and_what_waits() -> None:
    async def story(universe: Universe) -> None:
        async with environment(universe.world("p"), parallelism=2).run(endless(memory.collect())) as handle:
            await asyncio.sleep(1)
            progress = handle.progress
            read, counted = progress.chains
            assert progress.records_read == read.records_in == read.records_out
            assert progress.records_read == pytest.approx(100, abs=5)
            assert counted.records_in == progress.records_written == pytest.approx(100, abs=5)
            assert counted.operators == ("count", "write")
            assert counted.waiting_batches == 0

    play(story)


def test_a_program_without_a_world_of_its_own_runs_in_the_real_one() -> None:
    async def program() -> list[Any]:
        sink = memory.collect()
        async with af.Environment(parallelism=2).run(count_job(memory.source(["a", "b", "a"]), sink)) as handle:
            await handle.wait()
        return sorted(sink.rows)

    assert asyncio.run(program()) == [("a", 1), ("a", 2), ("b", 1)]
