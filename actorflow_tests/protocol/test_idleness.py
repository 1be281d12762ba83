from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from actorflow.model.event_time import MAX_WATERMARK, MIN_WATERMARK, WhenIdle
from actorflow.model.ids import ActorId, ChannelId
from actorflow.protocol.idleness import (
    Active,
    Idle,
    Idleness,
    NotReady,
    Passing,
    Ready,
    RecordsRead,
    ReportQuiet,
    ReportStirred,
    SplitAdded,
    SplitEnded,
    SplitHeld,
    SplitReleased,
    Ticked,
    TimeHeld,
    TimePasses,
    WatermarkReached,
)
from actorflow.protocol.quiet import LetTimePass, Quiet, SubtaskQuiet, SubtaskStirred
from actorflow.protocol.watermarks import (
    EmitActive,
    EmitIdle,
    EmitWatermark,
    IdleArrived,
    Valve,
    WatermarkArrived,
)
from actorflow_tests.protocol.walking import Edges, explore

SECOND = 1_000
INTERVAL = 200


def reading(*splits: str, idle_after_ms: int | None = SECOND, when_idle: WhenIdle = WhenIdle.ADVANCE) -> Idleness:
    """A subtask that has just been given its splits and waits for records, at 0."""
    idleness = Idleness(idle_after_ms=idle_after_ms, when_idle=when_idle)
    for split in splits:
        idleness.on(SplitAdded(split, 0))
    idleness.on(Ready(0))
    return idleness


def story(idleness: Idleness, *events: Any) -> list[list[Any]]:
    return [idleness.on(event) for event in events]


def read(idleness: Idleness, split: str, time_ms: int, at_ms: int) -> list[Any]:
    """Records came: they are taken, emitted in no time, and the subtask waits again."""
    before = idleness.on(NotReady(at_ms)) + idleness.on(RecordsRead(split, at_ms))
    return before + idleness.on(WatermarkReached(split, time_ms)) + idleness.on(Ready(at_ms))


def ticks(idleness: Idleness, start_ms: int, end_ms: int) -> list[tuple[int, Any]]:
    """What a subtask says at its ticks, when; the source has one subtask, which is asked for nothing else."""
    said: list[tuple[int, Any]] = []
    for at_ms in range(start_ms, end_ms + 1, INTERVAL):
        for effect in idleness.on(Ticked(at_ms)):
            said.append((at_ms, effect))
            if effect == ReportQuiet():
                assert idleness.on(TimePasses(at_ms)) == []
    return said


# ── the small world ──────────────────────────────────────────────────────────────────────────


class Subtask:
    """A subtask to which anything may happen, in an order that the runtime could not even bring about."""

    def __init__(
        self, splits: list[str], edges: Edges, *, idle_after_ms: int | None, when_idle: WhenIdle, holds: bool = True
    ) -> None:
        self.idleness = Idleness(idle_after_ms=idle_after_ms, when_idle=when_idle)
        self.names, self.edges, self.holds = splits, edges, holds
        self.now_ms = 0
        self.emitted_ms = MIN_WATERMARK
        self.is_idle = False
        self.is_quiet = False

    def moves(self) -> Iterable[Any]:
        now = self.now_ms
        yield from (Ready(now), NotReady(now + 1), Ticked(now + 1), Ticked(now + 2), TimePasses(now), TimeHeld(now + 1))
        for split in self.names:
            if split not in self.idleness.splits:
                yield SplitAdded(split, now)
                continue
            yield from (SplitEnded(split, now), RecordsRead(split, now))
            yield from (WatermarkReached(split, time_ms) for time_ms in (5, 7))
            if self.holds:
                yield from (SplitHeld(split, now + 1), SplitReleased(split, now))

    def make(self, move: Any) -> None:
        self.now_ms = getattr(move, "at_ms", self.now_ms)
        for effect in self.edges.step(self.idleness, move):
            match effect:
                case EmitWatermark(time_ms):
                    assert time_ms > self.emitted_ms, "INV-5.4: a watermark that does not grow is not emitted"
                    self.emitted_ms = time_ms
                case EmitIdle():
                    assert not self.is_idle, "said twice"
                    self.is_idle = True
                case EmitActive():
                    assert self.is_idle, "said twice"
                    self.is_idle = False
                case ReportQuiet():
                    assert self.is_idle
                    assert not self.is_quiet
                    self.is_quiet = True
                case ReportStirred():
                    assert self.is_quiet
                    self.is_quiet = False
        assert self.emitted_ms == self.idleness.output_ms, "everything that was reached was said"
        assert self.is_idle == (self.idleness.idle_since_ms is not None)
        if isinstance(move, RecordsRead):
            assert not self.is_idle, "a record leaves while everybody believes that none will"
        if isinstance(self.idleness.phase, Passing):
            assert self.is_quiet
            assert self.idleness.when is WhenIdle.ADVANCE
            assert self.idleness.idle_after_ms is not None


