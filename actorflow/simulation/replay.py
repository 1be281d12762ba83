"""Is a recorded run the same when it is run again, and where does it differ if not?

Life after life is played: the job is built anew, as the recorded process built it, and runs on a loop that lets in what
came in then.  Nothing outside is touched or asked: no file, no clock, no service, and no code of users that awaits.

What can't be replayed is said and is no divergence: a value that was redacted or could not be written down, or
something that reached the run past every seam.  The comparison of that life, and of those after it, ends there.
"""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable, Mapping, Sequence
from contextvars import copy_context
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from actorflow.config import Settings
from actorflow.dataflow.job import Job
from actorflow.errors import InvalidRecording
from actorflow.model.codec import Codec
from actorflow.model.journal import Line
from actorflow.runtime.environment import Environment
from actorflow.runtime.homes import homes_of_process
from actorflow.runtime.real_world import SystemEntropy
from actorflow.simulation.digest import journal_digest
from actorflow.simulation.recording import Start, life_of, plan_of, version_here
from actorflow.simulation.recording_outside import stand_outside
from actorflow.simulation.recording_turns import INSIDE
from actorflow.simulation.recording_world import recorded_world
from actorflow.simulation.replay_files import Files, digest_of_output
from actorflow.simulation.replay_loop import ReplayLoop
from actorflow.simulation.replay_script import RecordedLife, Script, lives_of
from actorflow.storage.disk import LocalDisk

__all__ = ("Replayed", "replay")

Build = Callable[[str, Sequence[str], str], Job]


@dataclass(frozen=True, slots=True, kw_only=True)
class Replayed:
    """What a replay came to.

    ``divergence`` is the first entry that differs, with both sides; ``None`` when none does.  ``unknown`` says where
    the comparison had to end, and why; ``not_compared`` how many entries that left.  ``journal_digests`` are those of
    each life, as ``actorflow run --record FILE --json`` told them.  ``output`` are the files that the run's sinks made
    visible.
    """

    lives: int
    entries: int
    divergence: str | None
    unknown: str | None
    not_compared: int
    journal_digest: str
    journal_digests: tuple[str, ...]
    output_digest: str
    output: Mapping[str, bytes] = field(repr=False)
    lines: tuple[Line, ...] = field(repr=False)
    notes: tuple[str, ...] = ()

    @property
    def same(self) -> bool:
        """Whether nothing differed of what could be compared."""
        return self.divergence is None


def replay(path: Path, build: Build) -> Replayed:
    """Run a recorded run again; ``build(target, arguments, folder)`` returns the job, as a new process would have it.

    Raises ``InvalidRecording``, and what building the job raises.
    """
    lives = lives_of(path)
    if not lives:
        raise InvalidRecording(f"{path}: it holds no life of a job")
    files = Files()
    played: list[_Played] = []
    for life in lives:
        one = _play(life, build, files)
        played.append(one)
        if one.divergence is not None or one.unknown is not None:
            break
    left = sum(sum(1 for _ in life.entries()) for life in lives[len(played) :])
    last = played[-1]
    lines = [line for one in played for line in one.lines]
    given: dict[str, Any] = {
        f"{number} {name}": digest for number, one in enumerate(played) for name, digest in one.given.items()
    }
    output = files.output()
    return Replayed(
        lives=len(lives),
        entries=sum(one.entries for one in played),
        divergence=last.divergence,
        unknown=last.unknown,
        not_compared=last.rest + left,
        journal_digest=journal_digest(lines),
        journal_digests=tuple(journal_digest(one.lines) for one in played),
        output_digest=digest_of_output(output, given),
        output=output,
        lines=tuple(lines),
        notes=_notes(last.life) if last.divergence is not None else (),
    )


@dataclass(frozen=True, slots=True)
class _Played:
    life: RecordedLife
    entries: int
    rest: int
    divergence: str | None
    unknown: str | None
    lines: list[Line]
    given: dict[str, Any]


def _play(life: RecordedLife, build: Build, files: Files) -> _Played:
    header = life.header
    script = Script(life)
    loop = ReplayLoop(script, files)  # type: ignore[abstract]  # it is played, and that needs no more
    divergence = None
    settings = Settings.from_layers([(source, mapping) for source, mapping in header["layers"]])
    job = build(header["target"], header["arguments"], header["folder"])
    plan = plan_of(job, settings)
    if plan.digest != header["plan"]:
        divergence = (
            f"life {life.number}: recorded: a plan of digest {header['plan'][:16]} for job {header['job']!r};"
            f" the replay: one of digest {plan.digest[:16]} for job {plan.job!r}, so the job is another one now"
        )
        return _Played(life, 0, script.rest(), divergence, None, [], {})
    redact = header["redacted"]
    stand_outside(job, Codec(plan.registry), loop, redact=redact)
    world = recorded_world(
        loop,
        disk=LocalDisk(),
        entropy=SystemEntropy(),
        observer=loop,
        host=header["host"],
        process=header["process"],
        redact=redact,
    )
    start = Start(
        target=header["target"],
        arguments=header["arguments"],
        layers=header["layers"],
        resume_from=header["resume_from"],
        rewind=header["rewind"],
    )
    context = copy_context()
    context.run(INSIDE.set, True)
    context.run(homes_of_process.set, {})
    interpreter = gc.get_threshold(), sys.getswitchinterval()
    try:
        task = loop.play(
            life_of(Environment(settings=settings, world=world), job, start, loop, lambda _: None), context
        )
    finally:
        gc.unfreeze()  # a life that is cut off does not leave the interpreter as it found it
        gc.set_threshold(*interpreter[0])
        sys.setswitchinterval(interpreter[1])
    for door in loop.doors.values():
        files.doubt(door.operation)
    divergence = loop.divergence
    if divergence is None and not loop.is_halted:
        divergence = _compare_ends(script, task)
    entries = script.taken
    return _Played(life, entries, script.rest(), divergence, loop.unknown, script.lines, script.given)


def _compare_ends(script: Script, task: Any) -> str | None:
    entry = script.peek()
    assert entry is not None
    if entry.value[0] == "interrupted":
        script.take()
        return None
    error = None if task.cancelled() else task.exception()
    mine = ["returned", ""] if error is None else ["raised", type(error).__name__]
    *recorded, journal = entry.value
    if recorded != mine:
        return script.differs(f"the end of this life ({' '.join(mine).strip()})")
    if journal != journal_digest(script.lines):
        return script.place(f"recorded: a journal of digest {journal}; the replay: {journal_digest(script.lines)}")
    script.take()
    return None


def _notes(life: RecordedLife) -> tuple[str, ...]:
    """What else is not as it was, and may be why."""
    here, header = version_here(), life.header
    notes = [
        f"it was recorded with {what} {header[what]}, and this is {here[what]}"
        for what in ("Python", "actorflow", "anyio")
        if header[what] != here[what]
    ]
    if header["hashing"] != here["hashing"]:
        notes.append(
            "text hashes differently in this process: a function that goes through a set in its own order gives another"
            " order here; record and replay with PYTHONHASHSEED=0 to make it the same"
        )
    return tuple(notes)
