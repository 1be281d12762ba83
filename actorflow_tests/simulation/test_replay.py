"""A recorded run goes the same way when it is run again, and where it does not, the first difference is told."""

from __future__ import annotations

import asyncio
import gc
import json
import random
import signal
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

import actorflow as af
from actorflow.abc.connectors import (
    Prepared,
    SinkContext,
    TransactionalSink,
    TransactionalWriter,
)
from actorflow.connectors import console, files, memory
from actorflow.connectors.function import call
from actorflow.connectors.inbox import Inbox
from actorflow.errors import ActorflowError, InvalidRecording, JobFailed
from actorflow.runtime.handle import JobHandle
from actorflow.simulation.recording_entries import Kind, entries_of
from actorflow.simulation.recording_file import RecordingFile, frames_of
from actorflow.simulation.replay import Replayed
from actorflow_tests.simulation.recorded import Recorded, files_in

FAST = {"checkpoints.every": "20ms", "restart.type": "fixed-delay", "restart.delay": "1ms", "restart.attempts": 3}


def text(folder: Path, lines: int = 400) -> str:
    chance = random.Random(7)
    path = folder / "text.txt"
    path.write_text("".join(f"w{int(chance.paretovariate(0.7))} w{chance.randrange(9)}\n" for _ in range(lines)))
    return str(path)


def counted(folder: Path, source: Any, **options: Any) -> Callable[[], af.Job]:
    def build() -> af.Job:
        job = af.Job("counted")
        words = job.read(source, name="lines", **options).flat_map(str.split)
        words.key_by(str.lower).count(name="count").write(files.write(str(folder / "out")), name="rows")
        return job

    return build


def check(replayed: Replayed) -> None:
    assert replayed.divergence is None
    assert replayed.unknown is None
    assert replayed.not_compared == 0


async def breaths(count: int) -> None:
    """Wait for some rounds of the real loop, so that calls end in another order than they began in."""
    for _ in range(count):
        await asyncio.sleep(0)


# ── the same ─────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("parallelism", [1, 3])
def test_a_word_count_with_checkpoints_is_the_same_again(tmp_path: Path, parallelism: int) -> None:
    recorded = Recorded(
        tmp_path,
        counted(tmp_path, files.lines(text(tmp_path), per_second=4_000)),
        parallelism=parallelism,
        **FAST,
    )
    recorded.run()
    left = files_in(tmp_path / "out")
    for path in (tmp_path / "text.txt", *(tmp_path / "out").glob("*")):
        if path.is_file():
            path.unlink()  # nothing outside is touched, nor needed

    first, second = recorded.replay(), recorded.replay()

    check(first)
    assert dict(first.output) == left
    assert len(left) > 0
    assert (first.journal_digest, first.output_digest) == (second.journal_digest, second.output_digest)
    assert [line.name for line in first.lines] == [line.name for line in recorded.lines]
    assert {line.process for line in first.lines} == {line.process for line in recorded.lines}
    assert not any((tmp_path / "out").glob("part*"))


def test_several_sources_over_three_subtasks_arrive_in_the_recorded_order(tmp_path: Path) -> None:
    def build() -> af.Job:
        job = af.Job("three")
        streams = [
            job.read(memory.source(range(start, 3_000, 3), splits=3, chunk_records=10), name=f"s{start}")
            for start in range(3)
        ]
        both = streams[0].union(streams[1], streams[2]).key_by(lambda n: n % 17)
        both.stateful_map(first_come, name="order").write(files.write(str(tmp_path / "out")), name="rows")
        return job

    recorded = Recorded(tmp_path, build, parallelism=3, **FAST)
    recorded.run()
    replayed = recorded.replay()
    check(replayed)
    assert dict(replayed.output) == files_in(tmp_path / "out")


def first_come(before: str | None, value: int) -> tuple[str, str]:
    """A result that depends on the order of arrival and on nothing else."""
    now = f"{hash_of(before)}:{value}"
    return now, now


def hash_of(text: str | None) -> int:
    number = 7
    for character in text or "":
        number = (number * 31 + ord(character)) % 1_000_003
    return number


