"""What the probe makes of late wake-ups."""

from __future__ import annotations

import asyncio
import time

import pytest

from actorflow.benchmarks.probe import quantile, stalls_of, watch_loop


def test_a_stall_of_many_milliseconds_is_as_many_samples() -> None:
    late_ms = [0.1] * 9_800 + [200.0]

    stalls = stalls_of(late_ms)

    assert stalls.samples == 10_000
    assert stalls.max == 200
    assert stalls.p99_9 == 200  # one wake-up of 9,801, but a fiftieth of the time
    assert stalls_of([0.1] * 9_992 + [8.0]).p99_9 == 0.1


def test_no_wake_up_is_no_stall() -> None:
    assert stalls_of([]).figures() == {"p99_9": 0.0, "max": 0.0}


@pytest.mark.parametrize(("share", "expected"), [(0.5, 2), (0.75, 3), (0.751, 4), (1.0, 4)])
def test_a_quantile_is_the_smallest_value_that_so_many_do_not_exceed(share: float, expected: int) -> None:
    assert quantile([4, 1, 3, 2], share) == expected


def test_a_loop_that_stands_still_is_seen() -> None:
    async def main() -> list[float]:
        asyncio.get_running_loop().call_later(0.01, time.sleep, 0.05)
        ends = time.perf_counter() + 0.1
        return await watch_loop(lambda: time.perf_counter() > ends)

    late_ms = asyncio.run(main())

    assert max(late_ms) > 40
