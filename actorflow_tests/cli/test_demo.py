"""What the demo draws, what it makes of a child's journal, and how it tells the story; no child is started here."""

from __future__ import annotations

import json
import random
import signal
from collections import Counter
from pathlib import Path

import pytest

import actorflow
from actorflow.cli.demo import Length, draw_strokes, next_stroke
from actorflow.cli.demo_check import Comparison, Text
from actorflow.cli.demo_job import read_diary
from actorflow.cli.demo_life import Aim, Life, Step, Stroke, command_line, environment
from actorflow.cli.demo_story import Tale, tell
from actorflow_tests.cli.shell import Shell


def life(*entries: str, killed: bool = True, killed_ns: int = 0) -> Life:
    """A life with this journal; ``name:checkpoint`` stands for an entry."""
    lived = Life(1, 0, killed_ns=killed_ns, exit_code=-signal.SIGKILL if killed else 0)
    for entry in entries:
        name, _, number = entry.partition(":")
        checkpoint = int(number) if number else None
        lived.take({"entry": name, "checkpoint": checkpoint, "restored_checkpoint": checkpoint})
    return lived


RUNNING = ("JobStarted:3", "JobRunning")


@pytest.mark.parametrize(
    ("entries", "step"),
    [
        ((), Step.STARTING),
        (("GenerationClaimed",), Step.STARTING),
        (("JobStarted:3",), Step.RESTORING),
        (("JobStarted:3", "SinkCommitted:3"), Step.RESTORING),
        (RUNNING, Step.READING),
        ((*RUNNING, "CheckpointTriggered:4"), Step.CHECKPOINT),
        ((*RUNNING, "CheckpointTriggered:4", "CheckpointAborted:4"), Step.READING),
        ((*RUNNING, "CheckpointTriggered:4", "ManifestWritten:4"), Step.COMMIT),
        ((*RUNNING, "CheckpointTriggered:4", "ManifestWritten:4", "CheckpointCompleted:4"), Step.COMMIT),
        ((*RUNNING, "ManifestWritten:4", "CheckpointCompleted:4", "SinkCommitted:4"), Step.READING),
    ],
)
def test_the_journal_says_in_which_step_a_process_died(entries: tuple[str, ...], step: Step) -> None:
    assert life(*entries).step is step


def test_a_process_that_ended_just_before_the_stroke_was_not_killed() -> None:
    assert not life(*RUNNING, killed=False).was_killed


def test_the_same_seed_draws_the_same_strokes() -> None:
    def drawn(seed: int) -> list[Stroke]:
        return draw_strokes(random.Random(seed), Length())

    assert drawn(7) == drawn(7)
    assert drawn(7) != drawn(8)


@pytest.mark.parametrize("kills", [5, 8, 12])
def test_strokes_are_of_every_kind_and_the_first_life_may_read(kills: int) -> None:
    strokes = draw_strokes(random.Random(1), Length(kills=kills))

    assert len(strokes) == kills
    assert strokes[0].aim is Aim.RUNNING
    assert strokes[0].wait_s >= 0.5
    assert {stroke.aim for stroke in strokes} >= {Aim.RUNNING, Aim.RESTORING, Aim.MANIFEST, Aim.CHECKPOINT}


def tale(*lives: Life) -> Tale:
    return Tale(Text(2, 100, Counter(a=60, b=40)), list(lives))


def test_kills_go_on_until_all_strokes_are_dealt() -> None:
    strokes = [Stroke(Aim.RUNNING, 1.0)]
    assert next_stroke(tale(life("JobStarted:3")), strokes, Length(), late=False) == Stroke(Aim.RUNNING, 1.0)
    assert strokes == []
    assert next_stroke(tale(life("JobStarted:3")), strokes, Length(), late=False) is None


def test_a_restore_that_was_quicker_than_the_stroke_is_tried_again_a_few_times() -> None:
    length = Length(kills=2)
    assert next_stroke(tale(life(*RUNNING)), [], length, late=False) == Stroke(Aim.RESTORING, 0.0)
    assert next_stroke(tale(*[life(*RUNNING)] * 5), [], length, late=False) is None


def test_when_it_is_late_there_are_no_more_kills_than_it_takes() -> None:
    length = Length(at_least=2, after_restore=1)
    first, second = life("JobStarted", "JobRunning"), life(*RUNNING)
    for lives, is_enough in [((first,), False), ((first, first), False), ((first, second), True)]:
        strokes = [Stroke(Aim.CHECKPOINT, 0.0)]
        stroke = next_stroke(tale(*lives), strokes, length, late=True)
        assert stroke == (Stroke(Aim.RESTORING, 0.0) if is_enough else Stroke(Aim.CHECKPOINT, 0.0))


def test_figures_come_from_journals_and_diaries() -> None:
    told = tale()
    first = ("JobStarted", "JobRunning", "CheckpointCompleted:1", "ManifestWritten:2")
    told.add(life(*first, killed_ns=5_000_000_000), [1] * 70)
    told.add(life("JobStarted:2", killed_ns=6_000_000_000), [])
    line = told.add(life("JobStarted:2", "JobRunning", "CheckpointCompleted:3", killed=False), [6_250_000_000] * 55)
    told.comparison = Comparison(0, 0, 0, ())

    assert told.result() == {
        "words": 100,
        "kills": 2,
        "checkpoints": 3,  # the second one completed too: it was restored
        "records_replayed": 25,
        "recovery_s": {"median": 0.25, "max": 0.25},  # the life that was killed while it restored has none
        "difference": 0,
    }
    assert (told.after_restore, told.while_restoring) == (0, 1)
    assert line == "life  3, goes on from checkpoint 2, reads 0.25 s after the kill, 55 lines, 1 checkpoint, done"
    assert "2 with SIGKILL: 1 while it restored, 1 between a manifest and its commit" in tell(told)
    assert "Every row (word, n) was committed exactly once" in tell(told)


def test_rows_that_differ_are_told() -> None:
    told = tale(life(*RUNNING, killed=False))
    told.comparison = Comparison(3, 1, 2, ("'a' 1 is there 0 times instead of once",))

    assert "1 rows are lost, and 2 are there that should not be" in tell(told)
    assert "'a' 1 is there 0 times" in tell(told)


def test_a_diary_that_was_cut_in_the_middle_of_a_moment_is_read_up_to_there(tmp_path: Path) -> None:
    (tmp_path / "7").write_bytes((5).to_bytes(8, "little") + (6).to_bytes(8, "little") + b"cut")

    assert read_diary(tmp_path, 7) == [5, 6]
    assert read_diary(tmp_path, 8) == []


def test_the_command_line_of_a_child_tells_its_journal() -> None:
    command = command_line("jobs:count", "text", define=("parallelism=2",))
    assert " ".join(command[1:]) == (
        "-m actorflow run jobs:count -D parallelism=2 --log-level debug --log-format json -- text"
    )


def test_a_child_finds_the_very_package_that_runs_here() -> None:
    first = environment()["PYTHONPATH"].split(":")[0]
    assert actorflow.__file__.startswith(first)


def test_a_folder_that_is_not_empty_is_not_taken(shell: Shell) -> None:
    said = shell("demo", "--keep", ".")

    assert said.code == 2
    assert "--keep .: this folder is not empty, and the demo needs one of its own" in said.err
    assert said.out == ""


def test_what_the_demo_prints_is_json() -> None:
    told = tale()
    told.comparison = Comparison(0, 0, 0, ())
    assert list(json.loads(json.dumps(told.result()))) == [
        "words",
        "kills",
        "checkpoints",
        "records_replayed",
        "recovery_s",
        "difference",
    ]
