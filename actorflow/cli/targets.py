"""Which job does a command line mean, and with which arguments?

A target is ``MODULE:FUNCTION`` or ``FILE.py:FUNCTION``: a function of a module that returns a ``Job``.  What follows
``--`` are its arguments, after its signature: a parameter without a default is positional, one with a default is an
option.

What the user's own code raises while it is imported or called is shown with its traceback, and is a wrong job like any
other.
"""

from __future__ import annotations

import argparse
import importlib
import importlib.util
import inspect
import sys
import traceback
import typing
from collections.abc import Callable, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

from actorflow.cli.exits import UsageMistake
from actorflow.dataflow.job import Job
from actorflow.errors import ActorflowError

__all__ = ("arguments_of", "build_job", "find_function", "help_of")

READ_AS: dict[Any, Callable[[str], Any]] = {str: str, int: int, float: float, Path: Path}


def find_function(target: str) -> Callable[..., Any]:
    """Import the function that a target names.  Raises ``UsageMistake``."""
    module_name, separator, function_name = target.rpartition(":")
    if not separator or not module_name or not function_name.isidentifier():
        raise UsageMistake(f"{target!r} names no job: write MODULE:FUNCTION or FILE.py:FUNCTION")
    if module_name.endswith(".py"):
        module = _load_file(Path(module_name))
    else:
        _make_importable(Path.cwd())
        module = _import(module_name)
    found = getattr(module, function_name, None)
    if not inspect.isfunction(found):
        functions = [name for name, value in vars(module).items() if inspect.isfunction(value) and name[0] != "_"]
        raise UsageMistake(
            f"{module_name} has no function {function_name!r}; it has {', '.join(functions) or 'no function at all'}"
        )
    return found


def _import(module_name: str) -> ModuleType:
    try:
        return importlib.import_module(module_name)
    except ModuleNotFoundError as error:
        if error.name is not None and (module_name == error.name or module_name.startswith(f"{error.name}.")):
            raise UsageMistake(f"there is no module {error.name!r}, neither installed nor in {Path.cwd()}") from error
        raise _not_imported(module_name, error) from error
    except Exception as error:
        raise _not_imported(module_name, error) from error


def _not_imported(name: str, error: Exception) -> Exception:
    """The error of a module that raised; one of ours says by itself what to do."""
    if isinstance(error, ActorflowError):
        return error
    traceback.print_exception(error)
    return UsageMistake(f"importing {name} raised {type(error).__name__}: {error}")


def _make_importable(folder: Path) -> None:
    if str(folder) not in sys.path:
        sys.path.insert(0, str(folder))


def _load_file(path: Path) -> ModuleType:
    if not path.is_file():
        raise UsageMistake(f"there is no file {path}")
    _make_importable(path.resolve().parent)
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules.setdefault(path.stem, module)
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        if sys.modules.get(path.stem) is module:
            del sys.modules[path.stem]
        raise _not_imported(str(path), error) from error
    return module


def build_job(target: str, arguments: Sequence[str]) -> Job:
    """Call the function of a target with its arguments.  Raises ``UsageMistake``."""
    function = find_function(target)
    if inspect.iscoroutinefunction(function):
        raise UsageMistake(f"{target} is an async function; a job is built by a plain one (def and not async def)")
    parser = _parser(target, function)
    values = vars(parser.parse_args(list(arguments)))
    positional = [
        values.pop(name)
        for name, parameter in inspect.signature(function).parameters.items()
        if parameter.kind is parameter.POSITIONAL_ONLY
    ]
    try:
        job = function(*positional, **values)
    except ActorflowError:
        raise
    except OSError as error:  # a file that its arguments name
        raise UsageMistake(f"{target}: {error}") from error
    except Exception as error:
        traceback.print_exception(error)
        raise UsageMistake(f"{target} raised {type(error).__name__}: {error}") from error
    if not isinstance(job, Job):
        raise UsageMistake(f"{target} returned {type(job).__name__} and not a Job")
    return job


def arguments_of(target: str, arguments: Sequence[str]) -> dict[str, Any]:
    """What a command line says that the function of a target should be given, as values that a scenario can hold.

    What is as it would be unsaid is left out.  Raises ``UsageMistake``.
    """
    function = find_function(target)
    parameters = inspect.signature(function).parameters
    values = vars(_parser(target, function).parse_args(list(arguments)))
    return {
        name: str(value) if isinstance(value, Path) else value
        for name, value in values.items()
        if value != parameters[name].default
    }


def help_of(target: str) -> str:
    """What a job does and which arguments it takes, for ``--help``."""
    return _parser(target, find_function(target)).format_help()


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> typing.NoReturn:
        raise UsageMistake(f"{message}\n\n{self.format_help()}")


def _parser(target: str, function: Callable[..., Any]) -> argparse.ArgumentParser:
    parser = _Parser(
        prog=f"actorflow run {target} --",
        description=inspect.getdoc(function) or "",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        add_help=False,
        allow_abbrev=False,
    )
    hints = _hints(target, function)
    for name, parameter in inspect.signature(function).parameters.items():
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
            continue
        kind = _plain_kind(hints.get(name, str))
        required = parameter.default is parameter.empty
        flag = f"--{name.replace('_', '-')}"
        if kind is bool:
            parser.add_argument(
                flag,
                dest=name,
                action=argparse.BooleanOptionalAction,
                required=required,
                default=None if required else parameter.default,
                help="" if required else _default(parameter.default),
            )
        elif kind not in READ_AS:
            if required:
                raise UsageMistake(
                    f"{target}: its parameter {name!r} is a {kind!r}, which a command line can't give; "
                    "use str, int, float, bool or Path, or a default"
                )
        elif required:
            parser.add_argument(name, type=READ_AS[kind])
        else:
            parser.add_argument(
                flag,
                dest=name,
                type=READ_AS[kind],
                default=parameter.default,
                metavar=kind.__name__.upper(),
                help=_default(parameter.default),
            )
    return parser


def _default(value: Any) -> str:
    return f"(default: {value!r})".replace("%", "%%")


def _hints(target: str, function: Callable[..., Any]) -> dict[str, Any]:
    try:
        return typing.get_type_hints(function)
    except Exception as error:  # a name that only type checkers see, or a mistake
        raise UsageMistake(
            f"{target}: the types of its parameters can't be read ({type(error).__name__}: {error});"
            " they must be names that exist when the program runs"
        ) from error


def _plain_kind(hint: Any) -> Any:
    """``int | None`` is read as an ``int``."""
    options = [option for option in typing.get_args(hint) if option is not type(None)]
    return options[0] if len(options) == 1 and type(None) in typing.get_args(hint) else hint
