"""The storm must equal the calm, and the oracle must see where it does not."""

from __future__ import annotations

import asyncio
import json
import shlex
import subprocess
import sys
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from typing import Any

import pytest

import actorflow as af
from actorflow.connectors import console, files, generator, memory
from actorflow.examples.word_count import word_count
from actorflow.simulation.course import course_of_draw
from actorflow.simulation.oracle import Report, Run, SeedFailed, add, calm_run, check, run_seed, storm_run
from actorflow.simulation.running import run_course
from actorflow.simulation.subject import Subject
from actorflow.simulation.swarm import STEPS, draw


def line(index: int) -> str:
    return f"w{index % 5} W{index * index % 7}"


def words(sink: Any = None, *, records: int = 120) -> af.Job:
    """A word count small enough to be run many times."""
    job = af.Job("words")
    (
        job.read(generator.generate(line, records=records, splits=3, chunk_records=4, per_second=2_000), name="lines")
        .flat_map(str.split)
        .key_by(str.lower)
        .count(name="count")
        .write(sink or console.lines(), name="rows")
    )
    return job


def words_in_files() -> af.Job:
    return words(files.write("/out"))


def plain_counts(records: int = 120) -> Counter[bytes]:
    """What an independent loop gives."""
    seen: Counter[str] = Counter()
    rows: Counter[bytes] = Counter()
    for index in range(records):
        for word in line(index).lower().split():
            seen[word] += 1
            rows[repr((word, seen[word])).encode()] += 1
    return rows


# ── word count survives ──────────────────────────────────────────────────────────────────────

SEEDS = (*range(30), 70, 100)
"""Two rounds of all steps, and some more for a step that is hard to hit."""


@cache
def storm(seed: int) -> Run:
    """A storm that equals its calm, run once for all tests that look at it."""
    return run_seed(Subject(words), seed)


@pytest.mark.parametrize("seeds", [SEEDS[first : first + 4] for first in range(0, len(SEEDS), 4)], ids=str)
def test_inv_11_5_storms_over_word_count_equal_the_calm(seeds: tuple[int, ...]) -> None:
    report = Report()
    for seed in seeds:
        run = storm(seed)
        assert run.output == {"rows": plain_counts()}
        assert run.lives > 1
        add(report, run)
    assert report.faults["kill"] + report.faults["power_cut"] >= len(seeds)


def test_every_step_of_a_checkpoint_is_hit_over_the_seeds() -> None:
    hit: Counter[str] = Counter()
    for seed in SEEDS:
        hit.update(storm(seed).kills_at)
    assert {*STEPS} <= {*hit}


def test_storms_over_files_equal_the_calm() -> None:
    report = check(words_in_files, seeds=range(100, 104))
    assert report.seeds == 4
    assert report.failures == []


@pytest.mark.slow
@pytest.mark.parametrize("first", range(0, 1_000, 50))
def test_a_thousand_storms_over_the_example_equal_the_calm(first: int) -> None:
    report = check(word_count, seeds=range(first, first + 50))
    assert report.seeds == 50


# ── one seed, one run ────────────────────────────────────────────────────────────────────────


def test_a_seed_gives_the_same_digest_each_time_and_another_one_another() -> None:
    again = storm_run(Subject(words), 3)
    assert storm(3).digest == again.digest != storm(4).digest
    reports = [Report(), Report(), Report()]
    for report, seeds in zip(reports, ((3, 4), (3, 4), (4, 3)), strict=True):
        for seed in seeds:
            add(report, storm(seed))
    assert reports[0].digest == reports[1].digest != reports[2].digest


def test_a_calm_run_has_one_life_no_faults_and_the_plain_output() -> None:
    run = calm_run(Subject(words), 5)
    assert (run.lives, run.faults) == (1, Counter())
    assert run.output == {"rows": plain_counts()}
    assert len(run.state) == len({word for index in range(120) for word in line(index).lower().split()})


# ── what is wrong is seen ────────────────────────────────────────────────────────────────────


def test_a_job_that_remembers_outside_of_its_state_is_found_out() -> None:
    """A count kept in a Python variable of each life is lost with it."""

    def careless() -> af.Job:
        seen: Counter[str] = Counter()

        def count(word: str) -> tuple[str, int]:
            seen[word] += 1
            return word, seen[word]

        job = af.Job("careless")
        source = generator.generate(line, records=120, splits=3, chunk_records=4, per_second=2_000)
        job.read(source, name="lines").map(count).write(console.lines(), name="rows")
        return job

    with pytest.raises(SeedFailed, match=r"'rows' differs from the calm run(.*\n)+replay it with: simulation.check\("):
        check(careless, seeds=range(15))


