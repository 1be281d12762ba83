"""Awaiting functions: bounded, in order, checkpointed, never half of anything (semantics 15.1)."""

from __future__ import annotations

import asyncio
import threading
from collections import Counter
from contextvars import ContextVar
from datetime import timedelta
from typing import Any, ClassVar

import pytest

import actorflow as af
from actorflow.connectors import generator, memory
from actorflow.model import journal
from actorflow.simulation.world import Universe
from actorflow_tests.runtime.support import again, completed, entries, environment, play, running_counts, seeds, start

MS = timedelta(milliseconds=1)


def lane_job(function: Any, sink: Any, *, records: int = 100, keyed: bool = False, **options: Any) -> af.Job:
    job = af.Job("lane")
    stream = job.read(memory.source(range(records), splits=2, chunk_records=9), name="read", parallelism=1)
    stream.map(function, name="call", **options).write(sink, name="write")
    return job


# ── order and bounds ─────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("ordered", [True, False])
@pytest.mark.parametrize("in_flight", [1, 2, 7, 50])
def test_at_most_so_many_calls_are_in_the_air_and_order_is_kept_when_asked(ordered: bool, in_flight: int) -> None:
    async def story(universe: Universe) -> None:
        sink, now, most = memory.collect(), [0], [0]

        async def call(number: int) -> int:
            now[0] += 1
            most[0] = max(most[0], now[0])
            await asyncio.sleep((number * 7 % 5) / 1_000)
            now[0] -= 1
            return number

        job = lane_job(call, sink, in_flight=in_flight, ordered=ordered)
        async with environment(universe.world("p"), every_ms=5).run(job) as handle:
            await handle.wait()
        assert most[0] <= in_flight
        assert ordered or most[0] == in_flight
        # The source interleaves its two splits in order, so the order of arrival is that of a run without the lane.
        straight = memory.collect()
        async with environment(universe.world("q")).run(
            lane_job(lambda number: number, straight), resume_from="nothing"
        ) as handle:
            await handle.wait()
        assert Counter(sink.rows) == Counter(range(100))
        if ordered:
            for low, high in ((0, 50), (50, 100)):
                assert [row for row in sink.rows if low <= row < high] == list(range(low, high))
        elif in_flight > 2:
            assert sink.rows != straight.rows

    play(story)


def test_r158_the_order_of_ordered_results_does_not_depend_on_who_answers_first() -> None:
    async def story(universe: Universe) -> list[Any]:
        sink = memory.collect()

        async def call(number: int) -> int:
            one, other = asyncio.sleep((number * 13 % 7) / 1_000, number), asyncio.sleep((number % 3) / 1_000, 0)
            return sum(await asyncio.gather(one, other))

        async with environment(universe.world("p")).run(lane_job(call, sink, in_flight=20)) as handle:
            await handle.wait()
        return sink.rows

    first, *others = (play(story, seed) for seed in range(4))
    splits = [[row for row in rows if row < 50] for rows in (first, *others)]
    assert splits == [list(range(50))] * 4


class Counts(af.KeyedOperator[str, str, Any]):
    """An async running count that gives its turn away in the middle of each step."""

    seen = af.ValueState(int)
    running: ClassVar[dict[str, int]] = {}

    async def on_record(self, word: str, context: af.Context[str]) -> Any:
        Counts.running[word] = Counts.running.get(word, 0) + 1
        assert Counts.running[word] == 1, "one call per key at a time"
        before = self.seen.value
        self.seen.value = before + 1
        await asyncio.sleep(len(word) % 3 / 1_000)
        assert self.seen.value == before + 1
        Counts.running[word] -= 1
        return [(word, self.seen.value)]


def words(index: int) -> str:
    return "x" * (index * 5 % 7) + f"w{index * index % 11}"


def async_counts(sink: Any, *, ordered: bool, records: int = 300, in_flight: int = 8) -> af.Job:
    job = af.Job("async")
    source = generator.generate(words, records=records, per_second=1_000, splits=2)
    (
        job.read(source, name="read")
        .key_by(lambda word: word)
        .process(Counts, name="count", in_flight=in_flight, ordered=ordered)
        .write(sink, name="write")
    )
    return job


