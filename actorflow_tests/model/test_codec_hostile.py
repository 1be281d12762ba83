"""What was cut short, damaged or made up is refused: never another error, never memory or time without end."""

from __future__ import annotations

import random
import tracemalloc
from collections import defaultdict, deque
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal
from enum import Enum
from typing import Any

import cbor2
import pytest
from cbor2 import CBORTag

from actorflow.errors import CorruptObject, IncompatibleState, RestoreFailed
from actorflow.model.codec import Codec, Registry, seal, unseal
from actorflow.model.packing import Tag


@dataclass
class Order:
    name: str
    parts: list[int]


class Color(Enum):
    RED = 1


REGISTRY = Registry(alone=True)
REGISTRY.register(Order, name="Order")
REGISTRY.register(Color, name="Color")
CODEC = Codec(REGISTRY)

SAMPLE: list[Any] = [
    *(1, True, None, "text", b"bytes", 2**70, 1.5, float("nan")),
    *([1, [2]], (1, "a"), {"a": 1, "b": [2]}, {1: "x", (2, 3): "y"}, {1, 2}, frozenset({"a"})),
    *(deque([1], maxlen=3), defaultdict(list, a=[1]), Decimal("1.5"), datetime(2024, 1, 1, tzinfo=UTC)),
    *(Order("a", [1, 2]), Color.RED, [Order("b", []), Order("c", [3])], [{"k": 1.5}, {"k": "x"}]),
]
BYTES = CODEC.encode_column(SAMPLE)


def test_every_truncation_is_refused() -> None:
    for end in range(len(BYTES)):
        with pytest.raises(CorruptObject, match="the block"):
            CODEC.decode_column(BYTES[:end], "the block")
    for value in SAMPLE:
        data = CODEC.encode(value)
        for end in range(len(data)):
            with pytest.raises(CorruptObject):
                CODEC.decode(data[:end])


def test_bytes_that_follow_after_the_end_are_refused() -> None:
    for value in SAMPLE:
        for more in (b"\0", b"\xf6", b"\xff", CODEC.encode(value)):
            with pytest.raises(CorruptObject, match="follow after its end"):
                CODEC.decode(CODEC.encode(value) + more)


