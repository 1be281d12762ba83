"""Real processes that are recorded, killed and started again with the same command: the replay of all their lives comes
to the same output, byte by byte, and to the same journal."""

from __future__ import annotations

import asyncio
import json
import random
import shutil
import signal
import stat
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from actorflow.cli.demo_life import Aim, Stroke, command_line, environment, live
from actorflow.simulation.replay_files import digest_of_output
from actorflow_tests.live.children import PATIENCE_S, child
from actorflow_tests.simulation.recorded import files_in

JOBS = """
import asyncio
import random
from collections.abc import Callable
from datetime import timedelta

import actorflow as af
from actorflow.connectors import files


def count(path: str, output: str, per_second: float) -> af.Job:
    job = af.Job("count")
    lines = job.read(files.lines(path, per_second=per_second), name="lines").flat_map(str.split)
    lines.key_by(str.lower).count(name="count").write(files.write(output, format=row), name="rows")
    return job


def row(counted):
    return "{}\\t{}".format(*counted)


async def shout(word: str) -> str:
    await asyncio.sleep(random.random() * 0.01)
    return word.upper()


def look_up(path: str, output: str, per_second: float, ordered: bool = True) -> af.Job:
    job = af.Job("look-up")
    lines = job.read(files.lines(path, per_second=per_second), name="lines").flat_map(str.split)
    shouted = lines.map(shout, name="shout", in_flight=20, ordered=ordered, timeout=timedelta(seconds=5))
    shouted.key_by(str).process(Both, name="both").write(files.write(output), name="rows")
    return job


class Both(af.KeyedOperator[str, str, str]):
    order = af.ListState(str)

    async def on_record(self, word: str, context: af.Context[str]) -> list[str]:
        ended = []

        async def ask(name):
            await asyncio.sleep(random.random() * 0.004)
            ended.append(name)

        await asyncio.gather(ask("left"), ask("right"))
        self.order.append(ended[0][0])
        return [f"{word} {''.join(self.order)}"]
"""


