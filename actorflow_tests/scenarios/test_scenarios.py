"""The picture book: every scenario must pass, and must fail as soon as what it is about is broken.

A scenario that can't fail tells nothing.  So each is played against a fault of its subject: one of the planted ones
(``actorflow.simulation.mutants``), one that is planted here, or its own story without what brings the outcome about.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from actorflow.simulation import seams
from actorflow.simulation.mutants import MUTANTS
from actorflow.simulation.oracle import many
from actorflow.simulation.play import play_seed, prepare
from actorflow.simulation.replacing import replaced
from actorflow.simulation.scenario import Scenario
from actorflow.simulation.scenario_reading import parse_scenario, read_scenario
from actorflow.simulation.scenario_writing import write_scenario
from actorflow.state.memory import MemoryBackend, MemorySnapshot
from actorflow_tests.house.sources import REPOSITORY

FOLDER = REPOSITORY / "scenarios"
FILES = sorted(FOLDER.rglob("*.toml"))
SEEDS = None if os.environ.get("ACTORFLOW_THOROUGH") else 2
"""How many seeds of each are played here; ``None`` is as many as it asks for itself."""


def title_of(path: Path) -> str:
    return read_scenario(path).title


def name_of(path: Path) -> str:
    return path.relative_to(FOLDER).with_suffix("").as_posix()


@pytest.mark.parametrize("path", FILES, ids=title_of)
def test_it_ends_as_it_says(path: Path) -> None:
    scenario = read_scenario(path)
    subject = prepare(scenario)
    with many():
        for seed in seeds_of(scenario, SEEDS):
            played = play_seed(scenario, seed, subject)
            assert not played.failures, str(played)
            assert played.run is not None
            assert not played.run.unstruck, "weather that never strikes is no part of a story"


def seeds_of(scenario: Scenario, most: int | None = None) -> range:
    count = scenario.seeds.count if most is None else min(most, scenario.seeds.count)
    return range(scenario.seeds.first, scenario.seeds.first + count)


# ── what breaks it ───────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True)
class Planted:
    """A planted fault, by its name."""

    mutant: str


@dataclass(frozen=True)
class Without:
    """The story with something in it changed, so that its outcome can't come about; the claims stay."""

    said: str
    instead: str


@dataclass(frozen=True)
class Here:
    """A fault that is planted by a function of this module."""

    plant: Callable[[], AbstractContextManager[None]]


@contextmanager
def one_clock_for_all() -> Iterator[None]:
    """Intervals and timeouts are measured with the clock on the wall."""

    def make(original: Any) -> Any:
        return lambda self: self._process.machine.wall_ms()

    with replaced(seams._Clock, "now_ms", make):
        yield


@contextmanager
def snapshots_hold_what_is_new() -> Iterator[None]:
    """State that was restored is good for reading, and is in no snapshot that follows."""

    def make_restore(original: Any) -> Any:
        def restore(self: MemoryBackend, *arguments: Any, **options: Any) -> Iterator[int]:
            yield from original(self, *arguments, **options)
            vars(self)["restored"] = [*self._tables]

        return restore

    def make_freeze(original: Any) -> Any:
        def freeze(self: MemoryBackend) -> MemorySnapshot:
            snapshot: MemorySnapshot = original(self)
            for operator, state in vars(self).get("restored", ()):
                snapshot._pins[operator] = [pin for pin in snapshot._pins[operator] if pin[0] != state]
            return snapshot

        return freeze

    with replaced(MemoryBackend, "restore", make_restore), replaced(MemoryBackend, "freeze", make_freeze):
        yield


