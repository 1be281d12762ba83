"""``actorflow run``: what it says, what it means by its exit code, and from where it goes on."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from actorflow_tests.cli.shell import Said, Shell

COUNTED = ["one 1", "three 1", "two 1", "two 2"]


def first_line(said: Said) -> str:
    return next(line for line in said.err.splitlines() if line.startswith("job "))


def test_a_job_runs_to_its_end_and_its_rows_are_there(shell: Shell) -> None:
    said = shell("run", "jobs:count", "--", "text")

    assert (said.code, said.out) == (0, "")
    assert said.err.splitlines() == ["job 'count': it starts without state", "job 'count' finished"]
    assert shell.rows() == COUNTED


def test_a_file_and_options_of_the_function(shell: Shell) -> None:
    assert shell("run", "jobs.py:count", "--", "text", "--output", "there", "--times", "2").code == 0
    assert len(shell.rows("there")) == 2 * len(COUNTED)


def test_json_is_the_last_line_of_stdout_and_all_that_is_there(shell: Shell) -> None:
    said = shell("run", "jobs:count", "--json", "--", "text")

    assert said.out.count("\n") == 1
    assert said.last["status"] == "finished"
    assert said.last["job"] == "count"
    assert said.last["checkpoints"] >= 1


def test_checkpoints_are_kept_beside_the_caller_unless_told_otherwise(shell: Shell) -> None:
    shell("run", "jobs:count", "--", "text")
    assert (shell.folder / ".actorflow/count/finished").is_file()

    shell("run", "jobs:count", "-D", "checkpoints.storage=kept", "--", "text", "--output", "there")
    assert (shell.folder / "kept/count/finished").is_file()


def test_a_job_that_has_finished_before_says_so_and_does_not_begin_again(shell: Shell) -> None:
    shell("run", "jobs:count", "--", "text")

    said = shell("run", "jobs:count", "--", "text")

    assert said.code == 0
    assert first_line(said) == "job 'count': it has finished before; start it over with --fresh"
    assert shell.rows() == COUNTED


def test_fresh_starts_over_and_what_was_written_stays(shell: Shell) -> None:
    shell("run", "jobs:count", "--", "text")

    said = shell("run", "jobs:count", "--fresh", "--", "text")

    assert said.code == 0
    assert first_line(said) == "job 'count': it starts without state"
    assert "counts holds part-00000-0000000001.txt" in said.err
    assert shell.rows() == sorted(2 * COUNTED)


def test_the_failure_of_a_users_function_is_exit_1_and_names_operator_and_record(shell: Shell) -> None:
    said = shell("run", "jobs:failing", "-D", "restart=none", "--", "text")

    assert said.code == 1
    assert "actorflow: job 'failing' failed for good" in said.err
    assert "operator 'refuse', subtask 0, record 'one two': ValueError: not that" in said.err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), "Usage:"),
        (("jobs",), "'jobs' names no job: write MODULE:FUNCTION"),
        (("jobs:count",), "the following arguments are required: path"),
        (("jobs:count", "--no-such-option"), "No such option"),
        (("jobs:count", "--fresh", "--from", "x", "--", "text"), "give one of them"),
        (("jobs:count", "--rewind", "--", "text"), "--rewind insists on --from PATH"),
        (("jobs:count", "--config", "no.toml", "--", "text"), "--config no.toml:"),
        (("jobs:count", "--log-level", "loud", "--", "text"), "use debug, info, warning or error"),
        (("jobs:count", "--log-format", "xml", "--", "text"), "use text or json"),
        (("jobs:count", "-D", "parallelism", "--", "text"), "parallelism"),
        (("jobs:unnamed", "--", "text"), "count() needs a name="),
    ],
)
def test_wrong_usage_is_exit_2_and_nothing_is_begun(shell: Shell, arguments: tuple[str, ...], message: str) -> None:
    said = shell("run", *arguments)

    assert said.code == 2
    assert message in said.err + said.out
    assert not (shell.folder / ".actorflow").exists()


def test_all_mistakes_in_settings_are_told_at_once(shell: Shell) -> None:
    said = shell("run", "jobs:count", "-D", "checkpoints.evry=3s", "-D", "parallelism=many", "--", "text")

    assert said.code == 2
    assert "the nearest is checkpoints.every" in said.err
    assert "parallelism" in said.err


def test_settings_come_from_a_file_and_what_is_typed_stands_above_it(shell: Shell) -> None:
    shell.write("settings.toml", "parallelism = 2", "[checkpoints]", 'storage = "from-file"')
    assert shell("run", "jobs:count", "--config", "settings.toml", "--", "text").code == 0
    assert (shell.folder / "from-file/count/finished").is_file()

    told = ("-D", "checkpoints.storage=typed")
    said = shell("run", "jobs:count", "--config", "settings.toml", *told, "--", "text", "--output", "there")
    assert said.code == 0
    assert (shell.folder / "typed/count/finished").is_file()


def test_a_setting_that_changes_nothing_because_the_job_says_otherwise_is_told(shell: Shell) -> None:
    said = shell("run", "jobs:settled", "-D", "checkpoints.every=5s", "--", "text")

    assert said.code == 0
    assert "-D checkpoints.every changes nothing" in said.err
    assert "1s" in said.err


def test_a_setting_that_changes_something_is_not_told(shell: Shell) -> None:
    assert "changes nothing" not in shell("run", "jobs:count", "-D", "checkpoints.every=5s", "--", "text").err


def test_a_snapshot_that_is_not_there_is_exit_3(shell: Shell) -> None:
    said = shell("run", "jobs:count", "--from", "no/such/chk-3", "--", "text")

    assert said.code == 3
    assert "there is no snapshot at " in said.err
    assert "no/such/chk-3" in said.err
    assert shell.rows() == []


def test_a_job_that_somebody_else_has_taken_over_is_exit_4_and_says_who(shell: Shell) -> None:
    said = shell("run", "jobs:overtaken", "-D", "checkpoints.every=50ms", "--", "text")

    assert said.code == 4
    assert "generation 2 of " in said.err
    assert ".actorflow/overtaken belongs to process" in said.err


def test_logs_go_to_stderr_as_json_lines_with_the_entry(shell: Shell) -> None:
    said = shell("run", "jobs:count", "--log-level", "info", "--log-format", "json", "--", "text")

    lines = [json.loads(line) for line in said.err.splitlines() if line.startswith("{")]
    assert [line["entry"] for line in lines] == ["JobStarted", "JobRunning", "JobFinished"]
    assert lines[0]["restored_checkpoint"] is None
    assert said.out == ""


# ── going on from a snapshot ─────────────────────────────────────────────────────────────────


@pytest.fixture
def snapshot(shell: Shell) -> str:
    """A snapshot of ``kept``, out of the reach of that job, and how many lines it had counted."""
    shell.write("long", *map(str, range(120)))
    often = ("-D", "checkpoints.every=20ms", "-D", "checkpoints.retained=100")
    assert shell("run", "jobs:kept", *often, "--", "long").code == 0
    assert (shell.folder / "snapshot/_metadata").is_file()
    return "snapshot"


ALL = list(range(1, 121))


def test_a_snapshot_is_gone_on_from_and_never_changed(shell: Shell, snapshot: str) -> None:
    before = contents(shell.folder / snapshot)

    said = shell("run", "jobs:kept", "--from", snapshot, "--", "long")

    assert said.code == 0
    assert "goes on from checkpoint" in first_line(said)
    again = written_twice(shell)
    assert again == list(range(again[0], 121))  # what follows the snapshot was written again, as the warning says
    assert again[0] > 1
    assert "FellBack" in said.err
    assert contents(shell.folder / snapshot) == before


def test_a_snapshot_is_obeyed_once_per_home_unless_rewind_insists(shell: Shell, snapshot: str) -> None:
    shell("run", "jobs:kept", "--from", snapshot, "--", "long")
    twice = written_twice(shell)

    repeated = shell("run", "jobs:kept", "--from", snapshot, "--", "long")

    assert repeated.code == 0
    assert "it has finished before" in first_line(repeated)
    assert written_twice(shell) == twice

    insisted = shell("run", "jobs:kept", "--from", snapshot, "--rewind", "--", "long")

    assert insisted.code == 0
    assert "goes on from checkpoint" in first_line(insisted)
    assert sorted(counted(shell)) == sorted(ALL + twice + twice)


def counted(shell: Shell) -> list[int]:
    return [int(row.split()[1]) for row in shell.rows()]


def written_twice(shell: Shell) -> list[int]:
    rest = counted(shell)
    for count in ALL:
        rest.remove(count)
    return sorted(rest)


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}