@pytest.mark.parametrize("ordered", [True, False])
def test_async_calls_end_in_the_recorded_order_and_are_not_made_again(tmp_path: Path, ordered: bool) -> None:
    calls: list[str] = []
    chance = random.Random(3)

    async def look_up(word: str) -> str:
        calls.append(word)
        await breaths(chance.randrange(6))
        return word.upper()

    def build() -> af.Job:
        job = af.Job("calls")
        words = job.read(files.lines(text(tmp_path)), name="lines").flat_map(str.split)
        looked_up = words.map(look_up, in_flight=8, ordered=ordered, name="look-up")
        looked_up.write(files.write(str(tmp_path / "out")), name="rows")
        return job

    recorded = Recorded(tmp_path, build, **FAST)
    recorded.run()
    made = len(calls)
    replayed = recorded.replay()
    check(replayed)
    assert dict(replayed.output) == files_in(tmp_path / "out")
    assert made == 800
    assert len(calls) == made


class Gathers(af.KeyedOperator[str, str, tuple[str, str]]):
    """Looks two things up at once and remembers which one came first."""

    seen = af.ListState(str)
    last = af.ValueState(str)

    async def on_record(self, word: str, context: af.Context[str]) -> list[tuple[str, str]]:
        ended: list[str] = []

        async def look_up(name: str) -> None:
            await breaths(random.randrange(5))
            ended.append(name)

        await asyncio.gather(look_up("left"), look_up("right"))
        self.seen.append(ended[0])
        before, self.last.value = self.last.value, ended[0]
        return [(word, f"{before} {''.join(one[0] for one in self.seen)}")]


def test_r158_a_handler_that_gathers_two_lookups_comes_to_the_same_output_and_state(tmp_path: Path) -> None:
    def build() -> af.Job:
        job = af.Job("gathers")
        words = job.read(memory.source([f"w{n % 7}" for n in range(100)], chunk_records=9), name="words")
        words.key_by(str).process(Gathers, name="gather").write(files.write(str(tmp_path / "out")), name="rows")
        return job

    recorded = Recorded(tmp_path, build, parallelism=2, **FAST)
    recorded.run()
    for _ in range(2):
        replayed = recorded.replay()
        check(replayed)  # state too: what a checkpoint writes is compared by its digest
        assert dict(replayed.output) == files_in(tmp_path / "out")


async def first_of_five(word: str) -> str:
    tasks = [asyncio.create_task(breaths(1), name=f"{word}{n}") for n in range(5)]
    done, pending = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    for task in pending:
        task.cancel()
    return next(iter(done)).get_name()  # which one that is depends on addresses


def test_r159_which_of_five_tasks_a_set_gives_first_is_what_the_recording_says_20_times(tmp_path: Path) -> None:
    def build() -> af.Job:
        job = af.Job("sets")
        words = job.read(memory.source([f"w{n}-" for n in range(20)]), name="words")
        words.map(first_of_five, in_flight=4, name="first").write(files.write(str(tmp_path / "out")), name="rows")
        return job

    recorded = Recorded(tmp_path, build)
    recorded.run()
    replays = [recorded.replay() for _ in range(20)]
    assert {replayed.output_digest for replayed in replays} == {replays[0].output_digest}
    assert {replayed.divergence for replayed in replays} == {None}
    assert dict(replays[0].output) == files_in(tmp_path / "out")


def test_timeouts_and_retries_come_at_the_recorded_moments(tmp_path: Path) -> None:
    attempts: dict[str, int] = {}

    async def unsteady(word: str) -> str:
        attempts[word] = attempts.get(word, 0) + 1
        if word.startswith("never"):
            await asyncio.Event().wait()
        if attempts[word] < 2:
            raise ConnectionError(f"{word} was refused")
        return f"{word} after {attempts[word]}"

    def build() -> af.Job:
        job = af.Job("unsteady")
        words = job.read(memory.source([f"w{n}" for n in range(20)] + ["never"]), name="words")
        calls = words.map(
            unsteady,
            in_flight=5,
            name="call",
            timeout=timedelta(milliseconds=30),
            retries=2,
            retry_delay=timedelta(milliseconds=1),
        )
        calls.write(files.write(str(tmp_path / "out")), name="rows")
        return job

    recorded = Recorded(tmp_path, build, **{"restart.type": "none"})
    with pytest.raises(JobFailed, match="TimeoutError"):
        recorded.run()
    replayed = recorded.replay()
    check(replayed)
    assert replayed.lines[-1].name == "JobFailed"


