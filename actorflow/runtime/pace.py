"""When whoever runs on the loop lets the others have a turn.

Actors breathe about once a millisecond (``World.clock.slice_is_over``), not once per batch.  Work in the background
(encoding a snapshot, folding what it left behind, reading state back) comes as an iterator of short steps and runs under
a *duty share*: after each slice it rests as long as keeps its share of the loop.  A thread would starve instead: beside a
busy loop it gets the interpreter's lock hardly ever.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable, Iterator
from typing import TypeVar

from actorflow.abc.world import Clock

__all__ = ("DUTY", "Meter", "background", "breathe", "in_slices")

T = TypeVar("T")

DUTY = 0.4
"""The share of the loop that one piece of work in the background takes, at most, while it lasts."""

SLICE_US = 1_000

_END = object()


class Meter:
    """How long the loop has worked for something that is done in slices, in microseconds."""

    __slots__ = ("us",)

    def __init__(self) -> None:
        self.us = 0


async def in_slices(
    steps: Iterable[T], clock: Clock, *, duty: float = DUTY, meter: Meter | None = None
) -> AsyncIterator[T]:
    """Give what the steps give, resting between slices of about a millisecond.

    Only the steps themselves count; whoever takes what they give may wait as long as it likes.
    """
    following = iter(steps)
    used = 0
    while True:
        started = clock.now_us()
        item = next(following, _END)
        spent = clock.now_us() - started
        used += spent
        if meter is not None:
            meter.us += spent
        if item is _END:
            return
        yield item  # type: ignore[misc]  # what is not the end is an item
        if used >= SLICE_US or clock.slice_is_over():
            await clock.sleep(used / 1_000 * (1 / duty - 1))
            used = 0


async def background(
    steps: Iterator[object], clock: Clock, *, duty: float = DUTY, meter: Meter | None = None
) -> None:
    """Run the steps to their end, resting between slices."""
    async for _ in in_slices(steps, clock, duty=duty, meter=meter):
        pass


async def breathe() -> None:
    """Let everything else that is ready have its turn."""
    await asyncio.sleep(0)
