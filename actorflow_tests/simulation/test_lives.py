"""Lives of a process, and what is done to its job from outside: each in two rounds."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import Any

import pytest

from actorflow.config import ExponentialDelay
from actorflow.errors import InvalidConfig
from actorflow.model import journal
from actorflow.simulation.expectations import failures
from actorflow.simulation.oracle import differences
from actorflow.simulation.play import play
from actorflow.simulation.runs import Run, SeedFailed
from actorflow.simulation.scenario import AboutJournal, AboutStatus, AboutStorage, Fault, Schedule, Step, TimedRecord
from actorflow.simulation.weather import After, At, FailObjects, Kill, Partition, PowerCut, Raise, Stop
from actorflow_tests.simulation.played import NUMBERS, records, scenario

EVERY_ROW = Counter({(key, n): 1 for key in range(3) for n in range(1, 134 if key else 135)})
"""What counting gives for 400 numbers, each row once."""


def names(run: Run, *entries: str) -> list[str]:
    return [line.name for line in run.lines if line.name in entries]


def entries(run: Run, kind: type[Any]) -> list[Any]:
    return [line.entry for line in run.lines if isinstance(line.entry, kind)]


def rows_of(run: Run) -> Counter[Any]:
    return Counter(run.rows["rows"])


def step(act: Any, ms: int, **more: Any) -> Step:
    return Step(when=At(ms), act=act, **more)


def kill(*, life: int = 1, occurrence: int = 1, entry: str = "CheckpointCompleted") -> Fault:
    return Fault(weather=Kill(After(entry, occurrence=occurrence)), life=life)


# ── kills ────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("seed", range(1, 4))
def test_a_life_that_is_killed_is_followed_by_one_that_goes_on_from_its_checkpoint_and_again(seed: int) -> None:
    told = scenario("counting", weather=(kill(occurrence=2), kill(life=2, occurrence=2), kill(life=3)))
    run = play(told, seed)
    assert (run.lives, run.faults, run.status) == (4, Counter(kill=3), "FINISHED")
    started = [entry.restored_checkpoint for entry in entries(run, journal.JobStarted)]
    assert started[0] is None
    assert started[1] < started[2] < started[3]
    assert rows_of(run) == EVERY_ROW
    assert [fault.life for fault in run.weather] == [1, 2, 3]
    assert run.unstruck == ()
    assert differences(play(told, seed, storm=False), run) == []


def test_a_parallelism_that_a_checkpoint_refuses_is_a_failure_unless_a_seed_drew_it() -> None:
    """One subtask has come to its end and told its last rows; then three can't take the place of two."""
    late = replace(
        NUMBERS, make=None, count=None, per_second=None, records=records(1, 2, 3, TimedRecord(value=4, at_ms=900))
    )
    told = scenario("lasting", every="100ms", lives=(2, 3), inputs=(late,), weather=(kill(occurrence=3),))
    with pytest.raises(
        SeedFailed, match=r"IncompatibleState: (.*\n)+.*'keep': its subtasks \[1\] had come to their end"
    ):
        play(told, 1)
    drawn = play(replace(told, schedule=Schedule(earlier_parallelism=True)), 1)
    assert (drawn.lives, drawn.status, rows_of(drawn)) == (3, "FINISHED", Counter({1: 1, 2: 1, 3: 1, 4: 1}))


@pytest.mark.parametrize(
    "missed",
    [
        Kill(After("CheckpointCompleted", later_ms=90_000)),  # the job is over by then
        Kill(At(350), "job"),  # it is dead, and not started again yet
        Kill(At(100), "job-2"),  # there is only one
    ],
    ids=["later", "dead", "another"],
)
def test_weather_that_finds_nobody_has_not_struck(missed: Kill) -> None:
    told = scenario("counting", weather=(Fault(weather=Kill(At(300), "job")), Fault(weather=missed)))
    run = play(told, 1)
    assert (run.lives, run.faults) == (2, Counter(kill=1))
    assert [fault.weather for fault in run.unstruck] == [missed]
    assert failures(told, None, run) == ["[[weather]] 2: never struck; if that may be, say perhaps = true"]


