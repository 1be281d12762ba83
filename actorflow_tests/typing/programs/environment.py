"""Running a job: settings, the handle, and what can be asked of it."""

from __future__ import annotations

from datetime import timedelta
from typing import Any, assert_type

import actorflow as af
from actorflow import simulation
from actorflow.connectors import memory


def job() -> af.Job:
    counting = af.Job("count")
    words = counting.read(memory.source(["to", "be", "or", "not", "to", "be"]), name="words")
    words.key_by(str.lower).count(name="count").write(memory.collect(), name="rows")
    return counting


def environment() -> af.Environment:
    return af.Environment(
        parallelism=2,
        restart=af.ExponentialDelay(first=timedelta(seconds=1), at_most=timedelta(minutes=1)),
        checkpoints=af.Checkpoints(
            every=timedelta(seconds=10),
            retention=af.Retention.DELETE_ON_CANCELLATION,
            guarantee=af.Guarantee.AT_LEAST_ONCE,
        ),
        buffers=af.Buffers(per_channel=4),
    )


async def main() -> af.JobStatus:
    assert_type(af.Environment.from_mapping({"checkpoints.every": "10s"}), af.Environment)
    async with environment().run(job(), on_failure="report") as handle:
        assert_type(handle, af.JobHandle)
        assert_type(handle.name, str)
        assert_type(handle.status.status, af.JobStatus)
        assert_type(handle.status.restored_checkpoint, int | None)
        assert_type(handle.progress.records_read, int)
        status = await handle.wait()
        assert_type(status, af.JobStatus)
    return status


async def ask(handle: af.JobHandle) -> None:
    assert_type(await handle.drain(), None)
    assert_type(await handle.cancel(), None)
    assert_type(await handle.query("count.state", key="be"), Any)
    assert_type((await handle.checkpoint()).checkpoint_id, int)
    try:
        left = await handle.stop()
    except af.CheckpointAborted as error:
        assert_type(error.reason, af.AbortReason)
    else:
        assert left is None or left.path


def survives() -> int:
    report = simulation.check(job, seeds=range(2))
    assert_type(report, simulation.Report)
    return report.seeds
