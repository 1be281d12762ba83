"""One incarnation of a job: everything is a child of it, every failure arrives, everything is taken down."""

from __future__ import annotations

import asyncio
from functools import partial
from typing import Any

import pytest

import actorflow as af
from actorflow.abc.connectors import SinkContext
from actorflow.connectors import Inbox, generator, memory
from actorflow.model import journal
from actorflow.runtime.attempt import leaves_of
from actorflow.simulation.weather import After, At, Kill, SlowObjects
from actorflow.simulation.world import Universe
from actorflow_tests.runtime.support import (
    again,
    completed,
    count_job,
    entries,
    environment,
    play,
    running_counts,
)


def endless(sink: Any, *, splits: int = 2) -> af.Job:
    return count_job(generator.generate(lambda index: f"w{index % 5}", per_second=100, splits=splits), sink)


def test_the_leaves_of_a_group_are_found_however_deep_and_once() -> None:
    one, other = ValueError("one"), ValueError("other")
    group = ExceptionGroup("outer", [one, ExceptionGroup("inner", [other, one])])
    assert leaves_of(group) == [one, other]
    assert leaves_of(one) == [one]
    assert leaves_of(None) == []


def test_everything_is_closed_though_one_of_the_sinks_can_not_be() -> None:
    async def story(universe: Universe) -> None:
        closed: list[str] = []

        class Closes(memory.Collect[Any]):
            async def open(self, context: SinkContext) -> Any:
                writer: Any = await super().open(context)

                async def close() -> None:
                    closed.append(f"{context.operator}/{context.subtask}")
                    if context.operator == "a" and context.subtask == 0:
                        raise OSError("it is stuck")

                writer.close = close
                return writer

        job = af.Job("job")
        stream = job.read(generator.numbers(per_second=100, splits=2), name="read")
        stream.write(Closes([]), name="a")
        stream.write(Closes([]), name="b")
        async with environment(universe.world("p"), parallelism=2).run(job) as handle:
            await asyncio.sleep(0.2)
            await handle.cancel()
        assert sorted(closed) == ["a/0", "a/1", "b/0", "b/1"]
        told = [entry for entry in entries(universe, journal.FellBack) if entry.subject.startswith("closing")]
        assert len(told) == 1
        assert "it is stuck" in told[0].why

    play(story)


@pytest.mark.parametrize("ending", ["finish", "stop"])
def test_a_job_that_is_done_is_done_though_its_sink_can_never_be_closed(ending: str) -> None:
    async def story(universe: Universe) -> None:
        class Stuck(memory.Collect[Any]):
            async def open(self, context: SinkContext) -> Any:
                writer: Any = await super().open(context)

                async def close() -> None:
                    raise OSError("it is stuck")

                writer.close = close
                return writer

        sink = Stuck([])
        job = count_job(generator.generate(lambda index: f"w{index % 5}", records=100, per_second=200), sink)
        async with environment(universe.world("p"), every_ms=30, restart=again()).run(job) as handle:
            if ending == "finish":
                await handle.wait()
            else:
                await asyncio.sleep(0.2)
                await handle.stop()
        assert handle.status.status == ("finished" if ending == "finish" else "stopped")
        assert handle.status.restarts == 0
        assert sorted(sink.rows) == running_counts(f"w{index % 5}" for index in range(len(sink.rows)))
        assert any("it is stuck" in entry.why for entry in entries(universe, journal.FellBack))

    play(story)


def test_several_sinks_that_close_slowly_close_beside_each_other() -> None:
    async def story(universe: Universe) -> None:
        class Slow(memory.Collect[Any]):
            async def open(self, context: SinkContext) -> Any:
                writer: Any = await super().open(context)

                async def close() -> None:
                    await asyncio.sleep(3)

                writer.close = close
                return writer

        async with environment(universe.world("p"), parallelism=4).run(endless(Slow([]))) as handle:
            await asyncio.sleep(0.2)
            began = universe.now_ms()
            await handle.cancel()
        assert universe.now_ms() - began < 3_500

    play(story)


def test_an_attempt_that_failed_is_closed_whole_before_the_next_one_opens() -> None:
    async def story(universe: Universe) -> None:
        log: list[str] = []

        class Closes(memory.Collect[Any]):
            async def open(self, context: SinkContext) -> Any:
                log.append(f"open {context.generation}")
                writer: Any = await super().open(context)

                async def close() -> None:
                    await asyncio.sleep(1)
                    log.append(f"close {context.generation}")

                writer.close = close
                return writer

        at = [30]

        def fail(number: int) -> int:
            if number in at:
                at.remove(number)
                raise ValueError(number)
            return number

        sink = Closes([])
        job = af.Job("job")
        job.read(generator.numbers(60, per_second=200), name="read").map(fail).rebalance().write(
            sink, name="write", parallelism=2
        )
        async with environment(universe.world("p"), every_ms=20, restart=again()).run(job) as handle:
            await handle.wait()
        assert log == ["open 1"] * 2 + ["close 1"] * 2 + ["open 2"] * 2 + ["close 2"] * 2
        assert sorted(sink.rows) == list(range(60))

    play(story)


