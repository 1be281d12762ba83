"""What lies in a job's home, read without asking the job: names, sizes, and the state of a checkpoint."""

from __future__ import annotations

import posixpath
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from actorflow.config import Settings
from actorflow.errors import CorruptObject
from actorflow.model.codec import Codec
from actorflow.model.handles import Handle, InlineHandle
from actorflow.model.key_groups import bytes_of_token, key_of_token
from actorflow.model.manifest import Manifest
from actorflow.model.manifest_codec import decode_manifest
from actorflow.model.paths import Home
from actorflow.simulation.digest import canonical
from actorflow.simulation.world import Universe
from actorflow.state.blocks import read_blocks
from actorflow.storage.opening import folder_of

__all__ = ("FinalState", "HomeView")


@dataclass(slots=True)
class FinalState:
    """Every key of every keyed state, once."""

    encoded: dict[tuple[str, str, bytes], bytes] = field(default_factory=dict)
    """(operator, state, key bytes) → the value, encoded."""
    values: dict[str, list[tuple[Any, Any]]] = field(default_factory=dict)
    """The same as Python values: ``operator.state`` → pairs of key and value, in the order of the keys' bytes."""


class HomeView:
    """The home of a job in a universe, as nobody's process sees it."""

    def __init__(self, universe: Universe, settings: Settings, job: str) -> None:
        self._universe, self._location = universe, settings.checkpoints.storage or ""
        self._home = Home(job if settings.checkpoints.create_subdir else "")

    def listing(self) -> dict[str, int]:
        """Names of all objects, relative to the home, and their sizes."""
        prefix = self._home.prefix
        found = {
            name.removeprefix(prefix): len(data) for name, data in self._objects().items() if name.startswith(prefix)
        }
        return dict(sorted(found.items()))

    def checkpoints(self) -> tuple[int, ...]:
        """The checkpoints that could be restored now: those whose manifest is there, oldest first."""
        return tuple(sorted(self._manifests()))

    def retained(self, checkpoint_id: int) -> tuple[int, ...]:
        """The checkpoints that a completed one says are kept, oldest first; nothing when it is gone."""
        manifest = self._manifests().get(checkpoint_id)
        return () if manifest is None else manifest.retained

    def _manifests(self) -> dict[int, Manifest]:
        found: dict[int, Manifest] = {}
        for name, data in self._objects().items():
            if (checkpoint_id := self._home.manifest_of(name)) is not None:
                with suppress(CorruptObject):  # it is the mark of an aborted one
                    found[checkpoint_id] = decode_manifest(data, name)
        return found

    def state(self, checkpoint_id: int, codec: Codec) -> FinalState | None:
        """Read the state of a checkpoint; ``None`` when it is gone."""
        objects = self._objects()
        name = self._home.manifest(checkpoint_id)
        if name not in objects:
            return None
        manifest = decode_manifest(objects[name], name)
        tables: dict[tuple[str, str], dict[bytes, tuple[Any, Any]]] = {}

        def data_of(handle: Handle) -> bytes:
            if isinstance(handle, InlineHandle):
                return handle.data
            whole = objects[self._home.resolve(handle, checkpoint_id)]
            return whole[handle.offset : handle.offset + handle.length]

        for operator in manifest.operators:
            for subtask in operator.subtasks:
                for handle in subtask.keyed:
                    for block in read_blocks(codec, operator.operator, [data_of(handle)]):
                        table = tables.setdefault((operator.operator, block.state), {})
                        for token, value in zip(block.tokens, block.values, strict=True):
                            key = bytes_of_token(token)
                            assert key not in table, f"{operator.operator}.{block.state}: {key!r} is held twice"
                            table[key] = token, value
        return _state_of(tables, codec)

    def _objects(self) -> dict[str, bytes]:
        location = self._location
        if not location:
            return {}  # it is in the memory of a process
        if location.startswith("s3://"):
            bucket, _, prefix = location.removeprefix("s3://").partition("/")
            root = f"{prefix.strip('/')}/" if prefix.strip("/") else ""
            found = self._universe.shelf(bucket).objects
        else:
            root = f"{posixpath.join('/', posixpath.normpath(folder_of(location)))}/"
            found = self._universe.machine().platter.files()
        return {name.removeprefix(root): data for name, data in found.items() if name.startswith(root)}


def _state_of(tables: dict[tuple[str, str], dict[bytes, tuple[Any, Any]]], codec: Codec) -> FinalState:
    state = FinalState()
    for operator, name in sorted(tables):
        table = tables[operator, name]
        values = state.values[f"{operator}.{name}"] = []
        for key in sorted(table):
            token, value = table[key]
            state.encoded[operator, name, key] = canonical(value)
            values.append((key_of_token(token, codec.registry), value))
    return state
