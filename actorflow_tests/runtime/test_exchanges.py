"""Which channels an exchange has and who gets which record, up and down, with barriers passing on all of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest

import actorflow as af
from actorflow.connectors import memory
from actorflow.dataflow.plan import ExchangeKind
from actorflow.runtime.exchanges import targets
from actorflow.simulation.world import Universe
from actorflow_tests.runtime.support import again, completed, environment, play


@pytest.mark.parametrize("upstream", range(1, 8))
@pytest.mark.parametrize("downstream", range(1, 8))
def test_every_upstream_and_every_downstream_subtask_has_a_channel(upstream: int, downstream: int) -> None:
    for kind in ExchangeKind:
        if kind is ExchangeKind.FORWARD and upstream != downstream:
            continue
        found = [targets(kind, subtask, upstream, downstream) for subtask in range(upstream)]
        assert all(found), f"{kind}: somebody has nobody to send to"
        assert {target for one in found for target in one} == {*range(downstream)}, f"{kind}: somebody is never sent to"


def test_rescale_stays_among_neighbours_and_forward_with_its_own() -> None:
    assert [targets(ExchangeKind.RESCALE, subtask, 2, 4) for subtask in range(2)] == [[0, 1], [2, 3]]
    assert [targets(ExchangeKind.RESCALE, subtask, 4, 2) for subtask in range(4)] == [[0], [0], [1], [1]]
    assert [targets(ExchangeKind.RESCALE, subtask, 2, 3) for subtask in range(2)] == [[0, 1], [2]]
    assert [targets(ExchangeKind.FORWARD, subtask, 3, 3) for subtask in range(3)] == [[0], [1], [2]]


class Tagged(af.Operator[Any, Any]):
    """Says which subtask saw a record, of how many."""

    def on_record(self, value: Any, context: af.Context[None]) -> Any:
        return [(context.subtask, value)]


WAYS: dict[str, Callable[[Any], Any]] = {
    "rebalance": lambda stream: stream.rebalance(),
    "shuffle": lambda stream: stream.shuffle(),
    "rescale": lambda stream: stream.rescale(),
    "global": lambda stream: stream.global_(),
    "broadcast": lambda stream: stream.broadcast(),
    "custom": lambda stream: stream.partition_by(lambda value, subtasks: value % subtasks),
}
RECORDS = 180
TIGHT = af.Buffers(per_channel=1, floating_per_gate=0, most_per_channel=1, records=3)


def through(way: str, upstream: int, downstream: int, sink: Any, fails: list[int]) -> af.Job:
    def fail(value: int) -> int:
        if value in fails:
            fails.remove(value)
            raise ValueError(value)
        return value

    job = af.Job("job")
    stream = job.read(memory.source(range(RECORDS), splits=4, chunk_records=5), name="read", parallelism=upstream)
    WAYS[way](stream.map(fail)).process(Tagged, name="seen", parallelism=downstream).rebalance().write(
        sink, name="write", parallelism=1
    )
    return job


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(
    ("upstream", "downstream"),
    [
        (1, 3),
        (3, 2),
        (2, 3),
        *(pytest.param(*pair, marks=pytest.mark.slow) for pair in ((1, 1), (3, 1), (2, 4), (4, 2), (4, 4))),
    ],
)
def test_every_record_comes_where_it_should_with_checkpoints_failures_and_buffers_of_one(
    way: str, upstream: int, downstream: int
) -> None:
    async def story(universe: Universe) -> None:
        sink = memory.collect()
        settings = environment(universe.world("p"), every_ms=5, restart=again(), buffers=TIGHT)
        async with settings.run(through(way, upstream, downstream, sink, [60, 130])) as handle:
            await handle.wait()
        assert handle.status.restarts == 2
        assert completed(universe)
        copies = downstream if way == "broadcast" else 1
        assert Counter(value for _, value in sink.rows) == Counter(list(range(RECORDS)) * copies)
        by_subtask = Counter(subtask for subtask, _ in sink.rows)
        match way:
            case "global":
                assert [*by_subtask] == [0]
            case "custom":
                assert all(subtask == value % downstream for subtask, value in sink.rows)
            case "broadcast":
                assert {*by_subtask.values()} == {RECORDS}
            case "rebalance":
                assert max(by_subtask.values()) - min(by_subtask.values()) <= 3 * 4 * upstream
            case "shuffle":
                assert len(by_subtask) == downstream

    play(story, seed=upstream * 5 + downstream, batch_us=400)


def test_a_custom_partitioner_that_answers_nonsense_or_raises_is_named_with_its_record() -> None:
    def job(function: Any) -> af.Job:
        made = af.Job("job")
        made.read(memory.source([5]), name="read").partition_by(function).write(
            memory.collect(), name="write", parallelism=2
        )
        return made

    async def story(universe: Universe) -> None:
        for index, (answer, words) in enumerate(
            [
                (2, r"its partitioner answered 2 for one of 2 subtasks; it must be an int from 0 to 1"),
                (-1, "answered -1"),
                (True, "answered True"),
                ("0", "answered '0'"),
            ]
        ):
            with pytest.raises(af.JobFailed, match=words):
                async with environment(universe.world(f"p{index}"), storage=None).run(
                    job(lambda value, subtasks, answer=answer: answer)
                ) as handle:
                    await handle.wait()
        with pytest.raises(af.JobFailed, match="record 5: its partitioner raised ZeroDivisionError"):
            async with environment(universe.world("q"), storage=None).run(
                job(lambda value, subtasks: value // 0)
            ) as handle:
                await handle.wait()

    play(story)


def test_records_are_not_shown_when_that_is_switched_off() -> None:
    async def story(universe: Universe) -> None:
        job = af.Job("job")
        job.read(memory.source(["secret"]), name="read").partition_by(lambda value, subtasks: len(value) // 0).write(
            memory.collect(), name="write", parallelism=2
        )
        with pytest.raises(af.JobFailed) as caught:
            async with environment(universe.world("p"), storage=None, show_records=False).run(job) as handle:
                await handle.wait()
        assert "secret" not in str(caught.value)

    play(story)
