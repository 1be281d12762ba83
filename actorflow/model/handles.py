"""Where bytes of state live.

A handle never holds a path: an object is named by its scope and one plain file name, and ``model/paths.py`` alone turns
that into the name of an object.  So a manifest from a stranger can't lead out of its folder.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

__all__ = ("Handle", "InlineHandle", "ObjectHandle", "Scope")


class Scope(StrEnum):
    """Whose an object is."""

    PRIVATE = "private"  # of one checkpoint: beside its manifest
    SHARED = "shared"  # of several checkpoints: in the home's ``shared/``


@dataclass(frozen=True, slots=True)
class InlineHandle:
    """Bytes that are kept in the manifest itself, because they are few."""

    data: bytes

    @property
    def length(self) -> int:
        return len(self.data)


@dataclass(frozen=True, slots=True)
class ObjectHandle:
    """``length`` bytes of an object, from ``offset``, whose CRC-32 is ``crc32``."""

    scope: Scope
    name: str
    offset: int
    length: int
    crc32: int


Handle = InlineHandle | ObjectHandle
