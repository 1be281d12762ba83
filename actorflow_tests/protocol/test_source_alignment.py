from __future__ import annotations

from collections.abc import Iterable
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from actorflow.model.event_time import MAX_WATERMARK, MIN_WATERMARK
from actorflow.protocol.source_alignment import (
    Announce,
    Announced,
    Bound,
    DriftGroup,
    DriftHold,
    Free,
    Holding,
    HoldSplit,
    ReaderJoined,
    ReaderLeft,
    ReleaseSplit,
    Reported,
    SplitEnded,
    SplitMoved,
    Unbound,
    UpdateDue,
)
from actorflow_tests.protocol.walking import Edges, walk


def group(**drifts: int) -> DriftGroup[str]:
    made: DriftGroup[str] = DriftGroup()
    for reader, drift_ms in drifts.items():
        made.on(ReaderJoined(reader, drift_ms))
    return made


def limits(made: DriftGroup[str]) -> dict[str, int]:
    return {announce.reader: announce.limit_ms for announce in made.on(UpdateDue())}


def story(machine: Any, *events: Any) -> list[list[Any]]:
    return [machine.on(event) for event in events]


# ── the small worlds ─────────────────────────────────────────────────────────────────────────


def what_happens_to_a_group(made: DriftGroup[str]) -> Iterable[Any]:
    for reader in ("a", "b"):
        if reader not in made.drifts:
            yield ReaderJoined(reader, 1)
        yield from (Reported(reader, time_ms) for time_ms in (MIN_WATERMARK, 1, 3, MAX_WATERMARK))
        yield ReaderLeft(reader)
    yield UpdateDue()


def nobody_slow_is_left_behind(made: DriftGroup[str], _: Any, effects: list[Announce[str]]) -> None:
    for announce in effects:
        slowest = min((time_ms for time_ms in made.reports.values() if time_ms > MIN_WATERMARK), default=MAX_WATERMARK)
        assert announce.limit_ms >= slowest, "the slowest is never held by what is true of now"
        assert announce.limit_ms <= MAX_WATERMARK


def test_the_table_of_a_group_tells_every_edge_of_a_small_world_and_no_other() -> None:
    made: DriftGroup[str] = DriftGroup()
    walk(made, what_happens_to_a_group, depth=6, watch=nobody_slow_is_left_behind).compare(DriftGroup)


def what_happens_to_splits(_: DriftHold) -> Iterable[Any]:
    for split in ("a", "b"):
        yield from (SplitMoved(split, time_ms) for time_ms in (2, 3, 4))
        yield SplitEnded(split)
    yield from (Announced(limit_ms) for limit_ms in (2, 3, MAX_WATERMARK))


def test_the_table_of_a_hold_tells_every_edge_of_a_small_world_and_no_other() -> None:
    edges = Edges()
    for intervals in (0, 1, 2):
        walk(DriftHold(intervals=intervals), what_happens_to_splits, depth=5, edges=edges)

    edges.compare(DriftHold)


# ── a group ──────────────────────────────────────────────────────────────────────────────────


def test_every_reader_may_be_ahead_of_the_slowest_by_its_own_drift() -> None:
    made = group(left=10, right=25)
    story(made, Reported("left", 1_000), Reported("right", 400))

    assert limits(made) == {"left": 410, "right": 425}
    made.on(Reported("right", 600))
    assert limits(made) == {"left": 610, "right": 625}


def test_r088_a_reader_without_splits_is_idle_and_holds_nobody_back() -> None:
    made = group(a=10, b=10, empty=10)
    story(made, Reported("a", 100), Reported("b", 90), Reported("empty", MAX_WATERMARK))

    assert limits(made) == {"a": 100, "b": 100, "empty": 100}


def test_a_reader_without_a_watermark_yet_is_not_counted() -> None:
    made = group(a=10, new=10)
    story(made, Reported("a", 100), Reported("new", MIN_WATERMARK))

    assert limits(made) == {"a": 110, "new": 110}


def test_where_all_are_idle_nobody_is_held() -> None:
    made = group(a=10, b=10)
    story(made, Reported("a", MAX_WATERMARK), Reported("b", MAX_WATERMARK))

    assert made.phase == Unbound()
    assert limits(made) == {"a": MAX_WATERMARK, "b": MAX_WATERMARK}


def test_a_limit_that_would_lie_beyond_the_end_of_time_is_the_end_of_time() -> None:
    made = group(a=10)
    made.on(Reported("a", MAX_WATERMARK - 3))

    assert made.phase == Bound(MAX_WATERMARK - 3)
    assert limits(made) == {"a": MAX_WATERMARK}


def test_a_reader_that_left_is_not_waited_for_and_its_last_report_changes_nothing() -> None:
    made = group(a=10, slow=10)
    story(made, Reported("a", 100), Reported("slow", 5), ReaderLeft("slow"), Reported("slow", 6), ReaderLeft("slow"))

    assert limits(made) == {"a": 110}


