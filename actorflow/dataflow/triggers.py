"""When does a window give its result, and is its content kept after that?

A *trigger* is a frozen value with the rules; what it has to remember of one key and window is in the ``state`` of its
:class:`TriggerContext`, an ordinary dict that travels in snapshots.  Each rule answers with a :class:`Verdict`.

| trigger | a record | event time | processing time | merge |
|---|---|---|---|---|
| ``by_event_time()`` | fires if the window is complete, else waits for it | at ``window.last`` | | waits anew |
| ``by_processing_time()`` | waits for the window's end | | at ``window.last`` | waits anew |
| ``every_count(n)`` | counts, fires at ``n``, begins anew | | | adds up |
| ``by_delta(threshold, distance)`` | fires when far from the one that fired last | | | refused |
| ``every(interval)`` | as ``by_event_time()``, waits for a tick | at ticks, and at the end | | earliest tick |
| ``every(interval, by="processing")`` | waits for a tick | | at ticks | earliest tick |
| ``purging(trigger)`` | as the inner one, but what fires is also purged | | | as the inner one |
| ``never()`` | | | | |

Ticks are multiples of the interval since 1970.  Where time leaps over several, one firing stands for all of them, so a
stream far behind its clock is not asked for wake-ups in the past (R091).  Purging clears what a window holds and leaves
what its trigger remembers.

Pure: timers are asked for through the context, which nobody but the window operator makes.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from enum import Enum
from typing import Any, Protocol

from actorflow.dataflow.functions import check_function
from actorflow.dataflow.windows import GlobalWindow, TimeDomain, Window, WindowAssigner, time_domain, whole_milliseconds
from actorflow.errors import InvalidJob

__all__ = (
    "Trigger",
    "TriggerContext",
    "Verdict",
    "by_delta",
    "by_event_time",
    "by_processing_time",
    "check_trigger",
    "default_trigger",
    "every",
    "every_count",
    "never",
    "purging",
)


class Verdict(Enum):
    """What becomes of a window."""

    CONTINUE = (False, False)
    FIRE = (True, False)
    PURGE = (False, True)
    FIRE_AND_PURGE = (True, True)

    @property
    def fires(self) -> bool:
        """Whether the window gives its result."""
        return self.value[0]

    @property
    def purges(self) -> bool:
        """Whether what the window holds is cleared, after it gave its result."""
        return self.value[1]


class TriggerContext(Protocol):
    """What a trigger sees of one key and window.  Timers are told apart by their time: asking twice is asking once."""

    @property
    def window(self) -> Window:
        """The window in question; of a merge, the merged one."""
        ...

    @property
    def watermark(self) -> int:
        """How far event time has come, in milliseconds."""
        ...

    @property
    def now(self) -> int:
        """The clock, in milliseconds; read once for each record and timer (R093)."""
        ...

    @property
    def state(self) -> dict[str, Any]:
        """What the trigger remembers of this key and window."""
        ...

    def set_event_timer(self, time: int) -> None:
        """Ask for :meth:`Trigger.on_event_time` once the watermark has reached ``time``."""
        ...

    def set_processing_timer(self, time: int) -> None:
        """Ask for :meth:`Trigger.on_processing_time` once the clock has reached ``time``."""
        ...

    def delete_event_timer(self, time: int) -> None:
        """Take that back; one that was not asked for is fine."""
        ...

    def delete_processing_timer(self, time: int) -> None:
        """Take that back; one that was not asked for is fine."""
        ...


class Trigger(ABC):
    """The rules; write your own as a frozen dataclass."""

    merges: bool = True
    """Whether :meth:`on_merge` knows what to do; one that does not can't be used with sessions."""

    @abstractmethod
    def on_record(self, value: Any, timestamp: int, context: TriggerContext) -> Verdict:
        """A record was added to the window."""

    def on_event_time(self, time: int, context: TriggerContext) -> Verdict:
        """An event timer has come due."""
        return Verdict.CONTINUE

    def on_processing_time(self, time: int, context: TriggerContext) -> Verdict:
        """A processing timer has come due; ``time`` is what was asked for, however late it is."""
        return Verdict.CONTINUE

    def on_merge(self, merged: Iterable[Mapping[str, Any]], context: TriggerContext) -> None:
        """Windows became one: put what was remembered of each in ``context.state``, and ask for timers.

        ``merged`` is what was remembered of each, the earliest window first.  Their timers are taken back by whoever
        merges, through :meth:`clear`.  What fires is decided by the record that follows.
        """
        raise InvalidJob(f"{type(self).__name__} can't be used with windows that merge")

    def clear(self, context: TriggerContext) -> None:
        """The window is gone: take back the timers.  ``context.state`` is forgotten by whoever calls."""


