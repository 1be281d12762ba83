"""Sessions merge as they should, whatever the order of arrival (INV-5.7), and each keeps one state window."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from actorflow.dataflow.lateness import MAX_TIME, MIN_TIME
from actorflow.dataflow.sessions import Added, MergingWindows
from actorflow.dataflow.windows import Window
from actorflow_tests.dataflow import window_oracle as oracle
from actorflow_tests.dataflow.window_oracle import Came, Reached


def opened(sessions: MergingWindows, *spans: tuple[int, int]) -> list[Added | None]:
    return [sessions.add(Window(*span), watermark=MIN_TIME) for span in spans]


def test_a_session_that_grows_keeps_its_state_window() -> None:
    sessions = MergingWindows()

    first, second = opened(sessions, (0, 10), (5, 15))

    assert Added(Window(0, 10), Window(0, 10)) == first
    assert Added(Window(0, 15), Window(0, 10), merged=(Window(0, 10),)) == second


def test_windows_that_touch_are_one_session() -> None:
    sessions = MergingWindows()

    opened(sessions, (0, 10), (10, 20), (21, 31))

    assert [Window(0, 20), Window(21, 31)] == list(sessions)


def test_a_record_between_two_sessions_joins_them_and_says_which_state_goes_where() -> None:
    sessions = MergingWindows()

    *_, joined = opened(sessions, (20, 30), (0, 10), (9, 21))

    assert joined == Added(
        Window(0, 30), Window(0, 10), merged=(Window(0, 10), Window(20, 30)), absorbed=(Window(20, 30),)
    )
    assert Window(0, 10) == sessions.state_window(Window(0, 30))
    assert sessions.state_window(Window(20, 30)) is None


def test_a_record_inside_of_a_session_changes_nothing() -> None:
    sessions = MergingWindows()

    *_, inside = opened(sessions, (0, 30), (5, 15))

    assert Added(Window(0, 30), Window(0, 30)) == inside


def test_a_late_record_begins_no_session_but_belongs_to_one_that_it_meets() -> None:
    sessions = MergingWindows()
    sessions.add(Window(0, 30), watermark=20)

    assert sessions.add(Window(-20, -10), watermark=20) is None
    assert Added(Window(-5, 30), Window(0, 30), merged=(Window(0, 30),)) == sessions.add(Window(-5, 5), watermark=20)
    assert [Window(-5, 30)] == list(sessions)


def test_a_session_that_should_have_been_retired_is_our_mistake() -> None:
    sessions = MergingWindows()
    sessions.add(Window(0, 30), watermark=0)

    with pytest.raises(AssertionError, match="retired"):
        sessions.add(Window(5, 15), watermark=29)


def test_a_session_is_retired_once_with_its_state() -> None:
    sessions = MergingWindows()
    opened(sessions, (0, 10), (5, 15), (40, 50))

    assert Window(0, 10) == sessions.retire(Window(0, 15))
    assert sessions.retire(Window(0, 15)) is None
    assert [Window(40, 50)] == list(sessions)


@given(st.lists(st.tuples(st.integers(-60, 60), st.integers(1, 25)), max_size=25), st.randoms(use_true_random=False))
def test_inv_5_7_any_order_of_arrival_gives_the_same_sessions(
    records: list[tuple[int, int]], chance: random.Random
) -> None:
    sessions, content = MergingWindows(), dict[Window, list[int]]()
    chance.shuffle(records)
    for number, (start, gap) in enumerate(records):
        added = sessions.add(Window(start, start + gap), watermark=MIN_TIME)
        assert added is not None
        for window in added.absorbed:
            content.setdefault(added.state_window, []).extend(content.pop(window))
        content.setdefault(added.state_window, []).append(number)
        sessions.check()
        if chance.random() < 0.2:
            sessions = MergingWindows.decode(sessions.encode())

    # The sessions are what covers the records' own windows, and each holds the records whose own it covers.
    covered = list[tuple[int, int]]()
    for start, end in sorted((start, start + gap) for start, gap in records):
        if covered and start <= covered[-1][1]:
            covered[-1] = (covered[-1][0], max(end, covered[-1][1]))
        else:
            covered.append((start, end))
    assert covered == list(sessions)
    for window in sessions:
        state_window = sessions.state_window(window)
        assert state_window is not None
        held = sorted(number for number, (start, _) in enumerate(records) if window.start <= start < window.end)
        assert held == sorted(content.pop(state_window))
    assert not content


@given(st.lists(st.integers(-100, 100), max_size=40), st.integers(1, 20))
def test_of_one_gap_they_are_the_sessions_of_the_batch(times: list[int], gap: int) -> None:
    sessions = MergingWindows()
    opened(sessions, *((time, time + gap) for time in times))

    assert oracle.batch_sessions(times, gap) == list(sessions)


def play(seen: list[Came | Reached], gap: int, allowed: int) -> tuple[list[tuple[object, ...]], list[Came]]:
    """One key's sessions, fired by event time: what a window operator does with the answers, in a few lines."""
    sessions, watermark = MergingWindows(), MIN_TIME
    content: dict[Window, list[int]] = {}
    waiting: set[Window] = set()
    fired: list[tuple[object, ...]] = []
    late: list[Came] = []
    for event in seen:
        if isinstance(event, Reached):
            watermark = max(watermark, event.time)
            for window in sorted(waiting, key=lambda window: window.end):
                if window.last <= watermark:
                    waiting.discard(window)
                    fired.append((*window, tuple(content[sessions.state_window(window)])))  # type: ignore[index]
            for window in sessions:
                if min(window.last + allowed, MAX_TIME) <= watermark:
                    content.pop(sessions.retire(window))  # type: ignore[arg-type]
            sessions = MergingWindows.decode(sessions.encode())
            continue
        own = Window(event.timestamp, event.timestamp + gap)
        added = sessions.add(own, allowed_ms=allowed, watermark=watermark)
        if added is None:
            late.append(event)
            continue
        waiting.difference_update(added.merged)
        held = content.setdefault(added.state_window, [])
        for window in added.absorbed:
            held += content.pop(window)
        held.append(event.value)
        if added.window.last <= watermark:
            waiting.discard(added.window)
            fired.append((*added.window, tuple(held)))
        else:
            waiting.add(added.window)
    assert not sessions
    assert not content
    return fired, late


