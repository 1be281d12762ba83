"""How is a user's function called for each record of a batch?

One function from list to list per operator; a ``map`` *is* a list comprehension.  The shapes were measured
(comprehension against generated code: 0.85 to 0.96 of a plain loop), so none of them tests, wraps or tuples a record
without need.  Keyed loops go straight to the dict of a table while it offers one (``table.plain``), for the length of
one batch, and take the careful road through ``load`` and ``store`` otherwise.

Whether a plain function handed back a coroutine (a lambda around an async function does) is looked at during the first
batch only; from then on the bare loop runs.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from actorflow.abc.state import MISSING
from actorflow.dataflow.deferred_keys import DeferredKeys
from actorflow.dataflow.seat import Each, KeyedLoop, Opened, Seat, Stage

__all__ = (
    "PLAIN_TYPES",
    "STATE",
    "SinkRaised",
    "opens_aggregate",
    "opens_branch",
    "opens_count",
    "opens_filter",
    "opens_flat_map",
    "opens_map",
    "opens_reduce",
    "opens_stateful_map",
)

class SinkRaised(Exception):
    """What a sink's function raised is its cause; ``record`` is what it was given."""

    def __init__(self, record: Any) -> None:
        self.record = record
        super().__init__()


PLAIN_TYPES = frozenset({str, int, float, bool, bytes, type(None)})
"""Types whose values can't be changed in place, so that handing one on needs no copy."""

STATE = "state"
"""What the one state of a derived operator is called in a checkpoint."""


def _not_awaitable(function: Callable[..., Any]) -> Callable[..., Any]:
    """Wrap a plain function for its first batch, so that a coroutine it returns is told and not passed on unawaited."""

    def checked(*arguments: Any) -> Any:
        result = function(*arguments)
        if inspect.iscoroutine(result) or inspect.isasyncgen(result):
            if inspect.iscoroutine(result):
                result.close()
            raise TypeError(
                "the function is plain but returned a coroutine, which nobody would await: "
                "write it as `async def`, so that it takes the async lane"
            )
        return result

    return checked


def _first_checked(make: Callable[[Callable[..., Any]], Stage], function: Callable[..., Any]) -> Opened:
    """Open a stage whose first non-empty batch runs with the check and all later ones without."""
    bare = make(function)
    opened = Opened()

    def first(values: Iterable[Any]) -> list[Any]:
        result = make(_not_awaitable(function))(values)
        opened.run = bare
        return result

    opened.run = first
    return opened


def opens_map(function: Callable[[Any], Any]) -> Callable[[Seat], Opened]:
    """One record in, one out."""

    def make(function: Callable[[Any], Any]) -> Stage:
        def map_batch(values: Iterable[Any]) -> list[Any]:
            return [function(value) for value in values]

        return map_batch

    return lambda _seat: _first_checked(make, function)


def opens_filter(function: Callable[[Any], Any]) -> Callable[[Seat], Opened]:
    """Keep what the predicate holds for."""

    def make(function: Callable[[Any], Any]) -> Stage:
        def filter_batch(values: Iterable[Any]) -> list[Any]:
            return [value for value in values if function(value)]

        return filter_batch

    return lambda _seat: _first_checked(make, function)


def opens_flat_map(function: Callable[[Any], Iterable[Any]]) -> Callable[[Seat], Opened]:
    """One record in, any number out: from a list, a generator, or anything else that can be iterated over."""

    def make(function: Callable[[Any], Iterable[Any]]) -> Stage:
        def flat_map_batch(values: Iterable[Any]) -> list[Any]:
            outputs: list[Any] = []
            for value in values:
                outputs += function(value)
            return outputs

        return flat_map_batch

    return lambda _seat: _first_checked(make, function)


