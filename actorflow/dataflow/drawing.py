"""How is a plan drawn as a picture?

A layered layout of our own, left to right: an actor stands one column right of the furthest one it reads, and within a
column where the middle of those it reads is.  That is enough for graphs that people write by hand, and it needs nothing
installed.  The picture is SVG with no script, no outside reference, and all text escaped, in colours that read on light
and dark pages.
"""

from __future__ import annotations

from dataclasses import dataclass
from xml.sax.saxutils import escape

from actorflow.dataflow.physical import Exchange, Plan, Vertex
from actorflow.dataflow.picture import exchange_label, operator_label
from actorflow.dataflow.primitives import ExchangeKind

__all__ = ("svg",)

_CHARACTER = 7.3  # width of a letter of the font below, generously
_LINE = 20
_PAD = 12
_GAP_X, _GAP_Y = 56, 36
_MARGIN = 20
_LONGEST = 40
_FONT = 'font-family="ui-monospace, Menlo, Consolas, monospace" font-size="12"'


@dataclass(slots=True)
class _Box:
    """An actor on the page."""

    vertex: Vertex
    lines: list[str]
    layer: int = 0
    x: float = 0
    y: float = 0

    @property
    def width(self) -> float:
        return max(len(line) for line in [*self.lines, _size(self.vertex)]) * _CHARACTER + 2 * _PAD

    @property
    def height(self) -> float:
        return (len(self.lines) + 1) * _LINE + _PAD

    @property
    def middle(self) -> float:
        return self.y + self.height / 2


def svg(plan: Plan) -> str:
    """Return a plan as an SVG document."""
    boxes = [_Box(vertex, [_cut(operator_label(one)) for one in vertex.operators]) for vertex in plan.vertices]
    layers = _layers(plan, boxes)
    _place(plan, layers, boxes)
    width = max((box.x + box.width for box in boxes), default=0) + _MARGIN
    height = max((box.y + box.height for box in boxes), default=0) + _MARGIN
    title = f"plan of job {plan.job}"
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:.0f}" height="{height:.0f}" '
        f'viewBox="0 0 {width:.0f} {height:.0f}" role="img" {_FONT}>',
        f"<title>{escape(title)}</title>",
        '<defs><marker id="af-end" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="8" markerHeight="8" '
        'orient="auto"><path d="M0 0 L8 4 L0 8 z" fill="#6b7280"/></marker></defs>',
    ]
    parts += _arrows(plan, boxes)
    for box in boxes:
        parts += _drawn(box)
    parts.append("</svg>")
    return "\n".join(parts)


def _cut(label: str) -> str:
    return label if len(label) <= _LONGEST else label[: _LONGEST - 1] + "…"


def _size(vertex: Vertex) -> str:
    return f"×{vertex.parallelism}"


def _layers(plan: Plan, boxes: list[_Box]) -> list[list[_Box]]:
    for box in boxes:
        above = [boxes[plan.exchanges[index].upstream].layer for index in box.vertex.inputs]
        box.layer = max(above, default=-1) + 1
    layers: list[list[_Box]] = [[] for _ in range(max((box.layer for box in boxes), default=-1) + 1)]
    for box in boxes:
        layers[box.layer].append(box)
    return layers


def _place(plan: Plan, layers: list[list[_Box]], boxes: list[_Box]) -> None:
    """Set the corner of each box, a column after the other."""
    x: float = _MARGIN
    for number, layer in enumerate(layers):
        arriving = [plan.exchanges[index] for box in layer for index in box.vertex.inputs]
        if number:
            x += max([_GAP_X, *(len(_cut(exchange_label(one))) * _CHARACTER + 40 for one in arriving)])
        wish = {box.vertex.index: _wish(plan, boxes, box) for box in layer}
        layer.sort(key=lambda box: (wish[box.vertex.index], box.vertex.index))
        y: float = _MARGIN
        for box in layer:
            box.x, box.y = x, max(y, wish[box.vertex.index] - box.height / 2)
            y = box.y + box.height + _GAP_Y
        x += max(box.width for box in layer)


def _wish(plan: Plan, boxes: list[_Box], box: _Box) -> float:
    above = [boxes[plan.exchanges[index].upstream].middle for index in box.vertex.inputs]
    return sum(above) / len(above) if above else 0


def _arrows(plan: Plan, boxes: list[_Box]) -> list[str]:
    parts = []
    for exchange in plan.exchanges:
        start, end = boxes[exchange.upstream], boxes[exchange.downstream]
        x1, y1 = start.x + start.width, _port(start, start.vertex.outputs, exchange)
        x2, y2 = end.x - 2, _port(end, end.vertex.inputs, exchange)
        bend = max(24.0, (x2 - x1) / 2)
        dashes = ' stroke-dasharray="5 4"' if exchange.kind is ExchangeKind.BROADCAST or exchange.role else ""
        parts.append(
            f'<path d="M{x1:.0f} {y1:.0f} C{x1 + bend:.0f} {y1:.0f} {x2 - bend:.0f} {y2:.0f} {x2:.0f} {y2:.0f}" '
            f'fill="none" stroke="#6b7280" stroke-width="1.4"{dashes} marker-end="url(#af-end)"/>'
        )
        label = escape(_cut(exchange_label(exchange)))
        # Beside its own end of the line, where lines that begin together have parted.
        parts.append(
            f'<text x="{x2 - 12:.0f}" y="{y2 - 6:.0f}" text-anchor="end" fill="#6b7280" font-size="11">{label}</text>'
        )
    return parts


def _port(box: _Box, exchanges: tuple[int, ...], exchange: Exchange) -> float:
    """Where on a box's side an arrow ends: several share the side evenly."""
    return box.y + box.height * (exchanges.index(exchange.index) + 1) / (len(exchanges) + 1)


def _drawn(box: _Box) -> list[str]:
    parts = [
        f'<rect x="{box.x:.0f}" y="{box.y:.0f}" width="{box.width:.0f}" height="{box.height:.0f}" rx="8" '
        'fill="#eef2ff" stroke="#4f46e5" stroke-width="1.2"/>'
    ]
    y = box.y + _LINE
    for line in box.lines:
        parts.append(f'<text x="{box.x + _PAD:.0f}" y="{y:.0f}" fill="#1e1b4b">{escape(line)}</text>')
        y += _LINE
    parts.append(f'<text x="{box.x + _PAD:.0f}" y="{y:.0f}" fill="#6366f1">{escape(_size(box.vertex))}</text>')
    return parts