class Breaks:
    """A function that raises once, in the middle."""

    def __init__(self) -> None:
        self.calls = 0

    def __call__(self, word: str) -> str:
        self.calls += 1
        if self.calls == 300:
            raise ValueError(f"{word} broke it")
        return word


def test_a_restart_inside_one_life_is_the_same_again(tmp_path: Path) -> None:
    def build() -> af.Job:
        job = af.Job("breaks")
        words = job.read(files.lines(text(tmp_path), per_second=4_000), name="lines").flat_map(str.split)
        words.map(Breaks(), name="breaks").map(echo, in_flight=4, name="echo").key_by(str).count(name="count").write(
            files.write(str(tmp_path / "out")), name="rows"
        )
        return job

    recorded = Recorded(tmp_path, build, parallelism=2, **FAST)
    recorded.run()
    assert [line.name for line in recorded.lines].count("JobRestarting") == 1
    replayed = recorded.replay()
    check(replayed)
    assert dict(replayed.output) == files_in(tmp_path / "out")


async def echo(word: str) -> str:
    await breaths(len(word) % 3)
    return word


@af.source
async def ticks(context: af.SourceContext[int], count: int) -> AsyncIterator[af.Chunk[tuple[int, str]]]:
    """A source that reaches the outside, so it is not run again."""
    RUN.append("ticks")
    try:
        for start in range(context.resume_at or 0, count, 10):
            await breaths(start % 4)
            yield af.Chunk([(n, f"tick {n}") for n in range(start, start + 10)], resume_at=start + 10)
    finally:
        await breaths(2)
        RUN.append("closed")


RUN: list[str] = []


def test_a_source_that_reaches_the_outside_is_replayed_by_its_chunks(tmp_path: Path) -> None:
    RUN.clear()

    def build() -> af.Job:
        job = af.Job("ticks")
        job.read(ticks(300), name="ticks").map(lambda tick: tick[1]).write(
            files.write(str(tmp_path / "out")), name="rows"
        )
        return job

    recorded = Recorded(tmp_path, build, **FAST)
    recorded.run()
    assert RUN == ["ticks", "closed"]
    replayed = recorded.replay()
    check(replayed)
    assert RUN == ["ticks", "closed"]
    assert dict(replayed.output) == files_in(tmp_path / "out")


def test_a_source_outside_that_fails_and_is_read_again_is_the_same_again(tmp_path: Path) -> None:
    failures: list[int] = []

    @af.source
    async def unsteady(context: af.SourceContext[int]) -> AsyncIterator[af.Chunk[int]]:
        for n in range(context.resume_at or 0, 50):
            await breaths(1)
            if n == 25 and not failures:
                failures.append(n)
                raise ConnectionResetError("the other side went away")
            yield af.Chunk([n], resume_at=n + 1)

    def build() -> af.Job:
        job = af.Job("unsteady")
        job.read(unsteady(), name="numbers").write(files.write(str(tmp_path / "out")), name="rows")
        return job

    recorded = Recorded(tmp_path, build, **FAST)
    recorded.run()
    replayed = recorded.replay()
    check(replayed)
    assert dict(replayed.output) == files_in(tmp_path / "out")
    assert "JobRestarting" in [line.name for line in replayed.lines]


def test_what_an_inbox_was_sent_and_a_stop_by_a_signal_are_in_the_recording(tmp_path: Path) -> None:
    inboxes: list[Inbox[str]] = []

    def build() -> af.Job:
        inboxes.append(Inbox(str))
        job = af.Job("inbox")
        job.read(inboxes[-1], name="inbox").write(files.write(str(tmp_path / "out")), name="rows")
        return job

    async def send() -> None:
        for n in range(50):
            await inboxes[0].send(f"record {n}")
            await breaths(n % 3)
        signal.raise_signal(signal.SIGTERM)

    recorded = Recorded(tmp_path, build)
    sending: list[Any] = []
    recorded.run(begun=lambda _: sending.append(asyncio.get_running_loop().create_task(send())))
    assert recorded.lines[-1].name == "JobStopped"
    replayed = recorded.replay()
    check(replayed)
    assert dict(replayed.output) == files_in(tmp_path / "out")
    assert b"record 49" in b"".join(replayed.output.values())


