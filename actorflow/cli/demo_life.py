"""One life of a job in a child process: what its journal says, and when it is killed.

The child is ``sys.executable -m actorflow run …``, the same command line in the same folder each time.  It writes its
journal to stderr, one JSON object a line, and the parent reads it through a pipe.  So a stroke can be aimed at a step
of the protocol, and after a death, when the pipe is read to its end, the journal says in which step it fell.  What the
journal can't show is whether the child had come a little further than its last line; that makes the name of a step
inexact by moments, and nothing else depends on it.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from time import monotonic_ns
from typing import Any

__all__ = ("ENTRY_LOG", "Aim", "Life", "Step", "Stroke", "command_line", "live")

ENTRY_LOG = ("--log-level", "debug", "--log-format", "json")
"""The options by which a child tells its journal."""

LONGEST_LINE = 1024 * 1024

Entry = dict[str, Any]


class Aim(StrEnum):
    """What a stroke waits for."""

    CLAIMING = "GenerationClaimed"
    RUNNING = "JobRunning"
    RESTORING = "JobStarted"
    CHECKPOINT = "CheckpointTriggered"
    MANIFEST = "ManifestWritten"


@dataclass(frozen=True, slots=True)
class Stroke:
    """SIGKILL, ``wait_s`` after what it is aimed at; of a checkpoint, the first one ``after_s`` into the run."""

    aim: Aim
    wait_s: float
    after_s: float = 0.0


class Step(StrEnum):
    """Where in its life a process was when it died."""

    STARTING = "while it claimed its home"
    RESTORING = "while it restored"
    READING = "while it read"
    CHECKPOINT = "within a checkpoint"
    COMMIT = "between a manifest and its commit"


@dataclass(slots=True)
class Life:
    """What is known of one process, from its journal and from its death."""

    process: int
    started_ns: int
    killed_ns: int | None = None
    exit_code: int | None = None
    restored: int | None = None
    has_started: bool = False
    has_run: bool = False
    completed: dict[int, None] = field(default_factory=dict)
    under_way: int | None = None
    uncommitted: int | None = None
    words: deque[str] = field(default_factory=lambda: deque(maxlen=20))
    """What it wrote that is not its journal."""

    @property
    def was_killed(self) -> bool:
        """Whether it died of our stroke, and did not end by itself just before."""
        return self.exit_code == -signal.SIGKILL

    @property
    def step(self) -> Step:
        """How far it had come."""
        if not self.has_started:
            return Step.STARTING
        if not self.has_run:
            return Step.RESTORING
        if self.uncommitted is not None:
            return Step.COMMIT
        return Step.READING if self.under_way is None else Step.CHECKPOINT

    def take(self, entry: Entry) -> None:
        """Take in one line of its journal."""
        checkpoint = entry.get("checkpoint")
        match entry["entry"]:
            case "JobStarted":
                self.has_started, self.restored = True, entry["restored_checkpoint"]
            case "JobRunning":
                self.has_run = True
            case "CheckpointTriggered":
                self.under_way = checkpoint
            case "ManifestWritten":
                self.under_way, self.uncommitted = None, checkpoint
            case "CheckpointAborted":
                self.under_way = self.uncommitted = None
            case "CheckpointCompleted":
                assert checkpoint is not None
                self.completed[checkpoint] = None
            case "SinkCommitted" if self.uncommitted == checkpoint:
                self.uncommitted = None
            case _:
                pass


class _Journal:
    """The child's stderr, read to its end; whoever waits for an entry is woken by it."""

    def __init__(self, stream: asyncio.StreamReader, life: Life) -> None:
        self._stream, self._life = stream, life
        self._waiting: list[tuple[str, asyncio.Future[None]]] = []
        self._seen: dict[str, None] = {}

    async def read(self) -> None:
        """Read until the child has closed its end."""
        while line := await self._stream.readline():
            text = line.decode("utf-8", "replace").rstrip()
            entry = _entry_of(text)
            if entry is None:
                self._life.words.append(text)
                continue
            self._life.take(entry)
            self._seen[entry["entry"]] = None
            for name, future in self._waiting:
                if name == entry["entry"] and not future.done():
                    future.set_result(None)

    async def wait_for(self, name: str, *, again: bool = False) -> None:
        """Wait for an entry of this name; ``again``: for one that comes from now on."""
        if again or name not in self._seen:
            future = asyncio.get_running_loop().create_future()
            self._waiting.append((name, future))
            await future


def _entry_of(text: str) -> Entry | None:
    """A line of the journal; ``None`` when it is something else."""
    if not text.startswith("{"):
        return None
    try:
        line = json.loads(text)
    except ValueError:
        return None
    return line if isinstance(line, dict) and "entry" in line else None


def command_line(target: str, *arguments: str, define: Sequence[str] = ()) -> list[str]:
    """The command that runs a job in a child process and tells its journal."""
    settings = [word for setting in define for word in ("-D", setting)]
    return [sys.executable, "-m", "actorflow", "run", target, *settings, *ENTRY_LOG, "--", *arguments]


def environment() -> dict[str, str]:
    """Our own environment, in which the child, whose folder is another, finds the very package that runs here."""
    found = dict(os.environ)
    root = Path(__file__).resolve().parents[2]
    if root.name not in ("site-packages", "dist-packages"):  # it runs from its sources
        others = [path for path in found.get("PYTHONPATH", "").split(os.pathsep) if path]
        found["PYTHONPATH"] = os.pathsep.join([str(root), *(str(Path(path).resolve()) for path in others)])
    return found


async def live(command: Sequence[str], folder: Path, stroke: Stroke | None) -> Life:
    """Run a child until it ends by itself or the stroke falls; it is dead when this returns, or is left in any way."""
    child = await asyncio.create_subprocess_exec(
        *command,
        cwd=folder,
        env=environment(),
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.PIPE,
        limit=LONGEST_LINE,
    )
    assert child.stderr is not None
    life = Life(child.pid, monotonic_ns())
    journal = _Journal(child.stderr, life)
    reading = asyncio.create_task(journal.read())
    falling = None if stroke is None else asyncio.create_task(_wait_to_strike(stroke, journal))
    try:
        await asyncio.wait([task for task in (reading, falling) if task], return_when=asyncio.FIRST_COMPLETED)
        if not reading.done():
            life.killed_ns = monotonic_ns()
            _kill(child)
        await reading
        life.exit_code = await child.wait()
    finally:
        if falling is not None:
            falling.cancel()
        _kill(child)
        await asyncio.gather(reading, child.wait(), return_exceptions=True)
    return life


async def _wait_to_strike(stroke: Stroke, journal: _Journal) -> None:
    if stroke.aim in (Aim.CHECKPOINT, Aim.MANIFEST):
        await journal.wait_for(Aim.RUNNING)
        await asyncio.sleep(stroke.after_s)
        await journal.wait_for(stroke.aim, again=True)
    else:
        await journal.wait_for(stroke.aim)
    await asyncio.sleep(stroke.wait_s)


def _kill(child: asyncio.subprocess.Process) -> None:
    try:
        child.kill()
    except ProcessLookupError:  # it has just ended by itself
        pass
