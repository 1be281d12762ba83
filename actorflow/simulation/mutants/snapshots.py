"""Mistakes in one actor's contribution to a checkpoint."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from actorflow.abc.state import StateSnapshot
from actorflow.model.ids import ActorId
from actorflow.runtime.actor import Actor
from actorflow.runtime.async_lane import AsyncLane
from actorflow.runtime.checkpointing import Checkpointing
from actorflow.runtime.snapshots import ActorSnapshot, Instant
from actorflow.simulation.mutants.mutant import mutant
from actorflow.simulation.replacing import replaced
from actorflow.state.memory import MemoryBackend, MemorySnapshot

__all__ = ()


class _TakenWhenRead(StateSnapshot):
    """Freezes nothing until somebody reads it."""

    def __init__(self, freeze: Any, backend: MemoryBackend) -> None:
        self._freeze, self._backend = freeze, backend
        self._taken: MemorySnapshot | None = None

    def _now(self) -> MemorySnapshot:
        if self._taken is None:
            taken: MemorySnapshot = self._freeze(self._backend)
            self._taken = taken
        return self._taken

    def operators(self) -> list[str]:
        return self._now().operators()

    def blocks(self, operator: str) -> Iterator[bytes]:
        return self._now().blocks(operator)

    def release(self) -> None:
        if self._taken is not None:
            self._taken.release()


@mutant("words")
@contextmanager
def snapshot_sees_later_writes() -> Iterator[None]:
    """State is frozen when it is written behind and not at the barrier.

    What came in between is in the checkpoint, and counts once more after a kill.
    """

    def make(original: Any) -> Any:
        def freeze(self: MemoryBackend) -> StateSnapshot:
            return _TakenWhenRead(original, self)

        return freeze

    with replaced(MemoryBackend, "freeze", make):
        yield


@mutant("calls")
@contextmanager
def calls_under_way_not_in_the_snapshot() -> Iterator[None]:
    """A snapshot holds the inputs that wait for a call, and not those of the calls that are being made.

    A kill loses them.
    """

    def make(original: Any) -> Any:
        def inputs(self: AsyncLane) -> list[Any]:
            everything: list[Any] = original(self)
            return everything[len(self._active) :]

        return inputs

    with replaced(AsyncLane, "inputs", make):
        yield


@mutant("words", "words_in_files")
@contextmanager
def acknowledged_before_the_rows_are_durable() -> Iterator[None]:
    """A sink's cut counts as soon as it is made, though its rows are still on their way to where they are kept.

    After a kill there is nothing to commit.
    """

    def make(original: Any) -> Any:
        def took_snapshot(self: Checkpointing, actor: Actor, instant: Instant) -> None:
            instant.rested = None
            original(self, actor, instant)

        return took_snapshot

    with replaced(Checkpointing, "took_snapshot", make):
        yield


@mutant("words", "two_sources")
@contextmanager
def acknowledgement_of_an_old_attempt() -> Iterator[None]:
    """What actors of an attempt that died acknowledged is taken for their acknowledgement of the next checkpoint.

    A checkpoint of two different moments.
    """

    def stop(original: Any) -> Any:
        def stopped(self: Checkpointing, reason: Any) -> None:
            newest = max(self._pending, default=None)
            if newest is not None:
                self._ownership.left = dict(self._pending[newest].acknowledged)  # type: ignore[attr-defined]
            original(self, reason)

        return stopped

    def trigger(original: Any) -> Any:
        def triggered(self: Checkpointing, request_id: int | None, kind: Any) -> None:
            original(self, request_id, kind)
            left: dict[ActorId, ActorSnapshot] = getattr(self._ownership, "left", {})
            self._ownership.left = {}  # type: ignore[attr-defined]
            newest = max(self._pending, default=None)
            for actor, snapshot in left.items():
                if newest is not None and actor in self._actors:
                    self._acknowledge(actor, newest, snapshot, 0)

        return triggered

    def acknowledge(original: Any) -> Any:
        def acknowledged(self: Checkpointing, actor: ActorId, checkpoint_id: int, *rest: Any) -> None:
            pending = self._pending.get(checkpoint_id)
            if pending is None or actor not in pending.acknowledged:  # the first one counts
                original(self, actor, checkpoint_id, *rest)

        return acknowledged

    with (
        replaced(Checkpointing, "stop", stop),
        replaced(Checkpointing, "_trigger", trigger),
        replaced(Checkpointing, "_acknowledge", acknowledge),
    ):
        yield
