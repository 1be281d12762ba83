"""Where does everything go on a picture?

A :class:`Sheet` is a canvas with the facts, their scale, and the heights at which lanes lie.  The rows know how high
they are before anything is drawn, because arrows go from lane to lane.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from actorflow.simulation.picture.canvas import Canvas, text_width
from actorflow.simulation.picture.facts import Facts, Key, Lane
from actorflow.simulation.picture.scale import Scale

__all__ = ("GUTTER", "Sheet", "Shelf", "Strip", "milliseconds")

GUTTER = 186.0
"""How much room the names of lanes have, left of the plot."""

HEAD = 30.0
"""How high the upper part of a lane is, where its snapshots are."""

MOST_STRIPS = 5
"""An actor with more input channels shows them as one."""


def milliseconds(us: int) -> str:
    """A time as it is written in a picture."""
    if us < 10_000_000:
        return f"{us / 1_000:,.1f}".removesuffix(".0") + " ms"
    return f"{us / 1_000_000:,.2f} s"


@dataclass(slots=True)
class Strip:
    """What waits in one channel, or in several: where it is drawn, and what it is called."""

    channels: tuple[str, ...]
    name: str
    top: float = 0.0
    height: float = 0.0

    @property
    def bottom(self) -> float:
        return self.top + self.height

    @property
    def middle(self) -> float:
        return self.top + self.height / 2


@dataclass(slots=True)
class Place:
    """Where a lane is."""

    top: float
    strips: list[Strip]

    @property
    def line(self) -> float:
        """The height of its snapshots."""
        return self.top + HEAD / 2

    @property
    def bottom(self) -> float:
        return self.strips[-1].bottom + 4 if self.strips else self.top + HEAD


class Shelf:
    """Labels side by side, in as many rows as it takes: none lies on another."""

    def __init__(self, most: int) -> None:
        self._ends: list[float] = []
        self._most = most

    def row(self, left: float, right: float) -> int | None:
        """Return the first row with room from ``left`` to ``right`` and take it; ``None`` when there is no such row."""
        for row, end in enumerate(self._ends):
            if left >= end:
                self._ends[row] = right
                return row
        if len(self._ends) < self._most:
            self._ends.append(right)
            return len(self._ends) - 1
        return None

    @property
    def rows(self) -> int:
        """How many rows were needed."""
        return len(self._ends)


@dataclass(slots=True, kw_only=True)
class Sheet:
    """All that whoever draws needs to know."""

    canvas: Canvas
    facts: Facts
    scale: Scale
    places: dict[Key, Place] = field(default_factory=dict)
    bars: dict[int, float] = field(default_factory=dict)
    """The height of a checkpoint's bar, by its place among the checkpoints."""
    most: int = 1
    """Records in a channel that fill a strip from its bottom to its top."""
    fineness: float = 1.0
    """How far apart two changes of a level are at least, to be drawn both."""
    kinds: dict[str, None] = field(default_factory=dict)
    """What was drawn, for the legend."""

    @property
    def left(self) -> float:
        return GUTTER

    @property
    def right(self) -> float:
        return GUTTER + self.scale.width

    def x(self, moment: int) -> float:
        """Where an entry is."""
        return GUTTER + self.scale.of_moment(moment)

    def at(self, us: int) -> float:
        """Where a time is."""
        return GUTTER + self.scale.of_time(us)

    def until(self, moment: int | None) -> float:
        """Where an entry is, or the right edge if there is none."""
        return self.right if moment is None else self.x(moment)

    def when(self, moment: int) -> str:
        """The time of an entry, in words."""
        return milliseconds(self.facts.times_us[moment])

    def lasted(self, since: int, until: int) -> str:
        """The time between two entries, in words."""
        return milliseconds(self.facts.times_us[until] - self.facts.times_us[since])

    def shows(self, *moments: int | None) -> bool:
        """Whether at least one of these entries has a place in the picture."""
        return any(self.scale.shows(moment) for moment in moments)

    def heading(self, y: float, text: str) -> None:
        """The name of a row that is no lane."""
        self.canvas.text(14, y, text, 11, "f-muted", 'font-weight="600"')

    def label(self, x: float, y: float, text: str, size: float, room: float, classes: str = "f-muted") -> None:
        """A text if there is room for it."""
        if text_width(text, size) <= room:
            self.canvas.text(x, y, text, size, classes)

    def place_lanes(self, process: str, top: float) -> float:
        """Give each lane of a process its place, below one another; return where they end."""
        lanes = {key: lane for key, lane in self.facts.lanes.items() if lane.process == process}
        strips = {key: _strips(lane) for key, lane in lanes.items()}
        many = sum(len(found) for found in strips.values()) > 18
        height = 11.0 if many else 15.0
        for key, found in strips.items():
            place = self.places[key] = Place(top, found)
            at = top + HEAD
            for strip in found:
                strip.top, strip.height = at, height
                at += height + 2
            top = place.bottom + 6
        return top

    def strip_of(self, process: str, channel: str) -> Strip | None:
        """The strip that shows a channel."""
        place = self.places.get((process, channel.partition(">")[2]))
        if place is None:
            return None
        return next((strip for strip in place.strips if channel in strip.channels), None)


def _strips(lane: Lane) -> list[Strip]:
    if len(lane.channels) > MOST_STRIPS:
        return [Strip(tuple(lane.channels), f"from {len(lane.channels)} actors")]
    return [Strip((channel,), f"from {channel.partition('>')[0]}") for channel in lane.channels]
