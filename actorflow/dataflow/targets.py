"""Which function does a text name?  ``MODULE:FUNCTION`` or ``FILE.py:FUNCTION``.

The current folder is importable, as with ``python -m``; so are the folder of a file that is named, and the ``folder``
of whoever names it, where a file is looked for first.

What is imported runs: name only code that you would run.
"""

from __future__ import annotations

import difflib
import importlib
import importlib.util
import sys
import typing
from collections.abc import Callable, Iterable
from pathlib import Path
from types import ModuleType
from typing import Any

from actorflow.errors import ActorflowError, InvalidJob

__all__ = ("function_of", "nearest_of")


def function_of(target: str, folder: Path | None = None, *, what: str = "job") -> Callable[..., Any]:
    """Import the function that a text names; what it is for, if not to build a ``job``, is said in messages.

    Raises ``InvalidJob``, with what the module raised as its cause; an error of ours that it raised stays itself.
    """
    try:
        return _function_of(target, folder, what)
    except InvalidJob as error:
        if what == "job":
            raise
        raise InvalidJob(f"{what} = {target!r}: {error}") from error.__cause__


def _function_of(target: str, folder: Path | None, what: str) -> Callable[..., Any]:
    module_name, separator, name = target.rpartition(":")
    if not separator or not module_name or not name.isidentifier():
        raise InvalidJob(
            f"{target!r} names no {'job' if what == 'job' else 'function'}: write MODULE:FUNCTION or FILE.py:FUNCTION"
        )
    for place in (Path.cwd(), folder):
        if place is not None:
            _make_importable(place)
    module = _load_file(Path(module_name), folder) if module_name.endswith(".py") else _import(module_name)
    found = getattr(module, name, None)
    if not callable(found) or isinstance(found, type):
        functions = [one for one, value in vars(module).items() if isinstance(value, _FUNCTION) and one[0] != "_"]
        raise InvalidJob(
            f"{module_name} has no function {name!r}; it has {', '.join(functions) or 'no function at all'}"
            f"{nearest_of(name, functions)}"
        )
    return typing.cast("Callable[..., Any]", found)


_FUNCTION = type(function_of)


def nearest_of(name: str, known: Iterable[str]) -> str:
    """What somebody who wrote a wrong name may have meant, as the end of a sentence; empty where nothing is near."""
    near = difflib.get_close_matches(name, list(known), 1)
    return f"; did you mean {near[0]!r}?" if near else ""


def _make_importable(folder: Path) -> None:
    if str(folder) not in sys.path:
        sys.path.insert(0, str(folder))


def _import(module_name: str) -> ModuleType:
    try:
        return importlib.import_module(module_name)
    except ModuleNotFoundError as error:
        if error.name is not None and (module_name == error.name or module_name.startswith(f"{error.name}.")):
            raise InvalidJob(f"there is no module {error.name!r}, neither installed nor in {Path.cwd()}") from None
        raise _not_imported(module_name, error) from error
    except Exception as error:  # it is the user's code
        raise _not_imported(module_name, error) from error


def _not_imported(name: object, error: Exception) -> Exception:
    """The error of a module that raised; one of ours says by itself what to do."""
    if isinstance(error, ActorflowError):
        return error
    return InvalidJob(f"importing {name} raised {type(error).__name__}: {error}")


def _load_file(name: Path, folder: Path | None) -> ModuleType:
    places = [place / name for place in (folder, Path.cwd()) if place is not None]
    path = next((place for place in places if place.is_file()), None)
    if path is None:
        raise InvalidJob(f"there is no file {name}")
    path = path.resolve()
    _make_importable(path.parent)
    loaded = sys.modules.get(path.stem)
    if loaded is not None and getattr(loaded, "__file__", None) == str(path):
        return loaded  # its classes stay what they are
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules.setdefault(path.stem, module)
    try:
        spec.loader.exec_module(module)
    except Exception as error:  # it is the user's code
        if sys.modules.get(path.stem) is module:
            del sys.modules[path.stem]
        raise _not_imported(name, error) from error
    return module
