"""Where records come from and where they go.

``memory`` is for tests and small jobs, ``files`` reads and writes text (exactly once), ``console`` prints, ``inbox``
takes records from the program around the job, ``generator`` makes them, ``function`` turns an async generator into a
source and a plain function into a sink.

A connector is written against ``actorflow.abc`` alone, and so is yours.  It reaches time, chance and files only through
``context.world``; one that does so says ``runs_in_simulation = True`` and is tested in storms as it is.

The door is lazy: a module loads when its name is first used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from actorflow.connectors import console, files, function, generator, inbox, memory
    from actorflow.connectors.inbox import Inbox

__all__ = ("Inbox", "console", "files", "function", "generator", "inbox", "memory")


def __getattr__(name: str) -> Any:
    if name == "Inbox":
        return import_module("actorflow.connectors.inbox").Inbox
    if name in __all__:
        return import_module(f"actorflow.connectors.{name}")
    raise AttributeError(f"module 'actorflow.connectors' has no attribute {name!r}; it has {', '.join(__all__)}")


def __dir__() -> list[str]:
    return sorted(__all__)
