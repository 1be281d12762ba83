"""Does a run go the way it was recorded?

This loop takes the turns of a run in the order in which the recording loop took them, with nothing outside: what came
in then comes in now, after the same number of turns, and what was read then is read again.  Whatever the run asks for,
reads or announces is compared with the next entry of the recording; the first that differs ends it, with both sides.
Where the recording ends because its process was killed, the replay ends too.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Awaitable, Callable, Coroutine, Iterator
from contextlib import AbstractContextManager, contextmanager
from contextvars import Context, copy_context
from functools import partial
from typing import TYPE_CHECKING, Any, NoReturn

from actorflow.errors import ActorflowError
from actorflow.model.journal import Entry as JournalEntry
from actorflow.model.journal import Line
from actorflow.model.unpacking import load
from actorflow.simulation.recording_entries import ENTERING, Entry, Kind, Status, dump_told
from actorflow.simulation.recording_turns import INSIDE, Door, InsideTask, Operation, Turn, Turns, work_in_thread
from actorflow.simulation.recording_values import error_of, line_of
from actorflow.simulation.refusals import NothingOutside
from actorflow.simulation.replay_files import Files, Unknown
from actorflow.simulation.replay_script import Script, tell, tell_line
from actorflow.simulation.steps import where

if TYPE_CHECKING:
    from actorflow.simulation.recording_outside import OutsideWriter

__all__ = ("Halted", "ReplayLoop")

_ROUNDS, _TURNS = 20, 5_000
"""How often what is left of a life is cancelled, and how many turns it may take each time, to come to its end."""

_MOST_TOLD = 5
"""Tasks that a divergence names at most."""


class Halted(BaseException):
    """Raised by every seam of a life whose replay is over: its code can do no more than unwind."""


class _Timer:
    """What stands behind a turn that waits until the recording says that its time has come."""

    __slots__ = ("_number", "_timers")

    def __init__(self, timers: dict[int, Turn], number: int) -> None:
        self._timers, self._number = timers, number

    def cancel(self) -> None:
        self._timers.pop(self._number, None)


class ReplayLoop(NothingOutside):
    """A loop that lets in what ``script`` says, and does to ``files`` what the run does."""

    def __init__(self, script: Script, files: Files) -> None:
        self.script, self.files = script, files
        self.divergence: str | None = None
        self.unknown: str | None = None
        self.is_halted = False
        self.errors: list[dict[str, Any]] = []
        self._turns = Turns()
        self._timers: dict[int, Turn] = {}
        self._doors: dict[int, Door] = {}
        self._work: dict[int, tuple[Callable[[], Any], asyncio.Future[Any]]] = {}
        self._heard: list[tuple[Callable[[], None], Context]] = []
        self._tasks = self._timers_set = self._operations = self._works = 0
        self._allowed = 0
        self._is_running = False

    # ── the script ───────────────────────────────────────────────────────────────────────────

    def _expect(self, kind: Kind, what: str) -> Entry:
        """Take the next entry, which must be of this kind; ``what`` is what the replay does."""
        if self.is_halted:
            raise Halted
        entry = self.script.peek()
        if entry is None:
            self.is_halted = True
            raise Halted
        if entry.kind is not kind:
            self._diverge(what)
        self.script.take()
        return entry

    def _diverge(self, what: str) -> NoReturn:
        """End it here; raises ``Halted``."""
        self.divergence = self.script.differs(what)
        self.is_halted = True
        raise Halted

    # ── what the world's seams ask ───────────────────────────────────────────────────────────

    def time(self) -> float:
        """Seconds, as the recorded run read them."""
        if not INSIDE.get():
            return 0.0
        now: float = self._expect(Kind.LOOP_TIME, tell(Entry(Kind.LOOP_TIME))).value
        return now

    def read_clock(self, kind: Kind) -> int:
        """What a clock said."""
        if not INSIDE.get():
            return 0
        now: int = self._expect(kind, tell(Entry(kind))).value
        return now

    def draw(self, draw: Callable[[], float]) -> float:
        """What chance said."""
        drawn: float = self._expect(Kind.DRAW, tell(Entry(Kind.DRAW))).value
        return drawn

    def slice_is_over(self) -> bool:
        """Whether whoever ran then had to let the others have a turn."""
        if self.is_halted:
            return True
        entry = self.script.peek()
        if entry is not None and entry.kind is Kind.SLICE and entry.value == self._allowed:
            self.script.take()
            self._allowed = 0
            return True
        self._allowed += 1
        return False

    def announce(self, entry: JournalEntry) -> None:
        """Compare a line of the journal."""
        if self.is_halted or not INSIDE.get():
            return
        what = tell_line(entry)
        recorded = self._expect(Kind.LINE, what)
        if recorded.value[1:3] != line_of(entry, 0, redact=True)[1:3]:
            self.script.put_back(recorded)
            self._diverge(what)
        self.script.lines.append(Line(len(self.script.lines) + 1, recorded.value[0], self.script.process, entry))

    # ── doors ────────────────────────────────────────────────────────────────────────────────

    def begin(self, operation: Operation, cancel: Callable[[Any], object] | None = None) -> Door:
        """Compare what is asked of the outside."""
        self._compare(operation)
        door = Door(operation, self)
        self._doors[operation.number] = door
        return door

    def _compare(self, operation: Operation) -> None:
        what = tell(Entry(Kind.OPERATION, [operation.name, *operation.arguments]))
        recorded = self._expect(Kind.OPERATION, what)
        self._operations += 1
        operation.number = self._operations
        if recorded.value != _as_written([operation.name, *operation.arguments]):
            self.script.put_back(recorded)
            self._diverge(what)
        self.script.operations[operation.number] = str(operation)

    def answer(self, door: Door, value: Any, error: BaseException | None = None) -> None:
        """Nobody answers but the script."""

    def go_out(self, operation: Operation, work: Any) -> Awaitable[Any]:
        """Ask for something that is not done."""
        return self.begin(operation)

    def aside(self, function: Callable[..., object], *args: Any) -> None:
        """What is not of the run is not done."""

    def say(self, operation: Operation, function: Callable[[], Any]) -> Any:
        """What was answered at once."""
        self._compare(operation)
        entry = self._expect(Kind.SAID, f"waits for the answer to {operation}")
        if entry.status is Status.ERROR:
            raise error_of(entry.value)
        return self._value_of(operation, entry)

    def each(self, writer: OutsideWriter, real: Any) -> Any:
        """A function for a batch: it does nothing but what was recorded of it, that it raised."""
        cause = self.script.raised.get((writer.number, writer.batches))
        if cause is not None:

            def raises(_record: Any) -> None:
                raise type(cause, (Exception,), {})

            return raises
        return self.script.given_to(writer.name)

    def _value_of(self, operation: Operation, entry: Entry) -> Any:
        try:
            if entry.status is Status.VALUE:
                return operation.form.take(entry.value)
            (told,) = load(entry.value)
            why = f"what {operation} gave could not be written down: {told}"
            if entry.status is Status.REDACTED:
                why = f"what {operation} gave was redacted"
                if operation.substitute is not None:
                    return operation.substitute(self.files, told)
        except Unknown as error:
            why = str(error)
        except ActorflowError as error:  # of a class that the job has no longer
            why = f"what {operation} gave can't be read any more: {error}"
        self.unknown = self.script.place(why)
        self.is_halted = True
        raise Halted

    # ── what comes in ────────────────────────────────────────────────────────────────────────

    def _let_in(self) -> None:
        """Let in what came in after this number of turns."""
        script, turns = self.script, self._turns
        while not self.is_halted:
            entry = script.peek()
            if entry is None:
                self.is_halted = True
            elif entry.kind in ENTERING and entry.position < turns.run:
                self.divergence = script.differs(f"goes on, after {turns.run} turns")
                self.is_halted = True
            elif entry.kind in ENTERING and entry.position == turns.run:
                script.take()
                self._enter(entry)
                turns.settle()
            elif entry.kind is Kind.LEAK:
                self.unknown = script.place(
                    f"something from outside of every seam woke {entry.value[0]}, and what it was is not recorded"
                )
                self.is_halted = True
            else:
                return

    def _enter(self, entry: Entry) -> None:
        match entry.kind:
            case Kind.TIMER:
                turn = self._timers.pop(entry.number, None)
                if turn is None or turn.cancelled():
                    self._diverge_quietly(f"has no timer {entry.number}", entry)
                else:
                    self._turns.fresh.append(turn)
            case Kind.SIGNAL:
                for heard, context in self._heard:
                    context.run(heard)
            case Kind.WORK_DONE:
                self._carry_out(entry)
            case _:
                self._open(entry)

    def _diverge_quietly(self, what: str, entry: Entry) -> None:
        self.script.put_back(entry)
        self.divergence = self.script.differs(what)
        self.is_halted = True

    def _open(self, entry: Entry) -> None:
        door = self._doors.pop(entry.number, None)
        if door is None:
            self._diverge_quietly(f"asked for {self._operations} things so far", entry)
            return
        operation = door.operation
        try:
            if entry.status is Status.CANCELLED:
                self.files.doubt(operation)
                door.open_cancelled()
            elif entry.status is Status.ERROR:
                door.set_exception(error_of(entry.value))
            else:
                value = self._value_of(operation, entry)
                if operation.effect is not None:
                    operation.effect(self.files)
                if operation.seen is not None:
                    operation.seen(self.files, value)
                door.set_result(value)
        except Halted:
            pass

    def run_in_executor(self, executor: Any, func: Callable[..., Any], *args: Any) -> asyncio.Future[Any]:  # type: ignore[override]  # as inherited, in fewer words
        """Carry work out on this thread, when the recording says that it was done."""
        self._expect(Kind.WORK, tell(Entry(Kind.WORK)))
        self._works += 1
        future: asyncio.Future[Any] = asyncio.Future(loop=self)
        self._work[self._works] = partial(work_in_thread(func), *args), future
        return future

    def _carry_out(self, entry: Entry) -> None:
        function, future = self._work.pop(entry.number, (None, None))
        if function is None or future is None or future.done():
            self._diverge_quietly("has no such work off the loop", entry)
            return
        try:
            result = function()
        except Exception as error:
            future.set_exception(error)
        else:
            future.set_result(result)

    @contextmanager
    def _listening(self, heard: Callable[[], None]) -> Iterator[None]:
        mine = heard, copy_context()
        self._heard.append(mine)
        try:
            yield
        finally:
            self._heard.remove(mine)

    def listen(self, heard: Callable[[], None]) -> AbstractContextManager[None]:
        """Call ``heard`` when the recorded process was asked to stop."""
        return self._listening(heard)

    # ── turns ────────────────────────────────────────────────────────────────────────────────

    def call_soon(self, callback: Any, *args: Any, context: Context | None = None) -> Any:  # type: ignore[override]  # as inherited, in fewer words
        if context is None:
            context = copy_context()
        turn = self._turns.make(callback, args, context)
        if context.get(INSIDE):  # there is nothing outside
            self._turns.fresh.append(turn)
        return turn

    def call_later(self, delay: float, callback: Any, *args: Any, context: Context | None = None) -> Any:  # type: ignore[override]  # as inherited, in fewer words
        return self.call_at(delay, callback, *args, context=context)

    def call_at(self, when: float, callback: Any, *args: Any, context: Context | None = None) -> Any:  # type: ignore[override]  # as inherited, in fewer words
        turn = self._turns.make(callback, args, copy_context() if context is None else context, when)
        if turn.context.get(INSIDE):
            self._timers_set += 1
            turn.number = self._timers_set
            self._timers[turn.number] = turn
            turn.timer = _Timer(self._timers, turn.number)
        return turn

    def call_soon_threadsafe(self, callback: Any, *args: Any, context: Context | None = None) -> Any:  # type: ignore[override]  # as inherited, in fewer words
        raise RuntimeError("a thread called back into a replay, which has no threads")

    def create_future(self) -> asyncio.Future[Any]:
        return asyncio.Future(loop=self)

    def create_task(self, coro: Any, *, name: Any = None, context: Context | None = None, **_options: Any) -> Any:
        inside = INSIDE.get() if context is None else context.get(INSIDE)
        if not inside:
            return asyncio.Task(coro, loop=self, name=name, context=context)
        self._tasks += 1
        named = f"task {self._tasks}" if name is None else str(name)
        return InsideTask(self._tasks, coro, loop=self, name=named, context=context)

    def set_task_factory(self, factory: Any) -> None:
        raise NotImplementedError("a replay makes its tasks itself")

    def get_task_factory(self) -> None:
        return None

    # ── running ──────────────────────────────────────────────────────────────────────────────

    def play(self, life: Coroutine[Any, Any, None], context: Context) -> asyncio.Task[None]:
        """Play a life to its end, or to where the recording ends, or the replay goes another way."""
        hooks = sys.get_asyncgen_hooks()
        sys.set_asyncgen_hooks(firstiter=lambda _: None, finalizer=lambda _: None)
        asyncio._set_running_loop(self)  # noqa: SLF001  # meant for loops
        self._is_running = True
        try:
            task: asyncio.Task[None] = self.create_task(life, name="life", context=context)
            self._turns.settle()
            while not self._has_ended(task):
                self._let_in()
                if not self.is_halted:
                    self._take(task)
            if self.is_halted:
                self._unwind()
        finally:
            self._is_running = False
            asyncio._set_running_loop(None)  # noqa: SLF001
            sys.set_asyncgen_hooks(*hooks)
        return task

    def _has_ended(self, task: asyncio.Task[None]) -> bool:
        if self.is_halted:
            return True
        entry = self.script.peek()
        if entry is None or entry.kind is not Kind.END:
            return False
        return task.done() or entry.value[0] == "interrupted"

    def _take(self, task: asyncio.Task[None]) -> None:
        if self._turns.ready:
            self._turns.take(1, self._turn_failed)
        else:
            waiting = "its life is over" if task.done() else f"waits; {self._who_waits()}"
            self.divergence = self.script.differs(waiting)
            self.is_halted = True

    def _who_waits(self) -> str:
        tasks = [task for task in asyncio.all_tasks(self) if isinstance(task, InsideTask)]
        told = [
            f"{task.get_name()} in {' < '.join(where(task.get_coro())[:2])}"
            for task in sorted(tasks, key=lambda task: task.number)
        ]
        more = len(told) - _MOST_TOLD
        return "; ".join([*told[:_MOST_TOLD], *([f"and {more} more"] if more > 0 else [])])

    def _turn_failed(self, turn: Turn, error: BaseException) -> None:
        if not isinstance(error, Halted):
            self.call_exception_handler({"message": f"exception in callback {turn!r}", "exception": error})

    def _unwind(self) -> None:
        """Let the code of a life that is over come to its end, as far as it does by itself."""
        for door in self._doors.values():
            if not door.done():
                door.open_cancelled()
        left: list[InsideTask] = []
        for _ in range(_ROUNDS):
            self._turns.settle()
            for _ in range(_TURNS):  # what has not begun begins, so that it can end
                if not self._turns.ready:
                    break
                self._turns.take(1, self._turn_failed)
            left = [task for task in asyncio.all_tasks(self) if isinstance(task, InsideTask)]
            if not left:
                return
            for task in sorted(left, key=lambda task: task.number):
                if not task.cancelling():
                    task.cancel()
        for task in left:
            task._log_destroy_pending = False  # type: ignore[attr-defined]  # noqa: SLF001  # dropped on purpose
            asyncio.tasks._unregister_task(task)  # noqa: SLF001

    def is_running(self) -> bool:
        return self._is_running

    def is_closed(self) -> bool:
        return False

    def get_debug(self) -> bool:
        return False

    def call_exception_handler(self, context: dict[str, Any]) -> None:
        if not self.is_halted:
            self.errors.append(context)


def _as_written(value: Any) -> Any:
    return load(dump_told(value))
