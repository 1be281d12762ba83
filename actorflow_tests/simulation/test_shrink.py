"""A failing run becomes a small scenario that fails in the same way; it passes once the fault is mended."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

import actorflow as af
from actorflow.connectors import console, generator
from actorflow.simulation.inlining import inputs_of
from actorflow.simulation.mutants import MUTANTS, hunt_one
from actorflow.simulation.mutants.jobs import JOBS, words
from actorflow.simulation.narrowing import fewest, least
from actorflow.simulation.play import play_seed
from actorflow.simulation.scenario import Fault, Scenario
from actorflow.simulation.scenario_reading import read_scenario
from actorflow.simulation.shrink import NotFailing, Shrunk, kind_of, save, scenario_of_seed, shrink
from actorflow.simulation.simpler import simpler_weather
from actorflow.simulation.weather import After, At, FailObjects, Kill, Pause, PowerCut

WORDS = "actorflow.simulation.mutants.jobs:words"

# ── few of many ──────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("needed", [(), (0,), (49,), (3, 31), (7, 8, 9), (0, 24, 25, 49)])
def test_the_things_that_are_needed_are_found_among_many_and_with_few_questions(needed: tuple[int, ...]) -> None:
    asked: list[tuple[int, ...]] = []

    def happens(some: tuple[int, ...]) -> bool:
        asked.append(some)
        return set(needed) <= set(some)

    assert fewest(range(50), happens) == needed
    assert len(asked) < 20 * (len(needed) + 1)


def test_no_single_thing_can_be_left_out_even_where_parts_depend_on_each_other() -> None:
    def happens(some: tuple[int, ...]) -> bool:
        return len(some) >= 3 and sum(some) % 2 == 0

    found = fewest(range(20), happens)
    assert happens(found)
    assert not any(happens(found[:index] + found[index + 1 :]) for index in range(len(found)))


def test_the_least_number_is_found_by_halves() -> None:
    for wanted in (0, 1, 37, 99, 100):
        asked: list[int] = []

        def happens(number: int, wanted: int = wanted, asked: list[int] = asked) -> bool:
            asked.append(number)
            return number >= wanted

        assert least(0, 100, happens) == wanted
        assert len(asked) <= 7


def test_faults_have_simpler_ones() -> None:
    power = Fault(weather=PowerCut(After("SnapshotTaken", occurrence=5, later_ms=4)), life=2)
    simpler = list(simpler_weather(power))
    assert Fault(weather=Kill(power.weather.when), life=2) in simpler
    assert replace(power, life=1) in simpler
    assert Fault(weather=PowerCut(After("SnapshotTaken", occurrence=1, later_ms=4)), life=2) in simpler
    assert Fault(weather=PowerCut(After("SnapshotTaken", occurrence=5)), life=2) in simpler
    assert list(simpler_weather(Fault(weather=Pause(At(3))))) == []
    refused = Fault(weather=FailObjects(At(3), count=4))
    assert [one.weather for one in simpler_weather(refused)] == [FailObjects(At(3)), FailObjects(At(3), count=2)]


# ── the same way of failing ──────────────────────────────────────────────────────────────────


def test_numbers_and_samples_do_not_make_another_way_of_failing_and_rows_lost_or_doubled_do() -> None:
    lost = "[[expect]] 1: output of 'rows' is not same as the calm run: 12 rows are missing (('w0', 1) …)"
    fewer = "[[expect]] 2: output of 'rows' is not same as the calm run: 2 rows are missing (('w7', 31) …)"
    doubled = "[[expect]] 1: output of 'rows' is not same as the calm run: 2 rows are there too often or wrong (1 …)"
    assert kind_of(lost) == kind_of(fewer) != kind_of(doubled)
    hangs = "seed 4, in its storm: the job does not finish within 60000 ms of calm weather; it is RUNNING\nwho waits"
    dead = "seed 19, in its storm: the job does not finish within 60000 ms of calm weather; it is not started\nwho"
    assert kind_of(hangs) == kind_of(dead) == "in its storm: the job does not finish within # ms of calm weather"


# ── from a seed to a file ────────────────────────────────────────────────────────────────────


def test_a_seed_that_passes_is_a_scenario_that_passes_and_can_not_be_shrunk() -> None:
    scenario = scenario_of_seed(WORDS, 3)
    assert scenario.weather
    assert play_seed(scenario, 3).failures == ()
    with pytest.raises(NotFailing, match="seed 3 passes"):
        shrink(scenario, 3)


def small(mutant: str, tmp_path: Path, budget: int = 90) -> tuple[Shrunk, Path]:
    """Shrink what a planted fault does to the first seed that finds it; the file fails with it and passes without."""
    seed = hunt_one(mutant, 20)
    assert seed is not None
    with MUTANTS[mutant].planted():
        told: list[str] = []
        shrunk = shrink(scenario_of_seed(WORDS, seed), seed, budget=budget, told=told.append)
        path = save(shrunk, tmp_path)
        failures = play_seed(read_scenario(path), seed).failures
    assert told
    assert shrunk.tried <= budget
    assert set(map(kind_of, failures)) & set(map(kind_of, shrunk.failures))
    assert play_seed(read_scenario(path), seed).failures == ()
    return shrunk, path


def size(scenario: Scenario) -> int:
    return sum(len(one.records or ()) for one in scenario.inputs)


@pytest.mark.slow
def test_a_lost_record_is_shrunk_to_two_faults_and_few_records(tmp_path: Path) -> None:
    shrunk, path = small("position-off-by-one", tmp_path)
    assert 1 <= len(shrunk.scenario.weather) <= 2
    assert 1 <= size(shrunk.scenario) <= 6
    assert shrunk.scenario.schedule.shuffle_rounds is not None
    text = path.read_text()
    assert "It failed so: output of 'rows' is not same as the calm run" in text
    assert f"seeds = {{ first = {shrunk.seed}, count = 1 }}" in text


def test_rows_that_are_not_committed_are_shrunk_to_the_fault_between_manifest_and_commit(tmp_path: Path) -> None:
    shrunk, path = small("prepared-rows-not-restored", tmp_path)
    assert path.name == f"words_rows_are_missing_{shrunk.seed}.toml"
    assert shrunk.scenario.title == f"words: rows are missing under seed {shrunk.seed}"
    assert len(shrunk.scenario.weather) <= 2
    assert size(shrunk.scenario) <= 2
    assert set(shrunk.scenario.environment) <= {"checkpoints"}


@pytest.mark.slow
@pytest.mark.parametrize("mutant", sorted(MUTANTS))
def test_whatever_is_planted_is_shrunk_to_three_faults_at_most(mutant: str, tmp_path: Path) -> None:
    seed = hunt_one(mutant)
    assert seed is not None
    jobs = MUTANTS[mutant].jobs
    job = f"actorflow.simulation.mutants.jobs:{jobs[seed % len(jobs)]}"
    with MUTANTS[mutant].planted():
        shrunk = shrink(scenario_of_seed(job, seed), seed)
        path = save(shrunk, tmp_path)
        assert play_seed(read_scenario(path), seed).failures
    assert len(shrunk.scenario.weather) <= 3
    assert play_seed(read_scenario(path), seed).failures == ()


# ── records ──────────────────────────────────────────────────────────────────────────────────


def test_what_a_jobs_sources_give_can_be_written_down() -> None:
    (lines,) = inputs_of(words())
    assert lines.source == "lines"
    assert lines.splits == 3
    assert lines.records is not None
    assert len(lines.records) == 120
    assert [record.value for record in lines.records[:3]] == ["w0 W0", "w1 W1", "w2 W4"]
    assert max(record.at_ms or 0 for record in lines.records) >= 50
    assert [one.source for one in inputs_of(JOBS["two_sources"]())] == ["short", "long"]


def test_a_job_that_reads_much_is_left_alone() -> None:
    job = af.Job("much")
    job.read(generator.numbers(5_000), name="numbers").write(console.lines(), name="rows")
    assert inputs_of(job) == ()
