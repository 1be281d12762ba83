"""What a type checker must refuse.  It also refuses a `type: ignore` that nothing needs, so each line is held."""

from __future__ import annotations

import actorflow as af
from actorflow.connectors import memory


class Lengths(af.KeyedOperator[str, str, int]):
    longest = af.ValueState(int)

    def on_record(self, word: str, context: af.Context[str]) -> list[int]:
        self.longest.value = word  # type: ignore[assignment]  # the state holds an int
        self.longest.level = 1  # type: ignore[attr-defined]  # a handle has no such attribute
        return [len(word)]


class Wrong(af.KeyedOperator[str, str, int]):
    def on_record(self, word: str, context: af.Context[str]) -> list[str]:  # type: ignore[override]  # it gives ints
        return [word]


def of_a_stream(job: af.Job) -> None:
    words = job.read(memory.source(["to", "be"]), name="words")
    words.map(abs)  # type: ignore[arg-type]  # a str has no absolute value
    words.count(name="count")  # type: ignore[attr-defined]  # only a keyed stream counts
    words.key_by(str.lower).count()  # type: ignore[call-arg]  # a count is remembered, so it needs a name
    words.process(Lengths, name="lengths")  # type: ignore[arg-type]  # it needs keys
    words.key_by(len).process(Lengths, name="lengths")  # type: ignore[arg-type]  # its keys are str
    words.map(len).write(Words(), name="out")  # type: ignore[arg-type]  # it takes str


class Words(memory.Collect[str]):
    def __init__(self) -> None:
        super().__init__([])


def of_an_environment() -> None:
    af.Environment(checkpoints=af.Checkpoints(every="10s"))  # type: ignore[arg-type]  # a timedelta
    af.Environment(parallel=2)  # type: ignore[call-arg]  # there is no such setting


def of_the_front_door() -> object:
    return af.Jobb  # type: ignore[attr-defined]  # there is no such name
