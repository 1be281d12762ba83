"""What moves between lanes, and what do they keep?  Barriers on their way, and snapshots.

They lie above everything else, because they are what one wants to follow.
"""

from __future__ import annotations

from actorflow.simulation.picture.canvas import colour_of, number, text_width
from actorflow.simulation.picture.facts import Arrow, Lane, Snapshot
from actorflow.simulation.picture.sheet import Sheet, Strip

__all__ = ("draw_barriers", "draw_snapshots")


def draw_barriers(sheet: Sheet) -> None:
    """Draw each barrier on its way."""
    arrows = [arrow for arrow in sheet.facts.arrows if sheet.shows(arrow.arrived, arrow.sent)]
    for arrow in arrows:
        _stored(sheet, arrow)
    for arrow in arrows:
        _barrier(sheet, arrow)
    for arrow in arrows:
        strip = sheet.strip_of(arrow.process, arrow.channel)
        if arrow.over and strip is not None:
            halo = 'font-weight="600" paint-order="stroke" stroke-width="3" stroke-linejoin="round"'
            classes = f"f{colour_of(arrow.checkpoint)} s-panel"
            sheet.canvas.text(sheet.x(arrow.arrived) + 7, strip.bottom - 3, f"over {arrow.over}", 8.5, classes, halo)


def _stored(sheet: Sheet, arrow: Arrow) -> None:
    """What still arrives before a barrier, after the actor's snapshot, is part of an unaligned checkpoint."""
    lane, strip = sheet.facts.lanes[arrow.process, arrow.receiver], sheet.strip_of(arrow.process, arrow.channel)
    taken = [one.taken for one in lane.snapshots if one.checkpoint == arrow.checkpoint and one.taken < arrow.arrived]
    if not arrow.over or not taken or strip is None:
        return
    since, until = sheet.x(taken[-1]), sheet.x(arrow.arrived)
    sheet.kinds["stored"] = None
    tip = f"what comes from {arrow.sender} until its barrier is stored with checkpoint {arrow.checkpoint}"
    outline = 'fill-opacity="0.3" stroke-width="1" stroke-dasharray="3 2"'
    colour = colour_of(arrow.checkpoint)
    sheet.canvas.rect(since, strip.top, until - since, strip.height, f"f{colour} s{colour}", outline, tip)


def _barrier(sheet: Sheet, arrow: Arrow) -> None:
    canvas = sheet.canvas
    place = sheet.places.get((arrow.process, arrow.receiver))
    if place is None:
        return
    colour = colour_of(arrow.checkpoint)
    x, to_x = sheet.x(arrow.sent), sheet.x(arrow.arrived)
    lasted = sheet.lasted(arrow.sent, arrow.arrived)
    if not arrow.sender:
        index = next(
            (
                index
                for index, one in enumerate(sheet.facts.checkpoints)
                if (one.process, one.triggered) == (arrow.process, arrow.sent)
            ),
            None,
        )
        if index is None or index not in sheet.bars:
            return
        sheet.kinds["injected"] = None
        tip = f"checkpoint {arrow.checkpoint} begins at {arrow.receiver}, {lasted} after its trigger"
        canvas.arrow(
            x, sheet.bars[index] + 6, to_x, place.line - 8, colour, 'stroke-width="1" stroke-dasharray="2 3"', tip
        )
        return
    sender = sheet.places.get((arrow.process, arrow.sender))
    strip = sheet.strip_of(arrow.process, arrow.channel)
    if sender is None or strip is None:
        return
    y, to_y = sender.line + 6, strip.middle
    tip = f"barrier {arrow.checkpoint}: {arrow.channel}, {lasted} under way"
    if arrow.over:
        sheet.kinds["overtaking"] = None
        _overtaking(sheet, arrow, x, y, to_x, strip, f"{tip}; it overtook {arrow.over}")
    else:
        sheet.kinds["barrier"] = None
        canvas.arrow(x, y, to_x, to_y, colour, 'stroke-width="1.3" opacity="0.9"', tip)


