from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from actorflow.model.event_time import MAX_WATERMARK, MIN_WATERMARK
from actorflow.model.ids import ActorId, ChannelId
from actorflow.protocol.machine import replay
from actorflow.protocol.watermarks import (
    Active,
    ActiveArrived,
    ChannelEnded,
    EmitActive,
    EmitIdle,
    EmitWatermark,
    Ended,
    Event,
    Idle,
    IdleArrived,
    Inputs,
    Valve,
    WatermarkArrived,
)
from actorflow_tests.protocol.walking import Edges, walk

A, B, C = (ChannelId(0, ActorId("read", number), ActorId("count", 0)) for number in range(3))


def at(channel: ChannelId, time_ms: int) -> WatermarkArrived:
    return WatermarkArrived(channel, time_ms)


def story(machine: Valve | Inputs, *events: Event) -> list[list[Any]]:
    return [machine.on(event) for event in events]


def after(machine: Any, *events: Event) -> Any:
    story(machine, *events)
    return machine


def emitted(effects: Iterable[Any]) -> list[int]:
    return [effect.time_ms for effect in effects if isinstance(effect, EmitWatermark)]


# ── the small world ──────────────────────────────────────────────────────────────────────────


def everything(channels: Sequence[ChannelId]) -> Callable[[Any], Iterable[Event]]:
    def moves(_: Any) -> Iterable[Event]:
        for channel in channels:
            yield from (at(channel, time_ms) for time_ms in (1, 2, MAX_WATERMARK))
            yield from (IdleArrived(channel), ActiveArrived(channel), ChannelEnded(channel))

    return moves


def watch(machine: Valve | Inputs, event: Event, effects: list[Any]) -> None:
    """What whoever stands downstream may rely on."""
    times = emitted(effects)
    assert len(times) <= 1, "one watermark for one event"
    for time_ms in times:
        assert time_ms > machine.before_ms, "INV-5.4: a watermark that does not grow is not emitted"
    assert not times or times[-1] == machine.output_ms
    if isinstance(machine.phase, Ended):
        assert machine.output_ms == MAX_WATERMARK


def test_the_table_of_the_valve_tells_every_edge_of_a_small_world_and_no_other() -> None:
    edges = Edges()
    walk(Valve([A]), everything([A]), depth=6, watch=watch, edges=edges)
    walk(Valve([A, B]), everything([A, B]), depth=6, watch=watch, edges=edges)
    walk(Valve([A, B, C]), everything([A, B, C]), depth=4, watch=watch, edges=edges)

    edges.compare(Valve)


def test_the_table_of_several_inputs_tells_every_edge_of_a_small_world_and_no_other() -> None:
    edges = Edges()
    for inputs, depth in (([[A]], 5), ([[A], [B]], 4), ([[A, B], [C]], 3)):
        channels = [channel for each in inputs for channel in each]
        walk(Inputs(inputs), everything(channels), depth=depth, watch=watch, edges=edges)

    edges.compare(Inputs)


# ── against a model that was written another way ─────────────────────────────────────────────


