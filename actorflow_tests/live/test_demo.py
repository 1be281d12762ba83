"""``actorflow demo``, in short: a real child, really killed, and nothing left behind."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from actorflow.cli.demo import Length, run_demo
from actorflow.cli.demo_check import rows_of
from actorflow.cli.demo_life import environment

SHORT = Length(reads_for_s=3.0, kills=5, at_least=5, kills_until_s=30.0, ends_after_s=120.0)


def test_the_demo_kills_compares_and_tells(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    kept = tmp_path / "kept"

    code = run_demo(as_json=True, seed=2, keep=kept, length=SHORT)

    said = capsys.readouterr()
    result = json.loads(said.out)
    assert code == 0, said.err
    assert said.out.count("\n") == 1
    assert result["difference"] == 0
    assert result["kills"] >= 5
    assert result["checkpoints"] > 0
    assert result["records_replayed"] >= 0
    assert 0 < result["recovery_s"]["median"] <= result["recovery_s"]["max"]
    assert result["words"] == len(rows_of(kept / "counts"))
    assert "while it restored" in said.err
    assert f"the rows are in {kept / 'counts'}" in said.err


def test_a_demo_whose_input_is_not_drained_in_time_gives_up(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code = run_demo(as_json=True, seed=2, keep=tmp_path, length=Length(reads_for_s=60.0, ends_after_s=0.5))

    said = capsys.readouterr()
    assert (code, said.out) == (1, "")
    assert "the input was not drained after 0.5 s" in said.err


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_demo_that_is_interrupted_ends_its_child_and_leaves_nothing(
    tmp_path: Path, number: signal.Signals, code: int
) -> None:
    demo = subprocess.Popen(
        [sys.executable, "-m", "actorflow", "demo"],
        env=environment() | {"TMPDIR": str(tmp_path)},
        stderr=subprocess.PIPE,
        text=True,
    )
    assert demo.stderr is not None
    with demo, demo.stderr:
        while not (folders := list(tmp_path.glob("actorflow-demo-*/.actorflow"))):
            assert demo.poll() is None
            time.sleep(0.01)
        child = _child_of(demo.pid)
        demo.send_signal(number)
        assert demo.wait(30) == code, demo.stderr.read()
    assert folders
    assert list(tmp_path.iterdir()) == []
    assert not Path(f"/proc/{child}").exists()


def _child_of(process: int) -> int:
    """The child; on a machine without ``/proc`` one that is never there."""
    try:
        return int(Path(f"/proc/{process}/task/{process}/children").read_text().split()[0])
    except (OSError, IndexError):
        return -1
