"""The seams: what an implementer implements.

``world.py`` holds what a process may not decide for itself, ``objects.py`` and ``disk.py`` where bytes go, ``state.py``
what a state backend is, ``connectors.py`` what a source and a sink are.  This room declares and does nothing.
"""

from actorflow.abc.connectors import (
    Chunk,
    CommitPermit,
    Prepared,
    Sink,
    SinkContext,
    SinkWriter,
    Source,
    SourceContext,
    TransactionalSink,
    TransactionalWriter,
)
from actorflow.abc.disk import Disk, FileReader, FileWriter
from actorflow.abc.objects import ObjectStore, ObjectStores
from actorflow.abc.state import MISSING, KeyedTable, StateBackend, StateSnapshot
from actorflow.abc.world import Clock, Entropy, Load, Observer, World

__all__ = (
    "MISSING",
    "Chunk",
    "Clock",
    "CommitPermit",
    "Disk",
    "Entropy",
    "FileReader",
    "FileWriter",
    "KeyedTable",
    "Load",
    "ObjectStore",
    "ObjectStores",
    "Observer",
    "Prepared",
    "Sink",
    "SinkContext",
    "SinkWriter",
    "Source",
    "SourceContext",
    "StateBackend",
    "StateSnapshot",
    "TransactionalSink",
    "TransactionalWriter",
    "World",
)
