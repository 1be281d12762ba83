"""What stands around the picture of a trial, and in which file is it kept?

``simulation/picture.py`` draws; this module knows what a trial was about: the title and the story of its scenario, what
was done from outside, and what must be true, each with its verdict.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from actorflow.cli.exits import UsageMistake
from actorflow.cli.trials import Came, Trial, Trials
from actorflow.config import milliseconds, parse_duration
from actorflow.simulation.levels import Levels
from actorflow.simulation.picture import Caption, Note, Verdict, page, svg
from actorflow.simulation.play import Played
from actorflow.simulation.runs import StepRecord
from actorflow.simulation.scenario import Expectation
from actorflow.simulation.scenario_subjects import write_expectation

__all__ = ("check_picture", "draw", "microseconds")

KINDS = (".svg", ".html")

_FAILED = re.compile(r"\[\[expect\]\] (\d+): (.*)", re.DOTALL)


def check_picture(path: Path) -> None:
    """Refuse a file that could not be written, before anything is run.  Raises ``UsageMistake``."""
    if path.suffix not in KINDS:
        raise UsageMistake(f"--picture {path}: a picture is a file that ends in {' or '.join(KINDS)}")
    if not path.absolute().parent.is_dir():
        raise UsageMistake(f"--picture {path}: there is no folder {path.parent}")


def microseconds(option: str, said: str | None) -> int | None:
    """A virtual time as a command line says it.  Raises ``UsageMistake``."""
    if said is None:
        return None
    try:
        return milliseconds(parse_duration(said)) * 1_000
    except ValueError as error:
        raise UsageMistake(f"{option} {said}: {error}") from error


def draw(
    path: Path, trials: Trials, trial: Trial, came: Came, levels: Levels, since_us: int | None, until_us: int | None
) -> None:
    """Draw a trial that was watched.  Raises ``UsageMistake`` when there is nothing to see, or nowhere to keep it."""
    caption = _caption(trials, trial, came)
    times = levels.times_us
    if not any((since_us or 0) <= at and (until_us is None or at <= until_us) for at in times):
        last = f", which ends at {times[-1] // 1_000} ms" if times else ""
        raise UsageMistake(f"nothing happens between --from and --until in this run{last}")
    drawn = svg(caption, levels.lines, levels, since_us=since_us, until_us=until_us)
    try:
        path.write_text(drawn if path.suffix == ".svg" else page(caption.title, drawn, levels.lines), encoding="utf-8")
    except OSError as error:
        raise UsageMistake(f"--picture {path}: {error}") from error


def _caption(trials: Trials, trial: Trial, came: Came) -> Caption:
    if came.played is None:
        first = came.failures[0] if came.failures else ""
        return Caption(
            title=f"{trials.target} in a storm",
            story="A seed draws knobs and weather.  Output and final state must be those of the calm run.",
            source=f"seed {trial.seed}",
            verdicts=[Verdict(first or "the storm equals the calm run", not first)],
        )
    scenario = came.played.scenario
    return Caption(
        title=scenario.title,
        story=scenario.story,
        source=f"{trial.file} · {scenario.job} · seed {trial.seed}",
        notes=_notes(() if came.played.run is None else came.played.run.performed),
        verdicts=_verdicts(came.played),
    )


def _notes(steps: Sequence[StepRecord]) -> list[Note]:
    return [Note(at_ms=step.asked_at_ms, text=step.act) for step in steps]


def _verdicts(played: Played) -> list[Verdict]:
    """Each expectation in words, and whatever else is wrong."""
    wrong: dict[int, list[str]] = {}
    others: list[str] = []
    for sentence in played.failures:
        if (found := _FAILED.fullmatch(sentence)) is not None:
            wrong.setdefault(int(found[1]), []).append(found[2])
        else:
            others.append(sentence)
    verdicts = [Verdict(sentence.partition("\n")[0], holds=False) for sentence in others]
    for number, expectation in enumerate(played.scenario.expectations, 1):
        said = [_words(expectation), *wrong.get(number, [])]
        verdicts.append(Verdict(": ".join(said), None if played.run is None else len(said) == 1))
    return verdicts


def _words(expectation: Expectation) -> str:
    return _sentence(write_expectation(expectation))


def _sentence(said: Mapping[str, Any]) -> str:
    """The words of a table, in their order; what an entry of the journal must say stands in brackets behind it."""
    parts: list[str] = []
    for name, value in said.items():
        if name == "journal":
            parts.append(str(value))
        elif name == "where":
            parts[-1] += f" ({_plain(value)})"
        elif name in ("before", "after") and isinstance(value, Mapping):
            fields = _plain({field: one for field, one in value.items() if field != "journal"})
            parts.append(f"{name} {value['journal']}" + (f" ({fields})" if fields else ""))
        else:
            parts.append(f"{name.replace('_', ' ')} {_plain(value)}")
    return ", ".join(parts)


def _plain(value: Any) -> str:
    """A value of a scenario in words."""
    match value:
        case Mapping():
            return ", ".join(f"{name.replace('_', ' ')} {_plain(one)}" for name, one in value.items())
        case list() | tuple():
            few = [_plain(one) for one in value[:6]]
            return ", ".join([*few, *(["…"] if len(value) > 6 else [])]) or "nothing"
        case _:
            return str(value)
