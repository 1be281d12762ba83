"""Reads the facts of a snapshot, asks ``protocol.recovery`` who receives what, and hands it out.

The decision comes first, before anything is built, because the number of key groups of a chain is that of its restored
state.  Reading back runs in slices, so that a host that embeds the job goes on answering meanwhile.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from actorflow.abc.world import World
from actorflow.dataflow.keyed import BaseOperator
from actorflow.dataflow.plan import Plan
from actorflow.dataflow.primitives import Call, Operator, Read, Write
from actorflow.errors import ActorflowError, CorruptObject, ObjectMissing, RestoreFailed
from actorflow.model import journal
from actorflow.model.codec import Codec
from actorflow.model.handles import Handle
from actorflow.model.ids import ActorId
from actorflow.model.key_groups import OwnedKeys, key_group
from actorflow.model.manifest import Manifest, Redistribution
from actorflow.protocol.lifecycle import ActorStatus
from actorflow.protocol.recovery import ListPiece, OperatorShape, RestorePlan, SubtaskPlan, plan_restore
from actorflow.runtime.actor import COMMITTABLES, IN_FLIGHT, SPLITS, Actor
from actorflow.runtime.ownership import Begin
from actorflow.runtime.pace import Duty
from actorflow.runtime.snapshots import decode_elements

__all__ = ("Restorer", "check_fit")

SHARE = 0.8
"""A job that restores has nothing else to do; whoever embeds it may."""


def check_fit(plan: Plan, manifest: Manifest, allow_unclaimed: bool) -> None:
    """Raise ``IncompatibleState`` when a snapshot, of whatever job, does not fit a plan."""
    plan_restore(manifest, _shapes(plan), job=None, allow_unclaimed=allow_unclaimed)


class Restorer:
    """One restore: the decision, then the work."""

    def __init__(self, *, plan: Plan, world: World, codec: Codec, begin: Begin) -> None:
        self._plan, self._world, self._codec, self._begin = plan, world, codec, begin
        self._duty = Duty(world.clock, SHARE)
        self._decision: RestorePlan | None = None
        self._elements: dict[Handle, list[bytes]] = {}
        if begin.manifest is not None:
            self._decision = plan_restore(
                begin.manifest,
                _shapes(plan),
                job=None if begin.foreign else plan.job,
                allow_unclaimed=begin.allow_unclaimed,
            )
            for operator in self._decision.unclaimed:
                world.observer.announce(
                    journal.FellBack(
                        subject=f"state of operator {operator!r}",
                        wanted="an operator that claims it",
                        taken="left out",
                        why="the job has no operator of that name and leaving it out was allowed",
                    )
                )

    @property
    def plan(self) -> Plan:
        """The plan with the key groups of the restored state."""
        if self._decision is None:
            return self._plan
        groups: Mapping[str, int] = self._decision.max_parallelism
        return replace(
            self._plan,
            vertices=tuple(
                replace(vertex, max_parallelism=groups.get(vertex.name, vertex.max_parallelism))
                for vertex in self._plan.vertices
            ),
        )

    async def restore(self, actors: Mapping[ActorId, Actor]) -> None:
        """Give every actor its state back.  Raises ``RestoreFailed`` naming the object, operator and subtask."""
        decision = self._decision
        if decision is None:
            return
        for actor in actors.values():
            actor.status = ActorStatus.RESTORING
            entries = 0
            for operator in actor.operators:
                part = decision.of(operator, actor.id.subtask)
                try:
                    for piece in part.keyed:
                        entries += await self._keyed(actor, operator, piece.handle, piece.only)
                    lists: dict[tuple[str, Redistribution], list[Any]] = {}
                    for held in part.lists:
                        lists.setdefault((held.state, held.redistribution), []).extend(await self._list(actor, held))
                except (CorruptObject, ObjectMissing) as error:
                    raise RestoreFailed(
                        f"operator {operator!r}, subtask {actor.id.subtask}: {error} (checkpoint "
                        f"{decision.checkpoint_id} at {self._begin.restored_from}); start from another snapshot with "
                        "resume_from=PATH (--from PATH)"
                    ) from error
                except ActorflowError as error:
                    error.add_note(f"while restoring operator {operator!r}, subtask {actor.id.subtask}")
                    raise
                for (state, redistribution), elements in lists.items():
                    entries += len(elements)
                    self._hand_out(actor, operator, state, redistribution, elements)
            actor.restored_finished = decision.of(actor.operators[0], actor.id.subtask).finished
            actor.chain.on_restored(decision.checkpoint_id)
            self._world.observer.announce(
                journal.ActorRestored(actor=str(actor.id), checkpoint=decision.checkpoint_id, entries=entries)
            )
        self._elements.clear()

    async def _keyed(self, actor: Actor, operator: str, handle: Handle, only: range | None) -> int:
        assert self._begin.reader is not None
        pieces = [piece async for piece in self._begin.reader.pieces(handle)]
        keep = None if only is None else OwnedKeys(only, self._groups_of(actor))
        entries = 0
        try:
            async for count in self._duty.slices(actor.backend.restore(operator, pieces, keep=keep)):
                entries += count
        except CorruptObject as error:
            raise CorruptObject(f"{self._begin.reader.name_of(handle)}: {error}") from error
        return entries

    async def _list(self, actor: Actor, piece: ListPiece) -> list[Any]:
        assert self._begin.reader is not None
        encoded = self._elements.get(piece.handle)
        if encoded is None:
            data = await self._begin.reader.whole(piece.handle)
            encoded = self._elements[piece.handle] = decode_elements(self._codec, data)
        elements = [self._codec.decode(element) for element in encoded[piece.start : piece.stop]]
        if piece.only is not None:
            groups = self._groups_of(actor)
            elements = [element for element in elements if key_group((element[0],), groups) in piece.only]
        return elements

    def _groups_of(self, actor: Actor) -> int:
        assert self._decision is not None
        return self._decision.max_parallelism[actor.id.operator]

    def _subtasks_of(self, operator: str) -> tuple[SubtaskPlan, ...]:
        assert self._decision is not None
        return self._decision.operators[operator].subtasks

    def _hand_out(
        self, actor: Actor, operator: str, state: str, redistribution: Redistribution, elements: list[Any]
    ) -> None:
        match state:
            case _ if state == SPLITS:
                assert actor.reader is not None
                takers = [part.subtask for part in self._subtasks_of(operator) if not part.finished]
                actor.reader.restore_union(elements, takers)
            case _ if state == IN_FLIGHT:
                assert actor.lane is not None
                actor.lane.restore(elements)
            case _ if state == COMMITTABLES:
                actor.restored_committables.extend(elements)
            case _:
                actor.chain.restore_lists(operator, state, elements, redistribution)


def _shapes(plan: Plan) -> list[OperatorShape]:
    shapes = []
    for vertex in plan.vertices:
        feeding = tuple(plan.vertices[plan.exchanges[index].upstream].operators[-1].name for index in vertex.inputs)
        for position, operator in enumerate(vertex.operators):
            lists = dict(operator.lists)
            match operator:
                case Read():
                    lists[SPLITS] = Redistribution.UNION
                case Call(keyed=keyed):
                    lists[IN_FLIGHT] = Redistribution.KEYED if keyed else Redistribution.SPLIT
                case Write():
                    lists[COMMITTABLES] = Redistribution.SPLIT
            shapes.append(
                OperatorShape(
                    name=operator.name,
                    vertex=vertex.name,
                    parallelism=vertex.parallelism,
                    max_parallelism=vertex.max_parallelism,
                    max_parallelism_is_set=not vertex.derives_max_parallelism,
                    emits_at_end=_emits_at_end(operator),
                    states=dict(operator.states),
                    lists=lists,
                    upstream=feeding if position == 0 else (vertex.operators[position - 1].name,),
                )
            )
    return shapes


def _emits_at_end(operator: Operator) -> bool:
    """Whether the end of its input may make an operator emit: only a class that says what happens then can."""
    return any(
        isinstance(one, type)
        and issubclass(one, BaseOperator)
        and one.on_end_of_input is not BaseOperator.on_end_of_input
        for one in operator.annotated
    )
