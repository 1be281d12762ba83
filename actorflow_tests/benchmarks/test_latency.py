"""The benchmark of latency runs, at sizes that take no time."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from datetime import timedelta

import pytest

from actorflow.benchmarks import latency, stall
from actorflow.benchmarks.latency import Sizes, idle_latency, measure, measure_stalls


def test_every_record_reaches_the_idle_sink() -> None:
    figures = asyncio.run(idle_latency(20))

    assert set(figures) == {"p50", "p99"}
    assert 0 < figures["p50"] <= figures["p99"]


@pytest.mark.parametrize("values", stall.VALUES)
def test_the_load_fills_its_state_and_is_watched_while_checkpoints_complete(values: str) -> None:
    ready: list[bool] = []

    figures = asyncio.run(
        stall.run_load(
            values=values,
            keys=2_000,
            seconds=0.1,
            checkpoints=2,
            every=timedelta(milliseconds=20),
            on_ready=lambda: ready.append(True),
        )
    )

    assert ready == [True]
    assert figures["checkpoints"] >= 2
    assert len(figures["snapshot_loop_s"]) == figures["checkpoints"]
    assert figures["records_per_s"] > 0
    assert figures["max"] >= figures["p99_9"]


def test_the_state_of_lists_is_changed_in_place() -> None:
    state, _ = stall.mean_length(None, "ab")
    again, output = stall.mean_length(state, "ab")

    assert again is state == [2, 4]
    assert output == ("ab", 2)


def test_the_load_and_the_idle_loop_run_in_processes_of_their_own() -> None:
    figures = measure_stalls(
        values="integers", cores=1, sizes=Sizes(seconds=0.1, keys=1_000, checkpoints=1, every_s=0.05)
    )

    assert {"p99_9", "max", "machine", "checkpoints", "snapshot_loop_s"} <= set(figures)
    assert set(figures["machine"]) == {"p99_9", "max"}


def test_a_load_that_fails_is_an_error_and_not_a_figure() -> None:
    with pytest.raises(RuntimeError, match="ended with"):
        measure_stalls(values="integers", cores=1, sizes=Sizes(keys=1_001))


def test_the_figures_have_the_shape_that_is_promised() -> None:
    lines: list[str] = []
    tiny = Sizes(idle_samples=5, seconds=0.05, keys=1_000, checkpoints=1, every_s=0.05)

    figures = measure(rounds=1, sizes=tiny, tell=lines.append)

    assert {"idle_ms", "stall_ms", "snapshot_loop_s", "variants"} == set(figures)
    assert {"p99_9", "max", "machine"} == set(figures["stall_ms"])
    assert figures["stall_ms"]["max"] == max(run["max"] for run in figures["variants"].values())
    assert set(latency.VARIANTS) == set(figures["variants"])
    assert len(lines) == 1 + len(latency.VARIANTS)
    assert json.loads(json.dumps(figures)) == figures


def test_an_idle_loop_is_watched_until_its_input_is_closed() -> None:
    said = subprocess.run(
        [sys.executable, "-m", "actorflow.benchmarks.stall", "idle"],
        input="",
        capture_output=True,
        text=True,
        check=True,
    ).stdout

    assert set(json.loads(said)) == {"p99_9", "max"}
