"""How is a function called with the arguments that a scenario gives?"""

from __future__ import annotations

import inspect
import typing
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from actorflow.dataflow.targets import nearest_of
from actorflow.errors import InvalidJob

__all__ = ("bound",)


def bound(function: Callable[..., Any], arguments: Mapping[str, Any], *, what: str) -> Callable[[], Any]:
    """Return the function with its arguments, to be called again and again.  Raises ``InvalidJob``."""
    try:
        parameters = inspect.signature(function).parameters
        hints = typing.get_type_hints(function)
    except Exception:  # a name that only type checkers see; a built-in
        parameters, hints = inspect.signature(function).parameters, {}
    takes_any = any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters.values())
    for name in arguments:
        if name not in parameters and not takes_any:
            known = ", ".join(parameters) or "none"
            raise InvalidJob(f"{what} takes no argument {name!r}, but {known}{nearest_of(name, parameters)}")
    values = {name: Path(value) if hints.get(name) is Path else value for name, value in arguments.items()}
    missing = [
        name
        for name, parameter in parameters.items()
        if parameter.default is parameter.empty
        and parameter.kind not in {parameter.VAR_KEYWORD, parameter.VAR_POSITIONAL}
        and name not in values
    ]
    if missing:
        raise InvalidJob(f"{what} needs an argument {missing[0]!r}: give it in [arguments]")
    positional = [name for name, parameter in parameters.items() if parameter.kind is parameter.POSITIONAL_ONLY]

    def call() -> Any:
        given = dict(values)
        first = [given.pop(name) for name in positional if name in given]
        return function(*first, **given)

    return call
