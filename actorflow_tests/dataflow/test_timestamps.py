from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from actorflow.dataflow.event_time import (
    WatermarkGenerator,
    bounded_out_of_orderness,
    monotonous_timestamps,
    punctuated,
    watermarks_by,
)
from actorflow.dataflow.timestamps import SplitTime, Timestamps
from actorflow.errors import InvalidJob, InvalidValue, OperatorFailed
from actorflow.model.event_time import MAX_TIMESTAMP, MIN_TIMESTAMP, MIN_WATERMARK, milliseconds


def itself(record: Any) -> Any:
    return record


def reading(function: Callable[[Any], Any] = itself, *, shown: bool = True) -> Timestamps[Any]:
    return Timestamps(function, operator="orders", subtask=2, shown=shown)


def test_whole_numbers_are_taken_as_they_are() -> None:
    timestamps = reading()

    assert timestamps.timestamps_of([7, 3, 5]) == [7, 3, 5]
    assert timestamps.largest_ms == 7


@pytest.mark.parametrize("records", [[0, 1, 2], [-5, 7], [MIN_TIMESTAMP, MAX_TIMESTAMP], [-1]])
def test_so_are_those_before_1970_and_at_the_ends(records: list[int]) -> None:
    timestamps = reading()

    assert timestamps.timestamps_of(records) == records
    assert timestamps.largest_ms == max(records)


def test_datetimes_become_milliseconds_and_may_stand_beside_numbers() -> None:
    moment = datetime(2026, 1, 1, tzinfo=UTC)

    assert reading().timestamps_of([moment, 5, moment + timedelta(microseconds=999)]) == [
        1_767_225_600_000,
        5,
        1_767_225_600_000,
    ]


def test_no_records_have_no_timestamps() -> None:
    timestamps = reading()

    assert timestamps.timestamps_of([]) == []
    assert timestamps.largest_ms == MIN_WATERMARK


def test_the_function_is_asked_once_for_each_record_in_their_order() -> None:
    asked: list[int] = []

    def ask(record: int) -> int:
        asked.append(record)
        return record

    reading(ask).timestamps_of([4, 2, 9])

    assert asked == [4, 2, 9]


@pytest.mark.parametrize(
    ("bad", "reason"),
    [
        (5.0, "a float can't be a timestamp"),
        (float("nan"), "a float can't be a timestamp"),
        (True, "a bool can't be a timestamp"),
        (None, "a NoneType can't be a timestamp"),
        ("5", "a str can't be a timestamp"),
        (Fraction(5), "a Fraction can't be a timestamp"),
        (datetime(2026, 1, 1), "naive"),  # noqa: DTZ001
        (MAX_TIMESTAMP + 1, "lies outside"),
        (MIN_TIMESTAMP - 1, "lies outside"),
        (10**30, "lies outside"),
    ],
)
def test_what_is_no_timestamp_is_refused_at_the_very_record(bad: Any, reason: str) -> None:
    records = [{"at": 10}, {"at": bad, "id": "culprit"}, {"at": 2.5}]

    with pytest.raises(InvalidValue, match=reason) as refusal:
        reading(lambda record: record["at"]).timestamps_of(records)

    assert "operator 'orders', subtask 2, record {'at': " in str(refusal.value)
    assert "culprit" in str(refusal.value)
    assert "timestamp " + repr(bad)[:8] in str(refusal.value)


@pytest.mark.parametrize("bad", [MAX_TIMESTAMP + 1, MIN_TIMESTAMP - 1, True, False])
def test_one_bad_number_among_good_ones_is_found(bad: int) -> None:
    with pytest.raises(InvalidValue, match=f"record {bad}, timestamp {bad}"):
        reading().timestamps_of([10**12, bad, 10**12 + 1])


def test_a_function_that_raises_is_told_with_the_record_it_had_in_hand() -> None:
    with pytest.raises(OperatorFailed) as failed:
        reading(lambda record: record["at"]).timestamps_of([{"at": 1}, {"id": "culprit"}, {"at": 2}])

    assert (failed.value.operator, failed.value.subtask, failed.value.record) == ("orders", 2, "{'id': 'culprit'}")
    assert "its timestamp: KeyError" in str(failed.value)
    assert isinstance(failed.value.__cause__, KeyError)


def test_records_that_must_not_be_shown_are_not() -> None:
    for records in ([5, "secret"], [5, 1.25]):
        with pytest.raises(InvalidValue) as refusal:
            reading(shown=False).timestamps_of(records)
        assert "secret" not in str(refusal.value)
        assert "1.25" not in str(refusal.value)

    with pytest.raises(OperatorFailed) as failed:
        reading(lambda record: {}[record], shown=False).timestamps_of(["secret"])
    assert "secret" not in str(failed.value)


