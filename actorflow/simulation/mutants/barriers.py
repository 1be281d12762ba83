"""Mistakes around barriers: what lies before one, what waits behind one, and what an abort leaves."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from actorflow.model.elements import Barrier, Batch
from actorflow.runtime.actor import Actor, CheckpointDone
from actorflow.runtime.mailbox import Channel, Mailbox
from actorflow.runtime.output import Output
from actorflow.simulation.mutants.mutant import mutant
from actorflow.simulation.replacing import replaced

__all__ = ()


@mutant("two_sources", "words")
@contextmanager
def channel_not_blocked() -> Iterator[None]:
    """A channel whose barrier came is not blocked while the others are awaited.

    Records of after the barrier are in the snapshot, and come once more after a kill.
    """

    def make(_: Any) -> Any:
        def block(self: Mailbox, channel: Channel) -> None:
            pass

        return block

    with replaced(Mailbox, "block", make):
        yield


@mutant("words")
@contextmanager
def no_flush_before_the_barrier() -> Iterator[None]:
    """What waits for company in a buffer is sent after the barrier and not before.

    The source's position counts it, no snapshot downstream does, and a kill loses it.
    """

    def make(original: Any) -> Any:
        def control(self: Output, element: Any) -> None:
            if type(element) is not Barrier:
                original(self, element)
                return
            for channel in self.all_channels:
                if self.remainder:
                    self.remainder.append((channel, element))
                else:
                    channel.put_control(element)

        return control

    with replaced(Output, "control", make):
        yield


@mutant("words")
@contextmanager
def remainder_dropped_at_the_barrier() -> Iterator[None]:
    """What found no room in a channel when a barrier goes out is forgotten.

    Under backpressure rows are missing.
    """

    def make(original: Any) -> Any:
        def control(self: Output, element: Any) -> None:
            if type(element) is Barrier:
                self.flush()
                self.remainder = deque(one for one in self.remainder if type(one[1]) is not Batch)
            original(self, element)

        return control

    with replaced(Output, "control", make):
        yield


@mutant("two_sources", "words")
@contextmanager
def cancelled_receive_loses_a_batch() -> Iterator[None]:
    """An abort cancels whoever waits for the next batch, and the batch that it had in hand is lost.

    Rows are missing after an abort, without any kill.
    """

    def make(original: Any) -> Any:
        async def on_control(self: Actor, mail: Any) -> None:
            await original(self, mail)
            if type(mail) is CheckpointDone and mail.permit is None:
                ready = self.mailbox.ready
                if ready and type(ready[0].queue[0]) is Batch:
                    self.mailbox.try_take()

        return on_control

    with replaced(Actor, "_on_control", make):
        yield
