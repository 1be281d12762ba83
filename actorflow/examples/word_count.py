"""Count the words of a text.

    actorflow run actorflow.examples.word_count:word_count
    actorflow run actorflow.examples.word_count:word_count -- --path book.txt --output counts

or, without the command line, ``python -m actorflow.examples.word_count book.txt counts``.
"""

from __future__ import annotations

import sys
from functools import lru_cache

import actorflow as af
from actorflow.connectors import console, files, generator

__all__ = ("word_count",)


def word_count(path: str = "", output: str = "") -> af.Job:
    """Count words, whatever their case: each word that is read gives one row, the word and how often it came so far.

    --path is the text to read: a file (plain or gzip), a folder of files, or a pattern such as 'logs/*.txt'.  Without
    it about 10,000 made-up words are read, the same ones every time and everywhere.

    --output is a folder for the rows, one per line, word and count with a tab between them.  Each row is written
    exactly once, even if this process is killed and started again.  Without it the rows are printed, at least once
    each.
    """
    job = af.Job("word-count")
    made = generator.generate(made_up, records=1_000, splits=4, chunk_records=8)
    lines = files.lines(path, errors="replace") if path else made
    rows = files.write(output, format=row) if output else console.lines(format=row)
    (
        job.read(lines, name="lines")
        .flat_map(str.split)
        .key_by(str.lower)
        .count(name="count")  # a running count: (word, n) for each word
        .write(rows, name="rows")
    )
    return job


def row(counted: tuple[str, int]) -> str:
    """One line of output."""
    word, count = counted
    return f"{word}\t{count}"


@lru_cache(maxsize=1_000)  # a job that is restarted makes the same lines again
def made_up(index: int) -> str:
    """Line ``index`` of a text that nobody wrote: ten words, some of them much more frequent than others."""
    draws = [generator.draw(index, place) for place in range(10)]
    return " ".join(_word(int(draw * draw * draw * 2_000)) for draw in draws).capitalize()


def _word(rank: int) -> str:
    """The word of a rank; frequent ones are short."""
    return (_word(rank // 25 - 1) if rank >= 25 else "") + "bdklmrst"[rank % 25 % 8] + "aeiou"[rank % 25 % 5]


if __name__ == "__main__":
    af.run(word_count(*sys.argv[1:]))
