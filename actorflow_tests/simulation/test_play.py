"""A scenario is played: what must be true is judged, and whoever fails says how to see it again."""

from __future__ import annotations

import os
import subprocess
import sys
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import actorflow as af
from actorflow import simulation
from actorflow.config import Guarantee
from actorflow.examples.word_count import word_count
from actorflow.model import journal
from actorflow.simulation.oracle import differences
from actorflow.simulation.play import play, play_seed, prepare
from actorflow.simulation.runs import SeedFailed
from actorflow.simulation.scenario import (
    AboutCheckpoint,
    AboutJournal,
    AboutOutput,
    AboutState,
    AboutStatus,
    Expectation,
    Fault,
    Seeds,
    Step,
    TimedRecord,
)
from actorflow.simulation.weather import After, At, FailObjects, Kill, Raise
from actorflow_tests.simulation.played import HERE, NUMBERS, records, scenario

SAME = AboutOutput(compare="same as the calm run")
SAME_STATE = AboutState(compare="same as the calm run")
KILL = (Fault(weather=Kill(After("CheckpointCompleted", occurrence=2))),)

TEXT = """
title = "Counting survives a kill"
job = "actorflow_tests.simulation.played:counting"
seeds = { first = 3, count = 2 }

[environment]
parallelism = 2
checkpoints = { every = "50ms" }

[[input]]
source = "numbers"
make = "actorflow_tests.simulation.played:make_number"
records = 200
per_second = 1_000

[[weather]]
after = { journal = "CheckpointCompleted", checkpoint = 1 }
kill = "job"

[[expect]]
output = "same as the calm run"
"""


def test_a_scenario_that_holds_passes_and_its_digest_is_a_function_of_the_seed() -> None:
    told = scenario("counting", SAME, SAME_STATE, AboutStatus(status="FINISHED", lives=2), weather=KILL)
    subject = prepare(told)
    first, second, other = play_seed(told, 1, subject), play_seed(told, 1), play_seed(told, 2, subject)
    assert [played.failures for played in (first, second, other)] == [(), (), ()]
    assert first.digest == second.digest != other.digest
    assert first.calm is not None
    assert first.run is not None
    assert (first.calm.storm, first.run.storm, first.run.seed) == (False, True, 1)
    assert first.lines == first.run.lines


def test_a_calm_run_is_made_only_where_something_is_compared() -> None:
    assert play_seed(scenario("counting", AboutStatus(status="FINISHED")), 1).calm is None


def test_a_scenario_that_does_not_hold_says_in_what_and_how_to_see_it_again() -> None:
    told = scenario("counting", AboutStatus(status="STOPPED"), AboutOutput(sink="rows", count=3))
    played = play_seed(told, 5)
    assert len(played.failures) == 2
    assert "FINISHED" in str(played)
    assert str(played).endswith("replay it with: simulation.check(scenario, seeds=[5])")
    assert played.run is not None


def test_a_run_that_does_not_come_to_its_end_is_told_with_its_journal() -> None:
    played = play_seed(scenario("picky", AboutStatus(status="FINISHED"), arguments={"refuses": 9}, environment=NO), 2)
    assert played.run is None
    assert played.digest == ""
    assert "9 is refused" in played.failures[0]
    assert any(isinstance(line.entry, journal.JobFailed) for line in played.lines)


NO = {"restart.type": "none"}


def test_a_job_that_does_something_else_each_time_is_not_deterministic() -> None:
    told = scenario("builds_differently", AboutStatus(status="FINISHED"), inputs=())
    played = play_seed(told, 1)
    assert len(played.failures) == 1
    assert played.failures[0].startswith("seed 1 is not deterministic: ")


def test_a_step_that_never_came_is_a_failure() -> None:
    told = scenario("counting", AboutStatus(status="FINISHED"), steps=(Step(when=At(90_000), act="checkpoint"),))
    (failure,) = play_seed(told, 1).failures
    assert failure == 'the job was over before this step came: do = "checkpoint", at = "90s"'

    assert play_seed(replace(told, steps=(replace(told.steps[0], perhaps=True),)), 1).failures == ()


