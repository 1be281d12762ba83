from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from actorflow.connectors.inbox import Inbox, InboxClosed, InboxFull
from actorflow.errors import InvalidJob, InvalidValue
from actorflow_tests.connectors.support import source_context, world_of


def play(story: Callable[[], Awaitable[None]]) -> None:
    async def run() -> None:
        await asyncio.wait_for(story(), 10)

    asyncio.run(run())


async def turns(count: int = 5) -> None:
    for _ in range(count):
        await asyncio.sleep(0)


async def read_all(inbox: Inbox[Any], into: list[Any]) -> None:
    async for chunk in inbox.read(source_context(world_of(), "inbox")):
        assert chunk.resume_at is None
        into += chunk.records


def test_what_is_sent_arrives_in_order_until_the_inbox_is_closed() -> None:
    async def story() -> None:
        inbox = Inbox(int, capacity=3)
        rows: list[int] = []
        reader = asyncio.ensure_future(read_all(inbox, rows))
        for number in range(1_000):
            await inbox.send(number)
        inbox.close()
        await reader
        assert rows == list(range(1_000))

    play(story)


def test_a_sender_waits_while_the_inbox_is_full() -> None:
    async def story() -> None:
        inbox = Inbox(int, capacity=2)
        await inbox.send(0)
        await inbox.send(1)
        third = asyncio.ensure_future(inbox.send(2))
        await turns()
        assert not third.done()
        assert len(inbox) == 2
        with pytest.raises(InboxFull, match="2 records"):
            inbox.send_nowait(3)
        rows: list[int] = []
        reader = asyncio.ensure_future(read_all(inbox, rows))
        await third
        inbox.close()
        await reader
        assert rows == [0, 1, 2]

    play(story)


def test_r149_sending_at_once_never_overtakes_who_waits() -> None:
    async def story() -> None:
        inbox = Inbox(int, capacity=1)
        rows: list[int] = []
        reader = asyncio.ensure_future(read_all(inbox, rows))
        for number in range(1, 1_001):
            if number % 2:
                await inbox.send(number)
            else:
                try:
                    inbox.send_nowait(number)
                except InboxFull:
                    await inbox.send(number)
        inbox.close()
        await reader
        assert rows == list(range(1, 1_001))

    play(story)


def test_r149_places_are_kept_in_the_order_in_which_senders_came() -> None:
    async def story() -> None:
        inbox = Inbox(int, capacity=2)
        rows: list[int] = []
        senders = [asyncio.ensure_future(inbox.send(number)) for number in range(20)]
        await turns()
        reading: Any = inbox.read(source_context(world_of(), "inbox"))
        while len(rows) < 20:
            rows += (await anext(reading)).records
            for _ in range(2):  # whoever comes later finds others before him
                with pytest.raises(InboxFull):
                    while True:
                        inbox.send_nowait(-1)
            rows = [number for number in rows if number >= 0]
            await turns(1)
        await asyncio.gather(*senders)
        assert rows == list(range(20))
        await reading.aclose()

    play(story)


def test_a_send_that_is_cancelled_has_sent_nothing() -> None:
    async def story() -> None:
        inbox = Inbox(int, capacity=1)
        rows: list[int] = []
        await inbox.send(0)
        waiting = [asyncio.ensure_future(inbox.send(number)) for number in (1, 2, 3, 4)]
        await turns()
        waiting[1].cancel()  # while it waits for a place
        await turns()
        reading: Any = inbox.read(source_context(world_of(), "inbox"))
        rows += (await anext(reading)).records
        waiting[0].cancel()  # when it has a place, and has not put its record there
        while len(rows) < 3:
            rows += (await anext(reading)).records
        assert rows == [0, 3, 4]
        results = await asyncio.gather(*waiting, return_exceptions=True)
        assert [type(result).__name__ for result in results] == [
            "CancelledError",
            "CancelledError",
            "NoneType",
            "NoneType",
        ]
        assert len(inbox) == 0
        await reading.aclose()

    play(story)


