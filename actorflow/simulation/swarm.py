"""A seed draws knobs and weather.

The first kill of a seed falls at one of the steps of a checkpoint, from its trigger to the commit, each step in turn
over the seeds, so that none of them is left to luck.  More than one seed in four kills again in the life that follows.
Many seeds add other weather, at most one of each kind, stop a life as SIGTERM does, start the process again with
another parallelism, or start another one while the first only stalls.

Draws are keyed by seed and purpose: the same seed draws the same on every machine, and what depends on the job (its
operators, its kinds of sinks) changes nothing else.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta

from actorflow.config import Buffers, Checkpoints, ExponentialDelay, Settings
from actorflow.simulation.chance import Chance
from actorflow.simulation.weather import (
    After,
    At,
    Drift,
    FailDisk,
    FailObjects,
    Jump,
    Kill,
    LoseAnswer,
    Moment,
    OnDisk,
    OnObject,
    Partition,
    Pause,
    PowerCut,
    Raise,
    Replace,
    Slow,
    SlowObjects,
    Stop,
    TearDisk,
    TearObjects,
    Trigger,
    Weather,
)

__all__ = ("PROCESS", "STEPS", "Draw", "Knobs", "Shape", "draw")

PROCESS = "job"
"""The name of the process that runs the job."""

STORE, FOLDER = "s3://home", "/var/home"
"""Where a home is: in a store that everybody reaches, or on the machine's disk."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """What draws depend on: the names of the job's operators, and where its output goes."""

    operators: tuple[str, ...] = ()
    in_files: bool = False
    """Whether all output goes to files on the machine's disk; else to ledgers, or to sinks of the user's own."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Knobs:
    """Settings that a seed draws.  ``parallelism`` has one number for each life, the last one for all that follow."""

    parallelism: tuple[int, ...]
    per_channel: int
    floating: int
    records: int
    every_ms: int
    min_pause_ms: int
    timeout_ms: int
    concurrent: int
    tolerable: int
    inline_below: int
    retained: int
    storage: str

    def parallelism_of(self, life: int) -> int:
        """With how many subtasks a life is started."""
        return self.parallelism[min(life, len(self.parallelism) - 1)]

    def settings(self, parallelism: int) -> Settings:
        """What an ``Environment`` takes."""
        return Settings(
            parallelism=parallelism,
            restart=ExponentialDelay(first=timedelta(milliseconds=50), at_most=timedelta(seconds=1)),
            stop_within=timedelta(seconds=60),
            checkpoints=Checkpoints(
                storage=self.storage,
                every=timedelta(milliseconds=self.every_ms),
                min_pause=timedelta(milliseconds=self.min_pause_ms),
                timeout=timedelta(milliseconds=self.timeout_ms),
                max_concurrent=self.concurrent,
                tolerable_failures=self.tolerable,
                retained=self.retained,
                inline_below=self.inline_below,
            ),
            buffers=Buffers(
                per_channel=self.per_channel,
                floating_per_gate=self.floating,
                most_per_channel=self.per_channel + self.floating,
                records=self.records,
            ),
        )


_MANIFEST = "*chk-*/_metadata"
_COMMITTED = "*/committed/*"
_PART = "*/part-*"

Spot = Callable[[int], Trigger]

STEPS: dict[str, Spot] = {
    "triggered": lambda n: After("CheckpointTriggered", occurrence=n),
    "barrier under way": lambda n: After("BarrierArrived", occurrence=n),
    "instant": lambda n: After("SnapshotTaken", occurrence=n),
    "upload": lambda n: OnObject("put", "*chk-*", Moment.DURING, occurrence=n),
    "acknowledged": lambda n: After("CheckpointAcknowledged", occurrence=n),
    "manifest before": lambda n: OnObject("put_if_absent", _MANIFEST, Moment.BEFORE, occurrence=n),
    "manifest torn": lambda n: OnObject("put_if_absent", _MANIFEST, Moment.TORN, occurrence=n),
    "manifest answer lost": lambda n: OnObject("put_if_absent", _MANIFEST, Moment.UNANSWERED, occurrence=n),
    "manifest after": lambda n: After("ManifestWritten", occurrence=n),
    "permit": lambda n: After("CheckpointCompleted", occurrence=n),
    "commit before": lambda n: OnObject("put_if_absent", _COMMITTED, Moment.BEFORE, occurrence=n),
    "commit between two": lambda n: OnObject("put_if_absent", _COMMITTED, Moment.UNANSWERED, occurrence=n),
    "commit after": lambda n: OnObject("put_if_absent", _COMMITTED, Moment.AFTER, occurrence=n),
    "subsumed": lambda n: After("CheckpointSubsumed", occurrence=n),
    "restoring": lambda n: After("ActorRestored", occurrence=n),
}
"""Where a kill is aimed at, in the order of a checkpoint's life; ``moments.py`` says where it struck."""

