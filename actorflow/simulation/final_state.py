"""The state of a job's final checkpoint, read from where it lies without asking the job."""

from __future__ import annotations

from actorflow.model.codec import Codec
from actorflow.model.handles import Handle, InlineHandle
from actorflow.model.key_groups import bytes_of_token
from actorflow.model.manifest_codec import decode_manifest
from actorflow.model.paths import Home
from actorflow.simulation.digest import canonical
from actorflow.simulation.world import Universe
from actorflow.state.blocks import read_blocks

__all__ = ("final_state",)


def final_state(
    universe: Universe, storage: str, job: str, checkpoint_id: int, codec: Codec
) -> dict[tuple[str, str, bytes], bytes] | None:
    """Every key of every keyed state: (operator, state, key bytes) → the value, encoded; ``None`` when it is gone."""
    objects = _objects_at(universe, storage)
    home = Home(job)
    name = home.manifest(checkpoint_id)
    if name not in objects:
        return None
    manifest = decode_manifest(objects[name], name)
    state: dict[tuple[str, str, bytes], bytes] = {}

    def data_of(handle: Handle) -> bytes:
        if isinstance(handle, InlineHandle):
            return handle.data
        whole = objects[home.resolve(handle, checkpoint_id)]
        return whole[handle.offset : handle.offset + handle.length]

    for operator in manifest.operators:
        for subtask in operator.subtasks:
            for handle in subtask.keyed:
                for block in read_blocks(codec, operator.operator, [data_of(handle)]):
                    for token, value in zip(block.tokens, block.values, strict=True):
                        key = (operator.operator, block.state, bytes_of_token(token))
                        assert key not in state, f"{key} is held by two subtasks"
                        state[key] = canonical(value)
    return state


def _objects_at(universe: Universe, location: str) -> dict[str, bytes]:
    """What lies in a store now, as nobody's process sees it."""
    if location.startswith("s3://"):
        return universe.shelf(location.removeprefix("s3://")).objects
    root = f"{location.rstrip('/')}/"
    files = universe.machine("m1").platter.files()
    return {path.removeprefix(root): data for path, data in files.items() if path.startswith(root)}
