"""State in memory: instants, folding, growth, and restoring (semantics 6.1-6.3)."""

from __future__ import annotations

import copy
import tracemalloc
from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule, run_state_machine_as_test

from actorflow.abc.state import MISSING, KeyedTable, StateSnapshot
from actorflow.errors import CorruptObject, IncompatibleState, InvalidValue
from actorflow.model.codec import Codec
from actorflow.model.key_groups import OwnedKeys, range_of, token_of, tokens_of
from actorflow.model.registry import Registry
from actorflow.state import MemoryBackend
from actorflow.state.tables import MemoryTable, Sizes

CODEC = Codec(Registry(alone=True))


def small(codec: Codec = CODEC) -> MemoryBackend:
    """A backend whose tables are divided and cut at once."""
    return MemoryBackend(codec, sizes=Sizes(plain_up_to=6, split_above=3, folded_at_once=2, folded_by_the_way=1))


def fill(table: KeyedTable, entries: dict[Any, Any]) -> KeyedTable:
    for token, value in entries.items():
        table.store(token, value)
        table.settle()
    return table


def written(snapshot: StateSnapshot, operator: str = "count") -> list[bytes]:
    return [block for block in snapshot.blocks(operator) if block]


def restored(blocks: Iterable[bytes], operator: str = "count", **options: Any) -> MemoryBackend:
    backend = small()
    for _ in backend.restore(operator, blocks, **options):
        pass
    return backend


def contents(backend: MemoryBackend, state: str = "n", kind: str = "value", operator: str = "count") -> dict[Any, Any]:
    return dict(backend.table(operator, state, kind).items())


def drain(backend: MemoryBackend) -> None:
    for _ in backend.upkeep():
        pass


# ── INV-6.1 against a plain dict ─────────────────────────────────────────────────────────────

TOKENS = st.one_of(st.integers(0, 12), st.sampled_from(["a", b"a"]), st.integers(0, 1).map(lambda n: token_of((n,))))
VALUES = st.one_of(st.integers(), st.none(), st.lists(st.integers(), max_size=2), st.lists(st.lists(st.integers())))


