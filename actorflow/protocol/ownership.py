"""What does an owner write down under ``owner/``?

A *claim* says who asked for a generation.  A *base* says where that generation starts, so that everyone who comes later
agrees about it, whatever else turns up in the home.  Both are plain values with a plain mapping of fields; sealing them
and naming their objects is the runtime's part.

A *line* is a sequence of checkpoints, each made from the state of the one before.  It begins with a start from nothing
or from a path and goes on over many generations.

Pure: no clock, no storage, no logging.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from actorflow.errors import CorruptObject

__all__ = (
    "Base",
    "Claim",
    "FromCheckpoint",
    "FromNothing",
    "FromPath",
    "Latest",
    "Nothing",
    "Path",
    "Start",
    "Told",
    "same_place",
)


# ── what a start was told ────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True)
class Latest:
    """Go on from wherever the home is."""

    def __str__(self) -> str:
        return "latest"


@dataclass(frozen=True, slots=True)
class Nothing:
    """Start without state; ids and generations go on."""

    def __str__(self) -> str:
        return "nothing"


@dataclass(frozen=True, slots=True, kw_only=True)
class Path:
    """Restore the snapshot at ``path`` without owning it.

    It is obeyed once per home, unless ``rewind`` insists.  ``own_checkpoint`` is its id where the path leads to a
    checkpoint of this very home: that one is never swept.
    """

    path: str
    allow_unclaimed: bool = False
    rewind: bool = False
    own_checkpoint: int | None = None

    def __str__(self) -> str:
        return f"path {self.path}"


Told = Latest | Nothing | Path


def same_place(path: str) -> str:
    """The form of a path by which two are compared: a snapshot's folder and its ``_metadata`` are one place."""
    trimmed = path.rstrip("/").removesuffix("/_metadata").rstrip("/")
    return trimmed or path


# ── where a generation starts ────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True)
class FromNothing:
    """Without state."""


@dataclass(frozen=True, slots=True)
class FromCheckpoint:
    """From a checkpoint of this home, which ``generation`` wrote; ``retained`` are those kept when it completed."""

    checkpoint_id: int
    generation: int
    retained: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class FromPath:
    """From a snapshot that somebody else owns, with the options that were given with it."""

    path: str
    allow_unclaimed: bool = False


Start = FromNothing | FromCheckpoint | FromPath


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """Who took a generation, and what it was told to start from."""

    generation: int
    host: str
    process: str
    at_ms: int
    told: str

    def to_fields(self) -> dict[str, Any]:
        """The claim as plain values."""
        return {name: getattr(self, name) for name in _CLAIM_FIELDS}

    @classmethod
    def from_fields(cls, fields: Mapping[str, Any], name: str) -> Claim:
        """The claim that was written down in the object ``name``; raises ``CorruptObject``."""
        _expect(fields, _CLAIM_FIELDS, name)
        return cls(**fields)


@dataclass(frozen=True, slots=True, kw_only=True)
class Base:
    """Where a generation starts.

    ``next_id`` is the first id that it may give to a checkpoint; its own manifests have no lower one.  ``line`` is the
    generation that began this line.  ``obeyed`` are the paths that were obeyed in this home, ``held`` the checkpoints
    of this home that were restored by path and so are never swept.  ``finished`` says that the line came to its end;
    the owner that ended it wrote its base once more to say so.
    """

    generation: int
    start: Start
    next_id: int
    line: int
    obeyed: tuple[str, ...] = ()
    held: tuple[int, ...] = ()
    finished: bool = False

    @property
    def kept(self) -> tuple[int, ...]:
        """The earlier checkpoints of this home that the generation still names, sorted."""
        named = set(self.held)
        if isinstance(self.start, FromCheckpoint):
            named |= {self.start.checkpoint_id, *self.start.retained}
        return tuple(sorted(named))

    def ended(self, *, finished: bool, next_id: int) -> Base:
        """What the owner writes when it goes and its checkpoints go with it."""
        ended = replace(self, finished=finished, next_id=max(next_id, self.next_id))
        return ended if finished else replace(ended, start=FromNothing(), obeyed=())

    def to_fields(self) -> dict[str, Any]:
        """The base as plain values."""
        start: dict[str, Any] = {"from": "nothing"}
        match self.start:
            case FromCheckpoint(checkpoint_id, generation, retained):
                start = {"from": "checkpoint", "id": checkpoint_id, "generation": generation, "retained": [*retained]}
            case FromPath(path, allow_unclaimed):
                start = {"from": "path", "path": path, "allow_unclaimed": allow_unclaimed}
        return {
            "generation": self.generation,
            "start": start,
            "next_id": self.next_id,
            "line": self.line,
            "obeyed": [*self.obeyed],
            "held": [*self.held],
            "finished": self.finished,
        }

    @classmethod
    def from_fields(cls, fields: Mapping[str, Any], name: str) -> Base:
        """The base that was written down in the object ``name``; raises ``CorruptObject``."""
        _expect(fields, _BASE_FIELDS, name)
        plain = dict(fields)
        plain["start"] = _start(plain["start"], name)
        plain["obeyed"] = _all(plain["obeyed"], str, "obeyed", name)
        plain["held"] = _all(plain["held"], int, "held", name)
        return cls(**plain)


# ── reading them back ────────────────────────────────────────────────────────────────────────

_CLAIM_FIELDS: dict[str, type] = {"generation": int, "host": str, "process": str, "at_ms": int, "told": str}
_BASE_FIELDS: dict[str, type] = {
    "generation": int,
    "start": dict,
    "next_id": int,
    "line": int,
    "obeyed": list,
    "held": list,
    "finished": bool,
}
_START_FIELDS: dict[str, dict[str, type]] = {
    "nothing": {"from": str},
    "checkpoint": {"from": str, "id": int, "generation": int, "retained": list},
    "path": {"from": str, "path": str, "allow_unclaimed": bool},
}


def _start(fields: Mapping[str, Any], name: str) -> Start:
    kind = fields.get("from")
    if not isinstance(kind, str) or kind not in _START_FIELDS:
        raise CorruptObject(f"{name}: it starts from {kind!r}, which is not known; was it written by a newer version?")
    _expect(fields, _START_FIELDS[kind], name)
    if kind == "checkpoint":
        return FromCheckpoint(fields["id"], fields["generation"], _all(fields["retained"], int, "retained", name))
    return FromPath(fields["path"], fields["allow_unclaimed"]) if kind == "path" else FromNothing()


def _expect(fields: Mapping[str, Any], types: Mapping[str, type], name: str) -> None:
    odd = sorted({str(field) for field in fields} ^ set(types))
    if odd:
        raise CorruptObject(f"{name}: missing or unknown fields {', '.join(odd)}; was it written by a newer version?")
    for field, kind in types.items():
        if type(fields[field]) is not kind:
            raise CorruptObject(f"{name}: field {field} holds {fields[field]!r}, which is no {kind.__name__}")


def _all(values: list[Any], kind: type, field: str, name: str) -> tuple[Any, ...]:
    if any(type(value) is not kind for value in values):
        raise CorruptObject(f"{name}: field {field} holds {values!r}, which is no list of {kind.__name__}")
    return tuple(values)
