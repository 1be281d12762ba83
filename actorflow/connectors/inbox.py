"""Records from the program around the job: a web application, a notebook, a test.

``await inbox.send(record)`` waits while the inbox is full, so whoever sends feels it when the job is behind.  Records
leave in the order in which ``send`` and ``send_nowait`` were called: a sender that waits holds its place, and
``send_nowait`` never overtakes one (R149).  A ``send`` that is cancelled while it waits has sent nothing.

**An inbox has no past.**  What it gave to the job after the last checkpoint is lost when the process dies; put a log in
front if that matters.  On ``stop`` and ``drain`` it takes no more and everything accepted is processed first.

One event loop, one job at a time.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Sequence
from typing import Any, Generic, TypeVar

from actorflow.abc.connectors import Chunk, Source, SourceContext
from actorflow.abc.world import World
from actorflow.errors import ActorflowError, InvalidJob, InvalidValue

__all__ = ("Inbox", "InboxClosed", "InboxFull")

T = TypeVar("T")

_CHUNK_RECORDS = 256
_SPLIT = "inbox"


class InboxFull(ActorflowError):
    """Raised by ``send_nowait`` when there is no room; ``await send(…)`` waits for it."""


class InboxClosed(ActorflowError):
    """Raised when something is sent to an inbox that was closed, or whose job was asked to stop."""


class _Place:
    """The place in the queue of a sender that waited; ``is_filled`` once it has put its record there."""

    __slots__ = ("is_filled", "record", "turn")

    def __init__(self, turn: asyncio.Future[None]) -> None:
        self.turn, self.is_filled = turn, False
        self.record: Any = None


class Inbox(Source[T], Generic[T]):
    """A bounded queue as a source.  ``record_type`` is what it takes; ``capacity`` how many records it holds."""

    bounded = False
    runs_in_simulation = True
    parallelism = 1

    def __init__(self, record_type: type[T], capacity: int = 1_000) -> None:
        if capacity < 1:
            raise InvalidJob(f"Inbox({record_type!r}): capacity is {capacity}; it must be at least 1")
        self.record_type, self.capacity = record_type, capacity
        self._expected = (float, int) if record_type is float else record_type
        self._checks_type = _can_be_checked(record_type)
        self._queue: deque[T | _Place] = deque()
        self._senders: deque[_Place] = deque()  # those who wait for a place
        self._arrival: asyncio.Future[None] | None = None  # what the reader waits for
        self._reader: tuple[str, object] | None = None  # the process and the token of who reads
        self._loop: asyncio.AbstractEventLoop | None = None
        self._closed = False

    # ── for the program around the job ───────────────────────────────────────────────────────

    async def send(self, record: T) -> None:
        """Put a record into the inbox, waiting while it is full."""
        if self._try_put(record):
            return
        place = _Place(asyncio.get_running_loop().create_future())
        self._senders.append(place)
        try:
            await place.turn
        except asyncio.CancelledError:
            self._give_up(place)
            raise
        place.record, place.is_filled = record, True
        self._wake_reader()

    def send_nowait(self, record: T) -> None:
        """Put a record into the inbox, or raise ``InboxFull``."""
        if not self._try_put(record):
            raise InboxFull(f"the inbox holds {self.capacity} records; await send() to wait for room")

    def close(self) -> None:
        """Take no more: the stream ends after what was accepted.  Those who wait with ``send`` are refused."""
        self._closed = True
        for place in self._senders:
            if not place.turn.done():
                place.turn.set_exception(InboxClosed("the inbox was closed while this record waited for room"))
        self._senders.clear()
        self._wake_reader()

    def __len__(self) -> int:
        return len(self._queue)

    @property
    def is_closed(self) -> bool:
        """Whether nothing can be sent any more."""
        return self._closed

    # ── for the runtime ──────────────────────────────────────────────────────────────────────

    def halt(self) -> bool:
        """Take no more and say that what was accepted has to be processed first."""
        self.close()
        return True

    async def discover(self, world: World) -> Sequence[str]:
        """Return the one split."""
        return [_SPLIT]

    async def read(self, context: SourceContext[Any]) -> AsyncIterator[Chunk[T]]:
        """Give out what was sent, until the inbox is closed and empty."""
        process, token = context.world.process, object()
        if self._reader is not None and self._reader[0] == process:
            raise InvalidJob(
                f"operator {context.operator!r}: this inbox is being read by a running job already;"
                " give each job its own"
            )
        self._reader, self._loop = (process, token), asyncio.get_running_loop()
        try:
            while True:
                records = self._take()
                if records:
                    yield Chunk(records)
                elif self._closed and not self._queue:
                    return
                else:
                    self._arrival = self._loop.create_future()
                    await self._arrival
        finally:
            # a process that died never comes here, and one that came after it has taken over meanwhile
            if self._reader[1] is token:
                self._reader, self._loop, self._arrival = None, None, None

    # ── inside ───────────────────────────────────────────────────────────────────────────────

    def _try_put(self, record: T) -> bool:
        if self._closed:
            raise InboxClosed("the inbox is closed, or its job was asked to stop")
        if self._checks_type and not isinstance(record, self._expected):
            raise InvalidValue(f"this inbox takes {self.record_type.__qualname__}, not {type(record).__qualname__}")
        if self._loop is not None and _running_loop() is not self._loop:
            raise InvalidJob(
                "an inbox belongs to the event loop that runs its job; from a thread, use"
                " asyncio.run_coroutine_threadsafe(inbox.send(record), loop)"
            )
        if self._senders or len(self._queue) >= self.capacity:
            return False
        self._queue.append(record)
        self._wake_reader()
        return True

    def _take(self) -> list[T]:
        """Up to a chunk of records from the front, as far as places are filled; gives the room to who waits."""
        queue = self._queue
        records: list[T] = []
        while queue and len(records) < _CHUNK_RECORDS:
            item = queue[0]
            if isinstance(item, _Place):
                if not item.is_filled:
                    break
                records.append(item.record)
            else:
                records.append(item)
            queue.popleft()
        self._admit()
        return records

    def _admit(self) -> None:
        """Give free places to those who wait, in their order."""
        while self._senders and len(self._queue) < self.capacity:
            place = self._senders.popleft()
            if not place.turn.done():
                place.turn.set_result(None)
                self._queue.append(place)

    def _give_up(self, place: _Place) -> None:
        """Take back the place of a sender that was cancelled."""
        if place.turn.done() and not place.turn.cancelled():
            place.turn.exception()  # looked at, so that a refusal nobody waits for any more is not reported
        if place in self._senders:
            self._senders.remove(place)
        elif place in self._queue:
            self._queue.remove(place)
            self._admit()
            self._wake_reader()

    def _wake_reader(self) -> None:
        if self._arrival is not None and not self._arrival.done():
            self._arrival.set_result(None)


def _can_be_checked(record_type: Any) -> bool:
    """Whether ``isinstance`` takes it: classes, but not ``Any`` or ``list[int]``."""
    try:
        isinstance(None, record_type)
    except TypeError:
        return False
    return True


def _running_loop() -> asyncio.AbstractEventLoop | None:
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        return None
