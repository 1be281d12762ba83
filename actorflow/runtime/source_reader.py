"""Which subtask reads which split, and how its chunks reach the actor.

Each split that is being read has a *pump*: a child coroutine that iterates the source's generator and puts chunks
into a short queue.  The actor takes them like any other input, so a source that waits for the outside world never
holds up a barrier, and a source that never waits is held by the queue's bound.  A position is noted when the actor
has taken the chunk, not when the pump has read it.

Splits are given out on demand by one :class:`SplitAssigner` per source.  What a subtask was ever given is in its own
snapshot, position and all; a split that nobody's snapshot names is found again by ``discover``.  So each split
belongs to exactly one subtask, or to nobody, in every cut (INV-12.4), without a snapshot of the assigner.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from functools import partial
from operator import itemgetter
from typing import Any

import anyio

from actorflow.abc.connectors import Chunk, Source, SourceContext
from actorflow.abc.world import World
from actorflow.errors import ActorflowError, OperatorFailed
from actorflow.model import journal
from actorflow.runtime.mailbox import Signal
from actorflow.runtime.sheltered import CLOSE_WITHIN_S, Sheltered, Spawn

__all__ = ("DONE", "SourceReader", "SplitAssigner")

DONE = object()
"""Stands in the queue for the end of a split."""

CHUNKS_AHEAD = 8
"""How many chunks a subtask's pumps may have read before the actor took one."""


class SplitAssigner:
    """Gives the splits of one source to its subtasks, in the source's order; shared by all subtasks of this process."""

    def __init__(self, source: Source[Any], world: World, operator: str) -> None:
        self._source, self._world, self._operator = source, world, operator
        self._known: dict[str, None] = {}
        self._unassigned: deque[str] = deque()
        self._readers: list[SourceReader] = []
        self.discovered = False

    def join(self, reader: SourceReader, restored: Sequence[str] = ()) -> None:
        """Add a subtask, and splits that were given out in an earlier life."""
        if reader not in self._readers:
            self._readers.append(reader)
        self._known.update(dict.fromkeys(restored))

    async def discover(self) -> None:
        """Ask the source what splits there are; called once before any record is read, and again while unbounded."""
        known = self._known
        try:
            new = [split for split in await self._source.discover(self._world) if split not in known]
            await self._source.verify(self._world, new, list(known))
        except ActorflowError as error:
            error.add_note(f"operator {self._operator!r}: its splits could not be found")
            raise
        except Exception as error:
            raise OperatorFailed(
                self._operator, 0, cause=f"finding its splits raised {type(error).__name__}: {error}"
            ) from error
        for split in new:
            if split not in known:
                known[split] = None
                self._unassigned.append(split)
        self.discovered = True
        for reader in self._readers:
            reader.fill()

    async def keep_discovering(self) -> None:
        """Look for new splits for ever, as often as an unbounded source asks for."""
        every = self._source.discover_every
        while every is not None:
            await self._world.clock.sleep(every.total_seconds() * 1_000)
            await self.discover()

    def take(self) -> str | None:
        """The next split that nobody has, or ``None``."""
        return self._unassigned.popleft() if self._unassigned else None

    @property
    def is_exhausted(self) -> bool:
        """Whether no split will ever be given out again."""
        return (
            self.discovered and not self._unassigned and (self._source.bounded or self._source.discover_every is None)
        )


