from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, cast

import pytest

from actorflow.abc.connectors import TransactionalWriter
from actorflow.abc.disk import FileWriter
from actorflow.abc.world import World
from actorflow.connectors import files
from actorflow.connectors.files_sink import generation_of
from actorflow.errors import CorruptObject, InvalidJob, StorageFailed
from actorflow.simulation.contracts_connectors import Permit
from actorflow_tests.connectors.support import MemoryDisk, TestObserver, drain, noting, sink_context, world_of

PERMIT = Permit(1, 1)


async def open_writer(disk: MemoryDisk, *, world: World | None = None, **context: Any) -> TransactionalWriter[Any]:
    return await files.write("/out").open(sink_context(world or world_of(disk), **context))


async def prepared(writer: TransactionalWriter[Any], checkpoint_id: int, *records: Any) -> list[Any]:
    if records:
        await writer.write(list(records))
    cut = writer.prepare(checkpoint_id)
    if cut.rest is not None:
        await cut.rest
    return cut.committables


def play(story: Callable[[MemoryDisk], Awaitable[None]]) -> None:
    async def run() -> None:
        await story(MemoryDisk())

    asyncio.run(run())


# ── names ────────────────────────────────────────────────────────────────────────────────────


def test_names_say_operator_subtask_generation_and_checkpoint() -> None:
    async def story(disk: MemoryDisk) -> None:
        writer = await open_writer(disk, subtask=3, generation=12)
        [committable] = await prepared(writer, 7, "a", "b")
        assert disk.names("/out") == [".actorflow", ".pending/out-3-12-0"]
        assert committable[:3] == ["out-3-12-0", "part-00003-0000000007.txt", 4]

        await writer.commit([committable], PERMIT)
        assert disk.names("/out") == [".actorflow", "part-00003-0000000007.txt"]
        assert disk.data("/out/part-00003-0000000007.txt") == b"a\nb\n"
        [committable] = await prepared(writer, 8, "c")
        assert committable[0] == "out-3-12-1"

    play(story)


def test_the_suffix_follows_the_format_and_can_be_chosen() -> None:
    async def name_of(sink: files.FileSink) -> str:
        writer = await sink.open(sink_context(world_of(MemoryDisk())))
        [committable] = await prepared(writer, 1, {"a": 1})
        name: str = committable[1]
        return name

    assert asyncio.run(name_of(files.write("/out"))).endswith("-0000000001.txt")
    assert asyncio.run(name_of(files.write("/out", format="json"))).endswith(".jsonl")
    assert asyncio.run(name_of(files.write("/out", format=str, suffix="log"))).endswith(".log")


@pytest.mark.parametrize("suffix", ["a/b", ".txt", "a\\b", "ä", "x" * 40])
def test_a_suffix_that_is_no_plain_name_is_refused(suffix: str) -> None:
    with pytest.raises(InvalidJob, match="suffix"):
        files.write("/out", suffix=suffix)


@pytest.mark.parametrize("folder", ["", "a\0b"])
def test_a_folder_that_can_be_none_is_refused(folder: str) -> None:
    with pytest.raises(InvalidJob, match="folder"):
        files.write(folder)


def test_generations_are_read_from_names_whatever_operators_are_called() -> None:
    assert generation_of("a-b-1-2-3-44-5") == 44
    for name in ("part-1", "a-1-2", "a-1-b-3", "a-1-²-3", ""):
        assert generation_of(name) is None


# ── whose folder it is ───────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("context", [{"operator": "other"}, {"home": "/store/other"}])
def test_a_folder_of_another_owner_is_refused_and_both_are_named(context: dict[str, Any]) -> None:
    async def story(disk: MemoryDisk) -> None:
        await open_writer(disk)
        before = disk.names("/out")
        with pytest.raises(InvalidJob) as caught:
            await open_writer(disk, **context)
        for word in ("/out", "'out'", "/store/job", *context.values(), "/out/.actorflow"):
            assert word in str(caught.value)
        assert disk.names("/out") == before

    play(story)


def test_every_subtask_and_every_later_life_of_the_owner_is_welcome() -> None:
    async def story(disk: MemoryDisk) -> None:
        await asyncio.gather(*(open_writer(disk, subtask=subtask) for subtask in range(4)))
        await open_writer(disk, generation=2)
        assert disk.names("/out") == [".actorflow"]

    play(story)