def opens_branch(predicates: tuple[Callable[[Any], Any], ...], tags: tuple[str, ...]) -> Callable[[Seat], Opened]:
    """Each record to the first predicate that holds; what none holds for is the main output."""

    def opens(seat: Seat) -> Opened:
        column = seat.sides.column
        if len(predicates) == 1:
            (predicate,), (tag,) = predicates, tags

            def branch_in_two(values: Iterable[Any]) -> list[Any]:
                yes, no = column(tag), list[Any]()
                for value in values:
                    (yes if predicate(value) else no).append(value)
                return no

            return Opened(run=branch_in_two)

        def branch_batch(values: Iterable[Any]) -> list[Any]:
            ways = [(predicate, column(tag)) for predicate, tag in zip(predicates, tags, strict=True)]
            rest = []
            for value in values:
                for predicate, way in ways:
                    if predicate(value):
                        way.append(value)
                        break
                else:
                    rest.append(value)
            return rest

        return Opened(run=branch_batch)

    return opens


def opens_stateful_map(function: Callable[[Any, Any], tuple[Any, Any]]) -> Callable[[Seat], Opened]:
    """From the key's state and a record to the new state and one output; a new state of ``None`` forgets the key."""

    def opens(seat: Seat) -> Opened:
        table = seat.table(STATE, "value")

        def make(function: Callable[[Any, Any], tuple[Any, Any]]) -> KeyedLoop:
            def stateful_map_batch(tokens: Iterable[Any], _keys: list[Any], values: list[Any]) -> list[Any]:
                # Each value gives way to its output in a copy of the list: 5 % faster than to gather outputs.
                outputs, index, plain, call = values[:], 0, table.plain, function
                if plain is not None:
                    get = plain.get
                    for token in tokens:
                        new, outputs[index] = call(get(token), outputs[index])
                        if new is None:
                            plain.pop(token, None)
                        else:
                            plain[token] = new
                        index += 1
                    return outputs
                load, store, remove = table.load, table.store, table.remove
                for token in tokens:
                    old = load(token)
                    new, outputs[index] = call(None if old is MISSING else old, outputs[index])
                    if new is not None:
                        store(token, new)
                    elif old is not MISSING:
                        remove(token)
                    index += 1
                return outputs

            return stateful_map_batch

        bare, opened = make(function), Opened()

        def stateful_map_deferred(
            deferred: DeferredKeys, records: Iterator[Any], values: list[Any], each: Each | None
        ) -> list[Any] | None:
            plain, kind, key_of, call = table.plain, deferred.kind, deferred.function, function
            if plain is None or kind is None:
                return None
            outputs: list[Any] = []
            if each is not None:
                # The same once more, with the sink's function in the place of the list: 5 % of the whole road.
                for value in records:
                    try:
                        key = key_of(value)
                    except Exception as error:
                        raise deferred.failed(error, value) from error
                    if key.__class__ is not kind:
                        keys, tokens = deferred.rest(key, records)
                        return bare(iter(keys if tokens is None else tokens), keys, values[-len(keys) :])
                    try:
                        old = plain[key]
                    except KeyError:
                        deferred.first_seen(key)
                        old = None
                    new, output = call(old, value)
                    if new is None:
                        plain.pop(key, None)
                    else:
                        plain[key] = new
                    try:
                        each(output)
                    except Exception as error:
                        raise SinkRaised(output) from error
                return outputs
            for value in records:
                try:
                    key = key_of(value)
                except Exception as error:
                    raise deferred.failed(error, value) from error
                if key.__class__ is not kind:
                    keys, tokens = deferred.rest(key, records)
                    rest = values[len(outputs) :]
                    return outputs + bare(iter(keys if tokens is None else tokens), keys, rest)
                try:
                    old = plain[key]
                except KeyError:
                    deferred.first_seen(key)
                    old = None
                new, output = call(old, value)
                if new is None:
                    plain.pop(key, None)
                else:
                    plain[key] = new
                outputs.append(output)  # looked up each time on purpose: this form is the fastest since 3.11
            return outputs

        def first(tokens: Iterable[Any], keys: list[Any], values: list[Any]) -> list[Any]:
            result = make(_not_awaitable(function))(tokens, keys, values)
            opened.run_keyed, opened.run_deferred = bare, stateful_map_deferred
            return result

        opened.run_keyed = first
        return opened

    return opens


