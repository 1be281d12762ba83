"""Which actors and channels does a job become?

Operators are chained into one actor while nothing has to be exchanged between them.  An operator joins the chain of the
one it reads when

* it reads exactly one output, and that is the main output of an operator that nobody else reads;
* nothing but ``forward()`` was said between them;
* it is a transform, a branch or a sink: a keyed operator or a call always begins an actor;
* both have the same parallelism and, where somebody asked for one, the same maximum.

A maximum that was asked for holds for the whole chain (R046), but a keyed operator never takes one over from one behind
it, for it decides where keys live.

What only the whole graph shows to be wrong is told here, all of it in one :class:`~actorflow.errors.InvalidJob`.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING

from actorflow.dataflow.physical import Exchange, Plan, Vertex
from actorflow.dataflow.primitives import ExchangeKind, Leg, Node, Operator, OperatorKind
from actorflow.dataflow.travelling import register_types
from actorflow.errors import InvalidJob
from actorflow.model.codec import Registry
from actorflow.model.key_groups import default_max_parallelism

if TYPE_CHECKING:
    from actorflow.dataflow.job import Job

__all__ = ("Exchange", "ExchangeKind", "Operator", "OperatorKind", "Plan", "Vertex", "compile_plan")

_JOINS = frozenset({OperatorKind.TRANSFORM, OperatorKind.BRANCH, OperatorKind.WRITE})
_MOST_TOLD = 20


def compile_plan(job: Job, *, parallelism: int = 1, max_parallelism: int | None = None) -> Plan:
    """Return what a job runs as.

    ``parallelism`` and ``max_parallelism`` are what holds where neither an operator nor the job says anything.
    Raises ``InvalidJob`` with every mistake of the graph.
    """
    parallelism = job.parallelism or parallelism
    max_parallelism = job.max_parallelism or max_parallelism
    return _Compiler(job, parallelism, max_parallelism).plan()


class _Place:
    """Where one operator runs."""

    __slots__ = ("asked_max", "chain", "node", "operator", "parallelism")

    def __init__(self, node: Node, operator: Operator, parallelism: int, asked_max: int | None) -> None:
        self.node, self.operator, self.parallelism, self.asked_max = node, operator, parallelism, asked_max
        self.chain: _ChainOf | None = None


class _ChainOf:
    """Operators that run in one actor."""

    __slots__ = ("asked_max", "index", "places")

    def __init__(self, index: int, first: _Place) -> None:
        self.index, self.places, self.asked_max = index, [first], first.asked_max


class _Compiler:
    def __init__(self, job: Job, parallelism: int, max_parallelism: int | None) -> None:
        self._job, self._parallelism, self._max = job, parallelism, max_parallelism
        self._problems: list[str] = []
        self._places: dict[Node, _Place] = {}  # filled and read in the order in which operators were built
        self._readers: dict[Node, list[Leg]] = {}

    def plan(self) -> Plan:
        named = self._job._named()  # noqa: SLF001 - a plan is the job's own other side
        if not named:
            self._problems.append(f"job {self._job.name!r} has no operators: begin with job.read(source, name=…)")
        for _, node in named:
            for leg in node.legs:
                self._readers.setdefault(leg.node, []).append(leg)
        for name, node in named:
            self._place(name, node)
        self._check_readers()
        chains = self._chains()
        registry = Registry()
        for place in self._places.values():
            self._problems += register_types(registry, place.operator)
        self._raise_problems()
        exchanges = self._exchanges(chains)
        return Plan(
            job=self._job.name,
            vertices=tuple(self._vertex(chain, exchanges) for chain in chains),
            exchanges=tuple(exchanges),
            registry=registry,
        )

    def _raise_problems(self) -> None:
        if self._problems:
            told = self._problems[:_MOST_TOLD]
            more = len(self._problems) - len(told)
            raise InvalidJob("\n".join([*told, f"… and {more} more"] if more else told))

    # ── where each operator runs ─────────────────────────────────────────────────────────────

    def _place(self, name: str, node: Node) -> None:
        given_up = tuple(tag for tag in node.discarded if tag is not None)
        operator = replace(node.operator, name=name, optional_outputs=node.operator.optional_outputs + given_up)
        kinds = [leg.exchange.kind if leg.exchange is not None else None for leg in node.legs if leg.role == 0]
        above = _one_of(self._places[leg.node].parallelism for leg in node.legs if leg.role == 0)
        parallelism = node.parallelism or node.own_parallelism
        if parallelism is None and kinds and all(kind in {None, ExchangeKind.FORWARD} for kind in kinds):
            parallelism = above  # runs where its input is made, so order is kept
        if parallelism is None and kinds and all(kind is ExchangeKind.GLOBAL for kind in kinds):
            parallelism = 1
        if parallelism is None:
            parallelism = self._parallelism
        for leg in node.legs:
            upstream = self._places[leg.node]
            if (
                leg.exchange is not None
                and leg.exchange.kind is ExchangeKind.FORWARD
                and upstream.parallelism != parallelism
            ):
                self._problems.append(
                    f"operator {name!r} has parallelism {parallelism} and reads {upstream.operator.name!r}, which has "
                    f"{upstream.parallelism}, through {leg.exchange.operator}(), which needs both to be the same: give "
                    "them the same parallelism=, or use rebalance()"
                )
        asked = node.max_parallelism or self._max
        if asked is not None and parallelism > asked:
            whose = "its" if node.max_parallelism else "the job's"
            self._problems.append(
                f"operator {name!r} has parallelism {parallelism}, more than {whose} max_parallelism of {asked}, which "
                "is the number of key groups and stays what it was when the job first ran: lower the parallelism, or "
                "start over with a higher maximum"
            )
        if operator.kind is OperatorKind.KEYED and any(kind is not ExchangeKind.KEYED for kind in kinds):
            self._problems.append(f"operator {name!r} keeps state by key, so all its inputs need a key_by")
        self._places[node] = _Place(node, operator, parallelism, asked)

    def _check_readers(self) -> None:
        for node, place in self._places.items():
            if place.operator.kind is OperatorKind.WRITE:
                continue
            read = [leg.tag for leg in self._readers.get(node, [])]
            outputs: list[str | None] = [None]
            if place.operator.kind is OperatorKind.BRANCH:
                outputs += [f"branch-{number + 1}" for number in range(len(place.operator.annotated))]
            for output in outputs:
                if output in read or output in node.discarded:
                    continue
                what = "output" if output is None else f"output {output!r}"
                if place.operator.kind is OperatorKind.BRANCH and output is None:
                    what = "rest (the last stream that branch returned)"
                self._problems.append(
                    f"operator {place.operator.name!r}: its {what} is read by nobody; end it with "
                    ".write(sink, name=…), or with .discard() when nobody needs it"
                )

    # ── who shares an actor ──────────────────────────────────────────────────────────────────

    def _chains(self) -> list[_ChainOf]:
        chains: list[_ChainOf] = []
        for place in self._places.values():
            chain = self._chain_to_join(place)
            if chain is None:
                chain = _ChainOf(len(chains), place)
                chains.append(chain)
            else:
                chain.places.append(place)
                chain.asked_max = chain.asked_max or place.asked_max
            place.chain = chain
        return chains

    def _chain_to_join(self, place: _Place) -> _ChainOf | None:
        if place.operator.kind not in _JOINS or len(place.node.legs) != 1:
            return None
        (leg,) = place.node.legs
        said = leg.exchange
        if leg.tag is not None or (said is not None and (said.kind is not ExchangeKind.FORWARD or said.breaks_chain)):
            return None
        upstream = self._places[leg.node]
        if upstream.parallelism != place.parallelism or len(self._readers[leg.node]) != 1:
            return None
        chain = upstream.chain
        assert chain is not None
        if place.asked_max is not None and place.asked_max != chain.asked_max:
            keeps_keys = bool(chain.places[0].operator.states) or chain.places[0].operator.kind is OperatorKind.CALL
            if chain.asked_max is not None or keeps_keys:
                return None
        return chain

    # ── what comes out ───────────────────────────────────────────────────────────────────────

    def _exchanges(self, chains: list[_ChainOf]) -> list[Exchange]:
        exchanges: list[Exchange] = []
        for chain in chains:
            first = chain.places[0]
            for leg in first.node.legs:
                upstream = self._places[leg.node]
                assert upstream.chain is not None
                assert upstream is upstream.chain.places[-1], "only the last operator of a chain is read from outside"
                said = leg.exchange
                usual = ExchangeKind.FORWARD if upstream.parallelism == first.parallelism else ExchangeKind.REBALANCE
                exchanges.append(
                    Exchange(
                        index=len(exchanges),
                        upstream=upstream.chain.index,
                        downstream=chain.index,
                        kind=said.kind if said is not None else usual,
                        operator=said.operator if said is not None else first.operator.name,
                        key=said.key if said is not None else None,
                        partition=said.partition if said is not None else None,
                        tag=leg.tag,
                        role=leg.role,
                    )
                )
        return exchanges

    def _vertex(self, chain: _ChainOf, exchanges: list[Exchange]) -> Vertex:
        parallelism = chain.places[0].parallelism
        outputs = [one for one in exchanges if one.upstream == chain.index]
        return Vertex(
            index=chain.index,
            operators=tuple(place.operator for place in chain.places),
            parallelism=parallelism,
            max_parallelism=chain.asked_max or default_max_parallelism(parallelism),
            derives_max_parallelism=chain.asked_max is None,
            inputs=tuple(one.index for one in exchanges if one.downstream == chain.index),
            outputs=tuple(one.index for one in outputs),
            tags=tuple(dict.fromkeys(one.tag for one in outputs if one.tag is not None)),
        )


def _one_of(values: Iterable[int]) -> int | None:
    """The value that all have, or ``None``."""
    found = list(dict.fromkeys(values))
    return found[0] if len(found) == 1 else None
