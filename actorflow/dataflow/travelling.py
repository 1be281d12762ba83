"""Which classes travel in a job?

Those in the annotations of its sources, its state declarations and its users' functions, and on through their fields.
They are registered once, when the plan is made, so that a checkpoint can name them and reading one never has to search
for a class.  A value of a class that no annotation mentions is refused the first time it would be written, with the
advice to mark it with ``@record``.

Functions that were not annotated (lambdas) say nothing, and that is fine.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, get_origin

from actorflow.dataflow.primitives import Operator, OperatorKind
from actorflow.errors import InvalidJob, InvalidValue
from actorflow.model.codec import Registry

__all__ = ("register_types",)

_OF_CONNECTORS = ("function", "record_type")
"""Where a source or a sink may hold a user's function or class."""


def register_types(registry: Registry, operator: Operator) -> list[str]:
    """Register what an operator's annotations mention; return a sentence for each class that can't be registered."""
    problems = []
    for thing in _annotated(operator):
        try:
            if isinstance(thing, type) or get_origin(thing) is not None:
                registry.register_annotations(thing)
            if get_origin(thing) is None:
                registry.register_function(thing)
        except (InvalidJob, InvalidValue) as error:
            problems.append(f"operator {operator.name!r}: {error}")
    return problems


def _annotated(operator: Operator) -> Iterator[Any]:
    """What of an operator carries annotations: functions, classes, objects with methods, generics with arguments."""
    for thing in operator.annotated:
        yield thing
        if operator.kind in {OperatorKind.READ, OperatorKind.WRITE}:
            for name in ("__orig_class__", *_OF_CONNECTORS):
                held = getattr(thing, name, None)
                if held is not None:
                    yield held
