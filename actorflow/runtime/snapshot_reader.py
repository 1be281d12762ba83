"""Reads the pieces that a manifest names, and checks each against its checksum.

A snapshot is found by its manifest's folder; shared pieces lie in the ``shared/`` beside that folder.  Names are
plain, so a manifest from a stranger leads nowhere else.
"""

from __future__ import annotations

import zlib
from collections.abc import AsyncIterator

from actorflow.abc.objects import ObjectStore
from actorflow.abc.world import World
from actorflow.errors import CorruptObject, ObjectMissing, RestoreFailed
from actorflow.model.handles import Handle, InlineHandle, Scope
from actorflow.model.manifest import Manifest
from actorflow.model.manifest_codec import decode_manifest
from actorflow.model.paths import MANIFEST_NAME, Home

__all__ = ("PIECE", "SnapshotReader")

PIECE = 1 << 20
"""How many bytes are read at a time."""


class SnapshotReader:
    """The objects of one snapshot."""

    def __init__(
        self, store: ObjectStore, home: Home, checkpoint_id: int, world: World, folder: str | None = None
    ) -> None:
        self._store, self._home, self._checkpoint_id, self._world = store, home, checkpoint_id, world
        self._folder = folder

    @classmethod
    async def open(cls, path: str, world: World) -> tuple[SnapshotReader, Manifest]:
        """Open the snapshot at ``path``, a folder or its ``_metadata``.  Raises ``RestoreFailed``."""
        folder = path.rstrip("/").removesuffix(f"/{MANIFEST_NAME}").rstrip("/")
        parent, _, name = folder.rpartition("/")
        if not name:
            raise RestoreFailed(
                f"{path!r} is not the path of a snapshot: give its folder, or the {MANIFEST_NAME} in it"
            )
        store = world.objects.open(parent or ("." if not path.startswith("/") else "/"))
        object_name = f"{name}/{MANIFEST_NAME}"
        try:
            data = await store.get(object_name)
        except ObjectMissing as error:
            raise RestoreFailed(f"there is no snapshot at {path}: no {MANIFEST_NAME} in {folder}") from error
        try:
            manifest = decode_manifest(data, f"{folder}/{MANIFEST_NAME}")
        except CorruptObject as error:
            raise RestoreFailed(str(error)) from error
        return cls(store, Home(""), manifest.checkpoint_id, world, name), manifest

    def name_of(self, handle: Handle) -> str:
        """Name a piece for people."""
        return "the manifest" if isinstance(handle, InlineHandle) else self._object_name(handle)

    def _object_name(self, handle: Handle) -> str:
        assert not isinstance(handle, InlineHandle)
        if handle.scope is Scope.PRIVATE and self._folder is not None:
            self._home.private(0, handle.name)  # refuses a name that leads elsewhere
            return f"{self._folder}/{handle.name}"
        return self._home.resolve(handle, self._checkpoint_id)

    async def pieces(self, handle: Handle) -> AsyncIterator[bytes]:
        """The bytes behind a handle, in pieces.  Raises ``CorruptObject``, with its name, no later than at the end."""
        if isinstance(handle, InlineHandle):
            yield handle.data
            return
        name = self._object_name(handle)
        start, left, check = handle.offset, handle.length, 0
        while left:
            data = await self._store.get(name, start=start, length=min(left, PIECE))
            if not data:
                raise CorruptObject(f"{name} ends before byte {start + left}")
            check = zlib.crc32(data, check)
            start += len(data)
            left -= len(data)
            yield data
        if check != handle.crc32:
            raise CorruptObject(f"{name}: its bytes from {handle.offset} to {start} fail their checksum")

    async def whole(self, handle: Handle) -> bytes:
        """All bytes behind a handle."""
        return b"".join([piece async for piece in self.pieces(handle)])
