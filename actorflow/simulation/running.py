"""How is one run carried out, and did two of them do the same?"""

from __future__ import annotations

import gc
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager

from actorflow.model.journal import Line
from actorflow.simulation.course import Course
from actorflow.simulation.lives import Lives
from actorflow.simulation.loop import run as run_simulated
from actorflow.simulation.loop import surroundings_frozen
from actorflow.simulation.runs import Run, SeedFailed
from actorflow.simulation.subject import Subject

__all__ = ("first_difference", "many", "run_course", "some_seeds")


def run_course(subject: Subject, seed: int, course: Course, *, storm: bool) -> Run:
    """Run a job on a loop of its own; whatever goes wrong is raised as ``SeedFailed``, with the journal so far."""
    begun: list[Lives] = []

    async def run() -> Run:
        begun.append(Lives(subject, seed, course, storm=storm))
        return await begun[0].run()

    with surroundings_frozen():
        try:
            return run_simulated(run, seed=seed)
        except Exception as error:
            weather = "its storm" if storm else "calm weather"
            lines, expected = (begun[0].told, begun[0].expected) if begun else ((), ())
            raise SeedFailed(f"seed {seed}, in {weather}: {_sentence(error)}", lines, expected) from error
        finally:
            begun.clear()  # it holds the whole world of the run
            gc.collect()  # nothing was collected meanwhile, and more at once takes longer for each


def _sentence(error: Exception) -> str:
    return str(error) if isinstance(error, SeedFailed) else f"{type(error).__name__}: {error}"


def first_difference(one: Sequence[Line], other: Sequence[Line]) -> str:
    """Say where two journals part."""
    for left, right in zip(one, other, strict=False):
        if (left.at_ms, left.process, left.entry) != (right.at_ms, right.process, right.entry):
            return (
                f"line {left.sequence} is {left.entry} at {left.at_ms} ms, and then {right.entry} at {right.at_ms} ms"
            )
    return f"one journal has {len(one)} lines and the other {len(other)}"


def some_seeds(seeds: Iterable[int]) -> Iterator[int]:
    """Yield the seeds of a check; raise ``ValueError`` when there are none, because that would pass in any case."""
    is_there = False
    for seed in seeds:
        is_there = True
        yield seed
    if not is_there:
        raise ValueError("there are no seeds, so nothing was checked: say which, such as seeds=range(20)")


@contextmanager
def many() -> Iterator[None]:
    """Where many runs follow one another: the collector does not look at their surroundings again and again."""
    gc.collect()
    with surroundings_frozen():
        try:
            yield
        finally:
            gc.collect()