def test_the_table_tells_every_edge_of_a_small_world_and_no_other() -> None:
    edges = Edges()
    for when_idle in WhenIdle:
        for idle_after_ms in (None, 2):
            explore(Subtask(["a"], edges, idle_after_ms=idle_after_ms, when_idle=when_idle), depth=4)
    explore(Subtask(["a"], edges, idle_after_ms=1, when_idle=WhenIdle.ADVANCE), depth=6)
    explore(Subtask(["a", "b"], edges, idle_after_ms=1, when_idle=WhenIdle.ADVANCE, holds=False), depth=5)

    edges.compare(Idleness)


# ── when is a split idle? ────────────────────────────────────────────────────────────────────


def test_a_split_is_idle_when_nothing_came_for_so_long() -> None:
    idleness = reading("a", when_idle=WhenIdle.HOLD)
    read(idleness, "a", 70, at_ms=100)

    assert story(idleness, Ticked(200), Ticked(1_099), Ticked(1_100), Ticked(1_200)) == [
        [EmitWatermark(70)],
        [],
        [EmitIdle()],
        [],
    ]
    assert idleness.idle_since_ms == 1_100


def test_a_split_is_never_idle_where_nobody_has_said_after_how_long() -> None:
    idleness = reading("a", idle_after_ms=None)

    assert story(idleness, Ticked(10**9), Ticked(10**12)) == [[], []]
    assert idleness.phase == Active()


def test_a_split_that_never_had_a_record_becomes_idle_as_well() -> None:
    idleness = reading("a", "b")
    read(idleness, "a", 70, at_ms=900)

    assert story(idleness, Ticked(900), Ticked(1_000)) == [[], [EmitWatermark(70)]]


def test_r090_the_clock_stands_still_while_the_source_is_not_ready_to_emit() -> None:
    """Idle after 1 s; downstream takes 3 s; the records of the second split wait all the while and are not late."""
    idleness = reading("a", "b")
    read(idleness, "a", 100, at_ms=0)
    read(idleness, "b", 100, at_ms=0)
    assert idleness.on(Ticked(200)) == [EmitWatermark(100)]

    said = story(idleness, NotReady(300), *(Ticked(at_ms) for at_ms in range(400, 3_400, 200)))
    said += [idleness.on(RecordsRead("a", 3_300)), idleness.on(WatermarkReached("a", 5_000)), idleness.on(Ready(3_300))]
    said += story(idleness, Ticked(3_400), Ticked(3_600))

    assert not any(said), "no watermark passes the records that wait"
    assert read(idleness, "b", 180, at_ms=3_700) == []
    assert idleness.on(Ticked(3_800)) == [EmitWatermark(180)]


def test_r090_what_ran_before_the_pause_still_counts_after_it() -> None:
    idleness = reading("a", when_idle=WhenIdle.HOLD)

    assert not any(story(idleness, NotReady(600), Ticked(5_000), Ready(5_000), Ticked(5_399)))
    assert idleness.idle_due_ms == 5_400
    assert idleness.on(Ticked(5_400)) == [EmitIdle()]


def test_a_restore_that_takes_long_makes_nobody_idle() -> None:
    idleness = Idleness(idle_after_ms=SECOND)

    assert not any(story(idleness, SplitAdded("a", 0), Ticked(10_000), Ready(60_000), Ticked(60_200)))
    assert idleness.on(Ticked(61_000)) == [EmitIdle(), ReportQuiet()]


def test_a_split_held_by_alignment_is_not_idle_however_long_it_waits() -> None:
    idleness = reading("a", "b")
    read(idleness, "a", 10_000, at_ms=0)
    read(idleness, "b", 100, at_ms=0)

    assert idleness.on(Ticked(200)) == [EmitWatermark(100)]
    assert not any(story(idleness, SplitHeld("a", 500), *(Ticked(at_ms) for at_ms in range(600, 1_000, 200))))
    assert idleness.on(Ticked(1_000)) == [EmitWatermark(10_000)]  # b is idle, and a holds nobody back where it is
    assert not any(story(idleness, Ticked(9_000), SplitReleased("a", 9_000), Ticked(9_400)))
    assert idleness.phase == Active()
    assert idleness.on(Ticked(9_500)) == [EmitIdle(), ReportQuiet()]


