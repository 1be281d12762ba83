"""Which combination comes next, so that few seeds meet many of them?

A seed has something to choose in many respects at once: where it kills, what else goes wrong, and when, which knobs it
turns.  Faults that matter are mostly a *pair*: a lost answer and a kill, another parallelism and a kill.  Drawn by
chance, many pairs come late: to meet each of n takes about n · ln n seeds.  So seeds are the rows of a table in
which any two columns meet all their pairs as early as can be:

* the step of the first kill goes round, seed by seed;
* every other column is a line over the field of the numbers modulo 31: in row ``31 a + b`` a column of slope ``k``
  holds ``a + k b``, and one column holds ``b``.  Two different lines cross once, so over 961 seeds each pair of values
  of any two columns comes once, and over any 31 rows from a multiple of 31 on each value of a column comes once;
* which fault strikes is ``b``: 31 and the 15 steps having no factor in common, each fault meets each step within 465
  seeds.  The columns that matter most have slopes with which each of their values meets each step within 961;
* a second kill comes in every third seed, and goes round against the first: after 675 seeds each pair of steps has
  been there.

Every 961 seeds the columns are dealt anew, so pairs of pairs meet too.

A guide is a function of the seed's number alone and remembers nothing: a seed replays by itself, on any machine, in
any order.  :class:`Luck` has the same face and draws by chance; it is there to be compared with.
"""

from __future__ import annotations

from typing import Protocol
from zlib import crc32

from actorflow.simulation.chance import Chance, mix

__all__ = ("COLUMNS", "PRIME", "Choices", "Guide", "Luck")

PRIME = 31
"""How many values a column has; a choice among fewer shares them out."""

COLUMNS = {
    "fault": 0,
    # These meet every step within 961 seeds.
    "when": 16,
    "another": 24,
    "another when": 30,
    "pair": 6,
    "occurrence": 12,
    "end": 13,
    "power": 28,
    "parallelism": 19,
    "rescaled to": 4,
    "storage": 18,
    "inline": 8,
    "timeout": 10,
    "retained": 26,
    "tolerable": 22,
    "count": 2,
    # And these nine of ten of them.
    "every": 17,
    "pause": 11,
    "concurrent": 9,
    "per_channel": 7,
    "floating": 27,
    "records": 23,
    "operator": 5,
}
"""What is chosen by the table, and the slope of its line; 0 stands for ``b`` itself.

Slope 1 is never to be used: 31 being 1 modulo 15, it goes round with the steps.
"""

_SECOND_EVERY = 3


class Choices(Protocol):
    """Who chooses for a seed."""

    def level(self, column: str, count: int) -> int:
        """Choose one of 0 … ``count`` - 1, at most 31 of them, in one respect."""

    def steps(self, count: int) -> tuple[int, int | None]:
        """Choose the step of the first kill and, for some seeds, that of a kill in the life that follows."""


class Guide:
    """What the table holds for a seed."""

    def __init__(self, seed: int) -> None:
        self._seed = seed
        self._block, row = divmod(seed, PRIME * PRIME)
        self._a, self._b = divmod(row, PRIME)

    def level(self, column: str, count: int) -> int:
        assert 0 < count <= PRIME, f"column {column!r} has {PRIME} values, not {count}"
        key = mix(self._block, crc32(column.encode()))
        slope = COLUMNS[column]
        value = self._b if slope == 0 else self._a + slope * self._b
        # Dealt anew in each block: a line stays a line when its values are stretched and moved.
        return (value * (1 + key % (PRIME - 1)) + (key >> 32)) % PRIME * count // PRIME

    def steps(self, count: int) -> tuple[int, int | None]:
        turn, first = divmod(self._seed, count)
        if (turn + first) % _SECOND_EVERY:
            return first, None
        return first, (turn // _SECOND_EVERY + first) % count


class Luck:
    """The same choices, by chance."""

    def __init__(self, seed: int) -> None:
        self._chance = Chance(seed, "luck")

    def level(self, column: str, count: int) -> int:
        return self._chance.below(column, count)

    def steps(self, count: int) -> tuple[int, int | None]:
        first = self._chance.below("first", count)
        again = self._chance.below("again", _SECOND_EVERY) == 0
        return first, self._chance.below("second", count) if again else None
