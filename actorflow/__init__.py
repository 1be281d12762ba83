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

from typing import TYPE_CHECKING, Any

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

if TYPE_CHECKING:
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

_ON_USE = {
    "Environment": "actorflow.runtime.environment",
    "JobHandle": "actorflow.runtime.handle",
    "run": "actorflow.runtime.environment",
}
"""What loads when it is first used: a program that only builds a job, or only imports, does not pay for the engine."""


def _show_as_ours(value: Any) -> Any:
    """Let a ``repr`` show the path that a user writes."""
    if getattr(value, "__module__", "").startswith("actorflow."):
        value.__module__ = __name__
    return value


def __getattr__(name: str) -> Any:
    if name not in _ON_USE:
        raise AttributeError(f"module 'actorflow' has no attribute {name!r}")
    from importlib import import_module

    value = globals()[name] = _show_as_ours(getattr(import_module(_ON_USE[name]), name))
    return value


def __dir__() -> list[str]:
    return sorted(__all__)


for _name in __all__:
    if _name not in _ON_USE:
        _show_as_ours(globals()[_name])
del _name