class SourceReader:
    """The splits of one subtask: their positions, their pumps, and the chunks that wait for the actor."""

    def __init__(
        self,
        source: Source[Any],
        assigner: SplitAssigner,
        *,
        operator: str,
        subtask: int,
        parallelism: int,
        world: World,
        signal: Signal,
        spawn: Spawn,
    ) -> None:
        self._source, self._assigner = source, assigner
        self._operator, self._subtask, self._parallelism = operator, subtask, parallelism
        self._world, self._signal, self._spawn = world, signal, spawn
        self.positions: dict[str, Any] = {}
        self.done: dict[str, None] = {}
        self._waiting: deque[str] = deque()
        self._pumps: dict[str, Signal] = {}
        self._queue: deque[tuple[str, Any]] = deque()
        self._failure: ActorflowError | None = None
        self._heard = False
        self._shelters: dict[str, Sheltered] = {}
        self._opened = self._cut = self._halting = self._ending = False
        self.is_refilling = False
        """Whether a pump was given room and has not had its turn yet: being out of chunks is not being idle then."""
        assigner.join(self)

    def restore_union(self, elements: list[Any], takers: Sequence[int]) -> None:
        """Take back the splits of an earlier life: all of every subtask, ``[split, position, done]`` each.

        Splits that were under way are dealt out in turns to ``takers``, the subtasks that have not finished; those that
        are done are remembered by the first subtask.
        """
        under_way = sorted(((split, position) for split, position, done in elements if not done), key=itemgetter(0))
        done = sorted(split for split, _, is_done in elements if is_done)
        if not takers:  # all have finished, so what is not done was ended where it stood, for good
            done, under_way = sorted([*done, *(split for split, _ in under_way)]), []
        for index, (split, position) in enumerate(under_way):
            if takers[index % len(takers)] == self._subtask:
                self.positions[split] = position
                self._waiting.append(split)
        if self._subtask == 0:
            self.done.update(dict.fromkeys(done))
        self._assigner.join(self, [split for split, _ in under_way] + done)

    def elements(self) -> list[Any]:
        """What belongs into a snapshot."""
        return [[split, None, True] for split in self.done] + [
            [split, position, False] for split, position in self.positions.items()
        ]

    def open(self, *, finished: bool = False) -> None:
        """Start reading; a subtask that had finished in an earlier life reads nothing, whatever is there by now."""
        self._opened = True
        if finished:
            self._cut = True
        self.fill()

    def fill(self) -> None:
        """Start pumps for as many splits as may be read at once."""
        if not self._opened or self._cut or not self._assigner.discovered:
            return
        most = self._source.splits_at_once
        while most is None or len(self._pumps) < most:
            split = self._waiting.popleft() if self._waiting else self._assigner.take()
            if split is None:
                break
            self.positions.setdefault(split, None)
            room = self._pumps[split] = Signal()
            shelter = self._shelters[split] = Sheltered(
                partial(self._pump, split, room), abandoned=partial(self._abandoned, split)
            )
            shelter.start(self._spawn, name=f"{self._operator}/{self._subtask} reads {split}")
        self._signal.set()

    def halt(self) -> None:
        """The source ends because the job stops, not because there is no more: its splits are not done."""
        self._halting = True

    def end(self) -> None:
        """The source ends by itself, and that is the end of the input."""
        self._halting, self._ending = False, True
        for split in [one for one in self.positions if one not in self._pumps and one not in self._waiting]:
            del self.positions[split]  # it came to its end while the job was about to stop
            self.done[split] = None
        self._signal.set()

    @property
    def is_drained(self) -> bool:
        """Whether everything that was read was taken and nothing more is being read."""
        return self._opened and not self._queue and not self._pumps and not self._waiting

    @property
    def unheard(self) -> ActorflowError | None:
        """What a pump raised when nobody was left to take its chunks."""
        return None if self._heard else self._failure

    def cut(self) -> None:
        """End every split here, for good; what was read ahead and not taken does not count as read."""
        self._cut = True
        for shelter in self._shelters.values():
            shelter.cancel()
        self._shelters.clear()
        self._pumps.clear()
        self._queue.clear()
        self._signal.set()

    @property
    def has_ended(self) -> bool:
        """Whether everything this subtask will ever read was taken."""
        return self._cut or (self.is_drained and not self._halting and (self._ending or self._assigner.is_exhausted))

    def try_take(self) -> Chunk[Any] | None:
        """The next chunk, its position noted; ``None`` when there is none now.  Raises what a pump raised."""
        if self._failure is not None:
            self._heard = True
            raise self._failure
        queue = self._queue
        while queue:
            split, chunk = queue.popleft()
            if len(queue) == CHUNKS_AHEAD // 2:
                for room in self._pumps.values():
                    room.set()
                self.is_refilling = True
            if chunk is DONE:
                del self._pumps[split], self._shelters[split]
                if not self._halting:
                    del self.positions[split]
                    self.done[split] = None
                    self.fill()
                continue
            self.positions[split] = chunk.resume_at
            return chunk  # type: ignore[no-any-return]  # what is not DONE is a chunk
        return None

    async def _pump(self, split: str, room: Signal) -> None:
        context = SourceContext(
            operator=self._operator,
            split=split,
            resume_at=self.positions[split],
            subtask=self._subtask,
            parallelism=self._parallelism,
            world=self._world,
        )
        queue, signal = self._queue, self._signal
        try:
            generator = self._source.read(context)
            try:
                async for chunk in generator:
                    if self._cut:  # it does not count as read any more; the end comes as a cancellation
                        await anyio.sleep_forever()
                    queue.append((split, chunk))
                    signal.set()
                    if len(queue) >= CHUNKS_AHEAD:
                        while len(queue) >= CHUNKS_AHEAD:
                            await room.wait()
                        self.is_refilling = False
            finally:
                close = getattr(generator, "aclose", None)
                if close is not None:
                    await close()
        except Exception as error:
            self._failure = failed(error, self._operator, self._subtask, split)
            signal.set()
            return
        if not self._cut:
            queue.append((split, DONE))
        signal.set()

    def _abandoned(self, split: str) -> None:
        self._world.observer.announce(
            journal.FellBack(
                subject=f"closing split {split!r} of {self._operator}/{self._subtask}",
                wanted="a clean close",
                taken="left alone",
                why=f"it took longer than {CLOSE_WITHIN_S:g} s",
            )
        )


def failed(error: Exception, operator: str, subtask: int, split: str) -> ActorflowError:
    """The error of a source as the job reports it."""
    if isinstance(error, ActorflowError):
        error.add_note(f"operator {operator!r}, subtask {subtask}, split {split!r}")
        return error
    failure = OperatorFailed(operator, subtask, cause=f"reading split {split!r} raised {type(error).__name__}: {error}")
    failure.__cause__ = error
    return failure
