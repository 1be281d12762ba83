"""The world as it is: the system's clocks and chance, this machine's disk, real storage, and the journal for readers.

This is the one module of the runtime that may look at a clock or draw a number.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import random
import socket
import time
from collections.abc import Callable

from actorflow.abc.disk import Disk
from actorflow.abc.objects import ObjectStore
from actorflow.abc.world import World
from actorflow.model import journal
from actorflow.model.journal import Entry, Line
from actorflow.storage import open_store
from actorflow.storage.disk import LocalDisk

__all__ = ("JournalObserver", "LocalObjectStores", "SystemClock", "SystemEntropy", "real_world")

SLICE_S = 0.002
"""How long the loop's turns may take together before everybody lets the others in.

A round of the loop asks the system for news, which costs 3 to 15 µs; at one millisecond that is felt, at two it is not.
"""


class SystemClock:
    """The machine's clocks.

    The slice is shared by all actors of a loop: it ends two milliseconds after the current round of the loop began,
    however many actors took their turns in it, so that many actors don't add up to a stall.
    """

    def __init__(self) -> None:
        self._slice_ends = 0.0
        self._marked = False

    def now_ms(self) -> int:
        return time.monotonic_ns() // 1_000_000

    def now_us(self) -> int:
        return time.perf_counter_ns() // 1_000

    def wall_ms(self) -> int:
        return time.time_ns() // 1_000_000

    def slice_is_over(self) -> bool:
        now = time.perf_counter()
        if now < self._slice_ends:
            return False
        if not self._marked:
            # The mark is the first thing in the loop's next round, before anybody who lets go now runs again.
            self._marked = True
            asyncio.get_running_loop().call_soon(self._new_slice)
        return True

    def _new_slice(self) -> None:
        self._marked = False
        self._slice_ends = time.perf_counter() + SLICE_S

    async def sleep(self, delay_ms: float) -> None:
        await asyncio.sleep(delay_ms / 1_000)


class SystemEntropy:
    """Chance from the operating system's seed."""

    def __init__(self) -> None:
        self._random = random.Random()

    def uniform(self, purpose: str) -> float:
        return self._random.random()


class LocalObjectStores:
    """Opens stores on this machine's disk, or in this process's memory."""

    def __init__(self, disk: Disk) -> None:
        self._disk = disk

    def open(self, location: str | None) -> ObjectStore:
        return open_store(location, self._disk)


_LEVELS: dict[type[Entry], int] = {
    journal.JobRestarting: logging.WARNING,
    journal.JobFailed: logging.ERROR,
    journal.JobFenced: logging.ERROR,
    journal.ActorFailed: logging.WARNING,
    journal.LoopBlocked: logging.WARNING,
    journal.CheckpointAborted: logging.WARNING,
    journal.CheckpointDeclined: logging.WARNING,
    journal.StorageFailed: logging.WARNING,
    journal.StorageRetried: logging.WARNING,
    journal.FellBack: logging.WARNING,
    journal.SettingIgnored: logging.INFO,
    journal.JobStarted: logging.INFO,
    journal.JobRunning: logging.INFO,
    journal.JobFinished: logging.INFO,
    journal.JobStopped: logging.INFO,
    journal.JobCanceled: logging.INFO,
}


class JournalObserver:
    """Numbers the entries, hands them to readers, and writes them to ``logging`` under ``actorflow.journal``.

    The library adds no handler of its own.  A reader that raises is dropped, with its error in the log.
    """

    def __init__(self, process: str) -> None:
        self._process = process
        self._sequence = 0
        self._readers: list[Callable[[Line], None]] = []
        self._logger = logging.getLogger("actorflow.journal")

    def subscribe(self, reader: Callable[[Line], None]) -> Callable[[], None]:
        """Add a reader; the call that comes back removes it."""
        self._readers.append(reader)

        def unsubscribe() -> None:
            with contextlib.suppress(ValueError):
                self._readers.remove(reader)

        return unsubscribe

    def announce(self, entry: Entry) -> None:
        self._sequence += 1
        line = Line(self._sequence, time.monotonic_ns() // 1_000_000, self._process, entry)
        level = _LEVELS.get(type(entry), logging.DEBUG)
        if self._logger.isEnabledFor(level):
            self._logger.log(level, "%s", entry, extra={"entry": entry})
        for reader in tuple(self._readers):
            try:
                reader(line)
            except Exception:
                self._logger.exception("a reader of the journal failed and is dropped")
                with contextlib.suppress(ValueError):
                    self._readers.remove(reader)


def real_world(*, owns_process: bool = False) -> World:
    """The world of this process; ``owns_process`` allows tuning the interpreter for us alone."""
    process = str(os.getpid())
    disk = LocalDisk()
    return World(
        clock=SystemClock(),
        entropy=SystemEntropy(),
        objects=LocalObjectStores(disk),
        disk=disk,
        observer=JournalObserver(process),
        host=socket.gethostname(),
        process=process,
        owns_process=owns_process,
    )