def test_a_fault_of_a_later_life_does_not_strike_in_an_earlier_one() -> None:
    run = play(scenario("counting", weather=(kill(), kill(life=2, entry="ActorRestored"))), 1)
    kinds = names(run, "ActorRestored", "WeatherStruck", "JobStarted")
    assert kinds[:4] == ["JobStarted", "WeatherStruck", "JobStarted", "ActorRestored"]
    assert kinds[4] == "WeatherStruck"
    assert rows_of(run) == EVERY_ROW


def test_a_fault_whose_moment_never_comes_is_told_as_unstruck() -> None:
    never = (kill(occurrence=500), Fault(weather=Kill(At(3_600_000), "job")), kill(life=7))
    run = play(scenario("counting", weather=(kill(), *never)), 1)
    assert run.unstruck == never[:2]  # the seventh life never began
    assert run.lives == 2


def test_a_process_that_is_asked_to_stop_by_a_signal_is_started_again() -> None:
    run = play(scenario("counting", weather=(Fault(weather=Stop(At(120), "job")), kill(life=2))), 1)
    assert names(run, "JobStopped", "JobFinished") == ["JobStopped", "JobFinished"]
    assert run.lives == 3
    assert rows_of(run) == EVERY_ROW


# ── steps ────────────────────────────────────────────────────────────────────────────────────


