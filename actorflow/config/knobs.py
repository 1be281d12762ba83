"""Which settings are there, what may each be, and what does Flink call it?

One row per setting, in the order of the documentation.  The dataclasses in ``settings.py`` hold the values and their
defaults; this table holds all the rest, and a test keeps the two together.  ``later`` marks what this version can't do
yet: anything but its default is refused, because a setting that is silently ignored is worse than none.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from enum import Enum, StrEnum

from actorflow.config.policies import Guarantee, Retention

__all__ = ("KNOBS", "STRATEGIES", "Kind", "Knob", "knobs_of")


class Kind(Enum):
    """How a setting's value is written."""

    DURATION = "duration"
    SIZE = "size"
    COUNT = "whole number"
    NUMBER = "number"
    SWITCH = "true or false"
    TEXT = "text"
    CHOICE = "choice"
    GROUP = "group"


@dataclass(frozen=True, slots=True, kw_only=True)
class Knob:
    """One setting: ``group`` and ``field`` say where its value is, ``name`` what people write."""

    name: str
    kind: Kind
    says: str
    flink: str = ""
    optional: bool = False  # None is a value: "none" in text
    least: int | float | timedelta | None = None
    most: int | float | timedelta | None = None
    choices: type[StrEnum] | tuple[str, ...] = ()
    later: str = ""
    strategy: str = ""  # of the restart strategies, the one that it belongs to

    @property
    def group(self) -> str:
        """The part of the name before the last dot; for a restart strategy's, the strategy too."""
        group = self.name.rpartition(".")[0]
        return f"{group}[{self.strategy}]" if self.strategy else group

    @property
    def field(self) -> str:
        return self.name.rpartition(".")[2]


STRATEGIES = ("none", "fixed-delay", "failure-rate", "exponential-delay")

_ONE_MS, _ZERO = timedelta(milliseconds=1), timedelta(0)
_MOST_PARALLELISM = 32_768
_LATER = "comes with a later version"
_RATE = "failure-rate"
_GROWING = "exponential-delay"


def _duration(name: str, says: str, flink: str = "", *, least: timedelta = _ZERO, optional: bool = False) -> Knob:
    return Knob(name=name, kind=Kind.DURATION, says=says, flink=flink, least=least, optional=optional)


def _count(
    name: str, says: str, flink: str = "", *, least: int = 1, most: int | None = None, optional: bool = False
) -> Knob:
    return Knob(name=name, kind=Kind.COUNT, says=says, flink=flink, least=least, most=most, optional=optional)


def _restart(strategy: str, field: str, kind: Kind, says: str, flink: str, least: int | float | timedelta) -> Knob:
    return Knob(
        name=f"restart.{field}",
        kind=kind,
        says=says,
        flink=f"restart-strategy.{strategy}.{flink}",
        least=least,
        strategy=strategy,
    )


