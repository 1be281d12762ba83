"""What nobody may do, so that a seed decides everything: no clock, no chance, no thread of one's own, no identity that
differs from process to process, no pickle.  Only the two worlds and the rooms that the simulator never enters may."""

from __future__ import annotations

import ast
from collections.abc import Iterator

import pytest

from actorflow_tests.house.sources import PACKAGE, TESTS, Source, source_of, sources
from actorflow_tests.house.visible_sets import looks_at_the_order_of_a_set

FREE = ("runtime/real_world.py", "simulation/", "benchmarks/", "cli/", "web/")

BANNED_MODULES = {
    "time": "time comes from the world's clock",
    "random": "chance comes from the world's entropy",
    "uuid": "unique ids come from the world's entropy",
    "secrets": "chance comes from the world's entropy",
    "threading": "work leaves the loop through asyncio.to_thread",
    "_thread": "work leaves the loop through asyncio.to_thread",
    "concurrent.futures": "work leaves the loop through asyncio.to_thread",
    "anyio.to_thread": "it starts threads behind the loop's back; asyncio.to_thread doesn't",
    "anyio.from_thread": "it belongs to threads that the loop does not know",
}
HARMLESS = frozenset({"uuid.SafeUUID", "uuid.UUID"})  # types of keys and values, which draw nothing

# A pickle can run code, and so can what wraps one; no room is free to use it.
PICKLES = ("_pickle", "cloudpickle", "copyreg", "dill", "joblib", "marshal", "multiprocessing", "pickle", "shelve")

BANNED_CALLS = {
    "hash": "it is salted per process; key_groups.py has a stable one",
    "id": "addresses differ from process to process",
}
BANNED_ATTRIBUTES = {
    "asyncio.create_task": "every task has a parent: start it in a task group",
    "asyncio.ensure_future": "every task has a parent: start it in a task group",
    "datetime.now": "time comes from the world's clock",
    "datetime.today": "time comes from the world's clock",
    "datetime.utcnow": "time comes from the world's clock",
    "date.today": "time comes from the world's clock",
    "os.urandom": "chance comes from the world's entropy",
    "anyio.to_thread": BANNED_MODULES["anyio.to_thread"],
    "anyio.from_thread": BANNED_MODULES["anyio.from_thread"],
}


def is_free(source: Source) -> bool:
    """Whether a module is of a world, or of a room that the simulator never enters."""
    return any(source.within == free or (free.endswith("/") and source.within.startswith(free)) for free in FREE)


def complaints(source: Source) -> list[str]:
    """Return a line for each ban that a module breaks."""
    found = list(_pickles(source.tree))
    if not is_free(source):
        found += _imports(source.tree)
        found += _calls(source.tree)
        found += [
            (line, "the order of a set is an accident: sort it") for line in looks_at_the_order_of_a_set(source.tree)
        ]
    return [f"{source.place}:{line}: {what}" for line, what in sorted(found)]


