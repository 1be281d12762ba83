"""Work in the background has one share of the loop together, however many do it."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest

from actorflow.runtime.pace import SHARE, Duty, Meter
from actorflow.simulation import run


class WorkClock:
    """Time that passes while work is done and while somebody sleeps."""

    def __init__(self) -> None:
        self.worked_us = 0
        self.slept_ms = 0.0

    def now_us(self) -> int:
        return self.worked_us + int(self.slept_ms * 1_000)

    def now_ms(self) -> int:
        return self.now_us() // 1_000

    def wall_ms(self) -> int:
        return self.now_ms()

    def slice_is_over(self) -> bool:
        return False

    async def sleep(self, delay_ms: float) -> None:
        await asyncio.sleep(0)
        self.slept_ms += delay_ms

    def steps(self, count: int, us: int, log: list[Any] | None = None, name: str = "") -> Iterator[int]:
        for index in range(count):
            self.worked_us += us
            if log is not None:
                log.append(name)
            yield index


def test_all_steps_are_given_in_order_and_rests_keep_the_share() -> None:
    async def story() -> None:
        clock, meter = WorkClock(), Meter()
        duty = Duty(clock)
        assert [item async for item in duty.slices(clock.steps(100, 300), meter)] == list(range(100))
        assert meter.us == clock.worked_us == 30_000
        share = clock.worked_us / (clock.worked_us + clock.slept_ms * 1_000)
        assert share == pytest.approx(SHARE, abs=0.05)

    run(story)


def test_several_pieces_of_work_share_one_duty_and_take_turns() -> None:
    async def story() -> None:
        clock, log = WorkClock(), list[str]()
        duty = Duty(clock)
        async with asyncio.TaskGroup() as group:
            for name in "abc":
                group.create_task(duty.run(clock.steps(20, 600, log, name)))
        share = clock.worked_us / (clock.worked_us + clock.slept_ms * 1_000)
        assert share <= SHARE + 0.08
        assert sorted(log) == ["a"] * 20 + ["b"] * 20 + ["c"] * 20
        assert len({*log[:10]}) == 3, "nobody has the loop's share alone"

    for seed in range(3):
        run(story, seed=seed)


def test_whoever_is_cancelled_while_it_waits_for_its_turn_holds_nobody_up() -> None:
    async def story() -> None:
        clock = WorkClock()
        duty = Duty(clock)
        tasks = [asyncio.ensure_future(duty.run(clock.steps(50, 900))) for _ in range(6)]
        for _ in range(20):
            await asyncio.sleep(0)
        for task in tasks[1:5]:
            task.cancel()
        await asyncio.wait(tasks)
        assert [task.cancelled() for task in tasks] == [False, True, True, True, True, False]
        await asyncio.wait_for(duty.run(clock.steps(5, 900)), 10)

    for seed in range(10):
        run(story, seed=seed)


def test_work_that_raises_gives_its_turn_back() -> None:
    async def story() -> None:
        clock = WorkClock()
        duty = Duty(clock)

        def fails() -> Iterator[int]:
            yield from clock.steps(3, 900)
            raise ValueError("bad state")

        with pytest.raises(ValueError, match="bad state"):
            await duty.run(fails())
        await asyncio.wait_for(duty.run(clock.steps(3, 900)), 10)

    run(story)


def test_whoever_stops_reading_in_the_middle_gives_its_turn_back() -> None:
    async def story() -> None:
        clock = WorkClock()
        duty = Duty(clock)
        slices: Any = duty.slices(clock.steps(100, 900))
        async for _ in slices:
            break
        await slices.aclose()
        await asyncio.wait_for(duty.run(clock.steps(3, 900)), 10)

    run(story)
