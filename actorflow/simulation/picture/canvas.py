"""How is something drawn, in SVG and on any ground?

A :class:`Canvas` collects elements and knows their colours by what they mean, once for light surroundings and once for
dark ones.  All text is escaped here and nowhere else; a *tip* is what a reader sees who rests on an element.

It refers to nothing outside: no font, no script, no image.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from html import escape

__all__ = ("COLOURS", "STYLE", "Canvas", "clean", "colour_of", "cut", "number", "text_width", "wrapped")

FONT = "ui-sans-serif, system-ui, 'Segoe UI', Roboto, 'Helvetica Neue', 'DejaVu Sans', sans-serif"

COLOURS = 6
"""So many checkpoints in a row look different."""

_LIGHT = ("#4f46e5", "#0f8a7e", "#c2570c", "#a21caf", "#0369a1", "#5b7a0a")
_DARK = ("#8b8cff", "#2cc4b2", "#f59a4c", "#e07be8", "#4db5f0", "#a8cc3c")

_MEANINGS = (
    # name, light, dark
    ("ground", "#ffffff", "#0f131c"),
    ("panel", "#f1f4fa", "#1a2030"),
    ("ended", "#f8f9fc", "#141925"),
    ("ink", "#1b2033", "#e7eaf3"),
    ("muted", "#5b6478", "#a3acc2"),
    ("faint", "#949db1", "#6d7790"),
    ("rule", "#dfe3ec", "#2b3347"),
    ("level", "#a9b8dd", "#46588a"),
    ("deadly", "#d92d20", "#ff6b5e"),
    ("harm", "#b7791f", "#f0b84a"),
    ("good", "#0a7d4f", "#3fcf8e"),
    ("step", "#1d4ed8", "#7aa7ff"),
    ("on", "#ffffff", "#0f131c"),
)


def _rules(colours: Sequence[str], which: int) -> str:
    rules = [f".f{index}{{fill:{colour}}}.s{index}{{stroke:{colour}}}" for index, colour in enumerate(colours)]
    rules += [f".f-{one[0]}{{fill:{one[which]}}}.s-{one[0]}{{stroke:{one[which]}}}" for one in _MEANINGS]
    return "".join(rules)


STYLE = (
    _rules(_LIGHT, 1)
    + f"text{{font-family:{FONT}}}.n{{fill:none}}"
    + f"@media(prefers-color-scheme:dark){{{_rules(_DARK, 2)}}}"
)
"""The colours of everything, for a ``<style>``."""


def colour_of(checkpoint: int) -> str:
    """The name of a checkpoint's colour, which ``f`` or ``s`` before it makes a fill or a stroke."""
    return str((checkpoint - 1) % COLOURS)


def number(value: float) -> str:
    """A coordinate, with one digit behind the point at most."""
    text = f"{value:.1f}".removesuffix(".0")
    return "0" if text == "-0" else text


def text_width(text: str, size: float) -> float:
    """How wide a text is, rather too wide than too narrow: what is drawn must not depend on fonts."""
    hundredths = sum(  # in whole numbers, because versions of Python add up fractions differently
        100 if char > "\u2e80" else 33 if char in " .,:;'|!ijl()[]" else 42 if char in "frt-/" else 62 for char in text
    )
    return size * hundredths / 100


def wrapped(text: str, size: float, room: float, most: int) -> list[str]:
    """A text in lines that fit; what is more than ``most`` lines is cut."""
    lines: list[str] = []
    for paragraph in text.strip().split("\n\n"):
        line = ""
        for word in paragraph.split():
            longer = f"{line} {word}" if line else word
            if line and text_width(longer, size) > room:
                lines.append(line)
                line = word
            else:
                line = longer
        if line:
            lines.append(line)
    if len(lines) > most:
        lines = [*lines[: most - 1], f"{lines[most - 1]} …"]
    return [cut(line, size, room) for line in lines]


def cut(text: str, size: float, room: float) -> str:
    """A text that fits, with … at its end if it was longer."""
    if text_width(text, size) <= room:
        return text
    while text and text_width(f"{text}…", size) > room:
        text = text[:-1]
    return f"{text}…"


