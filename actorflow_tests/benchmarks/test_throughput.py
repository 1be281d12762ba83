"""The benchmark of throughput runs, checks its output, and prints what is promised; at sizes that take no time."""

from __future__ import annotations

import json
import subprocess
import sys
from datetime import timedelta
from typing import Any

import pytest

from actorflow.benchmarks import plain, throughput
from actorflow.benchmarks.throughput import check_counts, run_job, w1_job, w2_job
from actorflow_tests.house.sources import REPOSITORY

PROGRAM = """
import json
from datetime import timedelta
from actorflow.benchmarks.throughput import Sizes, measure

lines = []
sizes = Sizes(every=timedelta(milliseconds=10), w1p_checkpoints=1, {sizes})
print(json.dumps([measure(rounds={rounds}, sizes=sizes, tell=lines.append), lines]))
"""


def measured(rounds: int, sizes: str) -> tuple[dict[str, dict[str, Any]], list[str]]:
    """Measure in a process of its own, as is done outside of tests: here each look for garbage takes half a second."""
    ran = subprocess.run(
        [sys.executable, "-c", PROGRAM.format(rounds=rounds, sizes=sizes)],
        cwd=REPOSITORY,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    figures, lines = json.loads(ran.stdout)
    return figures, lines


def test_both_sides_of_w1_have_the_same_input_and_the_same_output() -> None:
    seconds, counts, calls = plain.plain_w1(25_000)

    assert seconds > 0
    assert calls == 25_000
    assert counts["word-000000"] == 3
    assert len(counts) == plain.KEYS


@pytest.mark.parametrize("parallelism", [1, 4])
def test_the_counts_of_the_job_are_those_of_the_plain_loop(parallelism: int) -> None:
    check_counts(parallelism)


def test_every_record_of_w1_is_given_to_the_sink_once() -> None:
    run = run_job(w1_job(12_345))

    assert run.calls == 12_345
    assert run.seconds > 0
    assert run.checkpoints == 0


def test_w2_keeps_every_second_number() -> None:
    plain.prepare_numbers(12_344)

    assert run_job(w2_job(12_344)).calls == plain.plain_w2(12_344)[1] == 6_172


def test_checkpoints_are_counted_without_the_last_one() -> None:
    run = run_job(w1_job(2_000_000), every=timedelta(milliseconds=50))

    assert run.checkpoints >= 1


def test_the_figures_have_the_shape_that_is_promised() -> None:
    figures, lines = measured(2, "w1_records=20_000, w2_records=10_000, w1p_records=50_000, w1p_seconds=0.001")

    ratio = {"plain_per_s", "actorflow_per_s", "ratio"}
    assert {name: set(figures[name]) for name in figures} == {
        "W1": ratio,
        "W1x4": ratio,
        "W1p": {*ratio, "checkpoints", "over_W1"},
        "W2": ratio,
    }
    assert [line.split(" round")[0] for line in lines if " round" in line] == [
        "W1",
        "W1",
        "W1x4",
        "W1x4",
        "W1p",
        "W1p",
        "W2",
        "W2",
    ]


def test_a_run_with_checkpoints_that_was_too_short_is_done_again_with_more_records() -> None:
    figures, lines = measured(1, "w1_records=1_000, w2_records=1_000, w1p_records=1_000, w1p_seconds=0.05")

    assert figures["W1p"]["checkpoints"] >= 1
    assert any("once more with" in line for line in lines)


def test_wrong_output_is_no_figure() -> None:
    with pytest.raises(AssertionError, match="was called 3 times instead of 4"):
        throughput._checked(throughput.Run(1.0, 3, 0), 4)