def _overtaking(sheet: Sheet, arrow: Arrow, x: float, y: float, to_x: float, strip: Strip, tip: str) -> None:
    """A barrier that passes what waits in front of it: a leap over the filled strip."""
    canvas, colour = sheet.canvas, colour_of(arrow.checkpoint)
    high = strip.top - 7
    leap = f"M{number(x)} {number(y)}L{number(to_x - 26)} {number(high + 6)}"
    leap += f"Q{number(to_x - 8)} {number(high - 8)} {number(to_x)} {number(strip.middle - 4)}"
    with canvas.group(tip=tip):
        canvas.path(leap, "n s-ground", 'stroke-width="4.5"')
        canvas.path(leap, f"n s{colour}", 'stroke-width="2.2"')
        head = f"M{number(to_x)} {number(strip.middle + 2)}l-4.4 -7.4l8.2 -0.6z"
        canvas.path(head, f"f{colour}")


def draw_snapshots(sheet: Sheet) -> None:
    """Draw the snapshots, above everything else."""
    for key, lane in sheet.facts.lanes.items():
        for snapshot in lane.snapshots:
            if sheet.shows(snapshot.taken):
                _snapshot(sheet, lane, snapshot, sheet.places[key].line)


def _snapshot(sheet: Sheet, lane: Lane, snapshot: Snapshot, y: float) -> None:
    canvas, colour = sheet.canvas, colour_of(snapshot.checkpoint)
    x = sheet.x(snapshot.taken)
    sheet.kinds["snapshot"] = None
    tip = f"{lane.actor} takes its snapshot for checkpoint {snapshot.checkpoint} at {sheet.when(snapshot.taken)}"
    with canvas.group(tip=tip + _rest(sheet, snapshot)):
        if snapshot.acknowledged is not None:
            until = sheet.x(snapshot.acknowledged)
            canvas.rect(x, y - 2.5, until - x, 5, f"f{colour}", 'opacity="0.35"')
            canvas.rect(until - 1, y - 6, 2, 12, f"f{colour}")
        elif snapshot.until is not None:
            until = sheet.x(snapshot.until)
            canvas.rect(x, y - 2.5, until - x, 5, f"f{colour}", 'opacity="0.2"')
            if snapshot.declined is not None or until - x > 14:
                canvas.cross(until, y, f"{colour}", 6)
        if snapshot.settled is not None:
            canvas.rect(x, y - 2.5, sheet.x(snapshot.settled) - x, 5, f"f{colour}", 'opacity="0.55"')
        _numbered(sheet, x, y, snapshot.checkpoint)


def _numbered(sheet: Sheet, x: float, y: float, checkpoint: int) -> None:
    """A disc with the number of a checkpoint."""
    text = str(checkpoint)
    size = 9.0 if len(text) < 2 else 8.0 if len(text) < 3 else 6.5
    half = max(7.0, text_width(text, size) / 2 + 3)
    shape = f'rx="{number(7)}" stroke-width="1.2"'
    sheet.canvas.rect(x - half, y - 7, 2 * half, 14, f"f{colour_of(checkpoint)} s-ground", shape)
    sheet.canvas.text(x, y + size * 0.36, text, size, "f-on", 'text-anchor="middle" font-weight="700"')


def _rest(sheet: Sheet, snapshot: Snapshot) -> str:
    told = ""
    if snapshot.settled is not None:
        told += f"\nits state is free of it after {sheet.lasted(snapshot.taken, snapshot.settled)}"
    if snapshot.acknowledged is not None:
        told += f"\ndurable after {sheet.lasted(snapshot.taken, snapshot.acknowledged)}, {snapshot.bytes:,} bytes"
    elif snapshot.until is not None:
        told += "\nit did not become durable"
    return told