def test_a_checkpoint_that_was_asked_for_and_is_aborted_is_a_failure_unless_that_is_expected() -> None:
    fail = Fault(weather=FailObjects(After("CheckpointTriggered"), "put*", "*chk-1/*", count=100))
    done = AboutStatus(status="FINISHED")
    told = scenario(
        "counting",
        done,
        weather=(fail,),
        steps=(Step(when=At(50), act="checkpoint"),),
        environment={"checkpoints": {"tolerable_failures": 100}},
    )

    def failed(*expectations: Expectation, **step: Any) -> tuple[str, ...]:
        steps = (replace(told.steps[0], **step),)
        return play_seed(replace(told, expectations=(done, *expectations), steps=steps), 1).failures

    (failure,) = failed()
    assert failure.startswith("[[step]] 1: do = 'checkpoint' came to nothing: checkpoint 1 was aborted: ")
    assert failure.endswith("; expect that, or if it may be, say perhaps = true")
    assert failed(perhaps=True) == ()
    aborted = play(told, 1).performed[0].aborted
    assert aborted is not None
    reason = aborted.reason.name
    assert failed(AboutCheckpoint(checkpoint=1, aborted=reason)) == ()
    assert failed(AboutJournal(entry="CheckpointAborted")) == ()
    assert failed(AboutJournal(entry="CheckpointAborted", where={"checkpoint": 1, "reason": reason})) == ()
    for about in (
        AboutCheckpoint(checkpoint=2, aborted=reason),
        AboutJournal(entry="CheckpointAborted", where={"checkpoint": 2}),
        AboutJournal(entry="CheckpointAborted", at_most=0),
        AboutJournal(entry="CheckpointRejected", at_least=None),
    ):
        assert failure in failed(about), about


def test_a_checkpoint_that_is_refused_before_it_began_is_a_failure_unless_that_is_expected() -> None:
    done = AboutStatus(status="FINISHED")
    told = scenario(
        "counting",
        done,
        weather=(Fault(weather=Raise(At(60), "count")),),
        steps=(Step(when=After("JobRestarting"), act="checkpoint"),),
        environment={"restart": "fixed-delay"},
    )
    (failure,) = play_seed(told, 1).failures
    assert failure.startswith(
        "[[step]] 1: do = 'checkpoint' came to nothing: the checkpoint was aborted: the job is not"
    )
    rejected = AboutJournal(entry="CheckpointRejected", where={"reason": "COORDINATOR_SUSPENDED"})
    assert play_seed(replace(told, expectations=(done, rejected)), 1).failures == ()
    other = AboutJournal(entry="CheckpointRejected", where={"reason": "MINIMUM_PAUSE"})
    assert failure in play_seed(replace(told, expectations=(done, other)), 1).failures


def test_a_job_that_ends_by_itself_was_not_stopped_and_that_is_a_failure() -> None:
    late = Step(when=After("CheckpointTriggered", {"kind": "final"}), act="stop")
    told = scenario("counting", AboutStatus(status="FINISHED"), steps=(late,))
    (failure,) = play_seed(told, 1).failures
    assert failure.startswith("[[step]] 1: do = 'stop' came to nothing: the job is finished; ")
    assert play_seed(replace(told, steps=(replace(late, perhaps=True),)), 1).failures == ()


def test_a_checkpoint_whose_process_is_killed_is_no_refusal() -> None:
    kill = Fault(weather=Kill(After("CheckpointTriggered")))
    told = scenario("counting", AboutStatus(lives=2), weather=(kill,), steps=(Step(when=At(50), act="checkpoint"),))
    assert play_seed(told, 1).failures == ()


def test_a_job_that_hangs_fails_with_the_story_of_its_machines() -> None:
    played = play_seed(scenario("stuck", AboutStatus(status="FINISHED"), calm_within_ms=2_000), 1)
    (failure,) = played.failures
    problem, *_ = failure.splitlines()
    assert "does not finish within 2000 ms of calm weather; it is " in problem
    assert problem.endswith("; if it needs longer, [calm] within can say so")
    assert "waits for call/0" in failure
    assert "the machines of job.1:" in failure
    assert "coordinator is Collecting" in failure


