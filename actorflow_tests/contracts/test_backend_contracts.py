from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import pytest

from actorflow.abc.state import MISSING, KeyedTable, StateBackend, StateSnapshot
from actorflow.errors import IncompatibleState
from actorflow.model.codec import Codec
from actorflow.simulation.contracts import BACKEND_CHECKS, BackendArm
from actorflow.state import MemoryBackend
from actorflow.state.blocks import Block, encode_block, read_blocks
from actorflow.state.tables import Sizes

BACKENDS: dict[str, Callable[[Codec], StateBackend]] = {
    "memory": MemoryBackend,
    "memory, in small parts": lambda codec: MemoryBackend(
        codec, sizes=Sizes(plain_up_to=6, split_above=3, folded_at_once=2, folded_by_the_way=1)
    ),
}


@pytest.mark.parametrize("check", BACKEND_CHECKS, ids=lambda check: check.__name__)
@pytest.mark.parametrize("name", BACKENDS)
def test_each_backend_keeps_the_contract(name: str, check: Callable[[BackendArm], None]) -> None:
    check(BackendArm(make=BACKENDS[name]))


# ── the checks see what they are for ─────────────────────────────────────────────────────────


class PlainTable(KeyedTable):
    """The simplest table that keeps the contract, but for not copying."""

    plain = None

    def __init__(self, kind: str) -> None:
        self.kind = kind
        self.entries: dict[Any, Any] = {}

    def load(self, token: Any) -> Any:
        return copy.deepcopy(self.entries[token]) if token in self.entries else MISSING

    def peek(self, token: Any) -> Any:
        return self.entries.get(token, MISSING)

    def store(self, token: Any, value: Any) -> None:
        self.entries[token] = copy.deepcopy(value)

    def remove(self, token: Any) -> None:
        self.entries.pop(token, None)

    def items(self) -> Iterator[tuple[Any, Any]]:
        return iter(list(self.entries.items()))

    def settle(self) -> None:
        pass

    def __len__(self) -> int:
        return len(self.entries)


class PlainSnapshot(StateSnapshot):
    def __init__(self, codec: Codec, tables: dict[tuple[str, str], PlainTable]) -> None:
        self.codec, self.tables = codec, tables

    def operators(self) -> list[str]:
        return sorted({operator for operator, _ in self.tables})

    def blocks(self, operator: str) -> Iterator[bytes]:
        for (owner, state), table in list(self.tables.items()):
            tokens, values = list(table.entries), list(table.entries.values())
            for at in range(0, len(tokens) if owner == operator else 0, 100):
                block = Block(state, table.kind, tokens[at : at + 100], values[at : at + 100])
                yield encode_block(self.codec, operator, block)

    def release(self) -> None:
        pass


class PlainBackend(StateBackend):
    def __init__(self, codec: Codec) -> None:
        self.codec = codec
        self.tables: dict[tuple[str, str], PlainTable] = {}

    def table(self, operator: str, state: str, kind: str) -> PlainTable:
        table = self.tables.setdefault((operator, state), PlainTable(kind))
        if table.kind != kind:
            raise IncompatibleState(f"{table.kind} and {kind}")
        return table

    def freeze(self) -> PlainSnapshot:
        return PlainSnapshot(self.codec, copy.deepcopy(self.tables))

    def upkeep(self) -> Iterator[None]:
        return iter(())

    def restore(
        self, operator: str, blocks: Iterable[bytes], *, keep: Callable[[Any], bool] | None = None
    ) -> Iterator[int]:
        for block in read_blocks(self.codec, operator, blocks):
            mine = {
                token: value
                for token, value in zip(block.tokens, block.values, strict=True)
                if keep is None or keep(token)
            }
            self.table(operator, block.state, block.kind).entries |= mine
            yield len(mine)


class FreezesTheTablesOnly(PlainBackend):
    def freeze(self) -> PlainSnapshot:
        return PlainSnapshot(self.codec, dict(self.tables))


