"""Pieces are read back as they were written, or the object that was not is named."""

from __future__ import annotations

import zlib
from collections.abc import Callable

import pytest

from actorflow.errors import RestoreFailed, StorageFailed
from actorflow.model.handles import InlineHandle, ObjectHandle, Scope
from actorflow.model.paths import Home
from actorflow.runtime.snapshot_reader import SnapshotReader
from actorflow.simulation.world import Universe
from actorflow.storage.memory import MemoryStore
from actorflow_tests.runtime.support import play

HOME = Home("job")


@pytest.mark.parametrize(
    ("damage", "words"),
    [
        (lambda data: data[:-1], "count-0-3"),
        (lambda data: bytes([data[0] ^ 1]) + data[1:], "fail their checksum"),
        (lambda data: data[:100] + bytes([data[100] ^ 128]) + data[101:], "fail their checksum"),
        (lambda data: b"", "count-0-3"),
    ],
)
def test_r021_a_damaged_piece_is_named(damage: Callable[[bytes], bytes], words: str) -> None:
    async def story(universe: Universe) -> None:
        store = MemoryStore()
        data = bytes(range(256)) * 10
        await store.put("job/chk-7/count-0-3", damage(data))
        reader = SnapshotReader(store, HOME, 7, universe.world("reader"))
        handle = ObjectHandle(Scope.PRIVATE, "count-0-3", 0, len(data), zlib.crc32(data))
        with pytest.raises(StorageFailed, match=words):
            await reader.whole(handle)

    play(story)


def test_pieces_are_read_one_after_the_other_and_only_the_part_that_is_meant() -> None:
    async def story(universe: Universe) -> None:
        store = MemoryStore()
        data = bytes(3 << 20)
        await store.put("job/chk-7/x", b"before" + data + b"after")
        reader = SnapshotReader(store, HOME, 7, universe.world("reader"))
        pieces = [
            piece async for piece in reader.pieces(ObjectHandle(Scope.PRIVATE, "x", 6, len(data), zlib.crc32(data)))
        ]
        assert [len(piece) for piece in pieces] == [1 << 20] * 3
        assert b"".join(pieces) == data
        inline = InlineHandle(b"abc")
        assert await reader.whole(inline) == b"abc"
        assert reader.name_of(inline) == "the manifest"

    play(story)


@pytest.mark.parametrize("path", ["/", "", "/nowhere", "/nowhere/chk-1", "/nowhere/chk-1/_metadata", "chk-1"])
def test_a_path_that_leads_to_no_snapshot_is_refused(path: str) -> None:
    async def story(universe: Universe) -> None:
        with pytest.raises(RestoreFailed, match=r"no snapshot|not the path"):
            await SnapshotReader.open(path, universe.world("p"))

    play(story)
