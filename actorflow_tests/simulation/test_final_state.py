"""The final state is read from where it lies, whoever wrote it and wherever it is."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

import actorflow as af
from actorflow.connectors import generator, memory
from actorflow.dataflow.plan import compile_plan
from actorflow.model import journal
from actorflow.model.codec import Codec
from actorflow.model.key_groups import encode_key
from actorflow.simulation import run
from actorflow.simulation.digest import canonical
from actorflow.simulation.final_state import final_state
from actorflow.simulation.world import Universe


def counting() -> af.Job:
    job = af.Job("counting")
    job.read(generator.generate(lambda index: f"w{index % 17}", records=200, splits=2), name="read").key_by(
        str.lower
    ).count(name="count").write(memory.collect(), name="write")
    return job


@pytest.mark.parametrize("storage", ["s3://home", "/var/home"])
@pytest.mark.parametrize("inline_below", [0, 20_480])
@pytest.mark.parametrize("parallelism", [1, 3])
def test_every_key_is_there_once_with_its_value(storage: str, inline_below: int, parallelism: int) -> None:
    found: dict[tuple[str, str, bytes], bytes] = {}

    async def story() -> None:
        universe = Universe(0)
        job = counting()
        codec = Codec(compile_plan(job).registry)

        def keep(line: Any) -> None:
            if isinstance(line.entry, journal.CheckpointCompleted) and line.entry.kind == "final":
                state = final_state(universe, storage, "counting", line.entry.checkpoint, codec)
                assert state is not None
                found.update(state)

        universe.subscribe(keep)
        settings = af.Environment(
            checkpoints=af.Checkpoints(storage=storage, inline_below=inline_below),
            parallelism=parallelism,
            world=universe.world("p"),
        )
        async with settings.run(job) as handle:
            await handle.wait()

    run(story)
    counts = Counter(f"w{index % 17}" for index in range(200))
    assert found == {("count", "state", encode_key(word)): canonical(count) for word, count in counts.items()}
