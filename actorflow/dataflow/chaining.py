"""How does a batch go through the operators of one actor?

A chain is a tuple of functions from list to list, called one after the other: whole batches, nothing awaited.  The
first may be keyed; it takes tokens, keys and values in parallel.  What comes first in an actor and waits (a source, a
call) and what comes last (a sink) is driven by the runtime; everything between is run here.

When the code of an operator raises, the loop variables still say which operator it was and the batch's iterator says
which record (``blame.py``), so the happy path pays nothing for good errors.

Refuses to know channels, storage, time, or what a checkpoint is besides its id.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

from actorflow.abc.state import KeyedTable, StateBackend
from actorflow.abc.world import Clock
from actorflow.dataflow.blame import failure, position_in
from actorflow.dataflow.deferred_keys import DeferredKeys
from actorflow.dataflow.lane import AsyncOperator
from actorflow.dataflow.loops import SinkRaised
from actorflow.dataflow.physical import Vertex
from actorflow.dataflow.primitives import Call, Operator, OperatorKind
from actorflow.dataflow.seat import Each, Hooks, Opened, Seat, SideOutputs, Stage
from actorflow.errors import ActorflowError, IncompatibleState, OperatorFailed
from actorflow.model.elements import Batch
from actorflow.model.manifest import Redistribution

__all__ = ("AsyncOperator", "Chain", "ChainContext", "Copier")


class HasEach(Protocol):
    """What a chain needs of a sink's writer: the function to be called per record, where there is one."""

    @property
    def each(self) -> Each | None: ...


class Copier(Protocol):
    """What a chain needs of the codec: copies of what can be changed in place, everything else as it is."""

    def copy(self, value: Any) -> Any: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class ChainContext:
    """Where a chain runs.  ``codec`` copies values; its ``registry`` knows the classes that keys are made of."""

    subtask: int
    backend: StateBackend
    codec: Copier
    clock: Clock
    show_records: bool = True