_IN_FILES: dict[str, Spot] = {
    "commit before": lambda n: OnDisk("rename", _PART, Moment.BEFORE, occurrence=n),
    "commit between two": lambda n: OnDisk("rename", _PART, Moment.UNANSWERED, occurrence=n),
    "commit after": lambda n: OnDisk("rename", _PART, Moment.AFTER, occurrence=n),
}

_ONE_OF_MANY = ("barrier under way", "instant", "acknowledged", "commit before", "commit between two", "commit after")
"""Steps that every checkpoint goes through several times."""

_AFTER_A_CHECKPOINT = ("manifest after", "permit", "commit after")
"""Steps after which the next life has something to restore."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Draw:
    """What a seed drew: the knobs, the weather from the start, and the kill of the life after the first kill."""

    knobs: Knobs
    weather: tuple[Weather, ...]
    second: Weather | None
    batch_us: int


def draw(seed: int, shape: Shape = Shape()) -> Draw:
    """Draw knobs and weather."""
    chance = Chance(seed, "storm")
    steps = list(STEPS)
    step = steps[seed % len(steps)]
    aim = _Aim(chance, shape)
    second: Weather | None = None
    if step == "restoring":
        first = aim.at(_AFTER_A_CHECKPOINT[chance.below("before", len(_AFTER_A_CHECKPOINT))], "first")
        second = aim.at(step, "second", most=3)
    else:
        first = aim.at(step, "first")
        if chance.happens("again", 0.3):
            second = aim.at(steps[chance.below("again at", len(steps))], "second", most=2)
    knobs = _knobs(seed, chance, inline=step != "upload")
    return Draw(
        knobs=knobs,
        weather=(first, *_ways_to_end(chance), *_more(chance, shape, knobs)),
        second=second,
        batch_us=500 + chance.below("batch", 4_000),
    )


def _knobs(seed: int, chance: Chance, *, inline: bool) -> Knobs:
    parallelism = [1 + chance.below("parallelism", 4)]
    while len(parallelism) < 4 and chance.happens("another parallelism", 0.3):
        parallelism.append(1 + chance.below("parallelism", 4))
    concurrent = 1 + chance.happens("concurrent", 0.25)
    return Knobs(
        parallelism=tuple(parallelism),
        per_channel=1 + chance.below("per_channel", 8),
        floating=chance.below("floating", 5),
        records=(1, 8, 64, 256, 1_024)[chance.below("records", 5)] if seed % 7 == 0 else 32 << chance.below("size", 4),
        every_ms=(10, 20, 40)[chance.below("every", 3)],
        min_pause_ms=(0, 0, 5, 30)[chance.below("pause", 4)] if concurrent == 1 else 0,
        timeout_ms=(30_000, 30_000, 600)[chance.below("timeout", 3)],
        concurrent=concurrent,
        tolerable=chance.below("tolerable", 4),
        inline_below=20 * 1024 if inline and chance.happens("inline") else 0,
        retained=1 + chance.below("retained", 3),
        storage=STORE if chance.happens("storage", 0.6) else FOLDER,
    )


class _Aim:
    """Aims a kill at a step."""

    def __init__(self, chance: Chance, shape: Shape) -> None:
        self._chance, self._spots = chance, STEPS | (_IN_FILES if shape.in_files else {})

    def at(self, step: str, which: str, most: int | None = None) -> Weather:
        """Draw which time the step comes, and whether the power goes or only the process."""
        chance = self._chance.scoped(which)
        trigger = self._spots[step](1 + chance.below("occurrence", most or (12 if step in _ONE_OF_MANY else 4)))
        return PowerCut(trigger, None, step) if chance.happens("power", 0.2) else Kill(trigger, None, step)


def _when(chance: Chance, purpose: str) -> Trigger:
    """Draw a moment in the life of a job that almost every job has."""
    entries = (
        ("CheckpointTriggered", 5),
        ("SnapshotTaken", 12),
        ("CheckpointAcknowledged", 12),
        ("ManifestWritten", 4),
        ("CheckpointCompleted", 4),
        ("SinkPrepared", 8),
        ("SinkCommitted", 8),
        ("JobStarted", 2),
        ("ActorFinished", 3),
    )
    entry, most = entries[chance.below(f"{purpose}: when", len(entries))]
    occurrence = 1 + chance.below(f"{purpose}: occurrence", most)
    return After(entry, occurrence=occurrence, later_ms=(0, 0, 1, 5)[chance.below(f"{purpose}: later", 4)])


def _ways_to_end(chance: Chance) -> list[Weather]:
    """Ways to end a life, beside being killed."""
    ways: list[Weather] = []
    if chance.happens("stop", 0.2):
        ways.append(Stop(_when(chance, "stop")))
    if chance.happens("replace", 0.12):
        ways.append(Replace(_when(chance, "replace"), ms=(50, 300, 2_000)[chance.below("replaced for", 3)]))
    return ways


def _more(chance: Chance, shape: Shape, knobs: Knobs) -> list[Weather]:
    """Other weather, at most one of each kind."""
    if not chance.happens("more", 0.5):
        return []
    count = 1 + chance.below("more count", 3)
    kinds: dict[str, Callable[[Trigger], Weather]] = {
        "fail put": lambda when: FailObjects(when, "put*", count=count),
        "fail list": lambda when: FailObjects(when, "list", count=count),
        "fail get": lambda when: FailObjects(when, "get", count=count),
        "fail delete": lambda when: FailObjects(when, "delete", count=count),
        "tear": lambda when: TearObjects(when, "put*", count=count),
        "lose answer": lambda when: LoseAnswer(when, "put*", count=count),
        "lose answer of a manifest": lambda when: LoseAnswer(when, "put_if_absent", _MANIFEST),
        "lose answer of a commit": lambda when: LoseAnswer(when, "put_if_absent", _COMMITTED),
        "slow objects": lambda when: SlowObjects(when, "*", count=count, by_ms=500),
        "pause": lambda when: Pause(when, None, 700),
        "partition": lambda when: Partition(when, None, 300),
        "jump": lambda when: Jump(when, None, -3_600_000),
        "drift": lambda when: Drift(when, None, 10_000),
        "kill": Kill,
        "kill at any time": lambda _: Kill(At(chance.below("any time", 400)), PROCESS),
        "kill at any request": lambda _: Kill(OnObject("*", "*", Moment.DURING, 1 + chance.below("request", 80))),
    }
    if shape.in_files or knobs.storage == FOLDER:
        disk = ("create", "write", "sync", "link", "rename", "sync_folder", "remove")
        moment = (Moment.BEFORE, Moment.DURING, Moment.UNANSWERED, Moment.AFTER)[chance.below("disk moment", 4)]
        strike = OnDisk(
            disk[chance.below("disk operation", len(disk))], "*", moment, 1 + chance.below("disk occurrence", 12)
        )
        kinds |= {
            "fail disk": lambda when: FailDisk(when, "*", count=count),
            "fail sync": lambda when: FailDisk(when, "sync*", count=1),
            "tear disk": lambda when: TearDisk(when, "write", count=1),
            "power at any operation": lambda _: PowerCut(strike),
            "kill at any operation": lambda _: Kill(strike),
        }
    if shape.operators:
        operator = shape.operators[chance.below("more operator", len(shape.operators))]
        kinds |= {
            "raise": lambda when: Raise(when, operator),
            "slow": lambda when: Slow(when, operator, by_ms=20, for_ms=500),
        }
    return [kind(_when(chance, name)) for name, kind in kinds.items() if chance.happens(name, 0.12)]
