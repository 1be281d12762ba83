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
from actorflow.simulation.final_state import FinalState, HomeView
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
    found: list[FinalState] = []
    seen: list[tuple[tuple[int, ...], tuple[int, ...], dict[str, int]]] = []

    async def story() -> None:
        universe = Universe(0)
        job = counting()
        codec = Codec(compile_plan(job).registry)
        environment = af.Environment(
            checkpoints=af.Checkpoints(storage=storage, inline_below=inline_below),
            parallelism=parallelism,
            world=universe.world("p"),
        )
        home = HomeView(universe, environment.settings, "counting")

        def keep(line: Any) -> None:
            if isinstance(line.entry, journal.CheckpointCompleted) and line.entry.kind == "final":
                state = home.state(line.entry.checkpoint, codec)
                assert state is not None
                found.append(state)
                assert home.state(line.entry.checkpoint + 1, codec) is None
                seen.append((home.checkpoints(), home.retained(line.entry.checkpoint), home.listing()))

        universe.subscribe(keep)
        async with environment.run(job) as handle:
            await handle.wait()

    run(story)
    counts = Counter(f"w{index % 17}" for index in range(200))
    assert found[0].encoded == {
        ("count", "state", encode_key(word)): canonical(count) for word, count in counts.items()
    }
    assert found[0].values == {"count.state": sorted(counts.items(), key=lambda pair: encode_key(pair[0]))}
    ((there, retained, listing),) = seen
    assert there == retained == (1,)
    assert listing["chk-1/_metadata"] > 0
    assert "owner/0000000001" in listing
    assert any(name.startswith("chk-1/count") for name in listing) == (inline_below == 0)
