from __future__ import annotations

import asyncio
import gzip
from collections.abc import AsyncGenerator
from contextlib import aclosing
from datetime import timedelta
from typing import Any, cast

import pytest

from actorflow.abc.connectors import Chunk
from actorflow.abc.world import World
from actorflow.connectors import files
from actorflow.errors import CorruptObject, InvalidJob, InvalidValue, ObjectMissing, RestoreFailed
from actorflow.model.codec import Codec
from actorflow_tests.connectors.support import MemoryDisk, TestObserver, drain, noting, source_context, world_of


def lines_of(data: bytes, **settings: Any) -> list[str]:
    disk = MemoryDisk()
    disk.put("/a.txt", data)
    return asyncio.run(drain(files.lines("/a.txt", **settings), world_of(disk), "/a.txt"))


def chunks_of(disk: MemoryDisk, path: str, position: Any = None, **settings: Any) -> list[Chunk[str]]:
    async def story() -> list[Chunk[str]]:
        reading = files.lines(path, **settings).read(source_context(world_of(disk), path, position))
        return [chunk async for chunk in reading]

    return asyncio.run(story())


def following(source: files.FileLines, world: World, path: str, position: Any = None) -> Any:
    return aclosing(cast("AsyncGenerator[Chunk[str], None]", source.read(source_context(world, path, position))))


# ── lines ────────────────────────────────────────────────────────────────────────────────────


def test_line_breaks_are_no_part_of_lines() -> None:
    assert lines_of(b"one\r\ntwo\n\nthree\rstill three\n last ") == ["one", "two", "", "three\rstill three", " last "]


def test_a_very_long_line_spans_many_blocks() -> None:
    long = b"x" * 400_000
    assert lines_of(b"a\n" + long + b"\nb\n") == ["a", long.decode(), "b"]


def test_the_longest_line_is_bounded() -> None:
    with pytest.raises(InvalidValue, match=r"/a\.txt: the line that begins at byte 2 is longer than 1000 bytes"):
        lines_of(b"a\n" + b"x" * 400_000, longest_line=1_000)


def test_a_byte_that_is_no_text_is_named_with_file_and_place() -> None:
    text = b"".join(b"%06d\n" % number for number in range(10_000))
    with pytest.raises(InvalidValue, match=r"/a\.txt: byte 70003 is not utf-8 text"):
        lines_of(text + b"bad\xff\n", chunk_bytes=1_000)
    assert lines_of(text + b"bad\xff\n", errors="replace")[-1] == "bad\ufffd"


def test_chunks_hold_about_as_many_bytes_as_asked_for() -> None:
    disk = MemoryDisk()
    disk.put("/a.txt", b"123456789\n" * 1_000)
    chunks = chunks_of(disk, "/a.txt", chunk_bytes=500)

    assert [len(chunk.records) for chunk in chunks] == [50] * 20
    assert [chunk.resume_at["at"] for chunk in chunks] == list(range(500, 10_001, 500))


def test_a_file_that_does_not_grow_is_read_in_few_calls() -> None:
    disk = MemoryDisk()
    disk.put("/a.txt", b"123456789\n" * 20_000)
    chunks_of(disk, "/a.txt")
    assert disk.reads <= 4


# ── what is read ─────────────────────────────────────────────────────────────────────────────


def test_splits_are_files_in_order_of_their_absolute_names() -> None:
    disk = MemoryDisk()
    for name in ("/here/b.txt", "/here/a.txt", "/other/c.txt"):
        disk.put(name, b"x\n")
    source = files.lines(["/other", "b.txt", "*.txt"])

    assert asyncio.run(source.discover(world_of(disk))) == ["/here/a.txt", "/here/b.txt", "/other/c.txt"]
    assert source.bounded
    assert source.splits_at_once == 1


@pytest.mark.parametrize("name", ["/nowhere.txt", "/in/*.log", "/empty"])
def test_a_name_that_stands_for_nothing_is_an_error_before_any_record(name: str) -> None:
    disk = MemoryDisk()
    disk.put("/in/a.txt", b"x\n")
    source = files.lines(["/in", name])
    splits = asyncio.run(source.discover(world_of(disk)))

    with pytest.raises(ObjectMissing, match=r"files\.lines: there is no file '" + name.replace("*", r"\*")):
        asyncio.run(source.verify(world_of(disk), splits, []))


