"""What did one run of a job come to?  Values that expectations, the oracle and the picture read.

Nothing here decides whether a run is right.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from actorflow.errors import CheckpointAborted
from actorflow.model import journal
from actorflow.simulation.scenario import Act, Fault, Step

__all__ = ("Acknowledgement", "CheckpointRecord", "Run", "SeedFailed", "StepRecord")


class SeedFailed(AssertionError):
    """Raised when a seed's run is not as it must be; the message says in what, ``lines`` are its journal.

    ``weather`` is what had been expected until then, and in which life, where a single run failed.
    """

    def __init__(self, message: str, lines: Sequence[journal.Line] = (), weather: Sequence[Fault] = ()) -> None:
        super().__init__(message)
        self.lines, self.weather = lines, tuple(weather)


@dataclass(frozen=True, slots=True, kw_only=True)
class Acknowledgement:
    """An actor's snapshot became durable, at this virtual time."""

    at_ms: int
    bytes: int


@dataclass(slots=True, kw_only=True)
class CheckpointRecord:
    """One checkpoint, from its trigger to one of its ends; with neither time of an end its process died before.

    An id may occur twice: what nobody ever wrote down is counted again by the next owner.
    """

    checkpoint: int
    kind: str
    life: int
    attempt: int
    triggered_at_ms: int
    completed_at_ms: int | None = None
    aborted_at_ms: int | None = None
    why: str = ""
    """The reason of its abort, else empty."""
    bytes: int = 0
    acknowledged: dict[str, Acknowledgement] = field(default_factory=dict)
    """By actor, in the order in which they came."""
    declined: dict[str, str] = field(default_factory=dict)
    """By actor, the reason."""

    @property
    def duration_ms(self) -> int | None:
        """From its trigger until it was completed."""
        return None if self.completed_at_ms is None else self.completed_at_ms - self.triggered_at_ms


@dataclass(slots=True, kw_only=True)
class StepRecord:
    """What was asked of a job from outside, and what came of it: ``done``, or the sentence of a refusal."""

    step: Step
    life: int
    asked_at_ms: int
    ended_at_ms: int | None = None
    outcome: str = ""
    aborted: CheckpointAborted | None = None
    """What a checkpoint was refused or aborted with, if that is what came of it."""
    was_killed: bool = False
    """Whether the process was killed before there was an answer."""

    @property
    def act(self) -> Act:
        """What was asked."""
        return self.step.act

    @property
    def parallelism(self) -> int | None:
        """What was said with it."""
        return self.step.parallelism


@dataclass(slots=True)
class Run:
    """What one run came to."""

    output: dict[str, Counter[bytes]] = field(repr=False)
    """The rows of each sink as an outsider sees them, in one form for equal rows, and how often each is there."""
    state: dict[tuple[str, str, bytes], bytes] = field(repr=False)
    """The final state: (operator, state, key) → value, encoded."""
    digest: str
    lives: int
    faults: Counter[str]
    kills_at: Counter[str]
    again: bool
    """Whether a kill struck in the life that followed a killed one."""
    lines: list[journal.Line] = field(repr=False)
    steps: int = 0
    """How many steps the loop took."""
    rounds: int = 0
    """How many rounds of the loop there was something to be shuffled in."""
    seed: int = 0
    storm: bool = True
    status: str = "FINISHED"
    """How the job ended: the name of a ``JobStatus``."""
    error: str = ""
    """What it failed of for good, else empty."""
    attempts: int = 0
    """How many attempts began, over all lives."""
    ended_at_ms: int = 0
    rows: dict[str, list[Any]] = field(default_factory=dict, repr=False)
    """The same rows as ``output``, as Python values in the order in which an outsider finds them; none in a swarm."""
    values: dict[str, list[tuple[Any, Any]]] = field(default_factory=dict, repr=False)
    """The same state as ``state``, as Python values: ``operator.state`` → pairs of key and value; none in a swarm."""
    checkpoints: list[CheckpointRecord] = field(default_factory=list, repr=False)
    """In the order of their triggers."""
    storage: dict[int | None, dict[str, int]] = field(default_factory=dict, repr=False)
    """Names and sizes of the objects in the job's home, relative to it: after each completed checkpoint, just before
    anything that follows it, and (``None``) in the end.  Empty unless the scenario asks about storage."""
    retained: dict[int | None, tuple[int, ...]] = field(default_factory=dict, repr=False)
    """Which checkpoints are kept, as each completed one says, and (``None``) which could be restored in the end.  Empty
    unless the scenario asks about storage or the registry."""
    disk: dict[str, int] = field(default_factory=dict, repr=False)
    """Paths and sizes of the files of the job's machine in the end; empty unless the scenario asks about the disk."""
    performed: list[StepRecord] = field(default_factory=list, repr=False)
    unperformed: tuple[Step, ...] = ()
    """Steps that did not come before the job was over."""
    weather: tuple[Fault, ...] = ()
    """What was expected, and in which life: a scenario with just these faults does the same."""
    unstruck: tuple[Fault, ...] = ()
    """Those of them that never struck."""

    def checkpoint(self, checkpoint_id: int) -> CheckpointRecord | None:
        """Return a checkpoint: the record that completed, else the last one of this id."""
        found = [record for record in self.checkpoints if record.checkpoint == checkpoint_id]
        done = [record for record in found if record.completed_at_ms is not None]
        return [*found[-1:], *done[-1:]][-1] if found else None
