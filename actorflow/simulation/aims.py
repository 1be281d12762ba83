"""What can a storm be aimed at?  Three lists, from which a seed chooses.

*Steps* are where a kill falls: the life of a checkpoint from its trigger to the commit.  *Moments* are when anything
else strikes, above all the edges: the first and the last record, the first and the final checkpoint, exactly at an
interval, a pause or a timeout and a millisecond before.  *Faults* are what strikes; some of them are two or three
together, without which a machine never comes into one of its phases: a manifest of which nobody knows whether it was
written needs a lost answer *and* a store that can't be read.

Nothing is drawn here; ``swarm.py`` chooses.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from actorflow.simulation.weather import (
    After,
    At,
    Drift,
    FailDisk,
    FailObjects,
    FailRequests,
    Jump,
    Kill,
    LoseAnswer,
    LoseAnswers,
    Moment,
    OnBroker,
    OnDatabase,
    OnDisk,
    OnObject,
    Partition,
    Pause,
    PowerCut,
    Raise,
    Replace,
    Service,
    Slow,
    SlowObjects,
    Stall,
    Stop,
    TearDisk,
    TearObjects,
    Trigger,
    Way,
    Weather,
)

__all__ = (
    "FAULTS",
    "MOMENTS",
    "ONE_OF_MANY",
    "STEPS",
    "STEPS_AT_THE_END",
    "STEPS_IN_FILES",
    "STEPS_ON",
    "Circumstances",
    "Spot",
)

_MANIFEST = "*chk-*/_metadata"
_PIECE = "*chk-*"
_OWNER = "*owner/*"
_COMMITTED = "*/committed/*"
_PART = "*/part-*"

_OTHER_STARTS_MS = 200
"""After about so long whoever watches a process starts another in its place."""

Spot = Callable[[int], Trigger]

STEPS: dict[str, Spot] = {
    "triggered": lambda n: After("CheckpointTriggered", occurrence=n),
    "barrier under way": lambda n: After("BarrierArrived", occurrence=n),
    "instant": lambda n: After("SnapshotTaken", occurrence=n),
    "upload": lambda n: OnObject("put", _PIECE, Moment.DURING, occurrence=n),
    "acknowledged": lambda n: After("CheckpointAcknowledged", occurrence=n),
    "manifest before": lambda n: OnObject("put_if_absent", _MANIFEST, Moment.BEFORE, occurrence=n),
    "manifest torn": lambda n: OnObject("put_if_absent", _MANIFEST, Moment.TORN, occurrence=n),
    "manifest answer lost": lambda n: OnObject("put_if_absent", _MANIFEST, Moment.UNANSWERED, occurrence=n),
    "manifest after": lambda n: After("ManifestWritten", occurrence=n),
    "permit": lambda n: After("CheckpointCompleted", occurrence=n),
    "commit before": lambda n: OnObject("put_if_absent", _COMMITTED, Moment.BEFORE, occurrence=n),
    "commit between two": lambda n: OnObject("put_if_absent", _COMMITTED, Moment.UNANSWERED, occurrence=n),
    "commit after": lambda n: After("SinkCommitted", occurrence=n),
    "subsumed": lambda n: After("CheckpointSubsumed", occurrence=n),
    "restoring": lambda n: After("ActorRestored", occurrence=n),
}
"""Where a kill is aimed at, in the order of a checkpoint's life; ``moments.py`` says where it struck."""

STEPS_IN_FILES: dict[str, Spot] = {
    "commit before": lambda n: OnDisk("rename", _PART, Moment.BEFORE, occurrence=n),
    "commit between two": lambda n: OnDisk("rename", _PART, Moment.UNANSWERED, occurrence=n),
}

STEPS_ON: dict[Service, dict[str, Spot]] = {
    Service.BROKER: {
        "commit before": lambda n: OnBroker("commit", "*", Moment.BEFORE, occurrence=n),
        "commit between two": lambda n: OnBroker("commit", "*", Moment.UNANSWERED, occurrence=n),
    },
    Service.DATABASE: {
        "commit before": lambda n: OnDatabase("commit*", "*", Moment.BEFORE, occurrence=n),
        "commit between two": lambda n: OnDatabase("commit*", "*", Moment.UNANSWERED, occurrence=n),
    },
}

STEPS_AT_THE_END: dict[str, Spot] = {
    "triggered": lambda _: After("CheckpointTriggered", {"kind": "final"}),
    "barrier under way": lambda n: After("CheckpointTriggered", {"kind": "final"}, later_ms=n - 1),
    "permit": lambda _: After("CheckpointCompleted", {"kind": "final"}),
    "commit before": lambda n: After("CheckpointCompleted", {"kind": "final"}, later_ms=n),
    "commit between two": lambda n: After("CheckpointCompleted", {"kind": "final"}, later_ms=2 * n),
    "commit after": lambda n: After("CheckpointCompleted", {"kind": "final"}, later_ms=3 * n),
}
"""The same of the final checkpoint, where it is known by its kind: behind it nothing is left that could mend a loss."""

