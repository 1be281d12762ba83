"""Where in a value is the part that can't be written down?

Writing is fast because it does not keep track of where it is.  When it refuses a value, this module tries the value's
parts one by one, and the parts of the first that is refused, until it has the smallest: ``value['items'][3].price``.

It also finds out whether a value holds itself, which writing asks only where a value has grown suspiciously large.
"""

from __future__ import annotations

from collections import Counter as CounterType
from collections import OrderedDict, defaultdict, deque
from collections.abc import Callable, Iterator
from typing import Any, Final

from actorflow.model.leaves import PLAIN, Unwritable
from actorflow.model.registry import Registry
from actorflow.model.shapes import RecordShape

__all__ = ("MAX_DEPTH", "holds_itself", "locate", "parts")

MAX_DEPTH: Final = 100
"""How deep containers and instances may nest, when writing and when reading."""

_LARGEST_STEP: Final = 60
_LONGEST_PATH: Final = 400
_MOST_PARTS: Final = 10_000_000


def parts(value: Any, registry: Registry) -> Iterator[tuple[str, str, Any]]:
    """Give the parts of a value, each with what stands before and after the value's path in that of the part."""
    cls = type(value)
    if cls in {list, tuple, deque}:
        for index, item in enumerate(value):
            yield "", f"[{index}]", item
    elif cls in {set, frozenset}:
        for item in value:  # in no order, so an element is named by what it is
            yield f"the element {_short(item)} of ", "", item
    elif cls in {dict, OrderedDict, defaultdict, CounterType}:
        for key, item in value.items():
            yield f"the key {_short(key)} of ", "", key
            yield "", f"[{_short(key)}]", item
    elif (entry := registry.entry_of(cls)) is not None and isinstance(entry.shape, RecordShape):
        for name in entry.shape.fields:
            if hasattr(value, name):
                yield "", f".{name}", getattr(value, name)


def locate(
    value: Any, path: str, registry: Registry, attempt: Callable[[Any], object], reason: Unwritable
) -> tuple[str, Unwritable]:
    """Return the path to the smallest part that ``attempt`` refuses, and why it does."""
    outer: list[tuple[str, Any]] = []
    while len(outer) < MAX_DEPTH:
        outer.append((path, value))
        for before, after, part in parts(value, registry):
            try:
                attempt(part)
            except Unwritable as error:
                value, reason, path = part, error, f"{before}{path}{after}"
                break
        else:
            break
        for name, whole in outer:
            if value is whole:
                return path, Unwritable(
                    f"it is {name} again, and a value that holds itself has no end; keep a key instead"
                )
    if len(path) > _LONGEST_PATH:
        path = f"{path[: _LONGEST_PATH // 2]} … {path[-_LONGEST_PATH // 2 :]}"
    return path, reason


def holds_itself(values: list[Any], registry: Registry) -> bool:
    """Whether a value is among its own parts, or the parts are too many to tell."""
    budget = _MOST_PARTS
    path: list[Any] = []
    waiting: list[Iterator[tuple[str, str, Any]]] = [iter([("", "", value) for value in values])]
    while waiting:
        for _, _, part in waiting[-1]:
            if type(part) in PLAIN:
                continue
            budget -= 1
            if budget < 0 or len(path) > MAX_DEPTH or any(part is outer for outer in path):
                return True
            path.append(part)
            waiting.append(parts(part, registry))
            break
        else:
            waiting.pop()
            if path:
                path.pop()
    return False


def _short(key: Any) -> str:
    if type(key) not in PLAIN:
        return f"<{type(key).__qualname__}>"
    text = ascii(key) if type(key) is str and not key.isprintable() else repr(key)
    return text if len(text) <= _LARGEST_STEP else text[: _LARGEST_STEP - 1] + "…"