def test_a_flipped_bit_gives_a_value_or_a_clear_error() -> None:
    for position in range(len(BYTES) * 8):
        data = bytearray(BYTES)
        data[position // 8] ^= 1 << position % 8
        try:
            values = CODEC.decode_column(bytes(data))
        except (CorruptObject, RestoreFailed):
            continue
        assert type(values) is list


def test_a_flipped_bit_in_a_sealed_object_is_always_seen() -> None:
    sealed = seal("block", 1, BYTES)
    for position in range(len(sealed) * 8):
        data = bytearray(sealed)
        data[position // 8] ^= 1 << position % 8
        with pytest.raises(CorruptObject):
            unseal("block", bytes(data), "the block")


def test_random_bytes_and_random_damage_are_values_or_clear_errors() -> None:
    chance = random.Random(7)
    for _ in range(3_000):
        if chance.random() < 0.5:
            data = bytearray(chance.randbytes(chance.randrange(60)))
        else:
            data = bytearray(BYTES)
            for _ in range(chance.randrange(1, 5)):
                start = chance.randrange(len(data))
                data[start : start + chance.randrange(3)] = chance.randbytes(chance.randrange(4))
        for decode in (CODEC.decode, CODEC.decode_column, Codec(REGISTRY, foreign=True).decode_column):
            try:
                decode(bytes(data))
            except (CorruptObject, RestoreFailed):
                continue


HUGE = 1 << 40


@pytest.mark.parametrize(
    "tree",
    [
        CBORTag(Tag.SEQUENCES, ["list", HUGE, []]),
        CBORTag(Tag.SEQUENCES, ["list", HUGE, [1]]),
        CBORTag(Tag.SEQUENCES, ["list", 0, []]),
        CBORTag(Tag.SEQUENCES, ["list", -1, [1]]),
        CBORTag(Tag.SEQUENCES, ["list", True, [1]]),
        CBORTag(Tag.SEQUENCES, ["list", [HUGE], [1]]),
        CBORTag(Tag.SEQUENCES, ["list", [2, -1], [1]]),
        CBORTag(Tag.SEQUENCES, ["list", [1.0], [1]]),
        CBORTag(Tag.SEQUENCES, ["list", None, [1]]),
        CBORTag(Tag.SEQUENCES, ["object", 1, [1]]),
        CBORTag(Tag.SEQUENCES, [["list"], 1, [1]]),
        CBORTag(Tag.SEQUENCES, ["list", 1, [[1]]]),
        CBORTag(Tag.SEQUENCES, ["list", 1, {"a": 1}]),
        CBORTag(Tag.SEQUENCES, ["list", 1, 5]),
        CBORTag(Tag.SEQUENCES, ["list", 1]),
        CBORTag(Tag.SEQUENCES, "list"),
        CBORTag(Tag.SEQUENCES, ["set", 2, [1, 1]]),
        CBORTag(Tag.SEQUENCES, ["set", 2, [1, True]]),
        CBORTag(Tag.SEQUENCES, ["set", 1, CBORTag(Tag.SEQUENCES, ["list", 1, [1]])]),
        CBORTag(Tag.TABLE, ["tuple", []]),
        CBORTag(Tag.TABLE, ["set", [[1]]]),
        CBORTag(Tag.TABLE, ["tuple", [[1], [1, 2]]]),
        CBORTag(Tag.MAPPINGS, ["dict", 1, [1], [], None]),
        CBORTag(Tag.MAPPINGS, ["dict", 2, ["a", "a"], [1, 2], None]),
        CBORTag(Tag.MAPPINGS, ["dict", 2, [1, True], [1, 2], None]),
        CBORTag(Tag.MAPPINGS, ["dict", 1, CBORTag(Tag.SEQUENCES, ["list", 1, [1]]), [1], None]),
        CBORTag(Tag.MAPPINGS, ["dict", 1, [1], [1], ["list"]]),
        CBORTag(Tag.MAPPINGS, ["defaultdict", 1, [1], [1], None]),
        CBORTag(Tag.MAPPINGS, ["defaultdict", 1, [1], [1], []]),
        CBORTag(Tag.MAPPINGS, ["defaultdict", 1, [1], [1], ["exec"]]),
        CBORTag(Tag.MAPPINGS, ["defaultdict", 1, [1], [1], [["list"]]]),
        CBORTag(Tag.KEYED_TABLE, ["dict", ["a", "a"], [[1], [1]], None]),
        CBORTag(Tag.KEYED_TABLE, ["dict", ["a", 1], [[1], [1]], None]),
        CBORTag(Tag.KEYED_TABLE, ["dict", ["a"], [[1], [1]], None]),
        CBORTag(Tag.KEYED_TABLE, ["dict", [], [], None]),
        CBORTag(Tag.QUEUES, [[1], 2, [1, 2]]),
        CBORTag(Tag.QUEUES, [[True], 1, [1]]),
        CBORTag(Tag.QUEUES, [[], 1, [1]]),
        CBORTag(Tag.QUEUES, [[-1], 1, [1]]),
        CBORTag(Tag.QUEUES, [[HUGE * HUGE], 1, [1]]),
        CBORTag(Tag.FLOATS, b"1234567"),
        CBORTag(Tag.FLOATS, "12345678"),
        CBORTag(Tag.FLOATS, [1.0]),
        CBORTag(Tag.LEAVES, ["eval", ["1"]]),
        CBORTag(Tag.LEAVES, ["Decimal", ["no number"]]),
        CBORTag(Tag.LEAVES, ["Decimal", [[1]]]),
        CBORTag(Tag.LEAVES, ["Fraction", [2, 4]]),
        CBORTag(Tag.LEAVES, ["Fraction", [1, 0]]),
        CBORTag(Tag.LEAVES, ["date", [0]]),
        CBORTag(Tag.LEAVES, ["date", [HUGE * HUGE]]),
        CBORTag(Tag.LEAVES, ["UUID", [b"short"]]),
        CBORTag(Tag.LEAVES, ["range", [1, 2]]),
        CBORTag(Tag.LEAVES, ["range", [1, 2, 0]]),
        CBORTag(Tag.LEAVES, ["timedelta", [0, 90_000, 0]]),
        CBORTag(Tag.LEAVES, ["datetime", ["2024-01-01T00:00:00+01:00", None, 0]]),
        CBORTag(Tag.LEAVES, ["datetime", ["2024-01-01T00:00:00", "offset:99999999999999", 0]]),
        CBORTag(Tag.LEAVES, ["datetime", ["2024-01-01T00:00:00", "moon", 0]]),
        CBORTag(Tag.LEAVES, ["datetime", ["2024-01-01T00:00:00", None, 2]]),
        CBORTag(Tag.LEAVES, ["ZoneInfo", ["../../etc/passwd"]]),
        CBORTag(Tag.UNION, [b"\0\1", [[1]]]),
        CBORTag(Tag.UNION, [b"\0", [[1], [2]]]),
        CBORTag(Tag.UNION, [b"\0\0", [[1]]]),
        CBORTag(Tag.UNION, [[HUGE], [[1]]]),
        CBORTag(Tag.UNION, [b"\0", [CBORTag(Tag.UNION, [b"\0", [[1]]])]]),
        CBORTag(Tag.RECORDS, ["Order", 1, ["name", "name"], [["a"], ["b"]], None]),
        CBORTag(Tag.RECORDS, ["Order", 1, ["name", "parts"], [["a"]], None]),
        CBORTag(Tag.RECORDS, ["Order", 1, ["name", "parts"], [["a"], []], None]),
        CBORTag(Tag.RECORDS, ["Order", 0, ["name", "parts"], [["a"], ["b"]], None]),
        CBORTag(Tag.RECORDS, ["Order", True, ["name", "parts"], [["a"], ["b"]], None]),
        CBORTag(Tag.RECORDS, [7, 1, ["name", "parts"], [["a"], ["b"]], None]),
        CBORTag(Tag.RECORDS, ["Order", 1, [], [], HUGE]),
        CBORTag(Tag.RECORDS, ["Order", 1, [], [], None]),
        CBORTag(Tag.MEMBERS, ["Color", 1, [1]]),
        CBORTag(Tag.MEMBERS, ["Color", 1, "RED"]),
        CBORTag(Tag.MEMBERS, ["Color", "1", ["RED"]]),
        CBORTag(49_999, [1]),
        CBORTag(0, "2024-01-01T00:00:00Z"),
        CBORTag(4, [1, 2]),
        CBORTag(25, 0),
        CBORTag(28, []),
        CBORTag(29, 0),
        CBORTag(30, [1, 2]),
        CBORTag(35, "(a+)+"),
        CBORTag(256, ["a"]),
        CBORTag(258, [1]),
        CBORTag(2, [1]),
        cbor2.undefined,
        cbor2.CBORSimpleValue(5),
        {"a": 1},
        [1],
        [[1]],
        1.5,
    ],
    ids=repr,
)
def test_a_tree_that_was_never_written_is_refused(tree: Any) -> None:
    data = cbor2.dumps(tree)
    with pytest.raises(CorruptObject):
        CODEC.decode(data)
    if tree != [1]:  # a column, but no value
        with pytest.raises(CorruptObject):
            CODEC.decode_column(data)
    if tree != 1.5:  # part of a column, but neither a column nor a value
        for whole in ([tree, 1], CBORTag(Tag.SEQUENCES, ["list", 1, [tree]])):
            with pytest.raises(CorruptObject):
                CODEC.decode_column(cbor2.dumps(whole))


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\xff",  # a break where none belongs
        b"\x81\xff",
        b"\x9f\x01\xff",  # an array without a length
        b"\x7f\x61a\xff",
        b"\xbf\xff",
        b"\x1c",  # no such head
        b"\xf8\x05",
        b"\xc2\x9f\xff",
        b"\x63\xed\xa0\x80",  # a surrogate as UTF-8
        b"\x62\xc3\x28",
        b"\x5b" + b"\xff" * 8,
        b"\x7b\x7f" + b"\xff" * 7,
        b"\x9b" + b"\xff" * 8,
        b"\xbb\x00\x00\x00\xff\xff\xff\xff\xff",
        b"\xdb" + b"\xff" * 8 + b"\x00",
        b"\x9a\xff\xff\xff\xff" + b"\x01" * 100,
    ],
    ids=lambda data: data[:12].hex(),
)
def test_bytes_that_no_one_wrote_are_refused(data: bytes) -> None:
    for decode in (CODEC.decode, CODEC.decode_column):
        with pytest.raises(CorruptObject):
            decode(data)