class TablesAgainstADict(RuleBasedStateMachine):
    """Whatever happens between an instant and the end of its writing, the bytes hold what was there at the instant."""

    def __init__(self) -> None:
        super().__init__()
        self.start(small())

    def start(self, backend: MemoryBackend) -> None:
        self.backend = backend
        self.table = backend.table("count", "n", "value")
        self.expected: dict[Any, Any] = {}
        self.live: list[tuple[StateSnapshot, dict[Any, Any], Any, list[bytes]]] = []
        self.folding: Any = None

    @rule(token=TOKENS, value=VALUES)
    def store(self, token: Any, value: Any) -> None:
        if self.table.plain is not None:
            self.table.plain[token] = copy.deepcopy(value)
        else:
            self.table.store(token, copy.deepcopy(value))
        self.expected[token] = value

    @rule(token=TOKENS)
    def change_in_place(self, token: Any) -> None:
        value = self.table.load(token)
        assert (value is MISSING) == (token not in self.expected)
        if isinstance(value, list):
            (value[0] if value and isinstance(value[0], list) else value).append(7)
            expected = self.expected[token] = copy.deepcopy(self.expected[token])
            (expected[0] if expected and isinstance(expected[0], list) else expected).append(7)

    @rule(token=TOKENS)
    def remove(self, token: Any) -> None:
        self.table.remove(token)
        self.expected.pop(token, None)

    @rule(count=st.integers(1, 12), first=st.sampled_from([0, 5, 30]))
    def store_many(self, count: int, first: int) -> None:
        for token in range(first, first + count):
            self.store(token, [token])

    @rule()
    def settle(self) -> None:
        self.table.settle()

    @precondition(lambda self: len(self.live) < 3)
    @rule()
    def freeze(self) -> None:
        snapshot = self.backend.freeze()
        self.live.append((snapshot, copy.deepcopy(self.expected), iter(snapshot.blocks("count")), []))

    @precondition(lambda self: self.live)
    @rule(data=st.data())
    def write_some(self, data: st.DataObject) -> None:
        _, _, blocks, done = data.draw(st.sampled_from(self.live))
        block = next(blocks, None)
        if block is not None:
            done.append(block)

    @precondition(lambda self: self.live)
    @rule(data=st.data())
    def finish_one(self, data: st.DataObject) -> None:
        index = data.draw(st.integers(0, len(self.live) - 1))
        snapshot, expected, blocks, done = self.live.pop(index)
        done.extend(blocks)
        snapshot.release()
        snapshot.release()
        assert contents(restored(done)) == expected

    @precondition(lambda self: self.live)
    @rule(data=st.data())
    def give_one_up(self, data: st.DataObject) -> None:
        snapshot, *_ = self.live.pop(data.draw(st.integers(0, len(self.live) - 1)))
        snapshot.release()

    @rule()
    def fold_a_little(self) -> None:
        self.folding = self.backend.upkeep() if self.folding is None else self.folding
        if next(self.folding, MISSING) is MISSING:
            self.folding = None

    @precondition(lambda self: not self.live)
    @rule()
    def go_on_from_a_snapshot(self) -> None:
        expected = self.expected
        snapshot = self.backend.freeze()
        self.start(restored(snapshot.blocks("count")))
        snapshot.release()
        self.expected = copy.deepcopy(expected)

    @rule()
    def scan(self) -> None:
        assert dict(self.table.items()) == self.expected

    @invariant()
    def same(self) -> None:
        # No scan here, for it would end what a snapshot that is being read has thawed already.
        for token, value in self.expected.items():
            assert self.table.peek(token) == value
        for token in [*range(0, 41, 3), "a", b"a", token_of((1,))]:
            assert self.table.peek(token) == self.expected.get(token, MISSING)
        if self.table.plain is not None:
            assert self.table.plain == self.expected
            assert len(self.table) == len(self.expected)
        assert len(self.table) >= len(self.expected)

    def teardown(self) -> None:
        for snapshot, expected, blocks, done in self.live:
            assert contents(restored([*done, *blocks])) == expected
            snapshot.release()
        drain(self.backend)
        assert dict(self.table.items()) == self.expected
        assert len(self.table) == len(self.expected)


def test_inv_6_1_the_bytes_hold_what_was_there_at_the_instant() -> None:
    run_state_machine_as_test(
        TablesAgainstADict, settings=settings(max_examples=100, stateful_step_count=50, deadline=None)
    )


# ── instants ─────────────────────────────────────────────────────────────────────────────────


def test_while_nothing_is_frozen_one_plain_dict_is_all() -> None:
    backend = MemoryBackend(CODEC)
    table = fill(backend.table("count", "n", "value"), {"a": 1})

    assert table.plain == {"a": 1}
    snapshot = backend.freeze()
    assert table.plain is None
    table.store("b", 2)
    snapshot.release()
    assert table.plain is None
    drain(backend)
    assert table.plain == {"a": 1, "b": 2}


def test_a_snapshot_of_an_empty_or_untouched_table_costs_nothing() -> None:
    backend = MemoryBackend(CODEC)
    table = backend.table("count", "n", "value")

    snapshot = backend.freeze()
    assert table.plain == {}
    assert written(snapshot) == []
    table.store("a", 1)
    assert written(snapshot) == []
    snapshot.release()

    first, second = backend.freeze(), backend.freeze()
    second.release()
    first.release()
    assert table.plain == {"a": 1}


def test_an_instant_copies_no_entry() -> None:
    backend = MemoryBackend(CODEC)
    table = fill(backend.table("count", "n", "value"), {number: number for number in range(20_000)})

    tracemalloc.start()
    snapshot = backend.freeze()
    size, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()

    assert size < 10_000
    assert table.plain is None
    snapshot.release()


