"""What time has each record of a batch, and what does that tell about its split?

The user's function is called once per record, by one list comprehension per batch; after that a batch is looked at as a
whole, and its largest timestamp goes to the split's generator once.  Only a batch that does not hold plain numbers is
gone through record by record, to turn datetimes into milliseconds and to find the record that can't have a time.

Refuses to guess: a record without a timestamp ends the job, with its name.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Generic, TypeVar

from actorflow.dataflow.blame import failure, position_in, short_form
from actorflow.dataflow.event_time import Punctuated, Time, WatermarkGenerator, WatermarkStrategy
from actorflow.errors import ActorflowError, InvalidJob, InvalidValue
from actorflow.model.event_time import MAX_TIMESTAMP, MIN_TIMESTAMP, MIN_WATERMARK, milliseconds

__all__ = ("SplitTime", "Timestamps")

T = TypeVar("T")

_PLAIN = {int}


class Timestamps(Generic[T]):
    """The timestamps of batches, at one subtask; ``shown`` says whether an error may show the record."""

    __slots__ = ("_function", "largest_ms", "operator", "shown", "subtask")

    def __init__(self, function: Callable[[T], Time], *, operator: str, subtask: int, shown: bool = True) -> None:
        self._function = function
        self.operator, self.subtask, self.shown = operator, subtask, shown
        self.largest_ms = MIN_WATERMARK
        """The largest of the last batch that was not empty."""

    def timestamps_of(self, records: list[T]) -> list[int]:
        """Return the time of each record in milliseconds since 1970.

        Raises ``OperatorFailed`` naming the record for which the function raised, and ``InvalidValue`` naming the
        first whose time is no timestamp.
        """
        reading, timestamp = iter(records), self._function
        try:
            times: list[Any] = [timestamp(record) for record in reading]
        except Exception as error:  # it is the user's code
            raise self.failed(error, records, reading, "its timestamp") from error
        if not times:
            return times
        # Most batches are done here.  A number of another type makes the sum one of that type, and a bool is at most 1.
        try:
            largest = max(times) if type(sum(times)) is int and min(times) > 1 else None
        except Exception:  # they are no numbers
            largest = None
        if largest is None or largest > MAX_TIMESTAMP:
            return self._carefully(records, times)
        self.largest_ms = largest
        return times

    def _carefully(self, records: list[T], times: list[Any]) -> list[int]:
        if set(map(type, times)) != _PLAIN or min(times) < MIN_TIMESTAMP or max(times) > MAX_TIMESTAMP:
            converted: list[int] = []
            for time in times:
                try:
                    converted.append(milliseconds(time))
                except InvalidValue as error:
                    raise self._invalid(error, records[len(converted)], time) from error
            times = converted
        self.largest_ms = max(times)
        return times

    def _invalid(self, error: InvalidValue, record: T, time: object) -> InvalidValue:
        shown = f", record {short_form(record)}, timestamp {short_form(time)}" if self.shown else ""
        return InvalidValue(f"operator {self.operator!r}, subtask {self.subtask}{shown}: {error}")

    def failed(self, error: Exception, records: list[T], reading: Iterator[T], doing: str) -> ActorflowError:
        """Return the error that names the operator and, if ``reading`` had one of the records in hand, the record."""
        position = position_in(records, reading)
        if isinstance(error, InvalidValue):  # a mark in the stream that is no time
            shown = f", record {short_form(records[position])}" if self.shown and position is not None else ""
            return InvalidValue(f"operator {self.operator!r}, subtask {self.subtask}{shown}, {doing}: {error}")
        record = () if position is None else (records[position],)
        return failure(error, self.operator, self.subtask, shown=self.shown, record=record, doing=doing)


class SplitTime(Generic[T]):
    """The event time of one split, as its strategy sees it."""

    __slots__ = ("_generator", "_timestamps", "at_once", "watermark_ms")

    def __init__(self, strategy: WatermarkStrategy[T], timestamps: Timestamps[T]) -> None:
        self._timestamps = timestamps
        try:
            generator = strategy.generator()
        except Exception as error:  # it is the user's code
            raise self._failed(error, [], "making its watermark generator") from error
        if not isinstance(generator, WatermarkGenerator):
            raise InvalidJob(
                f"operator {timestamps.operator!r}: what makes a watermark generator made "
                f"a {type(generator).__name__}; it has to be a WatermarkGenerator"
            )
        self._generator = generator
        self.at_once = generator.at_once
        self.watermark_ms = MIN_WATERMARK
        """The watermark as last asked for."""

    def timestamps_of(self, records: list[T]) -> list[int]:
        """Return the timestamps of records that are about to be emitted, and take note of them."""
        times = self._timestamps.timestamps_of(records)
        if times:
            try:
                self._generator.on_batch(records, times, self._timestamps.largest_ms)
            except Exception as error:  # it is the user's code
                raise self._failed(error, records, "its watermark") from error
        return times

    def advance(self) -> int:
        """Ask how far event time has come, and return it; it never goes backwards."""
        try:
            time = self._generator.current()
            if time is not None:
                self.watermark_ms = max(self.watermark_ms, milliseconds(time))
        except Exception as error:  # it is the user's code
            raise self._failed(error, [], "its watermark") from error
        return self.watermark_ms

    def _failed(self, error: Exception, records: list[T], doing: str) -> ActorflowError:
        generator = getattr(self, "_generator", None)
        reading = generator.in_hand if isinstance(generator, Punctuated) and records else iter(records)
        return self._timestamps.failed(error, records, reading, doing)