KNOBS: tuple[Knob, ...] = (
    _count("parallelism", "how many subtasks an operator has", "parallelism.default", most=_MOST_PARALLELISM),
    _count(
        "max_parallelism",
        "the number of key groups; derived from the parallelism unless said",
        "pipeline.max-parallelism",
        most=_MOST_PARALLELISM,
        optional=True,
    ),
    Knob(
        name="state",
        kind=Kind.CHOICE,
        says="where keyed state lives while the job runs",
        flink="state.backend.type",
        choices=("memory", "lmdb", "rocksdb"),
        later=f"state on disk {_LATER}; this one has 'memory'",
    ),
    Knob(
        name="restart",
        kind=Kind.GROUP,
        says="after a failure: exponential-delay when checkpoints.every is set, else none, unless said",
        flink="restart-strategy.type",
        optional=True,
    ),
    _restart("fixed-delay", "attempts", Kind.COUNT, "how often to start again", "attempts", 0),
    _restart("fixed-delay", "delay", Kind.DURATION, "how long to wait before", "delay", _ZERO),
    _restart(_RATE, "max_failures", Kind.COUNT, "failures survived per interval", "max-failures-per-interval", 1),
    _restart(_RATE, "interval", Kind.DURATION, "the interval they are counted in", "failure-rate-interval", _ONE_MS),
    _restart(_RATE, "delay", Kind.DURATION, "how long to wait before starting again", "delay", _ZERO),
    _restart(_GROWING, "first", Kind.DURATION, "the first delay", "initial-backoff", _ONE_MS),
    _restart(_GROWING, "at_most", Kind.DURATION, "the longest delay", "max-backoff", _ONE_MS),
    _restart(_GROWING, "multiplier", Kind.NUMBER, "how the delay grows", "backoff-multiplier", 1.0),
    _restart(
        _GROWING,
        "reset_after",
        Kind.DURATION,
        "calm after which it is the first again",
        "reset-backoff-threshold",
        _ONE_MS,
    ),
    Knob(
        name="restart.jitter",
        kind=Kind.NUMBER,
        says="the share of the delay that is left to chance",
        flink=f"restart-strategy.{_GROWING}.jitter-factor",
        least=0.0,
        most=1.0,
        strategy=_GROWING,
    ),
    Knob(
        name="restart.attempts",
        kind=Kind.COUNT,
        says="how often to start again before a reset; none for no limit",
        flink=f"restart-strategy.{_GROWING}.attempts-before-reset-backoff",
        least=1,
        optional=True,
        strategy=_GROWING,
    ),
    _duration("stop_within", "how long the end of a block or a signal waits for the last checkpoint"),
    Knob(name="show_records", kind=Kind.SWITCH, says="whether error messages carry the record's short form"),
    # ── checkpoints ─────────────────────────────────────────────────────────────────────────────────────────────────
    Knob(
        name="checkpoints.storage",
        kind=Kind.TEXT,
        says="a folder, file:// or s3://; none keeps checkpoints in this process's memory",
        flink="execution.checkpointing.dir",
        optional=True,
    ),
    _duration(
        "checkpoints.every",
        "the time from one checkpoint's start to the next; none for only on request",
        "execution.checkpointing.interval",
        least=_ONE_MS,
        optional=True,
    ),
    _duration(
        "checkpoints.every_during_backlog",
        "the same while a source catches up; 0 for none then",
        "execution.checkpointing.interval-during-backlog",
        optional=True,
    ),
    _duration(
        "checkpoints.timeout",
        "when a checkpoint that is under way is given up",
        "execution.checkpointing.timeout",
        least=_ONE_MS,
    ),
    _duration(
        "checkpoints.min_pause",
        "the least time from one checkpoint's completion to the next one's start",
        "execution.checkpointing.min-pause",
    ),
    _count(
        "checkpoints.max_concurrent",
        "how many checkpoints may be under way",
        "execution.checkpointing.max-concurrent-checkpoints",
    ),
    _count(
        "checkpoints.tolerable_failures",
        "how many checkpoints in a row may fail before the job is restarted",
        "execution.checkpointing.tolerable-failed-checkpoints",
        least=0,
    ),
    _count("checkpoints.retained", "how many completed checkpoints are kept", "execution.checkpointing.num-retained"),
    Knob(
        name="checkpoints.retention",
        kind=Kind.CHOICE,
        says="what is kept when the job ends",
        flink="execution.checkpointing.externalized-checkpoint-retention",
        choices=Retention,
    ),
    Knob(
        name="checkpoints.guarantee",
        kind=Kind.CHOICE,
        says="whether barriers are waited for",
        flink="execution.checkpointing.mode",
        choices=Guarantee,
    ),
    Knob(
        name="checkpoints.align_at_most",
        kind=Kind.DURATION,
        says="when a waiting barrier overtakes; none for never, 0 for at once",
        flink="execution.checkpointing.aligned-checkpoint-timeout",
        optional=True,
        least=_ZERO,
        later=f"an unaligned checkpoint {_LATER}",
    ),
    Knob(
        name="checkpoints.force_unaligned",
        kind=Kind.SWITCH,
        says="overtake also where in-flight data can't be rescaled",
        flink="execution.checkpointing.unaligned.forced",
        later=f"an unaligned checkpoint {_LATER}",
    ),
    _count(
        "checkpoints.actors_per_in_flight_file",
        "how many actors share a file of in-flight data",
        "execution.checkpointing.unaligned.max-subtasks-per-channel-state-file",
    ),
    Knob(
        name="checkpoints.incremental",
        kind=Kind.SWITCH,
        says="write only what changed, where the state's store can",
        flink="execution.checkpointing.incremental",
    ),
    Knob(
        name="checkpoints.inline_below",
        kind=Kind.SIZE,
        says="pieces up to this size are kept in the manifest itself",
        flink="execution.checkpointing.data-inline-threshold",
        least=0,
        most=1 << 20,
    ),
    Knob(
        name="checkpoints.compression",
        kind=Kind.CHOICE,
        says="how snapshots are compressed",
        flink="execution.checkpointing.snapshot-compression",
        choices=("zstd", "snappy"),
        optional=True,
        later=f"compression {_LATER}",
    ),
    Knob(
        name="checkpoints.savepoints",
        kind=Kind.TEXT,
        says="where savepoints go unless said with the request",
        flink="execution.checkpointing.savepoint-dir",
        optional=True,
        later=f"a savepoint {_LATER}",
    ),
    Knob(
        name="checkpoints.create_subdir",
        kind=Kind.SWITCH,
        says="whether a job's home is a folder of its name in the storage, or the storage itself",
        flink="execution.checkpointing.create-subdir",
    ),
    # ── buffers ─────────────────────────────────────────────────────────────────────────────────────────────────────
    _count(
        "buffers.per_channel",
        "batches that a channel always has room for",
        "taskmanager.network.memory.buffers-per-channel",
    ),
    _count(
        "buffers.floating_per_gate",
        "batches lent to whichever channel of an input needs them",
        "taskmanager.network.memory.floating-buffers-per-gate",
        least=0,
    ),
    _count(
        "buffers.most_per_channel",
        "the most batches in one channel",
        "taskmanager.network.memory.max-buffers-per-channel",
    ),
    _count(
        "buffers.overdraft",
        "batches lent to one output so that the batch in hand can be finished",
        "taskmanager.network.memory.max-overdraft-buffers-per-gate",
        least=0,
    ),
    _count("buffers.records", "the most records in one batch"),
    Knob(
        name="buffers.bytes",
        kind=Kind.SIZE,
        says="the most bytes in one batch, whichever is reached first",
        flink="taskmanager.memory.segment-size",
        least=1,
    ),
    _duration(
        "buffers.flush_after",
        "the longest that a partly filled batch waits for company",
        "execution.buffer-timeout.interval",
    ),
    Knob(
        name="buffers.debloat",
        kind=Kind.GROUP,
        says="size batches so that what is queued takes about `target` to consume",
        flink="taskmanager.network.memory.buffer-debloat.enabled",
        optional=True,
        later=f"debloating {_LATER}",
    ),
    _duration(
        "buffers.debloat.target",
        "how long what is queued should take",
        "taskmanager.network.memory.buffer-debloat.target",
        least=_ONE_MS,
    ),
    _duration(
        "buffers.debloat.period",
        "how often the size is looked at",
        "taskmanager.network.memory.buffer-debloat.period",
        least=_ONE_MS,
    ),
    _count(
        "buffers.debloat.samples",
        "how many looks are averaged",
        "taskmanager.network.memory.buffer-debloat.samples",
    ),
    _count(
        "buffers.debloat.threshold_percent",
        "how much a size must differ to be announced",
        "taskmanager.network.memory.buffer-debloat.threshold-percentages",
        most=100,
    ),
)


def knobs_of(group: str) -> tuple[Knob, ...]:
    """Return the settings of one group: ``""``, ``"checkpoints"``, ``"restart[fixed-delay]"`` and so on."""
    return tuple(knob for knob in KNOBS if knob.group == group)