def test_a_file_that_cannot_be_opened_is_an_error_before_any_record() -> None:
    disk = MemoryDisk()
    disk.put("/in/a.txt", b"x\n")
    disk.refuse = lambda operation, path: operation == "open"

    with pytest.raises(Exception, match=r"/in/a\.txt"):
        asyncio.run(files.lines("/in").verify(world_of(disk), ["/in/a.txt"], []))


def test_r012_what_was_read_to_its_end_may_be_changed_or_put_away() -> None:
    """Neither is it listed as missing, nor opened, nor read: the runtime knows it as done."""
    disk = MemoryDisk()
    source = files.lines("/in/a.txt")
    asyncio.run(source.verify(world_of(disk), [], ["/in/a.txt"]))


@pytest.mark.parametrize("name", ["", "a\0b"])
def test_a_name_that_can_be_no_file_is_refused_when_the_job_is_built(name: str) -> None:
    with pytest.raises(InvalidJob, match=r"files\.lines"):
        files.lines(name)


@pytest.mark.parametrize(
    "settings",
    [
        {"on_changed": "ignore"},
        {"per_second": 0},
        {"per_second": float("nan")},
        {"chunk_bytes": 0},
        {"longest_line": 0},
        {"poll_every": timedelta(0)},
        {"encoding": "utf-16"},
    ],
)
def test_settings_that_mean_nothing_are_refused_when_the_job_is_built(settings: dict[str, Any]) -> None:
    with pytest.raises(InvalidJob, match=r"files\.lines"):
        files.lines("a.txt", **settings)


def test_no_name_at_all_is_refused() -> None:
    with pytest.raises(InvalidJob, match="missing"):
        files.lines([])


# ── positions ────────────────────────────────────────────────────────────────────────────────


def test_r018_going_on_reads_no_line_again() -> None:
    disk = MemoryDisk()
    disk.put("/a.txt", b"1\n2\n3\n4\n5\n")
    position: Any = None
    every: list[str] = []
    for _ in range(4):
        for chunk in chunks_of(disk, "/a.txt", position):
            every += chunk.records
            position = Codec().decode(Codec().encode(chunk.resume_at))
    assert every == ["1", "2", "3", "4", "5"]


def test_a_bounded_file_that_has_grown_is_read_on_behind_a_whole_line() -> None:
    disk = MemoryDisk()
    disk.put("/a.txt", b"1\n2\n")
    position = chunks_of(disk, "/a.txt")[-1].resume_at
    disk.append("/a.txt", b"3\n")
    assert chunks_of(disk, "/a.txt", position)[0].records == ["3"]


def test_a_last_line_that_was_counted_without_a_line_break_ends_the_file_for_good() -> None:
    disk = MemoryDisk()
    disk.put("/a.txt", b"1\nhal")
    position = chunks_of(disk, "/a.txt")[-1].resume_at
    disk.append("/a.txt", b"f\n3\n")

    assert chunks_of(disk, "/a.txt", position) == []
    with pytest.raises(RestoreFailed, match=r"/a\.txt was read to its end"):
        chunks_of(disk, "/a.txt", position, follow=True)


def position_after_half(disk: MemoryDisk, path: str = "/a.txt") -> Any:
    return chunks_of(disk, path, chunk_bytes=3_000)[1].resume_at


BEFORE = b"".join(b"line %d\n" % number for number in range(2_000))


@pytest.mark.parametrize("is_gzip", [False, True])
@pytest.mark.parametrize(
    ("after", "why"),
    [
        (None, "is gone"),
        (b"", "is shorter than it was"),
        (BEFORE[:100], "is shorter than it was"),
        (BEFORE[:5_000], "is shorter than it was"),
        (b"L" + BEFORE[1:], "begins differently than it did"),
    ],
)
def test_r015_a_file_that_is_not_the_one_that_was_begun_is_an_error_that_names_it(
    after: bytes | None, why: str, *, is_gzip: bool
) -> None:
    disk = MemoryDisk()
    packed = (lambda data: gzip.compress(data, mtime=0)) if is_gzip else (lambda data: data)
    disk.put("/a.txt", packed(BEFORE))
    position = position_after_half(disk)
    disk.take("/a.txt")
    if after is not None:
        disk.put("/a.txt", packed(after))

    with pytest.raises(RestoreFailed, match=rf"operator 'read': /a\.txt {why}.*on_changed='skip'"):
        chunks_of(disk, "/a.txt", position)

    world = world_of(disk)
    reading = files.lines("/a.txt", on_changed="skip")
    assert asyncio.run(drain(reading, world, "/a.txt", position)) == []
    [entry] = cast("TestObserver", world.observer).named("FellBack")
    assert why in entry.why
    assert "/a.txt" in entry.why


