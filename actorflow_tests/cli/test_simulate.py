"""Seeds and scenarios on the command line: what is printed, and that it is the same whoever runs them."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from actorflow.cli.children import share
from actorflow.cli.demo_life import environment
from actorflow.cli.trials import Trial, Trials
from actorflow.simulation.timeline import HEADING
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


def deadly() -> af.Job:
    import os

    os.kill(os.getpid(), 9)


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
    one = shell("simulate", "small.py:small", "--seeds", "4", "--json", "--jobs", "1")
    two = shell("simulate", "small.py:small", "--seeds", "4", "--json", "--jobs", "2")

    assert (one.code, two.code) == (0, 0)
    assert list(one.last) == KEYS
    assert one.last == two.last
    assert one.last["seeds"] == 4
    assert one.last["failures"] == 0
    assert one.last["faults"]["kill"] + one.last["faults"].get("power_cut", 0) >= 4
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
    alone = shell("simulate", "small.py:wrong", "--seed", "1")
    assert alone.code == 1
    assert "cause=ZeroDivisionError" in alone.out


def test_what_can_not_be_simulated_is_told_once(shell: Shell) -> None:
    small(shell)
    said = shell("simulate", "small.py:endless", "--seeds", "30")
    assert said.code == 2
    assert said.err.count("never ends") == 1


def test_the_arguments_of_a_job_are_part_of_the_command_that_replays_it(shell: Shell) -> None:
    small(shell)
    trials = Trials("small.py:small", ["--records", "30"])
    assert trials.replay(Trial("", 7)) == "actorflow simulate small.py:small --seed 7 -- --records 30"


# ── scenarios ────────────────────────────────────────────────────────────────────────────────

STORY = """
title = "{title}"
story = "It is killed, and nobody sees it in the output."
job = "small.py:small"
arguments = {{ records = 40 }}
seeds = {{ first = 3, count = 2 }}

[environment]
parallelism = 1
checkpoints = {{ every = "5ms" }}

[[weather]]
after = {{ journal = "CheckpointAcknowledged" }}
kill = "job"

[[expect]]
output = "same as the calm run"

