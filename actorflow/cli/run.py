"""``actorflow run``: one job in a process of its own, from start to end.

Checkpoints go to ``./.actorflow/`` every ten seconds unless told otherwise.  Ctrl-C or SIGTERM once stops with a last
checkpoint, a second one ends at once.
"""

from __future__ import annotations

import asyncio
import json
import shlex
import sys
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from actorflow.cli.exits import Exit, UsageMistake
from actorflow.cli.live_line import show_live_line
from actorflow.cli.logs import set_up_logs
from actorflow.cli.targets import build_job
from actorflow.config import Settings
from actorflow.config.reading import parse_assignments
from actorflow.config.telling import changed_nothing
from actorflow.dataflow.job import Job
from actorflow.model import journal
from actorflow.protocol.lifecycle import JobStatus
from actorflow.runtime.environment import Environment, wait_or_signal
from actorflow.runtime.handle import JobHandle
from actorflow.runtime.real_world import JournalObserver, real_world

__all__ = ("DEFAULTS", "run_target", "settings_of")

DEFAULTS = {"checkpoints.storage": ".actorflow", "checkpoints.every": "10s"}


def layers_of(define: Sequence[str], config: Path | None) -> list[tuple[str, Mapping[str, object]]]:
    """What the settings are made of, each with where it stands; the last is what ``-D`` says."""
    layers: list[tuple[str, Mapping[str, object]]] = [("the defaults of actorflow run", DEFAULTS)]
    if config is not None:
        try:
            layers.append((str(config), tomllib.loads(config.read_text(encoding="utf-8"))))
        except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
            raise UsageMistake(f"--config {config}: {error}") from error
    return [*layers, ("-D", parse_assignments(define))]


def settings_of(define: Sequence[str], config: Path | None) -> tuple[Settings, Settings, Mapping[str, object]]:
    """The settings with and without what ``-D`` says, and what it says; every mistake is told at once."""
    layers = layers_of(define, config)
    return Settings.from_layers(layers), Settings.from_layers(layers[:-1]), layers[-1][1]


def run_target(
    target: str,
    arguments: Sequence[str],
    *,
    define: Sequence[str],
    config: Path | None,
    start_from: str | None,
    fresh: bool,
    rewind: bool,
    as_json: bool,
    log_level: str,
    log_format: str,
    record: Path | None = None,
    redact: bool = False,
) -> int:
    """Run the job of a target to its end and return the exit code; ``record`` is the file that it is recorded into."""
    set_up_logs(log_level, log_format)
    if fresh and start_from is not None:
        raise UsageMistake("--fresh starts without state and --from starts from a snapshot: give one of them")
    if rewind and start_from is None:
        raise UsageMistake("--rewind insists on --from PATH: give that too")
    if redact and record is None:
        raise UsageMistake("--redact says what --record FILE leaves out: give that too")
    settings, before, asked = settings_of(define, config)
    job = build_job(target, arguments)
    for sentence in changed_nothing(asked, before=before, after=job.settings_over(settings)):
        print(f"actorflow: {sentence}", file=sys.stderr)
    sys.setswitchinterval(0.0005)  # a thread that waits for the interpreter must not starve beside a busy loop
    resume_from = "nothing" if fresh else start_from if start_from is not None else "latest"
    facts = _Facts()
    try:
        if record is None:
            asyncio.run(_run(job, settings, resume_from, rewind, facts))
        else:
            from actorflow.simulation import recording

            start = recording.Start(
                target=target,
                arguments=arguments,
                layers=layers_of(define, config),
                resume_from=resume_from,
                rewind=rewind,
            )
            facts.journal = recording.record(
                record, job, settings, start, redact=redact, observe=facts.observe, begun=facts.begin_beside
            )
    finally:
        if as_json and facts.handle is not None:
            print(json.dumps(_result(facts.handle, facts)), flush=True)
        if record is not None and facts.handle is not None:
            print(f"it is recorded: run it again with actorflow simulate {shlex.quote(str(record))}", file=sys.stderr)
    assert facts.handle is not None
    _say_how_it_ended(facts.handle)
    if facts.handle.status.status in (JobStatus.STOPPED, JobStatus.FINISHED):
        return Exit.DONE
    return Exit.FAILED


async def _run(job: Job, settings: Settings, resume_from: str, rewind: bool, facts: _Facts) -> None:
    world = real_world(owns_process=True)
    assert isinstance(world.observer, JournalObserver)
    facts.observe(world.observer)
    async with Environment(settings=settings, world=world).run(job, resume_from=resume_from, rewind=rewind) as handle:
        facts.begin(handle)
        await wait_or_signal(handle, beside=show_live_line)


class _Facts:
    """What is known of a run: its handle, and what the result tells beyond it."""

    def __init__(self) -> None:
        self.checkpoints = 0
        self.handle: JobHandle | None = None
        self.journal: str | None = None
        self._line: asyncio.Task[None] | None = None

    def observe(self, observer: JournalObserver) -> None:
        """Read the journal."""
        observer.subscribe(self)

    def begin(self, handle: JobHandle) -> None:
        """The job runs."""
        self.handle = handle
        _say_where_it_starts(handle)

    def begin_beside(self, handle: JobHandle) -> None:
        """The job runs and is recorded, and the live line is not of the run."""
        self.begin(handle)
        self._line = asyncio.get_running_loop().create_task(show_live_line(handle), name="live line")

    def __call__(self, line: journal.Line) -> None:
        match line.entry:
            case journal.CheckpointCompleted():
                self.checkpoints += 1
            case journal.SettingIgnored(setting=setting, why=why):
                print(f"actorflow: {setting}: {why}", file=sys.stderr)


def _say_where_it_starts(handle: JobHandle) -> None:
    status = handle.status
    if status.status is JobStatus.FINISHED:
        text = "it has finished before; start it over with --fresh"
    elif status.restored_checkpoint is None:
        text = "it starts without state"
    else:
        text = f"it goes on from checkpoint {status.restored_checkpoint}; start it over with --fresh"
    print(f"job {handle.name!r}: {text}", file=sys.stderr)


def _say_how_it_ended(handle: JobHandle) -> None:
    status = handle.status
    text = f"job {handle.name!r} {status.status.value}"
    if status.status is JobStatus.STOPPED and status.last_checkpoint is not None:
        text += f"; the next start goes on from {status.last_checkpoint.path}"
    print(text, file=sys.stderr)


def _result(handle: JobHandle, facts: _Facts) -> dict[str, Any]:
    status = handle.status
    last = status.last_checkpoint
    return {
        "job": handle.name,
        "status": status.status.value,
        "attempts": status.attempt,
        "restarts": status.restarts,
        "restored_checkpoint": status.restored_checkpoint,
        "checkpoints": facts.checkpoints,
        "last_checkpoint": None if last is None else last.checkpoint_id,
        **({} if facts.journal is None else {"journal_digest": facts.journal}),
    }
