"""``actorflow bench``: measure a claim on this machine, and print the figures."""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from functools import partial
from typing import Any

from actorflow.cli.exits import Exit, UsageMistake

__all__ = ("run_bench",)

NAMES = ("throughput", "latency", "memory", "simulation", "recording")


def run_bench(name: str, *, as_json: bool, rounds: int, **sizes: int) -> int:
    """Run the benchmark ``name``; progress goes to stderr."""
    figures: dict[str, Any]
    if name == "throughput":
        from actorflow.benchmarks import throughput

        figures = throughput.measure(rounds=rounds, tell=_tell)
    elif name == "latency":
        from actorflow.benchmarks import latency

        figures = latency.measure(rounds=min(rounds, latency.MOST_ROUNDS), tell=_tell)
    elif name == "memory":
        from actorflow.benchmarks import memory

        figures = memory.measure(tell=_tell, **sizes)
    elif name == "simulation":
        figures = _simulation(rounds, **sizes)
    elif name == "recording":
        figures = _recording(rounds, **sizes)
    else:
        raise UsageMistake(f"there is no benchmark {name!r}: write one of {', '.join(NAMES)}")
    if as_json:
        print(json.dumps(figures), flush=True)
    else:
        _show(figures)
    return Exit.DONE


def _simulation(rounds: int, **sizes: int) -> dict[str, Any]:
    from actorflow.benchmarks import simulation
    from actorflow.cli.demo_life import environment
    from actorflow.cli.targets import build_job
    from actorflow.simulation.course import course_of_draw
    from actorflow.simulation.running import many, run_course
    from actorflow.simulation.subject import Subject
    from actorflow.simulation.swarm import draw

    subject = Subject(lambda: build_job(simulation.TARGET, ()))

    def storm(seed: int, records: int | None) -> int:
        drawn = draw(seed, subject.shape)
        if records is not None:  # a buffer takes as much less time as there is less in it
            batch_us = max(1, drawn.batch_us * records // drawn.knobs.records)
            drawn = replace(drawn, knobs=replace(drawn.knobs, records=records), batch_us=batch_us)
        return run_course(subject, seed, course_of_draw(drawn, storm=True), storm=True).steps

    with many():
        return simulation.measure(
            partial(storm, records=None),
            partial(storm, records=1),
            rounds=rounds,
            tell=_tell,
            environment=environment(),
            **sizes,
        )


def _recording(rounds: int, **sizes: int) -> dict[str, Any]:
    import asyncio

    from actorflow.benchmarks import recording
    from actorflow.config import Settings
    from actorflow.runtime.environment import Environment, wait_or_signal
    from actorflow.runtime.real_world import real_world
    from actorflow.simulation.recording import Start, record

    settings, start = Settings(), Start(target="w1:w1", arguments=(), layers=())

    def run(job: Any) -> None:
        async def main() -> None:
            async with Environment(settings=settings, world=real_world(owns_process=True)).run(job) as handle:
                await wait_or_signal(handle)

        asyncio.run(main())

    def recorded(job: Any, path: Any) -> None:
        record(path, job, settings, start, redact=False, observe=lambda _: None, begun=lambda _: None)

    return recording.measure(run, recorded, rounds=rounds, tell=_tell, **sizes)


def _tell(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


def _show(figures: object, indent: str = "") -> None:
    """Print nested figures, one a line."""
    if not isinstance(figures, dict):
        print(f"{indent}{figures}")
        return
    for name, value in figures.items():
        if isinstance(value, dict):
            print(f"{indent}{name}")
            _show(value, f"{indent}  ")
        else:
            print(f"{indent}{name:<24} {value:,}" if isinstance(value, int | float) else f"{indent}{name:<24} {value}")
