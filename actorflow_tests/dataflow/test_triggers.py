"""Triggers, played on a window with timers; evictors."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

import pytest

from actorflow.dataflow.evictors import keep_last, keep_near, keep_newest
from actorflow.dataflow.lateness import MAX_TIME, MIN_TIME
from actorflow.dataflow.triggers import (
    Trigger,
    TriggerContext,
    Verdict,
    by_delta,
    by_event_time,
    by_processing_time,
    check_trigger,
    default_trigger,
    every,
    every_count,
    never,
    purging,
)
from actorflow.dataflow.windows import Window, global_window, session, sliding, tumbling
from actorflow.errors import InvalidJob

ms = timedelta(milliseconds=1)
FIRE, CONTINUE = Verdict.FIRE, Verdict.CONTINUE


TEN = Window(0, 10)


@dataclass
class Play:
    """One window, its clock, its timers, and what its trigger remembers."""

    trigger: Trigger
    window: Window = TEN
    watermark: int = MIN_TIME
    now: int = 0
    state: dict[str, Any] = field(default_factory=dict)
    event_timers: set[int] = field(default_factory=set)
    processing_timers: set[int] = field(default_factory=set)

    def set_event_timer(self, time: int) -> None:
        self.event_timers.add(time)

    def set_processing_timer(self, time: int) -> None:
        self.processing_timers.add(time)

    def delete_event_timer(self, time: int) -> None:
        self.event_timers.discard(time)

    def delete_processing_timer(self, time: int) -> None:
        self.processing_timers.discard(time)

    def record(self, timestamp: int, value: Any = None) -> Verdict:
        return self.trigger.on_record(value, timestamp, self)

    def reach(self, watermark: int) -> list[int]:
        """Bring event time there, and return at which timers the window gave its result."""
        self.watermark, fired = watermark, []
        while due := sorted(time for time in self.event_timers if time <= watermark):
            self.event_timers.remove(due[0])
            if self.trigger.on_event_time(due[0], self).fires:
                fired.append(due[0])
        return fired

    def wait(self, now: int) -> list[int]:
        self.now, fired = now, []
        while due := sorted(time for time in self.processing_timers if time <= now):
            self.processing_timers.remove(due[0])
            if self.trigger.on_processing_time(due[0], self).fires:
                fired.append(due[0])
        return fired

    def merge(self, other: Play) -> Play:
        """Two windows become one, as a window operator does it."""
        first, second = sorted((self, other), key=lambda play: play.window)
        merged = Play(self.trigger, Window(first.window.start, max(first.window.end, second.window.end)))
        merged.watermark, merged.now = self.watermark, self.now
        self.trigger.on_merge([first.state, second.state], merged)
        for gone in (first, second):
            gone.trigger.clear(gone)
            assert not gone.event_timers | gone.processing_timers
        return merged


def test_by_event_time_fires_when_the_window_is_complete_and_again_for_what_comes_after() -> None:
    play = Play(by_event_time())

    assert CONTINUE is play.record(5)
    assert [] == play.reach(8)
    assert [9] == play.reach(9)
    assert FIRE is play.record(6)
    assert [] == play.reach(100)


def test_by_processing_time_fires_when_the_clock_has_passed_the_window() -> None:
    play = Play(by_processing_time())

    assert CONTINUE is play.record(5)
    assert [] == play.wait(8)
    assert [9] == play.wait(60)


def test_every_count_begins_anew_after_it_fired() -> None:
    play = Play(every_count(3))

    assert [CONTINUE, CONTINUE, FIRE] * 2 == [play.record(0) for _ in range(6)]
    assert {} == play.state


def test_counts_of_windows_that_merge_add_up_and_the_record_that_follows_fires() -> None:
    one, other = Play(every_count(5)), Play(every_count(5), Window(8, 18))
    for play in (one, one, other, other):
        assert CONTINUE is play.record(0)

    assert FIRE is one.merge(other).record(9)


def test_by_delta_fires_when_a_value_is_far_from_the_one_that_fired_last() -> None:
    play = Play(by_delta(5, lambda last, value: value - last))

    assert [CONTINUE, CONTINUE, FIRE, CONTINUE, FIRE] == [play.record(0, value) for value in (0, 5, 6, 11, 12)]


def test_every_fires_at_ticks_and_at_the_end_of_the_window() -> None:
    play = Play(every(3 * ms))

    assert CONTINUE is play.record(1)
    assert [3] == play.reach(4)
    assert [6] == play.reach(6)
    assert [9] == play.reach(50)
    assert FIRE is play.record(2)


def test_r091_one_firing_stands_for_all_ticks_that_time_leaps_over() -> None:
    play = Play(every(3 * ms), Window(0, 10_000))
    play.record(1)

    assert [3] == play.reach(5_000)
    assert {9_999, 5_001} == play.event_timers
    assert [5_001] == play.reach(5_001)


def test_ticks_before_1970_are_multiples_of_the_interval_too() -> None:
    play = Play(every(3 * ms), Window(-10, 0))
    play.record(-8)

    assert {-1, -6} == play.event_timers


def test_every_by_the_clock_goes_on_while_the_window_lives() -> None:
    play = Play(every(3 * ms, by="processing"))
    play.now = 1
    play.record(5)
    play.record(6)

    assert [3] == play.wait(3)
    assert [6] == play.wait(100)
    assert [102] == play.wait(102)
    play.trigger.clear(play)
    assert set() == play.processing_timers


def test_r083_ticks_go_on_when_windows_merge() -> None:
    one, other = (Play(every(3 * ms, by="processing"), window) for window in (Window(0, 10), Window(9, 19)))
    one.record(0)
    other.now = 2
    other.record(9)

    merged = one.merge(other)

    assert [3] == merged.wait(3)
    assert [6] == merged.wait(6)


def test_event_ticks_of_windows_that_merge_go_on_with_the_earliest() -> None:
    one, other = (Play(every(3 * ms), window) for window in (Window(0, 10), Window(9, 19)))
    one.record(0)
    other.record(9)

    merged = one.merge(other)

    assert [3, 6, 9, 12, 15, 18] == [time for watermark in range(30) for time in merged.reach(watermark)]


def test_r082_a_merged_window_that_is_complete_waits_for_no_timer() -> None:
    one, other = Play(by_event_time(), Window(0, 10), 25), Play(by_event_time(), Window(9, 19), 25)

    merged = one.merge(other)

    assert set() == merged.event_timers
    assert FIRE is merged.record(9)


@pytest.mark.parametrize("trigger", [by_event_time(), by_processing_time(), every_count(9), every(3 * ms), never()])
def test_what_is_cleared_waits_for_nothing(trigger: Trigger) -> None:
    play = Play(trigger)
    play.record(5)
    trigger.clear(play)

    assert set() == play.event_timers | play.processing_timers


def test_purging_clears_what_fires_and_nothing_else() -> None:
    play = Play(purging(every_count(2)))

    assert [CONTINUE, Verdict.FIRE_AND_PURGE] == [play.record(0), play.record(0)]
    assert CONTINUE is Play(purging(by_event_time())).record(3)


@pytest.mark.parametrize(
    ("verdict", "fires", "purges"),
    [
        (Verdict.CONTINUE, False, False),
        (Verdict.FIRE, True, False),
        (Verdict.PURGE, False, True),
        (Verdict.FIRE_AND_PURGE, True, True),
    ],
)
def test_a_verdict_says_what_becomes_of_the_window(verdict: Verdict, fires: bool, purges: bool) -> None:
    assert (fires, purges) == (verdict.fires, verdict.purges)


def test_an_own_trigger_needs_a_rule_for_records_and_may_leave_the_rest() -> None:
    class OnWord(Trigger):
        merges = False

        def on_record(self, value: Any, timestamp: int, context: TriggerContext) -> Verdict:
            return FIRE if value == "now" else CONTINUE

    play = Play(OnWord())

    assert [CONTINUE, FIRE] == [play.record(1, "wait"), play.record(1, "now")]
    assert CONTINUE is play.trigger.on_event_time(5, play)
    with pytest.raises(InvalidJob, match="merge"):
        play.trigger.on_merge([], play)


def test_the_end_of_the_window_decides_where_nobody_said_it() -> None:
    assert by_event_time() == default_trigger(tumbling(5 * ms)) == default_trigger(session(5 * ms))
    assert by_processing_time() == default_trigger(sliding(5 * ms, ms, by="processing"))
    assert never() == default_trigger(global_window())


def test_the_global_window_by_event_time_fires_at_the_end_of_input() -> None:
    play = Play(by_event_time(), global_window().window(0))
    play.record(5)

    assert [] == play.reach(2**60)
    assert [MAX_TIME] == play.reach(MAX_TIME)


@pytest.mark.parametrize(
    "trigger", [by_delta(5, lambda a, b: b - a), purging(by_delta(5, lambda a, b: b - a)), 5, every]
)
def test_a_trigger_that_makes_no_sense_with_sessions_is_refused(trigger: Any) -> None:
    with pytest.raises(InvalidJob, match="visits"):
        check_trigger("visits", session(5 * ms), trigger)


def test_a_trigger_that_makes_sense_is_taken() -> None:
    check_trigger("visits", tumbling(5 * ms), by_delta(5, lambda a, b: b - a))
    check_trigger("visits", session(5 * ms), purging(every_count(5)))


@pytest.mark.parametrize("wrong", [lambda: every_count(0), lambda: every_count(True), lambda: every(timedelta(0))])
def test_a_trigger_of_nothing_is_refused(wrong: Any) -> None:
    with pytest.raises(InvalidJob):
        wrong()


# ── evictors ──

ELEMENTS = [(5, "a"), (1, "b"), (9, "c"), (6, "d")]


def test_keep_last_keeps_the_last_that_came() -> None:
    evictor = keep_last(2)

    assert ELEMENTS[2:] == evictor.before(ELEMENTS, Window(0, 10))
    assert ELEMENTS == evictor.after(ELEMENTS, Window(0, 10))
    assert ELEMENTS[:1] == evictor.before(ELEMENTS[:1], Window(0, 10))


def test_keep_newest_keeps_what_is_less_than_a_span_before_the_latest() -> None:
    assert [(9, "c"), (6, "d")] == keep_newest(4 * ms).before(ELEMENTS, Window(0, 10))
    assert [] == keep_newest(4 * ms).before([], Window(0, 10))


def test_keep_near_keeps_what_is_near_the_last_and_that_one_always() -> None:
    evictor = keep_near(2, lambda value, last: abs(ord(value) - ord(last)), after=True)

    assert ELEMENTS == evictor.before(ELEMENTS, Window(0, 10))
    assert [(9, "c"), (6, "d")] == evictor.after(ELEMENTS, Window(0, 10))
    assert [(6, "d")] == keep_near(0, lambda value, last: 0).before(ELEMENTS, Window(0, 10))


def test_evictors_of_nothing_are_refused() -> None:
    with pytest.raises(InvalidJob):
        keep_last(0)
    with pytest.raises(InvalidJob):
        keep_newest(timedelta(0))
