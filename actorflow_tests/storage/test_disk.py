from __future__ import annotations

import asyncio
import gc
import os
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from actorflow.abc.disk import Disk
from actorflow.errors import ObjectMissing, StorageFailed
from actorflow.storage.disk import LocalDisk


def failure_of(call: Callable[[Disk], Awaitable[object]]) -> str:
    async def main() -> str:
        with pytest.raises(StorageFailed) as caught:
            await call(LocalDisk())
        return str(caught.value)

    return asyncio.run(main())


def test_errors_name_the_path_and_the_next_step(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    (tmp_path / "folder").mkdir()
    long = tmp_path / ("x" * 300)
    assert str(tmp_path / "no") in failure_of(lambda disk: disk.read_whole(str(tmp_path / "no")))
    assert "shorter names" in failure_of(lambda disk: disk.create(str(long)))
    assert "a folder is needed there" in failure_of(lambda disk: disk.make_folder(str(tmp_path / "file")))
    assert f"{tmp_path / 'file'}: it is a file" in failure_of(
        lambda disk: disk.make_folder(str(tmp_path / "file" / "beneath"))
    )
    assert "is a file" in failure_of(lambda disk: disk.create(str(tmp_path / "file" / "beneath")))
    assert str(tmp_path / "folder") in failure_of(lambda disk: disk.remove(str(tmp_path / "folder")))
    assert "null byte" in failure_of(lambda disk: disk.read_whole("a\0b"))


@pytest.mark.skipif(os.geteuid() == 0, reason="root may do everything")
def test_missing_permission_is_told(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    assert "permissions" in failure_of(lambda disk: disk.create(str(tmp_path / "file")))
    tmp_path.chmod(0o700)


def test_a_full_disk_is_told_and_makes_the_file_worthless() -> None:
    if not Path("/dev/full").exists():
        pytest.skip("no device that is always full")

    async def main() -> None:
        from actorflow.storage.disk import _File, _LocalWriter

        writer = _LocalWriter("/dev/full", _File("/dev/full", "wb"))
        with pytest.raises(StorageFailed, match="free some space"):
            await writer.write(b"x")
        with pytest.raises(StorageFailed, match="earlier write"):
            await writer.sync()
        await writer.close()

    asyncio.run(main())


def test_a_folder_is_no_file(tmp_path: Path) -> None:
    async def main() -> None:
        with pytest.raises(ObjectMissing, match="it is a folder"):
            await LocalDisk().open_reader(str(tmp_path))

    asyncio.run(main())


def open_files() -> int:
    folder = Path("/proc/self/fd")
    return len(list(folder.iterdir())) if folder.exists() else 0


def test_an_opening_that_nobody_waits_for_leaves_no_file_open(tmp_path: Path) -> None:
    """An open file that is lost would warn, and warnings are errors here."""

    async def main() -> None:
        disk = LocalDisk()
        for rounds in range(30):
            opening = asyncio.ensure_future(disk.create(str(tmp_path / str(rounds))))
            for _ in range(rounds % 6):
                await asyncio.sleep(0)
            opening.cancel()
            await asyncio.wait([opening])
            if not opening.cancelled():
                await opening.result().close()
        await asyncio.to_thread(gc.collect)

    before = open_files()
    asyncio.run(main())
    gc.collect()
    assert open_files() <= before + 1


def test_closing_waits_for_whoever_is_inside(tmp_path: Path) -> None:
    async def main() -> None:
        disk = LocalDisk()
        for rounds in range(20):
            writer = await disk.create(str(tmp_path / str(rounds)))
            writing = asyncio.ensure_future(writer.write(b"x" * 2_000_000))
            for _ in range(rounds % 4):
                await asyncio.sleep(0)
            writing.cancel()
            await writer.close()
            other = await disk.create(str(tmp_path / f"other-{rounds}"))
            await asyncio.wait([writing])
            await other.close()
            assert await disk.size(str(tmp_path / f"other-{rounds}")) == 0

    asyncio.run(main())


def test_symbolic_links_are_resolved(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")

    async def main() -> str:
        return await LocalDisk().resolve(str(tmp_path / "link" / "not" / "there"))

    assert asyncio.run(main()) == str(tmp_path.resolve() / "real" / "not" / "there")


def test_a_relative_path_is_taken_from_the_current_folder(tmp_path: Path) -> None:
    async def main() -> None:
        disk = LocalDisk()
        here = os.path.relpath(tmp_path)
        await disk.make_folder(f"{here}/a/b")
        await (await disk.create(f"{here}/a/b/c")).close()
        assert await disk.list_tree(here) == ["a/b/c"]

    asyncio.run(main())
