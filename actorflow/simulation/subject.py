"""What is simulated: a job of the user's, with stand-ins in the place of what reaches the outside.

A sink that the simulator can run as it is stays; any other becomes a ledger.  A source must run as it is, and end.  All
of that is looked at once; each life of a process then builds the job anew, as a program that starts again does.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable
from typing import Any

from actorflow.abc.connectors import Sink, TransactionalSink
from actorflow.abc.world import World
from actorflow.connectors.files_sink import FileSink
from actorflow.dataflow.job import Job
from actorflow.dataflow.plan import compile_plan
from actorflow.errors import InvalidJob
from actorflow.model.codec import Codec
from actorflow.simulation.digest import canonical
from actorflow.simulation.ledger import BUCKET, Ledger
from actorflow.simulation.moments import Visible
from actorflow.simulation.swarm import Shape
from actorflow.simulation.world import Universe

__all__ = ("Subject",)

_PART = re.compile(r"part-\d+-(\d+)")
_PLAIN = frozenset({str, int, float, bool, bytes, type(None)})


class Subject:
    """A job that can be built again and again; ``outside`` puts what it reads into the world of each run.

    Raises ``InvalidJob`` when it can't be simulated.
    """

    def __init__(self, build: Callable[[], Job], outside: Callable[[Universe], None] | None = None) -> None:
        self._build, self._outside = build, outside
        job = build()
        plan = compile_plan(job)
        for operator in plan.sources():
            if not operator.source.runs_in_simulation:
                raise InvalidJob(
                    f"operator {operator.name!r}: its source {type(operator.source).__name__} reaches the outside and "
                    "can't run in the simulator; give the job an argument that replaces it, or say runs_in_simulation "
                    "= True if it reaches the world only through context.world"
                )
            if not operator.source.bounded:
                raise InvalidJob(
                    f"operator {operator.name!r}: its source never ends, so there is no final output to compare; "
                    "bound it"
                )
        self.name = job.name
        self.codec = Codec(plan.registry)
        sinks = self._stand_in(job).values()
        self._transparent = all(isinstance(sink, FileSink | Ledger) for sink in sinks)
        self.shape = Shape(
            operators=tuple(operator.name for vertex in plan.vertices for operator in vertex.operators),
            in_files=all(isinstance(sink, FileSink) for sink in sinks) and bool(sinks),
        )

    def prepare(self, universe: Universe) -> None:
        """Put into a new world what has to be there."""
        if self._outside is not None:
            self._outside(universe)

    def job(self) -> Job:
        """Build the job anew, with its stand-ins."""
        job = self._build()
        self._stand_in(job)
        return job

    def _stand_in(self, job: Job) -> dict[str, TransactionalSink[Any]]:
        sinks: dict[str, TransactionalSink[Any]] = {}

        def stand_in(name: str, sink: Sink[Any]) -> Sink[Any]:
            if isinstance(sink, FileSink) or (
                isinstance(sink, TransactionalSink)
                and sink.runs_in_simulation
                and not type(sink).__module__.startswith("actorflow.")
            ):
                sinks[name] = sink
                return sink
            ledger = sinks[name] = Ledger(name, self.codec, sink.parallelism)
            return ledger

        job.replace_sinks(stand_in)
        return sinks

    async def look(self, world: World) -> dict[str, Counter[bytes]]:
        """Return what an outsider sees of the output now: the rows of each sink, as a multiset."""
        return {
            name: Counter(map(_row, await sink.visible(world))) for name, sink in self._stand_in(self._build()).items()
        }

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


def _row(row: Any) -> bytes:
    """A row as it is compared: equal for equal rows, whatever the process."""
    kind = type(row)
    if kind in _PLAIN or (kind is tuple and _PLAIN.issuperset(map(type, row))):
        return repr(row).encode("utf-8", "surrogatepass")  # the same everywhere, and ten times as fast
    return canonical(row)
