"""What was written stays readable: these bytes were written once, and may never mean anything else."""

from __future__ import annotations

from collections import Counter, defaultdict, deque
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from enum import Enum
from typing import Any, Final
from uuid import UUID

import pytest

from actorflow.model.codec import Codec, Registry, seal, unseal
from actorflow_tests.model.likeness import same


@dataclass
class Order:
    name: str
    parts: list[int]


class Color(Enum):
    RED = 1


REGISTRY = Registry(alone=True)
REGISTRY.register(Order, name="Order", version=2)
REGISTRY.register(Color, name="Color")
CODEC = Codec(REGISTRY)

WRITTEN: Final[list[tuple[Any, str]]] = [
    (None, "f6"),
    (-1, "20"),
    (2**64, "c249010000000000000000"),
    (1.5, "d9a02848000000000000f83f"),
    ("ü", "62c3bc"),
    (b"\xff", "41ff"),
    (bytearray(b"a"), "d9a02e8269627974656172726179814161"),
    ([1, [2, "x"]], "d9a02a83646c69737402d9a02982420001828101d9a02a83646c6973740282026178"),
    ((1, 2), "d9a02a83657475706c6502820102"),
    ({"a": 1, 2: [None]}, "d9a02c8564646963740282616102d9a02982420001828101d9a02a83646c6973740181f6f6"),
    ({1, 2}, "d9a02a836373657402820102"),
    (frozenset({"b", "a"}), "d9a02a836966726f7a656e736574028261616162"),
    (deque([1], maxlen=3), "d9a031838103018101"),
    (Counter("aab"), "d9a02c8567436f756e746572028261616162820201f6"),
    (defaultdict(list, a=[1]), "d9a02c856b64656661756c746469637401816161d9a02a83646c69737401810181646c697374"),
    (range(1, 5, 2), "d9a02e826572616e676583010502"),
    (1j, "d9a02e8267636f6d706c657881500000000000000000000000000000f03f"),
    (Decimal("1.50"), "d9a02e8267446563696d616c8164312e3530"),
    (UUID(int=1), "d9a02e826455554944815000000000000000000000000000000001"),
    (date(2024, 2, 29), "d9a02e826464617465811a000b4681"),
    (
        datetime(2024, 1, 1, 1, 2, 3, 4, tzinfo=UTC),
        "d9a02e82686461746574696d6583781a323032342d30312d30315430313a30323a30332e3030303030346375746300",
    ),
    (timedelta(1, 2, 3), "d9a02e826974696d6564656c746183010203"),
    (
        [1, 2.5, "x", (1,)],
        "d9a02a83646c69737404d9a0298244000100028382016178d9a028480000000000000440d9a02a83657475706c65018101",
    ),
    ([(1, 2.0), (3, 4.0)], "d9a02a83646c69737402d9a02b82657475706c6582820103d9a0285000000000000000400000000000001040"),
    ([{"a": 1.0}, {"a": None}], "d9a02a83646c69737402d9a02d8464646963748161618182fb3ff0000000000000f6f6"),
    (Order("a", [1]), "d9a02f85654f726465720282646e616d6565706172747382816161d9a02a83646c697374018101f6"),
    (
        [Order("a", [1]), Order("b", [])],
        "d9a02a83646c69737402d9a02f85654f726465720282646e616d65657061727473828261616162d9a02a83646c6973744201008101f6",
    ),
    (Color.RED, "d9a0308365436f6c6f72018163524544"),
]


@pytest.mark.parametrize(("value", "written"), WRITTEN, ids=lambda part: repr(part)[:30])
def test_a_value_is_written_as_ever_and_read_back(value: Any, written: str) -> None:
    assert written == CODEC.encode(value).hex()
    assert same(value, CODEC.decode(bytes.fromhex(written)))


def test_a_column_is_written_as_ever() -> None:
    assert "8301f562" + "6162" == CODEC.encode_column([1, True, "ab"]).hex()


def test_an_envelope_is_written_as_ever() -> None:
    written = "af666c6f770d0a0105626c6f636b00000003000000000000000488b9c92d626f6479"
    assert written == seal("block", 3, b"body").hex()
    assert (3, b"body") == unseal("block", bytes.fromhex(written), "it")
