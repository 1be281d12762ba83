"""Which timers has an operator registered, and which of them fires next?

A timer is a timestamp, a key, a namespace and the name of the service it was registered with.  Of one operator and one
kind of time they fire in the order of these, by the key's and the namespace's canonical bytes (semantics 5.5), however
often somebody paused and whatever was restored in between.

Each service has a queue (``timer_queue.py``) for each type of token, so that what is in a queue compares as it is and
no bytes have to be computed.  That is one queue nearly always; where there are several, their heads are compared.

Timers are not entries of a table: a table finds by key, and what is asked here is what comes next.  They share the
blocks of tables, so a snapshot holds them in the same stream, and whoever reads it keeps what belongs to its key
groups in the same way.  Refused is a service whose namespaces are of another kind than what was restored.

Measured for a million timers (CPython 3.11, one core of a busy machine, process time, collector on), in thousands per
second, registering / firing, through a service without namespaces:

==============================  ============  ==========  ==============  ===============
timestamps                      this          a heap and  a dict, a heap  tuples in dicts
                                              a set       of timestamps   by range
==============================  ============  ==========  ==============  ===============
all distinct, at random         1,261 / 778   1,049 / 179 1,441 / 290     401 / 851
10 a key, at random             703 / 510     1,357 / 176 1,094 / 540     342 / 797
10 of them, 100,000 keys each   398 / 1,122   427 / 103   1,113 / 2,076   232 / 816
one for all                     336 / 1,168   543 / 160   1,490 / 1,204   245 / 1,294
ascending, 100 keys each        1,438 / 1,463 1,440 / 535 2,917 / 4,205   846 / 1,524
==============================  ============  ==========  ==============  ===============

The third is faster where many share a timestamp because it sorts a million owners at once, and its dict grows to a
million: stalls of 30 ms to a second.  Here the longest of anything is a few milliseconds: 256 registered at once 0.6 to
4.8 ms, and 7.2 while a snapshot is written; 64 fired 0.7 to 1.9; the instant of a snapshot of half a million 0.07; a
step of writing it 0.7 to 1.7.  Ten cycles of a million on 100,000 keys: 161 MB of process memory after the first
registering, 162 after the tenth.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Final

from actorflow.abc.state import KeyedTimers, TimeKind, Timer, TimerService
from actorflow.errors import CorruptObject, IncompatibleState, InvalidValue
from actorflow.model.codec import Codec
from actorflow.model.key_groups import bytes_of_token
from actorflow.state.blocks import Block, encode_block
from actorflow.state.timer_pins import TimerPin
from actorflow.state.timer_queue import NOTHING, TimerQueue

__all__ = ("MemoryTimers", "TimersPin", "timers_of")

_ENTRIES: Final = 500  # in a block, or up to three times as many
_KIND: Final = "timers"
_STAMP: Final = 8  # bytes of a timestamp before a namespace


def timers_of(kind: str) -> tuple[TimeKind, str] | None:
    """Return kind of time and of namespaces if a block's kind says that it holds timers."""
    match kind.split(":", 2):
        case ["timers", "event", namespaces]:
            return "event", namespaces
        case ["timers", "processing", namespaces]:
            return "processing", namespaces
        case _:
            return None


class _Service(TimerService):
    """Timers of one name."""

    __slots__ = ("_queues", "has_namespaces", "kind", "name", "timers")

    def __init__(self, timers: MemoryTimers, name: str, namespaces: str) -> None:
        self.timers, self.name = timers, name
        self.kind = f"{_KIND}:{timers.time}:{namespaces}"
        self.has_namespaces = bool(namespaces)
        self._queues: dict[type, TimerQueue] = {}

    def register(self, timestamp: int, token: Any, namespace: bytes = b"") -> None:
        queue = self._queues.get(type(token))
        if queue is None:
            self._queues[type(token)] = queue = self.timers.new_queue(self)
        if self.has_namespaces:
            queue.register(timestamp, (token, namespace))
        elif namespace:
            raise InvalidValue(f"{self.timers.where}: timers {self.name!r} were declared without namespaces")
        else:
            queue.register(timestamp, token)

    def delete(self, timestamp: int, token: Any, namespace: bytes = b"") -> None:
        queue = self._queues.get(type(token))
        if queue is not None:
            queue.delete(timestamp, (token, namespace) if self.has_namespaces else token)


