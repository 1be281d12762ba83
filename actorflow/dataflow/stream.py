# ruff: noqa: SLF001 - streams look into each other, and a stream is its job's own hand
"""What does a user say to a stream?

The fluent face of the language: each method adds one operator to the job, or says how records travel to the next one,
and returns the stream that comes out.  What the operators do stands in ``derived.py``.

* An operator is named with ``name=``; required wherever state or a position is kept.
* ``parallelism=`` says how many subtasks it has.  Unless said, an operator runs where its input is made, with the same
  number of subtasks, so the order of records is kept; one behind an exchange (``key_by``, ``rebalance`` …) has the
  job's.
* Operators between which nothing is exchanged run in one actor.  ``break_chain()`` puts the next one into another.
* A stream that nobody reads is a mistake, told when the plan is made: end it with ``write``, or say ``discard()``.
* Streams of two jobs can't meet.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Generic, TypeVar, overload

from actorflow.abc.connectors import Sink
from actorflow.dataflow import derived
from actorflow.dataflow.derived import CallOptions
from actorflow.dataflow.functions import Colour, check_function, colour_of, describe
from actorflow.dataflow.keyed import KeyedBroadcastOperator, KeyedOperator, Operator
from actorflow.dataflow.names import check_name, needs_name
from actorflow.dataflow.primitives import Exchange, ExchangeKind, Leg, OperatorKind, Write
from actorflow.dataflow.primitives import Operator as Description
from actorflow.errors import InvalidJob

if TYPE_CHECKING:
    from actorflow.dataflow.job import Job

__all__ = ("KeyedStream", "Stream")

T_co = TypeVar("T_co", covariant=True)
K_co = TypeVar("K_co", covariant=True)
K = TypeVar("K")
O = TypeVar("O")  # noqa: E741 - what another stream holds
R = TypeVar("R")
S = TypeVar("S")
B = TypeVar("B")

_STATE = "a checkpoint keeps its state under its name"
_NOW = timedelta(0)


class Stream(Generic[T_co]):
    """Records on their way: one or several outputs of operators, and how they travel on."""

    __slots__ = ("_job", "_legs")

    def __init__(self, job: Job, legs: tuple[Leg, ...]) -> None:
        self._job, self._legs = job, legs

    # ── record by record ─────────────────────────────────────────────────────────────────────

    @overload
    def map(
        self,
        function: Callable[[T_co], Awaitable[R]],
        *,
        name: str,
        parallelism: int | None = None,
        max_parallelism: int | None = None,
        in_flight: int | None = None,
        ordered: bool = True,
        timeout: timedelta | None = None,
        retries: int = 0,
        retry_delay: timedelta = _NOW,
    ) -> Stream[R]: ...
    @overload
    def map(
        self,
        function: Callable[[T_co], R],
        *,
        name: str | None = None,
        parallelism: int | None = None,
        max_parallelism: int | None = None,
        in_thread: bool = False,
        in_flight: int | None = None,
        ordered: bool = True,
        timeout: timedelta | None = None,
        retries: int = 0,
        retry_delay: timedelta = _NOW,
    ) -> Stream[R]: ...
    def map(
        self,
        function: Callable[[T_co], Any],
        *,
        name: str | None = None,
        parallelism: int | None = None,
        max_parallelism: int | None = None,
        **options: Any,
    ) -> Stream[Any]:
        """Turn each record into another.

        An ``async def`` takes the async lane: at most ``in_flight`` calls in the air, results in order of arrival
        unless ``ordered=False``, ``timeout`` from the first call on and over all retries.  ``in_thread=True`` does the
        same for a plain function that computes for long, one call at a time unless ``in_flight`` says more.  Both need
        a ``name``, under which unfinished inputs are kept.
        """
        operator = derived.map_records(name, function, CallOptions(**options))
        return self._then(operator, name, parallelism, max_parallelism)

    @overload
    def filter(
        self,
        function: Callable[[T_co], Awaitable[object]],
        *,
        name: str,
        parallelism: int | None = None,
        max_parallelism: int | None = None,
        in_flight: int | None = None,
        ordered: bool = True,
        timeout: timedelta | None = None,
        retries: int = 0,
        retry_delay: timedelta = _NOW,
    ) -> Stream[T_co]: ...
    @overload
    def filter(
        self,
        function: Callable[[T_co], object],
        *,
        name: str | None = None,
        parallelism: int | None = None,
        max_parallelism: int | None = None,
        in_thread: bool = False,
        in_flight: int | None = None,
        ordered: bool = True,
        timeout: timedelta | None = None,
        retries: int = 0,
        retry_delay: timedelta = _NOW,
    ) -> Stream[T_co]: ...
    def filter(
        self,
        function: Callable[[T_co], object],
        *,
        name: str | None = None,
        parallelism: int | None = None,
        max_parallelism: int | None = None,
        **options: Any,
    ) -> Stream[T_co]:
        """Keep the records that ``function`` holds for; options as for ``map``."""
        operator = derived.filter_records(name, function, CallOptions(**options))
        return self._then(operator, name, parallelism, max_parallelism)

    @overload
    def flat_map(
        self,
        function: Callable[[T_co], Awaitable[Iterable[R]]] | Callable[[T_co], AsyncIterator[R]],
        *,
        name: str,
        parallelism: int | None = None,
        max_parallelism: int | None = None,
        in_flight: int | None = None,
        ordered: bool = True,
        timeout: timedelta | None = None,
        retries: int = 0,
        retry_delay: timedelta = _NOW,
    ) -> Stream[R]: ...
    @overload
    def flat_map(
        self,
        function: Callable[[T_co], Iterable[R]],
        *,
        name: str | None = None,
        parallelism: int | None = None,
        max_parallelism: int | None = None,
        in_thread: bool = False,
        in_flight: int | None = None,
        ordered: bool = True,
        timeout: timedelta | None = None,
        retries: int = 0,
        retry_delay: timedelta = _NOW,
    ) -> Stream[R]: ...
    def flat_map(
        self,
        function: Callable[[T_co], Any],
        *,
        name: str | None = None,
        parallelism: int | None = None,
        max_parallelism: int | None = None,
        **options: Any,
    ) -> Stream[Any]:
        """Turn each record into any number of others: a list, a generator, anything that can be iterated over.

        A string that is returned gives its characters.  Options as for ``map``.
        """
        operator = derived.flat_map(name, function, CallOptions(**options))
        return self._then(operator, name, parallelism, max_parallelism)

    @needs_name(_STATE)
    def process(
        self,
        operator: type[Operator[T_co, R]],
        *args: Any,
        name: str,
        parallelism: int | None = None,
        max_parallelism: int | None = None,
        in_flight: int | None = None,
        ordered: bool = True,
        timeout: timedelta | None = None,
        retries: int = 0,
        retry_delay: timedelta = _NOW,
        **kwargs: Any,
    ) -> Stream[R]:
        """Run an operator class; each subtask makes its own instance with ``args`` and ``kwargs``.

        The other options are for an async ``on_record``, as for ``map``.
        """
        options = CallOptions(
            in_flight=in_flight, ordered=ordered, timeout=timeout, retries=retries, retry_delay=retry_delay
        )
        description = derived.process(name, operator, args, kwargs, options, keyed=False)
        return self._then(description, name, parallelism, max_parallelism)

    # ── apart and together ───────────────────────────────────────────────────────────────────

    @overload
    def branch(
        self, predicate: Callable[[T_co], object], /, *, name: str | None = None
    ) -> tuple[Stream[T_co], Stream[T_co]]: ...
    @overload
    def branch(
        self, first: Callable[[T_co], object], second: Callable[[T_co], object], /, *, name: str | None = None
    ) -> tuple[Stream[T_co], Stream[T_co], Stream[T_co]]: ...
    @overload
    def branch(self, *predicates: Callable[[T_co], object], name: str | None = None) -> tuple[Stream[T_co], ...]: ...
    def branch(self, *predicates: Callable[[T_co], object], name: str | None = None) -> Any:
        """Part a stream: one for each predicate, with the records it is the first to hold for, and one for the rest.

        ``large, small = stream.branch(is_large)``
        """
        rest: Stream[T_co] = self._then(derived.branch(name, predicates), name, None, None)
        (leg,) = rest._legs
        ways: list[Stream[T_co]] = [
            Stream(self._job, (Leg(leg.node, derived.branch_tag(index)),)) for index in range(len(predicates))
        ]
        return (*ways, rest)

    @overload
    def side_output(self, tag: str) -> Stream[Any]: ...
    @overload
    def side_output(self, tag: str, of: type[S]) -> Stream[S]: ...
    def side_output(self, tag: str, of: type[Any] | None = None) -> Stream[Any]:
        """Read what the operator before gives with ``context.emit_to(tag, …)``; ``of`` says of what type it is."""
        check_name("side output", tag)
        node = self._single("side_output", main=True)
        if not node.operator.has_side_outputs or node.operator.kind is OperatorKind.BRANCH:
            raise InvalidJob(
                f"operator {self._job._name_of(node)!r}: {node.operator.label} has no side outputs; "
                "only process() has, with context.emit_to()"
            )
        return Stream(self._job, (Leg(node, tag),))

    def union(self, *others: Stream[O]) -> Stream[T_co | O]:
        """Put streams together; the order between them is left open."""
        if not others:
            raise InvalidJob("union() takes at least one other stream")
        legs = self._legs
        for other in others:
            self._check_same_job(other, "union")
            legs += other._legs
        if isinstance(self, KeyedStream) and all(isinstance(other, KeyedStream) for other in others):
            return KeyedStream(self._job, legs)
        return Stream(self._job, legs)

    # ── how records travel on ────────────────────────────────────────────────────────────────

    def key_by(self, function: Callable[[T_co], K], *, name: str | None = None) -> KeyedStream[K, T_co]:
        """Send all records of one key to the same subtask, which holds that key's state."""
        shown = check_name("key_by", name) if name is not None else "key_by"
        check_function(shown, function, 1, what="key function")
        if colour_of(function) is not Colour.PLAIN:
            raise InvalidJob(
                f"{shown}: the key function {describe(function)} is {colour_of(function)}; it must be plain, so find "
                "the key in a map before it"
            )
        stream = self._exchange(ExchangeKind.KEYED, "key_by", shown, key=function)
        return KeyedStream(stream._job, stream._legs)

    def forward(self) -> Stream[T_co]:
        """Say that the next operator has as many subtasks, and each reads the one of the same number."""
        return self._exchange(ExchangeKind.FORWARD, "forward")

    def break_chain(self) -> Stream[T_co]:
        """Let the next operator run in an actor of its own, so that both may be busy at once."""
        return self._exchange(ExchangeKind.FORWARD, "break_chain", breaks_chain=True)

    def rebalance(self) -> Stream[T_co]:
        """Deal records out in turns over all subtasks of the next operator."""
        return self._exchange(ExchangeKind.REBALANCE, "rebalance")

    def shuffle(self) -> Stream[T_co]:
        """Send each record to a subtask drawn by chance."""
        return self._exchange(ExchangeKind.SHUFFLE, "shuffle")

    def rescale(self) -> Stream[T_co]:
        """Deal records out in turns, but only over the neighbouring subtasks of the next operator."""
        return self._exchange(ExchangeKind.RESCALE, "rescale")

    def global_(self) -> Stream[T_co]:
        """Send all records to the first subtask of the next operator, which has only one unless said."""
        return self._exchange(ExchangeKind.GLOBAL, "global_")

    def broadcast(self) -> Stream[T_co]:
        """Send each record to every subtask of the next operator."""
        return self._exchange(ExchangeKind.BROADCAST, "broadcast")

    def partition_by(self, function: Callable[[T_co, int], int]) -> Stream[T_co]:
        """Send each record to the subtask that ``function(record, subtasks)`` names, from 0.

        The function must be deterministic, for a record may be sent again after a failure.
        """
        check_function("partition_by", function, 2, what="partitioner")
        if colour_of(function) is not Colour.PLAIN:
            raise InvalidJob(f"partition_by: {describe(function)} is {colour_of(function)}; it must be plain")
        return self._exchange(ExchangeKind.CUSTOM, "partition_by", partition=function)

    # ── the end ──────────────────────────────────────────────────────────────────────────────

    @needs_name("a checkpoint keeps what a sink has prepared under its name")
    def write(
        self, sink: Sink[T_co], *, name: str, parallelism: int | None = None, max_parallelism: int | None = None
    ) -> None:
        """End a stream in a sink."""
        if not isinstance(sink, Sink):
            raise InvalidJob(f"operator {name!r}: write takes a Sink, not {type(sink).__name__}")
        operator = Write(name=name, label="write", annotated=(sink,), writes=sink)
        self._then(operator, name, parallelism, max_parallelism, own_parallelism=sink.parallelism)

    def discard(self) -> None:
        """End a stream that nobody needs, such as that of an operator which is run for its state or its effects."""
        for leg in self._legs:
            if leg.exchange is not None:
                raise InvalidJob(f"{leg.exchange.operator} before discard() has no effect; leave it out")
            leg.node.discarded.append(leg.tag)

    # ── inside ───────────────────────────────────────────────────────────────────────────────

    def _then(
        self,
        operator: Description,
        name: str | None,
        parallelism: int | None,
        max_parallelism: int | None,
        *,
        own_parallelism: int | None = None,
        more_legs: tuple[Leg, ...] = (),
    ) -> Stream[Any]:
        return self._job._add(
            operator,
            name=name,
            legs=self._legs + more_legs,
            parallelism=parallelism,
            max_parallelism=max_parallelism,
            own_parallelism=own_parallelism,
        )

    def _exchange(self, kind: ExchangeKind, method: str, shown: str = "", **more: Any) -> Stream[T_co]:
        for leg in self._legs:
            if leg.exchange is not None:
                raise InvalidJob(
                    f"{method}() follows {leg.exchange.operator}() with no operator between them, so one of the two "
                    "would have no effect; leave one out"
                )
        exchange = Exchange(kind=kind, operator=shown or method, **more)
        return Stream(self._job, tuple(Leg(leg.node, leg.tag, exchange) for leg in self._legs))

    def _single(self, method: str, *, main: bool) -> Any:
        if len(self._legs) != 1:
            raise InvalidJob(f"{method}() is said to the output of one operator, and this is a union of several")
        (leg,) = self._legs
        if leg.exchange is not None or (main and leg.tag is not None):
            raise InvalidJob(f"{method}() is said right after the operator, before anything else is said to its output")
        return leg.node

    def _check_same_job(self, other: object, method: str) -> None:
        if not isinstance(other, Stream):
            raise InvalidJob(f"{method}() takes streams, not {type(other).__name__}")
        if other._job is not self._job:
            raise InvalidJob(
                f"{method}(): one stream belongs to job {self._job.name!r} and the other to another job, "
                f"{other._job.name!r}; only streams of one Job object can meet"
            )

    def __repr__(self) -> str:
        ends = [self._job._name_of(leg.node) + (f".{leg.tag}" if leg.tag else "") for leg in self._legs]
        return f"<{type(self).__name__} of {' and '.join(ends)}>"


