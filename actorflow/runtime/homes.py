"""Within one process a home has one job: a second start of the same home is refused (R052).

Of two *processes* the one that started last wins, which ``protocol.fencing`` decides; two jobs of one process would
fence each other in turns, so the mistake is told at once.  The names held are per event loop's process, hence module
state.
"""

from __future__ import annotations

from contextvars import ContextVar

from actorflow.errors import InvalidJob

__all__ = ("claim_home_in_process", "homes_of_process", "release_home_in_process")

_HERE: dict[str, None] = {}

homes_of_process: ContextVar[dict[str, None]] = ContextVar("homes_of_process", default=_HERE)
"""The homes that run in this process; the simulator, whose processes share an interpreter, gives each its own."""


def claim_home_in_process(home: str) -> None:
    """Note that a job runs in this home.  Raises ``InvalidJob`` when one already does."""
    homes = homes_of_process.get()
    if home in homes:
        raise InvalidJob(
            f"a job with the home {home!r} already runs in this process; give the second one another name or storage"
        )
    homes[home] = None


def release_home_in_process(home: str) -> None:
    """The job has ended."""
    homes_of_process.get().pop(home, None)
