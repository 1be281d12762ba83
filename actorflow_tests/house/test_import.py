"""Importing is cheap: whoever only builds a job does not wait for drivers and command lines."""

from __future__ import annotations

import json
import subprocess
import sys

from actorflow_tests.house.sources import REPOSITORY

AT_MOST_MS = 150
ROUNDS = 10
"""The best of so many counts; the machine may be busy with something else."""
HEAVY = ("aiobotocore", "aiofiles", "asyncio", "lmdb", "rich", "typer")

PROGRAM = """
import json, sys, time
began = time.process_time()
import actorflow
took_ms = (time.process_time() - began) * 1_000
print(json.dumps({"took_ms": took_ms, "modules": sorted(sys.modules)}))
"""


def fresh_import() -> tuple[float, set[str]]:
    """Import the package in a new process; return the milliseconds and the modules that were loaded.

    It is the processor's time that counts: importing does nothing but compute, so on a quiet machine the clock on the
    wall says the same, and on a busy one it says how busy that is.
    """
    ran = subprocess.run(
        [sys.executable, "-c", PROGRAM], cwd=REPOSITORY, capture_output=True, text=True, timeout=60, check=True
    )
    report = json.loads(ran.stdout)
    return report["took_ms"], set(report["modules"])


def test_importing_takes_less_than_150_ms() -> None:
    best_ms, _ = fresh_import()  # writes the compiled modules
    for _ in range(ROUNDS):
        if best_ms >= AT_MOST_MS:
            best_ms = min(best_ms, fresh_import()[0])

    assert best_ms < AT_MOST_MS


def test_importing_loads_no_driver_and_no_command_line() -> None:
    _, modules = fresh_import()

    assert [] == [name for name in HEAVY if name in modules]
