"""Which store does a setting name?

``None`` is this process's memory; a folder, or ``file://`` and a folder, is that folder.  Opening touches nothing yet:
a store that does not work says so at its first operation, with the object's name.
"""

from __future__ import annotations

import re
from urllib.parse import unquote, urlsplit

from actorflow.abc.disk import Disk
from actorflow.abc.objects import ObjectStore
from actorflow.errors import InvalidConfig
from actorflow.storage.files import FileStore
from actorflow.storage.memory import MemoryStore

__all__ = ("folder_of", "open_store")

_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://")


def open_store(location: str | None, disk: Disk) -> ObjectStore:
    """Open the store that a setting names.  Each call for ``None`` opens a new, empty memory."""
    if location is None:
        return MemoryStore()
    return FileStore(folder_of(location), disk)


def folder_of(location: str) -> str:
    """Return the folder that a location names, or raise ``InvalidConfig`` when it names something else."""
    if not location.strip() or "\0" in location:
        raise InvalidConfig(
            f"storage {location!r} names no folder: use a folder such as './checkpoints', or None for memory"
        )
    scheme = _SCHEME.match(location)
    if scheme is None:
        return location
    match scheme[1].lower():
        case "file":
            url = urlsplit(location)
            if url.netloc not in {"", "localhost"} or url.query or url.fragment or not url.path:
                raise InvalidConfig(
                    f"storage {location!r} is not a folder of this machine: file:// takes three slashes and a path, "
                    "as in 'file:///var/lib/checkpoints', with ? and # written as %3F and %23"
                )
            path = unquote(url.path, errors="strict")
            if "\0" in path:
                raise InvalidConfig(f"storage {location!r} holds a zero byte")
            return path
        case "s3":
            raise InvalidConfig(
                f"storage {location!r}: S3 comes with a later version; until then use a folder or file://"
            )
        case other:
            raise InvalidConfig(
                f"storage {location!r}: the scheme {other}:// is not known; use a folder, file:// or None for memory"
            )
