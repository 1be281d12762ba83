"""A seed draws knobs and weather.

The first kill of a seed falls at one of the steps of a checkpoint, from its trigger to the commit, each step in turn
over the seeds, so that none of them is left to luck.  Every third seed kills again in the life that follows.  Every
seed has one fault more, many have two: what they are, when they strike and which knobs are turned is chosen by a guide
(``guide.py``), so that pairs of them come as early as they can.  ``aims.py`` lists what there is to choose from.

Draws are keyed by seed and purpose: the same seed draws the same on every machine, and what depends on the job (its
operators, its kinds of sinks) changes nothing else.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any

from actorflow.config import Buffers, Checkpoints, ExponentialDelay, Settings
from actorflow.simulation.aims import (
    FAULTS,
    MOMENTS,
    ONE_OF_MANY,
    STEPS,
    STEPS_AT_THE_END,
    STEPS_IN_FILES,
    STEPS_ON,
    Circumstances,
)
from actorflow.simulation.chance import Chance
from actorflow.simulation.guide import PRIME, Choices, Guide, Luck
from actorflow.simulation.scenario import AboutOutput, AboutState, Fault, Scenario, Schedule, Seeds
from actorflow.simulation.weather import Kill, PowerCut, Service, Weather

__all__ = ("FOLDER", "PROCESS", "STEPS", "STORE", "Draw", "Knobs", "Shape", "draw")

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
    service: Service | None = None
    """Where all output goes, if that is a broker or a database."""


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

    def environment(self) -> dict[str, Any]:
        """Return the same settings as a scenario says them, without the parallelism."""
        return {
            "restart": {"type": "exponential-delay", "first": "50ms", "at_most": "1s"},
            "checkpoints": {
                "storage": self.storage,
                "every": f"{self.every_ms}ms",
                "min_pause": f"{self.min_pause_ms}ms",
                "timeout": f"{self.timeout_ms}ms",
                "max_concurrent": self.concurrent,
                "tolerable_failures": self.tolerable,
                "retained": self.retained,
                "inline_below": self.inline_below,
            },
            "buffers": {
                "per_channel": self.per_channel,
                "floating_per_gate": self.floating,
                "most_per_channel": self.per_channel + self.floating,
                "records": self.records,
            },
        }


_AFTER_A_CHECKPOINT = ("manifest after", "permit", "commit after")
"""Steps after which the next life has something to restore."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Draw:
    """What a seed drew: the knobs, the weather from the start, and the kill of the life after the first kill."""

    knobs: Knobs
    weather: tuple[Weather, ...]
    second: Weather | None
    batch_us: int
    aims: tuple[str, ...] = ()
    """What each part of the weather was chosen as: the name of a step or of a fault."""

    def scenario(
        self,
        job: str,
        seed: int,
        *,
        arguments: Mapping[str, Any] | None = None,
        faults: Sequence[Fault] | None = None,
        keeps_state: bool = True,
    ) -> Scenario:
        """Return the scenario that does what the seed does to a job: the same knobs, the same weather, the same oracle.

        ``faults`` are those that the seed's run expected (``Run.weather``), each in its life; without them the second
        kill is expected in the second life, which is where it mostly falls.  ``keeps_state`` says whether the job has a
        final state that can be compared.
        """
        if faults is None:
            faults = [Fault(weather=weather) for weather in self.weather]
            faults += [Fault(weather=self.second, life=2)] if self.second is not None else []
        return Scenario(
            title=f"Seed {seed} of {job.rpartition(':')[2]}",
            job=job,
            arguments=dict(arguments or {}),
            seeds=Seeds(first=seed, count=1),
            environment=self.knobs.environment(),
            lives=self.knobs.parallelism,
            weather=tuple(replace(fault, perhaps=True) for fault in faults),  # whatever a seed draws, it may never come
            expectations=(
                AboutOutput(compare="same as the calm run"),
                *([AboutState(compare="same as the calm run")] if keeps_state else []),
            ),
            schedule=Schedule(batch_us=self.batch_us, earlier_parallelism=True),
        )