def test_a_chunk_that_was_already_taken_may_still_come_from_a_split_that_is_held() -> None:
    idleness = reading("a", when_idle=WhenIdle.HOLD)
    story(idleness, SplitHeld("a", 100), RecordsRead("a", 300), SplitReleased("a", 2_000))

    assert story(idleness, Ticked(2_999), Ticked(3_000)) == [[], [EmitIdle()]]


def test_a_clock_that_steps_back_stands_still() -> None:
    idleness = reading("a", when_idle=WhenIdle.HOLD)

    assert not any(story(idleness, Ticked(900), NotReady(100), Ready(150), Ticked(850), Ticked(999)))
    assert idleness.on(Ticked(1_000)) == [EmitIdle()]


def test_what_comes_after_idleness_is_announced_before_it_is_emitted() -> None:
    idleness = reading("a", "b", when_idle=WhenIdle.HOLD)
    idleness.on(Ticked(1_000))

    assert (idleness.is_idle("a"), idleness.phase) == (True, Idle(1_000))
    assert story(idleness, RecordsRead("a", 1_500), RecordsRead("b", 1_500)) == [[EmitActive()], []]
    assert not idleness.is_idle("b")


def test_nothing_but_a_tick_finds_out_that_a_split_is_idle() -> None:
    idleness = reading("a")

    assert not any(story(idleness, NotReady(5_000), Ready(5_000), RecordsRead("a", 5_000), Ticked(5_200)))


def test_when_the_next_split_will_be_idle_is_known_beforehand() -> None:
    idleness = reading("a", "b")
    read(idleness, "a", 1, at_ms=300)
    assert idleness.idle_due_ms == 1_000
    idleness.on(SplitHeld("b", 400))
    assert idleness.idle_due_ms == 1_300
    idleness.on(NotReady(500))
    assert idleness.idle_due_ms is None
    idleness.on(Ready(700))
    assert idleness.idle_due_ms == 1_500


# ── a subtask and its splits ─────────────────────────────────────────────────────────────────


def test_r088_a_subtask_without_splits_is_idle_at_once() -> None:
    for idle_after_ms in (None, SECOND):
        idleness = Idleness(idle_after_ms=idle_after_ms, when_idle=WhenIdle.HOLD)

        assert idleness.on(Ticked(0)) == []  # splits may not have been given out yet
        assert idleness.on(Ready(0)) == [EmitIdle()]


def test_r088_two_splits_and_three_subtasks_close_their_windows() -> None:
    channels = [ChannelId(0, ActorId("read", number), ActorId("count", 0)) for number in range(3)]
    subtasks = [reading("a", idle_after_ms=None), reading("b", idle_after_ms=None), Idleness()]
    valve = Valve(channels)
    assert subtasks[2].on(Ready(0)) == [EmitIdle()]
    assert valve.on(IdleArrived(channels[2])) == []

    for subtask, channel in zip(subtasks[:2], channels, strict=False):
        read(subtask, next(iter(subtask.splits)), 9_999, at_ms=50)
        for effect in subtask.on(Ticked(200)):
            assert isinstance(effect, EmitWatermark)
            valve.on(WatermarkArrived(channel, effect.time_ms))

    assert valve.output_ms == 9_999


def test_a_subtask_that_is_given_a_split_later_waits_for_it() -> None:
    idleness = Idleness()
    idleness.on(Ready(0))

    assert idleness.on(SplitAdded("late", 500)) == [EmitActive()]
    assert idleness.on(Ticked(600)) == []
    read(idleness, "late", 42, at_ms=650)
    assert idleness.on(Ticked(800)) == [EmitWatermark(42)]


def test_the_slowest_split_decides_and_an_idle_one_holds_nobody_back() -> None:
    idleness = reading("a", "b")
    read(idleness, "a", 50, at_ms=0)
    read(idleness, "b", 30, at_ms=100)

    assert idleness.on(Ticked(200)) == [EmitWatermark(30)]
    read(idleness, "a", 60, at_ms=900)
    assert idleness.on(Ticked(1_100)) == [EmitWatermark(60)]  # b is idle


def test_a_split_that_comes_back_behind_the_output_is_waited_for() -> None:
    idleness = reading("a", "b")
    read(idleness, "a", 50, at_ms=800)
    assert idleness.on(Ticked(1_000)) == [EmitWatermark(50)]
    read(idleness, "b", 40, at_ms=1_100)
    read(idleness, "a", 90, at_ms=1_100)

    assert idleness.on(Ticked(1_200)) == []
    read(idleness, "b", 55, at_ms=1_250)
    assert idleness.on(Ticked(1_400)) == [EmitWatermark(55)]


