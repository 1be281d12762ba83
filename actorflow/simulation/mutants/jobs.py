"""In whose storms are planted faults looked for?

Small jobs, each with something that the others lack.  They read for some fifty virtual milliseconds, which is a handful
of checkpoints; their output says what was lost, doubled or out of order.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator

import actorflow as af
from actorflow.abc.connectors import Source
from actorflow.connectors import console, files, generator

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


def words() -> af.Job:
    """A source, a keyed exchange, a count per key."""
    job = af.Job("words")
    counted = job.read(_lines(), name="lines").flat_map(str.split).key_by(str.lower).count(name="count")
    counted.write(console.lines(), name="rows")
    return job


def words_in_files() -> af.Job:
    """The same into files."""
    job = af.Job("words")
    counted = job.read(_lines(), name="lines").flat_map(str.split).key_by(str.lower).count(name="count")
    counted.write(files.write("/out", format=repr), name="rows")
    return job


def two_sources() -> af.Job:
    """Two sources of different lengths, united: an actor with many channels, some of which end early."""
    job = af.Job("two-sources")
    short = job.read(_numbers(30, splits=2), name="short").map(lambda value: value + 1_000)
    united = short.union(job.read(_numbers(), name="long"))
    united.key_by(_six).count(name="count").write(console.lines(), name="rows")
    return job


class _Both(af.KeyedOperator[int, int, tuple[int, int, int]]):
    """Two writes around an await."""

    left = af.ValueState(int)
    right = af.ValueState(int)

    async def on_record(self, value: int, context: af.Context[int]) -> AsyncIterator[tuple[int, int, int]]:
        self.left.value += 1
        await asyncio.sleep((value % 7) / 1_000)
        self.right.value += 1
        yield context.key, self.left.value, self.right.value


def calls() -> af.Job:
    """An awaiting operator with state."""
    job = af.Job("calls")
    both = job.read(_numbers(), name="numbers").key_by(_six).process(_Both, name="both", in_flight=8)
    both.write(console.lines(), name="rows")
    return job


class _Gather(af.Operator[int, tuple[str, int]]):
    """Holds all of its records until the end, in a list that is dealt out; in another every subtask sees all counts."""

    held = af.SplitList(int)
    counts: af.UnionList[Pair] = af.UnionList(tuple)

    def on_open(self, context: af.HookContext) -> None:
        self.mine = sum(count for subtask, count in self.counts if subtask == context.subtask)
        self.counts.replace([(context.subtask, self.mine)])  # else everybody's would be in everybody's next snapshot

    def on_record(self, value: int, context: af.Context[None]) -> None:
        self.held.append(value)
        self.mine += 1
        self.counts.replace([(context.subtask, self.mine)])

    def on_end_of_input(self, context: af.HookContext) -> Iterator[tuple[str, int]]:
        for value in self.held:
            yield "held", value
        yield "count", self.mine
        self.held.clear()


def lists() -> af.Job:
    """Operator state in lists, and output at the end of the input."""
    job = af.Job("lists")
    dealt = job.read(_numbers(), name="numbers").partition_by(lambda value, subtasks: value % subtasks)
    dealt.process(_Gather, name="gather", parallelism=2).write(console.lines(), name="rows")
    return job


class _Sum(af.KeyedOperator[int, int, Pair]):
    """Says nothing before the end."""

    total = af.ValueState(int)

    def on_record(self, value: int, context: af.Context[int]) -> None:
        self.total.value += value

    def on_end_of_input(self, context: af.HookContext) -> Iterator[Pair]:
        yield from context.entries(self.total)


def ends() -> af.Job:
    """A keyed operator that emits at the end of its input, and another behind it."""
    job = af.Job("ends")
    summed = job.read(_numbers(), name="numbers").key_by(_six).process(_Sum, name="sum")
    summed.key_by(lambda pair: pair[0] % 2).count(name="count").write(console.lines(), name="rows")
    return job


JOBS: dict[str, Callable[[], af.Job]] = {
    function.__name__: function for function in (words, words_in_files, two_sources, calls, lists, ends)
}
"""By name; each is a target too: ``actorflow simulate actorflow.simulation.mutants.jobs:words``."""
