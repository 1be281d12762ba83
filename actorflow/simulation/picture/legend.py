"""What do the signs of a picture mean, what is its story, and did it come true?

The legend shows the signs that were drawn and no others.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from actorflow.simulation.picture.canvas import text_width, wrapped
from actorflow.simulation.picture.marks import Note
from actorflow.simulation.picture.sheet import Sheet

__all__ = ("Caption", "Verdict", "draw_head", "draw_legend", "draw_verdicts", "head_height")


@dataclass(frozen=True, slots=True)
class Verdict:
    """Something that must be true, in words, and whether it is; ``None`` where nobody knows."""

    text: str
    holds: bool | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Caption:
    """What stands around a picture.  ``source`` says of what it is a picture, such as a file and a seed."""

    title: str
    story: str = ""
    source: str = ""
    notes: Sequence[Note] = ()
    verdicts: Sequence[Verdict] = ()

    @property
    def passed(self) -> bool | None:
        """Whether all that must be true is true."""
        known = [verdict.holds for verdict in self.verdicts]
        return None if not known or None in known else all(known)


_SIGNS = (
    ("snapshot", "snapshot: its instant, the rest of it, and durable"),
    ("injected", "a checkpoint begins at a source"),
    ("barrier", "barrier on its way"),
    ("overtaking", "barrier that overtakes what waits"),
    ("stored", "records stored with the checkpoint"),
    ("level", "records that wait in a channel"),
    ("aligning", "waiting for the other barriers"),
    ("blocked", "channel blocked by a barrier"),
    ("manifest", "manifest written"),
    ("completed", "checkpoint completed"),
    ("aborted", "checkpoint aborted, or lost"),
    ("prepared", "output prepared"),
    ("committed", "output visible"),
    ("request", "request to the store"),
    ("batch", "batch taken"),
    ("calls", "async calls under way"),
    ("restoring", "being restored and opened"),
    ("finished", "input has ended"),
    ("deadly", "a process dies"),
    ("harm", "other weather"),
    ("trouble", "trouble, and how it was met"),
    ("step", "asked from outside"),
    ("calm", "the weather lifts"),
    ("slow", "slow, or stalled"),
    ("break", "time is shortened, or left out"),
)


def head_height(caption: Caption, width: float) -> float:
    """How much room the head of a picture takes."""
    return 62.0 + 17 * len(wrapped(caption.story, 12.5, min(width - 200, 980), 5))


def draw_head(sheet: Sheet, caption: Caption, width: float, told: str) -> None:
    """Draw title, source and story."""
    canvas = sheet.canvas
    canvas.text(14, 32, caption.title, 20, "f-ink", 'font-weight="700"')
    source = " · ".join(part for part in (caption.source, told) if part)
    canvas.text(14, 51, source, 11, "f-muted")
    for index, line in enumerate(wrapped(caption.story, 12.5, min(width - 200, 980), 5)):
        canvas.text(14, 74 + 17 * index, line, 12.5, "f-ink")
    if caption.passed is not None:
        text, colour = ("passed", "good") if caption.passed else ("failed", "deadly")
        wide = text_width(text, 11) + 34
        canvas.rect(width - wide - 16, 16, wide, 22, f"n s-{colour}", 'rx="11" stroke-width="1.4"')
        sign = canvas.check if caption.passed else canvas.cross
        sign(width - wide - 1, 27, f"-{colour}", 8)
        canvas.text(width - wide + 10, 31, text, 11, f"f-{colour}", 'font-weight="600"')


def draw_legend(sheet: Sheet, top: float, width: float) -> float:
    """Draw the signs that occur, with their meanings; return where they end."""
    canvas = sheet.canvas
    x, y, row = 14.0, top + 12, 20.0
    signs = [(kind, text) for kind, text in _SIGNS if kind in sheet.kinds]
    if {"paused", "cut off"} & sheet.kinds.keys() and "slow" not in sheet.kinds:
        signs.append(("slow", "slow, or stalled"))
    for kind, text in signs:
        wide = 34 + text_width(text, 10.5) + 22
        if x + wide > width - 10 and x > 14:
            x, y = 14.0, y + row
        _sign(sheet, kind, x, y)
        canvas.text(x + 34, y + 3.6, text, 10.5, "f-muted")
        x += wide
    most = "1 record" if sheet.most == 1 else f"{sheet.most:,} records"
    canvas.text(14, y + row + 3, _HINT.format(most=most), 10.5, "f-faint")
    return y + row + 12


_HINT = (
    "Each colour is one checkpoint.  A strip that is full to its top holds {most}.  What happens at one "
    "instant is drawn side by side, in its order."
)


def _sign(sheet: Sheet, kind: str, x: float, y: float) -> None:
    canvas = sheet.canvas
    match kind:
        case "snapshot":
            canvas.rect(x + 7, y - 2.5, 18, 5, "f0", 'opacity="0.35"')
            canvas.rect(x + 7, y - 2.5, 9, 5, "f0", 'opacity="0.55"')
            canvas.rect(x + 24, y - 6, 2, 12, "f0")
            canvas.rect(x, y - 7, 14, 14, "f0", 'rx="7"')
            canvas.text(x + 7, y + 3.2, "1", 9, "f-on", 'text-anchor="middle" font-weight="700"')
        case "injected":
            canvas.arrow(x + 2, y - 6, x + 26, y + 5, "0", 'stroke-width="1" stroke-dasharray="2 3"')
        case "barrier":
            canvas.arrow(x + 2, y - 6, x + 26, y + 5, "0", 'stroke-width="1.3"')
        case "overtaking":
            canvas.path(f"M{x} {y + 4}Q{x + 16} {y - 12} {x + 24} {y + 1}", "n s0", 'stroke-width="2.2"')
            canvas.path(f"M{x + 25} {y + 6}l-5 -6l7.6 -1.6z", "f0")
        case "stored":
            outline = 'fill-opacity="0.3" stroke-width="1" stroke-dasharray="3 2"'
            canvas.rect(x, y - 6, 26, 12, "f0 s0", outline)
        case "level":
            canvas.path(f"M{x} {y + 6}v-5h6v-4h7v6h7v-7h6v10z", "f-level")
        case "aligning":
            canvas.rect(x, y - 7, 26, 14, "f0", 'opacity="0.16" rx="3"')
        case "blocked":
            canvas.rect(x, y - 6, 26, 12, "f0", 'opacity="0.14"')
            canvas.rect(x, y - 6, 26, 12, "", 'fill="url(#h-0)" opacity="0.55"')
        case "manifest":
            canvas.diamond(x + 13, y, "f0", 5.5)
        case "completed":
            canvas.check(x + 13, y, "-good", 8)
        case "aborted":
            canvas.cross(x + 13, y, "-deadly", 7)
        case "prepared":
            canvas.circle(x + 13, y, 4.5, "f-ground s0", 'stroke-width="1.8"')
        case "committed":
            canvas.circle(x + 13, y, 5.5, "f0")
        case "request":
            canvas.rect(x, y - 4, 14, 4.2, "f0")
            canvas.rect(x + 8, y + 2, 18, 4.2, "f-faint", 'opacity="0.45"')
        case "batch":
            canvas.path(f"M{x + 4} {y - 3}v6M{x + 10} {y - 3}v6M{x + 13} {y - 3}v6M{x + 22} {y - 3}v6", "n s-faint")
        case "calls":
            canvas.path(f"M{x} {y + 5}v-4h8v-4h8v4h10v4z", "f-step", 'opacity="0.35"')
        case "restoring":
            canvas.rect(x, y - 7, 26, 14, "", 'fill="url(#h--rule)"')
        case "finished":
            canvas.rect(x + 2, y - 3, 6, 6, "f-faint")
            canvas.line(x + 8, y, x + 26, y, "s-faint", 'stroke-width="1.2" stroke-dasharray="1 4"')
        case "deadly" | "harm":
            canvas.bolt(x + 13, y, f"f-{kind}")
        case "trouble":
            canvas.circle(x + 13, y, 3.2, "n s-harm", 'stroke-width="1.6"')
        case "step":
            canvas.path(f"M{x + 9} {y - 4}h8l-4 8z", "f-step")
        case "calm":
            canvas.circle(x + 13, y, 4, "f-good")
        case "slow":
            canvas.rect(x, y - 7, 26, 14, "", 'fill="url(#h--harm)" opacity="0.45"')
        case "break":
            for place in (x + 8, x + 18):
                canvas.line(place, y - 7, place, y + 7, "s-faint", 'stroke-width="1" stroke-dasharray="2 3"')


def draw_verdicts(sheet: Sheet, caption: Caption, top: float, width: float) -> float:
    """Draw what must be true, each with a tick or a cross; return where that ends."""
    if not caption.verdicts:
        return top
    canvas = sheet.canvas
    canvas.text(14, top + 14, "What must be true", 12, "f-ink", 'font-weight="700"')
    y = top + 34
    for verdict in caption.verdicts:
        if verdict.holds is None:
            canvas.circle(20, y - 3.5, 3, "n s-faint", 'stroke-width="1.4"')
        elif verdict.holds:
            canvas.check(20, y - 4, "-good", 8)
        else:
            canvas.cross(20, y - 4, "-deadly", 7)
        for line in wrapped(verdict.text, 11, width - 60, 4):
            canvas.text(34, y, line, 11, "f-ink")
            y += 16
        y += 2
    return y