@pytest.mark.parametrize("ordered", [True, False])
@pytest.mark.parametrize("parallelism", [1, 2, 3])
def test_inv_15_3_async_handlers_give_what_plain_ones_give(ordered: bool, parallelism: int) -> None:
    async def story(universe: Universe) -> None:
        Counts.running.clear()
        sink = memory.collect()
        settings = environment(universe.world("p"), every_ms=10, parallelism=parallelism)
        async with settings.run(async_counts(sink, ordered=ordered)) as handle:
            await handle.wait()
        assert sorted(sink.rows) == running_counts(map(words, range(300)))
        for word in {words(index) for index in range(300)}:
            counts = [count for key, count in sink.rows if key == word]
            assert counts == sorted(counts), "INV-15.1: of one key, results leave in order of arrival"

    for seed in seeds(3):
        play(story, seed)


def test_r058_records_of_one_key_wait_for_each_other_and_those_of_others_do_not() -> None:
    async def story(universe: Universe) -> None:
        began: list[tuple[str, int]] = []

        class Slow(af.KeyedOperator[str, str, Any]):
            async def on_record(self, word: str, context: af.Context[str]) -> Any:
                began.append((word, universe.now_ms()))
                await asyncio.sleep(1)
                return [word]

        sink = memory.collect()
        job = af.Job("slow")
        job.read(memory.source(["a", "a", "a", "b", "c"]), name="read").key_by(str.lower).process(
            Slow, name="slow", in_flight=10
        ).write(sink, name="write")
        async with environment(universe.world("p")).run(job) as handle:
            await handle.wait()
        at = universe.now_ms() - 3_100
        first = min(when for _, when in began)
        assert at < first + 3_000
        assert [round((when - first) / 1_000) for word, when in began if word == "a"] == [0, 1, 2]
        assert [when - first for word, when in began if word in "bc"] == [0, 0]

    play(story)


# ── checkpoints ──────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("ordered", [True, False])
@pytest.mark.parametrize(("old", "new"), [(1, 1), (2, 3), (3, 1), (1, 4)])
def test_inputs_in_the_air_survive_kills_and_rescaling_and_no_half_of_a_handler_is_ever_kept(
    ordered: bool, old: int, new: int
) -> None:
    async def story(universe: Universe) -> None:
        sink = memory.collect()
        for parallelism in (old, new, old):
            Counts.running.clear()
            process = await start(
                universe, async_counts(sink, ordered=ordered), environment(every_ms=20, parallelism=parallelism)
            )
            await asyncio.sleep(universe.chance.between("life", 30, 140) / 1_000)
            process.kill()
            await process.wait()
        Counts.running.clear()
        process = await start(universe, async_counts(sink, ordered=ordered), environment(every_ms=20, parallelism=new))
        assert (await process.wait()).result() is af.JobStatus.FINISHED
        assert sorted(sink.rows) == running_counts(map(words, range(300)))

    for seed in seeds(3):
        play(story, seed)


def test_a_barrier_does_not_wait_for_a_slow_call_and_its_input_is_called_again_before_anything_new() -> None:
    async def story(universe: Universe) -> None:
        sink, calls, hold = memory.collect(), list[int](), asyncio.Event()

        async def call(number: int) -> int:
            calls.append(number)
            if number == 3:
                await hold.wait()
            return number

        def job() -> af.Job:
            made = af.Job("lane")
            made.read(generator.numbers(1_000, per_second=100), name="read").map(call, name="call", in_flight=50).write(
                sink, name="write"
            )
            return made

        async with environment(universe.world("a")).run(job()) as handle:
            await asyncio.sleep(0.2)
            info = await handle.checkpoint()
            assert info.duration_ms < 100
            await asyncio.sleep(0.01)
            assert sink.rows == [0, 1, 2]
            await handle.cancel()
        calls.clear()
        hold.set()
        async with environment(universe.world("b")).run(job()):
            await asyncio.sleep(0.1)
        assert calls[0] == 3
        assert sink.rows == list(range(len(sink.rows)))
        assert len(sink.rows) > 4

    play(story)


