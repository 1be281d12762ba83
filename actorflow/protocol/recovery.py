"""Who receives which state when a snapshot is restored, at whatever parallelism?

All facts at once, one decision: a plan for every subtask, or a refusal that tells everything that does not fit, before
any record is processed.

*Keyed state* goes by key group.  The new owner of a range reads the old pieces that overlap it, and filters those that
hold more.  The number of key groups comes from the snapshot, because state filed under another number would not be
found.  *List state* goes element by element, as its redistribution says (semantics 5.4).  At the same parallelism each
subtask gets exactly its own back.

*Finished subtasks* stay finished at the same parallelism, and where all of them had finished.  Where only some had and
the parallelism changed, all new subtasks count as unfinished and what the old ones held is dealt out to them, which is
right as long as the end of the input does not make the operator emit something once more; then it is refused.

Nothing is dropped in silence.  Pure: it reads a manifest and names handles, it opens none.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from actorflow.errors import IncompatibleState
from actorflow.model.handles import Handle
from actorflow.model.key_groups import SCHEME, range_of
from actorflow.model.manifest import ListHandle, Manifest, OperatorSnapshot, Redistribution

__all__ = ("KeyedPiece", "ListPiece", "OperatorPlan", "OperatorShape", "RestorePlan", "SubtaskPlan", "plan_restore")


@dataclass(frozen=True, slots=True, kw_only=True)
class OperatorShape:
    """What recovery has to know about an operator of the new plan.

    ``vertex`` is the name of the chain that it runs in.  ``max_parallelism_is_set`` says that the user asked for this
    number of key groups.  ``states`` maps each declared keyed state to its kind, ``lists`` each list state to how it is
    dealt out.  ``emits_at_end`` says that the end of its input makes it emit.  ``upstream`` are the operators that feed
    its chain, where it is the first of one.
    """

    name: str
    vertex: str
    parallelism: int
    max_parallelism: int
    max_parallelism_is_set: bool
    emits_at_end: bool
    states: Mapping[str, str] = field(default_factory=dict)
    lists: Mapping[str, Redistribution] = field(default_factory=dict)
    upstream: tuple[str, ...] = ()


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
    restored = {snapshot.operator: snapshot for snapshot in manifest.operators}
    problems = [problem for snapshot in manifest.operators for problem in _malformed(snapshot)]
    if not problems:
        problems = [
            *_unclaimed(restored, operators, allow_unclaimed=allow_unclaimed),
            *(
                problem
                for shape in operators
                if shape.name in restored
                for problem in _misfits(shape, restored[shape.name], allow_unclaimed=allow_unclaimed)
            ),
            *_ends_that_differ(restored, operators),
        ]
    groups: dict[str, int] = {}
    if not problems:
        problems = [*_agree_on_groups(restored, operators, groups)]
    if problems:
        raise IncompatibleState(f"{name} does not fit this job:\n" + "\n".join(f"* {problem}" for problem in problems))
    claimed = {shape.name for shape in operators}
    return RestorePlan(
        manifest.checkpoint_id,
        {
            shape.name: _deal(shape, restored[shape.name], groups[shape.vertex])
            for shape in operators
            if shape.name in restored
        },
        groups,
        tuple(operator for operator, snapshot in restored.items() if operator not in claimed and _has_state(snapshot)),
    )


# ── what does not fit ────────────────────────────────────────────────────────────────────────


def _malformed(snapshot: OperatorSnapshot) -> Iterator[str]:
    numbers = [one.subtask for one in snapshot.subtasks]
    if sorted(numbers) != list(range(snapshot.parallelism)):
        yield (
            f"operator {snapshot.operator!r} ran with parallelism {snapshot.parallelism}, but the manifest has "
            f"subtasks {numbers}: it is damaged, start from another checkpoint (--from)"
        )
    if not 1 <= snapshot.parallelism <= snapshot.max_parallelism:
        yield (
            f"operator {snapshot.operator!r} has parallelism {snapshot.parallelism} and max_parallelism "
            f"{snapshot.max_parallelism} in the manifest: it is damaged, start from another checkpoint (--from)"
        )


def _is_keyed(snapshot: OperatorSnapshot) -> bool:
    return bool(snapshot.states) or any(one.keyed for one in snapshot.subtasks)


def _has_state(snapshot: OperatorSnapshot) -> bool:
    return _is_keyed(snapshot) or any(held.count for one in snapshot.subtasks for held in one.lists)


_ALLOW = "allow it (execution.state-recovery.ignore-unclaimed-state) to drop it"
_RENAME = "give the new one another name"


def _unclaimed(
    restored: Mapping[str, OperatorSnapshot], operators: Sequence[OperatorShape], *, allow_unclaimed: bool
) -> Iterator[str]:
    claimed = {shape.name for shape in operators}
    if allow_unclaimed:
        return
    for operator, snapshot in restored.items():
        if operator not in claimed and _has_state(snapshot):
            yield (
                f"there is state of operator {operator!r}, which this job does not have: give an operator that name, "
                f"or {_ALLOW}"
            )


def _misfits(shape: OperatorShape, snapshot: OperatorSnapshot, *, allow_unclaimed: bool) -> Iterator[str]:
    yield from _groups_that_differ(shape, snapshot)
    stored = {state: f"a keyed {kind} state" for state, kind in snapshot.states.items()}
    stored |= {state: f"a list dealt out by {how}" for state, how in _stored_lists(snapshot).items()}
    now = {state: f"a keyed {kind} state" for state, kind in shape.states.items()}
    now |= {state: f"a list dealt out by {redistribution}" for state, redistribution in shape.lists.items()}
    for state in stored:
        where = f"operator {shape.name!r}, state {state!r}"
        if state in now and now[state] != stored[state]:
            yield f"{where}: it was {stored[state]} and is now {now[state]}; {_RENAME}"
        elif state not in now and not allow_unclaimed:
            yield f"{where}: it is not declared any more; declare it again, or {_ALLOW}"
    flags = _flags(snapshot)
    partly = any(flags) and not all(flags)
    if partly and shape.parallelism != snapshot.parallelism and shape.emits_at_end and _has_state(snapshot):
        ended = [subtask for subtask, finished in enumerate(flags) if finished]
        yield (
            f"operator {shape.name!r}: its subtasks {ended} had come to their end and emitted their last output, the "
            f"others had not; go on with parallelism {snapshot.parallelism}, not {shape.parallelism}"
        )


def _groups_that_differ(shape: OperatorShape, snapshot: OperatorSnapshot) -> Iterator[str]:
    if not _is_keyed(snapshot):
        return
    if shape.max_parallelism_is_set and shape.max_parallelism != snapshot.max_parallelism:
        yield (
            f"operator {shape.name!r}: its state is filed under {snapshot.max_parallelism} key groups, and "
            f"max_parallelism is now set to {shape.max_parallelism}; set {snapshot.max_parallelism}, or leave it out"
        )
    elif shape.parallelism > snapshot.max_parallelism:
        yield (
            f"operator {shape.name!r}: a parallelism of {shape.parallelism} is more than the max_parallelism of "
            f"{snapshot.max_parallelism} key groups that its state is filed under; {snapshot.max_parallelism} is the most"
        )


def _stored_lists(snapshot: OperatorSnapshot) -> dict[str, str]:
    """The list states that hold something, and how each was dealt out."""
    found: dict[str, str] = {}
    for one in snapshot.subtasks:
        for held in one.lists:
            if held.count:
                known = found.setdefault(held.state, str(held.redistribution))
                if known != held.redistribution:
                    found[held.state] = f"{known} and {held.redistribution}"
    return found


def _ends_that_differ(restored: Mapping[str, OperatorSnapshot], operators: Sequence[OperatorShape]) -> Iterator[str]:
    """A finished subtask takes no record any more, so whatever feeds it must have finished too."""
    after = {shape.name: _flags_after(shape, restored.get(shape.name)) for shape in operators}
    heads: dict[str, str] = {}
    for shape in operators:
        own = after[shape.name]
        head = heads.setdefault(shape.vertex, shape.name)
        if own != after[head]:
            yield (
                f"operators {head!r} and {shape.name!r} run in one chain, but not the same of their subtasks had "
                f"finished; let them run in chains of their own"
            )
        if not any(own):
            continue
        for upstream in shape.upstream:
            before = restored.get(upstream)
            unchanged = before is not None and before.parallelism == len(after[upstream])
            if all(after[upstream]) or (unchanged and not all(own)):
                continue  # the second: at the barrier, those that feed the finished ones had finished too
            what = "is new" if before is None else "had not" if all(own) else "has another parallelism now"
            yield (
                f"operator {shape.name!r} had finished, at least in part, and operator {upstream!r}, which feeds it, "
                f"{what}; leave that as it was, or start without state (--fresh)"
            )


def _flags(snapshot: OperatorSnapshot) -> tuple[bool, ...]:
    return tuple(one.finished for one in sorted(snapshot.subtasks, key=lambda one: one.subtask))


def _flags_after(shape: OperatorShape, snapshot: OperatorSnapshot | None) -> tuple[bool, ...]:
    """Which of the new subtasks have finished."""
    if snapshot is None:
        return (False,) * shape.parallelism
    flags = _flags(snapshot)
    return flags if shape.parallelism == snapshot.parallelism else (all(flags),) * shape.parallelism


def _agree_on_groups(
    restored: Mapping[str, OperatorSnapshot], operators: Sequence[OperatorShape], groups: dict[str, int]
) -> Iterator[str]:
    """One number of key groups for each chain: that of its keyed state, else what the plan says."""
    keyed: dict[str, OperatorShape] = {}
    for shape in operators:
        snapshot = restored.get(shape.name)
        groups.setdefault(shape.vertex, shape.max_parallelism)
        if snapshot is None or not _is_keyed(snapshot):
            continue
        first = keyed.setdefault(shape.vertex, shape)
        stored = restored[first.name].max_parallelism
        if stored != snapshot.max_parallelism:
            yield (
                f"operators {first.name!r} and {shape.name!r} run in one chain, but their state is filed under "
                f"{stored} and {snapshot.max_parallelism} key groups; let them run in chains of their own"
            )
        groups[shape.vertex] = stored


# ── who receives what ────────────────────────────────────────────────────────────────────────


def _deal(shape: OperatorShape, snapshot: OperatorSnapshot, groups: int) -> OperatorPlan:
    finished = _flags_after(shape, snapshot)
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
