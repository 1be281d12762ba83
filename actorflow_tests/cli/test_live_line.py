"""The live line tells, and never ends what it tells about."""

from __future__ import annotations

import asyncio
import io
from typing import Any

import pytest

from actorflow.cli.live_line import show_live_line
from actorflow.protocol.lifecycle import JobStatus
from actorflow.runtime.handle import CheckpointInfo, Progress, Status
from actorflow.simulation import run


class Handle:
    """A job that has read a hundred records more each time it is asked."""

    def __init__(self) -> None:
        self.read = 0
        self.status = Status(
            status=JobStatus.RUNNING,
            attempt=1,
            restarts=2,
            restored_checkpoint=None,
            last_checkpoint=CheckpointInfo(
                checkpoint_id=7, kind="aligned", bytes=1, duration_ms=12, completed_at_ms=0, path="x"
            ),
            checkpoint_age_ms=1_500,
            waiting_for="",
        )

    @property
    def progress(self) -> Progress:
        self.read += 100
        return Progress(records_read=self.read, records_written=0, checkpoints_completed=0, checkpoints_failed=0)


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


class Gone(Terminal):
    def write(self, text: str) -> int:
        raise OSError(5, "Input/output error")


def shown(out: Any, seconds: float = 1.2) -> bool:
    """Show the line for a while on virtual time; whether it was still being shown then."""

    async def story() -> bool:
        showing = asyncio.ensure_future(show_live_line(Handle(), out))  # type: ignore[arg-type]
        await asyncio.wait([showing], timeout=seconds)
        if not showing.done():
            showing.cancel()
            await asyncio.wait([showing])
            return True
        showing.result()
        return False

    return run(story)


def test_on_a_terminal_the_line_is_rewritten_and_wiped_in_the_end() -> None:
    out = Terminal()
    assert shown(out)
    assert "checkpoint 7 1.5 s ago, took 12 ms · 2 restarts" in out.getvalue()
    assert out.getvalue().count("\r\x1b[K") == 3
    assert out.getvalue().endswith("\r\x1b[K")


def test_elsewhere_nothing_is_shown() -> None:
    out = io.StringIO()
    assert not shown(out)
    assert out.getvalue() == ""


def test_a_terminal_that_is_gone_is_no_reason_for_the_job_to_end() -> None:
    assert not shown(Gone())


def test_nor_is_a_stream_that_was_closed() -> None:
    out = Terminal()
    out.close()
    assert not shown(out)


def test_the_line_goes_to_the_stderr_of_the_moment(capsys: pytest.CaptureFixture[str]) -> None:
    assert not shown(None)
    assert capsys.readouterr().err == ""
