"""What must every object store and every disk do?  One body for each seam, for ours and for yours.

Both functions raise ``AssertionError`` at the first promise that is not kept.  They use nothing but the seam, so they
run against a real folder on a real loop and against a simulated one alike; what the simulator proves holds outside
because both pass.

    asyncio.run(check_object_store(lambda: FileStore(str(tmp_path / "store"), LocalDisk())))
    asyncio.run(check_disk(LocalDisk, str(tmp_path)))

What a power cut leaves can't be checked on a real machine, so it is not part of this.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

from actorflow.abc.disk import Disk, FileWriter
from actorflow.abc.objects import ObjectStore
from actorflow.errors import CorruptObject, ObjectMissing, StorageFailed

__all__ = ("check_disk", "check_object_store")

_BIG = 3 * (1 << 20) + 17
"""More than one piece, and not a round number of them."""

_ODD_NAMES = ("a b", "ü–漢字", "%41%2F", "a:b*c?", "trailing.", "-dash", "new\nline", "x" * 200, "quote'\"", "{a,b}")
_REFUSED_NAMES = ("", "/a", "a/", "a//b", "..", "a/../b", ".", "./a", ".hidden", "a/.b", "a\\b", "a\0b", "a\ud800")

_OFFSETS = 40
"""At how many moments of an operation it is cancelled."""


async def check_object_store(make: Callable[[], ObjectStore]) -> None:
    """Check a store.  ``make`` opens one more connection to the same place each time; it must be empty at first."""
    store, other = make(), make()
    assert await store.list() == []
    for check in (
        _what_is_put_comes_back,
        _parts_come_back,
        _bodies_may_come_in_pieces,
        _one_of_many_creators_wins,
        _lists_are_sorted_and_complete,
        _deleting_is_final_and_may_repeat,
        _odd_names_are_names,
        _a_body_that_fails_publishes_nothing,
        _cancellation_leaves_all_or_nothing,
        _readers_see_whole_objects_only,
        _deleting_does_not_disturb_writing,
        _sweeping_takes_nothing_published,
    ):
        await check(store, other, f"{check.__name__.strip('_')}/")
    for name in await store.list():
        await store.delete(name)
    assert await other.list() == []
    await store.close()
    await other.close()


async def _what_is_put_comes_back(store: ObjectStore, other: ObjectStore, at: str) -> None:
    big = bytes(range(256)) * (_BIG // 256) + b"end"
    for name, body in (
        (f"{at}empty", b""),
        (f"{at}small", b"abc"),
        (f"{at}deep/er/still", b"\0\xff"),
        (f"{at}big", big),
    ):
        assert await store.put(name, body) == len(body)
        assert await other.get(name) == body
    assert await other.put(f"{at}small", b"replaced") == 8
    assert await store.get(f"{at}small") == b"replaced"
    await _raises(ObjectMissing, store.get(f"{at}absent"))
    await _raises(ObjectMissing, store.get(f"{at}deep"))


async def _parts_come_back(store: ObjectStore, other: ObjectStore, at: str) -> None:
    await store.put(f"{at}digits", b"0123456789")
    for start, length, part in ((0, 3, b"012"), (4, 6, b"456789"), (7, None, b"789"), (10, None, b""), (3, 0, b"")):
        assert await other.get(f"{at}digits", start=start, length=length) == part
    await _raises(CorruptObject, store.get(f"{at}digits", start=8, length=3))
    await _raises(CorruptObject, store.get(f"{at}digits", start=11))
    await _raises(CorruptObject, store.get(f"{at}digits", start=11, length=1))
    await _raises(ObjectMissing, store.get(f"{at}absent", start=1, length=1))


async def _bodies_may_come_in_pieces(store: ObjectStore, other: ObjectStore, at: str) -> None:
    pieces = [b"", b"one", b"x" * _BIG, b"", b"two"]
    assert await store.put(f"{at}pieces", _in_pieces(pieces)) == _BIG + 6
    assert await other.get(f"{at}pieces") == b"".join(pieces)
    assert await store.put(f"{at}none", _in_pieces([])) == 0
    assert await other.get(f"{at}none") == b""


async def _one_of_many_creators_wins(store: ObjectStore, other: ObjectStore, at: str) -> None:
    for turn in range(5):
        name = f"{at}{turn}"
        bodies = [b"%d" % number * 100 for number in range(8)]
        won = await asyncio.gather(
            *((store, other)[number % 2].put_if_absent(name, body) for number, body in enumerate(bodies))
        )
        assert won.count(True) == 1, f"{won.count(True)} of 8 created {name!r}"
        assert await store.get(name) == bodies[won.index(True)]
        assert not await other.put_if_absent(name, b"late")
        assert await other.get(name) == bodies[won.index(True)]
    await store.put(f"{at}put", b"by put")
    assert not await other.put_if_absent(f"{at}put", b"late")


async def _lists_are_sorted_and_complete(store: ObjectStore, other: ObjectStore, at: str) -> None:
    names = [f"{at}chk-{number}/_metadata" for number in (10, 1, 2)] + [
        f"{at}chk",
        f"{at}owner/01",
        f"{at}z-1",
        f"{at}a",
    ]
    for name in names:
        await store.put_if_absent(name, b"x")
        assert name in await other.list(at)
    assert await other.list(at) == sorted(names)
    assert set(names) <= set(await other.list())
    assert await other.list(f"{at}chk-1") == [f"{at}chk-1/_metadata", f"{at}chk-10/_metadata"]
    assert await other.list(f"{at}chk-1/") == [f"{at}chk-1/_metadata"]
    assert await other.list(f"{at}absent/") == []
    begun, go_on = asyncio.Event(), asyncio.Event()

    async def slow() -> AsyncIterator[bytes]:
        yield b"half"
        begun.set()
        await go_on.wait()
        yield b"whole"

    writing = asyncio.create_task(store.put(f"{at}slow", slow()))
    await begun.wait()
    assert await other.list(at) == sorted(names), "something that is not whole yet is listed"
    await _raises(ObjectMissing, other.get(f"{at}slow"))
    go_on.set()
    await writing
    assert await other.list(at) == sorted([*names, f"{at}slow"])


async def _deleting_is_final_and_may_repeat(store: ObjectStore, other: ObjectStore, at: str) -> None:
    await store.put(f"{at}a/b/c", b"1")
    await store.put(f"{at}a/d", b"2")
    await other.delete(f"{at}a/b/c")
    await store.delete(f"{at}a/b/c")
    await store.delete(f"{at}never/was")
    assert await store.list(at) == [f"{at}a/d"]
    await _raises(ObjectMissing, store.get(f"{at}a/b/c"))
    assert await store.put_if_absent(f"{at}a/b/c", b"3")
    assert await other.get(f"{at}a/b/c") == b"3"


async def _odd_names_are_names(store: ObjectStore, other: ObjectStore, at: str) -> None:
    names = [at + name for name in _ODD_NAMES]
    for name in names:
        assert await store.put_if_absent(name, name.encode())
    assert await other.list(at) == sorted(names)
    for name in names:
        assert await other.get(name) == name.encode()
    for name in _REFUSED_NAMES:
        await _raises(StorageFailed, store.put(name, b""))
        await _raises(StorageFailed, store.put_if_absent(name, b""))
        await _raises(StorageFailed, store.get(name))
        await _raises(StorageFailed, store.delete(name))
        if name and not name.endswith("/"):
            await _raises(StorageFailed, store.list(name))
    assert await other.list(at) == sorted(names)


async def _a_body_that_fails_publishes_nothing(store: ObjectStore, other: ObjectStore, at: str) -> None:
    async def failing() -> AsyncIterator[bytes]:
        yield b"first"
        yield b"second"
        raise ZeroDivisionError

    await _raises(ZeroDivisionError, store.put(f"{at}new", failing()))
    await _raises(ObjectMissing, other.get(f"{at}new"))
    await store.put(f"{at}old", b"old")
    await _raises(ZeroDivisionError, store.put(f"{at}old", failing()))
    assert await other.get(f"{at}old") == b"old"
    assert await other.list(at) == [f"{at}old"]


async def _cancellation_leaves_all_or_nothing(store: ObjectStore, other: ObjectStore, at: str) -> None:
    old, new = b"old" * 50_000, b"new!" * 50_000
    for offset in range(_OFFSETS):
        await store.put(f"{at}replaced", old)
        await _cancelled_at(offset, store.put(f"{at}replaced", new))
        assert await other.get(f"{at}replaced") in (old, new), f"cancelled at {offset}: a part is visible"
        await _cancelled_at(offset, store.put(f"{at}pieces", _in_pieces([new, old])))
        await _cancelled_at(offset, store.put_if_absent(f"{at}created-{offset}", new))
        for name in (f"{at}pieces", f"{at}created-{offset}"):
            try:
                assert await other.get(name) in (new, new + old), f"{name}, cancelled at {offset}: a part is visible"
            except ObjectMissing:
                continue
    await store.put(f"{at}replaced", old)
    assert await other.get(f"{at}replaced") == old, "something cancelled long ago took effect late"


async def _readers_see_whole_objects_only(store: ObjectStore, other: ObjectStore, at: str) -> None:
    name, done = f"{at}changing", asyncio.Event()
    await store.put(name, b"a" * 1_000)

    async def write() -> None:
        for letter in b"bcdefghij":
            await store.put(name, bytes([letter]) * (1_000 + 300_000 * (letter % 2)))
        done.set()

    async def read() -> None:
        while not done.is_set():
            seen = await other.get(name)
            assert len(seen) in (1_000, 301_000), f"a reader saw {len(seen)} bytes"
            assert seen == seen[:1] * len(seen), "a reader saw two versions at once"

    await asyncio.gather(write(), read(), read())


async def _deleting_does_not_disturb_writing(store: ObjectStore, other: ObjectStore, at: str) -> None:
    for turn in range(10):
        first, second = f"{at}{turn}/shared/first", f"{at}{turn}/shared/second"
        await store.put(first, b"1")
        await asyncio.gather(other.delete(first), store.put_if_absent(second, b"2"))
        assert await other.get(second) == b"2"


async def _sweeping_takes_nothing_published(store: ObjectStore, other: ObjectStore, at: str) -> None:
    await store.put(f"{at}kept", b"1")
    assert await other.sweep(at) >= 0
    assert await other.sweep(at) == 0
    assert await store.get(f"{at}kept") == b"1"


async def check_disk(make: Callable[[], Disk], root: str) -> None:
    """Check a disk.  ``make`` gives one more view of the same disk each time; ``root`` is an empty folder on it."""
    disk, other = make(), make()
    assert await disk.list_tree(root) == []
    for check in (
        _bytes_come_back,
        _names_are_taken_once,
        _renames_replace,
        _folders_come_and_go,
        _open_files_outlive_their_names,
        _what_is_absent_is_missing,
        _odd_file_names_are_names,
        _a_file_that_was_not_written_whole_is_worthless,
    ):
        folder = f"{root}/{check.__name__.strip('_')}"
        await disk.make_folder(folder)
        await check(disk, other, folder)
    assert (await disk.resolve(f"{root}/a/../b")).endswith("/b")
    assert (await disk.resolve(root)).startswith("/")


async def _write(disk: Disk, path: str, data: bytes) -> None:
    file = await disk.create(path)
    try:
        await file.write(data)
        await file.sync()
    finally:
        await file.close()


async def _bytes_come_back(disk: Disk, other: Disk, at: str) -> None:
    data = bytes(range(256)) * (_BIG // 256)
    file = await disk.create(f"{at}/file")
    for piece in (data[:10], b"", data[10:]):
        await file.write(piece)
    await file.sync()
    await file.close()
    await file.close()
    await _raises(StorageFailed, file.write(b"more"))
    assert await other.size(f"{at}/file") == len(data)
    assert await other.read_whole(f"{at}/file") == data
    reader = await other.open_reader(f"{at}/file")
    assert await reader.read(10) == data[:10]
    await reader.seek(len(data) - 5)
    assert await reader.read(100) == data[-5:]
    assert await reader.read(100) == b""
    await reader.seek(3)
    assert await reader.read(0) == b""
    assert await reader.read(2) == data[3:5]
    await reader.close()
    await reader.close()
    await _raises(StorageFailed, reader.read(1))


async def _names_are_taken_once(disk: Disk, other: Disk, at: str) -> None:
    await _write(disk, f"{at}/a", b"a")
    await _write(disk, f"{at}/b", b"b")
    await _raises(FileExistsError, other.create(f"{at}/a"))
    await _raises(FileExistsError, other.link(f"{at}/b", f"{at}/a"))
    assert await disk.read_whole(f"{at}/a") == b"a"
    await disk.link(f"{at}/a", f"{at}/c")
    await disk.remove(f"{at}/a")
    assert await other.read_whole(f"{at}/c") == b"a"
    assert await other.list_folder(at) == ["b", "c"]
    taken = await asyncio.gather(*((disk, other)[n % 2].create(f"{at}/race") for n in range(6)), return_exceptions=True)
    created = [file for file in taken if isinstance(file, FileWriter)]
    assert len(created) == 1, f"{len(created)} of 6 created one name"
    assert all(isinstance(answer, (FileWriter, FileExistsError)) for answer in taken)
    await created[0].close()


async def _renames_replace(disk: Disk, other: Disk, at: str) -> None:
    await disk.make_folder(f"{at}/folder")
    await _write(disk, f"{at}/new", b"new")
    await _write(disk, f"{at}/folder/old", b"old")
    await disk.rename(f"{at}/new", f"{at}/folder/old")
    await disk.sync_folder(f"{at}/folder")
    assert await other.read_whole(f"{at}/folder/old") == b"new"
    assert await other.size(f"{at}/new") is None
    await disk.rename(f"{at}/folder/old", f"{at}/folder/old")
    assert await other.list_tree(at) == ["folder/old"]


async def _folders_come_and_go(disk: Disk, other: Disk, at: str) -> None:
    await disk.make_folder(f"{at}/x/y/z")
    await disk.make_folder(f"{at}/x/y/z")
    await _write(disk, f"{at}/x/y/z/file", b"1")
    await _write(disk, f"{at}/x/first", b"2")
    assert await other.list_folder(f"{at}/x") == ["first"]
    assert await other.list_tree(f"{at}/x") == ["first", "y/z/file"]
    assert await other.size(f"{at}/x") is None
    await disk.remove_folder(f"{at}/x/y/z")
    assert await other.read_whole(f"{at}/x/y/z/file") == b"1"
    await disk.remove_folder(f"{at}/x/y")
    await disk.remove(f"{at}/x/y/z/file")
    await disk.remove_folder(f"{at}/x/y/z")
    await disk.remove_folder(f"{at}/x/y/z")
    await disk.remove_folder(f"{at}/x/y")
    assert await other.list_tree(f"{at}/x") == ["first"]
    await _raises(ObjectMissing, disk.create(f"{at}/x/y/z/file"))
    await disk.make_folder(f"{at}/x/y")
    await _write(disk, f"{at}/x/y/again", b"3")
    assert await other.list_tree(f"{at}/x") == ["first", "y/again"]
    await _raises(StorageFailed, disk.make_folder(f"{at}/x/first"))
    await _raises(StorageFailed, disk.make_folder(f"{at}/x/first/beneath"))
    await asyncio.gather(*((disk, other)[n % 2].make_folder(f"{at}/r/a/c/e") for n in range(6)))
    assert await other.list_folder(f"{at}/r/a/c/e") == []


async def _open_files_outlive_their_names(disk: Disk, other: Disk, at: str) -> None:
    await _write(disk, f"{at}/file", b"still here")
    reader = await disk.open_reader(f"{at}/file")
    await other.remove(f"{at}/file")
    await _write(other, f"{at}/file", b"another")
    assert await reader.read(100) == b"still here"
    await reader.close()


async def _what_is_absent_is_missing(disk: Disk, other: Disk, at: str) -> None:
    await _raises(ObjectMissing, disk.open_reader(f"{at}/no"))
    await _raises(ObjectMissing, disk.read_whole(f"{at}/no"))
    await _raises(ObjectMissing, disk.open_reader(at))
    await _raises(ObjectMissing, disk.create(f"{at}/no/file"))
    await _raises(ObjectMissing, disk.rename(f"{at}/no", f"{at}/other"))
    await _raises(ObjectMissing, disk.link(f"{at}/no", f"{at}/other"))
    await _raises(ObjectMissing, other.sync_folder(f"{at}/no"))
    await disk.remove(f"{at}/no")
    await disk.remove_folder(f"{at}/no")
    assert await disk.list_folder(f"{at}/no") == []
    assert await disk.list_tree(f"{at}/no") == []
    assert await disk.size(f"{at}/no") is None


async def _odd_file_names_are_names(disk: Disk, other: Disk, at: str) -> None:
    for name in _ODD_NAMES:
        await _write(disk, f"{at}/{name}", name.encode())
    assert await other.list_folder(at) == sorted(_ODD_NAMES)
    for name in _ODD_NAMES:
        assert await other.read_whole(f"{at}/{name}") == name.encode()


async def _a_file_that_was_not_written_whole_is_worthless(disk: Disk, other: Disk, at: str) -> None:
    for offset in range(1, 10):
        file = await disk.create(f"{at}/{offset}")
        begun: list[bool] = []

        async def write(file: FileWriter = file, begun: list[bool] = begun) -> None:
            begun.append(True)
            await file.write(b"x" * _BIG)

        try:
            cancelled = await _cancelled_at(offset, write())
            if not begun:
                continue
            if cancelled:
                await _raises(StorageFailed, file.sync())
                await _raises(StorageFailed, file.write(b"more"))
            else:
                await file.sync()
                assert await other.size(f"{at}/{offset}") == _BIG
        finally:
            await file.close()


async def _in_pieces(pieces: list[bytes]) -> AsyncIterator[bytes]:
    for piece in pieces:
        await asyncio.sleep(0)
        yield piece


async def _cancelled_at(offset: int, call: Awaitable[Any]) -> bool:
    """Start a call, cancel it after so many rounds of the loop, and return whether that came in time."""
    running = asyncio.ensure_future(call)
    for _ in range(offset):
        await asyncio.sleep(0)
    running.cancel()
    await asyncio.wait([running])
    if not running.cancelled():
        running.result()
    return running.cancelled()


async def _raises(kind: type[BaseException], call: Awaitable[Any]) -> None:
    try:
        answer = await call
    except kind:
        return
    raise AssertionError(f"{kind.__name__} was not raised; the answer was {answer!r}")
