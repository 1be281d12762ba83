"""Bounded channels, floating buffers, one place to wait."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from actorflow.model.elements import Barrier, Batch, EndOfInput
from actorflow.model.ids import ActorId, ChannelId
from actorflow.runtime.mailbox import Channel, Gate, Mailbox, Signal
from actorflow.simulation import run
from actorflow.simulation.chance import Chance


def channels(count: int, *, exclusive: int = 1, floating: int = 0, most: int = 10) -> tuple[Mailbox, list[Channel]]:
    mailbox, gate = Mailbox(), Gate(floating)
    made = []
    for index in range(count):
        channel_id = ChannelId(0, ActorId("up", index), ActorId("down", 0))
        made.append(Channel(channel_id, mailbox, gate, exclusive=exclusive, most=most))
    mailbox.channels.extend(made)
    return mailbox, made


def drain(mailbox: Mailbox) -> list[Any]:
    taken = []
    while (found := mailbox.try_take()) is not None:
        taken.append(found[1])
    return taken


def test_a_channel_takes_as_many_batches_as_it_has_buffers_and_no_more() -> None:
    mailbox, (channel,) = channels(1, exclusive=2)
    assert [channel.try_put(Batch([index])) for index in range(3)] == [True, True, False]
    assert [batch.values for batch in drain(mailbox)] == [[0], [1]]
    assert channel.try_put(Batch([3]))


def test_inv_1_7_a_barrier_never_waits_for_a_buffer_and_stays_behind_the_batches_before_it() -> None:
    mailbox, (channel,) = channels(1)
    first, barrier = Batch([1]), Barrier(1)
    assert channel.try_put(first)
    channel.put_control(barrier)
    assert not channel.try_put(Batch([2]))
    assert drain(mailbox) == [first, barrier]


def test_floating_buffers_go_to_whoever_needs_them_first_and_come_back() -> None:
    mailbox, (left, right) = channels(2, exclusive=1, floating=2)
    assert [left.try_put(Batch([index])) for index in range(4)] == [True, True, True, False]
    assert right.try_put(Batch(["r"]))
    assert not right.try_put(Batch(["r"])), "left holds what floats"
    drain(mailbox)
    assert left.gate.floating == 2
    assert [right.try_put(Batch([index])) for index in range(4)] == [True, True, True, False]


def test_no_channel_holds_more_than_its_most_however_much_floats() -> None:
    _, (channel,) = channels(1, exclusive=1, floating=10, most=3)
    assert [channel.try_put(Batch([index])) for index in range(5)] == [True, True, True, False, False]


def test_a_writer_that_starved_is_woken_when_a_buffer_is_free_also_through_another_channel() -> None:
    async def story() -> None:
        mailbox, (left, right) = channels(2, exclusive=1, floating=1)
        right.writer = Signal()
        assert left.try_put(Batch([1]))
        assert left.try_put(Batch([2]))
        assert right.try_put(Batch([3]))
        assert not right.try_put(Batch([4]))
        waiting = asyncio.ensure_future(right.writer.wait())
        await asyncio.sleep(0.001)
        taken = mailbox.try_take()
        assert taken is not None
        assert taken[0] is left
        async with asyncio.timeout(1):
            await waiting
        assert right.try_put(Batch([4]))

    run(story)


def test_channels_are_taken_in_turns() -> None:
    mailbox, made = channels(3, exclusive=4)
    for channel, name in zip(made, "abc", strict=True):
        for index in range(3):
            channel.try_put(Batch([f"{name}{index}"]))
    assert [batch.values[0] for batch in drain(mailbox)] == ["a0", "b0", "c0", "a1", "b1", "c1", "a2", "b2", "c2"]


def test_a_blocked_channel_fills_but_gives_nothing_until_it_is_resumed() -> None:
    mailbox, (left, right) = channels(2, exclusive=2)
    left.try_put(Batch(["l"]))
    right.try_put(Batch(["r"]))
    mailbox.block(left)
    assert left.try_put(Batch(["l"]))
    assert not left.try_put(Batch(["l"])), "its buffers are full like those of any other"
    assert [batch.values for batch in drain(mailbox)] == [["r"]]
    mailbox.resume(left)
    mailbox.resume(left)
    assert [batch.values for batch in drain(mailbox)] == [["l"], ["l"]]
    assert mailbox.statistics() == {"channels": 2, "blocked": 0, "batches": 0, "control": 0}


def test_a_channel_may_be_blocked_by_its_own_element_and_resumed_empty() -> None:
    mailbox, (channel,) = channels(1, exclusive=2)
    channel.put_control(Barrier(1))
    channel.try_put(Batch([1]))
    taken = mailbox.try_take()
    assert taken is not None
    mailbox.block(channel)
    assert mailbox.try_take() is None
    mailbox.resume(channel)
    drain(mailbox)
    mailbox.block(channel)
    mailbox.resume(channel)
    assert mailbox.try_take() is None
    channel.put_control(EndOfInput())
    assert len(drain(mailbox)) == 1


def test_a_signal_that_is_set_while_nobody_waits_does_nothing_and_two_waiters_are_a_mistake() -> None:
    async def story() -> None:
        signal = Signal()
        signal.set()
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.1):
                await signal.wait()
        waiting = asyncio.ensure_future(signal.wait())
        await asyncio.sleep(0.001)
        with pytest.raises(AssertionError):
            await signal.wait()
        signal.set()
        signal.set()
        await waiting

    run(story)


def test_r149_and_r134_nothing_is_lost_or_overtaken_at_capacity_one_however_the_receiver_waits() -> None:
    """One thousand from each sender, put as soon as there is room, to a receiver whose waits time out at every edge."""

    async def story(seed: int) -> None:
        chance = Chance(seed, "edges")
        mailbox, made = channels(2, exclusive=1)
        count = 1_000
        received: dict[int, list[int]] = {0: [], 1: []}

        async def send(number: int, channel: Channel) -> None:
            channel.writer = signal = Signal()
            for value in range(count):
                while not channel.try_put(Batch([value])):
                    await signal.wait()
                if chance.below("rest", 4) == 0:
                    await asyncio.sleep(chance.between("pause", 0, 200) / 1e6)

        async def receive() -> None:
            while sum(map(len, received.values())) < 2 * count:
                found = mailbox.try_take()
                if found is not None:
                    received[made.index(found[0])].append(found[1].values[0])
                    continue
                try:
                    async with asyncio.timeout(0.0001):
                        await mailbox.signal.wait()
                except TimeoutError:
                    pass

        async with asyncio.TaskGroup() as group:
            group.create_task(receive())
            for number, channel in enumerate(made):
                group.create_task(send(number, channel))
        assert received == {0: list(range(count)), 1: list(range(count))}

    for seed in range(3):
        run(story, seed, seed=seed)
