"""How do several processes share much work?

Each child is this very command, in the same folder and with the same arguments, and reads from its standard input what
is next: whoever is done gets the next piece, so a long one holds up nobody.  It answers with one line of JSON.  Nothing
is pickled or forked.

A child that dies is told as what its piece came to, and another takes its place.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections import deque
from collections.abc import Callable, Sequence
from queue import SimpleQueue
from threading import Lock, Thread
from typing import Any, TextIO

from actorflow.cli.demo_life import environment
from actorflow.cli.exits import Exit, UsageMistake
from actorflow.errors import InvalidConfig, InvalidJob, InvalidScenario, MissingExtra

__all__ = ("REFUSALS", "cores", "serve", "share")

MOST_PROCESSES = 64

REFUSALS = (UsageMistake, InvalidConfig, InvalidJob, InvalidScenario, MissingExtra)
"""What a child passes on to whoever started it: a mistake that a person can mend, and no result."""

Answer = dict[str, Any]

Tell = Callable[[int, Answer | str], None]
"""Is told of each piece when it is done, in whatever order, by its place: the answer, or how the child died of it."""


def cores() -> int:
    """How many processes can work at the same time here."""
    count = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return min(count, MOST_PROCESSES)


def share(pieces: Sequence[Any], options: Sequence[str], processes: int, tell: Tell) -> None:
    """Have all pieces, which are values of JSON, done by so many child processes of ``simulate`` with these options.

    Raises ``UsageMistake`` for what a child refused.  When this is left, however, no child lives any more.
    """
    crew = _Crew(pieces, [sys.executable, "-m", "actorflow", "simulate", "--serve", *options])
    leaders = [Thread(target=crew.lead, name=f"leads child {number}") for number in range(processes)]
    try:
        for leader in leaders:
            leader.start()
        for _ in pieces:
            place, answer = crew.done.get()
            if isinstance(answer, BaseException):
                raise answer
            tell(place, answer)
    finally:
        crew.end()
        for leader in leaders:
            if leader.ident is not None:
                leader.join()


class _Crew:
    """The children, each led by a thread of ours that waits for its answers."""

    def __init__(self, pieces: Sequence[Any], command: Sequence[str]) -> None:
        self._waiting, self._command = deque(enumerate(pieces)), command
        self._children: list[subprocess.Popen[bytes]] = []
        self._lock, self._is_over = Lock(), False
        self.done: SimpleQueue[tuple[int, Answer | str | BaseException]] = SimpleQueue()

    def lead(self) -> None:
        """Hand pieces to one child after another until there are none left."""
        place = -1
        try:
            while self._waiting and (child := self._start()) is not None:
                with child:
                    try:
                        while (piece := self._next()) is not None:
                            place = piece[0]
                            answer = _ask(child, piece[1])
                            if answer is None:
                                self.done.put((place, _death(child.wait())))
                                break
                            refused = answer.get("refused")
                            self.done.put((place, answer if refused is None else UsageMistake(refused)))
                    finally:
                        child.kill()
        except Exception as error:  # it is raised by whoever waits for our answers
            self.done.put((place, error))

    def _start(self) -> subprocess.Popen[bytes] | None:
        with self._lock:
            if self._is_over:
                return None
            child = subprocess.Popen(  # noqa: S603 - this very program
                self._command,
                env=environment(),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                start_new_session=True,  # Ctrl-C is for us, and we end our children
            )
            self._children.append(child)
            return child

    def _next(self) -> tuple[int, Any] | None:
        try:
            return self._waiting.popleft()
        except IndexError:
            return None

    def end(self) -> None:
        """End all children; nothing more is begun."""
        with self._lock:
            self._is_over = True
        self._waiting.clear()
        for child in self._children:
            child.kill()


def _ask(child: subprocess.Popen[bytes], piece: Any) -> Answer | None:
    """What the child says to a piece; ``None`` when it says nothing any more."""
    assert child.stdin is not None
    assert child.stdout is not None
    try:
        child.stdin.write(json.dumps(piece).encode() + b"\n")
        child.stdin.flush()
    except OSError:  # it is not there to be asked
        return None
    line = child.stdout.readline()
    answer: Answer | None = json.loads(line) if line.endswith(b"\n") else None
    return answer


def _death(code: int) -> str:
    how = f"was ended by {signal.Signals(-code).name}" if code < 0 else f"ended by itself, with exit code {code}"
    return f"the process that ran it {how}"


def serve(do: Callable[[Any], Answer], requests: TextIO, answers: TextIO) -> int:
    """Be a child: do each piece that is asked for, until nobody asks any more."""
    for line in requests:
        try:
            said = do(json.loads(line))
        except REFUSALS as error:
            said = {"refused": "\n  ".join([str(error), *getattr(error, "__notes__", ())])}
        print(json.dumps(said), file=answers, flush=True)
    return Exit.DONE
