"""The files of this machine, as they are.

Calls of the operating system that may wait run off the loop, by ``asyncio.to_thread`` or aiofiles, and large reads and
writes go in pieces.  Two rules follow from the fact that a thread can't be cancelled:

* A file is never closed while a thread is inside one of its calls (its number could be another file's by then): whoever
  leaves last closes it.
* A write that failed, or whose caller did not wait for its end, makes the file worthless: every later ``write`` and
  ``sync`` raises.  So what was written can't be published by mistake, and a ``sync`` that failed once never succeeds.
"""

from __future__ import annotations

import asyncio
import errno
import io
import os
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

from actorflow.abc.disk import Disk, FileReader, FileWriter
from actorflow.errors import ObjectMissing, StorageFailed

__all__ = ("LocalDisk",)

T = TypeVar("T")

_PIECE = 1 << 20
"""Bytes that one call reads or writes at most."""

_KNOWN_FOLDERS = 4_096
"""How many folders are remembered as durable before all of them are looked at again."""

_NEXT_STEPS = {
    errno.EACCES: "check the permissions of the file and of its folder",
    errno.EPERM: "check the permissions of the file and of its folder",
    errno.EROFS: "choose a folder on a file system that can be written to",
    errno.ENOSPC: "free some space, or choose a folder on another disk",
    errno.EDQUOT: "free some space, or ask for a larger quota",
    errno.EMFILE: "raise the limit of open files (ulimit -n)",
    errno.ENAMETOOLONG: "choose shorter names of jobs and operators, or a folder nearer to the root",
    errno.EXDEV: "keep the folder on one file system",
    errno.ENOTDIR: "something on the way to it is a file, not a folder",
}


class LocalDisk(Disk):
    """The disk of the machine that this process runs on."""

    def __init__(self) -> None:
        self._durable: dict[str, None] = {}

    async def open_reader(self, path: str) -> FileReader:
        with _naming(path, "reading"):
            try:
                return _LocalReader(path, await _open(path, "rb"))
            except IsADirectoryError as error:
                raise ObjectMissing(f"{path}: it is a folder, not a file") from error

    async def create(self, path: str) -> FileWriter:
        with _naming(path, "creating"):
            return _LocalWriter(path, await _open(path, "xb"))

    async def rename(self, source: str, target: str) -> None:
        with _naming(source, f"renaming to {target}"):
            await _aiofiles_os().replace(source, target)

    async def link(self, source: str, target: str) -> None:
        with _naming(source, f"linking to {target}"):
            try:
                await _aiofiles_os().link(source, target)
            except OSError as error:
                if error.errno not in {errno.EPERM, errno.ENOTSUP, errno.EOPNOTSUPP}:
                    raise
                raise StorageFailed(
                    f"{target}: its file system makes no hard links, and without them two processes could both publish "
                    "this name; choose a folder on another file system"
                ) from error

    async def remove(self, path: str) -> None:
        with _naming(path, "removing"):
            try:
                await _aiofiles_os().remove(path)
            except (FileNotFoundError, NotADirectoryError):
                return

    async def remove_folder(self, path: str) -> None:
        with _naming(path, "removing the folder"):
            try:
                await _aiofiles_os().rmdir(path)
            except FileNotFoundError:
                return
            except OSError as error:
                if error.errno not in {errno.ENOTEMPTY, errno.EEXIST}:
                    raise

    async def make_folder(self, path: str) -> None:
        with _naming(path, "making the folder"):
            try:
                if path not in self._durable or not await _aiofiles_os().path.isdir(path):
                    await asyncio.to_thread(_make_folder, path)
            except FileExistsError as error:
                raise StorageFailed(f"{error.filename or path}: it is a file, and a folder is needed there") from error
        if len(self._durable) >= _KNOWN_FOLDERS:
            self._durable.clear()
        self._durable[path] = None

    async def sync_folder(self, path: str) -> None:
        with _naming(path, "syncing the folder"):
            await asyncio.to_thread(_sync_folder, path)

    async def list_folder(self, path: str) -> list[str]:
        with _naming(path, "listing"):
            return await asyncio.to_thread(_list_folder, path)

    async def list_tree(self, path: str) -> list[str]:
        with _naming(path, "listing"):
            return await asyncio.to_thread(_list_tree, path)

    async def size(self, path: str) -> int | None:
        with _naming(path, "looking at it"):
            try:
                found = await _aiofiles_os().stat(path)
            except (FileNotFoundError, NotADirectoryError):
                return None
            return found.st_size if stat.S_ISREG(found.st_mode) else None

    async def resolve(self, path: str) -> str:
        with _naming(path, "resolving"):
            return await asyncio.to_thread(os.path.realpath, path)


