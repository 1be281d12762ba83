"""What does a replayed run find, when it asks for something or reads something?

What the recording says, entry by entry.  What the run asks for, reads or announces is compared with the next entry;
the first that differs ends the replay, with both sides.  What can't be known (a value that was redacted, or could not
be written down, or a way past every seam) ends it too, and is no difference.

Refuses to run anything: the loop (``replay_loop.py``) does, and asks this when something comes in.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from contextvars import Context, copy_context
from functools import partial
from typing import TYPE_CHECKING, Any, NoReturn

from actorflow.errors import ActorflowError
from actorflow.model.journal import Entry as JournalEntry
from actorflow.model.journal import Line
from actorflow.model.unpacking import load
from actorflow.simulation.recording_entries import ENTERING, Entry, Kind, Status, dump_told
from actorflow.simulation.recording_turns import INSIDE, Door, Operation, Turn, Turns, work_in_thread
from actorflow.simulation.recording_values import error_of, line_of
from actorflow.simulation.refusals import NothingOutside
from actorflow.simulation.replay_files import Files, Unknown
from actorflow.simulation.replay_script import Script, tell, tell_line

if TYPE_CHECKING:
    from actorflow.simulation.recording_sinks import OutsideWriter

__all__ = ("Halted", "ReplayPassage")


class Halted(BaseException):
    """Raised by every seam of a life whose replay is over: its code can do no more than unwind."""


class ReplayPassage(NothingOutside):
    """Lets in what ``script`` says, and does to ``files`` what the run does."""

    def __init__(self, script: Script, files: Files) -> None:
        self.script, self.files = script, files
        self.divergence: str | None = None
        self.unknown: str | None = None
        self.is_halted = False
        self.turns = Turns()
        self.timers: dict[int, Turn] = {}
        self.doors: dict[int, Door] = {}
        self._work: dict[int, tuple[Callable[[], Any], asyncio.Future[Any]]] = {}
        self._heard: list[tuple[Callable[[], None], Context]] = []
        self._operations = self._works = 0
        self._allowed = 0

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
        self.doors[operation.number] = door
        return door

    def _compare(self, operation: Operation) -> None:
        what = tell(Entry(Kind.OPERATION, [operation.name, *operation.arguments]))
        recorded = self._expect(Kind.OPERATION, what)
        self._operations += 1
        operation.number = self._operations
        if recorded.value != _as_written([operation.name, *operation.arguments]):
            self.script.put_back(recorded)
            self._diverge(what)
        self.script.operations[operation.number] = operation

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

    def let_in(self) -> None:
        """Let in what came in after this number of turns."""
        script, turns = self.script, self.turns
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
                turn = self.timers.pop(entry.number, None)
                if turn is None or turn.cancelled():
                    self._diverge_quietly(f"has no timer {entry.number}", entry)
                else:
                    self.turns.fresh.append(turn)
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
        door = self.doors.pop(entry.number, None)
        if door is None:
            self._diverge_quietly(f"asked for {self._operations} things so far", entry)
            return
        operation = door.operation
        del self.script.operations[operation.number]
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


def _as_written(value: Any) -> Any:
    return load(dump_told(value))