class Story:
    """A folder with jobs and a text, and the command that runs one of them and records it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        (folder / "jobs.py").write_text(JOBS)
        chance = random.Random(5)
        (folder / "text").mkdir()
        for number in range(3):
            lines = [" ".join(f"w{int(chance.paretovariate(0.7))}" for _ in range(3)) for _ in range(50)]
            (folder / f"text/{number}.txt").write_text("".join(f"{line}\n" for line in lines))

    def command(self, job: str, per_second: int, *more: str, every: str = "60ms") -> list[str]:
        define = ("parallelism=2", f"checkpoints.every={every}", "restart=none")
        command = command_line(f"jobs.py:{job}", "text", "rows", str(per_second), *more, define=define)
        return [*command[:5], "--record", "run.rec", *command[5:]]

    def lives(self, command: list[str], *strokes: Stroke) -> list[dict[str, Any]]:
        """Run it, killing a life by each stroke, and then to its end; return how far the killed ones had come."""

        async def run() -> list[dict[str, Any]]:
            killed = []
            async with asyncio.timeout(2 * PATIENCE_S):
                for stroke in strokes:
                    life = await live(command, self.folder, stroke)
                    assert life.was_killed, [*life.words]
                    killed.append({"restored": life.restored, "step": life.step.name})
                last = await live(command, self.folder, None)
                assert last.exit_code == 0, [*last.words]
            return killed

        return asyncio.run(run())

    def replay(self) -> dict[str, Any]:
        """Replay it in a process that finds neither the text nor the rows, nor the checkpoints."""
        away = self.folder / "away"
        away.mkdir()
        for name in ("jobs.py", "run.rec"):
            shutil.copy(self.folder / name, away)
        command = [sys.executable, "-m", "actorflow", "simulate", "run.rec", "--json"]
        done = subprocess.run(command, cwd=away, env=environment(), capture_output=True, text=True, check=False)
        assert done.stdout, done.stderr
        result: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
        assert {path.name for path in away.iterdir()} <= {"jobs.py", "run.rec", "__pycache__"}
        assert done.returncode == (0 if result["same"] else 1)
        return result

    def check(self, lives: int) -> None:
        assert stat.S_IMODE((self.folder / "run.rec").stat().st_mode) == 0o600
        result = self.replay()
        assert result["divergence"] is None
        assert result["unknown"] is None
        assert (result["same"], result["lives"], result["not_compared"]) == (True, lives, 0)
        left = files_in(self.folder / "rows")
        assert left
        assert result["output_digest"] == digest_of_output(left, {})


@pytest.fixture
def story(tmp_path: Path) -> Story:
    return Story(tmp_path)


def test_a_word_count_killed_while_it_reads_restores_and_commits_is_the_same_again(story: Story) -> None:
    killed = story.lives(
        story.command("count", 150),
        Stroke(Aim.RUNNING, 0.3),
        Stroke(Aim.RESTORING, 0.0),
        Stroke(Aim.MANIFEST, 0.0, after_s=0.1),
        Stroke(Aim.CHECKPOINT, 0.0, after_s=0.1),
    )
    assert [life["restored"] is not None for life in killed[1:]] == [True, True, True]
    story.check(lives=5)


@pytest.mark.parametrize("order", ["--ordered", "--no-ordered"])
def test_async_calls_and_awaiting_handlers_over_two_kills_in_a_row_are_the_same_again(story: Story, order: str) -> None:
    story.lives(
        story.command("look_up", 100, order),
        Stroke(Aim.RUNNING, 0.4),
        Stroke(Aim.RUNNING, 0.05),
    )
    story.check(lives=3)


def test_a_stop_by_ctrl_c_and_the_start_after_it_are_the_same_again(story: Story) -> None:
    async def run() -> None:
        command = story.command("look_up", 100)
        async with child(command, story.folder) as first:
            await first.wait_for("JobRunning")
            await first.wait_for("CheckpointCompleted", 2)
            first.send(signal.SIGINT)
            assert await first.end() == 0
        assert first.entries[-1]["entry"] == "JobStopped"
        async with child(command, story.folder) as second:
            assert await second.end() == 0

    asyncio.run(run())
    story.check(lives=2)


def test_a_second_ctrl_c_leaves_a_life_that_ends_where_it_was(story: Story) -> None:
    async def run() -> None:
        command = story.command("look_up", 100, every="1h")
        async with child(command, story.folder) as first:
            await first.wait_for("JobRunning")
            first.send(signal.SIGINT)
            first.send(signal.SIGTERM)
            assert await first.end() != 0 or first.entries[-1]["entry"] == "JobStopped"

    asyncio.run(run())
    result = story.replay()
    assert (result["same"], result["not_compared"], result["divergence"]) == (True, 0, None)


def test_a_job_that_was_changed_since_diverges_at_a_named_entry_with_exit_code_1(story: Story) -> None:
    story.lives(story.command("count", 100_000))
    jobs = story.folder / "jobs.py"
    jobs.write_text(jobs.read_text().replace('"{}\\t{}"', '"{}={}"'))
    result = story.replay()
    assert result["same"] is False
    assert result["divergence"].startswith("life 1, entry ")
    assert "; the replay: disk.write(" in result["divergence"]


def test_redacted_nothing_of_the_text_is_in_the_file_and_the_same_machine_can_replay_it(story: Story) -> None:
    command = story.command("count", 150)
    at = command.index("--record")
    story.lives([*command[:at], "--redact", *command[at:]], Stroke(Aim.RUNNING, 0.3))
    recorded = (story.folder / "run.rec").read_bytes()
    words = {word for path in (story.folder / "text").iterdir() for word in path.read_text().split() if len(word) > 3}
    assert words
    assert not [word for word in words if word.encode() in recorded]
    story.check(lives=2)  # what it says of files are whole paths, so it finds the text


def test_two_processes_are_not_recorded_into_one_file(story: Story) -> None:
    async def run() -> None:
        command = story.command("count", 50)
        async with child(command, story.folder) as first:
            await first.wait_for("JobRunning")
            async with child(command, story.folder) as second:
                assert await second.end() == 2
            assert "another process is recording into it" in "\n".join(second.words)
            first.send(signal.SIGTERM)
            assert await first.end() == 0

    asyncio.run(run())
