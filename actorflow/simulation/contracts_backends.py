"""What must every state backend hold, whoever wrote it?

One body, run against every implementation, yours too.  A check is a plain function that takes an *arm*, which makes
empty backends:

    @pytest.mark.parametrize("check", BACKEND_CHECKS)
    def test_my_backend(check):
        check(BackendArm(make=MyBackend))

What a backend promises: a table is a dict by token; an instant (``freeze``) costs no copy and shows nothing of what
comes after it, not even a value that is changed in place; blocks come back at any parallelism, in any pieces, whole or
not at all; and a backend that was restored is one like any other, which can be written to, frozen and restored again.

Not promised: an order of ``items``, and what ``len`` says while a snapshot lives.  A check raises ``AssertionError``
and returns nothing.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from actorflow.abc.state import MISSING, KeyedTable, StateBackend, StateSnapshot
from actorflow.errors import CorruptObject, IncompatibleState
from actorflow.model.codec import Codec
from actorflow.model.key_groups import OwnedKeys, range_of, token_of
from actorflow.simulation.chance import Chance

__all__ = ("BACKEND_CHECKS", "BackendArm")

_OPERATOR, _STATE, _KIND = "contract", "n", "value"
_MAX_PARALLELISM = 128
_LARGE = 20_000
_TOKENS = ("a", "A", "", "ü", b"a", b"", 0, 1, -1, 1 << 70, *map(token_of, (1.0, True, None, (1, "a"), (b"x", (2,)))))
"""One of each kind of key; some of them are equal to Python, and different to a user."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BackendArm:
    """How a backend is made, empty, for one subtask."""

    make: Callable[[Codec], StateBackend]
    codec: Codec = field(default_factory=Codec)

    def backend(self) -> StateBackend:
        """Return an empty backend."""
        return self.make(self.codec)

    def restored(self, blocks: Iterable[bytes], keep: Callable[[Any], bool] | None = None) -> StateBackend:
        """Return a new backend that holds what blocks say."""
        backend = self.backend()
        for _ in backend.restore(_OPERATOR, blocks, keep=keep):
            pass
        return backend

    def contents(self, blocks: Iterable[bytes], keep: Callable[[Any], bool] | None = None) -> dict[Any, Any]:
        """Return what blocks say, as a backend reads them."""
        backend = self.restored(blocks, keep)
        entries = dict(_table(backend).items())
        backend.close()
        return entries


def _table(backend: StateBackend, state: str = _STATE) -> KeyedTable:
    return backend.table(_OPERATOR, state, _KIND)


def _fill(table: KeyedTable, entries: Mapping[Any, Any]) -> KeyedTable:
    for token, value in entries.items():
        table.store(token, value)
    table.settle()
    return table


def _blocks(snapshot: StateSnapshot) -> list[bytes]:
    """Read a snapshot to its end, as the runtime does."""
    return [block for block in snapshot.blocks(_OPERATOR) if block]


def _fold(backend: StateBackend) -> None:
    """Do all the upkeep there is."""
    for _ in backend.upkeep():
        pass


def _holds(table: KeyedTable, expected: Mapping[Any, Any]) -> None:
    """Look at a table in every way there is."""
    assert dict(table.items()) == expected
    for token, value in expected.items():
        assert table.peek(token) == value
        assert table.load(token) == value
    if table.plain is not None:
        assert table.plain == expected


# ── a table is a dict ────────────────────────────────────────────────────────────────────────


def a_table_holds_what_was_stored(arm: BackendArm) -> None:
    """Store, load, peek, remove; ``None`` is a value, and what is absent is ``MISSING``."""
    backend = arm.backend()
    table = _table(backend)
    assert table.load("a") is MISSING
    assert table.peek("a") is MISSING
    table.remove("a")
    assert len(table) == 0
    for value in (1, None, [1], "again"):
        table.store("a", value)
        assert table.load("a") == value
        assert len(table) == 1
    table.store("b", None)
    assert table.load("b") is None
    assert len(table) == 2
    table.remove("a")
    table.remove("a")
    _holds(table, {"b": None})
    assert table.load("a") is MISSING
    assert len(table) == 1
    backend.close()


