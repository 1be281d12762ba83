from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from actorflow.abc.world import World
from actorflow.errors import ObjectMissing, StorageFailed
from actorflow.simulation import run
from actorflow.simulation.weather import At, FailDisk, Kill, OnDisk, PowerCut
from actorflow.simulation.world import Universe
from actorflow.storage import FileStore
from actorflow.storage.disk import LocalDisk

SEEDS = range(40)


def hidden(universe: Universe) -> list[str]:
    return [path for path in universe.machine().platter.files() if path.endswith(".part")]


def test_inv_3_7_what_was_reported_as_published_survives_a_power_cut() -> None:
    async def main(seed: int) -> None:
        universe = Universe(seed)
        store = FileStore("/home", universe.world("p").disk)
        await store.put("chk-1/piece", b"piece")
        assert await store.put_if_absent("chk-1/_metadata", b"manifest")
        universe.power_cut()
        again = FileStore("/home", universe.world("p").disk)
        assert await again.list() == ["chk-1/_metadata", "chk-1/piece"]
        assert await again.get("chk-1/_metadata") == b"manifest"
        assert await again.get("chk-1/piece") == b"piece"

    for seed in SEEDS:
        run(main, seed, seed=seed)


@pytest.mark.parametrize("publisher", ["died", "was refused"])
def test_inv_3_7_what_was_seen_and_settled_survives_a_power_cut_though_its_publisher_did_not_see_to_it(
    publisher: str,
) -> None:
    async def main(seed: int) -> None:
        before = OnDisk("sync_folder", "/home/chk-1", "before")
        weather = Kill(before) if publisher == "died" else FailDisk(At(0), "sync_folder", "/home/chk-1")
        universe = Universe(seed, weather=[weather])

        async def body(world: World) -> None:
            with pytest.raises(StorageFailed):
                await FileStore("/home", world.disk).put_if_absent("chk-1/_metadata", b"manifest")

        process = await universe.start("p", body)
        await process.wait()
        store = FileStore("/home", universe.world("q").disk)
        assert await store.get("chk-1/_metadata") == b"manifest"
        await store.settle("chk-1/_metadata")
        universe.power_cut()
        again = FileStore("/home", universe.world("q").disk)
        assert await again.get("chk-1/_metadata") == b"manifest"

    for seed in SEEDS:
        run(main, seed, seed=seed)


@pytest.mark.parametrize("operation", ["put", "put_if_absent"])
def test_inv_3_7_a_power_cut_at_any_moment_leaves_an_object_whole_or_absent(operation: str) -> None:
    async def main(seed: int) -> str:
        universe = Universe(seed, weather=[PowerCut(OnDisk("*", "/home*", "during", occurrence=1 + seed))])

        async def body(world: World) -> None:
            store = FileStore("/home", world.disk)
            await getattr(store, operation)("chk-1/_metadata", b"manifest" * 100)
            await world.clock.sleep(60_000)

        process = await universe.start("p", body)
        await asyncio.sleep(1)
        process.kill()
        await process.wait()
        universe.calm()
        again = FileStore("/home", universe.world("p").disk)
        left = await again.list()
        assert left in ([], ["chk-1/_metadata"])
        if left:
            assert await again.get("chk-1/_metadata") == b"manifest" * 100
        await again.sweep()
        assert hidden(universe) == []
        return str(left)

    assert {run(main, seed % 20, seed=seed) for seed in range(80)} == {"[]", "['chk-1/_metadata']"}


def test_a_replaced_object_is_the_old_or_the_new_one_after_a_power_cut() -> None:
    async def main(seed: int) -> bytes:
        universe = Universe(seed, weather=[PowerCut(OnDisk("*", "/home/*", "during", occurrence=8 + seed % 20))])

        async def body(world: World) -> None:
            store = FileStore("/home", world.disk)
            await store.put("name", b"old" * 100)
            published.append(True)
            await store.put("name", b"new!" * 100)

        published: list[bool] = []
        process = await universe.start("p", body)
        await process.wait()
        universe.calm()
        again = FileStore("/home", universe.world("p").disk)
        try:
            left = await again.get("name")
        except ObjectMissing:
            assert not published
            return b""
        assert left in (b"old" * 100, b"new!" * 100)
        return left[:3]

    assert {run(main, seed, seed=seed) for seed in range(60)} >= {b"old", b"new"}


