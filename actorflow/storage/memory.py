"""Where do checkpoints live when nobody said where?  In this process, and as long as it does.

A restart within the process finds them again; a restart of the process does not.
"""

from __future__ import annotations

from collections.abc import AsyncIterable

from actorflow.abc.objects import ObjectStore
from actorflow.errors import CorruptObject, ObjectMissing
from actorflow.storage.names import check_name, check_prefix

__all__ = ("MemoryStore", "collect", "cut")


class MemoryStore(ObjectStore):
    """A store in a dict."""

    def __init__(self) -> None:
        self._objects: dict[str, bytes] = {}

    async def put(self, name: str, body: bytes | AsyncIterable[bytes]) -> int:
        check_name(name)
        data = await collect(body)
        self._objects[name] = data
        return len(data)

    async def put_if_absent(self, name: str, body: bytes) -> bool:
        check_name(name)
        if name in self._objects:
            return False
        self._objects[name] = bytes(body)
        return True

    async def get(self, name: str, *, start: int = 0, length: int | None = None) -> bytes:
        check_name(name)
        data = self._objects.get(name)
        if data is None:
            raise ObjectMissing(f"{name}: there is no such object in this process's memory")
        return cut(name, data, start, length)

    async def list(self, prefix: str = "") -> list[str]:
        check_prefix(prefix)
        return sorted(name for name in self._objects if name.startswith(prefix))

    async def delete(self, name: str) -> None:
        check_name(name)
        self._objects.pop(name, None)


async def collect(body: bytes | AsyncIterable[bytes]) -> bytes:
    """Return all of a body."""
    if isinstance(body, (bytes, bytearray, memoryview)):
        return bytes(body)
    return b"".join([piece async for piece in body])


def cut(name: str, data: bytes, start: int, length: int | None) -> bytes:
    """Return the asked part of an object's bytes, or raise ``CorruptObject`` when it is shorter than that."""
    end = len(data) if length is None else start + length
    if start > len(data) or end > len(data):
        raise CorruptObject(
            f"{name}: it ends after {len(data)} bytes, but bytes up to {max(start, end)} were asked for"
        )
    return data[start:end]
