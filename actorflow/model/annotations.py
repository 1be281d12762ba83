"""Which classes does an annotation name?

A job's registry is filled with the classes that annotations of its sources, states and functions name, so that most
programs need no ``@af.record``.  Unions, ``Annotated``, generics, literals, type aliases, ``NewType``, ``TypedDict``
and the fields of the classes found are followed.

An annotation that is text is looked up where it was written, in the class's or function's own module and scope.  What
can't be resolved is passed over: its values are refused, with advice, the first time that one would be written.
"""

from __future__ import annotations

import inspect
import sys
import types
import typing
from collections.abc import Iterator, Mapping
from enum import Enum
from functools import cache
from typing import Any, Final

from actorflow.model.shapes import is_recordable

__all__ = ("class_hints", "function_hints", "function_types", "types_in")

_DEEPEST: Final = 100

_OURS: Final = f"{__name__.partition('.')[0]}."


def types_in(annotation: Any, *, scope: Mapping[str, Any] | None = None) -> list[type]:
    """Return the classes with a shape that an annotation names, directly or through fields, in the order found."""
    walk = _Walk(scope or {})
    walk.follow(annotation, 0)
    return list(walk.found)


def function_types(function: Any) -> list[type]:
    """Return those that a function's parameters and result name, or the methods of a class or an instance."""
    cls = function if isinstance(function, type) else type(function)
    return list(_types_of_ours(cls)) if cls.__module__.startswith(_OURS) else _types_of(function)


@cache
def _types_of_ours(cls: type) -> tuple[type, ...]:
    """The same for a class of our own, which is as it is; a user's may name what comes later."""
    return tuple(_types_of(cls))


def _types_of(function: Any) -> list[type]:
    walk = _Walk(_closure(function))
    for hints in _callable_hints(function):
        for hint in hints.values():
            walk.follow(hint, 0)
    return list(walk.found)


def class_hints(cls: type, scope: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """Return the annotations of a class's fields, text resolved where it can be."""
    hints: dict[str, Any] = {}
    for base in reversed(cls.__mro__):
        if base is object:
            continue
        names = vars(sys.modules.get(base.__module__, types))
        hints |= _resolved(_own_annotations(base), {**names}, {**(scope or {}), **vars(base), base.__name__: base})
    return hints


def function_hints(function: Any) -> dict[str, Any]:
    """Return the annotations of a function, text resolved where it can be."""
    function = inspect.unwrap(function)
    annotations = _own_annotations(function)
    return _resolved(annotations, {**getattr(function, "__globals__", {})}, _closure(function))


class _Walk:
    """Follows annotations; remembers what it has seen, as classes may name each other."""

    def __init__(self, scope: Mapping[str, Any]) -> None:
        self.found: dict[type, None] = {}
        self._scope = scope
        self._seen: set[type] = set()

    def follow(self, annotation: Any, depth: int) -> None:
        """Follow one annotation."""
        if depth > _DEEPEST:
            return
        if isinstance(annotation, str | typing.ForwardRef):
            text = annotation if isinstance(annotation, str) else annotation.__forward_arg__
            resolved = _resolved({"it": text}, {}, self._scope)["it"]
            if not isinstance(resolved, str | typing.ForwardRef):
                self.follow(resolved, depth + 1)
            return
        for part in _parts(annotation):
            self.follow(part, depth + 1)
        if isinstance(annotation, type) and typing.get_origin(annotation) is None:
            self._follow_class(annotation, depth)

    def _follow_class(self, cls: type, depth: int) -> None:
        if cls in self._seen:
            return
        self._seen.add(cls)
        if is_recordable(cls):
            self.found[cls] = None
        elif not typing.is_typeddict(cls):
            return
        if issubclass(cls, Enum):
            return
        for hint in class_hints(cls, self._scope).values():
            self.follow(hint, depth + 1)
        for attribute in getattr(cls, "__attrs_attrs__", ()):  # attr.ib(type=…) leaves no annotation
            self.follow(attribute.type, depth + 1)


def _parts(annotation: Any) -> Iterator[Any]:
    origin = typing.get_origin(annotation)
    if origin is typing.Annotated:
        yield annotation.__origin__
    elif origin is typing.Literal:
        yield from (type(value) for value in typing.get_args(annotation))
    elif origin is not None:
        yield origin
        for argument in typing.get_args(annotation):
            yield from argument if isinstance(argument, list) else (argument,)
    elif isinstance(annotation, typing.TypeVar):
        yield from annotation.__constraints__
        yield annotation.__bound__
    elif isinstance(annotation, typing.NewType):
        yield annotation.__supertype__
    elif type(annotation).__name__ == "TypeAliasType":
        try:
            yield annotation.__value__
        except NameError:  # it is evaluated here for the first time, and may name what is not there yet
            return


def _own_annotations(thing: Any) -> dict[str, Any]:
    try:
        return dict(inspect.get_annotations(thing))
    except (NameError, TypeError):  # Python 3.14 evaluates them only now; a builtin has none
        return {}


def _resolved(annotations: Mapping[str, Any], names: dict[str, Any], scope: Mapping[str, Any]) -> dict[str, Any]:
    """Resolve each by itself, so that one that names what is not there does not hide the others."""
    hints = {}
    for name, annotation in annotations.items():
        hints[name] = annotation
        holder = types.SimpleNamespace(__annotations__={name: annotation})
        try:
            hints[name] = typing.get_type_hints(holder, names, {**scope}, include_extras=True)[name]
        except Exception:  # noqa: S112  # evaluating text may raise anything; what does can't be resolved
            continue
    return hints


def _callable_hints(function: Any) -> Iterator[Mapping[Any, Any]]:
    if inspect.isfunction(function) or inspect.ismethod(function):
        yield function_hints(function)
    elif isinstance(getattr(function, "func", None), types.FunctionType):  # functools.partial
        yield function_hints(function.func)
    else:
        cls = function if isinstance(function, type) else type(function)
        for base in reversed(cls.__mro__):
            if base.__module__ == "builtins":
                continue
            yield dict(enumerate(vars(base).get("__orig_bases__", ())))
            for method in vars(base).values():
                if inspect.isfunction(method):
                    yield function_hints(method)
        yield class_hints(cls)


def _closure(function: Any) -> dict[str, Any]:
    code, cells = getattr(function, "__code__", None), getattr(function, "__closure__", None)
    if code is None or not cells:
        return {}
    names = {}
    for name, cell in zip(code.co_freevars, cells, strict=True):
        try:
            names[name] = cell.cell_contents
        except ValueError:  # not assigned yet
            continue
    return names