def test_a_barrier_with_nothing_before_it_passes_a_lane_that_is_full() -> None:
    async def story(universe: Universe) -> None:
        hold = asyncio.Event()

        async def call(number: int) -> int:
            await hold.wait()
            return number

        sink = memory.collect()
        async with environment(universe.world("a")).run(lane_job(call, sink, records=4, in_flight=4)) as handle:
            await asyncio.sleep(0.1)
            info = await handle.checkpoint()
            assert info.duration_ms < 100
            hold.set()
            await handle.wait()
        assert sorted(sink.rows) == [0, 1, 2, 3]

    play(story)


@pytest.mark.parametrize("parallelism", [1, 3])
def test_stopping_does_not_wait_for_calls_and_drain_does(parallelism: int) -> None:
    async def story(universe: Universe) -> None:
        sink = memory.collect()

        async def call(number: int) -> int:
            await asyncio.sleep(5)
            return number

        def job() -> af.Job:
            made = af.Job("lane")
            made.read(generator.numbers(per_second=20, splits=2), name="read").map(
                call, name="call", in_flight=30
            ).write(sink, name="write")
            return made

        async with environment(universe.world("a"), parallelism=parallelism).run(job()) as handle:
            await asyncio.sleep(1)
            began = universe.now_ms()
            await handle.stop()
            assert universe.now_ms() - began < 500
        assert sink.rows == []
        async with environment(universe.world("b"), parallelism=parallelism).run(job()) as handle:
            await handle.drain()
        assert len(sink.rows) > 15
        assert sorted(sink.rows) == list(range(len(sink.rows)))

    play(story)


@pytest.mark.parametrize("ending", ["end", "cancel", "stop"])
def test_r146_two_chained_async_steps_of_one_end_in_every_way(ending: str) -> None:
    async def story(universe: Universe) -> None:
        sink = memory.collect()

        async def call(number: int) -> int:
            await asyncio.sleep(0.001)
            return number

        job = af.Job("lane")
        stream = job.read(memory.source(range(200), chunk_records=3), name="read")
        stream.map(call, name="one", in_flight=1).map(call, name="two", in_flight=1).write(sink, name="write")
        buffers = af.Buffers(per_channel=1, floating_per_gate=0, most_per_channel=1, records=1)
        async with environment(universe.world("p"), every_ms=10, buffers=buffers).run(job) as handle:
            if ending == "end":
                await handle.wait()
            else:
                await asyncio.sleep(0.05)
                await (handle.cancel() if ending == "cancel" else handle.stop())
        if ending == "end":
            assert sink.rows == list(range(200))
        else:
            assert sink.rows == list(range(len(sink.rows)))

    for seed in seeds(5):
        play(story, seed)


# ── timeouts and retries ─────────────────────────────────────────────────────────────────────


def test_r144_a_result_and_a_timeout_in_one_tick_give_the_result_one_hundred_times_in_order() -> None:
    async def story(universe: Universe) -> None:
        sink, calls = memory.collect(), Counter[int]()

        async def call(number: int) -> int:
            calls[number] += 1
            if calls[number] == 1 and number % 2:
                raise OSError("once")
            await asyncio.sleep(0.010 if calls[number] == 1 else 0)
            return number

        job = lane_job(call, sink, in_flight=10, timeout=10 * MS, retries=3, retry_delay=9 * MS)
        async with environment(universe.world("p")).run(job) as handle:
            await handle.wait()
        assert Counter(sink.rows) == Counter(range(100))
        for low, high in ((0, 50), (50, 100)):
            assert [row for row in sink.rows if low <= row < high] == list(range(low, high))

    for seed in seeds(3):
        play(story, seed)


