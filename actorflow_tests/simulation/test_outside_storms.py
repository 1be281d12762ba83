"""Jobs between broker and database under seeded storms, and the stories that users of others told."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from datetime import timedelta

import pytest

import actorflow as af
from actorflow.connectors import generator
from actorflow.simulation import BrokerSink, DatabaseSink
from actorflow.simulation.oracle import run_seed
from actorflow.simulation.scenario import AboutCheckpoint, AboutJournal, AboutOutput, AboutStatus, Output, Step
from actorflow.simulation.subject import Subject
from actorflow.simulation.weather import (
    After,
    At,
    Kill,
    LoseAnswers,
    Moment,
    OnBroker,
    OnDatabase,
    Partition,
    PowerCut,
    Replace,
    Rewind,
    Service,
    Stall,
    Weather,
)
from actorflow_tests.simulation.outside_jobs import RECORDS, played, running_sums, scenario, six, storm, sums

FEW, MANY = 2, 100


def to_topic() -> af.Job:
    job = af.Job("to-topic")
    running_sums(job).write(BrokerSink("sums", partitions=2, key=lambda row: six(row[0])), name="rows")
    return job


def to_table_by_key() -> af.Job:
    job = af.Job("to-table-by-key")
    running_sums(job).write(DatabaseSink("sums", key=lambda row: row[0]), name="rows")
    return job


def prepared() -> af.Job:
    job = af.Job("prepared")
    running_sums(job).write(DatabaseSink("sums", prepare=True), name="rows")
    return job


JOBS: dict[str, tuple[Callable[[], af.Job], tuple[Output, ...], Service]] = {
    "topic": (sums, (Output(sink="rows", stand_in="broker"),), Service.BROKER),
    "topic by key": (to_topic, (), Service.BROKER),
    "table": (sums, (Output(sink="rows", stand_in="database"),), Service.DATABASE),
    "table by key": (to_table_by_key, (), Service.DATABASE),
    "prepared": (prepared, (), Service.DATABASE),
}


def survive(name: str, seed: int) -> Counter[str]:
    """Play a storm; return the faults that struck."""
    build, outputs, service = JOBS[name]
    weather, lives = storm(seed, service)
    told = played(scenario(weather, build=build, outputs=outputs, lives=lives), seed)
    assert not told.failures, told
    assert told.run is not None
    return told.run.faults


@pytest.mark.parametrize("name", JOBS)
def test_a_job_between_broker_and_database_gives_in_storms_what_it_gives_in_calm_weather(name: str) -> None:
    faults: Counter[str] = Counter()
    for seed in range(FEW):
        faults += survive(name, FEW * list(JOBS).index(name) + seed)
    assert faults


@pytest.mark.slow
@pytest.mark.parametrize("name", JOBS)
def test_a_job_between_broker_and_database_survives_many_storms(name: str) -> None:
    faults: Counter[str] = Counter()
    for seed in range(1_000, 1_000 + MANY):
        faults += survive(name, seed)
    assert faults.keys() >= {"kill", "lose_answer", "fail", "stall", "partition", "replace", "slow"}
    assert faults["kill"] >= MANY // 2


@pytest.mark.slow
@pytest.mark.parametrize("name", JOBS)
def test_a_job_between_broker_and_database_survives_the_storms_of_the_swarm(name: str) -> None:
    build, outputs, service = JOBS[name]
    subject = Subject(build, outputs={one.sink: one.stand_in for one in outputs})
    assert subject.shape.service is service
    faults: Counter[str] = Counter()
    for seed in range(1, 31):
        faults += run_seed(subject, seed).faults
    assert faults["kill"] >= 30


# ── stories ──────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("name", ["topic", "table", "prepared"])
@pytest.mark.parametrize("moment", [Moment.DURING, Moment.UNANSWERED])
def test_a_kill_at_a_commit_and_another_in_the_life_that_follows_lose_and_double_nothing(
    name: str, moment: Moment
) -> None:
    build, outputs, service = JOBS[name]
    on = OnBroker if service is Service.BROKER else OnDatabase
    kills = (Kill(on("commit*", "*", moment, 2)), Kill(on("commit*", "*", moment, 5)))
    told = played(scenario(kills, build=build, outputs=outputs), 5)
    assert not told.failures, told
    assert told.run is not None
    assert told.run.faults["kill"] == 2
    assert told.run.lives == 3


@pytest.mark.parametrize("name", ["topic", "table", "prepared"])
def test_a_zombie_that_comes_back_beside_its_successor_doubles_nothing(name: str) -> None:
    """R111: paused between what its checkpoint relies on and its commit."""
    build, outputs, service = JOBS[name]
    on = OnBroker if service is Service.BROKER else OnDatabase
    told = played(
        scenario([Replace(on("commit*", "*", Moment.BEFORE, 2), None, 2_500)], build=build, outputs=outputs), 6
    )
    assert not told.failures, told
    assert told.run is not None
    assert told.run.faults["replace"] == 1
    assert told.run.lives == 2


@pytest.mark.parametrize("name", ["topic", "table", "prepared"])
def test_a_partition_between_prepare_and_commit_is_waited_out_or_recovered_from(name: str) -> None:
    build, outputs, service = JOBS[name]
    partition = Partition(After("SinkPrepared", occurrence=3), None, 9_000, service=service)
    told = played(scenario([partition], build=build, outputs=outputs), 7)
    assert not told.failures, told
    assert told.run is not None
    assert told.run.faults["partition"] == 1


@pytest.mark.parametrize("name", ["topic", "table", "prepared"])
def test_a_service_that_stalls_in_the_middle_of_commits_whose_answers_are_lost(name: str) -> None:
    build, outputs, service = JOBS[name]
    weather: list[Weather] = [
        LoseAnswers(At(0), service, "commit*", count=4),
        Stall(After("SinkPrepared", occurrence=4), service, 7_000),
    ]
    told = played(scenario(weather, build=build, outputs=outputs), 8)
    assert not told.failures, told
    assert told.run is not None
    assert told.run.faults["lose_answer"] == 4
    assert told.run.faults["stall"] == 1


@pytest.mark.parametrize("name", ["topic", "prepared"])
def test_one_subtask_two_and_one_again_while_transactions_are_open(name: str) -> None:
    """R113."""
    build, outputs, _ = JOBS[name]
    kills = [Kill(After("SinkPrepared", occurrence=2)), Kill(After("SinkPrepared", occurrence=4))]
    told = played(scenario(kills, build=build, outputs=outputs, lives=(1, 2, 1)), 9)
    assert not told.failures, told
    assert told.run is not None
    assert told.run.faults["kill"] == 2
    assert sorted(value for value, _ in told.run.rows["rows"]) == list(range(RECORDS))


@pytest.mark.parametrize("name", ["topic", "table"])
def test_a_power_cut_takes_nothing_from_broker_or_database(name: str) -> None:
    build, outputs, _ = JOBS[name]
    told = played(scenario([PowerCut(After("SinkCommitted", occurrence=3))], build=build, outputs=outputs), 10)
    assert not told.failures, told


def slowly_to_topic() -> af.Job:
    job = af.Job("slowly-to-topic")
    sink = BrokerSink("sums", transaction_timeout=timedelta(seconds=5))
    job.read(generator.numbers(RECORDS), name="numbers").write(sink, name="rows")
    return job


def test_a_transaction_that_is_too_old_fails_its_checkpoint_and_the_job_recovers() -> None:
    """R109: the checkpoint comes more than seven seconds after the transaction began, which may last for five."""
    steps = tuple(Step(when=At(at_ms), act="checkpoint") for at_ms in (14_000, 16_000))
    told = played(
        scenario(
            build=slowly_to_topic,
            every_ms=None,
            steps=steps,
            records=450,
            per_second=25.0,
            settings={"restart": "fixed-delay"},
            expectations=(
                AboutOutput(sink="rows", rows=tuple(range(450))),
                AboutCheckpoint(checkpoint=1, aborted="JOB_RESTARTED"),
                AboutJournal(entry="JobRestarting", where={"cause": "ProducerFenced"}, at_least=1),
            ),
        ),
        11,
    )
    assert not told.failures, told


def test_a_topic_that_lost_what_was_read_fails_the_job_by_topic_partition_and_offsets() -> None:
    told = played(
        scenario(
            [Rewind(At(150), Service.BROKER, "numbers/1", 5)],
            settings={"restart": "none"},
            expectations=(
                AboutStatus(status="FAILED", message_contains="numbers/1: there is no going on from offset"),
                AboutJournal(entry="JobFailed", where={"cause": "RestoreFailed"}, at_least=1),
            ),
        ),
        12,
    )
    assert not told.failures, told


def test_rows_that_the_broker_had_confirmed_and_lost_fail_the_job_by_topic_partition_and_offsets() -> None:
    told = played(
        scenario(
            [Rewind(After("ManifestWritten", {"checkpoint": 2}), Service.BROKER, "rows/*", 3)],
            outputs=(Output(sink="rows", stand_in="broker"),),
            settings={"restart": "none"},
            expectations=(
                AboutStatus(status="FAILED", message_contains="the broker lost some of rows/0 offsets"),
                AboutJournal(entry="WeatherStruck", where={"verb": "rewind"}, at_least=1),
            ),
        ),
        14,
    )
    assert not told.failures, told


def test_a_database_that_was_set_back_fails_the_job_by_its_table_and_its_ledger() -> None:
    told = played(
        scenario(
            [Rewind(After("SinkCommitted", occurrence=4), Service.DATABASE, "*", 3)],
            outputs=(Output(sink="rows", stand_in="database"),),
            settings={"restart": "none"},
            expectations=(
                AboutStatus(status="FAILED", message_contains="committed to rows are gone: the database has forgotten"),
                AboutJournal(entry="WeatherStruck", where={"verb": "rewind"}, at_least=1),
            ),
        ),
        15,
    )
    assert not told.failures, told


def test_a_time_limit_below_what_a_checkpoint_may_take_is_refused_before_anything_is_written() -> None:
    told = played(
        scenario(
            build=slowly_to_topic,
            settings={"checkpoints.timeout": "10s"},
            expectations=(
                AboutStatus(status="FAILED", message_contains="a checkpoint may take 0:00:10.12"),
                AboutJournal(entry="JobFailed", where={"cause": "InvalidConfig"}, at_least=1),
                AboutOutput(sink="rows", count=0),
            ),
        ),
        13,
    )
    assert not told.failures, told
