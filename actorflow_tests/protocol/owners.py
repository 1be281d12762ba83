"""Owners that share one home, in every order: the walk that tests fencing.

``Walk`` holds a simulated home and some owners, each a real machine.  One step lets one owner do one operation on
storage and tells it the answer; any owner may be the next, or none ever again, so every reachable state is also one in
which those that have not come to their end stopped for good.  What a step does depends on the owner and the home alone,
so it is computed once for each pair, and owners in the same state are the same: that keeps four owners in every order
short.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

from actorflow.protocol.fencing import (
    AbortCheckpoint,
    AlreadyFinished,
    Answer,
    BaseRead,
    BaseWritten,
    CheckpointReady,
    ClaimAnswered,
    ClaimRead,
    CommitPermit,
    Effect,
    Ended,
    Event,
    Fencing,
    HomeListed,
    ListHome,
    ListOwners,
    ManifestAnswered,
    ManifestRead,
    MarkFinished,
    OwnersListed,
    Permit,
    PutManifest,
    ReadBase,
    ReadClaim,
    ReadManifest,
    Restore,
    SetFinishedAside,
    StandDown,
    Started,
    Sweep,
    WriteBase,
    WriteClaim,
)
from actorflow.protocol.fencing_steps import Idle, Phase, Running
from actorflow.protocol.ownership import Base, Claim, FromCheckpoint, FromNothing, Latest, Told
from actorflow_tests.protocol.walking import Edges

__all__ = ("Home", "Owner", "Walk", "owner", "the_permit")

# ── the simulated home ───────────────────────────────────────────────────────────────────────

Trail = dict[tuple[int, ...], tuple[int, ...]]  # each state, by the numbers of its parts, and the one before
Cut = tuple[int, int]  # a checkpoint: its id and the generation that took it


class Home(NamedTuple):
    """What is in storage, and what the walk remembers in order to judge."""

    claims: tuple[tuple[int, Claim], ...] = ()
    bases: tuple[tuple[int, Base], ...] = ()
    manifests: tuple[Cut, ...] = ()
    finished: bool = False
    in_the_air: tuple[Any, ...] = ()
    """Effects whose answer was lost and that may still be carried out, with the generation that asked."""

    parents: tuple[tuple[Cut, Cut | None], ...] = ()
    """From which checkpoint's state each one was made, those that never completed included."""
    permitted: tuple[Cut, ...] = ()
    """What was ever permitted on the line that runs."""
    newest_run: tuple[int, Cut | None] = (0, None)
    """The newest generation that ran, and where it started."""
    line: int = 0
    begun_anew: tuple[int, ...] = ()
    """The lines that began because somebody was told so, and not because there was nothing."""

    def up_to(self, cut: Cut | None) -> set[Cut]:
        """A checkpoint and all that it descends from."""
        parents, found = dict(self.parents), set()
        while cut is not None:
            found.add(cut)
            cut = parents.get(cut)
        return found

    def restored(self, base: Base) -> Home:
        """An owner runs."""
        start = (base.start.checkpoint_id, base.start.generation) if isinstance(base.start, FromCheckpoint) else None
        if base.line in self.begun_anew and base.line > self.line:
            return self._replace(newest_run=(base.generation, None), line=base.line, permitted=())
        assert start is None or start in self.manifests, f"{start} is to be restored and was deleted"
        assert set(self.permitted) <= self.up_to(start), f"{start} is restored and forgets {self.permitted}"
        generation, newest_start = max(self.newest_run, (base.generation, start), key=lambda run: run[0])
        line = base.line if base.generation == generation else self.line
        return self._replace(newest_run=(generation, newest_start), line=line)

    def permit(self, cut: Cut, by_generation: int, line: int) -> Home:
        """An owner may commit."""
        assert line == self.line, f"{cut} is permitted on a line that was left"
        for other in self.permitted:
            assert other in self.up_to(cut) or cut in self.up_to(other), f"{cut} and {other}: output doubles"
        generation, start = self.newest_run
        assert by_generation >= generation or cut in self.up_to(start), f"{cut} is permitted; {start} runs without it"
        return self._replace(permitted=tuple(sorted({*self.permitted, cut})))


class Owner(NamedTuple):
    """One process: its machine taken apart, the operations that it is about to do, and what it has in mind."""

    told: Told
    phase: Phase
    process: str = "p"
    claims: tuple[int, ...] = ()
    attempted: tuple[Claim, ...] = ()
    queue: tuple[Any, ...] = ()
    head: Cut | None = None
    next_id: int = 0
    checkpoints: int = 0
    restarts: int = 0
    losses: int = 0
    ends: bool = False


