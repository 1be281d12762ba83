"""The state backend that keeps everything in memory, and writes snapshots behind.

An instant is one empty layer per table (``tables.py``); then the blocks of the snapshot are encoded in steps, on the
loop, while the job goes on; then what was written meanwhile is folded down, in steps as well.  A thread would not help:
beside a busy loop it starves, and encoding needs the interpreter anyway.

It refuses to restore a state under another kind, or a key that it holds already, and never guesses.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import compress
from typing import Any, Final

from actorflow.abc.state import KeyedTable, StateBackend, StateSnapshot, TimeKind
from actorflow.errors import IncompatibleState
from actorflow.model.codec import Codec
from actorflow.model.key_groups import OwnedKeys
from actorflow.state.blocks import Block, encode_block, read_blocks
from actorflow.state.tables import MemoryTable, Pin, Sizes
from actorflow.state.timers import MemoryTimers, TimersPin, timers_of

__all__ = ("MemoryBackend", "MemorySnapshot")

_ENTRIES: Final = 500  # in a block
_FIRST_ENTRIES: Final = 16  # in a state's first block, which shows how large its entries are
_BYTES: Final = 32_768  # what a block should come to at most


class MemorySnapshot(StateSnapshot):
    """What all tables of an actor, and its timers, held at an instant."""

    __slots__ = ("_codec", "_pins", "_timers")

    def __init__(
        self, codec: Codec, pins: dict[str, list[tuple[str, str, Pin]]], timers: dict[str, list[TimersPin]]
    ) -> None:
        self._codec, self._pins, self._timers = codec, pins, timers

    def operators(self) -> list[str]:
        return sorted({*self._pins, *self._timers})

    def blocks(self, operator: str) -> Iterator[bytes]:
        for state, kind, pin in self._pins.get(operator, ()):
            yield from self._blocks_of(operator, state, kind, pin)
        for timers in self._timers.get(operator, ()):
            yield from timers.blocks()

    def _blocks_of(self, operator: str, state: str, kind: str, pin: Pin) -> Iterator[bytes]:
        tokens: list[Any] = []
        values: list[Any] = []
        count = _FIRST_ENTRIES
        for more_tokens, more_values, is_last in pin.columns(_ENTRIES, thaw=True):
            if tokens:
                more_tokens, more_values = tokens + more_tokens, values + more_values
            tokens, values = more_tokens, more_values
            if not tokens or (len(tokens) < count and not is_last):
                yield b""
            while tokens and (len(tokens) >= count or is_last):
                data = encode_block(self._codec, operator, Block(state, kind, tokens[:count], values[:count]))
                tokens, values = tokens[count:], values[count:]
                # Few large values take as long as many small ones, so it is bytes that bound a step.
                count = max(1, min(_ENTRIES, count * 4, count * _BYTES // len(data)))
                yield data

    def release(self) -> None:
        for pins in self._pins.values():
            for _, _, pin in pins:
                pin.release()
        for timers in self._timers.values():
            for pinned in timers:
                pinned.release()


class MemoryBackend(StateBackend):
    """The tables of one actor; ``sizes`` is for tests, which want to see at ten entries what else comes at many."""

    def __init__(self, codec: Codec, *, sizes: Sizes | None = None) -> None:
        self._codec, self._sizes = codec, sizes or Sizes()
        self._tables: dict[tuple[str, str], MemoryTable] = {}
        self._timers: dict[tuple[str, TimeKind], MemoryTimers] = {}

    def timers(self, operator: str, time: TimeKind) -> MemoryTimers:
        timers = self._timers.get((operator, time))
        if timers is None:
            self._timers[operator, time] = timers = MemoryTimers(self._codec, operator, time)
        return timers

    def table(self, operator: str, state: str, kind: str) -> KeyedTable:
        return self._table(operator, state, kind, "declared")

    def _table(self, operator: str, state: str, kind: str, now: str) -> MemoryTable:
        table = self._tables.get((operator, state))
        if table is None:
            where = f"operator {operator!r}, state {state!r}"
            table = MemoryTable(self._codec, where, kind, self._sizes)
            self._tables[operator, state] = table
        elif table.kind != kind:
            before = "restored" if now == "declared" else "declared"
            raise IncompatibleState(
                f"{table.where}: it is {now} as {kind!r} and was {before} as {table.kind!r}; "
                "give the new state another name, or declare it as it was"
            )
        return table

    def freeze(self) -> MemorySnapshot:
        pins: dict[str, list[tuple[str, str, Pin]]] = {}
        for (operator, state), table in self._tables.items():
            pins.setdefault(operator, []).append((state, table.kind, table.pin()))
        timers: dict[str, list[TimersPin]] = {}
        for (operator, _), registered in self._timers.items():
            timers.setdefault(operator, []).append(registered.pin())
        return MemorySnapshot(self._codec, pins, timers)

    def upkeep(self) -> Iterator[None]:
        for table in list(self._tables.values()):
            yield from table.fold()

    def restore(
        self, operator: str, blocks: Iterable[bytes], *, keep: Callable[[Any], bool] | None = None
    ) -> Iterator[int]:
        for block in read_blocks(self._codec, operator, blocks):
            tokens, values = block.tokens, block.values
            if keep is not None:
                kept = keep.select(tokens) if isinstance(keep, OwnedKeys) else list(map(keep, tokens))
                tokens, values = list(compress(tokens, kept)), list(compress(values, kept))
            if (timers := timers_of(block.kind)) is not None:
                time, namespaces = timers
                self.timers(operator, time).fill(block.state, namespaces, tokens, values)
                yield len(tokens)
                continue
            table = self._table(operator, block.state, block.kind, "restored")
            table.fill(tokens, values)
            yield len(tokens)
            for _ in table.fold():
                yield 0

    def close(self) -> None:
        self._tables.clear()
        self._timers.clear()
