"""How is a function of the user's called with the arguments that a scenario gives, and where did it fail?"""

from __future__ import annotations

import inspect
import traceback
import typing
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from actorflow.dataflow.targets import nearest_of
from actorflow.errors import ActorflowError, InvalidJob

__all__ = ("bound", "place_of")


def bound(function: Callable[..., Any], arguments: Mapping[str, Any], *, what: str) -> Callable[[], Any]:
    """Return the function with its arguments, to be called again and again.

    Raises ``InvalidJob``, now for arguments that do not fit, and when it is called for whatever the function raises
    that is no error of ours.
    """
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
        try:
            return function(*first, **given)
        except ActorflowError:
            raise
        except Exception as error:
            place = place_of(error, function)
            raise InvalidJob(f"{what} raised {type(error).__name__}: {error} ({place})") from error

    return call


def place_of(error: BaseException, function: Callable[..., Any]) -> str:
    """Return the last line of a function's own file that an error came through, as a sentence shows it."""
    file = getattr(getattr(function, "__code__", None), "co_filename", "")
    for frame in reversed(traceback.extract_tb(error.__traceback__)):
        if frame.filename == file:
            return f"{Path(file).name}, line {frame.lineno}: {frame.line}"
    return "outside of its own file"
