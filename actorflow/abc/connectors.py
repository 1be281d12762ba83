"""What a source and a sink are.  A connector is written against this page alone, and so is yours.

**A source** has splits, named by strings: a file, a partition, or just one.  Each split is read by exactly one subtask,
by an async generator of :class:`Chunk`: some records *and* the position after them in one value, so there is no moment
at which position and records disagree.

    class Numbers(Source[int]):
        async def discover(self, context):
            return ["0"]

        async def read(self, context):
            for start in range(context.resume_at or 0, 1_000, 100):
                yield Chunk(list(range(start, start + 100)), resume_at=start + 100)

**A sink** opens one writer per subtask.  A :class:`TransactionalWriter` writes in two phases and is exactly-once; any
other is at-least-once.

    class Append(Sink[str]):
        def __init__(self, rows): self.rows = rows
        async def open(self, context): return AppendWriter(self.rows)

    class AppendWriter(SinkWriter[str]):
        def __init__(self, rows): self.rows = rows
        async def write(self, records): self.rows.extend(records)

The contract suites in ``actorflow.simulation.contracts`` check an implementation.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, ClassVar, Generic, Protocol, TypeVar

from actorflow.abc.world import World

__all__ = (
    "Chunk",
    "CommitPermit",
    "Prepared",
    "Sink",
    "SinkContext",
    "SinkWriter",
    "Source",
    "SourceContext",
    "TransactionalSink",
    "TransactionalWriter",
)

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)
T_contra = TypeVar("T_contra", contravariant=True)
Position = TypeVar("Position")


@dataclass(slots=True)
class Chunk(Generic[T]):
    """Some records, and where to go on after them.

    ``resume_at`` is anything that the codec writes down exactly; ``None`` says that the split can't be read again from
    here (an inbox).  A chunk without records moves the position only.
    """

    records: list[T]
    resume_at: Any = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceContext(Generic[Position]):
    """What a source knows when it reads one split.  ``resume_at`` is ``None`` at the split's beginning."""

    operator: str
    split: str
    resume_at: Position | None
    subtask: int
    parallelism: int
    world: World


class Source(ABC, Generic[T_co]):
    """Where records come from."""

    bounded: bool = True
    """Whether the source ends; an unbounded one is looked at again for new splits every ``discover_every``."""

    runs_in_simulation: ClassVar[bool] = False
    """Whether it reaches the world only through ``context.world`` and so runs in the simulator as it is."""

    splits_at_once: int | None = 1
    """How many splits one subtask reads at the same time; ``None`` is all that it was given."""

    discover_every: timedelta | None = None
    parallelism: int | None = None
    """The parallelism to use where nobody asks for one; ``None`` follows the environment."""

    def halt(self) -> bool:
        """Called when the job is asked to stop with a last checkpoint.

        ``True`` says: what was accepted can't be read again, so the source ends by itself after giving it out, and
        the last barrier waits for that.  A source that can be read again answers ``False`` and is simply cut at the
        barrier.
        """
        return False

    @abstractmethod
    async def discover(self, world: World) -> Sequence[str]:
        """Return the names of all splits there are now, in the order in which they should be given out.

        Raises before any record is processed when the source can't be read at all; ``verify`` looks at the splits.
        """

    async def verify(self, world: World, splits: Sequence[str], known: Sequence[str]) -> None:
        """Look at what ``discover`` found: the splits that are new, beside those that were given out before.

        Raises when a new one can't be read, or when there is none where one must be: this comes before any record.
        """

    @abstractmethod
    def read(self, context: SourceContext[Any]) -> AsyncIterator[Chunk[T_co]]:
        """Read one split from ``context.resume_at`` to its end (or for ever); an async generator."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SinkContext:
    """What a writer knows.  ``home`` names the job's home: two jobs never share one.

    ``restored_checkpoint`` is where this attempt goes on from; ``None`` when it starts without state.
    ``commits_within`` is how long it may take, by the job's settings, from one cut to the commit of the next: what has
    a time limit of its own must outlast it.  ``None`` when checkpoints are taken only on request.
    """

    operator: str
    subtask: int
    parallelism: int
    generation: int
    home: str
    world: World
    exactly_once: bool = True
    restored_checkpoint: int | None = None
    commits_within: timedelta | None = None


class SinkWriter(ABC, Generic[T_contra]):
    """The sink as one subtask sees it.  No two of its methods run at the same time."""

    each: Callable[[T_contra], object] | None = None
    """A plain function to be called once per record, in order, where writing is nothing else.

    The runtime may then call it straight from the loop of the operator before, instead of ``write``.
    """

    @abstractmethod
    async def write(self, records: list[T_contra]) -> None:
        """Take some records, in order; must not keep or change the list."""

    async def flush(self) -> None:
        """Return once everything written is delivered; called before a checkpoint counts and at the end.

        Raises when a record was refused, also one of an earlier ``write``: then the checkpoint fails.
        """

    async def close(self) -> None:
        """Let go of files and connections; what was not prepared may be discarded."""


class Sink(ABC, Generic[T_contra]):
    """Where records go.  This kind is at-least-once: after a restart, records since the last checkpoint come again."""

    runs_in_simulation: ClassVar[bool] = False
    parallelism: int | None = None

    @abstractmethod
    async def open(self, context: SinkContext) -> SinkWriter[T_contra]:
        """Open the writer of one subtask.  Called before any record is processed: refuse here what can't work."""


class CommitPermit(Protocol):
    """Proof that a checkpoint may be committed.  Only ``protocol.fencing`` makes one."""

    @property
    def checkpoint_id(self) -> int:
        """Everything up to this checkpoint, on this line of descent, may be committed."""
        ...

    @property
    def generation(self) -> int:
        """The generation that holds the permit."""
        ...


@dataclass(frozen=True, slots=True)
class Prepared:
    """What a writer prepared at a barrier.

    ``committables`` are values that the codec writes down exactly and that hold all that another process needs to
    commit them.  ``rest`` is awaited before the snapshot counts: syncing, closing.
    """

    committables: list[Any]
    rest: Awaitable[None] | None = None


class TransactionalWriter(SinkWriter[T_contra]):
    """A writer in two phases: nothing is visible before ``commit``."""

    @abstractmethod
    def prepare(self, checkpoint_id: int) -> Prepared:
        """Cut here: what was written so far belongs to this checkpoint, what comes to a later one.  Does not wait."""

    @abstractmethod
    async def commit(self, committables: list[Any], permit: CommitPermit) -> None:
        """Make visible, in order.  May repeat without harm, also from another process and subtask.

        What it raises is tried again a bounded number of times; ``CorruptObject`` and ``ObjectMissing`` say that no
        repetition can help.
        """

    @abstractmethod
    async def discard(self, committables: list[Any]) -> None:
        """Throw away what was prepared and will never be committed."""

    async def sweep(self, keep: list[Any]) -> int:
        """Remove what older generations of this operator left uncommitted, but for ``keep``; return how many.

        Only subtask 0 is asked, after this generation's base is written.
        """
        return 0


class TransactionalSink(Sink[T_contra]):
    """A sink that is exactly-once."""

    @abstractmethod
    async def open(self, context: SinkContext) -> TransactionalWriter[T_contra]:
        """Open the writer of one subtask."""

    @abstractmethod
    async def visible(self, world: World) -> list[Any]:
        """Return what an outsider would see now; for tests and the simulator's oracle."""