class TimersPin:
    """The timers of an operator by one kind of time as they were at an instant."""

    __slots__ = ("_codec", "_operator", "_pins")

    def __init__(self, codec: Codec, operator: str, pins: list[tuple[_Service, TimerPin]]) -> None:
        self._codec, self._operator, self._pins = codec, operator, pins

    def blocks(self) -> Iterator[bytes]:
        """Encode them, one block per step; a step takes about half a millisecond."""
        for service, pin in self._pins:
            for stamps, owners in pin.columns(_ENTRIES):
                if service.has_namespaces:
                    tokens = [token for token, _ in owners]
                    values: list[Any] = [
                        stamp.to_bytes(_STAMP, "big", signed=True) + namespace
                        for stamp, (_, namespace) in zip(stamps, owners, strict=True)
                    ]
                else:
                    tokens, values = owners, stamps
                yield encode_block(self._codec, self._operator, Block(service.name, service.kind, tokens, values))

    def release(self) -> None:
        """Let go; a second time is fine."""
        for _, pin in self._pins:
            pin.release()


class MemoryTimers(KeyedTimers):
    """The timers of one operator by one kind of time, in memory."""

    __slots__ = ("_codec", "_only", "_queues", "_services", "operator", "time", "where")

    def __init__(self, codec: Codec, operator: str, time: TimeKind) -> None:
        self._codec, self.operator, self.time = codec, operator, time
        self.where = f"operator {operator!r}, {time}-time timers"
        self._services: dict[str, _Service] = {}
        self._queues: list[tuple[_Service, TimerQueue]] = []
        self._only: tuple[_Service, TimerQueue] | None = None  # while there is one queue

    def service(self, name: str, namespaces: str = "") -> TimerService:
        return self._service(name, namespaces, "declared")

    def _service(self, name: str, namespaces: str, now: str) -> _Service:
        service = self._services.get(name)
        if service is None:
            self._services[name] = service = _Service(self, name, namespaces)
        elif service.kind != f"{_KIND}:{self.time}:{namespaces}":
            before = "restored" if now == "declared" else "declared"
            kinds = [kind or "none" for kind in (namespaces, service.kind.split(":", 2)[2])]
            raise IncompatibleState(
                f"{self.where} {name!r}: their namespaces are {now} as {kinds[0]!r} and were {before} as {kinds[1]!r}; "
                "give the new timers another name, or declare them as they were"
            )
        return service

    def services(self) -> list[str]:
        return sorted(self._services)

    def new_queue(self, service: _Service) -> TimerQueue:
        """Return a queue for one more type of token of a service."""
        self._queues.append((service, TimerQueue()))
        self._only = self._queues[0] if len(self._queues) == 1 else None
        return self._queues[-1][1]

    # ── firing ──

    def due(self, until: int, most: int) -> Iterator[Timer]:
        while most > 0:
            only = self._only
            found = only or self._earliest(until)
            if found is None:
                return
            service, queue = found
            pop, name, has_namespaces = queue.pop, service.name, service.has_namespaces
            while True:
                owner = pop(until)
                if owner is NOTHING:
                    return
                most -= 1
                if has_namespaces:
                    token, namespace = owner
                    yield queue.now, token, namespace, name
                else:
                    yield queue.now, owner, b"", name
                if most <= 0 or only is None or self._only is not only:
                    break  # a first key of another type brought another queue

    def _earliest(self, until: int) -> tuple[_Service, TimerQueue] | None:
        """Return the queue whose first timer comes first of all, if that is due."""
        first = until
        found: list[tuple[_Service, TimerQueue, Any]] = []
        for service, queue in self._queues:
            head = queue.head()
            if head is not None and head[0] <= first:
                if head[0] < first:
                    found.clear()
                    first = head[0]
                found.append((service, queue, head[1]))
        if len(found) > 1:
            found.sort(key=_place)
        return found[0][:2] if found else None

    def next_timestamp(self) -> int | None:
        heads = [head[0] for _, queue in self._queues if (head := queue.head()) is not None]
        return min(heads, default=None)

    def __len__(self) -> int:
        count = 0
        for _, queue in self._queues:
            pin = queue.pin()
            count += sum(len(stamps) for stamps, _ in pin.columns(_ENTRIES))
            pin.release()
        return count

    # ── snapshots ──

    def pin(self) -> TimersPin:
        """Freeze what is there now."""
        return TimersPin(self._codec, self.operator, [(service, queue.pin()) for service, queue in self._queues])

    def fill(self, name: str, namespaces: str, tokens: Iterable[Any], values: Iterable[Any]) -> None:
        """Take timers of a snapshot."""
        service = self._service(name, namespaces, "restored")
        register = service.register
        for token, value in zip(tokens, values, strict=True):
            if not namespaces and type(value) is int:
                register(value, token)
            elif namespaces and type(value) is bytes and len(value) >= _STAMP:
                register(int.from_bytes(value[:_STAMP], "big", signed=True), token, value[_STAMP:])
            else:
                raise CorruptObject(f"{self.where} {name!r}: something in what is restored is not a timer")


def _place(found: tuple[_Service, TimerQueue, Any]) -> tuple[bytes, bytes, str]:
    """Return where among equal timestamps a timer stands."""
    service, _, owner = found
    token, namespace = owner if service.has_namespaces else (owner, b"")
    return bytes_of_token(token), namespace, service.name
