"""Are the committed rows what a single pass over the text counts?

The count here shares nothing with the engine or with the demo's job: it opens the files itself and walks through each
one's text once.  Running counts imply a multiset of rows, ``(word, 1)`` to ``(word, count)`` for each word.  The
difference is the size of the symmetric difference between that multiset and the one of the rows that were committed,
so that a row that is lost, doubled or wrong counts, and none can make up for another.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

__all__ = ("Comparison", "Text", "compare", "count_text", "rows_of")


@dataclass(frozen=True, slots=True)
class Text:
    """What a single pass finds."""

    files: int
    lines: int
    counts: Counter[str]


@dataclass(frozen=True, slots=True)
class Comparison:
    """How rows differ from what a count implies; ``examples`` are a few of those that do."""

    difference: int
    lost: int
    surplus: int
    examples: tuple[str, ...]


def count_text(paths: Sequence[str]) -> Text:
    """Count words, which are runs of letters, whatever their case."""
    counts: Counter[str] = Counter()
    lines = 0
    for path in paths:
        text = Path(path).read_bytes().decode("utf-8", "replace")
        lines += text.count("\n") + (not text.endswith("\n") and text != "")
        letters = "".join([letter if letter.isalnum() and not letter.isdecimal() else " " for letter in text])
        counts.update(word.lower() for word in letters.split())
    return Text(len(paths), lines, counts)


def rows_of(folder: Path) -> list[tuple[str, int]]:
    """The rows that are committed in a folder; hidden names are not."""
    rows: list[tuple[str, int]] = []
    for path in sorted(folder.glob("[!.]*")):
        for line in path.read_text(encoding="utf-8").split("\n")[:-1]:
            word, _, count = line.partition("\t")
            rows.append((word, int(count)))
    return rows


def compare(rows: Iterable[tuple[str, int]], counts: Counter[str]) -> Comparison:
    """Compare committed rows with those that a count implies."""
    left = Counter(rows)
    lost = surplus = 0
    examples: list[str] = []
    for word, count in counts.items():
        for n in range(1, count + 1):
            found = left.pop((word, n), 0)
            if found != 1:
                lost += found == 0
                surplus += max(0, found - 1)
                examples.append(f"{word!r} {n} is there {found} times instead of once")
    for (word, n), found in left.items():
        surplus += found
        examples.append(f"{word!r} {n} is there and should not be")
    return Comparison(lost + surplus, lost, surplus, tuple(examples[:5]))
