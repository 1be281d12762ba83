"""At which step of a checkpoint's life did a kill really strike?

A kill is aimed at a step, by an entry of the journal or an operation on a store.  What it hit can be another one: the
first of several committables or the last, the manifest of a checkpoint or the mark of an aborted one.  So a strike is
judged at the very moment when it falls, by what the journal has told and by what an outsider would see of the output,
and it is counted under what it was, or under nothing.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

from actorflow.model import journal
from actorflow.model.journal import Entry, Line

__all__ = ("KILLING", "Moments")

KILLING = ("kill", "power_cut", "lose_disk")

_READS = frozenset(
    {
        journal.WeatherStruck,
        journal.JobStarted,
        journal.ActorStarted,
        journal.CheckpointTriggered,
        journal.CheckpointAcknowledged,
        journal.CheckpointAborted,
        journal.ManifestWritten,
        journal.SinkPrepared,
        journal.SinkCommitted,
    }
)

Visible = Callable[[], Counter[int]]
"""How many committables are visible, per checkpoint."""


class Moments:
    """Reads the journal of a run and judges each strike that was aimed at a step."""

    def __init__(self, visible: Visible | None) -> None:
        self.kills = 0
        self.kills_at: Counter[str] = Counter()
        self.lives_struck: list[int] = []
        self.life = 0
        self._visible = visible
        self._last: Entry | None = None
        self._actors: dict[str, None] = {}
        self._acknowledged: dict[int, dict[str, None]] = {}
        self._aborted: dict[int, None] = {}
        self._written: dict[int, None] = {}
        self._prepared: dict[int, dict[tuple[str, str], int]] = {}
        self._committed: Counter[int] = Counter()

    def read(self, line: Line) -> None:
        """Take the next line of the journal."""
        entry = line.entry
        if type(entry) not in _READS:
            self._last = entry
            return
        match entry:
            case journal.WeatherStruck(verb=verb, step=step):
                if verb in KILLING:
                    self.kills += 1
                    self.lives_struck.append(self.life)
                    if step and (name := self._judged(step)):
                        self.kills_at[name] += 1
                return  # what came before it is what it struck after
            case journal.JobStarted():
                self._actors.clear()
            case journal.ActorStarted(actor=actor):
                self._actors[actor] = None
            case journal.CheckpointTriggered(checkpoint=checkpoint):
                self._acknowledged[checkpoint] = {}
                self._prepared[checkpoint] = {}
                self._aborted.pop(checkpoint, None)
            case journal.CheckpointAcknowledged(checkpoint=checkpoint, actor=actor):
                self._acknowledged.setdefault(checkpoint, {})[actor] = None
            case journal.CheckpointAborted(checkpoint=checkpoint):
                self._aborted[checkpoint] = None
            case journal.ManifestWritten(checkpoint=checkpoint):
                self._written[checkpoint] = None
            case journal.SinkPrepared(checkpoint=checkpoint, actor=actor, operator=operator, committables=count):
                self._prepared.setdefault(checkpoint, {})[operator, actor] = count
            case journal.SinkCommitted(checkpoint=checkpoint, committables=count):
                self._committed[checkpoint] += count
        self._last = entry

    def _judged(self, step: str) -> str:
        if step.startswith("commit"):
            if self._is_between_two():
                return "commit between two"
            return "commit before" if step == "commit before" else "commit after"
        if step in {"manifest before", "manifest torn", "manifest answer lost"}:
            return step if self._manifest_is_due() else ""
        if step == "restoring":
            return step if isinstance(self._last, journal.ActorRestored) else ""
        return step

    def _manifest_is_due(self) -> bool:
        """Whether a checkpoint is acknowledged by all and not written; else an aborted one's place is marked."""
        return any(
            len(actors) >= len(self._actors) and checkpoint not in self._written and checkpoint not in self._aborted
            for checkpoint, actors in self._acknowledged.items()
        )

    def _is_between_two(self) -> bool:
        """Whether of some checkpoint's committables one is visible and another is not."""
        visible = self._committed if self._visible is None else self._visible()
        return any(0 < visible[checkpoint] < sum(counts.values()) for checkpoint, counts in self._prepared.items())