def test_the_owner_survives_a_power_cut() -> None:
    async def story(disk: MemoryDisk) -> None:
        await open_writer(disk)
        disk.power_cut()
        with pytest.raises(InvalidJob, match="belongs to"):
            await open_writer(disk, home="/store/other")

    play(story)


@pytest.mark.parametrize("data", [b"", b"{", b"[]", b'{"home": 1}', b"\xff"])
def test_an_owner_that_cannot_be_read_is_not_passed_over(data: bytes) -> None:
    async def story(disk: MemoryDisk) -> None:
        disk.put("/out/.actorflow", data)
        with pytest.raises(InvalidJob, match=r"/out/\.actorflow does not say who owns"):
            await open_writer(disk)

    play(story)


@pytest.mark.parametrize("is_owned", [False, True])
def test_a_folder_that_cannot_be_written_is_refused_before_any_record(*, is_owned: bool) -> None:
    async def story(disk: MemoryDisk) -> None:
        if is_owned:
            await open_writer(disk)
        disk.read_only = ("/out",)
        with pytest.raises(StorageFailed, match=r"operator 'out' can't write to the folder /out: .*permission denied"):
            await open_writer(disk)

    play(story)


def test_pending_files_are_not_written_through_a_link_that_leads_out() -> None:
    async def story(disk: MemoryDisk) -> None:
        disk.links["/out/.pending"] = "/elsewhere"
        with pytest.raises(InvalidJob, match="leads out"):
            await open_writer(disk)

    play(story)


def test_a_folder_that_is_a_link_itself_is_the_folder_it_leads_to() -> None:
    async def story(disk: MemoryDisk) -> None:
        disk.links["/out"] = "/real"
        writer = await open_writer(disk)
        await writer.commit(await prepared(writer, 1, "a"), PERMIT)
        assert disk.names("/real") == [".actorflow", "part-00000-0000000001.txt"]
        assert await files.write("/out").visible(world_of(disk)) == ["a"]

    play(story)


# ── committing ───────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    "name", ["", ".", "..", "../x", "/x", "a/b", "a\\b", "a\0b", ".hidden", "..\\x", 7, None, b"x", "x" * 3 + "/.."]
)
@pytest.mark.parametrize("place", [0, 1])
def test_a_committable_that_leads_out_is_refused(name: Any, place: int) -> None:
    async def story(disk: MemoryDisk) -> None:
        writer = await open_writer(disk)
        [committable] = await prepared(writer, 1, "a")
        before = disk.names("/out")
        committable[place] = name
        with pytest.raises(CorruptObject, match="operator 'out'"):
            await writer.commit([committable], PERMIT)
        with pytest.raises(CorruptObject, match="operator 'out'"):
            await writer.discard([committable])
        assert disk.names("/out") == before

    play(story)


@pytest.mark.parametrize("committable", [[], ["a", "part-1-1.txt"], 7, None, ["a", "not-a-part.txt", 1, b""]])
def test_something_that_is_no_committable_is_refused(committable: Any) -> None:
    async def story(disk: MemoryDisk) -> None:
        writer = await open_writer(disk)
        with pytest.raises(CorruptObject):
            await writer.commit([committable], PERMIT)

    play(story)


@pytest.mark.parametrize("which", [".pending/out-0-1-0", "part-00000-0000000001.txt"])
def test_a_link_in_the_place_of_a_file_is_not_followed(which: str) -> None:
    async def story(disk: MemoryDisk) -> None:
        writer = await open_writer(disk)
        committables = await prepared(writer, 1, "a")
        disk.put("/etc/secret", b"secret\n")
        disk.links[f"/out/{which}"] = "/etc/secret"
        with pytest.raises(StorageFailed, match="is a link"):
            await writer.commit(committables, PERMIT)
        assert disk.data("/etc/secret") == b"secret\n"

    play(story)


def test_a_final_name_that_holds_something_else_is_not_overwritten() -> None:
    async def story(disk: MemoryDisk) -> None:
        writer = await open_writer(disk)
        committables = await prepared(writer, 1, "a")
        disk.put("/out/part-00000-0000000001.txt", b"b\n")
        with pytest.raises(StorageFailed, match=r"part-00000-0000000001\.txt holds something else than .*out-0-1-0"):
            await writer.commit(committables, PERMIT)
        assert disk.data("/out/part-00000-0000000001.txt") == b"b\n"
        assert disk.data("/out/.pending/out-0-1-0") == b"a\n"

    play(story)


