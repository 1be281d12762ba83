from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextvars import ContextVar
from datetime import timedelta
from typing import Any

import pytest

from actorflow.dataflow.chaining import Chain
from actorflow.dataflow.keyed import Context, KeyedOperator
from actorflow.dataflow.lane import AsyncOperator
from actorflow.dataflow.states import ListState, MapState, ValueState
from actorflow.errors import InvalidJob
from actorflow_tests.dataflow.support import chain_of, given

Step = Callable[[], Any]


def opened(operator: Any, careful: bool = False, **options: Any) -> tuple[Chain, AsyncOperator]:
    job, stream, sink = given("a")
    stream.key_by(str).process(operator, name="it", **options).write(sink, name="out")
    chain = chain_of(job, "it", careful=careful)
    assert chain.async_operator is not None
    return chain, chain.async_operator


class Adds(KeyedOperator[str, int, int]):
    """Waits for its gate between reading and writing."""

    total = ValueState(int)
    seen = ListState(int)
    gates: list[asyncio.Event]

    def __init__(self, gates: Any = None) -> None:
        self.gates = gates if gates is not None else []

    async def on_record(self, value: int, context: Context[str]) -> list[int]:
        before = self.total.value
        self.seen.append(value)
        for gate in self.gates:
            await gate.wait()
        self.total.value = before + value
        context.emit(-1)
        return [self.total.value, *self.seen]


CAREFUL = pytest.mark.parametrize("careful", [False, True])


@CAREFUL
def test_nothing_shows_before_the_outcome_is_applied_and_then_all_of_it(careful: bool) -> None:
    chain, operator = opened(Adds, careful)
    _ = chain.states()

    outcome = asyncio.run(operator.call(5, "k", "k"))
    before = asyncio.run(operator.call(7, "k", "k"))

    assert [-1, 5, 5] == operator.apply(outcome)
    assert [-1, 7, 7] == before.outputs, "the second did not see the first, which had not taken effect"
    assert [-1, 13, 5, 8] == operator.apply(asyncio.run(operator.call(8, "k", "k")))


@CAREFUL
def test_invocations_at_the_same_time_see_only_their_own_writes(careful: bool) -> None:
    async def story() -> tuple[list[Any], list[Any]]:
        gate = asyncio.Event()
        _, operator = opened(lambda_class([gate]), careful)
        first = asyncio.ensure_future(operator.call(1, "a", "a"))
        second = asyncio.ensure_future(operator.call(2, "b", "b"))
        await asyncio.sleep(0)
        gate.set()
        outcomes = await asyncio.gather(first, second)
        return operator.apply(outcomes[1]), operator.apply(outcomes[0])

    assert ([-1, 2, 2], [-1, 1, 1]) == asyncio.run(story())


def lambda_class(gates: list[asyncio.Event]) -> type[Adds]:
    class Gated(Adds):
        def __init__(self) -> None:
            super().__init__(gates)

    return Gated


@CAREFUL
def test_r058_handlers_of_one_key_that_take_effect_one_after_the_other_lose_nothing(careful: bool) -> None:
    class Increments(KeyedOperator[str, int, int]):
        n = ValueState(int)

        async def on_record(self, value: int, context: Context[str]) -> list[int]:
            before = self.n.value
            await asyncio.sleep(0)
            self.n.value = before + 1
            return [self.n.value]

    _chain, operator = opened(Increments, careful)

    async def story() -> list[int]:
        outputs: list[int] = []
        for record in range(200):
            outputs += operator.apply(await operator.call(record, "k", "k"))
        return outputs

    assert list(range(1, 201)) == asyncio.run(story())


def test_a_failed_attempt_leaves_nothing_behind_for_the_next_one() -> None:
    class Flaky(KeyedOperator[str, int, list[int]]):
        seen = ListState(int)

        async def on_record(self, value: int, context: Context[str]) -> list[list[int]]:
            self.seen.append(value)
            context.emit([0])
            if value < 0:
                raise OSError("away")
            return [self.seen.get()]

    _, operator = opened(Flaky)
    operator.apply(asyncio.run(operator.call(1, "k", "k")))
    with pytest.raises(OSError, match="away"):
        asyncio.run(operator.call(-1, "k", "k"))

    assert [[0], [1, 2]] == operator.apply(asyncio.run(operator.call(2, "k", "k")))


