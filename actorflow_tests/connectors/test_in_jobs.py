"""Connectors in running jobs, in the simulated world."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import pytest

import actorflow as af
from actorflow.abc.world import World
from actorflow.connectors import Inbox, files, function, generator, memory
from actorflow.protocol.lifecycle import JobStatus
from actorflow.simulation import run
from actorflow.simulation.world import Universe

Story = Callable[[Universe], Awaitable[None]]


def play(story: Story, seed: int = 0, *, batch_us: int = 0) -> None:
    async def whole() -> None:
        await story(Universe(seed, batch_us=batch_us))

    run(whole, seed=seed)


def environment(world: World, **settings: Any) -> af.Environment:
    checkpoints = af.Checkpoints(storage="/checkpoints", every=timedelta(milliseconds=50), retained=3)
    return af.Environment(checkpoints=checkpoints, world=world, restart=af.NoRestart(), **settings)


async def put(universe: Universe, path: str, text: str) -> None:
    platter = universe.machine().platter
    platter.make_folder(path.rpartition("/")[0])
    if platter.size(path) is not None:
        platter.remove(path)
    inode = platter.create(path)
    inode.content += text.encode()
    inode.synced = len(inode.content)
    platter.sync_folder(path.rpartition("/")[0])


def copying(source: Any, sink: Any) -> af.Job:
    job = af.Job("copy")
    job.read(source, name="read").write(sink, name="write")
    return job


async def visible(universe: Universe) -> list[Any]:
    return await files.write("/out").visible(universe.world(f"reader{universe.now_ms()}"))


# ── files ────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("seed", range(3))
def test_r012_files_that_were_read_may_be_edited_and_deleted_between_two_lives(seed: int) -> None:
    """Ten files; stop after four; edit one that was read, delete another; the rest comes, once."""

    async def story(universe: Universe) -> None:
        for number in range(10):
            await put(universe, f"/in/{number}.txt", f"{number}a\n{number}b\n")
        job = copying(files.lines("/in", per_second=10), files.write("/out"))
        async with environment(universe.world("first")).run(job):
            await asyncio.sleep(0.85)
        before = await visible(universe)
        assert 8 <= len(before) < 12
        await put(universe, "/in/0.txt", "edited and longer than it was\n")
        universe.machine().platter.remove("/in/1.txt")

        async with environment(universe.world("second")).run(job) as handle:
            await handle.wait()
        assert sorted(await visible(universe)) == [f"{number}{line}" for number in range(10) for line in "ab"]

    play(story, seed)


def test_r015_a_file_that_was_begun_and_is_gone_fails_at_once_or_is_left_out_as_asked() -> None:
    async def story(universe: Universe) -> None:
        await put(universe, "/in/a.txt", "".join(f"{number}\n" for number in range(100)))
        await put(universe, "/in/b.txt", "last\n")
        settings: dict[str, Any] = {"per_second": 10, "chunk_bytes": 10}
        async with environment(universe.world("first")).run(
            copying(files.lines("/in", **settings), files.write("/out"))
        ):
            await asyncio.sleep(1)
        universe.machine().platter.remove("/in/a.txt")

        with pytest.raises(af.JobFailed) as caught:
            async with environment(universe.world("second")).run(
                copying(files.lines("/in", **settings), files.write("/out"))
            ) as handle:
                await handle.wait()
        assert "/in/a.txt is gone" in str(caught.value.__cause__)

        skipping = copying(files.lines("/in", on_changed="skip", **settings), files.write("/out"))
        async with environment(universe.world("third")).run(skipping) as handle:
            await handle.wait()
        assert (await visible(universe))[-1] == "last"

    play(story)


@pytest.mark.parametrize("times", [1, 3])
def test_r018_and_r034_a_bounded_job_that_stops_and_goes_on_reads_everything_once_and_ends(times: int) -> None:
    async def story(universe: Universe) -> None:
        for name in "abc":
            await put(universe, f"/in/{name}.txt", "".join(f"{name}{number}\n" for number in range(5)))
        job = copying(files.lines("/in", per_second=10), files.write("/out"))
        for life in range(times):
            async with environment(universe.world(f"life {life}")).run(job):
                await asyncio.sleep(0.4)
        async with environment(universe.world("last")).run(job) as handle:
            await handle.wait()
        assert handle.status.status is JobStatus.FINISHED
        assert await visible(universe) == [f"{name}{number}" for name in "abc" for number in range(5)]

    play(story)


def test_a_followed_folder_is_read_as_it_grows() -> None:
    async def story(universe: Universe) -> None:
        await put(universe, "/in/a.txt", "a1\n")
        job = copying(files.lines("/in", follow=True), files.write("/out"))
        async with environment(universe.world("first"), parallelism=2).run(job):
            await asyncio.sleep(3)
            await put(universe, "/in/b.txt", "b1\nb2\nunfini")
            await asyncio.sleep(3)
        assert sorted(await visible(universe)) == ["a1", "b1", "b2"]
        async with environment(universe.world("second"), parallelism=1).run(job):
            universe.machine().platter.find("/in/b.txt").content.extend(b"shed\n")
            await asyncio.sleep(3)
        assert sorted(await visible(universe)) == ["a1", "b1", "b2", "unfinished"]

    play(story)


@pytest.mark.parametrize("seed", range(4))
def test_r119_a_failure_between_writing_and_the_checkpoint_shows_no_row_twice(seed: int) -> None:
    async def story(universe: Universe) -> None:
        failures = [7, 31, 32, 90][: 1 + seed]

        def fail_sometimes(number: int) -> int:
            if number in failures:
                failures.remove(number)
                raise ValueError("once")
            return number

        job = af.Job("fails")
        source = generator.numbers(100, per_second=200, splits=2)
        job.read(source, name="read").map(fail_sometimes).write(files.write("/out"), name="write")
        settings = af.Environment(
            parallelism=2,
            checkpoints=af.Checkpoints(storage="/checkpoints", every=timedelta(milliseconds=20)),
            restart=af.FixedDelay(attempts=9, delay=timedelta(milliseconds=5)),
            world=universe.world("p"),
        )
        async with settings.run(job) as handle:
            await handle.wait()
        assert not failures
        assert Counter(await visible(universe)) == Counter(map(str, range(100)))
        assert universe.machine().platter.list_tree("/out/.pending") == []

    play(story, seed)


@pytest.mark.parametrize(
    ("taken_by", "words"), [("other", "it belongs to operator 'write' of the job at"), ("file", "it is a file")]
)
def test_a_folder_that_the_sink_cannot_have_is_one_error_before_any_record(taken_by: str, words: str) -> None:
    async def story(universe: Universe) -> None:
        if taken_by == "file":
            await put(universe, "/out", "x\n")
        else:
            other = af.Job("other")
            other.read(memory.source([1]), name="read").write(files.write("/out"), name="write")
            async with environment(universe.world("other")).run(other) as handle:
                await handle.wait()
        seen: list[Any] = []
        job = af.Job("copy")
        job.read(memory.source([1]), name="read").map(seen.append).write(files.write("/out"), name="write")
        with pytest.raises(af.ActorflowError, match=words):
            async with environment(universe.world("first")).run(job) as handle:
                await handle.wait()
        assert seen == []

    play(story)


# ── the others ───────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True)
class Click:
    user: str
    at: float


def test_an_inbox_gives_everything_it_accepted_to_the_job_that_is_stopped() -> None:
    async def story(universe: Universe) -> None:
        clicks, sink = Inbox(Click, capacity=5), memory.collect()
        job = af.Job("clicks")
        job.read(clicks, name="clicks").key_by(lambda click: click.user).count(name="count").write(sink, name="out")
        async with environment(universe.world("first")).run(job):
            for number in range(300):
                await clicks.send(Click(f"u{number % 3}", float(number)))
        assert sorted(sink.rows) == sorted((f"u{user}", count) for user in range(3) for count in range(1, 101))

    play(story)


def test_r143_a_source_that_never_waits_can_be_stopped_and_lets_others_have_turns() -> None:
    @function.source(bounded=False, runs_in_simulation=True)
    async def endless(context: af.SourceContext[int]) -> AsyncIterator[af.Chunk[int]]:
        number = context.resume_at or 0
        while True:
            number += 1
            yield af.Chunk([number], resume_at=number)

    async def story(universe: Universe) -> None:
        sink = memory.collect()
        job = copying(endless(), sink)
        async with environment(universe.world("first")).run(job):
            await asyncio.sleep(0.5)
        first = list(sink.rows)
        async with environment(universe.world("second")).run(job):
            await asyncio.sleep(0.5)
        assert first
        assert sink.rows == list(range(1, len(sink.rows) + 1))
        assert len(sink.rows) > len(first)

    play(story, batch_us=20_000)


def test_a_plain_function_is_called_once_per_record() -> None:
    async def story(universe: Universe) -> None:
        rows: list[int] = []
        job = copying(memory.source(range(1_000), splits=3), function.call(rows.append))
        async with environment(universe.world("first"), parallelism=2).run(job) as handle:
            await handle.wait()
        assert sorted(rows) == list(range(1_000))

    play(story)


def test_an_at_least_once_sink_repeats_what_came_after_the_checkpoint_and_loses_nothing() -> None:
    async def story(universe: Universe) -> None:
        rows: list[int] = []
        failures = [60]

        def fail_once(number: int) -> int:
            if number in failures:
                failures.remove(number)
                raise ValueError("once")
            return number

        job = af.Job("repeats")
        source = generator.numbers(100, per_second=200)
        job.read(source, name="read").map(fail_once).write(memory.append(rows), name="write")
        settings = af.Environment(
            checkpoints=af.Checkpoints(storage="/checkpoints", every=timedelta(milliseconds=100)),
            restart=af.FixedDelay(attempts=1, delay=timedelta(milliseconds=5)),
            world=universe.world("p"),
        )
        async with settings.run(job) as handle:
            await handle.wait()
        assert sorted(dict.fromkeys(rows)) == list(range(100))
        assert len(rows) >= 100

    play(story)
