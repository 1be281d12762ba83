"""Rows in one form: in bulk as one by one, and never two of different types as one."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from actorflow.simulation.subject import canonical_row, canonical_rows

ROWS: dict[str, list[Any]] = {
    "none": [],
    "pairs": [("a", 1), ("b", 2), ("a", 1)],
    "lines within": [("one\ntwo", 1), ("one", 1), ("two\r\n", 1), ("\u2028\x0b\x85", 2)],
    "half a character": [("\ud800", 1), "\udfff"],
    "plain": [1, 2, 1, None, "1", b"1"],
    "alike and not equal": [(1,), (True,), (1.0,), (0.0,), (-0.0,)],
    "not a number": [(float("nan"),), (float("nan"),)],
    "nested": [("a", (1, 2)), ["a", [1, 2]], {"a": {1, 2}}],
    "tuples and others": [("a", 1), "a"],
    "empty tuples": [(), ()],
}


@pytest.mark.parametrize("name", ROWS)
def test_rows_have_the_same_form_in_bulk_as_one_by_one(name: str) -> None:
    assert canonical_rows(ROWS[name]) == Counter(map(canonical_row, ROWS[name]))


def test_what_the_run_before_came_to_is_not_taken_for_what_is_only_equal_to_it() -> None:
    first = canonical_rows([("a", 1), ("b", 0)])
    assert canonical_rows([("b", 0), ("a", 1)]) == first
    for other in ([("a", True), ("b", False)], [("a", 1.0), ("b", 0.0)], [("a", 1), ("b", 0), ("b", 0)]):
        assert canonical_rows(other) != first
        assert canonical_rows(other) == Counter(map(canonical_row, other))


def test_what_is_given_out_belongs_to_whoever_asked() -> None:
    rows = [("a", 1), ("b", 2)]
    given = canonical_rows(rows)
    given.clear()
    assert canonical_rows(rows) == Counter(map(canonical_row, rows))
