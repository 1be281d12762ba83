"""The storm run must equal the calm run.

The oracle needs no knowledge of the job.  It runs it once in calm weather and once in a storm, starts the process again
whenever it died (as a service manager would, with the same command line), lets the weather lift, and compares what an
outsider sees in the end: the committed output as a multiset, and the final state per key.  In the calm that follows, the job
must finish within ``CALM_WITHIN_MS``, else it is not alive.

Its limit, said plainly: a job whose result depends on the order of arrival between channels may differ without being wrong.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

from actorflow.abc.connectors import Sink, TransactionalSink
from actorflow.abc.world import World
from actorflow.config import Settings
from actorflow.connectors.files_sink import FileSink
from actorflow.dataflow.job import Job
from actorflow.dataflow.plan import OperatorKind, compile_plan
from actorflow.errors import ActorflowError, InvalidJob
from actorflow.model import journal
from actorflow.model.codec import Codec
from actorflow.protocol.lifecycle import JobStatus
from actorflow.runtime.environment import Environment
from actorflow.runtime.homes import homes_of_process
from actorflow.simulation.digest import canonical, digest_of_digests, journal_digest
from actorflow.simulation.final_state import final_state
from actorflow.simulation.ledger import Ledger
from actorflow.simulation.loop import run as run_simulated
from actorflow.simulation.swarm import PROCESS, Draw, draw
from actorflow.simulation.weather import At, Kill
from actorflow.simulation.world import Ending, Universe

__all__ = ("Report", "Run", "SeedFailed", "calm_run", "check", "run_seed", "storm_run")

MOST_LIVES = 12
"""After so many lives the weather lifts."""

STORM_MS = 120_000
"""After so long the weather lifts."""

CALM_WITHIN_MS = 600_000
"""Within this the job must finish once the weather has lifted."""

RESTARTS_AFTER_MS = 200
"""How long whoever watches the process waits before it starts it again."""


class SeedFailed(AssertionError):  # noqa: N818 - reads as a sentence
    """Raised when a seed's storm does not equal the calm; the message says in what, and how to see it again."""


@dataclass(slots=True)
class Run:
    """What one run came to."""

    output: dict[str, Counter[bytes]]
    state: dict[tuple[str, str, bytes], bytes]
    digest: str
    lives: int
    faults: Counter[str]
    kills_at: Counter[str]
    lines: list[journal.Line] = field(repr=False)
    steps: int = 0


@dataclass(slots=True)
class Report:
    """What many seeds came to."""

    seeds: int = 0
    faults: Counter[str] = field(default_factory=Counter)
    kills_at: Counter[str] = field(default_factory=Counter)
    failures: list[tuple[int, str]] = field(default_factory=list)
    digests: list[str] = field(default_factory=list)

    @property
    def digest(self) -> str:
        """The digest of all seeds, in their order."""
        return digest_of_digests(self.digests)


# ── stand-ins ────────────────────────────────────────────────────────────────────────────────


def with_stand_ins(build: Callable[[], Job]) -> tuple[Job, dict[str, TransactionalSink[Any]], Codec]:
    """Build the job and put ledgers in the place of sinks that the simulator can't run; return its sinks too.

    Raises ``InvalidJob`` for a source that reaches the outside or never ends.
    """
    job = build()
    plan = compile_plan(job)
    codec = Codec(plan.registry)
    for operator in plan.sources():
        if not operator.source.runs_in_simulation:
            raise InvalidJob(
                f"operator {operator.name!r}: its source {type(operator.source).__name__} reaches the outside and can't "
                "run in the simulator; give the job an argument that replaces it, or say runs_in_simulation = True if it "
                "reaches the world only through context.world"
            )
        if not operator.source.bounded:
            raise InvalidJob(
                f"operator {operator.name!r}: its source never ends, so there is no final output to compare; bound it"
            )
    sinks: dict[str, TransactionalSink[Any]] = {}

    def stand_in(name: str, sink: Sink[Any]) -> Sink[Any]:
        if isinstance(sink, FileSink) or (
            isinstance(sink, TransactionalSink)
            and sink.runs_in_simulation
            and not type(sink).__module__.startswith("actorflow.")
        ):
            sinks[name] = sink
            return sink
        ledger = sinks[name] = Ledger(name, codec, sink.parallelism)
        return ledger

    job.replace_sinks(stand_in)
    assert sorted(sinks) == sorted(operator.name for operator in plan.sinks())
    return job, sinks, codec