def keys_that_python_holds_for_equal_are_different(arm: BackendArm) -> None:
    """``1``, ``1.0`` and ``True`` are three keys, and so are ``"a"`` and ``b"a"``; all of them come back."""
    backend = arm.backend()
    expected = {token: [index] for index, token in enumerate(_TOKENS)}
    assert len(expected) == len(_TOKENS)
    _holds(_fill(_table(backend), expected), expected)
    snapshot = backend.freeze()
    assert arm.contents(_blocks(snapshot)) == expected
    snapshot.release()
    backend.close()


def tables_are_apart(arm: BackendArm) -> None:
    """A table is named by operator and state; asked for again it is the same, and as another kind it is refused."""
    backend = arm.backend()
    names = [("one", "n"), ("one", "m"), ("two", "n")]
    for number, (operator, state) in enumerate(names):
        backend.table(operator, state, _KIND).store("a", number)
    for number, (operator, state) in enumerate(names):
        _holds(backend.table(operator, state, _KIND), {"a": number})
    _refused(IncompatibleState, lambda: backend.table("one", "n", "list"))
    snapshot = backend.freeze()
    assert snapshot.operators() == ["one", "two"]
    for operator, expected in (("one", {"n": {"a": 0}, "m": {"a": 1}}), ("two", {"n": {"a": 2}})):
        other = arm.backend()
        for _ in other.restore(operator, [block for block in snapshot.blocks(operator) if block]):
            pass
        for state, entries in expected.items():
            _holds(other.table(operator, state, _KIND), entries)
        other.close()
    snapshot.release()
    backend.close()


def a_plain_dict_is_the_table_while_it_is_offered(arm: BackendArm) -> None:
    """Where ``plain`` is a dict, it can be written to for the length of a batch, and counts like ``store``."""
    backend = arm.backend()
    table = _table(backend)
    expected: dict[Any, Any] = {}
    for round_ in range(6):
        for number in range(round_, round_ + 4):
            if table.plain is not None:
                table.plain[number] = [round_]
            else:
                table.store(number, [round_])
            expected[number] = [round_]
        table.settle()
        _holds(table, expected)
        snapshot = backend.freeze()
        assert arm.contents(_blocks(snapshot)) == expected
        snapshot.release()
        if round_ % 2:
            _fold(backend)
    backend.close()


# ── an instant shows nothing of what comes after it ──────────────────────────────────────────


def an_instant_shows_nothing_of_what_comes_after_it(arm: BackendArm) -> None:
    """Whatever is stored, removed or changed in place between ``freeze`` and the last block stays out of it."""
    before: dict[int, Any] = {number: {"list": [number], "deep": [[number]]} for number in range(200)}
    for read_first in (0, 1, 3):
        backend = arm.backend()
        table = _fill(_table(backend), copy.deepcopy(before))
        snapshot = backend.freeze()
        blocks = snapshot.blocks(_OPERATOR)
        read = [block for block in (next(blocks, b"") for _ in range(read_first)) if block]
        after = copy.deepcopy(before)
        for number in range(0, 200, 4):
            table.remove(number)
            del after[number]
        for number in range(1, 200, 4):
            value = table.load(number)
            value["deep"][0].append("later")
            table.store(number, value)
            after[number]["deep"][0].append("later")
        for number in (*range(2, 200, 4), *range(500, 520)):
            table.store(number, "later")
            after[number] = "later"
        table.settle()
        _holds(table, after)
        assert arm.contents([*read, *(block for block in blocks if block)]) == before
        snapshot.release()
        _fold(backend)
        _holds(table, after)
        assert len(table) == len(after)
        backend.close()