class Chain:
    """The operators of one actor, opened."""

    def __init__(self, vertex: Vertex, context: ChainContext) -> None:
        self._subtask, self._shown = context.subtask, context.show_records
        self._sides = SideOutputs(
            vertex.tags, [tag for operator in vertex.operators for tag in operator.optional_outputs]
        )
        self._keyed: Opened | None = None
        self._rules: Stage | None = None
        self._stages: list[Opened] = []
        self._names: list[str] = []
        self._head = vertex.operators[0].name
        self._hooks: dict[str, Hooks] = {}
        self._states: dict[str, dict[str, str]] = {}
        self._tables: list[KeyedTable] = []
        self._finished = False
        self._tail = vertex.operators[-1].name
        self.writer: HasEach | None = None
        """The writer of a sink right behind the keyed operator; whoever sets it lets the loop call its ``each``."""
        self.given_to_each = 0
        """How many outputs it has been given, which therefore did not come back."""
        self.async_operator: AsyncOperator | None = None
        """The call at the head of this chain, or ``None``."""
        for operator in vertex.operators:
            seat = Seat(
                operator=operator.name,
                subtask=context.subtask,
                parallelism=vertex.parallelism,
                backend=context.backend,
                copy=context.codec.copy,
                clock=context.clock,
                sides=self._sides,
                names=getattr(context.codec, "registry", None),
            )
            try:
                self._seat(operator, seat)
            except ActorflowError:
                raise
            except Exception as error:
                raise self._failure(error, operator.name, "opening it raised") from error
        self._settles = [table.settle for table in self._tables]

    def _seat(self, operator: Operator, seat: Seat) -> None:
        if isinstance(operator, Call):
            self.async_operator = call = operator.opens(seat, operator)
            self._rules = call.run_broadcast
            hooks = call.hooks
        else:
            opened = operator.open(seat)
            hooks = opened.hooks
            if operator.kind is OperatorKind.KEYED:
                assert opened.run_keyed is not None
                self._keyed, self._rules = opened, opened.run_broadcast
            elif opened.run is not None:
                self._stages.append(opened)
                self._names.append(operator.name)
        if hooks is not None:
            self._hooks[operator.name] = hooks
        if seat.states:
            self._states[operator.name] = seat.states
            self._tables += seat.tables

    # ── records ──────────────────────────────────────────────────────────────────────────────

    def process(self, batch: Batch, role: int = 0) -> list[Any]:
        """Run one batch through all operators and return the main output; ``role`` 1 is the broadcast side."""
        if role:
            return self._process_rules(batch.values)
        keyed = self._keyed
        if keyed is None:
            return self.process_values(batch.values)
        keys, values = batch.keys, batch.values
        if type(keys) is list:
            outputs = self._process_keyed(keyed, keys, batch.tokens, values)
        else:
            assert type(keys) is DeferredKeys
            outputs = self._process_deferred(keyed, keys, values)
        for settle in self._settles:
            settle()
        return self.process_values(outputs) if self._stages else outputs

    def _process_keyed(
        self, keyed: Opened, keys: list[Any], tokens: list[Any] | None, values: list[Any]
    ) -> list[Any]:
        assert keyed.run_keyed is not None
        iterator = iter(keys if tokens is None else tokens)
        try:
            return keyed.run_keyed(iterator, keys, values)
        except OperatorFailed:
            raise
        except Exception as error:
            raise self._record_failure(error, self._head, values, iterator, keys) from error

    def _process_deferred(self, keyed: Opened, deferred: DeferredKeys, values: list[Any]) -> list[Any]:
        if keyed.run_deferred is not None:
            iterator = iter(values)
            try:
                each = None if self.writer is None else self.writer.each
                outputs = keyed.run_deferred(deferred, iterator, values, each)
                if each is not None and outputs is not None:
                    self.given_to_each += len(values) - len(outputs)
            except ActorflowError:
                raise
            except SinkRaised as raised:
                cause = raised.__cause__
                assert cause is not None
                raise failure(
                    cause, self._tail, self._subtask, shown=self._shown, record=(raised.record,)
                ) from cause
            except Exception as error:
                position = position_in(values, iterator)
                keys = None if position is None else [None] * position + deferred.keys_of([values[position]])
                raise self._record_failure(error, self._head, values, iterator, keys) from error
            if outputs is not None:
                return outputs
        keys = deferred.keys_of(values)
        return self._process_keyed(keyed, keys, deferred.tokens_of(keys), values)

    def process_values(self, values: list[Any]) -> list[Any]:
        """Run plain values, of a source or out of a call, through the operators behind it."""
        stage, iterator = None, iter(values)
        try:
            for stage in self._stages:
                iterator = iter(values)
                values = stage.run(iterator)  # type: ignore[misc]  # only what has `run` is a stage
        except OperatorFailed:
            raise
        except Exception as error:
            assert stage is not None
            name = self._names[self._stages.index(stage)]
            raise self._record_failure(error, name, values, iterator, None) from error
        return values

    def _process_rules(self, records: list[Any]) -> list[Any]:
        assert self._rules is not None, "only an operator with a broadcast side has an input of role 1"
        values = iter(records)
        try:
            outputs = self._rules(values)
        except OperatorFailed:
            raise
        except Exception as error:
            raise self._record_failure(error, self._head, records, values, None) from error
        return self.process_values(outputs)

    @property
    def takes_each(self) -> bool:
        """Whether nothing lies between the keyed operator and the end of the chain."""
        return self._keyed is not None and not self._stages

    @property
    def side(self) -> dict[str, list[Any]]:
        """What was emitted to side outputs and not taken yet, by tag."""
        return self._sides.content

    def take_side(self) -> dict[str, list[Any]] | None:
        """Return what was emitted to side outputs since the last call, or ``None``."""
        return self._sides.take()

    # ── moments ──────────────────────────────────────────────────────────────────────────────

    def open(self) -> None:
        """Tell the operators that records are about to come."""
        self._each("on_open", lambda hooks: hooks.open())

    def on_restored(self, checkpoint_id: int) -> None:
        """Tell the operators that their state of a checkpoint is back."""
        self._each("on_restored", lambda hooks: hooks.restored(checkpoint_id))

    def on_snapshot(self, checkpoint_id: int) -> None:
        """Tell the operators that their state is taken right after this."""
        self._each("on_snapshot", lambda hooks: hooks.snapshot(checkpoint_id))

    def on_completed(self, checkpoint_id: int) -> None:
        """Tell the operators that a checkpoint completed."""
        self._each("on_checkpoint_completed", lambda hooks: hooks.completed(checkpoint_id))

    def on_aborted(self, checkpoint_id: int) -> None:
        """Tell the operators that a checkpoint was aborted."""
        self._each("on_checkpoint_aborted", lambda hooks: hooks.aborted(checkpoint_id))

    def finish(self) -> list[Any]:
        """Tell the operators, in order, that the input has ended; return what they still gave.  Once."""
        assert not self._finished, "an operator finishes once"
        self._finished = True
        values: list[Any] = []
        if self._keyed is not None or self.async_operator is not None:
            values = self._finish_one(self._head)
        for index, (stage, name) in enumerate(zip(self._stages, self._names, strict=True)):
            if values:
                values = self._run_from(index, values)
            if stage.hooks is not None:
                values = values + self._finish_one(name)
        for settle in self._settles:
            settle()
        return values

    def close(self) -> None:
        """Tell the operators that this attempt is over; all of them, and then raise what the first one raised."""
        first: Exception | None = None
        for name, hooks in self._hooks.items():
            try:
                hooks.close()
            except Exception as error:
                if first is None:
                    first = self._failure(error, name, "on_close raised")
                    first.__cause__ = error
        if first is not None:
            raise first

    # ── state ────────────────────────────────────────────────────────────────────────────────

    def states(self) -> dict[str, dict[str, str]]:
        """The keyed states by operator, each with its kind."""
        return {operator: dict(states) for operator, states in self._states.items()}

    def list_states(self) -> list[tuple[str, str, Redistribution, list[Any]]]:
        """Return copies of the states that belong to the subtask: operator, state, who receives it, elements."""
        return [
            (operator, state, redistribution, elements)
            for operator, hooks in self._hooks.items()
            for state, redistribution, elements in hooks.list_states()
        ]

    def restore_lists(self, operator: str, state: str, elements: list[Any], redistribution: Redistribution) -> None:
        """Put elements of a snapshot back into a state of this subtask; several calls add up."""
        hooks = self._hooks.get(operator)
        if hooks is None:
            raise IncompatibleState(f"operator {operator!r} has no list state {state!r}, but the snapshot has one")
        hooks.restore_list(state, elements, redistribution)

    # ── errors ───────────────────────────────────────────────────────────────────────────────

    def _each(self, hook: str, call: Callable[[Hooks], None]) -> None:
        for name, hooks in self._hooks.items():
            try:
                call(hooks)
            except OperatorFailed:
                raise
            except Exception as error:
                raise self._failure(error, name, f"{hook} raised") from error

    def _finish_one(self, name: str) -> list[Any]:
        hooks = self._hooks.get(name)
        if hooks is None:
            return []
        try:
            return hooks.finish()
        except OperatorFailed:
            raise
        except Exception as error:
            raise self._failure(error, name, "on_end_of_input raised") from error

    def _run_from(self, index: int, values: list[Any]) -> list[Any]:
        iterator, run = iter(values), self._stages[index].run
        assert run is not None
        try:
            return run(iterator)
        except OperatorFailed:
            raise
        except Exception as error:
            raise self._record_failure(error, self._names[index], values, iterator, None) from error

    def _failure(self, error: Exception, operator: str, doing: str) -> Exception:
        return failure(error, operator, self._subtask, shown=self._shown, doing=doing)

    def _record_failure(
        self, error: Exception, operator: str, values: list[Any], iterator: Any, keys: list[Any] | None
    ) -> Exception:
        position = position_in(values, iterator)
        if position is None:
            return failure(error, operator, self._subtask, shown=self._shown)
        return failure(
            error,
            operator,
            self._subtask,
            shown=self._shown,
            record=(values[position],),
            key=() if keys is None else (keys[position],),
        )
