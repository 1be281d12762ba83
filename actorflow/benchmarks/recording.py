"""What does it cost to record a run, with the job that counts two million words (W1)?

Without and with ``--record`` take turns, each in a loop of its own in this process, and what is compared is this
process's own time, from before the job is built to after it has ended.  Nothing is written down of a run that is not
recorded, so that is the other half of the claim: without ``--record`` the cost is none.

* **ratio**: recorded to not recorded, the median over rounds; ``best_ratio`` compares the best of each, which says more
  on a machine that others use too.
* **bytes**: how long the recording is.  The words come from a list in memory, which a replay reads again; a source that
  reaches the outside has its records written down one by one.

This module stands where a user stands: whoever asks says how a job is run and how it is recorded.
"""

from __future__ import annotations

import gc
import tempfile
from collections.abc import Callable
from pathlib import Path
from statistics import median
from time import process_time

import actorflow as af
from actorflow.benchmarks import plain
from actorflow.connectors import memory
from actorflow.connectors.function import call

__all__ = ("measure",)

RECORDS = 2_000_000


def w1(records: int, sink: Callable[[object], None]) -> af.Job:
    """W1, with words that are read from memory."""
    job = af.Job("w1")
    words = job.read(memory.source(plain.WORDS, records=records, chunk_records=len(plain.WORDS)), name="words")
    words.key_by(plain.key_of).stateful_map(plain.count_word, name="count").write(call(sink), name="sink")
    return job


def measure(
    run: Callable[[af.Job], None],
    record: Callable[[af.Job, Path], None],
    *,
    tell: Callable[[str], None],
    rounds: int = 5,
    records: int = RECORDS,
) -> dict[str, float]:
    """Measure; ``tell`` is given a line after each round.  One round before is not counted."""
    seconds: list[tuple[float, float]] = []
    size = 0
    with tempfile.TemporaryDirectory(prefix="actorflow-bench-") as folder:
        for number in range(max(1, rounds) + 1):
            path = Path(folder) / f"{number}.rec"
            without_s = _timed(records, run)
            with_s = _timed(records, lambda job, path=path: record(job, path))  # type: ignore[misc]  # bound now
            size = path.stat().st_size
            if number:
                seconds.append((without_s, with_s))
                tell(f"round {number} of {rounds}: {without_s:.3f} s, recorded {with_s:.3f} s")
    best = min(one for one, _ in seconds), min(other for _, other in seconds)
    return {
        "W1_s": round(median(one for one, _ in seconds), 3),
        "recorded_s": round(median(other for _, other in seconds), 3),
        "ratio": round(median(other / one for one, other in seconds), 3),
        "best_ratio": round(best[1] / best[0], 3),
        "bytes": size,
    }


def _timed(records: int, run: Callable[[af.Job], None]) -> float:
    counted, box = plain.make_sink()
    gc.collect()
    began = process_time()
    run(w1(records, counted))
    took = process_time() - began
    gc.unfreeze()
    assert box[0] == records, f"the sink was called {box[0]} times instead of {records}"
    return took
