"""Is true what a scenario says must be true?

:func:`failures` looks at what a run came to and says, in a sentence each, what was expected and what was there.  An
expectation over nothing fails: output that no sink wrote, a state that is not there, a checkpoint that was never
triggered, storage after a checkpoint that never completed.  So do a step that came to nothing and weather that never
struck.  What can be seen before any run is refused by ``scenario_cast.py``.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from actorflow.model.elements import CheckpointKind
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
from actorflow.simulation.runs import Run, StepRecord
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
    return [*found, *_undone(scenario, storm), *_unstruck(scenario, storm)]


def _undone(scenario: Scenario, run: Run) -> Iterator[str]:
    """Steps that did not come to what they ask for, though nobody expects that.

    A checkpoint whose process was killed is no refusal: that is the weather's, and what became of it is in the journal.
    """
    for record in run.performed:
        step = record.step
        is_cut_off = step.act == "checkpoint" and record.was_killed
        if record.outcome == "done" or step.perhaps or is_cut_off or _is_foreseen(scenario, record):
            continue
        number = next(number for number, one in enumerate(scenario.steps, 1) if one is step)
        yield (
            f"[[step]] {number}: do = {step.act!r} came to nothing: {record.outcome}; "
            "expect that, or if it may be, say perhaps = true"
        )


def _is_foreseen(scenario: Scenario, record: StepRecord) -> bool:
    """Whether the scenario expects that a checkpoint is refused, or aborted, as this one was."""
    if record.act != "checkpoint" or (aborted := record.aborted) is None:
        return False
    name = "CheckpointRejected" if aborted.reason.is_preflight else "CheckpointAborted"
    fields = {"reason": aborted.reason.name, "checkpoint": aborted.checkpoint_id, "kind": CheckpointKind.REQUESTED}
    for about in scenario.expectations:
        match about:
            case AboutCheckpoint(checkpoint=number) if number is not None and number == aborted.checkpoint_id:
                if about.aborted is not None or about.declined_by is not None:
                    return True
            case AboutJournal(entry=entry, where=where) if entry == name and about.at_most != 0:
                if all(fields.get(word, value) == value for word, value in where.items()):
                    return True
    return False


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
