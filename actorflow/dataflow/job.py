"""What is a job while it is being written down?

A name and the operators in the order in which they were built; nothing else.  Streams add to it; ``compile_plan`` turns
it into actors and channels.  A job holds no running thing, so one program may build it, print it and throw it away.

A mistake that one call makes is raised by that call, so the traceback shows the line.  What only the whole graph shows
(an output that nobody reads, a parallelism that does not fit) is collected and told at once by ``compile_plan``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeVar

from actorflow.abc.connectors import Sink, Source
from actorflow.config import Settings
from actorflow.dataflow.names import automatic_names, check_name, needs_name
from actorflow.dataflow.primitives import Call, Leg, Node, Operator, Read, Write
from actorflow.dataflow.stream import Stream
from actorflow.errors import InvalidJob

if TYPE_CHECKING:
    from actorflow.dataflow.lane import AsyncOperator
    from actorflow.dataflow.plan import Plan
    from actorflow.dataflow.seat import Seat

    OpensCall = Callable[[Seat, Call], AsyncOperator]

__all__ = ("Job",)

T = TypeVar("T")

_MOST_PARALLEL = 32_768
"""The most subtasks an operator can have, and the most key groups."""


class Job:
    """A named dataflow graph under construction.

    The name is the job's identity: its checkpoints live in a folder of that name, and a job that starts again under it
    goes on from them.  ``settings`` are those of an ``Environment`` by their names (``{"checkpoints.every": "10s"}``);
    what the job says stands above what the environment says.
    """

    def __init__(
        self,
        name: str,
        *,
        parallelism: int | None = None,
        max_parallelism: int | None = None,
        settings: Mapping[str, object] | None = None,
    ) -> None:
        self.name = check_name("job", name)
        check_parallelism(f"job {name!r}", "parallelism", parallelism)
        check_parallelism(f"job {name!r}", "max_parallelism", max_parallelism)
        self.parallelism, self.max_parallelism = parallelism, max_parallelism
        self.settings: dict[str, object] = dict(settings or {})
        self._nodes: list[Node] = []
        self._names: dict[str, str] = {}

    @needs_name("a checkpoint keeps the position of every source under its name")
    def read(
        self, source: Source[T], *, name: str, parallelism: int | None = None, max_parallelism: int | None = None
    ) -> Stream[T]:
        """Begin a stream with the records of a source."""
        if not isinstance(source, Source):
            raise InvalidJob(f"operator {name!r}: read takes a Source, not {type(source).__name__}")
        operator = Read(name=name, label="read", annotated=(source,), reads=source)
        return self._add(
            operator,
            name=name,
            legs=(),
            parallelism=parallelism,
            max_parallelism=max_parallelism,
            own_parallelism=source.parallelism,
        )

    def settings_over(self, settings: Settings) -> Settings:
        """Return the settings that hold for this job: those given, and above them what the job itself says."""
        own = {"parallelism": self.parallelism, "max_parallelism": self.max_parallelism}
        said = self.settings | {key: value for key, value in own.items() if value is not None}
        return settings.merged(said, source=f"job {self.name!r}") if said else settings

    def plan(self, *, parallelism: int | None = None, max_parallelism: int | None = None) -> Plan:
        """Return what the job will run as; print it, or ask it for a picture."""
        from actorflow.dataflow.plan import compile_plan

        return compile_plan(self, parallelism=parallelism or 1, max_parallelism=max_parallelism)

    def replace_sinks(self, stand_in: Callable[[str, Sink[Any]], Sink[Any]]) -> None:
        """Put what ``stand_in(name, sink)`` answers in the place of each sink: a simulator's ledger, a test's list."""
        for name, node in self._named():
            if isinstance(node.operator, Write):
                sink = stand_in(name, node.operator.sink)
                node.operator = replace(node.operator, writes=sink, annotated=(*node.operator.annotated, sink))

    def replace_sources(self, stand_in: Callable[[str, Source[Any]], Source[Any]]) -> None:
        """Put what ``stand_in(name, source)`` answers in the place of each source; what its records are stays known."""
        for name, node in self._named():
            if isinstance(node.operator, Read):
                source = stand_in(name, node.operator.reads)
                node.operator = replace(node.operator, reads=source, annotated=(*node.operator.annotated, source))

    def replace_calls(self, stand_in: Callable[[str, OpensCall], OpensCall]) -> None:
        """Put what ``stand_in(name, opens)`` answers in the place of what opens each async operator."""
        for name, node in self._named():
            if isinstance(node.operator, Call):
                node.operator = replace(node.operator, opens=stand_in(name, node.operator.opens))

    def _add(
        self,
        operator: Operator,
        *,
        name: str | None,
        legs: tuple[Leg, ...],
        parallelism: int | None,
        max_parallelism: int | None,
        own_parallelism: int | None = None,
    ) -> Stream[Any]:
        shown = operator.name
        if name is not None:
            check_name("operator", name)
            other = self._names.get(name.lower())
            if other is not None:
                same = "" if other == name else f" (names are compared without case: {other!r} is taken)"
                raise InvalidJob(
                    f"operator {name!r}: job {self.name!r} already has an operator of that name{same}; "
                    "a name is the address of an operator's state, so give this one another"
                )
            self._names[name.lower()] = name
        check_parallelism(f"operator {shown!r}", "parallelism", parallelism)
        check_parallelism(f"operator {shown!r}", "max_parallelism", max_parallelism)
        node = Node(
            operator,
            name=name,
            legs=legs,
            parallelism=parallelism,
            max_parallelism=max_parallelism,
            own_parallelism=own_parallelism,
        )
        self._nodes.append(node)
        return Stream(self, (Leg(node),))

    def _named(self) -> list[tuple[str, Node]]:
        """All operators in order, with the names that they have by now."""
        names = automatic_names((node.name, node.operator.label) for node in self._nodes)
        return list(zip(names, self._nodes, strict=True))

    def _name_of(self, node: Node) -> str:
        """The name of one operator as it is by now, for messages."""
        return next(name for name, other in self._named() if other is node)

    def __repr__(self) -> str:
        return f"<job {self.name!r}: {', '.join(name for name, _ in self._named()) or 'no operators yet'}>"

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, str]:
        """Show the plan in a notebook: a picture, and text where pictures can't be shown."""
        try:
            plan = self.plan()
        except InvalidJob as error:
            return {"text/plain": f"{self!r}\nnot complete yet:\n{error}"}
        return {"text/plain": str(plan), "image/svg+xml": plan.svg(), "text/html": plan.svg()}

    def _repr_html_(self) -> str:
        """Show the plan where only HTML is asked for."""
        from html import escape

        bundle = self._repr_mimebundle_()
        return bundle.get("text/html") or f"<pre>{escape(bundle['text/plain'])}</pre>"


def check_parallelism(where: str, what: str, value: object) -> None:
    """Refuse a number of subtasks or key groups that can't be."""
    if value is None:
        return
    if type(value) is not int or not 1 <= value <= _MOST_PARALLEL:
        raise InvalidJob(f"{where}: {what}= is a whole number from 1 to {_MOST_PARALLEL:,}, not {value!r}")