def a_value_loaded_before_the_instant_is_not_the_snapshots(arm: BackendArm) -> None:
    """What was loaded, stored and then loaded anew after the instant may be changed without harm to it."""
    backend = arm.backend()
    table = _table(backend)
    for turn in range(4):
        value = table.load("a")
        value = [] if value is MISSING else value
        value.append(turn)
        table.store("a", value)
        snapshot = backend.freeze()
        again = table.load("a")
        again.append("undone")
        table.store("a", again[:-1])
        assert arm.contents(_blocks(snapshot)) == {"a": list(range(turn + 1))}
        snapshot.release()
    _holds(table, {"a": [0, 1, 2, 3]})
    backend.close()


def two_instants_at_once_are_two(arm: BackendArm) -> None:
    """Snapshots live beside each other, are read in turns, and are released in any order, also unread."""
    for order in ((0, 1, 2), (2, 1, 0), (1, 0, 2)):
        backend = arm.backend()
        table = _fill(_table(backend), {number: [number] for number in range(100)})
        expected = {number: [number] for number in range(100)}
        snapshots: list[tuple[StateSnapshot, dict[Any, Any]]] = []
        for turn in range(3):
            for number in range(turn, 100, 3):
                table.load(number).append(turn)
                table.store(number, [*expected[number], turn])
                expected[number] = [*expected[number], turn]
            table.remove(turn)
            expected.pop(turn)
            snapshots.append((backend.freeze(), copy.deepcopy(expected)))
        unread = backend.freeze()
        table.store("last", 1)
        unread.release()
        readers = [iter(snapshot.blocks(_OPERATOR)) for snapshot, _ in snapshots]
        read: list[list[bytes]] = [[] for _ in readers]
        for number, reader in enumerate(readers):
            read[number] += [block for block in [next(reader, b"")] if block]
        for number in order:
            snapshot, there = snapshots[number]
            read[number] += [block for block in readers[number] if block]
            assert arm.contents(read[number]) == there
            snapshot.release()
            snapshot.release()
            _fold(backend)
        _holds(table, {**expected, "last": 1})
        backend.close()


def upkeep_changes_nothing_that_shows(arm: BackendArm) -> None:
    """Folding and settling, at any moment, whole or begun and left, move no value and end."""
    backend = arm.backend()
    table, expected = _table(backend), dict[Any, Any]()
    chance = Chance(1, "upkeep")
    for turn in range(40):
        for _ in range(30):
            token = chance.below("token", 120)
            table.store(token, turn)
            expected[token] = turn
        table.settle()
        snapshot = backend.freeze()
        folding = backend.upkeep()
        for _ in range(turn % 3):
            next(folding, None)
        table.store("during", turn)
        expected["during"] = turn
        if turn % 2:
            _blocks(snapshot)
        snapshot.release()
        if turn % 5 == 0:
            _fold(backend)
        _holds(table, expected)
    for _ in range(10_000):
        table.settle()
    _fold(backend)
    _holds(table, expected)
    assert len(table) == len(expected)
    backend.close()


# ── blocks come back ─────────────────────────────────────────────────────────────────────────


def state_comes_back_at_any_parallelism(arm: BackendArm) -> None:
    """From p subtasks to q and to p again: every key is in just the one subtask that owns its key group."""
    entries = {**{number: [number] for number in range(300)}, **dict.fromkeys(_TOKENS, "odd")}
    whole = arm.backend()
    _fill(_table(whole), entries)
    snapshot = whole.freeze()
    parts = [_blocks(snapshot)]
    snapshot.release()
    whole.close()
    for parallelism in (3, 2, 7, 1):
        following: list[list[bytes]] = []
        found: dict[Any, Any] = {}
        for subtask in range(parallelism):
            keep = OwnedKeys(range_of(subtask, parallelism, _MAX_PARALLELISM), _MAX_PARALLELISM)
            backend = arm.backend()
            kept = 0
            for part in parts:
                kept += sum(backend.restore(_OPERATOR, part, keep=keep))
            mine = dict(_table(backend).items())
            assert kept == len(mine)
            assert all(map(keep, mine)), "a subtask holds a key that is not its own"
            assert not found.keys() & mine.keys(), "a key is held by two subtasks"
            found |= mine
            snapshot = backend.freeze()
            following.append(_blocks(snapshot))
            snapshot.release()
            backend.close()
        assert found == entries
        parts = following


