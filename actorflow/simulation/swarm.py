"""A seed draws knobs and weather.

The first kill of a seed falls at one of the steps of a checkpoint, from its trigger to the commit, each step in turn over the
seeds, so that none of them is left to luck.  One seed in four kills again in the life that follows.  Some seeds add other
weather: storage that refuses, tears, loses answers or is slow, a pause, a failing or slow operator, a wall clock that jumps.

Draws are keyed by seed and purpose; the same seed draws the same on every machine.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta

from actorflow.config import Buffers, Checkpoints, ExponentialDelay, Settings
from actorflow.simulation.chance import Chance
from actorflow.simulation.weather import (
    After,
    Drift,
    FailObjects,
    Jump,
    Kill,
    LoseAnswer,
    Moment,
    OnObject,
    Pause,
    PowerCut,
    Raise,
    Slow,
    SlowObjects,
    TearObjects,
    Trigger,
    Weather,
)

__all__ = ("STEPS", "Draw", "Knobs", "draw")

PROCESS = "job"
"""The name of the process that runs the job."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Knobs:
    """Settings that a seed draws."""

    parallelism: int
    per_channel: int
    floating: int
    records: int
    every_ms: int
    inline_below: int
    retained: int
    storage: str

    def settings(self) -> Settings:
        """What an ``Environment`` takes."""
        return Settings(
            parallelism=self.parallelism,
            restart=ExponentialDelay(first=timedelta(milliseconds=50), at_most=timedelta(seconds=1)),
            stop_within=timedelta(seconds=60),
            checkpoints=Checkpoints(
                storage=self.storage,
                every=timedelta(milliseconds=self.every_ms),
                timeout=timedelta(seconds=30),
                tolerable_failures=2,
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

STEPS: dict[str, Callable[[int], Trigger]] = {
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
    "commit between two": lambda n: After("SinkCommitted", occurrence=n),
    "commit after": lambda n: OnObject("put_if_absent", _COMMITTED, Moment.AFTER, occurrence=n),
    "subsumed": lambda n: After("CheckpointSubsumed", occurrence=n),
    "restoring": lambda n: After("JobStarted", occurrence=n),
}
"""Where a kill can fall, in the order of a checkpoint's life."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Draw:
    """What a seed drew: the knobs, the weather from the start, and the weather of the life after the first kill."""

    knobs: Knobs
    weather: tuple[Weather, ...]
    second: tuple[Weather, ...]
    batch_us: int


def draw(seed: int, operators: tuple[str, ...] = ()) -> Draw:
    """Draw knobs and weather; ``operators`` are those that may fail or be slow."""
    chance = Chance(seed, "storm")
    steps = list(STEPS)
    step = steps[seed % len(steps)]
    knobs = Knobs(
        parallelism=1 + chance.below("parallelism", 4),
        per_channel=1 + chance.below("per_channel", 8),
        floating=chance.below("floating", 5),
        records=(1, 8, 64, 256, 1_024)[chance.below("records", 5)] if seed % 7 == 0 else 32 << chance.below("size", 4),
        every_ms=(10, 20, 40)[chance.below("every", 3)],
        inline_below=0 if step == "upload" or chance.uniform("inline") < 0.5 else 20 * 1024,
        retained=1 + chance.below("retained", 3),
        storage="s3://home" if chance.uniform("storage") < 0.6 else "/var/home",
    )
    weather: list[Weather] = []
    second: list[Weather] = []
    if step == "restoring":
        first = ("manifest after", "permit", "commit after")[chance.below("before", 3)]
        weather.append(_kill(first, 1 + chance.below("occurrence", 3), chance))
        second.append(Kill(STEPS[step](1), PROCESS, step))
    else:
        weather.append(_kill(step, 1 + chance.below("occurrence", _most(step)), chance))
        if chance.uniform("again") < 0.25:
            again = steps[chance.below("again at", len(steps))]
            second.append(Kill(STEPS[again](1), PROCESS, again))
    if chance.uniform("more") < 0.4:
        weather += _more(chance, operators)
    return Draw(knobs=knobs, weather=tuple(weather), second=tuple(second), batch_us=500 + chance.below("batch", 4_000))


def _most(step: str) -> int:
    return 12 if step in ("barrier under way", "instant", "acknowledged", "commit between two") else 4


def _kill(step: str, occurrence: int, chance: Chance) -> Weather:
    if chance.uniform("power") < 0.2:
        return PowerCut(STEPS[step](occurrence), "m1", step)
    return Kill(STEPS[step](occurrence), PROCESS, step)


def _more(chance: Chance, operators: tuple[str, ...]) -> list[Weather]:
    when = After("CheckpointTriggered", occurrence=1 + chance.below("more when", 4))
    count = 1 + chance.below("more count", 3)
    kinds: list[Weather] = [
        FailObjects(when, "put*", count=count),
        FailObjects(when, "list", count=count),
        FailObjects(when, "get", count=count),
        FailObjects(when, "delete", count=count),
        TearObjects(when, "put*", count=count),
        LoseAnswer(when, "put*", count=count),
        LoseAnswer(when, "put_if_absent", _MANIFEST, count=1),
        SlowObjects(when, "*", count=count, by_ms=500),
        Pause(when, PROCESS, 700),
        Jump(when, PROCESS, -3_600_000),
        Drift(when, PROCESS, 10_000),
    ]
    if operators:
        operator = operators[chance.below("more operator", len(operators))]
        kinds += [Raise(when, operator), Slow(when, operator, by_ms=20, for_ms=500)]
    return [kinds[chance.below("more kind", len(kinds))]]
