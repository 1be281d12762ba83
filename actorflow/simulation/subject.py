"""What is simulated: a job of the user's, with stand-ins in the place of what reaches the outside.

A sink that the simulator can run as it is stays; any other becomes a ledger, or what the scenario chooses.  A source
must run as it is, or be given an input, and end, or be ended.  All of that is looked at once; each life of a process
then builds the job anew, as a program that starts again does.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Mapping
from itertools import chain
from typing import Any

from actorflow.abc.connectors import Sink, Source, TransactionalSink
from actorflow.abc.world import World
from actorflow.config import Settings
from actorflow.connectors import files
from actorflow.connectors.files_sink import FileSink
from actorflow.dataflow.job import Job
from actorflow.dataflow.plan import Plan, compile_plan
from actorflow.dataflow.targets import nearest_of
from actorflow.errors import InvalidJob
from actorflow.model.codec import Codec
from actorflow.simulation.broker_sink import BrokerSink
from actorflow.simulation.broker_source import BrokerSource
from actorflow.simulation.database_sink import DatabaseSink
from actorflow.simulation.digest import canonical
from actorflow.simulation.inputs import InputSource, Records
from actorflow.simulation.ledger import BUCKET, Ledger
from actorflow.simulation.moments import Visible
from actorflow.simulation.swarm import Shape
from actorflow.simulation.weather import Service
from actorflow.simulation.world import Universe

__all__ = ("Subject", "canonical_row", "canonical_rows")

_PART = re.compile(r"part-\d+-(\d+)")
_PLAIN = frozenset({str, int, float, bool, bytes, type(None)})
_ONE_FORM = frozenset({str, int, bytes, type(None)})
"""Of these, equal values are of one type and of one form."""


class Subject:
    """A job that can be built again and again; ``outside`` puts what it reads into the world of each run.

    ``inputs`` take the place of sources, ``outputs`` choose what takes the place of sinks; names that no operator has
    are refused.  A source that never ends is accepted only when ``is_ended`` says that somebody ends the job.

    Raises ``InvalidJob`` when it can't be simulated.
    """

    def __init__(
        self,
        build: Callable[[], Job],
        outside: Callable[[Universe], None] | None = None,
        *,
        inputs: Mapping[str, Records] | None = None,
        outputs: Mapping[str, str] | None = None,
        is_ended: bool = False,
    ) -> None:
        self._build, self._outside = build, outside
        self._inputs, self._outputs = dict(inputs or {}), dict(outputs or {})
        job = build()
        if not isinstance(job, Job):
            raise InvalidJob(f"what is to be simulated must return a Job, not {type(job).__name__}")
        self._replace_sources(job, 0, None)  # which classes travel is known when the plan is made
        plan = compile_plan(job)
        self._check(plan, is_ended=is_ended)
        self.name = job.name
        self.codec = Codec(plan.registry)
        self.settled: Callable[[Settings], Settings] = job.settings_over
        """What holds for the job, when it has had its own say over the settings."""
        sinks = self._stand_in(job).values()
        self._transparent = all(isinstance(sink, FileSink | Ledger) for sink in sinks)
        self.shape = Shape(
            operators=tuple(operator.name for vertex in plan.vertices for operator in vertex.operators),
            in_files=all(isinstance(sink, FileSink) for sink in sinks) and bool(sinks),
            service=_service_of(list(sinks)),
        )

    def _check(self, plan: Plan, *, is_ended: bool) -> None:
        sources = [operator.name for operator in plan.sources()]
        sinks = [operator.name for operator in plan.sinks()]
        for table, key, named, there in (
            ("input", "source", self._inputs, sources),
            ("output", "sink", self._outputs, sinks),
        ):
            for name in named:
                if name not in there:
                    raise InvalidJob(
                        f"[[{table}]] {key} = {name!r}: the job has no {key} of this name, but "
                        f"{', '.join(map(repr, there))}{nearest_of(name, there)}"
                    )
        for operator in plan.sources():
            if not operator.source.runs_in_simulation:
                raise InvalidJob(
                    f"operator {operator.name!r}: its source {type(operator.source).__name__} reaches the outside and "
                    f'can\'t run in the simulator; add an [[input]] with source = "{operator.name}" to the scenario, '
                    "give the job an argument that replaces it, or say runs_in_simulation = True if it reaches the "
                    "world only through context.world"
                )
            if not operator.source.bounded and not is_ended:
                raise InvalidJob(
                    f"operator {operator.name!r}: its source never ends, so there is no final output to compare; "
                    "bound it, or let a step of a scenario stop, drain or cancel the job"
                )

    def prepare(self, universe: Universe) -> None:
        """Put into a new world what has to be there."""
        for name, records in self._inputs.items():
            if records.on_broker:
                universe.broker.fill(
                    name,
                    [records.record(universe.seed, index) for index in range(records.count)],
                    partitions=records.splits,
                    codec=self.codec,
                    at_ms=[records.due_ms(index) for index in range(records.count)],
                )
        if self._outside is not None:
            self._outside(universe)

    def job(self, seed: int = 0) -> Job:
        """Build the job anew, with its stand-ins; ``seed`` is that of the run."""
        job = self._build()
        self._replace_sources(job, seed, self.codec)
        self._stand_in(job)
        return job

    def _replace_sources(self, job: Job, seed: int, codec: Codec | None) -> None:
        def stand_in(name: str, source: Source[Any]) -> Source[Any]:
            records = self._inputs.get(name)
            if records is None:
                return source
            if records.on_broker and codec is not None:
                return BrokerSource(name, codec=codec, until=records.sizes(), parallelism=source.parallelism)
            return InputSource(records, seed, parallelism=source.parallelism)

        if self._inputs:
            job.replace_sources(stand_in)

    def _stand_in(self, job: Job) -> dict[str, TransactionalSink[Any]]:
        sinks: dict[str, TransactionalSink[Any]] = {}

        def stand_in(name: str, sink: Sink[Any]) -> Sink[Any]:
            match self._outputs.get(name):
                case None if _runs_as_it_is(sink):
                    assert isinstance(sink, TransactionalSink)
                    sinks[name] = sink
                case "files":
                    sinks[name] = sink if isinstance(sink, FileSink) else files.write(f"/outputs/{name}")
                case "broker":
                    sinks[name] = BrokerSink(name, codec=self.codec, parallelism=sink.parallelism)
                case "database":
                    sinks[name] = DatabaseSink(name, codec=self.codec, parallelism=sink.parallelism)
                case _:
                    sinks[name] = Ledger(name, self.codec, sink.parallelism)
            return sinks[name]

        job.replace_sinks(stand_in)
        return sinks

    async def look(self, world: World) -> dict[str, list[Any]]:
        """Return what an outsider sees of the output now: the rows of each sink."""
        return {name: await sink.visible(world) for name, sink in self._stand_in(self._build()).items()}

    def commits(self, universe: Universe) -> Visible | None:
        """Return what counts the visible committables of each checkpoint; ``None`` where a sink is not ours to read."""
        if not self._transparent:
            return None
        sinks = list(self._stand_in(self._build()).values())
        platter = universe.machine().platter

        def count() -> Counter[int]:
            found: Counter[int] = Counter()
            for sink in sinks:
                if isinstance(sink, Ledger):
                    found += sink.commits(universe.shelf(BUCKET).objects)
                elif isinstance(sink, FileSink):
                    parts = map(_PART.match, platter.list_folder(sink.folder))
                    found += Counter(int(part[1]) for part in parts if part is not None)
            return found

        return count


def _service_of(sinks: list[TransactionalSink[Any]]) -> Service | None:
    """Where all output goes, if that is a broker or a database."""
    if sinks and all(isinstance(sink, BrokerSink) for sink in sinks):
        return Service.BROKER
    return Service.DATABASE if sinks and all(isinstance(sink, DatabaseSink) for sink in sinks) else None


def _runs_as_it_is(sink: Sink[Any]) -> bool:
    """Whether a sink writes where an outsider of the simulated world can look."""
    if isinstance(sink, FileSink | BrokerSink | DatabaseSink):
        return True
    is_ours = type(sink).__module__.startswith("actorflow.")
    return isinstance(sink, TransactionalSink) and sink.runs_in_simulation and not is_ours


def canonical_rows(rows: list[Any]) -> Counter[bytes]:
    """Rows as they are compared, each as ``canonical_row`` says, and how often it is there."""
    fields = chain.from_iterable(rows) if {tuple}.issuperset(map(type, rows)) else rows
    kinds = set(map(type, fields))
    if not kinds <= _PLAIN:
        return Counter(map(canonical_row, rows))
    global _last  # noqa: PLW0603  # it only saves time: most runs come to the same as the one before
    counted = Counter(rows) if kinds <= _ONE_FORM else None
    if counted is None or not dict.__eq__(counted, _last[0]):
        # The same at once: no line of what stands for a plain value ends within it.
        lines = "\n".join(map(repr, rows)).encode("utf-8", "surrogatepass").split(b"\n") if rows else ()
        if counted is None:
            return Counter(lines)
        _last = counted, Counter(lines)
    return _last[1].copy()


_last: tuple[Counter[Any], Counter[bytes]] = Counter(), Counter()


def canonical_row(row: Any) -> bytes:
    """A row as it is compared: equal for equal rows, whatever the process."""
    kind = type(row)
    if kind in _PLAIN or (kind is tuple and _PLAIN.issuperset(map(type, row))):
        return repr(row).encode("utf-8", "surrogatepass")  # the same everywhere, and ten times as fast
    return canonical(row)
