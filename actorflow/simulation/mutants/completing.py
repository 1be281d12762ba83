"""Mistakes in what becomes of a checkpoint: who is told, when, and what is deleted."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from actorflow.errors import AbortReason
from actorflow.protocol import coordinator, fencing
from actorflow.protocol.coordinator import CheckpointCoordinator
from actorflow.runtime.ownership import Ownership
from actorflow.simulation.mutants.mutant import mutant
from actorflow.simulation.replacing import replaced

__all__ = ()


@mutant("words")
@contextmanager
def deleted_one_checkpoint_early() -> Iterator[None]:
    """The checkpoint that will be one too many is deleted when the next one is triggered, not when it completed.

    A kill between the two leaves nothing to go on from, and everything is read and written again.
    """

    def make(original: Any) -> Any:
        def begin(self: CheckpointCoordinator, *how: Any) -> list[Any]:
            too_many = self.completed[: max(0, len(self.completed) + 1 - self.retained)]
            return [*original(self, *how), *(coordinator.Subsume(one) for one in too_many)]

        return begin

    with replaced(CheckpointCoordinator, "_begin", make):
        yield


@mutant("words")
@contextmanager
def the_newest_is_subsumed() -> Iterator[None]:
    """Of the checkpoints that are too many the newest is deleted and not the oldest.

    After a kill the job goes on from an older one, or finds none, and rows are written twice.
    """

    def make(original: Any) -> Any:
        def complete(self: CheckpointCoordinator, checkpoint_id: int) -> list[Any]:
            return [
                coordinator.Subsume(checkpoint_id) if isinstance(effect, coordinator.Subsume) else effect
                for effect in original(self, checkpoint_id)
            ]

        return complete

    with replaced(CheckpointCoordinator, "_complete", make):
        yield


@mutant("words")
@contextmanager
def told_before_the_manifest_is_written() -> Iterator[None]:
    """The manifest is written behind, and everyone is told at once that the checkpoint completed.

    Sinks commit, and after a kill the rows come again.
    """

    def make(original: Any) -> Any:
        async def carry_out(self: Ownership, effect: Any, answers: list[Any]) -> Any:
            if not isinstance(effect, fencing.PutManifest):
                return await original(self, effect, answers)
            checkpoint_id = effect.checkpoint_id
            body = self._sealed[checkpoint_id]
            self._announce_manifest(checkpoint_id)
            self.behind = asyncio.ensure_future(self._put(self.home.manifest(checkpoint_id), body))  # type: ignore[attr-defined]
            return fencing.ManifestAnswered(checkpoint_id, fencing.Answer.WRITTEN)

        return carry_out

    with replaced(Ownership, "_carry_out", make):
        yield


@mutant("words")
@contextmanager
def a_lost_answer_is_taken_for_yes() -> Iterator[None]:
    """When the store does not answer, the manifest counts as written.

    What was committed for it comes again when it was not.
    """

    def make(original: Any) -> Any:
        def run(self: fencing.Fencing, running: Any, event: Any) -> list[Any]:
            if isinstance(event, fencing.ManifestAnswered) and event.answer is fencing.Answer.LOST:
                event = fencing.ManifestAnswered(event.checkpoint_id, fencing.Answer.WRITTEN)
            effects: list[Any] = original(self, running, event)
            return effects

        return run

    with replaced(fencing.Fencing, "_run", make):
        yield


@mutant("words")
@contextmanager
def a_lost_answer_is_taken_for_no() -> Iterator[None]:
    """When the store does not answer, the manifest counts as not written and the pieces that it names are deleted.

    If it is there after all, the next start can't restore it.
    """

    def make(original: Any) -> Any:
        def run(self: fencing.Fencing, running: Any, event: Any) -> list[Any]:
            if isinstance(event, fencing.ManifestAnswered) and event.answer is fencing.Answer.LOST:
                return [fencing.AbortCheckpoint(event.checkpoint_id, AbortReason.STORAGE_FAILED)]
            effects: list[Any] = original(self, running, event)
            return effects

        return run

    with replaced(fencing.Fencing, "_run", make):
        yield