def test_a_value_changed_in_place_after_the_instant_does_not_show() -> None:
    backend = MemoryBackend(CODEC)
    table = fill(backend.table("count", "n", "value"), {"a": [1], "b": {"x": [1]}, "c": (1, [2]), "d": (1, 2)})
    snapshot = backend.freeze()

    table.load("a").append(2)
    table.load("b")["x"].append(2)
    table.load("c")[1].append(3)
    assert table.load("d") is table.peek("d")  # what can't change is not copied
    assert table.peek("a") == [1, 2]

    assert contents(restored(written(snapshot))) == {"a": [1], "b": {"x": [1]}, "c": (1, [2]), "d": (1, 2)}
    snapshot.release()
    drain(backend)
    assert table.plain == {"a": [1, 2], "b": {"x": [1, 2]}, "c": (1, [2, 3]), "d": (1, 2)}


def test_a_value_that_can_not_be_copied_names_operator_and_state() -> None:
    backend = MemoryBackend(CODEC)
    fill(backend.table("count", "n", "value"), {"a": object()})
    snapshot = backend.freeze()

    with pytest.raises(InvalidValue, match="operator 'count', state 'n'"):
        backend.table("count", "n", "value").load("a")
    snapshot.release()


def test_a_key_removed_after_the_instant_is_in_the_snapshot_and_stays_removed() -> None:
    backend = small()
    table = fill(backend.table("count", "n", "value"), {number: number for number in range(20)})
    first = backend.freeze()
    for number in range(10):
        table.remove(number)
    second = backend.freeze()
    table.store(0, "again")
    table.remove(10)
    first_blocks = written(first)
    first.release()

    assert contents(restored(first_blocks)) == {number: number for number in range(20)}
    assert contents(restored(written(second))) == {number: number for number in range(10, 20)}
    second.release()
    drain(backend)
    assert dict(table.items()) == {0: "again", **{number: number for number in range(11, 20)}}
    assert len(table) == 10


def test_a_removal_that_was_folded_onto_a_frozen_layer_is_one_in_the_next_snapshot() -> None:
    backend = small()
    table = fill(backend.table("count", "n", "value"), dict.fromkeys(range(4), "old"))
    oldest = backend.freeze()
    table.store(9, "between")
    middle = backend.freeze()
    table.remove(0)
    middle.release()
    drain(backend)  # onto the layer above the one that the oldest snapshot holds

    newest = backend.freeze()
    assert contents(restored(written(newest))) == {1: "old", 2: "old", 3: "old", 9: "between"}
    assert contents(restored(written(oldest))) == dict.fromkeys(range(4), "old")
    newest.release()
    oldest.release()
    drain(backend)
    assert dict(table.items()) == {1: "old", 2: "old", 3: "old", 9: "between"}


def test_r057_a_scan_shows_one_version_whatever_is_written_meanwhile() -> None:
    backend = small()
    table = fill(backend.table("count", "n", "value"), {number: [number] for number in range(30)})
    scan = table.items()
    seen = dict([next(scan) for _ in range(5)])

    for number in range(0, 30, 2):
        table.remove(number)
    table.load(1).append("changed")
    snapshot = backend.freeze()
    table.store(3, "changed")
    table.store(99, "new")
    snapshot.release()
    drain(backend)
    seen |= dict(scan)

    assert seen == {number: [number] for number in range(30)}
    drain(backend)
    assert dict(table.items()) == {
        1: [1, "changed"], 3: "changed", 99: "new", **{number: [number] for number in range(5, 30, 2)}
    }  # fmt: skip


def test_a_dict_that_was_written_out_is_written_to_at_once() -> None:
    backend = small()
    table = fill(backend.table("count", "n", "value"), {number: [number] for number in range(30)})
    snapshot = backend.freeze()
    for number in range(30):
        table.load(number).append("while it was frozen")
    table.remove(0)

    done = written(snapshot)
    own = table.load(29)
    own.append("after it was written")
    assert table.load(29) is own
    assert table.load(0) is MISSING
    table.store(0, ["again"])
    table.remove(1)

    assert contents(restored(done)) == {number: [number] for number in range(30)}
    snapshot.release()
    assert list(backend.upkeep()) == []  # nothing is left to fold
    assert table.load(29) == [29, "while it was frozen", "after it was written"]
    assert dict(table.items()) == {
        0: ["again"], 29: own, **{number: [number, "while it was frozen"] for number in range(2, 29)}
    }  # fmt: skip


