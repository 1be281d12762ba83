"""Splits, pumps and positions: each split is read by one subtask, from where the snapshot says, and closed in peace."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from datetime import timedelta
from typing import Any

import pytest

import actorflow as af
from actorflow.abc.connectors import Chunk, Source, SourceContext
from actorflow.connectors import function, memory
from actorflow.model import journal
from actorflow.simulation.world import Universe
from actorflow_tests.runtime.support import again, completed, entries, environment, play, seeds, start


class Splits(Source[tuple[str, int]]):
    """So many splits of so many records; says who read what, and who was open at the same time."""

    runs_in_simulation = True

    def __init__(self, splits: int, records: int = 20, *, at_once: int | None = 1, chunk: int = 3) -> None:
        self.splits, self.records, self.chunk = splits, records, chunk
        self.splits_at_once = at_once
        self.read_by: list[tuple[str, int, Any]] = []
        self.open: Counter[int] = Counter()
        self.most_open = 0

    async def discover(self, world: Any) -> Sequence[str]:
        return [f"s{index:02}" for index in range(self.splits)]

    async def read(self, context: SourceContext[int]) -> AsyncIterator[Chunk[tuple[str, int]]]:
        self.read_by.append((context.split, context.subtask, context.resume_at))
        self.open[context.subtask] += 1
        self.most_open = max(self.most_open, self.open[context.subtask])
        try:
            at = context.resume_at or 0
            while at < self.records:
                await context.world.clock.sleep(2)
                to = min(at + self.chunk, self.records)
                yield Chunk([(context.split, number) for number in range(at, to)], resume_at=to)
                at = to
        finally:
            self.open[context.subtask] -= 1


def copying(source: Any, sink: Any, **options: Any) -> af.Job:
    job = af.Job("copy")
    job.read(source, name="read", **options).write(sink, name="write")
    return job


@pytest.mark.parametrize("parallelism", [1, 2, 3, 7])
@pytest.mark.parametrize("at_once", [1, 2, None])
def test_every_split_is_read_once_by_one_subtask_and_no_more_at_once_than_allowed(
    parallelism: int, at_once: int | None
) -> None:
    async def story(universe: Universe) -> None:
        source, sink = Splits(5, at_once=at_once), memory.collect()
        async with environment(universe.world("p"), every_ms=10, parallelism=parallelism).run(
            copying(source, sink)
        ) as handle:
            await handle.wait()
        assert Counter(split for split, _, _ in source.read_by) == Counter(f"s{index:02}" for index in range(5))
        assert source.most_open <= (at_once or 5)
        for split in range(5):
            of_it = [number for name, number in sink.rows if name == f"s{split:02}"]
            assert of_it == list(range(20)), "INV-12.4, and in order"

    play(story)


def test_positions_are_those_of_chunks_that_were_taken_and_done_splits_are_not_read_again() -> None:
    async def story(universe: Universe) -> None:
        source, sink = Splits(4, records=40), memory.collect()
        for parallelism in (2, 3):
            process = await start(universe, copying(source, sink), environment(every_ms=15, parallelism=parallelism))
            await asyncio.sleep(0.04)
            process.kill()
            await process.wait()
        process = await start(universe, copying(source, sink), environment(every_ms=15, parallelism=1))
        assert (await process.wait()).result() is af.JobStatus.FINISHED
        assert sorted(sink.rows) == sorted((f"s{split:02}", number) for split in range(4) for number in range(40))
        assert any(resumed is not None for _, _, resumed in source.read_by)

    for seed in seeds(5):
        play(story, seed)


def test_a_source_that_never_waits_is_held_by_the_queue_and_lets_everybody_have_turns() -> None:
    async def story(universe: Universe) -> None:
        made = [0]

        @function.source(bounded=False, runs_in_simulation=True)
        async def eager(context: SourceContext[int]) -> AsyncIterator[Chunk[int]]:
            while True:
                made[0] += 1
                yield Chunk([made[0]], resume_at=made[0])

        taken = [0]

        def take(number: int) -> int:
            taken[0] = number
            return number

        job = af.Job("job")
        job.read(eager(), name="read").map(take).rebalance().write(memory.collect(), name="write")
        async with environment(universe.world("p"), every_ms=50).run(job):
            for _ in range(20):
                await asyncio.sleep(0.05)
                assert made[0] - taken[0] <= 10

    play(story, batch_us=3_000)


@pytest.mark.parametrize("when", ["before anything", "in the middle", "at the end"])
def test_a_source_that_raises_is_named_with_its_split_and_reads_on_from_its_position(when: str) -> None:
    async def story(universe: Universe) -> None:
        failures = [{"before anything": 0, "in the middle": 12, "at the end": 20}[when]]

        class Failing(Splits):
            async def read(self, context: SourceContext[int]) -> AsyncIterator[Chunk[tuple[str, int]]]:
                at = context.resume_at or 0
                while True:
                    if failures and at >= failures[0] and context.split == "s01":
                        failures.clear()
                        raise OSError("unreadable")
                    if at >= self.records:
                        return
                    await context.world.clock.sleep(5)
                    yield Chunk([(context.split, number) for number in range(at, at + 4)], resume_at=at + 4)
                    at += 4

        sink = memory.collect()
        async with environment(universe.world("p"), every_ms=7, parallelism=2, restart=again()).run(
            copying(Failing(3), sink)
        ) as handle:
            await handle.wait()
        assert handle.status.restarts == 1
        [failed] = entries(universe, journal.ActorFailed)
        assert failed.operator == "read"
        assert "reading split 's01' raised OSError: unreadable" in failed.detail
        assert sorted(sink.rows) == sorted((f"s{split:02}", number) for split in range(3) for number in range(20))

    for seed in seeds(3):
        play(story, seed)


def test_r015_a_position_that_is_out_of_reach_fails_at_once_with_both_positions() -> None:
    async def story(universe: Universe) -> None:
        oldest = [0]

        @function.source(bounded=False, runs_in_simulation=True)
        async def log(context: SourceContext[int]) -> AsyncIterator[Chunk[int]]:
            at = context.resume_at or 0
            if at < oldest[0]:
                raise af.RestoreFailed(
                    f"operator {context.operator!r}: position {at} is gone, the oldest is {oldest[0]}"
                )
            while at < 50 or oldest[0]:
                await context.world.clock.sleep(1)
                at += 1
                yield Chunk([at], resume_at=at)
            await context.world.clock.sleep(10**9)

        async with environment(universe.world("a"), every_ms=5).run(copying(log(), memory.collect())):
            await asyncio.sleep(0.2)
        oldest[0] = 75
        with pytest.raises(af.JobFailed, match="position 50 is gone, the oldest is 75"):
            async with environment(universe.world("b"), every_ms=5, restart=again()).run(
                copying(log(), memory.collect())
            ) as handle:
                await handle.wait()
        assert handle.status.restarts == 0

    play(story)


@pytest.mark.parametrize("phase", ["copy", "tail"])
def test_r006_a_source_of_two_phases_goes_on_in_the_phase_it_was_in(phase: str) -> None:
    """A copy of a table of one hundred rows, then a tail of twenty changes; the phase is part of the position."""

    async def story(universe: Universe) -> None:
        @function.source(runs_in_simulation=True)
        async def table(context: SourceContext[Any]) -> AsyncIterator[Chunk[Any]]:
            at_phase, at = context.resume_at or ("copy", 0)
            while at_phase == "copy" and at < 100:
                await context.world.clock.sleep(1)
                at += 2
                yield Chunk([("row", at - 1), ("row", at)], resume_at=("copy", at))
            if at_phase == "copy":
                at = 0
            while at < 20:
                await context.world.clock.sleep(4)
                at += 1
                yield Chunk([("change", at)], resume_at=("tail", at))

        sink = memory.collect()
        for _ in range(2):
            process = await start(universe, copying(table(), sink), environment(every_ms=5))
            await asyncio.sleep(0.03 if phase == "copy" else 0.1)
            process.kill()
            await process.wait()
        process = await start(universe, copying(table(), sink), environment(every_ms=5))
        assert (await process.wait()).result() is af.JobStatus.FINISHED
        assert Counter(sink.rows) == Counter(
            [("row", row) for row in range(1, 101)] + [("change", row) for row in range(1, 21)]
        )

    for seed in seeds(4):
        play(story, seed)


def test_r019_three_thousand_records_and_five_hard_kills_are_three_thousand() -> None:
    async def story(universe: Universe) -> None:
        sink = memory.collect()

        def job() -> af.Job:
            made = af.Job("job")
            made.read(memory.source(["a"] * 3_000, chunk_records=10), name="read").key_by(str.lower).count(
                name="count"
            ).write(sink, name="write")
            return made

        for _ in range(5):
            process = await start(universe, job(), environment(every_ms=10))
            await asyncio.sleep(universe.chance.between("life", 20, 60) / 1_000)
            process.kill()
            await process.wait()
        process = await start(universe, job(), environment(every_ms=10))
        await process.wait()
        assert sink.rows == [("a", count) for count in range(1, 3_001)]

    for seed in seeds(3):
        play(story, seed, batch_us=2_000)


# ── discovering ──────────────────────────────────────────────────────────────────────────────


def test_new_splits_of_an_unbounded_source_are_found_and_shared() -> None:
    class Growing(Splits):
        bounded = False
        discover_every = timedelta(milliseconds=50)

    async def story(universe: Universe) -> None:
        source, sink = Growing(1, records=5), memory.collect()
        source.bounded = False
        async with environment(universe.world("p"), every_ms=20, parallelism=2).run(copying(source, sink)):
            await asyncio.sleep(0.3)
            assert len(sink.rows) == 5
            source.splits = 4
            await asyncio.sleep(0.3)
        assert sorted(sink.rows) == sorted((f"s{split:02}", number) for split in range(4) for number in range(5))
        assert {subtask for _, subtask, _ in source.read_by} == {0, 1}

    play(story)


def test_a_source_that_can_not_be_looked_at_is_refused_at_the_start_and_named() -> None:
    class Hidden(Splits):
        async def discover(self, world: Any) -> Sequence[str]:
            raise PermissionError("not for you")

    async def story(universe: Universe) -> None:
        with pytest.raises(af.OperatorFailed, match=r"operator 'read'.*finding its splits raised PermissionError"):
            async with environment(universe.world("p"), restart=again()).run(copying(Hidden(1), memory.collect())):
                raise AssertionError("it must not run")

    play(story)


def test_a_source_that_can_not_be_looked_at_any_more_fails_the_attempt_by_name() -> None:
    class Hides(Splits):
        bounded = False
        discover_every = timedelta(milliseconds=50)
        hidden = False

        async def discover(self, world: Any) -> Sequence[str]:
            if self.hidden:
                self.hidden = False
                raise PermissionError("not any more")
            return await super().discover(world)

    async def story(universe: Universe) -> None:
        source = Hides(1)
        source.bounded = False
        async with environment(universe.world("p"), every_ms=20, restart=again()).run(
            copying(source, memory.collect())
        ) as handle:
            await asyncio.sleep(0.2)
            source.hidden = True
            await asyncio.sleep(0.3)
            assert handle.status.restarts == 1
            assert "'read'" in entries(universe, journal.JobRestarting)[0].detail

    play(story)


# ── the ends of a generator ──────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("ending", ["stop", "cancel", "drain", "restart", "leave"])
@pytest.mark.parametrize("where", ["waiting for records", "waiting for room"])
def test_r137_a_generator_may_wait_while_it_closes(ending: str, where: str) -> None:
    """A consumer that says goodbye to its broker is not cut short, and comes back only after that."""

    async def story(universe: Universe) -> None:
        log: list[str] = []

        @function.source(bounded=False, runs_in_simulation=True)
        async def consumer(context: SourceContext[int]) -> AsyncIterator[Chunk[int]]:
            log.append("open")
            at = context.resume_at or 0
            try:
                while True:
                    if where == "waiting for records" or not at:
                        await asyncio.sleep(0.05)
                    at += 1
                    yield Chunk([at], resume_at=at)
            finally:
                await asyncio.sleep(0.2)
                await asyncio.sleep(0.2)
                log.append("closed")

        fails: list[int] = []

        def fail(number: int) -> int:
            if fails:
                raise ValueError(fails.pop())
            return number

        job = af.Job("job")
        job.read(consumer(), name="read").map(fail).write(memory.collect(), name="write")
        settings = environment(universe.world("p"), every_ms=100, restart=again())
        async with settings.run(job) as handle:
            await asyncio.sleep(0.5)
            match ending:
                case "stop":
                    await handle.stop()
                case "cancel":
                    await handle.cancel()
                case "drain":
                    await handle.drain()
                case "restart":
                    fails.append(1)
                    await asyncio.sleep(1)
        assert log == ["open", "closed"] * (2 if ending == "restart" else 1)
        assert completed(universe)

    play(story, batch_us=20_000)


def test_a_generator_that_never_comes_to_its_end_is_given_up_after_a_while() -> None:
    async def story(universe: Universe) -> None:
        @function.source(bounded=False, runs_in_simulation=True)
        async def stubborn(context: SourceContext[int]) -> AsyncIterator[Chunk[int]]:
            at = 0
            try:
                while True:
                    await asyncio.sleep(0.05)
                    at += 1
                    yield Chunk([at], resume_at=at)
            finally:
                await asyncio.sleep(10**6)

        began = universe.now_ms()
        async with environment(universe.world("p")).run(copying(stubborn(), memory.collect())) as handle:
            await asyncio.sleep(0.5)
            await handle.cancel()
        assert universe.now_ms() - began < 20_000
        assert any("closing" in entry.subject for entry in entries(universe, journal.FellBack))

    play(story)
