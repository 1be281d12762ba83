"""What does a source of the job read in the simulator, when it would reach the outside?

An :class:`InputSource` stands in for it: records that a function makes, records that the scenario holds, or the lines
of a file beside it.  Record ``i`` belongs to split ``i % splits`` and is there from a certain virtual time on, whoever
reads it and however often: ``i / per_second`` seconds after the run began, or ``at``.  So after a restart there is a
backlog, as there is outside.  A position is how many records of its split were read, and everything can be read again.
"""

from __future__ import annotations

import copy
from collections.abc import AsyncIterator, Callable, Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any

from actorflow.abc.connectors import Chunk, Source, SourceContext
from actorflow.abc.world import World
from actorflow.connectors.generator import draw, takes_draw
from actorflow.connectors.pace import check_rate
from actorflow.dataflow.targets import function_of
from actorflow.errors import InvalidJob, OperatorFailed, RestoreFailed
from actorflow.simulation.chance import Chance
from actorflow.simulation.scenario import Input

__all__ = ("InputSource", "Records", "records_of")

_CHUNK = 16
"""How many records travel together at most."""

_TICK_MS = 10
"""Records that come at a rate are waited for this long at least, so that few of them share a wake-up."""

_PLAIN = frozenset({str, int, float, bool, bytes, type(None)})


class Records:
    """The records of an input, by their number; of ``seed`` depends only what a function makes of its draw."""

    def __init__(
        self,
        count: int,
        record: Callable[[int, int], Any],
        *,
        per_second: float | None = None,
        at_ms: Sequence[int] = (),
        splits: int = 1,
        function: Callable[..., Any] | None = None,
        on_broker: bool = False,
    ) -> None:
        self.on_broker = on_broker
        self.count, self.record, self.splits, self.function = count, record, splits, function
        self.is_paced = per_second is not None
        self._rate = Fraction(per_second).limit_denominator(1_000_000) if per_second is not None else None
        self._at_ms = at_ms

    def sizes(self) -> list[int]:
        """How many records each split has."""
        return [len(range(split, self.count, self.splits)) for split in range(self.splits)]

    def due_ms(self, index: int) -> int:
        """From when on a record is there."""
        due = 0 if self._rate is None else int(-(-index * 1_000 // self._rate))
        return max(due, self._at_ms[index]) if self._at_ms else due


def records_of(one: Input, folder: Path | None = None) -> Records:
    """Return the records of an input; its file and function are looked for beside the scenario.

    Raises ``InvalidJob``.
    """
    where = f"[[input]] of {one.source!r}"
    check_rate(one.per_second, where)
    if one.splits < 1:
        raise InvalidJob(f"{where}: splits must be at least 1")
    same: dict[str, Any] = {"per_second": one.per_second, "splits": one.splits, "on_broker": one.broker}
    if one.make is not None:
        make = function_of(one.make, folder, what="make")
        has_draw = takes_draw(make)
        scope = Chance(0, "input", one.source).key

        def made(seed: int, index: int) -> Any:
            return make(index, draw(scope ^ seed, index)) if has_draw else make(index)

        return Records(one.count or 0, made, function=make, **same)
    if one.lines is not None:
        values: list[Any] = _lines(folder or Path.cwd(), one.lines, where)
        return Records(len(values), lambda _, index: values[index], **same)
    timed = one.records or ()
    times: list[int] = []
    for record in timed:  # a record waits for those before it
        times.append(max([*times[-1:], record.at_ms or 0]))
    values = [record.value for record in timed]
    return Records(
        len(values),
        # Those who are given a list may keep it and change it; the next life reads the same scenario.
        lambda _, index: values[index] if type(values[index]) in _PLAIN else copy.deepcopy(values[index]),
        at_ms=times,
        **same,
    )


def _lines(folder: Path, name: str, where: str) -> list[Any]:
    try:
        text = (folder / name).read_bytes().decode("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidJob(f"{where}: lines = {name!r} can't be read: {error}") from error
    # Lines end where those of ``files.lines`` do, and not at all that Python's ``splitlines`` cuts at.
    lines = text.replace("\r\n", "\n").split("\n")
    return lines if lines[-1] else lines[:-1]


class InputSource(Source[Any]):
    """An input of a scenario, in the place of a source of the job."""

    runs_in_simulation = True

    def __init__(self, records: Records, seed: int, *, parallelism: int | None = None) -> None:
        self._records, self._seed = records, seed
        self.function = records.function  # its annotations say which classes travel
        self.parallelism = parallelism
        self.splits_at_once = None

    async def discover(self, world: World) -> Sequence[str]:
        """Return ``0``, ``1`` …: one name per split."""
        return [str(split) for split in range(self._records.splits)]

    async def read(self, context: SourceContext[Any]) -> AsyncIterator[Chunk[Any]]:
        """Read one split, after as many records as ``resume_at`` says."""
        records, clock = self._records, context.world.clock
        indexes = range(int(context.split), records.count, records.splits)
        done = context.resume_at or 0
        if done > len(indexes):
            raise RestoreFailed(
                f"operator {context.operator!r}: its snapshot says record {done} of split {context.split}, which has "
                f"{len(indexes)}"
            )
        while done < len(indexes):
            while (left_ms := records.due_ms(indexes[done]) - clock.now_ms()) > 0:
                await clock.sleep(max(left_ms, _TICK_MS) if records.is_paced else left_ms)
            now = clock.now_ms()
            due = [index for index in indexes[done : done + _CHUNK] if records.due_ms(index) <= now]
            chunk = [self._record(index, context) for index in due]
            done += len(chunk)
            yield Chunk(chunk, resume_at=done)

    def _record(self, index: int, context: SourceContext[Any]) -> Any:
        try:
            return self._records.record(self._seed, index)
        except Exception as error:
            raise OperatorFailed(
                context.operator,
                context.subtask,
                cause=f"making record {index} raised {type(error).__name__}: {error}",
            ) from error
