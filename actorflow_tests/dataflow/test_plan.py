from __future__ import annotations

from typing import Any

import pytest

from actorflow.config import Settings
from actorflow.dataflow.job import Job
from actorflow.dataflow.plan import ExchangeKind, OperatorKind, compile_plan
from actorflow.errors import InvalidConfig, InvalidJob
from actorflow_tests.dataflow.support import Given, Kept, given


def chains(job: Job, **settings: Any) -> list[list[str]]:
    return [[one.name for one in vertex.operators] for vertex in job.plan(**settings).vertices]


# ── chains ───────────────────────────────────────────────────────────────────────────────────


def test_what_needs_no_exchange_shares_an_actor() -> None:
    job, stream, sink = given("a")
    stream.map(str).flat_map(str.split).filter(bool).key_by(str).count(name="count").map(str).write(sink, name="out")

    assert [["in", "map", "flat_map", "filter"], ["count", "map-2", "out"]] == chains(job)


def test_a_call_begins_an_actor_and_what_follows_joins_it() -> None:
    async def look(x: str) -> str:
        return x

    job, stream, sink = given("a")
    stream.map(str).map(look, name="look").map(str).write(sink, name="out")

    assert [["in", "map"], ["look", "map-2", "out"]] == chains(job)
    assert OperatorKind.CALL is job.plan().vertices[1].operators[0].kind


def test_two_readers_of_one_output_break_the_chain() -> None:
    job, stream, sink = given("a")
    words = stream.map(str)
    words.map(str).write(sink, name="out")
    words.write(Kept(), name="out-2")

    assert [["in", "map"], ["map-2", "out"], ["out-2"]] == chains(job)
    assert [ExchangeKind.FORWARD] * 2 == [one.kind for one in job.plan().exchanges]


def test_a_union_breaks_the_chain() -> None:
    job, stream, sink = given("a")
    stream.union(job.read(Given(["b"]), name="more")).map(str).write(sink, name="out")

    assert [["in"], ["more"], ["map", "out"]] == chains(job)


def test_a_side_output_breaks_the_chain_and_names_its_tag() -> None:
    job, stream, sink = given(1)
    odd, even = stream.branch(lambda x: x % 2)
    odd.map(str).write(sink, name="out")
    even.map(str).write(Kept(), name="out-2")

    plan = job.plan()

    assert [["in", "branch"], ["map", "out"], ["map-2", "out-2"]] == chains(job)
    assert ["branch-1", None] == [one.tag for one in plan.exchanges]
    assert ("branch-1",) == plan.vertices[0].tags


def test_the_rest_of_a_branch_may_share_its_actor_when_nobody_else_reads() -> None:
    job, stream, sink = given(1)
    odd, even = stream.branch(lambda x: x % 2)
    odd.discard()
    even.map(str).write(sink, name="out")

    assert [["in", "branch", "map", "out"]] == chains(job)


def test_a_user_can_break_a_chain() -> None:
    job, stream, sink = given(1)
    stream.map(str).break_chain().map(str).break_chain().write(sink, name="out")

    assert [["in", "map"], ["map-2"], ["out"]] == chains(job)


def test_an_explicit_exchange_breaks_a_chain_even_at_parallelism_one() -> None:
    job, stream, sink = given(1)
    stream.rebalance().map(str).write(sink, name="out")

    assert [["in"], ["map", "out"]] == chains(job)


def test_another_parallelism_breaks_a_chain() -> None:
    job, stream, sink = given(1)
    stream.map(str, parallelism=2).write(sink, name="out")

    assert [["in"], ["map", "out"]] == chains(job)
    assert [["in", "map", "out"]] == chains(job, parallelism=2)


# ── where operators run ──────────────────────────────────────────────────────────────────────


def test_an_operator_runs_where_its_input_is_made_so_that_order_is_kept() -> None:
    job = Job("job")
    stream = job.read(Given([1]), name="in", parallelism=1)
    stream.map(str).key_by(str).count(name="count").map(str).write(Kept(), name="out")

    plan = job.plan(parallelism=4)

    assert [1, 1, 4, 4, 4] == [plan.parallelism_of(name) for name in ("in", "map", "count", "map-2", "out")]


def test_streams_of_different_parallelism_meet_at_that_of_the_job() -> None:
    job = Job("job")
    one = job.read(Given([1]), name="one", parallelism=1)
    two = job.read(Given([1]), name="two", parallelism=2)
    one.union(two).write(Kept(), name="out")

    plan = job.plan(parallelism=4)

    assert 4 == plan.parallelism_of("out")
    assert [ExchangeKind.REBALANCE] * 2 == [exchange.kind for exchange in plan.exchanges]


def test_the_operator_stands_above_the_job_and_the_job_above_the_environment() -> None:
    job = Job("job", parallelism=3, max_parallelism=12)
    stream = job.read(Given([1]), name="in")
    stream.rebalance().map(str, parallelism=5).rebalance().write(Kept(), name="out")

    plan = compile_plan(job, parallelism=7, max_parallelism=99)

    assert [3, 5, 3] == [plan.parallelism_of(name) for name in ("in", "map", "out")]
    assert [12] * 3 == [vertex.max_parallelism for vertex in plan.vertices]