def test_a_snapshot_that_begins_while_another_is_read_ends_what_that_one_thawed() -> None:
    backend = small()
    table = fill(backend.table("count", "n", "value"), {number: [number] for number in range(30)})
    first = backend.freeze()
    blocks = first.blocks("count")
    done = [next(blocks) for _ in range(4)]  # some dicts are thawed by now, others not
    for number in range(30):
        table.load(number).append(1)

    second = backend.freeze()
    for number in range(30):
        table.load(number).append(2)
    expected = {number: [number, 1, 2] for number in range(30)}

    assert contents(restored([*done, *blocks])) == {number: [number] for number in range(30)}
    assert contents(restored(written(second))) == {number: [number, 1] for number in range(30)}
    first.release()
    assert dict(table.items()) == expected
    second.release()
    drain(backend)
    assert dict(table.items()) == expected


def test_a_released_snapshot_refuses_to_be_read_on() -> None:
    backend = small()
    fill(backend.table("count", "n", "value"), {number: number for number in range(100)})
    snapshot = backend.freeze()
    blocks = snapshot.blocks("count")
    next(blocks)
    snapshot.release()

    with pytest.raises(AssertionError, match="released while it was read"):
        list(blocks)


def test_a_snapshot_says_which_operators_have_state() -> None:
    backend = small()
    fill(backend.table("b", "n", "value"), {1: 1})
    fill(backend.table("a", "m", "list"), {1: [1]})
    fill(backend.table("a", "n", "value"), {2: 2})
    snapshot = backend.freeze()

    assert snapshot.operators() == ["a", "b"]
    back = restored(written(snapshot, "a"), "a")
    assert contents(back, "m", "list", "a") == {1: [1]}
    assert contents(back, "n", "value", "a") == {2: 2}


# ── size ─────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("keys", [list(range(0, 200_000, 4_096)), [f"key-{number}" for number in range(60)]])
def test_a_growing_table_is_divided_and_cut_and_keeps_everything(keys: list[Any]) -> None:
    backend = small()
    table = backend.table("count", "n", "value")

    for index, key in enumerate(keys):
        table.store(key, index)
        table.settle()
        assert [table.peek(key) for key in keys[: index + 1]] == list(range(index + 1))
    for _ in range(100):
        table.settle()

    assert isinstance(table, MemoryTable)
    assert table.plain is None
    assert max(len(part) for part in table._layers[0].parts()) <= 6
    assert len(table) == len(keys)


def test_a_table_is_divided_while_it_is_written_to() -> None:
    backend = small()
    table = fill(backend.table("count", "n", "value"), {number: number for number in range(6)})
    assert table.plain is not None
    table.store(6, 6)
    table.settle()
    assert table.plain is None

    table.store(0, "changed")
    table.remove(1)
    drain(backend)

    assert dict(table.items()) == {0: "changed", 2: 2, 3: 3, 4: 4, 5: 5, 6: 6}


def test_settling_alone_folds_everything_in_the_end() -> None:
    backend = MemoryBackend(CODEC)
    table = fill(backend.table("count", "n", "value"), {number: number for number in range(1_000)})
    snapshot = backend.freeze()
    for number in range(1_000):
        table.store(number, -number)
    snapshot.release()

    for _ in range(20):
        table.settle()

    assert table.plain == {number: -number for number in range(1_000)}


def test_folding_gives_memory_back() -> None:
    backend = MemoryBackend(CODEC)
    table = fill(backend.table("count", "n", "value"), dict.fromkeys(range(30_000), 0))
    drain(backend)

    tracemalloc.start()
    peaks = []
    for _ in range(4):
        snapshot = backend.freeze()
        for number in range(30_000):
            table.store(number, 0)
        table.settle()
        snapshot.release()
        drain(backend)
        peaks.append(tracemalloc.get_traced_memory()[0])
    tracemalloc.stop()

    assert max(peaks) < 200_000  # one overlay of so many entries takes about ten times that


