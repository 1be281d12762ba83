"""A single pass over a text implies its rows, and a row that is lost, doubled or wrong is found."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from actorflow.cli.demo_check import compare, count_text, rows_of
from actorflow.cli.demo_job import demo_words, library_files
from actorflow.cli.demo_job import words_of as words_of_job

COUNTS = Counter({"a": 3, "b": 1})
ROWS = [("a", 1), ("b", 1), ("a", 2), ("a", 3)]


def difference(rows: Iterable[tuple[str, int]]) -> int:
    return compare(rows, COUNTS).difference


def test_the_right_rows_in_any_order_differ_in_nothing() -> None:
    assert difference(ROWS) == 0
    assert difference(reversed(ROWS)) == 0


def test_each_row_that_is_lost_doubled_or_wrong_counts_once() -> None:
    assert difference(ROWS[1:]) == 1
    assert difference([*ROWS, ("a", 2)]) == 1
    assert difference([*ROWS, ("a", 2), ("a", 2)]) == 2
    assert difference([*ROWS, ("a", 4)]) == 1
    assert difference([*ROWS, ("c", 1), ("c", 1)]) == 2
    assert difference([("a", 0), *ROWS]) == 1
    assert difference([]) == 4


def test_a_row_that_is_doubled_does_not_make_up_for_one_that_is_lost() -> None:
    compared = compare([("a", 1), ("a", 1), ("a", 2), ("b", 1)], COUNTS)

    assert (compared.difference, compared.lost, compared.surplus) == (2, 1, 1)
    assert "'a' 1 is there 2 times instead of once" in compared.examples
    assert "'a' 3 is there 0 times instead of once" in compared.examples


def test_at_most_five_examples_are_given() -> None:
    assert len(compare([], Counter(a=1_000)).examples) == 5


@given(st.lists(st.tuples(st.sampled_from("abc"), st.integers(0, 5))))
def test_the_difference_is_that_of_two_multisets(rows: list[tuple[str, int]]) -> None:
    implied = Counter((word, n) for word, count in COUNTS.items() for n in range(1, count + 1))
    there = Counter(rows)
    expected = (implied - there).total() + (there - implied).total()
    assert difference(rows) == expected


def test_words_and_lines_of_files_are_counted_whatever_their_bytes(tmp_path: Path) -> None:
    (tmp_path / "one").write_bytes("Größe x1y _x_ größe\r\nX\n".encode())
    (tmp_path / "two").write_bytes(b"x\xffx\n\nlast")
    (tmp_path / "none").write_bytes(b"")

    text = count_text([str(tmp_path / name) for name in ("one", "two", "none")])

    assert text.counts == {"größe": 2, "x": 5, "y": 1, "last": 1}
    assert (text.files, text.lines) == (3, 5)


@given(st.text())
def test_the_job_and_the_single_pass_agree_on_what_a_word_is(
    tmp_path_factory: pytest.TempPathFactory, text: str
) -> None:
    path = tmp_path_factory.mktemp("words") / "text"
    path.write_bytes(text.encode("utf-8", "replace"))

    expected: Counter[str] = Counter()
    for line in path.read_bytes().decode().split("\n"):
        expected.update(word.lower() for word in words_of_job(line))

    assert count_text([str(path)]).counts == expected


def test_rows_that_are_not_committed_are_not_read(tmp_path: Path) -> None:
    (tmp_path / "part-00000-0000000001.txt").write_text("a\t1\na\t2\n")
    (tmp_path / ".actorflow").write_text("x\t9\n")
    (tmp_path / ".pending").mkdir()

    assert rows_of(tmp_path) == [("a", 1), ("a", 2)]
    assert rows_of(tmp_path / "nothing") == []


def test_the_text_is_the_same_files_in_the_same_order_each_time() -> None:
    paths = library_files()

    assert paths == sorted(paths) == library_files()
    assert 50_000 < count_text(paths).lines < 200_000


def test_the_demos_job_is_a_job_with_names() -> None:
    plan = demo_words("counts", "diary", 100.0).plan()
    assert next(operator.name for vertex in plan.vertices for operator in vertex.operators) == "lines"
