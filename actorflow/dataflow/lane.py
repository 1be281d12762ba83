"""What is one asynchronous call, and what of it takes effect?

An :class:`AsyncOperator` makes one attempt at one record (``call``) and later lets what came out of it take effect
(``apply``).  Between the two, nothing of it shows: an invocation of an async ``on_record`` sees the state plus its
own writes, and its writes, outputs and side outputs are buffered until ``apply``, at one stroke (semantics 15.1).  A
failed attempt leaves nothing behind, so another one starts clean, and a snapshot never holds half a handler.

State handles live on the one instance that all invocations share.  Which invocation is asking is found in a context
variable, so ``call`` must be run, from its first step to its last, in a context that no other call uses meanwhile; it
puts the variable back at its end.

Refuses to decide when to call, in which order results leave, and what a timeout or another attempt is: that is the
lane's (``runtime/async_lane.py``).
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Coroutine
from contextlib import aclosing
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

from actorflow.abc.state import MISSING, KeyedTable
from actorflow.dataflow.cells import is_empty_container
from actorflow.dataflow.functions import Colour, colour_of
from actorflow.dataflow.handlers import Handler
from actorflow.dataflow.handles import ThroughValue
from actorflow.dataflow.keyed import BaseOperator, Context
from actorflow.dataflow.loops import PLAIN_TYPES
from actorflow.dataflow.seat import Hooks, Seat, Stage
from actorflow.errors import InvalidJob

if TYPE_CHECKING:
    from actorflow.dataflow.primitives import Call, Retry

__all__ = ("AsyncHandler", "AsyncOperator", "Invocation", "InvocationCell", "in_thread", "opens_call", "opens_handler")


class AsyncOperator:
    """One operator that awaits something for each record, in one subtask."""

    __slots__ = (
        "apply",
        "call",
        "hooks",
        "in_flight",
        "keyed",
        "name",
        "ordered",
        "retry",
        "run_broadcast",
        "timeout_ms",
    )

    def __init__(
        self,
        description: Call,
        *,
        call: Callable[[Any, Any, Any], Coroutine[Any, Any, Any]],
        apply: Callable[[Any], list[Any]],
        hooks: Hooks | None = None,
        run_broadcast: Stage | None = None,
    ) -> None:
        self.name: str = description.name
        self.keyed: bool = description.keyed
        self.in_flight: int = description.in_flight
        self.ordered: bool = description.ordered
        self.timeout_ms: int | None = description.timeout_ms
        self.retry: Retry = description.retry
        self.call = call
        """Make one attempt: ``await call(record, key, token)`` gives an outcome, or raises what the user's code did."""
        self.apply = apply
        """Let an outcome take effect, once, and return its outputs."""
        self.hooks, self.run_broadcast = hooks, run_broadcast

    @property
    def retries(self) -> int:
        """How many more attempts may follow the first one."""
        return self.retry.attempts - 1

    @property
    def retry_delay_ms(self) -> int:
        """What lies between two attempts."""
        return self.retry.delay_ms


class Invocation:
    """One attempt at one record: what it read, what it wants to write, and what it gave."""

    __slots__ = ("ended", "entries", "outputs", "sides", "token")

    def __init__(self, token: Any) -> None:
        self.token = token
        self.entries: dict[int, Entry] = {}
        self.outputs: list[Any] = []
        self.sides: list[tuple[str, Any]] = []
        self.ended = False

    def stroke(self) -> list[Any]:
        """What of it will take effect, as plain values: outputs, side outputs, and per state what becomes of it."""
        return [self.outputs, self.sides, [[index, *entry.effect()] for index, entry in self.entries.items()]]

    @classmethod
    def of(cls, token: Any, stroke: list[Any]) -> Invocation:
        """Return an invocation that takes the same effect, without having called anything."""
        invocation = cls(token)
        invocation.outputs, invocation.sides, effects = stroke
        for index, *effect in effects:
            invocation.entries[index] = Entry.of(effect)
        invocation.ended = True
        return invocation


class Entry:
    """A state as one invocation sees it; ``original`` is what the table holds, ``fresh`` what was handed out new."""

    __slots__ = ("fresh", "original", "value")

    def __init__(self, value: Any, original: Any, fresh: Any = MISSING) -> None:
        self.value, self.original, self.fresh = value, original, fresh

    @property
    def is_empty(self) -> bool:
        """Whether nothing is to be kept."""
        return self.value is MISSING or (self.value is self.fresh and is_empty_container(self.value))

    def effect(self) -> list[Any]:
        """What becomes of the state: ``[value]``, or ``[]`` for nothing kept, or ``[None, None]`` for left alone."""
        if self.is_empty:
            return [None, None] if self.original is MISSING else []
        return [None, None] if self.value is self.original else [self.value]

    @classmethod
    def of(cls, effect: list[Any]) -> Entry:
        """Return an entry with this effect."""
        match effect:
            case [value]:
                return cls(value, MISSING)
            case []:
                return cls(MISSING, None)
            case _:
                return cls(MISSING, MISSING)


_invocation: ContextVar[Invocation] = ContextVar("actorflow_invocation")


def _current() -> Invocation:
    found = _invocation.get(None)
    if found is None:
        raise InvalidJob("the state of an async operator belongs to the record in hand, and here is none")
    if found.ended:
        raise InvalidJob(
            "on_record has returned, so what it left running can't use the state any more: await it before returning"
        )
    return found


