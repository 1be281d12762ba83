"""Jobs of all shapes under seeded storms: what an outsider sees in the end is what calm weather gives."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping

import pytest

from actorflow.connectors import console, generator
from actorflow.dataflow.job import Job
from actorflow.errors import InvalidJob
from actorflow.examples.word_count import word_count
from actorflow.model import journal
from actorflow.simulation.moments import KILLING, Moments
from actorflow.simulation.oracle import Report, SeedFailed, calm_run, check, storm_run
from actorflow.simulation.subject import Subject
from actorflow.simulation.swarm import STEPS, Shape, draw
from actorflow_tests.simulation import shapes
from actorflow_tests.simulation.shapes import OUTSIDE, SHAPES

WORDS = Subject(word_count)

FEW, MANY = 2, 100


# ── many seeds ───────────────────────────────────────────────────────────────────────────────


def test_word_count_survives_a_kill_at_each_step_of_a_checkpoint() -> None:
    report = check(word_count, seeds=range(1, 1 + len(STEPS)))
    assert report.seeds == len(STEPS)
    assert sum(report.faults[verb] for verb in KILLING) >= len(STEPS)
    assert len(report.kills_at) >= len(STEPS) - 3  # some kills strike elsewhere than where they were aimed at


@pytest.mark.parametrize("name", sorted(SHAPES))
def test_a_job_of_any_shape_gives_in_storms_what_it_gives_in_calm_weather(name: str) -> None:
    first = 1 + FEW * sorted(SHAPES).index(name)  # each shape meets other steps
    assert check(SHAPES[name], seeds=range(first, first + FEW), outside=OUTSIDE.get(name)).seeds == FEW


def test_at_least_once_loses_nothing_and_gives_nothing_that_calm_weather_would_not() -> None:
    def all_there(output: Mapping[str, Counter[bytes]]) -> None:
        assert set(output["rows"]) == {b"%d" % (number + 2) for number in range(300)}

    assert check(shapes.at_least_once, seeds=range(1, 7), invariant=all_there).seeds == 6


@pytest.mark.slow
def test_word_count_survives_a_thousand_storms_in_which_every_step_is_hit() -> None:
    report = check(word_count, seeds=range(1, 1_001))
    assert_every_step_is_hit(report)


def assert_every_step_is_hit(report: Report) -> None:
    assert set(report.kills_at) == set(STEPS)
    assert min(report.kills_at.values()) >= 5
    assert report.killed_again >= report.seeds // 4


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(SHAPES))
def test_a_job_of_any_shape_survives_many_storms(name: str) -> None:
    assert check(SHAPES[name], seeds=range(1_000, 1_000 + MANY), outside=OUTSIDE.get(name)).seeds == MANY


# ── draws ────────────────────────────────────────────────────────────────────────────────────


def test_a_seed_draws_the_same_again_and_the_job_changes_only_what_depends_on_it() -> None:
    for seed in range(50):
        assert draw(seed) == draw(seed)
        assert draw(seed).knobs == draw(seed, Shape(operators=("count",))).knobs
        assert draw(seed, Shape(operators=("count",))).weather[0] == draw(seed).weather[0]


def test_draws_cover_the_knobs_that_the_storms_promise() -> None:
    knobs = [draw(seed).knobs for seed in range(1_000)]
    assert {drawn.parallelism[0] for drawn in knobs} == {1, 2, 3, 4}
    assert {drawn.per_channel for drawn in knobs} == set(range(1, 9))
    assert {drawn.retained for drawn in knobs} == {1, 2, 3}
    assert any(drawn.per_channel == 1 and drawn.floating == 0 for drawn in knobs)
    assert any(len(set(drawn.parallelism)) > 1 for drawn in knobs)
    for drawn in knobs:
        drawn.settings(drawn.parallelism[0])  # none of them contradicts itself


def test_every_storm_kills_and_one_in_four_kills_again_in_the_life_that_follows() -> None:
    runs = [storm_run(Subject(shapes.mutable_lists), seed) for seed in range(1, 31)]
    assert all(run.lives > 1 and sum(run.faults[verb] for verb in KILLING) for run in runs)
    assert sum(run.again for run in runs) >= len(runs) // 4


# ── the oracle sees what is wrong ────────────────────────────────────────────────────────────


def test_two_storms_of_a_seed_do_the_same() -> None:
    assert storm_run(WORDS, 4).digest == storm_run(WORDS, 4).digest != storm_run(WORDS, 5).digest


class Remembering:
    """A job whose operator remembers over lives, as no operator should."""

    def __init__(self, build: Callable[[list[int]], Job]) -> None:
        self._build, self.seen = build, list[int]()

    def __call__(self) -> Job:
        return self._build(self.seen)


def test_a_job_that_depends_on_what_no_checkpoint_holds_is_found() -> None:
    def build(seen: list[int]) -> Job:
        job = Job("impure")

        def number(value: int) -> tuple[int, int]:
            seen.append(value)
            return value, len(seen)

        job.read(shapes.numbers(50), name="numbers").map(number).write(console.lines(), name="rows")
        return job

    with pytest.raises(SeedFailed, match="seed 1 is not deterministic"):
        check(Remembering(build), seeds=[1])


def test_a_mistake_that_the_next_attempt_mends_is_found_and_the_journal_is_there_to_be_looked_at() -> None:
    def build(seen: list[int]) -> Job:
        job = Job("once-wrong")

        def once_wrong(value: int) -> int:
            seen.append(value)
            assert len(seen) != 20
            return value

        job.read(shapes.numbers(50), name="numbers").map(once_wrong).write(console.lines(), name="rows")
        return job

    with pytest.raises(SeedFailed, match=r"in calm weather.*AssertionError") as failed:
        check(Remembering(build), seeds=[1])
    assert any(isinstance(line.entry, journal.JobRestarting) for line in failed.value.lines)


def test_a_job_that_never_ends_or_reaches_outside_is_refused_before_any_run() -> None:
    def endless() -> Job:
        job = Job("endless")
        job.read(generator.numbers(), name="numbers").write(console.lines(), name="rows")
        return job

    with pytest.raises(InvalidJob, match="never ends"):
        Subject(endless)


def test_a_job_that_hangs_is_told_with_what_it_waits_for() -> None:
    def hanging() -> Job:
        job = Job("hanging", settings={"checkpoints.every": None})
        stream = job.read(shapes.numbers(50), name="numbers").map(shapes.forever, name="call")
        stream.write(console.lines(), name="rows")
        return job

    with pytest.raises(SeedFailed, match="does not finish within") as failed:
        calm_run(Subject(hanging), 1)
    assert "forever" in str(failed.value)


def test_an_invariant_takes_the_place_of_the_comparison() -> None:
    def first_come() -> Job:
        job = Job("first-come")
        parted = job.read(shapes.numbers(100), name="numbers").key_by(shapes.parity)
        parted.stateful_map(shapes.place, name="place").write(console.lines(), name="rows")
        return job

    def each_place_once(output: Mapping[str, Counter[bytes]]) -> None:
        places = Counter(row.rpartition(b", ")[2] for row in output["rows"].elements())
        assert sorted(places.values()) == [2] * 50, places

    assert check(first_come, seeds=range(1, 4), invariant=each_place_once).seeds == 3


# ── counting where kills strike ──────────────────────────────────────────────────────────────


def lines(*entries: journal.Entry) -> list[journal.Line]:
    return [journal.Line(number, number, "job", entry) for number, entry in enumerate(entries, 1)]


def judged(step: str, *before: journal.Entry, visible: Counter[int] | None = None) -> Counter[str]:
    moments = Moments(None if visible is None else lambda: visible)
    for line in lines(*before, journal.WeatherStruck(verb="kill", target="job", step=step)):
        moments.read(line)
    assert moments.kills == 1
    return moments.kills_at


STARTED = (
    journal.JobStarted(job="j", attempt=1, generation=1, restored_checkpoint=None),
    journal.ActorStarted(actor="a"),
)
TRIGGERED = journal.CheckpointTriggered(checkpoint=1, kind="periodic")
ACKNOWLEDGED = journal.CheckpointAcknowledged(checkpoint=1, actor="a")
PREPARED = journal.SinkPrepared(checkpoint=1, actor="a", operator="sink", committables=2)


def test_a_kill_at_a_manifest_counts_only_while_a_manifest_is_due() -> None:
    assert judged("manifest torn", *STARTED, TRIGGERED) == {}
    assert judged("manifest torn", *STARTED, TRIGGERED, ACKNOWLEDGED) == {"manifest torn": 1}
    aborted = journal.CheckpointAborted(checkpoint=1, reason="STORAGE_FAILED")
    assert judged("manifest before", *STARTED, TRIGGERED, ACKNOWLEDGED, aborted) == {}
    written = journal.ManifestWritten(checkpoint=1)
    assert judged("manifest answer lost", *STARTED, TRIGGERED, ACKNOWLEDGED, written) == {}


@pytest.mark.parametrize(
    ("aimed_at", "visible", "struck"),
    [
        ("commit before", 0, "commit before"),
        ("commit before", 1, "commit between two"),
        ("commit between two", 1, "commit between two"),
        ("commit between two", 2, "commit after"),
        ("commit after", 1, "commit between two"),
        ("commit after", 2, "commit after"),
    ],
)
def test_a_kill_at_a_commit_counts_by_what_an_outsider_sees(aimed_at: str, visible: int, struck: str) -> None:
    assert judged(aimed_at, *STARTED, TRIGGERED, PREPARED, visible=Counter({1: visible})) == {struck: 1}


def test_a_kill_counts_as_restoring_only_while_state_is_restored() -> None:
    assert judged("restoring", *STARTED) == {}
    assert judged("restoring", *STARTED, journal.ActorRestored(actor="a", checkpoint=1)) == {"restoring": 1}
