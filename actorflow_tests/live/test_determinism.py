"""One seed, one journal: on every Python that is present and under every hash seed."""

from __future__ import annotations

import sys

import pytest

from actorflow_tests.simulation.determinism import HASH_SEEDS, compare, digests, interpreters

pytestmark = pytest.mark.live


def test_few_seeds_do_the_same_in_two_processes_whatever_their_hash_seed() -> None:
    """Also those of other versions of Python: two processes at least, and not more than there is time for."""
    this, *others = interpreters().items()
    pythons = dict([this, *others[:1]])
    assert compare(range(4, 6), pythons, HASH_SEEDS[: 2 if len(pythons) == 1 else 1]) == {}


def test_different_seeds_do_different_things() -> None:
    assert len(set(dict(digests(range(1, 6))).values())) == 5


@pytest.mark.slow
def test_500_seeds_do_the_same_on_every_python_and_under_every_hash_seed() -> None:
    pythons = interpreters()
    assert any(path == sys.executable for path in pythons.values())
    assert compare(range(1, 501), pythons) == {}
