"""Is true what a scenario says must be true?

:func:`failures` looks at what a run came to and says, in a sentence each, what was expected and what was there.  An
expectation over nothing fails: output that no sink wrote, a state that is not there, a checkpoint that was never
triggered, storage after a checkpoint that never completed.  What can be seen before any run is refused by
``scenario_cast.py``.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from actorflow.model.journal import CalmBegan
from actorflow.simulation.expected_facts import (
    about_checkpoint,
    about_journal,
    about_registry,
    about_status,
    about_storage,
    times,
)
from actorflow.simulation.expected_values import about_output, about_state
from actorflow.simulation.runs import Run
from actorflow.simulation.scenario import (
    AboutCheckpoint,
    AboutJournal,
    AboutOutput,
    AboutRegistry,
    AboutState,
    AboutStatus,
    AboutStorage,
    Expectation,
    Scenario,
)
from actorflow.simulation.scenario_kinds import DURATION

__all__ = ("failures", "needs_calm")


def needs_calm(scenario: Scenario) -> bool:
    """Whether something is expected that only a calm run of the same seed can tell."""
    return any(
        (isinstance(one, AboutOutput | AboutState) and one.compare is not None)
        or (isinstance(one, AboutOutput) and one.doubled_at_least is not None)
        for one in scenario.expectations
    )


def failures(scenario: Scenario, calm: Run | None, storm: Run) -> list[str]:
    """Return a sentence for everything that is not as expected; ``calm`` is there when :func:`needs_calm` says so.

    Weather that never struck comes last: without it, the story is not the one that is told.
    """
    assert calm is not None or not needs_calm(scenario), "somebody forgot the calm run"
    folder = Path(scenario.file).parent if scenario.file else None
    found = []
    for number, expectation in enumerate(scenario.expectations, 1):
        found += [f"[[expect]] {number}: {sentence}" for sentence in _judge(expectation, folder, calm, storm)]
    return [*found, *_unstruck(scenario, storm)]


def _unstruck(scenario: Scenario, run: Run) -> Iterator[str]:
    if not run.storm:
        return
    for number, fault in enumerate(scenario.weather, 1):
        if fault.perhaps:
            continue
        if fault.life > run.lives:
            yield f"[[weather]] {number}: never struck: its process lived {times(run.lives)}; or say perhaps = true"
        elif any(fault is one for one in run.unstruck) or not any(fault is one for one in run.weather):
            yield f"[[weather]] {number}: never struck{_lifted(run)}; if that may be, say perhaps = true"


def _lifted(run: Run) -> str:
    """When the weather lifted, if the job still ran then."""
    for place, line in enumerate(run.lines):
        if isinstance(line.entry, CalmBegan):
            went_on = any(after.process for after in run.lines[place + 1 :])
            return f" before the weather lifted, at {DURATION.write(line.at_ms)}" if went_on else ""
    return ""


def _judge(expectation: Expectation, folder: Path | None, calm: Run | None, storm: Run) -> Iterator[str]:
    match expectation:
        case AboutOutput():
            return about_output(expectation, folder, calm, storm)
        case AboutState():
            return about_state(expectation, calm, storm)
        case AboutCheckpoint():
            return about_checkpoint(expectation, storm)
        case AboutJournal():
            return about_journal(expectation, storm)
        case AboutStorage():
            return about_storage(expectation, storm)
        case AboutRegistry():
            return about_registry(expectation, storm)
        case AboutStatus():
            return about_status(expectation, storm)
