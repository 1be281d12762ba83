"""What is there to be told of a run, beside its journal?

A witness stands outside of all processes.  It reads the journal as it grows, looks at the home's storage when a
checkpoint has settled, keeps the state of the last checkpoint of all, and in the end tells a :class:`Run`.

It only looks: nothing that it does takes time, and no process can notice it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

from actorflow.model import journal
from actorflow.model.elements import CheckpointKind
from actorflow.model.journal import Line
from actorflow.simulation.course import Course
from actorflow.simulation.digest import journal_digest
from actorflow.simulation.final_state import FinalState, HomeView
from actorflow.simulation.moments import Moments
from actorflow.simulation.runs import Acknowledgement, CheckpointRecord, Run, StepRecord
from actorflow.simulation.scenario import Fault, Step
from actorflow.simulation.subject import Subject, canonical_rows
from actorflow.simulation.world import Universe

__all__ = ("Witness",)

_READS = (
    journal.JobStarted,
    journal.CheckpointTriggered,
    journal.CheckpointAcknowledged,
    journal.CheckpointDeclined,
    journal.CheckpointCompleted,
    journal.CheckpointAborted,
)

_LAST = (CheckpointKind.FINAL, CheckpointKind.STOP)


class Witness:
    """Reads the journal of one run."""

    def __init__(self, universe: Universe, subject: Subject, course: Course) -> None:
        self._universe, self._subject, self._course = universe, subject, course
        self._home = HomeView(universe, subject.settled(course.settings(course.parallelism_of(0))), subject.name)
        self._state = FinalState()
        self._records: list[CheckpointRecord] = []
        self._open: dict[tuple[str, int], CheckpointRecord] = {}
        self._attempts: dict[str, int] = {}
        self._settling: int | None = None
        self._storage: dict[int | None, dict[str, int]] = {}
        self._retained: dict[int | None, tuple[int, ...]] = {}
        self.attempts = self.life = 0
        universe.subscribe(self.read, *_READS)

    def read(self, line: Line) -> None:
        """Take the next line of the journal."""
        match line.entry:
            case journal.JobStarted(attempt=attempt):
                self.attempts += 1
                self._attempts[line.process] = attempt
                self._settle()
            case journal.CheckpointTriggered(checkpoint=checkpoint, kind=kind):
                self._settle()
                record = self._open[line.process, checkpoint] = CheckpointRecord(
                    checkpoint=checkpoint,
                    kind=kind,
                    life=self.life + 1,
                    attempt=self._attempts.get(line.process, 0),
                    triggered_at_ms=line.at_ms,
                )
                self._records.append(record)
            case journal.CheckpointCompleted(checkpoint=checkpoint, kind=kind):
                self._keep_state(checkpoint, kind)
                self._settling = checkpoint if self._course.lists_storage else None
        if (number := getattr(line.entry, "checkpoint", None)) is not None:
            record_of = self._open.get((line.process, number))
            if record_of is not None:
                _note(record_of, line)

    def _keep_state(self, checkpoint: int, kind: str) -> None:
        if kind in _LAST:
            found = self._home.state(checkpoint, self._subject.codec)
            # Another owner may have restored and finished it while the one that stalled had its permit in hand.
            self._state = self._state if found is None else found

    def _settle(self) -> None:
        """Look at the storage as the last completed checkpoint left it, before anything else begins."""
        if self._settling is not None:
            checkpoint, self._settling = self._settling, None
            self._storage[checkpoint] = self._home.listing()
            self._retained[checkpoint] = self._home.retained(checkpoint)

    def keep_newest_state(self) -> None:
        """Take the state of the newest checkpoint that is there, for a job that ended without a last one."""
        for checkpoint in reversed(self._home.checkpoints()):
            found = self._home.state(checkpoint, self._subject.codec)
            if found is not None:
                self._state = found
                return

    def _disk(self) -> dict[str, int]:
        return {path: len(data) for path, data in self._universe.machine().platter.files().items()}

    def told(
        self,
        output: dict[str, list[Any]],
        moments: Moments,
        *,
        storm: bool,
        status: str,
        error: str,
        performed: list[StepRecord],
        unperformed: Sequence[Step],
        weather: Sequence[Fault],
        unstruck: Sequence[Fault],
    ) -> Run:
        """Tell what the run came to; ``output`` are the rows of each sink that an outsider sees."""
        universe, course = self._universe, self._course
        self._settle()
        if course.lists_storage:
            self._storage[None] = self._home.listing()
            self._retained[None] = self._home.checkpoints()
        counted = {name: canonical_rows(rows) for name, rows in output.items()}
        lines = list(universe.journal)
        struck = moments.lives_struck
        return Run(
            output=counted,
            state=self._state.encoded,
            digest=journal_digest(lines, _visible(counted, self._state)),
            lives=self.life + 1,
            faults=Counter(line.entry.verb for line in lines if isinstance(line.entry, journal.WeatherStruck)),
            kills_at=moments.kills_at,
            again=any(life + 1 in struck for life in struck),
            lines=lines,
            steps=universe.loop.steps,
            rounds=universe.loop.rounds,
            seed=universe.seed,
            storm=storm,
            status=status,
            error=error,
            attempts=self.attempts,
            ended_at_ms=universe.now_ms(),
            rows=output if course.keeps_values else {},
            values=self._state.values if course.keeps_values else {},
            checkpoints=self._records,
            storage=self._storage,
            retained=self._retained,
            disk=self._disk() if course.lists_disk else {},
            performed=performed,
            unperformed=tuple(unperformed),
            weather=tuple(weather),
            unstruck=tuple(unstruck),
        )


def _note(record: CheckpointRecord, line: Line) -> None:
    match line.entry:
        case journal.CheckpointAcknowledged(actor=actor, bytes=size):
            record.acknowledged[actor] = Acknowledgement(at_ms=line.at_ms, bytes=size)
        case journal.CheckpointDeclined(actor=actor, reason=reason):
            record.declined[actor] = reason
        case journal.CheckpointCompleted(bytes=size):
            record.completed_at_ms, record.bytes = line.at_ms, size
        case journal.CheckpointAborted(reason=reason):
            record.aborted_at_ms, record.why = line.at_ms, reason


_last: tuple[Counter[bytes], bytes] = Counter(), b""


def _listed(rows: Counter[bytes]) -> bytes:
    """All rows in order, with how often each is there; the next run mostly comes to the same as the last one."""
    global _last  # noqa: PLW0603  # it only saves time
    if not dict.__eq__(_last[0], rows):
        _last = rows, b"\n".join(b"%d %s" % (rows[row], row) for row in sorted(rows))
    return _last[1]


def _visible(output: dict[str, Counter[bytes]], state: FinalState) -> list[bytes]:
    visible = [_listed(rows) for _, rows in sorted(output.items())]
    visible += [
        b"%s.%s %s = %s" % (operator.encode(), name.encode(), key, value)
        for (operator, name, key), value in sorted(state.encoded.items())
    ]
    return visible
