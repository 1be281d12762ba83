"""Stateful dataflows in plain async Python, with checkpoints.

    import actorflow as af
    from actorflow.connectors import console, files

    job = af.Job("word-count")
    (
        job.read(files.lines("book.txt"), name="lines")
        .flat_map(str.split)
        .key_by(str.lower)
        .count(name="count")
        .write(console.lines(), name="print")
    )
    af.run(job)

**The map.**  ``dataflow`` is the language, ``connectors`` are sources and sinks, ``runtime`` runs a job inside an
event loop, ``protocol`` decides (pure machines, one question each), ``state`` and ``storage`` keep, ``simulation`` is
the wind tunnel in which users test *their* jobs, ``abc`` are the seams for implementers.  ``model`` holds the nouns,
``config`` and ``errors`` the words.  Side doors: ``actorflow.connectors``, ``actorflow.storage``,
``actorflow.simulation`` and ``actorflow.abc``; everything else is the inside of the house and may change.
"""

from __future__ import annotations

TYPE_CHECKING = False  # which type checkers take for true; `typing` itself would cost more than all of this module
if TYPE_CHECKING:
    from actorflow.abc.connectors import Chunk, SourceContext
    from actorflow.config import (
        Buffers,
        Checkpoints,
        ExponentialDelay,
        FailureRate,
        FixedDelay,
        Guarantee,
        NoRestart,
        Retention,
    )
    from actorflow.connectors.function import source
    from actorflow.dataflow.job import Job
    from actorflow.dataflow.keyed import Context, HookContext, KeyedBroadcastOperator, KeyedOperator, Operator
    from actorflow.dataflow.states import (
        AggregatingState,
        BroadcastState,
        ListState,
        MapState,
        ReducingState,
        SplitList,
        UnionList,
        ValueState,
    )
    from actorflow.dataflow.stream import KeyedStream, Stream
    from actorflow.errors import (
        AbortReason,
        ActorflowError,
        CheckpointAborted,
        Fenced,
        IncompatibleState,
        InvalidConfig,
        InvalidJob,
        InvalidValue,
        JobFailed,
        OperatorFailed,
        RestoreFailed,
        StorageFailed,
    )
    from actorflow.model.registry import record
    from actorflow.protocol.lifecycle import JobStatus
    from actorflow.runtime.environment import Environment, run
    from actorflow.runtime.handle import JobHandle

__all__ = (
    "AbortReason",
    "ActorflowError",
    "AggregatingState",
    "BroadcastState",
    "Buffers",
    "CheckpointAborted",
    "Checkpoints",
    "Chunk",
    "Context",
    "Environment",
    "ExponentialDelay",
    "FailureRate",
    "Fenced",
    "FixedDelay",
    "Guarantee",
    "HookContext",
    "IncompatibleState",
    "InvalidConfig",
    "InvalidJob",
    "InvalidValue",
    "Job",
    "JobFailed",
    "JobHandle",
    "JobStatus",
    "KeyedBroadcastOperator",
    "KeyedOperator",
    "KeyedStream",
    "ListState",
    "MapState",
    "NoRestart",
    "Operator",
    "OperatorFailed",
    "ReducingState",
    "RestoreFailed",
    "Retention",
    "SourceContext",
    "SplitList",
    "StorageFailed",
    "Stream",
    "UnionList",
    "ValueState",
    "record",
    "run",
    "source",
)

_SIDE_DOORS = ("abc", "connectors", "simulation", "storage")

_ROOMS = {
    "abc.connectors": ("Chunk", "SourceContext"),
    "config": (
        "Buffers",
        "Checkpoints",
        "ExponentialDelay",
        "FailureRate",
        "FixedDelay",
        "Guarantee",
        "NoRestart",
        "Retention",
    ),
    "connectors.function": ("source",),
    "dataflow.job": ("Job",),
    "dataflow.keyed": ("Context", "HookContext", "KeyedBroadcastOperator", "KeyedOperator", "Operator"),
    "dataflow.states": (
        "AggregatingState",
        "BroadcastState",
        "ListState",
        "MapState",
        "ReducingState",
        "SplitList",
        "UnionList",
        "ValueState",
    ),
    "dataflow.stream": ("KeyedStream", "Stream"),
    "errors": (
        "AbortReason",
        "ActorflowError",
        "CheckpointAborted",
        "Fenced",
        "IncompatibleState",
        "InvalidConfig",
        "InvalidJob",
        "InvalidValue",
        "JobFailed",
        "OperatorFailed",
        "RestoreFailed",
        "StorageFailed",
    ),
    "model.registry": ("record",),
    "protocol.lifecycle": ("JobStatus",),
    "runtime.environment": ("Environment", "run"),
    "runtime.handle": ("JobHandle",),
}
"""Where each name lives.  It loads when it is first used: whoever imports one thing, or is only imported (as pytest
does with our plugin), does not pay for the others."""

_HIDDEN = {name: f"{__name__}.{room}" for room, names in _ROOMS.items() for name in names}


def _show_what_is_loaded() -> None:
    """Let the ``repr`` of everything that is loaded by now show the path that a user writes."""
    from sys import modules

    for name, module in list(_HIDDEN.items()):
        value = getattr(modules.get(module), name, None)
        if value is not None:
            value.__module__ = __name__
            globals()[name] = value
            _HIDDEN.pop(name, None)


if not TYPE_CHECKING:  # else a type checker would believe in any name

    def __getattr__(name: str) -> object:
        """Load a name, or a side door."""
        from importlib import import_module

        if name in _SIDE_DOORS:
            return import_module(f"{__name__}.{name}")
        if (module := _HIDDEN.get(name)) is not None:
            import_module(module)
            _show_what_is_loaded()
        try:
            return globals()[name]
        except KeyError:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}", name=name, obj=None) from None


def __dir__() -> list[str]:
    return sorted(__all__)
