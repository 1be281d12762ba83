"""What a program can say is a list, and the list changes on purpose.  Everything else is the inside of the house."""

from __future__ import annotations

import ast
import importlib
from collections import Counter

import pytest

from actorflow_tests.house.sources import PACKAGE, Source, sources

# In the order of the architecture's table; a name comes here with the version that has it.
BUILD = (
    "Chunk",
    "Context",
    "HookContext",
    "Job",
    "KeyedBroadcastOperator",
    "KeyedOperator",
    "KeyedStream",
    "Operator",
    "SourceContext",
    "Stream",
    "record",
    "source",
)
REMEMBER = (
    "AggregatingState",
    "BroadcastState",
    "ListState",
    "MapState",
    "ReducingState",
    "SplitList",
    "UnionList",
    "ValueState",
)
RUN = (
    "Buffers",
    "Checkpoints",
    "Environment",
    "ExponentialDelay",
    "FailureRate",
    "FixedDelay",
    "Guarantee",
    "JobHandle",
    "JobStatus",
    "NoRestart",
    "Retention",
    "run",
)
CATCH = (
    "AbortReason",
    "ActorflowError",
    "CheckpointAborted",
    "Fenced",
    "IncompatibleState",
    "InvalidConfig",
    "InvalidJob",
    "InvalidValue",
    "JobFailed",
    "OperatorFailed",
    "RestoreFailed",
    "StorageFailed",
)
SIDE_DOORS = ("abc", "connectors", "simulation", "storage")

MODULES = tuple(source for source in sources(PACKAGE) if source.path.name != "__main__.py")
# A door sign that only says what a room is for shows nothing, and needs no list of it.
SHOWING = tuple(source for source in MODULES if len(source.tree.body) > 1)


def declared(source: Source) -> ast.expr | None:
    """Return the value that ``__all__`` is given at the top of a module."""
    for node in source.tree.body:
        match node:
            case ast.Assign(targets=[ast.Name(id="__all__")], value=value):
                return value
            case ast.AnnAssign(target=ast.Name(id="__all__"), value=value):
                return value
    return None


def test_the_front_door_shows_exactly_these_names() -> None:
    actorflow = importlib.import_module("actorflow")

    assert sorted(BUILD + REMEMBER + RUN + CATCH) == sorted(actorflow.__all__)
    assert [] == [name for name in actorflow.__all__ if not hasattr(actorflow, name)]


def test_what_the_front_door_shows_says_that_it_comes_from_there() -> None:
    actorflow = importlib.import_module("actorflow")

    elsewhere = {
        name: shown.__module__
        for name in actorflow.__all__
        if (shown := getattr(actorflow, name)).__module__ != "actorflow"
    }

    assert {} == elsewhere


@pytest.mark.parametrize("door", SIDE_DOORS)
def test_each_side_door_opens_and_shows_something(door: str) -> None:
    assert importlib.import_module(f"actorflow.{door}").__all__


@pytest.mark.parametrize("source", SHOWING, ids=lambda source: source.module)
def test_each_module_says_in_a_tuple_what_it_has_and_has_it(source: Source) -> None:
    said = declared(source)
    assert isinstance(said, ast.Tuple), f"{source.place} needs __all__ = (…), a tuple"
    names = [element.value for element in said.elts if isinstance(element, ast.Constant)]

    module = importlib.import_module(source.module)

    assert len(said.elts) == len(names), "only names stand in __all__"
    assert {} == {name: count for name, count in Counter(names).items() if count > 1}
    assert [] == [name for name in names if not hasattr(module, str(name))]
    assert [] == [name for name in names if str(name).startswith("_")]


@pytest.mark.parametrize("source", MODULES, ids=lambda source: source.module)
def test_each_module_says_at_its_head_what_it_is_for(source: Source) -> None:
    assert ast.get_docstring(source.tree), f"{source.place} needs a docstring"
