"""A job in a child process of this test: its journal is read, and signals are sent to it."""

from __future__ import annotations

import asyncio
import json
import signal
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from actorflow.cli.demo_life import environment

PATIENCE_S = 60.0
"""After that long whatever is waited for will not come, on however slow a machine."""


class Child:
    """A process that tells its journal on stderr."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self.process = process
        self.entries: list[dict[str, Any]] = []
        self.words: list[str] = []
        self._news = asyncio.Condition()
        self._reading = asyncio.create_task(self._read())

    @property
    def pid(self) -> int:
        return self.process.pid

    def names(self) -> list[str]:
        return [entry["entry"] for entry in self.entries]

    async def wait_for(self, name: str, times: int = 1) -> dict[str, Any]:
        """Wait until an entry of this name has come so many times, and return the last of these."""
        async with self._news:
            await asyncio.wait_for(
                self._news.wait_for(lambda: self.names().count(name) >= times or self._has_ended), PATIENCE_S
            )
        found = [entry for entry in self.entries if entry["entry"] == name]
        assert len(found) >= times, f"it ended without {name}:\n" + "\n".join(self.words)
        return found[times - 1]

    def send(self, number: signal.Signals) -> None:
        self.process.send_signal(number)

    async def end(self) -> int:
        """Wait for its end and return the exit code."""
        await asyncio.wait_for(self._reading, PATIENCE_S)
        return await self.process.wait()

    _has_ended = False

    async def _read(self) -> None:
        assert self.process.stderr is not None
        while line := (await self.process.stderr.readline()).decode():
            async with self._news:
                if line.startswith("{"):
                    self.entries.append(json.loads(line))
                else:
                    self.words.append(line.rstrip())
                self._news.notify_all()
        async with self._news:
            self._has_ended = True
            self._news.notify_all()


@asynccontextmanager
async def child(command: Sequence[str], folder: Path) -> AsyncIterator[Child]:
    """Start a process in a folder; it does not outlive the block."""
    process = await asyncio.create_subprocess_exec(
        *command,
        cwd=folder,
        env=environment(),
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.PIPE,
        limit=1024 * 1024,
    )
    started = Child(process)
    try:
        yield started
    finally:
        if process.returncode is None:
            process.kill()
        await started.end()