def blocks_may_come_in_any_pieces(arm: BackendArm) -> None:
    """What is stored is a stream: it is read back whatever pieces it comes in."""
    entries = {number: "x" * (number % 50) for number in range(2_000)}
    backend = arm.backend()
    _fill(_table(backend), entries)
    snapshot = backend.freeze()
    blocks = _blocks(snapshot)
    stream = b"".join(blocks)
    assert arm.contents(blocks) == entries
    for size in (1, 7, 1_000, len(stream)):
        assert arm.contents(stream[at : at + size] for at in range(0, len(stream), size)) == entries
    snapshot.release()
    backend.close()


def damaged_blocks_are_refused(arm: BackendArm) -> None:
    """A flipped bit anywhere, or a stream that ends within a block, is a ``CorruptObject``, and never a wrong value."""
    backend = arm.backend()
    entries = {number: f"value {number}" for number in range(10)}
    _fill(_table(backend), entries)
    snapshot = backend.freeze()
    stream = b"".join(_blocks(snapshot))
    snapshot.release()
    backend.close()
    for at in range(len(stream)):
        damaged = bytearray(stream)
        damaged[at] ^= 1 << at % 8
        _refused(CorruptObject, partial(arm.restored, [bytes(damaged)]))
    _refused(CorruptObject, partial(arm.restored, [stream[:-1]]))
    for length in range(1, len(stream)):
        try:
            found = arm.contents([stream[:length]])
        except CorruptObject:
            continue
        assert found.items() <= entries.items(), "only whole blocks may be missing"


def a_restored_state_keeps_its_kind(arm: BackendArm) -> None:
    """What was written as one kind is refused where another is declared, before or after the restore."""
    backend = arm.backend()
    _fill(_table(backend), {"a": [1]})
    snapshot = backend.freeze()
    blocks = _blocks(snapshot)
    snapshot.release()
    restored = arm.restored(blocks)
    _refused(IncompatibleState, lambda: restored.table(_OPERATOR, _STATE, "list"))
    _holds(restored.table(_OPERATOR, _STATE, _KIND), {"a": [1]})
    declared = arm.backend()
    declared.table(_OPERATOR, _STATE, "list")
    _refused(IncompatibleState, lambda: list(declared.restore(_OPERATOR, blocks)))
    for one in (backend, restored, declared):
        one.close()


def a_restored_backend_is_like_any_other(arm: BackendArm) -> None:
    """Restore, write, freeze, restore: three generations, each with stores, removals and changes in place."""
    backend, expected = arm.backend(), dict[Any, Any]()
    for generation in range(4):
        table = _table(backend)
        for number in range(generation * 50, generation * 50 + 400):
            table.store(number, [generation])
            expected[number] = [generation]
        for number in range(generation, 400, 9):
            if (value := table.load(number)) is not MISSING:
                value.append("changed")
                table.store(number, value)
                expected[number] = [*expected[number], "changed"]
        for number in range(generation, 400, 7):
            table.remove(number)
            expected.pop(number, None)
        table.settle()
        first = backend.freeze()
        table.store("in vain", generation)  # it is in neither this snapshot nor the next generation
        blocks = _blocks(first)
        first.release()
        backend.close()
        backend = arm.restored(blocks)
        _holds(_table(backend), expected)
        assert len(_table(backend)) == len(expected)
    backend.close()


