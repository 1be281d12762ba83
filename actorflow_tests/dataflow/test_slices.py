"""Sliding windows out of slices give what a naive oracle gives, however time, disorder, stops and restores fall."""

from __future__ import annotations

import operator
import random
from collections.abc import Callable, Iterable
from datetime import timedelta
from typing import Any

import pytest

from actorflow.dataflow.aggregates import Aggregate, aggregating, average, count, largest, smallest, total
from actorflow.dataflow.folds import RunningSum, RunningTotal, TwoStacks, fold_for
from actorflow.dataflow.lateness import MAX_TIME
from actorflow.dataflow.slices import Slices
from actorflow.dataflow.windows import Sliding, sliding
from actorflow.model.codec import Codec
from actorflow.model.key_groups import bytes_of_token
from actorflow.state.memory import MemoryBackend, MemorySnapshot
from actorflow_tests.dataflow import window_oracle as oracle
from actorflow_tests.dataflow.window_oracle import Came, Reached

COLLECTED = aggregating(list, lambda values, value: [*values, value], lambda one, other: one + other)
"""Merging is not commutative: an order that is lost shows."""


def _put(values: list[int], value: int) -> list[int]:
    values.append(value)
    return values


IN_PLACE = aggregating(list, _put, lambda one, other: one + other)
"""Adding changes the accumulator: one that two windows share shows."""

TALLY = aggregating(
    dict,
    lambda tally, value: tally | {value: tally.get(value, 0) + 1},
    lambda one, other: {value: one.get(value, 0) + other.get(value, 0) for value in sorted(one | other)},
    subtract=lambda whole, part: {
        value: number - part.get(value, 0) for value, number in whole.items() if number != part.get(value, 0)
    },
)
"""Subtracts, and is no number."""

AGGREGATES: dict[str, tuple[Aggregate, Callable[[tuple[int, ...]], Any]]] = {
    "count": (count(), len),
    "sum": (total(whole_numbers=True), sum),
    "sum of anything": (total(), sum),
    "largest": (largest(), max),
    "smallest": (smallest(), min),
    "average": (average(), lambda values: sum(values) / len(values)),
    "tally": (TALLY, lambda values: {value: values.count(value) for value in values}),
    "collected": (COLLECTED, sorted),
    "in place": (IN_PLACE, sorted),
}
SHAPES = [(10, 1), (10, 10), (10, 5), (10, 3), (7, 4), (16, 7), (3, 5), (12, 12), (9, 2), (1, 1), (100, 10)]


def seconds(size: int, slide: int, offset: int = 0) -> Sliding:
    return sliding(*(timedelta(milliseconds=each) for each in (size, slide)), offset=timedelta(milliseconds=offset))


class Operator:
    """Slices over a real table, with what a shell around them would do."""

    def __init__(self, windows: Sliding, aggregate: Aggregate, allowed: int) -> None:
        self.windows, self.aggregate, self.allowed = windows, aggregate, allowed
        self.backend = MemoryBackend(Codec())
        self.fired: list[tuple[Any, int, int, Any]] = []
        self.late: list[tuple[Any, int, Any, int]] = []
        self.held: list[MemorySnapshot] = []
        self.open(-(2**63))

    def open(self, watermark: int) -> None:
        self.table = self.backend.table("w", "slices", "map")
        self.slices = Slices(
            self.table, self.windows, self.aggregate, allowed_ms=self.allowed, copy=Codec().copy, watermark=watermark
        )

    def add(self, batch: list[Came]) -> None:
        firings: list[Any] = []
        late: list[tuple[int, int]] = []
        keys, values, times = ([getattr(one, name) for one in batch] for name in ("key", "value", "timestamp"))
        self.slices.add(keys, values, times, firings, late)
        self._gave(firings)
        self.late += [(batch[at].key, batch[at].timestamp, batch[at].value, by) for at, by in late]

    def _gave(self, firings: Iterable[Any]) -> None:
        self.fired += [(token, *window, result) for token, window, result in firings]

    def advance(self, watermark: int, chance: random.Random) -> None:
        firings: list[Any] = []
        while not self.slices.advance(watermark, firings, at_most=chance.choice([None, 1, 2, 5])):
            if chance.random() < 0.2:
                self.restore()
        self._gave(firings)

    def snapshot(self) -> None:
        """From here on the table shares no dict, until the snapshot is let go."""
        self.held.append(self.backend.freeze())

    def let_go(self) -> None:
        while self.held:
            self.held.pop().release()
        for _ in self.backend.upkeep():
            pass
        self.table.settle()

    def restore(self) -> None:
        snapshot = self.backend.freeze()
        blocks = [block for block in snapshot.blocks("w") if block] if snapshot.operators() else []
        self.held = []
        self.backend = MemoryBackend(Codec())
        for _ in self.backend.restore("w", blocks):
            pass
        self.open(self.slices.watermark)