class Strange:
    """Adds up to whatever one likes."""

    def __radd__(self, other: int) -> Any:
        raise ZeroDivisionError

    def __repr__(self) -> str:
        return "strange"


def test_a_value_that_breaks_when_it_is_added_up_is_refused_like_any_other() -> None:
    with pytest.raises(InvalidValue, match="a Strange can't be a timestamp"):
        reading().timestamps_of([5, Strange()])


moments = st.one_of(
    st.integers(-5, 5),
    st.integers(MIN_TIMESTAMP - 2, MAX_TIMESTAMP + 2),
    st.integers(10**12, 2 * 10**12),
    st.datetimes(timezones=st.just(UTC)),
    st.floats(),
    st.booleans(),
)


@settings(max_examples=150, deadline=None)
@given(st.one_of(st.lists(moments, max_size=8), st.lists(st.integers(10**12, 2 * 10**12), max_size=8)))
def test_a_batch_has_the_times_that_its_records_have_one_by_one(records: list[Any]) -> None:
    timestamps = reading()
    try:
        expected = [milliseconds(record) for record in records]
    except InvalidValue:
        with pytest.raises(InvalidValue):
            timestamps.timestamps_of(records)
        return

    times = timestamps.timestamps_of(records)

    assert times == expected
    assert {type(time) for time in times} <= {int}
    assert not records or timestamps.largest_ms == max(expected)


# ── a split ──────────────────────────────────────────────────────────────────────────────────


def test_a_split_says_how_far_it_has_come() -> None:
    split = SplitTime(bounded_out_of_orderness(itself, at_most=timedelta(milliseconds=10)), reading())

    assert split.advance() == MIN_WATERMARK
    assert split.timestamps_of([100, 95]) == [100, 95]
    assert split.timestamps_of([]) == []
    assert split.advance() == 89
    split.timestamps_of([60])
    assert split.advance() == 89


def test_two_splits_of_a_subtask_know_nothing_of_each_other() -> None:
    strategy, timestamps = monotonous_timestamps(itself), reading()
    one, other = SplitTime(strategy, timestamps), SplitTime(strategy, timestamps)
    one.timestamps_of([500])
    other.timestamps_of([20])

    assert (one.advance(), other.advance()) == (499, 19)


class Fickle(WatermarkGenerator[int]):
    """Says whatever it was told last."""

    def __init__(self) -> None:
        self.said: Any = None

    def on_batch(self, records: list[int], times: list[int], largest_ms: int) -> None:
        if records[-1] == 13:
            raise ValueError("thirteen")
        self.said = records[-1]

    def current(self) -> Any:
        return 5.5 if self.said == 55 else self.said


def test_a_generator_that_goes_back_changes_nothing() -> None:
    split = SplitTime(watermarks_by(Fickle, itself), reading())
    said = []
    for record in (5, 9, 7, 10):
        split.timestamps_of([record])
        said.append(split.advance())

    assert said == [5, 9, 9, 10]


def test_a_generator_that_says_no_time_is_named() -> None:
    split = SplitTime(watermarks_by(Fickle, itself), reading())
    split.timestamps_of([55])

    with pytest.raises(InvalidValue, match="operator 'orders', subtask 2, its watermark: a float can't be"):
        split.advance()


def test_a_generator_that_raises_is_named() -> None:
    split = SplitTime(watermarks_by(Fickle, itself), reading())

    with pytest.raises(OperatorFailed, match="its watermark: ValueError: thirteen"):
        split.timestamps_of([1, 13])


def test_a_mark_that_raises_is_told_with_its_record() -> None:
    strategy = punctuated(itself, lambda record, _: 1 // (record - 2))
    split = SplitTime(strategy, reading())

    with pytest.raises(OperatorFailed, match="its watermark: ZeroDivisionError") as failed:
        split.timestamps_of([1, 2, 3])
    assert failed.value.record == "2"


def test_a_mark_that_is_no_time_is_told_with_its_record() -> None:
    mark: Any = lambda record, _: 2.5 if record == 2 else None  # noqa: E731
    split = SplitTime(punctuated(itself, mark), reading())

    with pytest.raises(InvalidValue, match="record 2, its watermark: a float can't be"):
        split.timestamps_of([1, 2, 3])


def test_marks_are_emitted_at_once_and_others_at_the_interval() -> None:
    assert SplitTime(punctuated(itself, lambda *_: None), reading()).at_once
    assert not SplitTime(monotonous_timestamps(itself), reading()).at_once


def test_what_makes_no_generator_is_refused() -> None:
    def breaks() -> Any:
        raise ValueError("no generator today")

    with pytest.raises(InvalidJob, match=r"operator 'orders': .* made a dict"):
        SplitTime(watermarks_by(dict, itself), reading())  # type: ignore[arg-type]
    with pytest.raises(OperatorFailed, match="no generator today"):
        SplitTime(watermarks_by(breaks, itself), reading())
