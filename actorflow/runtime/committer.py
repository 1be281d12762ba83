"""Drives ``protocol.two_phase`` for one sink writer: prepares at barriers, commits with a permit, retries.

All of it happens in the actor's own turn, so no two methods of a writer ever run at the same time.  Only what is left
to do after a cut (syncing, closing) runs beside: as a child of the attempt, to its end, also when its checkpoint is
aborted, because the committables stay and the next snapshot holds them (R001).  A snapshot counts when all of it is
done; when it fails, the attempt fails, and what was written is written again.
"""

from __future__ import annotations

from collections.abc import Awaitable
from typing import Any

import anyio

from actorflow.abc.connectors import TransactionalWriter
from actorflow.abc.world import World
from actorflow.errors import ActorflowError, CorruptObject, ObjectMissing, OperatorFailed, StorageFailed
from actorflow.model import journal
from actorflow.model.ids import ActorId
from actorflow.protocol import two_phase
from actorflow.protocol.fencing import CommitPermit
from actorflow.runtime.sheltered import Spawn

__all__ = ("Committer",)

CAN_NOT_HEAL = (CorruptObject, ObjectMissing)
"""What a commit raises when no repetition can help: what was prepared is gone, or something else is in its place."""


class Committer:
    """The prepared output of one writer."""

    def __init__(
        self, *, operator: str, actor: ActorId, world: World, writer: TransactionalWriter[Any], spawn: Spawn
    ) -> None:
        self._operator, self._actor, self._world, self._writer = operator, actor, world, writer
        self._machine = two_phase.TwoPhaseCommit()
        self._permits: list[CommitPermit] = []
        self._spawn = spawn
        self._resting: list[anyio.Event] = []
        self._cause = ""

    @property
    def machine(self) -> two_phase.TwoPhaseCommit:
        """What decides here, for whoever asks what happened."""
        return self._machine

    async def restore(self, elements: list[Any], permit: CommitPermit | None) -> None:
        """Commit what the restored checkpoint left: ``[checkpoint, committable]`` each."""
        left: dict[int, list[Any]] = {}
        for checkpoint_id, committable in elements:
            left.setdefault(checkpoint_id, []).append(committable)
        pending = tuple(two_phase.Pending(number, tuple(items)) for number, items in sorted(left.items()))
        await self._feed(two_phase.Restored(pending, permit))

    def prepare(self, checkpoint_id: int) -> list[Any]:
        """Cut at a barrier; return all that is not known to be committed.  It counts when ``rested`` returns."""
        prepared = self._writer.prepare(checkpoint_id)
        effects = self._machine.on(two_phase.Prepared(checkpoint_id, tuple(prepared.committables)))
        assert not effects, "a cut commits nothing"
        self._announce(
            journal.SinkPrepared(
                checkpoint=checkpoint_id,
                actor=str(self._actor),
                operator=self._operator,
                committables=len(prepared.committables),
            )
        )
        if prepared.rest is not None:
            done = anyio.Event()
            self._resting.append(done)
            self._spawn(self._rest, prepared.rest, done, name=f"{self._actor} prepares {checkpoint_id}")
        return [
            [pending.checkpoint_id, committable]
            for pending in self._machine.pending
            for committable in pending.committables
        ]

    async def rested(self) -> None:
        """Return when everything that was cut so far is durable."""
        for done in tuple(self._resting):
            await done.wait()

    async def _rest(self, rest: Awaitable[None], done: anyio.Event) -> None:
        try:
            await rest
        except ActorflowError as error:
            error.add_note(
                f"operator {self._operator!r}, subtask {self._actor.subtask}: what it prepared is not durable"
            )
            raise
        except Exception as error:
            raise OperatorFailed(
                self._operator, self._actor.subtask, cause=f"preparing raised {type(error).__name__}: {error}"
            ) from error
        self._resting.remove(done)
        done.set()

    def permit(self, permit: CommitPermit) -> None:
        """Note that a checkpoint may be committed, as soon as it is this actor's turn."""
        self._permits.append(permit)

    async def commit(self) -> None:
        """Commit what is permitted; waits and tries again a bounded number of times."""
        while self._permits:
            await self._feed(two_phase.CheckpointCompleted(self._permits[0]))
            self._permits.pop(0)

    def finished(self) -> None:
        """The writer got its last record."""
        self._machine.on(two_phase.Finished())

    async def close(self, published: int) -> None:
        """The job is over: finish what was permitted, discard what no manifest can name."""
        phase = self._machine.phase
        if isinstance(phase, two_phase.Waiting):
            # A commit was cut short when the actor was cancelled; it repeats without harm.
            await self._feed(two_phase.RetryDue(phase.checkpoint_id))
        await self.commit()
        await self._feed(two_phase.Closing(published))

    def abandon(self) -> None:
        """Another attempt follows, or another owner: touch nothing."""
        self._machine.on(two_phase.Abandoned())

    async def _feed(self, event: two_phase.Event) -> None:
        effects = self._machine.on(event)
        while effects:
            following: list[two_phase.Effect] = []
            for effect in effects:
                match effect:
                    case two_phase.Commit(checkpoint_id, committables, permit):
                        following += await self._commit(checkpoint_id, list(committables), permit)
                    case two_phase.Retry(checkpoint_id, after_ms, attempt):
                        self._announce(
                            journal.StorageRetried(
                                operation=f"commit of {self._actor}",
                                name=str(checkpoint_id),
                                attempt=attempt,
                                cause=self._cause,
                            )
                        )
                        await self._world.clock.sleep(after_ms)
                        following += self._machine.on(two_phase.RetryDue(checkpoint_id))
                    case two_phase.Discard(_, committables):
                        await self._writer.discard(list(committables))
                        self._announce(
                            journal.SinkDiscarded(
                                actor=str(self._actor), operator=self._operator, committables=len(committables)
                            )
                        )
                    case two_phase.Fail(_, reason):
                        raise StorageFailed(f"operator {self._operator!r}, subtask {self._actor.subtask}: {reason}")
                    case two_phase.Close():
                        pass
                    case _:  # pragma: no cover
                        raise AssertionError(f"can't carry out {effect!r}")
            effects = following

    async def _commit(
        self, checkpoint_id: int, committables: list[Any], permit: CommitPermit
    ) -> list[two_phase.Effect]:
        answered = False
        try:
            await self._writer.commit(committables, permit)
            answered = True
        except Exception as error:
            answered = True
            self._cause = type(error).__name__
            return self._machine.on(
                two_phase.CommitAnswered(
                    checkpoint_id, f"{self._cause}: {error}", is_final=isinstance(error, CAN_NOT_HEAL)
                )
            )
        finally:
            if not answered:
                self._machine.on(two_phase.CommitAnswered(checkpoint_id, "it was cut short"))
        self._announce(
            journal.SinkCommitted(
                checkpoint=checkpoint_id,
                actor=str(self._actor),
                operator=self._operator,
                committables=len(committables),
            )
        )
        return self._machine.on(two_phase.CommitAnswered(checkpoint_id))

    def _announce(self, entry: journal.Entry) -> None:
        self._world.observer.announce(entry)
