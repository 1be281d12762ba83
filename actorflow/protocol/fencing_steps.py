"""What happens to an owner of a home, what it asks for, and where it stands.

The words of :mod:`actorflow.protocol.fencing`, which says what they mean together.  Each effect that asks names the
event that answers it.

Pure: no clock, no storage, no logging.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from actorflow.errors import AbortReason
from actorflow.protocol.ownership import Base, Claim

__all__ = (
    "AbortCheckpoint",
    "AlreadyFinished",
    "Answer",
    "BaseRead",
    "BaseWritten",
    "Basing",
    "CheckpointReady",
    "ClaimAnswered",
    "ClaimRead",
    "Claiming",
    "Confirming",
    "ConfirmingEnd",
    "Ended",
    "Ending",
    "Event",
    "HomeListed",
    "Idle",
    "Left",
    "ListHome",
    "ListOwners",
    "Listing",
    "Looking",
    "ManifestAnswered",
    "ManifestRead",
    "MarkFinished",
    "OwnersListed",
    "Phase",
    "PutManifest",
    "ReadBase",
    "ReadClaim",
    "ReadManifest",
    "ReadingBase",
    "ReadingManifests",
    "Recognizing",
    "Running",
    "SetFinishedAside",
    "StandDown",
    "Started",
    "StoodDown",
    "Sweep",
    "WriteBase",
    "WriteClaim",
)

# ── events ───────────────────────────────────────────────────────────────────────────────────


class Answer(StrEnum):
    """What ``put_if_absent`` answered."""

    WRITTEN = "it was this call that wrote it"
    TAKEN = "the name was taken"
    LOST = "the call raised: nobody knows"


@dataclass(frozen=True, slots=True)
class Started:
    """An attempt begins; ``at_ms`` is the wall clock, for whoever reads the claim.

    What an earlier attempt asked for was cancelled with it: its answers do not come any more.
    """

    at_ms: int


@dataclass(frozen=True, slots=True)
class OwnersListed:
    """The generations that are claimed."""

    generations: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class ClaimAnswered:
    """The claim was put."""

    answer: Answer


@dataclass(frozen=True, slots=True)
class ClaimRead:
    """A claim as it stands in storage; ``None`` when there is none."""

    claim: Claim | None


@dataclass(frozen=True, slots=True, kw_only=True)
class HomeListed:
    """All names in the home.

    Which generations have a base, which ids occur under ``chk-*``, which of them have a manifest, and whether there is
    ``finished``.
    """

    bases: tuple[int, ...] = ()
    checkpoints: tuple[int, ...] = ()
    manifests: tuple[int, ...] = ()
    finished: bool = False


@dataclass(frozen=True, slots=True)
class BaseRead:
    """A base was read.  One that is gone or can't be read fails the attempt, naming the object."""

    base: Base


@dataclass(frozen=True, slots=True)
class BaseWritten:
    """The own base is in storage."""


@dataclass(frozen=True, slots=True)
class CheckpointReady:
    """Every actor acknowledged: the manifest may be written."""

    checkpoint_id: int


@dataclass(frozen=True, slots=True)
class ManifestAnswered:
    """The manifest was put."""

    checkpoint_id: int
    answer: Answer


@dataclass(frozen=True, slots=True)
class ManifestRead:
    """Whose a manifest is: ``None`` when it is absent, 0 when it is empty, as an aborted checkpoint leaves it.

    One that can't be read or fails its checksum fails the attempt, naming the object.
    """

    checkpoint_id: int
    generation: int | None
    retained: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    """The job is over for this owner, and its checkpoints are to go.

    Either all is committed (``finished``), or the retention policy says so.  ``next_id`` is the first id not used.

    Checkpoints that were under way were cancelled.  An owner that keeps its checkpoints just goes, without a word.
    """

    finished: bool
    next_id: int


Event = (
    Started
    | OwnersListed
    | ClaimAnswered
    | ClaimRead
    | HomeListed
    | BaseRead
    | BaseWritten
    | CheckpointReady
    | ManifestAnswered
    | ManifestRead
    | Ended
)


# ── effects ──────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True)
class ListOwners:
    """List ``owner/`` → ``OwnersListed``."""


@dataclass(frozen=True, slots=True)
class WriteClaim:
    """``put_if_absent`` the claim → ``ClaimAnswered``."""

    claim: Claim


