"""What may an operator be called, and what is it called when nobody says?

A name is the address of an operator's state in a checkpoint and becomes a file name.  So it is plain ASCII of at most
100 characters, and unique in the job even where case is ignored.  It is required wherever state or a position is kept,
and missing is told when the job is built, not when it is restored.  Elsewhere it is derived from what the operator does
and the order in which operators were built (``map``, ``map-2``): the same program gives the same names in every
process. An automatic name steps aside for one that the user gave, wherever it stands in the program.

Refuses to invent an identity: no counter outside the job, nothing random, no addresses.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Iterable
from typing import ParamSpec, TypeVar

from actorflow.errors import InvalidJob

__all__ = ("automatic_names", "check_name", "needs_name")

P = ParamSpec("P")
R = TypeVar("R")

_LONGEST = 100
_PATTERN = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]*")


def check_name(what: str, name: object) -> str:
    """Return ``name`` when it may be the name of ``what`` (``operator``, ``job``, ``side output``), else refuse it."""
    if not isinstance(name, str):
        raise InvalidJob(f"the name of this {what} must be a string, not {type(name).__name__}: {name!r:.80}")
    if len(name) > _LONGEST:
        raise InvalidJob(f"{what} {name[:40]!r}…: a name has at most {_LONGEST} characters, this one {len(name)}")
    if _PATTERN.fullmatch(name) is None:
        raise InvalidJob(
            f"{what} {name!r}: a name begins with an ASCII letter or digit and goes on with letters, digits, "
            "'_', '.' or '-', because it becomes the name of files"
        )
    return name


def automatic_names(names: Iterable[tuple[str | None, str]]) -> list[str]:
    """Give a name to each operator: the user's own where there is one, else its label, numbered from the second on."""
    wanted = list(names)
    taken = {name.lower() for name, _ in wanted if name is not None}
    numbers: dict[str, int] = {}
    found: list[str] = []
    for name, label in wanted:
        if name is not None:
            found.append(name)
            continue
        while True:
            number = numbers[label] = numbers.get(label, 0) + 1
            candidate = label if number == 1 else f"{label}-{number}"
            if candidate.lower() not in taken:
                break
        taken.add(candidate.lower())
        found.append(candidate)
    return found


def needs_name(why: str) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Turn the ``TypeError`` about a missing ``name=`` into an error that says why one is needed."""

    def decorate(method: Callable[P, R]) -> Callable[P, R]:
        label = getattr(method, "__name__", "this operator")

        @functools.wraps(method)
        def checked(*args: P.args, **kwargs: P.kwargs) -> R:
            if kwargs.get("name") is None:
                raise InvalidJob(
                    f"{label}() needs a name=: {why}.  Write {label}(…, name={label.replace('_', '-')!r}) "
                    "or any other name that stays the same from one version of the job to the next"
                )
            return method(*args, **kwargs)

        return checked

    return decorate
