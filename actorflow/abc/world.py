"""Everything that a process may not decide for itself: time, chance, storage, disk, and who is told.

In production it is the real world; in simulation it is a storm with a seed.  Same shell, same machines, no patching.
"""

from __future__ import annotations

from collections.abc import Awaitable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:  # the journal has many entries, and a program that builds a job needs none of them
    from actorflow.abc.disk import Disk
    from actorflow.abc.objects import ObjectStores
    from actorflow.model.ids import ActorId
    from actorflow.model.journal import Entry

__all__ = ("Clock", "Entropy", "Load", "Observer", "World")


class Clock(Protocol):
    """Time as one process sees it."""

    def now_ms(self) -> int:
        """Milliseconds of a clock that never goes back; only differences mean something."""
        ...

    def now_us(self) -> int:
        """The same clock in microseconds, for measuring how long something took; virtual in a simulated world."""
        ...

    def wall_ms(self) -> int:
        """Milliseconds since 1970, as far as this machine knows; may jump."""
        ...

    def slice_is_over(self) -> bool:
        """Whether whoever runs should let the others have a turn now (in production about once a millisecond)."""
        ...

    async def sleep(self, delay_ms: float) -> None:
        """Wait."""
        ...


class Entropy(Protocol):
    """Chance.  Draws are keyed by their purpose, so that one draw more somewhere does not change the others."""

    def uniform(self, purpose: str) -> float:
        """Draw from [0, 1)."""
        ...


class Observer(Protocol):
    """Whoever is told what happens."""

    def announce(self, entry: Entry) -> None:
        """Take one entry of the journal; must not raise and must not wait."""
        ...


class Load(Protocol):
    """What stands in for slow or faulty code of operators in a simulated world."""

    def before_batch(self, actor: ActorId, operators: tuple[str, ...]) -> Awaitable[None] | None:
        """Called before each batch; may raise what the operator's code would, or return something to wait for."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class World:
    """The seams of one process.  ``host`` and ``process`` are what a claim in storage says about its owner."""

    clock: Clock
    entropy: Entropy
    objects: ObjectStores
    disk: Disk
    observer: Observer
    host: str
    process: str
    load: Load | None = None
    owns_process: bool = False
    """Whether this process is ours alone, so that collector and interpreter may be tuned (``af.run`` and the CLI)."""
