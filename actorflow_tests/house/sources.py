"""The package's own source, parsed once, for the tests that keep its rules."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

REPOSITORY = Path(__file__).parents[2]
PACKAGE = REPOSITORY / "actorflow"
TESTS = REPOSITORY / "actorflow_tests"


@dataclass(frozen=True, slots=True)
class Source:
    """One module: its dotted name, where it is, and its syntax tree."""

    module: str
    path: Path
    tree: ast.Module

    @property
    def is_package(self) -> bool:
        return self.path.name == "__init__.py"

    @property
    def place(self) -> str:
        """The path within the repository, for messages."""
        return str(self.path.relative_to(REPOSITORY)) if self.path.is_relative_to(REPOSITORY) else str(self.path)

    @property
    def within(self) -> str:
        """The path within the package, as rules name it: ``runtime/real_world.py``."""
        return "/".join(self.module.split(".")[1:]) + ("/__init__.py" if self.is_package else ".py")


@cache
def sources(root: Path) -> tuple[Source, ...]:
    """Return every module below a folder of the repository, in order."""
    return tuple(_sources(root))


def source_of(module: str, text: str) -> Source:
    """Return a module that is not on disk, so that a rule can be tried on it."""
    return Source(module, REPOSITORY / (module.replace(".", "/") + ".py"), ast.parse(text))


def _sources(root: Path) -> Iterator[Source]:
    for path in sorted(root.rglob("*.py")):
        parts = list(path.relative_to(REPOSITORY).with_suffix("").parts)
        if parts[-1] == "__init__":
            parts.pop()
        yield Source(".".join(parts), path, ast.parse(path.read_text("utf-8"), filename=str(path)))