def test_lives_of_one_job_are_replayed_one_after_the_other(tmp_path: Path) -> None:
    recorded = Recorded(tmp_path, counted(tmp_path, files.lines(text(tmp_path, 900), per_second=4_000)), **FAST)

    def stop_soon(handle: JobHandle) -> None:
        asyncio.get_running_loop().call_later(0.08, signal.raise_signal, signal.SIGTERM)

    recorded.run(begun=stop_soon)
    recorded.run(begun=stop_soon)
    recorded.run()
    replayed = recorded.replay()
    check(replayed)
    assert replayed.lives == 3
    assert dict(replayed.output) == files_in(tmp_path / "out")
    assert [line.name for line in replayed.lines].count("JobStopped") == 2


def test_a_life_whose_restore_is_refused_is_refused_again(tmp_path: Path) -> None:
    recorded = Recorded(tmp_path, counted(tmp_path, files.lines(text(tmp_path, 900), per_second=4_000)), **FAST)

    def stop_soon(handle: JobHandle) -> None:
        asyncio.get_running_loop().call_later(0.08, signal.raise_signal, signal.SIGTERM)

    recorded.run(begun=stop_soon)
    for manifest in (tmp_path / "home").rglob("_metadata"):
        manifest.write_bytes(b"damaged")
    with pytest.raises(ActorflowError, match="_metadata"):
        recorded.run()

    replayed = recorded.replay()

    check(replayed)
    assert replayed.lives == 2
    assert replayed.lines[-1].name == "JobFailed"


# ── sinks outside ────────────────────────────────────────────────────────────────────────────


