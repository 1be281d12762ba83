"""Keys: which are equal, which are refused, and how their bytes sort (architecture 13, Keys)."""

from __future__ import annotations

import math
import struct
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from enum import Enum, Flag, IntEnum, auto
from typing import Any, NamedTuple
from uuid import UUID
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from actorflow.errors import CorruptObject, IncompatibleState, InvalidValue
from actorflow.model.key_decoding import decode_key
from actorflow.model.key_encoding import MAX_DEPTH, encode_key
from actorflow.model.registry import Registry


class Colour(Enum):
    """An Enum that is a key."""

    RED = 1
    ROUGE = RED
    GREEN = 2


class Level(IntEnum):
    """An Enum whose members equal numbers."""

    LOW = 1


class Rights(Flag):
    """An Enum whose members can be combined."""

    READ = auto()
    WRITE = auto()


@dataclass(frozen=True)
class Place:
    """A frozen dataclass that is a key."""

    city: str
    number: int | None = None


class Point(NamedTuple):
    """A NamedTuple that is a key."""

    x: int
    y: int


@dataclass
class Open:
    """A dataclass that can change."""

    city: str


@dataclass(frozen=True)
class HalfCompared:
    """A dataclass two of which can be equal and yet differ."""

    city: str
    note: str = field(default="", compare=False)


class Text(str):
    """A subclass of a plain type."""

    __slots__ = ()


NAMES = Registry(alone=True)
for _cls in (Colour, Level, Rights, Place, Point, Open, HalfCompared):
    NAMES.register(_cls, name=_cls.__name__)

OTHER_NAN: float = struct.unpack(">d", bytes.fromhex("fff8000000000123"))[0]

scalars = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.integers(min_value=-(2**70), max_value=2**70),
    st.floats(),
    st.text(st.characters(exclude_categories=["Cs"])),
    st.text("\0ab", max_size=4),
    st.binary(),
    st.text("\0\xff", max_size=4).map(lambda text: text.encode("latin-1")),
    st.uuids(),
    st.decimals(allow_nan=False),
    st.dates(),
    st.datetimes(min_value=datetime(2, 1, 1), max_value=datetime(9998, 1, 1), timezones=st.timezones()),  # noqa: DTZ001
    st.sampled_from([Colour.RED, Colour.GREEN, Level.LOW]),
)
keys = st.recursive(
    scalars,
    lambda parts: st.one_of(
        st.lists(parts, max_size=4).map(tuple), st.builds(Place, st.text("ab\0"), parts), st.builds(Point, parts, parts)
    ),
    max_leaves=8,
)


def canonical(key: Any) -> Any:
    """A key that compares as our keys do: with its type, and with one NaN and one zero."""
    if isinstance(key, tuple | Place):
        items = list(key) if isinstance(key, tuple) else [key.city, key.number]
        return (type(key).__name__, tuple(canonical(item) for item in items))
    if isinstance(key, float):
        return ("float", "nan" if math.isnan(key) else repr(key + 0.0))
    return (type(key).__name__, key)


@given(keys)
def test_a_key_comes_back_in_its_canonical_form(key: Any) -> None:
    data = encode_key(key, NAMES)

    back = decode_key(data, NAMES)

    assert canonical(back) == canonical(key)
    assert encode_key(back, NAMES) == data


@given(keys, keys)
def test_two_keys_have_the_same_bytes_only_if_they_are_the_same_key(first: Any, second: Any) -> None:
    assert (encode_key(first, NAMES) == encode_key(second, NAMES)) == (canonical(first) == canonical(second))


ORDERED = [
    st.integers(),
    st.integers(min_value=-(2**2100), max_value=2**2100),
    st.text(st.characters(exclude_categories=["Cs"])),
    st.text("\0\1ab", max_size=4),
    st.binary(),
    st.text("\0\1\xff", max_size=4).map(lambda text: text.encode("latin-1")),
    st.floats(allow_nan=False),
    st.booleans(),
    st.decimals(allow_nan=False),
    st.dates(),
    st.datetimes(min_value=datetime(2, 1, 1), max_value=datetime(9998, 1, 1), timezones=st.timezones()),  # noqa: DTZ001
    st.tuples(st.integers(), st.text("\0ab"), st.decimals(allow_nan=False)),
    st.lists(st.text("\0\1", max_size=2), max_size=3).map(tuple),
    st.uuids(),
]


@given(st.one_of(*[st.tuples(kind, kind) for kind in ORDERED]))
def test_bytes_sort_as_the_values_of_one_type_do(pair: tuple[Any, Any]) -> None:
    first, second = pair
    bytes_of_first, bytes_of_second = encode_key(first), encode_key(second)

    assert (first < second) == (bytes_of_first < bytes_of_second)
    assert (first > second) == (bytes_of_first > bytes_of_second)


