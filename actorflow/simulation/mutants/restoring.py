"""Mistakes in who receives which state."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from actorflow.model.manifest import Redistribution
from actorflow.protocol import recovery
from actorflow.simulation.mutants.mutant import mutant
from actorflow.simulation.replacing import replaced

__all__ = ()


@mutant("ends", "lists")
@contextmanager
def finished_not_restored() -> Iterator[None]:
    """A subtask that had come to its end does so again after a restore.

    What it said at its end is said twice.
    """

    def make(original: Any) -> Any:
        def finished_after(shape: Any, snapshot: Any) -> tuple[bool, ...]:
            return (False,) * len(original(shape, snapshot))

        return finished_after

    with replaced(recovery, "finished_after", make):
        yield


@mutant("lists")
@contextmanager
def a_union_for_one_only() -> Iterator[None]:
    """A list that everyone is to receive whole goes to the first subtask only.

    The others forget what they knew.
    """

    def make(original: Any) -> Any:
        def deal_lists(shape: Any, snapshot: Any, groups: int) -> list[list[Any]]:
            dealt: list[list[Any]] = original(shape, snapshot, groups)
            return [
                pieces
                if subtask == 0
                else [
                    piece
                    for piece in pieces
                    if piece.redistribution is not Redistribution.UNION or piece.state.startswith("actorflow.")
                ]
                for subtask, pieces in enumerate(dealt)
            ]

        return deal_lists

    with replaced(recovery, "_deal_lists", make):
        yield


@mutant("words", "two_sources")
@contextmanager
def a_range_of_key_groups_too_short() -> Iterator[None]:
    """At another parallelism each subtask takes one key group less than it owns.

    Those keys begin anew.
    """

    def make(original: Any) -> Any:
        def deal_keyed(shape: Any, snapshot: Any) -> list[list[Any]]:
            return [
                [
                    replace(piece, only=range(piece.only.start, piece.only.stop - 1)) if piece.only else piece
                    for piece in pieces
                ]
                for pieces in original(shape, snapshot)
            ]

        return deal_keyed

    with replaced(recovery, "_deal_keyed", make):
        yield
