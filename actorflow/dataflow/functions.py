"""What colour has a user's function, and can it be called the way we are going to?

The colour (plain, generator, coroutine, asynchronous generator) chooses the loop that calls the function, once per
operator; no record is tested for it.  What can be found out about a function without calling it is found out when the
job is built: that it can be called at all, and with that many arguments.

Refuses to call anything.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from enum import StrEnum
from typing import Any

from actorflow.errors import InvalidJob

__all__ = ("Colour", "check_function", "colour_of", "describe")


class Colour(StrEnum):
    """How a function gives its results."""

    PLAIN = "a plain function"
    GENERATOR = "a generator"
    COROUTINE = "an async function"
    ASYNC_GENERATOR = "an async generator"

    @property
    def is_async(self) -> bool:
        """Whether it has to be awaited, and so takes the async lane."""
        return self in {Colour.COROUTINE, Colour.ASYNC_GENERATOR}


def colour_of(function: Callable[..., Any]) -> Colour:
    """Say what colour a function has; looks through partial functions, bound methods and objects with ``__call__``."""
    inner: Any = function
    while isinstance(inner, functools.partial | functools.partialmethod):
        inner = inner.func
    if not (inspect.isroutine(inner) or inspect.isclass(inner)):
        inner = getattr(type(inner), "__call__", inner)  # noqa: B004 - the method itself is wanted, not a yes or no
    if inspect.iscoroutinefunction(inner):
        return Colour.COROUTINE
    if inspect.isasyncgenfunction(inner):
        return Colour.ASYNC_GENERATOR
    if inspect.isgeneratorfunction(inner):
        return Colour.GENERATOR
    return Colour.PLAIN


def check_function(operator: str, function: object, arguments: int, *, what: str = "function") -> None:
    """Refuse what can't be called with that many arguments, naming the operator."""
    if not callable(function):
        raise InvalidJob(f"operator {operator!r}: its {what} must be callable, not {type(function).__name__}")
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):
        return  # some built-ins don't tell; the first record will
    try:
        signature.bind(*[None] * arguments)
    except TypeError as error:
        takes = "one argument" if arguments == 1 else f"{arguments} arguments"
        raise InvalidJob(
            f"operator {operator!r}: its {what} {describe(function)}{signature} is called with {takes}: {error}"
        ) from None


def describe(function: object) -> str:
    """Return a short name of a function for messages."""
    return str(getattr(function, "__qualname__", None) or type(function).__qualname__)
