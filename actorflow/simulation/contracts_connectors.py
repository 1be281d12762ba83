"""What must every source and every sink hold, whoever wrote it?

One body per seam, run against every implementation, yours too.  A check is a coroutine function that takes an *arm*:
the implementation and the world it stands in.

    @pytest.mark.parametrize("check", SOURCE_CHECKS)
    def test_my_source(check):
        asyncio.run(check(SourceArm(make=lambda: my_source("…"), world=my_world)))

An arm's ``world()`` is a fresh process in front of the same outside: what was durable before is still there, and
nothing else is.

A check raises ``AssertionError`` and returns nothing.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import aclosing
from dataclasses import dataclass, field
from functools import partial
from typing import Any, cast

from actorflow.abc.connectors import (
    Chunk,
    Prepared,
    Sink,
    SinkContext,
    Source,
    SourceContext,
    TransactionalSink,
    TransactionalWriter,
)
from actorflow.abc.world import World
from actorflow.model.codec import Codec

__all__ = (
    "SINK_CHECKS",
    "SOURCE_CHECKS",
    "TRANSACTIONAL_SINK_CHECKS",
    "Permit",
    "SinkArm",
    "SourceArm",
    "TransactionalSinkArm",
)

_OPERATOR = "contract"
_HOME = "contract-home"
_STEPS = 400
"""More calls to the outside than any connector makes in the stories below."""


@dataclass(frozen=True, slots=True)
class Permit:
    """What a checkpoint that completed gives; outside of tests only ``protocol.fencing`` makes one."""

    checkpoint_id: int
    generation: int


# ── sources ──────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceArm:
    """A source, how it is made, and the world it reads from.  ``most_records`` bounds one that never ends."""

    make: Callable[[], Source[Any]]
    world: Callable[[], World]
    most_records: int | None = None
    codec: Codec = field(default_factory=Codec)

    def context(self, split: str, resume_at: Any = None) -> SourceContext[Any]:
        """What a subtask that reads alone is told."""
        return SourceContext(
            operator=_OPERATOR, split=split, resume_at=resume_at, subtask=0, parallelism=1, world=self.world()
        )

    async def read(self, split: str, resume_at: Any = None, most: int | None = None) -> list[Chunk[Any]]:
        """All chunks of a split, as another process reads it; of one that never ends, ``most`` records."""
        most = self.most_records if most is None else most
        chunks: list[Chunk[Any]] = []
        count = 0
        async with aclosing(cast("Any", self.make().read(self.context(split, resume_at)))) as reading:
            async for chunk in cast("AsyncIterator[Chunk[Any]]", reading):
                chunks.append(chunk)
                count += len(chunk.records)
                if self.most_records is not None and most is not None and count >= most:
                    break
        return chunks


def _records(chunks: list[Chunk[Any]]) -> list[Any]:
    return [record for chunk in chunks for record in chunk.records]


async def splits_are_stable(arm: SourceArm) -> None:
    """Two processes that look find the same splits, in the same order, and each once."""
    first, second = [list(await arm.make().discover(arm.world())) for _ in range(2)]
    assert first == second
    assert first
    assert all(type(split) is str for split in first)
    assert len(dict.fromkeys(first)) == len(first)
    source, world = arm.make(), arm.world()
    await source.verify(world, list(await source.discover(world)), [])


async def reading_again_gives_the_same(arm: SourceArm) -> None:
    """A split that is read twice from its beginning gives the same records."""
    for split in await arm.make().discover(arm.world()):
        first, second = _records(await arm.read(split)), _records(await arm.read(split))
        count = min(len(first), len(second)) if arm.most_records else None
        assert first[:count] == second[:count]


async def every_position_resumes_exactly(arm: SourceArm) -> None:
    """From the position after each chunk come the records after it: none again (R018), none left out."""
    for split in await arm.make().discover(arm.world()):
        chunks = await arm.read(split)
        every = _records(chunks)
        done = 0
        for chunk in chunks:
            done += len(chunk.records)
            assert chunk.resume_at is not None, f"split {split!r}: a chunk without a position can't be resumed"
            position = arm.codec.decode(arm.codec.encode(chunk.resume_at))
            left = every[done:]
            if arm.most_records is None:
                rest = _records(await arm.read(split, position))
            elif left:
                rest = _records(await arm.read(split, position, len(left)))[: len(left)]
            else:
                break
            assert rest == left, f"split {split!r}: resumed after {done} records"


async def a_chunk_stays_as_it_was_given(arm: SourceArm) -> None:
    """Chunks are not changed after they were given out: batches travel by reference."""
    for split in await arm.make().discover(arm.world()):
        kept = [(chunk, arm.codec.encode(list(chunk.records))) for chunk in await arm.read(split)]
        for chunk, before in kept:
            assert arm.codec.encode(list(chunk.records)) == before
        assert len({id(chunk.records) for chunk, _ in kept}) == len(kept)


async def a_reader_can_be_left(arm: SourceArm) -> None:
    """A reader that is closed after its first chunk lets go, and another one begins as ever."""
    for split in await arm.make().discover(arm.world()):
        source = arm.make()
        async with aclosing(cast("Any", source.read(arm.context(split)))) as reading:
            first = await anext(reading, None)
        again = await arm.read(split)
        assert (first.records if first is not None else []) == (again[0].records if again else [])


async def an_ended_split_stays_ended(arm: SourceArm) -> None:
    """From the last position of a bounded split nothing comes any more (R034)."""
    source = arm.make()
    if not source.bounded:
        return
    for split in await source.discover(arm.world()):
        chunks = await arm.read(split)
        if chunks:
            assert _records(await arm.read(split, chunks[-1].resume_at)) == []


SOURCE_CHECKS: tuple[Callable[[SourceArm], Awaitable[None]], ...] = (
    splits_are_stable,
    reading_again_gives_the_same,
    every_position_resumes_exactly,
    a_chunk_stays_as_it_was_given,
    a_reader_can_be_left,
    an_ended_split_stays_ended,
)

# ── sinks ────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True, kw_only=True)
class SinkArm:
    """A sink, its world, some batches for it, and what an outsider sees of it now.

    ``row`` says what an outsider sees of one record.
    """

    make: Callable[[], Sink[Any]]
    world: Callable[[], World]
    batches: list[list[Any]]
    seen: Callable[[], list[Any]]
    row: Callable[[Any], Any] = lambda record: record

    def context(self, subtask: int = 0, generation: int = 1) -> SinkContext:
        """What the writer of a subtask is told."""
        return _sink_context(self.world(), subtask, generation)


def _sink_context(world: World, subtask: int, generation: int, restored: int | None = None) -> SinkContext:
    return SinkContext(
        operator=_OPERATOR,
        subtask=subtask,
        parallelism=2,
        generation=generation,
        home=_HOME,
        world=world,
        restored_checkpoint=restored,
    )


async def what_is_written_arrives_in_order(arm: SinkArm) -> None:
    """After ``flush`` everything written has arrived, once and in order."""
    writer = await arm.make().open(arm.context())
    for batch in arm.batches:
        await writer.write(batch)
    await writer.flush()
    assert arm.seen() == [arm.row(record) for batch in arm.batches for record in batch]
    await writer.close()


async def a_batch_is_neither_kept_nor_changed(arm: SinkArm) -> None:
    """The list that ``write`` gets belongs to others."""
    writer = await arm.make().open(arm.context())
    expected = [arm.row(record) for batch in arm.batches for record in batch]
    for batch in arm.batches:
        lent = list(batch)
        await writer.write(lent)
        assert lent == batch
        lent.clear()
    await writer.flush()
    assert arm.seen() == expected
    await writer.close()


SINK_CHECKS: tuple[Callable[[SinkArm], Awaitable[None]], ...] = (
    what_is_written_arrives_in_order,
    a_batch_is_neither_kept_nor_changed,
)

# ── transactional sinks ──────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True, kw_only=True)
class TransactionalSinkArm:
    """A transactional sink, its world, and batches of records that all differ; at least four batches.

    ``make()`` gives the sink as a fresh process builds it.  ``mortal(step, life)`` lives a life in a fresh process
    that dies at its ``step``-th call to the outside, and says whether it died; ``power_cut`` forgets what was not
    synced.
    """

    make: Callable[[], TransactionalSink[Any]]
    world: Callable[[], World]
    batches: list[list[Any]]
    row: Callable[[Any], Any] = lambda record: record
    mortal: Callable[[int, Callable[[World], Awaitable[None]]], Awaitable[bool]] | None = None
    power_cut: Callable[[], None] | None = None
    codec: Codec = field(default_factory=Codec)

    async def open(
        self, subtask: int = 0, generation: int = 1, *, world: World | None = None, restored: int | None = None
    ) -> TransactionalWriter[Any]:
        """A writer, as a fresh process opens it."""
        return await self.make().open(_sink_context(world or self.world(), subtask, generation, restored))

    async def visible(self) -> list[Any]:
        """What an outsider sees now."""
        return await self.make().visible(self.world())

    def rows(self, *batches: int) -> list[Any]:
        """What an outsider sees of these batches."""
        return [self.row(record) for batch in batches for record in self.batches[batch]]

    def travelled(self, committables: list[Any]) -> list[Any]:
        """The committables as they come back from a checkpoint."""
        return [self.codec.decode(self.codec.encode(committable)) for committable in committables]


async def _settle(prepared: Prepared) -> list[Any]:
    if prepared.rest is not None:
        await prepared.rest
    return prepared.committables


async def nothing_is_visible_before_its_commit(arm: TransactionalSinkArm) -> None:
    """Neither writing nor preparing shows anything; the commit shows all of it, in order (INV-12.2)."""
    writer = await arm.open()
    await writer.write(arm.batches[0])
    await writer.write(arm.batches[1])
    assert await arm.visible() == []
    prepared = writer.prepare(1)
    assert await arm.visible() == []
    committables = await _settle(prepared)
    assert await arm.visible() == []
    await writer.commit(committables, Permit(1, 1))
    assert await arm.visible() == arm.rows(0, 1)
    await writer.close()
    assert await arm.visible() == arm.rows(0, 1)


async def a_cut_divides_before_from_after(arm: TransactionalSinkArm) -> None:
    """What is written after ``prepare`` belongs to a later checkpoint, also while the rest of the first is awaited."""
    writer = await arm.open()
    await writer.write(arm.batches[0])
    first = writer.prepare(1)
    await writer.write(arm.batches[1])
    committables = await _settle(first)
    await writer.write(arm.batches[2])
    await writer.commit(committables, Permit(1, 1))
    assert await arm.visible() == arm.rows(0)
    await writer.commit(await _settle(writer.prepare(2)), Permit(2, 1))
    assert await arm.visible() == arm.rows(0, 1, 2)
    await writer.close()


async def a_batch_is_not_kept(arm: TransactionalSinkArm) -> None:
    """The list that ``write`` gets belongs to others."""
    writer = await arm.open()
    lent = list(arm.batches[0])
    await writer.write(lent)
    assert lent == arm.batches[0]
    lent.clear()
    await writer.commit(await _settle(writer.prepare(1)), Permit(1, 1))
    assert await arm.visible() == arm.rows(0)
    await writer.close()


async def two_checkpoints_may_wait_together(arm: TransactionalSinkArm) -> None:
    """A checkpoint that failed leaves its committables to a later one; both are committed, in order (R001, 12.5)."""
    writer = await arm.open()
    await writer.write(arm.batches[0])
    first = await _settle(writer.prepare(1))
    await writer.write(arm.batches[1])
    second = await _settle(writer.prepare(2))
    await writer.commit([*first, *second], Permit(2, 1))
    assert await arm.visible() == arm.rows(0, 1)
    await writer.close()


async def a_rest_that_nobody_awaited_is_made_up_for(arm: TransactionalSinkArm) -> None:
    """After a checkpoint that was aborted before its rest, the next one makes both durable."""
    writer = await arm.open()
    await writer.write(arm.batches[0])
    abandoned = writer.prepare(1)
    await writer.write(arm.batches[1])
    second = await _settle(writer.prepare(2))
    committables = [*abandoned.committables, *second]
    if arm.power_cut is not None:
        arm.power_cut()
    later = await arm.open(generation=2, restored=2)
    await later.commit(arm.travelled(committables), Permit(2, 2))
    assert await arm.visible() == arm.rows(0, 1)
    await later.close()


async def nothing_written_prepares_nothing(arm: TransactionalSinkArm) -> None:
    """A checkpoint without records is harmless, and may be committed."""
    writer = await arm.open()
    await writer.commit(await _settle(writer.prepare(1)), Permit(1, 1))
    await writer.commit([], Permit(1, 1))
    assert await arm.visible() == []
    await writer.close()


async def a_commit_may_repeat(arm: TransactionalSinkArm) -> None:
    """A commit that is repeated, by whoever, shows nothing twice."""
    writer = await arm.open()
    await writer.write(arm.batches[0])
    committables = await _settle(writer.prepare(1))
    for _ in range(3):
        await writer.commit(committables, Permit(1, 1))
    later = await arm.open(generation=2, restored=1)
    await later.commit(arm.travelled(committables), Permit(1, 2))
    assert await arm.visible() == arm.rows(0)
    await writer.close()
    await later.close()


async def another_process_commits(arm: TransactionalSinkArm) -> None:
    """What came back from a checkpoint is enough to commit, for another process and another subtask."""
    first, second = await arm.open(0), await arm.open(1)
    await first.write(arm.batches[0])
    await second.write(arm.batches[1])
    committables = [*await _settle(first.prepare(1)), *await _settle(second.prepare(1))]
    if arm.power_cut is not None:
        arm.power_cut()
    later = await arm.open(generation=2, restored=1)  # scaled in: one subtask for two
    await later.commit(arm.travelled(committables), Permit(1, 2))
    assert sorted(await arm.visible()) == sorted(arm.rows(0, 1))
    await later.write(arm.batches[2])
    await later.commit(await _settle(later.prepare(2)), Permit(2, 2))
    assert sorted(await arm.visible()) == sorted(arm.rows(0, 1, 2))
    await later.close()


async def a_discard_never_takes_back(arm: TransactionalSinkArm) -> None:
    """``discard`` throws away what was prepared, and never what was committed; a second time is fine."""
    writer = await arm.open()
    await writer.write(arm.batches[0])
    kept = await _settle(writer.prepare(1))
    await writer.commit(kept, Permit(1, 1))
    await writer.write(arm.batches[1])
    thrown = await _settle(writer.prepare(2))
    for _ in range(2):
        await writer.discard([*kept, *thrown])
    assert await arm.visible() == arm.rows(0)
    await writer.write(arm.batches[2])
    await writer.commit(await _settle(writer.prepare(3)), Permit(3, 1))
    assert await arm.visible() == arm.rows(0, 2)
    await writer.close()


async def a_sweep_keeps_what_is_named(arm: TransactionalSinkArm) -> None:
    """``sweep`` removes what older generations left, but for what the restored checkpoint names, and nothing newer."""
    writer = await arm.open()
    await writer.write(arm.batches[0])
    named = await _settle(writer.prepare(1))
    await writer.write(arm.batches[1])
    await _settle(writer.prepare(2))  # no manifest will ever name it
    later = await arm.open(generation=2, restored=1)
    await later.write(arm.batches[2])
    own = await _settle(later.prepare(3))
    await later.sweep(arm.travelled(named))
    assert await later.sweep(arm.travelled(named)) == 0
    await later.commit(arm.travelled(named), Permit(1, 2))
    await later.commit(own, Permit(3, 2))
    assert await arm.visible() == arm.rows(0, 2)
    await later.close()


async def closing_shows_nothing(arm: TransactionalSinkArm) -> None:
    """A writer that is closed in the middle shows nothing, and what it had prepared can still be committed."""
    writer = await arm.open()
    await writer.write(arm.batches[0])
    committables = await _settle(writer.prepare(1))
    await writer.write(arm.batches[1])
    await writer.close()
    await writer.close()
    assert await arm.visible() == []
    later = await arm.open(generation=2, restored=1)
    await later.commit(arm.travelled(committables), Permit(1, 2))
    assert await arm.visible() == arm.rows(0)
    await later.close()


@dataclass(slots=True)
class _Story:
    """Two checkpoints of one writer; what is known outside of it is what a manifest would know."""

    restorable: list[Any] = field(default_factory=list)  # what the newest complete checkpoint names
    complete: int = 0

    async def live(self, arm: TransactionalSinkArm, generation: int, world: World) -> None:
        """Go on from where the newest complete checkpoint stands, to the end."""
        writer = await arm.open(generation=generation, world=world, restored=self.complete or None)
        await writer.commit(arm.travelled(self.restorable), Permit(self.complete, generation))
        await writer.sweep(arm.travelled(self.restorable))
        while self.complete < len(arm.batches):
            checkpoint_id = self.complete + 1
            await writer.write(arm.batches[self.complete])
            committables = await _settle(writer.prepare(checkpoint_id))
            self.complete, self.restorable = checkpoint_id, committables
            await writer.commit(committables, Permit(checkpoint_id, generation))
        await writer.close()


async def death_at_any_step_loses_and_doubles_nothing(arm: TransactionalSinkArm) -> None:
    """Killed at each call to the outside, and once more while it recovers, everything is there once (INV-12.1, R119).

    What is visible after each death is what complete checkpoints hold, and nothing else.
    """
    if arm.mortal is None:
        return
    generation = 0
    assert await arm.visible() == []
    for step in range(_STEPS):
        story = _Story()
        before = Counter(await arm.visible())
        died = False
        for deadly in (step, step // 2):
            generation += 1
            if await arm.mortal(deadly, partial(story.live, arm, generation)):
                died = True
                if arm.power_cut is not None:
                    arm.power_cut()
                unfounded = Counter(await arm.visible()) - before - Counter(arm.rows(*range(story.complete)))
                assert not unfounded, f"step {step}: {unfounded} is visible, and no checkpoint holds it"
        generation += 1
        await story.live(arm, generation, arm.world())
        seen, wanted = Counter(await arm.visible()), before + Counter(arm.rows(*range(len(arm.batches))))
        assert seen == wanted, f"step {step}: too many {seen - wanted}, missing {wanted - seen}"
        if not died:
            return
    raise AssertionError(f"the story takes more than {_STEPS} steps")


TRANSACTIONAL_SINK_CHECKS: tuple[Callable[[TransactionalSinkArm], Awaitable[None]], ...] = (
    nothing_is_visible_before_its_commit,
    a_cut_divides_before_from_after,
    a_batch_is_not_kept,
    two_checkpoints_may_wait_together,
    a_rest_that_nobody_awaited_is_made_up_for,
    nothing_written_prepares_nothing,
    a_commit_may_repeat,
    another_process_commits,
    a_discard_never_takes_back,
    a_sweep_keeps_what_is_named,
    closing_shows_nothing,
    death_at_any_step_loses_and_doubles_nothing,
)
