"""Planted faults: each has a name and a story, leaves nothing behind, and is found by the storms."""

from __future__ import annotations

import sys
from types import ModuleType
from typing import Any

import pytest

from actorflow.simulation.mutants import MUTANTS, control, hunt, hunt_one, summary
from actorflow.simulation.mutants.hunting import fails
from actorflow.simulation.mutants.jobs import JOBS
from actorflow.simulation.replacing import replaced

QUICK = (
    "position-off-by-one",
    "prepared-rows-not-restored",
    "a-union-for-one-only",
    "calls-under-way-not-in-the-snapshot",
    "the-sweep-takes-live-files",
    "commits-before-the-manifest",
)
"""Found within some ten seeds."""


def surroundings() -> dict[tuple[str, str, str], Any]:
    """Every attribute of every module and class of the package."""
    found: dict[tuple[str, str, str], Any] = {}
    for name in sorted(sys.modules):
        module = sys.modules[name]
        if name.startswith("actorflow.") and isinstance(module, ModuleType):
            for attribute, value in vars(module).items():
                found[name, "", attribute] = value
                if isinstance(value, type) and value.__module__.startswith("actorflow."):
                    found.update({(name, attribute, inner): own for inner, own in vars(value).items()})
    return found


def changed(before: dict[tuple[str, str, str], Any], after: dict[tuple[str, str, str], Any]) -> list[Any]:
    volatile = {"__cached__", "_abc_impl"}
    return [key for key in before if key[2] not in volatile and after.get(key) is not before[key]]


def test_there_are_enough_of_them_and_each_tells_what_is_broken_and_what_is_seen() -> None:
    assert len(MUTANTS) >= 24
    for name, mutant in MUTANTS.items():
        assert mutant.name == name
        assert len(mutant.broken) > 30
        assert mutant.seen.endswith(".")
        assert mutant.jobs
        assert set(mutant.jobs) <= set(JOBS)
    assert {job for mutant in MUTANTS.values() for job in mutant.jobs} == set(JOBS)


@pytest.mark.parametrize("name", sorted(MUTANTS))
def test_what_is_planted_replaces_something_and_leaves_nothing_behind(name: str) -> None:
    before = surroundings()
    with MUTANTS[name].planted():
        assert changed(before, surroundings())
    assert not changed(before, surroundings())

    with pytest.raises(ZeroDivisionError), MUTANTS[name].planted():
        raise ZeroDivisionError
    assert not changed(before, surroundings())


def test_what_is_replaced_is_put_back_as_it_was_and_what_is_not_there_is_refused() -> None:
    class Counter:
        step = 1

        @staticmethod
        def next(number: int) -> int:
            return number + 1

    raw = vars(Counter)["next"]
    with (
        replaced(Counter, "next", lambda _: staticmethod(lambda number: number + 2)),
        replaced(Counter, "step", lambda step: step + 1),
    ):
        assert (Counter.next(1), Counter.step) == (3, 2)
    assert vars(Counter)["next"] is raw
    assert Counter.step == 1
    with pytest.raises(KeyError), replaced(Counter, "previous", lambda _: None):
        pass


@pytest.mark.parametrize("name", QUICK)
def test_a_planted_fault_is_found_within_some_ten_seeds(name: str) -> None:
    found = hunt_one(name, 14)
    assert found is not None


def test_where_nothing_is_planted_nothing_is_found() -> None:
    heard: list[tuple[int, str, str]] = []
    assert control(1, 6, lambda *told: heard.append(told)) == 0
    assert [seed for seed, _, _ in heard] == list(range(1, 7))
    assert {job for _, job, _ in heard} == set(JOBS)
    assert fails("words", 3) == ""


def test_a_hunt_is_told_in_numbers() -> None:
    assert summary({"a": 3, "b": None, "c": 40, "d": 7}) == {
        "mutants": 4,
        "found": 3,
        "median_seeds": 7,
        "each": {"a": 3, "b": None, "c": 40, "d": 7},
    }
    assert summary({"a": None})["median_seeds"] is None
    assert hunt(1, names=["a-failed-commit-counts-as-done"])["mutants"] == 1
    with pytest.raises(KeyError):
        hunt_one("a-mutant-that-there-is-not")


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(MUTANTS))
def test_every_planted_fault_is_found_within_two_thousand_seeds(name: str) -> None:
    assert hunt_one(name) is not None


@pytest.mark.slow
@pytest.mark.parametrize("first", range(1, 2_001, 100))
def test_two_thousand_seeds_find_nothing_where_nothing_is_planted(first: int) -> None:
    heard: list[tuple[int, str, str]] = []
    assert control(first, first + 99, lambda *told: heard.append(told)) == 0, [one for one in heard if one[2]]
