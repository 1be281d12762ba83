"""How is a manifest written down, and which bytes are one?

A manifest is a CBOR map in a sealed envelope (kind, version, length, checksum; ``envelope.py``).  Restoring begins
with it, so reading is strict: a field that is missing, unknown or out of range, a subtask named twice, or a piece whose
name leads out of its folder makes a :class:`CorruptObject` that names the manifest and the place in it.  Nothing is
guessed, and no class is looked up.

It says nothing about whether a manifest fits a job: ``protocol.recovery`` does.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any, Final, TypeVar

import cbor2

from actorflow.errors import CorruptObject, IncompatibleState
from actorflow.model.envelope import seal, unseal
from actorflow.model.handles import Handle, InlineHandle, ObjectHandle, Scope
from actorflow.model.key_groups import MAX_PARALLELISM_LIMIT
from actorflow.model.manifest import ListHandle, Manifest, OperatorSnapshot, Redistribution, SubtaskSnapshot
from actorflow.model.paths import MANIFEST_NAME, is_plain_name

__all__ = ("MANIFEST_VERSION", "decode_manifest", "encode_manifest")

MANIFEST_VERSION: Final = 1
"""The version that is written; every version up to it can be read."""

_KIND: Final = "manifest"
_DEPTH: Final = 16  # of CBOR in CBOR; a manifest needs nine
_UNSIGNED_64: Final = (1 << 64) - 1

_T = TypeVar("_T")


def encode_manifest(manifest: Manifest) -> bytes:
    """Return a manifest's bytes; one that could not be read back is a mistake of ours."""
    body = cbor2.dumps(_manifest_fields(manifest))
    try:
        back = _read(body, "the manifest to be written", is_ours=True)
    except CorruptObject as error:
        raise AssertionError(str(error)) from error
    assert back == manifest, manifest
    return seal(_KIND, MANIFEST_VERSION, body)


def decode_manifest(data: bytes, name: str) -> Manifest:
    """Return the manifest of these bytes; ``name`` is that of their object, for errors."""
    version, body = unseal(_KIND, data, name)
    if version != MANIFEST_VERSION:
        raise IncompatibleState(
            f"{name}: this manifest has version {version}, and this actorflow reads versions up to {MANIFEST_VERSION}; "
            "start the job with the actorflow that wrote it, or a newer one"
        )
    return _read(body, name)


# ── writing ──────────────────────────────────────────────────────────────────────────────────


def _manifest_fields(manifest: Manifest) -> dict[str, Any]:
    return {
        "job": manifest.job,
        "generation": manifest.generation,
        "checkpoint_id": manifest.checkpoint_id,
        "kind": manifest.kind,
        "key_scheme": manifest.key_scheme,
        "written_at_ms": manifest.written_at_ms,
        "bytes": manifest.bytes,
        "retained": list(manifest.retained),
        "operators": [_operator_fields(operator) for operator in manifest.operators],
    }


def _operator_fields(operator: OperatorSnapshot) -> dict[str, Any]:
    return {
        "operator": operator.operator,
        "parallelism": operator.parallelism,
        "max_parallelism": operator.max_parallelism,
        "states": operator.states,
        "types": operator.types,
        "subtasks": [_subtask_fields(subtask) for subtask in operator.subtasks],
    }


def _subtask_fields(subtask: SubtaskSnapshot) -> dict[str, Any]:
    return {
        "subtask": subtask.subtask,
        "finished": subtask.finished,
        "keyed": [_handle_fields(handle) for handle in subtask.keyed],
        "lists": [
            {
                "state": handle.state,
                "redistribution": handle.redistribution.value,
                "count": handle.count,
                "handle": _handle_fields(handle.handle),
            }
            for handle in subtask.lists
        ],
    }


def _handle_fields(handle: Handle) -> dict[str, Any]:
    match handle:
        case InlineHandle(data):
            return {"data": data}
        case ObjectHandle(scope, name, offset, length, crc32):
            return {"scope": scope.value, "name": name, "offset": offset, "length": length, "crc32": crc32}


# ── reading ──────────────────────────────────────────────────────────────────────────────────


class _Malformed(Exception):
    """Says what is wrong and where; becomes a CorruptObject that names the manifest."""


def _read(body: bytes, name: str, *, is_ours: bool = False) -> Manifest:
    try:
        value = cbor2.loads(body, max_depth=_DEPTH, allow_indefinite=False, allow_duplicate_keys=False)
        manifest = _manifest(value)
        # There is one way to write it, so what is not written so was not written by us.
        if not is_ours and cbor2.dumps(_manifest_fields(manifest)) != body:
            raise _Malformed("manifest: it is not written in its one form")
    except _Malformed as error:
        raise CorruptObject(f"{name}: this is no sound manifest: {error}") from None
    except Exception as error:  # the decoder meets anything in bytes that are not ours
        raise CorruptObject(f"{name}: this is no sound manifest: {error}") from error
    return manifest


