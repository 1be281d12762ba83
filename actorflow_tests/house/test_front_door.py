"""The front door loads what is used, and nothing when it is only passed: pytest passes it in each run of each user."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

import actorflow
from actorflow_tests.house.sources import REPOSITORY

OURS = "import sys, json; print(json.dumps(sorted(m for m in sys.modules if m.partition('.')[0] == 'actorflow')))"


def modules_after(program: str) -> list[str]:
    """Run a program in a new process; return the modules of the package that it loaded."""
    modules: list[str] = json.loads(output_of(f"{program}\n{OURS}"))
    return modules


def output_of(program: str) -> str:
    ran = subprocess.run(
        [sys.executable, "-W", "error", "-c", program], cwd=REPOSITORY, capture_output=True, text=True, check=False
    )
    assert 0 == ran.returncode, ran.stderr
    return ran.stdout


def test_importing_the_package_loads_nothing_else_of_it() -> None:
    assert ["actorflow"] == modules_after("import actorflow as af")


def test_an_error_alone_loads_the_errors_alone() -> None:
    assert ["actorflow", "actorflow.errors"] == modules_after("from actorflow import JobFailed")


def test_the_plugin_of_pytest_loads_nothing_but_its_parents() -> None:
    expected = ["actorflow", "actorflow.simulation", "actorflow.simulation.pytest_plugin"]

    assert expected == modules_after("import actorflow.simulation.pytest_plugin")


def test_a_star_brings_every_name() -> None:
    assert "[]\n" == output_of(
        "from actorflow import *\nimport actorflow\nprint([n for n in actorflow.__all__ if n not in globals()])"
    )


def test_side_doors_open_by_their_names() -> None:
    program = "import actorflow\nprint(actorflow.connectors.memory.__name__, actorflow.simulation.check.__name__)"

    assert "actorflow.connectors.memory check\n" == output_of(f"import actorflow.connectors.memory\n{program}")
    assert "actorflow.abc actorflow.storage\n" == output_of(
        "import actorflow\nprint(actorflow.abc.__name__, actorflow.storage.__name__)"
    )


def test_what_was_loaded_by_another_way_shows_the_path_that_a_user_writes() -> None:
    program = "import actorflow as af\naf.Job\nfrom actorflow.errors import JobFailed\nprint(JobFailed)"

    assert "<class 'actorflow.JobFailed'>\n" == output_of(program)


def test_a_name_that_is_not_there_is_told() -> None:
    with pytest.raises(AttributeError, match="module 'actorflow' has no attribute 'Jobb'"):
        actorflow.Jobb  # type: ignore[attr-defined]  # noqa: B018
    with pytest.raises(ImportError, match="cannot import name 'jobb'"):
        from actorflow import jobb  # type: ignore[attr-defined]  # noqa: F401


def test_dir_shows_the_names() -> None:
    assert sorted(actorflow.__all__) == dir(actorflow)