def test_r015_the_error_says_both_positions() -> None:
    disk = MemoryDisk()
    disk.put("/a.txt", BEFORE)
    position = chunks_of(disk, "/a.txt")[-1].resume_at
    disk.put("/a.txt", BEFORE[:5_000])
    with pytest.raises(RestoreFailed, match=rf"it has 5000 bytes and was read to byte {len(BEFORE)}"):
        chunks_of(disk, "/a.txt", position)


def test_a_file_is_known_by_as_much_of_its_first_4_kib_as_was_there() -> None:
    disk = MemoryDisk()
    disk.put("/a.txt", b"head\n" + b"x" * 50)
    position = chunks_of(disk, "/a.txt", chunk_bytes=1)[0].resume_at
    assert position["at"] == 5
    assert position["head_bytes"] == 55

    disk.append("/a.txt", b"yy\nmore\n")
    assert chunks_of(disk, "/a.txt", position)[0].records == ["x" * 50 + "yy", "more"]
    disk.put("/a.txt", b"head\n" + b"x" * 49 + b"z\n")
    with pytest.raises(RestoreFailed, match="begins differently"):
        chunks_of(disk, "/a.txt", position)


def test_a_file_that_was_assigned_and_never_begun_is_missed_too() -> None:
    with pytest.raises(RestoreFailed, match=r"/a\.txt is gone"):
        chunks_of(MemoryDisk(), "/a.txt")


def test_compressed_text_that_is_damaged_stays_an_error_even_where_changes_are_skipped() -> None:
    disk = MemoryDisk()
    disk.put("/a.gz", gzip.compress(BEFORE, mtime=0)[:-20])
    with pytest.raises(CorruptObject, match=r"/a\.gz"):
        chunks_of(disk, "/a.gz", on_changed="skip")


# ── following ────────────────────────────────────────────────────────────────────────────────


def test_a_followed_file_gives_lines_as_they_are_finished() -> None:
    async def story() -> None:
        disk = MemoryDisk()
        disk.put("/a.txt", b"one\ntw")
        world = world_of(disk)
        async with following(files.lines("/a.txt", follow=True), world, "/a.txt") as reading:
            assert (await anext(reading)).records == ["one"]
            waiting = asyncio.ensure_future(anext(reading))
            for _ in range(50):
                await asyncio.sleep(0)
            assert not waiting.done()
            disk.append("/a.txt", b"o\nthree\nfo")
            chunk = await waiting
            assert chunk.records == ["two", "three"]
            assert chunk.resume_at["at"] == 14

        async with following(files.lines("/a.txt", follow=True), world, "/a.txt", chunk.resume_at) as reading:
            disk.append("/a.txt", b"ur\n")
            assert (await anext(reading)).records == ["four"]

    asyncio.run(story())


def test_new_files_are_found_while_a_folder_is_followed() -> None:
    async def story() -> None:
        disk = MemoryDisk()
        world = world_of(disk)
        source = files.lines("/in", follow=True, discover_every=timedelta(seconds=3))
        assert not source.bounded
        assert source.splits_at_once is None
        assert source.discover_every == timedelta(seconds=3)

        assert await source.discover(world) == []
        await source.verify(world, [], [])
        [entry] = cast("TestObserver", world.observer).named("FellBack")
        assert "/in" in entry.why  # it waits, and says so
        disk.put("/in/a.txt", b"")
        assert await source.discover(world) == ["/in/a.txt"]
        disk.put("/in/b.txt", b"")
        assert await source.discover(world) == ["/in/a.txt", "/in/b.txt"]
        await source.verify(world, ["/in/gone.txt"], ["/in/a.txt"])

    asyncio.run(story())


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (lambda disk: disk.take("/a.txt"), "is gone"),
        (lambda disk: disk.put("/a.txt", b"x\n"), "is 2 bytes long, and was read to byte 8"),
        (lambda disk: disk.put("/a.txt", b"another and longer one\n"), "was replaced by another file"),
    ],
)
@pytest.mark.parametrize("on_changed", ["fail", "skip"])
def test_a_followed_file_that_is_taken_away_is_never_waited_for_in_silence(
    change: Any, why: str, on_changed: Any
) -> None:
    async def story() -> None:
        disk = MemoryDisk()
        disk.put("/a.txt", b"one\ntwo\n")
        world = world_of(disk)
        source = files.lines("/a.txt", follow=True, on_changed=on_changed)
        async with following(source, world, "/a.txt") as reading:
            await anext(reading)
            change(disk)
            if on_changed == "fail":
                with pytest.raises(RestoreFailed, match=rf"/a\.txt {why}"):
                    await anext(reading)
            else:
                assert await anext(reading, None) is None
                [entry] = cast("TestObserver", world.observer).named("FellBack")
                assert why in entry.why

    asyncio.run(story())


