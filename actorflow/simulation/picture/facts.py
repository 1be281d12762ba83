"""What happened, as a picture needs it: lanes, spans and arrows, as values.

Every fact refers to *moments*: the place of an entry in the journal, because many entries share an instant of virtual
time, and their order is what one wants to see.  Times of levels are in microseconds.

``reading.py`` finds them in a journal.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from actorflow.model.journal import Line
from actorflow.simulation.levels import Levels

__all__ = (
    "Arrow",
    "Band",
    "Blocked",
    "Checkpoint",
    "Commit",
    "Facts",
    "Key",
    "Lane",
    "Lived",
    "Snapshot",
    "Strike",
)

DEADLY = ("kill", "power_cut", "lose_disk")
"""Verbs of the weather that end a process."""

Key = tuple[str, str]
"""A process and one of its actors, or of its channels."""


@dataclass(slots=True, kw_only=True)
class Band:
    """One attempt of a process, from its claim to its end; ``how`` it ended, in a word or two."""

    process: str
    life: int
    attempt: int
    generation: int
    since: int
    until: int | None = None
    running: int | None = None
    restored: int | None = None
    how: str = ""
    killed: bool = False


@dataclass(slots=True, kw_only=True)
class Lived:
    """How long an actor was there: ``since`` its state was on its way, ``started`` taking input."""

    since: int
    started: int | None = None
    restored: int | None = None
    finished: int | None = None
    until: int | None = None


@dataclass(slots=True, kw_only=True)
class Snapshot:
    """An actor's part of a checkpoint; the moments that did not come are ``None``."""

    checkpoint: int
    taken: int
    settled: int | None = None
    acknowledged: int | None = None
    declined: int | None = None
    bytes: int = 0
    until: int | None = None
    """When it was cut short: the checkpoint was aborted or the actor died."""


@dataclass(slots=True, kw_only=True)
class Blocked:
    """A channel that waits for the barriers of the others, or an actor (``channel`` empty) that does."""

    checkpoint: int
    channel: str
    since: int
    until: int | None = None


@dataclass(slots=True, kw_only=True)
class Arrow:
    """A barrier on its way: from an actor (the coordinator, where ``sender`` is empty) to an actor's channel.

    ``over`` says what it overtook, if it did.
    """

    checkpoint: int
    process: str
    sender: str
    receiver: str
    channel: str
    sent: int
    arrived: int
    over: str = ""


@dataclass(slots=True, kw_only=True)
class Lane:
    """One actor of one process, over all its lives."""

    process: str
    actor: str
    operators: tuple[str, ...] = ()
    channels: list[str] = field(default_factory=list)
    lives: list[Lived] = field(default_factory=list)
    snapshots: list[Snapshot] = field(default_factory=list)
    blocked: list[Blocked] = field(default_factory=list)
    notes: list[int] = field(default_factory=list)


@dataclass(slots=True, kw_only=True)
class Checkpoint:
    """A checkpoint as its coordinator sees it."""

    process: str
    checkpoint: int
    kind: str
    triggered: int
    acknowledged: list[int] = field(default_factory=list)
    manifest: int | None = None
    completed: int | None = None
    aborted: int | None = None
    why: str = ""
    lost: int | None = None
    """When its process died before it came to an end."""

    @property
    def until(self) -> int | None:
        """When it came to its end, whichever."""
        ends = [end for end in (self.completed, self.aborted, self.lost) if end is not None]
        return min(ends) if ends else None


@dataclass(slots=True, kw_only=True)
class Commit:
    """What a sink did with its output: ``prepared``, ``committed`` or ``discarded``."""

    process: str
    actor: str
    operator: str
    at: int
    what: str
    checkpoint: int | None
    count: int


@dataclass(slots=True, kw_only=True)
class Strike:
    """A fault that took effect."""

    at: int
    verb: str
    target: str
    step: str


@dataclass(slots=True, kw_only=True)
class Facts:
    """All of it."""

    lines: Sequence[Line]
    times_us: list[int]
    levels: Levels | None
    lanes: dict[Key, Lane] = field(default_factory=dict)
    bands: list[Band] = field(default_factory=list)
    checkpoints: list[Checkpoint] = field(default_factory=list)
    arrows: list[Arrow] = field(default_factory=list)
    commits: list[Commit] = field(default_factory=list)
    strikes: list[Strike] = field(default_factory=list)
    requested: list[tuple[int, str]] = field(default_factory=list)
    troubles: list[int] = field(default_factory=list)
    calm: int | None = None

    @property
    def processes(self) -> list[str]:
        """Names of the processes that ran the job, in the order of their first attempt."""
        return list(dict.fromkeys(band.process for band in self.bands))