def a_large_table_is_frozen_written_and_restored_in_steps(arm: BackendArm) -> None:
    """Many keys come in many blocks, and restoring them in many steps, while the job goes on writing."""
    backend = arm.backend()
    before: dict[int, Any] = {number: number for number in range(_LARGE)}
    table = _fill(_table(backend), before)
    snapshot = backend.freeze()
    after, blocks = dict(before), list[bytes]()
    for turn, block in enumerate(snapshot.blocks(_OPERATOR)):
        if block:
            blocks.append(block)
        for number in range(turn, _LARGE, 997):
            table.store(number, "later")
            after[number] = "later"
        table.settle()
    snapshot.release()
    assert len(blocks) >= 10, "a block takes about half a millisecond: a large table has many"
    other = arm.backend()
    steps = list(other.restore(_OPERATOR, blocks))
    assert sum(steps) == _LARGE
    assert len(steps) >= 10, "a step of a restore is short"
    assert dict(_table(other).items()) == before
    _fold(backend)
    assert dict(table.items()) == after
    assert len(table) == _LARGE
    backend.close()
    other.close()


def whatever_is_done_the_blocks_hold_the_instant(arm: BackendArm) -> None:
    """Drawn stories of all operations, with up to three snapshots alive, against a plain dict."""
    for seed in range(12):
        _story(arm, Chance(seed, "story"))


def _story(arm: BackendArm, chance: Chance) -> None:
    backend, expected = arm.backend(), dict[Any, Any]()
    table = _table(backend)
    live: list[tuple[StateSnapshot, dict[Any, Any], Any, list[bytes]]] = []
    for _ in range(250):
        token = _TOKENS[chance.below("odd", len(_TOKENS))] if chance.happens("is odd", 0.2) else chance.below("n", 40)
        match chance.below("what", 8):
            case 0 | 1:
                table.store(token, [chance.below("value", 9)])
                expected[token] = copy.deepcopy(table.peek(token))
            case 2:
                value = table.load(token)
                assert (value is MISSING) == (token not in expected)
                if value is not MISSING:
                    value.append("changed")
                    table.store(token, value)
                    expected[token] = [*expected[token], "changed"]
            case 3:
                table.remove(token)
                expected.pop(token, None)
            case 4 if len(live) < 3:
                snapshot = backend.freeze()
                live.append((snapshot, copy.deepcopy(expected), iter(snapshot.blocks(_OPERATOR)), []))
            case 5 if live:
                _, _, blocks, read = live[chance.below("which", len(live))]
                read.append(next(blocks, b""))
            case 6 if live:
                snapshot, there, blocks, read = live.pop(chance.below("which", len(live)))
                if chance.happens("given up", 0.7):
                    assert arm.contents(block for block in [*read, *blocks] if block) == there
                snapshot.release()
            case _:
                table.settle()
                next(backend.upkeep(), None)
        assert table.peek(token) == expected.get(token, MISSING)
    for snapshot, there, blocks, read in live:
        assert arm.contents(block for block in [*read, *blocks] if block) == there
        snapshot.release()
    _fold(backend)
    _holds(table, expected)
    assert len(table) == len(expected)
    backend.close()


def _refused(error: type[Exception], act: Callable[[], object]) -> None:
    try:
        act()
    except error:
        return
    raise AssertionError(f"{error.__name__} was expected")


BACKEND_CHECKS: tuple[Callable[[BackendArm], None], ...] = (
    a_table_holds_what_was_stored,
    keys_that_python_holds_for_equal_are_different,
    tables_are_apart,
    a_plain_dict_is_the_table_while_it_is_offered,
    an_instant_shows_nothing_of_what_comes_after_it,
    a_value_loaded_before_the_instant_is_not_the_snapshots,
    two_instants_at_once_are_two,
    upkeep_changes_nothing_that_shows,
    state_comes_back_at_any_parallelism,
    blocks_may_come_in_any_pieces,
    damaged_blocks_are_refused,
    a_restored_state_keeps_its_kind,
    a_restored_backend_is_like_any_other,
    a_large_table_is_frozen_written_and_restored_in_steps,
    whatever_is_done_the_blocks_hold_the_instant,
)
