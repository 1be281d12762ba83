"""How does a folder become a store of whole, durable objects?

An object is written beside its place under a hidden name, synced, and only then given its own name: by ``link`` where
the name must be free (it refuses one that is taken), by ``rename`` otherwise; then the folder is synced.  So nobody
sees a part of an object, and what was reported as published survives a power cut.

Hidden names begin with the number of their *writer*, which no two opened stores ever share: a mark in ``.writers/``
claims it, and counts only if it is still the highest one afterwards (the highest mark is never removed, so a number
never comes back).  Hence :meth:`FileStore.sweep`: what earlier writers left half written can be removed at any time,
because one that is still alive merely fails, and can never publish bytes that are not its own.

A name never leads out of the root folder, not even through a symbolic link.
"""

from __future__ import annotations

import re
from collections.abc import AsyncIterable, Sequence

from actorflow.abc.disk import Disk, FileWriter
from actorflow.abc.objects import ObjectStore
from actorflow.errors import CorruptObject, ObjectMissing, StorageFailed
from actorflow.storage.names import check_name, check_prefix

__all__ = ("FileStore",)

_MARKS = ".writers"
_MARK = re.compile(r"[0-9]{10}")
_TEMPORARY = re.compile(r"\.([0-9]{10})-([0-9]+)\.part")

_PIECE = 1 << 20
"""Bytes that are read at once."""

_TRIES = 20
"""How often a folder that others empty and remove is made again before we give up."""


