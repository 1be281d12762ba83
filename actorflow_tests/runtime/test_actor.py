"""Take, process, flush: jobs of every shape give what a plain loop gives, and nothing waits longer than it must."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from datetime import timedelta
from functools import partial
from typing import Any

import pytest

import actorflow as af
from actorflow.abc.connectors import SinkContext
from actorflow.connectors import Inbox, function, generator, memory
from actorflow.model import journal
from actorflow.simulation.weather import After, At, Slow
from actorflow.simulation.world import Universe
from actorflow_tests.runtime.support import (
    again,
    completed,
    count_job,
    entries,
    environment,
    play,
    running_counts,
    seeds,
)

WORDS = [f"w{index * index % 37}" for index in range(900)]
SKEWED = ["hot"] * 850 + [f"cold{index}" for index in range(50)]
TIGHT = af.Buffers(per_channel=1, floating_per_gate=0, most_per_channel=1, records=7)
ONE_BY_ONE = af.Buffers(per_channel=1, floating_per_gate=0, most_per_channel=1, records=1)


@pytest.mark.parametrize("parallelism", [1, 2, 3, 4])
@pytest.mark.parametrize("buffers", [af.Buffers(), TIGHT, ONE_BY_ONE], ids=["default", "tight", "one"])
@pytest.mark.parametrize("words", [WORDS, SKEWED], ids=["even", "skewed"])
def test_a_job_to_its_end_equals_the_plain_loop(parallelism: int, buffers: af.Buffers, words: list[str]) -> None:
    async def story(universe: Universe) -> None:
        sink = memory.collect()
        job = count_job(memory.source(words, splits=3, chunk_records=40), sink)
        settings = environment(universe.world("p"), every_ms=5, parallelism=parallelism, buffers=buffers)
        async with settings.run(job) as handle:
            assert await handle.wait() is af.JobStatus.FINISHED
        assert sorted(sink.rows) == running_counts(words)

    play(story, seed=parallelism, batch_us=500)


def test_a_job_without_storage_checkpoints_or_records_finishes_too() -> None:
    async def story(universe: Universe) -> None:
        for index, words in enumerate(([], ["a"])):
            sink = memory.collect()
            settings = environment(universe.world(f"p{index}"), storage=None, parallelism=3)
            async with settings.run(count_job(memory.source(words), sink)) as handle:
                assert await handle.wait() is af.JobStatus.FINISHED
            assert sink.rows == running_counts(words)

    play(story)


@pytest.mark.parametrize("parallelism", [1, 2, 3])
def test_fan_out_union_branch_and_side_outputs_lose_and_double_nothing(parallelism: int) -> None:
    """R150 without the join: branches that part and meet again, at one buffer per channel."""

    class Sides(af.Operator[int, int]):
        def on_record(self, value: int, context: af.Context[None]) -> Any:
            if value % 5 == 0:
                context.emit_to("fives", value)
            return [value]

    async def story(universe: Universe) -> None:
        everything, small, fives, odd = (memory.collect() for _ in range(4))
        fails = [110, 140]

        def fail(value: int) -> int:
            if value in fails:
                fails.remove(value)
                raise ValueError(value)
            return value

        job = af.Job("shapes")
        source = job.read(memory.source(range(200), splits=2, chunk_records=9), name="read")
        marked = source.process(Sides, name="sides")
        large, rest = marked.branch(lambda value: value >= 100)
        large.rebalance().map(fail).union(rest.shuffle().map(lambda value: value)).write(everything, name="everything")
        rest.write(small, name="small")
        marked.side_output("fives").rebalance().write(fives, name="fives")
        source.filter(lambda value: value % 2 == 1).write(odd, name="odd")
        settings = environment(universe.world("p"), every_ms=5, parallelism=parallelism, restart=again(), buffers=TIGHT)
        async with settings.run(job) as handle:
            await handle.wait()
        assert handle.status.restarts == 2
        assert Counter(everything.rows) == Counter(range(200))
        assert sorted(small.rows) == list(range(100))
        assert sorted(fives.rows) == list(range(0, 200, 5))
        assert sorted(odd.rows) == list(range(1, 200, 2))

    for seed in seeds(3):
        play(story, seed, batch_us=500)


def test_the_order_of_each_sender_and_key_is_kept_through_every_stage() -> None:
    async def story(universe: Universe) -> None:
        sink = memory.collect()
        job = af.Job("order")
        source = memory.source([(index % 11, index) for index in range(1_100)], splits=1, chunk_records=13)
        (
            job.read(source, name="read")
            .key_by(lambda record: record[0])
            .stateful_map(
                lambda state, record: ((state or 0) + 1, (record[0], record[1], (state or 0) + 1)), name="nth"
            )
            .key_by(lambda record: record[0])
            .stateful_map(lambda state, record: ((state or 0) + 1, (*record, (state or 0) + 1)), name="again")
            .write(sink, name="write")
        )
        async with environment(universe.world("p"), parallelism=3, every_ms=5, buffers=TIGHT).run(job) as handle:
            await handle.wait()
        for key in range(11):
            rows = [row for row in sink.rows if row[0] == key]
            assert [row[1] for row in rows] == list(range(key, 1_100, 11))
            assert [row[2:] for row in rows] == [(nth, nth) for nth in range(1, 101)]

    play(story, batch_us=300)


# ── when a partly filled buffer leaves ───────────────────────────────────────────────────────


def test_a_single_record_reaches_an_idle_sink_without_any_time_passing() -> None:
    async def story(universe: Universe) -> None:
        inbox: Inbox[int] = Inbox(int)
        seen: list[tuple[int, int]] = []
        job = af.Job("job")
        job.read(inbox, name="read").key_by(lambda value: value).map(lambda value: value, name="on").write(
            function.call(lambda value: seen.append((value, universe.now_ms()))), name="write"
        )
        async with environment(universe.world("p"), storage=None, parallelism=2).run(job):
            for value in range(5):
                await asyncio.sleep(1)
                sent = universe.now_ms()
                await inbox.send(value)
                await asyncio.sleep(0.001)
                assert seen[-1] == (value, sent)

    play(story)


def test_what_fills_slowly_under_steady_input_leaves_after_flush_after() -> None:
    """The actor is never idle: one record in a thousand goes the other way, and does not wait for company for ever."""

    async def story(universe: Universe) -> None:
        rare: list[tuple[int, int]] = []
        job = af.Job("job")

        @function.source(bounded=False, runs_in_simulation=True)
        async def steady(context: af.SourceContext[int]) -> AsyncIterator[af.Chunk[int]]:
            number = 0
            while True:
                yield af.Chunk([number], resume_at=number)
                number += 1

        way, rest = job.read(steady(), name="read").branch(lambda value: value % 1_000 == 500)
        way.rebalance().write(function.call(lambda value: rare.append((value, universe.now_ms()))), name="rare")
        rest.rebalance().write(function.call(lambda value: None), name="often")
        buffers = af.Buffers(flush_after=timedelta(milliseconds=40))
        began = universe.now_ms()
        async with environment(universe.world("p"), storage=None, buffers=buffers).run(job) as handle:
            while len(rare) < 2:
                await asyncio.sleep(0.001)
            await handle.cancel()
        # Every batch of one record takes up to two milliseconds, so record 500 is made after about half a second.
        assert rare[0][0] == 500
        assert rare[0][1] - began < 1_500

    play(story, batch_us=2_000)


def test_a_barrier_pushes_what_is_being_filled_before_it() -> None:
    async def story(universe: Universe) -> None:
        sink = memory.collect()
        job = af.Job("job")
        job.read(generator.numbers(per_second=1_000), name="read").rebalance().map(lambda value: value).write(
            sink, name="write"
        )
        buffers = af.Buffers(records=10_000, flush_after=timedelta(hours=1))
        async with environment(universe.world("p"), buffers=buffers).run(job) as handle:
            await asyncio.sleep(0.1)
            await handle.checkpoint()
            await asyncio.sleep(0.01)
            assert len(sink.rows) > 50

    play(story)


# ── sinks ────────────────────────────────────────────────────────────────────────────────────


def test_r022_a_record_that_is_refused_only_at_the_flush_fails_the_checkpoint_and_comes_again() -> None:
    class Refuses(memory.Append[Any]):
        """Accepts everything, and says only at the flush that it lost one."""

        def __init__(self) -> None:
            super().__init__([])
            self.refuse = [3]

        async def open(self, context: SinkContext) -> Any:
            writer: Any = await super().open(context)
            pending: list[Any] = []

            async def write(records: list[Any]) -> None:
                pending.extend(records)

            async def flush() -> None:
                taken, failed = pending[:], [value for value in pending if value in self.refuse]
                pending.clear()
                self.rows.extend(value for value in taken if value not in self.refuse)
                if failed:
                    self.refuse.clear()
                    raise OSError(f"record {failed[0]} was not confirmed")

            writer.write, writer.flush = write, flush
            return writer

    async def story(universe: Universe) -> None:
        sink = Refuses()
        job = af.Job("job")
        job.read(generator.numbers(10, per_second=100), name="read").write(sink, name="write")
        async with environment(universe.world("p"), every_ms=30, restart=again()).run(job) as handle:
            await handle.wait()
        assert {*sink.rows} == {*range(10)}
        assert handle.status.restarts == 1
        [failed] = entries(universe, journal.ActorFailed)
        assert (failed.operator, failed.subtask, failed.cause) == ("write", 0, "OSError")
        assert "flushing raised OSError: record 3 was not confirmed" in failed.detail

    for seed in seeds(4):
        play(story, seed)


def test_a_sink_that_raises_is_named_with_its_subtask() -> None:
    class Raises(memory.Append[Any]):
        async def open(self, context: SinkContext) -> Any:
            writer: Any = await super().open(context)

            async def write(records: list[Any]) -> None:
                raise OSError("no space")

            writer.write = write
            return writer

    async def story(universe: Universe) -> None:
        job = af.Job("job")
        job.read(memory.source([1]), name="read").map(lambda value: value, name="on").write(Raises([]), name="write")
        with pytest.raises(af.JobFailed, match="operator 'write', subtask 0: writing raised OSError: no space"):
            async with environment(universe.world("p")).run(job) as handle:
                await handle.wait()

    play(story)


def test_a_sink_that_hangs_in_a_write_lets_barriers_wait_but_never_loses_one() -> None:
    async def story(universe: Universe) -> None:
        sink = memory.collect()
        universe.expect(Slow(After("CheckpointTriggered", occurrence=2), "write", by_ms=3_000, for_ms=2_000))
        job = count_job(generator.generate(lambda index: f"w{index % 7}", records=200, per_second=200), sink)
        async with environment(universe.world("p"), every_ms=100, buffers=TIGHT, parallelism=2).run(job) as handle:
            await handle.wait()
        assert sorted(sink.rows) == running_counts(f"w{index % 7}" for index in range(200))
        assert len(completed(universe)) >= 3

    for seed in seeds(3):
        play(story, seed)


# ── hooks ────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    "hook",
    [
        "on_open",
        "on_restored",
        "on_snapshot",
        "on_checkpoint_completed",
        "on_checkpoint_aborted",
        "on_end_of_input",
        "on_close",
        "on_record",
    ],
)
def test_a_hook_that_raises_once_fails_the_attempt_by_name_and_the_output_is_right(hook: str) -> None:
    """Every moment at which a user's code runs may raise; the job is told where, goes on and loses nothing."""

    async def story(universe: Universe) -> None:
        raised: list[str] = []
        sink = memory.collect()

        class Hooked(af.KeyedOperator[str, str, Any]):
            seen = af.ValueState(int)

            def _maybe(self, name: str) -> None:
                if name == hook and not raised and (name != "on_open" or completed(universe)):
                    raised.append(name)
                    raise ValueError(f"raised in {name}")

            def on_record(self, word: str, context: af.Context[str]) -> Any:
                if word == "w3":
                    self._maybe("on_record")
                self.seen.value += 1
                return [(word, self.seen.value)]

            def on_open(self, context: af.HookContext) -> None:
                self._maybe("on_open")

            def on_restored(self, context: af.HookContext) -> None:
                self._maybe("on_restored")

            def on_snapshot(self, checkpoint_id: int) -> None:
                self._maybe("on_snapshot")

            def on_checkpoint_completed(self, checkpoint_id: int) -> None:
                self._maybe("on_checkpoint_completed")

            def on_checkpoint_aborted(self, checkpoint_id: int) -> None:
                self._maybe("on_checkpoint_aborted")

            def on_end_of_input(self, context: af.HookContext) -> Any:
                self._maybe("on_end_of_input")

            def on_close(self) -> None:
                self._maybe("on_close")

        at = [120]

        def fail(word: str) -> str:
            if hook in ("on_open", "on_restored") and at and universe.now_ms() > at[0]:
                at.clear()
                raise ValueError("an attempt has to be followed by another")
            return word

        job = af.Job("job")
        source = generator.generate(lambda index: f"w{index % 7}", records=100, per_second=200, splits=2)
        job.read(source, name="read").map(fail, name="fail").key_by(str.lower).process(Hooked, name="hooked").write(
            sink, name="write"
        )
        if hook == "on_checkpoint_aborted":
            universe.expect(Slow(At(100), "hooked", by_ms=600, for_ms=100))
        settings = environment(
            universe.world("p"), every_ms=40, parallelism=2, restart=again(20), tolerable_failures=5, timeout_ms=200
        )
        async with settings.run(job) as handle:
            assert await handle.wait() is af.JobStatus.FINISHED
        assert sorted(sink.rows) == running_counts(f"w{index % 7}" for index in range(100))
        assert raised == [hook]
        told = [entry.detail for entry in entries(universe, journal.ActorFailed)]
        told += [entry.detail for entry in entries(universe, journal.JobRestarting)]
        told += [entry.why for entry in entries(universe, journal.FellBack)]
        assert any("'hooked'" in words and f"raised in {hook}" in words for words in told), told

    for seed in seeds(2):
        play(story, seed)


