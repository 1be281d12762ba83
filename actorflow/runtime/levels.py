"""How full is everything in a running attempt, at this moment?

For whoever draws a picture of a job, or looks for the actor that holds the others up.  Counted when somebody asks and
never otherwise: a job of which nobody asks pays nothing.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from actorflow.model.elements import Batch
from actorflow.runtime.actor import Actor

__all__ = ("ActorLevel", "ChannelLevel", "levels_of")


@dataclass(frozen=True, slots=True)
class ChannelLevel:
    """What waits in one input channel: records, in so many batches.  ``blocked``: a barrier holds it up."""

    channel: str
    records: int
    batches: int
    blocked: bool


@dataclass(frozen=True, slots=True)
class ActorLevel:
    """What waits at one actor.

    ``held`` are records that it has emitted and that found no room downstream, ``calls`` the async calls that have not
    left it.
    """

    actor: str
    operators: tuple[str, ...]
    channels: tuple[ChannelLevel, ...]
    held: int
    calls: int


def levels_of(actors: Iterable[Actor]) -> tuple[ActorLevel, ...]:
    """Count what waits at each actor, in the order of the plan."""
    return tuple(
        ActorLevel(
            str(actor.id),
            actor.operators,
            tuple(
                ChannelLevel(str(channel.id), _records(channel.queue), channel.used, channel.blocked)
                for channel in actor.mailbox.channels
            ),
            _records(element for _, element in actor.output.remainder),
            0 if actor.lane is None else actor.lane.unfinished,
        )
        for actor in actors
    )


def _records(elements: Iterable[object]) -> int:
    return sum(len(element) for element in elements if isinstance(element, Batch))
