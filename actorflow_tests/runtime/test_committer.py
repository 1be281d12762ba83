"""Prepared output becomes visible in order, with a permit, and never a row twice."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

import actorflow as af
from actorflow.abc.connectors import Prepared, SinkContext, TransactionalSink, TransactionalWriter
from actorflow.connectors import files, generator
from actorflow.errors import CorruptObject, ObjectMissing
from actorflow.model import journal
from actorflow.simulation.weather import At, FailDisk, Kill, OnDisk, PowerCut, TearDisk
from actorflow.simulation.world import Universe
from actorflow_tests.runtime.support import again, completed, entries, environment, play, seeds, start


class Table(TransactionalSink[Any]):
    """A sink that says in which order things were done to it, and fails as told."""

    def __init__(self) -> None:
        self.rows: list[Any] = []
        self.done: dict[str, None] = {}
        self.log: list[str] = []
        self.fail_commits = 0
        self.failure: Exception = OSError("not now")
        self.fail_rests = 0
        self.busy = False
        self.opened = 0

    async def open(self, context: SinkContext) -> TransactionalWriter[Any]:
        self.opened += 1
        return TableWriter(self, context, self.opened)

    async def visible(self, world: Any) -> list[Any]:
        return self.rows


class TableWriter(TransactionalWriter[Any]):
    def __init__(self, table: Table, context: SinkContext, opening: int) -> None:
        self.table, self.context, self.opening = table, context, opening
        self.pending: list[Any] = []

    async def _alone(self, what: str) -> None:
        """No two methods of a writer run at the same time."""
        assert not self.table.busy, f"{what} while something else was running"
        self.table.busy = True
        try:
            await self.context.world.clock.sleep(1)
        finally:
            self.table.busy = False

    async def write(self, records: list[Any]) -> None:
        await self._alone("write")
        self.pending += records

    def prepare(self, checkpoint_id: int) -> Prepared:
        assert not self.table.busy
        rows, self.pending = self.pending, []
        name = f"{self.context.generation}-{self.opening}-{checkpoint_id}"
        self.table.log.append(f"prepare {checkpoint_id}")
        return Prepared([[name, rows]] if rows else [], self._rest(checkpoint_id))

    async def _rest(self, checkpoint_id: int) -> None:
        await self.context.world.clock.sleep(2)
        if self.table.fail_rests:
            self.table.fail_rests -= 1
            raise OSError("could not sync")
        self.table.log.append(f"rest {checkpoint_id}")

    async def commit(self, committables: list[Any], permit: Any) -> None:
        await self._alone("commit")
        self.table.log.append(f"commit {permit.checkpoint_id}")
        if self.table.fail_commits:
            self.table.fail_commits -= 1
            raise self.table.failure
        for name, rows in committables:
            if name not in self.table.done:
                self.table.done[name] = None
                self.table.rows += rows

    async def discard(self, committables: list[Any]) -> None:
        self.table.log.append(f"discard {[name for name, _ in committables]}")

    async def sweep(self, keep: list[Any]) -> int:
        await self._alone("sweep")
        self.table.log.append("sweep")
        return 0

    async def close(self) -> None:
        self.table.log.append("close")


def numbers(sink: Any, *, records: int | None = 100) -> af.Job:
    job = af.Job("numbers")
    job.read(generator.numbers(records, per_second=200), name="read").write(sink, name="write")
    return job


def test_rows_show_after_their_checkpoint_and_in_its_order() -> None:
    async def story(universe: Universe) -> None:
        table = Table()
        async with environment(universe.world("p"), every_ms=50).run(numbers(table)) as handle:
            await handle.wait()
        assert table.rows == list(range(100))
        seen: dict[int, list[str]] = {}
        for line in table.log:
            what, _, number = line.partition(" ")
            if number.isdigit():
                seen.setdefault(int(number), []).append(what)
        assert all(steps[:2] == ["prepare", "rest"] for steps in seen.values())
        assert "sweep" in table.log

    for seed in seeds(3):
        play(story, seed)


@pytest.mark.parametrize("failures", [1, 3, 10])
def test_r117_a_commit_that_fails_is_tried_again_and_nothing_later_shows_before_it(failures: int) -> None:
    async def story(universe: Universe) -> None:
        table = Table()
        async with environment(universe.world("p"), every_ms=50, max_concurrent=3).run(
            numbers(table, records=200)
        ) as handle:
            await asyncio.sleep(0.12)
            table.fail_commits = failures
            await handle.wait()
        assert table.rows == list(range(200))
        assert handle.status.restarts == 0
        retried = [e for e in entries(universe, journal.StorageRetried) if e.operation.startswith("commit")]
        assert [entry.attempt for entry in retried] == list(range(1, failures + 1))
        assert {entry.cause for entry in retried} == {"OSError"}

    play(story)


def test_r114_a_commit_that_fails_too_often_fails_the_attempt_and_the_next_one_commits_it_first() -> None:
    async def story(universe: Universe) -> None:
        table = Table()
        settings = environment(universe.world("p"), every_ms=50, restart=again(100))
        async with settings.run(numbers(table, records=200)) as handle:
            await asyncio.sleep(0.12)
            table.fail_commits = 11
            await handle.wait()
        assert table.rows == list(range(200))
        assert handle.status.restarts == 1
        [failed] = entries(universe, journal.ActorFailed)
        assert "failed 11 times, the last time with: OSError: not now" in failed.detail
        assert "the next start commits it" in failed.detail

    play(story)


@pytest.mark.parametrize("failure", [CorruptObject("something else is there"), ObjectMissing("it is gone")])
def test_a_commit_that_no_repetition_can_help_fails_at_once_and_says_with_what(failure: Exception) -> None:
    async def story(universe: Universe) -> None:
        table = Table()
        table.failure = failure
        settings = environment(universe.world("p"), every_ms=50, restart=again(100))
        async with settings.run(numbers(table, records=200)) as handle:
            await asyncio.sleep(0.12)
            table.fail_commits = 1
            await handle.wait()
        assert table.rows == list(range(200))
        assert not [e for e in entries(universe, journal.StorageRetried) if e.operation.startswith("commit")]
        [failed] = entries(universe, journal.ActorFailed)
        assert f"failed with: {type(failure).__name__}: {failure}" in failed.detail
        assert "operator 'write', subtask 0" in failed.detail

    play(story)


def test_what_could_not_be_made_durable_fails_the_attempt_and_is_written_again() -> None:
    async def story(universe: Universe) -> None:
        table = Table()
        table.fail_rests = 2
        async with environment(universe.world("p"), every_ms=50, restart=again()).run(numbers(table)) as handle:
            await handle.wait()
        assert table.rows == list(range(100))
        assert handle.status.restarts == 2

    for seed in seeds(3):
        play(story, seed)


def test_what_was_prepared_for_a_checkpoint_that_failed_is_committed_with_the_next_one() -> None:
    async def story(universe: Universe) -> None:
        from actorflow.simulation.weather import FailObjects

        table = Table()
        settings = af.Environment(
            checkpoints=af.Checkpoints(storage="/c", tolerable_failures=5, inline_below=0), world=universe.world("p")
        )
        async with settings.run(numbers(table, records=None)) as handle:
            await asyncio.sleep(0.1)
            universe.expect(FailObjects(At(0), "put", "*chk-*", count=1))
            await asyncio.sleep(0)
            with pytest.raises(af.CheckpointAborted):
                await handle.checkpoint()
            assert table.rows == []
            await asyncio.sleep(0.1)
            await handle.checkpoint()
            await asyncio.sleep(0.05)
            assert len(table.rows) > 30
            await handle.cancel()
        assert table.rows == list(range(len(table.rows)))

    for seed in seeds(3):
        play(story, seed)


def test_cancelling_commits_what_was_permitted_and_discards_what_no_manifest_names() -> None:
    async def story(universe: Universe) -> None:
        table = Table()
        async with environment(universe.world("p"), every_ms=50).run(numbers(table, records=None)) as handle:
            await asyncio.sleep(0.3 + universe.chance.below("more", 60) / 1_000)
            await handle.cancel()
        last = completed(universe)[-1]
        committed = [int(name.rpartition("-")[2]) for name in table.done]
        assert max(committed) == last
        discarded = [line for line in table.log if line.startswith("discard")]
        assert all(f"-{checkpoint}'" not in "".join(discarded) for checkpoint in range(1, last + 1))
        assert table.log[-1] == "close"

        async with environment(universe.world("q"), every_ms=50).run(numbers(table, records=None)):
            await asyncio.sleep(0.2)
        assert table.rows == list(range(len(table.rows)))

    for seed in seeds(10):
        play(story, seed)


@pytest.mark.parametrize("seed", range(6))
def test_r119_files_show_each_row_once_whatever_the_disk_does(seed: int) -> None:
    async def story(universe: Universe) -> None:
        def job() -> af.Job:
            return numbers(files.write("/out"), records=120)

        settings = environment(every_ms=30, parallelism=1, restart=again(), tolerable_failures=2)
        for _ in range(10):
            process = await start(universe, job(), settings)
            outcome = await process.wait()
            if outcome.ending == "returned":
                break
            await asyncio.sleep(0.05)
        assert await files.write("/out").visible(universe.world("reader")) == [str(number) for number in range(120)]
        assert universe.machine().platter.list_tree("/out/.pending") == []

    weather = [
        Kill(OnDisk("rename", "/out/part-*", "before", occurrence=1 + seed)),
        Kill(OnDisk("rename", "/out/part-*", "unanswered", occurrence=3 + seed)),
        PowerCut(OnDisk("sync_folder", "/out", "before", occurrence=2 + seed)),
        PowerCut(OnDisk("sync", "/out/.pending/*", "during", occurrence=4 + seed)),
        FailDisk(At(200 + 30 * seed), "*", "/out/*", count=2),
        TearDisk(At(350 + 30 * seed), "write", "/out/*", count=1),
    ]
    play(story, seed, weather=weather)


@pytest.mark.parametrize(
    ("where", "words"),
    [("a file in the way", "is a file"), ("nothing but refusals", "refused")],
)
def test_a_sink_folder_that_cannot_be_written_is_refused_before_any_record(where: str, words: str) -> None:
    async def story(universe: Universe) -> None:
        seen: list[int] = []
        if where == "a file in the way":
            platter = universe.machine().platter
            platter.make_folder("/")
            platter.create("/out")
        else:
            universe.expect(FailDisk(At(0), "*", "/out*", count=1_000))
            await asyncio.sleep(0)
        job = af.Job("job")

        def note(number: int) -> int:
            seen.append(number)
            return number

        job.read(generator.numbers(10), name="read").map(note).write(files.write("/out/in"), name="write")
        with pytest.raises(af.ActorflowError, match=words) as caught:
            async with environment(universe.world("p"), restart=again()).run(job):
                raise AssertionError("it must not run")
        assert "operator 'write', subtask 0" in "".join(getattr(caught.value, "__notes__", [])) + str(caught.value)
        assert seen == []

    play(story)
