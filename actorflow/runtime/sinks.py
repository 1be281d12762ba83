"""Opens an actor's sink, and settles what an earlier life left with it.

Everything here happens before the first record: a sink that can't work is refused, what the restored checkpoint left to
commit is committed with the base's permit, and what nobody names is swept.
"""

from __future__ import annotations

from datetime import timedelta

from actorflow.abc.connectors import SinkContext, TransactionalWriter
from actorflow.config import Checkpoints, Guarantee
from actorflow.errors import ActorflowError, IncompatibleState, OperatorFailed
from actorflow.model import journal
from actorflow.protocol.fencing import CommitPermit
from actorflow.runtime.actor import Actor
from actorflow.runtime.committer import Committer
from actorflow.runtime.sheltered import Spawn

__all__ = ("open_sink", "sweep_sink")


async def open_sink(
    actor: Actor,
    *,
    generation: int,
    home: str,
    parallelism: int,
    checkpoints: Checkpoints,
    permit: CommitPermit | None,
    restored_checkpoint: int | None,
    spawn: Spawn,
) -> None:
    """Open the writer of an actor and commit what its snapshot left."""
    assert actor.sink is not None
    operator = actor.operators[-1]
    context = SinkContext(
        operator=operator,
        subtask=actor.id.subtask,
        parallelism=parallelism,
        generation=generation,
        home=home,
        world=actor.world,
        exactly_once=checkpoints.guarantee is Guarantee.EXACTLY_ONCE,
        restored_checkpoint=restored_checkpoint,
        commits_within=_commits_within(checkpoints),
    )
    try:
        actor.writer = await actor.sink.open(context)
    except ActorflowError as error:
        error.add_note(f"operator {operator!r}, subtask {actor.id.subtask}: its sink could not be opened")
        raise
    except Exception as error:
        raise OperatorFailed(
            operator, actor.id.subtask, cause=f"its sink could not be opened: {type(error).__name__}: {error}"
        ) from error
    if isinstance(actor.writer, TransactionalWriter):
        actor.committer = Committer(
            operator=operator, actor=actor.id, world=actor.world, writer=actor.writer, spawn=spawn
        )
        await actor.committer.restore(actor.restored_committables, permit)
    elif actor.restored_committables:
        raise IncompatibleState(
            f"operator {operator!r}: the restored checkpoint holds output that its sink had prepared and not "
            f"committed, and {type(actor.sink).__name__} can't commit; start once more with the sink that the "
            "checkpoint was made with, and stop, before another one takes its place"
        )


async def sweep_sink(first: Actor, every: list[Actor]) -> None:
    """Remove what older generations prepared and nobody committed; the first subtask does it for all, in its turn."""
    writer = first.writer
    if not isinstance(writer, TransactionalWriter):
        return
    keep = [committable for actor in every for _, committable in actor.restored_committables]
    try:
        count = await writer.sweep(keep)
    except Exception as error:
        # What is left behind does no harm, and the next start meets it again.
        first.world.observer.announce(
            journal.FellBack(
                subject=f"operator {first.operators[-1]!r}",
                wanted="nothing left of what older attempts had prepared",
                taken="it is left to the next start",
                why=f"{type(error).__name__}: {error}",
            )
        )
        return
    if count:
        first.world.observer.announce(
            journal.SinkDiscarded(actor=str(first.id), operator=first.operators[-1], committables=count)
        )


def _commits_within(checkpoints: Checkpoints) -> timedelta | None:
    """How long what was written just after a barrier may have to wait for its commit when no checkpoint fails."""
    if checkpoints.every is None:
        return None
    pauses = (checkpoints.every, checkpoints.every_during_backlog or checkpoints.every, checkpoints.min_pause)
    return max(pauses) + checkpoints.timeout
