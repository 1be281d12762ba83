"""What a seed draws: knobs, weather, and a kill at each step in turn."""

from __future__ import annotations

from collections import Counter

import pytest

from actorflow.config import Settings
from actorflow.simulation.swarm import PROCESS, STEPS, Shape, draw
from actorflow.simulation.weather import Kill, PowerCut, Weather

SEEDS = range(300)
SHAPES = (Shape(), Shape(operators=("read", "count")), Shape(operators=("read",), in_files=True))


def kills(weather: tuple[Weather, ...]) -> list[str]:
    return [one.step for one in weather if isinstance(one, Kill | PowerCut) and one.step]


@pytest.mark.parametrize("shape", SHAPES)
def test_a_seed_draws_the_same_each_time(shape: Shape) -> None:
    for seed in range(50):
        assert draw(seed, shape) == draw(seed, shape)
    assert len({str(draw(seed, shape)) for seed in range(50)}) == 50


@pytest.mark.parametrize("shape", SHAPES)
def test_every_seed_kills_and_each_step_has_its_turn(shape: Shape) -> None:
    steps: Counter[str] = Counter()
    for seed in SEEDS:
        drawn = draw(seed, shape)
        assert kills(drawn.weather)
        steps.update(kills(drawn.weather) + ([drawn.second.step] if isinstance(drawn.second, Kill | PowerCut) else []))
    assert {*steps} == {*STEPS}
    assert min(steps.values()) >= len(SEEDS) // len(STEPS)


def test_at_least_one_seed_in_four_kills_again_in_the_life_that_follows() -> None:
    again = sum(draw(seed).second is not None for seed in SEEDS)
    assert again >= len(SEEDS) // 4


def test_knobs_cover_their_ranges_and_are_settings_that_hold() -> None:
    drawn = [draw(seed).knobs for seed in SEEDS]
    assert {one for knobs in drawn for one in knobs.parallelism} == {1, 2, 3, 4}
    assert {knobs.per_channel for knobs in drawn} == set(range(1, 9))
    assert {knobs.retained for knobs in drawn} == {1, 2, 3}
    assert {knobs.inline_below for knobs in drawn} == {0, 20 * 1024}
    assert len({knobs.storage for knobs in drawn}) == 2
    for knobs in drawn:
        for life in range(6):
            parallelism = knobs.parallelism_of(life)
            assert parallelism == knobs.parallelism[min(life, len(knobs.parallelism) - 1)]
            settings = knobs.settings(parallelism)
            assert isinstance(settings, Settings)
            assert settings.parallelism == parallelism
            assert settings.buffers.most_per_channel >= settings.buffers.per_channel


def test_what_depends_on_the_job_changes_no_knob_and_no_first_kill() -> None:
    for seed in range(60):
        bare, full = (draw(seed, shape) for shape in (SHAPES[0], SHAPES[1]))
        assert bare.knobs == full.knobs
        assert bare.weather[0] == full.weather[0]
        assert bare.batch_us == full.batch_us


def test_the_process_has_a_name() -> None:
    assert PROCESS == "job"
