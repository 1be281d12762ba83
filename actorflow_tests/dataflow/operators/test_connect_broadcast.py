from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from actorflow.dataflow.job import Job
from actorflow.dataflow.keyed import Context, HookContext, KeyedBroadcastOperator, KeyedOperator
from actorflow.dataflow.plan import ExchangeKind
from actorflow.dataflow.states import BroadcastState, ValueState
from actorflow.errors import InvalidJob, OperatorFailed
from actorflow.model.elements import Batch
from actorflow.model.manifest import Redistribution
from actorflow_tests.dataflow.support import Given, Kept, Run, chain_of, given, keyed_batch


class Limits(KeyedBroadcastOperator[str, str, tuple[str, int], Any]):
    """Says of each word whether it is longer than what the rules say of its first letter."""

    limits = BroadcastState(str, int)
    seen = ValueState(int)

    def on_record(self, value: str, context: Context[str]) -> Any:
        return self.judge(value)

    def judge(self, value: str) -> Iterator[Any]:
        self.seen.value += 1
        yield value, len(value) > self.limits.get(value[0], 100), self.seen.value

    def on_broadcast(self, value: tuple[str, int], context: HookContext) -> list[Any]:
        self.limits[value[0]] = value[1]
        return [("rule", context.subtask)]


class LimitsLater(Limits):
    async def on_record(self, value: str, context: Context[str]) -> Any:
        return list(self.judge(value))


def connected(operator: Any = Limits, parallelism: int = 1) -> tuple[Run, Kept]:
    job, stream, sink = given("apple", "bee")
    rules = job.read(Given([("a", 3), ("b", 3)]), name="rules", parallelism=1)
    stream.key_by(lambda word: word[0]).connect_broadcast(rules, operator, name="limit").write(sink, name="out")
    return Run(job, parallelism=parallelism), sink


@pytest.mark.parametrize("operator", [Limits, LimitsLater])
def test_records_are_judged_by_what_the_broadcast_side_said(operator: Any) -> None:
    run, _ = connected(operator)
    chain = run.chains[run.plan.vertex_of("limit").index, 0]
    batch = keyed_batch(["apple", "bee"], ["a", "b"])

    before = run._through(chain, batch, 0)
    rules = run._through(chain, Batch([("a", 3), ("b", 3)]), 1)
    after = run._through(chain, batch, 0)

    assert [("apple", False, 1), ("bee", False, 1)] == before
    assert [("rule", 0), ("rule", 0)] == rules
    assert [("apple", True, 2), ("bee", False, 2)] == after


def test_every_subtask_sees_every_record_of_the_broadcast_side() -> None:
    run, sink = connected(parallelism=3)
    run.to_end()

    assert [("rule", 0)] * 2 + [("rule", 1)] * 2 + [("rule", 2)] * 2 == sorted(
        row for row in sink.rows if row[0] == "rule"
    )
    kinds = [(one.kind, one.role) for one in run.plan.exchanges if one.downstream == run.plan.vertex_of("limit").index]
    assert [(ExchangeKind.KEYED, 0), (ExchangeKind.BROADCAST, 1)] == kinds


def test_r026_the_rules_are_kept_as_pairs_of_key_and_value_and_come_back() -> None:
    run, _ = connected()
    chain = run.chains[run.plan.vertex_of("limit").index, 0]
    chain.process(Batch([("a", 3), ("b", 4)]), 1)
    ((operator, state, redistribution, elements),) = chain.list_states()

    assert ("limit", "limits", Redistribution.BROADCAST, [["a", 3], ["b", 4]]) == (
        operator,
        state,
        redistribution,
        elements,
    )

    other, _ = connected()
    restored = other.chains[other.plan.vertex_of("limit").index, 0]
    restored.restore_lists("limit", "limits", elements, redistribution)
    assert [("bbbbb", True, 1)] == restored.process(keyed_batch(["bbbbb"], ["b"]))


def test_only_the_broadcast_side_may_write_the_rules() -> None:
    class Writes(Limits):
        def on_record(self, value: str, context: Context[str]) -> Any:
            self.limits[value] = 1

    run, _ = connected(Writes)
    chain = run.chains[run.plan.vertex_of("limit").index, 0]
    with pytest.raises(OperatorFailed, match="broadcast state 'limits' may be changed in on_broadcast only"):
        chain.process(keyed_batch(["a"], ["a"]))


def test_the_broadcast_side_has_no_key_and_its_record_is_named_when_it_fails() -> None:
    class Reaches(Limits):
        def on_broadcast(self, value: tuple[str, int], context: HookContext) -> list[Any]:
            if value[1] == 0:
                self.seen.value += 1
            return []

    run, _ = connected(Reaches)
    chain = run.chains[run.plan.vertex_of("limit").index, 0]
    chain.process(keyed_batch(["a"], ["a"]))
    with pytest.raises(OperatorFailed, match="state 'seen' belongs to a key") as caught:
        chain.process(Batch([("a", 3), ("b", 0), ("c", 1)]), 1)
    assert (None, "('b', 0)") == (caught.value.key, caught.value.record)
    chain.process(keyed_batch(["a"], ["a"]))


def test_a_stream_that_was_broadcast_already_is_taken_as_it_is() -> None:
    job, stream, sink = given("a")
    rules = job.read(Given([("a", 1)]), name="rules").broadcast()
    stream.key_by(str).connect_broadcast(rules, Limits, name="limit").write(sink, name="out")
    assert 3 == len(job.plan().vertices)


class NoSide(KeyedOperator[str, str, str]):
    def on_record(self, value: str, context: Context[str]) -> None: ...


def test_what_does_not_fit_together_is_refused() -> None:
    job, stream, _ = given("a")
    rules = job.read(Given([("a", 1)]), name="rules")
    foreign = Job("other").read(Given([("a", 1)]), name="rules")
    keyed = stream.key_by(str)
    with pytest.raises(InvalidJob, match="must be a KeyedBroadcastOperator"):
        keyed.connect_broadcast(rules, NoSide, name="it")
    with pytest.raises(InvalidJob, match=r"use keyed.connect_broadcast\(rules"):
        keyed.process(Limits, name="it")
    with pytest.raises(InvalidJob, match=r"connect_broadcast.*another job"):
        keyed.connect_broadcast(foreign, Limits, name="it")
    with pytest.raises(InvalidJob, match=r"connect_broadcast\(\) follows rebalance\(\)"):
        keyed.connect_broadcast(rules.rebalance(), Limits, name="it")
    with pytest.raises(InvalidJob, match=r"connect_broadcast\(\) needs a name="):
        keyed.connect_broadcast(rules, Limits)


def test_the_chain_of_another_operator_has_no_broadcast_side() -> None:
    job, stream, sink = given("a")
    stream.key_by(str).count(name="count").write(sink, name="out")
    with pytest.raises(AssertionError, match="role 1"):
        chain_of(job, "count").process(Batch(["x"]), 1)
