from __future__ import annotations

import asyncio
from fractions import Fraction
from typing import Any

import pytest

from actorflow.connectors.pace import TICK_MS, Pace, check_rate
from actorflow.errors import InvalidJob
from actorflow_tests.connectors.support import TestClock


@pytest.mark.parametrize("per_second", [0.3, 1, 7, 100, 333, 12_345, 1_000_000, Fraction(500, 3)])
def test_a_pace_is_exact_and_does_not_drift(per_second: Any) -> None:
    async def story() -> None:
        clock = TestClock()
        clock.at_ms = 17.0
        pace = Pace(per_second, clock)
        rate = Fraction(per_second)
        sent = 0
        while clock.now_ms() < 60_000 + 17:
            sent += await pace.take(10_000_000)
            elapsed_ms = clock.now_ms() - 17
            assert sent <= elapsed_ms * rate / 1_000 + 1  # never early
            assert sent > (elapsed_ms - TICK_MS) * rate / 1_000  # late by a tick at most
        assert sent == (clock.now_ms() - 17) * rate // 1_000 + 1

    asyncio.run(story())


def test_no_more_than_asked_for_is_taken_and_what_is_left_is_not_lost() -> None:
    async def story() -> None:
        clock = TestClock()
        pace = Pace(1_000, clock)
        clock.at_ms = 99.0
        assert [await pace.take(30) for _ in range(4)] == [30, 30, 30, 10]
        assert clock.now_ms() == 99

    asyncio.run(story())


def test_after_being_held_up_it_catches_up() -> None:
    async def story() -> None:
        clock = TestClock()
        pace = Pace(10, clock)
        assert await pace.take(5) == 1
        clock.at_ms = 1_000.0
        assert await pace.take(50) == 10

    asyncio.run(story())


def test_the_end_is_when_the_next_one_would_be_due() -> None:
    async def story() -> None:
        clock = TestClock()
        pace = Pace(4, clock)
        for _ in range(8):
            await pace.take(1)
        await pace.end()
        assert clock.now_ms() == 2_000

    asyncio.run(story())


def test_without_a_rate_everything_may_leave_at_once() -> None:
    async def story() -> None:
        clock = TestClock()
        pace = Pace(None, clock)
        assert await pace.take(5_000) == 5_000
        await pace.end()
        assert clock.now_ms() == 0

    asyncio.run(story())


@pytest.mark.parametrize("per_second", [0, -1, float("nan"), float("inf")])
def test_a_rate_that_is_none_is_refused(per_second: float) -> None:
    with pytest.raises(InvalidJob, match="here: per_second"):
        check_rate(per_second, "here")
