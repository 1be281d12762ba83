"""The instant and the rest of a snapshot: small ones in the manifest, large ones in one object, nothing half."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

import actorflow as af
from actorflow.connectors import generator, memory
from actorflow.errors import InvalidValue
from actorflow.model.codec import Codec
from actorflow.model.elements import Barrier
from actorflow.model.handles import InlineHandle, ObjectHandle
from actorflow.model.manifest import Redistribution
from actorflow.model.paths import Home
from actorflow.runtime.pace import Duty, Meter
from actorflow.runtime.snapshot_reader import SnapshotReader
from actorflow.runtime.snapshots import ActorSnapshot, Instant, decode_elements, write_behind
from actorflow.simulation.weather import At, FailObjects
from actorflow.simulation.world import Universe
from actorflow.state.memory import MemoryBackend
from actorflow.storage.memory import MemoryStore
from actorflow_tests.runtime.support import completed, entries, environment, play, running_counts, seeds

HOME = Home("job")
ELEMENTS = [[f"split{index}", index, index % 2 == 0] for index in range(100)]


def instant(
    codec: Codec, keys: int, *, lists: Any = None, rested: Callable[[], Awaitable[None]] | None = None
) -> Instant:
    backend = MemoryBackend(codec)
    table = backend.table("count", "state", "value")
    for index in range(keys):
        table.store(f"key{index}", index)
    table.settle()
    held = lists if lists is not None else [("read", "splits", Redistribution.UNION, ELEMENTS)]
    return Instant(barrier=Barrier(7), finished=False, keyed=backend.freeze(), lists=held, rested=rested)


async def written(
    universe: Universe, store: MemoryStore, keys: int, *, inline_below: int, **options: Any
) -> ActorSnapshot:
    codec = Codec()
    return await write_behind(
        instant(codec, keys, **options),
        name="count-0-3",
        home=HOME,
        store=store,
        codec=codec,
        duty=Duty(universe.world(f"p{universe.now_ms()}-{keys}-{inline_below}").clock),
        inline_below=inline_below,
        meter=Meter(),
    )


@pytest.mark.parametrize("keys", [0, 1, 3_000])
@pytest.mark.parametrize("inline_below", [0, 20_480, 10**9])
def test_what_is_written_is_read_back_whether_it_lies_in_the_manifest_or_in_an_object(
    keys: int, inline_below: int
) -> None:
    async def story(universe: Universe) -> None:
        store = MemoryStore()
        snapshot = await written(universe, store, keys, inline_below=inline_below)
        names = await store.list()
        is_inline = snapshot.bytes <= inline_below
        assert names == ([] if is_inline else ["job/chk-7/count-0-3"])
        assert snapshot.objects == tuple(names)
        if names:
            assert len(await store.get(names[0])) == snapshot.bytes

        reader = SnapshotReader(store, HOME, 7, universe.world("reader"))
        [held] = snapshot.parts["read"].lists
        assert (held.state, held.redistribution, held.count) == ("splits", Redistribution.UNION, len(ELEMENTS))
        assert isinstance(held.handle, InlineHandle if is_inline else ObjectHandle)
        codec = Codec()
        encoded = decode_elements(codec, await reader.whole(held.handle))
        assert [codec.decode(element) for element in encoded] == ELEMENTS

        backend = MemoryBackend(codec)
        for handle in snapshot.parts["count"].keyed if "count" in snapshot.parts else ():
            pieces = [piece async for piece in reader.pieces(handle)]
            assert sum(backend.restore("count", pieces, keep=None)) == keys
        table = backend.table("count", "state", "value")
        assert dict(table.items()) == {f"key{index}": index for index in range(keys)}

    play(story)


def test_nothing_at_all_is_a_snapshot_too() -> None:
    async def story(universe: Universe) -> None:
        store = MemoryStore()
        snapshot = await written(universe, store, 0, inline_below=0, lists=[])
        assert (snapshot.bytes, snapshot.objects, snapshot.parts) == (0, (), {})
        assert await store.list() == []

    play(story)


def test_a_snapshot_counts_when_what_the_sink_prepared_is_durable() -> None:
    async def story(universe: Universe) -> None:
        async def rests() -> None:
            await asyncio.sleep(3)

        began = universe.now_ms()
        await written(universe, MemoryStore(), 1, inline_below=0, rested=rests)
        assert universe.now_ms() - began >= 3_000

    play(story)


def test_a_value_that_can_not_be_written_leaves_no_object_and_names_its_place() -> None:
    async def story(universe: Universe) -> None:
        store = MemoryStore()
        lists = [("read", "splits", Redistribution.UNION, [*ELEMENTS, object()])]
        with pytest.raises(InvalidValue, match=r"read\.splits\[100\]"):
            await written(universe, store, 3_000, inline_below=0, lists=lists)
        assert await store.list() == []

    play(story)


def test_an_upload_that_is_cancelled_leaves_no_object() -> None:
    class Slow(MemoryStore):
        async def put(self, name: str, body: Any) -> int:
            async def slowly() -> Any:
                if isinstance(body, bytes):  # what is small comes whole
                    await asyncio.sleep(1)
                    yield body
                    return
                async for piece in body:
                    await asyncio.sleep(1)
                    yield piece

            return await super().put(name, slowly())

    async def story(universe: Universe) -> None:
        store = Slow()
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.5):
                await written(universe, store, 3_000, inline_below=0)
        assert await store.list() == []

    play(story)


# ── in a job ─────────────────────────────────────────────────────────────────────────────────


def test_a_value_that_is_changed_after_the_barrier_does_not_show_in_the_snapshot() -> None:
    """Lists grow in place while a checkpoint is being written; what is restored is what was there at the barrier."""

    class Grows(af.KeyedOperator[str, int, Any]):
        items = af.ListState(int)
        pages = af.MapState(str, int)

        def on_record(self, number: int, context: af.Context[str]) -> Any:
            self.items.append(number)
            self.pages[str(number % 3)] = self.pages.get(str(number % 3), 0) + 1
            return [(context.key, len(self.items), sum(self.pages.values()))]

    async def story(universe: Universe) -> None:
        sink = memory.collect()

        def job() -> af.Job:
            made = af.Job("grows")
            made.read(generator.numbers(400, per_second=1_000), name="read").key_by(
                lambda number: f"k{number % 4}"
            ).process(Grows, name="grows").write(sink, name="write")
            return made

        for life in range(4):
            async with environment(universe.world(f"p{life}"), every_ms=7).run(job()) as handle:
                await asyncio.sleep(0.08)
                await (handle.cancel() if life < 3 else handle.wait())
        assert sorted(sink.rows) == sorted((f"k{key}", count, count) for key in range(4) for count in range(1, 101))

    for seed in seeds(3):
        play(story, seed, batch_us=400)


def test_a_piece_that_can_not_be_stored_fails_its_checkpoint_and_no_later_one() -> None:
    async def story(universe: Universe) -> None:
        from actorflow.model import journal

        sink = memory.collect()
        for at in range(50, 500, 90):
            universe.expect(FailObjects(At(at), "put", "*chk-*", count=1))
        job = af.Job("count")
        job.read(generator.generate(lambda index: f"w{index % 3}", records=300, per_second=500), name="read").key_by(
            str.lower
        ).count(name="count").write(sink, name="write")
        settings = af.Environment(
            settings=environment(every_ms=20, tolerable_failures=3).settings.merged({"checkpoints.inline_below": 0}),
            world=universe.world("p"),
        )
        async with settings.run(job) as handle:
            await handle.wait()
        assert len(entries(universe, journal.CheckpointAborted)) >= 3
        assert len(completed(universe)) > 10
        assert sorted(sink.rows) == running_counts(f"w{index % 3}" for index in range(300))

    play(story)
