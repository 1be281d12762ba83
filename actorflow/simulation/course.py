"""What does one run go through?  What a seed of the swarm drew, or what a scenario says, in one form for ``lives.py``.

A course says with which settings each life is started, what is to go wrong and in which life, what is asked of the job
from outside, and for how long the weather may last.  Nothing here does anything.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from actorflow.config import Checkpoints, Settings
from actorflow.errors import InvalidConfig
from actorflow.simulation.scenario import (
    AboutJournal,
    AboutRegistry,
    AboutStatus,
    AboutStorage,
    Fault,
    Input,
    Scenario,
    Step,
)
from actorflow.simulation.swarm import STORE, Draw
from actorflow.simulation.weather import After, At, Trigger, Weather

__all__ = ("Course", "course_of_draw", "course_of_scenario", "settings_of")

STORM_MS = 120_000
"""After so long the weather lifts, unless the scenario names a later time."""

_LEFT_BEHIND_MS = 60_000
"""So much later than the last time that a scenario names: what comes after an entry of the journal comes late."""

MOST_LIVES = 12
"""After so many lives the weather lifts."""

CALM_WITHIN_MS = 60_000
"""Within this the job must finish once the weather has lifted."""

_DEFAULTS = Settings(checkpoints=Checkpoints(storage=STORE))
"""What holds in a simulated world where a scenario says nothing: storage that everybody reaches."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Course:
    """What a run goes through.  ``settings`` are those of a life, by its parallelism."""

    settings: Callable[[int], Settings]
    parallelism: tuple[int, ...]
    """Of each life, the last one for all that follow."""
    faults: tuple[Fault, ...] = ()
    steps: tuple[Step, ...] = ()
    second: Weather | None = None
    """What is expected in the life that follows the first that was killed."""
    always_kills: bool = False
    """Whether a kill whose moment never comes strikes at the final checkpoint instead."""
    batch_us: int = 0
    shuffle_rounds: int | None = None
    earlier_parallelism: bool = False
    """Whether a life whose parallelism its checkpoint refuses is started with an earlier one, or is a failure."""
    storm_ms: int = STORM_MS
    busy_until_ms: int = 0
    """Before this, the job can't be over in the calmest weather."""
    calm_within_ms: int = CALM_WITHIN_MS
    calm_said_in: str = ""
    """Where whoever made up this course can say that it takes longer."""
    most_lives: int = MOST_LIVES
    may_fail: bool = False
    """Whether failing for good is an end as good as any."""
    foreseen: tuple[str, ...] = ()
    """Causes of failures that are no mistake, because the scenario is about them."""
    keeps_values: bool = True
    """Whether what is told holds rows and state as Python values too; many of them take the collector's time."""
    lists_storage: bool = False
    lists_disk: bool = False

    def parallelism_of(self, life: int) -> int:
        """With how many subtasks a life is started; the first is life 0."""
        return self.parallelism[min(life, len(self.parallelism) - 1)]


def course_of_draw(drawn: Draw, *, storm: bool) -> Course:
    """Return the course of a seed of the swarm."""
    return Course(
        settings=drawn.knobs.settings,
        parallelism=drawn.knobs.parallelism,
        faults=tuple(Fault(weather=weather) for weather in drawn.weather) if storm else (),
        second=drawn.second if storm else None,
        always_kills=storm,
        earlier_parallelism=True,
        batch_us=drawn.batch_us,
        keeps_values=False,
    )


def course_of_scenario(scenario: Scenario, *, storm: bool) -> Course:
    """Return the course of a scenario, in its weather or in none.  Raises ``InvalidConfig`` for its settings."""
    settings = settings_of(scenario)
    times = [_known_time(step.when) for step in scenario.steps]
    busy_until_ms = max([0, *times, *(_read_until(one) for one in scenario.inputs)])
    expectations = scenario.expectations
    storages = [expected for expected in expectations if isinstance(expected, AboutStorage)]
    return Course(
        settings=lambda parallelism: settings.merged({"parallelism": parallelism}),
        parallelism=scenario.lives or (settings.parallelism,),
        faults=scenario.weather if storm else (),
        steps=scenario.steps,
        batch_us=scenario.schedule.batch_us,
        shuffle_rounds=scenario.schedule.shuffle_rounds,
        earlier_parallelism=scenario.schedule.earlier_parallelism,
        storm_ms=max(
            [STORM_MS, busy_until_ms + _LEFT_BEHIND_MS, *(_weather_until(one.weather) for one in scenario.weather)]
        ),
        busy_until_ms=busy_until_ms,
        calm_within_ms=scenario.calm_within_ms,
        calm_said_in="[calm] within",
        most_lives=max([MOST_LIVES, *(fault.life + 2 for fault in scenario.weather)]),
        may_fail=any(isinstance(expected, AboutStatus) and expected.status == "FAILED" for expected in expectations),
        foreseen=tuple(
            str(expected.where["cause"])
            for expected in expectations
            if isinstance(expected, AboutJournal) and "cause" in expected.where and expected.at_most != 0
        ),
        lists_storage=any(not expected.on_disk for expected in storages)
        or any(isinstance(expected, AboutRegistry) for expected in expectations),
        lists_disk=any(expected.on_disk for expected in storages),
    )


def settings_of(scenario: Scenario) -> Settings:
    """Return the settings that a scenario's job is run with, before the job itself has its say."""
    settings = Settings.from_mapping(scenario.environment, base=_DEFAULTS, source=scenario.file or scenario.title)
    if settings.checkpoints.storage is None:
        raise InvalidConfig(
            f"{scenario.file or scenario.title}: what is in a process's memory is gone with it; name a storage"
        )
    return settings


def _known_time(when: Trigger) -> int:
    """The virtual time that a trigger names; 0 where only the journal knows."""
    match when:
        case At(ms=ms):
            return ms
        case After(later_ms=later_ms):
            return later_ms
    return 0


def _weather_until(weather: Weather) -> int:
    """When a fault has passed, as far as its words say; with some time for what it leaves behind."""
    lasts = max([0, *(getattr(weather, name, 0) for name in ("ms", "for_ms", "by_ms"))])
    return _known_time(weather.when) + lasts + _LEFT_BEHIND_MS


def _read_until(one: Input) -> int:
    """When the last record of an input is there."""
    last = max([0, *(record.at_ms or 0 for record in one.records or ())])
    count = one.count if one.count is not None else len(one.records or ())
    return max(last, round(1_000 * count / one.per_second)) if one.per_second else last
