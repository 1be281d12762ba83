"""A home, what was told to start from, and what is refused before any record is processed."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import pytest

import actorflow as af
from actorflow.connectors import files, generator, memory
from actorflow.model import journal
from actorflow.model.codec import seal
from actorflow.model.handles import InlineHandle, ObjectHandle
from actorflow.model.manifest import Manifest
from actorflow.model.manifest_codec import decode_manifest, encode_manifest
from actorflow.simulation.disk import Platter
from actorflow.simulation.weather import After, FailObjects, Kill, LoseAnswer, OnObject
from actorflow.simulation.world import Universe
from actorflow_tests.runtime.support import (
    STORAGE,
    again,
    completed,
    count_job,
    entries,
    environment,
    play,
    running_counts,
    seeds,
    start,
)


def word(index: int) -> str:
    return f"w{index % 7}"


def noted(seen: list[Any], value: str) -> str:
    seen.append(value)
    return value


def endless(sink: Any, *, name: str = "count", seen: list[Any] | None = None) -> af.Job:
    if seen is None:
        return count_job(generator.generate(word, per_second=200, splits=2), sink, name=name)
    job = af.Job(name)
    source = generator.generate(word, per_second=200, splits=2)
    job.read(source, name="read").map(partial(noted, seen)).key_by(str.lower).count(name="count").write(
        sink, name="write"
    )
    return job


async def lives(universe: Universe, sink: Any, *, ms: int = 100, name: str = "count", **options: Any) -> list[Any]:
    """Run a job for a while, stop it, and return what it began with."""
    async with environment(universe.world(f"p{universe.now_ms()}"), retained=3).run(
        endless(sink, name=name), **options
    ) as handle:
        status = handle.status
        await asyncio.sleep(ms / 1_000)
        await handle.checkpoint()
        await asyncio.sleep(0.02)
        await handle.cancel()
    return [status.restored_checkpoint, handle.status.last_checkpoint]


def platter(universe: Universe) -> Platter:
    return universe.machine().platter


def overwrite(universe: Universe, name: str, change: Callable[[bytes], bytes]) -> None:
    inode = platter(universe).find(name)
    content = change(bytes(inode.content))
    inode.content[:] = content
    inode.synced = len(content)


def replace_by(universe: Universe, name: str, content: bytes) -> None:
    overwrite(universe, name, lambda _: content)


def gap_free(sink: Any) -> None:
    assert sorted(sink.rows) == running_counts(word(index) for index in range(len(sink.rows)))


# ── what to start from ───────────────────────────────────────────────────────────────────────


def test_latest_goes_on_and_nothing_starts_over_once() -> None:
    async def story(universe: Universe) -> None:
        sink = memory.collect()
        first = await lives(universe, sink)
        second = await lives(universe, sink)
        assert first[0] is None
        assert second[0] == first[1].checkpoint_id
        gap_free(sink)
        again_from_nothing = memory.collect()
        fresh = await lives(universe, again_from_nothing, resume_from="nothing")
        assert fresh[0] is None
        assert fresh[1].checkpoint_id > second[1].checkpoint_id, "ids go on"
        gap_free(again_from_nothing)
        later = await lives(universe, again_from_nothing)
        assert later[0] == fresh[1].checkpoint_id
        gap_free(again_from_nothing)

    play(story)


def test_r032_nothing_is_meant_for_one_start_and_not_for_its_restarts() -> None:
    async def story(universe: Universe) -> None:
        await lives(universe, memory.collect())
        sink, at = memory.collect(), [150]
        job = af.Job("count")

        def fail(value: str) -> str:
            if at and universe.now_ms() - began > at[0]:
                at.clear()
                raise ValueError(value)
            return value

        source = generator.generate(word, per_second=200, splits=2)
        job.read(source, name="read").map(fail).key_by(str.lower).count(name="count").write(sink, name="write")
        began = universe.now_ms()
        settings = environment(universe.world("q"), every_ms=40, restart=again())
        async with settings.run(job, resume_from="nothing") as handle:
            await asyncio.sleep(0.5)
        starts = [entry.restored_checkpoint for entry in entries(universe, journal.JobStarted)]
        assert starts[1] is None
        assert starts[2] is not None
        assert handle.status.restarts == 1
        gap_free(sink)

    play(story)


def test_nothing_that_is_told_again_by_the_same_command_line_starts_over_again() -> None:
    async def story(universe: Universe) -> None:
        for _ in range(2):
            sink = memory.collect()
            assert (await lives(universe, sink, resume_from="nothing"))[0] is None
            gap_free(sink)

    play(story)


@pytest.mark.parametrize("form", ["folder", "metadata", "slash"])
def test_a_path_restores_a_snapshot_without_owning_it_and_is_obeyed_once(form: str) -> None:
    async def story(universe: Universe) -> None:
        ours = memory.collect()
        owned = (await lives(universe, ours, name="count"))[1]
        path = {"folder": owned.path, "metadata": f"{owned.path}/_metadata", "slash": f"{owned.path}/"}[form]
        before = {name: data for name, data in platter(universe).files().items() if name.startswith(owned.path)}

        other = ours  # what the snapshot left to commit is committed again, which adds nothing to the same sink
        first = await lives(universe, other, name="other", resume_from=path)
        assert first[0] == owned.checkpoint_id
        repeated = await lives(universe, other, name="other", resume_from=path)
        assert repeated[0] == first[1].checkpoint_id
        ignored = entries(universe, journal.SettingIgnored, setting="resume_from")
        assert [entry.setting for entry in ignored] == ["resume_from"]
        assert "rewind" in ignored[0].why
        insisted = await lives(universe, memory.collect(), name="other", resume_from=path, rewind=True)
        assert insisted[0] == owned.checkpoint_id

        after = {name: data for name, data in platter(universe).files().items() if name.startswith(owned.path)}
        assert before == after, "never changed, never deleted"
        gap_free(ours)

    play(story)


def test_r023_a_snapshot_that_others_started_from_is_still_whole_for_a_third() -> None:
    async def story(universe: Universe) -> None:
        owned = (await lives(universe, memory.collect()))[1]
        async with environment(universe.world("b"), every_ms=20).run(
            endless(memory.collect(), name="b"), resume_from=owned.path
        ):
            await asyncio.sleep(0.3)
        sink = memory.collect()
        third = await lives(universe, sink, name="c", resume_from=owned.path)
        assert third[0] == owned.checkpoint_id

    play(story)


def test_r031_a_path_holds_for_every_attempt_until_a_checkpoint_completes() -> None:
    """Also for the next process, which was given the same path and dies before its first checkpoint."""

    async def story(universe: Universe) -> None:
        ours = memory.collect()
        owned = (await lives(universe, ours))[1]
        committed, sink, at = len(ours.rows), ours, [1, 1]

        def job() -> af.Job:
            made = af.Job("other")

            def fail(value: str) -> str:
                if at:
                    at.pop()
                    raise ValueError(value)
                return value

            source = generator.generate(word, per_second=200, splits=2)
            made.read(source, name="read").map(fail).key_by(str.lower).count(name="count").write(sink, name="write")
            return made

        universe.expect(Kill(After("JobStarted", where={"job": "other"}, occurrence=4)))
        for _ in range(3):
            process = await start(
                universe, job(), environment(every_ms=2_000, restart=again()), process="q", resume_from=owned.path
            )
            await asyncio.sleep(0.3)
            process.kill()
            await process.wait()
        starts = [e.restored_checkpoint for e in entries(universe, journal.JobStarted, job="other")]
        assert starts == [owned.checkpoint_id] * len(starts)
        assert len(starts) >= 5
        at.clear()
        async with environment(universe.world("r")).run(job()):
            await asyncio.sleep(0.2)
        assert len(sink.rows) > committed
        gap_free(sink)

    play(story)


def test_r028_going_back_to_an_older_checkpoint_commits_new_output_and_says_what_is_there_twice() -> None:
    async def story(universe: Universe) -> None:
        async def life(ms: int, **options: Any) -> Any:
            job = af.Job("count")
            source = generator.generate(word, per_second=200)
            job.read(source, name="read").key_by(str.lower).count(name="count").write(files.write("/out"), name="write")
            world = universe.world(f"p{universe.now_ms()}")
            infos = []
            async with environment(world, retained=10).run(job, **options) as handle:
                for _ in range(3):
                    await asyncio.sleep(ms / 3_000)
                    infos.append(await handle.checkpoint())
            return infos

        infos = await life(300)
        rows = await files.write("/out").visible(universe.world("reader"))
        await life(300, resume_from=infos[0].path, rewind=True)
        both = await files.write("/out").visible(universe.world("reader2"))
        assert len(both) > len(rows)
        assert set(rows) <= set(both)
        [told] = [entry for entry in entries(universe, journal.FellBack) if "'write'" in entry.subject]
        assert "written again" in told.taken
        assert "part-" in told.why

    play(story)


def test_a_path_that_leads_to_no_snapshot_or_to_one_that_does_not_fit_leaves_the_home_as_it_was() -> None:
    async def story(universe: Universe) -> None:
        last = (await lives(universe, memory.collect()))[1]
        other = af.Job("else")
        other.read(generator.generate(word, per_second=200), name="read").key_by(str.lower).count(name="others").write(
            memory.collect(), name="write"
        )
        async with environment(universe.world("e")).run(other) as handle:
            await asyncio.sleep(0.05)
            misfit = (await handle.checkpoint()).path
            await handle.cancel()
        for path, words in ((misfit, "'others'"), ("/nowhere/chk-7", "no snapshot at /nowhere/chk-7")):
            with pytest.raises(af.RestoreFailed, match=words):
                async with environment(universe.world(f"p{universe.now_ms()}")).run(
                    endless(memory.collect()), resume_from=path
                ):
                    raise AssertionError("it must not run")
            await asyncio.sleep(0.01)
        assert (await lives(universe, memory.collect()))[0] == last.checkpoint_id

    play(story)


def test_a_checkpoint_that_was_damaged_after_it_had_become_a_base_is_named() -> None:
    async def story(universe: Universe) -> None:
        last = (await lives(universe, memory.collect()))[1]
        universe.expect(Kill(After("JobStarted", process="k"), "k"))
        process = await start(universe, endless(memory.collect()), environment(), process="k")
        assert (await process.wait()).ending == "killed"
        overwrite(universe, manifest_of(universe, last.checkpoint_id), lambda data: data[:-1])
        await refused(universe, f"chk-{last.checkpoint_id}/_metadata")

    play(story)


def test_where_there_is_no_snapshot_nothing_starts() -> None:
    async def story(universe: Universe) -> None:
        for path in ("/nowhere", "/nowhere/chk-7", "x", "/"):
            with pytest.raises(af.ActorflowError):
                async with environment(universe.world(f"p{len(path)}{universe.now_ms()}")).run(
                    endless(memory.collect()), resume_from=path
                ):
                    raise AssertionError("it must not run")
            await asyncio.sleep(0.01)
        # and the home is as before: a later start without a path begins
        assert (await lives(universe, memory.collect()))[0] is None

    play(story)


# ── what can't be restored ───────────────────────────────────────────────────────────────────


async def refused(universe: Universe, words: str, error: type[Exception] = af.RestoreFailed, **settings: Any) -> str:
    """Assert that the job is refused before any record, by one plain error; return what it says."""
    seen: list[Any] = []
    with pytest.raises(error, match=words) as caught:
        async with environment(universe.world(f"refused{universe.now_ms()}"), restart=again(), **settings).run(
            endless(memory.collect(), seen=seen)
        ):
            raise AssertionError("it must not run")
    assert type(caught.value) in (af.RestoreFailed, af.IncompatibleState, error)
    assert seen == []
    assert entries(universe, journal.JobRestarting) == []
    await asyncio.sleep(0.01)
    return str(caught.value)


def manifest_of(universe: Universe, checkpoint_id: int) -> str:
    return f"{STORAGE}/count/chk-{checkpoint_id}/_metadata"


@pytest.mark.parametrize(
    "change",
    [
        lambda data: b"",
        lambda data: data[:1],
        lambda data: data[: len(data) // 2],
        lambda data: data[:-1],
        lambda data: data + b"x",
        lambda data: data[:40] + bytes([data[40] ^ 1]) + data[41:],
        lambda data: data[:-5] + bytes([data[-5] ^ 0x80]) + data[-4:],
        lambda data: b"not ours at all, but long enough to be read as one",
        lambda data: seal("claim", 1, b"\xa0"),
        lambda data: seal("manifest", 99, b"\xa0"),
    ],
)
def test_r021_a_damaged_manifest_is_named_and_never_the_one_before_it_in_silence(
    change: Callable[[bytes], bytes],
) -> None:
    async def story(universe: Universe) -> None:
        sink = memory.collect()
        await lives(universe, sink)
        _, last = await lives(universe, sink)
        name = manifest_of(universe, last.checkpoint_id)
        overwrite(universe, name, change)
        told = await refused(universe, f"chk-{last.checkpoint_id}/_metadata")
        assert "--from" in told or "a newer one" in told
        # N-1 restores when it is asked for by its path, and the output is right
        older = memory.collect()
        before = [one for one in completed(universe) if one < last.checkpoint_id][-1]
        path = f"{STORAGE}/count/chk-{before}"
        assert (await lives(universe, older, resume_from=path, rewind=True))[0] == before

    play(story)


def test_r021_a_damaged_object_is_named_with_its_operator_and_subtask() -> None:
    async def story(universe: Universe) -> None:
        sink = memory.collect()
        settings = af.Checkpoints(storage=STORAGE, inline_below=0)
        async with af.Environment(checkpoints=settings, world=universe.world("a")).run(endless(sink)) as handle:
            await asyncio.sleep(0.2)
            info = await handle.checkpoint()
            await asyncio.sleep(0.02)
            await handle.cancel()
        objects = [name for name in platter(universe).files() if name.startswith(info.path) and "count" in name[-12:]]
        [name] = objects
        whole = bytes(platter(universe).find(name).content)
        for damaged in (whole[:-1], whole[:10] + bytes([whole[10] ^ 4]) + whole[11:], bytes(len(whole))):
            replace_by(universe, name, damaged)
            told = await refused(universe, "operator '(count|write)', subtask 0")
            assert name.rpartition("/")[2] in told
            replace_by(universe, name, whole)
        platter(universe).remove(name)
        await refused(universe, name.rpartition("/")[2], af.ActorflowError)

    play(story)


def rewritten(universe: Universe, checkpoint_id: int, change: Callable[[Manifest], Manifest]) -> None:
    name = manifest_of(universe, checkpoint_id)
    overwrite(universe, name, lambda data: encode_manifest(change(decode_manifest(data, name))))


def test_a_checkpoint_of_another_job_or_key_scheme_is_refused() -> None:
    async def story(universe: Universe) -> None:
        _, last = await lives(universe, memory.collect())
        name = manifest_of(universe, last.checkpoint_id)
        whole = bytes(platter(universe).find(name).content)
        rewritten(universe, last.checkpoint_id, lambda manifest: replace(manifest, job="somebody-else"))
        await refused(universe, "'somebody-else'")
        overwrite(universe, name, lambda _: whole)
        rewritten(universe, last.checkpoint_id, lambda manifest: replace(manifest, key_scheme="md5/7"))
        await refused(universe, "md5/7")

    play(story)


@pytest.mark.parametrize("leads_out", ["../count/chk-1/_metadata", "/etc/passwd", "a\\b", "a\0b", "..", "", "x/y"])
def test_a_manifest_from_a_stranger_leads_nowhere_else(leads_out: str) -> None:
    async def story(universe: Universe) -> None:
        settings = af.Checkpoints(storage=STORAGE, inline_below=0)
        async with af.Environment(checkpoints=settings, world=universe.world("a")).run(
            endless(memory.collect())
        ) as handle:
            await asyncio.sleep(0.2)
            info = await handle.checkpoint()
            await asyncio.sleep(0.02)
            await handle.cancel()

        def change(manifest: Manifest) -> Manifest:
            operators = []
            for operator in manifest.operators:
                subtasks = []
                for subtask in operator.subtasks:
                    keyed = tuple(
                        handle
                        if isinstance(handle, InlineHandle)
                        else ObjectHandle(handle.scope, leads_out, handle.offset, handle.length, handle.crc32)
                        for handle in subtask.keyed
                    )
                    subtasks.append(replace(subtask, keyed=keyed))
                operators.append(replace(operator, subtasks=tuple(subtasks)))
            return replace(manifest, operators=tuple(operators))

        name = manifest_of(universe, info.checkpoint_id)
        try:
            data = encode_manifest(change(decode_manifest(bytes(platter(universe).find(name).content), name)))
        except (af.ActorflowError, ValueError, AssertionError):
            return  # it can't even be written
        overwrite(universe, name, lambda _: data)
        await refused(universe, f"chk-{info.checkpoint_id}/_metadata")

    play(story)


@pytest.mark.parametrize("which", ["base", "claim"])
def test_a_damaged_base_or_claim_is_named(which: str) -> None:
    async def story(universe: Universe) -> None:
        await lives(universe, memory.collect())
        [name] = [
            one
            for one in sorted(platter(universe).files())
            if "/owner/" in one and one.endswith(".base") == (which == "base")
        ]
        overwrite(universe, name, lambda data: data[:-3])
        if which == "base":
            await refused(universe, name.removeprefix(f"{STORAGE}/"))
        else:
            # Nobody needs to read a claim that is not newer than one's own.
            assert (await lives(universe, memory.collect()))[0] is not None

    play(story)


def test_a_checkpoint_that_was_deleted_by_hand_is_an_error_that_names_it() -> None:
    async def story(universe: Universe) -> None:
        await lives(universe, memory.collect())
        await lives(universe, memory.collect(), ms=1)
        last_base = max(name for name in platter(universe).files() if name.endswith(".base"))
        for name in list(platter(universe).files()):
            if "/chk-" in name:
                platter(universe).remove(name)
        assert last_base
        told = await refused(universe, "is gone")
        assert "--fresh" in told
        assert (await lives(universe, memory.collect(), resume_from="nothing"))[0] is None

    play(story)


# ── storage in bad weather ───────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("fault", [FailObjects, LoseAnswer])
@pytest.mark.parametrize("operation", ["list", "put", "put_if_absent", "get"])
def test_a_few_refusals_at_the_start_are_waited_out(fault: Any, operation: str) -> None:
    async def story(universe: Universe) -> None:
        await lives(universe, memory.collect())
        from actorflow.simulation.weather import At

        universe.expect(fault(At(0), operation, count=2))
        await asyncio.sleep(0)
        sink = memory.collect()
        assert (await lives(universe, sink))[0] is not None

    play(story)


def test_a_store_that_refuses_for_good_is_one_error_before_any_record() -> None:
    async def story(universe: Universe) -> None:
        from actorflow.simulation.weather import At

        for operation in ("list", "put"):
            universe.expect(FailObjects(At(0), operation, count=1_000))
            await asyncio.sleep(0)
            await refused(universe, "refused by the weather", af.StorageFailed)
            universe.sky.clear()

    play(story)


def test_a_lost_answer_to_the_claim_or_the_manifest_is_found_out() -> None:
    async def story(universe: Universe) -> None:
        sink = memory.collect()
        universe.expect(LoseAnswer(OnObject("put_if_absent", "*owner/*"), "put_if_absent", "*owner/*"))
        universe.expect(
            LoseAnswer(After("CheckpointTriggered", occurrence=2), "put_if_absent", "*chk-*/_metadata", count=1)
        )
        async with environment(universe.world("p"), every_ms=50).run(endless(sink)) as handle:
            await asyncio.sleep(0.5)
        assert handle.status.restarts == 0
        ids = completed(universe)
        assert ids == list(range(1, len(ids) + 1))
        gap_free(sink)

    for seed in seeds(4):
        play(story, seed)


def test_what_older_generations_left_is_swept() -> None:
    async def story(universe: Universe) -> None:
        sink = memory.collect()
        settings = af.Environment(checkpoints=af.Checkpoints(storage=STORAGE, inline_below=0, every=None))

        for index in range(3):
            universe.expect(Kill(OnObject("put_if_absent", "*chk-*/_metadata", "before", occurrence=1)))
            process = await start(universe, endless(sink), replaced(settings, every_ms=30))
            await process.wait()
            assert index < 5
        orphans = [name for name in platter(universe).files() if "/chk-" in name]
        assert orphans
        async with environment(universe.world("last"), every_ms=50).run(endless(sink)):
            await asyncio.sleep(0.3)
        named = {f"/chk-{one}/" for one in completed(universe)[-1:]}
        assert all(any(one in name for one in named) for name in platter(universe).files() if "/chk-" in name)
        assert len([name for name in platter(universe).files() if "/owner/" in name]) == 2
        gap_free(sink)

    play(story)


def replaced(environment: af.Environment, *, every_ms: int) -> af.Environment:
    return af.Environment(settings=environment.settings.merged({"checkpoints.every": f"{every_ms}ms"}))
