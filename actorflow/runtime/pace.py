"""When whoever runs on the loop lets the others have a turn.

Actors breathe about once a millisecond (``World.clock.slice_is_over``), not once per batch.  Work in the background
(encoding a snapshot, folding what it left behind, reading state back) comes as an iterator of short steps.  All of it
together runs under one *duty*: one slice of about a millisecond, whoever's it is, and then a rest that keeps its
share of the loop.  So snapshots of many actors take longer than one, but stall the loop no more than one.

A thread would starve instead: beside a busy loop it gets the interpreter's lock hardly ever.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Generator, Iterable, Iterator
from types import coroutine
from typing import TypeVar

from actorflow.abc.world import Clock

__all__ = ("SHARE", "Duty", "Meter", "breathe")

T = TypeVar("T")

SHARE = 0.5
"""The share of the loop that work in the background takes, at most, while the job is running.

Less would take longer, and cost more in all: what is written meanwhile has to be copied and folded away."""

SLICE_US = 1_000


class Meter:
    """How long the loop has worked for something that is done in slices, in microseconds."""

    __slots__ = ("us",)

    def __init__(self) -> None:
        self.us = 0


class Duty:
    """The share of the loop that all work in the background has together."""

    def __init__(self, clock: Clock, share: float = SHARE) -> None:
        self._clock = clock
        self._owed_for = 1 / share - 1
        self._turns: deque[asyncio.Future[None]] = deque()
        self._is_taken = False

    async def slices(self, steps: Iterable[T], meter: Meter | None = None) -> AsyncIterator[T]:
        """Give what the steps give, in slices with rests between.  Whoever takes it may wait as long as it likes."""
        following, is_over = iter(steps), False
        while not is_over:
            await self._take_turn()
            try:
                items, is_over, us = self._slice(following)
                if meter is not None:
                    meter.us += us
                if not is_over:
                    await self._rest(us * self._owed_for)
            finally:
                self._pass_turn()
            for item in items:
                yield item

    async def run(self, steps: Iterable[object], meter: Meter | None = None) -> None:
        """Run the steps to their end."""
        async for _ in self.slices(steps, meter):
            pass

    async def _rest(self, owed_us: float) -> None:
        """Let the others have what they are owed.

        On a busy loop each of its rounds takes long enough, and a timer would come rounds too late.
        """
        clock = self._clock
        while True:
            began = clock.now_us()
            await breathe()
            took = clock.now_us() - began
            owed_us -= took
            if owed_us <= SLICE_US / 2:
                return
            if took < SLICE_US / 5:
                await clock.sleep(owed_us / 1_000)
                return

    async def _take_turn(self) -> None:
        """Wait until nobody else has a turn; without a detour when nobody has."""
        if self._is_taken:
            turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._turns.append(turn)
            try:
                await turn
            except BaseException:
                if turn.done() and not turn.cancelled():
                    self._pass_turn()
                raise
        self._is_taken = True

    def _pass_turn(self) -> None:
        """Give the turn to who has waited longest."""
        while self._turns:
            turn = self._turns.popleft()
            if not turn.done():
                turn.set_result(None)
                return
        self._is_taken = False

    def _slice(self, following: Iterator[T]) -> tuple[list[T], bool, int]:
        """Take steps for a slice's time: what they gave, whether there are no more, and how long it took."""
        clock, items = self._clock, []
        began = clock.now_us()
        used = 0
        for item in following:
            items.append(item)
            used = clock.now_us() - began
            # Where time is virtual it stands still meanwhile, and chance says when a slice is over.
            if used >= SLICE_US or (not used and clock.slice_is_over()):
                return items, False, used
        return items, True, clock.now_us() - began


@coroutine
def breathe() -> Generator[None, None, None]:
    """Let everything else that is ready have its turn: what ``asyncio.sleep(0)`` does, in one call instead of two."""
    yield