def test_a_split_that_ended_holds_nobody_back_and_the_last_leaves_the_largest_behind() -> None:
    idleness = reading("a", "b", idle_after_ms=None)
    read(idleness, "a", 50, at_ms=0)
    read(idleness, "b", 30, at_ms=0)

    assert idleness.on(Ticked(200)) == [EmitWatermark(30)]
    assert story(idleness, SplitEnded("a", 300), SplitEnded("b", 300)) == [[], [EmitWatermark(50), EmitIdle()]]


def test_the_last_active_split_that_ends_leaves_an_idle_subtask_behind() -> None:
    idleness = reading("a", "b")
    read(idleness, "b", 50, at_ms=900)
    assert idleness.on(Ticked(1_000)) == [EmitWatermark(50)]  # a is idle

    assert idleness.on(SplitEnded("b", 1_100)) == [EmitIdle(), ReportQuiet()]


def test_watermarks_begin_anew_after_a_restore() -> None:
    assert Idleness().output_ms == MIN_WATERMARK


def test_a_generator_can_not_end_time() -> None:
    with pytest.raises(AssertionError, match="an event of its own"):
        reading("a").on(WatermarkReached("a", MAX_WATERMARK))


def test_a_split_is_read_by_one_subtask_once() -> None:
    with pytest.raises(AssertionError, match="read twice"):
        reading("a").on(SplitAdded("a", 0))


# ── a quiet source ───────────────────────────────────────────────────────────────────────────


def test_r086_a_quiet_stream_closes_its_windows() -> None:
    """Three records in [0, 10 s), then silence; idle after 5 s; the clock goes on by 20 s."""
    idleness = reading("a", idle_after_ms=5 * SECOND)
    for time_ms in (1_000, 5_000, 9_000):
        read(idleness, "a", time_ms - 1, at_ms=time_ms)

    said = ticks(idleness, 9_000, 29_000)

    assert said[:3] == [(9_000, EmitWatermark(8_999)), (14_000, EmitIdle()), (14_000, ReportQuiet())]
    assert all(isinstance(effect, EmitWatermark) for _, effect in said[3:])
    closes = next(at_ms for at_ms, effect in said[3:] if effect.time_ms >= 9_999)
    assert closes == 15_000
    assert idleness.output_ms == 8_999 + (29_000 - 14_000)  # last + time since it became idle


def test_r086_held_time_stands_still_until_a_record_comes() -> None:
    idleness = reading("a", when_idle=WhenIdle.HOLD)
    read(idleness, "a", 8_999, at_ms=0)

    assert ticks(idleness, 200, 60_000) == [(200, EmitWatermark(8_999)), (1_000, EmitIdle())]
    assert idleness.on(TimePasses(60_000)) == []
    assert ticks(idleness, 60_200, 90_000) == []


def test_r086_an_idle_source_closes_a_window_though_the_valve_counts_it_as_idle() -> None:
    channel = ChannelId(0, ActorId("read", 0), ActorId("count", 0))
    idleness, valve = reading("a"), Valve([channel])
    read(idleness, "a", 8_999, at_ms=0)

    for _, effect in ticks(idleness, 200, 5_000):
        match effect:
            case EmitWatermark(time_ms):
                valve.on(WatermarkArrived(channel, time_ms))
            case EmitIdle():
                valve.on(IdleArrived(channel))

    assert valve.is_idle
    assert valve.output_ms == 8_999 + 4_000


def test_time_does_not_pass_for_a_source_that_never_had_any() -> None:
    idleness = reading("a")

    assert ticks(idleness, 200, 10_000) == [(1_000, EmitIdle()), (1_000, ReportQuiet())]
    assert idleness.output_ms == MIN_WATERMARK


def test_time_passes_only_where_somebody_said_how_long_a_silence_may_be() -> None:
    """A folder whose files are all read: the next one may hold the records of any day."""
    idleness = reading("a", idle_after_ms=None)
    read(idleness, "a", 50, at_ms=0)

    assert idleness.on(SplitEnded("a", 100)) == [EmitWatermark(50), EmitIdle()]
    assert story(idleness, TimePasses(100), Ticked(90_000)) == [[], []]


def test_time_stands_still_again_while_the_subtask_is_not_ready() -> None:
    """What arrives outside while nobody can read it must not be late because of it (R090, in a source that is idle)."""
    idleness = reading("a")
    read(idleness, "a", 0, at_ms=0)
    ticks(idleness, 200, 1_000)

    assert story(idleness, Ticked(1_200), NotReady(1_300), Ticked(4_000)) == [
        [EmitWatermark(200)],
        [EmitWatermark(300), ReportStirred()],
        [],
    ]
    assert story(idleness, Ready(4_300), TimePasses(4_300), Ticked(4_400)) == [
        [ReportQuiet()],
        [],
        [EmitWatermark(400)],
    ]