def test_blocks_of_large_values_hold_few_of_them() -> None:
    backend = MemoryBackend(CODEC)
    fill(backend.table("count", "n", "value"), {number: bytes(10_000) for number in range(200)})
    snapshot = backend.freeze()

    blocks = written(snapshot)

    assert max(map(len, blocks[1:])) < 100_000
    assert contents(restored(blocks)) == {number: bytes(10_000) for number in range(200)}


def test_blocks_of_small_values_hold_many_of_them() -> None:
    backend = MemoryBackend(CODEC)
    fill(backend.table("count", "n", "value"), {number: number for number in range(50_000)})

    assert 100 <= len(written(backend.freeze())) <= 110


# ── restoring ────────────────────────────────────────────────────────────────────────────────


def test_r026_keys_and_values_of_different_types_come_back_as_they_were() -> None:
    keys: list[Any] = ["a", b"a", 1, 1.0, True, None, (1, "x"), 2**80]
    backend = small()
    tokens = tokens_of(keys)
    assert tokens is not None
    entries = {token: {index: [str(index)]} for index, token in enumerate(tokens)}
    fill(backend.table("count", "n", "map"), entries)

    once = restored(written(backend.freeze()))
    twice = restored(written(once.freeze()))

    for back in (once, twice):
        found = contents(back, kind="map")
        assert found == entries
        assert [type(value[index]) for index, value in enumerate(found[token] for token in tokens)] == [list] * len(
            keys
        )


@settings(deadline=None)
@given(
    st.lists(st.one_of(st.text("abc", max_size=3), st.integers(0, 9), st.booleans()), max_size=30), st.integers(1, 5)
)
def test_inv_5_2_from_p_to_q_and_back_gives_the_same_state(keys: list[Any], other: int) -> None:
    everything = {token_of(key): [repr(key)] for key in keys}

    def rescale(parts: list[MemoryBackend], parallelism: int) -> list[MemoryBackend]:
        blocks = [written(part.freeze()) for part in parts]
        result = []
        for subtask in range(parallelism):
            backend = small()
            keep = OwnedKeys(range_of(subtask, parallelism, 128), 128)
            for of_part in blocks:
                for _ in backend.restore("count", of_part, keep=keep if subtask % 2 else keep.__call__):
                    pass
            result.append(backend)
        return result

    whole = small()
    fill(whole.table("count", "n", "value"), everything)
    three = rescale([whole], 3)
    back = rescale(rescale(three, other), 3)

    assert [contents(part) for part in back] == [contents(part) for part in three]
    merged: dict[Any, Any] = {}
    for part in map(contents, three):
        assert not merged.keys() & part.keys()
        merged |= part
    assert merged == everything


@pytest.mark.parametrize("parallelism", [1, 3, 128])
def test_r037_state_that_lies_in_one_key_group_restores_at_any_parallelism(parallelism: int) -> None:
    one_group = OwnedKeys(range(77, 78), 128)
    keys = [key for key in range(5_000) if one_group(key)]
    backend = MemoryBackend(CODEC)
    fill(backend.table("count", "n", "value"), {key: str(key) for key in keys})
    blocks = written(backend.freeze())

    sizes = [
        len(contents(restored(blocks, keep=OwnedKeys(range_of(subtask, parallelism, 128), 128))))
        for subtask in range(parallelism)
    ]

    assert len(keys) > 20
    assert max(sizes) == sum(sizes) == len(keys)


def test_a_restore_counts_what_it_keeps_and_goes_in_steps() -> None:
    backend = MemoryBackend(CODEC)
    fill(backend.table("count", "n", "value"), {number: number for number in range(10_000)})
    blocks = written(backend.freeze())

    counts = list(MemoryBackend(CODEC).restore("count", blocks, keep=lambda token: token % 2 == 0))

    assert sum(counts) == 5_000
    assert max(counts) <= 250