class Canvas:
    """Elements of a picture, in the order in which they lie on one another."""

    def __init__(self) -> None:
        self.parts: list[str] = []

    def _add(self, element: str, tip: str) -> None:
        if tip:
            head, _, _ = element.partition(" ")
            element = f"{element.removesuffix('/>')}><title>{clean(tip)}</title></{head[1:]}>"
        self.parts.append(element)

    @contextmanager
    def group(self, attributes: str = "", tip: str = "") -> Iterator[None]:
        """Elements that belong together, and have one tip."""
        self.parts.append(f"<g {attributes}>" if attributes else "<g>")
        if tip:
            self.parts.append(f"<title>{clean(tip)}</title>")
        yield
        self.parts.append("</g>")

    def rect(
        self, x: float, y: float, width: float, height: float, classes: str, more: str = "", tip: str = ""
    ) -> None:
        """A rectangle."""
        at = f'x="{number(x)}" y="{number(y)}" width="{number(max(width, 0))}" height="{number(max(height, 0))}"'
        self._add(f'<rect {at} class="{classes}"{_spaced(more)}/>', tip)

    def line(self, x: float, y: float, to_x: float, to_y: float, classes: str, more: str = "", tip: str = "") -> None:
        """A straight line."""
        at = f'x1="{number(x)}" y1="{number(y)}" x2="{number(to_x)}" y2="{number(to_y)}"'
        self._add(f'<line {at} class="{classes}"{_spaced(more)}/>', tip)

    def path(self, shape: str, classes: str, more: str = "", tip: str = "") -> None:
        """Any shape."""
        self._add(f'<path d="{shape}" class="{classes}"{_spaced(more)}/>', tip)

    def circle(self, x: float, y: float, radius: float, classes: str, more: str = "", tip: str = "") -> None:
        """A circle."""
        at = f'cx="{number(x)}" cy="{number(y)}" r="{number(radius)}"'
        self._add(f'<circle {at} class="{classes}"{_spaced(more)}/>', tip)

    def text(
        self, x: float, y: float, text: str, size: float, classes: str = "f-ink", more: str = "", tip: str = ""
    ) -> None:
        """A line of text, escaped; ``y`` is where its letters stand."""
        inside = f"<title>{clean(tip)}</title>" if tip else ""
        at = f'x="{number(x)}" y="{number(y)}" font-size="{number(size)}"'
        self.parts.append(f'<text {at} class="{classes}"{_spaced(more)}>{inside}{clean(text)}</text>')

    # ── small signs ──

    def arrow(self, x: float, y: float, to_x: float, to_y: float, classes: str, more: str = "", tip: str = "") -> None:
        """A straight arrow."""
        angle = math.atan2(to_y - y, to_x - x)
        back_x, back_y = to_x - 5 * math.cos(angle), to_y - 5 * math.sin(angle)
        side_x, side_y = 3 * math.sin(angle), -3 * math.cos(angle)
        head = (
            f"M{number(to_x)} {number(to_y)}L{number(back_x + side_x)} {number(back_y + side_y)}"
            f"L{number(back_x - side_x)} {number(back_y - side_y)}Z"
        )
        with self.group(tip=tip):
            self.path(f"M{number(x)} {number(y)}L{number(back_x)} {number(back_y)}", f"n s{classes}", more)
            self.path(head, f"f{classes}")

    def check(self, x: float, y: float, classes: str, size: float = 8, tip: str = "") -> None:
        """A tick, its middle at a point."""
        half = size / 2
        down = f"l{number(half * 0.7)} {number(half * 0.8)}"
        shape = f"M{number(x - half)} {number(y)}{down}l{number(half * 1.3)} {number(-half * 1.6)}"
        self.path(shape, f"n s{classes}", 'stroke-width="1.8" stroke-linecap="round" stroke-linejoin="round"', tip)

    def cross(self, x: float, y: float, classes: str, size: float = 8, tip: str = "") -> None:
        """A cross, its middle at a point."""
        whole = number(size)
        left, top = number(x - size / 2), number(y - size / 2)
        shape = f"M{left} {top}l{whole} {whole}m0 -{whole}l-{whole} {whole}"
        self.path(shape, f"n s{classes}", 'stroke-width="1.8" stroke-linecap="round"', tip)

    def diamond(self, x: float, y: float, classes: str, size: float = 5, more: str = "", tip: str = "") -> None:
        """A square on its corner, its middle at a point."""
        s = number(size)
        self.path(f"M{number(x)} {number(y - size)}l{s} {s}l-{s} {s}l-{s} -{s}z", classes, more, tip)

    def bolt(self, x: float, y: float, classes: str, tip: str = "") -> None:
        """A flash of lightning, its middle at a point."""
        self.path(f"M{number(x + 1)} {number(y - 7)}l-5 8h3.4l-1.2 6l5.6 -8.4h-3.6l2.2 -5.6z", classes, "", tip)


def clean(text: str) -> str:
    """Text as it may stand in a document: escaped, and without what no document may hold."""
    return escape("".join(char if char in "\n\t" or _may_stand(char) else "\ufffd" for char in text), quote=True)


def _may_stand(char: str) -> bool:
    return " " <= char <= "\ud7ff" or "\ue000" <= char <= "\ufffd" or char >= "\U00010000"


def _spaced(more: str) -> str:
    return f" {more}" if more else ""
