"""How are the operators that a stream offers written with the eight primitives?

Each function here takes what the user gave and returns one description out of ``primitives.py``, and none knows the
runtime.  The colour of the user's function chooses: a plain one is a *transform*, or *keyed* behind ``key_by``; an
async one, or a plain one that asks for a thread, is a *call*.  An operator of your own belongs here and needs nothing
more.
"""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Iterable
from contextlib import aclosing
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from actorflow.dataflow import loops
from actorflow.dataflow.functions import Colour, check_function, colour_of, describe
from actorflow.dataflow.handlers import PlainHandler
from actorflow.dataflow.keyed import (
    BaseOperator,
    KeyedBroadcastOperator,
    KeyedOperator,
    check_declarations,
    declarations_of,
)
from actorflow.dataflow.keyed_handler import KeyedHandler
from actorflow.dataflow.lane import in_thread, opens_call, opens_handler
from actorflow.dataflow.primitives import Branch, Call, Keyed, Operator, Retry, Transform
from actorflow.dataflow.seat import Opened, Seat
from actorflow.dataflow.states import KeyedDeclaration, ListDeclaration
from actorflow.errors import InvalidJob

__all__ = (
    "CallOptions",
    "aggregate",
    "branch",
    "branch_tag",
    "count",
    "filter_records",
    "flat_map",
    "map_records",
    "process",
    "reduce",
    "stateful_map",
)

_IN_FLIGHT = 50
"""How many async calls of one subtask are in the air at most, unless said."""