def test_one_of_several_processes_creates_though_all_of_them_die() -> None:
    async def main(seed: int) -> None:
        universe = Universe(seed, weather=[Kill(OnDisk("link", "*claim", "during", n)) for n in (1, 2)])
        won: list[str] = []

        async def body(world: World) -> None:
            if await FileStore("/home", world.disk).put_if_absent("claim", world.process.encode()):
                won.append(world.process)

        processes = [await universe.start(name, body) for name in "abcd"]
        for process in processes:
            await process.wait()
        assert len(won) <= 1
        store = FileStore("/home", universe.world("e").disk)
        owner = (await store.get("claim")).decode()
        assert won in ([], [owner])

    for seed in SEEDS:
        run(main, seed, seed=seed)


def test_a_sweep_takes_what_the_dead_left_and_nothing_of_the_living() -> None:
    async def main() -> None:
        universe = Universe(1, weather=[Kill(OnDisk("sync", "*.part", "before"), "dead")])

        async def body(world: World) -> None:
            await FileStore("/home", world.disk).put("job/chk-1/piece", b"x")

        dead = await universe.start("dead", body)
        await dead.wait()
        assert len(hidden(universe)) == 1
        old = FileStore("/home", universe.world("old").disk)
        await old.put("job/other", b"1")
        new = FileStore("/home", universe.world("new").disk)
        begun, go_on = asyncio.Event(), asyncio.Event()

        async def pieces() -> AsyncIterator[bytes]:
            yield b"a"
            begun.set()
            await go_on.wait()
            yield b"b"

        writing = asyncio.create_task(new.put("job/mine", pieces()))
        await begun.wait()
        assert await new.sweep("other/") == 0
        assert await old.sweep("job/") == 1  # the dead one's; a later writer is not touched
        assert await new.sweep("job/") == 0
        go_on.set()
        assert await writing == 2
        assert await new.list() == ["job/mine", "job/other"]
        assert hidden(universe) == []

    run(main)


def test_a_zombie_whose_file_was_swept_fails_and_publishes_nothing() -> None:
    async def main() -> None:
        universe = Universe(1)
        zombie = FileStore("/home", universe.world("zombie").disk)
        go_on, begun = asyncio.Event(), asyncio.Event()

        async def pieces() -> AsyncIterator[bytes]:
            yield b"half"
            begun.set()
            await go_on.wait()

        writing = asyncio.create_task(zombie.put("name", pieces()))
        await begun.wait()
        heir = FileStore("/home", universe.world("heir").disk)
        assert await heir.sweep() == 1
        go_on.set()
        with pytest.raises(StorageFailed):
            await writing
        assert await heir.list() == []

    run(main)


def test_no_two_writers_share_a_number() -> None:
    async def main(seed: int) -> None:
        universe = Universe(seed)
        stores = [FileStore("/home", universe.world(f"p{n}").disk) for n in range(6)]
        await asyncio.gather(*(store.put(f"{n}/{m}", b"") for n, store in enumerate(stores) for m in range(2)))
        late = [FileStore("/home", universe.world(f"late{n}").disk) for n in range(3)]
        await asyncio.gather(*(store.put("late", b"") for store in late))
        numbers = [store._writer for store in (*stores, *late)]
        assert len(set(numbers)) == 9, numbers
        assert min(n for n in numbers[6:] if n) > max(n for n in numbers[:6] if n)

    for seed in range(15):
        run(main, seed, seed=seed)


