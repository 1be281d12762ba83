"""How much have the storms of some seeds met?

Counted is what really happened, not what was drawn: which edges the protocol's machines went along (machine, phase,
event, phase after), and which faults struck in one run with which, above all the kill at each step with everything
else.  It is for whoever works on the guide, and says whether it is worth anything against chance.

    >>> guided = met(subject, range(1, 201))  # doctest: +SKIP
    >>> by_chance = met(subject, range(1, 201), guided=False)  # doctest: +SKIP
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import combinations
from typing import Any

from actorflow.model import journal
from actorflow.protocol.machine import Machine
from actorflow.simulation.course import course_of_draw
from actorflow.simulation.replacing import replaced
from actorflow.simulation.running import many, run_course
from actorflow.simulation.runs import Run, SeedFailed
from actorflow.simulation.subject import Subject
from actorflow.simulation.swarm import draw

__all__ = ("Edge", "Met", "met", "watched")

Edge = tuple[str, str, str, str]
"""Machine, phase before, event, phase after."""


@dataclass(slots=True)
class Met:
    """What some seeds met, and in how many of them."""

    edges: Counter[Edge] = field(default_factory=Counter)
    pairs: Counter[tuple[str, str]] = field(default_factory=Counter)
    failed: int = 0


@contextmanager
def watched() -> Iterator[set[Edge]]:
    """Collect the edges that any machine goes along while the block lasts."""
    seen: set[Edge] = set()

    def make(original: Any) -> Any:
        def on(self: Machine[Any, Any], event: Any) -> Any:
            before = type(self.phase).__name__
            effects = original(self, event)
            seen.add((type(self).__name__, before, type(event).__name__, type(self.phase).__name__))
            return effects

        return on

    with replaced(Machine, "on", make):
        yield seen


def met(subject: Subject, seeds: Iterable[int], *, guided: bool = True) -> Met:
    """Run the storms of some seeds, drawn by the guide or by chance, and say what they met."""
    found = Met()
    with many():
        for seed in seeds:
            course = course_of_draw(draw(seed, subject.shape, guided=guided), storm=True)
            with watched() as edges:
                try:
                    run = run_course(subject, seed, course, storm=True)
                except SeedFailed:
                    found.failed += 1
                    continue
            found.edges.update(edges)
            found.pairs.update(combinations(_struck(run), 2))
    return found


def _struck(run: Run) -> list[str]:
    """The faults of a run, each once and in order of their names; a kill at a step by its step."""
    struck = {line.entry.step or line.entry.verb for line in run.lines if isinstance(line.entry, journal.WeatherStruck)}
    return sorted(struck)
