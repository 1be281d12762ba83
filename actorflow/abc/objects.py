"""Where checkpoints live: a store of named, immutable objects.

Names are relative, with ``/`` between parts, and are built in ``model/paths.py`` alone.  The store must create and list
consistently, because fencing stands on ``put_if_absent`` followed by ``list``.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import AsyncIterable
from typing import Protocol

__all__ = ("ObjectStore", "ObjectStores")


class ObjectStore(ABC):
    """A place for checkpoints.  Every method raises ``StorageFailed``, naming the object, when the store refuses."""

    @abstractmethod
    async def put(self, name: str, body: bytes | AsyncIterable[bytes]) -> int:
        """Publish an object whole and durably, replacing one of that name; return its length in bytes.

        Nobody ever sees a part of it.  When ``body`` raises or the caller is cancelled, nothing is published.
        """

    @abstractmethod
    async def put_if_absent(self, name: str, body: bytes) -> bool:
        """Publish an object whole and durably unless the name is taken; return whether it was this call that did.

        When this raises, the outcome is unknown: read the object back.
        """

    @abstractmethod
    async def get(self, name: str, *, start: int = 0, length: int | None = None) -> bytes:
        """Return an object's bytes, or ``length`` of them from ``start``.

        Raises ``ObjectMissing`` when there is none, and ``CorruptObject`` when it ends before ``start + length``.
        """

    @abstractmethod
    async def list(self, prefix: str = "") -> list[str]:
        """Return the names that begin with ``prefix``, sorted.  What was published before the call is in it."""

    async def settle(self, name: str) -> None:
        """Return once an object that can be seen would also survive a power cut.

        Whoever published it may have died, or failed, before that was so.  Where what is seen is durable, this does
        nothing.
        """

    @abstractmethod
    async def delete(self, name: str) -> None:
        """Remove an object; one that is absent is fine."""

    async def sweep(self, prefix: str = "") -> int:
        """Remove what earlier processes left half written below ``prefix``; return how much that was.

        Only whoever owns everything below ``prefix`` may ask for it: others that still write there may fail.
        """
        return 0

    async def close(self) -> None:
        """Let go of connections."""


class ObjectStores(Protocol):
    """Opens the store that a setting names."""

    def open(self, location: str | None) -> ObjectStore:
        """Return the store at ``location``: a folder, ``file://…``, ``s3://…``, or ``None`` for this process's memory.

        Raises ``InvalidConfig`` for a scheme that is unknown.
        """
        ...
