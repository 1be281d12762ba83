from __future__ import annotations

from collections import Counter

import pytest

from actorflow.errors import InvalidJob
from actorflow_tests.dataflow.support import Run, given


@pytest.mark.parametrize("careful", [False, True])
def test_each_record_gives_its_key_and_how_often_it_came_by_now(careful: bool) -> None:
    job, stream, sink = given("b", "a", "B", "a", "b")
    stream.key_by(str.lower).count(name="count").write(sink, name="out")

    run = Run(job, careful=careful).to_end()

    assert [("b", 1), ("a", 1), ("b", 2), ("a", 2), ("b", 3)] == sink.rows
    assert {"a": 2, "b": 3} == run.state("count")


@pytest.mark.parametrize("parallelism", [1, 3])
def test_the_key_that_comes_out_is_the_users_and_not_a_token(parallelism: int) -> None:
    keys = [(1, "a"), None, 2.5, (1, "a"), True, 1]
    job, stream, sink = given(*keys)
    stream.key_by(lambda key: key).count(name="count").write(sink, name="out")

    Run(job, parallelism=parallelism).to_end()

    rows = Counter((type(key).__name__, key, number) for key, number in sink.rows)
    assert rows == Counter(
        [
            ("tuple", (1, "a"), 1),
            ("tuple", (1, "a"), 2),
            ("NoneType", None, 1),
            ("float", 2.5, 1),
            ("bool", True, 1),
            ("int", 1, 1),
        ]
    )


def test_a_name_is_required() -> None:
    _job, stream, _ = given("a")
    with pytest.raises(InvalidJob, match=r"count\(\) needs a name="):
        stream.key_by(str).count()
