"""How is a plan drawn as a picture?

A layered layout of our own, left to right: an actor stands one column right of the furthest one it reads, and within a
column near those it reads.  Between two columns lines bend first and then run straight under their labels; a line that
passes a column has a place of its own in it.  That is enough for graphs that people write by hand, and it needs nothing
installed.  The picture is SVG on a ground of its own, with no script, no outside reference, and all text escaped.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from xml.sax.saxutils import escape

from actorflow.dataflow.physical import Exchange, Plan, Vertex
from actorflow.dataflow.picture import exchange_label, operator_label

__all__ = ("svg",)

_CHARACTER = 7.4  # width of a letter of the font below, generously
_LINE = 20
_PAD = 12
_BEND = 56
_GAP = 30
_PORT = 20
_MARGIN = 20
_LONGEST = 40
_FONT = 'font-family="ui-monospace, Menlo, Consolas, DejaVu Sans Mono, monospace"'
_GREY, _INK, _EDGE, _FILL, _GROUND = "#6b7280", "#1e1b4b", "#4f46e5", "#eef2ff", "#ffffff"


@dataclass(slots=True, eq=False)
class _Box:
    """An actor in a column, or the place where a line passes it."""

    vertex: Vertex | None
    layer: int
    above: list[_Box] = field(default_factory=list)
    x: float = 0
    y: float = 0
    right: float = 0
    """Where the column ends: lines run straight up to there."""

    @property
    def lines(self) -> list[str]:
        if self.vertex is None:
            return []
        return [*(_cut(operator_label(one)) for one in self.vertex.operators), f"×{self.vertex.parallelism}"]

    @property
    def width(self) -> float:
        return max((len(line) for line in self.lines), default=0) * _CHARACTER + (2 * _PAD if self.vertex else 0)

    @property
    def height(self) -> float:
        if self.vertex is None:
            return 0
        ports = max(len(self.vertex.inputs), len(self.vertex.outputs))
        return max(len(self.lines) * _LINE + _PAD, (ports + 1) * _PORT)

    @property
    def middle(self) -> float:
        return self.y + self.height / 2


def svg(plan: Plan) -> str:
    """Return a plan as an SVG document."""
    boxes = _boxes(plan)
    passes = _passes(plan, boxes)
    layers: list[list[_Box]] = [[] for _ in range(max((box.layer for box in boxes), default=-1) + 1)]
    for box in [*boxes, *(one for way in passes.values() for one in way)]:
        layers[box.layer].append(box)
    _place(plan, layers)
    width = max((box.x + box.width for box in boxes), default=0) + _MARGIN
    height = max((box.y + box.height for layer in layers for box in layer), default=0) + _MARGIN
    parts = [
        (
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:.0f}" height="{height:.0f}" '
            f'viewBox="0 0 {width:.0f} {height:.0f}" role="img" {_FONT} font-size="12">'
        ),
        f"<title>{escape(f'plan of job {plan.job}')}</title>",
        f'<rect width="100%" height="100%" rx="8" fill="{_GROUND}"/>',
    ]
    for exchange in plan.exchanges:
        parts += _arrow(exchange, boxes, passes[exchange.index])
    for box in boxes:
        parts += _drawn(box)
    parts.append("</svg>")
    return "\n".join(parts)


def _cut(label: str) -> str:
    return label if len(label) <= _LONGEST else label[: _LONGEST - 1] + "…"


def _boxes(plan: Plan) -> list[_Box]:
    boxes: list[_Box] = []
    for vertex in plan.vertices:
        above = [boxes[plan.exchanges[index].upstream] for index in vertex.inputs]
        boxes.append(_Box(vertex, max((box.layer for box in above), default=-1) + 1, above))
    return boxes


def _passes(plan: Plan, boxes: list[_Box]) -> dict[int, list[_Box]]:
    """Give each line a place in every column that it passes."""
    found: dict[int, list[_Box]] = {}
    for exchange in plan.exchanges:
        way, last = [], boxes[exchange.upstream]
        for layer in range(last.layer + 1, boxes[exchange.downstream].layer):
            last = _Box(None, layer, [last])
            way.append(last)
        found[exchange.index] = way
    return found


def _place(plan: Plan, layers: list[list[_Box]]) -> None:
    """Set the corner of each box, a column after the other."""
    x: float = _MARGIN
    for layer in layers:
        arriving = [plan.exchanges[index] for box in layer if box.vertex is not None for index in box.vertex.inputs]
        if arriving:
            x += _BEND + _label_room(arriving)
        wishes = {box: sum(one.middle for one in box.above) / len(box.above) if box.above else 0.0 for box in layer}
        layer.sort(key=wishes.__getitem__)  # stable: those that wish the same keep the order of the program
        y: float = _MARGIN
        for box in layer:
            box.x, box.y = x, max(y, wishes[box] - box.height / 2)
            y = box.y + box.height + _GAP
        x += max(box.width for box in layer)
        for box in layer:
            box.right = x


def _label_room(exchanges: list[Exchange]) -> float:
    return max(len(_cut(exchange_label(one))) for one in exchanges) * _CHARACTER + 20


def _arrow(exchange: Exchange, boxes: list[_Box], way: list[_Box]) -> list[str]:
    start, end = boxes[exchange.upstream], boxes[exchange.downstream]
    assert start.vertex is not None
    assert end.vertex is not None
    x, y = start.right, _port(start, start.vertex.outputs, exchange)
    path = [f"M{start.x + start.width:.0f} {y:.0f} H{x:.0f}"]
    for stop in [*way, end]:
        stop_y = stop.y if stop is not end else _port(end, end.vertex.inputs, exchange)
        bend = x + _BEND
        path.append(f"C{x + _BEND / 2:.0f} {y:.0f} {bend - _BEND / 2:.0f} {stop_y:.0f} {bend:.0f} {stop_y:.0f}")
        x, y = (stop.right, stop_y) if stop is not end else (end.x - 6, stop_y)
        path.append(f"H{x:.0f}")
    dashes = ' stroke-dasharray="5 4"' if exchange.role else ""
    label = escape(_cut(exchange_label(exchange)))
    return [
        f'<path d="{" ".join(path)}" fill="none" stroke="{_GREY}" stroke-width="1.4"{dashes}/>',
        f'<path d="M{x:.0f} {y - 4:.0f} l6 4 l-6 4 z" fill="{_GREY}"/>',
        f'<text x="{x - 6:.0f}" y="{y - 5:.0f}" text-anchor="end" fill="{_GREY}" font-size="11">{label}</text>',
    ]


def _port(box: _Box, exchanges: tuple[int, ...], exchange: Exchange) -> float:
    """Where on a box's side a line ends: several share the side evenly."""
    return box.y + box.height * (exchanges.index(exchange.index) + 1) / (len(exchanges) + 1)


def _drawn(box: _Box) -> list[str]:
    parts = [
        (
            f'<rect x="{box.x:.0f}" y="{box.y:.0f}" width="{box.width:.0f}" height="{box.height:.0f}" rx="8" '
            f'fill="{_FILL}" stroke="{_EDGE}" stroke-width="1.2"/>'
        )
    ]
    y = box.middle - len(box.lines) * _LINE / 2 + 14
    for number, line in enumerate(box.lines, 1):
        fill = _EDGE if number == len(box.lines) else _INK
        parts.append(f'<text x="{box.x + _PAD:.0f}" y="{y:.0f}" fill="{fill}">{escape(line)}</text>')
        y += _LINE
    return parts
