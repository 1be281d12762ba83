"""Partition, fill buffers, hand over: the output side of one actor.

An output holds, per exchange, buffers that are being filled.  A buffer leaves when it is full, before any control
element, when the actor has nothing else to do, and after ``flush_after`` at the latest.  What finds no room in its
channel stays here as the actor's *remainder*; while there is one the actor takes no new batch, so memory stays within
the channels plus what one batch in hand turns into.

A control element goes behind the remainder of its channel, never past it: an aligned barrier does not overtake.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Any

from actorflow.dataflow.deferred_keys import DeferredKeys
from actorflow.model.elements import Batch
from actorflow.model.key_groups import KeyRouter
from actorflow.runtime.mailbox import Channel

__all__ = (
    "BroadcastExchange",
    "ExchangeWriter",
    "KeyedExchange",
    "KeyedSingleExchange",
    "Output",
    "RoutedExchange",
    "SingleExchange",
)


class ExchangeWriter:
    """The sending side of one exchange at one actor."""

    __slots__ = ("channels", "output", "records", "tag")

    def __init__(self, channels: list[Channel], records: int, tag: str | None = None) -> None:
        self.channels, self.records, self.tag = channels, records, tag
        self.output: Output

    def emit(self, values: list[Any]) -> None:
        """Take over some records; the list is not changed any more by anybody."""
        raise NotImplementedError

    def flush(self) -> None:
        """Send what is being filled."""
        raise NotImplementedError

    @property
    def is_filling(self) -> bool:
        """Whether something waits for company."""
        raise NotImplementedError


class SingleExchange(ExchangeWriter):
    """To one channel: lists pass through by reference and are joined only while they are small."""

    __slots__ = ("_values",)

    def __init__(self, channels: list[Channel], records: int, tag: str | None = None) -> None:
        super().__init__(channels, records, tag)
        self._values: list[Any] = []

    def emit(self, values: list[Any]) -> None:
        waiting = self._values
        if waiting:
            if len(waiting) + len(values) <= self.records:
                values = [*waiting, *values]
            else:
                self._send(waiting)
        if len(values) < self.records:
            self._values = values
            return
        self._values = []
        if len(values) == self.records:
            self._send(values)
        else:
            for start in range(0, len(values), self.records):
                self._send(values[start : start + self.records])

    def _send(self, values: list[Any]) -> None:
        self.output.send(self.channels[0], Batch(values))

    def flush(self) -> None:
        if self._values:
            values, self._values = self._values, []
            self._send(values)

    @property
    def is_filling(self) -> bool:
        return bool(self._values)


class KeyedSingleExchange(SingleExchange):
    """A keyed exchange to one channel: nothing is routed, so whoever needs the keys computes them."""

    __slots__ = ("_deferred",)

    def __init__(self, channels: list[Channel], records: int, deferred: DeferredKeys, tag: str | None = None) -> None:
        super().__init__(channels, records, tag)
        self._deferred = deferred

    def _send(self, values: list[Any]) -> None:
        self.output.send(self.channels[0], Batch(values, self._deferred))


class RoutedExchange(ExchangeWriter):
    """To several channels, each record to the one that ``route`` names."""

    __slots__ = ("_filling", "_route")

    def __init__(
        self,
        channels: list[Channel],
        records: int,
        route: Callable[[list[Any]], list[int]],
        tag: str | None = None,
    ) -> None:
        super().__init__(channels, records, tag)
        self._route = route
        self._filling: list[list[Any]] = [[] for _ in channels]

    def emit(self, values: list[Any]) -> None:
        adders = [buffer.append for buffer in self._filling]
        for index, value in zip(self._route(values), values, strict=True):
            adders[index](value)
        self._cut(self.records)

    def flush(self) -> None:
        self._cut(1)

    def _cut(self, at_least: int) -> None:
        records = self.records
        for index, values in enumerate(self._filling):
            while len(values) >= at_least:
                self.output.send(self.channels[index], Batch(values if len(values) <= records else values[:records]))
                values = self._filling[index] = values[records:]  # what is more than a buffer waits for company

    @property
    def is_filling(self) -> bool:
        return any(self._filling)


class KeyedExchange(ExchangeWriter):
    """To several channels by key group.

    One loop computes a record's key, looks its channel up and adds both to the channel's buffers.  That is right
    while all keys are exactly of one plain type, so that a key is its own token, and as long as each was seen before;
    the first that is new or of another type sends the rest of what was emitted the general way, which learns it.
    """

    __slots__ = ("_deferred", "_emitted", "_filling", "_keys", "_kind", "_learned", "_plain", "_router", "_targets")

    LEARNED_AT_MOST = 65_536
    """How many keys are remembered; then all are forgotten, which costs a key that is known nothing."""

    def __init__(
        self,
        channels: list[Channel],
        records: int,
        deferred: DeferredKeys,
        router: KeyRouter,
        tag: str | None = None,
    ) -> None:
        super().__init__(channels, records, tag)
        self._deferred, self._router = deferred, router
        self._kind: type | None = None
        self._targets: dict[Any, int] = {}
        self._learned = self._emitted = 0
        self._plain = True
        """Whether all keys so far were their own tokens."""
        self._filling: list[list[Any]] = [[] for _ in channels]
        self._keys: list[list[Any]] = [[] for _ in channels]

    def emit(self, values: list[Any]) -> None:
        deferred = self._deferred
        kind, targets, key_of = self._kind, self._targets, deferred.function
        if kind is None:
            self._route(values, deferred.keys_of(values))
            return
        self._emitted += len(values)
        filling, filling_keys = self._filling, self._keys
        records = iter(values)
        for value in records:
            try:
                key = key_of(value)
            except Exception as error:
                raise deferred.failed(error, value) from error
            if key.__class__ is not kind:  # cheaper than `type`; what lies about itself is not among the targets
                break
            try:
                index = targets[key]
            except KeyError:
                break
            filling[index].append(value)  # looked up each time on purpose: this form is the fastest since 3.11
            filling_keys[index].append(key)
        else:
            self._cut(self.records)
            return
        rest = list(records)
        self._route([value, *rest], [key, *deferred.keys_of(rest)])

    def _route(self, values: list[Any], keys: list[Any]) -> None:
        """The general way: tokens for all keys, channels for all tokens."""
        tokens = self._deferred.tokens_of(keys)
        indexes = self._router.channels(keys if tokens is None else tokens)
        for index, value, key in zip(indexes, values, keys, strict=True):
            self._filling[index].append(value)
            self._keys[index].append(key)
        if tokens is not None:
            self._plain, self._kind = False, None
        elif self._plain:
            self._learn(keys, indexes)
        self._cut(self.records)

    def _learn(self, keys: list[Any], indexes: list[int]) -> None:
        if not keys:
            return
        kind = type(keys[0])
        if self._kind not in (None, kind) or any(type(key) is not kind for key in keys):
            self._plain, self._kind = False, None  # two plain types: each key is its own token, but 1 could meet True
            return
        self._kind = kind
        self._targets.update(zip(keys, indexes, strict=True))
        self._learned += len(keys)
        if len(self._targets) > self.LEARNED_AT_MOST:
            self._targets.clear()
            if self._learned * 2 > self._emitted:
                self._plain, self._kind = False, None  # most keys come once: remembering them does not pay
            self._learned = self._emitted = 0

    def flush(self) -> None:
        self._cut(1)

    def _cut(self, at_least: int) -> None:
        records = self.records
        for index, values in enumerate(self._filling):
            keys = self._keys[index]
            while len(values) >= at_least:
                if len(values) <= records:
                    self._send(index, values, keys)
                else:
                    self._send(index, values[:records], keys[:records])
                # What is more than a buffer waits for company.
                values, keys = values[records:], keys[records:]
                self._filling[index], self._keys[index] = values, keys

    def _send(self, index: int, values: list[Any], keys: list[Any]) -> None:
        tokens = None if self._plain else self._deferred.tokens_of(keys)
        self.output.send(self.channels[index], Batch(values, keys, tokens))

    @property
    def is_filling(self) -> bool:
        return any(self._filling)


class BroadcastExchange(SingleExchange):
    """Every record to every channel; all of them get the same batch by reference."""

    __slots__ = ()

    def _send(self, values: list[Any]) -> None:
        batch = Batch(values)
        for channel in self.channels:
            self.output.send(channel, batch)


class Output:
    """All exchanges that an actor writes to, and its remainder."""

    __slots__ = ("_only", "_tagged", "all_channels", "exchanges", "main", "records_out", "remainder")

    def __init__(self, exchanges: list[ExchangeWriter]) -> None:
        self.exchanges = exchanges
        self.main = [exchange for exchange in exchanges if exchange.tag is None]
        self._only = self.main[0].emit if len(self.main) == 1 else None
        self._tagged: dict[str, list[ExchangeWriter]] = {}
        self.all_channels: list[Channel] = []
        self.remainder: deque[tuple[Channel, Any]] = deque()
        self.records_out = 0
        for exchange in exchanges:
            exchange.output = self
            self.all_channels.extend(exchange.channels)
            if exchange.tag is not None:
                self._tagged.setdefault(exchange.tag, []).append(exchange)

    @property
    def is_available(self) -> bool:
        """Whether the actor may take another batch."""
        return not self.remainder

    @property
    def is_filling(self) -> bool:
        """Whether a partly filled buffer waits for company."""
        for exchange in self.exchanges:  # noqa: SIM110  # it is asked at every turn
            if exchange.is_filling:
                return True
        return False

    def emit(self, values: list[Any]) -> None:
        """Send records to the main outputs."""
        self.records_out += len(values)
        if self._only is not None:
            self._only(values)
        else:
            for exchange in self.main:
                exchange.emit(values)

    def emit_side(self, tag: str, values: list[Any]) -> None:
        """Send records to a side output; without a reader they go nowhere, as the plan said."""
        for exchange in self._tagged.get(tag, ()):
            exchange.emit(values)

    def send(self, channel: Channel, batch: Batch) -> None:
        """Hand a batch over, or keep it as remainder, in order."""
        if self.remainder or not channel.try_put(batch):
            self.remainder.append((channel, batch))

    def flush(self) -> None:
        """Send everything that is being filled."""
        for exchange in self.exchanges:
            exchange.flush()

    def control(self, element: Any) -> None:
        """Send a control element to every channel, behind everything emitted before."""
        self.flush()
        for channel in self.all_channels:
            if self.remainder:
                self.remainder.append((channel, element))
            else:
                channel.put_control(element)

    def repay(self) -> None:
        """Place what now finds room; per channel in order, and one full channel does not hold up the others."""
        if not self.remainder:
            return
        left: deque[tuple[Channel, Any]] = deque()
        for waiting in self.remainder:
            channel, element = waiting
            if channel.starved:  # it has given no buffer back since it had none for a batch of ours
                left.append(waiting)
            elif type(element) is not Batch:
                channel.put_control(element)
            elif not channel.try_put(element):
                left.append(waiting)
        self.remainder = left
