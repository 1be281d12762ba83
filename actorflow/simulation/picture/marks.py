"""What went wrong, and what was asked of the job from outside: how is that written above the lanes?

Each mark has its name beside it, in as many rows as it takes; faults of one kind that lie close together share a name.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from actorflow.model import journal
from actorflow.simulation.picture.canvas import cut, text_width
from actorflow.simulation.picture.facts import DEADLY
from actorflow.simulation.picture.sheet import Sheet, Shelf, milliseconds

__all__ = ("Marks", "Note")


@dataclass(frozen=True, slots=True)
class Note:
    """Something done from outside, in words, at a virtual time."""

    at_ms: int
    text: str


@dataclass(slots=True)
class _Mark:
    x: float
    kind: str
    text: str
    tip: str
    verb: str = ""
    others: list[tuple[float, str]] = field(default_factory=list)
    """More of the same close by: where, and their tips."""

    @property
    def last(self) -> float:
        """Where the last of them is."""
        return self.others[-1][0] if self.others else self.x

    @property
    def label(self) -> str:
        """What is written beside it."""
        return f"{self.verb} × {len(self.others) + 1}" if self.others else self.text


class Marks:
    """Faults, steps and troubles, each with its name beside it; placed first, then drawn."""

    def __init__(self, sheet: Sheet, notes: Sequence[Note]) -> None:
        self._sheet = sheet
        self._shelf = Shelf(4)
        self._placed: list[tuple[_Mark, int | None, bool]] = []
        for mark in _together(sorted(self._found(notes), key=lambda mark: mark.x)):
            room = 10 + text_width(mark.label, 9.5) + 8
            flips = mark.last + room > sheet.right + 10
            row = self._shelf.row(mark.x - (room if flips else 6), mark.last + (6 if flips else room))
            self._placed.append((mark, row, flips))

    @property
    def height(self) -> float:
        """How high the row is."""
        return max(1, self._shelf.rows) * 15.0 + 4

    def _found(self, notes: Sequence[Note]) -> list[_Mark]:
        sheet, facts = self._sheet, self._sheet.facts
        marks = []
        for strike in facts.strikes:
            if sheet.shows(strike.at):
                verb = strike.verb.replace("_", " ")
                text = cut(f"{verb} {_short(strike.target)}".strip(), 9.5, 150)
                kind = "deadly" if strike.verb in DEADLY else "harm"
                tip = f"{verb} {strike.target} at {sheet.when(strike.at)}" + (f", {strike.step}" if strike.step else "")
                marks.append(_Mark(sheet.x(strike.at), kind, text, tip, verb))
        for at in facts.troubles:
            entry = facts.lines[at].entry
            if sheet.shows(at) and not isinstance(entry, journal.StorageRetried):
                told = getattr(entry, "cause", "") or getattr(entry, "taken", "")
                whom = (
                    getattr(entry, "operation", "") or getattr(entry, "operator", "") or getattr(entry, "subject", "")
                )
                tip = f"{facts.lines[at].name} {whom} at {sheet.when(at)}: {told}"
                marks.append(_Mark(sheet.x(at), "trouble", cut(f"{whom}: {told}", 9.5, 150), tip))
        for note in notes:
            us = note.at_ms * 1_000
            if facts.times_us and facts.times_us[0] <= us <= facts.times_us[-1] + 1_000:
                marks.append(
                    _Mark(
                        sheet.left + sheet.scale.before_time(us),
                        "step",
                        note.text,
                        f"{note.text} at {milliseconds(us)}",
                    )
                )
        if facts.calm is not None and sheet.shows(facts.calm):
            marks.append(_Mark(sheet.x(facts.calm), "calm", "calm", "the weather has lifted"))
        return marks

    def draw(self, top: float, bottom: float) -> None:
        """Draw the marks, and a line down to ``bottom`` for whatever strikes all lanes."""
        sheet, canvas = self._sheet, self._sheet.canvas
        sheet.heading(top + 13, "weather")
        for mark, row, flips in self._placed:
            sheet.kinds[mark.kind] = None
            y = top + 9 + 15.0 * (row if row is not None else 0)
            with canvas.group(tip=mark.tip):
                if mark.kind in ("deadly", "calm", "step"):
                    colour = {"deadly": "deadly", "calm": "good", "step": "step"}[mark.kind]
                    dashes = "" if mark.kind == "deadly" else ' stroke-dasharray="3 3"'
                    canvas.line(
                        mark.x, y + 6, mark.x, bottom, f"s-{colour}", f'stroke-width="1.3" opacity="0.8"{dashes}'
                    )
                _sign(sheet, mark.kind, mark.x, y)
                if row is not None:
                    classes = {"deadly": "f-deadly", "harm": "f-harm", "step": "f-step", "calm": "f-good"}
                    x, more = (mark.x - 9, 'text-anchor="end"') if flips else (mark.last + 9, "")
                    canvas.text(x, y + 3.5, mark.label, 9.5, classes.get(mark.kind, "f-muted"), more)
            for x, tip in mark.others:
                with canvas.group(tip=tip):
                    _sign(sheet, mark.kind, x, y)


def _together(marks: Sequence[_Mark]) -> list[_Mark]:
    """Take faults of one kind that lie close to one another as one."""
    found: list[_Mark] = []
    for mark in marks:
        before = found[-1] if found else None
        if before and mark.kind == before.kind == "harm" and mark.verb == before.verb and mark.x - before.last < 34:
            before.others.append((mark.x, mark.tip))
        else:
            found.append(mark)
    return found


def _short(target: str) -> str:
    """The end of a long name of an object or a file, which says most."""
    parts = target.split("/")
    return target if len(target) <= 20 or len(parts) < 3 else "…/" + "/".join(parts[-2:])


def _sign(sheet: Sheet, kind: str, x: float, y: float) -> None:
    canvas = sheet.canvas
    if kind in ("deadly", "harm"):
        canvas.bolt(x, y, f"f-{kind}")
    elif kind == "step":
        canvas.path(f"M{x - 4:.1f} {y - 5:.1f}h8l-4 8z", "f-step")
    elif kind == "calm":
        canvas.circle(x, y, 4, "f-good")
    else:
        canvas.circle(x, y, 3.2, "n s-harm", 'stroke-width="1.6"')
