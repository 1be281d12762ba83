"""What can go wrong, and when?  Faults as values: frozen, comparable, easy to print, to draw and to leave out.

Every value says first *when* it strikes: at a virtual time (:class:`At`), after an entry of the journal
(:class:`After`), or at an operation on the object store, the disk, the broker or the database (:class:`OnObject`,
:class:`OnDisk`, :class:`OnBroker`, :class:`OnDatabase`).  Each strikes once; those that fail operations then fail the
next ``count`` that match.  Patterns are those of the shell (``*`` also takes slashes).

Where a fault names no process, it means the one in which its trigger occurred.

Nothing here does anything: ``sky.py`` finds what is due, ``world.py`` carries it out.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from enum import StrEnum
from typing import Any

from actorflow.errors import InvalidConfig
from actorflow.model import journal

__all__ = (
    "After",
    "At",
    "Drift",
    "FailDisk",
    "FailObjects",
    "FailRequests",
    "Jump",
    "Kill",
    "LoseAnswer",
    "LoseAnswers",
    "LoseDisk",
    "LoseDiskAnswer",
    "Moment",
    "OnBroker",
    "OnDatabase",
    "OnDisk",
    "OnObject",
    "Partition",
    "Pause",
    "PowerCut",
    "Raise",
    "Replace",
    "Rewind",
    "Service",
    "Slow",
    "SlowDisk",
    "SlowObjects",
    "SlowRequests",
    "Stall",
    "Stop",
    "StruckByWeather",
    "TearDisk",
    "TearObjects",
    "Trigger",
    "Way",
    "Weather",
)


class StruckByWeather(Exception):
    """Raised in the place of an operator's own exception by :class:`Raise`."""


# ── when ─────────────────────────────────────────────────────────────────────────────────────


class Service(StrEnum):
    """What a process reaches over the network."""

    STORE = "store"
    BROKER = "broker"
    DATABASE = "database"


class Moment(StrEnum):
    """Which part of an operation."""

    BEFORE = "before"  # it has not begun
    TORN = "torn"  # half of it is written, under a temporary name, and the whole never will be
    DURING = "during"  # it is under way: what of it takes effect, the seed decides
    UNANSWERED = "unanswered"  # it took effect, and whoever asked does not know
    AFTER = "after"  # it took effect, the answer arrived, and a step or so later


@dataclass(frozen=True, slots=True)
class At:
    """At a virtual time, in milliseconds since the universe began."""

    ms: int


@dataclass(frozen=True, slots=True)
class After:
    """After the journal's entry of this name, with these fields, has occurred for the ``occurrence``-th time.

    ``process`` looks at the entries of one process only; ``later_ms`` waits a little more.
    """

    entry: str
    where: Mapping[str, Any] = field(default_factory=dict)
    occurrence: int = 1
    later_ms: int = 0
    process: str | None = None

    def __post_init__(self) -> None:
        """Refuse what can never occur."""
        kind = getattr(journal, self.entry, None) if self.entry in journal.__all__ else None
        if kind is None or not issubclass(kind, journal.Entry):
            raise InvalidConfig(f"after {self.entry!r}: the journal has no entry of this name")
        known = [f.name for f in fields(kind)]
        if unknown := sorted(name for name in self.where if name not in known):
            raise InvalidConfig(f"after {self.entry}: it has no field {unknown[0]!r}, but {', '.join(known)}")


@dataclass(frozen=True, slots=True)
class OnObject:
    """At an operation on an object store: ``put``, ``put_if_absent``, ``get``, ``list``, ``delete``, or a pattern."""

    operation: str
    pattern: str = "*"
    moment: Moment | str = Moment.BEFORE
    occurrence: int = 1
    process: str | None = None

    def __post_init__(self) -> None:
        """Refuse a moment that there is not."""
        if Moment(self.moment) is Moment.TORN and isinstance(self, OnBroker | OnDatabase):
            raise InvalidConfig(f"{type(self).__name__}: a request is carried out whole, so it can't be torn")


@dataclass(frozen=True, slots=True)
class OnDisk(OnObject):
    """At an operation on a machine's disk: ``create``, ``write``, ``sync``, ``rename``, ``link`` …, by the path.

    A rename or a link is looked for under its target's path.  ``torn`` exists for ``write`` only.
    """


@dataclass(frozen=True, slots=True)
class OnBroker(OnObject):
    """At a request to the broker, by what it is about.

    ``init``, ``commit`` and ``abort`` are about a transactional id; ``append``, ``read`` and ``offsets`` about
    ``topic/partition``; ``create`` and ``partitions`` about a topic, ``transactions`` about a prefix.
    """


@dataclass(frozen=True, slots=True)
class OnDatabase(OnObject):
    """At a request to the database, by what it is about.

    ``get``, ``insert``, ``upsert``, ``delete``, ``create`` and ``rows`` are about a table, ``prepare``,
    ``commit_prepared`` and ``rollback_prepared`` about a gid, ``prepared`` about a prefix; ``begin``, ``commit``,
    ``rollback`` and ``most_prepared`` about the process.
    """


Trigger = At | After | OnObject


# ── what ─────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True)
class Weather:
    """One fault."""

    when: Trigger


@dataclass(frozen=True, slots=True)
class Kill(Weather):
    """A process dies.  ``step`` is what the strike is counted under."""

    process: str | None = None
    step: str = ""


@dataclass(frozen=True, slots=True)
class PowerCut(Weather):
    """All processes of a machine die, and its disk forgets what was not synced."""

    machine: str | None = None
    step: str = ""


