"""How does a real run go on as ever, and yet so that it can be run again?

It goes on a loop of asyncio's own, with its selector, sockets, threads and signals, divided in two.  *Inside* are the
turns of the run (``recording_turns.py``): they take each other's results in an order that the loop keeps.  *Outside* is
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
from collections import deque
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import AbstractContextManager
from contextvars import Context, copy_context
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from actorflow.model.journal import ActorFailed, Entry, Line
from actorflow.runtime.environment import process_signals
from actorflow.simulation.recording_entries import Kind, Status, pack, pack_answer, pack_said, pack_tree
from actorflow.simulation.recording_log import RecordingLog
from actorflow.simulation.recording_turns import (
    INSIDE,
    Door,
    InsideTask,
    Operation,
    Turn,
    Turns,
    outside,
    work_in_thread,
)
from actorflow.simulation.recording_values import JournalDigest, answer_of, line_of

if TYPE_CHECKING:
    from actorflow.simulation.recording_outside import OutsideWriter

__all__ = ("RecordingLoop",)

T = TypeVar("T")

SLICE_S = 0.002
"""How long the turns of one round may take together before everybody lets the others in."""

Work = Callable[[], Coroutine[Any, Any, Any]]


class RecordingLoop(asyncio.SelectorEventLoop):
    """A loop that writes into ``log`` what comes into the run of a process; ``journal`` is the digest of its lines."""

    def __init__(self, log: RecordingLog, *, process: str = "", redact: bool = False) -> None:
        self._log, self._process, self._redact = log, process, redact
        self.journal = JournalDigest()
        self._turns = Turns()
        self._rounds = outside()
        self._arrivals: deque[Callable[[], None]] = deque()
        self._in_round = self._has_begun = self._round_is_due = False
        self._slice_ends = 0.0
        self._allowed = 0
        self._writers: dict[str, OutsideWriter] = {}
        self._tasks = self._timers = self._operations = self._works = 0
        super().__init__()

    # ── turns ────────────────────────────────────────────────────────────────────────────────

    def call_soon(self, callback: Any, *args: Any, context: Context | None = None) -> Any:  # type: ignore[override]  # as inherited, in fewer words
        if context is None:
            context = copy_context()
        if not context.get(INSIDE):
            return super().call_soon(callback, *args, context=context)
        turns = self._turns
        turn = turns.make(callback, args, context)
        turns.fresh.append(turn)
        if not self._in_round:
            self._enter(callback)
        return turn

    def _enter(self, callback: object) -> None:
        """Take in what comes from outside of a round: the beginning, and what found a way past every seam."""
        if self._has_begun:
            self._log.add(pack_tree(Kind.LEAK, [_short(callback)]))
        self._has_begun = True
        self._turns.settle()
        self._ask_for_round()

    def _ask_for_round(self) -> None:
        if not self._round_is_due:
            self._round_is_due = True
            super().call_soon(self._round, context=self._rounds)

    def _round(self) -> None:
        """Let in what has arrived, and run the turns that were ready before."""
        self._round_is_due = False
        turns = self._turns
        self._slice_ends = time.perf_counter() + SLICE_S
        self._in_round = True
        try:
            while self._arrivals:
                self._arrivals.popleft()()
                turns.settle()
            turns.take(len(turns.ready), self._turn_failed)
        finally:
            self._in_round = False
            if turns.ready or self._arrivals:
                self._ask_for_round()

    def _turn_failed(self, turn: Turn, error: BaseException) -> None:
        self.call_exception_handler({"message": f"exception in callback {turn!r}", "exception": error})

    def _arrive(self, arrival: Callable[[], None]) -> None:
        self._arrivals.append(arrival)
        self._ask_for_round()

    def call_soon_threadsafe(self, callback: Any, *args: Any, context: Context | None = None) -> Any:  # type: ignore[override]  # as inherited, in fewer words
        return super().call_soon_threadsafe(callback, *args, context=outside(context))

    def create_task(self, coro: Any, *, name: Any = None, context: Context | None = None, **options: Any) -> Any:
        inside = INSIDE.get() if context is None else context.get(INSIDE)
        if not inside:
            if context is not None:
                options["context"] = context
            return super().create_task(coro, name=name, **options)
        self._tasks += 1
        named = f"task {self._tasks}" if name is None else str(name)
        return InsideTask(self._tasks, coro, loop=self, name=named, context=context)

    # ── time ─────────────────────────────────────────────────────────────────────────────────

    def time(self) -> float:
        now = super().time()
        if INSIDE.get():
            self._log.add(pack(Kind.LOOP_TIME, now))
        return now

    def call_later(self, delay: float, callback: Any, *args: Any, context: Context | None = None) -> Any:  # type: ignore[override]  # as inherited, in fewer words
        return self.call_at(super().time() + delay, callback, *args, context=context)

    def call_at(self, when: float, callback: Any, *args: Any, context: Context | None = None) -> Any:  # type: ignore[override]  # as inherited, in fewer words
        if context is None:
            context = copy_context()
        if not context.get(INSIDE):
            return super().call_at(when, callback, *args, context=context)
        self._timers += 1
        turn = self._turns.make(callback, args, context, when)
        turn.number = self._timers
        turn.timer = super().call_at(when, self._arrive, partial(self._timer_is_due, turn), context=outside())
        return turn

    def _timer_is_due(self, turn: Turn) -> None:
        if not turn.cancelled():
            self._log.add(pack(Kind.TIMER, turn.number, self._turns.run))
            self._turns.fresh.append(turn)

    def read_clock(self, kind: Kind) -> int:
        """Read a clock, and write down what it said."""
        value = _CLOCKS[kind]()
        if INSIDE.get():
            self._log.add(pack(kind, value))
        return value

    def slice_is_over(self) -> bool:
        """Whether whoever runs should let the others have a turn; only the answer yes is written down."""
        is_over = time.perf_counter() >= self._slice_ends
        if INSIDE.get():
            if is_over:
                self._log.add(pack(Kind.SLICE, self._allowed))
                self._allowed = 0
            else:
                self._allowed += 1
        return is_over

    def draw(self, draw: Callable[[], float]) -> float:
        """Draw a number, and write it down."""
        value = draw()
        if INSIDE.get():
            self._log.add(pack(Kind.DRAW, value))
        return value

    # ── outside ──────────────────────────────────────────────────────────────────────────────

    def begin(self, operation: Operation, cancel: Callable[[Any], object] | None = None) -> Door:
        """Write down that something is asked of the outside; whoever does it answers by ``answer``."""
        self._operations += 1
        operation.number = self._operations
        self._log.add(pack_tree(Kind.OPERATION, [operation.name, *operation.arguments]))
        if operation.leaves_a_trace:
            self._log.flush()
        return Door(operation, self, cancel)

    def answer(self, door: Door, value: Any, error: BaseException | None = None) -> None:
        """Bring an answer to the door, from outside."""
        door.has_answer = True
        self._arrive(partial(self._open, door, value, error))

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
        self._log.add(pack_answer(operation.number, self._turns.run, status, body))
        if status is Status.CANCELLED:
            door.open_cancelled()
        elif error is not None:
            door.set_exception(error)
        else:
            door.set_result(value)

    def say(self, operation: Operation, function: Callable[[], Any]) -> Any:
        """Do something outside that does not wait, and write down what it gave."""
        self._log.add(pack_tree(Kind.OPERATION, [operation.name, *operation.arguments]))
        self._operations += 1
        try:
            value = outside().run(function)
        except Exception as error:
            self._log.add(pack_said(*answer_of(operation.form, None, error, redact=self._redact)))
            raise
        self._log.add(pack_said(*answer_of(operation.form, value, None, redact=self._redact)))
        return value

    def each(self, writer: OutsideWriter, real: Any) -> Any:
        """Let a batch be given to a function of the user's, without a door; only that it raised is written down."""
        self._writers[writer.name] = writer
        return real

    def _note_raised(self, entry: Entry) -> None:
        if isinstance(entry, ActorFailed):
            writer = self._writers.get(f"{entry.operator}/{entry.subtask}")
            if writer is not None and writer.is_in_batch:
                self._log.add(pack_tree(Kind.RAISED, [writer.number, writer.batches, entry.cause]))

    def aside(self, function: Callable[..., T], *args: Any) -> T:
        """Call something that is not of the run."""
        return outside().run(function, *args)

    def run_in_executor(self, executor: Any, func: Any, *args: Any) -> Any:  # type: ignore[override]  # as inherited, in fewer words
        if not INSIDE.get():
            return super().run_in_executor(executor, func, *args)
        self._works += 1
        self._log.add(pack(Kind.WORK))
        context = outside()
        real = context.run(super().run_in_executor, executor, work_in_thread(func), *args)
        inside: asyncio.Future[Any] = asyncio.Future(loop=self)
        arrival = partial(self._work_is_done, self._works, inside, real)
        real.add_done_callback(lambda _: self._arrive(arrival), context=context)
        return inside

    def _work_is_done(self, number: int, inside: asyncio.Future[Any], real: asyncio.Future[Any]) -> None:
        error = real.exception() if not real.cancelled() else asyncio.CancelledError()
        if inside.done():
            return  # nobody waits for it any more
        self._log.add(pack(Kind.WORK_DONE, number, self._turns.run))
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
        self._log.add(pack_tree(kind, line_of(entry, line.at_ms, redact=self._redact)))
        self._log.flush()

    def listen(self, heard: Callable[[], None]) -> AbstractContextManager[None]:
        """Call ``heard`` once, when this process is asked to stop."""
        return process_signals(partial(self._arrive, partial(self._signal, heard, copy_context())))

    def _signal(self, heard: Callable[[], None], context: Context) -> None:
        self._log.add(pack(Kind.SIGNAL, self._turns.run))
        self._log.flush()
        context.run(heard)


def _short(callback: object) -> str:
    return f"{getattr(callback, '__qualname__', type(callback).__name__)}"


def _wall_ms() -> int:
    return time.time_ns() // 1_000_000


def _now_us() -> int:
    return time.perf_counter_ns() // 1_000


def _now_ms() -> int:
    return time.monotonic_ns() // 1_000_000


_CLOCKS: dict[Kind, Callable[[], int]] = {Kind.NOW_MS: _now_ms, Kind.NOW_US: _now_us, Kind.WALL_MS: _wall_ms}
