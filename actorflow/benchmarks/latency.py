"""How late is the loop, when it is idle and when it works hardest?

* **idle**: one record through an inbox, over a keyed exchange, to an idle sink; from its sending to the sink's
  function.
* **stall**: how late a probe is woken while a million keys are updated flat out and snapshots of them are taken and
  written (``stall.py``), with integers and with small lists as values, pinned to one core and free on two.  The same
  probe over an idle loop runs beside and is printed as ``machine``, for machines stall by themselves.  The best of
  three runs of a variant counts; what is printed is the worst variant.
* **snapshot_loop_s**: the most of the loop's time that one of these snapshots took: its instant, its encoding, and
  folding away what it left behind.
"""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from time import perf_counter
from typing import Any

import actorflow as af
from actorflow.benchmarks.plain import WORDS, count_word, key_of
from actorflow.benchmarks.probe import quantile
from actorflow.benchmarks.stall import Called
from actorflow.connectors.inbox import Inbox
from actorflow.runtime.real_world import real_world

__all__ = ("MOST_ROUNDS", "VARIANTS", "Sizes", "idle_latency", "measure", "measure_stalls")

MOST_ROUNDS = 3
"""The best of so many runs counts."""

VARIANTS = {
    "integers, one core": ("integers", 1),
    "integers, two cores": ("integers", 2),
    "lists, one core": ("lists", 1),
    "lists, two cores": ("lists", 2),
}

BARS_MS = (20.0, 50.0)
"""What p99.9 and the longest stall must stay under; by how much of these they take, the best run is chosen."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sizes:
    """How much is measured; tests take less."""

    idle_samples: int = 2_000
    seconds: float = 30.0
    keys: int = 1_000_000
    checkpoints: int = 5
    every_s: float = 4.0


def measure(*, rounds: int = MOST_ROUNDS, sizes: Sizes | None = None, tell: Callable[[str], None]) -> dict[str, Any]:
    """Measure all; ``tell`` is given a line after each run."""
    sizes = sizes or Sizes()
    idle = asyncio.run(idle_latency(sizes.idle_samples))
    tell(f"idle: p50 {idle['p50']} ms, p99 {idle['p99']} ms")
    variants: dict[str, dict[str, Any]] = {}
    for name, (values, cores) in VARIANTS.items():
        runs = []
        for number in range(1, rounds + 1):
            run = measure_stalls(values=values, cores=cores, sizes=sizes)
            runs.append(run)
            tell(
                f"{name}, run {number} of {rounds}: p99.9 {run['p99_9']} ms, max {run['max']} ms"
                f" (machine {run['machine']['p99_9']} and {run['machine']['max']}),"
                f" {run['checkpoints']} checkpoints, {max(run['snapshot_loop_s'])} s of the loop for one"
            )
        variants[name] = min(runs, key=_badness)
    worst = max(variants.values(), key=_badness)
    return {
        "idle_ms": idle,
        "stall_ms": {
            "p99_9": max(run["p99_9"] for run in variants.values()),
            "max": max(run["max"] for run in variants.values()),
            "machine": worst["machine"],
        },
        "snapshot_loop_s": max(max(run["snapshot_loop_s"]) for run in variants.values()),
        "variants": variants,
    }


def _badness(run: dict[str, Any]) -> float:
    badness: float = max(run["p99_9"] / BARS_MS[0], run["max"] / BARS_MS[1])
    return badness


async def idle_latency(samples: int) -> dict[str, float]:
    """Send records one by one, each when the one before has arrived and the loop has been idle; milliseconds."""
    inbox = Inbox(str)
    arrived_at = 0.0
    arrived = asyncio.Event()

    def arrive(_output: Any) -> None:
        nonlocal arrived_at
        arrived_at = perf_counter()
        arrived.set()

    job = af.Job("idle")
    (
        job.read(inbox, name="inbox")
        .key_by(key_of)
        .stateful_map(count_word, name="count")
        .write(Called(arrive), name="sink")
    )
    late_ms: list[float] = []
    async with af.Environment(world=real_world(owns_process=True)).run(job):
        for index in range(-100, samples):
            await asyncio.sleep(0.002)
            arrived.clear()
            sent_at = perf_counter()
            inbox.send_nowait(WORDS[index])
            await arrived.wait()
            if index >= 0:
                late_ms.append((arrived_at - sent_at) * 1_000)
        inbox.close()
    return {"p50": round(quantile(late_ms, 0.5), 3), "p99": round(quantile(late_ms, 0.99), 3)}


def measure_stalls(*, values: str, cores: int, sizes: Sizes) -> dict[str, Any]:
    """Run the load in a process of its own, and the idle loop in another beside it."""
    module = (sys.executable, "-m", "actorflow.benchmarks.stall")
    load_of = ("--values", values, "--cores", cores, "--keys", sizes.keys)
    until = ("--seconds", sizes.seconds, "--checkpoints", sizes.checkpoints, "--every", sizes.every_s)
    with subprocess.Popen([*module, "load", *map(str, load_of + until)], stdout=subprocess.PIPE, text=True) as load:
        assert load.stdout is not None
        first = load.stdout.readline().strip()
        if first != "ready":
            raise RuntimeError(f"the process under load said {first!r} and ended with {load.wait()}; see stderr")
        with subprocess.Popen([*module, "idle"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as idle:
            said = load.stdout.readline()
            machine, _ = idle.communicate()
    if load.returncode or idle.returncode:
        raise RuntimeError(f"a process ended with {load.returncode or idle.returncode}; see stderr")
    figures: dict[str, Any] = json.loads(said)
    figures["machine"] = json.loads(machine)
    return figures
