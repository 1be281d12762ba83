"""One line on a terminal that says how a job is doing: records per second, checkpoint age and duration, restarts."""

from __future__ import annotations

import asyncio
import sys
from time import monotonic
from typing import TextIO

from actorflow.runtime.handle import JobHandle

__all__ = ("describe", "show_live_line")

EVERY_S = 0.5


def describe(handle: JobHandle, per_second: float) -> str:
    """The line."""
    status, progress = handle.status, handle.progress
    parts = [status.status.value, f"{per_second:,.0f} records/s", f"{progress.records_read:,} read"]
    last = status.last_checkpoint
    if last is not None and status.checkpoint_age_ms is not None:
        parts.append(
            f"checkpoint {last.checkpoint_id} {status.checkpoint_age_ms / 1_000:.1f} s ago, took {last.duration_ms} ms"
        )
    else:
        parts.append("no checkpoint yet")
    parts.append(f"{status.restarts} restarts")
    if status.waiting_for:
        parts.append(status.waiting_for)
    return " · ".join(parts)


async def show_live_line(handle: JobHandle, out: TextIO | None = None) -> None:
    """Write the line again and again until cancelled; only on a terminal, and never a reason for the job to end."""
    out = sys.stderr if out is None else out
    try:
        if out.isatty():
            await _show(handle, out)
    except (OSError, ValueError):  # the terminal is gone; a closed stream raises ValueError
        return


async def _show(handle: JobHandle, out: TextIO) -> None:
    before, then = handle.progress.records_read, monotonic()
    try:
        while True:
            await asyncio.sleep(EVERY_S)
            read, now = handle.progress.records_read, monotonic()
            line = describe(handle, max(0, read - before) / max(now - then, 1e-9))
            before, then = read, now
            out.write(f"\r\x1b[K{line[:200]}")
            out.flush()
    finally:
        out.write("\r\x1b[K")
        out.flush()
