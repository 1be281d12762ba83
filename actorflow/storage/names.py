"""May an object be called that?  The same answer for every store.

Parts are separated by ``/``.  What would lead out of a folder (an absolute name, ``..``), what another system would
take for a separator (a backslash), and what ends a name early (a zero byte) is refused; so is a part that begins with a
dot, because stores keep what is not published under such names.
"""

from __future__ import annotations

import re

from actorflow.errors import StorageFailed

__all__ = ("check_name", "check_prefix")


_PLAIN = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9_.-]*(/[A-Za-z0-9_-][A-Za-z0-9_.-]*)*")
"""Names that need no closer look, as almost all are."""


def check_name(name: str) -> None:
    """Raise ``StorageFailed`` unless an object may have this name."""
    if _PLAIN.fullmatch(name):
        return
    problem = next((problem for part in name.split("/") if (problem := _problem_of(part))), None)
    if problem is not None:
        raise StorageFailed(f"{name!r} can't be the name of an object: {problem}")


def check_prefix(prefix: str) -> None:
    """Raise ``StorageFailed`` unless the name of an object may begin with this."""
    if _PLAIN.fullmatch(prefix.removesuffix("/")) or not prefix:
        return
    *parts, begun = prefix.split("/")
    problem = next((problem for part in parts if (problem := _problem_of(part))), None)
    if begun and problem is None:
        problem = _problem_of(begun)
    if problem is not None:
        raise StorageFailed(f"no object's name begins with {prefix!r}: {problem}")


def _problem_of(part: str) -> str | None:
    if not part:
        return "between two slashes, before the first and after the last one there must be something"
    if part.startswith("."):
        return f"{part!r} begins with a dot"
    if "\\" in part or "\0" in part:
        return f"{part!r} holds a backslash or a zero byte"
    try:
        part.encode()
    except UnicodeEncodeError:
        return f"{part!r} holds half of a character"
    return None
