"""What does whoever runs the job do to it from outside, and what comes of it?

An :class:`Agenda` knows when each step of a scenario is due.  A :class:`Desk` is where one process is asked: it does
what it is asked with the handle of its job, as a program does that embeds one.

Whoever asks is patient.  A stop, a drain or a cancel that did not come to its end, because the attempt failed or the
process died meanwhile, is asked for again until the job has ended; a checkpoint is asked for once.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass

import anyio
from anyio.abc import TaskGroup

from actorflow.errors import ActorflowError, CheckpointAborted, InvalidConfig, JobFailed
from actorflow.model.journal import Line
from actorflow.protocol.lifecycle import JobStatus
from actorflow.runtime.handle import JobHandle
from actorflow.simulation.runs import StepRecord
from actorflow.simulation.scenario import Act, Step
from actorflow.simulation.sky import Sky
from actorflow.simulation.weather import After, At, Weather
from actorflow.simulation.world import Ending, Outcome, Universe

__all__ = ("ENDS_AS", "Agenda", "Desk")

ENDS_AS: dict[Act, tuple[JobStatus, ...]] = {
    "stop": (JobStatus.STOPPED,),
    "rescale": (JobStatus.STOPPED,),
    "drain": (JobStatus.FINISHED,),
    "cancel": (JobStatus.CANCELED,),
}
"""Acts after which the process is expected to end, and the status of its job then."""

_ASKS_AGAIN_MS = 500


@dataclass(frozen=True, slots=True)
class _Due(Weather):
    """A step in the sky's own terms."""

    step: Step


class Agenda:
    """The steps of one run; ``perform`` is called, outside of all processes, when one is due."""

    def __init__(self, universe: Universe, steps: tuple[Step, ...], perform: Callable[[Step], None]) -> None:
        self._universe, self._perform = universe, perform
        self._sky = Sky()
        self.to_come: list[Step] = []
        """Steps that are not due yet, in their order."""
        self.sure: list[Step] = []
        """Those of them whose time will come, whatever else happens."""
        for step in steps:
            self.to_come.append(step)
            match step.when:
                case At(ms=ms):
                    self._later(step, ms / 1e3)
                case After():
                    self._sky.expect(_Due(step.when, step))
                case _:
                    raise InvalidConfig(f"step {step.act!r}: it comes at a time, or after an entry of the journal")
        if steps:
            universe.subscribe(self._read)

    def _read(self, line: Line) -> None:
        for due in self._sky.after(line):
            assert isinstance(due, _Due)
            assert isinstance(due.when, After)
            # Never at once: whoever announced the entry is in the middle of something.
            self._later(due.step, self._universe.loop.time() + due.when.later_ms / 1e3)

    def _later(self, step: Step, at_s: float) -> None:
        self.sure.append(step)
        loop = self._universe.loop
        loop.call_at(max(at_s, loop.time()), self._come, step, context=self._universe.context)

    def _come(self, step: Step) -> None:
        self.sure.remove(step)
        self.to_come.remove(step)
        self._perform(step)


class Desk:
    """Where one process is asked for something."""

    def __init__(self) -> None:
        self.asked: list[StepRecord] = []
        self._waiting: list[StepRecord] = []
        self._came = anyio.Event()

    def ask(self, record: StepRecord) -> None:
        """Ask for something, from outside of the process."""
        self.asked.append(record)
        self._waiting.append(record)
        self._came.set()

    def close(self, outcome: Outcome, now_ms: int, *, is_over: bool) -> list[StepRecord]:
        """Write down what came of what was asked for, now that the process has ended; return what is to be asked again.

        ``outcome`` is that of the process, with the job's status if it lived to tell it; ``is_over``: nobody is left to
        be asked.
        """
        again = []
        for record in self.asked:
            if record.ended_at_ms is not None:
                continue
            if outcome.value in ENDS_AS.get(record.act, ()):
                record.outcome = "done"
            elif record.act in ENDS_AS and not is_over:
                again.append(record)
                continue
            else:
                record.outcome = record.outcome or "the process ended"
                record.was_killed = outcome.ending is Ending.KILLED
            record.ended_at_ms = now_ms
        return again

    async def serve(self, handle: JobHandle, group: TaskGroup) -> None:
        """Be the part of the process that does what it is asked."""
        while True:
            await self._came.wait()
            self._came = anyio.Event()
            waiting, self._waiting = self._waiting, []
            for record in waiting:
                group.start_soon(self._do, handle, record, name=f"step {record.act}")

    async def _do(self, handle: JobHandle, record: StepRecord) -> None:
        loop = asyncio.get_running_loop()
        while True:
            try:
                await _carry_out(handle, record.act)
            except (CheckpointAborted, JobFailed) as refusal:
                record.outcome = str(refusal)
                record.aborted = refusal if isinstance(refusal, CheckpointAborted) else None
                if record.act not in ENDS_AS or handle.status.status.is_terminal:
                    break
            except ActorflowError as failure:  # it is told by whoever waits for the job's end, too
                record.outcome = str(failure)
                break
            else:
                ended = handle.status.status  # it may have come to another end just before
                record.outcome = "done" if ended in ENDS_AS.get(record.act, (ended,)) else f"the job is {ended}"
                break
            await asyncio.sleep(_ASKS_AGAIN_MS / 1e3)
        record.ended_at_ms = int(loop.time() * 1e3 + 1e-6)


async def _carry_out(handle: JobHandle, act: Act) -> None:
    match act:
        case "checkpoint":
            await handle.checkpoint()
        case "stop" | "rescale":
            await handle.stop()
        case "drain":
            await handle.drain()
        case "cancel":
            await handle.cancel()
        case "start":
            raise AssertionError("no process can start another one of itself")
