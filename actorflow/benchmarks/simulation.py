"""How fast is the simulator, with the example that counts words in storms?

* **steps_per_s**: steps of the simulated loop per second of this process's own time, over whole storms: building the
  job, each life, reading what an outsider sees, and the digest.  One core; the median over rounds.  The storms are
  those that the swarm draws, sizes and all.  With buffers of one record a second holds several times as many steps,
  as less of it goes into words, snapshots and what surrounds a run: that figure is told on stderr, beside it.
* **storms_s**: how long ``actorflow simulate`` takes for 200 seeds on all cores, from its start to its end by the clock
  on the wall.  Each seed is a calm run and two storms whose digests must agree.

This module stands where a user stands and knows no room of the simulator: whoever asks says how one storm is run.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Mapping
from statistics import median
from time import perf_counter, process_time

__all__ = ("TARGET", "measure")

TARGET = "actorflow.examples.word_count:word_count"
"""What is simulated: about 10,000 words."""

STORMS_A_ROUND = 16

Storm = Callable[[int], int]
"""Runs the storm of a seed, and returns how many steps it took."""


def measure(
    drawn: Storm,
    fine: Storm,
    *,
    tell: Callable[[str], None],
    rounds: int = 5,
    storms: int = STORMS_A_ROUND,
    seeds: int = 200,
    environment: Mapping[str, str] | None = None,
) -> dict[str, float]:
    """Measure: ``drawn`` are the storms of the swarm, ``fine`` the same with buffers of one record.

    ``tell`` is given a line after each round, ``environment`` is that of the processes that share the seeds.  Raises
    ``RuntimeError`` when a seed fails, because then there is nothing to be measured.
    """
    drawn(1)  # what is loaded and remembered at the first time is not measured
    rates = []
    for number in range(1, max(1, rounds) + 1):
        steps, seconds = _run(drawn, storms)
        rates.append(steps / seconds)
        tell(f"round {number} of {rounds}: {steps:,} steps in {storms} storms, {rates[-1]:,.0f} per second")
    steps, seconds = _run(fine, storms)
    tell(f"with buffers of one record: {steps:,} steps in {storms} storms, {steps / seconds:,.0f} per second")
    seconds = time_seeds(seeds, environment)
    tell(f"{seeds} seeds, each calm once and in its storm twice, took {seconds:.1f} s")
    return {"steps_per_s": round(median(rates)), "storms_s": round(seconds, 1)}


def _run(storm: Storm, storms: int) -> tuple[int, float]:
    """Run the storms of the first seeds: how many steps, in how many seconds of this process's own."""
    began = process_time()
    steps = sum(storm(seed) for seed in range(1, storms + 1))
    return steps, process_time() - began


def time_seeds(seeds: int, environment: Mapping[str, str] | None = None) -> float:
    """Return how many seconds the command takes for seeds 1 to ``seeds``; its progress goes to stderr."""
    command = [sys.executable, "-m", "actorflow", "simulate", TARGET, "--seeds", str(seeds), "--json"]
    began = perf_counter()
    done = subprocess.run(
        command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, env=environment, text=True, check=False
    )
    seconds = perf_counter() - began
    told = json.loads(done.stdout) if done.returncode in (0, 1) and done.stdout else {}
    if done.returncode or told.get("seeds") != seeds or told.get("failures") != 0:
        raise RuntimeError(f"{seeds} seeds came to {told or 'nothing'}, with exit code {done.returncode}")
    return seconds
