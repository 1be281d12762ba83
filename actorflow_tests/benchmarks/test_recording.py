"""The benchmark of recording runs W1 with and without, in turns, at a size that takes little time."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import actorflow as af
from actorflow.benchmarks.recording import measure
from actorflow.cli.bench import run_bench


def test_the_figures_are_of_a_job_that_was_run_and_recorded(capsys: pytest.CaptureFixture[str]) -> None:
    assert run_bench("recording", as_json=True, rounds=2, records=20_017) == 0
    out, err = capsys.readouterr()

    figures = json.loads(out)
    assert set(figures) == {"W1_s", "recorded_s", "ratio", "best_ratio", "bytes"}
    assert 0.2 < figures["best_ratio"] < 20
    assert figures["bytes"] > 1_000
    assert "round 2 of 2" in err


def test_a_run_that_loses_records_is_no_measurement() -> None:
    def nothing(job: af.Job) -> None:
        return

    def nothing_recorded(job: af.Job, path: Path) -> None:
        path.write_bytes(b"")

    with pytest.raises(AssertionError, match="0 times instead of 10"):
        measure(nothing, nothing_recorded, tell=lambda _: None, rounds=1, records=10)