class _File(io.FileIO):
    """An open file that several threads may be about to use when it is closed."""

    def __init__(self, path: str, mode: str) -> None:
        self._inside = self._leaving = False
        super().__init__(path, mode)

    async def off_the_loop(self, function: Callable[..., T], *arguments: Any) -> T:
        """Run a call on this file in a thread."""
        return await asyncio.to_thread(self._guarded, function, *arguments)

    def _guarded(self, function: Callable[..., T], *arguments: Any) -> T:
        # Each side sets its own flag before it looks at the other's, so at least one of them sees both.
        self._inside = True
        try:
            if self._leaving:
                raise StorageFailed(f"{self.name}: the file is closed")
            return function(self.fileno(), *arguments)
        finally:
            self._inside = False
            if self._leaving:
                super().close()

    def close(self) -> None:
        self._leaving = True
        if not self._inside:
            super().close()  # nothing is buffered here, so this does not wait


class _LocalReader(FileReader):
    def __init__(self, path: str, file: _File) -> None:
        self._path, self._file, self._position = path, file, 0

    async def read(self, size: int) -> bytes:
        pieces: list[bytes] = []
        with _naming(self._path, "reading"):
            while size > 0:
                piece = await self._file.off_the_loop(os.pread, min(size, _PIECE), self._position)
                if not piece:
                    break
                pieces.append(piece)
                self._position += len(piece)
                size -= len(piece)
        return pieces[0] if len(pieces) == 1 else b"".join(pieces)

    async def seek(self, position: int) -> None:
        self._position = position

    async def close(self) -> None:
        self._file.close()


class _LocalWriter(FileWriter):
    def __init__(self, path: str, file: _File) -> None:
        self._path, self._file = path, file
        self._unfinished: str | None = None

    async def write(self, data: bytes) -> None:
        view = memoryview(data)
        for start in range(0, len(data), _PIECE):
            await self._whole("write", _write_all, view[start : start + _PIECE])

    async def sync(self) -> None:
        await self._whole("sync", _sync)

    async def _whole(self, what: str, function: Callable[..., None], *arguments: Any) -> None:
        if self._unfinished is not None:
            raise StorageFailed(
                f"{self._path}: an earlier {self._unfinished} did not end well, so what is in the file is not known"
            )
        self._unfinished = what
        with _naming(self._path, f"the {what}"):
            await self._file.off_the_loop(function, *arguments)
        self._unfinished = None

    async def close(self) -> None:
        self._file.close()


async def _open(path: str, mode: str) -> _File:
    """Open a file in a thread; one that nobody waits for any more is closed again."""
    opened: list[_File] = []
    abandoned = False

    def work() -> None:
        opened.append(_File(path, mode))
        if abandoned:
            opened[0].close()

    try:
        await asyncio.to_thread(work)
    except BaseException:
        abandoned = True
        for file in opened:
            file.close()
        raise
    return opened[0]


def _write_all(number: int, view: memoryview) -> None:
    while view:
        view = view[os.write(number, view) :]


def _sync(number: int) -> None:
    full = _full_sync()
    if full is None:
        os.fsync(number)
    else:
        full(number)


def _full_sync() -> Callable[[int], object] | None:
    """Where ``fsync`` stops at the drive's cache (macOS), the call that does not."""
    import fcntl

    command = getattr(fcntl, "F_FULLFSYNC", None)
    return None if command is None else lambda number: fcntl.fcntl(number, command)


def _sync_folder(path: str) -> None:
    number = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        _sync(number)
    finally:
        os.close(number)


def _make_folder(path: str) -> None:
    """Make a folder and its parents, and every new name durable; also one that somebody else has just made."""
    path = os.path.abspath(path)
    missing = [path]
    while not os.path.isdir(parent := os.path.dirname(missing[-1])):
        missing.append(parent)
    for folder in reversed(missing):
        try:
            os.mkdir(folder)
        except FileExistsError:
            if not os.path.isdir(folder):
                raise
        _sync_folder(os.path.dirname(folder))


def _list_folder(path: str) -> list[str]:
    try:
        with os.scandir(path) as entries:
            return sorted(entry.name for entry in entries if entry.is_file())
    except FileNotFoundError:
        return []


def _list_tree(path: str) -> list[str]:
    def refuse(error: OSError) -> None:
        if not isinstance(error, FileNotFoundError):  # a folder that has gone meanwhile is empty
            raise error

    found = []
    for folder, _, names in os.walk(path, onerror=refuse):
        beneath = os.path.relpath(folder, path)
        found.extend(names if beneath == "." else [f"{beneath}/{name}" for name in names])
    return sorted(found)


def _aiofiles_os() -> Any:
    """Loaded on use, because ``import actorflow`` is to stay light."""
    import aiofiles.os

    return aiofiles.os


@contextmanager
def _naming(path: str, what: str) -> Iterator[None]:
    """Turn the system's errors into ours, which name the path and the next step."""
    try:
        yield
    except FileExistsError:
        raise
    except FileNotFoundError as error:
        raise ObjectMissing(
            f"{path}: {what} failed, because it, or the folder it should be in, is not there"
        ) from error
    except (OSError, ValueError) as error:
        number = error.errno if isinstance(error, OSError) else None
        why = (error.strerror if isinstance(error, OSError) else None) or str(error)
        step = _NEXT_STEPS.get(number) if number is not None else None
        raise StorageFailed(f"{path}: {what} failed: {why}" + (f"; {step}" if step else "")) from error
