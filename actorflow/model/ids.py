"""What things are called: actors, channels, and the numbers of checkpoints and generations.

An actor is one running subtask of a chain and is called after the chain's first operator: ``count/2``.
"""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ("ActorId", "ChannelId")


@dataclass(frozen=True, slots=True, order=True)
class ActorId:
    """One running subtask of a chain; ``str()`` gives ``operator/subtask``."""

    operator: str
    subtask: int

    def __str__(self) -> str:
        return f"{self.operator}/{self.subtask}"


@dataclass(frozen=True, slots=True, order=True)
class ChannelId:
    """A queue from one upstream actor to one downstream actor, within one exchange of the plan."""

    exchange: int
    upstream: ActorId
    downstream: ActorId

    def __str__(self) -> str:
        return f"{self.upstream}>{self.downstream}"
