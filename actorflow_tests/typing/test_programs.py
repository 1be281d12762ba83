"""Types are tested like behaviour: programs say with ``assert_type`` what mypy must find, and mypy reads them strictly.

One run of mypy reads all of them, as a user's own would: through the front door and the side doors.
"""

from __future__ import annotations

import asyncio
import importlib
import subprocess
import sys
from pathlib import Path

import pytest

import actorflow as af
from actorflow_tests.house.sources import REPOSITORY

PROGRAMS = Path(__file__).parent / "programs"
NAMES = sorted(path.stem for path in PROGRAMS.glob("*.py"))
WITH_A_JOB = [name for name in NAMES if name != "mistakes"]


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """What mypy says of all programs."""
    pytest.importorskip("mypy", reason="it comes with the extra `test`")
    cache = str(tmp_path_factory.mktemp("mypy"))
    ran = subprocess.run(
        [sys.executable, "-m", "mypy", "--cache-dir", cache, "--no-error-summary", "--follow-imports=silent", PROGRAMS],
        cwd=REPOSITORY,  # where its settings are
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert not ran.stderr
    return ran.stdout.splitlines()


@pytest.mark.parametrize("name", NAMES)
def test_mypy_finds_in_each_program_what_it_says(found: list[str], name: str) -> None:
    assert [] == [line for line in found if Path(line.partition(":")[0]).name == f"{name}.py"]


def test_mypy_has_nothing_else_to_say(found: list[str]) -> None:
    assert [] == found


@pytest.mark.parametrize("name", WITH_A_JOB)
def test_each_program_builds_its_job(name: str) -> None:
    job = importlib.import_module(f"actorflow_tests.typing.programs.{name}").job()

    assert isinstance(job, af.Job)


def test_the_program_that_runs_a_job_runs() -> None:
    program = importlib.import_module("actorflow_tests.typing.programs.environment")

    assert af.JobStatus.FINISHED is asyncio.run(program.main())
    assert 2 == program.survives()
