"""Which channels an exchange has, and who gets which record.

All-to-all exchanges have a channel from every upstream to every downstream actor, also where no record travels on it,
because barriers and the end of input come on all of them.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import cycle, islice
from operator import length_hint
from typing import Any

from actorflow.abc.world import World
from actorflow.dataflow.blame import short_form
from actorflow.dataflow.deferred_keys import DeferredKeys
from actorflow.dataflow.plan import Exchange, ExchangeKind
from actorflow.errors import InvalidValue, OperatorFailed
from actorflow.model.ids import ActorId
from actorflow.model.key_encoding import ClassNames
from actorflow.model.key_groups import KeyRouter
from actorflow.runtime.mailbox import Channel
from actorflow.runtime.output import (
    BroadcastExchange,
    ExchangeWriter,
    KeyedExchange,
    KeyedSingleExchange,
    RoutedExchange,
    SingleExchange,
)

__all__ = ("make_writer", "targets")


def targets(kind: ExchangeKind, upstream: int, parallelism: int, downstream_parallelism: int) -> list[int]:
    """The downstream subtasks to which one upstream subtask has a channel, in order."""
    match kind:
        case ExchangeKind.FORWARD:
            return [upstream]
        case ExchangeKind.RESCALE:
            if parallelism <= downstream_parallelism:
                return [
                    d for d in range(downstream_parallelism) if d * parallelism // downstream_parallelism == upstream
                ]
            return [upstream * downstream_parallelism // parallelism]
        case _:
            return list(range(downstream_parallelism))


def make_writer(
    exchange: Exchange,
    actor: ActorId,
    channels: list[Channel],
    *,
    records: int,
    max_parallelism: int,
    world: World,
    show_records: bool,
    names: ClassNames,
) -> ExchangeWriter:
    """The sending side of an exchange at one actor."""
    tag = exchange.tag
    count = len(channels)
    match exchange.kind:
        case ExchangeKind.BROADCAST:
            return BroadcastExchange(channels, records, tag)
        case ExchangeKind.KEYED:
            assert exchange.key is not None
            deferred = DeferredKeys(
                exchange.key, operator=exchange.operator, subtask=actor.subtask, shown=show_records, names=names
            )
            if count == 1:
                return KeyedSingleExchange(channels, records, deferred, tag)
            return KeyedExchange(channels, records, deferred, KeyRouter(max_parallelism, count), tag)
        case _ if count == 1:
            return SingleExchange(channels, records, tag)
        case ExchangeKind.GLOBAL:
            return RoutedExchange(channels, records, lambda values: [0] * len(values), tag)
        case ExchangeKind.REBALANCE | ExchangeKind.RESCALE:
            return RoutedExchange(channels, records, _RoundRobin(count, actor.subtask), tag)
        case ExchangeKind.SHUFFLE:
            return RoutedExchange(channels, records, _Shuffle(count, world.entropy.uniform(f"shuffle {actor}")), tag)
        case ExchangeKind.CUSTOM:
            assert exchange.partition is not None
            route = _custom(exchange.partition, count, exchange.operator, actor.subtask, show_records)
            return RoutedExchange(channels, records, route, tag)
        case _:  # pragma: no cover
            raise AssertionError(f"no writer for {exchange.kind}")


class _RoundRobin:
    """One record to each channel in turn; subtasks begin at different channels."""

    def __init__(self, count: int, start: int) -> None:
        self._turns = cycle(islice(cycle(range(count)), start % count, start % count + count))

    def __call__(self, values: list[Any]) -> list[int]:
        return list(islice(self._turns, len(values)))


class _Shuffle:
    """A channel at random for each record (a linear congruential generator: even, fast, and the same everywhere)."""

    def __init__(self, count: int, draw: float) -> None:
        self._count, self._state = count, int(draw * 2**53) | 1

    def __call__(self, values: list[Any]) -> list[int]:
        state, count, indexes = self._state, self._count, []
        for _ in values:
            state = (state * 6_364_136_223_846_793_005 + 1_442_695_040_888_963_407) & 0xFFFF_FFFF_FFFF_FFFF
            indexes.append((state >> 33) * count >> 31)
        self._state = state
        return indexes


def _custom(
    partition: Callable[[Any, int], int], count: int, operator: str, subtask: int, show_records: bool
) -> Callable[[list[Any]], list[int]]:
    def route(values: list[Any]) -> list[int]:
        records = iter(values)
        try:
            indexes = [partition(value, count) for value in records]
        except Exception as error:
            record = values[len(values) - length_hint(records) - 1]
            raise OperatorFailed(
                operator,
                subtask,
                record=short_form(record) if show_records else None,
                cause=f"its partitioner raised {type(error).__name__}: {error}",
            ) from error
        for index in indexes:
            if type(index) is not int or not 0 <= index < count:
                raise InvalidValue(
                    f"operator {operator!r}: its partitioner answered {short_form(index)} for one of {count} subtasks; "
                    f"it must be an int from 0 to {count - 1}"
                )
        return indexes

    return route
