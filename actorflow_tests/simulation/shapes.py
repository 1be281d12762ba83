"""Jobs of many shapes for the storms; each is a target, too: ``actorflow simulate …/shapes.py:NAME``.

Where the order of records matters, a key's records come from one split, so that there is one right order and the output
says where it was broken.
"""

from __future__ import annotations

import asyncio
import enum
import gzip
import operator
from collections.abc import AsyncIterator, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import actorflow as af
from actorflow.abc.connectors import Source
from actorflow.abc.world import World
from actorflow.connectors import console, files, generator
from actorflow.simulation import Universe

SPLITS = 3

Pair = tuple[int, int]


def numbers(records: int = 300, splits: int = SPLITS, per_second: float | None = 4_000) -> Source[int]:
    """0, 1, 2 …: number ``i`` comes from split ``i % splits``."""
    return generator.numbers(records, splits=splits, chunk_records=5, per_second=per_second)


class Uneven(Source[Pair]):
    """Splits of very different lengths: (split, index)."""

    runs_in_simulation = True

    def __init__(self, lengths: Sequence[int], pause_ms: int = 2) -> None:
        self._lengths, self._pause_ms = lengths, pause_ms

    async def discover(self, world: World) -> Sequence[str]:
        return [str(split) for split in range(len(self._lengths))]

    async def read(self, context: af.SourceContext[int]) -> AsyncIterator[af.Chunk[Pair]]:
        split = int(context.split)
        length = self._lengths[split]
        for start in range(context.resume_at or 0, length, 4):
            await context.world.clock.sleep(self._pause_ms)
            stop = min(start + 4, length)
            yield af.Chunk([(split, index) for index in range(start, stop)], resume_at=stop)


def six(value: int) -> int:
    return value % (2 * SPLITS)


def first(pair: Pair) -> int:
    return pair[0]


def parity(value: int) -> int:
    return value % 2


def place(state: int | None, value: int) -> tuple[int, Pair]:
    """First come, first served."""
    taken = (state or 0) + 1
    return taken, (value, taken)


# ── state ────────────────────────────────────────────────────────────────────────────────────


def remember(state: list[int] | None, value: int) -> tuple[list[int], tuple[int, tuple[int, ...]]]:
    """Change the list in place; the output says the order."""
    seen = [] if state is None else state
    seen.append(value)
    return seen, (six(value), tuple(seen[-3:]))


def mutable_lists() -> af.Job:
    job = af.Job("mutable-lists")
    stream = job.read(numbers(), name="numbers").key_by(six).stateful_map(remember, name="remember")
    stream.write(console.lines(), name="rows")
    return job


def nothing() -> list[int]:
    return [0, 0]


def more(sums: list[int], value: int) -> list[int]:
    return [sums[0] + value, sums[1] + 1]


def mean_of(sums: list[int]) -> int:
    return sums[0] // sums[1]


class Everything(af.KeyedOperator[int, int, tuple[int, str]]):
    """All kinds of keyed state, and an output that shows all of it."""

    last = af.ValueState(int)
    total = af.ReducingState(operator.add)
    recent = af.ListState(int)
    parities = af.MapState(int, int)
    mean = af.AggregatingState(nothing, more, mean_of)

    def on_record(self, value: int, context: af.Context[int]) -> Iterator[tuple[int, str]]:
        before, self.last.value = self.last.value, value
        self.total.add(value)
        self.recent.append(value)
        if len(self.recent) > 4:
            self.recent.replace(self.recent.get()[2:])
        self.parities[value % 2] = self.parities.get(value % 2, 0) + 1
        self.mean.add(value)
        shown = (before, self.total.get(), self.recent.get(), dict(self.parities), self.mean.get())
        yield context.key, repr(shown)


def every_state() -> af.Job:
    job = af.Job("every-state")
    stream = job.read(numbers(), name="numbers").key_by(six).process(Everything, name="state")
    stream.write(console.lines(), name="rows")
    return job


@af.record
class Shade(enum.Enum):
    DARK = 0
    LIGHT = 1


@af.record
@dataclass(frozen=True)
class Paint:
    split: int
    shade: Shade
    thick: bool


def paint_of(value: int) -> Paint:
    return Paint(value % SPLITS, Shade(value % 2), value % SPLITS == 0)


def described(pair: tuple[Paint, int]) -> str:
    return f"{pair[0].split} {pair[0].shade.name}"


def odd_keys() -> af.Job:
    """Keys that are not their own tokens, and two keyed exchanges, one after the other."""
    job = af.Job("odd-keys")
    (
        job.read(numbers(), name="numbers")
        .key_by(paint_of)
        .reduce(max, name="largest")
        .key_by(described)
        .aggregate(list, lambda seen, pair: [*seen, pair[1]][-3:], tuple, name="seen")
        .write(console.lines(), name="rows")
    )
    return job


