"""How is a picture put together?  Rows are placed from top to bottom, then drawn from the ground upwards.

The same run gives the same bytes.
"""

from __future__ import annotations

from collections.abc import Sequence

from actorflow.model.journal import Line
from actorflow.simulation.levels import Levels
from actorflow.simulation.picture.barriers import draw_barriers, draw_snapshots
from actorflow.simulation.picture.canvas import STYLE, Canvas, clean, number
from actorflow.simulation.picture.facts import Facts
from actorflow.simulation.picture.lanes import HATCHES, draw_lanes
from actorflow.simulation.picture.legend import Caption, draw_head, draw_legend, draw_verdicts, head_height
from actorflow.simulation.picture.marks import Marks
from actorflow.simulation.picture.outside import Commits, Requests
from actorflow.simulation.picture.reading import facts_of
from actorflow.simulation.picture.rows import (
    BAND,
    draw_axis,
    draw_bands,
    draw_breaks,
    draw_checkpoints,
    place_checkpoints,
)
from actorflow.simulation.picture.scale import scale_of
from actorflow.simulation.picture.sheet import GUTTER, Sheet, milliseconds

__all__ = ("svg",)

LARGEST = 900_000
"""How many bytes an SVG has at most, about: levels are drawn more coarsely until it fits."""

_FINENESS = (1.0, 2.0, 5.0, 15.0, 60.0)


def svg(
    caption: Caption,
    lines: Sequence[Line],
    levels: Levels | None = None,
    *,
    since_us: int | None = None,
    until_us: int | None = None,
) -> str:
    """Draw a run, or its part between two virtual times, in microseconds."""
    facts = facts_of(lines, levels)
    drawn = ""
    for fineness in _FINENESS:
        drawn = _drawn(caption, facts, fineness, since_us, until_us)
        if len(drawn) <= LARGEST:
            break
    return drawn


def _drawn(caption: Caption, facts: Facts, fineness: float, since_us: int | None, until_us: int | None) -> str:
    canvas = Canvas()
    scale = scale_of(facts, since_us, until_us)
    sheet = Sheet(canvas=canvas, facts=facts, scale=scale, most=_most(facts), fineness=fineness)
    width = GUTTER + scale.width + 24
    top = head_height(caption, width)
    draw_head(sheet, caption, width, _told(facts))

    marks = Marks(sheet, caption.notes)
    axis = top + 12
    weather = axis + 10
    y = weather + marks.height
    rows = []
    for process in facts.processes:
        band = y + 4
        bars = band + BAND + 4
        store = place_checkpoints(sheet, process, bars) + 2
        requests, commits = Requests(sheet, process), Commits(sheet, process)
        lanes_end = sheet.place_lanes(process, store + requests.height + 6)
        rows.append((process, band, bars, store, requests, commits, lanes_end))
        y = lanes_end + commits.height + 8
    bottom = y

    draw_axis(sheet, axis, weather - 4, bottom)
    draw_lanes(sheet)
    for _, _, _, store, requests, commits, lanes_end in rows:
        requests.draw(store)
        commits.draw(lanes_end)
    if rows:
        draw_breaks(sheet, rows[0][1], bottom, label=rows[0][3] + rows[0][4].height)
    for process, band, bars, *_ in rows:
        canvas.line(10, band - 3, width - 14, band - 3, "s-rule", 'stroke-width="1"')
        draw_bands(sheet, process, band)
        draw_checkpoints(sheet, process, bars)
    draw_barriers(sheet)
    draw_snapshots(sheet)
    marks.draw(weather, bottom)
    canvas.line(10, bottom + 2, width - 14, bottom + 2, "s-rule", 'stroke-width="1"')
    draw_axis(sheet, bottom + 16, 0, 0)
    end = draw_legend(sheet, bottom + 26, width)
    end = draw_verdicts(sheet, caption, end + 10, width) + 12
    return _document(caption, canvas, width, end)


def _document(caption: Caption, canvas: Canvas, width: float, height: float) -> str:
    size = f'width="{number(width)}" height="{number(height)}" viewBox="0 0 {number(width)} {number(height)}"'
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" {size} role="img" aria-label="{clean(caption.title)}">',
            f"<style>{STYLE}</style>",
            f"<defs>{HATCHES}</defs>",
            f'<rect class="f-ground" width="{number(width)}" height="{number(height)}" rx="10"/>',
            *canvas.parts,
            "</svg>\n",
        ]
    )


def _most(facts: Facts) -> int:
    levels = facts.levels
    return max([1, *(channel.records.most for channel in levels.channels.values())]) if levels is not None else 1


def _told(facts: Facts) -> str:
    """The run in a few words."""
    lives = len({(band.process, band.life) for band in facts.bands})
    completed = sum(one.completed is not None for one in facts.checkpoints)
    lasted = milliseconds(facts.times_us[-1] - facts.times_us[0]) if facts.times_us else "no time"
    return (
        f"{lasted} of virtual time · {_counted(lives, 'life', 'lives')} · "
        f"{_counted(len(facts.bands), 'attempt', 'attempts')} · {completed} of "
        f"{_counted(len(facts.checkpoints), 'checkpoint', 'checkpoints')} completed · "
        f"{_counted(len(facts.strikes), 'fault', 'faults')}"
    )


def _counted(count: int, one: str, many: str) -> str:
    return f"{count} {one if count == 1 else many}"
