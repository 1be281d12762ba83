"""Documentation that cannot lie: each machine holds its transition table, and a test walks it to the end of a small
world and compares.  The walk itself is beside the machine's tests; here is only seen to it that nobody forgets one."""

from __future__ import annotations

import ast

import pytest

from actorflow_tests.house.sources import PACKAGE, TESTS, Source, sources

PROTOCOL = sources(PACKAGE / "protocol") if (PACKAGE / "protocol").is_dir() else ()
_BASES = frozenset({"Machine"})


def machines_of(source: Source) -> list[ast.ClassDef]:
    """Return the machines of a module: classes that derive from ``Machine``, or from another of theirs."""
    known = set(_BASES)
    found = []
    for node in source.tree.body:
        if isinstance(node, ast.ClassDef) and any(_name(base) in known for base in node.bases):
            known.add(node.name)
            found.append(node)
    return found


def _name(base: ast.expr) -> str:
    match base:
        case ast.Subscript(value=value):
            return _name(value)
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return name
    return ""


def has_a_table(machine: ast.ClassDef) -> bool:
    """Whether the docstring holds a table with a header, a rule below it and at least one row of three cells."""
    lines = [line.strip() for line in (ast.get_docstring(machine) or "").splitlines()]
    rows = [line for line in lines if line.startswith("|") and line.endswith("|") and line.count("|") == 4]
    rules = [number for number, row in enumerate(rows) if set(row) <= set("|-: ")]
    return bool(rules) and 0 < rules[0] < len(rows) - 1


def is_abstract(machine: ast.ClassDef) -> bool:
    """Whether a class leaves the decision to those below it."""
    return not any(isinstance(node, ast.FunctionDef) and node.name == "decide" for node in machine.body)


MACHINES = [(source, machine) for source in PROTOCOL for machine in machines_of(source) if not is_abstract(machine)]


def test_there_are_machines() -> None:
    assert MACHINES


@pytest.mark.parametrize(("source", "machine"), MACHINES, ids=lambda part: getattr(part, "name", ""))
def test_each_machine_holds_its_table(source: Source, machine: ast.ClassDef) -> None:
    assert has_a_table(machine), f"{source.place}:{machine.lineno} {machine.name} has no transition table"


@pytest.mark.parametrize(("source", "machine"), MACHINES, ids=lambda part: getattr(part, "name", ""))
def test_each_machine_is_walked_by_the_tests_of_its_module(source: Source, machine: ast.ClassDef) -> None:
    """A module may have several test modules: ``test_fencing.py``, ``test_fencing_walk.py``."""
    texts = [path.read_text("utf-8") for path in sorted((TESTS / "protocol").glob(f"test_{source.path.stem}*.py"))]

    assert texts, f"actorflow_tests/protocol/test_{source.path.stem}.py is missing"
    assert any(machine.name in text and "walking import" in text for text in texts), f"nobody walks {machine.name}"


@pytest.mark.parametrize(
    ("docstring", "expected"),
    [
        ("| phase | event | effects |\n|---|---|---|\n| Idle | Asked | Start → Busy |", True),
        ("| phase | event | effects |\n|---|---|---|", False),
        ("What it decides.", False),
        ("", False),
    ],
)
def test_the_rule_knows_a_table(docstring: str, expected: bool) -> None:
    (machine,) = ast.parse(f'class A(Machine[E, F]):\n    """{docstring}"""').body

    assert isinstance(machine, ast.ClassDef)
    assert expected == has_a_table(machine)