# ── async ────────────────────────────────────────────────────────────────────────────────────


async def slowly(value: int) -> int:
    await asyncio.sleep((value * 7 % 5) / 1_000)
    return value * 10


async def flakily(value: int) -> int:
    """Fail now and then, as whatever is outside does."""
    await asyncio.sleep(0.001)
    if int(asyncio.get_running_loop().time() * 1e6) % 3 == 0:
        raise ConnectionError("try again")
    return value * 10


async def forever(value: int) -> int:
    await asyncio.Event().wait()
    return value


def async_ordered() -> af.Job:
    job = af.Job("async-ordered")
    stream = job.read(numbers(), name="numbers").map(slowly, name="call", in_flight=6)
    stream.key_by(six).count(name="count").write(console.lines(), name="rows")
    return job


def async_unordered() -> af.Job:
    job = af.Job("async-unordered")
    (
        job.read(numbers(), name="numbers")
        .map(flakily, name="call", in_flight=5, ordered=False, retries=1_000, timeout=timedelta(hours=1))
        .write(console.lines(), name="rows")
    )
    return job


async def several(value: int) -> AsyncIterator[Pair]:
    for index in range(value % 4):
        await asyncio.sleep(0)
        yield value, index


async def is_kept(pair: Pair) -> bool:
    await asyncio.sleep(0.0005)
    return pair[1] != 1


def async_chain() -> af.Job:
    """Three lanes, one after the other, with a retry and an exchange between."""
    job = af.Job("async-chain")
    (
        job.read(numbers(200), name="numbers")
        .flat_map(several, name="several", in_flight=3)
        .filter(is_kept, name="kept", in_flight=4, ordered=False)
        .rebalance()
        .map(lambda pair: pair[0] + pair[1], name="thread", in_thread=True)
        .write(console.lines(), name="rows")
    )
    return job


class Both(af.KeyedOperator[int, int, tuple[int, int, int]]):
    """Two writes around an await: nobody may ever see one without the other."""

    left = af.ValueState(int)
    right = af.ValueState(int)
    seen = af.ListState(int)

    async def on_record(self, value: int, context: af.Context[int]) -> AsyncIterator[tuple[int, int, int]]:
        self.left.value += 1
        await asyncio.sleep((value % 7) / 1_000)
        assert self.left.value == self.right.value + 1
        self.right.value += 1
        self.seen.append(value)
        yield context.key, self.left.value, self.right.value


def async_keyed() -> af.Job:
    job = af.Job("async-keyed")
    (
        job.read(numbers(200), name="numbers")
        .key_by(six)
        .process(Both, name="both", in_flight=8)
        .write(console.lines(), name="rows")
    )
    return job


def async_keyed_unordered() -> af.Job:
    job = af.Job("async-keyed-unordered")
    (
        job.read(numbers(200), name="numbers")
        .key_by(six)
        .process(Both, name="both", in_flight=3, ordered=False)
        .key_by(first_of_three)
        .count(name="count")
        .write(console.lines(), name="rows")
    )
    return job


def first_of_three(row: tuple[int, int, int]) -> int:
    return row[0]


def heavy(value: int) -> int:
    return sum(range(value))


def in_thread() -> af.Job:
    job = af.Job("in-thread")
    stream = job.read(numbers(150), name="numbers").map(heavy, name="heavy", in_thread=True)
    stream.key_by(six).count(name="count").write(console.lines(), name="rows")
    return job


# ── several inputs, several outputs ──────────────────────────────────────────────────────────


class Ruled(af.KeyedBroadcastOperator[int, int, Pair, tuple[int, int, int]]):
    """Counts by key; says at the end what the rules make of it, for only then all of them are known."""

    rules = af.BroadcastState(int, int)
    count = af.ValueState(int)

    def on_record(self, value: int, context: af.Context[int]) -> Iterator[tuple[int, int, int]]:
        self.count.value += 1
        yield context.key, self.count.value, 0

    def on_broadcast(self, value: Pair, context: af.HookContext) -> None:
        rule, number = value
        self.rules[rule] = max(number, self.rules.get(rule, 0))

    def on_end_of_input(self, context: af.HookContext) -> Iterator[tuple[int, int, int]]:
        assert len(self.rules) == 4, dict(self.rules)
        for key, count in context.entries(self.count):
            yield key, count, self.rules[key % 4]


def broadcast_rules() -> af.Job:
    """The operator emits at its end, so it keeps its parallelism."""
    job = af.Job("broadcast-rules")
    rules = job.read(Uneven([13, 17, 6, 9], pause_ms=5), name="rules")
    (
        job.read(numbers(200), name="numbers")
        .key_by(six)
        .connect_broadcast(rules, Ruled, name="ruled", parallelism=3)
        .write(console.lines(), name="rows")
    )
    return job


