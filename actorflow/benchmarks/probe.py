"""For how long does an event loop stand still?

A probe asks to be woken each millisecond and notes how late it was woken.  A wake-up that is *d* milliseconds late
counts *d* times: a stall of 200 ms is 200 samples, not one, because as many moments fell into it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from time import perf_counter

__all__ = ("Stalls", "quantile", "stalls_of", "watch_loop")

EVERY_S = 0.001


@dataclass(frozen=True, slots=True)
class Stalls:
    """How late a loop was, in milliseconds."""

    p99_9: float
    max: float
    samples: int

    def figures(self) -> dict[str, float]:
        """What is printed."""
        figures = asdict(self)
        del figures["samples"]
        return figures


async def watch_loop(is_over: Callable[[], bool]) -> list[float]:
    """Ask to be woken each millisecond until it is over; return how many milliseconds late each wake-up was."""
    late_ms: list[float] = []
    while not is_over():
        due = perf_counter() + EVERY_S
        await asyncio.sleep(EVERY_S)
        late_ms.append(max(0.0, perf_counter() - due) * 1_000)
    return late_ms


def stalls_of(late_ms: Sequence[float]) -> Stalls:
    """Weigh each wake-up with its lateness and say where the upper thousandth begins."""
    weights = [max(1.0, late) for late in late_ms]
    return Stalls(
        p99_9=round(quantile(late_ms, 0.999, weights), 3),
        max=round(max(late_ms, default=0.0), 3),
        samples=round(sum(weights)),
    )


def quantile(values: Sequence[float], share: float, weights: Sequence[float] | None = None) -> float:
    """The smallest value that at least ``share`` of all (by weight) do not exceed."""
    pairs = sorted(zip(values, weights or [1.0] * len(values), strict=True))
    wanted = share * sum(weight for _, weight in pairs)
    below = 0.0
    for value, weight in pairs:
        below += weight
        if below >= wanted:
            return value
    return pairs[-1][0] if pairs else 0.0