def test_a_followed_file_is_asked_about_only_as_often_as_said() -> None:
    async def story() -> None:
        disk = MemoryDisk()
        disk.put("/a.txt", b"one\n")
        world = world_of(disk)
        sizes: list[int] = []
        disk.refuse = noting("size", sizes, lambda path: world.clock.now_ms())
        source = files.lines("/a.txt", follow=True, poll_every=timedelta(seconds=2))
        async with following(source, world, "/a.txt") as reading:
            await anext(reading)
            waiting = asyncio.ensure_future(anext(reading))
            while world.clock.now_ms() < 9_000:
                await asyncio.sleep(0)
            disk.append("/a.txt", b"two\n")
            await waiting
        assert sizes == [2_000, 4_000, 6_000, 8_000, 10_000, 12_000][: len(sizes)]
        assert disk.reads == 3  # once to its end, and once when it had grown

    asyncio.run(story())


# ── pace ─────────────────────────────────────────────────────────────────────────────────────


def test_a_pace_holds_over_many_files_and_never_runs_ahead() -> None:
    async def story() -> None:
        disk = MemoryDisk()
        for name in "abcdefgh":
            disk.put(f"/in/{name}.txt", b"x\n" * 25)
        world = world_of(disk)
        source = files.lines("/in", per_second=40)
        count = 0
        for split in await source.discover(world):
            async for chunk in source.read(source_context(world, split)):
                count += len(chunk.records)
                assert count <= world.clock.now_ms() * 40 / 1_000 + 1
        assert count == 200
        assert world.clock.now_ms() == 5_000

    asyncio.run(story())


def test_subtasks_share_the_pace() -> None:
    async def story() -> None:
        disk = MemoryDisk()
        disk.put("/in/a.txt", b"x\n" * 100)
        world = world_of(disk)
        source = files.lines("/in", per_second=40)
        async for _ in source.read(source_context(world, "/in/a.txt", parallelism=4)):
            pass
        assert world.clock.now_ms() == 10_000

    asyncio.run(story())


def test_paced_positions_fall_on_lines() -> None:
    disk = MemoryDisk()
    disk.put("/a.txt", b"1\r\n\r\n333\n4\r\n5")
    chunks = chunks_of(disk, "/a.txt", per_second=1)

    assert [chunk.records for chunk in chunks] == [["1"], [""], ["333"], ["4"], ["5"]]
    assert [chunk.resume_at["at"] for chunk in chunks] == [3, 5, 9, 12, 13]


# ── letting go ───────────────────────────────────────────────────────────────────────────────


def test_the_file_is_closed_however_reading_ends() -> None:
    async def story() -> None:
        disk = MemoryDisk()
        disk.put("/a.txt", b"x\n" * 100)
        disk.put("/bad.txt", b"x\n\xff\n")
        opened: list[Any] = []
        original = disk.open_reader

        async def open_reader(path: str) -> Any:
            reader = await original(path)
            opened.append(reader)
            return reader

        disk.open_reader = open_reader  # type: ignore[method-assign]
        world = world_of(disk)
        await drain(files.lines("/a.txt"), world, "/a.txt")
        async with following(files.lines("/a.txt", follow=True), world, "/a.txt") as reading:
            await anext(reading)
        with pytest.raises(InvalidValue):
            await drain(files.lines("/bad.txt"), world, "/bad.txt")
        disk.put("/short.gz", b"")
        async with following(files.lines("/short.gz", follow=True), world, "/short.gz") as reading:
            waiting = asyncio.ensure_future(anext(reading))
            for _ in range(20):
                await asyncio.sleep(0)
            waiting.cancel()
            with pytest.raises(asyncio.CancelledError):
                await waiting
        assert len(opened) >= 4
        assert all(reader.is_closed for reader in opened)

    asyncio.run(story())
