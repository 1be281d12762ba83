"""Sliding windows out of slices give what a naive oracle gives, however time, disorder, stops and restores fall."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable
from datetime import timedelta
from typing import Any

import pytest

from actorflow.dataflow.aggregates import Aggregate, aggregating, average, count, largest, smallest, total
from actorflow.dataflow.lateness import MAX_TIME
from actorflow.dataflow.slices import Slices
from actorflow.dataflow.windows import Sliding, sliding
from actorflow.model.codec import Codec
from actorflow.model.key_groups import bytes_of_token
from actorflow.state.memory import MemoryBackend, MemorySnapshot
from actorflow_tests.dataflow import window_oracle as oracle
from actorflow_tests.dataflow.window_oracle import Came, Reached

COLLECTED = aggregating(list, lambda values, value: values + [value], lambda one, other: one + other)
"""Merging is not commutative: an order that is lost shows."""

IN_PLACE = aggregating(list, lambda values, value: values.append(value) or values, lambda one, other: one + other)  # type: ignore[func-returns-value]
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


def play(seen: list[Came | Reached], operator: Operator, chance: random.Random, *, restores: bool) -> None:
    batch: list[Came] = []
    for event in [*seen, Reached(MAX_TIME)]:
        if isinstance(event, Came):
            batch.append(event)
            if chance.random() < 0.2:
                operator.add(batch)
                batch = []
            continue
        operator.add(batch)
        batch = []
        operator.advance(event.time, chance)
        if restores and chance.random() < 0.1:
            operator.restore()
        if chance.random() < 0.1:
            operator.snapshot()
        elif chance.random() < 0.2:
            operator.let_go()


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
        operator = Operator(seconds(size, slide, offset), aggregate, allowed)

        play(seen, operator, chance, restores=True)

        shown = [(*row[:3], sorted(row[3]) if name in {"collected", "in place"} else row[3]) for row in operator.fired]
        told = [(one.key, one.start, one.end, naive(one.values)) for one in expected.fired]
        assert by_place(told) == by_place(shown), (seed, size, slide, offset)
        assert [(one.key, one.timestamp, one.value, one.late_by) for one in expected.late] == operator.late, seed
        assert 0 == len(operator.slices) == len(list(operator.table.items())), seed
