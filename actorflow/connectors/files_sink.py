"""Lines of text files, exactly once.

A subtask writes to ``.pending/<operator>-<subtask>-<generation>-<n>`` under its folder.  At the barrier the file is
cut; before the snapshot counts it is synced and closed.  With the permit it is renamed to
``part-<subtask>-<checkpoint>.<suffix>``.  So a name that does not begin with a dot is whole, committed, and never
changes again.

A committable is ``[pending name, final name, length, digest]``: plain names within the folder that the *job* says, so a
manifest from a stranger can't lead elsewhere, and everything that another process needs.  Nothing is ever overwritten:
a final name that is taken by other bytes is an error.

After going back to an older snapshot, or to nothing, on purpose, what was committed since stays and is written again,
beside it: a name that was there when the writer was opened is not used, ``-2`` and so on goes into the new one's.  A
warning names the files.
"""

from __future__ import annotations

import re
from typing import Any

from actorflow.abc.connectors import CommitPermit, Prepared, SinkContext, TransactionalSink, TransactionalWriter
from actorflow.abc.world import World
from actorflow.connectors.folder_owner import PENDING, claim_folder
from actorflow.connectors.pending_file import PendingFile, Rest, digest_of
from actorflow.connectors.rows import Format, RowWriter, check_format
from actorflow.errors import CorruptObject, InvalidJob, ObjectMissing, StorageFailed
from actorflow.model.journal import FellBack, OrphanRemoved

__all__ = ("FileSink",)

_PART = re.compile(r"part-(\d+)-(\d+)(?:-\d+)?(?:\.|$)")
_SUFFIX = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,30}")


class FileSink(TransactionalSink[Any]):
    """A folder of text files as an exactly-once sink."""

    runs_in_simulation = True

    def __init__(self, folder: str, *, format: Format, suffix: str) -> None:  # noqa: A002 - the word users look for
        if not folder or "\0" in folder:
            raise InvalidJob(f"files.write: {folder!r} is not a folder")
        if not _SUFFIX.fullmatch(suffix):
            raise InvalidJob(f"files.write: suffix={suffix!r}; it must be like 'txt' or 'jsonl'")
        self.folder, self._format, self._suffix = folder, check_format(format), suffix
        self.function = format if callable(format) else None  # its annotations say which classes travel

    def __repr__(self) -> str:
        return f"files.write({self.folder})"

    async def open(self, context: SinkContext) -> TransactionalWriter[Any]:
        """Make the folder this operator's and open the writer of one subtask."""
        disk = context.world.disk
        folder = await disk.resolve(self.folder)
        await claim_folder(folder, context)
        parts = [name for name in await disk.list_folder(folder) if _PART.match(name)]
        if context.subtask == 0:
            _warn_of_newer(parts, folder, context)
        pending = await disk.list_folder(f"{folder}/{PENDING}")
        return _FileWriter(
            folder, context, RowWriter(self._format, context.operator, context.subtask), self._suffix, parts, pending
        )

    async def visible(self, world: World) -> list[Any]:
        """Return the lines of all committed files, in order of their names."""
        folder = await world.disk.resolve(self.folder)
        lines: list[Any] = []
        for name in await world.disk.list_folder(folder):
            if _PART.match(name):
                data = await world.disk.read_whole(f"{folder}/{name}")
                lines += data.decode().split("\n")[:-1]
        return lines


def _warn_of_newer(parts: list[str], folder: str, context: SinkContext) -> None:
    """Say that rows will be there twice, when the folder holds what this attempt is going to write again."""
    restored = context.restored_checkpoint or 0
    newer = [name for name in parts if int(_PART.match(name)[2]) > restored]  # type: ignore[index]  # all of them match
    if newer:
        more = f" and {len(newer) - 5} more" if len(newer) > 5 else ""
        context.world.observer.announce(
            FellBack(
                subject=f"operator {context.operator!r}",
                wanted="each row once in its folder",
                taken="rows committed after the restored checkpoint stay, and are written again",
                why=f"{folder} holds {', '.join(newer[:5])}{more}",
            )
        )


