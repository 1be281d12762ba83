"""The world as it is keeps what the simulated one promises: clocks, the journal, the disk, signals."""

from __future__ import annotations

import asyncio
import gc
import logging
import os
import signal
import threading
import time
from pathlib import Path
from typing import Any

import pytest

import actorflow as af
from actorflow.connectors import files, generator, memory
from actorflow.model import journal
from actorflow.model.journal import Line
from actorflow.runtime.real_world import JournalObserver, LocalObjectStores, SystemClock, SystemEntropy, real_world
from actorflow.storage.disk import LocalDisk


def started(number: int) -> journal.ActorStarted:
    return journal.ActorStarted(actor=f"a/{number}")


# ── clocks and chance ────────────────────────────────────────────────────────────────────────


def test_clocks_go_on_and_a_sleep_takes_its_time() -> None:
    async def story() -> None:
        clock = SystemClock()
        at_ms, at_us, wall_ms = clock.now_ms(), clock.now_us(), clock.wall_ms()
        await clock.sleep(20)
        assert 19 <= clock.now_ms() - at_ms < 2_000
        assert clock.now_us() - at_us >= 19_000
        assert abs(clock.wall_ms() - time.time() * 1_000) < 2_000
        assert clock.wall_ms() >= wall_ms

    asyncio.run(story())


def test_a_slice_is_shared_by_all_and_begins_anew_with_each_round_of_the_loop() -> None:
    async def story() -> None:
        clock = SystemClock()
        assert clock.slice_is_over()
        await asyncio.sleep(0)
        assert not clock.slice_is_over()
        until = time.perf_counter() + 0.002
        while time.perf_counter() < until:
            pass
        assert clock.slice_is_over()
        assert clock.slice_is_over()
        await asyncio.sleep(0)
        assert not clock.slice_is_over()

    asyncio.run(story())


def test_draws_lie_between_zero_and_one_and_differ() -> None:
    entropy = SystemEntropy()
    draws = [entropy.uniform("any") for _ in range(100)]
    assert all(0 <= draw < 1 for draw in draws)
    assert len(set(draws)) > 90
    assert SystemEntropy().uniform("any") != SystemEntropy().uniform("any")


def test_stores_are_folders_or_memory(tmp_path: Path) -> None:
    async def story() -> None:
        stores = LocalObjectStores(LocalDisk())
        store = stores.open(str(tmp_path / "home"))
        assert await store.put_if_absent("a/b", b"x")
        assert not await store.put_if_absent("a/b", b"y")
        assert (tmp_path / "home" / "a" / "b").read_bytes() == b"x"
        await stores.open(None).put("a", b"")
        assert await stores.open(None).list() == [], "each opening is a memory of its own"
        with pytest.raises(af.InvalidConfig):
            stores.open("gopher://x")

    asyncio.run(story())


# ── the journal ──────────────────────────────────────────────────────────────────────────────


def test_readers_get_numbered_lines_until_they_leave() -> None:
    observer, seen = JournalObserver("p7"), list[Line]()
    leave = observer.subscribe(seen.append)
    observer.announce(started(1))
    observer.announce(started(2))
    leave()
    leave()
    observer.announce(started(3))
    assert [(line.sequence, line.process, line.name) for line in seen] == [
        (1, "p7", "ActorStarted"),
        (2, "p7", "ActorStarted"),
    ]
    assert seen[0].at_ms <= seen[1].at_ms


def test_a_reader_that_raises_is_dropped_and_told_and_harms_nobody(caplog: pytest.LogCaptureFixture) -> None:
    observer, seen = JournalObserver("p"), list[Line]()

    def bad(line: Line) -> None:
        raise ValueError("no")

    observer.subscribe(bad)
    observer.subscribe(seen.append)
    with caplog.at_level(logging.ERROR, "actorflow.journal"):
        observer.announce(started(1))
        observer.announce(started(2))
    assert len(seen) == 2
    assert len([record for record in caplog.records if "a reader of the journal failed" in record.message]) == 1


def test_entries_are_logged_at_a_level_that_fits_with_the_entry_as_extra(caplog: pytest.LogCaptureFixture) -> None:
    observer = JournalObserver("p")
    with caplog.at_level(logging.DEBUG, "actorflow.journal"):
        observer.announce(started(1))
        observer.announce(journal.JobFinished(job="j"))
        observer.announce(journal.JobFailed(job="j", cause="ValueError"))
        observer.announce(journal.CheckpointAborted(checkpoint=1, reason="EXPIRED"))
    assert [record.levelno for record in caplog.records] == [
        logging.DEBUG,
        logging.INFO,
        logging.ERROR,
        logging.WARNING,
    ]
    assert caplog.records[0].entry == started(1)  # type: ignore[attr-defined]
    assert not logging.getLogger("actorflow").handlers, "the library adds no handler"


# ── jobs ─────────────────────────────────────────────────────────────────────────────────────