def union() -> af.Job:
    job = af.Job("union")
    short = job.read(numbers(30, splits=2), name="short").map(lambda value: value + 1_000)
    long = job.read(numbers(250), name="long")
    short.union(long).key_by(six).count(name="count").write(console.lines(), name="rows")
    return job


class Sorting(af.Operator[int, int]):
    """Sends what is odd aside."""

    def on_record(self, value: int, context: af.Context[None]) -> Iterable[int]:
        if value % 2:
            context.emit_to("odd", (value, "odd"))
            return ()
        return (value, value + 1)


def branches() -> af.Job:
    job = af.Job("branches")
    small, middling, large = job.read(numbers(), name="numbers").branch(lambda v: v < 50, lambda v: v < 200)
    even = small.union(large).process(Sorting, name="sorting")
    even.key_by(six).count(name="count").write(console.lines(), name="counts")
    even.side_output("odd", tuple).rebalance().write(files.write("odd", format=repr), name="odd")
    middling.write(files.write("middling"), name="middling", parallelism=2)
    return job


def one_to_many(value: int) -> list[Pair]:
    return [(value, index) for index in range(50)]


def fan_out() -> af.Job:
    job = af.Job("fan-out")
    (
        job.read(numbers(60), name="numbers")
        .flat_map(one_to_many)
        .key_by(first)
        .count(name="count")
        .write(console.lines(), name="rows")
    )
    return job


def every_exchange() -> af.Job:
    job = af.Job("every-exchange")
    stream = job.read(numbers(150), name="numbers", parallelism=2)
    stream = stream.rescale().map(lambda v: v + 1, name="rescaled").shuffle().map(lambda v: v + 1, name="shuffled")
    stream = stream.partition_by(lambda v, n: v * 7 % n).map(lambda v: v + 1, name="partitioned")
    stream = stream.break_chain().map(lambda v: v + 1, name="forwarded")
    stream = stream.broadcast().map(lambda v: v + 1, name="doubled", parallelism=2)
    stream = stream.global_().map(lambda v: v + 1, name="gathered").rebalance().map(lambda v: v + 1, name="dealt")
    stream.key_by(six).count(name="count").write(console.lines(), name="rows")
    return job


# ── ends ─────────────────────────────────────────────────────────────────────────────────────


