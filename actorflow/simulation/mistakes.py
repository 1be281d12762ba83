"""What goes wrong that neither the weather did nor the user, even if the next attempt mends it?

An assertion that fails, an object that is missing though one process only was about, a value of the wrong type: a
restart hides such a thing from the output, and from users for years.  In calm weather every restart is one.
"""

from __future__ import annotations

from actorflow.model import journal
from actorflow.simulation.course import Course
from actorflow.simulation.runs import SeedFailed

__all__ = ("MISTAKES", "Mistakes")

MISTAKES = (
    "AssertionError",
    "AttributeError",
    "CorruptObject",
    "IndexError",
    "InvalidConfig",
    "InvalidJob",
    "InvalidStateError",
    "InvalidValue",
    "KeyError",
    "NameError",
    "RecursionError",
    "RestoreFailed",
    "RuntimeError",
    "StopAsyncIteration",
    "StopIteration",
    "TypeError",
    "UnboundLocalError",
    "ZeroDivisionError",
)
"""Causes of a failure that are never the weather's."""


class Mistakes:
    """Reads the journal of a run for mistakes; one that the course foresees is none."""

    READS = (
        journal.WeatherStruck,
        journal.ActorFailed,
        journal.JobFailed,
        journal.JobRestarting,
        journal.FellBack,
    )

    def __init__(self, course: Course, *, storm: bool) -> None:
        self._course, self._storm = course, storm
        self.wrong = ""
        self.several = False
        """Whether more than one process ran the job; then one may look for what another has removed."""

    def read(self, line: journal.Line) -> None:
        """Take the next line of the journal."""
        match line.entry:
            case journal.WeatherStruck(verb="replace"):
                self.several = True
            case journal.ActorFailed(cause=cause, detail=detail) | journal.JobFailed(cause=cause, detail=detail):
                if cause in MISTAKES and not self._is_foreseen(cause):
                    self._note(f"{cause}: {detail}")
            case journal.JobRestarting(cause=cause, detail=detail):
                if (cause in MISTAKES or not self._storm) and not self._is_foreseen(cause, detail):
                    self._note(f"the job restarts after {cause}: {detail}")
            case journal.FellBack(subject=subject, why=why):
                cause = why.partition(":")[0]
                if cause in MISTAKES and not self._is_foreseen(cause):
                    self._note(f"{subject}: {why}")

    def check(self) -> None:
        """Raise ``SeedFailed`` for the first mistake so far."""
        if self.wrong:
            raise SeedFailed(self.wrong)

    def _is_foreseen(self, cause: str, detail: str = "") -> bool:
        if self.several and cause == "RestoreFailed":
            return True
        return cause in self._course.foreseen or any(other in detail for other in self._course.foreseen)

    def _note(self, sentence: str) -> None:
        self.wrong = self.wrong or sentence
