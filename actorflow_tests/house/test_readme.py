"""README is a program: each Python block of it runs, in a process and a folder of its own, with warnings as errors.

Nothing is skipped.  A block that needs a file makes one.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from actorflow_tests.house.sources import REPOSITORY

README = REPOSITORY / "README.md"
TEST_COMMAND = "python3 -m venv .venv && .venv/bin/pip install -q -e '.[test]' && .venv/bin/pytest -q"

_FENCED = re.compile(
    r"^(?P<fence>`{3,})(?P<language>[^\n`]*)\n(?P<body>.*?)^(?P=fence)[ \t]*$", re.MULTILINE | re.DOTALL
)


def blocks(*languages: str) -> list[tuple[int, str]]:
    """Return the fenced blocks of README in these languages, each with the line where it begins."""
    text = README.read_text("utf-8") if README.exists() else ""
    return [
        (text.count("\n", 0, match.start()) + 2, match["body"])
        for match in _FENCED.finditer(text)
        if match["language"].strip().lower() in languages
    ]


PYTHON = blocks("python", "py", "python3")


def test_readme_holds_programs() -> None:
    assert PYTHON


@pytest.mark.parametrize(("line", "program"), PYTHON, ids=lambda part: f"line {part}" if isinstance(part, int) else "")
def test_each_program_of_readme_runs(line: int, program: str, tmp_path: Path) -> None:
    # As many empty lines before it as there are in README, so that a traceback names README's line.
    (tmp_path / "readme.py").write_text("\n" * (line - 1) + program, "utf-8")

    ran = subprocess.run(
        [sys.executable, "-W", "error", "readme.py"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(REPOSITORY)},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )

    assert 0 == ran.returncode, f"{ran.stdout}\n{ran.stderr}"


def test_readme_tells_a_stranger_the_command_that_passes_the_tests() -> None:
    marked = [
        following
        for _, body in blocks("", "sh", "shell", "bash", "console")
        for line, following in zip(body.splitlines(), body.splitlines()[1:], strict=False)
        if line.strip() == "# passes the tests"
    ]

    assert [TEST_COMMAND] == marked


def test_ci_runs_that_very_command_and_no_copy_of_it() -> None:
    script = REPOSITORY / ".ci" / "run"

    assert os.access(script, os.X_OK)
    assert "pip install" not in script.read_text("utf-8")
