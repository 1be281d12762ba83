"""``actorflow simulate``: a job under seeded storms, on virtual time, compared with its calm run."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Sequence

from actorflow.cli.exits import Exit
from actorflow.cli.targets import build_job
from actorflow.dataflow.job import Job
from actorflow.model.journal import Line, lasting_fields
from actorflow.simulation.oracle import Report, SeedFailed, add, run_seed, storm_run
from actorflow.simulation.swarm import draw

__all__ = ("simulate_target",)


def simulate_target(
    target: str, arguments: Sequence[str], *, seed: int | None, seeds: int, as_json: bool
) -> int:
    """Run one seed and print its journal, or many and print what they came to."""

    def build() -> Job:
        return build_job(target, arguments)

    build()  # a target that can't be built is told once, and not per seed
    report = Report()
    if seed is not None:
        _one(build, seed, report, as_json=as_json)
    else:
        _many(build, seeds, report, target)
    if as_json:
        print(json.dumps(_result(report)), flush=True)
    else:
        for failed, why in report.failures:
            print(f"seed {failed}: {why}")
        print(f"{report.seeds} seeds, {len(report.failures)} failures, digest {report.digest}")
        print(f"faults {dict(sorted(report.faults.items()))}")
        print(f"kills at {dict(report.kills_at)}")
    return Exit.FAILED if report.failures else Exit.DONE


def _one(build: Callable[[], Job], seed: int, report: Report, *, as_json: bool) -> None:
    print(f"seed {seed} drew {draw(seed).knobs}", file=sys.stderr)
    if not as_json:
        for line in storm_run(build, seed).lines:
            print(_text(line))
    try:
        add(report, run_seed(build, seed))
    except SeedFailed as failure:
        report.seeds += 1
        report.failures.append((seed, str(failure)))


def _many(build: Callable[[], Job], seeds: int, report: Report, target: str) -> None:
    for seed in range(1, seeds + 1):
        try:
            add(report, run_seed(build, seed))
        except SeedFailed as failure:
            report.seeds += 1
            report.failures.append((seed, f"{failure}; see it with: actorflow simulate {target} --seed {seed}"))
        if sys.stderr.isatty():
            print(f"\r{seed} of {seeds} seeds, {len(report.failures)} failures", end="", file=sys.stderr)
    if sys.stderr.isatty():
        print(file=sys.stderr)


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