@dataclass(frozen=True, slots=True)
class Subsume:
    """An older checkpoint is deleted after a newer one completed."""

    cut: Cut


@dataclass(frozen=True, slots=True)
class LeaveEmpty:
    """An aborted checkpoint keeps its id."""

    checkpoint_id: int


AT_ONCE = (WriteClaim, ReadBase, ReadManifest, PutManifest)
"""What follows at once on the step before, unless a walk goes ``in_steps``: no other order would end differently."""

GONE = None
EMPTY = 0
"""The generation of an empty manifest."""


class Walk:
    """All orders of what some owners do."""

    def __init__(
        self,
        *owners: Owner,
        kind: type[Fencing] = Fencing,
        in_steps: bool = False,
        deletes: bool = False,
        edges: Edges | None = None,
    ) -> None:
        """``in_steps``: looking at the home is many steps, not one.  ``deletes``: subsumed and dead objects go."""
        self.kind, self.in_steps, self.deletes = kind, in_steps, deletes
        self.edges = Edges() if edges is None else edges
        self.owners = owners
        self._numbers: dict[Any, int] = {}
        self._values: list[Any] = []

    # one step

    def feed(self, owner: Owner, event: Event) -> tuple[Owner, list[Effect]]:
        machine = self.kind(owner.told, host="h", process=owner.process)
        machine.phase, machine._claims, machine._attempted = owner.phase, owner.claims, owner.attempted
        effects = self.edges.step(machine, event)
        return owner._replace(phase=machine.phase, claims=machine._claims, attempted=machine._attempted), effects

    def steps(self, owner: Owner, home: Home) -> Iterator[tuple[Owner | None, Home]]:
        """What one owner may do next, and what came of it."""
        if owner.restarts:
            started, effects = self.feed(owner._replace(restarts=owner.restarts - 1), Started(owner.restarts))
            yield from self._then(started._replace(queue=()), home, effects)
        yield from self._works(owner, home)

    def _works(self, owner: Owner, home: Home) -> Iterator[tuple[Owner | None, Home]]:
        if owner.queue:
            effect, rest = owner.queue[0], owner._replace(queue=owner.queue[1:])
            for event, changed, after in self._carry_out(rest, home, effect):
                if event is GONE:
                    yield from self._dies(after, changed)
                elif event == ():
                    yield self._settled(after), changed
                else:
                    fed, effects = self.feed(after, event)
                    yield from self._then(fed, changed, effects)
        elif isinstance(owner.phase, Running) and owner.checkpoints:
            fed, effects = self.feed(owner, CheckpointReady(owner.next_id))
            cut = (owner.next_id, owner.claims[-1])
            fed = fed._replace(next_id=owner.next_id + 1, checkpoints=owner.checkpoints - 1, head=cut)
            parents = tuple(sorted((*home.parents, (cut, owner.head)), key=lambda pair: pair[0]))
            yield from self._then(fed, home._replace(parents=parents), effects)
        elif isinstance(owner.phase, Running) and owner.ends:
            fed, effects = self.feed(owner._replace(ends=False), Ended(finished=True, next_id=owner.next_id))
            yield from self._then(fed, home, effects)

    def _settled(self, owner: Owner) -> Owner | None:
        is_busy = (
            owner.queue or owner.restarts or ((owner.checkpoints or owner.ends) and isinstance(owner.phase, Running))
        )
        return owner if is_busy else GONE

    def _dies(self, owner: Owner, home: Home) -> Iterator[tuple[Owner | None, Home]]:
        """The attempt failed: nothing more comes, unless the process restarts it."""
        yield self._settled(owner._replace(queue=(), checkpoints=0 if not owner.restarts else owner.checkpoints)), home

    def _then(self, owner: Owner, home: Home, effects: list[Effect]) -> Iterator[tuple[Owner | None, Home]]:
        """Note what an owner decided; what needs storage comes in later steps."""
        queue = list(owner.queue)
        for effect in effects:
            match effect:
                case Restore(base, permit):
                    start = base.start
                    head = (start.checkpoint_id, start.generation) if isinstance(start, FromCheckpoint) else None
                    owner = owner._replace(head=head, next_id=base.next_id)
                    home = home.restored(base)
                    if permit is not None and head is not None:
                        assert permit == the_permit(head[0], base.generation)
                        home = home.permit(head, base.generation, base.line)
                case Permit(permit):
                    assert isinstance(owner.phase, Running)
                    cut = (permit.checkpoint_id, permit.generation)
                    before = home.permitted
                    home = home.permit(cut, permit.generation, owner.phase.base.line)
                    queue += [Subsume(old) for old in before if self.deletes and old != cut]
                case AbortCheckpoint(checkpoint_id):
                    owner = owner._replace(checkpoints=owner.checkpoints + 1)
                    queue += [LeaveEmpty(checkpoint_id)] if self.deletes else []
                case StandDown():
                    yield GONE, home
                    return
                case Sweep() if not self.deletes:
                    pass
                case AlreadyFinished():
                    pass
                case _:
                    queue.append(effect)
        owner = owner._replace(queue=tuple(queue))
        if not self.in_steps and owner.queue and isinstance(owner.queue[0], AT_ONCE):
            yield from self._works(owner, home)
        else:
            yield self._settled(owner), home

    def _carry_out(self, owner: Owner, home: Home, effect: Any) -> Iterator[tuple[Any, Home, Owner]]:
        """What storage answers.  An event of ``GONE`` is an error that ends the attempt, ``()`` is no event at all."""
        match effect:
            case ListOwners():
                yield OwnersListed(tuple(generation for generation, _ in home.claims)), home, owner
            case ReadClaim(generation):
                yield ClaimRead(dict(home.claims).get(generation)), home, owner
            case ListHome():
                ids = tuple(sorted({number for number, _ in home.manifests}))
                full = tuple(number for number, generation in home.manifests if generation != EMPTY)
                bases = tuple(generation for generation, _ in home.bases)
                listed = HomeListed(bases=bases, checkpoints=ids, manifests=full, finished=home.finished)
                yield listed, home, owner
            case ReadBase(generation):
                base = dict(home.bases).get(generation)
                yield (GONE if base is None else BaseRead(base)), home, owner
            case ReadManifest(checkpoint_id):
                yield ManifestRead(checkpoint_id, dict(home.manifests).get(checkpoint_id)), home, owner
            case WriteClaim():
                yield from self._put(owner, home, effect, ClaimAnswered)
            case PutManifest(checkpoint_id):
                yield from self._put(owner, home, effect, lambda answer: ManifestAnswered(checkpoint_id, answer))
            case WriteBase(base):
                if base.line == base.generation and not isinstance(owner.told, Latest):
                    home = home._replace(begun_anew=tuple(sorted({*home.begun_anew, base.line})))
                yield BaseWritten(), self.land(home, effect, owner.claims[-1]), owner
                if owner.losses:
                    lost = owner._replace(losses=owner.losses - 1)
                    yield GONE, self._in_the_air(home, effect, owner), lost
            case Subsume(cut):
                yield (), home._replace(manifests=tuple(kept for kept in home.manifests if kept != cut)), owner
            case Sweep(generation=generation, below=below, keep=keep):
                yield (), swept(home, generation, below, keep), owner
            case _:
                yield (), self.land(home, effect, owner.claims[-1]), owner

    def _put(
        self, owner: Owner, home: Home, effect: Any, answered: Callable[[Answer], Any]
    ) -> Iterator[tuple[Any, Home, Owner]]:
        landed = self.land(home, effect, owner.claims[-1] if owner.claims else 0)
        yield answered(Answer.TAKEN if landed == home else Answer.WRITTEN), landed, owner
        if owner.losses:
            lost = owner._replace(losses=owner.losses - 1)
            yield answered(Answer.LOST), landed, lost
            yield answered(Answer.LOST), self._in_the_air(home, effect, owner), lost

    def _in_the_air(self, home: Home, effect: Any, owner: Owner) -> Home:
        flying = (effect, owner.claims[-1] if owner.claims else 0)
        return home._replace(in_the_air=(*home.in_the_air, flying))

    def land(self, home: Home, effect: Any, generation: int) -> Home:
        """Carry a write out; the home stays the same where the name was taken."""
        match effect:
            case WriteClaim(claim) if claim.generation not in dict(home.claims):
                return home._replace(claims=tuple(sorted((*home.claims, (claim.generation, claim)), key=first)))
            case WriteBase(base):
                bases = {**dict(home.bases), base.generation: base}
                return home._replace(bases=tuple(sorted(bases.items(), key=first)))
            case PutManifest(number) if number not in dict(home.manifests):
                return home._replace(manifests=tuple(sorted((*home.manifests, (number, generation)))))
            case LeaveEmpty(number) if number not in dict(home.manifests):
                return home._replace(manifests=tuple(sorted((*home.manifests, (number, EMPTY)))))
            case MarkFinished() | SetFinishedAside():
                return home._replace(finished=isinstance(effect, MarkFinished))
        return home

    # all of them

    def run(self, at_most: int = 400_000) -> int:
        """Take every step in every order; return how many states there were."""
        owners = [self._number(self._born(owner)) for owner in self.owners]
        gone, beginning = self._number(GONE), (self._number(Home()), *sorted(owners))
        came_from: Trail = {beginning: ()}
        open_states, memory = deque([beginning]), dict[tuple[int, int], list[tuple[int, int]]]()
        landings = dict[int, list[int]]()
        while open_states:
            state = open_states.popleft()
            home, *owners = state
            following: list[tuple[int, ...]] = []
            for place, owner in enumerate(owners):
                if owner == gone or owner in owners[:place]:
                    continue
                if (owner, home) not in memory:
                    memory[owner, home] = self._numbered(owner, home, came_from, state)
                others = owners[:place] + owners[place + 1 :]
                following += [(changed, *sorted((*others, after))) for after, changed in memory[owner, home]]
            if home not in landings:
                landings[home] = [self._number(changed) for changed in self._landings(self._values[home])]
            following += [(changed, *owners) for changed in landings[home]]
            for after in following:
                if after not in came_from:
                    came_from[after] = state
                    assert len(came_from) <= at_most, f"more than {at_most} states: make the world smaller"
                    open_states.append(after)
        return len(came_from)

    def _numbered(self, owner: int, home: int, came_from: Trail, state: tuple[int, ...]) -> list[tuple[int, int]]:
        """All that may come of a step, or how it came to a step that is wrong."""
        try:
            steps = list(self.steps(self._values[owner], self._values[home]))
        except AssertionError as error:
            error.add_note(f"{self._trail(came_from, state)}\nand now {self._values[owner]}")
            raise
        return [(self._number(after), self._number(changed)) for after, changed in steps]

    def _trail(self, came_from: Trail, state: tuple[int, ...]) -> str:
        lines = list[str]()
        while state:
            before = came_from[state]
            changed = [self._values[number] for number in state[1:] if number not in before]
            lines += [str(one.phase) if isinstance(one, Owner) else "gone" for one in changed]
            state = before
        return "the owners went through\n    " + "\n    ".join(lines[::-1])

    def _landings(self, home: Home) -> Iterator[Home]:
        for place, (effect, generation) in enumerate(home.in_the_air):
            rest = home._replace(in_the_air=home.in_the_air[:place] + home.in_the_air[place + 1 :])
            yield self.land(rest, effect, generation)

    def _born(self, owner: Owner) -> Owner:
        started, effects = self.feed(owner, Started(0))
        return started._replace(queue=tuple(effects))

    def _number(self, value: Any) -> int:
        number = self._numbers.get(value)
        if number is None:
            number = self._numbers[value] = len(self._values)
            self._values.append(value)
        return number


def first(pair: tuple[int, Any]) -> int:
    return pair[0]


def swept(home: Home, generation: int, below: int, keep: tuple[int, ...]) -> Home:
    return home._replace(
        claims=tuple(pair for pair in home.claims if pair[0] >= generation),
        bases=tuple(pair for pair in home.bases if pair[0] >= generation),
        manifests=tuple(cut for cut in home.manifests if cut[0] >= below or cut[0] in keep),
    )


def owner(told: Told | None = None, **more: Any) -> Owner:
    return Owner(told or Latest(), Idle(), **{"checkpoints": 2, **more})


def the_permit(checkpoint_id: int, generation: int) -> CommitPermit:
    """A permit, as a machine gives it."""
    fencing = Fencing(Latest(), host="h", process="p")
    fencing._claims = (generation,)
    base = Base(generation=generation, start=FromNothing(), next_id=checkpoint_id, line=generation)
    fencing.phase = Running(base, checkpoint_id - 1, checkpoint_id, (), (), (checkpoint_id,))
    [effect] = fencing.on(OwnersListed((generation,)))
    assert isinstance(effect, Permit)
    return effect.permit
