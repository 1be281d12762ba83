"""What happened in the demo, as figures and as a short story for people.

*Records replayed* are lines that were read more than once: those in all diaries (see ``demo_job``) beyond those that
the text has.  *Time to recover* is from a kill to the first line that the next life read, the start of the interpreter
included; a life that is killed before it read a line has none.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from statistics import median
from textwrap import fill
from typing import Any

from actorflow.cli.demo_check import Comparison, Text
from actorflow.cli.demo_life import Life, Step

__all__ = ("Tale", "describe_life", "tell")


@dataclass(slots=True)
class Tale:
    """What happened."""

    text: Text
    lives: list[Life] = field(default_factory=list)
    recoveries_s: list[float] = field(default_factory=list)
    lines_read: int = 0
    comparison: Comparison | None = None

    def add(self, life: Life, moments_ns: list[int]) -> str:
        """Add a life that is over, with its diary; returns a line that tells it."""
        killed_ns = self.lives[-1].killed_ns if self.lives else None
        recovery_s = (moments_ns[0] - killed_ns) / 1e9 if moments_ns and killed_ns is not None else None
        if recovery_s is not None:
            self.recoveries_s.append(recovery_s)
        self.lives.append(life)
        self.lines_read += len(moments_ns)
        return describe_life(len(self.lives), life, len(moments_ns), recovery_s)

    @property
    def deaths(self) -> list[Life]:
        """The lives that ended by a kill."""
        return [life for life in self.lives if life.was_killed]

    @property
    def after_restore(self) -> int:
        """How many kills fell in a life that had restored a checkpoint of an earlier one."""
        return sum(life.restored is not None and life.has_run for life in self.deaths)

    @property
    def while_restoring(self) -> int:
        """How many kills fell while a checkpoint was being restored."""
        return sum(life.restored is not None and life.step is Step.RESTORING for life in self.deaths)

    @property
    def checkpoints(self) -> int:
        """How many completed; one whose process died before it could say so is known by whoever restored it."""
        completed = {checkpoint: None for life in self.lives for checkpoint in life.completed}
        completed.update({life.restored: None for life in self.lives if life.restored is not None})
        return len(completed)

    def result(self) -> dict[str, Any]:
        """The figures."""
        assert self.comparison is not None
        recoveries = self.recoveries_s or [0.0]
        return {
            "words": self.text.counts.total(),
            "kills": len(self.deaths),
            "checkpoints": self.checkpoints,
            "records_replayed": self.lines_read - self.text.lines,
            "recovery_s": {"median": round(median(recoveries), 3), "max": round(max(recoveries), 3)},
            "difference": self.comparison.difference,
        }


def describe_life(number: int, life: Life, lines: int, recovery_s: float | None) -> str:
    """One line for one life."""
    parts = [f"life {number:2}"]
    if life.restored is not None:
        parts.append(f"goes on from checkpoint {life.restored}")
    elif life.has_started:
        parts.append("starts without state")
    if recovery_s is not None:
        parts.append(f"reads {recovery_s:.2f} s after the kill")
    if lines:
        parts.append(f"{lines:,} lines")
    if life.completed:
        parts.append(f"{len(life.completed)} checkpoint{'s'[: len(life.completed) != 1]}")
    parts.append(f"killed {life.step.value}" if life.was_killed else "done")
    return ", ".join(parts)


def tell(tale: Tale) -> str:
    """The story."""
    result, comparison = tale.result(), tale.comparison
    assert comparison is not None
    steps = Counter(life.step for life in tale.deaths)
    kills = ", ".join(f"{steps[step]} {step.value}" for step in Step if steps[step])
    recovery = f"{result['recovery_s']['median']:.2f} s (median), {result['recovery_s']['max']:.2f} s (longest)"
    lines = [
        f"{result['words']:,} words of {tale.text.files} files, counted in {len(tale.lives)} lives of one process:",
        *fill(
            f"{result['kills']} with SIGKILL: {kills or 'none'}; {tale.after_restore} of them after a checkpoint of an"
            " earlier life was restored",
            width=100,
            initial_indent="  kills             ",
            subsequent_indent=" " * 20,
        ).split("\n"),
        f"  checkpoints       {result['checkpoints']}",
        f"  records replayed  {result['records_replayed']:,} lines were read again, of {tale.text.lines:,}",
        f"  time to recover   {recovery}, from a kill to the first line read after it",
        f"  difference        {result['difference']:,}",
    ]
    if comparison.difference:
        lines.append(f"{comparison.lost:,} rows are lost, and {comparison.surplus:,} are there that should not be:")
        lines += [f"  {example}" for example in comparison.examples]
    else:
        lines.append("Every row (word, n) was committed exactly once, just as one pass over the text counts them.")
    return "\n".join(lines)
