from __future__ import annotations

from collections import deque
from typing import Any

import pytest

from actorflow.dataflow.blame import failure, position_in, short_form


class Raises:
    def __repr__(self) -> str:
        raise RuntimeError("no")


class RaisesAtAll(Exception):
    def __str__(self) -> str:
        raise RuntimeError("no")


class Huge:
    def __repr__(self) -> str:
        return "x" * 1_000_000


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (1, "1"),
        ("word", "'word'"),
        ((1, "a"), "(1, 'a')"),
        ({"b": 1, "a": 2}, "{'a': 2, 'b': 1}"),
        (deque([1]), "deque([1])"),
        (Raises(), "<Raises whose repr raised RuntimeError>"),
        ([Raises()], "[<Raises whose repr raised RuntimeError>]"),
        (10**1000, "<int of 3322 bits>"),
        (10**100, str(10**100)),
    ],
)
def test_a_value_is_shown_by_a_short_form_that_never_raises(value: Any, text: str) -> None:
    assert text == short_form(value)


@pytest.mark.parametrize("value", [Huge(), "x" * 1_000_000, list(range(1_000_000)), {str(n): n for n in range(99_999)}])
def test_a_short_form_has_at_most_200_characters(value: Any) -> None:
    assert 150 <= len(short_form(value)) <= 200


def test_a_value_that_holds_itself_has_an_end() -> None:
    loop: list[Any] = []
    loop.append(loop)
    assert len(short_form(loop)) <= 200


def test_the_iterator_says_how_far_a_loop_has_come() -> None:
    values = [10, 20, 30]
    iterator = iter(values)
    assert position_in(values, iterator) is None
    assert [0, 1, 2] == [position_in(values, iterator) for _ in iterator]


def test_a_message_that_can_not_be_made_does_not_hide_the_failure() -> None:
    error = failure(RaisesAtAll(), "map", 3, shown=True, record=(1,))
    assert "operator 'map', subtask 3, record 1: RaisesAtAll: (its message can't be shown)" == str(error)
    assert "operator 'map', subtask 3: on_open raised: KeyError" == str(
        failure(KeyError("secret"), "map", 3, shown=False, record=(1,), key=("k",), doing="on_open raised")
    )
