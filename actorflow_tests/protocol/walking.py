"""Every sequence of events in a small world, and whether a machine's docstring tells the truth about them.

A *world* is any object with two methods: ``moves()`` lists what could happen next, ``make(move)`` lets it happen.  It
holds the machines (one or many) and whatever surrounds them in immutable values, lists, dicts, sets and deques.
``explore`` copies it at every fork, breadth first, and visits no state twice; the first failure it finds is a shortest
one, and its note lists the moves that led there.

``Edges`` collects ``(phase, event, effects, next phase)`` of each step and compares them with the table in the
docstring (its form: ``actorflow/protocol/machine.py``), in both directions.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass
from enum import Enum
from itertools import groupby
from typing import Any, Protocol, TypeVar

from actorflow.protocol.machine import Machine

__all__ = ("Edge", "Edges", "MachineWorld", "Row", "World", "copy_of", "explore", "fingerprint", "table_of", "walk")


class World(Protocol):
    """What ``explore`` walks through."""

    def moves(self) -> Iterable[Any]:
        """What could happen next; nothing ends this path."""
        ...

    def make(self, move: Any) -> None:
        """Let one of them happen; assert whatever must hold."""
        ...


W = TypeVar("W")


def explore(world: World, *, depth: int, at_most: int = 200_000) -> int:
    """Make every sequence of at most ``depth`` moves; return how many different states there were."""
    seen = {fingerprint(world)}
    trail: list[tuple[int, Any]] = [(-1, None)]
    frontier: list[tuple[int, World]] = [(0, world)]
    for _ in range(depth):
        following: list[tuple[int, World]] = []
        for number, here in frontier:
            for move in list(here.moves()):
                there = copy_of(here)
                try:
                    there.make(move)
                except Exception as error:
                    error.add_note("the moves were\n" + "\n".join(f"    {m!r}" for m in _path(trail, number, move)))
                    raise
                print_ = fingerprint(there)
                if print_ in seen:
                    continue
                seen.add(print_)
                assert len(seen) <= at_most, f"more than {at_most} states: make the world smaller"
                trail.append((number, move))
                following.append((len(trail) - 1, there))
        frontier = following
        if not frontier:
            break
    return len(seen)


def _path(trail: list[tuple[int, Any]], number: int, move: Any) -> list[Any]:
    moves = [move]
    while number > 0:
        number, earlier = trail[number]
        moves.append(earlier)
    return moves[::-1]


# ── copies and fingerprints ──────────────────────────────────────────────────────────────────

_SCALARS = (int, str, bytes, float, type(None), Enum, frozenset)
_CONTAINERS = (list, tuple, set, dict, deque)
_ATOMS: set[type] = set()  # classes whose values never change
_PLANS: dict[type, Any] = {}  # how to treat the others: a container, the slots to go through, or None to leave it alone


def _plan(kind: type) -> Any:
    """Look a class over once: it is met in every state."""
    parameters = getattr(kind, "__dataclass_params__", None)
    if issubclass(kind, _SCALARS) or (parameters is not None and parameters.frozen):
        _ATOMS.add(kind)
    elif issubclass(kind, Edges) or "__call__" in dir(kind):
        _PLANS[kind] = None
    elif issubclass(kind, _CONTAINERS):
        _PLANS[kind] = next(one for one in _CONTAINERS if issubclass(kind, one))
    else:
        slots: list[str] = []
        for base in kind.__mro__:
            declared = base.__dict__.get("__slots__", ())
            slots += [declared] if isinstance(declared, str) else list(declared)
        # A machine's story is memory and no state.
        _PLANS[kind] = tuple(name for name in slots if name not in {"story", "__weakref__", "__dict__"})
    return _PLANS.get(kind)


def copy_of(value: W) -> W:
    """A copy that shares only what can't change, and ``Edges``."""
    kind: Any = type(value)
    if kind in _ATOMS:
        return value
    plan = _PLANS[kind] if kind in _PLANS else _plan(kind)
    given: Any = value
    if plan is None or plan is tuple:
        return value
    if plan is list or plan is set:
        return kind([held if type(held) in _ATOMS else copy_of(held) for held in given])  # type: ignore[no-any-return]
    if plan is dict:
        return kind(  # type: ignore[no-any-return]
            [(key, held if type(held) in _ATOMS else copy_of(held)) for key, held in given.items()]
        )
    if plan is deque:
        return deque(map(copy_of, given), given.maxlen)  # type: ignore[return-value]
    twin: Any = kind.__new__(kind)
    for name in plan:
        held = getattr(given, name, _ABSENT)
        if held is not _ABSENT:
            setattr(twin, name, held if type(held) in _ATOMS else copy_of(held))
    if hasattr(given, "__dict__"):
        attributes = vars(twin)
        for name, held in vars(given).items():
            attributes[name] = held if type(held) in _ATOMS else copy_of(held)
    if isinstance(given, Machine):
        twin.story = given.story.copy()
    return twin  # type: ignore[no-any-return]


_ABSENT = object()


def fingerprint(value: Any) -> Hashable:
    """What makes two states the same state; stories and ``Edges`` do not count."""
    kind: Any = type(value)
    if kind in _ATOMS:
        return value  # type: ignore[no-any-return]
    plan = _PLANS[kind] if kind in _PLANS else _plan(kind)
    if plan is None:
        return value if kind in _ATOMS else None
    if plan is list or plan is tuple or plan is deque:
        return tuple([held if type(held) in _ATOMS else fingerprint(held) for held in value])
    if plan is set:
        return frozenset(value)
    if plan is dict:
        return tuple([(key, held if type(held) in _ATOMS else fingerprint(held)) for key, held in value.items()])
    parts: list[Hashable] = [kind.__name__]
    for name in plan:
        held = getattr(value, name, None)
        parts.append(held if type(held) in _ATOMS else fingerprint(held))
    if hasattr(value, "__dict__"):
        parts += [held if type(held) in _ATOMS else fingerprint(held) for held in vars(value).values()]
    return tuple(parts)


