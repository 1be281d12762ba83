"""Which reasons count against the tolerable failures, and whether errors say what a reader needs."""

from __future__ import annotations

import pytest

from actorflow import errors
from actorflow.errors import AbortReason, ActorflowError, CheckpointAborted, InvalidConfig, OperatorFailed

# semantics 3.6, in our names: counted on the left, ignored on the right.
COUNTED = {
    AbortReason.TRIGGER_IO_FAILED,  # IO_EXCEPTION on the coordinator, also while it triggers
    AbortReason.STORAGE_FAILED,  # IO_EXCEPTION
    AbortReason.SNAPSHOT_FAILED,  # CHECKPOINT_ASYNC_EXCEPTION
    AbortReason.DECLINED,  # CHECKPOINT_DECLINED
    AbortReason.EXPIRED,  # CHECKPOINT_EXPIRED
    AbortReason.MANIFEST_FAILED,  # FINALIZE_CHECKPOINT_FAILURE
    AbortReason.MANIFEST_IN_DOUBT,  # FINALIZE_CHECKPOINT_FAILURE, outcome unknown
}
IGNORED = {
    AbortReason.TOO_MANY_REQUESTS,
    AbortReason.MINIMUM_PAUSE,
    AbortReason.NOT_ALL_RUNNING,
    AbortReason.ALREADY_IN_PROGRESS,
    AbortReason.COORDINATOR_SUSPENDED,
    AbortReason.SUBSUMED,
    AbortReason.MANIFEST_PLACE_TAKEN,  # nothing failed: an older attempt was there first
    AbortReason.TRIGGER_FAILED,  # TRIGGER_CHECKPOINT_FAILURE
    AbortReason.CANCELLATION_MARKER,
    AbortReason.INPUT_ENDED,
    AbortReason.DECLINED_NOT_READY,
    AbortReason.DECLINED_CLOSING,
    AbortReason.DECLINED_SUBSUMED,
    AbortReason.SHARED_FILE_ABORTED,
    AbortReason.NOTIFICATION_FAILED,
    AbortReason.JOB_RESTARTED,
    AbortReason.JOB_ENDED,
    AbortReason.ACTOR_FAILED,
    AbortReason.FENCED,
}
PREFLIGHT = {
    AbortReason.TOO_MANY_REQUESTS,
    AbortReason.MINIMUM_PAUSE,
    AbortReason.NOT_ALL_RUNNING,
    AbortReason.ALREADY_IN_PROGRESS,
    AbortReason.COORDINATOR_SUSPENDED,
}


@pytest.mark.parametrize("reason", AbortReason)
def test_each_reason_counts_or_not_as_the_table_says(reason: AbortReason) -> None:
    assert (reason in COUNTED) != (reason in IGNORED), "a new reason needs its place in the table"
    assert (reason in COUNTED) == reason.counts


@pytest.mark.parametrize("reason", AbortReason)
def test_what_was_refused_before_an_id_was_consumed_never_counts(reason: AbortReason) -> None:
    assert (reason in PREFLIGHT) == reason.is_preflight
    assert not (reason.is_preflight and reason.counts)


@pytest.mark.parametrize("reason", AbortReason)
def test_each_reason_is_a_sentence_of_its_own(reason: AbortReason) -> None:
    assert len(reason.value.split()) >= 3
    assert reason.value[0].islower()
    assert not reason.value.endswith(".")
    assert [reason] == [other for other in AbortReason if other.value == reason.value]


def test_every_error_is_one_of_ours_and_says_when_it_is_raised() -> None:
    raised = [
        thing
        for name in errors.__all__
        if isinstance(thing := getattr(errors, name), type) and issubclass(thing, Exception)
    ]

    assert [] == [error for error in raised if not issubclass(error, ActorflowError)]
    assert [] == [
        error for error in raised if error is not ActorflowError and not (error.__doc__ or "").startswith("Raised ")
    ]


def test_an_invalid_config_tells_every_mistake() -> None:
    error = InvalidConfig(["one thing", "another thing"])

    assert ("one thing", "another thing") == error.problems
    assert "one thing\nanother thing" == str(error)
    assert ("alone",) == InvalidConfig("alone").problems


def test_an_operators_failure_says_where_and_with_what() -> None:
    error = OperatorFailed("count", 2, key="'a'", record="{'word': 'a'}", cause="ValueError: no")

    assert "operator 'count', subtask 2, key 'a', record {'word': 'a'}: ValueError: no" == str(error)


def test_an_operators_failure_keeps_the_record_to_itself_when_it_is_not_to_be_shown() -> None:
    assert "operator 'count', subtask 0" == str(OperatorFailed("count", 0))


def test_an_aborted_checkpoint_says_its_id_and_its_reason() -> None:
    error = CheckpointAborted(AbortReason.EXPIRED, checkpoint_id=7, detail="count/1 never answered")

    assert "checkpoint 7 was aborted: it did not complete within its timeout (count/1 never answered)" == str(error)
    assert "the checkpoint was aborted: the job ended" == str(CheckpointAborted(AbortReason.JOB_ENDED))
