"""May this attempt still publish and commit?

Whoever starts a job on a home becomes its owner by claiming the next *generation*.  Storage is all that owners share:
there is no lock and no clock that they agree on, and an owner may stall anywhere for any time.  What holds nevertheless
is that any two checkpoints that were ever permitted lie on one line of descent, so output is committed once.

1. *Claim* the next generation; only then *look* at the home.  The truth is the newest generation that has a base: its
   newest manifest or, when it has none, its base.
2. Write what was found as one's own *base*, and look at the claims again.  Only the owner of the newest claim runs,
   and commits what the restored checkpoint left.
3. *Complete* each checkpoint in the same two steps: create its manifest, look at the claims again, and only then there
   is a :class:`CommitPermit`.

The base fixes what later owners restore, however late an older generation's manifest turns up.  The second look makes
sure that whoever claims after it sees all that was permitted before it.  Leave one of them out, and there is an order
of steps in which output doubles; the test finds it.

The same machine serves all attempts of one process: a restart claims anew, and knows its own claims.  The runtime only
lists, puts and gets.  Deleting is bounded by ids below one that was fixed while the claim was the newest, so an owner
that stalls never deletes what a later one wrote.

Pure: no clock, no storage, no logging.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final, NoReturn, final

from actorflow.errors import AbortReason
from actorflow.protocol.fencing_steps import (
    AbortCheckpoint,
    AlreadyFinished,
    Answer,
    BaseRead,
    BaseWritten,
    Basing,
    CheckpointReady,
    ClaimAnswered,
    Claiming,
    ClaimRead,
    Confirming,
    ConfirmingEnd,
    Ended,
    Ending,
    Event,
    HomeListed,
    Idle,
    Left,
    ListHome,
    Listing,
    ListOwners,
    Looking,
    ManifestAnswered,
    ManifestRead,
    MarkFinished,
    OwnersListed,
    Phase,
    PutManifest,
    ReadBase,
    ReadClaim,
    ReadingBase,
    ReadingManifests,
    ReadManifest,
    Recognizing,
    Running,
    SetFinishedAside,
    StandDown,
    Started,
    StoodDown,
    Sweep,
    WriteBase,
    WriteClaim,
)
from actorflow.protocol.machine import Machine
from actorflow.protocol.ownership import (
    Base,
    Claim,
    FromCheckpoint,
    FromNothing,
    FromPath,
    Nothing,
    Path,
    Told,
    same_place,
)

__all__ = (
    "AbortCheckpoint",
    "AlreadyFinished",
    "Answer",
    "BaseRead",
    "BaseWritten",
    "CheckpointReady",
    "ClaimAnswered",
    "ClaimRead",
    "CommitPermit",
    "Effect",
    "Ended",
    "Event",
    "Fencing",
    "HomeListed",
    "ListHome",
    "ListOwners",
    "ManifestAnswered",
    "ManifestRead",
    "MarkFinished",
    "OwnersListed",
    "Permit",
    "PutManifest",
    "ReadBase",
    "ReadClaim",
    "ReadManifest",
    "Restore",
    "SetFinishedAside",
    "StandDown",
    "Started",
    "Sweep",
    "WriteBase",
    "WriteClaim",
)

_SEAL: Final = object()


@final
@dataclass(frozen=True, slots=True, init=False)
class CommitPermit:
    """Proof that everything up to a checkpoint, on its generation's line, may be committed; made here alone."""

    checkpoint_id: int
    generation: int

    def __init__(self, checkpoint_id: int, generation: int, *, seal: object = None) -> None:
        if seal is not _SEAL:
            raise TypeError("a CommitPermit is given by Fencing, after it looked at the claims; it can't be made")
        object.__setattr__(self, "checkpoint_id", checkpoint_id)
        object.__setattr__(self, "generation", generation)

    def __copy__(self) -> CommitPermit:
        return self

    def __deepcopy__(self, memo: object) -> CommitPermit:
        return self

    def __reduce__(self) -> NoReturn:
        raise TypeError("a CommitPermit does not leave its process")