@dataclass(frozen=True, slots=True)
class Never(Trigger):
    """See :func:`never`."""

    def on_record(self, value: Any, timestamp: int, context: TriggerContext) -> Verdict:
        return Verdict.CONTINUE

    def on_merge(self, merged: Iterable[Mapping[str, Any]], context: TriggerContext) -> None:
        pass


@dataclass(frozen=True, slots=True)
class ByEventTime(Trigger):
    """See :func:`by_event_time`."""

    def on_record(self, value: Any, timestamp: int, context: TriggerContext) -> Verdict:
        if context.window.last <= context.watermark:
            return Verdict.FIRE
        context.set_event_timer(context.window.last)
        return Verdict.CONTINUE

    def on_event_time(self, time: int, context: TriggerContext) -> Verdict:
        return Verdict.FIRE if time == context.window.last else Verdict.CONTINUE

    def on_merge(self, merged: Iterable[Mapping[str, Any]], context: TriggerContext) -> None:
        # If the merged window is complete, the record that made it fires; a timer would do so again (R082).
        if context.window.last > context.watermark:
            context.set_event_timer(context.window.last)

    def clear(self, context: TriggerContext) -> None:
        context.delete_event_timer(context.window.last)


@dataclass(frozen=True, slots=True)
class ByProcessingTime(Trigger):
    """See :func:`by_processing_time`."""

    def on_record(self, value: Any, timestamp: int, context: TriggerContext) -> Verdict:
        context.set_processing_timer(context.window.last)
        return Verdict.CONTINUE

    def on_processing_time(self, time: int, context: TriggerContext) -> Verdict:
        return Verdict.FIRE if time == context.window.last else Verdict.CONTINUE

    def on_merge(self, merged: Iterable[Mapping[str, Any]], context: TriggerContext) -> None:
        context.set_processing_timer(context.window.last)

    def clear(self, context: TriggerContext) -> None:
        context.delete_processing_timer(context.window.last)


@dataclass(frozen=True, slots=True)
class EveryCount(Trigger):
    """See :func:`every_count`."""

    count: int

    def on_record(self, value: Any, timestamp: int, context: TriggerContext) -> Verdict:
        number = context.state.get("count", 0) + 1
        if number < self.count:
            context.state["count"] = number
            return Verdict.CONTINUE
        context.state.pop("count", None)
        return Verdict.FIRE

    def on_merge(self, merged: Iterable[Mapping[str, Any]], context: TriggerContext) -> None:
        number = sum(state.get("count", 0) for state in merged)
        if number:
            context.state["count"] = number


@dataclass(frozen=True, slots=True)
class ByDelta(Trigger):
    """See :func:`by_delta`."""

    threshold: float
    distance: Callable[[Any, Any], float]
    merges = False

    def on_record(self, value: Any, timestamp: int, context: TriggerContext) -> Verdict:
        state = context.state
        if "last" not in state:
            state["last"] = value
            return Verdict.CONTINUE
        if self.distance(state["last"], value) <= self.threshold:
            return Verdict.CONTINUE
        state["last"] = value
        return Verdict.FIRE


@dataclass(frozen=True, slots=True)
class Every(Trigger):
    """See :func:`every`; this one by event time."""

    interval_ms: int

    def on_record(self, value: Any, timestamp: int, context: TriggerContext) -> Verdict:
        last = context.window.last
        if last <= context.watermark:
            return Verdict.FIRE
        context.set_event_timer(last)
        if "tick" not in context.state:
            self._wait(max(timestamp, context.watermark), context)
        return Verdict.CONTINUE

    def on_event_time(self, time: int, context: TriggerContext) -> Verdict:
        if time == context.window.last:
            return Verdict.FIRE
        if context.state.get("tick") != time:
            return Verdict.CONTINUE
        self._wait(max(time, context.watermark), context)
        return Verdict.FIRE

    def _wait(self, after: int, context: TriggerContext) -> None:
        tick = after - after % self.interval_ms + self.interval_ms
        if tick < context.window.last:
            context.state["tick"] = tick
            context.set_event_timer(tick)
        else:
            context.state.pop("tick", None)  # the end of the window comes first

    def on_merge(self, merged: Iterable[Mapping[str, Any]], context: TriggerContext) -> None:
        if context.window.last <= context.watermark:
            return
        context.set_event_timer(context.window.last)
        ticks = [state["tick"] for state in merged if "tick" in state]
        if ticks:
            context.state["tick"] = min(ticks)
            context.set_event_timer(min(ticks))

    def clear(self, context: TriggerContext) -> None:
        context.delete_event_timer(context.window.last)
        if "tick" in context.state:
            context.delete_event_timer(context.state["tick"])