class _Fields:
    """The fields of one map, taken one by one, with the place of each for errors."""

    def __init__(self, value: Any, place: str) -> None:
        if type(value) is not dict:
            raise _Malformed(f"{place} should be a map and is of type {type(value).__name__}")
        self.rest, self.place = dict(value), place

    def take(self, field: str, kind: type[_T]) -> _T:
        """Take a field of exactly this type."""
        if field not in self.rest:
            raise _Malformed(f"{self.place}.{field} is missing")
        value = self.rest.pop(field)
        if type(value) is not kind:
            raise _Malformed(f"{self.place}.{field} should be of type {kind.__name__}, not {type(value).__name__}")
        return value

    def text(self, field: str) -> str:
        """Take a text that is not empty."""
        value = self.take(field, str)
        if not value:
            raise _Malformed(f"{self.place}.{field} is empty")
        return value

    def number(self, field: str, lowest: int = 0, highest: int = _UNSIGNED_64) -> int:
        """Take a number between bounds."""
        value = self.take(field, int)
        if not lowest <= value <= highest:
            raise _Malformed(f"{self.place}.{field} is {value}, outside {lowest} to {highest}")
        return value

    def texts(self, field: str) -> dict[str, str]:
        """Take a map from text to text."""
        value = self.take(field, dict)
        for key, item in value.items():
            if type(key) is not str or type(item) is not str:
                raise _Malformed(f"{self.place}.{field} should map text to text")
        return value

    def each(self, field: str, read: Callable[[_Fields], _T]) -> tuple[_T, ...]:
        """Take a list of maps."""
        items = self.take(field, list)
        return tuple(_whole(item, f"{self.place}.{field}[{index}]", read) for index, item in enumerate(items))


def _whole(value: Any, place: str, read: Callable[[_Fields], _T]) -> _T:
    """Read a map and see to it that nothing of it is left."""
    fields = _Fields(value, place)
    result = read(fields)
    if fields.rest:
        unknown = ", ".join(sorted(map(str, fields.rest)))
        raise _Malformed(f"{place} has unknown fields: {unknown}")
    return result


def _manifest(value: Any) -> Manifest:
    return _whole(value, "manifest", _manifest_of)


def _manifest_of(fields: _Fields) -> Manifest:
    retained = fields.take("retained", list)
    if any(type(checkpoint_id) is not int or checkpoint_id < 0 for checkpoint_id in retained):
        raise _Malformed(f"{fields.place}.retained should hold ids of checkpoints")
    _ascending(retained, f"{fields.place}.retained")
    operators = fields.each("operators", _operator_of)
    names = [operator.operator for operator in operators]
    if len(dict.fromkeys(names)) != len(names):
        raise _Malformed(f"{fields.place}.operators names an operator twice")
    return Manifest(
        job=fields.text("job"),
        generation=fields.number("generation"),
        checkpoint_id=fields.number("checkpoint_id"),
        kind=fields.text("kind"),
        key_scheme=fields.text("key_scheme"),
        written_at_ms=fields.number("written_at_ms"),
        bytes=fields.number("bytes"),
        retained=tuple(retained),
        operators=operators,
    )


def _operator_of(fields: _Fields) -> OperatorSnapshot:
    max_parallelism = fields.number("max_parallelism", 1, MAX_PARALLELISM_LIMIT)
    parallelism = fields.number("parallelism", 1, max_parallelism)
    subtasks = fields.each("subtasks", _subtask_of)
    _ascending([subtask.subtask for subtask in subtasks], f"{fields.place}.subtasks")
    if subtasks and subtasks[-1].subtask >= parallelism:
        raise _Malformed(f"{fields.place}.subtasks names subtask {subtasks[-1].subtask} of {parallelism}")
    return OperatorSnapshot(
        operator=fields.text("operator"),
        parallelism=parallelism,
        max_parallelism=max_parallelism,
        subtasks=subtasks,
        states=fields.texts("states"),
        types=fields.texts("types"),
    )


def _subtask_of(fields: _Fields) -> SubtaskSnapshot:
    return SubtaskSnapshot(
        subtask=fields.number("subtask"),
        finished=fields.take("finished", bool),
        keyed=fields.each("keyed", _handle_of),
        lists=fields.each("lists", _list_of),
    )


def _list_of(fields: _Fields) -> ListHandle:
    return ListHandle(
        state=fields.text("state"),
        redistribution=_member(Redistribution, fields, "redistribution"),
        count=fields.number("count"),
        handle=_whole(fields.take("handle", dict), f"{fields.place}.handle", _handle_of),
    )


def _handle_of(fields: _Fields) -> Handle:
    if "data" in fields.rest:
        return InlineHandle(fields.take("data", bytes))
    name = fields.text("name")
    if not is_plain_name(name) or name == MANIFEST_NAME:
        raise _Malformed(f"{fields.place}.name is {name!r}, which is not the plain name of a piece of state")
    return ObjectHandle(
        scope=_member(Scope, fields, "scope"),
        name=name,
        offset=fields.number("offset"),
        length=fields.number("length"),
        crc32=fields.number("crc32", highest=0xFFFFFFFF),
    )


def _member(kind: Callable[[str], _T], fields: _Fields, field: str) -> _T:
    value = fields.text(field)
    try:
        return kind(value)
    except ValueError:
        raise _Malformed(f"{fields.place}.{field} is {value!r}, which this actorflow does not know") from None


def _ascending(numbers: list[int], place: str) -> None:
    if any(first >= second for first, second in pairwise(numbers)):
        raise _Malformed(f"{place} should ascend")
