"""An operator of one's own: what its states give, and what comes out of it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import assert_type

import actorflow as af
from actorflow.connectors import Inbox, memory


@dataclass(frozen=True, slots=True)
class Click:
    user: str
    at: float


def longer(one: str, other: str) -> str:
    return max(one, other, key=len)


def nothing() -> tuple[float, int]:
    return 0.0, 0


def add(sums: tuple[float, int], at: float) -> tuple[float, int]:
    return sums[0] + at, sums[1] + 1


def mean(sums: tuple[float, int]) -> float:
    return sums[0] / sums[1]


class Score(af.KeyedOperator[str, Click, tuple[str, float]]):
    level = af.ValueState(float)
    limit = af.ValueState(int, default=7)
    first = af.ValueState(Click, default=None)
    recent = af.ListState(Click)
    per_page = af.MapState(str, int)
    longest = af.ReducingState(longer)
    mean_at = af.AggregatingState(nothing, add, mean)
    seen = af.SplitList(str)
    everywhere = af.UnionList(int)

    def __init__(self, half_life_s: float = 60.0) -> None:
        self.half_life_s = half_life_s

    def on_open(self, context: af.HookContext, /) -> None:
        assert_type(context.subtask, int)
        assert_type(context.checkpoint_id, int | None)

    def on_record(self, click: Click, context: af.Context[str]) -> Iterator[tuple[str, float]]:
        assert_type(context.key, str)
        assert_type(self.level.value, float)
        assert_type(self.limit.value, int)
        assert_type(self.first.value, Click | None)
        assert_type(self.recent.get(), list[Click])
        assert_type(self.recent[0], Click)
        assert_type(self.per_page.get("/"), int | None)
        assert_type(self.per_page["/"], int)
        assert_type(self.longest.get(), str | None)
        assert_type(self.mean_at.get(), float | None)
        assert_type(list(self.seen), list[str])
        assert_type(list(self.everywhere), list[int])
        self.level.value = 1.0 + self.level.value * 0.5
        self.first.value = click
        self.recent.append(click)
        self.per_page["/"] = 1
        self.longest.add(click.user)
        self.mean_at.add(click.at)
        yield context.key, self.level.value


def job() -> af.Job:
    scoring = af.Job("scores", parallelism=2, settings={"checkpoints.every": "10s"})
    inbox = Inbox(Click, capacity=10)
    clicks = scoring.read(inbox, name="clicks")
    assert_type(clicks, af.Stream[Click])
    scores = clicks.key_by(lambda click: click.user).process(Score, 30.0, name="score")
    assert_type(scores, af.Stream[tuple[str, float]])
    assert_type(scores.side_output("late", Click), af.Stream[Click])
    scores.write(memory.collect(), name="keep")
    scores.side_output("late", Click).write(memory.collect(), name="late")
    return scoring