@dataclass(frozen=True, slots=True)
class LoseDisk(Weather):
    """All processes of a machine die, and its files are gone."""

    machine: str | None = None
    step: str = ""


@dataclass(frozen=True, slots=True)
class Pause(Weather):
    """A process stalls."""

    process: str | None = None
    ms: int = 1_000


@dataclass(frozen=True, slots=True)
class Stop(Weather):
    """A process is asked to stop, as SIGTERM asks."""

    process: str | None = None


@dataclass(frozen=True, slots=True)
class Replace(Weather):
    """A process stalls, and whoever watches it starts another in its place; when it goes on there are two."""

    process: str | None = None
    ms: int = 1_000


@dataclass(frozen=True, slots=True)
class Raise(Weather):
    """The next batch of an operator fails, in one subtask or in whichever comes first."""

    operator: str = ""
    subtask: int | None = None


@dataclass(frozen=True, slots=True)
class Slow(Weather):
    """An operator spends ``by_ms`` more on every batch, for ``for_ms``."""

    operator: str = ""
    by_ms: int = 100
    for_ms: int = 1_000


@dataclass(frozen=True, slots=True)
class FailObjects(Weather):
    """Operations on object stores are refused, and have no effect."""

    operation: str = "*"
    pattern: str = "*"
    count: int = 1
    process: str | None = None


@dataclass(frozen=True, slots=True)
class TearObjects(FailObjects):
    """Objects are half written under a temporary name and left there; others than ``put…`` are refused."""


@dataclass(frozen=True, slots=True)
class LoseAnswer(FailObjects):
    """Operations on object stores take effect, and then fail."""


@dataclass(frozen=True, slots=True)
class SlowObjects(FailObjects):
    """Operations on object stores take ``by_ms`` longer."""

    by_ms: int = 1_000


@dataclass(frozen=True, slots=True)
class FailDisk(Weather):
    """Operations on disks are refused, and have no effect."""

    operation: str = "*"
    pattern: str = "*"
    count: int = 1
    process: str | None = None


@dataclass(frozen=True, slots=True)
class TearDisk(FailDisk):
    """Writes stop somewhere in the middle, as on a full disk; other operations are refused."""


@dataclass(frozen=True, slots=True)
class LoseDiskAnswer(FailDisk):
    """Operations on disks take effect, and then fail."""


@dataclass(frozen=True, slots=True)
class SlowDisk(FailDisk):
    """Operations on disks take ``by_ms`` longer."""

    by_ms: int = 1_000


@dataclass(frozen=True, slots=True)
class FailRequests(Weather):
    """Requests to the broker or to the database are refused, and have no effect."""

    service: Service = Service.BROKER
    operation: str = "*"
    pattern: str = "*"
    count: int = 1
    process: str | None = None

    def __post_init__(self) -> None:
        """Refuse a service that has faults of its own."""
        _refuse_the_store(self)


@dataclass(frozen=True, slots=True)
class LoseAnswers(FailRequests):
    """Requests to the broker or to the database take effect, and then fail."""


@dataclass(frozen=True, slots=True)
class SlowRequests(FailRequests):
    """Requests to the broker or to the database take ``by_ms`` longer."""

    by_ms: int = 1_000


@dataclass(frozen=True, slots=True)
class Stall(Weather):
    """The broker or the database answers nobody for ``ms``; a store does not stall, it is slow.

    Whoever waits for longer than it has patience gives up, and the request may be carried out all the same.
    """

    service: Service = Service.BROKER
    ms: int = 1_000

    def __post_init__(self) -> None:
        """Refuse a service that does not do this."""
        _refuse_the_store(self)


@dataclass(frozen=True, slots=True)
class Rewind(Weather):
    """The outside world forgets what it had confirmed, as when a replica that lags takes over.

    Of the broker each partition that matches ``pattern`` (``topic/partition``) loses its last ``count`` offsets; of the
    database, as a whole, the last ``count`` transactions that were committed are undone.  Whoever was further must
    notice.
    """

    service: Service = Service.BROKER
    pattern: str = "*"
    count: int = 1

    def __post_init__(self) -> None:
        """Refuse a service that does not do this."""
        _refuse_the_store(self)
        if self.service is Service.DATABASE and self.pattern != "*":
            raise InvalidConfig(f"rewind of the database: only all of it goes back, and not {self.pattern!r}")


def _refuse_the_store(weather: FailRequests | Stall | Rewind) -> None:
    if weather.service is Service.STORE:
        raise InvalidConfig(f"{type(weather).__name__} is about the broker or the database; stores have FailObjects …")


class Way(StrEnum):
    """Which way a partition cuts."""

    BOTH = "both"
    OUT = "out"  # requests do not arrive
    IN = "in"  # answers do not


@dataclass(frozen=True, slots=True)
class Partition(Weather):
    """A process can't reach what is not on its machine: one service, or all of them (``None``)."""

    process: str | None = None
    ms: int = 1_000
    way: Way = Way.BOTH
    service: Service | None = None


@dataclass(frozen=True, slots=True)
class Drift(Weather):
    """The wall clock of a machine, or of a process's machine, runs fast by ``ppm`` millionths, or slow."""

    target: str | None = None
    ppm: int = 500


@dataclass(frozen=True, slots=True)
class Jump(Weather):
    """The wall clock of a machine, or of a process's machine, is set forward or back."""

    target: str | None = None
    by_ms: int = 60_000
