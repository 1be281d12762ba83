"""How does a real run go on as ever, and yet so that it can be run again?

It goes on a loop of asyncio's own, with its selector, sockets, threads and signals, divided in two.  *Inside* are the
turns of the run, in an order that can be kept (``recording_turns.py``, ``recording_rounds.py``).  *Outside* is
everything that they wait for: threads, timers, signals, and the code of users that awaits.  Whatever comes in from
there comes in between two turns, one at a time, and is written down with the number of turns before it.  Whatever a
turn reads (a clock, chance) is written down when it is read.  So a replay that lets the same things in at the same
points goes the same way, and nothing else needs to be known: not the threads, not the addresses, not how long it took.

What was written is handed to the operating system before anything is done outside that leaves a trace, and with each
line of the journal.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import AbstractContextManager
from contextvars import Context, copy_context
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from actorflow.model.journal import ActorFailed, Entry, Line
from actorflow.runtime.environment import process_signals
from actorflow.simulation.recording_entries import Kind, Status, pack, pack_answer, pack_said, pack_tree
from actorflow.simulation.recording_log import RecordingLog
from actorflow.simulation.recording_rounds import RoundsLoop
from actorflow.simulation.recording_turns import INSIDE, Door, Operation, outside, work_in_thread
from actorflow.simulation.recording_values import JournalDigest, answer_of, line_of

if TYPE_CHECKING:
    from actorflow.simulation.recording_sinks import OutsideWriter

__all__ = ("RecordingLoop",)

T = TypeVar("T")

Work = Callable[[], Coroutine[Any, Any, Any]]


class RecordingLoop(RoundsLoop):
    """A loop that writes into ``log`` what comes into the run of a process; ``journal`` is the digest of its lines."""

    def __init__(self, log: RecordingLog, *, process: str = "", redact: bool = False) -> None:
        super().__init__(log)
        self._process, self._redact = process, redact
        self.journal = JournalDigest()
        self._allowed = 0
        self._writers: dict[str, OutsideWriter] = {}
        self._operations = self._works = 0

    # ── what a turn reads ────────────────────────────────────────────────────────────────────

    def read_clock(self, kind: Kind) -> int:
        """Read a clock, and write down what it said."""
        value = _CLOCKS[kind]()
        if INSIDE.get():
            self.log.add(pack(kind, value))
        return value

    def slice_is_over(self) -> bool:
        """Whether whoever runs should let the others have a turn; only the answer yes is written down."""
        is_over = time.perf_counter() >= self.slice_ends
        if INSIDE.get():
            if is_over:
                self.log.add(pack(Kind.SLICE, self._allowed))
                self._allowed = 0
            else:
                self._allowed += 1
        return is_over

    def draw(self, draw: Callable[[], float]) -> float:
        """Draw a number, and write it down."""
        value = draw()
        if INSIDE.get():
            self.log.add(pack(Kind.DRAW, value))
        return value

    # ── outside ──────────────────────────────────────────────────────────────────────────────

    def begin(self, operation: Operation, cancel: Callable[[Any], object] | None = None) -> Door:
        """Write down that something is asked of the outside; whoever does it answers by ``answer``."""
        self._operations += 1
        operation.number = self._operations
        self.log.add(pack_tree(Kind.OPERATION, [operation.name, *operation.arguments]))
        if operation.leaves_a_trace:
            self.log.flush()
        return Door(operation, self, cancel)

    def answer(self, door: Door, value: Any, error: BaseException | None = None) -> None:
        """Bring an answer to the door, from outside."""
        door.has_answer = True
        self.arrive(partial(self._open, door, value, error))

    def go_out(self, operation: Operation, work: Work) -> Awaitable[Any]:
        """Do something outside, in a task of its own; what it gives or raises comes in through the door."""
        tasks: list[asyncio.Task[None]] = []

        def cancel(message: Any) -> None:
            tasks[0].cancel(message)

        door, context = self.begin(operation, cancel), outside()
        task = super().create_task(self._carry_out(door, work), name=operation.name, context=context)
        task.add_done_callback(partial(self._never_began, door), context=context)
        tasks.append(task)
        return door

    async def _carry_out(self, door: Door, work: Work) -> None:
        try:
            value = await work()
        except (Exception, asyncio.CancelledError) as error:
            self.answer(door, None, error)
        else:
            self.answer(door, value)

    def _never_began(self, door: Door, task: asyncio.Task[None]) -> None:
        if not door.has_answer:
            self.answer(door, None, asyncio.CancelledError())

    def _open(self, door: Door, value: Any, error: BaseException | None) -> None:
        operation = door.operation
        if door.is_dropped:
            error = asyncio.CancelledError()
        status, body = answer_of(operation.form, value, error, redact=self._redact)
        self.log.add(pack_answer(operation.number, self.turns.run, status, body))
        if status is Status.CANCELLED:
            door.open_cancelled()
        elif error is not None:
            door.set_exception(error)
        else:
            door.set_result(value)

    def say(self, operation: Operation, function: Callable[[], Any]) -> Any:
        """Do something outside that does not wait, and write down what it gave."""
        self.log.add(pack_tree(Kind.OPERATION, [operation.name, *operation.arguments]))
        self._operations += 1
        try:
            value = outside().run(function)
        except Exception as error:
            self.log.add(pack_said(*answer_of(operation.form, None, error, redact=self._redact)))
            raise
        self.log.add(pack_said(*answer_of(operation.form, value, None, redact=self._redact)))
        return value

    def each(self, writer: OutsideWriter, real: Any) -> Any:
        """Let a batch be given to a function of the user's, without a door; only that it raised is written down."""
        self._writers[writer.name] = writer
        return real

    def _note_raised(self, entry: Entry) -> None:
        if isinstance(entry, ActorFailed):
            writer = self._writers.get(f"{entry.operator}/{entry.subtask}")
            if writer is not None and writer.is_in_batch:
                self.log.add(pack_tree(Kind.RAISED, [writer.number, writer.batches, entry.cause]))

    def aside(self, function: Callable[..., T], *args: Any) -> T:
        """Call something that is not of the run."""
        return outside().run(function, *args)

    def run_in_executor(self, executor: Any, func: Any, *args: Any) -> Any:  # type: ignore[override]  # as inherited, in fewer words
        if not INSIDE.get():
            return super().run_in_executor(executor, func, *args)
        self._works += 1
        self.log.add(pack(Kind.WORK))
        context = outside()
        real = context.run(super().run_in_executor, executor, work_in_thread(func), *args)
        inside: asyncio.Future[Any] = asyncio.Future(loop=self)
        arrival = partial(self._work_is_done, self._works, inside, real)
        real.add_done_callback(lambda _: self.arrive(arrival), context=context)
        return inside

    def _work_is_done(self, number: int, inside: asyncio.Future[Any], real: asyncio.Future[Any]) -> None:
        error = real.exception() if not real.cancelled() else asyncio.CancelledError()
        if inside.done():
            return  # nobody waits for it any more
        self.log.add(pack(Kind.WORK_DONE, number, self.turns.run))
        if error is None:
            inside.set_result(real.result())
        else:
            inside.set_exception(error)

    # ── the journal, and signals ─────────────────────────────────────────────────────────────

    def announce(self, entry: Entry) -> None:
        """Write down a line of the journal."""
        kind = Kind.ASIDE
        if INSIDE.get():
            kind = Kind.LINE
            self._note_raised(entry)
        line = Line(0, _now_ms(), self._process, entry)
        self.journal.add(line)
        self.log.add(pack_tree(kind, line_of(entry, line.at_ms, redact=self._redact)))
        self.log.flush()

    def listen(self, heard: Callable[[], None]) -> AbstractContextManager[None]:
        """Call ``heard`` once, when this process is asked to stop."""
        return process_signals(partial(self.arrive, partial(self._signal, heard, copy_context())))

    def _signal(self, heard: Callable[[], None], context: Context) -> None:
        self.log.add(pack(Kind.SIGNAL, self.turns.run))
        self.log.flush()
        context.run(heard)


def _wall_ms() -> int:
    return time.time_ns() // 1_000_000


def _now_us() -> int:
    return time.perf_counter_ns() // 1_000


def _now_ms() -> int:
    return time.monotonic_ns() // 1_000_000


_CLOCKS: dict[Kind, Callable[[], int]] = {Kind.NOW_MS: _now_ms, Kind.NOW_US: _now_us, Kind.WALL_MS: _wall_ms}
