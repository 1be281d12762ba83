"""What do all machines have in common?

Events in, effects out: ``on(event)`` decides synchronously and returns what is to be done, in order.  Between two
awaits nothing else runs, so a machine that never awaits needs no lock.  It keeps the story of its last events, because
the question after a failed assertion is always the same: what happened before?

A machine's docstring holds its transition table, which a test compares with every edge of a small world::

    | phase        | event        | effects → next phase                     |
    |--------------|--------------|------------------------------------------|
    | Idle         | Asked        | Start, SetTimer? → Busy                  |
    | Idle, Busy   | Cancelled    | – → Idle                                 |

Several phases or events in one cell are separated by commas; ``–`` is no effect; a name stands for one or several of
its kind in a row; ``?`` marks an effect that is sometimes absent; ``same`` is the phase before.

Pure: no clock, no storage, no logging.  Under ``python -O`` assertions are gone and so are these safeguards.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Generic, TypeVar

__all__ = ("STORY_LENGTH", "Machine", "replay")

Event = TypeVar("Event")
Effect = TypeVar("Effect")

STORY_LENGTH = 64
"""How many events a machine remembers."""


class Machine(ABC, Generic[Event, Effect]):
    """The shape of a machine: subclasses say what they decide and what must always hold.

    ``phase`` is one of a union of frozen dataclasses; everything else that a subclass remembers is an immutable value
    or a list, dict, set or deque of such, so that the walk in the tests can copy and compare it.
    """

    __slots__ = ("phase", "story")

    phase: Any
    story: deque[tuple[Event, tuple[Effect, ...]]]

    def __init__(self, phase: Any) -> None:
        self.phase = phase
        self.story = deque(maxlen=STORY_LENGTH)

    def on(self, event: Event) -> list[Effect]:
        """Take what happened and return what is to be done, in this order."""
        try:
            effects = self.decide(event)
            self.story.append((event, tuple(effects)))
            self.check()
        except AssertionError as error:
            error.add_note(f"while it took {event!r}\n{self.tell()}")
            raise
        return effects

    @abstractmethod
    def decide(self, event: Event) -> list[Effect]:
        """Match on ``(phase, event)``; called by :meth:`on` alone."""

    @abstractmethod
    def check(self) -> None:
        """Assert what must always hold."""

    def tell(self) -> str:
        """The story so far, oldest first, for people and for a regression test."""
        lines = [f"{type(self).__name__} is {self.phase!r} after"]
        lines += [f"    {event!r} -> {list(effects)!r}" for event, effects in self.story]
        return "\n".join(lines)


M = TypeVar("M", bound=Machine[Any, Any])


def replay(factory: Callable[[], M], story: Iterable[tuple[Any, Sequence[Any]]]) -> M:
    """Tell a story to a new machine; assert that it decides the same and return it.

    A story is the last :data:`STORY_LENGTH` events.  Where more went before, ``factory`` builds the machine as it was
    then.
    """
    machine = factory()
    for number, (event, expected) in enumerate(story):
        effects = machine.on(event)
        assert list(expected) == effects, (
            f"event {number} of the story, {event!r}, now leads to {effects!r} and not to {list(expected)!r}"
        )
    return machine
