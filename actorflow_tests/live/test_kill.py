"""Real processes that are killed, stopped, interrupted, frozen and overtaken: no row is lost, doubled or wrong."""

from __future__ import annotations

import asyncio
import random
import signal
import socket
from collections import Counter
from datetime import timedelta
from pathlib import Path

import pytest

import actorflow as af
from actorflow.cli.demo import Length, draw_strokes, next_stroke
from actorflow.cli.demo_check import Text, compare, rows_of
from actorflow.cli.demo_life import command_line, live
from actorflow.cli.demo_story import Tale
from actorflow.connectors import files
from actorflow_tests.live.children import PATIENCE_S, child

JOBS = """
import time
from pathlib import Path

import actorflow as af
from actorflow.connectors import files


def count(path: str, output: str, per_second: float) -> af.Job:
    job = af.Job("count")
    lines = job.read(files.lines(path, per_second=per_second), name="lines").flat_map(str.split)
    lines.key_by(str.lower).count(name="count").write(files.write(output, format=row), name="rows")
    return job


def row(counted):
    return "{}\\t{}".format(*counted)


def blocked(path: str) -> af.Job:
    job = af.Job("blocked")
    job.read(files.lines(path), name="lines").map(block, name="block").write(files.write("lines"), name="rows")
    return job


def block(line):
    Path("is-blocked").touch()
    time.sleep(60)
    return line
"""


class Text3000:
    """3,000 lines in six files, drawn from a seed, and what they count to."""

    def __init__(self, folder: Path) -> None:
        (folder / "jobs.py").write_text(JOBS)
        chance = random.Random(19)
        (folder / "text").mkdir()
        self.counts: Counter[str] = Counter()
        for number in range(6):
            lines = [" ".join(f"w{int(chance.paretovariate(0.7))}" for _ in range(3)) for _ in range(500)]
            (folder / f"text/{number}.txt").write_text("".join(f"{line}\n" for line in lines))
            for line in lines:
                self.counts.update(line.split())
        self.folder = folder

    def command(self, *, per_second: int, every: str = "100ms") -> list[str]:
        define = ("parallelism=2", f"checkpoints.every={every}", "restart=none")
        return command_line("jobs.py:count", "text", "counts", str(per_second), define=define)

    def check(self) -> None:
        compared = compare(rows_of(self.folder / "counts"), self.counts)
        assert compared.difference == 0, compared


@pytest.fixture
def text(tmp_path: Path) -> Text3000:
    return Text3000(tmp_path)


def test_r019_a_storm_of_kills_loses_and_doubles_nothing(text: Text3000) -> None:
    length = Length(reads_for_s=2.0, kills=9)
    tale = Tale(Text(6, 3_000, text.counts))
    strokes = draw_strokes(random.Random(19), length)

    async def storm() -> None:
        command = text.command(per_second=1_500)
        async with asyncio.timeout(2 * PATIENCE_S):
            while not tale.lives or tale.lives[-1].was_killed:
                tale.add(await live(command, text.folder, next_stroke(tale, strokes, length, late=False)), [])

    asyncio.run(storm())

    assert tale.lives[-1].exit_code == 0, list(tale.lives[-1].words)
    text.check()
    assert len(tale.deaths) >= 8
    assert tale.after_restore >= 3
    assert tale.while_restoring >= 1


def test_sigterm_stops_with_a_last_checkpoint_from_which_the_next_start_goes_on(text: Text3000) -> None:
    async def story() -> None:
        command = text.command(per_second=6_000, every="1h")
        async with child(command, text.folder) as first:
            await first.wait_for("JobRunning")
            await asyncio.sleep(0.2)
            first.send(signal.SIGTERM)
            assert await first.end() == 0
        stopped = first.entries[-1]
        assert stopped["entry"] == "JobStopped"
        assert first.words[-1].startswith("job 'count' stopped; the next start goes on from ")
        assert first.words[-1].endswith(f".actorflow/count/chk-{stopped['checkpoint']}")
        committed = len(rows_of(text.folder / "counts"))
        assert 0 < committed < text.counts.total()

        async with child(command, text.folder) as second:
            assert await second.end() == 0
        started = await second.wait_for("JobStarted")
        assert started["restored_checkpoint"] == stopped["checkpoint"]

    asyncio.run(story())
    text.check()


def test_a_second_sigint_ends_at_once_with_130_whatever_the_loop_is_busy_with(text: Text3000) -> None:
    async def story() -> None:
        async with child(command_line("jobs.py:blocked", "text"), text.folder) as running:
            await running.wait_for("JobRunning")
            while not (text.folder / "is-blocked").exists():
                await asyncio.sleep(0.01)
            running.send(signal.SIGINT)
            await asyncio.sleep(0.1)
            running.send(signal.SIGINT)
            assert await running.end() == 130
        assert "JobStopped" not in running.names()

    asyncio.run(story())


def test_a_process_that_wakes_up_after_it_was_overtaken_stands_down_and_commits_nothing(text: Text3000) -> None:
    async def story() -> None:
        slow, fast = text.command(per_second=1_000), text.command(per_second=100_000)
        async with child(slow, text.folder) as first:
            await first.wait_for("SinkCommitted")
            first.send(signal.SIGSTOP)
            async with child(fast, text.folder) as second:
                assert await second.end() == 0
            text.check()
            first.send(signal.SIGCONT)
            assert await first.end() == 4
        last = first.words[-1]
        assert f"process {second.pid} on {socket.gethostname()}" in last
        assert "this process commits and deletes nothing any more" in last

    asyncio.run(story())
    text.check()


def test_a_start_fences_whoever_runs(text: Text3000) -> None:
    async def story() -> None:
        command = text.command(per_second=1_000)
        async with child(command, text.folder) as first:
            await first.wait_for("CheckpointCompleted")
            async with child(command, text.folder) as second:
                assert await first.end() == 4
                await second.wait_for("CheckpointCompleted")
                second.send(signal.SIGTERM)
                assert await second.end() == 0

    asyncio.run(story())
    rows = Counter(rows_of(text.folder / "counts"))
    assert rows
    assert max(rows.values()) == 1
    for word, highest in Counter(word for word, _ in rows).items():
        assert all((word, n) in rows for n in range(1, highest + 1))


def test_r018_stopping_and_starting_without_new_input_changes_no_count(tmp_path: Path) -> None:
    source, counts = tmp_path / "followed.txt", tmp_path / "counts"
    source.write_text("a\n" * 5)

    def job() -> af.Job:
        job = af.Job("five")
        lines = job.read(files.lines(source, follow=True, poll_every=timedelta(milliseconds=5)), name="lines")
        lines.key_by(str).count(name="count").write(files.write(counts, format=tab), name="rows")
        return job

    async def live_once(until: int) -> None:
        checkpoints = af.Checkpoints(storage=str(tmp_path / "checkpoints"))
        async with af.Environment(checkpoints=checkpoints).run(job()) as handle:
            while (await counted(handle)) < until:
                await asyncio.sleep(0.005)
            await asyncio.sleep(0.02)
            assert await counted(handle) == until

    async def counted(handle: af.JobHandle) -> int:
        return int(await handle.query("count.state", key="a") or 0)

    async def story() -> None:
        for _ in range(4):
            await live_once(until=5)
        with source.open("a") as file:
            file.write("a\n")
        await live_once(until=6)

    asyncio.run(story())
    assert rows_of(counts) == [("a", n) for n in range(1, 7)]


def tab(counted: tuple[str, int]) -> str:
    return f"{counted[0]}\t{counted[1]}"
