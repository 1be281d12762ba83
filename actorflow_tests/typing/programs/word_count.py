"""The first program of README, and what each step of it holds."""

from __future__ import annotations

from typing import assert_type

import actorflow as af
from actorflow.connectors import console, files


def job() -> af.Job:
    counting = af.Job("word-count")
    lines = counting.read(files.lines("book.txt"), name="lines")
    assert_type(lines, af.Stream[str])
    words = lines.flat_map(str.split)
    assert_type(words, af.Stream[str])
    by_word = words.key_by(str.lower)
    assert_type(by_word, af.KeyedStream[str, str])
    counts = by_word.count(name="count")
    assert_type(counts, af.Stream[tuple[str, int]])
    counts.filter(lambda counted: counted[1] > 1).write(console.lines(), name="print")
    return counting
