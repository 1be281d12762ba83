"""Which function does a text name?  ``MODULE:FUNCTION`` or ``FILE.py:FUNCTION``, as on the command line.

The current folder is importable, as with ``python -m``, and so is the scenario's own.  A file is looked for beside the
scenario first.  What is imported runs: name only code that you would run.
"""

from __future__ import annotations

import difflib
import importlib
import importlib.util
import inspect
import sys
import typing
from collections.abc import Callable, Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

from actorflow.errors import ActorflowError, InvalidJob

__all__ = ("bound", "function_of")


def function_of(target: str, folder: Path | None = None, *, what: str = "job") -> Callable[..., Any]:
    """Import the function that a text names; ``folder`` is the scenario's.  Raises ``InvalidJob``."""
    module_name, separator, name = target.rpartition(":")
    if not separator or not module_name or not name.isidentifier():
        raise InvalidJob(f"{what} = {target!r} names no function: write MODULE:FUNCTION or FILE.py:FUNCTION")
    for place in (folder, Path.cwd()):
        if place is not None and str(place.resolve()) not in sys.path:
            sys.path.insert(0, str(place.resolve()))
    try:
        module = _file(module_name, folder) if module_name.endswith(".py") else importlib.import_module(module_name)
    except ActorflowError:
        raise
    except Exception as error:
        raise InvalidJob(f"{what} = {target!r}: importing it raised {type(error).__name__}: {error}") from error
    found = getattr(module, name, None)
    if not callable(found):
        raise InvalidJob(f"{what} = {target!r}: {module_name} has no function {name!r}{_nearest(name, vars(module))}")
    return typing.cast("Callable[..., Any]", found)


def _file(name: str, folder: Path | None) -> ModuleType:
    path = next((place / name for place in (folder, Path.cwd()) if place and (place / name).is_file()), None)
    if path is None:
        raise InvalidJob(f"there is no file {name}")
    path = path.resolve()
    loaded = sys.modules.get(path.stem)
    if loaded is not None and getattr(loaded, "__file__", None) == str(path):
        return loaded
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules.setdefault(path.stem, module)
    spec.loader.exec_module(module)
    return module


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
            raise InvalidJob(f"{what} takes no argument {name!r}{_nearest(name, parameters)}")
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


def _nearest(name: str, known: Mapping[str, Any]) -> str:
    names = [one for one in known if not one.startswith("_")]
    near = difflib.get_close_matches(name, names, 1)
    return f"; did you mean {near[0]!r}?" if near else f"; it has {', '.join(names) or 'none'}"