def counting(sink: Any, *, records: int | None = 20_000, per_second: float | None = None) -> af.Job:
    job = af.Job("live")
    source = generator.generate(lambda index: f"w{index % 97}", records=records, splits=3, per_second=per_second)
    job.read(source, name="read").key_by(str.lower).count(name="count").write(sink, name="write")
    return job


def settings(folder: Path, **more: Any) -> dict[str, Any]:
    from datetime import timedelta

    return {
        "checkpoints": af.Checkpoints(storage=str(folder / "home"), every=timedelta(milliseconds=20), retained=2),
        "parallelism": 3,
        **more,
    }


def test_a_job_runs_to_its_end_on_the_real_loop_and_disk(tmp_path: Path) -> None:
    before = set(threading.enumerate())

    async def story() -> None:
        async with af.Environment(**settings(tmp_path)).run(counting(files.write(tmp_path / "out"))) as handle:
            assert await handle.wait() is af.JobStatus.FINISHED
        assert [task for task in asyncio.all_tasks() if task is not asyncio.current_task()] == []

    asyncio.run(story())
    rows = files.committed(tmp_path / "out")
    assert len(rows) == len(set(rows)) == 20_000
    assert set(threading.enumerate()) <= before
    assert not [name for name in (tmp_path / "home" / "live").rglob("*") if "chk-" in str(name) and name.is_file()]


def test_a_job_that_is_stopped_goes_on_in_the_next_process(tmp_path: Path) -> None:
    async def life(seconds: float) -> Any:
        job = counting(files.write(tmp_path / "out"), records=3_000, per_second=2_000)
        async with af.Environment(**settings(tmp_path)).run(job) as handle:
            try:
                async with asyncio.timeout(seconds):
                    await handle.wait()
            except TimeoutError:
                pass
        return handle.status

    first = asyncio.run(life(0.5))
    assert first.status is af.JobStatus.STOPPED
    second = asyncio.run(life(60))
    assert second.status is af.JobStatus.FINISHED
    assert second.restored_checkpoint is not None
    rows = files.committed(tmp_path / "out")
    assert len(rows) == len(set(rows)) == 3_000


def test_run_leaves_signals_and_collector_as_they_were_and_raises_the_plain_error(tmp_path: Path) -> None:
    signals = [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)]
    collector = gc.get_threshold(), gc.isenabled()
    sink = memory.collect()
    af.run(counting(sink, records=1_000), **settings(tmp_path))
    assert len(sink.rows) == 1_000
    job = af.Job("fails")
    job.read(memory.source([0]), name="read").map(lambda number: 1 // number).write(memory.collect(), name="write")
    with pytest.raises(af.JobFailed, match="ZeroDivisionError"):
        af.run(job, restart=af.NoRestart())
    assert [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)] == signals
    assert (gc.get_threshold(), gc.isenabled()) == collector
    assert gc.get_freeze_count() == 0


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_one_signal_stops_with_a_last_checkpoint(tmp_path: Path, number: signal.Signals) -> None:
    world = real_world(owns_process=True)
    lines: list[Line] = []

    def read(line: Line) -> None:
        lines.append(line)
        if isinstance(line.entry, journal.CheckpointCompleted) and line.entry.checkpoint == 3:
            os.kill(os.getpid(), number)

    assert isinstance(world.observer, JournalObserver)
    world.observer.subscribe(read)
    af.run(counting(memory.collect(), records=None, per_second=1_000), world=world, **settings(tmp_path))
    assert isinstance(lines[-1].entry, journal.JobStopped)
    completed = [line.entry for line in lines if isinstance(line.entry, journal.CheckpointCompleted)]
    assert completed[-1].kind == "stop"


def test_an_embedded_job_answers_while_it_restores_and_checkpoints_large_state(tmp_path: Path) -> None:
    """The loop belongs to the host: it never stands still for long, though 50,000 keys come back and are written."""

    async def life(job: af.Job) -> float:
        longest, running = 0.0, True

        async def probe() -> None:
            nonlocal longest
            while running:
                before = time.perf_counter()
                await asyncio.sleep(0.001)
                longest = max(longest, time.perf_counter() - before - 0.001)

        async with asyncio.TaskGroup() as group:
            group.create_task(probe())
            async with af.Environment(**settings(tmp_path, parallelism=1)).run(job) as handle:
                while handle.progress.records_read < 50_000 and handle.status.restored_checkpoint is None:
                    await asyncio.sleep(0.01)
                await handle.checkpoint()
            running = False
        return longest

    def job() -> af.Job:
        made = af.Job("large")
        source = generator.generate(lambda index: f"key {index}", records=1_000_000, per_second=200_000)
        made.read(source, name="read").key_by(str.lower).count(name="count").write(memory.append(), name="write")
        return made

    for _ in range(2):
        assert asyncio.run(life(job())) < 1.0  # generous: the benchmark measures, this only sees a stall