def test_a_checkpoint_is_taken_when_somebody_asks_for_it() -> None:
    told = scenario(
        "counting", environment={"checkpoints": {}}, steps=(step("checkpoint", 150), step("checkpoint", 250))
    )
    run = play(told, 1)
    asked = [record for record in run.checkpoints if record.kind == "requested"]
    assert [record.triggered_at_ms // 10 for record in asked] == [15, 25]
    assert all(record.completed_at_ms is not None for record in asked)
    assert [(record.act, record.outcome) for record in run.performed] == [("checkpoint", "done")] * 2
    assert rows_of(run) == EVERY_ROW


def test_a_job_is_rescaled_up_and_down_and_killed_after_each() -> None:
    told = scenario(
        "counting",
        steps=(step("rescale", 120, parallelism=4), step("rescale", 600, parallelism=1)),
        weather=(kill(life=2), kill(life=4)),
    )
    for seed in (1, 2):
        run = play(told, seed)
        assert [record.outcome for record in run.performed] == ["done", "done"]
        assert run.lives == 5
        attempts: list[set[str]] = []
        for line in run.lines:
            if isinstance(line.entry, journal.JobStarted):
                attempts.append(set())
            elif isinstance(line.entry, journal.ActorStarted) and "count" in line.entry.actor:
                attempts[-1].add(line.entry.actor)
        assert [len(actors) for actors in attempts] == [2, 4, 4, 1, 1]
        assert rows_of(run) == EVERY_ROW


def test_of_two_processes_of_one_job_the_one_that_was_there_is_fenced_and_the_third_fences_the_second() -> None:
    run = play(scenario("counting", steps=(step("start", 120), step("start", 240))), 1)
    fenced = [line.process for line in run.lines if isinstance(line.entry, journal.JobFenced)]
    assert fenced == ["job", "job-2"]
    assert [line.process for line in run.lines if isinstance(line.entry, journal.JobFinished)] == ["job-3"]
    assert (run.lives, run.status) == (3, "FINISHED")
    assert rows_of(run) == EVERY_ROW


def test_a_partitioned_owner_is_a_zombie_that_commits_nothing_more() -> None:
    for seed in range(1, 4):
        told = scenario(
            "counting",
            weather=(Fault(weather=Partition(At(120), "job", ms=1_500)),),
            steps=(step("start", 200),),
        )
        run = play(told, seed)
        assert "job" in [line.process for line in run.lines if isinstance(line.entry, journal.JobFenced)]
        assert rows_of(run) == EVERY_ROW


def test_a_job_that_was_stopped_stays_so_until_it_is_started_and_again() -> None:
    steps = (step("stop", 120), step("start", 700), step("stop", 800), step("start", 1_500))
    run = play(scenario("counting", steps=steps), 1)
    ends = [(line.name, line.at_ms // 100) for line in run.lines if line.name in {"JobStarted", "JobStopped"}]
    assert ends == [("JobStarted", 0), ("JobStopped", 2), ("JobStarted", 7), ("JobStopped", 8), ("JobStarted", 15)]
    assert (run.status, run.lives, run.error) == ("FINISHED", 3, "")
    assert rows_of(run) == EVERY_ROW


def test_a_job_that_is_stopped_for_good_has_the_state_of_its_last_checkpoint() -> None:
    run = play(scenario("endless", inputs=(), steps=(step("stop", 300),)), 1)
    assert run.status == "STOPPED"
    assert run.checkpoints[-1].kind == "stop"
    assert sum(count for _, count in run.values["count.state"]) == len(run.rows["rows"]) > 0
    assert set(rows_of(run).values()) == {1}


def test_a_drained_job_has_given_out_all_that_it_read_and_is_finished_for_good() -> None:
    run = play(scenario("endless", inputs=(), steps=(step("drain", 300), step("start", 2_000))), 1)
    assert names(run, "JobFinished") == ["JobFinished", "JobFinished"]
    assert (run.status, run.lives) == ("FINISHED", 2)
    assert sum(count for _, count in run.values["count.state"]) == len(run.rows["rows"]) > 0


def test_a_cancelled_job_shows_nothing_that_no_checkpoint_holds_and_goes_on_when_it_is_started() -> None:
    cancelled = play(scenario("counting", steps=(step("cancel", 180),)), 1)
    assert (cancelled.status, cancelled.lives) == ("CANCELED", 1)
    held = dict(cancelled.values["count.state"])  # of a checkpoint that the next start will go on from
    assert 0 < len(cancelled.rows["rows"]) <= sum(held.values()) < 400
    assert rows_of(cancelled) <= Counter({(key, n): 1 for key, count in held.items() for n in range(1, count + 1)})
    again = play(scenario("counting", steps=(step("cancel", 180), step("start", 800))), 1)
    assert (again.status, again.lives) == ("FINISHED", 2)
    assert rows_of(again) == EVERY_ROW


def test_whoever_asks_for_a_stop_asks_again_when_the_process_died_or_the_checkpoint_failed() -> None:
    told = scenario(
        "endless",
        inputs=(),
        steps=(step("stop", 200),),
        weather=(Fault(weather=Kill(After("CheckpointTriggered", {"kind": "stop"}))),),
    )
    died = play(told, 1)
    assert (died.status, died.lives, died.performed[0].outcome) == ("STOPPED", 2, "done")
    refused = FailObjects(After("CheckpointTriggered", {"kind": "stop"}), "put*", "*chk-*", count=30)
    failed = play(
        scenario(
            "endless",
            inputs=(),
            steps=(step("stop", 200),),
            weather=(Fault(weather=refused),),
            environment={"checkpoints": {"every": "50ms", "tolerable_failures": 100}},
        ),
        1,
    )
    assert (failed.status, failed.performed[0].outcome) == ("STOPPED", "done")
    assert [record.kind for record in failed.checkpoints].count("stop") > 1


def test_a_step_after_an_entry_comes_when_the_entry_did() -> None:
    after = Step(when=After("CheckpointCompleted", occurrence=3, later_ms=7), act="stop")
    run = play(scenario("counting", steps=(after, Step(when=After("JobStopped", later_ms=400), act="start"))), 1)
    third = [record for record in run.checkpoints if record.completed_at_ms is not None][2]
    assert third.completed_at_ms is not None
    assert run.performed[0].asked_at_ms == third.completed_at_ms + 7
    stopped = next(line.at_ms for line in run.lines if line.name == "JobStopped")
    assert run.performed[1].asked_at_ms == stopped + 400
    assert rows_of(run) == EVERY_ROW


def test_steps_that_come_too_late_are_told() -> None:
    late = (step("checkpoint", 60_000), Step(when=After("JobFenced"), act="start"))
    run = play(scenario("counting", steps=late), 1)
    assert run.unperformed == late
    assert run.performed == []


def test_a_job_that_can_not_be_rescaled_says_so_before_it_runs() -> None:
    told = scenario("counting", steps=(step("rescale", 100, parallelism=3),), environment={"max_parallelism": 2})
    with pytest.raises(InvalidConfig, match="max_parallelism = 2 is below parallelism = 3"):
        play(told, 1)


# ── ends ─────────────────────────────────────────────────────────────────────────────────────


def test_a_job_that_fails_for_good_is_wrong_unless_that_is_expected() -> None:
    settings = {"restart.type": "fixed-delay", "restart.attempts": 2, "restart.delay": "100ms"}
    said: dict[str, Any] = {"arguments": {"refuses": 150}, "environment": settings}
    with pytest.raises(SeedFailed, match=r"JobFailed: job 'picky' failed for good: .*150 is refused"):
        play(scenario("picky", **said), 1)
    run = play(scenario("picky", AboutStatus(status="FAILED"), **said), 1)
    assert (run.status, run.lives, run.attempts) == ("FAILED", 1, 3)
    assert "150 is refused" in run.error
    assert sorted(run.rows["rows"]) == sorted(set(run.rows["rows"]))
    assert set(run.rows["rows"]) < set(range(400))
    started = play(
        scenario("picky", AboutStatus(status="FAILED"), steps=(step("start", 4_000),), **said), 1
    )  # nobody mended it
    assert (started.status, started.lives, started.attempts) == ("FAILED", 2, 6)


def test_a_mistake_in_the_jobs_code_is_one_unless_an_expectation_names_it() -> None:
    told: dict[str, Any] = {"arguments": {"refuses": 150, "with_type": True}, "environment": {"restart.type": "none"}}
    with pytest.raises(SeedFailed, match="TypeError: 150"):
        play(scenario("picky", AboutStatus(status="FAILED"), **told), 1)
    foreseen = AboutJournal(entry="ActorFailed", where={"cause": "TypeError"})
    run = play(scenario("picky", AboutStatus(status="FAILED"), foreseen, **told), 1)
    assert run.status == "FAILED"


def test_a_restart_in_calm_weather_is_a_mistake_and_in_a_storm_it_is_the_weathers() -> None:
    told = scenario("counting", weather=(Fault(weather=Raise(At(150), "count")),))
    run = play(told, 1)
    assert (run.lives, run.attempts) == (1, 2)
    assert rows_of(run) == EVERY_ROW
    with pytest.raises(SeedFailed, match=r"in calm weather: the job restarts after"):
        play(scenario("picky", arguments={"refuses": 150}), 1, storm=False)


def test_a_job_that_hangs_is_told_with_the_story_of_every_machine() -> None:
    with pytest.raises(SeedFailed, match="does not finish within 5000 ms of calm weather") as failed:
        play(scenario("stuck", calm_within_ms=5_000), 1, storm=False)
    report = str(failed.value)
    assert "call/0 calls waits in" in report
    assert "< never (" in report
    for machine in ("job stuck: created → claiming", "owner is", "admission is", "coordinator is", "restarts is"):
        assert machine in report, report
    assert "actor count/0 (running) is" in report
    assert "commits of rows/0 is Idle" in report
    assert "BarrierInjected(barrier=Barrier(checkpoint_id=1)) -> ForwardBarrier" in report
    machines = report.partition("the machines of job.1:")[2]
    assert max(map(len, machines.splitlines())) <= 240


def test_the_time_that_an_input_takes_is_not_counted_as_hanging() -> None:
    slow = NUMBERS.__class__(source="numbers", make=NUMBERS.make, count=100, per_second=1)
    run = play(scenario("counting", inputs=(slow,), every="10s", calm_within_ms=5_000), 1, storm=False)
    assert run.ended_at_ms > 98_000


# ── what is noted ────────────────────────────────────────────────────────────────────────────


def test_every_checkpoint_has_a_record() -> None:
    tear = FailObjects(After("CheckpointTriggered", occurrence=3), "put*", "*chk-*", count=50)
    told = scenario(
        "counting",
        weather=(Fault(weather=tear), kill(occurrence=6)),
        environment={"checkpoints": {"every": "50ms", "tolerable_failures": 100, "inline_below": 0}},
    )
    run = play(told, 1)
    aborted = [record for record in run.checkpoints if record.aborted_at_ms is not None]
    assert aborted
    assert all(record.why for record in aborted)
    assert all(record.declined for record in aborted[:1])
    completed = [record for record in run.checkpoints if record.completed_at_ms is not None]
    assert [record.kind for record in completed[-1:]] == ["final"]
    assert {record.life for record in completed} == {1, 2}
    for record in completed:
        assert record.duration_ms is not None
        assert len(record.acknowledged) == 5
        assert all(
            record.triggered_at_ms <= one.at_ms <= (record.completed_at_ms or 0) for one in record.acknowledged.values()
        )
        assert record.bytes >= sum(one.bytes for one in record.acknowledged.values()) > 0
    assert run.checkpoint(completed[0].checkpoint) is completed[0]
    assert run.checkpoint(10_000) is None


@pytest.mark.parametrize("storage", ["s3://home", "/var/home"])
def test_storage_is_listed_after_each_checkpoint_when_somebody_asks_about_it(storage: str) -> None:
    asks = AboutStorage(pattern="*", at_least=1)
    settings = {"checkpoints": {"every": "150ms", "storage": storage, "retained": 2, "inline_below": 0}}
    run = play(scenario("counting", asks, AboutStorage(pattern="*", on_disk=True, at_least=0), environment=settings), 1)
    numbers = [record.checkpoint for record in run.checkpoints if record.completed_at_ms is not None]
    assert list(run.storage) == [*numbers, None]
    for number in numbers[2:-1]:
        kept = {name.split("/")[0] for name in run.storage[number] if name.startswith("chk-")}
        assert kept == {f"chk-{number - 1}", f"chk-{number}"}
        assert run.retained[number] == (number - 1, number)
    assert run.retained[None] == ()
    assert not [name for name in run.storage[None] if name.startswith("chk-")]
    assert "finished" in run.storage[None]
    assert bool(run.disk) == (storage == "/var/home")
    assert play(scenario("counting"), 1).storage == {}


def test_a_power_cut_between_lives_leaves_what_was_synced() -> None:
    settings = {"checkpoints": {"every": "50ms", "storage": "/var/home"}}
    cuts = tuple(
        Fault(weather=PowerCut(After("CheckpointCompleted", occurrence=occurrence)), life=life)
        for life, occurrence in ((1, 3), (2, 2))
    )
    for seed in range(1, 4):
        run = play(scenario("counting", weather=cuts, environment=settings), seed)
        assert (run.lives, run.faults["power_cut"]) == (3, 2)
        assert rows_of(run) == EVERY_ROW


def test_a_schedule_may_be_canonical_from_some_round_on() -> None:
    drawn = play(scenario("counting", weather=(kill(),)), 1)
    canonical = play(scenario("counting", weather=(kill(),), schedule=Schedule(shuffle_rounds=0, batch_us=0)), 1)
    assert drawn.rounds > 100
    assert canonical.digest != drawn.digest
    assert rows_of(canonical) == rows_of(drawn) == EVERY_ROW


def test_lives_have_the_parallelism_that_is_said_and_another_default_than_production() -> None:
    run = play(scenario("counting", lives=(1, 3), weather=(kill(), kill(life=2))), 1)
    actors = [{entry.actor for entry in entries(run, journal.ActorStarted)}]
    assert "count+rows/2" in actors[0] or any(actor.endswith("/2") for actor in actors[0])
    assert ExponentialDelay().first.total_seconds() == 1
    assert rows_of(run) == EVERY_ROW


def test_what_was_asked_of_a_process_is_not_asked_of_the_one_that_took_its_place() -> None:
    told = scenario(
        "counting",
        weather=(Fault(weather=Partition(At(90), "job", ms=800)),),
        steps=(step("stop", 120), step("start", 180)),
    )
    run = play(told, 1)
    assert run.performed[0].outcome != "done"
    assert (run.status, run.lives) == ("FINISHED", 2)
    assert rows_of(run) == EVERY_ROW