[[expect]]
journal = "CheckpointCompleted"
at_least = {at_least}
"""


def scenarios(shell: Shell) -> None:
    small(shell)
    for name, title, at_least in [("b/right", "All is well", 1), ("a/wrong", "It hopes for too much", 900)]:
        path = shell.folder / f"stories/{name}.toml"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(STORY.format(title=title, at_least=at_least))
    (shell.folder / "small.py").rename(shell.folder / "stories/b/small.py")
    (shell.folder / "stories/a/small.py").write_text(SMALL)
    (shell.folder / "stories/README.md").write_text("Not a scenario.")


def test_a_folder_is_every_scenario_in_it_in_the_order_of_their_paths(shell: Shell) -> None:
    scenarios(shell)
    one = shell("simulate", "stories", "--json", "--jobs", "1")
    two = shell("simulate", "stories", "--json", "--jobs", "2")

    assert (one.code, two.code) == (1, 1)
    assert one.last == two.last
    assert list(one.last) == ["scenarios", "failures"]
    wrong, right = one.last["scenarios"]
    assert list(right) == ["file", "title", "seeds", "faults", "failures", "digest"]
    assert (wrong["file"], wrong["title"]) == ("stories/a/wrong.toml", "It hopes for too much")
    assert (right["file"], right["title"], right["seeds"]) == ("stories/b/right.toml", "All is well", 2)
    assert right["faults"] == {"kill": 2}
    assert (wrong["failures"], right["failures"], one.last["failures"]) == (2, 0, 2)
    assert len(one.out.splitlines()) == 1


def test_people_get_a_table_and_for_what_failed_its_sentences_and_the_command_that_replays_it(shell: Shell) -> None:
    scenarios(shell)
    said = shell("simulate", "stories", "--seeds", "1", "--jobs", "1")

    lines = said.out.splitlines()
    assert lines[0].split() == ["file", "title", "seeds", "faults"]
    assert lines[1].startswith("stories/a/wrong.toml  It hopes for too much")
    assert lines[1].endswith("1 FAILED")
    assert lines[2].endswith("1       1  ok")
    assert lines[3] == "2 scenarios, 2 seeds, 1 failure"
    assert lines[4] == "stories/a/wrong.toml, seed 1:"
    assert "CheckpointCompleted" in lines[5]
    assert lines[6] == "  replay it with: actorflow simulate stories/a/wrong.toml --seed 1"
    assert lines[7] == "  make it small with: actorflow simulate stories/a/wrong.toml --seed 1 --shrink"

    zero = shell("simulate", "stories/a/wrong.toml", "--seed", "0")
    assert "replay it with: actorflow simulate stories/a/wrong.toml --seed 0\n" in zero.out


def test_one_seed_of_a_scenario_is_told_as_a_timeline_and_drawn(shell: Shell) -> None:
    scenarios(shell)
    said = shell("simulate", "stories/b/right.toml", "--seed", "3", "--picture", "it.svg")
    assert said.code == 0
    assert said.out.splitlines()[0] == HEADING
    assert "verb=kill" in said.out

    drawn = (shell.folder / "it.svg").read_text()
    found = [list(one.itertext())[-1] for one in ET.fromstring(drawn).iter("{http://www.w3.org/2000/svg}text")]
    assert {"All is well", "It is killed, and nobody sees it in the output.", "passed", "kill job"} <= set(found)
    assert "output same as the calm run" in found

    # The first seed of a file is drawn unless one is named; and nothing else is printed beside the JSON.
    said = shell("simulate", "stories/b/right.toml", "--picture", "it.html", "--json", "--from", "1ms", "--until", "1s")
    assert len(said.out.splitlines()) == 1
    assert "<!DOCTYPE html>" in (shell.folder / "it.html").read_text()


def test_a_run_that_is_drawn_has_the_digest_of_one_that_is_not(shell: Shell) -> None:
    scenarios(shell)
    plain = shell("simulate", "stories/b/right.toml", "--seed", "4", "--json").last
    assert shell("simulate", "stories/b/right.toml", "--seed", "4", "--json", "--picture", "it.svg").last == plain

    small(shell)
    plain = shell("simulate", "small.py:small", "--seed", "4", "--json").last
    assert shell("simulate", "small.py:small", "--seed", "4", "--json", "--picture", "it.svg").last == plain
    assert "small.py:small in a storm" in (shell.folder / "it.svg").read_text()


def test_what_failed_is_drawn_with_what_is_wrong(shell: Shell) -> None:
    scenarios(shell)
    said = shell("simulate", "stories/a/wrong.toml", "--seed", "3", "--picture", "it.svg")
    assert said.code == 1
    drawn = (shell.folder / "it.svg").read_text()
    assert ">failed</text>" in drawn
    assert "CheckpointCompleted, at least 900: CheckpointCompleted is in the journal" in drawn

    small(shell)
    assert shell("simulate", "small.py:wrong", "--seed", "1", "--picture", "it.svg").code == 1
    assert "ZeroDivisionError" in (shell.folder / "it.svg").read_text()


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (["nowhere.toml"], "there is no file nowhere.toml"),
        (["nowhere"], "there is no file nowhere, and a job is MODULE:FUNCTION"),
        (["nowhere:nothing"], "nowhere"),
        (["empty"], "there is no scenario"),
        (["stories", "--picture", "it.svg"], "--picture draws one run: name one file"),
        (["stories/b/right.toml", "--picture", "it.png"], "ends in .svg or .html"),
        (["stories/b/right.toml", "--picture", "no/it.svg"], "there is no folder no"),
        (["stories/b/right.toml", "--from", "1s"], "add --picture"),
        (["stories/b/right.toml", "--picture", "it.svg", "--from", "soon"], "--from soon:"),
        (["stories/b/right.toml", "--picture", "it.svg", "--from", "1h"], "nothing happens between"),
        (["small.py:small", "--picture", "it.svg"], "add --seed N"),
        (["stories", "--seed", "1", "--seeds", "2"], "say one of them"),
        (["stories", "--save", "x.toml"], "add --shrink"),
        (["stories/b/right.toml", "--", "--records", "3"], "takes no arguments"),
        (["broken.toml"], "broken.toml"),
        ([], "what is to be simulated?"),
        (["--mutants", "--seed", "1"], "--mutants looks for planted faults"),
        (["stories", "--mutants"], "--mutants looks for planted faults"),
    ],
)
def test_a_wrong_command_line_says_what_to_write_instead(shell: Shell, arguments: list[str], why: str) -> None:
    scenarios(shell)
    small(shell)
    (shell.folder / "empty").mkdir()
    (shell.folder / "broken.toml").write_text('titel = "no"')
    said = shell("simulate", *arguments)

    assert said.code == 2
    assert why in said.err
    assert said.out == "" or arguments[-1] == "1h"


def test_an_invalid_scenario_is_told_by_a_child_as_by_ourselves(shell: Shell) -> None:
    scenarios(shell)
    path = shell.folder / "stories/a/wrong.toml"
    path.write_text(path.read_text().replace("small.py:small", "small.py:nobody"))
    for jobs in ("1", "2"):
        said = shell("simulate", "stories", "--jobs", jobs)
        assert said.code == 2
        assert "no function 'nobody'" in said.err


def test_all_files_of_a_folder_that_can_not_be_simulated_are_told_at_once_and_nothing_is_run(shell: Shell) -> None:
    scenarios(shell)
    path = shell.folder / "stories/a/wrong.toml"
    story = path.read_text()
    path.write_text(story.replace('kill = "job"', 'kill = "nobody"').replace('"CheckpointCompleted"', '"Completed"'))
    (shell.folder / "stories/b/broken.toml").write_text('titel = "no"')
    (shell.folder / "stories/b/jobless.toml").write_text(story.replace("small.py:small", "small.py:nobody"))
    (shell.folder / "stories/b/strange.toml").write_text(story.replace('kill = "job"', 'kill = "nobody"'))
    for jobs in ("1", "2"):
        said = shell("simulate", "stories", "--jobs", jobs)
        assert (said.code, said.out) == (2, "")
        for file, mistake in [
            ("a/wrong.toml [[expect]] 2", "'Completed'"),
            ("b/broken.toml", "'titel'"),
            ("b/broken.toml", "[[expect]] is missing"),
            ("b/jobless.toml", "no function 'nobody'"),
            ("b/strange.toml [[weather]] 1", "process = 'nobody'"),
        ]:
            assert any(f"stories/{file}: " in line and mistake in line for line in said.err.splitlines()), said.err
        assert "right.toml" not in said.err


def test_a_recorded_run_is_replayed_alone_or_among_the_scenarios_of_a_folder(shell: Shell) -> None:
    (shell.folder / "stories").mkdir()
    assert shell("run", "jobs.py:count", "--record", "stories/monday.run", "--json", "--", "text").code == 0

    alone = shell("simulate", "stories/monday.run", "--json")
    assert alone.code == 0
    assert alone.last["same"]

    among = shell("simulate", "stories", "--json")
    assert among.code == 0
    (one,) = among.last["scenarios"]
    assert (one["file"], one["title"], one["seeds"]) == ("stories/monday.run", "a recorded run", 1)
    assert "a recorded run" in shell("simulate", "stories").out
    for wrong in (["--seed", "1"], ["--seeds", "2"], ["--shrink"], ["--picture", "it.svg"]):
        assert shell("simulate", "stories/monday.run", *wrong).code == 2
    assert shell("simulate", "stories", "--picture", "it.svg").code == 2


# ── children ─────────────────────────────────────────────────────────────────────────────────


def test_a_child_that_dies_is_told_and_another_takes_its_place(shell: Shell) -> None:
    small(shell)
    told: dict[int, str] = {}

    def tell(place: int, answer: object) -> None:
        assert isinstance(answer, str)
        told[place] = answer

    share([["", 1], ["", 2]], ["small.py:deadly"], 1, tell)
    assert told == dict.fromkeys((0, 1), "the process that ran it was ended by SIGKILL")


@pytest.mark.slow
@pytest.mark.live
def test_interrupted_it_leaves_no_child_behind_and_says_so_by_its_exit_code(shell: Shell) -> None:
    small(shell)
    command = [sys.executable, "-m", "actorflow", "simulate", "small.py:small", "--seeds", "4000", "--jobs", "2"]
    with subprocess.Popen(command, env=environment(), stdout=subprocess.PIPE, stderr=subprocess.STDOUT) as process:
        children: list[int] = []
        while len(children) < 2:
            assert process.poll() is None
            children = children_of(process.pid)
            time.sleep(0.05)
        process.send_signal(signal.SIGINT)
        said, _ = process.communicate(timeout=30)
    assert process.returncode == 130, said
    assert b"Traceback" not in said
    assert not any(is_alive(child) for child in children)


def children_of(pid: int) -> list[int]:
    threads = Path(f"/proc/{pid}/task").iterdir()
    return [int(child) for thread in threads for child in (thread / "children").read_text().split()]


def is_alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


# ── small scenarios, planted faults ──────────────────────────────────────────────────────────


def test_a_seed_that_fails_is_made_small_and_kept_and_fails_again_in_the_same_way(shell: Shell) -> None:
    small(shell)
    said = shell("simulate", "small.py:wrong", "--seed", "1", "--shrink")
    assert said.code == 1
    found = list((shell.folder / "scenarios/regressions").iterdir())
    assert len(found) == 1
    command = f"actorflow simulate {found[0].relative_to(shell.folder).as_posix()} --seed 1"
    assert said.out.splitlines()[-1] == f"  replay it with: {command}"

    again = shell(*command.split()[1:])
    assert again.code == 1
    assert "ZeroDivisionError" in again.out

    said = shell("simulate", "small.py:wrong", "--seed", "1", "--shrink", "--save", "it.toml", "--json")
    assert said.last["saved"] == "it.toml"
    assert (shell.folder / "it.toml").read_text() == found[0].read_text()


def test_nothing_is_made_small_when_nothing_fails(shell: Shell) -> None:
    small(shell)
    said = shell("simulate", "small.py:small", "--seed", "1", "--shrink", "--json")
    assert said.code == 0
    assert "saved" not in said.last
    assert not (shell.folder / "scenarios").exists()


@pytest.mark.slow
def test_planted_faults_are_looked_for_in_children_and_one_that_is_not_found_is_a_failure(shell: Shell) -> None:
    said = shell("simulate", "--mutants", "--seeds", "1", "--json")
    assert list(said.last) == ["mutants", "found", "median_seeds", "each"]
    assert said.last["mutants"] == len(said.last["each"]) >= 20
    found = [seeds for seeds in said.last["each"].values() if seeds is not None]
    assert set(found) <= {1}
    assert said.last["found"] == len(found)
    assert said.code == (0 if len(found) == said.last["mutants"] else 1)
