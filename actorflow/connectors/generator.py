"""Records that are made, and can be made again.

Record ``i`` is a pure function of ``i`` and of a draw that belongs to ``i`` and the seed, so a position is a count
and nothing is kept.  The draws come from whole-number arithmetic (the SplitMix64 steps), so they are the same on
every machine and Python.

``per_second`` is an offered load over all splits together; see ``pace.py``.
"""

from __future__ import annotations

import inspect
from collections.abc import AsyncIterator, Callable, Sequence
from fractions import Fraction
from typing import Any, TypeVar, overload

from actorflow.abc.connectors import Chunk, Source, SourceContext
from actorflow.abc.world import World
from actorflow.connectors.pace import Pace, check_rate
from actorflow.errors import InvalidJob, OperatorFailed

__all__ = ("Generator", "draw", "generate", "numbers", "takes_draw")

T = TypeVar("T")

_MASK = (1 << 64) - 1
_GOLDEN = 0x9E3779B97F4A7C15


def draw(seed: int, index: int) -> float:
    """A number of [0, 1) that belongs to ``seed`` and ``index``."""
    state = (seed * 0xD1342543DE82EF95 + (index + 1) * _GOLDEN) & _MASK
    state = ((state ^ (state >> 30)) * 0xBF58476D1CE4E5B9) & _MASK
    state = ((state ^ (state >> 27)) * 0x94D049BB133111EB) & _MASK
    return ((state ^ (state >> 31)) >> 11) * 2.0**-53


def numbers(
    records: int | None = None,
    *,
    per_second: float | None = None,
    splits: int = 1,
    chunk_records: int = 256,
) -> Generator[int]:
    """Read 0, 1, 2 … up to ``records`` of them, or for ever."""
    return Generator(None, records=records, per_second=per_second, splits=splits, seed=0, chunk_records=chunk_records)


@overload
def generate(
    make: Callable[[int], T],
    *,
    records: int | None = None,
    per_second: float | None = None,
    splits: int = 1,
    seed: int = 0,
    chunk_records: int = 256,
) -> Generator[T]: ...
@overload
def generate(
    make: Callable[[int, float], T],
    *,
    records: int | None = None,
    per_second: float | None = None,
    splits: int = 1,
    seed: int = 0,
    chunk_records: int = 256,
) -> Generator[T]: ...
def generate(
    make: Callable[..., T],
    *,
    records: int | None = None,
    per_second: float | None = None,
    splits: int = 1,
    seed: int = 0,
    chunk_records: int = 256,
) -> Generator[T]:
    """Read what ``make(index)`` or ``make(index, draw)`` makes; ``draw`` is a number of [0, 1) that the seed gives.

    ``make`` must be pure, for a record is made again after a restart.  Split ``k`` of ``n`` makes the records ``k``,
    ``k + n``, ``k + 2n`` …
    """
    return Generator(
        make, records=records, per_second=per_second, splits=splits, seed=seed, chunk_records=chunk_records
    )


class Generator(Source[T]):
    """Made records as a source; a position is how many of its split were read."""

    runs_in_simulation = True

    def __init__(
        self,
        make: Callable[..., T] | None,
        *,
        records: int | None,
        per_second: float | None,
        splits: int,
        seed: int,
        chunk_records: int,
    ) -> None:
        if splits < 1 or chunk_records < 1 or (records is not None and records < 0):
            raise InvalidJob("generator: splits and chunk_records must be at least 1, records at least 0")
        check_rate(per_second, "generator")
        self.bounded = records is not None
        self.splits_at_once = None  # together they keep the rate, whatever the parallelism
        self.function = make  # its annotations say which classes travel
        self._records, self._splits, self._seed = records, splits, seed
        self._chunk_records = chunk_records
        self._rate = None if per_second is None else Fraction(per_second) / splits
        self._make: Callable[[range], list[Any]] = list if make is None else self._maker(make)

    def _maker(self, make: Callable[..., T]) -> Callable[[range], list[T]]:
        if not takes_draw(make):
            return lambda indexes: [make(index) for index in indexes]
        seed = self._seed
        return lambda indexes: [make(index, draw(seed, index)) for index in indexes]

    async def discover(self, world: World) -> Sequence[str]:
        """Return ``0``, ``1`` …: one name per split."""
        return [str(split) for split in range(self._splits)]

    async def read(self, context: SourceContext[Any]) -> AsyncIterator[Chunk[T]]:
        """Make the records of one split, after as many as ``resume_at`` says."""
        split, step, done = int(context.split), self._splits, context.resume_at or 0
        count = None if self._records is None else len(range(split, self._records, step))
        pace = Pace(self._rate, context.world.clock)
        while count is None or done < count:
            most = self._chunk_records if count is None else min(self._chunk_records, count - done)
            most = await pace.take(most)
            indexes = range(split + done * step, split + (done + most) * step, step)
            try:
                records = self._make(indexes)
            except Exception as error:
                raise OperatorFailed(
                    context.operator,
                    context.subtask,
                    cause=f"making records {indexes[0]} to {indexes[-1]} raised {type(error).__name__}: {error}",
                ) from error
            done += most
            yield Chunk(records, resume_at=done)


def takes_draw(make: Callable[..., Any]) -> bool:
    """Whether a function takes (index, draw), or only (index).  Raises ``InvalidJob`` when it takes neither."""
    try:
        parameters = inspect.signature(make).parameters.values()
    except ValueError:  # a built-in that does not say: chr, str …
        return False
    kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    needed = [p for p in parameters if p.kind in kinds and p.default is p.empty]
    if len(needed) > 2 or any(p.kind is p.KEYWORD_ONLY and p.default is p.empty for p in parameters):
        raise InvalidJob(f"generator: {make!r} must take (index) or (index, draw)")
    return len(needed) == 2
