"""The guide: any two things that a seed chooses meet as early as can be, and its number alone decides."""

from __future__ import annotations

from itertools import combinations, product

import pytest

from actorflow.config import Checkpoints, Settings
from actorflow.simulation.aims import FAULTS, MOMENTS, STEPS, STEPS_AT_THE_END, Circumstances
from actorflow.simulation.coverage import met, watched
from actorflow.simulation.guide import COLUMNS, PRIME, Choices, Guide, Luck
from actorflow.simulation.mutants.jobs import JOBS
from actorflow.simulation.oracle import storm_run
from actorflow.simulation.subject import Subject
from actorflow.simulation.swarm import STORE, Shape, draw
from actorflow.simulation.weather import Weather

ROWS = PRIME * PRIME


def levels(seeds: range, column: str, count: int = PRIME) -> list[int]:
    return [Guide(seed).level(column, count) for seed in seeds]


# ── what the table promises ──────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("first", [0, ROWS, 7 * ROWS])
def test_any_two_columns_meet_each_pair_of_values_once_in_961_seeds(first: int) -> None:
    table = {column: levels(range(first, first + ROWS), column) for column in COLUMNS}
    for one, other in combinations(COLUMNS, 2):
        assert len(set(zip(table[one], table[other], strict=True))) == ROWS, (one, other)


def test_each_value_of_a_column_comes_within_31_seeds() -> None:
    for column in COLUMNS:
        for first in (0, 31, 310):
            assert set(levels(range(first, first + PRIME), column)) == set(range(PRIME)), column


def meetings(column: str, seeds: range) -> int:
    return len({(Guide(seed).steps(len(STEPS))[0], Guide(seed).level(column, PRIME)) for seed in seeds})


def test_each_fault_meets_each_step_of_a_kill_within_465_seeds_and_what_matters_most_within_961() -> None:
    everything = len(STEPS) * PRIME
    for block in (0, 3):
        seeds = range(block * ROWS, (block + 1) * ROWS)
        assert meetings("fault", seeds[:everything]) == everything
        met_all = [column for column in COLUMNS if meetings(column, seeds) == everything]
        assert {"when", "another", "another when", "occurrence", "parallelism", "rescaled to", "inline"} < {*met_all}
        assert len(met_all) >= 16
        assert all(meetings(column, seeds) >= 0.9 * everything for column in COLUMNS)


def test_each_step_goes_round_and_each_pair_of_steps_comes_within_675_seeds() -> None:
    steps = len(STEPS)
    drawn = [Guide(seed).steps(steps) for seed in range(3 * steps * steps)]
    assert [first for first, _ in drawn[:steps]] == list(range(steps))
    seconds = [pair for pair in drawn if pair[1] is not None]
    assert set(seconds) == set(product(range(steps), repeat=2))
    assert len(seconds) == len(drawn) // 3


def test_fewer_values_share_a_column_out() -> None:
    for count in (2, 3, 5, 12):
        found = levels(range(ROWS), "timeout", count)
        assert set(found) == set(range(count))
        assert max(map(found.count, range(count))) - min(map(found.count, range(count))) <= PRIME


def test_a_seed_chooses_by_its_number_alone_whatever_was_asked_before() -> None:
    asked = Guide(1_234)
    forwards = [asked.level(column, 7) for column in COLUMNS]
    backwards = [Guide(1_234).level(column, 7) for column in reversed(COLUMNS)]
    assert forwards == backwards[::-1]
    assert [asked.level(column, 7) for column in COLUMNS] == forwards
    assert draw(1_234, Shape(operators=("a", "b"))) == draw(1_234, Shape(operators=("a", "b")))


def test_the_columns_are_dealt_anew_in_each_block() -> None:
    assert len({tuple(levels(range(block * ROWS, block * ROWS + PRIME), "fault")) for block in range(5)}) == 5


# ── better than chance ───────────────────────────────────────────────────────────────────────


def pairs_of(choices: list[Choices]) -> set[tuple[int, int]]:
    return {(one.steps(len(STEPS))[0], one.level("fault", len(FAULTS))) for one in choices}


def test_a_kill_at_each_step_meets_each_fault_earlier_than_by_chance() -> None:
    everything = len(STEPS) * len(FAULTS)
    for seeds in (100, 200, everything):
        guided = pairs_of([Guide(seed) for seed in range(seeds)])
        by_chance = pairs_of([Luck(seed) for seed in range(seeds)])
        assert len(guided) == seeds > len(by_chance) * 1.1
    assert len(pairs_of([Luck(seed) for seed in range(2 * everything)])) < everything


@pytest.mark.slow
def test_guided_storms_meet_more_pairs_of_faults_and_more_edges_of_the_machines_than_storms_by_chance() -> None:
    subject = Subject(JOBS["words"])
    guided, by_chance = (met(subject, range(1, 466), guided=guided) for guided in (True, False))
    assert guided.failed == by_chance.failed == 0
    assert guided.steps_and_faults > 1.1 * by_chance.steps_and_faults
    assert len(guided.pairs) > 1.1 * len(by_chance.pairs)
    assert len(guided.edges) >= len(by_chance.edges)


def test_what_a_storm_met_is_told_and_looking_on_changes_nothing() -> None:
    subject = Subject(JOBS["words"])
    alone = storm_run(subject, 3).digest
    with watched() as edges:
        assert storm_run(subject, 3).digest == alone
    assert ("TwoPhaseCommit", "Committing", "CommitAnswered", "Idle") in edges
    found = met(subject, range(3, 5))
    assert found.failed == 0
    assert found.pairs
    assert edges <= set(found.edges)


# ── what there is to choose from ─────────────────────────────────────────────────────────────


def circumstances(number: int, *, on_disk: bool = True) -> Circumstances:
    return Circumstances(
        every_ms=10, min_pause_ms=0, timeout_ms=600, operator="count", on_disk=on_disk, count=2, number=number
    )


def test_every_fault_is_weather_at_every_moment() -> None:
    assert len(FAULTS) <= PRIME
    assert len(MOMENTS) <= PRIME
    for number, (fault, moment) in enumerate(product(FAULTS.values(), MOMENTS.values())):
        for on_disk in (True, False):
            around = circumstances(number, on_disk=on_disk)
            found = fault(moment(number, around), around)
            assert all(isinstance(one, Weather) for one in found)
            assert found or not on_disk


def test_what_is_aimed_at_the_end_is_a_step_like_any_other() -> None:
    assert set(STEPS_AT_THE_END) <= set(STEPS)
    assert len({str(aim(1)) for aim in STEPS_AT_THE_END.values()}) >= 5


def test_knobs_are_the_same_settings_in_the_words_of_a_scenario() -> None:
    base = Settings(checkpoints=Checkpoints(storage=STORE))
    for seed in range(120):
        knobs = draw(seed).knobs
        said = Settings.from_mapping({**knobs.environment(), "parallelism": knobs.parallelism[0]}, base=base)
        assert said == knobs.settings(knobs.parallelism[0])