@dataclass(frozen=True, slots=True)
class Restore:
    """Run, from where the base says.

    ``permit`` is for what the restored snapshot left to commit; ``None`` when there is none.  ``ignored_path`` is the
    path that was told but had been obeyed before: say so.
    """

    base: Base
    permit: CommitPermit | None
    ignored_path: str | None = None


@dataclass(frozen=True, slots=True)
class Permit:
    """The checkpoint completed."""

    permit: CommitPermit


Effect = (
    ListOwners
    | WriteClaim
    | ReadClaim
    | ListHome
    | ReadBase
    | ReadManifest
    | WriteBase
    | Restore
    | SetFinishedAside
    | MarkFinished
    | Sweep
    | AlreadyFinished
    | PutManifest
    | Permit
    | AbortCheckpoint
    | StandDown
)


class Fencing(Machine[Event, Effect]):
    """Is this process still the owner of the home?

    ``told`` is what the process was told to start from.  It is obeyed once: as soon as a base of this process is the
    newest, later attempts go on from its line.

    | phase | event | effects → next phase |
    |---|---|---|
    | Idle, Listing, Recognizing, Claiming, Looking | Started | ListOwners → Listing |
    | ReadingBase, ReadingManifests, Basing, Confirming | Started | ListOwners → Listing |
    | Running, Ending, ConfirmingEnd, Left | Started | ListOwners → Listing |
    | Listing | OwnersListed | WriteClaim → Claiming |
    | Listing | OwnersListed | ReadClaim → Recognizing |
    | Recognizing | ClaimRead | WriteClaim → Claiming |
    | Recognizing | ClaimRead | ListOwners → Listing |
    | Recognizing | ClaimRead | StandDown → StoodDown |
    | Claiming | ClaimAnswered | ListHome → Looking |
    | Claiming | ClaimAnswered | ListOwners → Listing |
    | Looking | HomeListed | WriteBase → Basing |
    | Looking | HomeListed | ReadBase → ReadingBase |
    | Looking | HomeListed | StandDown → StoodDown |
    | ReadingBase | BaseRead | WriteBase → Basing |
    | ReadingBase | BaseRead | ReadManifest → ReadingManifests |
    | ReadingManifests | ManifestRead | ReadManifest → ReadingManifests |
    | ReadingManifests | ManifestRead | WriteBase → Basing |
    | Basing | BaseWritten | ListOwners → Confirming |
    | Confirming | OwnersListed | SetFinishedAside?, Restore, Sweep → Running |
    | Confirming | OwnersListed | MarkFinished?, Sweep, AlreadyFinished → Left |
    | Confirming, Running, ConfirmingEnd | OwnersListed | StandDown → StoodDown |
    | Running | ManifestRead | StandDown → StoodDown |
    | Running | CheckpointReady | PutManifest → Running |
    | Running | ManifestAnswered | ListOwners?, ReadManifest? → Running |
    | Running | ManifestRead | ListOwners?, AbortCheckpoint? → Running |
    | Running | OwnersListed | Permit?, ListOwners? → Running |
    | Running | Ended | WriteBase → Ending |
    | Ending | BaseWritten | ListOwners → ConfirmingEnd |
    | ConfirmingEnd | OwnersListed | MarkFinished?, Sweep → Left |
    | StoodDown | Started | StandDown → StoodDown |
    | StoodDown | CheckpointReady, ManifestAnswered, ManifestRead, OwnersListed, Ended | – → StoodDown |
    """

    __slots__ = ("_attempted", "_claims", "_host", "_process", "_told")
    phase: Phase

    def __init__(self, told: Told, *, host: str, process: str) -> None:
        super().__init__(Idle())
        self._told, self._host, self._process = told, host, process
        self._claims: tuple[int, ...] = ()
        self._attempted: tuple[Claim, ...] = ()

    @property
    def generation(self) -> int | None:
        """The generation that was claimed last."""
        return self._claims[-1] if self._claims else None

    @property
    def is_running(self) -> bool:
        """Whether an attempt runs and has not been fenced."""
        return isinstance(self.phase, Running)

    @property
    def published(self) -> int | None:
        """The newest checkpoint whose manifest may be in storage, while the attempt runs: discard nothing up to it."""
        return self.phase.published if isinstance(self.phase, Running) else None

    def decide(self, event: Event) -> list[Effect]:
        """Decide; see the table."""
        match self.phase, event:
            case StoodDown(by_generation), Started():
                return [StandDown(by_generation)]
            case StoodDown(), _:
                return []
            case _, Started(at_ms):
                self.phase = Listing(at_ms)
                return [ListOwners()]
            case ((Running() as running), _):
                return self._run(running, event)
            case ((Ending() | ConfirmingEnd() | Left()), _):
                return self._end(event)
            case _:
                return self._begin(event)

    # ── claim, look, base ────────────────────────────────────────────────────────────────────

    def _begin(self, event: Event) -> list[Effect]:
        match self.phase, event:
            case Listing(at_ms), OwnersListed(generations):
                newest = max(generations, default=0)
                if self._claims and newest > self._claims[-1]:
                    self.phase = Recognizing(at_ms, newest)
                    return [ReadClaim(newest)]
                return self._claim(max(newest, *self._claims[-1:], 0) + 1, at_ms)
            case Recognizing(at_ms), ClaimRead(None):
                self.phase = Listing(at_ms)
                return [ListOwners()]
            case Recognizing(at_ms, generation), ClaimRead(claim):
                if claim not in self._attempted:
                    return self._stand_down(generation)
                self._claims += (generation,)
                return self._claim(generation + 1, at_ms)
            case Claiming(claim), ClaimAnswered(answer):
                if answer is not Answer.WRITTEN:
                    self.phase = Listing(claim.at_ms)
                    return [ListOwners()]
                self._claims += (claim.generation,)
                self._attempted = ()
                self.phase = Looking(claim.generation)
                return [ListHome()]
            case Looking(generation), HomeListed() as home:
                return self._look(generation, home)
            case ReadingBase(generation, home), BaseRead(truth):
                own = [number for number in home.manifests if number >= truth.next_id]
                if not own or truth.finished or self._insists(truth):
                    return self._found(generation, home, truth, None)
                return self._read(ReadingManifests(generation, home, truth, tuple(sorted(own, reverse=True))))
            case ReadingManifests(generation, home, truth, candidates), ManifestRead(checkpoint_id, owner, retained):
                assert checkpoint_id == candidates[0], f"checkpoint {checkpoint_id} was not asked for"
                if owner == truth.generation:
                    newest_own = FromCheckpoint(checkpoint_id, owner, retained)
                    return self._found(generation, home, truth, newest_own)
                if candidates[1:]:
                    return self._read(ReadingManifests(generation, home, truth, candidates[1:]))
                return self._found(generation, home, truth, None)
            case Basing(base, is_marked, ignored_path), BaseWritten():
                self.phase = Confirming(base, is_marked, ignored_path)
                return [ListOwners()]
            case ((Confirming() as confirming), OwnersListed(generations)):
                newest = max(generations, default=0)
                return self._start(confirming) if newest == self.generation else self._stand_down(newest)
        raise AssertionError(f"{type(self.phase).__name__} can't be followed by {event!r}")

    def _claim(self, generation: int, at_ms: int) -> list[Effect]:
        claim = Claim(generation=generation, host=self._host, process=self._process, at_ms=at_ms, told=str(self._told))
        if claim not in self._attempted:
            self._attempted += (claim,)
        self.phase = Claiming(claim)
        return [WriteClaim(claim)]

    def _look(self, generation: int, home: HomeListed) -> list[Effect]:
        newest = max(home.bases, default=0)
        if newest >= generation:  # whoever wrote it has a newer claim
            return self._stand_down(newest)
        if not newest:
            return self._found(generation, home, None, None)
        self.phase = ReadingBase(generation, home)
        return [ReadBase(newest)]

    def _read(self, reading: ReadingManifests) -> list[Effect]:
        self.phase = reading
        return [ReadManifest(reading.candidates[0])]

    def _insists(self, truth: Base) -> bool:
        """Whether what was told is to be obeyed, whatever checkpoints there are."""
        if truth.line in self._claims:  # this process has obeyed before
            return False
        match self._told:
            case Path(path=path, rewind=rewind):
                return rewind or same_place(path) not in truth.obeyed
            case told:
                return isinstance(told, Nothing)

    def _found(
        self, generation: int, home: HomeListed, truth: Base | None, newest: FromCheckpoint | None
    ) -> list[Effect]:
        """The home is known: decide where to start, and write it down."""
        known = truth or Base(generation=generation, start=FromNothing(), next_id=1, line=generation)
        next_id = max(known.next_id, max(home.checkpoints, default=0) + 1)
        start, line, finished = newest or known.start, known.line, known.finished
        obeyed, held, ignored_path = known.obeyed, known.held, None
        if truth is None or self._insists(truth) or self._repeats(known, newest):
            match self._told:
                case Nothing():
                    start, line, finished = FromNothing(), generation, False
                case Path(path=path, allow_unclaimed=allow_unclaimed, own_checkpoint=own_checkpoint):
                    start, line, finished = FromPath(path, allow_unclaimed), generation, False
                    obeyed = tuple(sorted({*obeyed, same_place(path)}))
                    held = tuple(sorted({*held, *([] if own_checkpoint is None else [own_checkpoint])}))
        elif isinstance(self._told, Path) and known.line not in self._claims:
            ignored_path = self._told.path
        base = Base(
            generation=generation, start=start, next_id=next_id, line=line, obeyed=obeyed, held=held, finished=finished
        )
        self.phase = Basing(base, home.finished, ignored_path)
        return [WriteBase(base)]

    def _repeats(self, truth: Base, newest: FromCheckpoint | None) -> bool:
        """Whether the line starts at the path that was told and has no checkpoint: then the new options count."""
        return (
            newest is None
            and not truth.finished
            and isinstance(self._told, Path)
            and isinstance(truth.start, FromPath)
            and same_place(truth.start.path) == same_place(self._told.path)
        )

    def _start(self, confirming: Confirming) -> list[Effect]:
        base, effects = confirming.base, list[Effect]()
        if base.finished:
            self.phase = Left()
            if not confirming.is_marked:
                effects.append(MarkFinished())
            return [*effects, self._sweep(base, keep=base.held), AlreadyFinished()]
        match base.start:
            case FromCheckpoint(checkpoint_id):
                restored = checkpoint_id
            case _:  # whatever a foreign snapshot left counts as older than all that comes
                restored = base.next_id - 1
        permit = None
        if not isinstance(base.start, FromNothing):
            permit = CommitPermit(restored, base.generation, seal=_SEAL)
        self.phase = Running(base, permitted=restored, published=restored)
        if confirming.is_marked:
            effects.append(SetFinishedAside())
        return [*effects, Restore(base, permit, confirming.ignored_path), self._sweep(base, keep=base.kept)]

    # ── complete ─────────────────────────────────────────────────────────────────────────────

    def _run(self, running: Running, event: Event) -> list[Effect]:
        match event:
            case CheckpointReady(checkpoint_id):
                assert checkpoint_id >= running.base.next_id, f"id {checkpoint_id} was used before this generation"
                assert checkpoint_id not in running.writing, f"checkpoint {checkpoint_id} is being written"
                self.phase = replace(
                    running,
                    writing=(*running.writing, checkpoint_id),
                    published=max(running.published, checkpoint_id),
                )
                return [PutManifest(checkpoint_id)]
            case ManifestAnswered(checkpoint_id, answer):
                if checkpoint_id not in running.writing:
                    return []
                if answer is Answer.WRITTEN:
                    return self._written(running, checkpoint_id)
                return [ReadManifest(checkpoint_id)]
            case ManifestRead(checkpoint_id, owner):
                if checkpoint_id not in running.writing:
                    return []
                if owner == running.base.generation:  # it was ours: only the answer was lost
                    return self._written(running, checkpoint_id)
                return self._abort(running, checkpoint_id, owner)
            case OwnersListed(generations):
                newest = max(generations, default=0)
                return self._permit(running) if newest == running.base.generation else self._stand_down(newest)
            case Ended(finished=finished, next_id=next_id):
                ended = running.base.ended(finished=finished, next_id=next_id)
                self.phase = Ending(ended)
                return [WriteBase(ended)]
        raise AssertionError(f"Running can't be followed by {event!r}")

    def _written(self, running: Running, checkpoint_id: int) -> list[Effect]:
        """Its manifest is there; a look at the claims that begins from now on counts for it."""
        writing = tuple(number for number in running.writing if number != checkpoint_id)
        if checkpoint_id <= running.permitted:  # a newer one was faster
            self.phase = replace(running, writing=writing)
            return []
        if running.listing:
            self.phase = replace(running, writing=writing, waiting=(*running.waiting, checkpoint_id))
            return []
        self.phase = replace(running, writing=writing, listing=(checkpoint_id,))
        return [ListOwners()]

    def _permit(self, running: Running) -> list[Effect]:
        """The claim is still the newest: so it was when the manifests that waited for this were written."""
        effects = list[Effect]()
        permitted = running.permitted
        for checkpoint_id in sorted(running.listing):
            if checkpoint_id > permitted:
                permitted = checkpoint_id
                effects.append(Permit(CommitPermit(checkpoint_id, running.base.generation, seal=_SEAL)))
        self.phase = replace(running, permitted=permitted, listing=running.waiting, waiting=())
        if running.waiting:
            effects.append(ListOwners())
        return effects

    def _abort(self, running: Running, checkpoint_id: int, owner: int | None) -> list[Effect]:
        """Its place is not ours: an older generation's, an aborted checkpoint's, or still empty though we wrote."""
        if owner is not None and owner > running.base.generation:
            return self._stand_down(owner)
        self.phase = replace(running, writing=tuple(number for number in running.writing if number != checkpoint_id))
        in_doubt = owner is None  # our manifest may yet appear
        reason = AbortReason.MANIFEST_IN_DOUBT if in_doubt else AbortReason.MANIFEST_PLACE_TAKEN
        return [AbortCheckpoint(checkpoint_id, reason)]

    # ── the end ──────────────────────────────────────────────────────────────────────────────

    def _end(self, event: Event) -> list[Effect]:
        match self.phase, event:
            case Ending(base), BaseWritten():
                self.phase = ConfirmingEnd(base)
                return [ListOwners()]
            case ConfirmingEnd(base), OwnersListed(generations):
                newest = max(generations, default=0)
                if newest != base.generation:
                    return self._stand_down(newest)
                self.phase = Left()
                return [*([MarkFinished()] if base.finished else []), self._sweep(base, keep=base.held)]
        raise AssertionError(f"{type(self.phase).__name__} can't be followed by {event!r}")

    def _stand_down(self, by_generation: int) -> list[Effect]:
        self.phase = StoodDown(by_generation)
        return [StandDown(by_generation)]

    def _sweep(self, base: Base, *, keep: tuple[int, ...]) -> Sweep:
        return Sweep(generation=base.generation, below=base.next_id, keep=keep)

    def check(self) -> None:
        """Only the owner of the newest claim known here runs, permits only grow, and no id is used twice."""
        assert list(self._claims) == sorted(set(self._claims)), "generations only grow"
        match self.phase:
            case Running(base, permitted, published, writing, waiting, listing):
                assert base.generation == self.generation, "only the newest own claim runs"
                assert permitted <= published, "what is permitted was published"
                assert all(base.next_id <= number <= published for number in (*writing, *waiting, *listing))
                assert listing or not waiting, "whoever waits for a look waits for one under way"
            case Basing(base) | Confirming(base) | Ending(base) | ConfirmingEnd(base):
                assert base.generation == self.generation, "a base is written by its own generation alone"
