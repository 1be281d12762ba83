"""What an exit code means, and how an error becomes one."""

from __future__ import annotations

from enum import IntEnum

from actorflow.errors import (
    Fenced,
    InvalidConfig,
    InvalidJob,
    InvalidRecording,
    InvalidScenario,
    MissingExtra,
    RestoreFailed,
)

__all__ = ("Exit", "UsageMistake", "exit_code_of")


class Exit(IntEnum):
    """Exit codes of every verb."""

    DONE = 0  # finished, stopped, all passed, or measured
    FAILED = 1  # the job or a scenario failed, or a stop went without its last checkpoint
    USAGE = 2  # wrong usage, job, settings, scenario or recording
    RESTORE_REFUSED = 3
    FENCED = 4
    INTERRUPTED = 130  # a second SIGINT
    TERMINATED = 143  # a second SIGTERM


class UsageMistake(Exception):
    """Raised for a command line that can't be understood; the message says what to type instead."""


def exit_code_of(error: BaseException) -> Exit:
    """The exit code that an error becomes."""
    match error:
        case UsageMistake() | InvalidConfig() | InvalidJob() | InvalidRecording() | InvalidScenario() | MissingExtra():
            return Exit.USAGE
        case RestoreFailed():
            return Exit.RESTORE_REFUSED
        case Fenced():
            return Exit.FENCED
        case _:
            return Exit.FAILED