def test_closing_refuses_who_waits_and_who_comes_later_and_keeps_what_was_accepted() -> None:
    async def story() -> None:
        inbox = Inbox(int, capacity=1)
        rows: list[int] = []
        await inbox.send(0)
        waiting = [asyncio.ensure_future(inbox.send(number)) for number in (1, 2)]
        await turns()
        inbox.close()
        waiting[1].cancel()
        results = await asyncio.gather(*waiting, return_exceptions=True)
        assert isinstance(results[0], InboxClosed)
        with pytest.raises(InboxClosed):
            await inbox.send(3)
        with pytest.raises(InboxClosed):
            inbox.send_nowait(3)
        await read_all(inbox, rows)
        assert rows == [0]
        assert inbox.is_closed

    play(story)


def test_stopping_takes_no_more_and_gives_out_what_was_accepted() -> None:
    async def story() -> None:
        inbox = Inbox(int, capacity=10)
        rows: list[int] = []
        for number in range(5):
            inbox.send_nowait(number)
        assert inbox.halt()
        await read_all(inbox, rows)
        assert rows == [0, 1, 2, 3, 4]

    play(story)


def test_records_may_be_put_there_before_the_job_begins_and_without_a_loop() -> None:
    inbox = Inbox(str, capacity=5)
    inbox.send_nowait("early")
    rows: list[str] = []
    inbox.close()
    asyncio.run(read_all(inbox, rows))
    assert rows == ["early"]


def test_one_job_at_a_time() -> None:
    async def story() -> None:
        inbox = Inbox(int)
        first: Any = inbox.read(source_context(world_of(), "inbox"))
        inbox.send_nowait(1)
        await anext(first)
        with pytest.raises(InvalidJob, match="operator 'read': this inbox is being read by a running job"):
            await anext(inbox.read(source_context(world_of(), "inbox")))
        await first.aclose()
        inbox.send_nowait(2)
        again: Any = inbox.read(source_context(world_of(), "inbox"))
        assert (await anext(again)).records == [2]
        await again.aclose()

    play(story)


def test_a_process_takes_over_from_one_that_died() -> None:
    async def story() -> None:
        inbox = Inbox(int)
        inbox.send_nowait(1)
        dead: Any = inbox.read(source_context(world_of(process="p1"), "inbox"))
        await anext(dead)
        alive: Any = inbox.read(source_context(world_of(process="p2"), "inbox"))
        waiting = asyncio.ensure_future(anext(alive))
        await turns()
        await dead.aclose()  # late, as the collector would
        inbox.send_nowait(2)
        assert (await waiting).records == [2]
        await alive.aclose()

    play(story)


def test_another_loop_or_thread_is_told_how() -> None:
    async def story() -> None:
        inbox = Inbox(int)
        rows: list[int] = []
        reader = asyncio.ensure_future(read_all(inbox, rows))
        await turns()

        def elsewhere() -> None:
            with pytest.raises(InvalidJob, match="run_coroutine_threadsafe"):
                inbox.send_nowait(1)

        await asyncio.to_thread(elsewhere)
        loop = asyncio.get_running_loop()
        await asyncio.to_thread(lambda: asyncio.run_coroutine_threadsafe(inbox.send(2), loop).result(5))
        inbox.close()
        await reader
        assert rows == [2]

    play(story)


def test_a_record_of_another_type_is_refused_where_it_is_sent() -> None:
    inbox = Inbox(str)
    with pytest.raises(InvalidValue, match="takes str, not int"):
        inbox.send_nowait(1)  # type: ignore[arg-type]
    Inbox(float).send_nowait(1)  # as in typing, an int will do
    anything: Any = Any
    Inbox(anything).send_nowait(object())
    Inbox(list[int]).send_nowait([1])


def test_a_capacity_of_nothing_is_refused() -> None:
    with pytest.raises(InvalidJob, match="capacity"):
        Inbox(int, capacity=0)


def test_a_reader_that_is_cancelled_loses_nothing() -> None:
    async def story() -> None:
        inbox = Inbox(int, capacity=10)
        rows: list[int] = []
        for _ in range(3):
            reader = asyncio.ensure_future(read_all(inbox, rows))
            await turns()
            reader.cancel()
            inbox.send_nowait(len(rows))
            await asyncio.gather(reader, return_exceptions=True)
        inbox.close()
        await read_all(inbox, rows)
        assert rows == sorted(rows)
        assert len(rows) == 3

    play(story)


def test_what_it_is() -> None:
    inbox = Inbox(int)
    assert not inbox.bounded
    assert inbox.parallelism == 1
    assert inbox.record_type is int
    assert asyncio.run(inbox.discover(world_of())) == ["inbox"]