def test_rows_that_are_in_neither_place_are_an_error_that_names_both() -> None:
    async def story(disk: MemoryDisk) -> None:
        writer = await open_writer(disk)
        committables = await prepared(writer, 1, "a")
        disk.take("/out/.pending/out-0-1-0")
        with pytest.raises(StorageFailed, match=r"neither .*out-0-1-0 nor .*part-00000-0000000001\.txt is there"):
            await writer.commit(committables, PERMIT)

    play(story)


@pytest.mark.parametrize("data", [b"", b"a", b"b\n", b"a\na\n"])
def test_a_pending_file_that_is_not_what_its_checkpoint_says_never_becomes_visible(data: bytes) -> None:
    async def story(disk: MemoryDisk) -> None:
        committables = await prepared(await open_writer(disk), 1, "a")
        disk.put("/out/.pending/out-0-1-0", data)
        later = await open_writer(disk, generation=2, restored_checkpoint=1)
        with pytest.raises(CorruptObject, match="is not what its checkpoint says"):
            await later.commit(committables, PERMIT)
        assert await files.write("/out").visible(world_of(disk)) == []

    play(story)


def test_both_names_of_one_file_are_made_one() -> None:
    """A power cut may leave the old name and the new one."""

    async def story(disk: MemoryDisk) -> None:
        writer = await open_writer(disk)
        committables = await prepared(writer, 1, "a")
        disk.put("/out/part-00000-0000000001.txt", b"a\n")
        await writer.commit(committables, PERMIT)
        assert disk.names("/out") == [".actorflow", "part-00000-0000000001.txt"]

    play(story)


def test_a_commit_is_durable_when_it_returns() -> None:
    async def story(disk: MemoryDisk) -> None:
        writer = await open_writer(disk)
        await writer.commit(await prepared(writer, 1, "a"), PERMIT)
        disk.power_cut()
        assert await files.write("/out").visible(world_of(disk)) == ["a"]

    play(story)


def test_what_was_prepared_survives_a_power_cut() -> None:
    async def story(disk: MemoryDisk) -> None:
        committables = await prepared(await open_writer(disk), 1, "a")
        disk.power_cut()
        later = await open_writer(disk, generation=2, restored_checkpoint=1)
        await later.commit(committables, PERMIT)
        assert await files.write("/out").visible(world_of(disk)) == ["a"]

    play(story)


# ── several lives ────────────────────────────────────────────────────────────────────────────


def test_after_scaling_in_nothing_collides() -> None:
    """Four subtasks prepared the same checkpoint, and one commits for all."""

    async def story(disk: MemoryDisk) -> None:
        every: list[Any] = []
        for subtask in range(4):
            every += await prepared(await open_writer(disk, subtask=subtask), 5, f"row {subtask}")
        later = await open_writer(disk, generation=2, restored_checkpoint=5)
        await later.commit(every, PERMIT)
        await later.commit(await prepared(later, 6, "row 4"), PERMIT)
        assert await files.write("/out").visible(world_of(disk)) == [f"row {n}" for n in (0, 4, 1, 2, 3)]

    play(story)


def test_going_back_on_purpose_writes_beside_and_warns() -> None:
    async def story(disk: MemoryDisk) -> None:
        writer = await open_writer(disk)
        for checkpoint in (1, 2, 3):
            await writer.commit(await prepared(writer, checkpoint, f"row {checkpoint}"), PERMIT)

        for restored, warned in ((3, []), (None, ["0000000001"]), (1, ["0000000002", "0000000003"])):
            world = world_of(disk)
            writer = await open_writer(disk, world=world, generation=2, restored_checkpoint=restored)
            entries = cast("TestObserver", world.observer).named("FellBack")
            assert len(entries) == bool(warned)
            assert all(word in entries[0].why for word in warned)
        await writer.commit(await prepared(writer, 2, "row 2"), PERMIT)
        assert disk.names("/out")[1:] == [
            "part-00000-0000000001.txt",
            "part-00000-0000000002-2.txt",
            "part-00000-0000000002.txt",
            "part-00000-0000000003.txt",
        ]
        again = await open_writer(disk, generation=3, restored_checkpoint=1)
        [committable] = await prepared(again, 2, "row 2")
        assert committable[1] == "part-00000-0000000002-3.txt"

    play(story)