def test_time_stands_still_while_a_split_is_held() -> None:
    idleness = reading("a")
    read(idleness, "a", 0, at_ms=0)
    ticks(idleness, 200, 1_000)

    assert idleness.on(SplitHeld("a", 1_100)) == [EmitWatermark(100), ReportStirred()]
    assert story(idleness, Ticked(3_000), SplitReleased("a", 3_000), TimePasses(3_000), Ticked(3_100)) == [
        [],
        [ReportQuiet()],
        [],
        [EmitWatermark(200)],
    ]


def test_a_record_ends_the_silence_and_time_never_goes_back() -> None:
    idleness = reading("a")
    read(idleness, "a", 0, at_ms=0)
    ticks(idleness, 200, 3_000)
    assert idleness.output_ms == 2_000

    assert read(idleness, "a", 1_500, at_ms=3_100) == [EmitWatermark(2_100), ReportStirred(), EmitActive()]
    assert idleness.on(Ticked(3_200)) == []  # 1,500 is behind what was promised: older records count as late
    read(idleness, "a", 2_500, at_ms=3_300)
    assert idleness.on(Ticked(3_400)) == [EmitWatermark(2_500)]


def test_time_passes_for_nobody_while_another_subtask_has_records() -> None:
    quiet, subtasks = Quiet(2), [reading("a"), reading("b")]
    now = 0

    def carry_out(number: int, effects: list[Any]) -> None:
        for effect in effects:
            told: list[Any] = []
            match effect:
                case ReportQuiet():
                    told = quiet.on(SubtaskQuiet(number))
                case ReportStirred():
                    told = quiet.on(SubtaskStirred(number))
            for one in told:
                for other, subtask in enumerate(subtasks):
                    event = TimePasses(now) if isinstance(one, LetTimePass) else TimeHeld(now)
                    carry_out(other, subtask.on(event))

    outputs = []
    for now in range(0, 6_001, INTERVAL):
        if now <= 3_000:
            carry_out(1, read(subtasks[1], "b", now, at_ms=now))
        if now == 0:
            carry_out(0, read(subtasks[0], "a", 0, at_ms=0))
        for number, subtask in enumerate(subtasks):
            carry_out(number, subtask.on(Ticked(now)))
        outputs.append((now, *(subtask.output_ms for subtask in subtasks)))

    assert (3_000, 0, 3_000) in outputs  # a has been idle for two seconds, b has not
    assert (4_000, 0, 3_000) in outputs  # now both are
    assert (6_000, 2_000, 5_000) in outputs


def test_time_that_passes_never_comes_to_its_end() -> None:
    idleness = reading("a")
    read(idleness, "a", MAX_WATERMARK - 500, at_ms=0)

    ticks(idleness, 200, 5_000)

    assert idleness.output_ms == MAX_WATERMARK - 1


# ── against a model that counts milliseconds one by one ──────────────────────────────────────


@settings(max_examples=60, deadline=None)
@given(
    st.lists(
        st.tuples(st.integers(0, 4), st.sampled_from(["ready", "busy", "a", "b", "hold a", "release a", "tick"])),
        max_size=40,
    )
)
def test_a_split_is_idle_exactly_after_so_many_milliseconds_in_which_it_could_have_given_something(
    steps: list[tuple[int, str]],
) -> None:
    idleness = reading("a", "b", idle_after_ms=5, when_idle=WhenIdle.HOLD)
    silent, is_ready, is_held, now = {"a": 0, "b": 0}, True, False, 0
    idle: set[str] = set()
    for pause, step in steps:
        for _ in range(pause):
            now += 1
            if is_ready:
                silent["a"] += not is_held
                silent["b"] += 1
        match step:
            case "ready":
                idleness.on(Ready(now))
                is_ready = True
            case "busy":
                idleness.on(NotReady(now))
                is_ready = False
            case "hold a":
                idleness.on(SplitHeld("a", now))
                is_held = True
            case "release a":
                idleness.on(SplitReleased("a", now))
                is_held = False
            case "tick":
                idleness.on(Ticked(now))
                idle |= {split for split, ms in silent.items() if ms >= 5 and not (is_held and split == "a")}
            case split:
                idleness.on(RecordsRead(split, now))
                silent[split] = 0
                idle.discard(split)
        assert {split for split in silent if idleness.is_idle(split)} == idle
