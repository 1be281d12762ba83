"""The verb: which benchmarks there are, and where their figures go."""

from __future__ import annotations

import json

import pytest

from actorflow.cli.bench import run_bench
from actorflow.cli.exits import UsageMistake


def test_a_benchmark_that_there_is_not_is_a_mistake_that_names_those_there_are() -> None:
    names = "throughput, latency, memory, simulation"
    with pytest.raises(UsageMistake, match=f"no benchmark 'speed': write one of {names}"):
        run_bench("speed", as_json=True, rounds=1)


def test_the_last_line_of_stdout_is_the_object_and_progress_goes_to_stderr(
    capsys: pytest.CaptureFixture[str],
) -> None:
    run_bench("memory", as_json=True, rounds=1, records=50_000)
    out, err = capsys.readouterr()

    assert {"at_20_percent_mb", "highest_after_mb", "growth_percent"} == set(json.loads(out))
    assert out.count("\n") == 1
    assert "records" in err