def test_a_sink_that_prints_is_not_asked_again(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def build() -> af.Job:
        job = af.Job("prints")
        job.read(memory.source(range(30)), name="numbers").write(console.lines(), name="print")
        return job

    recorded = Recorded(tmp_path, build)
    recorded.run()
    printed = capsys.readouterr().out
    replayed = recorded.replay()
    check(replayed)
    assert printed == "".join(f"{n}\n" for n in range(30))
    assert capsys.readouterr().out == ""
    assert [line.name for line in replayed.lines] == [line.name for line in recorded.lines]
    assert "SettingIgnored" in [line.name for line in replayed.lines]


@pytest.mark.parametrize("breaks_at", [None, 700])
def test_a_function_that_is_called_per_record_is_not_called_again(tmp_path: Path, breaks_at: int | None) -> None:
    given: list[Any] = []

    def take(record: Any) -> None:
        given.append(record)
        if len(given) == breaks_at:
            raise RuntimeError("the other side is full")

    def build() -> af.Job:
        job = af.Job("given")
        words = job.read(memory.source([f"w{n % 5}" for n in range(2_000)], chunk_records=100), name="words")
        words.key_by(str).stateful_map(count_up, name="count").write(call(take), name="take")
        return job

    recorded = Recorded(tmp_path, build, **FAST)
    recorded.run()
    made = len(given)
    assert made >= 2_000
    first, second = recorded.replay(), recorded.replay()
    check(first)
    assert len(given) == made
    assert first.output_digest == second.output_digest
    assert ("JobRestarting" in [line.name for line in first.lines]) is (breaks_at is not None)


def count_up(before: int | None, word: str) -> tuple[int, tuple[str, int]]:
    now = (before or 0) + 1
    return now, (word, now)


class Ledger(TransactionalSink[Any]):
    """A transactional sink that reaches the outside."""

    def __init__(self) -> None:
        self.rows: list[Any] = []

    async def open(self, context: SinkContext) -> TransactionalWriter[Any]:
        await breaths(1)
        return LedgerWriter(self)

    async def visible(self, world: Any) -> list[Any]:
        return self.rows


class LedgerWriter(TransactionalWriter[Any]):
    def __init__(self, ledger: Ledger) -> None:
        self._ledger, self._pending = ledger, []  # type: ignore[var-annotated]

    async def write(self, records: list[Any]) -> None:
        await breaths(len(records) % 3)
        self._pending += records

    def prepare(self, checkpoint_id: int) -> Prepared:
        rows, self._pending = self._pending, []
        return Prepared([[checkpoint_id, rows]] if rows else [], breaths(2) if rows else None)

    async def commit(self, committables: list[Any], permit: Any) -> None:
        for _, rows in committables:
            self._ledger.rows += rows

    async def discard(self, committables: list[Any]) -> None:
        await breaths(1)

    async def sweep(self, keep: list[Any]) -> int:
        return 1


def test_a_transactional_sink_outside_commits_in_the_recorded_run_only(tmp_path: Path) -> None:
    ledgers: list[Ledger] = []

    def build() -> af.Job:
        ledgers.append(Ledger())
        job = af.Job("ledger")
        job.read(files.lines(text(tmp_path), per_second=4_000), name="lines").write(ledgers[-1], name="rows")
        return job

    recorded = Recorded(tmp_path, build, parallelism=2, **FAST)
    recorded.run()
    assert len(ledgers[0].rows) == 400
    replayed = recorded.replay()
    check(replayed)
    assert ledgers[-1].rows == []
    names = [line.name for line in replayed.lines]
    assert names.count("SinkCommitted") >= 2
    assert "SinkDiscarded" in names


# ── time ─────────────────────────────────────────────────────────────────────────────────────


class Stamps(af.KeyedOperator[str, str, tuple[str, str]]):
    last = af.ValueState(str)

    def on_record(self, word: str, context: af.Context[str]) -> Iterator[tuple[str, str]]:
        before, self.last.value = self.last.value, context.now().isoformat()
        yield word, f"{before} {self.last.value}"


def test_r161_a_replay_sees_the_time_of_the_recording_however_much_later_it_is(tmp_path: Path) -> None:
    def build() -> af.Job:
        job = af.Job("stamps")
        words = job.read(files.lines(text(tmp_path), per_second=4_000), name="lines")
        words.key_by(lambda line: line[-1]).process(Stamps, name="stamp").write(
            files.write(str(tmp_path / "out")), name="rows"
        )
        return job

    recorded = Recorded(tmp_path, build, **FAST)
    recorded.run()
    replayed = recorded.replay()
    check(replayed)
    assert dict(replayed.output) == files_in(tmp_path / "out")
    assert b"T" in b"".join(replayed.output.values())


# ── another way ──────────────────────────────────────────────────────────────────────────────


def test_a_job_that_computes_something_else_diverges_and_the_first_difference_is_told(tmp_path: Path) -> None:
    def build(change: Callable[[str], str] = str.lower) -> af.Job:
        job = af.Job("changed")
        job.read(memory.source([f"Word {n}" for n in range(100)]), name="words").map(change, name="change").write(
            files.write(str(tmp_path / "out")), name="rows"
        )
        return job

    recorded = Recorded(tmp_path, build)
    recorded.run()
    check(recorded.replay())

    replayed = recorded.replay(lambda: build(str.upper))

    assert not replayed.same
    assert replayed.divergence is not None
    assert replayed.divergence.startswith("life 1, entry ")
    recorded_side, _, own_side = replayed.divergence.partition("; the replay: ")
    assert "recorded: disk.write(" in recorded_side
    assert own_side.startswith("disk.write(")
    assert recorded_side.rpartition(" ")[2] != own_side.rpartition(" ")[2]
    assert replayed.not_compared > 0


def test_a_job_of_another_shape_is_told_before_it_runs(tmp_path: Path) -> None:
    def build(name: str = "same") -> af.Job:
        job = af.Job("shape")
        job.read(memory.source(range(3)), name="numbers").map(str, name=name).write(
            files.write(str(tmp_path / "out")), name="rows"
        )
        return job

    recorded = Recorded(tmp_path, build)
    recorded.run()
    replayed = recorded.replay(lambda: build("other"))
    assert replayed.divergence is not None
    assert "so the job is another one now" in replayed.divergence
    assert replayed.entries == 0


def test_a_function_that_fails_only_in_the_replay_diverges_at_the_line_that_says_so(tmp_path: Path) -> None:
    def build(function: Callable[[int], int] = abs) -> af.Job:
        job = af.Job("fails")
        job.read(memory.source(range(100)), name="numbers").map(function, name="f").write(
            files.write(str(tmp_path / "out")), name="rows"
        )
        return job

    recorded = Recorded(tmp_path, build, **FAST)
    recorded.run()

    def fails(number: int) -> int:
        raise ValueError(number)

    replayed = recorded.replay(lambda: build(fails))
    assert replayed.divergence is not None
    assert "the replay: journal: ActorFailed(operator='f'" in replayed.divergence


def test_a_function_that_loops_over_a_set_is_named_when_hashing_differs(tmp_path: Path) -> None:
    from actorflow.simulation.replay import _notes
    from actorflow.simulation.replay_script import lives_of

    recorded = Recorded(tmp_path, counted(tmp_path, memory.source(["a b"])))
    recorded.run()
    (life,) = lives_of(recorded.path)
    assert _notes(life) == ()
    life.header.update(hashing=-1, Python="3.99.0")
    hashing, python = sorted(_notes(life), reverse=True)
    assert "PYTHONHASHSEED" in hashing
    assert "recorded with Python 3.99.0" in python


# ── what can't be known ──────────────────────────────────────────────────────────────────────


def test_a_life_that_was_cut_off_anywhere_is_the_same_as_far_as_it_goes(tmp_path: Path) -> None:
    recorded = Recorded(tmp_path, counted(tmp_path, files.lines(text(tmp_path))), **FAST)
    recorded.run()
    whole = recorded.path.read_bytes()
    entries = set()
    chance = random.Random(11)
    for _ in range(12):
        recorded.path.write_bytes(whole[: chance.randrange(900, len(whole))])
        replayed = recorded.replay()
        assert replayed.divergence is None
        assert replayed.unknown is None
        entries.add(replayed.entries)
    assert len(entries) > 5
    gc.collect()  # and what was dropped in the middle complains of nothing


@pytest.mark.parametrize("has_happened", [True, False])
def test_whether_a_commit_happened_in_which_a_process_died_is_what_the_next_life_saw(
    tmp_path: Path, has_happened: bool
) -> None:
    recorded = Recorded(tmp_path, counted(tmp_path, files.lines(text(tmp_path), per_second=2_000)))

    def stop_soon(handle: JobHandle) -> None:
        asyncio.get_running_loop().call_later(0.1, signal.raise_signal, signal.SIGTERM)

    recorded.run(begun=stop_soon)
    data, cut, committing = recorded.path.read_bytes(), 0, []
    for offset, payload in frames_of(recorded.path):
        *_, last = entries_of(payload)
        if last.kind is Kind.OPERATION and last.value[0] == "disk.rename":
            cut, committing = offset + 12 + len(payload), last.value[1:]
    assert committing, "what it prepared was committed"
    recorded.path.write_bytes(data[:cut])  # as if it had been killed in that very call
    if not has_happened:
        Path(committing[1]).rename(committing[0])

    recorded.run()

    replayed = recorded.replay()
    check(replayed)
    assert replayed.lives == 2
    assert committing[1] in replayed.output
    assert dict(replayed.output) == files_in(tmp_path / "out")


def test_a_value_that_can_not_be_written_down_ends_the_comparison_and_says_so(tmp_path: Path) -> None:
    class Answer:
        pass

    async def ask(number: int) -> Any:
        return Answer() if number == 5 else number

    def build() -> af.Job:
        job = af.Job("unwritable")
        job.read(memory.source(range(10)), name="numbers").map(ask, name="ask").map(
            lambda found: type(found).__name__, name="kind"
        ).write(files.write(str(tmp_path / "out")), name="rows")
        return job

    recorded = Recorded(tmp_path, build)
    recorded.run()
    assert b"Answer" in b"".join(files_in(tmp_path / "out").values())
    replayed = recorded.replay()
    assert replayed.same
    assert replayed.unknown is not None
    assert "call of ask/0() gave could not be written down" in replayed.unknown
    assert replayed.not_compared > 0


@dataclass
class Patient:
    name: str


def test_a_journal_of_another_digest_is_a_difference(tmp_path: Path) -> None:
    recorded = Recorded(tmp_path, counted(tmp_path, memory.source(["a"])))
    recorded.run()
    digest = recorded.replay().journal_digest
    payloads = [payload for _, payload in frames_of(recorded.path)]
    recorded.path.unlink()
    file = RecordingFile(recorded.path)
    for payload in payloads:
        file.append(payload.replace(digest.encode(), b"0" * 64))
    file.close()
    replayed = recorded.replay()
    assert replayed.divergence is not None
    assert replayed.divergence.endswith(f"recorded: a journal of digest {'0' * 64}; the replay: {digest}")


def test_redacted_a_recording_holds_no_record_and_is_replayed_from_the_files_themselves(tmp_path: Path) -> None:
    def build() -> af.Job:
        job = af.Job("redacted")
        words = job.read(files.lines(str(tmp_path / "patients.txt"), per_second=2_000), name="patients")
        words.key_by(str).count(name="count").map(str, name="text").write(
            files.write(str(tmp_path / "out")), name="rows"
        )
        return job

    (tmp_path / "patients.txt").write_text("".join(f"Confidential {n % 40}\n" for n in range(400)))
    recorded = Recorded(tmp_path, build, **FAST)

    def stop_soon(handle: JobHandle) -> None:
        asyncio.get_running_loop().call_later(0.1, signal.raise_signal, signal.SIGTERM)

    recorded.run(redact=True, begun=stop_soon)
    recorded.run(redact=True)
    assert b"Confidential" not in recorded.path.read_bytes()
    assert b"onfidential" in b"".join(files_in(tmp_path / "out").values())

    replayed = recorded.replay()
    check(replayed)
    assert replayed.lives == 2
    assert dict(replayed.output) == files_in(tmp_path / "out")

    (tmp_path / "patients.txt").write_text("gone")
    replayed = recorded.replay()
    assert replayed.same
    assert replayed.unknown is not None
    assert "patients.txt, which the recording leaves out, is not what it was" in replayed.unknown
    assert replayed.not_compared > 0


def test_redacted_answers_end_the_comparison_and_say_so(tmp_path: Path) -> None:
    async def fetch(number: int) -> Patient:
        if number == 30:
            raise ValueError("Confidential")
        return Patient(f"Confidential {number}")

    def build() -> af.Job:
        job = af.Job("fetch")
        job.read(memory.source(range(40)), name="numbers").map(fetch, name="fetch").map(
            lambda patient: patient.name, name="names"
        ).write(files.write(str(tmp_path / "out")), name="rows")
        return job

    recorded = Recorded(tmp_path, build, **{"restart.type": "none"})
    with pytest.raises(JobFailed):
        recorded.run(redact=True)
    assert b"onfidential" not in recorded.path.read_bytes()
    replayed = recorded.replay()
    assert replayed.same
    assert replayed.unknown is not None
    assert "what call of fetch/0() gave was redacted" in replayed.unknown


def test_what_comes_in_past_every_seam_is_told(tmp_path: Path) -> None:
    woken: list[asyncio.Event] = []

    @af.source(runs_in_simulation=True)
    async def lies(context: af.SourceContext[int]) -> AsyncIterator[af.Chunk[int]]:
        woken.append(asyncio.Event())
        await woken[-1].wait()
        yield af.Chunk([1], resume_at=1)

    def build() -> af.Job:
        job = af.Job("lies")
        job.read(lies(), name="lies").write(files.write(str(tmp_path / "out")), name="rows")
        return job

    recorded = Recorded(tmp_path, build)

    def wake_soon(handle: JobHandle) -> None:
        asyncio.get_running_loop().call_later(0.02, wake)

    def wake() -> None:
        woken[0].set()

    recorded.run(begun=wake_soon)
    replayed = recorded.replay()
    assert replayed.same
    assert replayed.unknown is not None
    assert "something from outside of every seam woke" in replayed.unknown


def test_a_recording_of_another_job_is_not_added_to(tmp_path: Path) -> None:
    recorded = Recorded(tmp_path, counted(tmp_path, memory.source(["a"])))
    recorded.run()
    before = recorded.path.read_bytes()

    def build() -> af.Job:
        job = af.Job("another")
        job.read(memory.source(["a"]), name="words").write(files.write(str(tmp_path / "out")), name="rows")
        return job

    recorded.build = build
    with pytest.raises(InvalidRecording, match="record into another file"):
        recorded.run()
    assert recorded.path.read_bytes() == before


def test_what_a_recording_says_of_a_life_is_plain(tmp_path: Path) -> None:
    from actorflow.simulation.replay_script import lives_of

    recorded = Recorded(tmp_path, counted(tmp_path, memory.source(["a"])))
    recorded.run()
    (life,) = lives_of(recorded.path)
    header = json.loads(json.dumps(life.header))
    assert (header["job"], header["target"], header["arguments"]) == ("counted", "jobs:job", ["a"])
    assert header["layers"] == [["the test", {"checkpoints.storage": str(tmp_path / "home")}]]
    assert len(header["plan"]) == 64
    assert header["redacted"] is False
