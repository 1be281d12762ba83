"""How is an actor drawn?

As a lane: above, when it was there, its snapshots and its alignment; below, one strip for each channel that it reads,
filled as high as records wait in it, hatched while a barrier blocks it.  Barriers are arrows from lane to lane.
"""

from __future__ import annotations

from actorflow.simulation.picture.canvas import colour_of, cut, number
from actorflow.simulation.picture.facts import Key, Lane, Lived
from actorflow.simulation.picture.sheet import GUTTER, HEAD, Place, Sheet, Strip

__all__ = ("HATCHES", "draw_lanes")

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