class Naive:
    """The rules of a valve, read aloud: every flag is stored, nothing is derived."""

    def __init__(self, channels: Sequence[ChannelId]) -> None:
        self.time = dict.fromkeys(channels, MIN_WATERMARK)
        self.idle = dict.fromkeys(channels, False)
        self.aligned = dict.fromkeys(channels, True)
        self.over = dict.fromkeys(channels, False)
        self.out = MIN_WATERMARK
        self.out_idle = False
        self.said: list[Any] = []

    def take(self, event: Event) -> list[Any]:
        self.said = []
        channel = event.channel
        if all(self.over.values()) or self.over[channel]:
            return []
        match event:
            case ChannelEnded():
                self.over[channel], self.aligned[channel] = True, False
            case WatermarkArrived(_, time_ms) if time_ms == MAX_WATERMARK:
                self.over[channel], self.aligned[channel] = True, False
            case WatermarkArrived(_, time_ms):
                self.time[channel] = max(time_ms, self.time[channel])
            case IdleArrived():
                self.idle[channel], self.aligned[channel] = True, False
            case ActiveArrived():
                self.idle[channel] = False
        for one in self.time:  # active again and not behind, or caught up
            if not self.over[one] and not self.idle[one] and self.time[one] >= self.out:
                self.aligned[one] = True
        self.speak()
        return self.said

    def speak(self) -> None:
        open_ones = [one for one, over in self.over.items() if not over]
        if not open_ones:
            self.grow(MAX_WATERMARK)
            return
        all_idle = all(self.idle[one] for one in open_ones)
        if self.out_idle and not all_idle:
            self.out_idle = False
            self.said.append(EmitActive())
        if all_idle:
            self.grow(max(self.time.values()))
        elif any(self.aligned.values()):
            self.grow(min(self.time[one] for one, aligned in self.aligned.items() if aligned))
        if all_idle and not self.out_idle:
            self.out_idle = True
            self.said.append(EmitIdle())

    def grow(self, time_ms: int) -> None:
        if time_ms > self.out:
            self.out = time_ms
            self.said.append(EmitWatermark(time_ms))


def events_on(channels: Sequence[ChannelId], *, ends: bool = True) -> st.SearchStrategy[list[Any]]:
    channel = st.sampled_from(channels)
    kinds = [
        st.builds(WatermarkArrived, channel, st.integers(-2, 9)),
        st.builds(WatermarkArrived, channel, st.integers(-2, 9)),
        st.builds(IdleArrived, channel),
        st.builds(ActiveArrived, channel),
    ]
    if ends:
        kinds += [st.builds(ChannelEnded, channel), st.builds(WatermarkArrived, channel, st.just(MAX_WATERMARK))]
    return st.lists(st.one_of(kinds), max_size=40)


@settings(max_examples=150, deadline=None)
@given(events_on([A, B, C]))
def test_a_valve_says_what_a_naive_one_says(events: list[Event]) -> None:
    naive, valve = Naive([A, B, C]), Valve([A, B, C])

    assert [naive.take(event) for event in events] == story(valve, *events)


@settings(max_examples=60, deadline=None)
@given(events_on([A, B, C]), st.sampled_from([[[A], [B], [C]], [[A, B], [C]], [[A, B, C]]]))
def test_watermarks_never_decrease_and_say_each_time_once_INV_5_4(events: list[Event], inputs: Any) -> None:
    for machine in (Inputs(inputs), Valve([A, B, C])):
        times = [time_ms for effects in story(machine, *events) for time_ms in emitted(effects)]

        assert times == sorted(set(times))


@settings(max_examples=60, deadline=None)
@given(events_on([A, B, C]))
def test_one_input_is_nothing_but_its_valve(events: list[Event]) -> None:
    assert story(Valve([A, B, C]), *events) == story(Inputs([[A, B, C]]), *events)


@settings(max_examples=60, deadline=None)
@given(events_on([A, B, C], ends=False), st.permutations([A, B, C]))
def test_the_order_in_which_channels_are_listed_decides_nothing(events: list[Event], channels: list[ChannelId]) -> None:
    assert story(Valve([A, B, C]), *events) == story(Valve(channels), *events)


