"""Who receives which state when a snapshot is restored, at whatever parallelism?

All facts at once, one decision: a plan for every subtask, or a refusal that tells everything that does not fit
(``compatibility.py``), before any record is processed.

*Keyed state* goes by key group.  The new owner of a range reads the old pieces that overlap it, and filters those that
hold more.  The number of key groups comes from the snapshot, because state filed under another number would not be
found.  *List state* goes element by element, as its redistribution says (semantics 5.4).  At the same parallelism each
subtask gets exactly its own back.

*Finished subtasks* stay finished at the same parallelism, and where all of them had finished.  Where only some had and
the parallelism changed, all new subtasks count as unfinished and what the old ones held is dealt out to them, which is
right as long as the end of the input does not make the operator emit something once more; then it is refused.

Pure: it reads a manifest and names handles, it opens none.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from actorflow.errors import IncompatibleState
from actorflow.model.handles import Handle
from actorflow.model.key_groups import SCHEME, range_of
from actorflow.model.manifest import ListHandle, Manifest, OperatorSnapshot, Redistribution
from actorflow.protocol.compatibility import OperatorShape, finished_after, has_state, key_groups_of, misfits

__all__ = ("KeyedPiece", "ListPiece", "OperatorPlan", "OperatorShape", "RestorePlan", "SubtaskPlan", "plan_restore")


@dataclass(frozen=True, slots=True)
class KeyedPiece:
    """Read this handle; keep only keys of ``only`` where it is given."""

    handle: Handle
    subtask: int
    only: range | None = None


@dataclass(frozen=True, slots=True)
class ListPiece:
    """Read elements ``start`` to ``stop`` of a list that ``subtask`` wrote; keep only keys of ``only`` where given."""

    state: str
    redistribution: Redistribution
    handle: Handle
    subtask: int
    start: int
    stop: int
    only: range | None = None


@dataclass(frozen=True, slots=True)
class SubtaskPlan:
    """What one new subtask receives.  ``finished``: its ``finish()`` ran before the snapshot and runs no more."""

    subtask: int
    finished: bool = False
    keyed: tuple[KeyedPiece, ...] = ()
    lists: tuple[ListPiece, ...] = ()


@dataclass(frozen=True, slots=True)
class OperatorPlan:
    """What the subtasks of one operator receive.

    ``dropped`` are keyed states that the pieces may hold and that nobody declares any more; they are dropped only where
    that was allowed.
    """

    operator: str
    subtasks: tuple[SubtaskPlan, ...]
    dropped: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class RestorePlan:
    """What everybody receives.  ``max_parallelism`` holds the number of key groups of each chain, from now on."""

    checkpoint_id: int
    operators: dict[str, OperatorPlan]
    max_parallelism: dict[str, int]
    unclaimed: tuple[str, ...] = ()
    """The operators whose state nobody claims; it is left out because that was allowed."""

    def of(self, operator: str, subtask: int) -> SubtaskPlan:
        """What one subtask receives; nothing where the operator is new."""
        plan = self.operators.get(operator)
        return SubtaskPlan(subtask) if plan is None else plan.subtasks[subtask]


def plan_restore(
    manifest: Manifest,
    operators: Sequence[OperatorShape],
    *,
    job: str | None,
    allow_unclaimed: bool = False,
    key_scheme: str = SCHEME,
) -> RestorePlan:
    """Decide who receives what.

    ``job`` is the name that the manifest must carry; ``None`` where a path named the snapshot, which may be any job's.
    Raises ``IncompatibleState`` with one sentence for everything that does not fit.
    """
    name = f"checkpoint {manifest.checkpoint_id} of job {manifest.job!r}"
    if job is not None and manifest.job != job:
        raise IncompatibleState(
            f"{name} is not of job {job!r}: give the other job its own storage or name, or start from this snapshot by "
            f"its path (--from)"
        )
    if manifest.key_scheme != key_scheme:
        raise IncompatibleState(
            f"{name} files its keys by {manifest.key_scheme!r} and this version by {key_scheme!r}: restore it with a "
            f"version that knows {manifest.key_scheme!r}"
        )
    if problems := misfits(manifest, operators, allow_unclaimed=allow_unclaimed):
        raise IncompatibleState(f"{name} does not fit this job:\n" + "\n".join(f"* {problem}" for problem in problems))
    restored = {snapshot.operator: snapshot for snapshot in manifest.operators}
    claimed = {shape.name for shape in operators}
    groups = key_groups_of(manifest, operators)
    return RestorePlan(
        manifest.checkpoint_id,
        {
            shape.name: _deal(shape, restored[shape.name], groups[shape.vertex])
            for shape in operators
            if shape.name in restored
        },
        groups,
        tuple(operator for operator, snapshot in restored.items() if operator not in claimed and has_state(snapshot)),
    )


# ── who receives what ────────────────────────────────────────────────────────────────────────


def _deal(shape: OperatorShape, snapshot: OperatorSnapshot, groups: int) -> OperatorPlan:
    finished = finished_after(shape, snapshot)
    keyed = _deal_keyed(shape, snapshot)
    lists = _deal_lists(shape, snapshot, groups)
    return OperatorPlan(
        shape.name,
        tuple(
            SubtaskPlan(subtask, finished[subtask], tuple(keyed[subtask]), tuple(lists[subtask]))
            for subtask in range(shape.parallelism)
        ),
        tuple(sorted(state for state in snapshot.states if state not in shape.states)),
    )


def _deal_keyed(shape: OperatorShape, snapshot: OperatorSnapshot) -> list[list[KeyedPiece]]:
    dealt: list[list[KeyedPiece]] = [[] for _ in range(shape.parallelism)]
    for one in sorted(snapshot.subtasks, key=lambda one: one.subtask):
        if shape.parallelism == snapshot.parallelism:
            dealt[one.subtask] += [KeyedPiece(handle, one.subtask) for handle in one.keyed]
            continue
        held = range_of(one.subtask, snapshot.parallelism, snapshot.max_parallelism)
        for subtask in range(shape.parallelism):
            owned = range_of(subtask, shape.parallelism, snapshot.max_parallelism)
            if held.start < owned.stop and owned.start < held.stop:
                is_all = owned.start <= held.start and held.stop <= owned.stop
                only = None if is_all else owned
                dealt[subtask] += [KeyedPiece(handle, one.subtask, only) for handle in one.keyed]
    return dealt


def _deal_lists(shape: OperatorShape, snapshot: OperatorSnapshot, groups: int) -> list[list[ListPiece]]:
    dealt: list[list[ListPiece]] = [[] for _ in range(shape.parallelism)]
    copies: dict[str, list[tuple[int, ListHandle]]] = {}
    for one in sorted(snapshot.subtasks, key=lambda one: one.subtask):
        for held in one.lists:
            if held.state in shape.lists and held.count:
                copies.setdefault(held.state, []).append((one.subtask, held))
    same = shape.parallelism == snapshot.parallelism
    first = 0  # who receives the first chunk; goes round from name to name, so that remainders even out
    for state in sorted(copies):
        held_by = copies[state]
        match shape.lists[state]:
            case Redistribution.UNION:
                for pieces in dealt:
                    pieces += [_whole(subtask, held) for subtask, held in held_by]
            case Redistribution.BROADCAST:
                by_subtask = dict(held_by)
                for subtask, pieces in enumerate(dealt):
                    wanted = subtask % snapshot.parallelism
                    source = wanted if wanted in by_subtask else held_by[0][0]  # all copies are the same
                    pieces.append(_whole(source, by_subtask[source]))
            case Redistribution.KEYED if not same or groups != snapshot.max_parallelism:
                for subtask, pieces in enumerate(dealt):
                    only = range_of(subtask, shape.parallelism, groups)
                    pieces += [_whole(source, held, only) for source, held in held_by]
            case Redistribution.SPLIT if not same:
                first = _split(dealt, held_by, first)
            case _:
                for subtask, held in held_by:
                    dealt[subtask].append(_whole(subtask, held))
    return dealt


def _whole(subtask: int, held: ListHandle, only: range | None = None) -> ListPiece:
    return ListPiece(held.state, held.redistribution, held.handle, subtask, 0, held.count, only)


def _split(dealt: list[list[ListPiece]], held_by: Sequence[tuple[int, ListHandle]], first: int) -> int:
    """Deal out all elements of one state in contiguous chunks, the remainder to the first ones; return who is next."""
    share, remainder = divmod(sum(held.count for _, held in held_by), len(dealt))
    wanted = [((first + turn) % len(dealt), share + (turn < remainder)) for turn in range(len(dealt))]
    receivers = iter(wanted)
    receiver, room = next(receivers)
    for subtask, held in held_by:
        start = 0
        while start < held.count:
            while not room:
                receiver, room = next(receivers)
            stop = min(held.count, start + room)
            dealt[receiver].append(ListPiece(held.state, held.redistribution, held.handle, subtask, start, stop))
            room -= stop - start
            start = stop
    return (first + remainder) % len(dealt)