def uneven() -> af.Job:
    """Some subtasks finish at once, some early, some long after the others."""
    job = af.Job("uneven")
    stream = job.read(Uneven([0, 3, 200, 40]), name="pairs").map(lambda pair: pair[0] * 1_000 + pair[1])
    stream.key_by(lambda v: v // 1_000).stateful_map(follow, name="follow").write(console.lines(), name="rows")
    return job


def follow(state: int | None, value: int) -> tuple[int, tuple[int, bool]]:
    """The output says whether records came in order."""
    return value, (value, state is None or value == state + 1)


class Gather(af.Operator[int, tuple[str, int]]):
    """Holds all of its records until the end; a list of each kind."""

    held = af.SplitList(int)
    counts: af.UnionList[Pair] = af.UnionList(tuple)

    def on_open(self, context: af.HookContext) -> None:
        self.mine = sum(count for subtask, count in self.counts if subtask == context.subtask)
        self.counts.replace([(context.subtask, self.mine)])  # else everybody's would be in everybody's next snapshot

    def on_record(self, value: int, context: af.Context[None]) -> None:
        self.held.append(value)
        self.mine += 1
        self.counts.replace([(context.subtask, self.mine)])

    def on_end_of_input(self, context: af.HookContext) -> Iterator[tuple[str, int]]:
        for value in self.held:
            yield "held", value
        yield "count", self.mine
        self.held.clear()


def operator_state() -> af.Job:
    job = af.Job("operator-state")
    (
        job.read(numbers(200), name="numbers")
        .partition_by(lambda value, subtasks: value % subtasks)
        .process(Gather, name="gather", parallelism=2)
        .write(console.lines(), name="rows")
    )
    return job


class Count(af.Operator[int, int]):
    """Counts in a list that is dealt out anew; what is in it together is what was seen."""

    seen = af.SplitList(int)

    def on_record(self, value: int, context: af.Context[None]) -> Iterable[int]:
        self.seen.append(value)
        if len(self.seen) >= 7:
            given = list(self.seen)
            self.seen.clear()
            return given
        return ()

    def on_end_of_input(self, context: af.HookContext) -> Iterable[int]:
        given = list(self.seen)
        self.seen.clear()
        return given


def batches() -> af.Job:
    """What one subtask holds another may emit after a restore; emits at its end, so its parallelism stays."""
    job = af.Job("batches")
    stream = job.read(Uneven([60, 5, 90]), name="pairs").map(lambda pair: pair[0] * 1_000 + pair[1])
    stream.rebalance().process(Count, name="batch", parallelism=3).write(console.lines(), name="rows")
    return job


def straight() -> af.Job:
    """Source and sink in one actor."""
    job = af.Job("straight")
    job.read(numbers(400, splits=5), name="numbers").write(files.write("straight"), name="rows")
    return job


def two_sinks() -> af.Job:
    """One stream into two folders and a ledger, each with another parallelism."""
    job = af.Job("two-sinks")
    counted = job.read(numbers(), name="numbers").key_by(six).count(name="count")
    counted.write(files.write("one", format=repr), name="one")
    counted.rebalance().write(files.write("two", format=repr), name="two", parallelism=3)
    counted.map(lambda pair: pair[0] * 10_000 + pair[1]).write(console.lines(), name="three")
    return job


def words_in_files() -> af.Job:
    from actorflow.examples.word_count import word_count

    return word_count(output="counts")


# ── more state, other guarantees, other inputs ───────────────────────────────────────────────


def spread(value: int) -> list[Pair]:
    return [(value * 13 % 40, (value * 17 + index) % 100) for index in range(8)]


def gathered(state: list[int] | None, pair: Pair) -> tuple[list[int], tuple[int, int, int]]:
    seen = [] if state is None else state
    seen.append(pair[1])
    del seen[:-5]
    return seen, (pair[0], pair[1], len(seen))


def large_state() -> af.Job:
    """Some thousand keys whose values change in place while snapshots of them are being written."""
    job = af.Job("large-state")
    stream = job.read(numbers(400, splits=1, per_second=2_000), name="numbers").flat_map(spread)
    stream.key_by(lambda pair: pair).stateful_map(gathered, name="gathered").write(console.lines(), name="rows")
    return job


class Sum(af.KeyedOperator[int, int, tuple[int, int]]):
    """Says nothing before the end."""

    total = af.ValueState(int)

    def on_record(self, value: int, context: af.Context[int]) -> None:
        self.total.value += value

    def on_end_of_input(self, context: af.HookContext) -> Iterator[tuple[int, int]]:
        yield from context.entries(self.total)


def at_the_end() -> af.Job:
    job = af.Job("at-the-end")
    summed = job.read(Uneven([7, 120, 60]), name="pairs").map(lambda pair: pair[1]).key_by(six).process(Sum, name="sum")
    summed.key_by(lambda pair: pair[0] % 2).count(name="count").write(console.lines(), name="rows")
    return job


def without_checkpoints() -> af.Job:
    """Begins anew in each life, and commits once, at the end."""
    job = af.Job("without-checkpoints", settings={"checkpoints.every": None})
    stream = job.read(numbers(60), name="numbers").key_by(six).count(name="count")
    stream.write(files.write("counts", format=repr), name="rows")
    return job


def at_least_once() -> af.Job:
    job = af.Job("at-least-once", settings={"checkpoints.guarantee": "at_least_once"})
    stream = job.read(numbers(), name="numbers").rebalance().map(lambda v: v + 1, name="more").rebalance()
    stream.map(lambda v: v + 1, name="and-more").write(console.lines(), name="rows")
    return job


TEXTS = {
    "/texts/a.txt": b"".join(b"line %d of a text\n" % number for number in range(120)),
    "/texts/b.txt": b"no line break at the end",
    "/texts/c.txt": b"",
    "/texts/d.txt.gz": gzip.compress(b"".join(b"packed %d\r\n" % number for number in range(90)), mtime=0),
}


def put_texts(universe: Universe) -> None:
    """Files that were on the machine before."""
    platter = universe.machine().platter
    platter.make_folder("/texts")
    for path, data in TEXTS.items():
        inode = platter.create(path)
        inode.content.extend(data)
        inode.synced = len(data)
    platter.sync_folder("/texts")


def texts() -> af.Job:
    job = af.Job("texts")
    lines = job.read(files.lines("/texts", chunk_bytes=200, per_second=3_000), name="lines")
    lines.flat_map(str.split).key_by(len).count(name="count").write(files.write("counts", format=repr), name="rows")
    return job


SHAPES: dict[str, Any] = {
    function.__name__: function
    for function in (
        mutable_lists,
        every_state,
        odd_keys,
        async_ordered,
        async_unordered,
        async_chain,
        async_keyed,
        async_keyed_unordered,
        in_thread,
        broadcast_rules,
        union,
        branches,
        fan_out,
        every_exchange,
        uneven,
        operator_state,
        batches,
        straight,
        two_sinks,
        words_in_files,
        large_state,
        at_the_end,
        without_checkpoints,
        texts,
    )
}

OUTSIDE = {"texts": put_texts}