@given(st.lists(st.integers(1, 400), min_size=1), st.data())
@settings(max_examples=25, deadline=None)
def test_blocks_may_arrive_in_any_pieces(sizes: list[int], data: st.DataObject) -> None:
    backend = small()
    fill(backend.table("count", "n", "value"), {number: str(number) for number in range(700)})
    stream = b"".join(written(backend.freeze()))
    pieces, at = [], 0
    while at < len(stream):
        size = data.draw(st.sampled_from(sizes))
        pieces.append(stream[at : at + size])
        at += size

    assert contents(restored(pieces)) == {number: str(number) for number in range(700)}


def test_any_flipped_byte_is_a_corrupt_object_that_names_operator_and_block() -> None:
    backend = small()
    fill(backend.table("count", "n", "value"), {number: str(number) for number in range(20)})
    stream = b"".join(written(backend.freeze()))

    for position in range(len(stream)):
        damaged = bytearray(stream)
        damaged[position] ^= 0x10
        with pytest.raises(CorruptObject, match=r"operator 'count': block \d of its keyed state"):
            restored([bytes(damaged)])


def test_a_stream_cut_inside_a_block_is_corrupt() -> None:
    backend = MemoryBackend(CODEC)
    fill(backend.table("count", "n", "value"), {number: str(number) for number in range(10)})
    (block,) = written(backend.freeze())

    for length in range(1, len(block)):
        with pytest.raises(CorruptObject, match="cut short"):
            restored([block[:length]])


def test_a_key_that_stands_twice_is_corrupt() -> None:
    backend = small()
    fill(backend.table("count", "n", "value"), {"a": 1})
    blocks = written(backend.freeze())

    with pytest.raises(CorruptObject, match="operator 'count', state 'n': a key stands twice"):
        restored([*blocks, *blocks])


def test_a_state_of_another_kind_is_refused_with_both() -> None:
    backend = small()
    fill(backend.table("count", "n", "value"), {"a": 1})
    blocks = written(backend.freeze())

    with pytest.raises(
        IncompatibleState, match="operator 'count', state 'n': it is declared as 'list' and was restored as 'value'"
    ):
        restored(blocks).table("count", "n", "list")

    declared = small()
    declared.table("count", "n", "map")
    with pytest.raises(IncompatibleState, match="it is restored as 'value' and was declared as 'map'"):
        list(declared.restore("count", blocks))


def test_a_value_that_can_not_be_written_names_operator_state_and_key() -> None:
    backend = small()
    fill(backend.table("count", "n", "value"), {"a": 1, token_of((1, "b")): [object()], "c": 3})

    with pytest.raises(InvalidValue, match=r"operator 'count', state 'n', key \(1, 'b'\): .*object"):
        written(backend.freeze())


@dataclass(frozen=True)
class Place:
    """A class for keys and values."""

    city: str


class Colour(Enum):
    """Another one."""

    RED = 1


def test_classes_of_keys_and_values_need_the_jobs_registry_to_come_back() -> None:
    registry = Registry(alone=True)
    registry.register(Place, name="Place")
    registry.register(Colour, name="Colour")
    codec = Codec(registry)
    backend = small(codec)
    fill(backend.table("count", "n", "value"), {(token_of(Place("x"), registry)): Colour.RED})
    blocks = written(backend.freeze())

    back = small(codec)
    assert list(back.restore("count", blocks)) == [1]
    assert contents(back) == {token_of(Place("x"), registry): Colour.RED}

    only_keys, only_values = Registry(alone=True), Registry(alone=True)
    only_keys.register(Place, name="Place")
    only_values.register(Colour, name="Colour")
    for part, missing in ((only_keys, "Colour"), (only_values, "Place")):
        with pytest.raises(IncompatibleState, match=f"operator 'count', state 'n'.*{missing}"):
            list(small(Codec(part)).restore("count", blocks))
