"""What a program holds while its job runs speaks in sentences."""

from __future__ import annotations

from typing import Any

from actorflow.protocol.lifecycle import JobStatus
from actorflow.runtime.handle import CheckpointInfo, Status, not_running

LAST = CheckpointInfo(
    checkpoint_id=7, kind="periodic", bytes=10, duration_ms=5, completed_at_ms=100, path="/home/chk-7"
)


def status(**fields: Any) -> Status:
    whole: dict[str, Any] = {
        "status": JobStatus.RUNNING,
        "attempt": 2,
        "restarts": 1,
        "restored_checkpoint": 7,
        "last_checkpoint": LAST,
        "checkpoint_age_ms": 40,
        "waiting_for": "",
    }
    return Status(**(whole | fields))


def test_a_status_is_a_sentence_and_says_what_it_waits_for_only_when_it_does() -> None:
    assert str(status()) == "running, attempt 2"
    assert str(status(waiting_for="checkpoint 8, for 3.0 s, waits for count/1")) == (
        "running, attempt 2: checkpoint 8, for 3.0 s, waits for count/1"
    )


def test_asking_a_job_that_does_not_run_says_what_it_is_at() -> None:
    assert str(not_running("scores", JobStatus.RESTARTING)) == "job 'scores' does not run: it is restarting"