def test_r147_no_call_starts_at_the_deadline_or_after_it_and_there_is_one_timeout() -> None:
    async def story(universe: Universe) -> None:
        starts: list[int] = []

        async def call(number: int) -> int:
            starts.append(universe.now_ms())
            raise OSError("always")

        job = lane_job(call, memory.collect(), records=1, timeout=5 * MS, retries=100, retry_delay=2 * MS)
        with pytest.raises(af.JobFailed, match=r"no result within timeout=0.005 s, in 3 calls") as caught:
            async with environment(universe.world("p")).run(job) as handle:
                await handle.wait()
        assert [start - starts[0] for start in starts] == [0, 2, 4]
        assert isinstance(caught.value.__cause__, af.OperatorFailed)
        await asyncio.sleep(1)
        assert len(starts) == 3

    play(story)


def test_a_call_that_hangs_is_cancelled_at_its_timeout_and_the_failure_names_record_and_operator() -> None:
    async def story(universe: Universe) -> None:
        cancelled = []

        async def call(number: int) -> int:
            try:
                await asyncio.sleep(3_600)
            except asyncio.CancelledError:
                cancelled.append(universe.now_ms())
                raise
            return number

        job = lane_job(call, memory.collect(), records=1, timeout=50 * MS)
        began = universe.now_ms()
        with pytest.raises(af.JobFailed, match=r"operator 'call', subtask 0, record 0: TimeoutError: no result within"):
            async with environment(universe.world("p")).run(job) as handle:
                await handle.wait()
        assert cancelled
        assert cancelled[0] - began < 200

    play(story)


def test_a_call_that_fails_for_good_is_told_how_often_it_was_tried_and_loses_nothing() -> None:
    async def story(universe: Universe) -> None:
        sink, broken = memory.collect(), [True]

        async def call(number: int) -> int:
            if number == 30 and broken:
                raise OSError("broken")
            return number

        job = lane_job(call, sink, in_flight=5, retries=2, retry_delay=3 * MS)
        async with environment(universe.world("p"), every_ms=5, restart=again(20)).run(job) as handle:
            await asyncio.sleep(0.2)
            assert handle.status.restarts >= 1
            broken.clear()
            await handle.wait()
        assert Counter(sink.rows) == Counter(range(100))
        [failed, *_] = entries(universe, journal.ActorFailed)
        assert "operator 'call', subtask 0, record 30: OSError: broken" in failed.detail

    play(story)


def test_a_failed_attempt_at_a_keyed_record_leaves_nothing_of_its_writes() -> None:
    async def story(universe: Universe) -> None:
        tries = Counter[str]()

        class Flaky(af.KeyedOperator[str, str, Any]):
            seen = af.ListState(int)

            async def on_record(self, word: str, context: af.Context[str]) -> Any:
                self.seen.append(1)
                context.emit("half")
                await asyncio.sleep(0.001)
                tries[word] += 1
                if tries[word] % 3:
                    raise OSError("flaky")
                return [(word, len(self.seen))]

        sink = memory.collect()
        job = af.Job("flaky")
        job.read(memory.source(["a", "b"] * 5), name="read").key_by(str.lower).process(
            Flaky, name="flaky", retries=5, retry_delay=1 * MS, in_flight=4
        ).write(sink, name="write")
        async with environment(universe.world("p")).run(job) as handle:
            await handle.wait()
        assert sorted(row for row in sink.rows if row != "half") == running_counts(["a", "b"] * 5)
        assert sink.rows.count("half") == 10

    play(story)


# ── contexts and threads ─────────────────────────────────────────────────────────────────────

request_id: ContextVar[str] = ContextVar("request_id", default="none")


def test_r140_no_call_sees_what_another_one_set_and_all_see_what_the_program_set() -> None:
    async def story(universe: Universe) -> None:
        sink = memory.collect()

        class Sets(af.KeyedOperator[int, int, Any]):
            async def on_record(self, number: int, context: af.Context[int]) -> Any:
                found = request_id.get()
                request_id.set(f"of {number}")
                await asyncio.sleep(number % 7 / 1_000)
                assert request_id.get() == f"of {number}"
                return [found]

        async def call(number: Any) -> Any:
            return number, request_id.get()

        job = af.Job("contexts")
        (
            job.read(memory.source(range(100)), name="read")
            .key_by(lambda number: number)
            .process(Sets, name="sets", in_flight=10)
            .map(call, name="after", in_flight=3)
            .write(sink, name="write")
        )
        token = request_id.set("the program's")
        async with environment(universe.world("p")).run(job) as handle:
            await handle.wait()
        request_id.reset(token)
        assert {*sink.rows} == {("the program's", "the program's")}
        assert len(sink.rows) == 100

    for seed in seeds(3):
        play(story, seed)