COMPLETED_2 = '"CheckpointCompleted", checkpoint = 2'
BROKEN: dict[str, Planted | Without | Here] = {
    "flow/full_channel": Without('by = "20ms"', 'by = "1ms"'),
    "checkpoints/aligned": Planted("channel-not-blocked"),
    "checkpoints/slow_channel": Without('by = "400ms"', 'by = "1ms"'),
    "checkpoints/at_least_once": Without('guarantee = "AT_LEAST_ONCE"', 'guarantee = "EXACTLY_ONCE"'),
    "checkpoints/aborted": Planted("an-abort-forgets-prepared-rows"),
    "checkpoints/cancelled_while_aligning": Planted("cancelled-receive-loses-a-batch"),
    "checkpoints/timeout": Without('timeout = "1s"', 'timeout = "10s"'),
    "checkpoints/minimum_pause": Without('min_pause = "500ms"', 'min_pause = "0ms"'),
    "checkpoints/tolerable_failures": Without("tolerable_failures = 2", "tolerable_failures = 1"),
    "checkpoints/too_many_failures": Without("tolerable_failures = 1", "tolerable_failures = 2"),
    "checkpoints/subsumed": Planted("the-newest-is-subsumed"),
    "recovery/no_restart": Without('type = "none"', 'type = "fixed-delay"'),
    "recovery/fixed_delay": Without("attempts = 2, delay", "attempts = 3, delay"),
    "recovery/failure_rate": Without('interval = "10s"', 'interval = "20s"'),
    "recovery/failure_rate_exceeded": Without('interval = "10s"', 'interval = "3s"'),
    "recovery/exponential_delay": Without('reset_after = "20s"', 'reset_after = "30s"'),
    "recovery/kill_01_at_the_trigger": Planted("position-off-by-one"),
    "recovery/kill_02_while_barriers_travel": Planted("barrier-before-the-position"),
    "recovery/kill_03_after_an_instant": Without('"SnapshotTaken", checkpoint = 2, actor = "count/1"', COMPLETED_2),
    "recovery/kill_04_during_an_upload": Without('"*chk-2/*", moment = "during"', '"*chk-3/*", moment = "during"'),
    "recovery/kill_05_at_an_acknowledgement": Without(
        '"CheckpointAcknowledged", checkpoint = 2, actor = "count/0"', COMPLETED_2
    ),
    "recovery/kill_06_before_the_manifest": Without('moment = "before"', 'moment = "unanswered"'),
    "recovery/kill_07_half_a_manifest": Without('moment = "torn"', 'moment = "unanswered"'),
    "recovery/kill_08_the_answer_is_lost": Planted("prepared-rows-not-restored"),
    "recovery/kill_09_after_the_manifest": Planted("prepared-rows-not-restored"),
    "recovery/kill_10_between_two_commits": Planted("a-repeated-commit-writes-again"),
    "recovery/kill_11_after_a_commit": Planted("a-repeated-commit-writes-again"),
    "recovery/manifest_refused": Planted("an-abort-forgets-prepared-rows"),
    "recovery/manifest_torn": Planted("a-lost-answer-is-taken-for-yes"),
    "recovery/manifest_answer_lost": Planted("a-lost-answer-is-taken-for-no"),
    "recovery/two_rounds": Here(snapshots_hold_what_is_new),
    "recovery/rescale_up": Planted("a-range-of-key-groups-too-short"),
    "recovery/rescale_down": Planted("position-off-by-one"),
    "recovery/async_calls": Planted("calls-under-way-not-in-the-snapshot"),
    "recovery/half_a_handler": Planted("calls-under-way-not-in-the-snapshot"),
    "recovery/clock_jump": Here(one_clock_for_all),
    "recovery/disk_lost": Without('storage = "s3://home"', 'storage = "/home"'),
    "delivery/files_across_kills": Planted("prepared-rows-not-restored"),
    "delivery/files_across_a_power_cut": Planted("a-file-that-is-not-synced"),
    "delivery/broker_across_kills": Planted("prepared-rows-not-restored"),
    "delivery/database_across_kills": Planted("prepared-rows-not-restored"),
    "delivery/last_commit": Planted("a-repeated-commit-writes-again"),
    "delivery/two_owners": Planted("no-look-at-the-owners-before-the-permit"),
    "delivery/zombie": Planted("no-look-at-the-owners-before-the-permit"),
    "savepoints/stop_and_go_on": Planted("position-off-by-one"),
    "savepoints/drain": Without('do = "drain"', 'do = "cancel"'),
    "savepoints/cancel": Without('do = "cancel"', 'do = "stop"'),
}


def test_the_book_has_at_least_twenty_five_scenarios_and_what_breaks_each_is_said() -> None:
    assert len(FILES) >= 25
    assert sorted(map(name_of, FILES)) == sorted(BROKEN)
    assert len({title_of(path) for path in FILES}) == len(FILES)


@pytest.mark.parametrize("path", FILES, ids=title_of)
def test_it_fails_when_what_it_is_about_is_broken(path: Path) -> None:
    text, fault = path.read_text("utf-8"), BROKEN[name_of(path)]
    plant: Callable[[], AbstractContextManager[None]] = nullcontext
    match fault:
        case Planted(mutant):
            plant = MUTANTS[mutant].planted
        case Here(here):
            plant = here
        case Without(said, instead):
            assert text.count(said) == 1, f"{said} is there {text.count(said)} times"
            text = text.replace(said, instead)
    scenario = parse_scenario(text, file=str(path))
    subject = prepare(scenario)

    with many(), plant():
        failed = any(
            is_about_it(failure)
            for seed in seeds_of(scenario)
            for failure in play_seed(scenario, seed, subject).failures
        )

    assert failed, f"{scenario.title}: it passes with {fault}"


def is_about_it(failure: str) -> bool:
    """Whether a claim is not true; that there was nothing to be judged would say little about what it judges."""
    return not re.search("nothing to compare with|never struck|was over before this step came", failure)


# ── the book is one ──────────────────────────────────────────────────────────────────────────


def test_the_guide_walks_through_every_scenario_and_through_nothing_else() -> None:
    guide = (FOLDER / "README.md").read_text("utf-8").partition("## The book, in order")[2]
    linked = {link.removesuffix(".toml") for link in re.findall(r"\]\(([^)]+)\)", guide)}

    assert linked == set(map(name_of, FILES))


@pytest.mark.parametrize("path", FILES, ids=title_of)
def test_it_tells_a_story_and_claims_more_than_that_nothing_changed(path: Path) -> None:
    scenario = read_scenario(path)

    assert len(scenario.story.split()) >= 25
    assert any(getattr(claim, "compare", None) is None for claim in scenario.expectations)
    assert all(len(line) <= 120 for line in path.read_text("utf-8").splitlines())


def test_written_and_read_again_it_is_the_same_scenario() -> None:
    for path in FILES:
        scenario = read_scenario(path)
        assert parse_scenario(write_scenario(scenario), file=scenario.file) == scenario
