"""The plugin, as users meet it: pytest in a process of its own, with the entry point that ``pyproject.toml`` names."""

from __future__ import annotations

import importlib.util
import os
import re
import shlex
import subprocess
import sys
import tomllib
from collections.abc import Callable
from pathlib import Path

import pytest

from actorflow_tests.house.sources import REPOSITORY

JOBS = """
import actorflow as af
from actorflow.connectors import console, files, memory

def word_count():
    job = af.Job("word-count")
    lines = memory.source(["to be or not to be"] * 20, splits=2, chunk_records=3)
    words = job.read(lines, name="lines").flat_map(str.split)
    words.key_by(str).count(name="count").write(console.lines(), name="rows")
    return job

def forgetful():
    job = af.Job("forgetful")
    seen = []  # what is remembered here is in no checkpoint
    def number(line):
        seen.append(line)
        return len(seen)
    lines = memory.source(["x"] * 200, chunk_records=5)
    job.read(lines, name="lines").map(number).write(memory.collect(), name="rows")
    return job
"""

SCENARIO = """
title = "{title}"
story = "Nothing happens."
job = "jobs:word_count"
seeds = {{ first = 1, count = 3 }}

[[weather]]
at = "1ms"
kill = "job"

[[expect]]
{expect}
"""

INI = "[pytest]\nfilterwarnings = error\npythonpath = .\n"
ASYNCIO_INI = f"{INI}asyncio_default_fixture_loop_scope = function\n"
ALL: tuple[str, ...] = ()
"""All plugins that are installed."""

Result = subprocess.CompletedProcess[str]
Pytest = Callable[..., Result]


