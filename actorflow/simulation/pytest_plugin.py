"""What does a test of a user's job ask pytest for?

Fixtures, all of them plain: they serve ``def`` and ``async def`` alike, whatever runs the latter.

    def test_words_are_counted_across_a_kill(actorflow_harness):
        job = actorflow_harness(word_count)
        job.push("to be", "or not")
        ...

    def test_a_reminder_comes_after_five_minutes(actorflow_clock):
        reminder = actorflow_clock.start(remind())
        actorflow_clock.advance(minutes=5)
        assert reminder.done()

    def test_my_job_survives_anything(actorflow_storm):
        actorflow_storm(word_count, seeds=range(200))

And scenario files: those below the folders of the ini option ``actorflow_scenarios`` (``-o actorflow_scenarios=FOLDER``
on the command line), and a scenario that is itself named there, are tests, called by their titles.  Nobody else's
``*.toml`` is.

A seed that fails says with which one command it is played again; ``--actorflow-seed N`` plays that seed alone.

Whoever has actorflow installed has this plugin loaded in each of their test runs, so it imports nothing of the package
until a test asks for it; ``-p no:actorflow`` leaves it out.
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import pytest

if TYPE_CHECKING:
    from actorflow.dataflow.job import Job
    from actorflow.model.journal import Line
    from actorflow.simulation.harness import Harness
    from actorflow.simulation.oracle import Invariant, Report
    from actorflow.simulation.play import Played
    from actorflow.simulation.scenario import Scenario
    from actorflow.simulation.virtual_clock import VirtualClock
    from actorflow.simulation.world import Universe

__all__ = (
    "ScenarioFile",
    "ScenarioTest",
    "Storm",
    "actorflow_clock",
    "actorflow_harness",
    "actorflow_seed",
    "actorflow_storm",
)

_FOLDERS = "actorflow_scenarios"
_LAST_LINES = 40
"""So much of the journal of a failed seed is shown."""


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add our options."""
    group = parser.getgroup("actorflow", "actorflow: jobs in a simulated world")
    group.addoption(
        "--actorflow-seed", type=int, metavar="N", help="play this seed alone, in storms and scenarios and on clocks"
    )
    parser.addini(_FOLDERS, "folders whose *.toml files are scenarios of actorflow", type="paths", default=[])


# ── fixtures ─────────────────────────────────────────────────────────────────────────────────


@pytest.fixture
def actorflow_seed(request: pytest.FixtureRequest) -> int:
    """The seed of this test's clock and harness: that of ``--actorflow-seed``, else 0."""
    return _asked(request.config) or 0


@pytest.fixture
def actorflow_clock(actorflow_seed: int) -> Iterator[VirtualClock]:
    """A clock that the test moves, and coroutines on it: ``start``, ``run``, ``advance``, ``now``."""
    from actorflow.simulation.virtual_clock import VirtualClock

    with VirtualClock(actorflow_seed) as clock:
        yield clock


@pytest.fixture
def actorflow_harness(actorflow_seed: int) -> Iterator[Callable[..., Harness]]:
    """Start jobs with their sources and sinks in the test's hands: ``actorflow_harness(my_job)``, as ``Harness`` does.

    What was started is ended after the test.
    """
    from actorflow.simulation.harness import Harness

    started: list[Harness] = []

    def start(job: Job | Callable[[], Job], **options: Any) -> Harness:
        started.append(Harness(job, **{"seed": actorflow_seed, **options}))
        return started[-1]

    try:
        yield start
    finally:
        for harness in reversed(started):
            harness.close()


@pytest.fixture
def actorflow_storm(request: pytest.FixtureRequest) -> Storm:
    """Run a job in calm weather and in the storms of many seeds: ``actorflow_storm(my_job, seeds=range(200))``."""
    return Storm(request.node)


class Storm:
    """What ``simulation.check`` does, with the one seed that was asked for, if any.

    A failure says how to play it again.
    """

    def __init__(self, item: pytest.Item) -> None:
        self._item = item

    def __call__(
        self,
        job: Callable[[], Job],
        *,
        seeds: Iterable[int] = range(20),
        invariant: Invariant | None = None,
        outside: Callable[[Universe], None] | None = None,
    ) -> Report:
        """Raise ``SeedFailed`` for the first seed whose storm does not end as its calm run; see ``check``."""
        __tracebackhide__ = True
        from actorflow.simulation.oracle import Report, add, many, run_seed
        from actorflow.simulation.running import some_seeds
        from actorflow.simulation.runs import SeedFailed
        from actorflow.simulation.subject import Subject
        from actorflow.simulation.virtual_clock import off_the_loop

        asked = _asked(self._item.config)
        report = Report()

        def play() -> None:
            __tracebackhide__ = True
            subject = Subject(job, outside)
            with many():
                for seed in some_seeds(seeds if asked is None else (asked,)):
                    try:
                        add(report, run_seed(subject, seed, invariant))
                    except SeedFailed as error:
                        _show_journal(self._item, error.lines)
                        told = f"{error}\n\n{_how_to_replay(self._item, seed)}"
                        raise SeedFailed(told, error.lines) from error.__cause__

        off_the_loop(play)
        return report


