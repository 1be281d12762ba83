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

from actorflow.protocol.machine import Machine
from actorflow.simulation.course import course_of_draw
from actorflow.simulation.replacing import replaced
from actorflow.simulation.running import many, run_course
from actorflow.simulation.runs import Run, SeedFailed
from actorflow.simulation.subject import Subject
from actorflow.simulation.swarm import STEPS, Draw, draw

__all__ = ("Edge", "Met", "met", "watched")

Edge = tuple[str, str, str, str]
"""Machine, phase before, event, phase after."""


@dataclass(slots=True)
class Met:
    """What some seeds met, and in how many of them."""

    edges: Counter[Edge] = field(default_factory=Counter)
    pairs: Counter[tuple[str, str]] = field(default_factory=Counter)
    """Any two faults that struck in one run."""
    failed: int = 0

    @property
    def steps_and_faults(self) -> int:
        """How many pairs of a kill at a step and something else struck in one run."""
        return sum((one in STEPS) != (other in STEPS) for one, other in self.pairs)


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
            drawn = draw(seed, subject.shape, guided=guided)
            with watched() as edges:
                try:
                    run = run_course(subject, seed, course_of_draw(drawn, storm=True), storm=True)
                except SeedFailed:
                    found.failed += 1
                    continue
            found.edges.update(edges)
            found.pairs.update(combinations(_struck(drawn, run), 2))
    return found


def _struck(drawn: Draw, run: Run) -> list[str]:
    """What was chosen and struck, each once and in order of the names."""
    aims = zip(drawn.weather, drawn.aims, strict=True)
    return sorted({aim for weather, aim in aims if not any(fault.weather is weather for fault in run.unstruck)})
