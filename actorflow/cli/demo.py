"""``actorflow demo``: count the words of real text in a process that is killed again and again, and compare.

A child process counts, with running counts into the exactly-once file sink.  This process kills it with SIGKILL, at
moments that are drawn: while it reads, while it claims its home and restores, within a checkpoint, between a manifest
and its commit.  Then it starts it again with the same command line, until the input is drained.  Whether the rows are
right is found out by ``demo_check``, which knows nothing of the engine.

On a slow machine each life takes longer, so the number of kills gives way and not the length of the demo.
"""

from __future__ import annotations

import asyncio
import json
import random
import shutil
import signal
import sys
import tempfile
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from pathlib import Path
from time import monotonic
from typing import Any

from actorflow.cli.demo_check import compare, count_text, rows_of
from actorflow.cli.demo_job import library_files, read_diary
from actorflow.cli.demo_life import Aim, Stroke, command_line, live
from actorflow.cli.demo_story import Tale, tell
from actorflow.cli.exits import Exit, UsageMistake

__all__ = ("Gone", "Length", "draw_strokes", "next_stroke", "play", "run_demo")

TARGET = "actorflow.cli.demo_job:demo_words"


@dataclass(frozen=True, slots=True, kw_only=True)
class Length:
    """How long the demo is.

    Without kills reading takes ``reads_for_s``.  There are ``kills``; after ``kills_until_s`` only as many as it takes
    to come to ``at_least``, ``after_restore`` of which fell after a restore.  After ``ends_after_s`` the demo gives up.
    """

    reads_for_s: float = 24.0
    kills: int = 12
    at_least: int = 6
    after_restore: int = 3
    kills_until_s: float = 35.0
    ends_after_s: float = 300.0


class Gone(Exception):
    """The child ended in a way that it must not, or did not end; the text says how."""


def run_demo(*, as_json: bool, seed: int | None, keep: Path | None, length: Length | None = None) -> int:
    """Play the demo and tell its story; 1 when a row is lost, doubled or wrong."""
    if keep is not None:
        _check_is_free(keep)
    folder = Path(tempfile.mkdtemp(prefix="actorflow-demo-")) if keep is None else keep.resolve()
    try:
        tale = asyncio.run(_until_terminated(lambda: play(folder, seed, length or Length())))
    except Gone as gone:
        print(f"actorflow: {gone}", file=sys.stderr)
        return Exit.FAILED
    finally:
        if keep is None:
            shutil.rmtree(folder, ignore_errors=True)
    if tale is None:
        return Exit.TERMINATED
    print(tell(tale), file=sys.stderr if as_json else sys.stdout, flush=True)
    if keep is not None:
        _say(f"the rows are in {folder / 'counts'}")
    result = tale.result()
    if as_json:
        print(json.dumps(result), flush=True)
    return Exit.FAILED if result["difference"] else Exit.DONE


def _check_is_free(keep: Path) -> None:
    try:
        keep.mkdir(parents=True, exist_ok=True)
        if any(keep.iterdir()):
            raise UsageMistake(f"--keep {keep}: this folder is not empty, and the demo needs one of its own")
    except OSError as error:
        raise UsageMistake(f"--keep {keep}: {error}") from error


async def _until_terminated(play_on: Callable[[], Coroutine[Any, Any, Tale]]) -> Tale | None:
    """Play, or end early (``None``) when somebody terminates this process; Ctrl-C raises, as it always does."""
    task = asyncio.current_task()
    assert task is not None
    terminated = False

    def terminate() -> None:
        nonlocal terminated
        terminated = True
        task.cancel()

    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGHUP):
        loop.add_signal_handler(number, terminate)
    try:
        return await play_on()
    except asyncio.CancelledError:
        if not terminated:
            raise
        return None
    finally:
        for number in (signal.SIGTERM, signal.SIGHUP):
            loop.remove_signal_handler(number)


async def play(folder: Path, seed: int | None, length: Length) -> Tale:
    """Let the child live and die in a folder until the input is drained, and compare."""
    paths = library_files()
    tale = Tale(count_text(paths))
    if not tale.text.counts:
        raise Gone("the standard library of this Python has no sources on this machine, so there is no text to count")
    seed = random.SystemRandom().randrange(1_000_000) if seed is None else seed
    _say(
        f"counts the words of Python's own standard library, {tale.text.lines:,} lines, in a process that is killed"
        f" {length.kills} times (--seed {seed})"
    )
    try:
        async with asyncio.timeout(length.ends_after_s):
            await _let_live_and_die(tale, folder, random.Random(seed), length)
    except TimeoutError:
        raise Gone(f"the input was not drained after {length.ends_after_s:g} s") from None
    tale.comparison = compare(rows_of(folder / "counts"), tale.text.counts)
    return tale


async def _let_live_and_die(tale: Tale, folder: Path, chance: random.Random, length: Length) -> None:
    diary = folder / "diary"
    diary.mkdir()
    per_second = max(1, round(tale.text.lines / length.reads_for_s))
    # Without restarts within a life: whatever fails without our doing shall be seen.
    define = ("parallelism=2", "checkpoints.every=250ms", "restart=none")
    command = command_line(TARGET, "counts", "diary", str(per_second), define=define)
    strokes = draw_strokes(chance, length)
    late_s = monotonic() + length.kills_until_s
    while True:
        stroke = next_stroke(tale, strokes, length, late=monotonic() > late_s)
        if stroke is None:
            _say("no more kills: from here it may read to the end")
        life = await live(command, folder, stroke)
        _say(tale.add(life, read_diary(diary, life.process)))
        (diary / str(life.process)).unlink(missing_ok=True)  # a later life may get this number again
        if life.exit_code == Exit.DONE:
            return
        if not life.was_killed:
            raise Gone("\n  ".join([f"the child ended with exit code {life.exit_code}; its last words:", *life.words]))


def draw_strokes(chance: random.Random, length: Length) -> list[Stroke]:
    """When each life is to be killed.  The first one has nothing to restore, so it is left to read for a while."""

    def some_s() -> float:
        return chance.uniform(0.01, 0.14) * length.reads_for_s

    strokes: list[Stroke] = []
    for number in range(length.kills - 1):
        match number % 5:
            case 0:
                strokes.append(Stroke(Aim.RESTORING, chance.uniform(0.0, 0.06)))
            case 1:
                strokes.append(Stroke(Aim.MANIFEST, 0.0, after_s=some_s()))
            case 2:
                strokes.append(Stroke(Aim.RUNNING, some_s()))
            case 3:
                strokes.append(Stroke(Aim.CHECKPOINT, chance.uniform(0.0, 0.06), after_s=some_s()))
            case _:
                strokes.append(Stroke(Aim.CLAIMING, chance.uniform(0.0, 0.03)))
    chance.shuffle(strokes)
    return [Stroke(Aim.RUNNING, 0.5 + some_s()), *strokes]


def next_stroke(tale: Tale, strokes: list[Stroke], length: Length, *, late: bool) -> Stroke | None:
    """Take the stroke for the next life; ``None`` once there were enough."""
    deaths = len(tale.deaths)
    enough = deaths >= length.at_least and tale.after_restore >= length.after_restore
    if strokes and not (late and enough):
        return strokes.pop(0)
    if not tale.while_restoring and deaths < length.kills + 3:  # the restore was quicker than the stroke each time
        return Stroke(Aim.RESTORING, 0.0)
    return None


def _say(text: str) -> None:
    print(f"demo: {text}", file=sys.stderr, flush=True)