class _FileWriter(TransactionalWriter[Any]):
    def __init__(
        self, folder: str, context: SinkContext, rows: RowWriter, suffix: str, parts: list[str], pending: list[str]
    ) -> None:
        self._folder, self._context, self._rows, self._suffix = folder, context, rows, suffix
        self._disk = context.world.disk
        stem = f"part-{context.subtask:05d}-"
        self._taken = dict.fromkeys(name for name in parts if name.startswith(stem))
        self._stem = f"{context.operator}-{context.subtask}-{context.generation}-"
        # Without a home that lasts, generations begin again at one, and a file of that name may be there.
        self._number = 1 + max((_number(name, self._stem) for name in pending), default=-1)
        self._file: PendingFile | None = None
        self._unfinished: list[PendingFile] = []  # cut, and not yet known to be durable
        self._prepared: dict[str, None] = {}  # pending files of this very writer, whose bytes need no second look

    async def write(self, records: list[Any]) -> None:
        for unfinished in self._unfinished:
            if unfinished.failure is not None:  # its rows are lost to this attempt, so this attempt must end
                raise StorageFailed(f"{unfinished.path} could not be finished: {unfinished.failure}")
        file = self._file
        if file is None:
            file = self._file = PendingFile(self._disk, f"{self._folder}/{PENDING}", f"{self._stem}{self._number}")
            self._number += 1
        file.add(self._rows.encode(records))
        if file.is_full:
            await file.drain()

    def prepare(self, checkpoint_id: int) -> Prepared:
        committables: list[Any] = []
        if self._file is not None and self._file.length:
            file, self._file = self._file, None
            self._unfinished.append(file)
            self._prepared[file.name] = None
            committables.append([file.name, self._final_name(checkpoint_id), file.length, file.digest])
        # What an earlier checkpoint that was aborted had begun to finish belongs to this one too.
        unfinished = list(self._unfinished)
        return Prepared(committables, Rest(lambda: self._finish(unfinished)) if unfinished else None)

    async def _finish(self, files: list[PendingFile]) -> None:
        for file in files:
            await file.finish()
            if file in self._unfinished:
                self._unfinished.remove(file)

    def _final_name(self, checkpoint_id: int) -> str:
        stem = f"part-{self._context.subtask:05d}-{checkpoint_id:010d}"
        name, number = f"{stem}.{self._suffix}", 1
        while name in self._taken:
            number += 1
            name = f"{stem}-{number}.{self._suffix}"
        return name

    async def commit(self, committables: list[Any], permit: CommitPermit) -> None:
        for pending, final, length, digest in map(self._checked, committables):
            await self._commit(pending, final, length, digest)
        if committables:
            await self._disk.sync_folder(self._folder)
        for committable in committables:
            self._prepared.pop(committable[0], None)

    async def _commit(self, pending: str, final: str, length: int, digest: bytes) -> None:
        source, target = f"{self._folder}/{PENDING}/{pending}", f"{self._folder}/{final}"
        for path in (source, target):
            if await self._disk.resolve(path) != path:
                raise CorruptObject(f"{path} is a link; what it leads to was not touched.  Remove the link")
        pending_length, final_length = await self._disk.size(source), await self._disk.size(target)
        if final_length is not None:
            if final_length != length or await digest_of(self._disk, target) != digest:
                raise CorruptObject(
                    f"{target} holds something else than {source}, which is to become it; nothing was overwritten."
                    "  Move that file away"
                )
            if pending_length is not None:  # the power went between two names of one file
                await self._disk.remove(source)
            return
        if pending_length is None:
            raise ObjectMissing(
                f"neither {source} nor {target} is there: rows that a checkpoint had made durable are gone;"
                " was the folder changed by somebody else?"
            )
        if pending_length != length or (
            pending not in self._prepared and await digest_of(self._disk, source) != digest
        ):
            raise CorruptObject(
                f"{source} is not what its checkpoint says it is, so it was not made visible as {target}"
            )
        await self._disk.rename(source, target)

    async def discard(self, committables: list[Any]) -> None:
        for pending, *_ in map(self._checked, committables):
            self._prepared.pop(pending, None)
            for file in [file for file in self._unfinished if file.name == pending]:
                self._unfinished.remove(file)
                await file.let_go(remove=False)
            await self._disk.remove(f"{self._folder}/{PENDING}/{pending}")

    async def sweep(self, keep: list[Any]) -> int:
        folder, kept = f"{self._folder}/{PENDING}", {committable[0] for committable in keep}
        removed = 0
        for name in await self._disk.list_folder(folder):
            generation = generation_of(name)
            if generation is not None and generation < self._context.generation and name not in kept:
                await self._disk.remove(f"{folder}/{name}")
                self._context.world.observer.announce(OrphanRemoved(where=folder, name=name))
                removed += 1
        return removed

    async def close(self) -> None:
        file, self._file = self._file, None
        if file is not None:
            await file.let_go(remove=True)
        for unfinished in self._unfinished:
            await unfinished.let_go(remove=False)

    def _checked(self, committable: Any) -> tuple[str, str, int, bytes]:
        """A committable whose names stay within the folder; a manifest may come from anywhere."""
        operator = self._context.operator
        try:
            pending, final, length, digest = committable
        except (TypeError, ValueError) as error:
            raise CorruptObject(
                f"operator {operator!r}: a checkpoint holds something that is no prepared file"
            ) from error
        for name in (pending, final):
            if not isinstance(name, str) or not name or name.startswith(".") or any(c in name for c in "/\\\0"):
                raise CorruptObject(
                    f"operator {operator!r}: a checkpoint names the prepared file {name!r}, which is not a plain name"
                    f" within {self._folder}"
                )
        if not _PART.match(final):
            raise CorruptObject(f"operator {operator!r}: {final!r} is not the name of a part")
        return pending, final, length, digest


def generation_of(name: str) -> int | None:
    """The generation that wrote a file under ``.pending``; ``None`` when none of ours did."""
    parts = name.rsplit("-", 3)
    if len(parts) != 4 or not all(part.isascii() and part.isdigit() for part in parts[1:]):
        return None
    return int(parts[2])


def _number(name: str, stem: str) -> int:
    digits = name.removeprefix(stem)
    return int(digits) if name.startswith(stem) and digits.isascii() and digits.isdigit() else -1
