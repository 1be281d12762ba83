"""What flows through a channel: batches of records, and control elements between them.

A batch travels by reference and is never changed once it was emitted.  It holds parallel lists, never a tuple per
record: one list of values, one of keys behind a keyed exchange, one of timestamps only where somebody asked for event
time (``hot-path.md`` 1 measured the shapes).

Batches need a buffer of the channel; control elements never wait for one.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Any

__all__ = ("Alignment", "Barrier", "Batch", "CancelMarker", "CheckpointKind", "EndOfInput", "Watermark")


class Batch:
    """Some records that travel together; immutable by agreement once emitted.

    ``keys`` are the users' keys, one per value, behind a keyed exchange, or what computes them where nobody had to
    route by them (``dataflow.deferred_keys``); ``None`` elsewhere.  ``tokens`` are what state is filed under
    (``key_groups.tokens_of``); ``None`` means that the keys are their own tokens.  ``times`` are timestamps in
    milliseconds, or ``None`` where nobody asked for event time.
    """

    __slots__ = ("keys", "times", "tokens", "values")

    def __init__(
        self,
        values: list[Any],
        keys: Any = None,
        tokens: list[Any] | None = None,
        times: list[int] | None = None,
    ) -> None:
        self.values, self.keys, self.tokens, self.times = values, keys, tokens, times

    def __len__(self) -> int:
        return len(self.values)

    def __repr__(self) -> str:
        return f"Batch({len(self.values)} records)"


class CheckpointKind(StrEnum):
    """Why a snapshot is taken."""

    PERIODIC = "periodic"
    REQUESTED = "requested"
    FINAL = "final"  # the last one of a bounded job: every subtask has finished
    STOP = "stop"  # the last one of stop(): sources halt at its barrier


class Alignment(StrEnum):
    """How a barrier travels (semantics 2.2)."""

    AT_LEAST_ONCE = "at-least-once"
    ALIGNED = "aligned"
    UNALIGNED = "unaligned"
    FORCED_ALIGNED = "forced-aligned"


@dataclass(frozen=True, slots=True)
class Barrier:
    """The line between before and after one checkpoint.  ``elapsed_ms`` is added up hop by hop since the trigger."""

    checkpoint_id: int
    kind: CheckpointKind = CheckpointKind.PERIODIC
    alignment: Alignment = Alignment.ALIGNED
    elapsed_ms: int = 0


@dataclass(frozen=True, slots=True)
class CancelMarker:
    """Says downstream that a checkpoint was aborted: no barrier of it will follow."""

    checkpoint_id: int


@dataclass(frozen=True, slots=True)
class Watermark:
    """Event time has come to ``time_ms`` on this channel."""

    time_ms: int


@dataclass(frozen=True, slots=True)
class EndOfInput:
    """No more records come on this channel; barriers still do."""
