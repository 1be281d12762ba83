"""How is a run recorded?  ``actorflow run --record FILE`` asks this module.

One call is one life of the job in this process: a loop of its own (``recording_loop.py``), a world whose seams are
written down (``recording_world.py``), and stand-ins for what reaches the outside (``recording_outside.py``).  The file
(``recording_file.py``) begins each life with what is needed to build the job and its settings again.
"""

from __future__ import annotations

import asyncio
import signal
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextvars import copy_context
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from types import FrameType
from typing import Any

from actorflow.config import Settings
from actorflow.dataflow.job import Job
from actorflow.dataflow.plan import Plan, compile_plan
from actorflow.errors import InvalidRecording
from actorflow.model.codec import Codec
from actorflow.model.journal import Entry, FellBack
from actorflow.runtime.environment import Environment, wait_or_signal
from actorflow.runtime.handle import JobHandle
from actorflow.runtime.real_world import JournalObserver, SystemEntropy, real_world
from actorflow.simulation.recording_entries import Kind, entries_of, pack_tree
from actorflow.simulation.recording_file import RecordingFile, frames_of, is_recording
from actorflow.simulation.recording_log import RecordingLog
from actorflow.simulation.recording_loop import RecordingLoop
from actorflow.simulation.recording_outside import stand_outside
from actorflow.simulation.recording_turns import INSIDE
from actorflow.simulation.recording_world import Passage, recorded_world

__all__ = ("Start", "is_recording", "life_of", "plan_of", "record", "version_here")


@dataclass(frozen=True, slots=True, kw_only=True)
class Start:
    """What a life begins with: the command line, and the settings as it put them together."""

    target: str
    arguments: Sequence[str]
    layers: Sequence[tuple[str, Mapping[str, Any]]]
    resume_from: str = "latest"
    rewind: bool = False


def record(
    path: Path,
    job: Job,
    settings: Settings,
    start: Start,
    *,
    redact: bool,
    observe: Callable[[JournalObserver], object],
    begun: Callable[[JobHandle], object],
) -> str:
    """Run a job to its end and record it, after what the file holds already; return the digest of its journal.

    ``observe`` is given the journal, ``begun`` the handle once there is one; both see the run from outside.  Raises
    what running the job raises, and ``InvalidRecording`` when the file can't be used.
    """
    plan = plan_of(job, settings)
    file = RecordingFile(path)
    try:
        _check_is_ours(path, start, plan)
    except BaseException:
        file.close()
        raise
    real = real_world(owns_process=True)
    log = RecordingLog(file, lambda why: _tell_of_its_end(observer, path, why))
    loop = RecordingLoop(log, process=real.process, redact=redact)
    observer = _Observer(loop, real.process)
    observe(observer)
    stand_outside(job, Codec(plan.registry), loop, redact=redact)
    world = recorded_world(
        loop,
        disk=real.disk,
        entropy=SystemEntropy(),
        observer=observer,
        host=real.host,
        process=real.process,
        redact=redact,
    )
    environment = Environment(settings=settings, world=world)
    log.add(pack_tree(Kind.LIFE, _header(start, plan, real.host, real.process, redact=redact)))
    log.flush()
    before = signal.signal(signal.SIGINT, _interrupt)  # as Python does, and as the runner would not
    try:
        with asyncio.Runner(loop_factory=lambda: loop) as runner:
            ending = ["interrupted", ""]
            try:
                context = copy_context()
                context.run(INSIDE.set, True)
                runner.run(life_of(environment, job, start, loop, begun), context=context)
                ending = ["returned", ""]
            except Exception as error:
                ending = ["raised", type(error).__name__]
                raise
            finally:
                log.add(pack_tree(Kind.END, [*ending, loop.journal.hexdigest()]))
                log.close()
    finally:
        signal.signal(signal.SIGINT, before)
    return loop.journal.hexdigest()


async def life_of(
    environment: Environment, job: Job, start: Start, passage: Passage, begun: Callable[[JobHandle], object]
) -> None:
    """One life of a job, recorded or replayed."""
    async with environment.run(job, resume_from=start.resume_from, rewind=start.rewind) as handle:
        passage.aside(begun, handle)
        await wait_or_signal(handle, listen=passage.listen)


def plan_of(job: Job, settings: Settings) -> Plan:
    """What the job will run as."""
    mine = job.settings_over(settings)
    return compile_plan(job, parallelism=mine.parallelism, max_parallelism=mine.max_parallelism)


def version_here() -> dict[str, Any]:
    """What runs here: versions that a run may depend on, and how this process hashes text."""
    return {
        "Python": ".".join(map(str, sys.version_info[:3])),
        "actorflow": _version_of("actorflow"),
        "anyio": _version_of("anyio"),
        "hashing": hash("actorflow") & 0xFFFFFFFF,
    }


def _version_of(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:  # it runs from its sources
        return "from its sources"


def _header(start: Start, plan: Plan, host: str, process: str, *, redact: bool) -> dict[str, Any]:
    return {
        "job": plan.job,
        "plan": plan.digest,
        "target": start.target,
        "arguments": list(start.arguments),
        "layers": [[source, _plain(mapping)] for source, mapping in start.layers],
        "resume_from": start.resume_from,
        "rewind": start.rewind,
        "folder": str(Path.cwd()),
        "host": host,
        "process": process,
        "redacted": redact,
        "began_ms": time.time_ns() // 1_000_000,
        **version_here(),
    }


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    return value if value is None or type(value) in (str, int, float, bool) else str(value)


def _check_is_ours(path: Path, start: Start, plan: Plan) -> None:
    """A file holds the lives of one job."""
    for _, payload in frames_of(path):
        header = next(entries_of(payload)).value
        if (header["job"], header["target"]) != (plan.job, start.target):
            raise InvalidRecording(
                f"{path}: it holds a recording of {header['target']} (job {header['job']!r}), and this is"
                f" {start.target} (job {plan.job!r}); record into another file"
            )
        return


class _Observer(JournalObserver):
    """Writes the journal down before anybody reads it."""

    def __init__(self, passage: Passage, process: str) -> None:
        super().__init__(process)
        self._passage = passage

    def announce(self, entry: Entry) -> None:
        self._passage.announce(entry)
        super().announce(entry)


def _tell_of_its_end(observer: JournalObserver, path: Path, why: str) -> None:
    entry = FellBack(subject=f"--record {path}", wanted="a recording", taken="the job goes on without it", why=why)
    JournalObserver.announce(observer, entry)


def _interrupt(_number: int, _frame: FrameType | None) -> None:
    raise KeyboardInterrupt
