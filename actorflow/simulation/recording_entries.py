"""What stands in a recording?  Everything that came into a run from outside, in the order in which it came.

An entry is a kind and what belongs to it.  Those that are many (readings of a clock, timers) have a fixed layout; the
others are a length and CBOR.  *Position* is the number of callbacks that the run had made when something came in from
outside, which is all that it takes to let it come in again at the same point.

Refuses to know files, loops and what an entry means for a replay.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import IntEnum
from struct import Struct
from typing import Any, Final

from actorflow.model.leaves import Unwritable
from actorflow.model.packing import dump
from actorflow.model.unpacking import load

__all__ = (
    "ENTERING",
    "Entry",
    "Kind",
    "Status",
    "dump_told",
    "entries_of",
    "pack",
    "pack_answer",
    "pack_said",
    "pack_tree",
)


class Kind(IntEnum):
    """What an entry says."""

    NOW_MS = 1
    NOW_US = 2
    WALL_MS = 3
    LOOP_TIME = 4
    DRAW = 5
    SLICE = 6  # so many turns were allowed before one was over
    TIMER = 7
    SIGNAL = 8
    WORK = 9
    WORK_DONE = 10
    OPERATION = 16
    ANSWER = 17
    SAID = 18  # an answer that was there at once
    LINE = 19
    LEAK = 20
    RAISED = 21
    LIFE = 22
    END = 23
    ASIDE = 24


class Status(IntEnum):
    """How an operation outside came out."""

    VALUE = 0
    ERROR = 1
    CANCELLED = 2
    UNWRITABLE = 3
    REDACTED = 4


ENTERING: Final = frozenset({Kind.TIMER, Kind.SIGNAL, Kind.WORK_DONE, Kind.ANSWER})
"""What comes in between two callbacks, at a position."""

_HEAD: Final = Struct("<BI")
_ANSWER: Final = Struct("<BIIQB")
_FIXED: Final[dict[int, Struct]] = {
    Kind.NOW_MS: Struct("<Bq"),
    Kind.NOW_US: Struct("<Bq"),
    Kind.WALL_MS: Struct("<Bq"),
    Kind.LOOP_TIME: Struct("<Bd"),
    Kind.DRAW: Struct("<Bd"),
    Kind.SLICE: Struct("<BI"),
    Kind.TIMER: Struct("<BIQ"),
    Kind.SIGNAL: Struct("<BQ"),
    Kind.WORK: Struct("<B"),
    Kind.WORK_DONE: Struct("<BIQ"),
}


@dataclass(frozen=True, slots=True)
class Entry:
    """One entry: what it says, which timer or operation it is about, and where it came in."""

    kind: Kind
    value: Any = None
    number: int = 0
    position: int = 0
    status: Status = Status.VALUE


def pack(kind: Kind, *fields: Any) -> bytes:
    """The bytes of an entry of a fixed layout, in the order of its layout."""
    return _FIXED[kind].pack(kind, *fields)


def pack_tree(kind: Kind, tree: Any) -> bytes:
    """The bytes of an entry that holds plain values."""
    body = dump_told(tree)
    return _HEAD.pack(kind, len(body)) + body


def dump_told(tree: Any) -> bytes:
    """The bytes of plain values that are told and not used again: text that can't be written is spelled out."""
    try:
        return dump(tree)
    except Unwritable:
        return dump(_spelled(tree))


def _spelled(tree: Any) -> Any:
    if isinstance(tree, str):
        return tree.encode("utf-8", "backslashreplace").decode()
    if isinstance(tree, list | tuple):
        return [_spelled(item) for item in tree]
    if isinstance(tree, dict):
        return {_spelled(key): _spelled(item) for key, item in tree.items()}
    return tree


def pack_answer(number: int, position: int, status: Status, body: bytes) -> bytes:
    """The bytes of what came back from an operation outside."""
    return _ANSWER.pack(Kind.ANSWER, len(body), number, position, status) + body


def pack_said(status: Status, body: bytes) -> bytes:
    """The bytes of an answer that was there at once."""
    return _HEAD.pack(Kind.SAID, len(body) + 1) + bytes([status]) + body


def entries_of(payload: bytes) -> Iterator[Entry]:
    """Take the entries of one frame apart; raises ``ValueError`` where there is none."""
    at, view = 0, memoryview(payload)
    while at < len(payload):
        kind = Kind(payload[at])
        if kind is Kind.ANSWER:
            _, length, number, position, status = _ANSWER.unpack_from(payload, at)
            at += _ANSWER.size
            yield Entry(kind, _body(view, at, length), number, position, Status(status))
            at += length
        elif (layout := _FIXED.get(kind)) is not None:
            yield _fixed(kind, layout.unpack_from(payload, at))
            at += layout.size
        else:
            _, length = _HEAD.unpack_from(payload, at)
            at += _HEAD.size
            body = _body(view, at, length)
            at += length
            if kind is Kind.SAID:
                yield Entry(kind, body[1:], status=Status(body[0]))
            else:
                yield Entry(kind, load(body))


def _body(view: memoryview, at: int, length: int) -> bytes:
    if at + length > len(view):
        raise ValueError(f"an entry of {length} bytes where {len(view) - at} are left")
    return bytes(view[at : at + length])


def _fixed(kind: Kind, fields: tuple[Any, ...]) -> Entry:
    match kind:
        case Kind.TIMER | Kind.WORK_DONE:
            return Entry(kind, number=fields[1], position=fields[2])
        case Kind.SIGNAL:
            return Entry(kind, position=fields[1])
        case Kind.WORK:
            return Entry(kind)
        case _:
            return Entry(kind, fields[1])
