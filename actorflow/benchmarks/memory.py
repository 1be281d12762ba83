"""Does a job that goes on and on grow?

10,000,000 records of W1 with a checkpoint each second to disk; the process's resident size is looked at all the time.
What it is in the last four fifths, at its highest, is compared with what it was at the end of the first.
"""

from __future__ import annotations

import asyncio
import json
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import actorflow as af
from actorflow.benchmarks.plain import make_sink
from actorflow.benchmarks.throughput import Stopwatch, w1_job
from actorflow.runtime.real_world import real_world

__all__ = ("figures_of", "main", "measure", "resident_mb", "run")

RECORDS = 10_000_000
EVERY = timedelta(seconds=1)
LOOK_EVERY_S = 0.01


def resident_mb() -> float:
    """How much memory of this process is in the machine's, in MB."""
    try:
        pages = int(Path("/proc/self/statm").read_text().split()[1])
    except (OSError, IndexError):
        import resource

        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss  # where nothing better is told: the highest so far
        return peak / (1 << 20) if sys.platform == "darwin" else peak / (1 << 10)
    import os

    return pages * os.sysconf("SC_PAGE_SIZE") / (1 << 20)


async def run(records: int, every: timedelta = EVERY) -> dict[str, float]:
    """Run the job in this process's loop and look at the process."""
    sink, box = make_sink()
    job = w1_job(records)(sink, Stopwatch())
    folder = tempfile.mkdtemp(prefix="actorflow-bench-")
    sizes: list[tuple[int, float]] = []
    environment = af.Environment(
        checkpoints=af.Checkpoints(storage=folder, every=every), world=real_world(owns_process=True)
    )
    try:
        async with environment.run(job) as handle:
            looking = asyncio.ensure_future(_look(sizes, box))
            await handle.wait()
            sizes.append((box[0], resident_mb()))
            looking.cancel()
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    assert box[0] == records, f"the sink was called {box[0]} times instead of {records}"
    return figures_of(sizes, records)


async def _look(sizes: list[tuple[int, float]], box: list[int]) -> None:
    while True:
        sizes.append((box[0], resident_mb()))
        await asyncio.sleep(LOOK_EVERY_S)


def figures_of(sizes: list[tuple[int, float]], records: int) -> dict[str, float]:
    """Compare sizes, each told with how many records had arrived."""
    after = [size for at, size in sizes if at >= records / 5]
    at_first, highest = after[0], max(after)
    return {
        "at_20_percent_mb": round(at_first, 2),
        "highest_after_mb": round(highest, 2),
        "growth_percent": round((highest / at_first - 1) * 100, 2),
    }


def measure(*, tell: Callable[[str], None], records: int = RECORDS) -> dict[str, float]:
    """Run it in a process of its own, which nothing else has filled before."""
    tell(f"{records:,} records with a checkpoint each second")
    command = [sys.executable, "-m", "actorflow.benchmarks.memory", str(records)]
    said = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout
    figures: dict[str, float] = json.loads(said)
    return figures


def main() -> None:
    """Run as a process of its own."""
    print(json.dumps(asyncio.run(run(int(sys.argv[1])))), flush=True)


if __name__ == "__main__":
    main()
