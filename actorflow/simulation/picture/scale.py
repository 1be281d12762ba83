"""Where in a picture is an instant?

Virtual time is mostly quiet, and then much happens at one instant.  So a picture's time is not that of a clock: every
entry of the journal that is worth a place gets one, in order, and the time between two of them is drawn to scale only
while it is short.  Long waits are shortened (a *break*, with its length written into it), and so is what
``choice.py`` leaves out of a long run.

The scale is the one at which the picture fits on a page.
"""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise

from actorflow.simulation.picture.choice import chosen, rooms_of
from actorflow.simulation.picture.facts import Facts

__all__ = ("Break", "Scale", "scale_of")

LEAST_WIDTH, MOST_WIDTH = 1_000.0, 1_500.0
"""How wide the plot is."""

LONG, SHRINK = 80.0, 14.0
"""Up to this width time is to scale; beyond, each doubling takes so much more."""

MOST_PER_MS = 60.0
"""No millisecond takes more room than this."""

LEFT_OUT = 34.0
"""How wide the break is in which entries are left out."""

MOST_STRETCHED = 4.0
"""A run of which little is told is drawn so much larger at most."""

FEW = 4
"""So few entries may be left out without a word."""

_EDGE = 14.0


@dataclass(frozen=True, slots=True)
class Break:
    """Where time is shortened: between these places, by so many microseconds, and how many entries are left out."""

    left: float
    right: float
    us: int
    entries: int
    checkpoints: int


class Scale:
    """Places of moments and times, in units from the left edge of the plot."""

    def __init__(self, facts: Facts, moments: list[int], places: list[float], breaks: list[Break]) -> None:
        self._moments, self._places, self._times_us = moments, places, facts.times_us
        self._times = [facts.times_us[moment] for moment in moments]
        self.breaks = breaks
        self.width = max(LEAST_WIDTH, (places[-1] if places else 0.0) + _EDGE)

    def shows(self, moment: int | None) -> bool:
        """Whether an entry has a place of its own."""
        if moment is None:
            return False
        index = bisect_left(self._moments, moment)
        return index < len(self._moments) and self._moments[index] == moment

    def of_moment(self, moment: int) -> float:
        """Where an entry is; one that is left out is somewhere in the break."""
        index = bisect_left(self._moments, moment)
        if index == len(self._moments):
            return self.width
        if self._moments[index] == moment:
            return self._places[index]
        if index == 0:
            return 0.0
        if self._times_us[moment] == self._times[index - 1]:
            return self._places[index - 1]
        before, after = self._moments[index - 1], self._moments[index]
        part = (moment - before) / (after - before)
        return self._places[index - 1] + part * (self._places[index] - self._places[index - 1])

    def of_time(self, us: int) -> float:
        """Where a time is: behind all that happens at it."""
        index = bisect_right(self._times, us)
        if index == 0:
            return 0.0
        if index == len(self._times):
            return self._places[-1] if us <= self._times[-1] else self.width
        before, after = self._times[index - 1], self._times[index]
        part = (us - before) / (after - before) if after > before else 0.0
        return self._places[index - 1] + part * (self._places[index] - self._places[index - 1])

    def before_time(self, us: int) -> float:
        """Where a time is, before all that happens at it."""
        index = bisect_left(self._times, us)
        return max(0.0, self._places[index] - 5.0) if index < len(self._times) else self.width

    def ticks(self) -> list[tuple[float, int]]:
        """Places at which a time is written, and the time, in microseconds."""
        found: list[tuple[float, int]] = []
        last = -math.inf
        breaks = [(one.left, one.right) for one in self.breaks]
        for place, us in zip(self._places, self._times, strict=True):
            inside = any(left < place < right for left, right in breaks)
            if place - last >= 74.0 and not inside and (not found or us != found[-1][1]):
                found.append((place, us))
                last = place
        return found


def scale_of(facts: Facts, since_us: int | None = None, until_us: int | None = None) -> Scale:
    """Choose what to show of a run, or of a part of it, and place it."""
    rooms = rooms_of(facts, since_us, until_us)
    moments = chosen(facts, rooms)
    gaps = _gaps(facts, rooms, moments)
    aim = min(max(LEAST_WIDTH, 2.0 * sum(rooms[moment] for moment in moments)), MOST_WIDTH)
    return _placed(facts, moments, gaps, _fitting(gaps, aim))


@dataclass(frozen=True, slots=True)
class _Gap:
    """What lies between two neighbours in the picture."""

    us: int
    entries: int
    checkpoints: int
    least: float

    def width(self, per_us: float) -> float:
        """How wide it is drawn."""
        if self.entries:
            return LEFT_OUT
        wide = self.us * per_us
        return max(self.least, wide if wide <= LONG else LONG + SHRINK * math.log2(wide / LONG))


def _gaps(facts: Facts, rooms: Mapping[int, float], moments: list[int]) -> list[_Gap]:
    worth, triggers = list(rooms), [one.triggered for one in facts.checkpoints]
    gaps: list[_Gap] = []
    for before, after in pairwise(moments):
        entries = bisect_left(worth, after) - bisect_right(worth, before)
        checkpoints = bisect_left(triggers, after) - bisect_right(triggers, before)
        if entries <= FEW and not checkpoints:
            entries = 0
        gaps.append(_Gap(facts.times_us[after] - facts.times_us[before], entries, checkpoints, rooms[after]))
    return gaps


def _fitting(gaps: list[_Gap], aim: float) -> float:
    """The scale, in units per microsecond, at which all gaps together are as wide as they should be."""
    low, high = 0.0, MOST_PER_MS / 1_000
    for _ in range(50):
        middle = (low + high) / 2
        if math.fsum(gap.width(middle) for gap in gaps) + 2 * _EDGE > aim:
            high = middle
        else:
            low = middle
    return low


def _placed(facts: Facts, moments: list[int], gaps: list[_Gap], per_us: float) -> Scale:
    widths = [gap.width(per_us) for gap in gaps]
    stretch = min(max(1.0, (LEAST_WIDTH - 2 * _EDGE) / max(math.fsum(widths), 1.0)), MOST_STRETCHED)
    places, breaks = [_EDGE] * min(1, len(moments)), []
    for gap, wide in zip(gaps, widths, strict=True):
        left, right = places[-1], places[-1] + wide * stretch
        if gap.entries or gap.us * per_us > 2 * wide:
            breaks.append(Break(left, right, gap.us, gap.entries, gap.checkpoints))
        places.append(right)
    return Scale(facts, moments, places, breaks)
