"""How are time, the lives of a process and its checkpoints drawn, as rows above the lanes?

A checkpoint is shown as its coordinator sees it: its trigger, the acknowledgements, the manifest, and its end.
"""

from __future__ import annotations

from actorflow.simulation.picture.canvas import colour_of, cut, number, text_width
from actorflow.simulation.picture.facts import Band, Checkpoint
from actorflow.simulation.picture.sheet import Sheet, Shelf, milliseconds

__all__ = (
    "BAND",
    "draw_axis",
    "draw_bands",
    "draw_breaks",
    "draw_checkpoints",
    "place_checkpoints",
)

BAND, BAR = 20.0, 22.0
"""How high the row of lives is, and each row of checkpoints."""


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


# ── lives and checkpoints ────────────────────────────────────────────────────────────────────


def draw_bands(sheet: Sheet, process: str, y: float) -> None:
    """Draw the attempts of a process, one after the other."""
    canvas = sheet.canvas
    sheet.heading(y + 14, f"process {process}")
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
    sheet.heading(top + 14, "checkpoints")
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
