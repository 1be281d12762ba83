"""What can be set, and what is it unless said?

Frozen values, all parameters by name.  A duration is a ``timedelta`` and a size a number of bytes, so no name carries a
unit.  Each checks itself when it is made and tells all its mistakes in one :class:`~actorflow.errors.InvalidConfig`.
``reading.py`` makes them from files and command lines.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from typing import ClassVar

from actorflow.config.checks import Naming, problems_of
from actorflow.config.policies import Guarantee, Retention
from actorflow.errors import InvalidConfig

__all__ = (
    "Buffers",
    "Checkpoints",
    "Debloat",
    "ExponentialDelay",
    "FailureRate",
    "FixedDelay",
    "NoRestart",
    "Restart",
    "Settings",
)


class _Checked:
    """What is checked as a whole when it is made; ``group`` is the part of the table of settings that it holds."""

    __slots__ = ()
    group: ClassVar[str]

    def __post_init__(self) -> None:
        if problems := self.check():
            raise InvalidConfig(problems)

    def check(self, *, naming: Naming = str, unsound: Collection[str] = ()) -> list[str]:
        """Return a sentence for everything that is wrong here; see ``checks.py`` for the parameters."""
        return problems_of(self.group, self, naming=naming, unsound=unsound)


@dataclass(frozen=True, slots=True, kw_only=True)
class NoRestart(_Checked):
    """The first failure ends the job."""

    group: ClassVar[str] = "restart[none]"


@dataclass(frozen=True, slots=True, kw_only=True)
class FixedDelay(_Checked):
    """Start again up to ``attempts`` times, each time after ``delay``."""

    group: ClassVar[str] = "restart[fixed-delay]"
    attempts: int = 1
    delay: timedelta = timedelta(seconds=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class FailureRate(_Checked):
    """Start again after ``delay`` while no more than ``max_failures`` fall into any ``interval``."""

    group: ClassVar[str] = "restart[failure-rate]"
    max_failures: int = 1
    interval: timedelta = timedelta(minutes=1)
    delay: timedelta = timedelta(seconds=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class ExponentialDelay(_Checked):
    """Start again after a delay that grows from ``first`` to ``at_most``, and is ``first`` again after ``reset_after``.

    ``jitter`` is the share of the delay that is left to chance; ``attempts`` is ``None`` for no limit.
    """

    group: ClassVar[str] = "restart[exponential-delay]"
    first: timedelta = timedelta(seconds=1)
    at_most: timedelta = timedelta(minutes=1)
    multiplier: float = 1.5
    reset_after: timedelta = timedelta(hours=1)
    jitter: float = 0.1
    attempts: int | None = None


Restart = NoRestart | FixedDelay | FailureRate | ExponentialDelay


@dataclass(frozen=True, slots=True, kw_only=True)
class Debloat(_Checked):
    """Size batches so that what is queued takes about ``target`` to consume."""

    group: ClassVar[str] = "buffers.debloat"
    target: timedelta = timedelta(seconds=1)
    period: timedelta = timedelta(milliseconds=200)
    samples: int = 20
    threshold_percent: int = 25


@dataclass(frozen=True, slots=True, kw_only=True)
class Buffers(_Checked):
    """How much may be queued between actors, and how much travels together."""

    group: ClassVar[str] = "buffers"
    per_channel: int = 2
    floating_per_gate: int = 8
    most_per_channel: int = 10
    overdraft: int = 5
    records: int = 256
    bytes: int = 256 * 1024
    flush_after: timedelta = timedelta(milliseconds=100)
    debloat: Debloat | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Checkpoints(_Checked):
    """When checkpoints are taken, where they go, and what is kept of them."""

    group: ClassVar[str] = "checkpoints"
    storage: str | None = None
    every: timedelta | None = None
    every_during_backlog: timedelta | None = None
    timeout: timedelta = timedelta(minutes=10)
    min_pause: timedelta = timedelta(0)
    max_concurrent: int = 1
    tolerable_failures: int = 0
    retained: int = 1
    retention: Retention = Retention.RETAIN_ON_CANCELLATION
    guarantee: Guarantee = Guarantee.EXACTLY_ONCE
    align_at_most: timedelta | None = None
    force_unaligned: bool = False
    actors_per_in_flight_file: int = 5
    incremental: bool = True
    inline_below: int = 20 * 1024
    compression: str | None = None
    savepoints: str | None = None
    create_subdir: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings(_Checked):
    """Everything that an ``Environment`` can be told."""

    group: ClassVar[str] = ""
    parallelism: int = 1
    max_parallelism: int | None = None
    state: str = "memory"
    restart: Restart | None = None
    stop_within: timedelta = timedelta(seconds=60)
    show_records: bool = True
    checkpoints: Checkpoints = field(default_factory=Checkpoints)
    buffers: Buffers = field(default_factory=Buffers)

    @property
    def restart_strategy(self) -> Restart:
        """What holds after a failure: what was said, else exponential delay with periodic checkpoints, none without."""
        if self.restart is not None:
            return self.restart
        return NoRestart() if self.checkpoints.every is None else ExponentialDelay()

    def check(self, *, naming: Naming = str, unsound: Collection[str] = ()) -> list[str]:
        """Return what is wrong here; the groups within have been checked when they were made."""
        problems = problems_of(self.group, self, naming=naming, unsound=unsound)
        for name, kind, such_as in _GROUPS:
            value: object = getattr(self, name)
            if not isinstance(value, kind) and not (name == "restart" and value is None):
                problems.append(f"{name} must be {such_as}, not {type(value).__name__}")
        return problems

    @classmethod
    def from_mapping(cls, mapping: Mapping[str, object], *, base: Settings | None = None, source: str = "") -> Settings:
        """Return ``base`` with what the mapping says: our names, nested or dotted, or Flink's keys.

        Raises :class:`~actorflow.errors.InvalidConfig` once, with every mistake; ``source`` says where they stand.
        """
        return cls.from_layers([(source, mapping)], base=base)

    @classmethod
    def from_layers(
        cls, layers: Iterable[tuple[str, Mapping[str, object]]], *, base: Settings | None = None
    ) -> Settings:
        """Return ``base`` with what several mappings say, later ones above earlier ones; only the result is judged.

        Each mapping comes with its source: ``("job.toml", {...})``, ``("-D", {...})``.
        """
        from actorflow.config.reading import read

        return read(layers, base=cls() if base is None else base)

    def merged(self, mapping: Mapping[str, object], *, source: str = "") -> Settings:
        """Return these settings with what the mapping says above them; values may be text or what the fields hold."""
        return self.from_layers([(source, mapping)], base=self)


_GROUPS = (
    ("checkpoints", Checkpoints, "Checkpoints(…)"),
    ("buffers", Buffers, "Buffers(…)"),
    ("restart", Restart, "None or a restart strategy such as FixedDelay(…)"),
)
