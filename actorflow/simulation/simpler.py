"""Which simpler faults could do what a fault does?  In the order in which they are worth a try.

That a fault comes only ``perhaps`` stays: once the mistake is mended, it may not come any more.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from actorflow.simulation.scenario import Fault
from actorflow.simulation.weather import (
    After,
    FailDisk,
    FailObjects,
    FailRequests,
    Kill,
    OnObject,
    PowerCut,
    Trigger,
    Weather,
)

__all__ = ("simpler_weather",)


def simpler_weather(fault: Fault) -> Iterator[Fault]:
    """Yield faults that are simpler in one respect each."""
    for weather in _simpler(fault.weather):
        yield replace(fault, weather=weather)
    for when in _earlier(fault.weather.when):
        yield replace(fault, weather=replace(fault.weather, when=when))
    if fault.life > 1:
        yield replace(fault, life=1)


def _simpler(weather: Weather) -> Iterator[Weather]:
    match weather:
        case PowerCut(when=when, machine=None, step=step):
            yield Kill(when, None, step)
        case Kill(step=step) if step:
            yield replace(weather, step="")
        case FailObjects(count=count) | FailDisk(count=count) | FailRequests(count=count) if count > 1:
            yield replace(weather, count=1)
            yield replace(weather, count=count // 2)


def _earlier(when: Trigger) -> Iterator[Trigger]:
    match when:
        case After(occurrence=occurrence, later_ms=later_ms):
            if later_ms:
                yield replace(when, later_ms=0)
                yield replace(when, later_ms=later_ms // 2)
            yield from (replace(when, occurrence=earlier) for earlier in _fewer(occurrence))
        case OnObject(occurrence=occurrence):
            yield from (replace(when, occurrence=earlier) for earlier in _fewer(occurrence))


def _fewer(number: int) -> Iterator[int]:
    """1, then what halves the way back to the number."""
    step = number - 1
    while step > 0:
        yield number - step
        step //= 2
