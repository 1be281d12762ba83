"""How is one step of the runtime replaced from outside, for a while, and put back exactly?

For planted faults (``mutants/``) and for looking on (``coverage.py``).  Production code has no switch for either: an
attribute of a class or of a module is set, and is set back, the very same object, when the block is left.

Replacements nest, and are seen by everything in this interpreter.  So whoever uses them runs alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

__all__ = ("replaced",)


@contextmanager
def replaced(owner: Any, name: str, make: Callable[[Any], Any]) -> Iterator[None]:
    """Let ``make(original)`` stand for the attribute ``name`` that a class or a module itself defines.

    Raises ``KeyError`` where it defines none: whatever was to be replaced has moved.
    """
    original = vars(owner)[name]
    setattr(owner, name, make(original))
    try:
        yield
    finally:
        setattr(owner, name, original)
