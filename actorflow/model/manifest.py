"""What a completed checkpoint is made of.

A manifest names, per operator and subtask, where its keyed state, its operator state and its prepared output are.  It
is written once, with ``put_if_absent``, and lists the checkpoints that were retained when it completed.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum

from actorflow.model.handles import Handle

__all__ = ("ListHandle", "Manifest", "OperatorSnapshot", "Redistribution", "SubtaskSnapshot")


class Redistribution(StrEnum):
    """Who receives the elements of a list state after a restore (semantics 5.4)."""

    SPLIT = "split"  # each element to one subtask
    UNION = "union"  # all elements to every subtask
    BROADCAST = "broadcast"  # the whole list of one old subtask to each new one
    KEYED = "keyed"  # each element to the owner of its key; an element is [key bytes, …]


@dataclass(frozen=True, slots=True, kw_only=True)
class ListHandle:
    """A list state of one subtask: ``count`` elements, each encoded by itself, as one CBOR array of byte strings."""

    state: str
    redistribution: Redistribution
    count: int
    handle: Handle


@dataclass(frozen=True, slots=True, kw_only=True)
class SubtaskSnapshot:
    """What one subtask of one operator contributed.  ``finished`` says that its ``finish()`` ran before."""

    subtask: int
    finished: bool = False
    keyed: tuple[Handle, ...] = ()
    lists: tuple[ListHandle, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class OperatorSnapshot:
    """What an operator contributed.  ``states``: each keyed state and its kind, ``types`` its types' fingerprints."""

    operator: str
    parallelism: int
    max_parallelism: int
    subtasks: tuple[SubtaskSnapshot, ...]
    states: dict[str, str] = field(default_factory=dict)
    types: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Manifest:
    """A completed checkpoint.  ``retained`` are the ids of the checkpoints kept when it completed, oldest first."""

    job: str
    generation: int
    checkpoint_id: int
    kind: str
    key_scheme: str
    written_at_ms: int
    operators: tuple[OperatorSnapshot, ...]
    retained: tuple[int, ...] = ()
    bytes: int = 0
