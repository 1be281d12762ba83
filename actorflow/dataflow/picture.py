"""How is a plan shown in text?

``text`` is for terminals: one paragraph per actor, upstream first.  ``mermaid`` is a flow chart for pages that draw
Mermaid.  ``drawing.py`` draws the same as SVG.  All three show names, so all three escape them.
"""

from __future__ import annotations

from actorflow.dataflow.physical import Exchange, Plan, Vertex
from actorflow.dataflow.primitives import ExchangeKind, Operator

__all__ = ("exchange_label", "mermaid", "operator_label", "text")


def operator_label(operator: Operator) -> str:
    """Return an operator's name, and what it does unless the name says so."""
    plain = operator.name.lower().rstrip("0123456789-") == operator.label
    return operator.name if plain else f"{operator.name} ({operator.label})"


def exchange_label(exchange: Exchange) -> str:
    """Return how records travel, and which of them."""
    how = exchange.operator if exchange.kind is ExchangeKind.KEYED else exchange.kind.value
    side = f"{exchange.tag}: " if exchange.tag is not None else ""
    return side + how


def text(plan: Plan) -> str:
    """Return a plan for a terminal."""
    lines = [f"job {plan.job}"]
    for vertex in plan.vertices:
        lines.append("")
        for index in vertex.inputs:
            exchange = plan.exchanges[index]
            source = plan.vertices[exchange.upstream].operators[-1].name
            lines.append(f"  {source} ──{exchange_label(exchange)}──▶")
        lines.append(f"  [{' → '.join(operator_label(one) for one in vertex.operators)}] {_size(vertex)}")
    return "\n".join(lines)


def _size(vertex: Vertex) -> str:
    size = f"×{vertex.parallelism}"
    if vertex.is_keyed or not vertex.derives_max_parallelism:
        size += f", at most {vertex.max_parallelism:,}"
    return size


def mermaid(plan: Plan) -> str:
    """Return a plan as a Mermaid flow chart."""
    lines = ["flowchart LR"]
    for vertex in plan.vertices:
        label = "<br/>".join(_escaped(operator_label(one)) for one in vertex.operators)
        lines.append(f'    v{vertex.index}["{label}<br/>×{vertex.parallelism}"]')
    for exchange in plan.exchanges:
        arrow = "-.->" if exchange.role else "-->"
        lines.append(f'    v{exchange.upstream} {arrow}|"{_escaped(exchange_label(exchange))}"| v{exchange.downstream}')
    return "\n".join(lines)


def _escaped(label: str) -> str:
    """Names are plain ASCII by rule; what else may stand in a label must not end it."""
    return label.replace("&", "&amp;").replace('"', "&quot;").replace("<", "&lt;").replace(">", "&gt;")