def test_only_one_subtask_warns() -> None:
    async def story(disk: MemoryDisk) -> None:
        writer = await open_writer(disk)
        await writer.commit(await prepared(writer, 1, "a"), PERMIT)
        world = world_of(disk)
        for subtask in range(3):
            await open_writer(disk, world=world, subtask=subtask, generation=2)
        assert len(cast("TestObserver", world.observer).named("FellBack")) == 1

    play(story)


def test_a_home_that_does_not_last_begins_its_numbers_behind_what_lies_there() -> None:
    async def story(disk: MemoryDisk) -> None:
        await prepared(await open_writer(disk), 1, "left behind")
        again = await open_writer(disk)
        [committable] = await prepared(again, 1, "a")
        assert committable[0] == "out-0-1-1"

    play(story)


def test_a_sweep_removes_what_older_generations_left_and_nothing_else() -> None:
    async def story(disk: MemoryDisk) -> None:
        for name in ("out-0-1-0", "out-7-2-3", "OUT-0-2-1", "out-0-3-0", "out-0-4-0", "notes.txt", ".owner-out-1-2-0"):
            disk.put(f"/out/.pending/{name}", b"x\n")
        world = world_of(disk)
        writer = await open_writer(disk, world=world, generation=3)
        await writer.write(["mine"])
        assert await writer.sweep([["out-7-2-3", "part-00007-0000000002.txt", 2, b""]]) == 3
        assert disk.names("/out/.pending") == ["notes.txt", "out-0-3-0", "out-0-4-0", "out-7-2-3"]
        assert len(cast("TestObserver", world.observer).named("OrphanRemoved")) == 3

    play(story)


# ── failures ─────────────────────────────────────────────────────────────────────────────────


def test_bytes_are_gathered_before_the_disk_is_called() -> None:
    async def story(disk: MemoryDisk) -> None:
        writes: list[str] = []
        disk.refuse = noting("write", writes, lambda path: path)
        writer = await open_writer(disk)
        writes.clear()
        for _ in range(300):
            await writer.write(["x" * 999])
        assert len(writes) == 1
        [committable] = await prepared(writer, 1)
        assert len(writes) == 2
        assert committable[2] == 300_000
        assert len(disk.data("/out/.pending/out-0-1-0")) == 300_000

    play(story)


@pytest.mark.parametrize("operation", ["create", "write", "sync", "close", "sync_folder"])
def test_a_file_that_could_not_be_made_durable_is_never_taken_for_durable(operation: str) -> None:
    """The checkpoint fails, so does every later one, and the next write ends the attempt."""

    async def story(disk: MemoryDisk) -> None:
        writer = await open_writer(disk)
        await writer.write(["a"])
        disk.refuse = lambda name, path: name == operation
        with pytest.raises(StorageFailed):
            await prepared(writer, 1)
        disk.refuse = lambda name, path: False
        for checkpoint in (2, 3):
            with pytest.raises(StorageFailed, match=r"out-0-1-0 could not be finished"):
                await prepared(writer, checkpoint)
        with pytest.raises(StorageFailed, match=r"out-0-1-0 could not be finished"):
            await writer.write(["b"])
        await writer.close()

    play(story)


def test_a_failed_write_in_passing_ends_the_attempt() -> None:
    async def story(disk: MemoryDisk) -> None:
        writer = await open_writer(disk)
        disk.refuse = lambda name, path: name == "write"
        with pytest.raises(StorageFailed):
            await writer.write(["x" * 300_000])
        disk.refuse = lambda name, path: False
        with pytest.raises(StorageFailed, match="never came back"):
            await writer.write(["x" * 300_000])
        await writer.close()
        assert disk.names("/out/.pending") == []

    play(story)


class SlowFile(FileWriter):
    """Waits at a gate in ``write`` or ``sync``."""

    def __init__(self, file: FileWriter, gates: dict[str, asyncio.Event]) -> None:
        self.file, self.gates = file, gates

    async def write(self, data: bytes) -> None:
        await self.gates["write"].wait()
        await self.file.write(data)

    async def sync(self) -> None:
        await self.gates["sync"].wait()
        await self.file.sync()

    async def close(self) -> None:
        await self.file.close()


async def slow_writer(disk: MemoryDisk) -> tuple[TransactionalWriter[Any], dict[str, asyncio.Event]]:
    gates = {"write": asyncio.Event(), "sync": asyncio.Event()}
    writer = await open_writer(disk)
    create = disk.create

    async def slow_create(path: str) -> FileWriter:
        return SlowFile(await create(path), gates)

    disk.create = slow_create  # type: ignore[method-assign]
    return writer, gates


