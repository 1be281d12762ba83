"""The work of each workload, and the loop that a person would write for it by hand.

Both sides get the same input, built before the clock runs, and call the same functions, each once per record.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import cycle, islice
from time import perf_counter
from typing import Any

__all__ = (
    "KEYS",
    "NUMBERS",
    "WORDS",
    "count_word",
    "double",
    "increment",
    "is_even",
    "key_of",
    "make_sink",
    "plain_w1",
    "plain_w2",
    "prepare_numbers",
)

KEYS = 10_000

WORDS = [f"word-{index * 7919 % KEYS:06d}" for index in range(KEYS)]
"""Every one of 10,000 words once; a stream is this list, cycled."""


NUMBERS: list[int] = []
"""The integers of W2; filled by ``prepare_numbers`` before any clock runs."""


def prepare_numbers(count: int) -> None:
    """Make at least this many integers."""
    NUMBERS.extend(range(len(NUMBERS), count))


def make_sink() -> tuple[Callable[[Any], None], list[int]]:
    """The user's sink function, and the box in which it counts its calls."""
    box = [0]

    def sink(_record: Any) -> None:
        box[0] += 1

    return sink, box


def key_of(word: str) -> str:
    """The user's key function of W1."""
    return word


def count_word(count: int | None, word: str) -> tuple[int, tuple[str, int]]:
    """The user's function of W1: from state and record to state and output."""
    count = (count or 0) + 1
    return count, (word, count)


def increment(number: int) -> int:
    """The first user's function of W2."""
    return number + 1


def is_even(number: int) -> bool:
    """The second."""
    return number % 2 == 0


def double(number: int) -> int:
    """The third."""
    return number * 2


def plain_w1(records: int) -> tuple[float, dict[str, int], int]:
    """A keyed count: seconds, the counts, and the number of calls of the sink."""
    state: dict[str, int] = {}
    sink, box = make_sink()
    started = perf_counter()
    for word in islice(cycle(WORDS), records):
        count, output = count_word(state.get(word), word)
        state[word] = count
        sink(output)
    return perf_counter() - started, state, box[0]


def plain_w2(records: int) -> tuple[float, int]:
    """Map, filter, map: seconds, and the number of calls of the sink."""
    prepare_numbers(records)
    sink, box = make_sink()
    started = perf_counter()
    for number in islice(NUMBERS, records):
        value = increment(number)
        if is_even(value):
            sink(double(value))
    return perf_counter() - started, box[0]