def story(chance: random.Random, size: int, *, length: int) -> list[Came | Reached]:
    """Records in disorder, some beyond what the watermark allows for, and leaps and pauses of time."""
    seen: list[Came | Reached] = []
    now, watermark, bound = chance.randrange(-50, 50), -(2**63), chance.choice([0, 2, size // 2, size * 2])
    keys = ["a", "bb", 7, b"c"][: chance.randrange(1, 5)]
    for number in range(length):
        now += chance.choice([0, 0, 1, 1, 2, chance.choice([0, size // 3, size * 3])])
        behind = chance.choice([0, 0, 0, chance.randrange(bound + 1), chance.randrange(4 * size + 2)])
        seen.append(Came(chance.choice(keys), now - behind, number % 11))
        if chance.random() < 0.3:
            watermark = max(watermark, now - bound - 1)
            seen.append(Reached(watermark))
    return seen


def play(seen: list[Came | Reached], shell: Operator, chance: random.Random, *, restores: bool) -> None:
    batch: list[Came] = []
    for event in [*seen, Reached(MAX_TIME)]:
        if isinstance(event, Came):
            batch.append(event)
            if chance.random() < 0.2:
                shell.add(batch)
                batch = []
            continue
        shell.add(batch)
        batch = []
        shell.advance(event.time, chance)
        if restores and chance.random() < 0.1:
            shell.restore()
        if chance.random() < 0.1:
            shell.snapshot()
        elif chance.random() < 0.2:
            shell.let_go()


def by_place(rows: Iterable[tuple[Any, ...]]) -> list[Any]:
    """What each key saw, in order: keys that share a batch may change places, as they may in no other way."""
    return sorted(rows, key=lambda row: bytes_of_token(row[0]))


@pytest.mark.parametrize("name", AGGREGATES)
@pytest.mark.parametrize("allowed", [0, 13])
def test_inv_5_7_slices_give_what_the_oracle_gives(name: str, allowed: int) -> None:
    aggregate, naive = AGGREGATES[name]
    for seed in range(60):
        chance = random.Random(f"{name} {allowed} {seed}")
        size, slide = chance.choice(SHAPES)
        offset = chance.choice([0, 0, 1, 3])
        seen = story(chance, size, length=chance.choice([5, 40, 120]))
        expected = oracle.expected(
            oracle.sliding(size, slide, offset), [*seen, Reached(MAX_TIME)], allowed=allowed, order=bytes_of_token
        )
        shell = Operator(seconds(size, slide, offset), aggregate, allowed)

        play(seen, shell, chance, restores=True)

        shown = [(*row[:3], sorted(row[3]) if name in {"collected", "in place"} else row[3]) for row in shell.fired]
        told = [(one.key, one.start, one.end, naive(one.values)) for one in expected.fired]
        assert by_place(told) == by_place(shown), (seed, size, slide, offset)
        assert [(one.key, one.timestamp, one.value, one.late_by) for one in expected.late] == shell.late, seed
        assert 0 == len(shell.slices) == len(list(shell.table.items())), seed


# ── order, stops, restores ──


def test_results_come_by_the_end_of_the_window_and_then_by_the_bytes_of_the_key() -> None:
    shell = Operator(seconds(10, 5), count(), 0)
    keys = [300, "b", -1, "aa", b"z", 2, ("canonical",)]
    keys[-1] = (bytes_of_token("of anything else"),)
    shell.add([Came(key, time) for key in keys for time in (3, 14)])

    shell.advance(100, random.Random(1))

    told = [(end, bytes_of_token(key)) for key, _, end, _ in shell.fired]
    assert sorted(told) == told
    assert 3 * len(keys) + len(keys) == len(told)


def test_firing_stops_after_as_many_keys_as_it_may_and_goes_on_where_it_was() -> None:
    shell = Operator(seconds(10, 10), count(), 0)
    shell.add([Came(key, 5) for key in range(10)])
    firings: list[Any] = []

    assert not shell.slices.advance(9, firings, at_most=4)
    assert list(range(4)) == [token for token, *_ in firings]
    assert not shell.slices.advance(9, firings, at_most=5)
    assert shell.slices.advance(9, firings, at_most=5)
    assert list(range(10)) == [token for token, *_ in firings]


def test_r101_r099_windows_close_after_a_restore_by_time_alone_and_leave_nothing() -> None:
    shell = Operator(seconds(10, 2), total(whole_numbers=True), 3)
    shell.add([Came(f"key-{number}", number % 40, number) for number in range(1_000)])
    shell.restore()

    shell.advance(45, random.Random(1))
    assert 1_000 == len({key for key, *_ in shell.fired})
    shell.restore()
    shell.advance(60, random.Random(1))
    assert 0 == len(shell.slices) == len(list(shell.table.items()))


def test_what_has_given_its_result_does_not_give_it_again_when_watermarks_start_anew() -> None:
    shell = Operator(seconds(10, 5), count(), 20)
    shell.add([Came("a", 3), Came("a", 12)])
    shell.advance(15, random.Random(1))
    before = list(shell.fired)
    shell.backend, blocks = MemoryBackend(Codec()), list(shell.backend.freeze().blocks("w"))
    for _ in shell.backend.restore("w", blocks):
        pass

    shell.open(-(2**63))
    shell.advance(15, random.Random(1))

    assert [("a", -5, 5, 1), ("a", 0, 10, 1), ("a", 5, 15, 1)] == before
    assert before == shell.fired


def test_a_sum_of_floats_has_the_same_last_bit_whenever_it_was_restored() -> None:
    results = []
    for restores in (False, True):
        shell = Operator(seconds(100, 1), total(), 0)
        chance = random.Random(7)
        for time in range(300):
            shell.add([Came("a", time, chance.random() * 10 ** chance.randrange(12))])
            shell.advance(time - 1, random.Random(1))
            if restores and time % 7 == 0:
                shell.restore()
        results.append(shell.fired)

    assert results[0] == results[1]


def test_less_lateness_after_a_restore_forgets_what_was_kept_for_more() -> None:
    shell = Operator(seconds(10, 5), count(), 1_000)
    shell.add([Came("a", time) for time in range(100)] + [Came("b", 3)])
    shell.advance(99, random.Random(1))
    assert 21 == len(shell.table.peek("a"))

    shell.allowed = 0
    shell.restore()

    assert 2 == len(shell.table.peek("a"))
    assert ["a"] == [token for token, _ in shell.table.items()]


# ── lateness ──


def test_r085_a_very_late_record_makes_no_window_and_says_how_late_it_is() -> None:
    shell = Operator(seconds(10, 2), count(), 2)
    shell.add([Came("a", 100)])
    shell.advance(98, random.Random(1))

    shell.add([Came("a", 50, "lost"), Came("a", 99)])
    shell.advance(MAX_TIME, random.Random(1))

    assert [("a", 50, "lost", 49)] == shell.late
    assert {(92, 102): 2, (100, 110): 1} == {
        (start, end): number for _, start, end, number in shell.fired if start in {92, 100}
    }
    assert all(start > 88 for _, start, _, _ in shell.fired)


def test_a_record_between_windows_is_late_only_when_time_has_passed_it() -> None:
    shell = Operator(seconds(3, 5), count(), 0)
    shell.add([Came("a", 4), Came("a", 5)])
    shell.advance(4, random.Random(1))
    shell.add([Came("a", 3), Came("a", 8)])
    shell.advance(MAX_TIME, random.Random(1))

    assert [("a", 3, None, 2)] == shell.late
    assert [("a", 5, 8, 1)] == shell.fired


# ── what it costs ──


def test_the_fold_is_chosen_by_what_the_aggregate_can() -> None:
    assert RunningSum is fold_for(seconds(10, 1), count())
    assert RunningTotal is fold_for(seconds(10, 3), count())
    assert RunningTotal is fold_for(seconds(10, 1), average())
    assert TwoStacks is fold_for(seconds(10, 1), largest())


@pytest.mark.parametrize("subtracts", [True, False])
def test_what_a_window_costs_does_not_grow_with_its_slices(subtracts: bool) -> None:
    costs = {}
    for size in (10, 100, 1_000):
        calls = [0]

        def counted(function: Callable[[int, int], int], calls: list[int] = calls) -> Callable[[int, int], int]:
            def call(one: int, other: int) -> int:
                calls[0] += 1
                return function(one, other)

            return call

        shell = Operator(
            seconds(size, 1),
            aggregating(
                int,
                operator.add,
                counted(operator.add),
                subtract=counted(operator.sub) if subtracts else None,
            ),
            0,
        )
        firings: list[Any] = []
        for time in range(5_000):
            shell.slices.add(["a"], [1], [time], firings, [])
            shell.slices.advance(time, firings)
        assert 5_000 == len(firings)
        costs[size] = calls[0] / 5_000

    assert costs[1_000] < 1.1 * costs[10]
    assert max(costs.values()) < (2.1 if subtracts else 3.1)


def test_not_all_keys_turn_over_their_blocks_in_one_window() -> None:
    merges = [0]

    def merge(one: int, other: int) -> int:
        merges[0] += 1
        return one + other

    shell = Operator(seconds(100, 1), aggregating(int, operator.add, merge), 0)
    most, firings = 0, list[Any]()
    for time in range(400):
        shell.slices.add(list(range(100)), [1] * 100, [time] * 100, firings, [])
        before = merges[0]
        shell.slices.advance(time, firings)
        if time > 200:
            most = max(most, merges[0] - before)

    assert most < 100 * 100 / 5


def test_a_total_of_whole_numbers_refuses_a_float() -> None:
    shell = Operator(seconds(10, 1), total(whole_numbers=True), 0)

    with pytest.raises(TypeError, match="exactly"):
        shell.add([Came("a", 1, 0.5)])
