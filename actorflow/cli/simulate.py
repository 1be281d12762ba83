"""``actorflow simulate``: a job under seeded storms, on virtual time, compared with its calm run.

Seeds are independent, so several processes share them: each is this very command with ``--part``, and tells one line of
JSON for each of its seeds.  They are counted in order of seeds, whoever ran them.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import redirect_stdout
from typing import Any, TextIO

from actorflow.cli.demo_life import environment
from actorflow.cli.exits import Exit, UsageMistake
from actorflow.cli.targets import build_job
from actorflow.model.journal import Line, lasting_fields
from actorflow.simulation.oracle import Report, Run, SeedFailed, many, run_seed, storm_run
from actorflow.simulation.subject import Subject
from actorflow.simulation.swarm import draw

__all__ = ("simulate_target",)

A_PROCESS_PAYS_FROM = 10
"""So many seeds are worth a process of their own."""


def simulate_target(
    target: str,
    arguments: Sequence[str],
    *,
    seed: int | None,
    seeds: int,
    as_json: bool,
    jobs: int | None = None,
    part: str = "",
) -> int:
    """Run one seed and print its journal, or many and print what they came to."""
    out = sys.stdout
    with redirect_stdout(sys.stderr), many():  # the job may print
        subject = Subject(lambda: build_job(target, arguments))  # what can't be simulated is told once, not per seed
        if part:
            return _part(subject, seeds, part, out)
        if seed is not None:
            told = _one(subject, seed, None if as_json else out)
        else:
            told = _many(subject, target, arguments, seeds, _processes(jobs, seeds))
        report = Report()
        for one in told:
            _count(report, one, target)
            if seed is None and sys.stderr.isatty():
                print(f"\r{report.seeds} of {seeds} seeds, {len(report.failures)} failures", end="", file=sys.stderr)
        if seed is None and sys.stderr.isatty():
            print(file=sys.stderr)
    if as_json:
        print(json.dumps(_result(report)), flush=True)
    else:
        for failed, why in report.failures:
            print(f"seed {failed}: {why}")
        print(f"{report.seeds} seeds, {len(report.failures)} failures, digest {report.digest}")
        print(f"faults {dict(sorted(report.faults.items()))}")
        print(f"kills at {dict(sorted(report.kills_at.items()))}")
        print(f"seeds that killed in two lives, one after the other: {report.killed_again}")
    return Exit.FAILED if report.failures else Exit.DONE


# ── one seed ─────────────────────────────────────────────────────────────────────────────────


def _one(subject: Subject, seed: int, out: TextIO | None) -> Iterator[dict[str, Any]]:
    print(f"seed {seed} drew {draw(seed, subject.shape)}", file=sys.stderr)
    if out is not None:
        try:
            lines: Sequence[Line] = storm_run(subject, seed).lines
        except SeedFailed as failure:  # what it is is told below
            lines = failure.lines
        for line in lines:
            print(_text(line), file=out)
    yield _told(subject, seed)


def _told(subject: Subject, seed: int) -> dict[str, Any]:
    """Run a seed and tell what it came to, in values that JSON holds."""
    try:
        run: Run = run_seed(subject, seed)
    except SeedFailed as failure:
        return {"seed": seed, "failure": str(failure)}
    return {
        "seed": seed,
        "faults": dict(run.faults),
        "kills_at": dict(run.kills_at),
        "again": run.again,
        "digest": run.digest,
    }


# ── many ─────────────────────────────────────────────────────────────────────────────────────


def _processes(jobs: int | None, seeds: int) -> int:
    if jobs is None:
        jobs = min(len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1, 64)
        jobs = min(jobs, max(1, seeds // A_PROCESS_PAYS_FROM))
    return min(jobs, seeds)


def _many(
    subject: Subject, target: str, arguments: Sequence[str], seeds: int, processes: int
) -> Iterator[dict[str, Any]]:
    """Run seeds 1, 2 … in so many processes; what they came to, in order."""
    if processes == 1:
        for seed in range(1, seeds + 1):
            yield _told(subject, seed)
        return
    command = [sys.executable, "-m", "actorflow", "simulate", target, "--seeds", str(seeds)]
    children = [
        subprocess.Popen(  # noqa: S603 - this very program
            [*command, "--part", f"{number}/{processes}", "--", *arguments],
            env=environment(),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            text=True,
            encoding="utf-8",
        )
        for number in range(1, processes + 1)
    ]
    try:
        for seed in range(1, seeds + 1):
            child = children[(seed - 1) % processes]
            assert child.stdout is not None
            if not (line := child.stdout.readline()):
                raise UsageMistake(f"the process that ran seed {seed} ended by itself, with {child.wait()}")
            yield json.loads(line)
    finally:
        for child in children:
            child.kill()
            child.communicate()


def _part(subject: Subject, seeds: int, part: str, out: TextIO) -> int:
    """Run every so-manieth seed, for the process that counts them."""
    number, _, processes = part.partition("/")
    for seed in range(int(number), seeds + 1, int(processes)):
        print(json.dumps(_told(subject, seed)), file=out, flush=True)
    return Exit.DONE


# ── telling ──────────────────────────────────────────────────────────────────────────────────


def _count(report: Report, told: dict[str, Any], target: str) -> None:
    report.seeds += 1
    if "failure" in told:
        seed = told["seed"]
        report.failures.append((seed, f"{told['failure']}; see it with: actorflow simulate {target} --seed {seed}"))
        return
    report.faults.update(told["faults"])
    report.kills_at.update(told["kills_at"])
    report.killed_again += told["again"]
    report.digests.append(told["digest"])


def _text(line: Line) -> str:
    fields = " ".join(f"{name}={value}" for name, value in lasting_fields(line.entry))
    return f"{line.at_ms:>9} ms  {line.process or '-':<10} {line.name:<24} {fields}"


def _result(report: Report) -> dict[str, object]:
    return {
        "seeds": report.seeds,
        "faults": dict(sorted(report.faults.items())),
        "kills_at": dict(sorted(report.kills_at.items())),
        "failures": len(report.failures),
        "digest": report.digest,
    }