def test_what_a_cancelled_call_left_is_removed_by_the_next_one() -> None:
    async def main(seed: int) -> None:
        universe = Universe(seed)
        store = FileStore("/home", universe.world("p").disk)
        await store.put("first", b"x")
        writing = asyncio.create_task(store.put("second", b"y" * 100))
        await asyncio.sleep(seed / 5_000)
        writing.cancel()
        await asyncio.wait([writing])
        await asyncio.sleep(0.1)
        await store.put("third", b"z")
        await store.close()
        assert hidden(universe) == []

    for seed in range(30):
        run(main, seed, seed=seed)


def test_a_temporary_file_that_can_not_be_removed_fails_nothing() -> None:
    async def main() -> None:
        universe = Universe(1, weather=[FailDisk(At(0), "remove", "*.part", count=1)])
        store = FileStore("/home", universe.world("p").disk)
        await asyncio.sleep(0.001)
        assert await store.put_if_absent("a", b"1")
        assert len(hidden(universe)) == 1
        await store.put("b", b"2")
        assert hidden(universe) == []

    run(main)


def test_nothing_outside_is_touched_through_a_symbolic_link(tmp_path: Path) -> None:
    root, outside = tmp_path / "root", tmp_path / "outside"
    root.mkdir()
    outside.mkdir()
    (outside / "secret").write_bytes(b"secret")
    (root / "out").symlink_to(outside)
    (root / "file").symlink_to(outside / "secret")
    (root / "inside").mkdir()
    (root / "alias").symlink_to(root / "inside")

    async def main() -> None:
        store = FileStore(str(root), LocalDisk())
        for call in (
            store.get("out/secret"),
            store.get("file"),
            store.put("out/new", b"x"),
            store.put("out/deep/new", b"x"),
            store.put_if_absent("out/new", b"x"),
            store.delete("out/secret"),
            store.list("out/"),
            store.sweep("out/"),
        ):
            with pytest.raises(StorageFailed, match="leads out"):
                await call
        assert not await store.put_if_absent("file", b"x")
        await store.put("file", b"replaces the link")
        await store.put("alias/within", b"1")
        assert await store.get("inside/within") == b"1"

    asyncio.run(main())
    assert (outside / "secret").read_bytes() == b"secret"
    assert sorted(path.name for path in outside.iterdir()) == ["secret"]
    assert (root / "file").read_bytes() == b"replaces the link"


def test_a_root_that_is_itself_a_link_is_fine(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")

    async def main() -> None:
        store = FileStore(str(tmp_path / "link"), LocalDisk())
        await store.put("a/b", b"1")
        assert await store.get("a/b") == b"1"

    asyncio.run(main())
    assert (tmp_path / "real" / "a" / "b").read_bytes() == b"1"


def test_deleting_the_last_object_removes_its_folders(tmp_path: Path) -> None:
    async def main() -> None:
        store = FileStore(str(tmp_path), LocalDisk())
        await store.put("a/b/c", b"1")
        await store.put("a/d", b"1")
        await store.delete("a/b/c")
        assert not (tmp_path / "a" / "b").exists()
        await store.delete("a/d")
        assert not (tmp_path / "a").exists()
        assert tmp_path.exists()

    asyncio.run(main())


def test_reading_claims_nothing(tmp_path: Path) -> None:
    async def main() -> None:
        store = FileStore(str(tmp_path / "home"), LocalDisk())
        assert await store.list() == []
        with pytest.raises(ObjectMissing, match="chk-1/_metadata"):
            await store.get("chk-1/_metadata")

    asyncio.run(main())
    assert not (tmp_path / "home").exists()


def test_r122_a_piece_that_failed_is_not_forgotten() -> None:
    """The second piece fails for good; the object must not be published without it."""

    async def main() -> None:
        universe = Universe(1, weather=[FailDisk(OnDisk("write", "*.part", occurrence=1), "write", "*.part")])
        store = FileStore("/home", universe.world("p").disk)

        async def pieces() -> AsyncIterator[bytes]:
            for piece in (b"1", b"2", b"3"):
                try:
                    yield piece
                except StorageFailed:  # a body can't swallow it either
                    continue

        with pytest.raises(StorageFailed):
            await store.put("a", pieces())
        assert await store.list() == []

    run(main)