def draw(seed: int, shape: Shape = Shape(), *, guided: bool = True) -> Draw:
    """Draw knobs and weather; without the guide all of it is chance, to be compared with."""
    chance = Chance(seed, "storm")
    choices: Choices = Guide(seed) if guided else Luck(seed)
    steps = list(STEPS)
    turn, again = choices.steps(len(steps))
    step = steps[turn]
    aim = _Aim(choices, chance, shape)
    second: Weather | None = None
    if step == "restoring":
        first = aim.at(_AFTER_A_CHECKPOINT[chance.below("before", len(_AFTER_A_CHECKPOINT))], "first")
        second = aim.at(step, "second", most=3)
    else:
        first = aim.at(step, "first")
        if again is not None:
            second = aim.at(steps[again], "second", most=2)
    knobs = _knobs(choices, chance, inline=step != "upload")
    more = _more(choices, chance, shape, knobs)
    return Draw(
        knobs=knobs,
        weather=(first, *(weather for weather, _ in more)),
        second=second,
        batch_us=500 + chance.below("batch", 4_000),
        aims=(step, *(name for _, name in more)),
    )


def _knobs(choices: Choices, chance: Chance, *, inline: bool) -> Knobs:
    level = choices.level
    parallelism = [1 + level("parallelism", 4)]
    rescaled = level("rescaled to", PRIME)
    if rescaled < 4 * 3:
        parallelism.append(1 + rescaled % 4)
        while len(parallelism) < 4 and chance.happens("another parallelism", 0.3):
            parallelism.append(1 + chance.below("parallelism", 4))
    concurrent = 1 + (level("concurrent", 4) == 0)
    records = level("records", PRIME)
    return Knobs(
        parallelism=tuple(parallelism),
        per_channel=1 + level("per_channel", 8),
        floating=level("floating", 5),
        records=_ODD_RECORDS[records] if records < len(_ODD_RECORDS) else 32 << records % 4,
        every_ms=(10, 20, 40)[level("every", 3)],
        min_pause_ms=(0, 0, 5, 30)[level("pause", 4)] if concurrent == 1 else 0,
        timeout_ms=(30_000, 30_000, 600)[level("timeout", 3)],
        concurrent=concurrent,
        tolerable=level("tolerable", 4),
        inline_below=20 * 1024 if inline and level("inline", 2) else 0,
        retained=1 + level("retained", 3),
        storage=STORE if level("storage", 5) < 3 else FOLDER,
    )


_ODD_RECORDS = (1, 8, 1_024)
"""Sizes of batches that few seeds have: tiny ones take long, and a large one never fills."""


class _Aim:
    """Aims a kill at a step."""

    def __init__(self, choices: Choices, chance: Chance, shape: Shape) -> None:
        self._choices, self._chance = choices, chance
        self._spots = STEPS | (STEPS_IN_FILES if shape.in_files else {})
        if shape.service is not None:
            self._spots |= STEPS_ON[shape.service]

    def at(self, step: str, which: str, most: int | None = None) -> Weather:
        """Choose which time the step comes, and whether the power goes or only the process."""
        if most is None:
            number = self._choices.level("occurrence", 12 if step in ONE_OF_MANY else 4)
            power = self._choices.level("power", 5) == 0
        else:
            number = self._chance.below(f"{which}: occurrence", most)
            power = self._chance.happens(f"{which}: power", 0.2)
        spots = self._spots
        if most is None and step in STEPS_AT_THE_END and self._choices.level("end", 4) == 0:
            spots = STEPS_AT_THE_END
        trigger = spots[step](1 + number)
        return PowerCut(trigger, None, step) if power else Kill(trigger, None, step)


def _more(choices: Choices, chance: Chance, shape: Shape, knobs: Knobs) -> list[tuple[Weather, str]]:
    """Choose one fault, or a pair of them; return their weather, and the name of the fault that it belongs to."""
    level, faults, moments = choices.level, list(FAULTS.items()), list(MOMENTS.values())
    columns = [("fault", "when")]
    if level("pair", 2):
        columns.append(("another", "another when"))
    found: list[tuple[Weather, str]] = []
    for fault, when in columns:
        circumstances = Circumstances(
            every_ms=knobs.every_ms,
            min_pause_ms=knobs.min_pause_ms,
            timeout_ms=knobs.timeout_ms,
            operator=shape.operators[level("operator", PRIME) % len(shape.operators)] if shape.operators else None,
            on_disk=shape.in_files or knobs.storage == FOLDER,
            service=shape.service,
            count=1 + level("count", 3),
            number=chance.below(f"{fault}: number", PRIME * PRIME),
        )
        trigger = moments[level(when, len(moments))](chance.below(when, PRIME * PRIME), circumstances)
        name, strike = faults[level(fault, len(faults))]
        found += [(weather, name) for weather in strike(trigger, circumstances)]
    return found
