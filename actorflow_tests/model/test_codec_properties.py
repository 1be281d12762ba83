from __future__ import annotations

import math
from collections import Counter, OrderedDict, deque
from datetime import timedelta, timezone
from typing import Any
from zoneinfo import ZoneInfo

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from actorflow.errors import CorruptObject, InvalidValue, RestoreFailed
from actorflow.model.codec import Codec
from actorflow_tests.model.likeness import same
from actorflow_tests.model.specimens import REGISTRY, Access, Ball, Box, Color, Item, Pair, Point, Trade

CODEC = Codec(REGISTRY)
calm = settings(
    derandomize=True, max_examples=150, deadline=None, database=None, suppress_health_check=list(HealthCheck)
)

zones = st.one_of(
    st.none(),
    st.sampled_from([ZoneInfo("Europe/Berlin"), ZoneInfo("America/New_York"), ZoneInfo("UTC")]),
    st.timedeltas(timedelta(hours=-23, minutes=-59), timedelta(hours=23, minutes=59)).map(timezone),
)
plain = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(), st.text(), st.binary(), st.integers(-(2**200), 2**200)
)
leaves = st.one_of(
    plain,
    st.complex_numbers(),
    st.decimals(),
    st.fractions(),
    st.uuids(),
    st.dates(),
    st.times(timezones=zones.filter(lambda zone: not isinstance(zone, ZoneInfo))),
    st.datetimes(timezones=zones),
    st.timedeltas(),
    st.binary().map(bytearray),
    st.builds(range, st.integers(), st.integers(), st.integers(1)),
    st.sampled_from([*Color, *Access, Access(0)]),
)
keys = st.recursive(
    st.one_of(plain, st.decimals(allow_nan=False), st.dates(), st.sampled_from(Color)),
    lambda inner: st.one_of(st.tuples(inner, inner), st.frozensets(inner, max_size=3)),
    max_leaves=4,
)


def containers(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.one_of(
        st.lists(inner, max_size=5),
        st.lists(inner, max_size=3).map(tuple),
        st.lists(st.tuples(inner, inner), max_size=4),
        st.dictionaries(keys, inner, max_size=4),
        st.dictionaries(st.sampled_from(["a", "b"]), inner),
        st.lists(st.fixed_dictionaries({"a": inner, "b": inner}), max_size=3),
        st.dictionaries(keys, inner, max_size=3).map(OrderedDict),
        st.builds(deque, st.lists(inner, max_size=3), st.one_of(st.none(), st.integers(3, 9))),
        st.sets(keys, max_size=4),
        st.frozensets(keys, max_size=4),
        st.dictionaries(keys, st.integers(), max_size=3).map(Counter),
        st.builds(Item, st.text(), inner, st.lists(st.text(), max_size=2), count=st.integers()),
        st.builds(Point, st.floats(), st.floats(), st.none()),
        st.builds(Pair, inner, inner),
        st.builds(Ball, st.integers(), st.lists(st.integers(), max_size=2)),
        st.builds(Trade, inner, st.lists(inner, max_size=2)),
        st.builds(Box, inner),
    )


values = st.recursive(leaves, containers, max_leaves=12)


@calm
@given(values)
def test_any_value_comes_back_exactly(value: Any) -> None:
    assert same(value, CODEC.decode(CODEC.encode(value)))


@calm
@given(st.lists(values, max_size=6))
def test_any_column_comes_back_exactly(column: list[Any]) -> None:
    assert same(column, CODEC.decode_column(CODEC.encode_column(column)))


@calm
@given(st.data(), st.sampled_from([leaves, plain, keys, st.lists(plain), st.lists(plain).map(tuple)]))
def test_a_column_of_one_kind_comes_back_exactly(data: st.DataObject, kind: st.SearchStrategy[Any]) -> None:
    column = data.draw(st.lists(kind, max_size=8))
    assert same(column, CODEC.decode_column(CODEC.encode_column(column)))


@calm
@given(values)
def test_bytes_depend_on_nothing_but_the_value(value: Any) -> None:
    data = CODEC.encode(value)
    assert data == Codec(REGISTRY).encode(value)
    assert data == CODEC.encode(CODEC.decode(data))


@calm
@given(values)
def test_a_copy_is_the_same_and_immutable_values_are_their_own(value: Any) -> None:
    copy = CODEC.copy(value)
    assert same(value, copy)
    assert CODEC.is_immutable(value) == (copy is value)


@calm
@given(st.lists(values, min_size=1, max_size=3), st.randoms(use_true_random=False))
def test_damage_gives_some_value_or_a_clear_error(column: list[Any], chance: Any) -> None:
    data = bytearray(CODEC.encode_column(column))
    for _ in range(chance.randrange(1, 4)):
        data[chance.randrange(len(data))] ^= 1 << chance.randrange(8)
    try:
        CODEC.decode_column(bytes(data))
    except (CorruptObject, RestoreFailed):
        pass


@calm
@given(st.text(st.characters(codec=None)))  # with surrogates
def test_text_is_written_as_it_is_or_refused(text: str) -> None:
    try:
        data = CODEC.encode([text, {text: 1}])
    except InvalidValue:
        assert any(0xD800 <= ord(character) <= 0xDFFF for character in text)
    else:
        assert [text, {text: 1}] == CODEC.decode(data)


def test_nan_is_kept_bit_by_bit_wherever_it_stands() -> None:
    odd = -math.nan
    for value in (odd, [odd], [odd, 1], [odd, 1.0], (1, odd), {odd: odd}, [(1, odd), (2, 1.0)], {"a": odd}):
        assert same(value, CODEC.decode(CODEC.encode(value)))
