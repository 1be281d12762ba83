"""Whose folder is this?

A sink owns its folder: the file ``.actorflow`` in it says which operator of which job's home that is.  It is written
beside, synced and linked, so it is there whole or not at all, and whoever comes second reads the first one's name.
Another owner is refused before any record is processed; so is a folder that can't be written.
"""

from __future__ import annotations

import json

from actorflow.abc.connectors import SinkContext
from actorflow.abc.disk import Disk
from actorflow.errors import InvalidJob, StorageFailed

__all__ = ("OWNER", "PENDING", "claim_folder")

OWNER = ".actorflow"
PENDING = ".pending"


async def claim_folder(folder: str, context: SinkContext) -> None:
    """Make the folder this operator's; raises ``InvalidJob`` when it is another's, ``StorageFailed`` when it won't."""
    disk = context.world.disk
    try:
        await disk.make_folder(folder)
        await disk.make_folder(f"{folder}/{PENDING}")
        if await disk.resolve(f"{folder}/{PENDING}") != f"{folder}/{PENDING}":
            raise InvalidJob(
                f"operator {context.operator!r}: {folder}/{PENDING} is a link that leads out of the folder"
            )
        await _claim(disk, folder, context)
    except StorageFailed as error:
        raise StorageFailed(f"operator {context.operator!r} can't write to the folder {folder}: {error}") from error


async def _claim(disk: Disk, folder: str, context: SinkContext) -> None:
    mine = json.dumps({"format": 1, "home": context.home, "operator": context.operator}).encode()
    draft = f"{folder}/{PENDING}/.owner-{context.operator}-{context.subtask}-{context.generation}-0"
    await disk.remove(draft)  # what a process of this very name may have left
    writer = await disk.create(draft)  # even when the folder is ours already: this proves that it can be written
    try:
        await writer.write(mine)
        await writer.sync()
    finally:
        await writer.close()
    try:
        await disk.link(draft, f"{folder}/{OWNER}")
        await disk.sync_folder(folder)
    except FileExistsError:
        _compare(await disk.read_whole(f"{folder}/{OWNER}"), folder, context)
    finally:
        await disk.remove(draft)


def _compare(found: bytes, folder: str, context: SinkContext) -> None:
    try:
        owner = json.loads(found)
        home, operator = owner["home"], owner["operator"]
    except (ValueError, KeyError, TypeError) as error:
        raise InvalidJob(
            f"operator {context.operator!r}: {folder}/{OWNER} does not say who owns the folder; give the sink a folder"
            " of its own"
        ) from error
    if (home, operator) != (context.home, context.operator):
        raise InvalidJob(
            f"operator {context.operator!r} of the job at {context.home} can't write to {folder}: it belongs to"
            f" operator {operator!r} of the job at {home}.  Give each sink a folder of its own; to hand this one over"
            f" on purpose, remove {folder}/{OWNER}"
        )
