"""What does a scenario say?  Values only: what runs, what goes wrong and when, what must be true.

A scenario is a TOML file; ``scenario_reading.py`` reads one and refuses what it does not understand,
``scenario_writing.py`` writes one, ``play.py`` plays one, ``expectations.py`` says whether what must be true is true.
The grammar stands in ``scenarios/README.md``, with examples.

All times are virtual milliseconds.  Weather is the weather of ``weather.py``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from actorflow.simulation.weather import Trigger, Weather

__all__ = (
    "AboutCheckpoint",
    "AboutJournal",
    "AboutOutput",
    "AboutRegistry",
    "AboutState",
    "AboutStatus",
    "AboutStorage",
    "Act",
    "Expectation",
    "Fault",
    "Input",
    "Mention",
    "Output",
    "Scenario",
    "Schedule",
    "Seeds",
    "Step",
    "TimedRecord",
)

Act = Literal["checkpoint", "stop", "drain", "cancel", "rescale", "start"]
"""What whoever runs the job does: ``rescale`` stops it and starts it again at another parallelism, ``start`` starts one
more process of the same job, whatever else runs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Seeds:
    """Seeds ``first`` to ``first + count - 1``; how many the file asks for when nobody else does."""

    first: int = 1
    count: int = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class TimedRecord:
    """One inline record; ``at_ms`` places it in time."""

    value: Any
    at_ms: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Input:
    """What a source of the job reads in its place.

    ``count`` records that ``make(index, draw)`` makes, ``records``, or the ``lines`` of a file beside the scenario.
    ``splits`` shares them out; ``broker`` puts them on the simulated broker and reads them from there.
    """

    source: str
    make: str | None = None
    count: int | None = None
    records: tuple[TimedRecord, ...] | None = None
    lines: str | None = None
    per_second: float | None = None
    splits: int = 1
    broker: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Output:
    """Which stand-in a sink of the job gets."""

    sink: str
    stand_in: Literal["ledger", "broker", "database", "files"] = "ledger"


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """What is done to the job from outside, at a virtual time or after an entry of the journal.

    One that never comes, or that nothing comes of, is a failure, unless it is to be done ``perhaps``.
    """

    when: Trigger
    act: Act
    parallelism: int | None = None
    perhaps: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class AboutOutput:
    """What an outsider sees in the end, of one sink or of all.

    ``compare`` is against the calm run of the same seed; ``rows`` is the exact multiset, ``contains`` a part of it,
    ``invariant`` a ``module:function`` that raises ``AssertionError`` about the rows.
    """

    sink: str | None = None
    compare: Literal["same as the calm run", "at least the calm run"] | None = None
    rows: tuple[Any, ...] | None = None
    contains: tuple[Any, ...] | None = None
    count: int | None = None
    doubled_at_least: int | None = None
    invariant: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class AboutState:
    """The final state: all of it as in the calm run, or ``keys`` of ``operator.state``."""

    state: str | None = None
    compare: Literal["same as the calm run"] | None = None
    keys: tuple[tuple[Any, Any], ...] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class AboutCheckpoint:
    """One checkpoint by its id, or every one that completed (``checkpoint`` is ``None``)."""

    checkpoint: int | None = None
    kind: str | None = None
    completes_within_ms: int | None = None
    takes_at_least_ms: int | None = None
    bytes_at_least: int | None = None
    bytes_at_most: int | None = None
    actors: tuple[str, ...] | None = None
    aborted: str | None = None
    declined_by: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Mention:
    """Another entry of the journal, with these fields; those in ``same`` are as in the entry that is judged."""

    entry: str
    where: Mapping[str, Any] = field(default_factory=dict)
    same: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class AboutJournal:
    """How often an entry with these fields occurs (at least once, unless said), and what surrounds each of them.

    ``before``: some entry of the other kind follows every one of these, and none comes earlier; ``after``: one comes
    earlier than every one of these.
    """

    entry: str
    where: Mapping[str, Any] = field(default_factory=dict)
    at_least: int | None = None
    at_most: int | None = None
    before: Mention | None = None
    after: Mention | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class AboutStorage:
    """Which objects of the job's home match a pattern: how many (at least one, unless said), or just these ``names``.

    It is looked after a checkpoint completed, or in the end; ``on_disk`` is about the files of the machine instead.
    """

    pattern: str
    after_checkpoint: int | None = None
    names: tuple[str, ...] | None = None
    at_least: int | None = None
    at_most: int | None = None
    on_disk: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class AboutRegistry:
    """Which completed checkpoints are retained, after a checkpoint completed or in the end."""

    retained: tuple[int, ...]
    after_checkpoint: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class AboutStatus:
    """How the job ended (``FINISHED``, ``STOPPED``, ``CANCELED``, ``FAILED``), in how many lives and attempts."""

    status: str | None = None
    lives: int | None = None
    attempts: int | None = None
    message_contains: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """One weather of a scenario; one that names a ``life`` is to come only once the process lives for that time.

    Lives count from 1.  One that never strikes is a failure, because then the story is not the one that is told, unless
    it is to come ``perhaps``.
    """

    weather: Weather
    life: int = 1
    perhaps: bool = False


Expectation = AboutOutput | AboutState | AboutCheckpoint | AboutJournal | AboutStorage | AboutRegistry | AboutStatus


@dataclass(frozen=True, slots=True, kw_only=True)
class Schedule:
    """How much of the order of events is the seed's: rounds of the loop that are shuffled, the rest is canonical.

    The shrinker writes it.  ``None`` is all of them; ``batch_us`` is the most a batch takes, drawn per batch.  With
    ``earlier_parallelism`` a life whose parallelism its checkpoint refuses is started with an earlier one, as in the
    swarm, which draws ``lives`` without knowing the job; in a story that is told, such a refusal is a failure.
    """

    shuffle_rounds: int | None = None
    batch_us: int = 2_000
    earlier_parallelism: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Scenario:
    """A story: a job, its world, and what must be true in the end."""

    title: str
    job: str
    story: str = ""
    arguments: Mapping[str, Any] = field(default_factory=dict)
    seeds: Seeds = Seeds()
    environment: Mapping[str, Any] = field(default_factory=dict)
    inputs: tuple[Input, ...] = ()
    outputs: tuple[Output, ...] = ()
    lives: tuple[int, ...] = ()
    """With which parallelism each life is started, the last one for all that follow; none: as ``environment`` says."""
    weather: tuple[Fault, ...] = ()
    steps: tuple[Step, ...] = ()
    expectations: tuple[Expectation, ...] = ()
    calm_within_ms: int = 60_000
    schedule: Schedule = Schedule()
    file: str = ""
