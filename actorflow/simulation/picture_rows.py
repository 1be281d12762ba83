"""What happens around the actors, and how is it drawn?

Rows above the lanes: time, the weather and what was done from outside, the lives of a process, its checkpoints as the
coordinator sees them, and what it asks of its store.  One row below them: what its sinks commit.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, field

from actorflow.model import journal
from actorflow.simulation.picture_canvas import colour_of, cut, number, text_width
from actorflow.simulation.picture_facts import DEADLY, Band, Checkpoint, Commit
from actorflow.simulation.picture_sheet import GUTTER, Sheet, Shelf, milliseconds

__all__ = (
    "Commits",
    "Marks",
    "Note",
    "Requests",
    "draw_axis",
    "draw_bands",
    "draw_breaks",
    "draw_checkpoints",
    "place_checkpoints",
)

BAND, BAR = 20.0, 22.0
"""How high the row of lives is, and each row of checkpoints."""

_CHECKPOINT = re.compile(r"(?:^|/)chk-(\d+)/")


def _heading(sheet: Sheet, y: float, text: str, more: str = "") -> None:
    sheet.canvas.text(14, y, text, 11, "f-muted", 'font-weight="600"')
    if more:
        sheet.canvas.text(GUTTER - 10, y, cut(more, 9.5, 90), 9.5, "f-faint", 'text-anchor="end"')


# ── time ─────────────────────────────────────────────────────────────────────────────────────


def draw_axis(sheet: Sheet, y: float, top: float, bottom: float) -> None:
    """Draw times along ``y``, and faint lines from ``top`` to ``bottom``."""
    canvas = sheet.canvas
    for place, us in sheet.scale.ticks():
        x = sheet.left + place
        if bottom > top:
            canvas.line(x, top, x, bottom, "s-rule", 'stroke-width="0.7"')
        canvas.text(x, y, milliseconds(us), 9.5, "f-muted", 'text-anchor="middle"')


def draw_breaks(sheet: Sheet, top: float, bottom: float, label: float) -> None:
    """Draw where time is shortened, over lanes and under what moves between them; ``label`` is where it is written."""
    canvas = sheet.canvas
    for one in sheet.scale.breaks:
        left, right = sheet.left + one.left, sheet.left + one.right
        middle = (left + right) / 2
        sheet.kinds["break"] = None
        lasted = milliseconds(one.us)
        if one.entries:
            tip = f"{one.entries} entries of the journal and {one.checkpoints} checkpoints are left out here, {lasted}"
        else:
            tip = f"nothing is told for {lasted}"
        wide = min(right - left - 12, 22)
        many = "1 checkpoint" if one.checkpoints == 1 else f"{one.checkpoints} checkpoints"
        words = f"{many}, {lasted}" if one.checkpoints and one.entries else lasted
        with canvas.group(tip=tip):
            canvas.rect(middle - wide / 2, top, wide, bottom - top, "f-ground", 'opacity="0.8"')
            for x in (middle - wide / 2, middle + wide / 2):
                canvas.line(x, top, x, bottom, "s-faint", 'stroke-width="1" stroke-dasharray="2 3"')
            turned = f'text-anchor="end" transform="rotate(-90 {number(middle + 3)} {number(label + 6)})"'
            canvas.text(middle + 3, label + 6, f"⋯ {words} ⋯", 9, "f-muted", turned)


# ── weather, and what is done from outside ───────────────────────────────────────────────────


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
        _heading(sheet, top + 13, "weather")
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


# ── lives and checkpoints ────────────────────────────────────────────────────────────────────


def draw_bands(sheet: Sheet, process: str, y: float) -> None:
    """Draw the attempts of a process, one after the other."""
    canvas = sheet.canvas
    _heading(sheet, y + 14, f"process {process}")
    bands = [band for band in sheet.facts.bands if band.process == process]
    for band in bands:
        since, until = sheet.x(band.since), sheet.until(band.until)
        running = until if band.running is None else min(sheet.x(band.running), until)
        tip = f"{_of_band(band)}, from {sheet.when(band.since)}"
        if band.until is not None:
            tip += f" to {sheet.when(band.until)}"
        with canvas.group(tip=f"{tip}{f'; {band.how}' if band.how else ''}"):
            canvas.rect(since, y + 2, until - since, BAND - 4, "f-panel s-faint", 'rx="4" stroke-width="0.9"')
            if running > since:
                canvas.rect(since, y + 2, running - since, BAND - 4, "", 'fill="url(#h--rule)" rx="4"')
            for text in (_of_band(band), f"life {band.life}, attempt {band.attempt}", f"{band.life}.{band.attempt}"):
                if text_width(text, 10) < until - since - 10:
                    canvas.text(since + 6, y + 13.6, text, 10, "f-ink")
                    break
            if band.killed:
                canvas.cross(until, y + BAND / 2, "-deadly", 9)
            elif band.until is not None and band.how != "finished":
                after = [sheet.x(one.since) for one in bands if one.since > band.since]
                sheet.label(until + 5, y + 13.6, band.how, 9.5, min([*after, sheet.right]) - until - 8, "f-muted")


def _of_band(band: Band) -> str:
    begun = "without state" if band.restored is None else f"from checkpoint {band.restored}"
    return f"life {band.life}, attempt {band.attempt}, {begun}"


def place_checkpoints(sheet: Sheet, process: str, top: float) -> float:
    """Give each checkpoint of a process its bar; return where they end."""
    shelf = Shelf(4)
    for index, one in enumerate(sheet.facts.checkpoints):
        if one.process == process and sheet.shows(one.triggered, one.until):
            until = max(sheet.until(one.until), sheet.x(one.triggered) + 26)
            until += text_width(_why(one), 9) if one.aborted is not None else 0
            row = shelf.row(sheet.x(one.triggered) - 8, until + 12)
            sheet.bars[index] = top + BAR * (row or 0) + BAR / 2
    return top + BAR * max(1, shelf.rows)


def _why(one: Checkpoint) -> str:
    """Why a checkpoint was aborted."""
    return cut(one.why.replace("_", " ").lower(), 9, 150)


def draw_checkpoints(sheet: Sheet, process: str, top: float) -> None:
    """Draw the checkpoints of a process, each from its trigger to its end."""
    _heading(sheet, top + 14, "checkpoints")
    for index, y in sheet.bars.items():
        if sheet.facts.checkpoints[index].process == process:
            _bar(sheet, sheet.facts.checkpoints[index], y)


def _bar(sheet: Sheet, one: Checkpoint, y: float) -> None:
    canvas, colour = sheet.canvas, colour_of(one.checkpoint)
    x, until = sheet.x(one.triggered), sheet.until(one.until)
    name = f"checkpoint {one.checkpoint}" + ("" if one.kind == "periodic" else f" ({one.kind})")
    tip = f"{name}, triggered at {sheet.when(one.triggered)}"
    if one.completed is not None:
        sheet.kinds["completed"] = None
        tip += f"\ncompleted after {sheet.lasted(one.triggered, one.completed)}"
    elif one.aborted is not None:
        sheet.kinds["aborted"] = None
        tip += f"\naborted after {sheet.lasted(one.triggered, one.aborted)}: {one.why}"
    elif one.lost is not None:
        tip += "\nits process died before it came to an end"
    with canvas.group(tip=tip):
        canvas.rect(x, y - 8, until - x, 16, f"f{colour}", 'opacity="0.22" rx="2"')
        canvas.rect(x - 1, y - 9, 2, 18, f"f{colour}")
        for at in one.acknowledged:
            place = sheet.x(at)
            canvas.line(place, y + 4, place, y + 8, f"s{colour}", 'stroke-width="1.5"')
        if one.manifest is not None:
            sheet.kinds["manifest"] = None
            canvas.diamond(sheet.x(one.manifest), y, f"f{colour} s-ground", 5.5, 'stroke-width="1"')
        if one.completed is not None:
            canvas.check(until + 4, y, "-good", 8)
        elif one.until is not None:
            canvas.cross(until, y, "-deadly", 7)
            if one.aborted is not None:
                canvas.text(until + 8, y + 3.4, _why(one), 9, "f-deadly")
    for text in (name, str(one.checkpoint)):
        if text_width(text, 9.5) < until - x - 16:
            canvas.text(x + 5, y + 1.6, text, 9.5, f"f{colour}", 'font-weight="600"')
            break


# ── store ────────────────────────────────────────────────────────────────────────────────────


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
        _heading(sheet, top + 12, "storage")
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
        _heading(sheet, top + 16, "output")
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
