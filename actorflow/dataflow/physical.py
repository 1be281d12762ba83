"""What is a plan made of?

Vertices, each a chain of operators that run in one actor per subtask, and exchanges between them.  Values only: frozen,
in an order that does not depend on the process, so that two processes which built the same job can compare digests.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from actorflow.dataflow.primitives import ExchangeKind, Operator, OperatorKind
from actorflow.model.codec import Registry

__all__ = ("Exchange", "Plan", "Vertex")


@dataclass(frozen=True, slots=True, kw_only=True)
class Exchange:
    """How records travel from one vertex to another.

    ``tag`` is the side output that it carries, ``None`` the main one.  ``role`` 1 is the broadcast side of an operator.
    ``operator`` is whom to name when ``key`` (record to key) or ``partition`` (record and number of channels to the
    index of one) fails.
    """

    index: int
    upstream: int
    downstream: int
    kind: ExchangeKind
    operator: str
    key: Callable[[Any], Any] | None = field(default=None, repr=False)
    partition: Callable[[Any, int], int] | None = field(default=None, repr=False)
    tag: str | None = None
    role: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Vertex:
    """Operators that run one after the other in one actor; named after the first.

    ``derives_max_parallelism`` says that nobody asked for this ``max_parallelism``, so a snapshot's own one wins over
    it.  ``tags`` are the side outputs that somebody reads.
    """

    index: int
    operators: tuple[Operator, ...]
    parallelism: int
    max_parallelism: int
    derives_max_parallelism: bool
    inputs: tuple[int, ...] = ()
    outputs: tuple[int, ...] = ()
    tags: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """The name of the first operator."""
        return self.operators[0].name

    @property
    def is_keyed(self) -> bool:
        """Whether its actors hold state by key."""
        return bool(self.operators[0].states)


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What a job runs as.  ``registry`` knows the classes whose values may travel and be kept."""

    job: str
    vertices: tuple[Vertex, ...]
    exchanges: tuple[Exchange, ...]
    registry: Registry = field(repr=False)

    @property
    def digest(self) -> str:
        """A name for the shape of this plan: the same in every process that builds the same job with the same settings.

        It covers names, kinds, states, parallelism and exchanges; what a user's functions compute it can't see.
        """
        shape = {
            "job": self.job,
            "vertices": [
                [
                    [
                        [one.name, one.kind.value, one.label, list(one.states), [[n, r.value] for n, r in one.lists]]
                        for one in vertex.operators
                    ],
                    vertex.parallelism,
                    vertex.max_parallelism,
                ]
                for vertex in self.vertices
            ],
            "exchanges": [
                [one.upstream, one.downstream, one.kind.value, one.operator, one.tag, one.role]
                for one in self.exchanges
            ],
        }
        return hashlib.sha256(json.dumps(shape, separators=(",", ":")).encode()).hexdigest()

    def vertex_of(self, operator: str) -> Vertex:
        """Return the vertex in which an operator runs; ``KeyError`` when there is none of that name."""
        for vertex in self.vertices:
            if any(one.name == operator for one in vertex.operators):
                return vertex
        names = ", ".join(one.name for vertex in self.vertices for one in vertex.operators)
        raise KeyError(f"job {self.job!r} has no operator {operator!r}; it has {names}")

    def parallelism_of(self, operator: str) -> int:
        """Return how many subtasks an operator has."""
        return self.vertex_of(operator).parallelism

    def sources(self) -> list[Operator]:
        """Return the operators that read, in order."""
        return [one for vertex in self.vertices for one in vertex.operators if one.kind is OperatorKind.READ]

    def sinks(self) -> list[Operator]:
        """Return the operators that write, in order."""
        return [one for vertex in self.vertices for one in vertex.operators if one.kind is OperatorKind.WRITE]

    def __str__(self) -> str:
        from actorflow.dataflow.picture import text

        return text(self)

    def mermaid(self) -> str:
        """Return the plan as a Mermaid flow chart."""
        from actorflow.dataflow.picture import mermaid

        return mermaid(self)

    def svg(self) -> str:
        """Return the plan as a picture."""
        from actorflow.dataflow.drawing import svg

        return svg(self)

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, str]:
        """Show the plan in a notebook."""
        return {"text/plain": str(self), "image/svg+xml": self.svg()}