def opens_count(seat: Seat) -> Opened:
    """Count the records of each key: ``(key, 1)``, ``(key, 2)`` and so on."""
    table = seat.table(STATE, "value")

    def count_batch(tokens: Iterable[Any], keys: list[Any], _values: list[Any]) -> list[Any]:
        outputs: list[Any] = []
        append = outputs.append
        plain = table.plain
        if plain is not None:
            get = plain.get
            for token, key in zip(tokens, keys, strict=False):
                plain[token] = number = get(token, 0) + 1
                append((key, number))
            return outputs
        peek, store = table.peek, table.store
        for token, key in zip(tokens, keys, strict=False):
            old = peek(token)
            number = 1 if old is MISSING else old + 1
            store(token, number)
            append((key, number))
        return outputs

    def count_deferred(
        deferred: DeferredKeys, records: Iterator[Any], _values: list[Any], _each: Each | None
    ) -> list[Any] | None:
        plain, kind, key_of = table.plain, deferred.kind, deferred.function
        if plain is None or kind is None:
            return None
        outputs: list[Any] = []
        for value in records:
            try:
                key = key_of(value)
            except Exception as error:
                raise deferred.failed(error, value) from error
            if key.__class__ is not kind:
                keys, tokens = deferred.rest(key, records)
                return outputs + count_batch(keys if tokens is None else tokens, keys, [])
            try:
                number = plain[key] + 1
            except KeyError:
                deferred.first_seen(key)
                number = 1
            plain[key] = number
            outputs.append((key, number))
        return outputs

    return Opened(run_keyed=count_batch, run_deferred=count_deferred)


def opens_reduce(function: Callable[[Any, Any], Any]) -> Callable[[Seat], Opened]:
    """Fold the records of each key into one of their kind, and give ``(key, what it is now)``.

    What is given away is a copy when it could be changed in place, because the next record may do so.
    """

    def opens(seat: Seat) -> Opened:
        table, copy = seat.table(STATE, "reducing"), seat.copy

        def reduce_batch(tokens: Iterable[Any], keys: list[Any], values: list[Any]) -> list[Any]:
            outputs: list[Any] = []
            append = outputs.append
            load, store, remove = table.load, table.store, table.remove
            plain = table.plain
            get = None if plain is None else plain.get
            for token, key, value in zip(tokens, keys, values, strict=False):
                old = load(token) if get is None else get(token, MISSING)
                new = function(old, value) if old is not MISSING else copy(value)
                if new is None:
                    remove(token)
                elif plain is None:
                    store(token, new)
                else:
                    plain[token] = new
                append((key, new if type(new) in PLAIN_TYPES else copy(new)))
            return outputs

        return Opened(run_keyed=reduce_batch)

    return opens


def opens_aggregate(
    create: Callable[[], Any], add: Callable[[Any, Any], Any], result: Callable[[Any], Any] | None
) -> Callable[[Seat], Opened]:
    """Gather the records of each key in an accumulator of another kind, and give ``(key, result)``.

    ``add`` returns the next accumulator, which may be the old one changed in place.  Without ``result`` the accumulator
    is given away, as a copy when it could be changed in place.
    """

    def opens(seat: Seat) -> Opened:
        table, copy = seat.table(STATE, "aggregating"), seat.copy

        def show(accumulator: Any) -> Any:
            return accumulator if type(accumulator) in PLAIN_TYPES else copy(accumulator)

        finish = show if result is None else result

        def aggregate_batch(tokens: Iterable[Any], keys: list[Any], values: list[Any]) -> list[Any]:
            outputs: list[Any] = []
            append = outputs.append
            load, store = table.load, table.store
            plain = table.plain
            get = None if plain is None else plain.get
            for token, key, value in zip(tokens, keys, values, strict=False):
                old = load(token) if get is None else get(token, MISSING)
                if old is MISSING:
                    old = create()
                new = add(old, value)
                if new is None:
                    raise TypeError("`add` returned None; it must return the accumulator, changed or new")
                if plain is None:
                    store(token, new)
                else:
                    plain[token] = new
                append((key, finish(new)))
            return outputs

        return Opened(run_keyed=aggregate_batch)

    return opens
