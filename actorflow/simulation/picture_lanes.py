"""How is an actor drawn?

As a lane: above, when it was there, its snapshots and its alignment; below, one strip for each channel that it reads,
filled as high as records wait in it, hatched while a barrier blocks it.  Barriers are arrows from lane to lane.
"""

from __future__ import annotations

from actorflow.simulation.picture_canvas import colour_of, cut, number, text_width
from actorflow.simulation.picture_facts import Arrow, Key, Lane, Lived, Snapshot
from actorflow.simulation.picture_sheet import GUTTER, HEAD, Place, Sheet, Strip

__all__ = ("HATCHES", "draw_barriers", "draw_lanes", "draw_snapshots")

HATCHES = "".join(
    f'<pattern id="h-{name}" width="6" height="6" patternUnits="userSpaceOnUse" patternTransform="rotate(45)">'
    f'<line x1="0" y1="0" x2="0" y2="6" class="s{name}" stroke-width="{width}"/></pattern>'
    for name, width in [*((str(index), 2.4) for index in range(6)), ("-rule", 2.4), ("-harm", 1.6)]
)
"""Patterns for what is blocked, restored or paused."""


def draw_lanes(sheet: Sheet) -> None:
    """Draw what lies below arrows and snapshots."""
    for key, lane in sheet.facts.lanes.items():
        place = sheet.places[key]
        _name(sheet, lane, place)
        for lived in lane.lives:
            _lived(sheet, lived, place)
        _spells(sheet, lane, place)
        _batches(sheet, key, place)
        for strip in place.strips:
            _level(sheet, lane, strip)
        _waits(sheet, lane, place)
        _calls(sheet, key, place)
        for moment in lane.notes:
            if sheet.shows(moment):
                tip = f"{sheet.facts.lines[moment].name} at {sheet.when(moment)}"
                sheet.canvas.circle(sheet.x(moment), place.line, 2.5, "f-harm", tip=tip)


def _name(sheet: Sheet, lane: Lane, place: Place) -> None:
    canvas = sheet.canvas
    canvas.text(14, place.line + 1, cut(lane.actor, 12, GUTTER - 26), 12, "f-ink", 'font-weight="600"', lane.actor)
    chain = " → ".join(lane.operators[1:])
    if chain:
        canvas.text(14, place.line + 13, cut(f"→ {chain}", 9.5, GUTTER - 26), 9.5, "f-muted", tip=chain)
    for strip in place.strips:
        size = 9.5 if strip.height > 12 else 8.5
        name = cut(strip.name, size, GUTTER - 40)
        canvas.text(
            GUTTER - 10, strip.bottom - 3, name, size, "f-faint", 'text-anchor="end"', "\n".join(strip.channels)
        )


def _lived(sheet: Sheet, lived: Lived, place: Place) -> None:
    canvas, height = sheet.canvas, place.bottom - place.top
    since, until = sheet.x(lived.since), sheet.until(lived.until)
    if until - since < 0.5:
        return
    started = until if lived.started is None else sheet.x(lived.started)
    if started > since:
        sheet.kinds["restoring"] = None
        tip = "its state is restored and its operators are opened"
        with canvas.group(tip=tip):
            canvas.rect(since, place.top, started - since, height, "f-ended", 'rx="3"')
            canvas.rect(since, place.top, started - since, height, "", 'fill="url(#h--rule)" rx="3"')
    if until > started:
        canvas.rect(started, place.top, until - started, height, "f-panel", 'rx="3"')
        canvas.line(started, place.line, until, place.line, "s-rule", 'stroke-width="1.5"')
    if lived.finished is not None and (finished := sheet.x(lived.finished)) < until:
        sheet.kinds["finished"] = None
        with canvas.group(tip=f"it finished its input at {sheet.when(lived.finished)}"):
            canvas.line(finished, place.line, until, place.line, "s-ground", 'stroke-width="2.5"')
            canvas.line(finished, place.line, until, place.line, "s-faint", 'stroke-width="1.2" stroke-dasharray="1 4"')
            canvas.rect(finished - 3, place.line - 3, 6, 6, "f-faint")


def _spells(sheet: Sheet, lane: Lane, place: Place) -> None:
    """Weather that lasts: operators that are slow, processes that stall."""
    levels = sheet.facts.levels
    if levels is None:
        return
    own = {lane.actor.rpartition("/")[0], *lane.operators}
    for (what, whom, until_us), since_us in levels.spells.items():
        if (what, whom) != ("paused", lane.process) and not (what == "slow" and whom in own):
            continue
        for lived in lane.lives:
            since = max(sheet.at(since_us), sheet.x(lived.since))
            until = min(sheet.at(until_us), sheet.until(lived.until))
            if until - since < 1:
                continue
            sheet.kinds[what] = None
            with sheet.canvas.group(tip=f"{whom} is {what}"):
                sheet.canvas.rect(
                    since, place.top, until - since, place.bottom - place.top, "", 'fill="url(#h--harm)" opacity="0.45"'
                )
                sheet.label(since + 4, place.top + 9, what, 9, until - since - 8, "f-harm")


