"""A user's code is cancelled once, and then has a while to come to its end."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import anyio
import pytest

from actorflow.runtime.sheltered import CLOSE_WITHIN_S, Sheltered
from actorflow.simulation import run


def in_group(
    story: Callable[[Callable[..., Sheltered], anyio.CancelScope], Coroutine[Any, Any, None]], seed: int = 0
) -> None:
    async def whole() -> None:
        async with anyio.create_task_group() as group:

            def spawn(function: Any, *args: Any, name: str) -> None:
                group.start_soon(function, *args, name=name)

            def shelter(work: Callable[[], Any], **options: Any) -> Sheltered:
                made = Sheltered(work, **options)
                made.start(spawn, name="work")
                return made

            await story(shelter, group.cancel_scope)

    run(whole, seed=seed)


@pytest.mark.parametrize("by", ["itself", "the group"])
@pytest.mark.parametrize("after_ms", [0, 1])
def test_it_is_cancelled_by_one_exception_and_may_wait_after_that(by: str, after_ms: int) -> None:
    seen: list[str] = []

    async def work() -> None:
        try:
            seen.append("begun")
            await asyncio.sleep(100)
        finally:
            await asyncio.sleep(1)
            await asyncio.sleep(1)
            seen.append("ended")

    async def story(shelter: Callable[..., Sheltered], scope: anyio.CancelScope) -> None:
        made = shelter(work)
        await asyncio.sleep(after_ms / 1_000)
        (made.cancel if by == "itself" else scope.cancel)()

    for seed in range(5):
        seen.clear()
        in_group(story, seed)
        assert seen in (["begun", "ended"], [] if after_ms == 0 else None)


def test_what_ends_by_itself_or_fails_is_as_any_child() -> None:
    async def works() -> None:
        await asyncio.sleep(1)

    async def fails() -> None:
        await asyncio.sleep(1)
        raise ValueError("of its own")

    async def story(shelter: Callable[..., Sheltered], scope: anyio.CancelScope) -> None:
        shelter(works)
        shelter(fails)
        await asyncio.sleep(100)

    with pytest.raises(ExceptionGroup) as caught:
        in_group(story)
    assert [str(error) for error in caught.value.exceptions] == ["of its own"]


def test_what_never_ends_is_cancelled_for_good_after_a_while_and_that_is_told() -> None:
    told: list[float] = []

    async def stubborn() -> None:
        try:
            await asyncio.sleep(10**6)
        finally:
            await asyncio.sleep(10**6)

    async def story(shelter: Callable[..., Sheltered], scope: anyio.CancelScope) -> None:
        loop = asyncio.get_running_loop()
        shelter(stubborn, abandoned=lambda: told.append(loop.time()))
        await asyncio.sleep(1)
        scope.cancel()

    in_group(story)
    assert told == [pytest.approx(1 + CLOSE_WITHIN_S)]


def test_what_was_told_to_end_before_it_began_never_begins() -> None:
    seen: list[str] = []

    async def work() -> None:
        seen.append("begun")

    async def story(shelter: Callable[..., Sheltered], scope: anyio.CancelScope) -> None:
        made = shelter(work)
        made.is_cancelled = True

    in_group(story)
    assert seen == []


def test_what_swallows_its_cancellation_can_see_that_it_was_told_to_end() -> None:
    seen: list[bool] = []

    async def story(shelter: Callable[..., Sheltered], scope: anyio.CancelScope) -> None:
        async def work() -> None:
            for _ in range(3):
                try:
                    await asyncio.sleep(1)
                except asyncio.CancelledError:
                    pass
                seen.append(made.is_cancelled)

        made = shelter(work)
        await asyncio.sleep(1.5)
        made.cancel()

    in_group(story)
    assert seen == [False, True, True]
