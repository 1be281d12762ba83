"""Mistakes where records come from: the position of a split, in a snapshot and out of it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from actorflow.runtime.source_reader import DONE, SourceReader
from actorflow.simulation.mutants.mutant import mutant
from actorflow.simulation.replacing import replaced

__all__ = ()


@mutant("words")
@contextmanager
def position_noted_early() -> Iterator[None]:
    """The position is noted when a chunk is read ahead, and not when the actor takes it.

    After a kill, what waited between the two is lost.
    """

    def make(_: Any) -> Any:
        def elements(self: SourceReader) -> list[Any]:
            read = dict(self.positions)
            read.update((split, chunk.resume_at) for split, chunk in self._queue if chunk is not DONE)
            return [[split, None, True] for split in self.done] + [[*under_way, False] for under_way in read.items()]

        return elements

    with replaced(SourceReader, "elements", make):
        yield


@mutant("words")
@contextmanager
def barrier_before_the_position() -> Iterator[None]:
    """The barrier is forwarded before the position of the last chunk is noted.

    Its records are counted before the checkpoint, and read again after a kill.
    """

    def take(original: Any) -> Any:
        def try_take(self: SourceReader) -> Any:
            noted = dict(self.positions)
            chunk = original(self)
            if chunk is not None:
                self.noted_before = noted  # type: ignore[attr-defined]
            return chunk

        return try_take

    def tell(original: Any) -> Any:
        def elements(self: SourceReader) -> list[Any]:
            noted = getattr(self, "noted_before", {})
            return [
                [split, position if done else noted.get(split, position), done]
                for split, position, done in original(self)
            ]

        return elements

    with replaced(SourceReader, "try_take", take), replaced(SourceReader, "elements", tell):
        yield


@mutant("words")
@contextmanager
def position_off_by_one() -> Iterator[None]:
    """A split goes on one record behind the position that the checkpoint holds.

    Each restore loses a record of each split.
    """

    def make(original: Any) -> Any:
        def restore_union(self: SourceReader, elements: list[Any], takers: Any) -> None:
            moved = [[split, at + 1 if type(at) is int else at, done] for split, at, done in elements]
            original(self, moved, takers)

        return restore_union

    with replaced(SourceReader, "restore_union", make):
        yield