async def turns() -> None:
    for _ in range(10):
        await asyncio.sleep(0)


def test_two_checkpoints_may_finish_one_file_at_the_same_time() -> None:
    async def story(disk: MemoryDisk) -> None:
        writer, gates = await slow_writer(disk)
        await writer.write(["a"])
        first, second = writer.prepare(1), writer.prepare(2)
        assert first.rest is not None
        assert second.rest is not None
        rests = [asyncio.ensure_future(first.rest), asyncio.ensure_future(second.rest)]
        await turns()
        gates["write"].set()
        await turns()
        assert not rests[1].done()
        gates["sync"].set()
        await asyncio.gather(*rests)
        await writer.commit(first.committables, PERMIT)
        assert disk.data("/out/part-00000-0000000001.txt") == b"a\n"
        assert writer.prepare(3).rest is None

    play(story)


def test_a_rest_that_was_cancelled_while_syncing_is_made_up_for() -> None:
    async def story(disk: MemoryDisk) -> None:
        writer, gates = await slow_writer(disk)
        gates["write"].set()
        await writer.write(["a"])
        first = writer.prepare(1)
        assert first.rest is not None
        rest = asyncio.ensure_future(first.rest)
        await turns()
        rest.cancel()
        await turns()
        gates["sync"].set()
        await prepared(writer, 2)
        await writer.commit(first.committables, PERMIT)
        assert disk.data("/out/part-00000-0000000001.txt") == b"a\n"

    play(story)


def test_a_rest_that_was_cancelled_while_writing_leaves_nobody_guessing() -> None:
    async def story(disk: MemoryDisk) -> None:
        writer, gates = await slow_writer(disk)
        await writer.write(["a"])
        first = writer.prepare(1)
        assert first.rest is not None
        rest = asyncio.ensure_future(first.rest)
        await turns()
        rest.cancel()
        await turns()
        for gate in gates.values():
            gate.set()
        with pytest.raises(StorageFailed, match="never came back"):
            await prepared(writer, 2)

    play(story)


def test_what_is_discarded_before_it_was_durable_is_not_finished_any_more() -> None:
    async def story(disk: MemoryDisk) -> None:
        writer, gates = await slow_writer(disk)
        await writer.write(["a"])
        abandoned = writer.prepare(1)
        await writer.discard(abandoned.committables)
        assert writer.prepare(2).rest is None
        for gate in gates.values():
            gate.set()
        assert disk.names("/out/.pending") == []

    play(story)


def test_r114_a_batch_that_is_refused_leaves_the_cut_before_it_whole() -> None:
    async def story(disk: MemoryDisk) -> None:
        writer = await open_writer(disk)
        committables = await prepared(writer, 1, "a")
        with pytest.raises(Exception, match="line break"):
            await writer.write(["b", "c\nd"])
        await writer.close()
        later = await open_writer(disk, generation=2, restored_checkpoint=1)
        await later.commit(committables, PERMIT)
        assert await files.write("/out").visible(world_of(disk)) == ["a"]

    play(story)


# ── reading ──────────────────────────────────────────────────────────────────────────────────


def test_what_is_committed_can_be_read_outside_of_a_job(tmp_path: Path) -> None:
    (tmp_path / "part-00001-0000000002.txt").write_bytes("c\rd\u2028\n".encode())
    (tmp_path / "part-00000-0000000002.txt").write_bytes(b"a\nb\n")
    (tmp_path / "part-00000-0000000003.txt").write_bytes(b"")
    (tmp_path / ".pending").mkdir()
    (tmp_path / ".pending" / "part-9").write_bytes(b"x\n")
    assert files.committed(tmp_path) == ["a", "b", "c\rd\u2028"]
    assert files.committed(tmp_path / "nowhere") == []


def test_what_the_sink_writes_the_source_reads() -> None:
    async def story(disk: MemoryDisk) -> None:
        rows = ["", "a\rb", "c\x0bd", "e\x85f\u2028g", " ", "ä€😀", '"']
        writer = await open_writer(disk)
        await writer.commit(await prepared(writer, 1, *rows), PERMIT)
        world, source, found = world_of(disk), files.lines("/out"), []
        for split in await source.discover(world):
            found += await drain(source, world, split)
        assert found == rows == await files.write("/out").visible(world)

    play(story)
