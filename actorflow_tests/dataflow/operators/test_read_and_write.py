from __future__ import annotations

from typing import Any

import pytest

from actorflow.dataflow.job import Job
from actorflow.errors import InvalidJob
from actorflow_tests.dataflow.support import Given, Kept, Run, given


def test_what_is_read_is_written() -> None:
    job, stream, sink = given(1, 2, 3)
    stream.write(sink, name="out")

    run = Run(job).to_end()

    assert [1, 2, 3] == sink.rows
    (vertex,) = run.plan.vertices
    assert vertex.operators[0].source is not None
    assert vertex.operators[-1].sink is sink
    assert (["in"], ["out"]) == ([one.name for one in run.plan.sources()], [one.name for one in run.plan.sinks()])
    with pytest.raises(AssertionError, match="is not a sink"):
        _ = vertex.operators[0].sink
    with pytest.raises(AssertionError, match="is not a source"):
        _ = vertex.operators[-1].source


def test_both_need_a_name_because_a_checkpoint_keeps_something_under_it() -> None:
    job, stream, sink = given(1)
    with pytest.raises(InvalidJob, match=r"read\(\) needs a name=: .*position"):
        job.read(Given([1]))  # type: ignore[call-arg]  # the mistake
    with pytest.raises(InvalidJob, match=r"write\(\) needs a name=: .*prepared"):
        stream.write(sink)


def test_sources_and_sinks_are_not_mixed_up() -> None:
    job, stream, _sink = given(1)
    wrong: Any = Kept()
    with pytest.raises(InvalidJob, match="operator 'x': read takes a Source, not Kept"):
        job.read(wrong, name="x")
    with pytest.raises(InvalidJob, match="operator 'y': write takes a Sink, not Given"):
        stream.write(Given([1]), name="y")


def test_a_source_says_its_own_parallelism_where_nobody_asks_for_one() -> None:
    source, sink = Given([1]), Kept()
    source.parallelism = 1
    sink.parallelism = 2
    job = Job("job")
    job.read(source, name="in").map(str).write(sink, name="out")
    job.read(source, name="asked", parallelism=3).write(Kept(), name="out-2")

    plan = job.plan(parallelism=4)

    assert [1, 1, 2, 3, 3] == [plan.parallelism_of(name) for name in ("in", "map", "out", "asked", "out-2")]


def test_an_output_that_nobody_reads_is_told_for_each_operator_at_once() -> None:
    job, stream, _ = given(1)
    stream.map(str, name="left")
    job.read(Given([1]), name="unread")

    with pytest.raises(InvalidJob) as caught:
        job.plan()

    told = str(caught.value).splitlines()
    assert 2 == len(told)
    assert all("is read by nobody; end it with .write(sink, name=…), or with .discard()" in line for line in told)
    assert ["operator 'left'", "operator 'unread'"] == [line.split(":")[0] for line in told]


def test_an_operator_may_be_run_for_its_effects_alone() -> None:
    seen: list[int] = []
    job, stream, _ = given(1, 2)
    stream.map(seen.append).discard()

    Run(job).to_end()

    assert [1, 2] == seen
    with pytest.raises(InvalidJob, match=r"rebalance before discard\(\) has no effect"):
        stream.rebalance().discard()


def test_a_job_without_operators_is_told() -> None:
    with pytest.raises(InvalidJob, match=r"job 'empty' has no operators: begin with job\.read"):
        Job("empty").plan()
