"""Seeds on the command line: what is printed, and that it is the same whoever runs them."""

from __future__ import annotations

from actorflow_tests.cli.shell import Shell

SMALL = """
import actorflow as af
from actorflow.connectors import console, generator


def small(records: int = 40) -> af.Job:
    print("built")
    job = af.Job("small")
    numbers = job.read(generator.numbers(records, splits=2, chunk_records=5, per_second=2_000), name="numbers")
    numbers.key_by(lambda number: number % 3).count(name="count").write(console.lines(), name="rows")
    return job


def wrong() -> af.Job:
    job = af.Job("wrong")
    numbers = job.read(generator.numbers(20, splits=2, chunk_records=5, per_second=200), name="numbers")
    numbers.map(lambda number: 10 // (13 - number)).write(console.lines(), name="rows")
    return job


def endless() -> af.Job:
    job = af.Job("endless")
    job.read(generator.numbers(), name="numbers").write(console.lines(), name="rows")
    return job

"""

KEYS = ["seeds", "faults", "kills_at", "failures", "digest"]


def small(shell: Shell) -> None:
    (shell.folder / "small.py").write_text(SMALL)


def test_the_result_has_these_keys_and_is_the_same_in_one_process_and_in_two(shell: Shell) -> None:
    small(shell)
    one = shell("simulate", "small.py:small", "--seeds", "6", "--json", "--jobs", "1")
    two = shell("simulate", "small.py:small", "--seeds", "6", "--json", "--jobs", "2")

    assert (one.code, two.code) == (0, 0)
    assert list(one.last) == KEYS
    assert one.last == two.last
    assert one.last["seeds"] == 6
    assert one.last["failures"] == 0
    assert one.last["faults"]["kill"] + one.last["faults"].get("power_cut", 0) >= 6
    assert len(one.out.splitlines()) == 1  # what the job prints goes to stderr
    assert "built" in one.err


def test_arguments_reach_the_job_in_every_process(shell: Shell) -> None:
    small(shell)
    few = shell("simulate", "small.py:small", "--seeds", "2", "--json", "--jobs", "2", "--", "--records", "30")
    same = shell("simulate", "small.py:small", "--seeds", "2", "--json", "--jobs", "1", "--", "--records", "30")
    more = shell("simulate", "small.py:small", "--seeds", "2", "--json", "--jobs", "1")

    assert few.last["digest"] == same.last["digest"] != more.last["digest"]


def test_one_seed_prints_its_journal(shell: Shell) -> None:
    small(shell)
    said = shell("simulate", "small.py:small", "--seed", "3")

    assert said.code == 0
    assert "CheckpointTriggered" in said.out
    assert "WeatherStruck" in said.out
    assert "seed 3 drew" in said.err
    assert "1 seeds, 0 failures" in said.out


def test_a_failure_is_told_with_the_command_that_shows_it_and_the_exit_code_says_so(shell: Shell) -> None:
    small(shell)
    said = shell("simulate", "small.py:wrong", "--seeds", "2", "--jobs", "1")
    assert said.code == 1
    assert "replay it with: actorflow simulate small.py:wrong --seed 1" in said.out
    assert shell("simulate", "small.py:wrong", "--seeds", "2", "--jobs", "2", "--json").last["failures"] == 2

    alone = shell("simulate", "small.py:wrong", "--seed", "1")
    assert alone.code == 1
    assert "cause=ZeroDivisionError" in alone.out


def test_what_can_not_be_simulated_is_told_once(shell: Shell) -> None:
    small(shell)
    said = shell("simulate", "small.py:endless", "--seeds", "30")
    assert said.code == 2
    assert said.err.count("never ends") == 1