@dataclass(frozen=True, slots=True)
class ReadClaim:
    """→ ``ClaimRead``."""

    generation: int


@dataclass(frozen=True, slots=True)
class ListHome:
    """List everything → ``HomeListed``."""


@dataclass(frozen=True, slots=True)
class ReadBase:
    """→ ``BaseRead``."""

    generation: int


@dataclass(frozen=True, slots=True)
class ReadManifest:
    """→ ``ManifestRead``."""

    checkpoint_id: int


@dataclass(frozen=True, slots=True)
class WriteBase:
    """``put`` the base → ``BaseWritten``.  Nobody else writes this object, so a lost answer may be put again."""

    base: Base


@dataclass(frozen=True, slots=True)
class SetFinishedAside:
    """Remove ``finished``: the job begins again."""


@dataclass(frozen=True, slots=True)
class MarkFinished:
    """``put`` ``finished``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sweep:
    """Delete, in the background, what nobody needs any more.

    What is under ``chk-<id>`` with ids below ``below`` but for ``keep``; claims and bases below ``generation``.
    """

    generation: int
    below: int
    keep: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class AlreadyFinished:
    """There is nothing to run."""


@dataclass(frozen=True, slots=True)
class PutManifest:
    """``put_if_absent`` the manifest → ``ManifestAnswered``."""

    checkpoint_id: int


@dataclass(frozen=True, slots=True)
class AbortCheckpoint:
    """The checkpoint did not complete; the next one takes the next id.  If the reason is doubt, keep its files."""

    checkpoint_id: int
    reason: AbortReason


@dataclass(frozen=True, slots=True)
class StandDown:
    """Another owner is newer: commit nothing, delete nothing.  Its claim tells host and process."""

    by_generation: int


# ── phases ───────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True)
class Idle:
    """Nothing was asked yet."""


@dataclass(frozen=True, slots=True)
class Listing:
    """Looking for the next generation."""

    at_ms: int


@dataclass(frozen=True, slots=True)
class Recognizing:
    """A claim is newer than those known to be ours: is it one of ours whose answer was lost?"""

    at_ms: int
    generation: int


@dataclass(frozen=True, slots=True)
class Claiming:
    """The claim is on its way."""

    claim: Claim


@dataclass(frozen=True, slots=True)
class Looking:
    """The claim is ours; the home is being listed."""

    generation: int


@dataclass(frozen=True, slots=True)
class ReadingBase:
    """The newest base is being read."""

    generation: int
    home: HomeListed


@dataclass(frozen=True, slots=True)
class ReadingManifests:
    """Manifests that may be of the newest base's generation are being read, newest first."""

    generation: int
    home: HomeListed
    truth: Base
    candidates: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Basing:
    """The own base is on its way.  ``is_marked`` says that there was ``finished``."""

    base: Base
    is_marked: bool
    ignored_path: str | None


@dataclass(frozen=True, slots=True)
class Confirming:
    """The own base is written; the claims are being listed once more."""

    base: Base
    is_marked: bool
    ignored_path: str | None


@dataclass(frozen=True, slots=True)
class Running:
    """The attempt runs.

    ``permitted`` is the newest checkpoint with a permit, ``published`` the newest whose manifest may be in storage.
    Manifests are first ``writing``, then ``waiting`` for a look at the claims, and ``listing`` while the look that
    counts for them is under way.
    """

    base: Base
    permitted: int
    published: int
    writing: tuple[int, ...] = ()
    waiting: tuple[int, ...] = ()
    listing: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Ending:
    """The own base is being written once more, to say that the line is over."""

    base: Base


@dataclass(frozen=True, slots=True)
class ConfirmingEnd:
    """That is written; the claims are being listed for the last time."""

    base: Base


@dataclass(frozen=True, slots=True)
class Left:
    """Nothing is left to do."""


@dataclass(frozen=True, slots=True)
class StoodDown:
    """A newer owner has taken over."""

    by_generation: int


Phase = (
    Idle
    | Listing
    | Recognizing
    | Claiming
    | Looking
    | ReadingBase
    | ReadingManifests
    | Basing
    | Confirming
    | Running
    | Ending
    | ConfirmingEnd
    | Left
    | StoodDown
)
