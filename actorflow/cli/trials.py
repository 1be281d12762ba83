"""What is to be simulated, and what does one seed of it come to?

A target is a file or a folder of scenarios, or a job (``MODULE:FUNCTION`` or ``FILE.py:FUNCTION``) in the storms that
seeds draw.  Either way it is a list of *trials*, each a file and a seed; a job has no file, and a recording among the
scenarios of a folder has no seed.  A trial can be made in any process, by itself, and what it came to is told in values
that JSON holds.

Nothing is printed here, and no process is started.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from actorflow.cli.exits import UsageMistake
from actorflow.cli.targets import build_job
from actorflow.errors import ActorflowError, InvalidConfig, InvalidJob, InvalidScenario, MissingExtra
from actorflow.model.journal import Line
from actorflow.simulation.oracle import run_seed
from actorflow.simulation.play import Played, play_seed, prepare
from actorflow.simulation.recording_file import is_recording
from actorflow.simulation.runs import Run, SeedFailed
from actorflow.simulation.scenario import Scenario
from actorflow.simulation.scenario_reading import read_scenario
from actorflow.simulation.subject import Subject

__all__ = ("Came", "Trial", "Trials")


class Trial(NamedTuple):
    """One seed of a file; of the job of the command line where ``file`` is empty.  A recording is replayed: seed 0."""

    file: str
    seed: int


@dataclass(slots=True, kw_only=True)
class Came:
    """What a trial came to; ``failures`` are sentences, and without any it passed.

    ``lines``, the journal, and ``played``, of a scenario, are there only in the process that made the trial.
    """

    failures: list[str] = field(default_factory=list)
    faults: dict[str, int] = field(default_factory=dict)
    kills_at: dict[str, int] = field(default_factory=dict)
    again: bool = False
    digest: str = ""
    lines: Sequence[Line] = ()
    played: Played | None = None

    def plain(self) -> dict[str, Any]:
        """The same as values of JSON."""
        return {name: getattr(self, name) for name in ("failures", "faults", "kills_at", "again", "digest")}


class Trials:
    """All trials of one target.  A scenario is read, and its job imported, once: when it is checked or first tried."""

    def __init__(self, target: str, arguments: Sequence[str]) -> None:
        self.target, self.arguments = target, arguments
        self.is_job = _is_job(target)
        self._scenarios: dict[str, Scenario] = {}
        self._subjects: dict[str, Subject] = {}
        if arguments and not self.is_job:
            raise UsageMistake(f"{target} takes no arguments: a scenario says what its job is given")

    # ── what there is ──

    def files(self) -> list[str]:
        """The scenarios that the target means, by their paths in order; none for a job.  Raises ``UsageMistake``."""
        if self.is_job:
            return []
        path = Path(self.target)
        if path.is_dir():
            files = sorted(one for one in path.rglob("*") if one.is_file())
            found = [one.as_posix() for one in files if one.suffix == ".toml" or is_recording(one)]
            if not found:
                raise UsageMistake(f"there is no scenario (*.toml) and no recording in the folder {path}")
            return found
        if not path.is_file():
            raise UsageMistake(f"there is no file {path}, and a job is MODULE:FUNCTION or FILE.py:FUNCTION")
        return [path.as_posix()]

    def each(self, seed: int | None, seeds: int | None) -> Iterator[Trial]:
        """Every trial: of one seed, of seeds 1 to ``seeds``, or of as many as the files say (20 of a job)."""
        for file in self.files() or [""]:
            if file and self.is_recording(file):
                yield Trial(file, 0)
            elif seed is not None:
                yield Trial(file, seed)
            elif seeds is not None or not file:
                yield from (Trial(file, number) for number in range(1, (seeds or 20) + 1))
            else:
                own = self.scenario(file).seeds
                yield from (Trial(file, number) for number in range(own.first, own.first + own.count))

    def check(self) -> None:
        """Read and prepare everything there is, so that all that can't be simulated is told at once.

        Raises the refusal of the only one that can't be, or ``InvalidScenario`` with every mistake of several.
        """
        refusals: list[ActorflowError] = []
        for file in self.files() or [""]:
            if file and self.is_recording(file):
                continue
            try:
                self.subject(file)
            except (InvalidConfig, InvalidJob, InvalidScenario, MissingExtra) as refusal:
                refusals.append(refusal if file in str(refusal) else InvalidScenario(f"{file}: {refusal}"))
        if len(refusals) == 1:
            raise refusals[0]
        if refusals:
            raise InvalidScenario([str(refusal) for refusal in refusals])

    def is_recording(self, file: str) -> bool:
        """Whether a file is not a scenario but what a real run wrote down."""
        path = Path(file)
        return path.suffix != ".toml" and path.is_file() and is_recording(path)

    def title(self, file: str) -> str:
        """What a file is called in a table."""
        return "a recorded run" if self.is_recording(file) else self.scenario(file).title

    def scenario(self, file: str) -> Scenario:
        """Read a scenario, once.  Raises ``InvalidScenario``."""
        if file not in self._scenarios:
            self._scenarios[file] = read_scenario(Path(file))
        return self._scenarios[file]

    def subject(self, file: str = "") -> Subject:
        """What is simulated; made once.  Raises ``InvalidJob`` for what can't be simulated."""
        if file not in self._subjects:
            if file:
                self._subjects[file] = prepare(self.scenario(file))
            else:
                self._subjects[file] = Subject(lambda: build_job(self.target, self.arguments))
        return self._subjects[file]

    def replay(self, trial: Trial, *options: str) -> str:
        """The one command that shows a trial again, or does what the options say with it."""
        words = ["actorflow", "simulate", trial.file or self.target]
        words += [*([] if trial.file and self.is_recording(trial.file) else ["--seed", str(trial.seed)]), *options]
        return shlex.join([*words, "--", *self.arguments] if self.arguments else words)

    # ── one of them ──

    def make(self, trial: Trial) -> Came:
        """Make a trial.  Raises ``InvalidJob`` and ``InvalidScenario``; whatever else goes wrong is what it came to."""
        if trial.file and self.is_recording(trial.file):
            from actorflow.cli.replay import Builder
            from actorflow.simulation.replay import replay

            replayed = replay(Path(trial.file), Builder())
            wrong = [] if replayed.divergence is None else [f"it diverges at {replayed.divergence}"]
            return Came(failures=wrong, digest=replayed.journal_digest)
        subject = self.subject(trial.file)
        if trial.file:
            played = play_seed(self.scenario(trial.file), trial.seed, subject)
            came = Came(failures=list(played.failures), lines=played.lines, played=played)
            return came if played.run is None else _with(came, played.run)
        try:
            run = run_seed(subject, trial.seed)
        except SeedFailed as failure:
            return Came(failures=[str(failure)], lines=failure.lines)
        return _with(Came(lines=run.lines), run)


def _with(came: Came, run: Run) -> Came:
    """What a trial came to, with what its storm was like."""
    came.faults, came.kills_at = dict(sorted(run.faults.items())), dict(sorted(run.kills_at.items()))
    came.again, came.digest = run.again, run.digest
    return came


def _is_job(target: str) -> bool:
    """``FILE.py:FUNCTION`` and ``MODULE:FUNCTION`` are jobs, and everything that exists is what it is."""
    return ":" in target and not Path(target).exists()
