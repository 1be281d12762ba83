"""How many records may have left by now?

A pace is a straight line through the moment at which reading began: record ``i`` is due ``i / per_second`` seconds
later.  Each moment is computed from that line and not from the last sleep, in whole numbers, so nothing drifts: after
a minute at 500 a second, 30,000 have left.  It is an offered load: a source that was held up catches up afterwards.

Small: what may leave within one tick leaves together, at its end, because a wake-up per record would cost more than the
record.  A record may be late by a tick, and is never early.
"""

from __future__ import annotations

from fractions import Fraction

from actorflow.abc.world import Clock
from actorflow.errors import InvalidJob

__all__ = ("Pace", "check_rate")

TICK_MS = 10


def check_rate(per_second: float | None, where: str) -> float | None:
    """Return the rate, or raise ``InvalidJob`` naming ``where`` when it is none."""
    if per_second is not None and not 0 < per_second < float("inf"):
        raise InvalidJob(f"{where}: per_second is {per_second!r}; it must be above zero, or None to go at full speed")
    return per_second


class Pace:
    """Lets records go at a rate, from now on.  ``None`` lets all go at once."""

    __slots__ = ("_clock", "_denominator", "_numerator", "_started_ms", "taken")

    def __init__(self, per_second: float | Fraction | None, clock: Clock) -> None:
        self._clock = clock
        self._numerator, self._denominator = (0, 1) if per_second is None else per_second.as_integer_ratio()
        self._started_ms = clock.now_ms()
        self.taken = 0

    def due_ms(self, count: int) -> int:
        """When the record with ``count`` others before it may leave."""
        return self._started_ms - (-count * 1_000 * self._denominator // self._numerator)

    async def take(self, most: int) -> int:
        """Wait until a record is due and return how many may leave now: at least one, at most ``most``."""
        if not self._numerator:
            return most
        await self._wait_until(self.due_ms(self.taken))
        elapsed_ms = self._clock.now_ms() - self._started_ms
        due = elapsed_ms * self._numerator // (1_000 * self._denominator) + 1
        count = min(most, due - self.taken)
        self.taken += count
        return count

    async def end(self) -> None:
        """Wait until the record after the last one would be due, so that one file after another keeps the pace."""
        if self._numerator:
            await self._wait_until(self.due_ms(self.taken))

    async def _wait_until(self, at_ms: int) -> None:
        while (left_ms := at_ms - self._clock.now_ms()) > 0:
            await self._clock.sleep(max(left_ms, TICK_MS))