def test_a_generator_that_raises_when_it_is_closed_is_heard() -> None:
    @function.source(bounded=False, runs_in_simulation=True)
    async def bad(context: af.SourceContext[int]) -> AsyncIterator[af.Chunk[int]]:
        at = context.resume_at or 0
        try:
            while True:
                await asyncio.sleep(0.01)
                at += 1
                yield af.Chunk([at], resume_at=at)
        finally:
            raise OSError("could not close")

    async def story(universe: Universe, ending: str) -> None:
        sink = memory.collect()
        job = af.Job("job")
        job.read(bad(), name="read").write(sink, name="write")
        if ending == "stop":
            async with environment(universe.world("p")).run(job):
                await asyncio.sleep(0.1)
            told = entries(universe, journal.FellBack)
            assert any("could not close" in one.why for one in told)
            assert sink.rows
        else:
            with pytest.raises(af.JobFailed, match="could not close"):
                async with environment(universe.world("p")).run(job) as handle:
                    await asyncio.sleep(0.1)
                    await (handle.cancel() if ending == "cancel" else handle.drain())

    for ending in ("stop", "cancel", "drain"):
        play(partial(story, ending=ending))


# ── keys and values that can't be kept ───────────────────────────────────────────────────────


class Unknown:
    """Nobody registered it."""


