"""``actorflow run --record FILE`` and ``actorflow simulate FILE``: what they say, and whose job a replay builds."""

from __future__ import annotations

import stat
import sys

from actorflow_tests.cli.shell import Said, Shell

WORDS = """
import dataclasses

import actorflow as af
from actorflow.connectors import files

import numbering


@af.record(name="word", version=1)
@dataclasses.dataclass(frozen=True)
class Word:
    text: str


async def look_up(text: str) -> Word:
    return Word(text)


def words(path: str, output: str = "rows") -> af.Job:
    job = af.Job("words")
    looked_up = job.read(files.lines(path), name="lines").map(look_up, name="look-up")
    looked_up.map(numbering.number, name="number").write(files.write(output), name="rows")
    return job
"""

NUMBERING = """
numbered = 0


def number(word):
    global numbered
    numbered += 1
    print("numbering")
    return f"{numbered} {word.text}"
"""


def record(shell: Shell, *more: str) -> Said:
    (shell.folder / "words.py").write_text(WORDS)
    (shell.folder / "numbering.py").write_text(NUMBERING)
    said = shell("run", "words.py:words", "--record", "run.rec", *more, "--", "text")
    assert said.code == 0, said.err
    for name in ("words", "numbering"):  # the process that was recorded has ended
        del sys.modules[name]
    return said


def test_a_recording_is_replayed_with_modules_that_each_life_has_for_itself(shell: Shell) -> None:
    record(shell)
    record(shell, "--fresh")  # another process, which begins to number at one again
    (shell.folder / "text").unlink()

    said = shell("simulate", "run.rec")

    assert (said.code, said.out.splitlines()[0]) == (0, "the same"), said.out
    assert said.out.splitlines()[1].startswith("2 lives, ")
    assert "numbering" in said.err
    assert "numbering" not in said.out


def test_the_result_as_json_is_all_that_is_on_stdout(shell: Shell) -> None:
    recorded = record(shell, "--json")
    assert "it is recorded: run it again with actorflow simulate run.rec" in recorded.err
    said = shell("simulate", "run.rec", "--json")
    assert said.out.count("\n") == 1
    assert said.last["lives"] == 1
    assert said.last["same"] is True
    assert said.last["divergence"] is None
    assert said.last["entries"] > 20
    assert said.last["journal_digest"] == recorded.last["journal_digest"]
    assert said.last["journal_digests"] == [recorded.last["journal_digest"]]
    assert len(said.last["output_digest"]) == 64


def test_a_job_that_was_changed_diverges_with_exit_code_1(shell: Shell) -> None:
    record(shell)
    (shell.folder / "numbering.py").write_text(NUMBERING.replace("word.text", "word.text.upper()"))
    said = shell("simulate", "run.rec")
    assert said.code == 1
    assert said.out.startswith("it diverges at life 1, entry ")
    assert "; the replay: disk.write(" in said.out.splitlines()[0]


def test_a_replay_elsewhere_says_where_the_job_was(shell: Shell) -> None:
    record(shell)
    (shell.folder / "words.py").rename(shell.folder / "other.py")
    said = shell("simulate", "run.rec")
    assert said.code == 2
    assert "words.py" in said.err


def test_redact_leaves_records_out_and_wants_a_file(shell: Shell) -> None:
    assert shell("run", "jobs:count", "--redact", "--", "text").code == 2
    shell.write("text", "confidential", "secrets")
    assert shell("run", "jobs:count", "--record", "run.rec", "--redact", "--", "text").code == 0
    recorded = shell.folder / "run.rec"
    assert stat.S_IMODE(recorded.stat().st_mode) == 0o600
    assert b"onfidential" not in recorded.read_bytes()
    assert b"ecrets" not in recorded.read_bytes()
    assert shell("simulate", "run.rec").out.startswith("the same\n")
    (shell.folder / "text").unlink()
    said = shell("simulate", "run.rec")
    assert said.code == 0
    assert said.out.startswith("the same as far as it could be compared, which is up to life 1, entry ")


def test_a_file_that_is_something_else_is_not_recorded_into(shell: Shell) -> None:
    said = shell("run", "jobs:count", "--record", "text", "--", "text")
    assert said.code == 2
    assert "no recording" in said.err
    assert (shell.folder / "text").read_text().startswith("one two")


def test_a_damaged_recording_is_told_with_file_and_place(shell: Shell) -> None:
    record(shell)
    path = shell.folder / "run.rec"
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 255
    path.write_bytes(data)
    said = shell("simulate", "run.rec")
    assert said.code == 2
    assert "run.rec: damaged at byte " in said.err