def forgetful() -> af.Job:
    seen: list[str] = []

    def mark(word: str) -> tuple[str, int]:
        seen.append(word)
        return word, len(seen)

    job = af.Job("forgetful")
    source = memory.source(["a b", "c d"] * 40, chunk_records=2)
    job.read(source, name="lines").flat_map(str.split).map(mark, name="mark").write(console.lines(), name="rows")
    return job


def test_a_seed_that_fails_says_which_command_plays_it_again() -> None:
    with pytest.raises(SeedFailed) as failed:
        check(forgetful, seeds=range(1, 15))
    failure, _, command = str(failed.value).rpartition("\nreplay it with: ")
    ran = subprocess.run(
        [sys.executable, "-m", *shlex.split(command), "--json"], capture_output=True, text=True, check=False
    )
    assert ran.returncode == 1
    assert json.loads(ran.stdout)["failures"] == 1
    again = subprocess.run([sys.executable, "-m", *shlex.split(command)], capture_output=True, text=True, check=False)
    assert failure in again.stdout
    with pytest.raises(SeedFailed, match=r"replay it with: simulation\.check\(forgetful, …, seeds=\[1\]\)"):
        check(forgetful, seeds=[1], invariant=nothing_is_right)


def nothing_is_right(_: object) -> None:
    raise AssertionError("as always")


def test_it_can_be_called_where_an_event_loop_runs() -> None:
    async def test() -> Report:
        return check(small_words, seeds=[1])

    assert asyncio.run(test()).digests == check(small_words, seeds=[1]).digests


def small_words() -> af.Job:
    return words(records=12)


def test_a_sink_that_shows_what_is_not_permitted_is_found_out() -> None:
    class Hasty(memory.Collect[Any]):
        """Shows rows when they are written; a restart writes them again."""

        async def open(self, context: Any) -> Any:
            writer: Any = await super().open(context)

            async def write(records: list[Any]) -> None:
                context.world.clock.now_ms()
                shown.extend(records)

            writer.write = write
            return writer

        async def visible(self, world: Any) -> list[Any]:
            return list(shown)

    Hasty.__module__ = "a_user's"
    shown: list[Any] = []

    def hasty() -> af.Job:
        return words(Hasty([]))

    def one_seed(seed: int) -> None:
        subject = Subject(hasty)
        calm = calm_run(subject, seed)
        shown.clear()
        storm = storm_run(subject, seed)
        shown.clear()
        assert calm.output != storm.output

    for seed in (1, 2):
        one_seed(seed)


def test_an_invariant_of_the_jobs_own_takes_the_place_of_the_comparison() -> None:
    asked: list[int] = []

    def enough(output: Mapping[str, Counter[bytes]]) -> None:
        asked.append(sum(output["rows"].values()))
        assert sum(output["rows"].values()) == 240

    check(words, seeds=[1], invariant=enough)
    assert asked == [240, 240]

    def never(output: Mapping[str, Counter[bytes]]) -> None:
        raise AssertionError("nothing is good enough")

    with pytest.raises(SeedFailed, match="seed 2, in calm weather: nothing is good enough"):
        check(words, seeds=[2], invariant=never)


def test_a_job_that_can_not_be_simulated_is_refused_by_name() -> None:
    def never_ends() -> af.Job:
        job = af.Job("endless")
        job.read(generator.numbers(), name="numbers").write(console.lines(), name="rows")
        return job

    class Outside(memory.MemorySource[int]):
        runs_in_simulation = False

    def reaches_out() -> af.Job:
        job = af.Job("outside")
        source = Outside([1], splits=1, records=None, chunk_records=1)
        job.read(source, name="outside").write(console.lines(), name="rows")
        return job

    with pytest.raises(af.InvalidJob, match="operator 'numbers': its source never ends"):
        Subject(never_ends)
    with pytest.raises(af.InvalidJob, match="operator 'outside': its source Outside reaches the outside"):
        Subject(reaches_out)


def test_a_job_that_fails_in_calm_weather_is_no_storms_fault() -> None:
    def fails() -> af.Job:
        job = af.Job("fails")
        job.read(generator.numbers(20), name="numbers").map(lambda number: 1 // (number - 10)).write(
            console.lines(), name="rows"
        )
        return job

    with pytest.raises(SeedFailed, match=r"seed 0, in calm weather: .*ZeroDivisionError"):
        check(fails, seeds=range(1))


# ── a storm as a scenario ────────────────────────────────────────────────────────────────────


def test_the_weather_that_a_run_tells_is_all_that_it_takes_to_have_the_same_run() -> None:
    """A failing storm can be written down: its faults, each in its life, and no draw besides."""
    subject = Subject(words)
    for seed in (4, 14, 21, 26):
        course = course_of_draw(draw(seed, subject.shape), storm=True)
        told = storm(seed)
        as_told = replace(course, faults=told.weather, second=None, always_kills=False)
        assert run_course(subject, seed, as_told, storm=True).digest == told.digest
