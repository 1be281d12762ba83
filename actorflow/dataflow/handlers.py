"""How does a user's operator class run in one subtask?

An instance is made, its declared states are bound to handles that are placed on it, and its hooks become the moments of
:class:`~actorflow.dataflow.seat.Hooks`.  How ``on_record`` is called for the records of a batch is chosen once:
:class:`PlainHandler` here for a stream without keys, ``keyed_handler.py`` for one with, ``lane.py`` for async ones.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, NoReturn

from actorflow.abc.state import MISSING, KeyedTable
from actorflow.dataflow.cells import Cell
from actorflow.dataflow.handles import Aggregating, Items, Mapped, Reducing, Rules, Shared, UnboundValue, Value
from actorflow.dataflow.keyed import BaseOperator, Context, HookContext, declarations_of
from actorflow.dataflow.loops import PLAIN_TYPES
from actorflow.dataflow.seat import ListContent, Seat
from actorflow.dataflow.states import (
    AggregatingState,
    BroadcastState,
    KeyedDeclaration,
    ListState,
    MapState,
    ReducingState,
    ValueState,
)
from actorflow.errors import IncompatibleState, InvalidJob, OperatorFailed
from actorflow.model.manifest import Redistribution

__all__ = ("Handler", "PlainHandler")

MakeCell = Callable[[KeyedTable, int], Cell]


def _no_emit(_value: Any) -> NoReturn:
    raise InvalidJob("nothing can be emitted here: only on_record, on_broadcast and on_end_of_input have an output")


class Handler:
    """A user's operator in one subtask: the instance, its handles, its hooks."""

    def __init__(self, seat: Seat, build: Callable[[], BaseOperator], make_cell: MakeCell | None = None) -> None:
        self.seat = seat
        self.instance: Any = build()
        self.values: list[Value[Any]] = []
        self.tables: list[KeyedTable] = []  # those of `values`, in the same order
        self.cells: list[Any] = []
        self._lists: dict[str, tuple[Redistribution, Shared[Any] | Rules[Any, Any]]] = {}
        self.rules: list[Rules[Any, Any]] = []
        self.hook_context = HookContext(seat, seat.names)
        self.hook_context.emit = _no_emit
        self._vars: dict[str, Any] = vars(self.instance)
        self._bound: list[tuple[str, object]] = []
        for name, declaration in declarations_of(type(self.instance)).items():
            if name in self._vars:
                raise InvalidJob(
                    f"operator {seat.operator!r}: __init__ of {type(self.instance).__qualname__} sets self.{name}, "
                    "which is a declared state; give the attribute another name"
                )
            handle = self._handle(name, declaration, make_cell)
            self._vars[name] = handle
            self._bound.append((name, handle))

    def _handle(self, name: str, declaration: Any, make_cell: MakeCell | None) -> object:
        if not isinstance(declaration, KeyedDeclaration):
            content: Shared[Any] | Rules[Any, Any]
            if isinstance(declaration, BroadcastState):
                content = Rules(name)
                self.rules.append(content)
            else:
                content = Shared()
            self._lists[name] = (declaration.redistribution, content)
            return content
        assert make_cell is not None, "keyed state was refused on a stream without keys when the job was built"
        table = self.seat.table(name, declaration.kind)
        cell = make_cell(table, len(self.cells))
        self.cells.append(cell)
        match declaration:
            case ValueState():
                return self._value(name, declaration, table, cell)
            case ListState():
                return Items[Any](cell)
            case MapState():
                return Mapped[Any, Any](cell)
            case ReducingState(function=function):
                return Reducing[Any](cell, function)
            case AggregatingState(create=create, add=add, result=result):
                return Aggregating[Any, Any](cell, create, add, result)
            case _:
                raise AssertionError(f"no handle for {declaration!r}")

    def _value(self, name: str, declaration: ValueState[Any], table: KeyedTable, cell: Cell) -> Value[Any]:
        copy, default, begin = self.seat.copy, declaration.default, declaration.begin
        if default is not MISSING:
            begin = lambda: copy(default)  # noqa: E731 - one of two ways to begin
        blank = begin()
        if type(blank) not in PLAIN_TYPES and copy(blank) is not blank:
            blank = MISSING  # it can be changed in place, so every key needs its own
        handle: Value[Any] = Value(name, cell, begin, blank)
        handle.__class__ = UnboundValue
        self.values.append(handle)
        self.tables.append(table)
        return handle

    def unbind(self) -> None:
        """Make values refuse until the next batch: there is no key in hand."""
        for handle in self.values:
            handle.__class__ = UnboundValue

    def check_bound(self) -> None:
        """Refuse to go on when the user's code put something in the place of a state (``self.level = 1``)."""
        held = self._vars
        for name, handle in self._bound:
            if held.get(name) is not handle:
                value = ".value" if isinstance(handle, Value) else ""
                raise OperatorFailed(
                    self.seat.operator,
                    self.seat.subtask,
                    cause=f"its code assigned to self.{name}, which is a declared state, so what it set would be lost "
                    + (f"with the next failure; assign to self.{name}{value}" if value else "with the next failure"),
                )

    # ── moments ──────────────────────────────────────────────────────────────────────────────

    def _hook(self, checkpoint_id: int | None) -> HookContext:
        self.unbind()
        self.hook_context.emit = _no_emit
        self.hook_context.checkpoint_id = checkpoint_id
        return self.hook_context

    def open(self) -> None:
        """Run ``on_open``."""
        self.instance.on_open(self._hook(None))

    def restored(self, checkpoint_id: int) -> None:
        """Run ``on_restored``."""
        self.instance.on_restored(self._hook(checkpoint_id))

    def snapshot(self, checkpoint_id: int) -> None:
        """Run ``on_snapshot``."""
        self._hook(checkpoint_id)
        self.instance.on_snapshot(checkpoint_id)

    def completed(self, checkpoint_id: int) -> None:
        """Run ``on_checkpoint_completed``."""
        self._hook(checkpoint_id)
        self.instance.on_checkpoint_completed(checkpoint_id)

    def aborted(self, checkpoint_id: int) -> None:
        """Run ``on_checkpoint_aborted``."""
        self._hook(checkpoint_id)
        self.instance.on_checkpoint_aborted(checkpoint_id)

    def finish(self) -> list[Any]:
        """Run ``on_end_of_input`` and return what it gave."""
        context, outputs = self._hook(None), list[Any]()
        context.emit = outputs.append
        try:
            result = self.instance.on_end_of_input(context)
            if result is not None:
                outputs += result
        finally:
            context.emit = _no_emit
        return outputs

    def close(self) -> None:
        """Run ``on_close``."""
        self._hook(None)
        self.instance.on_close()

    # ── state of the subtask ─────────────────────────────────────────────────────────────────

    def list_states(self) -> list[ListContent]:
        """Return copies of all states that belong to the subtask."""
        copy, found = self.seat.copy, list[ListContent]()
        for name, (redistribution, content) in self._lists.items():
            if isinstance(content, Rules):
                elements = [[copy(key), copy(value)] for key, value in content.content.items()]
            else:
                elements = [copy(element) for element in content.elements]
            found.append((name, redistribution, elements))
        return found

    def restore_list(self, state: str, elements: list[Any], redistribution: Redistribution) -> None:
        """Put elements of a snapshot back; several calls add up."""
        if state not in self._lists:
            raise IncompatibleState(
                f"operator {self.seat.operator!r} has no list state {state!r}, but the snapshot has one"
            )
        declared, content = self._lists[state]
        if declared is not redistribution:
            raise IncompatibleState(
                f"operator {self.seat.operator!r}: state {state!r} is {declared.value} here and "
                f"{redistribution.value} in the snapshot"
            )
        if isinstance(content, Rules):
            content.content.update((key, value) for key, value in elements)
        else:
            content.elements.extend(elements)

    # ── the broadcast side ───────────────────────────────────────────────────────────────────

    def run_broadcast(self, records: Iterable[Any]) -> list[Any]:
        """Call ``on_broadcast`` for each record, with the rules open for writing."""
        context, outputs = self._hook(None), list[Any]()
        context.emit = outputs.append
        on_broadcast = self.instance.on_broadcast
        for rules in self.rules:
            rules.writable = True
        try:
            for value in records:
                result = on_broadcast(value, context)
                if result is not None:
                    outputs += result
        finally:
            for rules in self.rules:
                rules.writable = False
            context.emit = _no_emit
        return outputs


class PlainHandler(Handler):
    """A user's operator on a stream without keys."""

    def __init__(self, seat: Seat, build: Callable[[], BaseOperator]) -> None:
        super().__init__(seat, build)
        self._context: Context[None] = Context(seat)
        self._context.key = None
        self._context.emit = _no_emit

    def run(self, records: Iterable[Any]) -> list[Any]:
        """Call ``on_record`` for each record."""
        context, outputs = self._context, list[Any]()
        context.emit = outputs.append
        on_record = self.instance.on_record
        for value in records:
            result = on_record(value, context)
            if result is not None:
                outputs += result
        self.check_bound()
        return outputs
