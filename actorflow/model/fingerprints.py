"""Has a type changed since something was written with it?

A fingerprint is a digest over the names and the annotations of a class's fields, and of the classes that they name.
It is compared before any state is read, so it depends on nothing but what the program says: not on the order of fields
(they travel by name), of members, or of a union, nor on the version of Python.
"""

from __future__ import annotations

import types
import typing
from enum import Enum
from typing import Any, Final

from actorflow.model.annotations import class_hints
from actorflow.model.registry import Registry, default_name, default_registry
from actorflow.model.shapes import RecordShape, is_recordable, shape_of

__all__ = ("fingerprint",)

_HEX_DIGITS: Final = 32
_DEEPEST: Final = 100


def fingerprint(annotation: Any, registry: Registry | None = None) -> str:
    """Return the fingerprint of a class, or of any other annotation."""
    from hashlib import blake2b  # loads OpenSSL, and only those need it who check a snapshot

    text = _Describer(default_registry if registry is None else registry).describe(annotation, 0)
    return blake2b(text.encode("utf-8", "surrogatepass"), digest_size=_HEX_DIGITS // 2).hexdigest()


class _Describer:
    """Writes annotations as text, each class out in full where it is met first."""

    def __init__(self, registry: Registry) -> None:
        self._registry = registry
        self._told: set[type] = set()

    def describe(self, annotation: Any, depth: int) -> str:
        """Return the text of one annotation."""
        if depth > _DEEPEST:
            return "…"
        if annotation is None or annotation is type(None):
            return "None"
        if isinstance(annotation, str):
            return repr(annotation)
        if isinstance(annotation, typing.ForwardRef):
            return repr(annotation.__forward_arg__)
        origin = typing.get_origin(annotation)
        if origin is not None:
            return self._describe_generic(annotation, origin, depth)
        if isinstance(annotation, list):
            return f"[{', '.join(self.describe(item, depth + 1) for item in annotation)}]"
        if isinstance(annotation, typing.NewType):
            return self.describe(annotation.__supertype__, depth + 1)
        if type(annotation).__name__ == "TypeAliasType":
            return self.describe(annotation.__value__, depth + 1)
        if isinstance(annotation, type):
            return self._describe_class(annotation, depth)
        return str(getattr(annotation, "__name__", annotation))

    def _describe_generic(self, annotation: Any, origin: Any, depth: int) -> str:
        arguments = typing.get_args(annotation)
        if origin is typing.Annotated:
            return self.describe(arguments[0], depth + 1)
        if origin is typing.Literal:
            return f"Literal[{', '.join(sorted(map(repr, arguments)))}]"
        described = [self.describe(argument, depth + 1) for argument in arguments]
        if origin is typing.Union or origin is types.UnionType:
            return " | ".join(sorted(described))
        return f"{self.describe(origin, depth + 1)}[{', '.join(described)}]"

    def _describe_class(self, cls: type, depth: int) -> str:
        if not is_recordable(cls) and not typing.is_typeddict(cls):
            return cls.__qualname__ if cls.__module__ == "builtins" else f"{cls.__module__}:{cls.__qualname__}"
        entry = self._registry.entry_of(cls)
        name = default_name(cls) if entry is None else f"{entry.name}@{entry.version}"
        if cls in self._told:
            return name
        self._told.add(cls)
        if issubclass(cls, Enum):
            return f"{name}{{{', '.join(sorted(cls.__members__))}}}"
        hints = class_hints(cls)
        shape = shape_of(cls) if is_recordable(cls) else None
        fields = sorted(shape.fields if isinstance(shape, RecordShape) else hints)
        return (
            f"{name}{{{', '.join(f'{field}: {self.describe(hints.get(field, Any), depth + 1)}' for field in fields)}}}"
        )