def _batches(sheet: Sheet, key: Key, place: Place) -> None:
    levels = sheet.facts.levels
    if levels is None or key not in levels.actors:
        return
    shape, last = [], -1.0
    for us in levels.actors[key].batches:
        x = sheet.at(us)
        if sheet.left < x < sheet.right and x - last >= max(1.5, sheet.fineness):
            shape.append(f"M{number(x)} {number(place.line - 3)}v6")
            last = x
    if shape:
        sheet.kinds["batch"] = None
        sheet.canvas.path("".join(shape), "n s-faint", 'stroke-width="0.9" opacity="0.75"')


def _level(sheet: Sheet, lane: Lane, strip: Strip) -> None:
    canvas = sheet.canvas
    canvas.line(sheet.left, strip.bottom, sheet.right, strip.bottom, "s-rule", 'stroke-width="0.8"')
    levels = sheet.facts.levels
    if levels is None:
        return
    changes = sorted(
        (us, index, value)
        for index, channel in enumerate(strip.channels)
        if (lane.process, channel) in levels.channels
        for us, value in levels.channels[lane.process, channel].records.points
    )
    changes = sorted([*changes, *_deaths(sheet, lane, len(strip.channels))])
    now = [0] * len(strip.channels)
    steps: list[tuple[float, int]] = []
    for us, index, value in changes:
        now[index] = value
        x, whole = sheet.at(us), sum(now)
        if steps and x - steps[-1][0] < sheet.fineness:
            # Of several changes in one place the last one stays, but not so that a level is never seen.
            before = steps[-2][1] if len(steps) > 1 else 0
            steps[-1] = (steps[-1][0], max(whole, steps[-1][1]) if before == 0 else whole)
            if steps[-1][1] != whole:
                steps.append((steps[-1][0] + sheet.fineness, whole))
        else:
            steps.append((x, whole))
    if not any(value for _, value in steps):
        return
    sheet.kinds["level"] = None
    room = strip.height - 1
    shape = [f"M{number(sheet.left)} {number(strip.bottom)}"]
    for x, value in steps:
        height = max(1.5, room * value / sheet.most) if value else 0
        shape.append(f"H{number(x)}V{number(strip.bottom - height)}")
    shape.append(f"H{number(sheet.right)}V{number(strip.bottom)}Z")
    canvas.path("".join(shape), "f-level", tip=f"records that wait, {strip.name}; at most {max(v for _, v in steps):,}")


def _deaths(sheet: Sheet, lane: Lane, channels: int) -> list[tuple[int, int, int]]:
    """Whoever dies has nothing waiting any more, which nobody was there to see."""
    ends = [sheet.facts.times_us[lived.until] for lived in lane.lives if lived.until is not None]
    return [(us + 1, index, 0) for us in ends for index in range(channels)]


def _waits(sheet: Sheet, lane: Lane, place: Place) -> None:
    """Alignment: the actor waits, and the channels whose barrier has come are blocked."""
    canvas, blocks = sheet.canvas, _blocks(sheet)
    for blocked in lane.blocked:
        since, until = sheet.x(blocked.since), sheet.until(blocked.until)
        if until - since < 1:
            continue
        colour = colour_of(blocked.checkpoint)
        lasted = "" if blocked.until is None else f" for {sheet.lasted(blocked.since, blocked.until)}"
        if not blocked.channel:
            sheet.kinds["aligning"] = None
            tip = f"{lane.actor} waits for the other barriers of checkpoint {blocked.checkpoint}{lasted}"
            with canvas.group(tip=tip):
                canvas.rect(since, place.top + 2, until - since, HEAD - 4, f"f{colour}", 'opacity="0.16" rx="3"')
                word = "aligning" if blocks else "counting"
                sheet.label(since + 4, place.top + 10, word, 8.5, until - since - 16, f"f{colour}")
        elif blocks and (strip := sheet.strip_of(lane.process, blocked.channel)) is not None:
            sheet.kinds["blocked"] = None
            tip = f"{blocked.channel} is blocked by the barrier of checkpoint {blocked.checkpoint}{lasted}"
            with canvas.group(tip=tip):
                canvas.rect(since, strip.top, until - since, strip.height, f"f{colour}", 'opacity="0.14"')
                canvas.rect(
                    since, strip.top, until - since, strip.height, "", f'fill="url(#h-{colour})" opacity="0.55"'
                )


def _blocks(sheet: Sheet) -> bool:
    """Whether barriers block channels at all: with a weaker guarantee they are counted, which no journal tells."""
    levels = sheet.facts.levels
    return levels is None or levels.blocks


def _calls(sheet: Sheet, key: Key, place: Place) -> None:
    """Async calls under way, as a step line along the top of the lane."""
    levels = sheet.facts.levels
    if levels is None or key not in levels.actors or not levels.actors[key].calls.points:
        return
    calls, lane = levels.actors[key].calls, sheet.facts.lanes[key]
    shape, last = [f"M{number(sheet.left)} {number(place.top + 11)}"], -9.0
    for us, value in sorted([*calls.points, *((us, 0) for us, _, _ in _deaths(sheet, lane, 1))]):
        x = sheet.at(us)
        if x - last >= sheet.fineness or value == 0:
            shape.append(f"H{number(x)}V{number(place.top + 11 - 9 * value / calls.most)}")
            last = x
    shape.append(f"H{number(sheet.right)}V{number(place.top + 11)}Z")
    sheet.kinds["calls"] = None
    tip = f"async calls under way, at most {calls.most:,}"
    sheet.canvas.path("".join(shape), "f-step", 'opacity="0.35"', tip)


# ── what lies above ──────────────────────────────────────────────────────────────────────────


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