@pytest.mark.parametrize(
    ("bad", "where"),
    [
        ("key", "operator 'key_by'"),
        ("state", "operator 'keeps'"),
        ("position", "read.actorflow.splits[0][1]"),
        ("output", "write.actorflow.committables[0][1]"),
    ],
)
def test_what_cannot_be_written_down_fails_the_job_once_with_its_place(bad: str, where: str) -> None:
    """It is not tried again: the next attempt would meet it too."""

    @function.source(runs_in_simulation=True)
    async def positions(context: af.SourceContext[Any]) -> AsyncIterator[af.Chunk[int]]:
        for number in range(200):
            await asyncio.sleep(0.01)
            yield af.Chunk([number], resume_at=Unknown() if bad == "position" else number + 1)

    def keep(state: Any, value: int) -> Any:
        return (Unknown() if bad == "state" else value), (Unknown() if bad == "output" else value)

    async def story(universe: Universe) -> None:
        job = af.Job("job")
        (
            job.read(positions(), name="read")
            .key_by(lambda value: Unknown() if bad == "key" else value)
            .stateful_map(keep, name="keeps")
            .write(memory.collect(), name="write")
        )
        with pytest.raises(af.JobFailed) as caught:
            async with environment(universe.world("p"), every_ms=50, restart=again()).run(job) as handle:
                await handle.wait()
        assert isinstance(caught.value.__cause__, af.InvalidValue), repr(caught.value.__cause__)
        message = "\n".join([str(caught.value), *getattr(caught.value.__cause__, "__notes__", ())])
        assert where in message
        assert "Unknown" in message
        assert handle.status.restarts == 0

    play(story)
