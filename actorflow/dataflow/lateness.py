"""When is a window over, and when is a record late, and by how much?

A watermark ``w`` says that no record with a timestamp up to ``w`` is expected any more.  So a window

| is | when |
|---|---|
| complete, and fires | ``window.last <= w`` |
| late, and cleaned up | ``window.last + allowed <= w`` |

and a record is *late* when every window of its own is late and ``timestamp + allowed <= w``: then it goes to the late
side output or is counted, and is never lost without a word.  One that still finds a window that is not late is counted
in that one, and where this is already complete, it gives its result again.  A sum that runs past the end of time is
the end of time: such a window lives until the input has ended.

By processing time nothing is late.  Everything is in whole milliseconds.  Pure.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Final

__all__ = (
    "MAX_TIME",
    "MIN_TIME",
    "LateRecord",
    "cleanup_time",
    "is_complete",
    "is_record_late",
    "is_window_late",
    "late_by_ms",
)

MIN_TIME: Final = -(2**63)
"""The watermark before the first one."""

MAX_TIME: Final = 2**63 - 1
"""The watermark at the end of time, which the end of input brings."""


@dataclass(frozen=True, slots=True)
class LateRecord:
    """What the side output of late records holds.

    ``late_by`` is how far the watermark stood past the last instant at which the record would have been in time for it,
    so at least a millisecond.
    """

    value: Any
    timestamp: int
    late_by: timedelta


def is_complete(last: int, watermark: int) -> bool:
    """Whether all records of a window, whose last millisecond is ``last``, are said to have come."""
    return last <= watermark


def cleanup_time(last: int, allowed_ms: int) -> int:
    """Return the watermark at which a window is forgotten."""
    return min(last + allowed_ms, MAX_TIME)


def is_window_late(last: int, allowed_ms: int, watermark: int) -> bool:
    """Whether a window is forgotten, so that nothing is put in it any more."""
    return min(last + allowed_ms, MAX_TIME) <= watermark


def is_record_late(timestamp: int, lasts: Iterable[int], allowed_ms: int, watermark: int) -> bool:
    """Whether a record is late, given the last milliseconds of its windows; of a session, of the merged one."""
    return min(timestamp + allowed_ms, MAX_TIME) <= watermark and all(
        is_window_late(last, allowed_ms, watermark) for last in lasts
    )


def late_by_ms(timestamp: int, watermark: int) -> int:
    """Return how far the watermark is past the last one at which a record would have been in time: 1 at ``timestamp``.

    Negative or zero for one that is in time.  What is allowed is not taken off: this is how late it *is*.
    """
    return watermark - timestamp + 1