def test_a_declared_length_allocates_nothing() -> None:
    tracemalloc.start()
    try:
        for head in (b"\x5b", b"\x7b", b"\x9b", b"\xbb"):
            for length in (1 << 20, 1 << 32, 1 << 40, 1 << 62):
                with pytest.raises(CorruptObject):
                    CODEC.decode(head + length.to_bytes(8, "big") + b"\x01" * 50)
        for tree in (CBORTag(Tag.SEQUENCES, ["list", HUGE, []]), CBORTag(Tag.RECORDS, ["Order", 1, [], [], HUGE])):
            with pytest.raises(CorruptObject):
                CODEC.decode(cbor2.dumps(tree))
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 4_000_000


def test_many_empty_columns_do_not_take_quadratic_time() -> None:
    tree = CBORTag(Tag.UNION, [[0] * 50_000, [[] for _ in range(50_000)]])
    with pytest.raises(CorruptObject):
        CODEC.decode_column(cbor2.dumps(tree))


def test_a_name_that_is_not_registered_is_told_and_nothing_is_searched() -> None:
    for tree in (
        CBORTag(Tag.RECORDS, ["os:system", 1, ["command"], [["true"]], None]),
        CBORTag(Tag.MEMBERS, ["os:system", 1, ["RED"]]),
    ):
        with pytest.raises(IncompatibleState, match=r"'os:system'.*import the module"):
            CODEC.decode(cbor2.dumps(tree))


def test_a_zone_that_this_machine_does_not_know_is_told() -> None:
    tree = CBORTag(Tag.LEAVES, ["ZoneInfo", ["Moon/Tranquility"]])
    with pytest.raises(RestoreFailed, match=r"Moon/Tranquility.*tzdata"):
        CODEC.decode(cbor2.dumps(tree))