def test_what_goes_wrong_is_told_by_its_kind() -> None:
    first_come = (TimedRecord(value=1, at_ms=300), 2, 3)
    told = scenario(
        "counting",
        AboutOutput(sink="rows", rows=((1, 1), (2, 1), (0, 1))),
        AboutState(state="count.state", keys=((0, 1), (1, 1), (2, 1))),
        AboutJournal(entry="SinkCommitted", at_least=1),
        inputs=(replace(NUMBERS, make=None, count=None, per_second=None, records=records(*first_come)),),
        weather=KILL,
    )
    assert play_seed(told, 1).failures == ()


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"job": f"{HERE}:cuonting"}, "has no function 'cuonting'; it has .*; did you mean 'counting'"),
        ({"job": "nowhere.at_all:job"}, "there is no module"),
        ({"job": "no-colon"}, "names no "),
        ({"job": "no_such_file.py:job"}, r"there is no file no_such_file\.py"),
        ({"job": f"{HERE}:third", "arguments": {"number": 3}}, "must return a Job, not int"),
        ({"arguments": {"nmae": "x"}}, "takes no argument 'nmae', but name; did you mean 'name'"),
        ({"job": f"{HERE}:picky"}, "needs an argument 'refuses'"),
        ({"steps": (Step(when=At(1), act="rescale"),)}, "needs a parallelism"),
        ({"environment": {"checkpoints": {"evry": "1s"}}}, "evry"),
        ({"lives": (1, 40_000)}, "parallelism = 40000 must be at most 32768"),
        ({"lives": (1, 9), "environment": {"max_parallelism": 8}}, "max_parallelism = 8 is below parallelism = 9"),
        (
            {
                "steps": (Step(when=At(1), act="start", parallelism=9),),
                "environment": {"max_parallelism": 8},
                "file": "f",
            },
            "f: max_parallelism = 8 is below parallelism = 9",
        ),
        ({"job": f"{HERE}:endless", "inputs": ()}, "its source never ends"),
        ({"expectations": (AboutOutput(sink="rose", count=1),)}, "rose"),
    ],
)
def test_what_can_not_be_played_is_refused_before_any_run(change: dict[str, Any], told: str) -> None:
    with pytest.raises(af.ActorflowError, match=told):
        prepare(replace(scenario("counting", SAME), **change))


def test_what_can_not_be_played_names_its_file(tmp_path: Path) -> None:
    for change, wrong in (
        ({"job": "nowhere.at_all:job"}, "there is no module"),
        (
            {"job": f"{HERE}:picky", "arguments": {"refuses": 3, "with_type": [], "name": 1}},
            ".*takes no argument 'name'",
        ),
        ({"inputs": (replace(NUMBERS, source="nombers"),)}, ".*did you mean 'numbers'"),
        ({"inputs": (replace(NUMBERS, make=None, count=None, per_second=None, lines="none.txt"),)}, ".*can't be read"),
        (
            {"job": f"{HERE}:third", "arguments": {"number": "x"}},
            f"{HERE}:third raised TypeError: .*, line [0-9]+: return",
        ),
    ):
        told = replace(scenario("counting", SAME), file=str(tmp_path / "odd.toml"), **change)
        with pytest.raises(af.ActorflowError, match=rf"odd\.toml: {wrong}"):
            prepare(told)


def test_without_any_seed_nothing_passes() -> None:
    with pytest.raises(ValueError, match="no seeds"):
        simulation.check(scenario("counting", SAME), seeds=[])
    with pytest.raises(ValueError, match="no seeds"):
        simulation.check(word_count, seeds=iter(()))


def test_arguments_reach_the_job_and_paths_are_paths() -> None:
    told = scenario("counting", SAME, arguments={"name": "other"})
    assert prepare(told).name == "other"


# ── check ────────────────────────────────────────────────────────────────────────────────────


def test_check_takes_a_scenario_a_path_and_a_job(tmp_path: Path) -> None:
    told = scenario("counting", SAME, weather=KILL, seeds=Seeds(first=4, count=2))
    report = simulation.check(told)
    assert report.seeds == 2
    assert report.faults == Counter(kill=2)
    file = tmp_path / "kill.toml"
    file.write_text(TEXT)
    assert simulation.check(file).digest == simulation.check(str(file), seeds=[3, 4]).digest
    assert simulation.check(file, seeds=[9]).seeds == 1
    wrong = tmp_path / "wrong.toml"
    wrong.write_text(TEXT + '\n[[expect]]\nstatus = "STOPPED"\n')
    with pytest.raises(
        SeedFailed, match=r"seed 3 failed\n(.*\n)*replay it with: actorflow simulate .*wrong\.toml --se"
    ):
        simulation.check(wrong)
    with pytest.raises(ValueError, match="a scenario says itself"):
        simulation.check(told, invariant=lambda _: None)


