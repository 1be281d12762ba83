"""Which windows hold a record, and when is it late: semantics 5.7."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from actorflow.dataflow.calendar import calendar
from actorflow.dataflow.lateness import (
    MAX_TIME,
    MIN_TIME,
    cleanup_time,
    is_complete,
    is_record_late,
    is_window_late,
    late_by_ms,
)
from actorflow.dataflow.windows import (
    Sliding,
    TimeDomain,
    Window,
    WindowAssigner,
    global_window,
    session,
    sliding,
    tumbling,
)
from actorflow.errors import InvalidJob, InvalidValue
from actorflow_tests.dataflow import window_oracle as oracle

TIMES = st.integers(-(2**53), 2**53) | st.integers(-200, 200)


def ms(number: int) -> timedelta:
    return timedelta(milliseconds=number)


def spans(assigner: WindowAssigner, timestamp: int, value: Any = None) -> list[tuple[int, int]]:
    return [tuple(window) for window in assigner.windows(timestamp, value)]  # type: ignore[misc]


def test_r077_records_before_1970_are_in_the_window_that_holds_them() -> None:
    seconds = 1_000
    plain, moved = tumbling(ms(10_000)), tumbling(ms(10_000), offset=ms(5_000))

    assert [(-10, 0), (-10, 0), (-20, -10), (0, 10)] == [
        (start // seconds, end // seconds) for time in (-1, -10, -11, 0) for start, end in spans(plain, time * seconds)
    ]
    assert [(-5, 5), (-15, -5), (-15, -5), (-5, 5)] == [
        (start // seconds, end // seconds) for time in (-1, -10, -11, 0) for start, end in spans(moved, time * seconds)
    ]


def test_r079_sliding_windows_far_from_the_point_they_are_counted_from() -> None:
    windows = sliding(ms(1_600), ms(700), offset=datetime(2000, 1, 1, tzinfo=UTC) - datetime(1970, 1, 1, tzinfo=UTC))

    assert [1_077, 377] == [1709315512577 - start for start, _ in spans(windows, 1709315512577)]


def test_r080_sliding_windows_hold_their_record() -> None:
    assert [(5, 15), (10, 20)] == spans(sliding(ms(10), ms(5)), 12)


def test_windows_by_the_clock_have_the_same_edges() -> None:
    windows = tumbling(ms(10), by="processing")

    assert TimeDomain.PROCESSING is windows.by
    assert windows.windows(5) == tumbling(ms(10)).windows(5)


@given(st.integers(1, 40), st.integers(1, 40), st.integers(-50, 50), TIMES)
def test_sliding_windows_are_all_that_hold_the_record_and_no_other(
    size: int, slide: int, offset: int, time: int
) -> None:
    windows = sliding(ms(size), ms(slide), offset=ms(offset))

    assert oracle.sliding(size, slide, offset).spans(time, None) == spans(windows, time)


@given(st.integers(1, 40), st.integers(1, 40), st.integers(0, 50), TIMES)
def test_a_record_in_a_slice_is_in_the_windows_that_hold_the_slice(
    size: int, slide: int, offset: int, time: int
) -> None:
    windows = sliding(ms(size), ms(slide), offset=ms(offset))
    start = windows.slice_of(time)
    end = windows.slice_end(start)
    inside = windows.windows(time)

    assert start <= time < end
    assert inside == windows.windows(start) == windows.windows(end - 1)
    assert end == windows.slice_of(end)
    assert end - start <= slide
    if inside:
        assert (inside[0].end, inside[-1].end) == (windows.first_end(start), windows.last_end(start))
    until = windows.end_up_to(time)
    assert until <= time < until + slide
    assert 0 == (until - offset - size) % slide


@given(st.lists(st.integers(-60, 60), max_size=12), st.sampled_from([(10, 10), (10, 3), (7, 4), (3, 5)]))
def test_a_batch_gets_what_each_of_its_records_gets(times: list[int], shape: tuple[int, int]) -> None:
    windows = sliding(ms(shape[0]), ms(shape[1]), offset=ms(2))
    whole = tumbling(ms(shape[0]), offset=ms(2))

    assert [windows.slice_of(time) for time in times] == windows.slices_of(times)
    assert [windows.windows(time) for time in times] == windows.windows_of(times, times)
    assert [whole.windows(time) for time in times] == whole.windows_of(times, times)
    assert [whole.window(time).start for time in times] == whole.starts(times)


def test_a_batch_within_one_window_is_not_looked_at_one_by_one() -> None:
    (one, *others) = tumbling(ms(10)).windows_of([3, 1, 9], [None] * 3)

    assert all(other is one for other in others)


def test_a_slide_has_one_slice_or_two_however_odd_the_size() -> None:
    windows = Sliding(1_601, 700)

    assert [0, 201, 700, 901] == sorted({windows.slice_of(time) for time in range(1_400)})


def test_a_record_between_windows_that_slide_by_more_than_their_size_is_in_none() -> None:
    windows = sliding(ms(3), ms(5))

    assert [[(0, 3)], [], [], [(5, 8)]] == [spans(windows, time) for time in (2, 3, 4, 5)]


def test_a_session_begins_with_its_record_and_ends_a_gap_later() -> None:
    assert [(7, 17)] == spans(session(ms(10)), 7)
    assert [(7, 12)] == spans(session(ms), 7, 5)


@pytest.mark.parametrize("gap", [timedelta(0), ms(-5), 5, None, timedelta(microseconds=1_500)])
def test_a_records_gap_that_is_none_is_refused_at_the_record(gap: Any) -> None:
    with pytest.raises(InvalidValue, match="gap of a record"):
        session(lambda _: gap).windows(0, "a")


def test_the_global_window_holds_everything_and_is_complete_at_the_end_of_time() -> None:
    (window,) = global_window().windows(-5)

    assert [window] == global_window().windows(2**53)
    assert MAX_TIME == window.last
    assert not is_complete(window.last, MAX_TIME - 1)


@pytest.mark.parametrize(
    "wrong",
    [
        lambda: tumbling(timedelta(0)),
        lambda: tumbling(ms(-1)),
        lambda: tumbling(timedelta(microseconds=1_500)),
        lambda: tumbling(10),  # type: ignore[arg-type]
        lambda: tumbling(ms(10), by="wall"),
        lambda: tumbling(ms(10), offset=timedelta(microseconds=1)),
        lambda: sliding(ms(10), timedelta(0)),
        lambda: sliding(timedelta(0), ms(10)),
        lambda: session(timedelta(0)),
        lambda: session("10s"),  # type: ignore[arg-type]
        lambda: session(lambda: ms(5)),  # type: ignore[misc, arg-type]
    ],
)
def test_windows_that_make_no_sense_are_refused_when_the_job_is_built(wrong: Any) -> None:
    with pytest.raises(InvalidJob):
        wrong()


def test_an_async_gap_is_refused() -> None:
    async def gap(_value: Any) -> timedelta:
        return ms(5)

    with pytest.raises(InvalidJob, match="plain function"):
        session(gap)  # type: ignore[arg-type]


def test_assigners_are_values() -> None:
    assert tumbling(ms(10), offset=ms(25)) == tumbling(ms(10), offset=ms(-5))
    assert {session(ms(5)): 1} == {session(ms(5)): 1}
    assert (0, 10) == Window(0, 10)
    assert datetime(1970, 1, 1, tzinfo=UTC) == Window(0, 10).starts_at


@pytest.mark.parametrize(
    ("unit", "count"), [("day", 1), ("week", 1), ("month", 1), ("month", 3), ("year", 1), ("day", 5)]
)
@pytest.mark.parametrize(
    "zone", ["Europe/Berlin", "America/Havana", "Asia/Beirut", "Pacific/Apia", "Australia/Lord_Howe"]
)
def test_calendar_windows_are_those_of_the_oracle(unit: str, count: int, zone: str) -> None:
    windows, naive = calendar(unit, count=count, zone=zone), oracle.calendar(unit, zone, count)
    first = int(datetime(2011, 12, 20, 7, 20, tzinfo=ZoneInfo(zone)).timestamp()) * 1_000
    for step in range(0, 300, 3):
        time = first + step * 3_600_000 * 7
        assert naive.spans(time, None) == spans(windows, time)


# ── lateness ──


@pytest.mark.parametrize(
    ("watermark", "complete", "late_at_once", "late_after_5"),
    [
        (8, False, False, False),
        (9, True, True, False),
        (13, True, True, False),
        (14, True, True, True),
    ],
)
def test_a_window_of_ten_is_complete_at_9_and_late_after_what_is_allowed(
    watermark: int, complete: bool, late_at_once: bool, late_after_5: bool
) -> None:
    last = Window(0, 10).last

    assert complete is is_complete(last, watermark)
    assert late_at_once is is_window_late(last, 0, watermark)
    assert late_after_5 is is_window_late(last, 5, watermark)
    assert 14 == cleanup_time(last, 5)


def test_lateness_past_the_end_of_time_is_the_end_of_time() -> None:
    assert MAX_TIME == cleanup_time(MAX_TIME - 3, 5)
    assert not is_window_late(MAX_TIME - 3, 5, MAX_TIME - 1)
    assert is_window_late(MAX_TIME - 3, 5, MAX_TIME)


@pytest.mark.parametrize(
    ("lasts", "watermark", "late"),
    [
        ([9, 14], 9, False),  # the second window is still open
        ([9, 14], 14, True),
        ([9], 20, True),
        ([], 5, True),  # in no window, and behind the watermark
        ([], 4, False),  # in no window, and in time
        ([9], MIN_TIME, False),
    ],
)
def test_a_record_is_late_when_all_its_windows_are_and_it_is_itself(
    lasts: list[int], watermark: int, late: bool
) -> None:
    assert late is is_record_late(5, lasts, 0, watermark)


def test_r085_how_late_is_never_negative_for_a_late_record() -> None:
    assert 1 == late_by_ms(50, 50)
    assert 48_000 == late_by_ms(50_000, 97_999)
