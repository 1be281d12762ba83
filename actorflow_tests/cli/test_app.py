"""The verbs are listed, and help comes without loading what it is about."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from actorflow.cli.exits import Exit, UsageMistake, exit_code_of
from actorflow.errors import Fenced, InvalidConfig, InvalidJob, JobFailed, RestoreFailed
from actorflow_tests.cli.shell import Shell


def test_help_lists_the_verbs(shell: Shell) -> None:
    said = shell("--help")

    assert said.code == 0
    for verb in ("run", "demo", "bench", "simulate"):
        assert f"\n  {verb} " in said.out


def test_without_a_verb_the_help_is_wrong_usage(shell: Shell) -> None:
    said = shell()
    assert said.code == 2
    assert "Usage:" in said.out + said.err


def test_a_verb_that_is_not_there_is_wrong_usage(shell: Shell) -> None:
    said = shell("rum")
    assert said.code == 2
    assert "No such command 'rum'" in said.err


def test_help_after_a_target_shows_its_docstring_and_arguments(shell: Shell) -> None:
    said = shell("run", "actorflow.examples.word_count:word_count", "--help")

    assert said.code == 0
    assert "Count words, whatever their case" in said.out
    assert "--path STR" in said.out
    assert "--output STR" in said.out
    assert "-D KEY=VALUE" in said.out


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (UsageMistake("x"), Exit.USAGE),
        (InvalidJob("x"), Exit.USAGE),
        (InvalidConfig(["x"]), Exit.USAGE),
        (RestoreFailed("x"), Exit.RESTORE_REFUSED),
        (JobFailed("x"), Exit.FAILED),
        (ValueError("x"), Exit.FAILED),
    ],
)
def test_an_error_becomes_the_exit_code_of_whose_move_it_is(error: Exception, code: Exit) -> None:
    assert exit_code_of(error) is code


def test_exit_codes_are_those_that_are_documented() -> None:
    assert issubclass(Fenced, Exception)
    assert [*Exit] == [0, 1, 2, 3, 4, 130, 143]


def test_the_command_line_loads_the_engine_only_when_a_verb_needs_it() -> None:
    loads = "import sys; import actorflow.cli.app as a; a.run_app(['--help']); print(*sys.modules, file=sys.stderr)"
    root = Path(__file__).parents[2]

    done = subprocess.run([sys.executable, "-c", loads], cwd=root, capture_output=True, text=True, check=True)

    loaded = done.stderr.split()
    assert "actorflow.cli.app" in loaded
    assert "actorflow.runtime.supervisor" not in loaded
    assert "aiofiles" not in loaded
