"""What is a time of an event, and what are the ends of time?

A timestamp is a whole number of milliseconds since 1970, of any sign, at most 2^53 - 1 in size so that every other
system can read it, or an aware ``datetime``.  What could mean two things is refused: a float (seconds or
milliseconds?) and a naive ``datetime`` (whose clock?).

A watermark says that no record with that timestamp or a lower one is expected any more.  Before the first it is
``MIN_WATERMARK``, behind the last record ``MAX_WATERMARK``.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from enum import StrEnum
from typing import Final

from actorflow.errors import InvalidValue

__all__ = ("MAX_TIMESTAMP", "MAX_WATERMARK", "MIN_TIMESTAMP", "MIN_WATERMARK", "WhenIdle", "milliseconds")

MIN_WATERMARK: Final = -(2**63)
"""Nothing is known yet."""

MAX_WATERMARK: Final = 2**63 - 1
"""The end of time: no record will follow."""

MAX_TIMESTAMP: Final = 2**53 - 1
MIN_TIMESTAMP: Final = -MAX_TIMESTAMP

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MILLISECOND = timedelta(milliseconds=1)


class WhenIdle(StrEnum):
    """What becomes of event time when every split of a source is idle."""

    ADVANCE = "advance"  # it goes on at the pace of the clock, so that a quiet stream closes its windows
    HOLD = "hold"  # it stands still until a record comes


def milliseconds(value: object) -> int:
    """Return a timestamp as milliseconds since 1970; a ``datetime`` is rounded down.

    Raises ``InvalidValue`` for what is neither a whole number nor an aware ``datetime``, and for what is out of range.
    """
    if isinstance(value, datetime):
        return _instant(value)
    if not isinstance(value, int) or isinstance(value, bool):
        advice = "; round it to whole milliseconds" if isinstance(value, float) else ""
        raise InvalidValue(
            f"a {type(value).__name__} can't be a timestamp: it is an int of milliseconds since 1970, "
            f"or an aware datetime{advice}"
        )
    if not MIN_TIMESTAMP <= value <= MAX_TIMESTAMP:
        raise InvalidValue("a timestamp is at most 2**53 - 1 milliseconds away from 1970, and this one lies outside")
    return int(value)


def _instant(value: datetime) -> int:
    try:
        if value.utcoffset() is not None:
            return int((value - _EPOCH) // _MILLISECOND)
    except Exception as error:  # a class of its own, or a zone of its own
        raise InvalidValue(
            f"a {type(value).__name__} can't be a timestamp, because it says no instant: {error}"
        ) from error
    raise InvalidValue(
        "a naive datetime can't be a timestamp, because nobody knows whose clock it shows; "
        "give it a zone: value.replace(tzinfo=…)"
    )
