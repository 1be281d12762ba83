from __future__ import annotations

import asyncio
from datetime import timedelta

import anyio
import pytest

from actorflow.simulation import Deadlock, VirtualClock, run


async def sleeps(seconds: float, seen: list[float]) -> float:
    await asyncio.sleep(seconds)
    seen.append(seconds)
    return seconds


def test_time_passes_only_as_far_as_it_is_told_to() -> None:
    seen: list[float] = []
    with VirtualClock() as clock:
        task = clock.start(sleeps(5, seen))
        clock.advance(seconds=4, milliseconds=999)
        assert not task.done()
        clock.advance(timedelta(milliseconds=1))
        assert task.result() == 5
        assert clock.now() == timedelta(seconds=5)


def test_all_that_is_due_meanwhile_runs_at_its_own_time() -> None:
    seen: list[tuple[str, float]] = []

    async def ticks(name: str, every: float) -> None:
        while True:
            await asyncio.sleep(every)
            seen.append((name, round(asyncio.get_running_loop().time(), 6)))

    with VirtualClock() as clock:
        clock.start(ticks("a", 2))
        clock.start(ticks("b", 3))
        clock.advance(minutes=0, seconds=7)

    assert sorted(seen, key=lambda one: (one[1], one[0])) == [("a", 2), ("b", 3), ("a", 4), ("a", 6), ("b", 6)]
    assert [at for _, at in seen] == [2, 3, 4, 6, 6]


def test_what_follows_from_a_timer_that_is_due_at_the_end_has_happened_too() -> None:
    async def chain(seen: list[int]) -> None:
        await asyncio.sleep(1)
        for number in range(20):
            await asyncio.sleep(0)
            seen.append(number)

    for seed in range(10):
        seen: list[int] = []
        with VirtualClock(seed) as clock:
            clock.start(chain(seen))
            clock.advance(seconds=1)
            assert seen == list(range(20))


def test_many_steps_do_not_let_the_time_drift() -> None:
    with VirtualClock() as clock:
        for _ in range(3_000):
            clock.advance(milliseconds=1)
        for _ in range(3_000):
            clock.settle()
        clock.advance(seconds=1)
        assert clock.now() == timedelta(seconds=4)
        assert clock.loop.time() == 4


def test_what_begins_at_one_time_is_due_at_one_time() -> None:
    with VirtualClock() as clock:
        clock.advance(milliseconds=100)
        tasks = [clock.start(sleeps(0.3, [])) for _ in range(20)]
        clock.advance(milliseconds=299)
        assert not any(task.done() for task in tasks)
        clock.advance(milliseconds=1)
        assert all(task.done() for task in tasks)


def test_running_to_the_end_takes_the_time_that_it_takes() -> None:
    with VirtualClock() as clock:
        assert clock.run(sleeps(3_600, [])) == 3_600
        assert clock.now() == timedelta(hours=1)
        clock.advance(days=1)
        assert clock.now() == timedelta(hours=25)


def test_what_a_started_coroutine_raises_is_raised_by_the_call_under_which_it_happened() -> None:
    async def fails(after: float) -> None:
        await asyncio.sleep(after)
        raise LookupError(after)

    with VirtualClock() as clock:
        clock.start(fails(2))
        clock.advance(seconds=1)
        with pytest.raises(LookupError, match="2"):
            clock.advance(seconds=1)
        clock.advance(seconds=1)
        with pytest.raises(LookupError, match="0"):
            clock.start(fails(0))


def test_who_waits_for_nothing_is_told() -> None:
    async def waits() -> None:
        await asyncio.Event().wait()

    with VirtualClock() as clock:
        clock.start(waits())
        clock.advance(days=365)  # it may wait as long as it likes
        with pytest.raises(Deadlock, match="waits"):
            clock.run(waits())


def test_a_program_that_spins_lets_the_time_pass() -> None:
    async def spins() -> None:
        while True:
            await asyncio.sleep(0)

    with VirtualClock() as clock:
        clock.start(spins())
        clock.advance(seconds=1)
        assert clock.now() == timedelta(seconds=1)


def test_time_does_not_go_back() -> None:
    with VirtualClock() as clock, pytest.raises(ValueError, match="does not go back"):
        clock.advance(seconds=-1)


def test_closing_ends_what_still_runs_and_tells_what_nobody_heard_of() -> None:
    ended: list[str] = []

    async def runs() -> None:
        try:
            await asyncio.sleep(100)
        finally:
            ended.append("ended")

    clock = VirtualClock()
    clock.start(runs())
    clock.close()
    clock.close()
    assert ended == ["ended"]

    clock = VirtualClock()
    clock.loop.call_later(1, lambda: 1 / 0)
    clock.advance(seconds=2)
    with pytest.raises(AssertionError, match="nobody heard of"):
        clock.close()


def test_the_same_seed_gives_the_same_order_and_another_one_another() -> None:
    def order(seed: int) -> list[int]:
        seen: list[int] = []

        async def one(number: int) -> None:
            await asyncio.sleep(1)
            seen.append(number)

        with VirtualClock(seed) as clock:
            for number in range(8):
                clock.start(one(number))
            clock.advance(seconds=1)
        return seen

    assert order(1) == order(1)
    assert len({tuple(order(seed)) for seed in range(6)}) > 1


async def _story() -> timedelta:
    with VirtualClock() as clock:
        task = clock.start(sleeps(10, []))
        clock.advance(minutes=1)
        assert task.done()
        await asyncio.sleep(0)
        assert clock.run(sleeps(1, [])) == 1
        return clock.now()


def test_it_can_be_used_inside_of_a_running_loop_simulated_or_not() -> None:
    expected = timedelta(seconds=61)

    assert asyncio.run(_story()) == expected
    assert run(_story) == expected
    assert anyio.run(_story) == expected
