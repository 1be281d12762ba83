"""Tokens, key groups and routes (semantics 5.1, architecture 13)."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from array import array
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any
from uuid import UUID
from zlib import crc32

import pytest
from hypothesis import given
from hypothesis import strategies as st

from actorflow.errors import InvalidValue
from actorflow.model.key_groups import (
    MAX_PARALLELISM_LIMIT,
    SCHEME,
    KeyRouter,
    OwnedKeys,
    bytes_of_token,
    default_max_parallelism,
    encode_key,
    key_group,
    key_groups,
    key_of_token,
    murmur,
    murmur_many,
    range_of,
    subtask_of,
    token_of,
    tokens_of,
)

VECTORS = [
    (0, 593689054, 94),
    (1, 68075478, 86),
    (2, 1085422463, 127),
    (42, 1134849565, 29),
    (-1, 1982413648, 80),
    (2**31 - 1, 1653689534, 62),
    (-(2**31), 1718298732, 108),
]

# Key, its bytes, their CRC-32, its key group of 128 and of 32,768.  State on disk is filed by these: they never change.
GOLDEN: list[tuple[Any, str, int, int, int]] = [
    (None, "00", 3523407757, 70, 13894),
    ("", "0200", 1945071741, 0, 29312),
    ("a", "026100", 2149799834, 122, 19450),
    ("word", "02776f726400", 2186922431, 4, 18436),
    ("é", "02c3a900", 1734424622, 68, 30788),
    ("e\u0301", "0265cc8100", 171402594, 68, 16196),
    ("a\0b", "026100ff6200", 2970313629, 19, 10771),
    (b"", "0100", 1489118142, 90, 15322),
    (b"a", "016100", 2187717059, 9, 30857),
    (b"\0", "0100ff00", 182207755, 9, 17417),
    (0, "14", 3369614320, 88, 23640),
    (1, "1501", 23839869, 51, 26931),
    (-1, "13fe", 2050198646, 24, 7064),
    (255, "15ff", 1533942630, 51, 17715),
    (256, "160100", 4277221265, 59, 9787),
    (2**31, "1880000000", 2079038821, 1, 24705),
    (2**63, "1c8000000000000000", 4291174417, 2, 17282),
    (2**64, "1d09010000000000000000", 3851093929, 23, 5911),
    (-(2**64), "0bf6feffffffffffffffff", 1336332811, 126, 26622),
    (0.0, "218000000000000000", 548931476, 112, 4464),
    (1.0, "21bff0000000000000", 405503132, 45, 14637),
    (-1.5, "214007ffffffffffff", 1872900750, 79, 5071),
    (float("inf"), "21fff0000000000000", 834059889, 16, 2064),
    (float("nan"), "21fff8000000000000", 39448598, 71, 30919),
    (False, "26", 1010288, 84, 15572),
    (True, "27", 1997036262, 47, 12847),
    ((), "0500", 1018095290, 60, 14652),
    ((1,), "05150100", 359432180, 65, 26049),
    ((1, 2), "051501150200", 3647491230, 122, 25594),
    (("a", None, (b"x", 2)), "0502610000ff0501780015020000", 2723772274, 89, 4697),
    (UUID(int=1), "3000000000000000000000000000000001", 2266655404, 52, 12980),
    (Decimal(1), "400415013100", 3947022119, 81, 24145),
    (Decimal("-12.50"), "4002eafdcecdcaff", 3484019914, 16, 23312),
    (date(2024, 2, 29), "41000b4681", 2474127920, 3, 25731),
    (datetime(2024, 2, 29, 12, tzinfo=UTC), "421b061283ffaff000", 4104762283, 120, 28920),
]


def tokens(keys: list[Any]) -> list[Any]:
    found = tokens_of(keys)
    return keys if found is None else found


@pytest.mark.parametrize(("hash32", "mixed", "group"), VECTORS)
def test_mixing_gives_the_published_vectors(hash32: int, mixed: int, group: int) -> None:
    assert murmur(hash32) == mixed
    assert mixed % 128 == group
    assert list(murmur_many([hash32 & 0xFFFFFFFF])) == [mixed]


@given(st.lists(st.integers(0, 2**32 - 1), max_size=600))
def test_mixing_many_at_once_gives_what_mixing_each_gives(hashes: list[int]) -> None:
    assert list(murmur_many(hashes)) == [murmur(hash32) for hash32 in hashes]


def test_mixing_many_at_once_holds_for_every_place_of_a_bit_and_for_the_edges_of_the_sign() -> None:
    hashes = [1 << bit for bit in range(32)] + [0xFFFFFFFF ^ (1 << bit) for bit in range(32)]
    hashes += [crc32(number.to_bytes(4, "big")) for number in range(20_000)]

    assert murmur_many(hashes) == array("Q", map(murmur, hashes))
    assert max(murmur_many(hashes)) < 2**31


@pytest.mark.parametrize(("key", "data", "checksum", "group", "fine_group"), GOLDEN)
def test_the_way_from_a_key_to_its_group_never_changes(
    key: Any, data: str, checksum: int, group: int, fine_group: int
) -> None:
    assert SCHEME == "crc32/1"
    assert encode_key(key).hex() == data
    assert crc32(encode_key(key)) == checksum
    assert key_group(token_of(key), 128) == group
    assert key_groups([token_of(key)], 32_768) == [fine_group]


def test_r069_every_process_and_every_hash_seed_finds_the_same_groups() -> None:
    program = (
        "import json\n"
        "from datetime import date\n"
        "from dataclasses import dataclass\n"
        "from enum import Enum\n"
        "from actorflow.model.registry import record\n"
        "from actorflow.model.key_groups import key_groups, tokens_of\n"
        "@record(name='Colour')\n"
        "class Colour(Enum):\n"
        "    RED = 1\n"
        "@record(name='Place')\n"
        "@dataclass(frozen=True)\n"
        "class Place:\n"
        "    city: str\n"
        "keys = ['a', b'a', None, Colour.RED, date(2024, 1, 1), Place('x')]\n"
        "print(json.dumps(key_groups(tokens_of(keys), 32768)))\n"
    )
    found = [
        json.loads(
            subprocess.run(
                [sys.executable, "-c", program],
                env={**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": os.pathsep.join(sys.path)},
                capture_output=True,
                check=True,
                text=True,
            ).stdout
        )
        for seed in ("0", "1")
    ]

    assert found[0] == found[1]
    assert found[0][:2] == key_groups(["a", b"a"], 32_768)


# ── tokens ───────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("keys", [[], ["a", "é", "a"], [1, -1, 2**70, 0], [b"", b"a"], ["1", b"1", 1]])
def test_plain_keys_are_their_own_tokens(keys: list[Any]) -> None:
    assert tokens_of(keys) is None
    assert [token_of(key) for key in keys] == keys


def test_keys_that_a_dict_would_merge_have_different_tokens() -> None:
    keys = [1, 1.0, True, Decimal(1), "1", b"1", (1,), (1.0,), (True,)]

    assert len(dict.fromkeys(tokens(keys))) == len(keys)
    assert tokens(keys)[0] == 1  # as in a batch of plain keys
    assert tokens(keys)[4:6] == ["1", b"1"]
    assert tokens([True]) == [(b"\x27",)]


def test_r071_r072_equal_floats_have_one_token() -> None:
    assert len(dict.fromkeys(tokens([0.0, -0.0, 0.0]))) == 1
    assert len(dict.fromkeys(tokens([float("nan"), float("nan"), -float("nan")]))) == 1
    assert len(dict.fromkeys(tokens([(float("nan"), 1), (float("nan"), 1)]))) == 1


@pytest.mark.parametrize("keys", [["a", "\ud800"], ["\ud83d", "\ude00"], [1, "\udfff"], [(1, "\udfff")]])
def test_r074_a_lone_surrogate_is_refused_in_any_company(keys: list[Any]) -> None:
    with pytest.raises(InvalidValue, match="lone surrogate"):
        tokens_of(keys)


def test_one_key_that_is_none_refuses_the_batch_and_names_its_type() -> None:
    with pytest.raises(InvalidValue, match="type list"):
        tokens_of(["a", [1]])


@given(st.lists(st.one_of(st.integers(), st.text("ab\0\n"), st.binary(), st.none(), st.floats(allow_nan=False))))
def test_a_token_leads_back_to_its_key_and_to_the_keys_bytes(keys: list[Any]) -> None:
    for key, token in zip(keys, tokens(keys), strict=True):
        assert bytes_of_token(token) == encode_key(key)
        assert key_of_token(token) == key
        assert type(key_of_token(token)) is type(key)
        assert token == token_of(key)


# ── groups and subtasks ──────────────────────────────────────────────────────────────────────

text = st.text(st.characters(exclude_categories=["Cs"]), max_size=5)


@given(
    st.one_of(
        st.lists(text),
        st.lists(st.text("\0\n\1a")),
        st.lists(st.integers(-(2**66), 2**66)),
        st.lists(st.integers(1, 2**64)),
        st.lists(st.one_of(text, st.integers(), st.tuples(st.integers(), text))),
    ),
    st.sampled_from([1, 7, 128, 32_768]),
)
def test_groups_of_many_keys_are_those_of_each(keys: list[Any], max_parallelism: int) -> None:
    assert key_groups(tokens(keys), max_parallelism) == [key_group(token_of(key), max_parallelism) for key in keys]


def test_ranges_are_the_published_ones() -> None:
    assert [range_of(subtask, 3, 128) for subtask in range(3)] == [range(43), range(43, 86), range(86, 128)]
    assert [range_of(subtask, 5, 128) for subtask in range(5)] == [
        range(26),
        range(26, 52),
        range(52, 77),
        range(77, 103),
        range(103, 128),
    ]


@given(st.integers(1, 600).flatmap(lambda groups: st.tuples(st.just(groups), st.integers(1, groups))))
def test_inv_5_1_ranges_partition_the_groups_and_agree_with_the_owner(sizes: tuple[int, int]) -> None:
    max_parallelism, parallelism = sizes

    owned = [group for subtask in range(parallelism) for group in range_of(subtask, parallelism, max_parallelism)]

    assert owned == list(range(max_parallelism))
    for subtask in range(parallelism):
        assert range_of(subtask, parallelism, max_parallelism)
        for group in range_of(subtask, parallelism, max_parallelism):
            assert subtask_of(group, parallelism, max_parallelism) == subtask


def test_the_derived_number_of_groups_is_the_published_one() -> None:
    expected = {1: 128, 85: 128, 86: 256, 170: 256, 1000: 2048, 21_845: 32_768, 21_846: 32_768, 32_768: 32_768}

    assert {parallelism: default_max_parallelism(parallelism) for parallelism in expected} == expected


@given(st.lists(text, max_size=50), st.integers(0, 2))
def test_owned_keys_are_those_whose_group_is_in_the_range(keys: list[str], subtask: int) -> None:
    owned = OwnedKeys(range_of(subtask, 3, 128), 128)

    assert owned.select(keys) == [owned(key) for key in keys]
    assert [owned(key) for key in keys] == [subtask_of(key_group(key, 128), 3, 128) == subtask for key in keys]


# ── routing ──────────────────────────────────────────────────────────────────────────────────


def expected_channels(keys: list[Any], parallelism: int, max_parallelism: int = 128) -> list[int]:
    return [subtask_of(key_group(token, max_parallelism), parallelism, max_parallelism) for token in tokens(keys)]


@given(st.lists(st.lists(st.one_of(st.integers(0, 20), st.text("ab", max_size=2)), max_size=8)), st.integers(1, 5))
def test_a_router_answers_the_same_from_its_cache_and_without(batches: list[list[Any]], parallelism: int) -> None:
    router = KeyRouter(128, parallelism)

    for batch in [*batches, *batches]:
        assert router.channels(tokens(batch)) == expected_channels(batch, parallelism)


def test_r071_both_zeros_and_every_nan_go_to_one_channel() -> None:
    router = KeyRouter(128, 4)

    assert len(dict.fromkeys(router.channels(tokens([0.0, -0.0, 0.0])))) == 1
    assert len(dict.fromkeys(router.channels(tokens([float("nan"), -float("nan")])))) == 1


def test_the_cache_is_bounded_and_right_when_it_is_emptied() -> None:
    router = KeyRouter(128, 4)
    number = 40_000

    for _ in range(3):
        for first in range(0, number, 500):
            batch = [f"key-{index}" for index in range(first, first + 500)]
            assert router.channels(batch) == expected_channels(batch, 4)
    assert router.is_caching
    for first in range(10**6, 10**6 + 2 * KeyRouter.CACHED, 1_000):
        router.channels(list(range(first, first + 1_000)))
        assert len(router._cache) <= KeyRouter.CACHED


def test_the_cache_rests_while_keys_do_not_come_again_and_comes_back_when_they_do() -> None:
    router = KeyRouter(128, 4)
    fresh = iter(range(10**9))

    while router.is_caching:
        router.channels([next(fresh) for _ in range(4_096)])
    given = next(fresh)
    assert given <= 2 * KeyRouter.CACHED + 4_096

    few = list(range(100))
    expected = expected_channels(few, 4)
    calls = 0
    while not router.is_caching:
        assert router.channels(few) == expected
        calls += 1
    assert calls * 100 >= KeyRouter.CACHED * KeyRouter.RESTS
    for _ in range(3 * KeyRouter.CACHED // 100):
        router.channels(few)
    assert router.is_caching


@pytest.mark.parametrize(("max_parallelism", "parallelism"), [(128, 129), (128, 0), (MAX_PARALLELISM_LIMIT + 1, 1)])
def test_a_router_of_impossible_sizes_is_refused(max_parallelism: int, parallelism: int) -> None:
    with pytest.raises(InvalidValue, match="does not fit"):
        KeyRouter(max_parallelism, parallelism)
