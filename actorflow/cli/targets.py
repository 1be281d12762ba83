"""Which job does a command line mean, and with which arguments?

A target is ``MODULE:FUNCTION`` or ``FILE.py:FUNCTION``: a function of a module that returns a ``Job``.  What follows
``--`` are its arguments, after its signature: a parameter without a default is positional, one with a default is an
option.

What the user's own code raises while it is imported or called is shown with its traceback, and is a wrong job like any
other.
"""

from __future__ import annotations

import argparse
import inspect
import traceback
import typing
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from actorflow.cli.exits import UsageMistake
from actorflow.dataflow.job import Job
from actorflow.dataflow.targets import function_of
from actorflow.errors import ActorflowError, InvalidJob

__all__ = ("arguments_of", "build_job", "find_function", "help_of")

READ_AS: dict[Any, Callable[[str], Any]] = {str: str, int: int, float: float, Path: Path}


def find_function(target: str) -> Callable[..., Any]:
    """Import the function that a target names.  Raises ``UsageMistake``."""
    try:
        found = function_of(target)
    except InvalidJob as error:
        if error.__cause__ is not None:
            traceback.print_exception(error.__cause__)
        raise UsageMistake(str(error)) from error
    if not inspect.isfunction(found):
        raise UsageMistake(f"{target} is a {type(found).__name__}; a job is built by a function")
    return found


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