def test_what_is_being_restored_is_not_shown_to_a_query() -> None:
    async def story(universe: Universe) -> None:
        fails: list[int] = []

        def fail(word: str) -> str:
            if fails:
                raise ValueError(fails.pop())
            return word

        job = af.Job("count")
        source = generator.generate(lambda index: f"w{index % 5}", per_second=100)
        job.read(source, name="read").map(fail).key_by(str.lower).count(name="count").write(
            memory.collect(), name="write"
        )
        settings = environment(universe.world("p"), every_ms=50, restart=again())
        async with settings.run(job) as handle:
            await asyncio.sleep(0.5)
            universe.expect(SlowObjects(After("JobRestarting"), "*", count=20, by_ms=300))
            fails.append(1)
            seen = []
            for _ in range(200):
                await asyncio.sleep(0.02)
                try:
                    seen.append(await handle.query("count.state", key="w0"))
                except af.JobFailed as error:
                    seen.append(str(error).rpartition(" ")[2])
            numbers = [one for one in seen if isinstance(one, int)]
            assert "claiming" in seen
            assert None not in seen
            assert min(numbers) >= 7
            await handle.cancel()

    play(story)


@pytest.mark.parametrize("seed", range(6))
def test_sweeping_the_sinks_of_many_actors_happens_in_their_own_turns_and_once_per_operator(seed: int) -> None:
    async def story(universe: Universe) -> None:
        swept: list[int] = []

        class Sweeps(memory.Collect[Any]):
            async def open(self, context: SinkContext) -> Any:
                writer: Any = await super().open(context)
                busy = [False]
                write = writer.write

                async def slow_write(records: list[Any]) -> None:
                    assert not busy[0], "two methods at once"
                    busy[0] = True
                    await asyncio.sleep(0.003)
                    await write(records)
                    busy[0] = False

                async def sweep(keep: list[Any]) -> int:
                    assert not busy[0], "two methods at once"
                    busy[0] = True
                    await asyncio.sleep(0.02)
                    swept.append(context.subtask)
                    busy[0] = False
                    return 1

                writer.write, writer.sweep = slow_write, sweep
                return writer

        sink = Sweeps([])
        async with environment(universe.world("p"), every_ms=30, parallelism=3).run(endless(sink)):
            await asyncio.sleep(0.3)
        assert swept == [0]
        assert sorted(sink.rows) == running_counts(f"w{index % 5}" for index in range(len(sink.rows)))

    play(story, seed)


def test_a_sweep_that_fails_is_told_and_harms_nobody() -> None:
    async def story(universe: Universe) -> None:
        class Sweeps(memory.Collect[Any]):
            async def open(self, context: SinkContext) -> Any:
                writer: Any = await super().open(context)

                async def sweep(keep: list[Any]) -> int:
                    raise OSError("not today")

                writer.sweep = sweep
                return writer

        async with environment(universe.world("p"), every_ms=30).run(endless(Sweeps([]))) as handle:
            await asyncio.sleep(0.2)
        assert handle.status.status is af.JobStatus.STOPPED
        assert any("not today" in entry.why for entry in entries(universe, journal.FellBack))

    play(story)


def test_an_inbox_that_is_stopped_gives_out_everything_also_over_a_failure() -> None:
    """What was accepted and not yet read when the attempt failed is read by the next one, which then stops."""

    async def story(universe: Universe) -> None:
        inbox: Inbox[int] = Inbox(int, capacity=5_000)
        sink, at = memory.collect(), [300]

        def fail(number: int) -> int:
            if number in at:
                at.remove(number)
                raise ValueError(number)
            return number

        job = af.Job("job")
        job.read(inbox, name="read").map(fail).rebalance().write(sink, name="write")
        async with environment(universe.world("p"), restart=again()).run(job) as handle:
            for number in range(5_000):
                inbox.send_nowait(number)
            with pytest.raises(af.CheckpointAborted):
                await handle.stop()
            while handle.status.status != "running":
                await asyncio.sleep(0.001)
            await handle.stop()
        assert handle.status.status is af.JobStatus.STOPPED
        assert sink.rows == sorted(sink.rows)
        assert sink.rows[-1] == 4_999
        assert completed(universe)

    play(story, batch_us=500)


@pytest.mark.parametrize("every", [11, pytest.param(1, marks=pytest.mark.slow)])
def test_dying_at_any_entry_of_the_journal_is_survived(every: int) -> None:
    """One kill at each entry that the life of a small job makes, one after the other."""

    def job(sink: Any) -> af.Job:
        return count_job(generator.generate(lambda index: f"w{index % 3}", records=24, per_second=400, splits=2), sink)

    async def calm(universe: Universe) -> int:
        async with environment(universe.world("p"), every_ms=15, parallelism=2).run(job(memory.collect())) as handle:
            await handle.wait()
        return len(universe.journal)

    entries_of_a_life = play(calm)
    assert entries_of_a_life > 50

    async def story(universe: Universe, number: int) -> None:
        from actorflow_tests.runtime.support import start

        sink = memory.collect()
        seen = [0]

        def watch(line: journal.Line) -> None:
            seen[0] += 1
            if seen[0] == number:
                universe.strike_soon([Kill(At(0), "p")], universe.processes["p"])

        universe.subscribe(watch)
        process = await start(universe, job(sink), environment(every_ms=15, parallelism=2))
        if (await process.wait()).ending == "killed":
            process = await start(universe, job(sink), environment(every_ms=15, parallelism=1 + number % 3))
            assert (await process.wait()).result() is af.JobStatus.FINISHED
        assert sorted(sink.rows) == running_counts(f"w{index % 3}" for index in range(24))

    for number in range(1, entries_of_a_life, every):
        play(partial(story, number=number), seed=number)
