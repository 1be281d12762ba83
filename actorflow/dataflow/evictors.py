"""Which records of a window are left out of its result?

An *evictor* looks at the records of a window, before its function or after it, and says which stay.  It needs all of
them, so a window with one keeps records and not an accumulator, and what was left out is gone for later results, too.

Elements are ``(timestamp, value)``, in the order in which they came.  Pure.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from actorflow.dataflow.functions import check_function
from actorflow.dataflow.windows import Window, whole_milliseconds
from actorflow.errors import InvalidJob

__all__ = ("Element", "Evictor", "keep_last", "keep_near", "keep_newest")

Element = tuple[int, Any]


class Evictor:
    """Write your own as a frozen dataclass.  One of the two is enough."""

    def before(self, elements: list[Element], window: Window) -> list[Element]:
        """Return which elements the window's function is to see."""
        return elements

    def after(self, elements: list[Element], window: Window) -> list[Element]:
        """Return which elements are still there for the next result."""
        return elements


@dataclass(frozen=True, slots=True)
class _Kept(Evictor):
    keep: Callable[[list[Element]], list[Element]]
    is_after: bool

    def before(self, elements: list[Element], window: Window) -> list[Element]:
        return elements if self.is_after or not elements else self.keep(elements)

    def after(self, elements: list[Element], window: Window) -> list[Element]:
        return self.keep(elements) if self.is_after and elements else elements


def keep_last(count: int, *, after: bool = False) -> Evictor:
    """Keep the last ``count`` records that came.  Raises ``InvalidJob`` for less than 1."""
    if type(count) is not int or count < 1:
        raise InvalidJob(f"keep_last: how many records, 1 or more, not {count!r:.80}")
    return _Kept(lambda elements: elements[-count:], after)


def keep_newest(span: timedelta, *, after: bool = False) -> Evictor:
    """Keep the records whose timestamps are less than ``span`` before the latest one."""
    span_ms = whole_milliseconds("keep_newest: span", span, least=1)

    def keep(elements: list[Element]) -> list[Element]:
        oldest = max(timestamp for timestamp, _ in elements) - span_ms
        return [element for element in elements if element[0] > oldest]

    return _Kept(keep, after)


def keep_near(threshold: float, distance: Callable[[Any, Any], float], *, after: bool = False) -> Evictor:
    """Keep the records whose ``distance(record, last)`` from the one that came last is less than ``threshold``.

    That one is always kept.
    """
    check_function("keep_near", distance, 2, what="distance")

    def keep(elements: list[Element]) -> list[Element]:
        last = elements[-1][1]
        return [*(one for one in elements[:-1] if distance(one[1], last) < threshold), elements[-1]]

    return _Kept(keep, after)
