"""What leaves a process, and how is it drawn?  Above its lanes what it asks of its store, below them its output.

Output is a ring when it is prepared and a disc when it is visible, with a line from one to the other: the second phase
of a commit.
"""

from __future__ import annotations

import re
from bisect import bisect_right

from actorflow.simulation.picture.canvas import colour_of, cut
from actorflow.simulation.picture.facts import Commit
from actorflow.simulation.picture.sheet import GUTTER, Sheet, Shelf, milliseconds

__all__ = ("Commits", "Requests")

_CHECKPOINT = re.compile(r"(?:^|/)chk-(\d+)/")


class Requests:
    """What a process asks of its store; placed first, then drawn."""

    def __init__(self, sheet: Sheet, process: str) -> None:
        self._sheet, self._process = sheet, process
        self._shelf = Shelf(6)
        self._placed: list[tuple[float, float, int, str, str, bool]] = []
        levels = sheet.facts.levels
        if levels is None:
            return
        breaks = [(sheet.left + one.left, sheet.left + one.right) for one in sheet.scale.breaks]
        for one in levels.requests:
            if one.process != process:
                continue
            since = sheet.at(one.since_us)
            until = sheet.right if one.until_us is None else sheet.at(one.until_us)
            until = max(until, since + 2.5)
            if since >= sheet.right or until <= sheet.left or any(a < since and until < b for a, b in breaks):
                continue
            row = self._shelf.row(since, until + 1.5)
            if row is not None:
                tip = f"{one.operation} {one.name} at {milliseconds(one.since_us)}"
                if one.until_us is not None:
                    tip += f", {milliseconds(one.until_us - one.since_us)}"
                tip += ", failed" if one.failed and one.until_us is not None else ""
                self._placed.append((since, until, row, one.operation, tip, one.failed and one.until_us is not None))

    @property
    def height(self) -> float:
        """How high the row is; nothing where nobody watched."""
        return 12 + 6.0 * self._shelf.rows if self._placed else 0.0

    def draw(self, top: float) -> None:
        """Draw them."""
        if not self._placed:
            return
        sheet, canvas = self._sheet, self._sheet.canvas
        sheet.heading(top + 12, "storage")
        self._unreachable(top)
        sheet.kinds["request"] = None
        for since, until, row, operation, tip, failed in self._placed:
            found = _CHECKPOINT.search(tip)
            writes = operation.startswith("put")
            classes = f"f{colour_of(int(found[1]))}" if found and writes else "f-faint"
            faint = "" if writes else 'opacity="0.45"'
            canvas.rect(since, top + 5 + 6.0 * row, until - since, 4.2, "f-deadly" if failed else classes, faint, tip)

    def _unreachable(self, top: float) -> None:
        """Draw when the process can't reach it."""
        sheet, levels = self._sheet, self._sheet.facts.levels
        for (what, whom, until_us), since_us in levels.spells.items() if levels is not None else ():
            since, until = sheet.at(since_us), sheet.at(until_us)
            if (what, whom) == ("cut off", self._process) and until - since >= 1:
                sheet.kinds[what] = None
                with sheet.canvas.group(tip=f"{whom} is {what} from its store"):
                    wide, high = until - since, self.height - 4
                    sheet.canvas.rect(since, top + 2, wide, high, "", 'fill="url(#h--harm)" opacity="0.45"')
                    sheet.label(since + 4, top + high - 1, what, 9, wide - 8, "f-harm")


# ── output ───────────────────────────────────────────────────────────────────────────────────


class Commits:
    """What the sinks of a process prepare and commit: one line for each of their actors."""

    MOST = 6

    def __init__(self, sheet: Sheet, process: str) -> None:
        self._sheet = sheet
        self._mine = [one for one in sheet.facts.commits if one.process == process]
        sinks = list(dict.fromkeys((one.operator, one.actor) for one in sorted(self._mine, key=_name_of)))
        alone = len(sinks) <= self.MOST
        self._rows = {sink: index if alone else 0 for index, sink in enumerate(sinks)}
        self._xs = sorted(sheet.x(one.at) for one in self._mine if sheet.shows(one.at))

    @property
    def height(self) -> float:
        """How high the row is; nothing for a process without a sink that commits."""
        return 8 + 18.0 * len(set(self._rows.values())) if self._rows else 0.0

    def draw(self, top: float) -> None:
        """Draw them: a ring when prepared, a disc when visible, a line from one to the other."""
        if not self._rows:
            return
        sheet, canvas = self._sheet, self._sheet.canvas
        rows = len(set(self._rows.values()))
        sheet.heading(top + 16, "output")
        for (operator, actor), row in self._rows.items():
            name = operator + "/" + actor.rpartition("/")[2] if rows == len(self._rows) else f"{len(self._rows)} sinks"
            y = top + 13 + 18.0 * row
            if rows == len(self._rows) or (operator, actor) == next(iter(self._rows)):
                canvas.text(GUTTER - 10, y + 3, cut(name, 9.5, 110), 9.5, "f-faint", 'text-anchor="end"')
                canvas.line(sheet.left, y, sheet.right, y, "s-rule", 'stroke-width="0.8"')
        prepared: dict[tuple[str, int | None], Commit] = {}
        for one in self._mine:
            y = top + 13 + 18.0 * self._rows[one.operator, one.actor]
            if one.what == "prepared":
                prepared[one.operator + one.actor, one.checkpoint] = one
            if sheet.shows(one.at):
                before = (
                    prepared.pop((one.operator + one.actor, one.checkpoint), None) if one.what != "prepared" else None
                )
                self._mark(one, y, before)

    def _mark(self, one: Commit, y: float, prepared: Commit | None) -> None:
        sheet, canvas = self._sheet, self._sheet.canvas
        x = sheet.x(one.at)
        tip = f"{one.actor}, {one.operator}: {one.count} {one.what} at {sheet.when(one.at)}"
        tip += "" if one.checkpoint is None else f", of checkpoint {one.checkpoint}"
        if one.what == "discarded" or one.checkpoint is None:
            if one.count:
                canvas.cross(x, y, "-faint", 6, tip)
            return
        colour = colour_of(one.checkpoint)
        sheet.kinds[one.what] = None
        if one.what == "prepared":
            canvas.circle(x, y, 4.5, f"f-ground s{colour}", f'stroke-width="1.8"{_none(one)}', tip)
            return
        with canvas.group(tip=tip):
            if prepared is not None:
                canvas.line(sheet.x(prepared.at) + 5, y, x - 5, y, f"s{colour}", f'stroke-width="1.4"{_none(one)}')
            radius = 5.5 if prepared is not None else 4  # it was visible already, or in a life that is not shown
            canvas.circle(x, y, radius, f"f{colour} s-ground", f'stroke-width="1"{_none(one)}')
            after = self._xs[bisect_right(self._xs, x + 1) :][:1] or [sheet.right + 20]
            if one.count:
                sheet.label(x + 8, y + 3, str(one.count), 9, after[0] - x - 15, f"f{colour}")


def _none(one: Commit) -> str:
    """A sink that had nothing to show is drawn faintly."""
    return "" if one.count else ' opacity="0.35"'


def _name_of(one: Commit) -> tuple[str, int]:
    subtask = one.actor.rpartition("/")[2]
    return one.operator, int(subtask) if subtask.isdecimal() else 0
