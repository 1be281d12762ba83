"""What are the operators that the runtime knows?

Eight: **read**, **transform** (batch to batch), **branch**, **union**, **exchange**, **keyed** (state, one or two
inputs), **call** (asynchronous) and **write**.  Everything else that a stream offers is written with these in
``derived.py``.

Six of them are nodes of the graph, the frozen descriptions below; each knows how to open itself in a subtask.  Two
are what lies between nodes: an :class:`Exchange` says how records travel, and a union is a stream with several
:class:`Leg`.

Refuses to run anything, and to know where it will run.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Any, ClassVar

from actorflow.abc.connectors import Sink, Source
from actorflow.dataflow.seat import Opened, Seat
from actorflow.model.manifest import Redistribution

if TYPE_CHECKING:
    from actorflow.dataflow.lane import AsyncOperator

__all__ = (
    "Branch",
    "Call",
    "Exchange",
    "ExchangeKind",
    "Keyed",
    "Leg",
    "Node",
    "Operator",
    "OperatorKind",
    "Read",
    "Retry",
    "Transform",
    "Write",
)


class OperatorKind(StrEnum):
    """The eight primitives."""

    READ = "read"
    TRANSFORM = "transform"
    BRANCH = "branch"
    UNION = "union"
    EXCHANGE = "exchange"
    KEYED = "keyed"
    CALL = "call"
    WRITE = "write"


class ExchangeKind(StrEnum):
    """How records travel from one operator's subtasks to another's."""

    FORWARD = "forward"  # to the same subtask
    REBALANCE = "rebalance"  # in turns over all subtasks
    SHUFFLE = "shuffle"  # drawn by chance
    RESCALE = "rescale"  # in turns over the neighbouring subtasks only
    GLOBAL = "global"  # all to the first subtask
    BROADCAST = "broadcast"  # each to every subtask
    KEYED = "keyed"  # to the subtask that owns the key's group
    CUSTOM = "custom"  # as the user's function says


@dataclass(frozen=True, slots=True, kw_only=True)
class Exchange:
    """The primitive between two operators.  ``operator`` is whom to name when ``key`` or ``partition`` fails."""

    kind: ExchangeKind
    operator: str
    key: Callable[[Any], Any] | None = None
    partition: Callable[[Any, int], int] | None = None
    breaks_chain: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Retry:
    """How often a call is made at most, and what lies between two attempts."""

    attempts: int = 1
    delay_ms: int = 0


@dataclass(frozen=True, kw_only=True)
class Operator:
    """A node of the graph, as the user wrote it.

    ``annotated`` are the functions and classes whose annotations say what types travel here, ``states`` and ``lists``
    what a checkpoint keeps, ``optional_outputs`` the side outputs that may stay unread.
    """

    kind: ClassVar[OperatorKind]

    name: str
    label: str
    annotated: tuple[Any, ...] = ()
    states: tuple[tuple[str, str], ...] = ()
    lists: tuple[tuple[str, Redistribution], ...] = ()
    has_side_outputs: bool = False
    optional_outputs: tuple[str, ...] = ()

    def open(self, seat: Seat) -> Opened:
        """Give the operator its place in a subtask.  Sources and sinks are opened by the runtime."""
        return Opened()

    @property
    def source(self) -> Source[Any]:
        """The source of an operator that reads."""
        raise AssertionError(f"operator {self.name!r} is not a source but does {self.kind}")

    @property
    def sink(self) -> Sink[Any]:
        """The sink of an operator that writes."""
        raise AssertionError(f"operator {self.name!r} is not a sink but does {self.kind}")


@dataclass(frozen=True, kw_only=True)
class Read(Operator):
    """Where records come from."""

    kind = OperatorKind.READ
    reads: Source[Any]

    @property
    def source(self) -> Source[Any]:
        return self.reads


@dataclass(frozen=True, kw_only=True)
class Transform(Operator):
    """From some records to others, without a key."""

    kind = OperatorKind.TRANSFORM
    opens: Callable[[Seat], Opened] = field(repr=False)

    def open(self, seat: Seat) -> Opened:
        return self.opens(seat)


@dataclass(frozen=True, kw_only=True)
class Branch(Operator):
    """Each record to the side output of the first predicate that holds for it; the rest are the main output."""

    kind = OperatorKind.BRANCH
    opens: Callable[[Seat], Opened] = field(repr=False)

    def open(self, seat: Seat) -> Opened:
        return self.opens(seat)


@dataclass(frozen=True, kw_only=True)
class Keyed(Operator):
    """State by key: always the first of its actor, behind keyed exchanges (and broadcast ones, for its rules)."""

    kind = OperatorKind.KEYED
    opens: Callable[[Seat], Opened] = field(repr=False)

    def open(self, seat: Seat) -> Opened:
        return self.opens(seat)


@dataclass(frozen=True, kw_only=True)
class Call(Operator):
    """Awaits something for each record: always the first of its actor, which keeps what is unfinished in snapshots."""

    kind = OperatorKind.CALL
    keyed: bool
    in_flight: int
    ordered: bool
    timeout_ms: int | None
    retry: Retry
    opens: Callable[[Seat, Call], AsyncOperator] = field(repr=False)


@dataclass(frozen=True, kw_only=True)
class Write(Operator):
    """Where records go."""

    kind = OperatorKind.WRITE
    writes: Sink[Any]

    @property
    def sink(self) -> Sink[Any]:
        return self.writes


class Node:
    """An operator in a graph under construction: what it is, where it runs, and whom it reads."""

    __slots__ = ("discarded", "legs", "max_parallelism", "name", "operator", "own_parallelism", "parallelism")

    def __init__(
        self,
        operator: Operator,
        *,
        name: str | None,
        legs: tuple[Leg, ...],
        parallelism: int | None,
        max_parallelism: int | None,
        own_parallelism: int | None = None,
    ) -> None:
        self.operator, self.name, self.legs = operator, name, legs
        self.parallelism, self.max_parallelism, self.own_parallelism = parallelism, max_parallelism, own_parallelism
        self.discarded: list[str | None] = []  # outputs that the user said nobody needs


@dataclass(frozen=True, slots=True, eq=False)
class Leg:
    """One way into an operator: from which one, which of its outputs, and how the records travel.

    ``role`` is 0 for the main input and 1 for the side that brings rules to all.
    """

    node: Node
    tag: str | None = None
    exchange: Exchange | None = None
    role: int = 0