class InvocationCell:
    """A state of an async operator: through the buffer of the invocation that asks."""

    __slots__ = ("_copy", "_index", "table")

    def __init__(self, table: KeyedTable, index: int, copy: Callable[[Any], Any]) -> None:
        self.table, self._index, self._copy = table, index, copy

    def load(self) -> Any:
        invocation = _current()
        entry = invocation.entries.get(self._index)
        if entry is None:
            original = self.table.peek(invocation.token)
            # The table's own object must not change before the stroke, so the invocation works on a copy.
            value = original if original is MISSING or type(original) in PLAIN_TYPES else self._copy(original)
            entry = invocation.entries[self._index] = Entry(value, original)
        return entry.value

    def store(self, value: Any) -> None:
        _current().entries[self._index] = Entry(value, MISSING)

    def remove(self) -> None:
        _current().entries[self._index] = Entry(MISSING, None)

    def hand_out(self, fresh: Any) -> None:
        entries = _current().entries
        before = entries.get(self._index)
        entries[self._index] = Entry(fresh, MISSING if before is None else before.original, fresh)

    def apply(self, token: Any, entry: Entry) -> None:
        """Write what one invocation made of this state."""
        if entry.is_empty:
            if entry.original is not MISSING:
                self.table.remove(token)
        elif entry.value is not entry.original:
            self.table.store(token, entry.value)


class _AsyncContext(Context[Any]):
    """The context of one invocation."""

    __slots__ = ("_sides",)

    def __init__(self, seat: Seat, key: Any, invocation: Invocation) -> None:
        super().__init__(seat)
        self.key, self.emit, self._sides = key, invocation.outputs.append, invocation.sides

    def emit_to(self, tag: str, value: Any) -> None:
        self._seat.sides.check(tag)
        self._sides.append((tag, value))


class AsyncHandler(Handler):
    """A user's operator whose ``on_record`` is async."""

    def __init__(self, seat: Seat, build: Callable[[], BaseOperator]) -> None:
        super().__init__(seat, build, lambda table, index: InvocationCell(table, index, seat.copy))
        self._is_generator = colour_of(self.instance.on_record) is Colour.ASYNC_GENERATOR
        self._bind_through()

    def _bind_through(self) -> None:
        for handle in self.values:
            handle.__class__ = ThroughValue  # outside of an invocation its cell refuses

    def unbind(self) -> None:
        """Do nothing: hooks run beside invocations, and outside of one the cells refuse by themselves."""

    async def call(self, record: Any, key: Any, token: Any) -> Invocation:
        """Make one attempt."""
        invocation = Invocation(token)
        context, outputs = _AsyncContext(self.seat, key, invocation), invocation.outputs
        reset = _invocation.set(invocation)
        try:
            if self._is_generator:
                async with aclosing(self.instance.on_record(record, context)) as results:
                    async for value in results:
                        outputs.append(value)
            else:
                result = await self.instance.on_record(record, context)
                if result is not None:
                    outputs += result
        finally:
            invocation.ended = True
            _invocation.reset(reset)
        self.check_bound()
        return invocation

    def apply(self, invocation: Invocation) -> list[Any]:
        """Let what an invocation did take effect, at one stroke."""
        if invocation.entries:
            token, cells = invocation.token, self.cells
            for index, entry in invocation.entries.items():
                cells[index].apply(token, entry)
            for cell in cells:
                cell.table.settle()
        column = self.seat.sides.column
        for tag, value in invocation.sides:
            column(tag).append(value)
        return invocation.outputs


def opens_handler(build: Callable[[], BaseOperator]) -> Callable[[Seat, Call], AsyncOperator]:
    """Open a user's operator class in the async lane."""

    def opens(seat: Seat, description: Call) -> AsyncOperator:
        handler = AsyncHandler(seat, build)
        return AsyncOperator(
            description,
            call=handler.call,
            apply=handler.apply,
            hooks=handler,
            run_broadcast=handler.run_broadcast if hasattr(handler.instance, "on_broadcast") else None,
        )

    return opens


def opens_call(make_outputs: Callable[[Any], Awaitable[list[Any]]]) -> Callable[[Seat, Call], AsyncOperator]:
    """Open a function from a record to its outputs in the async lane."""

    async def call(record: Any, _key: Any, _token: Any) -> list[Any]:
        return await make_outputs(record)

    def opens(_seat: Seat, description: Call) -> AsyncOperator:
        return AsyncOperator(description, call=call, apply=_as_it_is)

    return opens


def _as_it_is(outcome: list[Any]) -> list[Any]:
    return outcome


def in_thread(function: Callable[[Any], Any]) -> Callable[[Any], Awaitable[Any]]:
    """Turn a plain function into one that computes in a thread, with the context variables of its call."""
    import asyncio  # a program that only builds a job, or only imports, does not wait for it

    def guarded(record: Any) -> Any:
        try:
            return function(record)
        except StopIteration as error:  # a future can't carry it: whoever awaits would wait for ever
            raise RuntimeError("the function raised StopIteration") from error

    async def call(record: Any) -> Any:
        return await asyncio.to_thread(guarded, record)

    return call
