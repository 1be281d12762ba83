"""Mistakes of an owner of a home: whom it believes, what it overwrites, what it sweeps away."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from actorflow.protocol import fencing
from actorflow.protocol.fencing import Fencing
from actorflow.protocol.fencing_steps import ReadingBase, ReadingManifests, Running
from actorflow.protocol.ownership import Base
from actorflow.runtime.ownership import Ownership
from actorflow.simulation.mutants.mutant import mutant
from actorflow.simulation.replacing import replaced

__all__ = ()


@mutant("words")
@contextmanager
def no_look_at_the_owners_before_the_permit() -> Iterator[None]:
    """A checkpoint is permitted when its manifest is written, without a look whether another owner took over.

    A process that stalled commits what the other one writes, too.
    """

    def make(original: Any) -> Any:
        def written(self: Fencing, running: Running, checkpoint_id: int) -> list[Any]:
            if checkpoint_id <= running.permitted or running.listing:
                effects: list[Any] = original(self, running, checkpoint_id)
                return effects
            writing = tuple(number for number in running.writing if number != checkpoint_id)
            return self._permit(replace(running, writing=writing, listing=(checkpoint_id,)))

        return written

    with replaced(Fencing, "_written", make):
        yield


@mutant("words")
@contextmanager
def a_manifest_is_overwritten() -> Iterator[None]:
    """A manifest is put, and not put if absent.

    A process that stalled replaces that of the owner after it, whose checkpoint nobody finds any more.
    """

    def make(original: Any) -> Any:
        async def put(self: Ownership, name: str, body: bytes) -> fencing.Answer:
            if self.home.manifest_of(name) is None:
                answer: fencing.Answer = await original(self, name, body)
                return answer
            await self._patiently("put", name, lambda: self._store.put(name, body))
            return fencing.Answer.WRITTEN

        return put

    with replaced(Ownership, "_put", make):
        yield


@mutant("words")
@contextmanager
def the_place_of_another_is_taken_for_ours() -> Iterator[None]:
    """A manifest that was there already is taken for the own one whose answer was lost.

    What was committed for the own one comes again.
    """

    def make(original: Any) -> Any:
        def run(self: Fencing, running: Running, event: Any) -> list[Any]:
            if isinstance(event, fencing.ManifestRead) and event.generation is not None:
                event = replace(event, generation=running.base.generation)
            effects: list[Any] = original(self, running, event)
            return effects

        return run

    with replaced(Fencing, "_run", make):
        yield


@mutant("words")
@contextmanager
def the_oldest_is_restored() -> Iterator[None]:
    """Of several checkpoints the oldest is restored.

    Rows that were committed since are written again.
    """

    def make(original: Any) -> Any:
        def read(self: Fencing, reading: ReadingManifests) -> list[Any]:
            if isinstance(self.phase, ReadingBase):
                reading = replace(reading, candidates=reading.candidates[::-1])
            effects: list[Any] = original(self, reading)
            return effects

        return read

    with replaced(Fencing, "_read", make):
        yield


@mutant("words")
@contextmanager
def the_sweep_takes_what_was_restored() -> Iterator[None]:
    """At a start everything older goes, also the checkpoint that was just restored.

    A kill before the next one leaves nothing to go on from.
    """

    def make(original: Any) -> Any:
        def sweep(self: Fencing, base: Base, **_: Any) -> Any:
            return original(self, base, keep=base.held)

        return sweep

    with replaced(Fencing, "_sweep", make):
        yield


@mutant("words")
@contextmanager
def only_the_first_writes_its_base() -> Iterator[None]:
    """A process that takes over does not write down where it starts.

    The one after it does not know whose checkpoints count.
    """

    def make(original: Any) -> Any:
        async def carry_out(self: Ownership, effect: Any, answers: list[Any]) -> Any:
            if isinstance(effect, fencing.WriteBase) and effect.base.generation > 1:
                return fencing.BaseWritten()
            return await original(self, effect, answers)

        return carry_out

    with replaced(Ownership, "_carry_out", make):
        yield