@given(st.lists(keys, min_size=1, max_size=3), st.lists(keys, max_size=3))
def test_the_bytes_of_a_shorter_tuple_begin_those_of_a_longer_one(first: list[Any], more: list[Any]) -> None:
    prefix = encode_key(tuple(first), NAMES)[:-1]  # without its end

    assert encode_key((*first, *more), NAMES).startswith(prefix)


@given(keys, st.data())
def test_bytes_that_are_cut_short_or_go_on_are_not_taken_for_the_key(key: Any, data: st.DataObject) -> None:
    written = encode_key(key, NAMES)
    cut = data.draw(st.integers(0, len(written) - 1))

    with pytest.raises((CorruptObject, IncompatibleState)):
        decode_key(written + b"\x14", NAMES)
    try:
        back = decode_key(written[:cut], NAMES)
    except (CorruptObject, IncompatibleState):
        return
    assert encode_key(back, NAMES) == written[:cut]  # "a" is what is left of "a\0"


@given(st.binary(max_size=40))
def test_any_bytes_are_a_key_in_canonical_form_or_refused(data: bytes) -> None:
    try:
        key = decode_key(data, NAMES)
    except (CorruptObject, IncompatibleState, InvalidValue):
        return
    assert encode_key(key, NAMES) == data


def test_r075_a_number_its_text_and_its_bytes_are_different_keys_and_nesting_counts() -> None:
    different = [
        123,
        "123",
        b"123",
        (1, 2),
        "1,2",
        (1, (2,)),
        ((1,), 2),
        1,
        1.0,
        True,
        Decimal(1),
        "1",
        None,
        (),
        (None,),
    ]

    assert len({encode_key(key) for key in different}) == len(different)
    with pytest.raises(InvalidValue, match="type list can't be a key, or a part of one, as it can change; use a tuple"):
        encode_key([1, 2])
    with pytest.raises(InvalidValue, match="type list"):
        encode_key((1, [2]))


def test_r071_both_zeros_are_one_key_alone_and_inside_a_tuple() -> None:
    assert encode_key(-0.0) == encode_key(0.0)
    assert encode_key((1, -0.0)) == encode_key((1, 0.0))
    assert encode_key(Decimal("-0.00")) == encode_key(Decimal(0))


def test_r072_every_nan_is_one_key() -> None:
    assert encode_key(float("nan")) == encode_key(OTHER_NAN) == encode_key(-float("nan"))
    assert encode_key((float("nan"), 1)) == encode_key((OTHER_NAN, 1))
    assert len({encode_key(Decimal(text)) for text in ("NaN", "-NaN", "sNaN", "NaN123")}) == 1
    assert math.isnan(decode_key(encode_key(OTHER_NAN)))


def test_r074_text_is_taken_as_it_is() -> None:
    composed, decomposed = "é", "e\u0301"
    woman_scientist = "\U0001f469\u200d\U0001f52c"

    assert encode_key(composed) != encode_key(decomposed)
    for text in (composed, decomposed, woman_scientist, "nul\0inside", "\0", ""):
        assert decode_key(encode_key(text)) == text
    for text in ("\ud800", "fine\udfff", "\ud83d\ude00"):
        with pytest.raises(InvalidValue, match="lone surrogate"):
            encode_key(text)
        with pytest.raises(InvalidValue, match="lone surrogate"):
            encode_key((1, text))


def test_decimals_of_one_value_are_one_key_however_many_digits_they_have() -> None:
    assert encode_key(Decimal("1.0")) == encode_key(Decimal(1)) == encode_key(Decimal("10E-1"))
    assert encode_key(Decimal(100)) == encode_key(Decimal("1E+2"))

    long = Decimal("1." + "3" * 60)  # more digits than the context of arithmetic keeps
    assert decode_key(encode_key(long)) == long
    assert encode_key(long) != encode_key(+long)


def test_datetimes_of_one_instant_are_one_key_and_those_of_none_are_refused() -> None:
    at_noon = datetime(2024, 7, 1, 12, tzinfo=UTC)

    assert encode_key(at_noon) == encode_key(at_noon.astimezone(ZoneInfo("Asia/Tokyo")))
    assert decode_key(encode_key(at_noon.astimezone(timezone(timedelta(hours=5, minutes=30))))) == at_noon
    with pytest.raises(InvalidValue, match="without a time zone"):
        encode_key(at_noon.replace(tzinfo=None))
    with pytest.raises(InvalidValue, match="outside the years 1 to 9999"):
        encode_key(datetime.min.replace(tzinfo=timezone(timedelta(hours=14))))