# ── edges and tables ─────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True)
class Edge:
    """One kind of step that was seen; ``effects`` has one name where several of a kind followed each other."""

    phase: str
    event: str
    effects: tuple[str, ...]
    then: str

    def __str__(self) -> str:
        return f"| {self.phase} | {self.event} | {', '.join(self.effects) or '–'} → {self.then} |"


@dataclass(frozen=True, slots=True)
class Row:
    """One row of a table; ``effects`` are names and whether each may be absent."""

    phases: tuple[str, ...]
    events: tuple[str, ...]
    effects: tuple[tuple[str, bool], ...]
    then: str

    def covers(self, edge: Edge, effects: tuple[tuple[str, bool], ...] | None = None) -> bool:
        """Whether the row, or the row with other effects, tells of this edge."""
        effects = self.effects if effects is None else effects
        if edge.phase not in self.phases or edge.event not in self.events:
            return False
        if edge.then != (edge.phase if self.then == "same" else self.then):
            return False
        pattern = "".join(f"(?:{name},){'?' if optional else ''}" for name, optional in effects)
        return re.fullmatch(pattern, "".join(f"{name}," for name in edge.effects)) is not None

    def __str__(self) -> str:
        effects = ", ".join(name + "?" * optional for name, optional in self.effects) or "–"
        return f"| {', '.join(self.phases)} | {', '.join(self.events)} | {effects} → {self.then} |"


def table_of(machine: type[Machine[Any, Any]]) -> tuple[Row, ...]:
    """The rows of the table in a machine's docstring."""
    rows: list[Row] = []
    for line in (machine.__doc__ or "").splitlines():
        cells = [cell.strip() for cell in line.strip().strip("|").split("|")]
        if not line.strip().startswith("|") or cells[0] == "phase" or set(cells[0]) <= {"-"}:
            continue
        assert len(cells) == 3, f"{machine.__name__}: a row has three cells, not {line.strip()!r}"
        effects, arrow, then = (part.strip() for part in cells[2].partition("→"))
        assert arrow, f"{machine.__name__}: no next phase in {line.strip()!r}"
        names = () if effects == "–" else tuple(name.strip() for name in effects.split(","))
        rows.append(
            Row(
                tuple(name.strip() for name in cells[0].split(",")),
                tuple(name.strip() for name in cells[1].split(",")),
                tuple((name.removesuffix("?"), name.endswith("?")) for name in names),
                then,
            )
        )
    assert rows, f"{machine.__name__} has no table in its docstring"
    return tuple(rows)


class Edges:
    """Collects the edges that machines take."""

    def __init__(self) -> None:
        self.seen: dict[Edge, None] = {}

    def step(self, machine: Machine[Any, Any], event: Any) -> list[Any]:
        """Let the machine take an event, check it, and note the edge."""
        phase = type(machine.phase).__name__
        effects = machine.on(event)  # which checks what must always hold
        names = tuple(name for name, _ in groupby(type(effect).__name__ for effect in effects))
        self.seen[Edge(phase, type(event).__name__, names, type(machine.phase).__name__)] = None
        return effects

    def compare(self, machine: type[Machine[Any, Any]]) -> None:
        """Assert that the table tells of every edge that was seen, and of no other."""
        table = table_of(machine)
        problems = [f"not in the table: {edge}" for edge in self.seen if not any(row.covers(edge) for row in table)]
        for row in table:
            problems += _unseen(row, [edge for edge in self.seen if row.covers(edge)])
        assert not problems, f"{machine.__name__}: its table and what it does differ\n" + "\n".join(problems)


def _unseen(row: Row, edges: list[Edge]) -> list[str]:
    problems = [
        f"never seen: {row}, from {phase} at {event}"
        for phase in row.phases
        for event in row.events
        if not any(edge.phase == phase and edge.event == event for edge in edges)
    ]
    for place, (name, optional) in enumerate(row.effects):
        before, after = row.effects[:place], row.effects[place + 1 :]
        if optional and not any(row.covers(edge, (*before, (name, False), *after)) for edge in edges):
            problems.append(f"never seen with {name}: {row}")
        if optional and not any(row.covers(edge, (*before, *after)) for edge in edges):
            problems.append(f"never seen without {name}: {row}")
    return problems


# ── the simplest world: one machine, and events that may always happen ───────────────────────


class MachineWorld:
    """One machine and what may happen to it; ``moves_of`` lists the events from the machine as it is."""

    def __init__(
        self,
        machine: Machine[Any, Any],
        moves_of: Callable[[Any], Iterable[Any]],
        edges: Edges,
        watch: Callable[[Any, Any, list[Any]], None] | None = None,
    ) -> None:
        self.machine, self.moves_of, self.edges, self.watch = machine, moves_of, edges, watch

    def moves(self) -> Iterable[Any]:
        return self.moves_of(self.machine)

    def make(self, move: Any) -> None:
        effects = self.edges.step(self.machine, move)
        if self.watch is not None:
            self.watch(self.machine, move, effects)


def walk(
    machine: Machine[Any, Any],
    moves_of: Callable[[Any], Iterable[Any]],
    *,
    depth: int,
    watch: Callable[[Any, Any, list[Any]], None] | None = None,
    edges: Edges | None = None,
) -> Edges:
    """Walk one machine through every sequence of events; return the edges it took."""
    edges = Edges() if edges is None else edges
    explore(MachineWorld(machine, moves_of, edges, watch), depth=depth)
    return edges