def test_a_job_and_a_file_beside_the_scenario_are_found_from_anywhere(tmp_path: Path) -> None:
    (tmp_path / "lines.txt").write_text("one two\nthree\n")
    (tmp_path / "my_job_beside.py").write_text(
        "import actorflow as af\n"
        "from actorflow.connectors import console, files\n"
        "def words(folder: str) -> af.Job:\n"
        "    job = af.Job('words')\n"
        "    job.read(files.lines(folder), name='lines').flat_map(str.split).write(console.lines(), name='rows')\n"
        "    return job\n"
    )
    file = tmp_path / "beside.toml"
    file.write_text(
        'title = "Beside"\njob = "my_job_beside.py:words"\narguments = { folder = "/nowhere" }\n'
        '[[input]]\nsource = "lines"\nlines = "lines.txt"\n'
        '[[expect]]\nsink = "rows"\nrows = ["one", "two", "three"]\n'
    )
    report = simulation.check(file, seeds=[1])
    assert report.seeds == 1


# ── the oracle ───────────────────────────────────────────────────────────────────────────────


def with_output(told: Any, seed: int, **rows: Mapping[bytes, int]) -> Any:
    run = play(told, seed, storm=False)
    run.output = {name: Counter(dict(counted)) for name, counted in rows.items()}
    return run


def test_at_least_once_allows_repetition_and_nothing_else() -> None:
    told = scenario("counting")
    calm = with_output(told, 1, rows={b"a": 1, b"b": 2})
    calm.state = {}
    storm = with_output(told, 1, rows={b"a": 3, b"b": 2})
    assert differences(calm, storm) != []
    assert differences(calm, storm, Guarantee.AT_LEAST_ONCE) == []
    storm.output["rows"][b"c"] = 1
    assert "1 are there too often or wrong" in differences(calm, storm, Guarantee.AT_LEAST_ONCE)[0]
    del storm.output["rows"][b"b"]
    assert "2 rows are missing" in differences(calm, storm, Guarantee.AT_LEAST_ONCE)[0]


def test_a_stateful_job_at_least_once_may_count_too_far_but_misses_nothing() -> None:
    settings = {"checkpoints.guarantee": "at_least_once"}

    def build() -> af.Job:
        from actorflow.connectors import console, generator

        job = af.Job("at-least", settings=settings)
        source = generator.numbers(200, splits=3, chunk_records=4, per_second=2_000)
        keyed = job.read(source, name="numbers").key_by(lambda number: number % 3).count(name="count")
        keyed.write(console.lines(), name="rows")
        return job

    assert simulation.check(build, seeds=range(1, 4)).seeds == 3


# ── the same everywhere ──────────────────────────────────────────────────────────────────────


def test_a_digest_of_a_scenario_is_the_same_in_another_process_with_another_hash_seed() -> None:
    program = (
        "from actorflow.simulation.play import play\n"
        "from actorflow.simulation.scenario import Fault, Step\n"
        "from actorflow.simulation.weather import After, At, Kill\n"
        "from actorflow_tests.simulation.played import scenario\n"
        "kill = Fault(weather=Kill(After('CheckpointCompleted', occurrence=2)))\n"
        "told = scenario('counting', weather=(kill,), steps=(Step(when=At(300), act='start'),))\n"
        "print(play(told, 7).digest)\n"
    )
    other = subprocess.run(
        [sys.executable, "-c", program],
        env={**os.environ, "PYTHONHASHSEED": "77", "PYTHONPATH": str(Path(af.__file__).parent.parent)},
        capture_output=True,
        text=True,
        check=True,
    )
    here = play(scenario("counting", weather=KILL, steps=(Step(when=At(300), act="start"),)), 7)
    assert other.stdout.strip() == here.digest
