"""A module imports from its own room and from lower floors: never upward, never sideways, and third parties only where
the floor plan lets them in.  The direction of the imports *is* the architecture, so it is kept by a test."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator

import pytest

from actorflow_tests.house.sources import PACKAGE, Source, source_of, sources

# Rooms that share a cell share their walls: they may look into each other.
FLOORS: tuple[tuple[frozenset[str], ...], ...] = (
    (frozenset({"errors", "config"}),),
    (frozenset({"model"}),),
    (frozenset({"protocol"}), frozenset({"abc"})),
    (frozenset({"dataflow"}), frozenset({"state"}), frozenset({"storage"}), frozenset({"connectors"})),
    (frozenset({"runtime"}),),
    (
        frozenset({"simulation"}),
        frozenset({"hosting"}),
        frozenset({"snapshots"}),
        frozenset({"benchmarks"}),
        frozenset({"examples"}),
    ),
    (frozenset({"cli"}), frozenset({"web"})),
)
FLOOR_OF = {room: number for number, floor in enumerate(FLOORS) for cell in floor for room in cell}
CELL_OF = {room: cell for floor in FLOORS for cell in floor for room in cell}

# Who may look through the front door, standing where a user stands.
GUESTS = frozenset({"examples", "benchmarks"})

# Each third party, and where it may be imported: a room, or one module.
THIRD_PARTIES: dict[str, frozenset[str]] = {
    "aiobotocore": frozenset({"storage"}),
    "aiofiles": frozenset({"storage/disk.py"}),
    "aiokafka": frozenset({"connectors"}),
    "aio_pika": frozenset({"connectors"}),
    "anyio": frozenset({"runtime", "simulation", "hosting"}),
    "asyncpg": frozenset({"connectors"}),
    "botocore": frozenset({"storage"}),
    "cbor2": frozenset({"model"}),
    "confluent_kafka": frozenset({"connectors"}),
    "cramjam": frozenset({"state"}),
    "deltalake": frozenset({"connectors"}),
    "lmdb": frozenset({"state"}),
    "nats": frozenset({"connectors"}),
    "psycopg": frozenset({"connectors"}),
    "pyarrow": frozenset({"connectors"}),
    "pyiceberg": frozenset({"connectors"}),
    "pytest": frozenset({"simulation/pytest_plugin.py"}),
    "ray": frozenset({"hosting"}),
    "redis": frozenset({"connectors"}),
    "rich": frozenset({"cli"}),
    "rocksdict": frozenset({"state"}),
    "starlette": frozenset({"web"}),
    "typer": frozenset({"cli"}),
    "uvicorn": frozenset({"web"}),
}

# Floors without waiting: here is decided and said, and nobody awaits.
SYNCHRONOUS = ("errors", "config", "model", "protocol")


def room_of(module: str) -> str:
    """Return the room of a module; the front door and ``__main__`` have names of their own."""
    return [*module.split("."), "the front door"][1]


def imports_of(source: Source) -> Iterator[tuple[int, str]]:
    """Return the line and the absolute name of everything that a module imports, wherever in it."""
    package = source.module if source.is_package else source.module.rpartition(".")[0]
    for node in ast.walk(source.tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield node.lineno, alias.name
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                parts = package.split(".")
                above = parts[: len(parts) - node.level + 1]
                base = ".".join([*above, base]) if base else ".".join(above)
            if base == "actorflow":  # `from actorflow import errors` is that room, `… import Job` the front door
                for alias in node.names:
                    yield node.lineno, f"actorflow.{alias.name}" if alias.name in FLOOR_OF else "actorflow"
            else:
                yield node.lineno, base


def complaint(source: Source, imported: str) -> str | None:
    """Return what is wrong with an import, or None."""
    here, top = room_of(source.module), imported.partition(".")[0]
    if top != "actorflow":
        return _about_a_third_party(source, here, top)
    there = room_of(imported)
    if here == "the front door":
        return None
    if here == "__main__":
        return None if there == "cli" else "python -m actorflow opens the command line and nothing else"
    if here not in FLOOR_OF:
        return f"{here} is no room of the floor plan"
    if there == "the front door":
        return None if here in GUESTS else "only examples and benchmarks look through the front door"
    if there not in FLOOR_OF:
        return f"{there} is no room of the floor plan"
    if there in CELL_OF[here] or FLOOR_OF[there] < FLOOR_OF[here]:
        return None
    return f"{here} (floor {FLOOR_OF[here]}) must not know {there} (floor {FLOOR_OF[there]})"


def _about_a_third_party(source: Source, here: str, top: str) -> str | None:
    if top in sys.stdlib_module_names:
        return None
    allowed = THIRD_PARTIES.get(top)
    if allowed is None:
        return f"{top} is on no list"
    if here in allowed or source.within in allowed:
        return None
    return f"{top} belongs to {', '.join(sorted(allowed))}"


def complaints(source: Source) -> list[str]:
    found = []
    for line, imported in imports_of(source):
        if (what := complaint(source, imported)) is not None:
            found.append(f"{source.place}:{line} imports {imported}: {what}")
    return found


def test_no_module_imports_upward_or_sideways_and_each_third_party_stays_in_its_room() -> None:
    found = [line for source in sources(PACKAGE) for line in complaints(source)]

    assert not found, "\n".join(["", *found])


def test_every_folder_of_the_package_is_a_room_of_the_floor_plan() -> None:
    strangers = {room_of(source.module) for source in sources(PACKAGE)} - FLOOR_OF.keys()

    assert {"the front door", "__main__"} >= strangers


def test_nobody_awaits_where_is_only_decided() -> None:
    waiting = (ast.AsyncFunctionDef, ast.Await, ast.AsyncFor, ast.AsyncWith)

    found = [
        f"{source.place}:{node.lineno}"
        for source in sources(PACKAGE)
        if room_of(source.module) in SYNCHRONOUS
        for node in ast.walk(source.tree)
        if isinstance(node, waiting)
    ]

    assert not found, "\n".join(["", *found])


@pytest.mark.parametrize(
    ("module", "text"),
    [
        ("actorflow.model.ids", "import actorflow.runtime.actor"),
        ("actorflow.model.ids", "from actorflow.protocol import alignment"),
        ("actorflow.protocol.alignment", "from actorflow.abc.world import Clock"),
        ("actorflow.state.memory", "from actorflow.storage import files"),
        ("actorflow.state.memory", "from ..storage import files"),
        ("actorflow.state.memory", "def f():\n    from actorflow import storage"),
        ("actorflow.runtime.actor", "if TYPE_CHECKING:\n    from actorflow.simulation.loop import SimulatedLoop"),
        ("actorflow.runtime.actor", "from actorflow import Job"),
        ("actorflow.runtime.actor", "import actorflow as af"),
        ("actorflow.cli.run", "from actorflow.web import app"),
        ("actorflow.cli.run", "import actorflow"),
        ("actorflow.examples.orders", "from actorflow.benchmarks import plain"),
        ("actorflow.errors", "from actorflow.model import ids"),
        ("actorflow.__main__", "from actorflow.runtime import environment"),
        ("actorflow.utilities.text", "from actorflow import errors"),
        ("actorflow.connectors.files", "import aiofiles"),
        ("actorflow.storage.files", "import aiofiles.os"),
        ("actorflow.protocol.machine", "import anyio"),
        ("actorflow.model.codec", "import requests"),
        ("actorflow.simulation.contracts", "import pytest"),
    ],
)
def test_the_rule_sees_what_it_forbids(module: str, text: str) -> None:
    assert 1 == len(complaints(source_of(module, text)))


@pytest.mark.parametrize(
    ("module", "text"),
    [
        ("actorflow.config.settings", "from actorflow.errors import InvalidConfig"),
        ("actorflow.runtime.actor", "from actorflow import errors\nimport anyio\nimport asyncio"),
        ("actorflow.runtime.actor", "from . import mailbox\nfrom .output import Output\nfrom ..model import ids"),
        ("actorflow.simulation.world", "from actorflow.runtime.environment import Environment"),
        ("actorflow.simulation.pytest_plugin", "import pytest"),
        ("actorflow.storage.disk", "import aiofiles"),
        ("actorflow.examples.word_count", "import actorflow as af\nfrom actorflow.connectors import files"),
        ("actorflow.cli.bench", "from actorflow.benchmarks import throughput\nimport typer, rich.console"),
        ("actorflow.__main__", "from actorflow.cli import main"),
    ],
)
def test_the_rule_lets_pass_what_is_allowed(module: str, text: str) -> None:
    assert [] == complaints(source_of(module, text))
