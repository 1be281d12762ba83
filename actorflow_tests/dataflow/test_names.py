from __future__ import annotations

import os
import subprocess
import sys
from typing import Any

import pytest

from actorflow.dataflow.job import Job
from actorflow.dataflow.names import automatic_names
from actorflow.errors import InvalidJob
from actorflow_tests.dataflow.support import Given, given


@pytest.mark.parametrize("name", ["a", "A-1.b_c", "9", "x" * 100])
def test_good_names(name: str) -> None:
    _job, stream, _ = given(1)
    stream.map(str, name=name)
    Job(name)


@pytest.mark.parametrize("name", ["", ".a", "-a", "a b", "a/b", "ä", "a\n", "x" * 101, "..", 3, b"a"])
def test_bad_names_are_refused_for_jobs_and_operators(name: Any) -> None:
    _job, stream, _ = given(1)
    with pytest.raises(InvalidJob, match=r"^(operator|the name of this operator)"):
        stream.map(str, name=name)
    with pytest.raises(InvalidJob, match=r"^(job|the name of this job)"):
        Job(name)


def test_names_are_unique_even_without_case_because_they_become_file_names() -> None:
    job, stream, _ = given(1)
    stream.map(str, name="Count")
    with pytest.raises(InvalidJob, match="operator 'Count': job 'job' already has an operator of that name"):
        stream.map(str, name="Count")
    with pytest.raises(InvalidJob, match="compared without case: 'Count' is taken"):
        stream.map(str, name="count")
    with pytest.raises(InvalidJob, match="operator 'IN'"):
        job.read(Given([1]), name="IN")


def test_automatic_names_count_from_the_second_on() -> None:
    wanted = [(None, "map"), (None, "filter"), (None, "map"), ("map-3", "map"), (None, "map"), ("FILTER-2", "map")]

    assert ["map", "filter", "map-2", "map-3", "map-4", "FILTER-2"] == automatic_names(wanted)
    assert ["filter-2"] == automatic_names([("Filter", "x"), (None, "filter")])[1:]


def test_an_automatic_name_steps_aside_for_one_that_is_given_later() -> None:
    job, stream, sink = given(1)
    stream.map(str).map(str, name="map").write(sink, name="out")

    assert ["in", "map-2", "map", "out"] == [one.name for vertex in job.plan().vertices for one in vertex.operators]


PROGRAM = """
import sys
from actorflow_tests.dataflow.support import Given, Kept
from actorflow.dataflow.job import Job
job = Job("job")
words = job.read(Given(["a"]), name="in").map(str).flat_map(str.split).filter(bool)
yes, no = words.branch(bool)
yes.key_by(str).count(name="count").map(str).write(Kept(), name="out")
no.union(words.map(str)).rebalance().map(str).write(Kept(), name="out-2")
plan = job.plan(parallelism=2)
print([one.name for vertex in plan.vertices for one in vertex.operators], plan.digest)
"""


def test_r029_two_processes_give_the_same_names_and_digest_whatever_their_hash_seed() -> None:
    answers = [
        subprocess.run(
            [sys.executable, "-c", f"{before}\n{PROGRAM}"],
            env={**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": os.pathsep.join(sys.path)},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed, before in (("0", ""), ("1", "import actorflow.dataflow.picture, actorflow.dataflow.lane"), ("77", ""))
    ]

    assert answers[0]
    assert answers[0] == answers[1] == answers[2]
