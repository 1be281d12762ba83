"""How do several processes share many trials?

Each child is this very command, in the same folder and with the same arguments, and reads from its standard input which
trial is next: whoever is done gets the next one, so a long scenario holds up nobody.  It answers with one line of JSON.
Nothing is pickled or forked.

A child that dies is told as what its trial came to, and another takes its place.
"""

from __future__ import annotations

import asyncio
import json
import signal
import sys
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any, TextIO

from actorflow.cli.demo_life import environment
from actorflow.cli.exits import Exit, UsageMistake
from actorflow.cli.trials import Came, Trial, Trials
from actorflow.errors import InvalidConfig, InvalidJob, InvalidScenario, MissingExtra

__all__ = ("serve", "share")

LONGEST_LINE = 64 * 1024 * 1024

Tell = Callable[[Trial, Came], None]
"""Is told of each trial when it is over, in whatever order they end."""


def share(trials: Sequence[Trial], target: str, arguments: Sequence[str], processes: int, tell: Tell) -> None:
    """Make all trials in so many child processes.

    Raises ``UsageMistake`` for what a child refused.  When this is left, however, no child lives any more.
    """
    command = [sys.executable, "-m", "actorflow", "simulate", target, "--serve", "--", *arguments]
    asyncio.run(_share(deque(trials), command, processes, tell))


async def _share(waiting: deque[Trial], command: Sequence[str], processes: int, tell: Tell) -> None:
    tasks = [asyncio.create_task(_lead(waiting, command, tell)) for _ in range(processes)]
    try:
        done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_EXCEPTION)
        for task in done:
            task.result()
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def _lead(waiting: deque[Trial], command: Sequence[str], tell: Tell) -> None:
    """Hand trials to one child after another until there are none left."""
    while waiting:
        child = await asyncio.create_subprocess_exec(
            *command,
            env=environment(),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            limit=LONGEST_LINE,
            start_new_session=True,  # Ctrl-C is for us, and we end our children
        )
        try:
            while waiting:
                trial = waiting.popleft()
                answer = await _ask(child, trial)
                if answer is None:
                    tell(trial, Came(failures=[_death(await child.wait())]))
                    break
                if "refused" in answer:
                    raise UsageMistake(answer["refused"])
                tell(trial, Came(**answer))
        finally:
            _kill(child)
            await child.wait()


async def _ask(child: asyncio.subprocess.Process, trial: Trial) -> dict[str, Any] | None:
    """What the child says about a trial; ``None`` when it says nothing any more."""
    assert child.stdin is not None
    assert child.stdout is not None
    try:
        child.stdin.write(json.dumps(trial).encode() + b"\n")
        await child.stdin.drain()
    except OSError:  # it is not there to be asked
        return None
    line = await child.stdout.readline()
    answer: dict[str, Any] | None = json.loads(line) if line.endswith(b"\n") else None
    return answer


def _death(code: int) -> str:
    how = f"was ended by {signal.Signals(-code).name}" if code < 0 else f"ended by itself, with exit code {code}"
    return f"the process that ran it {how}"


def _kill(child: asyncio.subprocess.Process) -> None:
    try:
        child.kill()
    except ProcessLookupError:  # it has just ended by itself
        pass


def serve(trials: Trials, requests: TextIO, answers: TextIO) -> int:
    """Be a child: make the trials that are asked for, until nobody asks any more."""
    for line in requests:
        file, seed = json.loads(line)
        try:
            said = trials.make(Trial(file, seed)).plain()
        except (UsageMistake, InvalidConfig, InvalidJob, InvalidScenario, MissingExtra) as error:
            said = {"refused": "\n  ".join([str(error), *getattr(error, "__notes__", ())])}
        print(json.dumps(said), file=answers, flush=True)
    return Exit.DONE