class KeyedStream(Stream[T_co], Generic[K_co, T_co]):
    """Records on their way to the subtask that owns their key.

    Whatever a stream can do it can do too; then each key's records still arrive at one subtask, but state is not kept.
    """

    __slots__ = ()

    @needs_name(_STATE)
    def stateful_map(
        self,
        function: Callable[[S | None, T_co], tuple[S | None, R]],
        *,
        name: str,
        parallelism: int | None = None,
        max_parallelism: int | None = None,
    ) -> Stream[R]:
        """Turn the key's state and a record into the new state and one output.

        The state of a key that was not seen before is ``None``, and returning ``None`` as the state forgets the key.
        """
        return self._then(derived.stateful_map(name, function), name, parallelism, max_parallelism)

    @needs_name(_STATE)
    def count(
        self, *, name: str, parallelism: int | None = None, max_parallelism: int | None = None
    ) -> Stream[tuple[K_co, int]]:
        """Count the records of each key: ``(key, 1)``, ``(key, 2)``, one output for each record."""
        return self._then(derived.count(name), name, parallelism, max_parallelism)

    @needs_name(_STATE)
    def reduce(
        self,
        function: Callable[[T_co, T_co], T_co],
        *,
        name: str,
        parallelism: int | None = None,
        max_parallelism: int | None = None,
    ) -> Stream[tuple[K_co, T_co]]:
        """Fold the records of each key into one: ``(key, what they are by now)`` for each record."""
        return self._then(derived.reduce(name, function), name, parallelism, max_parallelism)

    @overload
    def aggregate(
        self,
        create: Callable[[], S],
        add: Callable[[S, T_co], S],
        result: Callable[[S], R],
        *,
        name: str,
        parallelism: int | None = None,
        max_parallelism: int | None = None,
    ) -> Stream[tuple[K_co, R]]: ...
    @overload
    def aggregate(
        self,
        create: Callable[[], S],
        add: Callable[[S, T_co], S],
        result: None = None,
        *,
        name: str,
        parallelism: int | None = None,
        max_parallelism: int | None = None,
    ) -> Stream[tuple[K_co, S]]: ...
    @needs_name(_STATE)
    def aggregate(
        self,
        create: Callable[[], Any],
        add: Callable[[Any, T_co], Any],
        result: Callable[[Any], Any] | None = None,
        *,
        name: str,
        parallelism: int | None = None,
        max_parallelism: int | None = None,
    ) -> Stream[Any]:
        """Gather the records of each key in an accumulator: ``(key, result(accumulator))`` for each record."""
        return self._then(derived.aggregate(name, create, add, result), name, parallelism, max_parallelism)

    @overload
    def process(
        self,
        operator: type[KeyedOperator[K_co, T_co, R]],
        *args: Any,
        name: str,
        parallelism: int | None = None,
        max_parallelism: int | None = None,
        in_flight: int | None = None,
        ordered: bool = True,
        timeout: timedelta | None = None,
        retries: int = 0,
        retry_delay: timedelta = _NOW,
        **kwargs: Any,
    ) -> Stream[R]: ...
    @overload
    def process(
        self,
        operator: type[Operator[T_co, R]],
        *args: Any,
        name: str,
        parallelism: int | None = None,
        max_parallelism: int | None = None,
        in_flight: int | None = None,
        ordered: bool = True,
        timeout: timedelta | None = None,
        retries: int = 0,
        retry_delay: timedelta = _NOW,
        **kwargs: Any,
    ) -> Stream[R]: ...
    @needs_name(_STATE)
    def process(
        self,
        operator: Any,
        *args: Any,
        name: str,
        parallelism: int | None = None,
        max_parallelism: int | None = None,
        in_flight: int | None = None,
        ordered: bool = True,
        timeout: timedelta | None = None,
        retries: int = 0,
        retry_delay: timedelta = _NOW,
        **kwargs: Any,
    ) -> Stream[Any]:
        """Run an operator class with state by key; each subtask makes its own instance with ``args`` and ``kwargs``.

        The other options are for an async ``on_record``: one call per key at a time, the rest as for ``map``.
        """
        options = CallOptions(
            in_flight=in_flight, ordered=ordered, timeout=timeout, retries=retries, retry_delay=retry_delay
        )
        description = derived.process(name, operator, args, kwargs, options, keyed=True)
        return self._then(description, name, parallelism, max_parallelism)

    @needs_name(_STATE)
    def connect_broadcast(
        self,
        rules: Stream[B],
        operator: type[KeyedBroadcastOperator[K_co, T_co, B, R]],
        *args: Any,
        name: str,
        parallelism: int | None = None,
        max_parallelism: int | None = None,
        in_flight: int | None = None,
        ordered: bool = True,
        timeout: timedelta | None = None,
        retries: int = 0,
        retry_delay: timedelta = _NOW,
        **kwargs: Any,
    ) -> Stream[R]:
        """Run an operator class that takes this stream by key and every record of ``rules`` in each of its subtasks."""
        self._check_same_job(rules, "connect_broadcast")
        sent = rules
        if any(leg.exchange is None or leg.exchange.kind is not ExchangeKind.BROADCAST for leg in rules._legs):
            sent = rules._exchange(ExchangeKind.BROADCAST, "connect_broadcast", name)
        options = CallOptions(
            in_flight=in_flight, ordered=ordered, timeout=timeout, retries=retries, retry_delay=retry_delay
        )
        description = derived.process(name, operator, args, kwargs, options, keyed=True, broadcast=True)
        side = tuple(Leg(leg.node, leg.tag, leg.exchange, 1) for leg in sent._legs)
        return self._then(description, name, parallelism, max_parallelism, more_legs=side)

    @overload
    def union(self, *others: KeyedStream[K, O]) -> KeyedStream[K_co | K, T_co | O]: ...
    @overload
    def union(self, *others: Stream[O]) -> Stream[T_co | O]: ...
    def union(self, *others: Stream[Any]) -> Any:
        """Put streams together; the result is keyed when all of them are."""
        return super().union(*others)