def test_a_reader_that_wakes_up_behind_is_waited_for() -> None:
    made = group(a=10, b=10)
    story(made, Reported("a", 100), Reported("b", MAX_WATERMARK))
    assert limits(made)["a"] == 110

    made.on(Reported("b", 40))

    assert limits(made)["a"] == 50


# ── a reader ─────────────────────────────────────────────────────────────────────────────────


def test_a_split_that_is_too_far_ahead_waits_until_the_limit_has_come_to_it() -> None:
    hold = DriftHold(intervals=0)

    assert story(hold, SplitMoved("a", 100), Announced(100), SplitMoved("a", 101)) == [[], [], [HoldSplit("a")]]
    assert story(hold, Announced(100), Announced(101)) == [[], [ReleaseSplit("a")]]
    assert hold.phase == Free()


def test_only_the_splits_that_are_ahead_wait() -> None:
    hold = DriftHold(intervals=0)
    story(hold, SplitMoved("a", 300), SplitMoved("b", 90), SplitMoved("c", 200))

    assert hold.on(Announced(100)) == [HoldSplit("a"), HoldSplit("c")]
    assert hold.on(Announced(250)) == [ReleaseSplit("c")]
    assert hold.phase == Holding(("a",))


def test_a_pause_begins_so_many_updates_later() -> None:
    hold = DriftHold(intervals=3)
    story(hold, SplitMoved("a", 50), Announced(100), Announced(100), Announced(100), SplitMoved("a", 500))

    assert story(hold, Announced(100), Announced(100), Announced(100)) == [[], [], [HoldSplit("a")]]


def test_a_new_split_is_not_judged_before_so_much_is_known_of_it() -> None:
    hold = DriftHold(intervals=2)
    story(hold, SplitMoved("a", 500))

    assert story(hold, Announced(100), Announced(100)) == [[], [HoldSplit("a")]]


def test_a_split_that_ended_while_it_waited_needs_no_release() -> None:
    hold = DriftHold(intervals=0)
    story(hold, SplitMoved("a", 500), SplitMoved("b", 500), Announced(100))

    assert story(hold, SplitEnded("a"), SplitEnded("b"), SplitEnded("b"), Announced(MAX_WATERMARK)) == [[], [], [], []]


def test_a_drift_below_nothing_is_a_mistake_of_ours() -> None:
    with pytest.raises(AssertionError, match="behind the slowest"):
        group(a=-1)


# ── both together ────────────────────────────────────────────────────────────────────────────


class Readers:
    """Some readers of one group, that move by chance or as told, each at its own speed, unless they are held."""

    def __init__(self, speeds: list[int], *, drift_ms: int, intervals: int) -> None:
        self.speeds = speeds
        self.times = [0] * len(speeds)
        self.holds = [DriftHold(intervals=intervals) for _ in speeds]
        self.group: DriftGroup[int] = DriftGroup()
        for reader in range(len(speeds)):
            self.group.on(ReaderJoined(reader, drift_ms))

    def move(self, reader: int, time_ms: int) -> None:
        if isinstance(self.holds[reader].phase, Free):
            self.times[reader] += time_ms
            self.holds[reader].on(SplitMoved("0", self.times[reader]))

    def update(self, lag: list[int]) -> None:
        for announce in self.group.on(UpdateDue()):
            self.holds[announce.reader].on(Announced(announce.limit_ms))
        for reader, time_ms in enumerate(lag):
            self.group.on(Reported(reader, time_ms))


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 2**32), st.integers(0, 3), st.integers(0, 50))
def test_everybody_goes_on_for_ever_and_nobody_runs_away(seed: int, intervals: int, drift_ms: int) -> None:
    random = Random(seed)
    readers = Readers([random.randint(1, 40) for _ in range(3)], drift_ms=drift_ms, intervals=intervals)
    fastest = max(readers.speeds)
    for _ in range(200):
        before = list(readers.times)
        for reader, speed in enumerate(readers.speeds):
            readers.move(reader, random.randint(0, speed))
        readers.update(before)
        ahead = max(readers.times) - min(readers.times)
        # One update until the report is announced, one until it is obeyed, and those that a pause is put off by.
        assert ahead <= drift_ms + fastest * (intervals + 3), f"{readers.times} drift"
    assert min(readers.times) >= 200 * min(readers.speeds) // 20, f"{readers.times} stand still"


def test_without_old_samples_a_group_that_catches_up_is_as_fast_as_its_drift_and_with_them_as_its_readers() -> None:
    """A drift of 10, two readers that could do 100 in each interval."""
    reached = []
    for intervals in (0, 3):
        readers = Readers([100, 100], drift_ms=10, intervals=intervals)
        for _ in range(100):
            before = list(readers.times)
            for _ in range(100):  # a hundred small steps to an interval
                readers.move(0, 1)
                readers.move(1, 1)
            readers.update(before)
        reached.append(min(readers.times))

    slow, fast = reached
    assert slow < 2_000
    assert fast == 10_000