ONE_OF_MANY = ("barrier under way", "instant", "acknowledged", "commit before", "commit between two", "commit after")
"""Steps that every checkpoint goes through several times."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Circumstances:
    """What aims depend on: the knobs that are times, the job, and a number or two that the seed chose."""

    every_ms: int
    min_pause_ms: int
    timeout_ms: int
    operator: str | None
    on_disk: bool
    service: Service | None = None
    """Where all output goes, if that is a broker or a database."""
    count: int
    """How many operations fail."""
    number: int
    """A number below 961, for whatever a fault counts by itself."""


When = Callable[[int, Circumstances], Trigger]


def _entry(name: str, most: int, later_ms: int = 0) -> When:
    return lambda n, _: After(name, occurrence=1 + n % most, later_ms=later_ms)


MOMENTS: dict[str, When] = {
    # what happens all the time
    "triggered": _entry("CheckpointTriggered", 5),
    "a barrier": _entry("BarrierArrived", 12),
    "aligning": _entry("AlignmentStarted", 6),
    "instant": _entry("SnapshotTaken", 12),
    "just after an instant": _entry("SnapshotTaken", 12, 1),
    "acknowledged": _entry("CheckpointAcknowledged", 12),
    "prepared": _entry("SinkPrepared", 8),
    "before a manifest": lambda n, _: OnObject("put_if_absent", _MANIFEST, Moment.BEFORE, 1 + n % 4),
    "manifest": _entry("ManifestWritten", 4),
    "completed": _entry("CheckpointCompleted", 4),
    "just after it completed": _entry("CheckpointCompleted", 4, 1),
    "committed": _entry("SinkCommitted", 8),
    "subsumed": _entry("CheckpointSubsumed", 3),
    "declined": _entry("CheckpointDeclined", 2),
    "aborted": _entry("CheckpointAborted", 2),
    # the edges of a life
    "claiming": lambda n, _: OnObject("put_if_absent", _OWNER, Moment.BEFORE, 1 + n % 3),
    "claimed": _entry("GenerationClaimed", 3),
    "started": _entry("JobStarted", 3),
    "restored": _entry("ActorRestored", 6),
    "first record": _entry("JobRunning", 2),
    "a subtask's last record": _entry("ActorFinished", 4),
    "restarting": _entry("JobRestarting", 2),
    # the first checkpoint, and the last
    "first checkpoint": lambda n, _: After("CheckpointTriggered", {"checkpoint": 1}, later_ms=n % 3),
    "final checkpoint": lambda n, _: After("CheckpointTriggered", {"kind": "final"}, later_ms=n % 3),
    "final checkpoint completed": lambda n, _: After("CheckpointCompleted", {"kind": "final"}, later_ms=n % 8),
    "last checkpoint of a stop": lambda n, _: After("CheckpointTriggered", {"kind": "stop"}, later_ms=n % 3),
    # the edges of time
    "at the interval": lambda n, c: After("CheckpointTriggered", occurrence=1 + n % 4, later_ms=c.every_ms),
    "before the interval": lambda n, c: After("CheckpointTriggered", occurrence=1 + n % 4, later_ms=c.every_ms - 1),
    "at the pause": lambda n, c: After("CheckpointCompleted", occurrence=1 + n % 4, later_ms=c.min_pause_ms),
    "at the timeout": lambda n, c: After("CheckpointTriggered", occurrence=1 + n % 3, later_ms=min(c.timeout_ms, 600)),
    "before the timeout": lambda n, c: After(
        "CheckpointTriggered", occurrence=1 + n % 3, later_ms=min(c.timeout_ms, 600) - 1
    ),
}
"""When something strikes, by the name of the moment."""

What = Callable[[Trigger, Circumstances], tuple[Weather, ...]]

_DISK = ("create", "write", "sync", "link", "rename", "sync_folder", "remove")
_DISK_MOMENTS = (Moment.BEFORE, Moment.DURING, Moment.UNANSWERED, Moment.AFTER)


def _disk(c: Circumstances) -> OnDisk:
    kind, rest = c.number % len(_DISK), c.number // len(_DISK)
    moment = _DISK_MOMENTS[rest % len(_DISK_MOMENTS)]
    return OnDisk(_DISK[kind], "*", moment, 1 + rest // len(_DISK_MOMENTS) % 12)


def _stalls_for(c: Circumstances) -> int:
    """For how long whoever is replaced stalls: mostly until just when the other one starts and takes over."""
    return (50, 300, 2_000)[c.number // 4 % 3] if c.number % 4 == 0 else _OTHER_STARTS_MS + c.number // 4 % 64


def _stall_with_a_checkpoint(c: Circumstances, least_ms: int, range_ms: int) -> tuple[Weather, ...]:
    """Stall whoever has a checkpoint in hand, and kill who took its place once that has completed as many."""
    number = 1 + c.number % 3
    return (
        Replace(After("SinkPrepared", occurrence=number), ms=least_ms + c.number // 3 % range_ms),
        Kill(After("CheckpointCompleted", occurrence=number, later_ms=c.number % 25), "job"),
    )


def _outside(
    usual: What, outside: Callable[[Trigger, Circumstances, Service], Weather], *, always: bool = False
) -> What:
    """What strikes the service that the output goes to, in every second seed or in each; else the usual."""

    def what(when: Trigger, c: Circumstances) -> tuple[Weather, ...]:
        if c.service is None or not (always or c.number % 2):
            return usual(when, c)
        return (outside(when, c, c.service),)

    return what


FAULTS: dict[str, What] = {
    # what fails
    "fail put": lambda when, c: (FailObjects(when, "put*", count=c.count),),
    "fail list": _outside(
        lambda when, c: (FailObjects(when, "list", count=c.count),),
        lambda when, c, service: FailRequests(when, service, count=c.count),
    ),
    "fail get or delete": lambda when, c: (FailObjects(when, ("get", "delete")[c.number % 2], count=c.count),),
    "tear": lambda when, c: (TearObjects(when, "put*", count=c.count),),
    "lose answer": _outside(
        lambda when, c: (LoseAnswer(when, "put*", count=c.count),),
        lambda when, c, service: LoseAnswers(when, service, count=c.count),
    ),
    "lose answer of a manifest": lambda when, c: (
        LoseAnswer(when, "put_if_absent", _MANIFEST),
        # What was decided then has not been put right yet by the next checkpoint.
        *(
            [Kill(After("StorageRetried", {"operation": "put_if_absent"}, later_ms=6 + c.number // 2 % 32))]
            if c.number % 2
            else []
        ),
    ),
    "lose answer of a claim": lambda when, _: (LoseAnswer(when, "put_if_absent", _OWNER), Kill(when)),
    "manifest in doubt": lambda when, _: (
        LoseAnswer(when, "put_if_absent", _MANIFEST),
        FailObjects(when, "get", _MANIFEST, count=4),
    ),
    "refuse a manifest": lambda when, c: (FailObjects(when, "put_if_absent", _MANIFEST, count=c.count),),
    "lose answer of a commit": _outside(
        lambda when, _: (LoseAnswer(when, "put_if_absent", _COMMITTED),),
        lambda when, _, service: LoseAnswers(when, service, "commit*"),
        always=True,
    ),
    "refuse commits": _outside(
        lambda when, c: (FailObjects(when, "put_if_absent", _COMMITTED, count=c.count),),
        lambda when, c, service: FailRequests(when, service, "commit*", count=c.count),
        always=True,
    ),
    "refuse commits for long": _outside(
        lambda when, _: (FailObjects(when, "put_if_absent", _COMMITTED, count=11),),
        lambda when, _, service: FailRequests(when, service, "commit*", count=11),
        always=True,
    ),
    "raise": lambda when, c: (Raise(when, c.operator),) if c.operator else (),
    "raise, and refuse the next attempt": lambda when, c: (
        (Raise(when, c.operator), FailObjects(After("JobRestarting"), "*", count=4 + c.number % 8))
        if c.operator
        else ()
    ),
    # what takes its time
    "slow objects": _outside(
        lambda when, c: (SlowObjects(when, "*", count=c.count, by_ms=500),),
        lambda when, c, service: Stall(when, service, 100 << c.number // 2 % 6),
    ),
    "upload until the timeout": lambda when, c: (
        SlowObjects(when, "put", _PIECE, count=c.count, by_ms=min(c.timeout_ms, 600)),
    ),
    "slow": lambda when, c: (Slow(when, c.operator, by_ms=20, for_ms=500),) if c.operator else (),
    "pause": lambda when, _: (Pause(when, None, 700),),
    "pause until the timeout": lambda when, c: (Pause(when, None, min(c.timeout_ms, 600)),),
    "partition": lambda when, c: (Partition(when, None, 300, (Way.BOTH, Way.OUT, Way.IN)[c.number % 3]),),
    # what ends a life
    "kill": lambda when, _: (Kill(when),),
    "kill at any request": lambda _, c: (Kill(OnObject("*", "*", Moment.DURING, 1 + c.number % 80)),),
    "stop": lambda when, _: (Stop(when),),
    "stop that fails": lambda when, c: (
        Stop(when),
        FailObjects(After("CheckpointTriggered", {"kind": "stop"}), "put*", count=c.count),
    ),
    "replace": lambda when, c: (Replace(when, ms=_stalls_for(c)),),
    "stall until another begins, and kill it": lambda _, c: _stall_with_a_checkpoint(c, _OTHER_STARTS_MS, 56),
    "stall until another has written, and kill it": lambda _, c: _stall_with_a_checkpoint(c, _OTHER_STARTS_MS + 48, 80),
    # clocks
    "clock": lambda when, c: (Jump(when, None, -3_600_000) if c.number % 2 else Drift(when, None, 10_000),),
    # disks; where there is none, a kill at some time or nothing
    "fail disk": lambda when, c: (FailDisk(when, "*", count=c.count),) if c.on_disk else (),
    "tear disk": lambda when, c: (TearDisk(when, "write"), FailDisk(when, "sync*")) if c.on_disk else (),
    "power at any operation": lambda _, c: (PowerCut(_disk(c)),) if c.on_disk else (Kill(At(c.number % 400), "job"),),
}
"""What strikes, by a name of the fault."""
