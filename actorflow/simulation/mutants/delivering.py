"""Mistakes of a sink and of whoever commits for it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from copy import copy
from dataclasses import replace
from typing import Any

from actorflow.abc.disk import Disk
from actorflow.connectors.pending_file import PendingFile
from actorflow.model.elements import CheckpointKind
from actorflow.protocol import fencing, two_phase
from actorflow.protocol.fencing import CommitPermit
from actorflow.protocol.two_phase import TwoPhaseCommit
from actorflow.runtime.actor import Actor, CheckpointDone
from actorflow.runtime.checkpointing import Checkpointing
from actorflow.runtime.committer import Committer
from actorflow.simulation import ledger
from actorflow.simulation.mutants.mutant import mutant
from actorflow.simulation.replacing import replaced
from actorflow.storage.files import FileStore

__all__ = ()


@mutant("words")
@contextmanager
def commits_before_the_manifest() -> Iterator[None]:
    """Sinks commit when everyone has acknowledged, before the manifest is written.

    After a kill between the two the rows come again.
    """

    def make(original: Any) -> Any:
        async def write_manifest(self: Checkpointing, checkpoint_id: int, *rest: Any) -> None:
            permit = CommitPermit(checkpoint_id, self._begin.generation, seal=fencing._SEAL)  # noqa: SLF001  # forged
            self._deliver(CheckpointDone(checkpoint_id, permit))
            await original(self, checkpoint_id, *rest)

        return write_manifest

    with replaced(Checkpointing, "_write_manifest", make):
        yield


@mutant("words")
@contextmanager
def prepared_rows_not_restored() -> Iterator[None]:
    """What a checkpoint holds as prepared is not committed after a restore.

    Rows are missing when the kill came between the manifest and the commit.
    """

    def make(original: Any) -> Any:
        async def restore(self: Committer, elements: list[Any], permit: CommitPermit | None) -> None:
            await original(self, elements[:0], permit)

        return restore

    with replaced(Committer, "restore", make):
        yield


@mutant("words")
@contextmanager
def a_repeated_commit_writes_again() -> Iterator[None]:
    """A commit whose answer was lost is repeated, and the sink does not see that it is done.

    Rows are there twice.
    """

    def make(original: Any) -> Any:
        async def commit(self: Any, committables: list[Any], permit: CommitPermit) -> None:
            done = await self._store.list(self._committed(""))
            for name in committables:
                if self._committed(name) in done:
                    body = await self._store.get(self._committed(name))
                    await self._store.put(self._committed(f"{name}-again"), body)
            await original(self, committables, permit)

        return commit

    with replaced(ledger._LedgerWriter, "commit", make):  # noqa: SLF001  # what is broken sits there
        yield


@mutant("words")
@contextmanager
def an_abort_forgets_prepared_rows() -> Iterator[None]:
    """What was prepared for a checkpoint that is aborted is dropped, though the records that made it are behind.

    Rows are missing after an abort, without any kill.
    """

    def make(original: Any) -> Any:
        async def on_control(self: Actor, mail: Any) -> None:
            await original(self, mail)
            if type(mail) is CheckpointDone and mail.permit is None and self.committer is not None:
                machine = self.committer._machine  # noqa: SLF001  # broken from outside
                machine._pending = tuple(  # noqa: SLF001  # broken from outside
                    one for one in machine.pending if one.checkpoint_id != mail.checkpoint_id
                )

        return on_control

    with replaced(Actor, "_on_control", make):
        yield


@mutant("words")
@contextmanager
def a_failed_commit_counts_as_done() -> Iterator[None]:
    """A commit that failed is not repeated.

    Its rows are missing.
    """

    def make(original: Any) -> Any:
        def decide(self: TwoPhaseCommit, event: Any) -> list[Any]:
            if isinstance(event, two_phase.CommitAnswered):
                event = two_phase.CommitAnswered(event.checkpoint_id)
            effects: list[Any] = original(self, event)
            return effects

        return decide

    with replaced(TwoPhaseCommit, "decide", make):
        yield


@mutant("words")
@contextmanager
def finished_before_the_last_commit() -> Iterator[None]:
    """The job is marked as finished when its final checkpoint completed, before the last rows are committed.

    A kill between the two leaves them prepared for ever.
    """

    def make(original: Any) -> Any:
        def completed(self: Checkpointing, checkpoint_id: int, kind: CheckpointKind) -> None:
            if kind is not CheckpointKind.FINAL:
                original(self, checkpoint_id, kind)
                return

            async def end_first() -> None:
                await self._ownership.end(finished=True, next_id=0)
                original(self, checkpoint_id, kind)

            self._spawn(end_first, name="ends too early")

        return completed

    with replaced(Checkpointing, "_completed", make):
        yield


@mutant("words_in_files")
@contextmanager
def a_file_that_is_not_synced() -> Iterator[None]:
    """A file of rows counts as durable without having been synced.

    After a power cut it is short, or empty.
    """

    def make(_: Any) -> Any:
        async def finish(self: PendingFile) -> None:
            async with self._turn:
                if self._is_durable:
                    return
                await self.drain()
                assert self._file is not None
                await self._file.close()
                await self._disk.sync_folder(self._folder)
                self._is_durable = True

        return finish

    with replaced(PendingFile, "finish", make):
        yield


class _ForgetsFolders:
    """A disk on which names are never made durable."""

    def __init__(self, disk: Disk) -> None:
        self._disk = disk

    def __getattr__(self, name: str) -> Any:
        return getattr(self._disk, name)

    async def sync_folder(self, path: str) -> None:
        await self._disk.size(path)


@mutant("words")
@contextmanager
def a_folder_that_is_not_synced() -> Iterator[None]:
    """An object in a folder counts as durable without its name having been synced.

    After a power cut a checkpoint is gone whose rows were committed, and they come again.
    """

    def make(original: Any) -> Any:
        def init(self: FileStore, root: str, disk: Disk) -> None:
            original(self, root, _ForgetsFolders(disk))

        return init

    with replaced(FileStore, "__init__", make):
        yield


@mutant("words_in_files")
@contextmanager
def the_sweep_takes_live_files() -> Iterator[None]:
    """What older attempts had prepared is swept after each commit, and what is being prepared now goes with it.

    The other subtasks find nothing to commit.
    """

    def make(original: Any) -> Any:
        async def commit(self: Committer) -> None:
            await original(self)
            writer: Any = self._writer
            if self._actor.subtask == 0:
                sweeper = copy(writer)
                sweeper._context = replace(writer._context, generation=writer._context.generation + 1)  # noqa: SLF001  # broken from outside
                await sweeper.sweep([])

        return commit

    with replaced(Committer, "commit", make):
        yield