class FreezesNoValues(PlainBackend):
    def table(self, operator: str, state: str, kind: str) -> PlainTable:
        table = super().table(operator, state, kind)
        vars(table).setdefault("load", table.peek)
        vars(table)["load"] = table.peek
        return table

    def freeze(self) -> PlainSnapshot:
        tables = {}
        for name, table in self.tables.items():
            tables[name] = PlainTable(table.kind)
            tables[name].entries = dict(table.entries)
        return PlainSnapshot(self.codec, tables)


class KeepsAllKeys(PlainBackend):
    def restore(
        self, operator: str, blocks: Iterable[bytes], *, keep: Callable[[Any], bool] | None = None
    ) -> Iterator[int]:
        return super().restore(operator, blocks)


class ForgetsRemovals(PlainBackend):
    """A restored key that is removed comes back in the next snapshot."""

    def restore(
        self, operator: str, blocks: Iterable[bytes], *, keep: Callable[[Any], bool] | None = None
    ) -> Iterator[int]:
        yield from super().restore(operator, blocks, keep=keep)
        self.old = copy.deepcopy(self.tables)

    def freeze(self) -> PlainSnapshot:
        tables = copy.deepcopy(self.tables)
        for name, table in getattr(self, "old", {}).items():
            tables[name].entries = table.entries | tables[name].entries
        return PlainSnapshot(self.codec, tables)


class HasOneTable(PlainBackend):
    def table(self, operator: str, state: str, kind: str) -> PlainTable:
        return super().table(operator, "n", kind)


class TakesAnyKind(PlainBackend):
    def table(self, operator: str, state: str, kind: str) -> PlainTable:
        return self.tables.setdefault((operator, state), PlainTable(kind))


class ForgetsNone(PlainBackend):
    def table(self, operator: str, state: str, kind: str) -> PlainTable:
        table = super().table(operator, state, kind)
        vars(table)["load"] = lambda token: MISSING if table.peek(token) is None else PlainTable.load(table, token)
        return table


class WritesOneBlock(PlainBackend):
    def restore(
        self, operator: str, blocks: Iterable[bytes], *, keep: Callable[[Any], bool] | None = None
    ) -> Iterator[int]:
        yield sum(super().restore(operator, list(blocks), keep=keep))


class LosesTheLastPiece(PlainBackend):
    def restore(
        self, operator: str, blocks: Iterable[bytes], *, keep: Callable[[Any], bool] | None = None
    ) -> Iterator[int]:
        return super().restore(operator, [block for block in blocks if len(block) > 1], keep=keep)


BROKEN: dict[type[StateBackend], str] = {
    FreezesTheTablesOnly: "an_instant_shows_nothing_of_what_comes_after_it",
    FreezesNoValues: "an_instant_shows_nothing_of_what_comes_after_it",
    KeepsAllKeys: "state_comes_back_at_any_parallelism",
    ForgetsRemovals: "a_restored_backend_is_like_any_other",
    HasOneTable: "tables_are_apart",
    TakesAnyKind: "a_restored_state_keeps_its_kind",
    ForgetsNone: "a_table_holds_what_was_stored",
    WritesOneBlock: "a_large_table_is_frozen_written_and_restored_in_steps",
    LosesTheLastPiece: "blocks_may_come_in_any_pieces",
}


@pytest.mark.parametrize("check", BACKEND_CHECKS, ids=lambda check: check.__name__)
def test_a_backend_of_fifty_lines_keeps_the_contract(check: Callable[[BackendArm], None]) -> None:
    check(BackendArm(make=PlainBackend))


@pytest.mark.parametrize("broken", BROKEN, ids=lambda broken: broken.__name__)
def test_a_backend_that_breaks_a_promise_is_found(broken: type[PlainBackend]) -> None:
    found = []
    for check in BACKEND_CHECKS:
        try:
            check(BackendArm(make=broken))
        except AssertionError:
            found.append(check.__name__)

    assert BROKEN[broken] in found
