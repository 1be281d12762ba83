"""What a run goes through is read from a scenario: settings, times, and what is no mistake."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

import actorflow as af
from actorflow.model import journal
from actorflow.simulation.course import CALM_WITHIN_MS, STORM_MS, Course, course_of_draw, course_of_scenario
from actorflow.simulation.mistakes import Mistakes
from actorflow.simulation.runs import SeedFailed
from actorflow.simulation.scenario import (
    AboutJournal,
    AboutRegistry,
    AboutStatus,
    AboutStorage,
    Fault,
    Input,
    Schedule,
    Step,
    TimedRecord,
)
from actorflow.simulation.swarm import draw
from actorflow.simulation.weather import After, At, Kill, Partition
from actorflow_tests.simulation.played import scenario


def course(*expectations: Any, **said: Any) -> Course:
    return course_of_scenario(scenario("counting", *expectations, **said), storm=True)


def test_settings_are_those_of_the_scenario_over_a_storage_that_everybody_reaches() -> None:
    settings = course(environment={"buffers": {"per_channel": 3}}).settings(5)
    assert (settings.parallelism, settings.buffers.per_channel) == (5, 3)
    assert settings.checkpoints.storage == "s3://home"
    assert settings.checkpoints.every == timedelta(milliseconds=50)
    with pytest.raises(af.InvalidConfig, match="name a storage"):
        course(environment={"checkpoints": {"storage": "none"}})


def test_each_life_has_its_parallelism_and_the_last_one_holds_for_all_that_follow() -> None:
    told = course(lives=(1, 4, 2))
    assert [told.parallelism_of(life) for life in range(5)] == [1, 4, 2, 2, 2]
    assert course(environment={"parallelism": 3}).parallelism == (3,)


def test_the_calm_run_has_the_steps_and_not_the_weather() -> None:
    told = scenario("counting", weather=(Fault(weather=Kill(At(1))),), steps=(Step(when=At(9), act="stop"),))
    assert len(course_of_scenario(told, storm=True).faults) == 1
    calm = course_of_scenario(told, storm=False)
    assert (calm.faults, len(calm.steps)) == ((), 1)


def test_the_weather_lifts_after_the_last_of_it_has_passed() -> None:
    assert course(inputs=()).storm_ms == STORM_MS
    late = Fault(weather=Partition(At(400_000), "job", ms=30_000))
    assert course(weather=(late,)).storm_ms == 430_000 + STORM_MS // 2
    assert course(weather=(Fault(weather=Kill(At(1)), life=30),)).most_lives == 32


def test_nobody_is_late_while_input_and_steps_are_still_to_come() -> None:
    assert course(inputs=()).busy_until_ms == 0
    assert course(inputs=(Input(source="numbers", make="x:y", count=500, per_second=2),)).busy_until_ms == 250_000
    timed = Input(source="numbers", records=(TimedRecord(value=1, at_ms=70_000), TimedRecord(value=2)))
    assert course(inputs=(timed,)).busy_until_ms == 70_000
    steps = (Step(when=At(90_000), act="stop"), Step(when=After("JobStopped", later_ms=5_000), act="start"))
    assert course(inputs=(timed,), steps=steps).busy_until_ms == 90_000
    assert course().calm_within_ms == CALM_WITHIN_MS
    assert course(calm_within_ms=7).calm_within_ms == 7


def test_the_weather_lasts_as_long_as_there_is_something_to_come() -> None:
    slow = Input(source="numbers", make="x:y", count=500, per_second=2)
    assert course(inputs=(slow,)).storm_ms == 250_000 + STORM_MS // 2
    assert course(inputs=()).storm_ms == STORM_MS


def test_storage_is_looked_at_only_where_somebody_asks() -> None:
    assert not course().lists_storage
    assert not course().lists_disk
    assert course(AboutStorage(pattern="*")).lists_storage
    assert course(AboutRegistry(retained=())).lists_storage
    disk = course(AboutStorage(pattern="*", on_disk=True))
    assert (disk.lists_storage, disk.lists_disk) == (False, True)


def test_the_schedule_reaches_the_loop() -> None:
    told = course(schedule=Schedule(shuffle_rounds=7, batch_us=11))
    assert (told.shuffle_rounds, told.batch_us) == (7, 11)


def test_a_seed_of_the_swarm_has_a_course_too() -> None:
    drawn = draw(3)
    storm, calm = course_of_draw(drawn, storm=True), course_of_draw(drawn, storm=False)
    assert len(storm.faults) == len(drawn.weather)
    assert (storm.always_kills, calm.always_kills, calm.faults, calm.second) == (True, False, (), None)
    assert storm.parallelism == calm.parallelism == drawn.knobs.parallelism
    assert storm.settings(2) == drawn.knobs.settings(2)


# ── mistakes ─────────────────────────────────────────────────────────────────────────────────


def failed(cause: str) -> journal.Line:
    return journal.Line(1, 1, "job", journal.ActorFailed(operator="o", subtask=0, cause=cause, detail="so it is"))


def restarts(cause: str, detail: str = "") -> journal.Line:
    entry = journal.JobRestarting(job="j", attempt=1, delay_ms=1, cause=cause, detail=detail)
    return journal.Line(1, 1, "job", entry)


def wrong(told: Course, *lines: journal.Line, storm: bool = True) -> str:
    mistakes = Mistakes(told, storm=storm)
    for line in lines:
        mistakes.read(line)
    return mistakes.wrong


def test_a_mistake_is_found_unless_the_scenario_is_about_it() -> None:
    plain = course()
    about = course(AboutJournal(entry="ActorFailed", where={"cause": "TypeError"}), AboutStatus(status="FAILED"))
    assert about.may_fail
    assert wrong(plain, failed("TypeError")) == "TypeError: so it is"
    assert wrong(about, failed("TypeError")) == ""
    assert wrong(about, failed("KeyError")) == "KeyError: so it is"
    never = course(AboutJournal(entry="ActorFailed", where={"cause": "TypeError"}, at_most=0))
    assert wrong(never, failed("TypeError")) != ""
    assert wrong(plain, failed("ConnectionError")) == ""
    with pytest.raises(SeedFailed, match="so it is"):
        mistakes = Mistakes(plain, storm=True)
        mistakes.read(failed("AssertionError"))
        mistakes.check()


def test_every_restart_in_calm_weather_is_a_mistake_but_the_foreseen() -> None:
    foreseen = course(AboutJournal(entry="ActorFailed", where={"cause": "ValueError"}))
    assert wrong(course(), restarts("StorageFailed")) == ""
    assert wrong(course(), restarts("StorageFailed"), storm=False) != ""
    assert wrong(foreseen, restarts("OperatorFailed", "it raised ValueError: no"), storm=False) == ""


def test_what_one_of_two_processes_misses_is_no_mistake() -> None:
    replaced = journal.Line(1, 1, "", journal.WeatherStruck(verb="replace", target="job"))
    assert wrong(course(), restarts("RestoreFailed")) != ""
    assert wrong(course(), replaced, restarts("RestoreFailed")) == ""
