from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest

from actorflow.model.journal import CheckpointCompleted, Line
from actorflow.simulation.digest import canonical, digest_of_digests, journal_digest


@pytest.mark.parametrize(
    ("value", "encoded"),
    [  # appendix A of RFC 8949
        (0, "00"),
        (23, "17"),
        (24, "1818"),
        (100, "1864"),
        (1000, "1903e8"),
        (1_000_000, "1a000f4240"),
        (1_000_000_000_000, "1b000000e8d4a51000"),
        (18446744073709551615, "1bffffffffffffffff"),
        (18446744073709551616, "c249010000000000000000"),
        (-18446744073709551616, "3bffffffffffffffff"),
        (-18446744073709551617, "c349010000000000000000"),
        (-1, "20"),
        (-1000, "3903e7"),
        (1.1, "fb3ff199999999999a"),
        (False, "f4"),
        (True, "f5"),
        (None, "f6"),
        (b"\x01\x02\x03\x04", "4401020304"),
        ("IETF", "6449455446"),
        ("ü", "62c3bc"),
        ([1, [2, 3]], "8201820203"),
        ({"b": [2, 3], "a": 1}, "a26161016162820203"),
    ],
)
def test_values_are_encoded_as_the_rfc_says(value: Any, encoded: str) -> None:
    assert canonical(value).hex() == encoded


def test_dataclasses_and_sets_have_one_form() -> None:
    @dataclass
    class Point:
        x: int
        y: int

    assert canonical(Point(1, 2)) == canonical([1, 2])
    assert canonical({"a", "b", "c"}) == canonical({"c", "b", "a"})


def lines(duration_ms: int, checkpoint: int = 3) -> list[Line]:
    entry = CheckpointCompleted(checkpoint=checkpoint, kind="periodic", bytes=10, duration_ms=duration_ms)
    return [Line(1, 1_000, "p", entry)]


def test_volatile_fields_stay_out() -> None:
    assert journal_digest(lines(17)) == journal_digest(lines(18))
    assert journal_digest(lines(17)) != journal_digest(lines(17, checkpoint=4))


def test_what_is_visible_belongs_to_it_in_any_order() -> None:
    assert journal_digest([], ["a", "b"]) == journal_digest([], ["b", "a"])
    assert journal_digest([], ["a", "b"]) != journal_digest([], ["a", "b", "b"])


def test_the_digest_of_seeds_depends_on_their_order() -> None:
    assert digest_of_digests(["a", "b"]) != digest_of_digests(["b", "a"])
