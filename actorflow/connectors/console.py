"""Records on standard output, one line each.

At-least-once, because what was printed can't be taken back: after a restart, lines since the last checkpoint are
printed again.  The job says so once when it starts.  In the simulator the ledger stands in for it.

Printing happens off the loop, so a terminal that stops taking text holds up this sink and nothing else.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable
from typing import Any

from actorflow.abc.connectors import Sink, SinkContext, SinkWriter
from actorflow.errors import OperatorFailed, StorageFailed
from actorflow.model.journal import SettingIgnored

__all__ = ("Console", "lines")


def lines(*, format: Callable[[Any], str] = str) -> Console:  # noqa: A002 - the word users look for
    """Print each record on a line of its own, as ``format`` writes it down; one subtask unless asked otherwise."""
    return Console(format)


class Console(Sink[Any]):
    """Standard output as a sink."""

    parallelism = 1

    def __init__(self, format: Callable[[Any], str]) -> None:  # noqa: A002
        self._format = self.function = format  # its annotations say which classes travel

    async def open(self, context: SinkContext) -> SinkWriter[Any]:
        """Open the writer of one subtask; says once that this sink is at-least-once."""
        if context.exactly_once and context.subtask == 0:
            context.world.observer.announce(
                SettingIgnored(
                    setting="checkpoints.guarantee",
                    why=f"operator {context.operator!r} prints, which is at-least-once: after a restart, lines since"
                    " the last checkpoint come again; files.write is exactly-once",
                )
            )
        return _ConsoleWriter(self._format, context)


class _ConsoleWriter(SinkWriter[Any]):
    def __init__(self, format: Callable[[Any], str], context: SinkContext) -> None:  # noqa: A002
        self._format, self._context = format, context

    async def write(self, records: list[Any]) -> None:
        operator, subtask = self._context.operator, self._context.subtask
        try:
            text = "".join([f"{line}\n" for line in map(self._format, records)])
        except Exception as error:
            raise OperatorFailed(operator, subtask, cause=f"format raised {type(error).__name__}: {error}") from error
        try:
            await asyncio.to_thread(_print, text)
        except (OSError, ValueError) as error:  # a closed pipe, a closed stream, or an encoding that can't say it
            raise StorageFailed(f"operator {operator!r}: standard output can't be written: {error}") from error


def _print(text: str) -> None:
    sys.stdout.write(text)
    sys.stdout.flush()
