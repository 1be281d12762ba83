from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from actorflow.dataflow.event_time import (
    MaximumDrift,
    WatermarkGenerator,
    WatermarkStrategy,
    bounded_out_of_orderness,
    monotonous_timestamps,
    punctuated,
    watermarks_by,
)
from actorflow.errors import InvalidJob
from actorflow.model.event_time import MAX_TIMESTAMP, MIN_TIMESTAMP, WhenIdle

Event = tuple[str, int]


def time_of(event: Event) -> int:
    return event[1]


def watermarks(strategy: WatermarkStrategy[Event], *batches: list[int]) -> list[Any]:
    """What the strategy's generator says behind each batch of timestamps."""
    generator = strategy.generator()
    said = []
    for times in batches:
        generator.on_batch([("a", time_ms) for time_ms in times], times, max(times))
        said.append(generator.current())
    return said


def test_monotonous_timestamps_are_one_millisecond_ahead_of_their_watermark() -> None:
    assert watermarks(monotonous_timestamps(time_of), [10], [10, 11], [30, 40]) == [9, 10, 39]


def test_bounded_disorder_keeps_the_watermark_as_far_behind_the_largest() -> None:
    strategy = bounded_out_of_orderness(time_of, at_most=timedelta(seconds=1))

    assert watermarks(strategy, [5_000, 4_200], [4_100], [-7, 6_000]) == [3_999, 3_999, 4_999]


def test_a_bound_that_is_no_whole_number_of_milliseconds_is_rounded_up_so_that_nothing_is_late_by_it() -> None:
    assert watermarks(bounded_out_of_orderness(time_of, at_most=timedelta(microseconds=1_001)), [100]) == [97]


def test_before_1970_disorder_is_the_same() -> None:
    assert watermarks(bounded_out_of_orderness(time_of, at_most=timedelta(milliseconds=5)), [-10], [-3]) == [-16, -9]


def test_there_is_no_watermark_before_the_first_record_and_none_below_all_time() -> None:
    strategy = bounded_out_of_orderness(time_of, at_most=timedelta(milliseconds=5))

    assert strategy.generator().current() is None
    assert watermarks(strategy, [MIN_TIMESTAMP + 5], [MIN_TIMESTAMP + 6], [MAX_TIMESTAMP]) == [
        None,
        MIN_TIMESTAMP,
        MAX_TIMESTAMP - 6,
    ]


def test_marks_in_the_stream_are_its_watermarks() -> None:
    strategy = punctuated(time_of, lambda event, time_ms: time_ms - 1 if event[0] == "mark" else None)
    generator = strategy.generator()

    generator.on_batch([("a", 5), ("mark", 9), ("b", 7)], [5, 9, 7], 9)
    assert generator.current() == 8
    generator.on_batch([("mark", 4)], [4], 4)
    assert generator.current() == 8
    assert generator.at_once
    assert not monotonous_timestamps(time_of).generator().at_once


def test_a_mark_may_be_a_datetime() -> None:
    strategy = punctuated(time_of, lambda event, _: datetime(1970, 1, 1, 0, 0, 1, tzinfo=UTC))

    assert watermarks(strategy, [5]) == [1_000]


class EveryOther(WatermarkGenerator[Event]):
    def __init__(self) -> None:
        self.batches = 0

    def on_batch(self, records: list[Event], times: list[int], largest_ms: int) -> None:
        self.batches += 1

    def current(self) -> int | None:
        return self.batches * 100 if self.batches % 2 == 0 else None


def test_a_generator_of_ones_own_sees_whole_batches_and_each_split_has_one() -> None:
    strategy = watermarks_by(EveryOther, time_of)

    assert watermarks(strategy, [1], [2], [3], [4]) == [None, 200, None, 400]
    assert strategy.generator() is not strategy.generator()


def test_what_a_strategy_says_is_in_milliseconds_for_machines() -> None:
    strategy = monotonous_timestamps(
        time_of,
        idle_after=timedelta(seconds=5),
        when_idle="hold",
        alignment=MaximumDrift("g", timedelta(minutes=1)),
        interval=timedelta(microseconds=1_500),
    )

    assert (strategy.idle_after_ms, strategy.when_idle, strategy.interval_ms) == (5_000, WhenIdle.HOLD, 2)
    assert strategy.alignment is not None
    assert strategy.alignment.at_most_ms == 60_000
    assert (strategy.alignment.every, strategy.alignment.intervals) == (timedelta(seconds=1), 3)


def test_a_split_is_never_idle_and_time_is_told_each_200_milliseconds_where_nobody_says_otherwise() -> None:
    strategy = monotonous_timestamps(time_of)

    assert (strategy.idle_after_ms, strategy.when_idle, strategy.interval_ms) == (None, WhenIdle.ADVANCE, 200)
    assert strategy.alignment is None


async def later(event: Event) -> int:
    return event[1]


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"timestamp": 5}, "callable"),
        ({"timestamp": later}, "async"),
        ({"at_most": 5}, "at_most is a timedelta, not int"),
        ({"at_most": timedelta(-1)}, "at_most is not negative"),
        ({"at_most": timedelta.max}, "not beyond all time"),
        ({"idle_after": timedelta(0)}, "idle_after is positive"),
        ({"idle_after": 5.0}, "idle_after is a timedelta"),
        ({"interval": timedelta(0)}, "interval of watermarks is positive"),
        ({"when_idle": "sleep"}, "'advance' or 'hold', not 'sleep'"),
        ({"alignment": "group"}, "MaximumDrift"),
    ],
)
def test_what_can_not_be_meant_is_refused_when_it_is_said(options: dict[str, Any], reason: str) -> None:
    given: dict[str, Any] = {"timestamp": time_of, "at_most": timedelta(0)} | options

    with pytest.raises(InvalidJob, match=reason):
        bounded_out_of_orderness(given.pop("timestamp"), **given)


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (("", timedelta(1)), "has a name"),
        (("g", timedelta(-1)), "maximum drift is not negative"),
        (("g", timedelta(1), timedelta(0)), "update interval"),
        (("g", timedelta(1), timedelta(1), -1), "intervals"),
        (("g", timedelta(1), timedelta(1), True), "intervals"),
    ],
)
def test_a_drift_that_can_not_be_meant_is_refused(arguments: Any, reason: str) -> None:
    with pytest.raises(InvalidJob, match=reason):
        MaximumDrift(*arguments)


def test_marks_and_generators_are_functions() -> None:
    with pytest.raises(InvalidJob, match="gives a watermark is callable"):
        punctuated(time_of, None)  # type: ignore[arg-type]
    with pytest.raises(InvalidJob, match="one per split"):
        watermarks_by(None, time_of)  # type: ignore[arg-type]
