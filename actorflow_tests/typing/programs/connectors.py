"""What sources give and sinks take, ours and those that a user writes."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, assert_type

import actorflow as af
from actorflow.abc import Sink, SinkContext, SinkWriter, Source, World
from actorflow.connectors import Inbox, console, files, function, generator, memory


@af.record(name="reading", version=1)
@dataclass(frozen=True, slots=True)
class Reading:
    sensor: str
    value: float


@af.source
async def lines(context: af.SourceContext[int], path: str, most: int = 10) -> AsyncIterator[af.Chunk[str]]:
    assert_type(context.resume_at, int | None)
    for index in range(context.resume_at or 0, most):
        yield af.Chunk([path], resume_at=index + 1)


class Readings(Source[Reading]):
    runs_in_simulation = True

    async def discover(self, world: World) -> Sequence[str]:
        return ["all"]

    async def read(self, context: af.SourceContext[Any]) -> AsyncIterator[af.Chunk[Reading]]:
        yield af.Chunk([Reading("roof", 21.5)], resume_at=1)


class Append(Sink[Reading]):
    def __init__(self, rows: list[Reading]) -> None:
        self.rows = rows

    async def open(self, context: SinkContext) -> SinkWriter[Reading]:
        return AppendWriter(self.rows)


class AppendWriter(SinkWriter[Reading]):
    def __init__(self, rows: list[Reading]) -> None:
        self.rows = rows

    async def write(self, records: list[Reading]) -> None:
        self.rows.extend(records)


def made(index: int, draw: float) -> Reading:
    return Reading(str(index), draw)


def as_row(reading: Reading) -> str:
    return f"{reading.sensor}\t{reading.value}"


def job() -> af.Job:
    reading = af.Job("readings")
    texts = reading.read(lines("a", most=3), name="lines")
    assert_type(texts, af.Stream[str])
    assert_type(reading.read(files.lines([Path("a"), Path("b")], follow=True), name="files"), af.Stream[str]).discard()
    assert_type(reading.read(generator.numbers(10), name="numbers"), af.Stream[int]).discard()
    assert_type(reading.read(Inbox(Reading), name="inbox"), af.Stream[Reading]).discard()
    assert_type(reading.read(memory.source([1.5]), name="memory"), af.Stream[float]).discard()
    generated = reading.read(generator.generate(made, records=10, per_second=5.0), name="made")
    assert_type(generated, af.Stream[Reading])
    own = reading.read(Readings(), name="own")
    assert_type(own, af.Stream[Reading])
    own.union(generated).write(Append([]), name="append")
    own.write(files.write("readings", format=as_row), name="files-out")
    own.write(console.lines(format=as_row), name="console")
    own.write(memory.collect(), name="collect")
    texts.write(function.call(print), name="call")
    return reading