# ── scenario files ───────────────────────────────────────────────────────────────────────────


def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> pytest.Collector | None:
    """Collect a scenario: one in a folder of scenarios, or one that was named itself."""
    if file_path.suffix != ".toml":
        return None
    config = parent.config
    folders: list[Path] = config.getini(_FOLDERS)
    above = file_path.resolve().parents
    if any(folder.resolve() in above for folder in folders) or (
        parent.session.isinitpath(file_path) and _looks_like_one(file_path)
    ):
        return ScenarioFile.from_parent(parent, path=file_path)
    return None


def _looks_like_one(path: Path) -> bool:
    """Whether a TOML file that may be anybody's has what every scenario has."""
    import tomllib

    try:
        top = tomllib.loads(path.read_text("utf-8"))
    except ValueError:
        return False
    return {"title", "job"} <= top.keys()


class ScenarioFile(pytest.File):
    """A scenario file; it holds one test."""

    def collect(self) -> Iterator[ScenarioTest]:
        """Read it.  What can't be understood is told as it is, without a traceback."""
        from actorflow.errors import ActorflowError
        from actorflow.simulation.scenario_reading import read_scenario

        try:
            scenario = read_scenario(self.path)
        except ActorflowError as error:
            raise self.CollectError(str(error)) from error
        # ``::`` would part the name of a test that is given on the command line.
        yield ScenarioTest.from_parent(self, name=scenario.title.replace("::", ": "), scenario=scenario)


class ScenarioTest(pytest.Item):
    """A scenario, with the seeds that it asks for or the one that was asked for."""

    def __init__(self, *, scenario: Scenario, **options: Any) -> None:
        super().__init__(**options)
        self.scenario = scenario

    def runtest(self) -> None:
        """Play it; the first seed that fails is told."""
        from actorflow.errors import ActorflowError
        from actorflow.simulation.oracle import many
        from actorflow.simulation.play import play_seed, prepare
        from actorflow.simulation.virtual_clock import off_the_loop

        asked, seeds = _asked(self.config), self.scenario.seeds
        chosen = range(seeds.first, seeds.first + seeds.count) if asked is None else (asked,)

        def play() -> None:
            subject = prepare(self.scenario)
            with many():
                for seed in chosen:
                    played = play_seed(self.scenario, seed, subject)
                    if played.failures:
                        self._fail(played)

        try:
            off_the_loop(play)
        except ActorflowError as error:
            pytest.fail(str(error), pytrace=False)

    def _fail(self, played: Played) -> NoReturn:
        _show_journal(self, played.lines)
        failures = "\n".join(played.failures)
        told = f"{self.scenario.title}\nseed {played.seed}: {failures}\n\n{_how_to_replay(self, played.seed)}"
        pytest.fail(told, pytrace=False)

    def reportinfo(self) -> tuple[Path, int, str]:
        """Where it is, and how it is called."""
        return self.path, 0, self.name


# ── what a failure says ──────────────────────────────────────────────────────────────────────


def _asked(config: pytest.Config) -> int | None:
    """The seed that was asked for on the command line."""
    seed: int | None = config.getoption("--actorflow-seed")
    return seed


def _how_to_replay(item: pytest.Item, seed: int) -> str:
    """The command, as it can be pasted into the shell in which pytest was called."""
    where, name = item.config.invocation_params.dir, str(item.nodeid).partition("::")[2]
    path = Path(os.path.relpath(item.path, where)).as_posix()
    return f"to replay it:  pytest {shlex.quote(f'{path}::{name}')} --actorflow-seed {seed}"


def _show_journal(item: pytest.Item, lines: Iterable[Line]) -> None:
    """Show the end of a failed seed's journal beside the failure."""
    from actorflow.simulation.timeline import timeline

    told = list(timeline(lines))
    if len(told) > 1:
        heading, *entries = told
        item.add_report_section(
            "call", "actorflow, the end of its journal", "\n".join([heading, *entries[-_LAST_LINES:]])
        )