@pytest.mark.parametrize("allowed", [0, 9, 100])
def test_inv_5_7_sessions_with_late_records_give_what_the_oracle_gives(allowed: int) -> None:
    for seed in range(300):
        chance = random.Random(f"{allowed} {seed}")
        gap, now, seen = chance.choice([1, 3, 10]), 0, list[Came | Reached]()
        for number in range(chance.choice([3, 30, 80])):
            now += chance.choice([0, 1, 1, 2, gap, 2 * gap])
            seen.append(Came("key", now - chance.choice([0, 0, 1, gap, chance.randrange(6 * gap)]), number))
            if chance.random() < 0.3:
                seen.append(Reached(now - chance.choice([1, gap])))
        seen.append(Reached(MAX_TIME))
        expected = oracle.expected(oracle.session(gap), seen, allowed=allowed, order=lambda key: key)

        fired, late = play(seen, gap, allowed)

        assert [(one.start, one.end, one.values) for one in expected.fired] == fired, seed
        assert [one.value for one in expected.late] == [one.value for one in late], seed


def test_r082_a_merged_session_whose_end_has_passed_fires_once() -> None:
    seen: list[Came | Reached] = [Came("a", 0, 1), Reached(25), Came("a", 9, 2), Reached(MAX_TIME)]

    fired, late = play(seen, 10, 100)

    assert [(0, 10, (1,)), (0, 19, (1, 2))] == fired
    assert [] == late