def operators_of(build: Callable[[], Job]) -> tuple[str, ...]:
    """The operators whose code a storm may fail or slow."""
    plan = compile_plan(build())
    return tuple(
        operator.name
        for vertex in plan.vertices
        for operator in vertex.operators
        if operator.kind not in (OperatorKind.READ, OperatorKind.WRITE)
    )


# ── one run ──────────────────────────────────────────────────────────────────────────────────


async def _life(world: World, build: Callable[[], Job], settings: Settings) -> JobStatus:
    homes_of_process.set({})
    job, _, _ = with_stand_ins(build)
    async with Environment(settings=settings, world=world).run(job) as handle:
        return await handle.wait()


async def _look(world: World, build: Callable[[], Job]) -> dict[str, Counter[bytes]]:
    _, sinks, _ = with_stand_ins(build)
    output = {}
    for name, sink in sinks.items():
        output[name] = Counter(map(_row, await sink.visible(world)))
    return output


_PLAIN = frozenset({str, int, float, bool, bytes, type(None)})


def _row(row: Any) -> bytes:
    """A row as it is compared: equal for equal rows, whatever the process."""
    kind = type(row)
    if kind in _PLAIN or (kind is tuple and _PLAIN.issuperset(map(type, row))):
        return repr(row).encode("utf-8", "surrogatepass")  # the same everywhere, and ten times as fast
    return canonical(row)


async def _run(build: Callable[[], Job], seed: int, drawn: Draw, storm: bool) -> Run:
    universe = Universe(seed, weather=drawn.weather if storm else (), batch_us=drawn.batch_us)
    settings = drawn.knobs.settings()
    state: dict[tuple[str, str, bytes], bytes] = {}
    _, _, codec = with_stand_ins(build)
    job = build()

    def keep_final_state(line: journal.Line) -> None:
        if isinstance(line.entry, journal.CheckpointCompleted) and line.entry.kind == "final":
            state.clear()
            state.update(final_state(universe, settings, job.name, line.entry.checkpoint, codec))

    def kill_at_the_last_moment(line: journal.Line) -> None:
        """Weather that was drawn for a checkpoint that never came strikes at the final one, so that every seed kills."""
        entry = line.entry
        if isinstance(entry, journal.CheckpointTriggered) and entry.kind == "final" and not _kills(universe):
            universe.strike_soon([Kill(At(0), PROCESS, "triggered")], universe.processes[PROCESS])

    universe.subscribe(keep_final_state)
    if storm:
        universe.subscribe(kill_at_the_last_moment)
    lives = 0
    second = list(drawn.second) if storm else []
    calm_since: int | None = None if storm else 0
    while True:
        process = await universe.start(PROCESS, _life, build, settings)
        ended = asyncio.ensure_future(process.wait())
        while not ended.done():
            await asyncio.wait([ended], timeout=1.0)
            calm_since = _weather_lifts(universe, lives, calm_since)
            if not ended.done() and calm_since is not None and universe.now_ms() - calm_since > CALM_WITHIN_MS:
                raise SeedFailed(f"the job does not finish within {CALM_WITHIN_MS} ms of calm weather")
        outcome = ended.result()
        lives += 1
        if outcome.ending is Ending.RETURNED:
            assert outcome.value is JobStatus.FINISHED, f"the job is {outcome.value}"
            assert not storm or lives > 1, "every storm kills at least once"
            break
        if outcome.ending is Ending.RAISED and not isinstance(outcome.error, ActorflowError):
            raise SeedFailed(f"the process ended with {outcome.error!r}") from outcome.error
        if outcome.ending is Ending.RAISED and calm_since is not None:
            raise SeedFailed(f"the job failed in calm weather: {outcome.error}") from outcome.error
        for fault in second:
            universe.expect(fault)
        second.clear()
        await asyncio.sleep(RESTARTS_AFTER_MS / 1_000)
        calm_since = _weather_lifts(universe, lives, calm_since)
    outsider = await universe.start("outsider", _look, build)
    output: dict[str, Counter[bytes]] = (await outsider.wait()).result()
    lines = list(universe.journal)
    visible = [
        b"\n".join(b"%d %s" % (count, row) for row, count in sorted(output[name].items())) for name in sorted(output)
    ]
    visible += [
        b"%s.%s %s = %s" % (operator.encode(), name.encode(), key, value)
        for (operator, name, key), value in sorted(state.items())
    ]
    struck = [line.entry for line in lines if isinstance(line.entry, journal.WeatherStruck)]
    return Run(
        output=output,
        state=state,
        digest=journal_digest(lines, visible),
        lives=lives,
        faults=Counter(entry.verb for entry in struck),
        kills_at=Counter(entry.step for entry in struck if entry.step),
        lines=lines,
        steps=universe.loop.steps,
    )