@dataclass(frozen=True, slots=True)
class EveryOnTheClock(Trigger):
    """See :func:`every`; this one by processing time."""

    interval_ms: int

    def on_record(self, value: Any, timestamp: int, context: TriggerContext) -> Verdict:
        if "tick" not in context.state:
            self._wait(context.now, context)
        return Verdict.CONTINUE

    def on_processing_time(self, time: int, context: TriggerContext) -> Verdict:
        if context.state.get("tick") != time:
            return Verdict.CONTINUE
        self._wait(max(time, context.now), context)
        return Verdict.FIRE

    def _wait(self, after: int, context: TriggerContext) -> None:
        tick = after - after % self.interval_ms + self.interval_ms
        context.state["tick"] = tick
        context.set_processing_timer(tick)

    def on_merge(self, merged: Iterable[Mapping[str, Any]], context: TriggerContext) -> None:
        ticks = [state["tick"] for state in merged if "tick" in state]
        if ticks:  # R083: without it the merged window would never tick again
            context.state["tick"] = min(ticks)
            context.set_processing_timer(min(ticks))

    def clear(self, context: TriggerContext) -> None:
        if "tick" in context.state:
            context.delete_processing_timer(context.state["tick"])


@dataclass(frozen=True, slots=True)
class Purging(Trigger):
    """See :func:`purging`."""

    inner: Trigger

    @property
    def merges(self) -> bool:  # type: ignore[override]  # it is what the inner one is
        """Whether the inner one can."""
        return self.inner.merges

    def on_record(self, value: Any, timestamp: int, context: TriggerContext) -> Verdict:
        return _purged(self.inner.on_record(value, timestamp, context))

    def on_event_time(self, time: int, context: TriggerContext) -> Verdict:
        return _purged(self.inner.on_event_time(time, context))

    def on_processing_time(self, time: int, context: TriggerContext) -> Verdict:
        return _purged(self.inner.on_processing_time(time, context))

    def on_merge(self, merged: Iterable[Mapping[str, Any]], context: TriggerContext) -> None:
        self.inner.on_merge(merged, context)

    def clear(self, context: TriggerContext) -> None:
        self.inner.clear(context)


def _purged(verdict: Verdict) -> Verdict:
    return Verdict.FIRE_AND_PURGE if verdict.fires else verdict


# ── what users write ──


def never() -> Trigger:
    """Give no result by itself."""
    return Never()


def by_event_time() -> Trigger:
    """Give the result once the watermark says that the window is complete, and again for each record after that."""
    return ByEventTime()


def by_processing_time() -> Trigger:
    """Give the result once the clock has passed the end of the window."""
    return ByProcessingTime()


def every_count(count: int) -> Trigger:
    """Give the result with every ``count``-th record of the window.  Raises ``InvalidJob`` for less than 1."""
    if type(count) is not int or count < 1:
        raise InvalidJob(f"every_count: how many records, 1 or more, not {count!r:.80}")
    return EveryCount(count)


def by_delta(threshold: float, distance: Callable[[Any, Any], float]) -> Trigger:
    """Give the result with a record whose ``distance(last, record)`` is more than ``threshold``.

    ``last`` is the record that did so before it, at first the first of the window.
    """
    check_function("by_delta", distance, 2, what="distance")
    return ByDelta(threshold, distance)


def every(interval: timedelta, *, by: TimeDomain | str = "event") -> Trigger:
    """Give the result so far at every multiple of ``interval`` after a record; by event time at the end, too.

    Raises ``InvalidJob`` for an interval that is not a positive number of whole milliseconds.
    """
    interval_ms = whole_milliseconds("every: interval", interval, least=1)
    return Every(interval_ms) if time_domain("every", by) is TimeDomain.EVENT else EveryOnTheClock(interval_ms)


def purging(trigger: Trigger) -> Trigger:
    """Clear the window whenever ``trigger`` gives its result."""
    return Purging(trigger)


def default_trigger(windows: WindowAssigner) -> Trigger:
    """Return what decides where nobody said it: the end of the window; never, for the global one."""
    if isinstance(windows, GlobalWindow):
        return Never()
    return ByEventTime() if windows.by is TimeDomain.EVENT else ByProcessingTime()


def check_trigger(operator: str, windows: WindowAssigner, trigger: object) -> None:
    """Refuse what is no trigger, and one that can't merge where windows do; raises ``InvalidJob``."""
    if not isinstance(trigger, Trigger):
        raise InvalidJob(f"operator {operator!r}: trigger= is a trigger such as every_count(100), not {trigger!r:.80}")
    if windows.merges and not trigger.merges:
        raise InvalidJob(
            f"operator {operator!r}: {type(trigger).__name__} can't be used with windows that merge, because nobody "
            "can say what two of its memories come to"
        )