@pytest.fixture
def entry_point(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder that says what an installed package would: the entry point of the plugin."""
    with (REPOSITORY / "pyproject.toml").open("rb") as file:
        declared = tomllib.load(file)["project"]["entry-points"]["pytest11"]
    folder = tmp_path_factory.mktemp("installed")
    info = folder / "of_a_user-1.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: of-a-user\nVersion: 1\n")
    lines = [f"{name} = {module}" for name, module in declared.items()]
    (info / "entry_points.txt").write_text("\n".join(["[pytest11]", *lines, ""]))
    return folder


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The project of a user; all warnings are errors there."""
    (tmp_path / "pytest.ini").write_text(INI)
    (tmp_path / "jobs.py").write_text(JOBS)
    (tmp_path / "pyproject.toml").write_text('[project]\nname = "shop"\nversion = "1"\n')
    return tmp_path


@pytest.fixture
def run_pytest(folder: Path, entry_point: Path) -> Pytest:
    """Run pytest in the project of a user, with the plugins that are named: all that are installed take their time."""

    def run(*arguments: str, at: Path = folder, plugins: tuple[str, ...] = ("actorflow",)) -> Result:
        environment = {
            **os.environ,
            "PYTHONPATH": os.pathsep.join([str(REPOSITORY), str(entry_point), os.environ.get("PYTHONPATH", "")]),
            "COLUMNS": "200",
            "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
        }
        if plugins == ALL:
            del environment["PYTEST_DISABLE_PLUGIN_AUTOLOAD"]
        named = [word for plugin in plugins for word in ("-p", plugin)]
        return subprocess.run(
            [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", *named, *arguments],
            cwd=at,
            env=environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )

    return run


def outcome(ran: Result) -> str:
    """The last line: what passed and what failed."""
    assert ran.stdout.strip(), ran.stderr
    return re.sub(r" in [\d.]+s.*", "", ran.stdout.strip().splitlines()[-1].strip("= "))


def command_in(text: str) -> list[str]:
    """What the one command that a failure prints gives to pytest."""
    (command,) = {line.partition("to replay it:")[2].strip() for line in text.splitlines() if "to replay it:" in line}
    program, *arguments = shlex.split(command)
    assert program == "pytest"
    return arguments


# ── what it costs whoever does not use it ────────────────────────────────────────────────────


def test_it_loads_nothing_of_the_package_until_a_test_asks(folder: Path, run_pytest: Pytest) -> None:
    (folder / "test_plain.py").write_text("""
import sys
OURS = ["actorflow", "actorflow.simulation", "actorflow.simulation.pytest_plugin"]

def test_plain():
    assert OURS == sorted(name for name in sys.modules if name.partition(".")[0] == "actorflow")
    assert "anyio" not in sys.modules or "anyio.pytest_plugin" in sys.modules

def test_with_a_clock(actorflow_clock):
    assert "actorflow.simulation.loop" in sys.modules
    assert "actorflow.runtime" not in sys.modules
""")
    if importlib.util.find_spec("pytest_asyncio") is not None:
        (folder / "pytest.ini").write_text(ASYNCIO_INI)
    ran = run_pytest(plugins=ALL)
    assert "2 passed" == outcome(ran), ran.stdout


def test_it_can_be_left_out(folder: Path, run_pytest: Pytest) -> None:
    (folder / "test_plain.py").write_text("""
import sys

def test_plain(pytestconfig):
    assert not [name for name in sys.modules if name.partition(".")[0] == "actorflow"]
""")
    if importlib.util.find_spec("pytest_asyncio") is not None:
        (folder / "pytest.ini").write_text(ASYNCIO_INI)
    ran = run_pytest("-p", "no:actorflow", plugins=ALL)
    assert "1 passed" == outcome(ran), ran.stdout


def test_its_options_and_its_ini_option_are_told(run_pytest: Pytest) -> None:
    told = run_pytest("--help").stdout
    assert "--actorflow-seed=N" in told
    assert "actorflow_scenarios (paths)" in told


# ── fixtures ─────────────────────────────────────────────────────────────────────────────────

TESTS = """
import asyncio
from datetime import timedelta
import actorflow as af
import pytest
from jobs import forgetful, word_count

FIRST = [("to", 1), ("be", 1)]

def test_words_are_counted_across_a_kill(actorflow_harness):
    job = actorflow_harness(word_count)
    job.push("to be")
    job.expect(FIRST)
    job.checkpoint()
    job.push("to")
    job.kill()
    job.restore()
    job.expect([*FIRST, ("to", 2)])

def test_a_reminder_comes_after_five_minutes(actorflow_clock):
    reminder = actorflow_clock.start(asyncio.sleep(300, "now"))
    actorflow_clock.advance(minutes=4, seconds=59)
    assert not reminder.done()
    actorflow_clock.advance(seconds=1)
    assert reminder.result() == "now"
    assert actorflow_clock.now() == timedelta(minutes=5)

def test_my_job_survives_anything(actorflow_storm):
    report = actorflow_storm(word_count, seeds=range(3))
    assert report.seeds in (1, 3)

@pytest.mark.parametrize("parallelism", [1, 2], ids=["one of them", "two: 'both'"])
def test_a_job_that_remembers_outside_of_its_state(actorflow_storm, parallelism):
    actorflow_storm(forgetful, seeds=range(10))

def test_without_seeds_nothing_passes(actorflow_storm):
    with pytest.raises(ValueError, match="no seeds"):
        actorflow_storm(word_count, seeds=[])
"""


def test_the_fixtures_do_what_they_say(folder: Path, run_pytest: Pytest) -> None:
    (folder / "test_jobs.py").write_text(TESTS)

    ran = run_pytest("-k", "not outside")
    assert "4 passed, 2 deselected" == outcome(ran), ran.stdout


def test_a_seed_that_fails_prints_the_one_command_that_fails_again(folder: Path, run_pytest: Pytest) -> None:
    (folder / "tests").mkdir()
    (folder / "tests" / "test_jobs.py").write_text(TESTS)
    ran = run_pytest("-k", "two", at=folder / "tests")
    assert "1 failed, 5 deselected" == outcome(ran), ran.stdout
    command = command_in(ran.stdout)
    assert "test_jobs.py::test_a_job_that_remembers_outside_of_its_state[two: 'both']" == command[0]
    assert "--actorflow-seed" == command[1]
    assert "CheckpointTriggered" in ran.stdout, "the end of the journal is shown"

    again = run_pytest(*command, at=folder / "tests")  # what is pasted into the same shell
    assert "1 failed" == outcome(again), again.stdout
    failure = next(line for line in ran.stdout.splitlines() if line.startswith("E ") and "seed " in line)
    assert failure in again.stdout.splitlines()


@pytest.mark.slow
def test_the_seed_that_was_asked_for_is_the_only_one(folder: Path, run_pytest: Pytest) -> None:
    (folder / "test_seed.py").write_text("""
from jobs import word_count

def test_storm(actorflow_storm):
    assert actorflow_storm(word_count, seeds=range(100)).seeds == 1

def test_clock_and_harness(actorflow_seed, actorflow_clock, actorflow_harness):
    assert actorflow_seed == actorflow_clock.loop.seed == actorflow_harness(word_count).universe.seed == 17
""")
    ran = run_pytest("--actorflow-seed", "17")
    assert "2 passed" == outcome(ran), ran.stdout


@pytest.mark.slow
def test_a_harness_that_was_left_running_is_ended_and_what_nobody_heard_of_is_told(
    folder: Path, run_pytest: Pytest
) -> None:
    (folder / "test_left.py").write_text("""
from jobs import word_count

def test_left(actorflow_harness):
    actorflow_harness(word_count).push("to be")
    actorflow_harness(word_count, parallelism=2, keep=["lines"])

def test_unheard(actorflow_clock):
    actorflow_clock.loop.call_later(1, lambda: 1 / 0)
    actorflow_clock.advance(seconds=2)
""")
    ran = run_pytest()
    assert "2 passed, 1 error" == outcome(ran), ran.stdout
    assert "nobody heard of exception in callback" in ran.stdout


ASYNC_TESTS = """
import asyncio
import pytest
from jobs import word_count

@pytest.mark.{mark}
async def test_from_a_coroutine(actorflow_harness, actorflow_clock, actorflow_storm):
    await asyncio.sleep(0)
    job = actorflow_harness(word_count)
    job.push("to be")
    await asyncio.sleep(0)
    job.kill()
    job.restore()
    job.expect([("to", 1), ("be", 1)])
    assert actorflow_clock.run(asyncio.sleep(60, "slept")) == "slept"
    assert actorflow_storm(word_count, seeds=range(1)).seeds == 1
"""


@pytest.mark.parametrize("mark", ["asyncio", pytest.param("anyio", marks=pytest.mark.slow)])
def test_async_tests_can_use_the_fixtures(folder: Path, run_pytest: Pytest, mark: str) -> None:
    pytest.importorskip({"asyncio": "pytest_asyncio", "anyio": "anyio"}[mark])
    if mark == "asyncio":
        (folder / "pytest.ini").write_text(ASYNCIO_INI)
    (folder / "conftest.py").write_text(
        "import pytest\n\n@pytest.fixture\ndef anyio_backend():\n    return 'asyncio'\n"
    )
    (folder / "test_async.py").write_text(ASYNC_TESTS.format(mark=mark))

    ran = run_pytest(plugins=("actorflow", mark))
    assert "1 passed" == outcome(ran), ran.stdout


@pytest.mark.slow
def test_it_works_beside_xdist(folder: Path, run_pytest: Pytest) -> None:
    pytest.importorskip("xdist", reason="it is not among the extras")
    (folder / "test_jobs.py").write_text(TESTS)
    (folder / "scenarios").mkdir()
    (folder / "scenarios" / "calm.toml").write_text(scenario("Nothing happens"))

    ran = run_pytest("-n", "2", "-o", "actorflow_scenarios=scenarios", plugins=("actorflow", "xdist"))
    assert "2 failed, 4 passed" == outcome(ran), ran.stdout
    assert "--actorflow-seed" in ran.stdout


# ── scenario files ───────────────────────────────────────────────────────────────────────────


def scenario(title: str, expect: str = 'output = "same as the calm run"') -> str:
    return SCENARIO.format(title=title, expect=expect)


def test_scenarios_below_the_folders_that_are_set_are_tests_called_by_their_titles(
    folder: Path, run_pytest: Pytest
) -> None:
    (folder / "pytest.ini").write_text(f"{INI}actorflow_scenarios = stories\n")
    deep = folder / "stories" / "deep"
    deep.mkdir(parents=True)
    (deep / "one.toml").write_text(scenario("A kill is survived"))
    (folder / "stories" / "two.toml").write_text(scenario("It's: [all] well"))
    (folder / "others").mkdir()
    (folder / "others" / "anybodys.toml").write_text(scenario("Not looked at"))
    (folder / "broken.toml").write_text("this is = not [toml")

    ran = run_pytest("-v")
    assert "2 passed" == outcome(ran), ran.stdout
    assert "stories/two.toml::It's: [all] well PASSED" in ran.stdout
    assert "stories/deep/one.toml::A kill is survived PASSED" in ran.stdout


def test_a_scenario_that_is_named_itself_is_a_test_wherever_it_lies(folder: Path, run_pytest: Pytest) -> None:
    (folder / "anywhere.toml").write_text(scenario("Found by its name"))

    assert "1 passed" == outcome(run_pytest("anywhere.toml"))
    assert "not found" in run_pytest("pyproject.toml").stderr


def test_a_scenario_that_fails_prints_the_one_command_that_fails_again(folder: Path, run_pytest: Pytest) -> None:
    (folder / "stories").mkdir()
    failing = scenario("It's a job that never fails", 'journal = "JobFailed"\nat_least = 1')
    (folder / "stories" / "one.toml").write_text(failing)

    ran = run_pytest("stories/one.toml")
    assert "1 failed" == outcome(ran), ran.stdout
    assert "pytest_plugin.py" not in ran.stdout, "no traceback through our plumbing"
    command = command_in(ran.stdout)
    assert ["stories/one.toml::It's a job that never fails", "--actorflow-seed", "1"] == command

    again = run_pytest(*command[:-1], "3")
    assert "1 failed" == outcome(again)
    assert [*command[:-1], "3"] == command_in(again.stdout)


def test_a_scenario_that_can_not_be_read_or_run_is_told_without_a_traceback(folder: Path, run_pytest: Pytest) -> None:
    (folder / "one.toml").write_text(scenario("Misspelt").replace("kill =", "kil ="))
    (folder / "two.toml").write_text(scenario("No such job").replace("jobs:word_count", "jobs:word_cuont"))

    ran = run_pytest("one.toml", "two.toml", "--continue-on-collection-errors")
    assert "1 failed, 1 error" == outcome(ran), ran.stdout
    assert "kil" in ran.stdout
    assert "word_cuont" in ran.stdout
    assert "Traceback" not in ran.stdout
