"""Is a whole source quiet?

Each subtask knows its own splits (``idleness.py``).  Event time may go on with the clock only while **every** subtask
that has not ended is quiet: idle, ready for what would come, and holding nothing back.  One per source, kept by whoever
runs its subtasks; it forgets nothing and asks nobody, so a subtask that says nothing is taken to be stirring.

Pure: no clock.
"""

from __future__ import annotations

from dataclasses import dataclass

from actorflow.protocol.machine import Machine

__all__ = (
    "Effect",
    "Event",
    "HoldTime",
    "LetTimePass",
    "Quiet",
    "Silent",
    "Stirring",
    "SubtaskEnded",
    "SubtaskQuiet",
    "SubtaskStirred",
)


@dataclass(frozen=True, slots=True)
class SubtaskQuiet:
    """A subtask reports that nothing comes there."""

    subtask: int


@dataclass(frozen=True, slots=True)
class SubtaskStirred:
    """A subtask reports that this may not be said any more."""

    subtask: int


@dataclass(frozen=True, slots=True)
class SubtaskEnded:
    """A subtask has ended and won't read any more."""

    subtask: int


Event = SubtaskQuiet | SubtaskStirred | SubtaskEnded


@dataclass(frozen=True, slots=True)
class LetTimePass:
    """Tell every subtask that has not ended that ``TimePasses``."""


@dataclass(frozen=True, slots=True)
class HoldTime:
    """Tell every subtask that has not ended that time is held."""


Effect = LetTimePass | HoldTime


@dataclass(frozen=True, slots=True)
class Stirring:
    """Some subtask is not quiet, or all have ended."""


@dataclass(frozen=True, slots=True)
class Silent:
    """Every subtask that has not ended is quiet."""


class Quiet(Machine[Event, Effect]):
    """Are all splits of all subtasks of one source idle?

    | phase    | event                        | effects → next phase   |
    |----------|------------------------------|------------------------|
    | Stirring | SubtaskQuiet, SubtaskEnded   | LetTimePass → Silent   |
    | Stirring | SubtaskQuiet, SubtaskStirred, SubtaskEnded | – → Stirring |
    | Silent   | SubtaskStirred               | HoldTime → Stirring    |
    | Silent   | SubtaskQuiet, SubtaskEnded   | – → Silent             |
    | Silent   | SubtaskEnded                 | – → Stirring           |
    """

    __slots__ = ("quiet", "stirring")

    phase: Stirring | Silent

    def __init__(self, subtasks: int) -> None:
        super().__init__(Stirring())
        self.stirring = list(range(subtasks))
        self.quiet: list[int] = []

    def decide(self, event: Event) -> list[Effect]:
        for some in (self.stirring, self.quiet):
            if event.subtask in some:
                some.remove(event.subtask)
        match event:
            case SubtaskQuiet(subtask):
                self.quiet.append(subtask)
            case SubtaskStirred(subtask):
                self.stirring.append(subtask)
        before, self.phase = self.phase, Stirring() if self.stirring or not self.quiet else Silent()
        match before, self.phase:
            case Stirring(), Silent():
                return [LetTimePass()]
            case Silent(), Stirring() if self.stirring:
                return [HoldTime()]
        return []

    def check(self) -> None:
        assert len({*self.stirring, *self.quiet}) == len(self.stirring) + len(self.quiet), "a subtask is in two places"
        assert isinstance(self.phase, Silent) == (bool(self.quiet) and not self.stirring)
