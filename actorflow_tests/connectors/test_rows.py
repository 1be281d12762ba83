from __future__ import annotations

import json
from collections import namedtuple
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from actorflow.connectors.rows import Format, RowWriter, check_format
from actorflow.errors import InvalidJob, InvalidValue, OperatorFailed


@dataclass(frozen=True)
class Point:
    x: int
    y: tuple[int, ...]


Pair = namedtuple("Pair", "left right")  # noqa: PYI024 - the untyped kind is meant


def encode(*records: Any, format: Format = None) -> str:  # noqa: A002
    return RowWriter(format, "out", 2).encode(list(records)).decode()


def test_text_is_written_as_it_is_and_anything_else_as_json() -> None:
    assert encode("a b", 1, ("the", 3), None, {"k": [1.5, True]}, Point(1, (2,)), Pair(1, "ä")) == (
        'a b\n1\n["the", 3]\nnull\n{"k": [1.5, true]}\n{"x": 1, "y": [2]}\n[1, "ä"]\n'
    )


def test_json_writes_text_too_and_so_keeps_line_breaks() -> None:
    assert encode("a\nb", format="json") == '"a\\nb"\n'


def test_a_function_makes_the_line() -> None:
    assert encode(("a", 1), ("b", 2), format=lambda pair: f"{pair[0]}\t{pair[1]}") == "a\t1\nb\t2\n"


def test_nothing_is_nothing() -> None:
    assert encode() == ""


@settings(max_examples=40)
@given(
    st.recursive(
        st.none()
        | st.booleans()
        | st.integers()
        | st.floats(allow_nan=False, allow_infinity=False)
        | st.text(st.characters(codec="utf-8")),
        lambda inner: st.lists(inner) | st.dictionaries(st.text(st.characters(codec="utf-8")), inner),
        max_leaves=8,
    )
)
def test_what_json_can_say_is_read_back(value: Any) -> None:
    assert json.loads(encode(value, format="json")) == value


@pytest.mark.parametrize(
    ("record", "words"),
    [
        (float("nan"), "record is nan"),
        ({"a": [1, float("inf")]}, r"record\['a'\]\[1\] is inf"),
        ({1: 2}, "record has the key 1"),
        ({"a": {None: 1}}, r"record\['a'\] has the key None"),
        (b"bytes", "record is of type bytes"),
        ([{1}], r"record\[0\] is of type set"),
        (datetime(2026, 1, 1, tzinfo=UTC), "of type datetime"),
        (Decimal(1), "of type Decimal"),
        (Point(object(), ()), r"record\.x is of type object"),  # type: ignore[arg-type]
        (Point, "of type type"),
        (1j, "of type complex"),
    ],
)
def test_what_json_cannot_say_is_refused_with_its_place(record: Any, words: str) -> None:
    with pytest.raises(InvalidValue, match=f"operator 'out': .*{words}"):
        encode(1, record)


def test_a_record_that_holds_itself_is_refused() -> None:
    record: list[Any] = []
    record.append(record)
    with pytest.raises(InvalidValue, match="holds itself"):
        encode(record)


@pytest.mark.parametrize("text", ["a\nb", "\n", "a\r", "a\r\n"])
def test_a_line_break_inside_a_line_is_refused(text: str) -> None:
    with pytest.raises(InvalidValue, match=r"operator 'out': record 2 of a batch of 3 has a line break.*format='json'"):
        encode("ok", text, "ok")


def test_half_a_character_is_refused() -> None:
    with pytest.raises(InvalidValue, match="operator 'out': a line holds half a character"):
        encode("ok", "\ud800")
    with pytest.raises(InvalidValue, match="half a character"):
        encode(["\udfff"])


def test_text_takes_nothing_but_text() -> None:
    assert encode("a", format="text") == "a\n"
    with pytest.raises(InvalidValue, match="operator 'out': format='text' takes str, not int"):
        encode(1, format="text")


def test_a_function_that_raises_or_returns_no_text_is_named() -> None:
    with pytest.raises(OperatorFailed, match="operator 'out', subtask 2: format raised ZeroDivisionError"):
        encode(0, format=lambda n: str(1 / n))
    with pytest.raises(InvalidValue, match="operator 'out': format returned bytes"):
        encode(0, format=lambda n: b"x")  # type: ignore[arg-type,return-value]


@pytest.mark.parametrize("format", ["csv", 7, ""])
def test_a_format_that_there_is_not_is_refused(format: Any) -> None:  # noqa: A002
    with pytest.raises(InvalidJob, match="format"):
        check_format(format)