class FileStore(ObjectStore):
    """A store in the folder ``root`` of a disk."""

    def __init__(self, root: str, disk: Disk) -> None:
        self._disk = disk
        self._given_root = root
        self._root: str | None = None
        self._writer: int | None = None
        self._written = 0
        self._abandoned: list[str] = []

    def __repr__(self) -> str:
        return f"FileStore({self._given_root!r})"

    # ── what a store does ──

    async def put(self, name: str, body: bytes | AsyncIterable[bytes]) -> int:
        check_name(name)
        temporary, length = await self._write_beside(name, body)
        path = await self._path(name)
        try:
            await self._disk.rename(temporary, path)
        except BaseException:
            self._abandoned.append(temporary)
            raise
        await self._disk.sync_folder(_folder_of(path))
        return length

    async def put_if_absent(self, name: str, body: bytes) -> bool:
        check_name(name)
        path = await self._path(name)
        if await self._disk.size(path) is not None:
            return False  # the link below decides; this only spares the writing
        temporary, _ = await self._write_beside(name, body)
        try:
            await self._disk.link(temporary, path)
            created = True
        except FileExistsError:
            created = False
        finally:
            self._abandoned.append(temporary)
        if created:
            await self._disk.sync_folder(_folder_of(path))
        await self._clear_abandoned()
        return created

    async def get(self, name: str, *, start: int = 0, length: int | None = None) -> bytes:
        check_name(name)
        path = await self._path(name)
        await self._check_inside(name, path)
        try:
            reader = await self._disk.open_reader(path)
        except ObjectMissing as error:
            raise ObjectMissing(f"{name}: there is no such object in {self._given_root}") from error
        pieces, missing = [], length
        try:
            if start:
                await reader.seek(start)
            while missing is None or missing > 0:
                piece = await reader.read(_PIECE if missing is None else min(missing, _PIECE))
                if not piece:
                    break
                pieces.append(piece)
                missing = None if missing is None else missing - len(piece)
        finally:
            await reader.close()
        if missing or (start and not pieces):
            size = await self._disk.size(path) or 0
            if missing or start > size:
                raise CorruptObject(
                    f"{name}: it ends after {size} bytes, but bytes up to {start + (length or 0)} were asked for"
                )
        return b"".join(pieces)

    async def settle(self, name: str) -> None:
        check_name(name)
        await self._disk.sync_folder(_folder_of(await self._path(name)))  # its bytes were synced before it got its name

    async def list(self, prefix: str = "") -> list[str]:
        check_prefix(prefix)
        folder = prefix.rpartition("/")[0]
        path = await self._path(folder)
        await self._check_inside(folder, path)
        beneath = f"{folder}/" if folder else ""
        names = (beneath + name for name in await self._disk.list_tree(path) if not _is_hidden(name))
        return sorted(name for name in names if name.startswith(prefix))

    async def delete(self, name: str) -> None:
        check_name(name)
        path = await self._path(name)
        await self._check_inside(name, _folder_of(path))
        await self._disk.remove(path)
        await self._remove_empty_folders(name)

    async def sweep(self, prefix: str = "") -> int:
        """Remove what earlier writers left half written below ``prefix``; return how many files that were.

        Call it once this process owns everything below ``prefix``: whoever still writes there, fails.
        """
        check_prefix(prefix)
        writer = await self._claimed()
        folder = prefix.rpartition("/")[0]
        path = await self._path(folder)
        await self._check_inside(folder, path)
        beneath, removed = f"{folder}/" if folder else "", 0
        for found in await self._disk.list_tree(path):
            name = beneath + found
            temporary = _TEMPORARY.fullmatch(name.rpartition("/")[2])
            if temporary and int(temporary[1]) < writer and name.startswith(prefix):
                await self._disk.remove(await self._path(name))
                await self._remove_empty_folders(name)
                removed += 1
        return removed

    async def close(self) -> None:
        await self._clear_abandoned()

    # ── how it does it ──

    async def _path(self, name: str) -> str:
        if self._root is None:
            self._root = await self._disk.resolve(self._given_root)
        return f"{self._root.rstrip('/')}/{name}" if name else self._root

    async def _check_inside(self, name: str, path: str) -> None:
        """Refuse what a symbolic link leads out of the root."""
        root = await self._path("")
        resolved = await self._disk.resolve(path)
        if resolved != root and not resolved.startswith(f"{root.rstrip('/')}/"):
            raise StorageFailed(f"{name}: a symbolic link leads out of {root}, to {resolved}; nothing there is touched")

    async def _write_beside(self, name: str, body: bytes | AsyncIterable[bytes]) -> tuple[str, int]:
        """Write all of ``body``, durably, under a hidden name in the folder where ``name`` will be."""
        writer = await self._claimed()
        await self._clear_abandoned()
        folder = _folder_of(await self._path(name))
        await self._check_inside(name, folder)
        self._written += 1
        temporary = f"{folder}/.{writer:010}-{self._written}.part"
        length = 0
        try:
            file = await self._create(folder, temporary)
            try:
                if isinstance(body, (bytes, bytearray, memoryview)):
                    await file.write(bytes(body))
                    length = len(body)
                else:
                    async for piece in body:
                        await file.write(piece)
                        length += len(piece)
                await file.sync()
            finally:
                await file.close()
        except BaseException:
            self._abandoned.append(temporary)
            raise
        return temporary, length

    async def _create(self, folder: str, path: str) -> FileWriter:
        for _ in range(_TRIES):
            try:
                await self._disk.make_folder(folder)
                return await self._disk.create(path)
            except ObjectMissing:  # somebody deleted the last object of the folder, and so it or those above it
                continue
        raise StorageFailed(f"{folder}: it was removed {_TRIES} times while a file was to be written there")

    async def _clear_abandoned(self) -> None:
        """Remove what is not needed any more, or what earlier calls could not remove because they were cancelled."""
        while self._abandoned:
            temporary = self._abandoned.pop()
            try:
                await self._disk.remove(temporary)
            except StorageFailed:  # nobody sees it; the next call tries again, and a later writer's sweep at last
                self._abandoned.append(temporary)
                return
            except BaseException:
                self._abandoned.append(temporary)
                raise

    async def _remove_empty_folders(self, name: str) -> None:
        while name := name.rpartition("/")[0]:
            await self._disk.remove_folder(await self._path(name))

    async def _claimed(self) -> int:
        """Return the number under which this store writes; the first call claims it."""
        while self._writer is None:
            folder = await self._path(_MARKS)
            await self._disk.make_folder(folder)
            number = max(await self._marks(folder), default=0) + 1
            try:
                mark = await self._disk.create(f"{folder}/{number:010}")
            except FileExistsError:
                continue
            await mark.close()
            marks = await self._marks(folder)
            if max(marks) > number:
                continue  # the number may have been somebody's whose mark is gone
            await self._disk.sync_folder(folder)
            if self._writer is None:
                self._writer = number
            for older in marks:
                if older < number:
                    await self._disk.remove(f"{folder}/{older:010}")
        return self._writer

    async def _marks(self, folder: str) -> Sequence[int]:
        return [int(name) for name in await self._disk.list_folder(folder) if _MARK.fullmatch(name)]


def _folder_of(path: str) -> str:
    return path.rpartition("/")[0] or "/"


def _is_hidden(name: str) -> bool:
    return name.startswith(".") or "/." in name