def test_the_hour_that_comes_twice_is_two_keys() -> None:
    twice = datetime(2024, 10, 27, 2, 30, tzinfo=ZoneInfo("Europe/Berlin"))

    assert encode_key(twice) != encode_key(twice.replace(fold=1))


def test_members_and_records_are_known_by_their_registered_names() -> None:
    assert encode_key(Colour.ROUGE, NAMES) == encode_key(Colour.RED, NAMES)
    assert encode_key(Level.LOW, NAMES) != encode_key(1)
    assert encode_key(Point(1, 2), NAMES) != encode_key((1, 2))
    assert encode_key(Place("a", 1), NAMES) != encode_key(Point("a", 1), NAMES)  # type: ignore[arg-type]
    assert decode_key(encode_key(Place("a", None), NAMES), NAMES) == Place("a", None)

    with pytest.raises(InvalidValue, match=r"(?s)a key holds a value .*Colour.*not registered.*@af.record"):
        encode_key((1, Colour.RED), Registry(alone=True))
    with pytest.raises(IncompatibleState, match="Point"):
        decode_key(encode_key(Point(1, 2), NAMES), Registry(alone=True))


def test_a_class_that_changed_is_told_apart() -> None:
    class Point(NamedTuple):
        x: int

    class Colour(Enum):
        BLUE = 1

    later = Registry(alone=True)
    later.register(Point, name="Point")
    later.register(Colour, name="Colour")

    with pytest.raises(IncompatibleState, match="written with 2 fields, and the class now has 1"):
        decode_key(encode_key(globals()["Point"](1, 2), NAMES), later)
    with pytest.raises(IncompatibleState, match="no member 'RED'"):
        decode_key(encode_key(globals()["Colour"].RED, NAMES), later)


@pytest.mark.parametrize(
    ("key", "why"),
    [
        ({1}, "type set can't be a key.*use a tuple"),
        ({}, "type dict"),
        (bytearray(b"a"), "type bytearray.*use bytes"),
        (frozenset({1}), "type frozenset"),
        (1j, "type complex"),
        (Text("a"), "Text can't be a key.*subclass of str.*exact str"),
        (object(), "type object"),
        (Colour, "type .*EnumType"),
        (Place, "type type"),
        (timedelta(1), "timedelta"),
        (Open("a"), "not frozen.*Open.*frozen=True"),
        (HalfCompared("a"), "note has compare=False"),
        (Rights.READ | Rights.WRITE, "combination of flags"),
    ],
)
def test_what_is_no_key_is_refused_with_its_type_and_the_way_out(key: Any, why: str) -> None:
    for refused in (key, ("a", key)):
        with pytest.raises(InvalidValue, match=why):
            encode_key(refused, NAMES)


def test_a_key_nests_so_deep_and_no_deeper() -> None:
    key: Any = 1
    for _ in range(MAX_DEPTH):
        key = (key,)
    assert decode_key(encode_key(key)) == key

    with pytest.raises(InvalidValue, match="more than 100 deep"):
        encode_key((key,))
    with pytest.raises(CorruptObject):
        decode_key(b"\x05" * 5_000)


def test_ints_have_a_form_whatever_their_size() -> None:
    for size in (1, 7, 8, 9, 254, 255, 256, 300, 70_000):
        for number in (256**size - 1, 256**size, -(256**size) + 1, -(256**size)):
            assert decode_key(encode_key(number)) == number


GOLDEN_BYTES = [
    (None, "00"),
    (b"a\x00b", "016100ff6200"),
    ("é\x00", "02c3a900ff00"),
    ((1, None, ("x",)), "05150100ff05027800 00 00"),
    (0, "14"),
    (255, "15ff"),
    (256, "160100"),
    (-1, "13fe"),
    (-256, "12feff"),
    (2**64, "1d09010000000000000000"),
    (-(2**64), "0bf6feffffffffffffffff"),
    (1.5, "21bff8000000000000"),
    (-1.5, "214007ffffffffffff"),
    (False, "26"),
    (True, "27"),
    (UUID(int=5), "3000000000000000000000000000000005"),
    (Decimal("-12.50"), "4002eafdcecdcaff"),
    (Decimal("0.05"), "400413fe3500"),
    (date(2024, 2, 29), "41000b4681"),
    (datetime(1970, 1, 1, 0, 0, 1, tzinfo=UTC), "42170f4240"),
    (Colour.RED, "43436f6c6f757200 52454400"),
    (Point(1, 2), "44506f696e7400 1501 1502 00"),
    (Place("a", 1), "44506c61636500 026100 1501 00"),
]


@pytest.mark.parametrize(("key", "expected"), GOLDEN_BYTES)
def test_the_form_on_disk_never_changes(key: Any, expected: str) -> None:
    assert encode_key(key, NAMES).hex() == expected.replace(" ", "")
