"""The instant and the rest of one actor's snapshot.

The *instant* is synchronous and short: freeze the keyed state, copy the lists, cut the sink.  The *rest* is a child
coroutine: it encodes in slices under a duty share, uploads, and acknowledges.  What is few goes into the manifest
itself (semantics 3.10); everything else of one actor goes into one object, each part under its own checksum.
"""

from __future__ import annotations

import zlib
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from dataclasses import dataclass
from typing import Any

from actorflow.abc.objects import ObjectStore
from actorflow.abc.state import StateSnapshot
from actorflow.model.codec import Codec
from actorflow.model.elements import Barrier
from actorflow.model.handles import Handle, InlineHandle, ObjectHandle, Scope
from actorflow.model.manifest import ListHandle, Redistribution
from actorflow.model.paths import Home
from actorflow.runtime.pace import Duty, Meter

__all__ = ("ActorSnapshot", "Instant", "OperatorPart", "decode_elements", "write_behind")

PIECE_BYTES = 1 << 20
"""How much is given to the store at once."""

ELEMENTS_IN_A_STEP = 64
"""Elements of a list state that are written down in one step; each by itself, so they can be dealt out unread."""


@dataclass(slots=True)
class Instant:
    """What an actor froze at a barrier; nothing in it changes any more."""

    barrier: Barrier
    finished: bool
    keyed: StateSnapshot
    lists: list[tuple[str, str, Redistribution, list[Any]]]
    rested: Callable[[], Awaitable[None]] | None = None


@dataclass(frozen=True, slots=True)
class OperatorPart:
    """What one operator of an actor contributes to a manifest."""

    keyed: tuple[Handle, ...] = ()
    lists: tuple[ListHandle, ...] = ()


@dataclass(frozen=True, slots=True)
class ActorSnapshot:
    """A durable snapshot, as it is acknowledged."""

    finished: bool
    parts: dict[str, OperatorPart]
    bytes: int
    objects: tuple[str, ...]
    """Names of the objects written, so that they can be deleted when nobody wants them."""


async def write_behind(
    instant: Instant,
    *,
    name: str,
    home: Home,
    store: ObjectStore,
    codec: Codec,
    duty: Duty,
    inline_below: int,
    meter: Meter,
) -> ActorSnapshot:
    """Encode and upload; returns when every byte is durable.  ``meter`` counts the loop's work."""
    if instant.rested is not None:
        await instant.rested()
    checkpoint_id = instant.barrier.checkpoint_id
    writer = _Sections(instant, codec, duty, meter)
    stream = writer.stream()
    first: list[bytes] = []
    size = 0
    whole: bytes | None = None
    async for piece in stream:
        first.append(piece)
        size += len(piece)
        if size > max(inline_below, PIECE_BYTES):
            break
    else:
        # All of it fits into one piece, so the state was let go before the first byte is uploaded.
        whole = b"".join(first)
    objects: tuple[str, ...] = ()
    if size > inline_below:
        object_name = home.private(checkpoint_id, name)
        await store.put(object_name, _large_pieces(first, stream) if whole is None else whole)
        objects = (object_name,)
    parts: dict[str, tuple[list[Handle], list[ListHandle]]] = {}
    for section in writer.sections:
        if not section.length and section.state is None:
            continue
        handle: Handle
        if objects:
            handle = ObjectHandle(Scope.PRIVATE, name, section.offset, section.length, section.crc32)
        else:
            assert whole is not None
            handle = InlineHandle(whole[section.offset : section.offset + section.length])
        keyed, lists = parts.setdefault(section.operator, ([], []))
        if section.state is None:
            keyed.append(handle)
        else:
            lists.append(
                ListHandle(
                    state=section.state,
                    redistribution=section.redistribution,
                    count=section.count,
                    handle=handle,
                )
            )
    return ActorSnapshot(
        finished=instant.finished,
        parts={operator: OperatorPart(tuple(keyed), tuple(lists)) for operator, (keyed, lists) in parts.items()},
        bytes=writer.offset,
        objects=objects,
    )


async def _large_pieces(first: list[bytes], stream: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    """Gather small pieces: a store hands each to a thread, and each time the loop waits for that thread."""
    pieces, size = first, sum(map(len, first))
    async for piece in stream:
        pieces.append(piece)
        size += len(piece)
        if size >= PIECE_BYTES:
            yield b"".join(pieces)
            pieces, size = [], 0
    if pieces:
        yield b"".join(pieces)


@dataclass(slots=True)
class _Section:
    operator: str
    offset: int
    state: str | None = None
    redistribution: Redistribution = Redistribution.SPLIT
    count: int = 0
    length: int = 0
    crc32: int = 0


class _Sections:
    """The parts of one actor's snapshot, one after the other, and where each of them lies."""

    def __init__(self, instant: Instant, codec: Codec, duty: Duty, meter: Meter) -> None:
        self._instant, self._codec, self._duty, self._meter = instant, codec, duty, meter
        self.sections: list[_Section] = []
        self.offset = 0

    async def stream(self) -> AsyncIterator[bytes]:
        """All bytes, in pieces; ``sections`` is complete at the end."""
        for operator, state, redistribution, elements in self._instant.lists:
            section = _Section(operator, self.offset, state, redistribution, len(elements))
            self.sections.append(section)
            encoded: list[bytes] = []
            steps = _encoded(self._codec, elements, f"{operator}.{state}")
            async for some in self._duty.slices(steps, self._meter):
                encoded += some
            yield self._note(section, self._codec.encode(encoded))
        for operator in self._instant.keyed.operators():
            section = _Section(operator, self.offset)
            self.sections.append(section)
            async for block in self._duty.slices(self._instant.keyed.blocks(operator), self._meter):
                if block:
                    yield self._note(section, block)
        # While a snapshot lives, state is read and written the careful way: it ends with the encoding, not the upload.
        self._instant.keyed.release()

    def _note(self, section: _Section, data: bytes) -> bytes:
        section.length += len(data)
        section.crc32 = zlib.crc32(data, section.crc32)
        self.offset += len(data)
        return data


def _encoded(codec: Codec, elements: list[Any], path: str) -> Iterator[list[bytes]]:
    """Write a list state down element by element, some in each step."""
    for start in range(0, len(elements), ELEMENTS_IN_A_STEP):
        some = elements[start : start + ELEMENTS_IN_A_STEP]
        yield [codec.encode(element, path=f"{path}[{start + index}]") for index, element in enumerate(some)]


def decode_elements(codec: Codec, data: bytes) -> list[bytes]:
    """The elements of a list state, still encoded one by one."""
    return list(codec.decode(data))
