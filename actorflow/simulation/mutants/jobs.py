"""In whose storms are planted faults looked for?

Small jobs, each with something that the others lack.  They read for some fifty virtual milliseconds, which is a handful
of checkpoints; their output says what was lost, doubled or out of order.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator

from actorflow.abc.connectors import Source
from actorflow.connectors import console, files, generator
from actorflow.dataflow.job import Job
from actorflow.dataflow.keyed import Context, HookContext, KeyedOperator, Operator
from actorflow.dataflow.states import SplitList, UnionList, ValueState

__all__ = ("JOBS",)

Pair = tuple[int, int]


def _line(index: int) -> str:
    return f"w{index % 5} W{index * index % 7}"


def _lines(records: int = 120, splits: int = 3) -> Source[str]:
    return generator.generate(_line, records=records, splits=splits, chunk_records=4, per_second=2_000)


def _numbers(records: int = 150, splits: int = 3) -> Source[int]:
    return generator.numbers(records, splits=splits, chunk_records=5, per_second=3_000)


def _six(value: int) -> int:
    return value % 6


def words() -> Job:
    """A source, a keyed exchange, a count per key."""
    job = Job("words")
    counted = job.read(_lines(), name="lines").flat_map(str.split).key_by(str.lower).count(name="count")
    counted.write(console.lines(), name="rows")
    return job


def words_in_files() -> Job:
    """The same into files."""
    job = Job("words")
    counted = job.read(_lines(), name="lines").flat_map(str.split).key_by(str.lower).count(name="count")
    counted.write(files.write("/out", format=repr), name="rows")
    return job


def two_sources() -> Job:
    """Two sources of different lengths, united: an actor with many channels, some of which end early."""
    job = Job("two-sources")
    short = job.read(_numbers(30, splits=2), name="short").map(lambda value: value + 1_000)
    united = short.union(job.read(_numbers(), name="long"))
    united.key_by(_six).count(name="count").write(console.lines(), name="rows")
    return job


class _Both(KeyedOperator[int, int, tuple[int, int, int]]):
    """Two writes around an await."""

    left = ValueState(int)
    right = ValueState(int)

    async def on_record(self, value: int, context: Context[int]) -> AsyncIterator[tuple[int, int, int]]:
        self.left.value += 1
        await asyncio.sleep((value % 7) / 1_000)
        self.right.value += 1
        yield context.key, self.left.value, self.right.value


def calls() -> Job:
    """An awaiting operator with state."""
    job = Job("calls")
    both = job.read(_numbers(), name="numbers").key_by(_six).process(_Both, name="both", in_flight=8)
    both.write(console.lines(), name="rows")
    return job


class _Gather(Operator[int, tuple[str, int]]):
    """Holds all of its records until the end, in a list that is dealt out; in another every subtask sees all counts."""

    held = SplitList(int)
    counts: UnionList[Pair] = UnionList(tuple)

    def on_open(self, context: HookContext) -> None:
        self.mine = sum(count for subtask, count in self.counts if subtask == context.subtask)
        self.counts.replace([(context.subtask, self.mine)])  # else everybody's would be in everybody's next snapshot

    def on_record(self, value: int, context: Context[None]) -> None:
        self.held.append(value)
        self.mine += 1
        self.counts.replace([(context.subtask, self.mine)])

    def on_end_of_input(self, context: HookContext) -> Iterator[tuple[str, int]]:
        for value in self.held:
            yield "held", value
        yield "count", self.mine
        self.held.clear()


def lists() -> Job:
    """Operator state in lists, and output at the end of the input."""
    job = Job("lists")
    dealt = job.read(_numbers(), name="numbers").partition_by(lambda value, subtasks: value % subtasks)
    dealt.process(_Gather, name="gather", parallelism=2).write(console.lines(), name="rows")
    return job


class _Sum(KeyedOperator[int, int, Pair]):
    """Says nothing before the end."""

    total = ValueState(int)

    def on_record(self, value: int, context: Context[int]) -> None:
        self.total.value += value

    def on_end_of_input(self, context: HookContext) -> Iterator[Pair]:
        yield from context.entries(self.total)


def ends() -> Job:
    """A keyed operator that emits at the end of its input, and another behind it."""
    job = Job("ends")
    summed = job.read(_numbers(), name="numbers").key_by(_six).process(_Sum, name="sum")
    summed.key_by(lambda pair: pair[0] % 2).count(name="count").write(console.lines(), name="rows")
    return job


JOBS: dict[str, Callable[[], Job]] = {
    function.__name__: function for function in (words, words_in_files, two_sources, calls, lists, ends)
}
"""By name; each is a target too: ``actorflow simulate actorflow.simulation.mutants.jobs:words``."""
