"""A snapshot comes back: at the same parallelism and at any other, once and again, whoever had finished."""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import Any

import pytest

import actorflow as af
from actorflow.connectors import files, generator, memory
from actorflow.model import journal
from actorflow.model.manifest import Redistribution
from actorflow.simulation.weather import After, Kill
from actorflow.simulation.world import Universe
from actorflow_tests.runtime.support import (
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

RECORDS = 240


def word(index: int) -> str:
    return f"w{index * 7 % 41}"


def counting(sink: Any, *, records: int | None = RECORDS, per_second: float = 1_000) -> af.Job:
    return count_job(generator.generate(word, records=records, per_second=per_second, splits=4), sink)


@pytest.mark.parametrize("old", [1, 2, 3, 4])
@pytest.mark.parametrize("new", [1, 2, 3, 4])
def test_counts_go_on_at_any_parallelism_and_again_after_two_more_rounds(old: int, new: int) -> None:
    async def story(universe: Universe) -> None:
        sink = memory.collect()
        for round_, parallelism in enumerate((old, new, old, new)):
            async with environment(universe.world(f"p{round_}"), parallelism=parallelism, every_ms=30).run(
                counting(sink)
            ) as handle:
                await asyncio.sleep(0.05)
                if round_ < 3:
                    assert handle.status.status is af.JobStatus.RUNNING
                else:
                    await handle.wait()
        assert sorted(sink.rows) == running_counts(word(index) for index in range(RECORDS))

    play(story, seed=old * 4 + new)


@pytest.mark.parametrize(("old", "new"), [(3, 2), (2, 3), (1, 4)])
def test_r016_a_kill_may_fall_into_every_restore_and_another_parallelism_follow(old: int, new: int) -> None:
    async def story(universe: Universe) -> None:
        sink = memory.collect()
        lives = [old, new, new, old, new]
        for parallelism in lives:
            process = await start(universe, counting(sink), environment(parallelism=parallelism, every_ms=30))
            while process.is_alive and len(entries(universe, journal.JobStarted)) < 1:
                await asyncio.sleep(0.01)
            await asyncio.sleep(universe.chance.between("life", 20, 90) / 1_000)
            if process.is_alive:
                process.kill()
            await process.wait()
        last = await start(universe, counting(sink), environment(parallelism=new, every_ms=30))
        assert (await last.wait()).result() is af.JobStatus.FINISHED
        assert sorted(sink.rows) == running_counts(word(index) for index in range(RECORDS))

    for seed in range(4):
        weather = [Kill(After("ActorRestored", occurrence=1 + 2 * seed, process="p"), "p")]
        play(story, seed, weather=weather)


def nothing() -> list[int]:
    return [0, 0]


def put_in(held: list[int], value: int) -> list[int]:
    return [held[0] + value, held[1] + 1]


class EveryState(af.KeyedOperator[str, str, Any]):
    """One of each kind of state; key and value types differ on purpose (R026)."""

    value = af.ValueState(float)
    items = af.ListState(int)
    pages = af.MapState(str, int)
    most = af.ReducingState[int](max)
    mean: af.AggregatingState[int, tuple[int, ...]] = af.AggregatingState(nothing, put_in, tuple)
    mine = af.SplitList(str)
    all_of_us = af.UnionList(str)

    def on_record(self, record: str, context: af.Context[str]) -> Any:
        number = int(record[1:])
        self.value.value += 0.5
        self.items.append(number)
        self.pages[record] = self.pages.get(record, 0) + 1
        self.most.add(number)
        self.mean.add(number)
        self.mine.append(record)
        if not len(self.all_of_us):
            self.all_of_us.append(f"of {context.subtask} of {context.parallelism}")
        return []

    def on_end_of_input(self, context: af.HookContext) -> Any:
        for (key, value), items, pages, most, mean in zip(
            context.entries(self.value),
            context.entries(self.items),
            context.entries(self.pages),
            context.entries(self.most),
            context.entries(self.mean),
            strict=True,
        ):
            yield "keyed", key, value, items[1], pages[1], most[1], mean[1]
        yield "mine", list(self.mine)
        yield "union", list(self.all_of_us)


@pytest.mark.parametrize(("old", "new"), [(2, 2), (2, 3), (3, 2), (4, 1), (1, 4)])
def test_every_kind_of_state_comes_back_with_its_types(old: int, new: int) -> None:
    async def story(universe: Universe) -> None:
        def job(sink: Any) -> af.Job:
            made = af.Job("job")
            source = generator.generate(word, records=200, per_second=1_000, splits=4)
            made.read(source, name="read").key_by(lambda record: record).process(EveryState, name="state").write(
                sink, name="write"
            )
            return made

        sink = memory.collect()
        async with environment(universe.world("a"), parallelism=old).run(job(sink)):
            await asyncio.sleep(0.1)
        async with environment(universe.world("b"), parallelism=new).run(job(sink)) as handle:
            await handle.wait()
        seen = Counter(word(index) for index in range(200))
        keyed = {row[1]: row for row in sink.rows if row[0] == "keyed"}
        for record, count in seen.items():
            number = int(record[1:])
            row = ("keyed", record, count / 2, [number] * count, {record: count}, number, (number * count, count))
            assert keyed[record] == row
            assert list(map(type, keyed[record])) == list(map(type, row))
        assert len(keyed) == len(seen)
        mine = [record for row in sink.rows if row[0] == "mine" for record in row[1]]
        assert Counter(mine) == seen
        assert len([row for row in sink.rows if row[0] == "mine"]) == new
        unions = [row[1] for row in sink.rows if row[0] == "union"]
        if old != new:
            olds = {f"of {subtask} of {old}" for subtask in range(old)}
            assert all(olds >= {*union} for union in unions)
            assert len({tuple(union) for union in unions}) == 1

    play(story)


@pytest.mark.parametrize("most", [16, pytest.param(128, marks=pytest.mark.slow)])
def test_r037_all_keys_in_one_key_group_restore_at_one_three_and_all_subtasks(most: int) -> None:
    async def story(universe: Universe) -> None:
        for index, parallelism in enumerate((1, 3, most)):
            sink = memory.collect()
            for life, subtasks in enumerate((2, parallelism)):
                job = count_job(
                    generator.generate(lambda _: "only", records=60, per_second=500), sink, name=f"j{index}"
                )
                settings = environment(
                    universe.world(f"p{index}-{life}"), parallelism=subtasks, max_parallelism=most, every_ms=20
                )
                async with settings.run(job) as handle:
                    if life:
                        await handle.wait()
                    else:
                        await asyncio.sleep(0.05)
            assert sink.rows == [("only", count) for count in range(1, 61)]

    play(story)


def test_r046_max_parallelism_of_a_step_bounds_its_scaling_and_survives_chaining() -> None:
    def job(sink: Any, parallelism: int) -> af.Job:
        made = af.Job("job")
        (
            made.read(generator.generate(word, records=100, per_second=500), name="read")
            .key_by(lambda record: record)
            .count(name="count", parallelism=parallelism, max_parallelism=8)
            .map(lambda row: row, name="fused")
            .write(sink, name="write")
        )
        return made

    async def story(universe: Universe) -> None:
        sink = memory.collect()
        for life, parallelism in enumerate((2, 8)):
            async with environment(universe.world(f"p{life}")).run(job(sink, parallelism)) as handle:
                await (asyncio.sleep(0.05) if life == 0 else handle.wait())
        assert sorted(sink.rows) == running_counts(word(index) for index in range(100))
        with pytest.raises(af.InvalidJob, match="8"):
            async with environment(universe.world("p3")).run(job(sink, 9)):
                pass

    play(story)


# ── subtasks that had finished ───────────────────────────────────────────────────────────────


class EndsLoudly(af.Operator[Any, Any]):
    """Says how often each subtask came to its end."""

    ended = af.SplitList(int)

    def on_record(self, value: Any, context: af.Context[None]) -> Any:
        return [value]

    def on_end_of_input(self, context: af.HookContext) -> Any:
        return [f"end of {context.subtask}"]


def uneven_job(sink: Any, *, loud: bool) -> af.Job:
    """Two splits, one of ten records and one of four hundred: one subtask finishes long before the other."""

    class Uneven(generator.Generator[int]):
        async def discover(self, world: Any) -> list[str]:
            return ["short", "long"]

        async def read(self, context: Any) -> Any:
            at, count = context.resume_at or 0, 10 if context.split == "short" else 400
            while at < count:
                await context.world.clock.sleep(2)
                at += 2
                yield af.Chunk([at - 1, at], resume_at=at)

    source = Uneven(None, records=410, per_second=None, splits=2, seed=0, chunk_records=2)
    source.splits_at_once = 1
    job = af.Job("uneven")
    stream = job.read(source, name="read")
    if loud:
        stream = stream.process(EndsLoudly, name="loud")
    stream.rebalance().write(sink, name="write")
    return job


@pytest.mark.parametrize("again", [1, 2, 3])
def test_inv_4_3_a_source_subtask_that_had_finished_emits_nothing_twice_after_a_kill(again: int) -> None:
    async def story(universe: Universe) -> None:
        sink = memory.collect()
        for parallelism, life in ((2, 0.15), (again, 0.1), (2, 0.1)):
            process = await start(
                universe, uneven_job(sink, loud=False), environment(parallelism=parallelism, every_ms=20)
            )
            await asyncio.sleep(life)
            process.kill()
            await process.wait()
        process = await start(universe, uneven_job(sink, loud=False), environment(parallelism=again, every_ms=20))
        assert (await process.wait()).result() is af.JobStatus.FINISHED
        assert Counter(sink.rows) == Counter([*range(1, 11), *range(1, 401)])

    for seed in seeds(4):
        play(story, seed)


def test_inv_4_2_a_subtask_that_had_finished_is_not_finished_again_at_the_same_parallelism() -> None:
    async def story(universe: Universe) -> None:
        sink = memory.collect()
        for _ in range(2):
            process = await start(universe, uneven_job(sink, loud=True), environment(parallelism=2, every_ms=20))
            await asyncio.sleep(0.15)
            process.kill()
            await process.wait()
        process = await start(universe, uneven_job(sink, loud=True), environment(parallelism=2, every_ms=20))
        await process.wait()
        assert Counter(sink.rows) == Counter([*range(1, 11), *range(1, 401), "end of 0", "end of 1"])

    for seed in seeds(4):
        play(story, seed)


def test_a_finished_subtask_reads_no_file_that_came_later_and_the_others_do() -> None:
    async def put(universe: Universe, name: str, lines: int) -> None:
        platter = universe.machine().platter
        platter.make_folder("/in")
        inode = platter.create(f"/in/{name}")
        inode.content += "".join(f"{name} {line}\n" for line in range(lines)).encode()
        inode.synced = len(inode.content)
        platter.sync_folder("/in")

    async def story(universe: Universe) -> None:
        sink = memory.collect()

        def job() -> af.Job:
            made = af.Job("job")
            made.read(files.lines("/in", per_second=100, chunk_bytes=10), name="read").rebalance().write(
                sink, name="write"
            )
            return made

        await put(universe, "a", 1)
        await put(universe, "b", 60)
        process = await start(universe, job(), environment(parallelism=2, every_ms=20))
        await asyncio.sleep(0.25)
        assert entries(universe, journal.ActorFinished)
        process.kill()
        await process.wait()
        await put(universe, "c", 5)
        process = await start(universe, job(), environment(parallelism=2, every_ms=20))
        assert (await process.wait()).result() is af.JobStatus.FINISHED
        assert sorted(sink.rows) == sorted(
            f"{name} {line}" for name, lines in (("a", 1), ("b", 60), ("c", 5)) for line in range(lines)
        )

    for seed in seeds(3):
        play(story, seed)


@pytest.mark.parametrize("parallelism", [1, 2, 3])
@pytest.mark.parametrize("step", ["ManifestWritten", "CheckpointCompleted", "SinkCommitted"])
def test_a_kill_after_the_final_checkpoint_of_a_drain_ends_well_at_any_parallelism(step: str, parallelism: int) -> None:
    async def story(universe: Universe) -> None:
        sink = memory.collect()

        async def drained(world: Any) -> None:
            async with environment(world, parallelism=2).run(counting(sink, records=None)) as handle:
                await asyncio.sleep(0.1)
                await handle.drain()

        universe.expect(Kill(After(step)))
        process = await universe.start("p", drained)
        assert (await process.wait()).ending == "killed"
        process = await start(universe, counting(sink, records=None), environment(parallelism=parallelism))
        assert (await process.wait()).result() is af.JobStatus.FINISHED
        # A prefix of each split, so the counts of each word have no gap.
        assert sorted(sink.rows) == sorted(
            (key, n) for key, last in counted(sink.rows).items() for n in range(1, last + 1)
        )
        assert len(sink.rows) > 50

    for seed in seeds(3):
        play(story, seed)


# ── what does not fit ────────────────────────────────────────────────────────────────────────


def refused(universe_story: Any) -> None:
    play(universe_story)


def test_a_restored_state_that_nobody_claims_is_refused_with_all_that_does_not_fit() -> None:
    async def story(universe: Universe) -> None:
        async with environment(universe.world("a")).run(counting(memory.collect())):
            await asyncio.sleep(0.1)
        seen: list[Any] = []
        job = af.Job("count")
        source = generator.generate(word, records=RECORDS, per_second=1_000, splits=4)
        job.read(source, name="read").map(seen.append).key_by(lambda record: record).count(name="renamed").write(
            memory.collect(), name="write"
        )
        with pytest.raises(af.IncompatibleState, match="'count'"):
            async with environment(universe.world("b")).run(job):
                raise AssertionError("it must not run")
        assert seen == []
        # and nothing is lost: the job that fits still goes on
        async with environment(universe.world("c")).run(counting(memory.collect())) as handle:
            assert handle.status.restored_checkpoint == completed(universe)[0]

    refused(story)


def test_a_state_whose_kind_changed_is_refused() -> None:
    class Old(af.KeyedOperator[str, str, Any]):
        held = af.ValueState(int)

        def on_record(self, record: str, context: af.Context[str]) -> Any:
            self.held.value += 1
            return [self.held.value]

    class New(af.KeyedOperator[str, str, Any]):
        held = af.ListState(int)

        def on_record(self, record: str, context: af.Context[str]) -> Any:
            self.held.append(1)
            return [len(self.held)]

    def job(operator: Any) -> af.Job:
        made = af.Job("job")
        made.read(generator.generate(word, per_second=1_000), name="read").key_by(lambda record: record).process(
            operator, name="state"
        ).write(memory.collect(), name="write")
        return made

    async def story(universe: Universe) -> None:
        async with environment(universe.world("a")).run(job(Old)):
            await asyncio.sleep(0.1)
        with pytest.raises(af.IncompatibleState, match="it was a keyed value state and is now a keyed list state"):
            async with environment(universe.world("b")).run(job(New)):
                pass

    refused(story)


def test_output_that_a_sink_prepared_is_not_dropped_when_another_sink_takes_its_place() -> None:
    async def story(universe: Universe) -> None:
        def job(sink: Any) -> af.Job:
            return counting(sink, records=None)

        universe.expect(Kill(After("ManifestWritten", occurrence=2)))
        process = await start(universe, job(memory.collect()), environment(every_ms=50))
        await process.wait()
        with pytest.raises(af.IncompatibleState, match="operator 'write': the restored checkpoint holds output"):
            async with environment(universe.world("b")).run(job(memory.append())):
                pass
        sink = memory.collect()
        async with environment(universe.world("c")).run(job(sink)):
            pass
        assert sink.rows

    refused(story)


def test_redistributions_have_the_names_that_manifests_hold() -> None:
    assert [str(one) for one in Redistribution] == ["split", "union", "broadcast", "keyed"]


@pytest.mark.parametrize("new", [1, 2, 4])
def test_r047_a_union_of_which_one_input_is_quiet_restores_at_any_parallelism(new: int) -> None:
    async def story(universe: Universe) -> None:
        def job(sink: Any) -> af.Job:
            made = af.Job("job")
            busy = made.read(generator.generate(word, records=200, per_second=1_000, splits=2), name="busy")
            quiet = made.read(generator.generate(word, records=4, per_second=10), name="quiet")
            busy.union(quiet).key_by(lambda record: record).count(name="count").write(sink, name="write")
            return made

        sink = memory.collect()
        async with environment(universe.world("a"), parallelism=3, every_ms=20).run(job(sink)):
            await asyncio.sleep(0.08)
        async with environment(universe.world("b"), parallelism=new, every_ms=20).run(job(sink)) as handle:
            await handle.wait()
        assert sorted(sink.rows) == running_counts([*map(word, range(200)), *map(word, range(4))])

    play(story)


# ── broadcast state ──────────────────────────────────────────────────────────────────────────


class Ruled(af.KeyedBroadcastOperator[str, str, Any, Any]):
    rules = af.BroadcastState(str, int)

    def on_record(self, record: str, context: af.Context[str]) -> Any:
        return [(record, self.rules.get("version", 0))]

    def on_broadcast(self, rule: int, context: af.HookContext) -> Any:
        self.rules["version"] = rule
        return []

    def on_end_of_input(self, context: af.HookContext) -> Any:
        return [("rules", dict(self.rules))]


@pytest.mark.parametrize(("old", "new"), [(3, 1), (3, 3), (3, 5), (7, 2)])
def test_r038_and_r041_all_subtasks_restore_the_same_version_of_broadcast_state(old: int, new: int) -> None:
    def job(sink: Any) -> af.Job:
        made = af.Job("job")
        rules = made.read(generator.generate(lambda index: index + 1, records=5, per_second=20), name="rules")
        (
            made.read(generator.generate(word, records=300, per_second=600, splits=2), name="read")
            .key_by(lambda record: record)
            .connect_broadcast(rules, Ruled, name="ruled")
            .write(sink, name="write")
        )
        return made

    async def story(universe: Universe) -> None:
        sink = memory.collect()
        tight = af.Buffers(per_channel=1, floating_per_gate=0, most_per_channel=1, records=4)
        async with environment(universe.world("a"), parallelism=old, every_ms=40, buffers=tight).run(job(sink)):
            await asyncio.sleep(0.13)
        async with environment(universe.world("b"), parallelism=new, every_ms=40).run(job(sink)) as handle:
            await handle.wait()
        ends = [row for row in sink.rows if row[0] == "rules"]
        assert ends == [("rules", {"version": 5})] * new
        records = Counter(row[0] for row in sink.rows if row[0] != "rules")
        assert records == Counter(word(index) for index in range(300))
        versions: dict[str, list[int]] = {}
        for record, version in sink.rows:
            if record != "rules":
                versions.setdefault(record, []).append(version)
        assert all(seen == sorted(seen) for seen in versions.values())

    for seed in seeds(3):
        play(story, seed)