@CAREFUL
def test_a_mutable_value_is_a_copy_until_the_stroke(careful: bool) -> None:
    class Changes(KeyedOperator[str, int, Any]):
        found = ValueState(list[int])
        names = MapState(str, list[int])

        async def on_record(self, value: int, context: Context[str]) -> Any:
            self.found.value.append(value)
            self.names.setdefault("x", []).append(value)
            return [list(self.found.value), {key: list(items) for key, items in self.names.items()}]

    _, operator = opened(Changes, careful)
    first = asyncio.run(operator.call(1, "k", "k"))
    operator.apply(first)
    unapplied = asyncio.run(operator.call(2, "k", "k"))
    again = asyncio.run(operator.call(3, "k", "k"))

    assert [[1, 2], {"x": [1, 2]}] == unapplied.outputs
    assert [[1, 3], {"x": [1, 3]}] == operator.apply(again)


@CAREFUL
def test_clearing_takes_effect_at_the_stroke_too_even_when_it_was_looked_at_afterwards(careful: bool) -> None:
    class Clears(KeyedOperator[str, str, int]):
        found = ValueState(list[str])
        n = ValueState(int)

        async def on_record(self, value: str, context: Context[str]) -> list[int]:
            if value == "clear":
                self.found.clear()
                self.n.value = None  # type: ignore[assignment]  # the untyped way to clear
                return [len(self.found.value), self.n.value]
            self.found.value.append(value)
            self.n.value += 1
            return [len(self.found.value), self.n.value]

    _, operator = opened(Clears, careful)
    gone = [operator.apply(asyncio.run(operator.call(word, "k", "k"))) for word in ("a", "b", "clear", "c")]

    assert [[1, 1], [2, 2], [0, 0], [1, 1]] == gone


def test_what_a_handler_leaves_running_can_not_write_any_more() -> None:
    class Leaves(KeyedOperator[str, int, Any]):
        n = ValueState(int)

        async def on_record(self, value: int, context: Context[str]) -> Any:
            async def later() -> None:
                await asyncio.sleep(0)
                self.n.value = 3

            return [asyncio.ensure_future(later())]

    async def story() -> None:
        _, operator = opened(Leaves)
        (left,) = (await operator.call(1, "k", "k")).outputs
        with pytest.raises(InvalidJob, match="await it before returning"):
            await left

    asyncio.run(story())


def test_hooks_of_an_async_operator_have_no_key_in_hand() -> None:
    class Reaches(Adds):
        def on_snapshot(self, checkpoint_id: int) -> None:
            self.total.value += 1

    chain, _ = opened(Reaches)
    with pytest.raises(Exception, match="belongs to the record in hand, and here is none"):
        chain.on_snapshot(1)


def test_side_outputs_wait_for_the_stroke() -> None:
    class Sorts(KeyedOperator[str, int, int]):
        async def on_record(self, value: int, context: Context[str]) -> None:
            context.emit_to("late", value)

    job, stream, sink = given("a")
    found = stream.key_by(str).process(Sorts, name="it")
    found.side_output("late").write(sink, name="late")
    found.discard()
    chain = chain_of(job, "it")
    operator = chain.async_operator
    assert operator is not None

    outcome = asyncio.run(operator.call(4, "k", "k"))
    assert chain.take_side() is None
    operator.apply(outcome)
    assert {"late": [4]} == chain.side
    assert {"late": [4]} == chain.take_side()
    assert chain.take_side() is None


def test_options_arrive_in_milliseconds_never_shorter_than_asked_for() -> None:
    _, operator = opened(
        Adds,
        in_flight=9,
        ordered=False,
        timeout=timedelta(microseconds=1_500),
        retries=3,
        retry_delay=timedelta(seconds=2),
    )

    assert (True, 9, False, 2, 4, 3, 2_000) == (
        operator.keyed,
        operator.in_flight,
        operator.ordered,
        operator.timeout_ms,
        operator.retry.attempts,
        operator.retries,
        operator.retry_delay_ms,
    )


request: ContextVar[str] = ContextVar("request", default="none")


def test_r140_a_function_in_a_thread_sees_the_context_of_its_call() -> None:
    job, stream, sink = given("a")
    stream.map(lambda _: request.get(), name="slow", in_thread=True).write(sink, name="out")
    operator = chain_of(job, "slow").async_operator
    assert operator is not None

    async def story() -> Any:
        request.set("mine")
        return operator.apply(await operator.call(1, None, None))

    assert ["mine"] == asyncio.run(story())


def test_a_call_puts_the_context_back_as_it_was() -> None:
    _, operator = opened(Adds)

    async def story() -> tuple[Any, Any]:
        import contextvars

        before = contextvars.copy_context()
        await operator.call(1, "k", "k")
        return before, contextvars.copy_context()

    before, after = asyncio.run(story())
    assert before == after