def test_what_the_job_says_stands_above_the_settings() -> None:
    job = Job("job", parallelism=3, settings={"checkpoints.retained": 2})

    settings = job.settings_over(Settings(parallelism=7, max_parallelism=99))

    assert (3, 99, 2) == (settings.parallelism, settings.max_parallelism, settings.checkpoints.retained)
    assert Settings() == Job("job").settings_over(Settings())
    with pytest.raises(InvalidConfig, match="job 'job'"):
        Job("job", settings={"checkpoints.retaind": 2}).settings_over(Settings())


# ── max parallelism ──────────────────────────────────────────────────────────────────────────


def test_the_maximum_is_derived_unless_somebody_asked_for_one() -> None:
    job, stream, sink = given("a")
    stream.key_by(str).count(name="count", max_parallelism=200).write(sink, name="out")

    first, second = job.plan(parallelism=100).vertices

    assert (256, True) == (first.max_parallelism, first.derives_max_parallelism)
    assert (200, False) == (second.max_parallelism, second.derives_max_parallelism)


@pytest.mark.parametrize("which", [0, 1])
def test_r046_a_maximum_on_one_of_two_chained_operators_holds_for_the_chain(which: int) -> None:
    job, stream, sink = given(1)
    maximum: list[dict[str, int]] = [{}, {}]
    maximum[which] = {"max_parallelism": 8}
    (
        stream.rebalance()
        .map(str, name="first", **maximum[0])
        .map(str, name="second", **maximum[1])
        .write(sink, name="out")
    )

    plan = job.plan(parallelism=8)
    assert [["in"], ["first", "second", "out"]] == chains(job, parallelism=8)
    assert (8, False) == (plan.vertices[1].max_parallelism, plan.vertices[1].derives_max_parallelism)
    with pytest.raises(InvalidJob, match=rf"operator '{['first', 'second'][which]}' has parallelism 9, more than its"):
        job.plan(parallelism=9)


def test_two_different_maxima_do_not_share_an_actor() -> None:
    job, stream, sink = given(1)
    stream.map(str, max_parallelism=8).map(str, max_parallelism=16).write(sink, name="out", max_parallelism=16)

    assert [["in", "map"], ["map-2", "out"]] == chains(job)


def test_a_keyed_operator_does_not_take_over_the_maximum_of_one_behind_it() -> None:
    job, stream, sink = given("a")
    stream.key_by(str).count(name="count").map(str, max_parallelism=8).write(sink, name="out")

    plan = job.plan()

    assert [["in"], ["count"], ["map", "out"]] == chains(job)
    assert [128, 128, 8] == [vertex.max_parallelism for vertex in plan.vertices]


# ── mistakes ─────────────────────────────────────────────────────────────────────────────────


def test_all_mistakes_of_the_graph_are_told_at_once() -> None:
    job, stream, _sink = given(1)
    stream.map(str, parallelism=9, max_parallelism=4).forward().map(str, parallelism=3)
    stream.map(len, name="left")

    with pytest.raises(InvalidJob) as caught:
        job.plan()

    told = str(caught.value)
    for words in (
        "more than its max_parallelism of 4",
        "through forward()",
        "'left': its output",
        "'map-2': its output",
    ):
        assert words in told


def test_very_many_mistakes_are_counted() -> None:
    job, stream, _ = given(1)
    for _number in range(30):
        stream.map(str)
    with pytest.raises(InvalidJob, match="and 10 more"):
        job.plan()


def test_a_state_by_key_needs_a_key_on_every_input() -> None:
    job, stream, _sink = given("a")
    both = stream.key_by(str).union(job.read(Given(["b"]), name="more"))
    assert not hasattr(both, "count")


# ── the digest ───────────────────────────────────────────────────────────────────────────────


def build(**changes: Any) -> str:
    job = Job(changes.get("job", "job"))
    stream = job.read(Given(["a"]), name="in")
    if changes.get("more"):
        stream = stream.map(str)
    count = stream.key_by(str).count(name=changes.get("name", "count"), parallelism=changes.get("parallelism"))
    count.write(Kept(), name="out")
    return job.plan(max_parallelism=changes.get("maximum")).digest


def test_the_digest_tells_shapes_apart_and_nothing_else() -> None:
    digests = [
        build(),
        build(job="other"),
        build(more=True),
        build(name="other"),
        build(parallelism=2),
        build(maximum=64),
    ]

    assert len(digests) == len(dict.fromkeys(digests))
    assert build() == digests[0]


def test_operators_say_what_a_checkpoint_keeps_of_them() -> None:
    job, stream, sink = given("a")
    stream.key_by(str).count(name="count").write(sink, name="out")
    plan = job.plan()

    assert (("state", "value"),) == plan.vertex_of("count").operators[0].states
    assert plan.vertex_of("count").is_keyed
    assert not plan.vertex_of("in").is_keyed
    with pytest.raises(KeyError, match="has no operator 'nope'; it has in, count, out"):
        plan.vertex_of("nope")