def _kills(universe: Universe) -> int:
    return sum(
        isinstance(line.entry, journal.WeatherStruck) and line.entry.verb in ("kill", "power_cut")
        for line in universe.journal
    )


def _weather_lifts(universe: Universe, lives: int, calm_since: int | None) -> int | None:
    if calm_since is None and (lives >= MOST_LIVES or universe.now_ms() > STORM_MS):
        universe.calm()
        return universe.now_ms()
    return calm_since


def storm_run(build: Callable[[], Job], seed: int) -> Run:
    """Run a job in the storm of a seed."""
    return run_simulated(_run, build, seed, draw(seed, operators_of(build)), True, seed=seed)


def calm_run(build: Callable[[], Job], seed: int) -> Run:
    """Run a job with the knobs of a seed and no weather."""
    return run_simulated(_run, build, seed, draw(seed, operators_of(build)), False, seed=seed)


# ── many ─────────────────────────────────────────────────────────────────────────────────────


def run_seed(build: Callable[[], Job], seed: int) -> Run:
    """Run a seed's calm, its storm, and its storm again; return the storm.  Raises ``SeedFailed``."""
    calm = calm_run(build, seed)
    storm = storm_run(build, seed)
    again = storm_run(build, seed)
    if storm.digest != again.digest:
        raise SeedFailed(f"seed {seed} is not deterministic: {_first_difference(storm.lines, again.lines)}")
    for name, rows in calm.output.items():
        missing, surplus = rows - storm.output[name], storm.output[name] - rows
        if missing or surplus:
            raise SeedFailed(
                f"seed {seed}: output of {name!r} differs from the calm run: {sum(missing.values())} rows are missing, "
                f"{sum(surplus.values())} are there too often or wrong"
            )
    if calm.state != storm.state:
        keys = sorted(key for key in {*calm.state, *storm.state} if calm.state.get(key) != storm.state.get(key))
        operator, state, _ = keys[0]
        raise SeedFailed(
            f"seed {seed}: the final state {operator}.{state} differs from the calm run for {len(keys)} keys"
        )
    return storm


def _first_difference(one: list[journal.Line], other: list[journal.Line]) -> str:
    for left, right in zip(one, other, strict=False):
        if (left.at_ms, left.process, left.entry) != (right.at_ms, right.process, right.entry):
            return (
                f"line {left.sequence} is {left.entry} at {left.at_ms} ms, and then {right.entry} at {right.at_ms} ms"
            )
    return f"one journal has {len(one)} lines and the other {len(other)}"


def check(build: Callable[[], Job], *, seeds: Iterable[int]) -> Report:
    """Run a job under the storms of many seeds; raise ``SeedFailed`` for the first that does not equal its calm run.

    def test_my_job_survives_anything() -> None:
        simulation.check(my_job, seeds=range(200))
    """
    report = Report()
    for seed in seeds:
        add(report, run_seed(build, seed))
    return report


def add(report: Report, run: Run) -> None:
    """Count a run that equals its calm one."""
    report.seeds += 1
    report.faults.update(run.faults)
    report.kills_at.update(run.kills_at)
    report.digests.append(run.digest)
