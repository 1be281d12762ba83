from __future__ import annotations

import asyncio
import gzip
import zlib

import pytest

from actorflow.connectors.byte_stream import BLOCK_BYTES, ByteStream, open_stream
from actorflow.errors import CorruptObject, ObjectMissing
from actorflow_tests.connectors.support import MemoryDisk


async def everything(disk: MemoryDisk, path: str, *, skip: int = 0) -> bytes:
    stream = await open_stream(disk, path, may_grow=False)
    assert stream is not None
    try:
        if skip:
            assert await stream.skip(skip)
        pieces = []
        while piece := await stream.read():
            pieces.append(piece)
        stream.check_end()
        return b"".join(pieces)
    finally:
        await stream.close()


def read(data: bytes, *, name: str = "/a.txt", skip: int = 0) -> bytes:
    disk = MemoryDisk()
    disk.put(name, data)
    return asyncio.run(everything(disk, name, skip=skip))


TEXT = b"".join(b"%d," % number for number in range(60_000))


@pytest.mark.parametrize("skip", [0, 1, BLOCK_BYTES - 1, BLOCK_BYTES, BLOCK_BYTES + 1, len(TEXT)])
def test_plain_and_compressed_text_are_the_same_from_anywhere(skip: int) -> None:
    halves = gzip.compress(TEXT[:100_000], mtime=0) + gzip.compress(TEXT[100_000:], mtime=0)

    assert read(TEXT, skip=skip) == TEXT[skip:]
    assert read(halves, name="/a.txt.gz", skip=skip) == TEXT[skip:]


def test_compressed_text_is_known_by_what_it_is_and_not_by_its_name() -> None:
    assert read(gzip.compress(TEXT, mtime=0), name="/a.txt") == TEXT


def test_what_compresses_extremely_well_comes_in_blocks() -> None:
    async def story() -> None:
        disk = MemoryDisk()
        disk.put("/a.gz", gzip.compress(b"0" * 5_000_000, mtime=0))
        stream = await open_stream(disk, "/a.gz", may_grow=False)
        assert stream is not None
        total = 0
        while piece := await stream.read():
            assert len(piece) <= BLOCK_BYTES
            total += len(piece)
        stream.check_end()
        assert total == 5_000_000

    asyncio.run(story())


def test_zero_bytes_may_stand_between_and_after_members() -> None:
    member = gzip.compress(b"text\n", mtime=0)
    assert read(member + bytes(7) + member + bytes(300_000), name="/a.gz") == b"text\ntext\n"


def test_an_empty_member_is_no_text() -> None:
    assert read(gzip.compress(b"", mtime=0) + gzip.compress(b"x", mtime=0), name="/a.gz") == b"x"


@pytest.mark.parametrize("name", ["/a.gz", "/a.txt"])
def test_an_empty_file_is_an_empty_text(name: str) -> None:
    assert read(b"", name=name) == b""


def test_a_control_character_alone_is_text() -> None:
    assert read(b"\x1f") == b"\x1f"


@pytest.mark.parametrize("data", [b"plain text\n", b"\x1f", b"\x1fx"])
def test_a_name_that_promises_gzip_is_held_to_it(data: bytes) -> None:
    with pytest.raises(CorruptObject, match=r"/a\.gz: its name ends in \.gz"):
        read(data, name="/a.gz")


def test_compressed_text_that_ends_in_the_middle_is_an_error() -> None:
    whole = gzip.compress(TEXT, mtime=0)
    for length in (2, 11, len(whole) // 2, len(whole) - 8, len(whole) - 1):
        with pytest.raises(CorruptObject, match=r"/a\.gz: its gzip data ends in the middle"):
            read(whole[:length], name="/a.gz")


def test_damaged_compressed_text_is_an_error() -> None:
    whole = bytearray(gzip.compress(TEXT, mtime=0))
    whole[len(whole) // 2] ^= 0xFF
    with pytest.raises(CorruptObject, match=r"/a\.gz: its gzip data is damaged"):
        read(bytes(whole), name="/a.gz")
    with pytest.raises(CorruptObject, match="damaged"):
        read(gzip.compress(b"a", mtime=0) + b"and then something else", name="/a.gz")


def test_skipping_beyond_the_end_is_noticed() -> None:
    async def story(data: bytes) -> None:
        disk = MemoryDisk()
        disk.put("/a", data)
        stream = await open_stream(disk, "/a", may_grow=False)
        assert stream is not None
        assert not await stream.skip(6)

    asyncio.run(story(b"12345"))
    asyncio.run(story(gzip.compress(b"12345", mtime=0)))


@pytest.mark.parametrize("name", ["/a.gz", "/a.txt"])
def test_text_that_grows_is_read_on(name: str) -> None:
    """A compressed file is appended to in members, and may be seen in the middle of one."""

    async def story() -> None:
        disk = MemoryDisk()
        is_gzip = name.endswith(".gz")
        whole = gzip.compress(b"one\n", mtime=0) + gzip.compress(b"two\n", mtime=0) if is_gzip else b"one\ntwo\n"
        disk.put(name, b"")
        stream: ByteStream | None = None
        seen = b""
        for index in range(len(whole)):
            disk.append(name, whole[index : index + 1])
            if stream is None:
                stream = await open_stream(disk, name, may_grow=True)
            if stream is not None:
                while piece := await stream.read():
                    seen += piece
        assert stream is not None
        stream.check_end()
        assert stream.file_position == len(whole)
        assert seen == b"one\ntwo\n"

    asyncio.run(story())


def test_a_file_too_short_to_say_is_asked_again_later() -> None:
    async def story() -> None:
        disk = MemoryDisk()
        for data, name, waits in [
            (b"", "/a.gz", True),
            (b"\x1f", "/b.gz", True),
            (b"\x1f", "/b.txt", True),
            (b"", "/a.txt", False),
            (b"x", "/c.txt", False),
        ]:
            disk.put(name, data)
            assert (await open_stream(disk, name, may_grow=True) is None) == waits
        disk.put("/c.gz", b"x")
        with pytest.raises(CorruptObject):
            await open_stream(disk, "/c.gz", may_grow=True)

    asyncio.run(story())


def test_a_missing_file_is_named() -> None:
    with pytest.raises(ObjectMissing, match="/nowhere"):
        asyncio.run(open_stream(MemoryDisk(), "/nowhere", may_grow=False))


def test_our_reading_agrees_with_the_library() -> None:
    data = zlib.compressobj(9, zlib.DEFLATED, 31)
    assert read(data.compress(TEXT) + data.flush(), name="/x.gz") == TEXT
