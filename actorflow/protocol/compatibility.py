"""Does a snapshot fit this job?

Everything that does not fit is told at once, before any record is processed, each with the operator, the state and the
way out.  Key groups count only where there is keyed state: other state does not care how many there are.

Nothing is dropped in silence: state that nobody claims is a misfit unless dropping it was allowed.

Pure: it compares a manifest with the shapes of the new plan, and opens nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from actorflow.model.manifest import Manifest, OperatorSnapshot, Redistribution

__all__ = ("OperatorShape", "finished_after", "has_state", "key_groups_of", "misfits")

_ALLOW = "allow it (execution.state-recovery.ignore-unclaimed-state) to drop it"
_RENAME = "give the new one another name"


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


def misfits(manifest: Manifest, operators: Sequence[OperatorShape], *, allow_unclaimed: bool) -> list[str]:
    """One sentence for everything that does not fit."""
    restored = {snapshot.operator: snapshot for snapshot in manifest.operators}
    if problems := [problem for snapshot in manifest.operators for problem in _malformed(snapshot)]:
        return problems
    problems = list(_unclaimed(restored, operators, allow_unclaimed=allow_unclaimed))
    for shape in operators:
        if shape.name in restored:
            problems += _changes(shape, restored[shape.name], allow_unclaimed=allow_unclaimed)
    return [*problems, *_ends_that_differ(restored, operators), *_key_groups_that_differ(restored, operators)]


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


def has_state(snapshot: OperatorSnapshot) -> bool:
    """Whether anything would be lost without the operator."""
    return _is_keyed(snapshot) or any(held.count for one in snapshot.subtasks for held in one.lists)


def _unclaimed(
    restored: Mapping[str, OperatorSnapshot], operators: Sequence[OperatorShape], *, allow_unclaimed: bool
) -> Iterator[str]:
    claimed = {shape.name for shape in operators}
    if allow_unclaimed:
        return
    for operator, snapshot in restored.items():
        if operator not in claimed and has_state(snapshot):
            yield (
                f"there is state of operator {operator!r}, which this job does not have: give an operator that name, "
                f"or {_ALLOW}"
            )


def _changes(shape: OperatorShape, snapshot: OperatorSnapshot, *, allow_unclaimed: bool) -> Iterator[str]:
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
    if partly and shape.parallelism != snapshot.parallelism and shape.emits_at_end and has_state(snapshot):
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
            f"operator {shape.name!r}: its state is filed under {snapshot.max_parallelism} key groups "
            f"(max_parallelism), so {snapshot.max_parallelism} subtasks are the most, "
            f"and parallelism is {shape.parallelism}; lower it"
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


# ── subtasks that had finished ───────────────────────────────────────────────────────────────


def _ends_that_differ(restored: Mapping[str, OperatorSnapshot], operators: Sequence[OperatorShape]) -> Iterator[str]:
    """A finished subtask takes no record any more, so whatever feeds it must have finished too."""
    after = {shape.name: finished_after(shape, restored.get(shape.name)) for shape in operators}
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


def finished_after(shape: OperatorShape, snapshot: OperatorSnapshot | None) -> tuple[bool, ...]:
    """Which of the new subtasks have finished."""
    if snapshot is None:
        return (False,) * shape.parallelism
    flags = _flags(snapshot)
    return flags if shape.parallelism == snapshot.parallelism else (all(flags),) * shape.parallelism


# ── key groups ───────────────────────────────────────────────────────────────────────────────


def _key_groups_that_differ(
    restored: Mapping[str, OperatorSnapshot], operators: Sequence[OperatorShape]
) -> Iterator[str]:
    """All keyed state of one chain is filed under one number of key groups."""
    first: dict[str, OperatorShape] = {}
    for shape in operators:
        snapshot = restored.get(shape.name)
        if snapshot is None or not _is_keyed(snapshot):
            continue
        other = first.setdefault(shape.vertex, shape)
        groups = restored[other.name].max_parallelism
        if groups != snapshot.max_parallelism:
            yield (
                f"operators {other.name!r} and {shape.name!r} run in one chain, but their state is filed under "
                f"{groups} and {snapshot.max_parallelism} key groups; let them run in chains of their own"
            )


def key_groups_of(manifest: Manifest, operators: Sequence[OperatorShape]) -> dict[str, int]:
    """How many key groups each chain has from now on: those of its keyed state, else what the plan says."""
    restored = {snapshot.operator: snapshot for snapshot in manifest.operators if _is_keyed(snapshot)}
    groups = {shape.vertex: shape.max_parallelism for shape in operators}
    groups |= {shape.vertex: restored[shape.name].max_parallelism for shape in operators if shape.name in restored}
    return groups
