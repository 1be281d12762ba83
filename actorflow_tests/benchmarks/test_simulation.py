"""The benchmark of the simulator runs the very storms, at a size that takes little time."""

from __future__ import annotations

import json

import pytest

from actorflow.benchmarks.simulation import measure, time_seeds
from actorflow.cli.bench import run_bench


def test_the_figures_have_the_shape_that_is_promised(capsys: pytest.CaptureFixture[str]) -> None:
    run_bench("simulation", as_json=True, rounds=1, storms=1, seeds=1)
    out, err = capsys.readouterr()

    figures = json.loads(out)
    assert set(figures) == {"steps_per_s", "storms_s"}
    assert 100 < figures["steps_per_s"] < 100_000_000
    assert figures["storms_s"] > 0.05
    assert "round 1 of 1" in err


def test_steps_are_those_that_storms_took_and_the_first_storm_does_not_count() -> None:
    asked: list[int] = []

    def storm(seed: int) -> int:
        asked.append(seed)
        sum(range(100_000))  # some of the process's own time
        return 10

    lines: list[str] = []
    figures = measure(storm, lambda _: storm(0), rounds=3, storms=4, seeds=1, tell=lines.append)
    assert asked == [1, *(1, 2, 3, 4) * 3, *[0] * 4]
    assert [line.partition(":")[0] for line in lines[:3]] == [f"round {number} of 3" for number in (1, 2, 3)]
    assert "40 steps in 4 storms" in lines[0]
    assert figures["steps_per_s"] > 0


def test_seeds_that_come_to_nothing_are_no_measurement() -> None:
    with pytest.raises(RuntimeError, match="1 seeds came to nothing"):
        time_seeds(1, {"PATH": "", "PYTHONPATH": "/nowhere", "PYTHONHOME": "/nowhere"})