_HOOKS = (
    "on_open",
    "on_restored",
    "on_snapshot",
    "on_checkpoint_completed",
    "on_checkpoint_aborted",
    "on_end_of_input",
    "on_close",
    "on_broadcast",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class CallOptions:
    """What a user may say about an async function, or a plain one in a thread."""

    in_thread: bool = False
    in_flight: int | None = None
    ordered: bool = True
    timeout: timedelta | None = None
    retries: int = 0
    retry_delay: timedelta = timedelta(0)

    def check(self, operator: str, colour: Colour) -> bool:
        """Return whether the operator takes the async lane; refuse options that would be ignored or make no sense."""
        where = f"operator {operator!r}"
        if self.in_thread and colour.is_async:
            raise InvalidJob(f"{where}: in_thread=True is for plain functions; this is {colour}, which waits by itself")
        if not (self.in_thread or colour.is_async):
            if self != CallOptions():
                raise InvalidJob(
                    f"{where}: in_flight=, ordered=, timeout= and retries= are for async functions and for "
                    f"in_thread=True; this is {colour}, which runs on the spot"
                )
            return False
        if self.in_flight is not None and not _is_count(self.in_flight, 1):
            raise InvalidJob(
                f"{where}: in_flight= is how many calls may be in the air, 1 or more, not {self.in_flight!r}"
            )
        if not _is_count(self.retries, 0):
            raise InvalidJob(f"{where}: retries= is how often a failed call is made again, 0 or more: {self.retries!r}")
        for name, value, least in (("timeout", self.timeout, 1), ("retry_delay", self.retry_delay, 0)):
            if value is not None and not _is_duration(value, timedelta(milliseconds=least)):
                raise InvalidJob(f"{where}: {name}= is a timedelta of at least {least} ms, not {value!r}")
        return True

    def fields(self) -> dict[str, Any]:
        """Return these options as the fields of a :class:`Call`."""
        return {
            "in_flight": self.in_flight if self.in_flight is not None else 1 if self.in_thread else _IN_FLIGHT,
            "ordered": self.ordered,
            "timeout_ms": None if self.timeout is None else _milliseconds(self.timeout),
            "retry": Retry(attempts=self.retries + 1, delay_ms=_milliseconds(self.retry_delay)),
        }


def _is_count(value: object, least: int) -> bool:
    return type(value) is int and value >= least


def _is_duration(value: object, least: timedelta) -> bool:
    return isinstance(value, timedelta) and value >= least


def _milliseconds(duration: timedelta) -> int:
    return -(-duration // timedelta(milliseconds=1))  # rounded up: never shorter than what was asked for


def _lane_or_transform(
    label: str,
    name: str | None,
    function: Callable[..., Any],
    options: CallOptions,
    opens: Callable[[Seat], Opened],
    outputs: Callable[[Callable[[Any], Any]], Callable[[Any], Awaitable[list[Any]]]],
) -> Operator:
    shown = name or label
    check_function(shown, function, 1)
    if not options.check(shown, colour_of(function)):
        return Transform(name=shown, label=label, annotated=(function,), opens=opens)
    if name is None:
        raise InvalidJob(
            f"{label}({describe(function)}) takes the async lane, whose unfinished inputs a checkpoint keeps under "
            f"the operator's name: write {label}(…, name=…) with a name that stays the same"
        )
    return Call(
        name=shown,
        label=label,
        annotated=(function,),
        keyed=False,
        opens=opens_call(outputs(function)),
        **options.fields(),
    )


def map_records(name: str | None, function: Callable[[Any], Any], options: CallOptions) -> Operator:
    """One record in, one out."""

    def outputs(function: Callable[[Any], Any]) -> Callable[[Any], Awaitable[list[Any]]]:
        call = in_thread(function) if options.in_thread else function

        async def one(record: Any) -> list[Any]:
            return [await call(record)]

        return one

    if colour_of(function) in {Colour.GENERATOR, Colour.ASYNC_GENERATOR}:
        raise InvalidJob(
            f"operator {name or 'map'!r}: {describe(function)} is {colour_of(function)}, so map would hand on "
            "generators; use flat_map for what it yields"
        )
    return _lane_or_transform("map", name, function, options, loops.opens_map(function), outputs)


def filter_records(name: str | None, function: Callable[[Any], Any], options: CallOptions) -> Operator:
    """Keep the records that a predicate holds for."""

    def outputs(function: Callable[[Any], Any]) -> Callable[[Any], Awaitable[list[Any]]]:
        call = in_thread(function) if options.in_thread else function

        async def one_or_none(record: Any) -> list[Any]:
            return [record] if await call(record) else []

        return one_or_none

    if colour_of(function) in {Colour.GENERATOR, Colour.ASYNC_GENERATOR}:
        raise InvalidJob(
            f"operator {name or 'filter'!r}: {describe(function)} is {colour_of(function)}, and a generator is always "
            "true; a predicate returns whether to keep the record"
        )
    return _lane_or_transform("filter", name, function, options, loops.opens_filter(function), outputs)


def flat_map(name: str | None, function: Callable[[Any], Any], options: CallOptions) -> Operator:
    """One record in, any number out."""

    def outputs(function: Callable[[Any], Any]) -> Callable[[Any], Awaitable[list[Any]]]:
        if options.in_thread:
            plain: Callable[[Any], Iterable[Any]] = function
            return in_thread(lambda record: list(plain(record)))  # a generator runs in the thread too
        if colour_of(function) is Colour.ASYNC_GENERATOR:

            async def gathered(record: Any) -> list[Any]:
                results: Any = function(record)
                async with aclosing(results):
                    return [value async for value in results]

            return gathered

        async def several(record: Any) -> list[Any]:
            return list(await function(record))

        return several

    return _lane_or_transform("flat_map", name, function, options, loops.opens_flat_map(function), outputs)


def branch_tag(index: int) -> str:
    """Return the side output that the predicate at ``index`` fills."""
    return f"branch-{index + 1}"


def branch(name: str | None, predicates: tuple[Callable[[Any], Any], ...]) -> Operator:
    """Each record to the first predicate that holds for it; what is left is the main output."""
    shown = name or "branch"
    if not predicates:
        raise InvalidJob(f"operator {shown!r}: branch needs at least one predicate")
    for predicate in predicates:
        check_function(shown, predicate, 1, what="predicate")
        if colour_of(predicate) is not Colour.PLAIN:
            raise InvalidJob(
                f"operator {shown!r}: {describe(predicate)} is {colour_of(predicate)}; branch takes plain "
                "functions, so find the answer in a map before it"
            )
    tags = tuple(branch_tag(index) for index in range(len(predicates)))
    return Branch(
        name=shown,
        label="branch",
        annotated=predicates,
        opens=loops.opens_branch(predicates, tags),
        has_side_outputs=True,
    )


def _plain_only(operator: str, *functions: tuple[str, Callable[..., Any], int]) -> None:
    for what, function, arguments in functions:
        check_function(operator, function, arguments, what=what)
        if colour_of(function) is not Colour.PLAIN:
            raise InvalidJob(
                f"operator {operator!r}: its {what} {describe(function)} is {colour_of(function)}; it must be plain, "
                "because state changes at one stroke: use process() with an async on_record instead"
            )


def _keyed(
    name: str, label: str, kind: str, opens: Callable[[Seat], Opened], annotated: tuple[Callable[..., Any], ...] = ()
) -> Keyed:
    return Keyed(name=name, label=label, annotated=annotated, states=((loops.STATE, kind),), opens=opens)


def stateful_map(name: str, function: Callable[[Any, Any], tuple[Any, Any]]) -> Keyed:
    """From the key's state and a record to the new state and one output."""
    _plain_only(name, ("function", function, 2))
    return _keyed(name, "stateful_map", "value", loops.opens_stateful_map(function), (function,))


def count(name: str) -> Keyed:
    """Count the records of each key."""
    return _keyed(name, "count", "value", loops.opens_count)


def reduce(name: str, function: Callable[[Any, Any], Any]) -> Keyed:
    """Fold the records of each key into one."""
    _plain_only(name, ("function", function, 2))
    return _keyed(name, "reduce", "reducing", loops.opens_reduce(function), (function,))


def aggregate(
    name: str, create: Callable[[], Any], add: Callable[[Any, Any], Any], result: Callable[[Any], Any] | None
) -> Keyed:
    """Gather the records of each key in an accumulator."""
    _plain_only(name, ("create", create, 0), ("add", add, 2))
    functions: tuple[Callable[..., Any], ...] = (create, add)
    if result is not None:
        _plain_only(name, ("result", result, 1))
        functions = (create, add, result)
    return _keyed(name, "aggregate", "aggregating", loops.opens_aggregate(create, add, result), functions)


def process(
    name: str,
    cls: type[BaseOperator],
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    options: CallOptions,
    *,
    keyed: bool,
    broadcast: bool = False,
) -> Operator:
    """Run an operator class of the user's."""
    _check_class(name, cls, args, kwargs, keyed=keyed, broadcast=broadcast)
    declarations = declarations_of(cls)
    common: dict[str, Any] = {
        "name": name,
        "label": "connect_broadcast" if broadcast else "process",
        "annotated": (cls, *(part for declaration in declarations.values() for part in declaration.annotated)),
        "states": tuple((key, one.kind) for key, one in declarations.items() if isinstance(one, KeyedDeclaration)),
        "lists": tuple(
            (key, one.redistribution) for key, one in declarations.items() if isinstance(one, ListDeclaration)
        ),
        "has_side_outputs": True,
        "optional_outputs": tuple(cls.optional_outputs),
    }

    def build() -> BaseOperator:
        return cls(*args, **kwargs)

    if options.in_thread:
        raise InvalidJob(f"operator {name!r}: in_thread=True is for map, filter and flat_map; an operator has state")
    if options.check(name, colour_of(cls.on_record)):  # type: ignore[attr-defined]  # all concrete ones have it
        return Call(**common, keyed=keyed, opens=opens_handler(build), **options.fields())
    if keyed:
        return Keyed(**common, opens=lambda seat: _open_keyed(seat, build, broadcast=broadcast))
    return Transform(**common, opens=lambda seat: _open_plain(seat, build))


def _open_keyed(seat: Seat, build: Callable[[], BaseOperator], *, broadcast: bool) -> Opened:
    handler = KeyedHandler(seat, build)
    return Opened(run_keyed=handler.run, run_broadcast=handler.run_broadcast if broadcast else None, hooks=handler)


def _open_plain(seat: Seat, build: Callable[[], BaseOperator]) -> Opened:
    handler = PlainHandler(seat, build)
    return Opened(run=handler.run, hooks=handler)


def _check_class(
    name: str, cls: Any, args: tuple[Any, ...], kwargs: dict[str, Any], *, keyed: bool, broadcast: bool
) -> None:
    where = f"operator {name!r}"
    if not (isinstance(cls, type) and issubclass(cls, BaseOperator)):
        wanted = "KeyedBroadcastOperator" if broadcast else "KeyedOperator" if keyed else "Operator"
        given = f"an instance of {type(cls).__qualname__}" if isinstance(cls, BaseOperator) else repr(cls)[:80]
        raise InvalidJob(
            f"{where}: process takes a subclass of {wanted} and the arguments to make it with, not {given}; "
            "each subtask makes its own"
        )
    if inspect.isabstract(cls):
        missing = ", ".join(sorted(cls.__abstractmethods__))
        raise InvalidJob(f"{where}: {cls.__qualname__} does not define {missing}")
    if issubclass(cls, KeyedOperator) and not keyed:
        raise InvalidJob(
            f"{where}: {cls.__qualname__} is a KeyedOperator, so the stream needs a key_by before process()"
        )
    takes_rules = issubclass(cls, KeyedBroadcastOperator)
    if takes_rules and not broadcast:
        raise InvalidJob(f"{where}: {cls.__qualname__} has a broadcast side; use keyed.connect_broadcast(rules, …)")
    if broadcast and not takes_rules:
        raise InvalidJob(f"{where}: {cls.__qualname__} must be a KeyedBroadcastOperator to take a broadcast side")
    try:
        inspect.signature(cls).bind(*args, **kwargs)
    except TypeError as error:
        raise InvalidJob(f"{where}: {cls.__qualname__} can't be made with the arguments given: {error}") from None
    except ValueError:
        pass  # does not tell its arguments; the first subtask will
    check_declarations(name, cls, keyed=keyed, broadcast=broadcast)
    for hook in _HOOKS:
        method = getattr(cls, hook, None)
        if method is not None and colour_of(method).is_async:
            raise InvalidJob(
                f"{where}: {cls.__qualname__}.{hook} must be a plain function; only on_record may be async"
            )
        if (
            method is not None
            and colour_of(method) is Colour.GENERATOR
            and hook not in {"on_end_of_input", "on_broadcast"}
        ):
            raise InvalidJob(f"{where}: {cls.__qualname__}.{hook} has no output, so it must not be a generator")
    check_function(name, getattr(cls, "on_record"), 3, what="on_record")  # noqa: B009 - the base has none