@settings(max_examples=60, deadline=None)
@given(events_on([A, B, C]))
def test_nobody_downstream_sees_a_record_while_it_believes_all_are_idle(events: list[Event]) -> None:
    """Status changes alternate, so that what was said last is what is so."""
    said = [effect for effects in story(Valve([A, B, C]), *events) for effect in effects]
    changes = [effect for effect in said if isinstance(effect, EmitIdle | EmitActive)]

    assert changes == [EmitIdle(), EmitActive()] * (len(changes) // 2) + [EmitIdle()] * (len(changes) % 2)


@settings(max_examples=40, deadline=None)
@given(events_on([A, B]))
def test_a_story_of_watermarks_can_be_told_again(events: list[Event]) -> None:
    valve = after(Valve([A, B]), *events)

    assert replay(lambda: Valve([A, B]), valve.story).phase == valve.phase


# ── one input ────────────────────────────────────────────────────────────────────────────────


def test_the_slowest_channel_decides_and_only_if_it_grows() -> None:
    assert story(Valve([A, B]), at(A, 10), at(B, 5), at(B, 7), at(A, 12), at(B, 7)) == [
        [],
        [EmitWatermark(5)],
        [EmitWatermark(7)],
        [],
        [],
    ]


def test_a_watermark_that_is_not_larger_than_the_channels_own_is_ignored() -> None:
    valve = after(Valve([A]), at(A, 10))

    assert story(valve, at(A, 10), at(A, 3)) == [[], []]


def test_a_channel_that_goes_idle_holds_nobody_back() -> None:
    valve = after(Valve([A, B]), at(A, 10), at(B, 5))

    assert valve.on(IdleArrived(B)) == [EmitWatermark(10)]
    assert valve.on(at(A, 20)) == [EmitWatermark(20)]


def test_when_the_last_channel_goes_idle_the_largest_watermark_is_emitted_first() -> None:
    valve = after(Valve([A, B]), at(A, 10), at(B, 5))

    assert story(valve, IdleArrived(A), IdleArrived(B)) == [[], [EmitWatermark(10), EmitIdle()]]
    assert valve.phase == Idle()


def test_when_the_last_channel_goes_idle_behind_the_output_the_largest_is_emitted_all_the_same() -> None:
    valve = after(Valve([A, B, C]), at(A, 10), at(B, 20), at(C, 4), IdleArrived(C), ActiveArrived(C))

    assert story(valve, IdleArrived(B), IdleArrived(A), IdleArrived(C)) == [[], [], [EmitWatermark(20), EmitIdle()]]


def test_the_watermark_of_an_idle_source_goes_on_and_the_largest_is_followed() -> None:
    valve = after(Valve([A, B]), at(A, 10), at(B, 5), IdleArrived(A), IdleArrived(B))

    assert story(valve, at(A, 11), at(B, 8), at(B, 13)) == [[EmitWatermark(11)], [], [EmitWatermark(13)]]
    assert valve.is_idle


def test_an_idle_source_that_goes_on_pushes_nobody_who_is_active() -> None:
    valve = after(Valve([A, B]), at(A, 10), at(B, 5), IdleArrived(A))

    assert story(valve, at(A, 1_000), at(B, 7)) == [[], [EmitWatermark(7)]]


def test_a_channel_that_comes_back_counts_at_once_where_it_is_not_behind() -> None:
    valve = after(Valve([A, B]), at(A, 10), at(B, 10), IdleArrived(B))

    assert story(valve, ActiveArrived(B), at(A, 20), at(B, 15)) == [[], [], [EmitWatermark(15)]]


def test_a_channel_that_comes_back_behind_the_output_holds_nobody_back_until_it_has_caught_up() -> None:
    valve = after(Valve([A, B]), at(A, 10), at(B, 5), IdleArrived(B))

    assert story(valve, ActiveArrived(B), at(A, 20), at(B, 15), at(A, 21)) == [
        [],
        [EmitWatermark(20)],
        [],
        [EmitWatermark(21)],
    ]
    assert story(valve, at(B, 21), at(A, 30), at(B, 22)) == [[], [], [EmitWatermark(22)]]


def test_whoever_comes_back_first_is_announced_before_anything_it_sends() -> None:
    valve = after(Valve([A, B]), at(A, 10), IdleArrived(A), IdleArrived(B))

    assert story(valve, ActiveArrived(B), at(B, 11)) == [[EmitActive()], [EmitWatermark(11)]]


def test_status_is_said_once() -> None:
    assert story(Valve([A]), ActiveArrived(A), IdleArrived(A), IdleArrived(A), ActiveArrived(A)) == [
        [],
        [EmitIdle()],
        [],
        [EmitActive()],
    ]


def test_a_channel_that_ended_is_waited_for_no_more_and_the_last_end_is_the_end_of_time() -> None:
    valve = after(Valve([A, B]), at(A, 10), at(B, 5))

    assert story(valve, ChannelEnded(B), ChannelEnded(A)) == [[EmitWatermark(10)], [EmitWatermark(MAX_WATERMARK)]]
    assert valve.phase == Ended()


def test_the_end_of_time_on_a_channel_is_its_end() -> None:
    valve = after(Valve([A, B]), at(A, MAX_WATERMARK), at(B, 5))

    assert story(valve, ChannelEnded(A), at(B, 6), ChannelEnded(B)) == [
        [],
        [EmitWatermark(6)],
        [EmitWatermark(MAX_WATERMARK)],
    ]


def test_the_end_of_one_channel_does_not_end_time_for_those_that_are_only_idle() -> None:
    """An idle channel may bring a record tomorrow; it must not be late for ever because another channel ended."""
    orders: list[list[Event]] = [[IdleArrived(B), ChannelEnded(A)], [ChannelEnded(A), IdleArrived(B)]]
    for events in orders:
        valve = after(Valve([A, B]), at(A, 10), at(B, 5), *events)

        assert (10, Idle()) == (valve.output_ms, valve.phase)
        assert valve.on(ActiveArrived(B)) == [EmitActive()]
        assert valve.on(at(B, 11)) == [EmitWatermark(11)]
        assert valve.phase == Active()


def test_after_a_restore_every_channel_begins_anew() -> None:
    valve = Valve([A, B])

    assert valve.output_ms == MIN_WATERMARK
    assert story(valve, at(A, 100), at(B, -7)) == [[], [EmitWatermark(-7)]]


def test_time_before_1970_is_time_as_well() -> None:
    assert story(Valve([A]), at(A, -20), at(A, -11), at(A, 0)) == [
        [EmitWatermark(-20)],
        [EmitWatermark(-11)],
        [EmitWatermark(0)],
    ]


def test_a_channel_of_somebody_else_is_a_mistake_of_ours() -> None:
    with pytest.raises(AssertionError, match="none of ours"):
        Valve([A]).on(at(B, 1))


def test_nothing_to_merge_is_a_mistake_of_ours() -> None:
    with pytest.raises(AssertionError, match="nothing to merge"):
        Valve([])


# ── several inputs ───────────────────────────────────────────────────────────────────────────


def test_the_slowest_input_decides() -> None:
    inputs = Inputs([[A, B], [C]])

    assert story(inputs, at(A, 10), at(B, 8), at(C, 5), at(C, 9)) == [[], [], [EmitWatermark(5)], [EmitWatermark(8)]]
    assert [valve.output_ms for valve in inputs.valves] == [8, 9]


def test_an_idle_input_holds_nobody_back_and_all_idle_follow_the_largest() -> None:
    inputs = after(Inputs([[A], [B]]), at(A, 10), at(B, 5))

    assert inputs.on(IdleArrived(B)) == [EmitWatermark(10)]
    assert inputs.on(IdleArrived(A)) == [EmitIdle()]
    assert inputs.on(at(B, 12)) == [EmitWatermark(12)]


def test_an_input_that_comes_back_behind_the_output_is_waited_for() -> None:
    """A join would drop all its records as late for ever if the other side ran on at the same pace."""
    inputs = after(Inputs([[A], [B]]), at(A, 10), at(B, 5), IdleArrived(B), ActiveArrived(B))

    assert story(inputs, at(A, 20), at(B, 9), at(B, 15)) == [[], [], [EmitWatermark(15)]]


def test_an_input_that_ended_is_waited_for_no_more() -> None:
    inputs = after(Inputs([[A, B], [C]]), at(A, 10), at(B, 8), at(C, 5))

    assert story(inputs, ChannelEnded(C), ChannelEnded(B), ChannelEnded(A)) == [
        [EmitWatermark(8)],
        [EmitWatermark(10)],
        [EmitWatermark(MAX_WATERMARK)],
    ]


def test_a_channel_belongs_to_one_input() -> None:
    with pytest.raises(AssertionError, match="one input"):
        Inputs([[A], [A]])