def _imported(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Return every dotted name that an import makes reachable: ``from anyio import to_thread`` gives both."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module is not None and not node.level:
            if not HARMLESS.issuperset(f"{node.module}.{alias.name}" for alias in node.names):
                yield node.lineno, node.module
            yield from ((node.lineno, f"{node.module}.{alias.name}") for alias in node.names)


def _pickles(tree: ast.Module) -> Iterator[tuple[int, str]]:
    tops = {(line, name.partition(".")[0]) for line, name in _imported(tree)}
    yield from ((line, f"{top} can run code that somebody else wrote") for line, top in sorted(tops) if top in PICKLES)


def _imports(tree: ast.Module) -> Iterator[tuple[int, str]]:
    for line, name in _imported(tree):
        if name in BANNED_MODULES:
            yield line, f"{name}: {BANNED_MODULES[name]}"
        elif name in BANNED_ATTRIBUTES:
            yield line, f"{name}: {BANNED_ATTRIBUTES[name]}"


def _calls(tree: ast.Module) -> Iterator[tuple[int, str]]:
    for node in ast.walk(tree):
        match node:
            case ast.Call(func=ast.Name(id=name)) if name in BANNED_CALLS:
                yield node.lineno, f"{name}(): {BANNED_CALLS[name]}"
            case ast.Call(args=arguments):
                # also where the function itself is handed over: map(hash, …), sorted(…, key=id)
                for argument in (*arguments, *(keyword.value for keyword in node.keywords)):
                    if isinstance(argument, ast.Name) and argument.id in BANNED_CALLS and not _is_bound(tree, argument):
                        yield argument.lineno, f"{argument.id}: {BANNED_CALLS[argument.id]}"
            case ast.Attribute(attr=attribute, value=owner):
                if (dotted := f"{_last(owner)}.{attribute}") in BANNED_ATTRIBUTES:
                    yield node.lineno, f"{dotted}: {BANNED_ATTRIBUTES[dotted]}"
                elif attribute == "create_task" and _is_a_loop(owner):
                    yield node.lineno, f"create_task of a loop: {BANNED_ATTRIBUTES['asyncio.create_task']}"


def _is_bound(tree: ast.Module, name: ast.Name) -> bool:
    """Whether the name is also a variable or parameter somewhere in the module, so that it need not be the builtin."""
    return any(
        (isinstance(node, ast.arg) and node.arg == name.id)
        or (isinstance(node, ast.Name) and node.id == name.id and isinstance(node.ctx, ast.Store))
        for node in ast.walk(tree)
    )


def _last(node: ast.expr) -> str:
    match node:
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return name
    return ""


def _is_a_loop(node: ast.expr) -> bool:
    match node:
        case ast.Call(func=func):
            return _last(func) in {"get_running_loop", "get_event_loop"}
        case _:
            return _last(node).strip("_") in {"loop", "event_loop"}


def _monkeypatches(tree: ast.Module) -> Iterator[int]:
    for node in ast.walk(tree):
        match node:
            case ast.arg(arg="monkeypatch") | ast.Attribute(attr="MonkeyPatch") | ast.alias(name="MonkeyPatch"):
                yield node.lineno
            case ast.Constant(value="monkeypatch"):  # getfixturevalue("monkeypatch")
                yield node.lineno


def test_no_module_reaches_for_time_chance_threads_or_identity() -> None:
    found = [line for source in sources(PACKAGE) for line in complaints(source)]

    assert not found, "\n".join(["", *found])


def test_no_test_patches_what_it_tests() -> None:
    found = [
        f"{source.place}:{line}"
        for source in sources(TESTS)
        if source.path.name != "test_bans.py"
        for line in _monkeypatches(source.tree)
    ]

    assert not found, "\n".join(["", *found])


@pytest.mark.parametrize(
    "text",
    [
        "import time",
        "from time import monotonic",
        "def f():\n    import random",
        "import uuid, sys",
        "from uuid import UUID, uuid4",
        "import secrets",
        "import threading",
        "from concurrent.futures import ThreadPoolExecutor",
        "import concurrent.futures",
        "import anyio.to_thread",
        "from anyio import to_thread",
        "anyio.to_thread.run_sync(f)",
        "asyncio.create_task(f())",
        "from asyncio import create_task",
        "asyncio.get_running_loop().create_task(f())",
        "self.loop.create_task(f())",
        "hash(key)",
        "sorted(things, key=id)",
        "id(thing)",
        "datetime.now(UTC)",
        "datetime.datetime.now()",
        "import pickle",
        "from pickle import dumps",
        "import multiprocessing.pool",
        "import shelve",
        "for thing in {1, 2}: pass",
        "[f(x) for x in set(things)]",
        "list({x for x in things})",
        "a = set()\nfor x in a: pass",
        "def f(a: set[int]):\n    return [*a]",
        "def f(a: frozenset[int] | None):\n    return ','.join(a)",
        "class A:\n    a: set[int]\n    def f(self):\n        for x in self.a: pass",
        "class A:\n    def __init__(self):\n        self.a: set[int] = g()\n    def f(self): self.a.pop()",
        "for x in a | {1}: pass",
        "{k: 1 for k in frozenset(a)}",
        "next(iter({1}))",
        "dict.fromkeys({1})",
        "set(f(list({1})))",
        "a.update(map(f, {1}))",
    ],
)
def test_the_ban_sees_what_it_forbids(text: str) -> None:
    assert complaints(source_of("actorflow.runtime.actor", text))


@pytest.mark.parametrize(
    "text",
    [
        "from datetime import timedelta, datetime",
        "from datetime import time",
        "from uuid import UUID",
        "import asyncio\nasync def f():\n    await asyncio.to_thread(g)",
        "async with asyncio.TaskGroup() as actors:\n    actors.create_task(f())",
        "class A:\n    def __hash__(self): return 1",
        "def f(id): return g(id)",
        "for x in sorted({1, 2}): pass",
        "a = set()\nif x in a: n = len(a)",
        "any(f(x) for x in {1, 2})",
        "{f(x) for x in {1, 2}}",
        "def f(a: set[int]):\n    return PLAIN.issuperset(map(type, a)) or set(map(type, filter(None, a)))",
        "a = set()\na.update(map(f, {1}))",
        "frozenset(x for x in {1, 2})",
        "a = set()\na = [1]\nfor x in a: pass",
        "def f(a: list[int]):\n    for x in a: pass\ndef g(a: set[int]):\n    return max(a)",
        "def f(stage: dict[str, int]):\n    stage.pop('a')",
        "from actorflow.runtime.pace import time_slice",
    ],
)
def test_the_ban_lets_pass_what_is_allowed(text: str) -> None:
    assert [] == complaints(source_of("actorflow.runtime.actor", text))


def test_the_two_worlds_and_the_rooms_outside_the_simulator_are_free() -> None:
    for module in ("actorflow.runtime.real_world", "actorflow.simulation.loop", "actorflow.cli.demo"):
        assert [] == complaints(source_of(module, "import time, random, threading\nid(x)"))
        assert 1 == len(complaints(source_of(module, "import pickle")))


@pytest.mark.parametrize("text", ["def test_a(monkeypatch): pass", "pytest.MonkeyPatch()", "r('monkeypatch')"])
def test_the_ban_on_patching_sees_it(text: str) -> None:
    assert list(_monkeypatches(ast.parse(text)))
