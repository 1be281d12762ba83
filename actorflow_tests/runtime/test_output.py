"""Partition, fill, hand over; what finds no room is kept in order and repaid."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from actorflow.dataflow.deferred_keys import DeferredKeys
from actorflow.errors import InvalidValue, OperatorFailed
from actorflow.model.elements import Barrier, Batch
from actorflow.model.ids import ActorId, ChannelId
from actorflow.model.key_groups import KeyRouter, key_group, subtask_of, token_of
from actorflow.runtime.mailbox import Channel, Gate, Mailbox
from actorflow.runtime.output import (
    BroadcastExchange,
    ExchangeWriter,
    KeyedExchange,
    KeyedSingleExchange,
    Output,
    RoutedExchange,
    SingleExchange,
)


def ends(count: int, *, exclusive: int = 1) -> list[Channel]:
    made = []
    for index in range(count):
        mailbox = Mailbox()
        channel_id = ChannelId(0, ActorId("up", 0), ActorId("down", index))
        made.append(Channel(channel_id, mailbox, Gate(0), exclusive=exclusive, most=exclusive))
        mailbox.channels.append(made[-1])
    return made


def deferred(function: Callable[[Any], Any]) -> DeferredKeys:
    return DeferredKeys(function, operator="key_by", subtask=0, shown=True, names=None)


def received(channels: list[Channel], output: Output | None = None) -> list[list[Any]]:
    """What each receiver gets when all of them drain until nothing is left."""
    got: list[list[Any]] = [[] for _ in channels]
    for _ in range(10_000):
        moved = False
        for index, channel in enumerate(channels):
            while (found := channel.mailbox.try_take()) is not None:
                moved = True
                element = found[1]
                got[index].append(list(element.values) if isinstance(element, Batch) else element)
        if output is not None:
            output.repay()
        if not moved:
            return got
    raise AssertionError("it never ends")


def flat(got: list[list[Any]]) -> list[list[Any]]:
    return [[value for batch in one for value in batch] for one in got]


def test_small_lists_are_joined_until_a_batch_is_full_and_large_ones_are_cut() -> None:
    channels = ends(1, exclusive=100)
    output = Output([SingleExchange(channels, 4)])
    for size in (1, 2, 2, 9, 4):
        output.emit(list(range(size)))
    output.flush()
    [batches] = received(channels)
    assert all(len(batch) <= 4 for batch in batches)
    assert flat([batches]) == [[0, 0, 1, 0, 1, *range(9), *range(4)]]
    assert not output.is_filling


@pytest.mark.parametrize("capacity", [1, 2, 5])
def test_what_finds_no_room_is_the_remainder_and_arrives_in_order_when_there_is(capacity: int) -> None:
    channels = ends(1, exclusive=capacity)
    output = Output([SingleExchange(channels, 1)])
    output.emit(list(range(20)))
    assert not output.is_available
    assert flat(received(channels, output)) == [list(range(20))]
    assert output.is_available


def test_a_control_element_goes_behind_everything_emitted_before_and_nothing_overtakes_it() -> None:
    channels = ends(2)
    output = Output([RoutedExchange(channels, 2, lambda values: [value % 2 for value in values])])
    output.emit(list(range(9)))
    output.control(Barrier(7))
    output.emit([9, 10])
    output.flush()
    even, odd = received(channels, output)
    for got, before, after in ((even, [0, 2, 4, 6, 8], [10]), (odd, [1, 3, 5, 7], [9])):
        place = got.index(Barrier(7))
        assert flat([got[:place], got[place + 1 :]]) == [before, after]


def test_one_full_channel_does_not_hold_up_the_others_and_keeps_its_own_order() -> None:
    channels = ends(2)
    output = Output([RoutedExchange(channels, 1, lambda values: [value % 2 for value in values])])
    output.emit(list(range(8)))
    odd = channels[1]
    output.repay()
    for expected in (1, 3, 5, 7):
        found = odd.mailbox.try_take()
        assert found is not None
        assert found[1].values == [expected]
        output.repay()
    assert odd.mailbox.try_take() is None
    assert flat(received(channels, output))[0] == [0, 2, 4, 6]


def test_a_broadcast_reaches_every_channel_though_one_of_them_is_full() -> None:
    channels = ends(3)
    channels[1].try_put(Batch(["full"]))
    output = Output([BroadcastExchange(channels, 2)])
    output.emit([1, 2, 3])
    output.flush()
    assert flat(received(channels, output)) == [[1, 2, 3], ["full", 1, 2, 3], [1, 2, 3]]


def test_side_outputs_go_to_those_who_read_their_tag_and_to_nobody_else() -> None:
    main, late = ends(1), ends(1)
    output = Output([SingleExchange(main, 1), SingleExchange(late, 1, "late")])
    output.emit([1])
    output.emit_side("late", [2])
    output.emit_side("unread", [3])
    assert (flat(received(main)), flat(received(late))) == ([[1]], [[2]])


def test_records_out_counts_what_was_emitted() -> None:
    output = Output([SingleExchange(ends(1, exclusive=9), 4)])
    output.emit([1, 2, 3])
    output.emit([4, 5])
    assert output.records_out == 5


def routed(keys: list[Any], count: int) -> list[int]:
    return [subtask_of(key_group(token_of(key), 128), count, 128) for key in keys]


MIXED: list[Any] = ["a", "ü", b"a", 1, 1.0, True, "1", None, ("a", 1), -0.0, 0.0, 2**70]


@pytest.mark.parametrize("order", [MIXED, MIXED[::-1], ["a"] * 9 + MIXED + ["b"] * 9, list(range(300)) + MIXED])
@pytest.mark.parametrize("count", [1, 2, 3, 7])
def test_every_key_goes_to_its_owner_with_its_token_whatever_came_before_it(order: list[Any], count: int) -> None:
    """Some keys are their own tokens and others are not; a mixture changes neither the way nor the token."""
    channels = ends(count, exclusive=10_000)
    keys = deferred(lambda value: value[1])
    writer: ExchangeWriter = (
        KeyedSingleExchange(channels, 4, keys)
        if count == 1
        else KeyedExchange(channels, 4, keys, KeyRouter(128, count))
    )
    output = Output([writer])
    records = list(enumerate(order))
    for start in range(0, len(records), 3):
        output.emit(records[start : start + 3])
    output.flush()
    seen: list[tuple[int, Any]] = []
    for index, channel in enumerate(channels):
        while (found := channel.mailbox.try_take()) is not None:
            batch = found[1]
            batch_keys = keys.keys_of(batch.values) if batch.keys is keys else batch.keys
            assert len(batch_keys) == len(batch.values)
            assert [value[1] for value in batch.values] == batch_keys
            if batch.keys is keys:
                continue_with = keys.tokens_of(batch_keys)
                assert continue_with is None or continue_with == [token_of(key) for key in batch_keys]
            elif batch.tokens is not None:
                assert batch.tokens == [token_of(key) for key in batch_keys]
            else:
                assert all(type(token_of(key)) is type(key) for key in batch_keys)
            assert routed(batch_keys, count) == [index] * len(batch_keys)
            seen += batch.values
    assert sorted(seen, key=lambda value: value[0]) == records


@pytest.mark.parametrize("bad", [[1], {"a": 1}, {1}, object(), "\ud800"], ids=lambda bad: type(bad).__name__)
def test_a_key_that_cannot_be_one_is_refused_with_operator_key_and_type(bad: Any) -> None:
    output = Output([KeyedExchange(ends(3), 4, deferred(lambda value: value), KeyRouter(128, 3))])
    with pytest.raises(InvalidValue, match=r"operator 'key_by', subtask 0, key "):
        output.emit(["fine", bad])


@pytest.mark.parametrize("count", [2, 3])
def test_a_key_function_that_raises_names_the_record(count: int) -> None:
    output = Output([KeyedExchange(ends(count), 4, deferred(lambda value: 1 // value), KeyRouter(128, count))])
    with pytest.raises(OperatorFailed, match="record 0: its key function raised ZeroDivisionError"):
        output.emit([1, 2, 0, 3])