def test_in_thread_computes_off_the_loop_keeps_order_and_carries_the_context() -> None:
    async def story(universe: Universe) -> None:
        sink = memory.collect()

        def compute(number: int) -> tuple[int, str]:
            return number * number, request_id.get()

        token = request_id.set("the program's")
        job = lane_job(compute, sink, in_thread=True)
        async with environment(universe.world("p"), every_ms=5).run(job) as handle:
            await handle.wait()
        request_id.reset(token)
        assert sorted(sink.rows) == [(number * number, "the program's") for number in range(100)]
        assert threading.active_count() == 1

    play(story)


def test_a_thread_function_that_raises_is_named() -> None:
    async def story(universe: Universe) -> None:
        def compute(number: int) -> int:
            return 1 // number

        with pytest.raises(af.JobFailed, match="operator 'call', subtask 0, record 0: ZeroDivisionError"):
            async with environment(universe.world("p")).run(
                lane_job(compute, memory.collect(), in_thread=True)
            ) as handle:
                await handle.wait()

    play(story)


def test_filters_and_flat_maps_may_await_too_and_broadcast_sides_reach_async_handlers() -> None:
    async def story(universe: Universe) -> None:
        sink = memory.collect()

        async def even(number: int) -> bool:
            await asyncio.sleep(0.001)
            return number % 2 == 0

        async def twice(number: int) -> Any:
            for _ in range(2):
                await asyncio.sleep(0)
                yield number

        class Ruled(af.KeyedBroadcastOperator[int, int, int, Any]):
            rules = af.BroadcastState(str, int)

            async def on_record(self, number: int, context: af.Context[int]) -> Any:
                await asyncio.sleep(0.01)
                return [(number, self.rules.get("rule", 0))]

            def on_broadcast(self, rule: int, context: af.HookContext) -> Any:
                self.rules["rule"] = rule
                return []

        job = af.Job("awaits")
        rules = job.read(memory.source([1]), name="rules")
        (
            job.read(generator.numbers(50, per_second=100), name="read")
            .filter(even, name="even")
            .flat_map(twice, name="twice")
            .key_by(lambda number: number)
            .connect_broadcast(rules, Ruled, name="ruled")
            .write(sink, name="write")
        )
        async with environment(universe.world("p"), every_ms=20, parallelism=2).run(job) as handle:
            await handle.wait()
        assert Counter(number for number, _ in sink.rows) == Counter([*range(0, 50, 2)] * 2)
        assert {rule for _, rule in sink.rows} <= {0, 1}
        assert completed(universe)

    for seed in seeds(3):
        play(story, seed)


@pytest.mark.parametrize("ending", ["cancel", "timeout"])
def test_r137_a_call_that_is_cancelled_may_wait_while_it_cleans_up(ending: str) -> None:
    async def story(universe: Universe) -> None:
        cleaned: list[int] = []

        async def call(number: int) -> int:
            try:
                await asyncio.sleep(3_600)
            finally:
                await asyncio.sleep(0.2)
                await asyncio.sleep(0.2)
                cleaned.append(number)
            return number

        timeout = 100 * MS if ending == "timeout" else None
        job = lane_job(call, memory.collect(), records=4, in_flight=4, timeout=timeout)
        began = universe.now_ms()
        try:
            async with environment(universe.world("p")).run(job) as handle:
                await asyncio.sleep(0.05)
                await (handle.cancel() if ending == "cancel" else handle.wait())
        except af.JobFailed:
            assert ending == "timeout"
        assert sorted(cleaned) == [0, 1, 2, 3]
        assert universe.now_ms() - began < 1_000

    play(story)
