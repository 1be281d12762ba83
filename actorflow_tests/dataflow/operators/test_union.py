from __future__ import annotations

from collections import Counter

import pytest

from actorflow.dataflow.job import Job
from actorflow.dataflow.stream import KeyedStream
from actorflow.errors import InvalidJob
from actorflow_tests.dataflow.support import Given, Kept, Run, given


def test_all_records_of_all_streams_arrive() -> None:
    job, stream, sink = given(1, 2)
    more = job.read(Given(["a", "b"]), name="more")
    stream.union(more, stream.map(lambda x: -x)).write(sink, name="out")

    Run(job, parallelism=2).to_end()

    assert Counter([1, 2, "a", "b", -1, -2]) == Counter(sink.rows)


def test_a_stream_united_with_itself_arrives_twice() -> None:
    job, stream, sink = given(1, 2)
    stream.union(stream).write(sink, name="out")

    Run(job).to_end()

    assert Counter([1, 1, 2, 2]) == Counter(sink.rows)


def test_keyed_streams_stay_keyed_each_by_its_own_function() -> None:
    job, stream, sink = given("a1", "b2")
    numbers = job.read(Given([7, 8, 7]), name="numbers")
    both = stream.key_by(lambda word: word[0]).union(numbers.key_by(lambda x: "ab"[x - 7]))
    assert isinstance(both, KeyedStream)
    both.count(name="count").write(sink, name="out")

    Run(job).to_end()

    assert {"a": 3, "b": 2} == dict(sorted(sink.rows))


def test_a_keyed_and_a_plain_stream_make_a_plain_one() -> None:
    _job, stream, _ = given("a")
    assert not isinstance(stream.key_by(str).union(stream), KeyedStream)


def test_streams_of_two_jobs_can_not_meet() -> None:
    _job, stream, _ = given(1)
    other = Job("other").read(Given([1]), name="in")
    with pytest.raises(InvalidJob, match=r"union\(\).*job 'job'.*'other'"):
        stream.union(other)
    with pytest.raises(InvalidJob, match="takes streams, not Kept"):
        stream.union(Kept())
    with pytest.raises(InvalidJob, match="at least one"):
        stream.union()
