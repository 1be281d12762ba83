"""``actorflow simulate``: scenarios, or a job under seeded storms, on virtual time.

``trials.py`` says what is to be simulated, ``children.py`` shares it over processes, this module decides between the
ways to ask and prints what they came to: of many trials a table and each failure with the command that replays it, of
one the journal as a timeline too.
"""

from __future__ import annotations

import json
import shlex
import shutil
import sys
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import redirect_stdout
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

from actorflow.cli.children import cores, serve, share
from actorflow.cli.exits import Exit, UsageMistake
from actorflow.cli.trials import Came, Trial, Trials
from actorflow.simulation.digest import digest_of_digests
from actorflow.simulation.levels import Levels, watching
from actorflow.simulation.running import many
from actorflow.simulation.swarm import draw
from actorflow.simulation.timeline import WIDTH, timeline

if TYPE_CHECKING:
    from actorflow.cli.shrinking import Shrunken

__all__ = ("simulate_target",)

A_PROCESS_PAYS_FROM = 5
"""So many trials are worth a process of their own."""


Draw = Callable[[Trial, Came, Levels], None]
"""Draws a trial that was watched."""


def simulate_target(
    target: str,
    arguments: Sequence[str] = (),
    *,
    seed: int | None = None,
    seeds: int | None = None,
    jobs: int | None = None,
    as_json: bool = False,
    picture: Path | None = None,
    since: str | None = None,
    until: str | None = None,
    shrink: bool = False,
    keep: Path | None = None,
    serving: bool = False,
) -> int:
    """Simulate a target and print what it came to."""
    out = sys.stdout
    if seed is not None and seeds is not None:
        raise UsageMistake("--seed runs one seed and --seeds many: say one of them")
    if keep is not None and not shrink:
        raise UsageMistake("--save says where --shrink keeps what is left: add --shrink")
    trials = Trials(target, arguments)
    if trials.is_recording(target):
        if seed is not None or seeds is not None or shrink:
            raise UsageMistake(f"{target} is a recorded run: it is replayed as it was, without seeds")
        if picture is not None or since is not None or until is not None:
            raise UsageMistake("--picture draws what the simulator has seen, and not a recorded run")
        from actorflow.cli.replay import replay_file

        return replay_file(Path(target), as_json=as_json)
    draw_it = _drawer(trials, picture, since, until)
    shrunk: Shrunken | None = None
    with redirect_stdout(sys.stderr), many():  # jobs may print
        if serving:
            return serve(lambda piece: trials.make(Trial(*piece)).plain(), sys.stdin, out)
        trials.check()  # what can't be simulated is told once, not per seed, and before anything runs
        asked = list(trials.each(seed, seeds))
        if draw_it is not None:
            asked = [_the_one(trials, asked, alone=seed is not None)]
        if len(asked) == 1 and (seed is not None or draw_it is not None):
            came = _alone(trials, asked[0], None if as_json else out, draw_it)
        else:
            came = _make(trials, asked, _processes(jobs, len(asked)))
        failed = [trial for trial in asked if came[trial].failures]
        if failed and shrink and not trials.is_recording(failed[0].file):
            from actorflow.cli.shrinking import shrink_trial

            shrunk = shrink_trial(trials, failed[0], keep)
    if as_json:
        saved = {} if shrunk is None else {"saved": shrunk.path.as_posix()}
        print(json.dumps(_result(trials, came) | saved), flush=True)
    else:
        if trials.is_job:
            _print_job(came)
        else:
            _print_table(trials, came)
        _print_failures(trials, failed, came)
        if shrunk is not None:
            print(f"seed {failed[0].seed}, made small in {shrunk.tried} tries: {shrunk.failure}")
            words = ["actorflow", "simulate", shrunk.path.as_posix(), "--seed", str(failed[0].seed)]
            print(f"  replay it with: {shlex.join(words)}")
        elif failed and not trials.is_recording(failed[0].file):
            print(f"  make it small with: {trials.replay(failed[0], '--shrink')}")
    return Exit.FAILED if failed else Exit.DONE


def _the_one(trials: Trials, asked: Sequence[Trial], *, alone: bool) -> Trial:
    """The trial to be drawn: a file's first seed unless one is named.  Raises ``UsageMistake``."""
    if len({trial.file for trial in asked}) > 1:
        raise UsageMistake("--picture draws one run: name one file")
    if trials.is_recording(asked[0].file):
        raise UsageMistake("--picture draws what the simulator has seen, and not a recording")
    if trials.is_job and not alone:
        raise UsageMistake("--picture draws one run: add --seed N")
    return asked[0]


# ── making ───────────────────────────────────────────────────────────────────────────────────


def _processes(jobs: int | None, trials: int) -> int:
    if jobs is None:
        jobs = min(cores(), max(1, trials // A_PROCESS_PAYS_FROM))
    return min(jobs, trials)


def _make(trials: Trials, asked: Sequence[Trial], processes: int) -> dict[Trial, Came]:
    """Make all trials; what they came to, in the order in which they were asked for."""
    came: dict[Trial, Came] = {}
    failures = 0

    def tell(trial: Trial, one: Came) -> None:
        nonlocal failures
        one.played = None  # all that many runs saw would fill the memory
        came[trial] = one
        failures += bool(one.failures)
        if sys.stderr.isatty():
            print(f"\r{len(came)} of {len(asked)} seeds, {failures} failed", end="", file=sys.stderr, flush=True)

    def answered(place: int, answer: dict[str, Any] | str) -> None:
        tell(asked[place], Came(failures=[answer]) if isinstance(answer, str) else Came(**answer))

    try:
        if processes == 1:
            for trial in asked:
                tell(trial, Came(**trials.make(trial).plain()))  # what it was, and not all that it did
        else:
            share(asked, [trials.target, "--", *trials.arguments], processes, answered)
    finally:
        if came and sys.stderr.isatty():
            print(file=sys.stderr)
    return {trial: came[trial] for trial in asked}


# ── one seed ─────────────────────────────────────────────────────────────────────────────────


def _alone(trials: Trials, trial: Trial, out: TextIO | None, draw_it: Draw | None) -> dict[Trial, Came]:
    """Make one trial, print its journal, and have it drawn."""
    if trials.is_job:
        print(f"seed {trial.seed} drew {draw(trial.seed, trials.subject().shape)}", file=sys.stderr)
    if draw_it is None:
        came = trials.make(trial)
    else:
        with watching() as watched:
            came = trials.make(trial)
        if watched:  # else it failed before there was anything to see
            draw_it(trial, came, watched[-1])
    if out is not None:
        width = shutil.get_terminal_size((WIDTH, 0)).columns if out.isatty() else WIDTH
        for text in timeline(came.lines, width):
            print(text, file=out)
    return {trial: came}


def _drawer(trials: Trials, picture: Path | None, since: str | None, until: str | None) -> Draw | None:
    """What draws a trial, if that is asked for."""
    if picture is None and since is None and until is None:
        return None
    from actorflow.cli import drawing

    since_us, until_us = drawing.microseconds("--from", since), drawing.microseconds("--until", until)
    if picture is None:
        raise UsageMistake("--from and --until say what a picture shows: add --picture FILE.svg")
    drawing.check_picture(picture)

    def draw_it(trial: Trial, came: Came, levels: Levels) -> None:
        drawing.draw(picture, trials, trial, came, levels, since_us, until_us)

    return draw_it


# ── telling ──────────────────────────────────────────────────────────────────────────────────


def _sum(came: dict[Trial, Came], of: str) -> dict[str, int]:
    found: Counter[str] = Counter()
    for one in came.values():
        found.update(getattr(one, of))
    return dict(sorted(found.items()))


def _summary(came: dict[Trial, Came]) -> dict[str, Any]:
    return {
        "seeds": len(came),
        "faults": _sum(came, "faults"),
        "failures": sum(1 for one in came.values() if one.failures),
        "digest": digest_of_digests(one.digest for one in came.values() if one.digest),
    }


def _by_file(came: dict[Trial, Came]) -> dict[str, dict[Trial, Came]]:
    found: dict[str, dict[Trial, Came]] = {}
    for trial, one in came.items():
        found.setdefault(trial.file, {})[trial] = one
    return found


def _result(trials: Trials, came: dict[Trial, Came]) -> dict[str, Any]:
    """What ``--json`` prints."""
    whole = _summary(came)
    if trials.is_job:
        return {
            "seeds": whole["seeds"],
            "faults": whole["faults"],
            "kills_at": _sum(came, "kills_at"),
            "failures": whole["failures"],
            "digest": whole["digest"],
        }
    scenarios = [{"file": file, "title": trials.title(file), **_summary(its)} for file, its in _by_file(came).items()]
    return {"scenarios": scenarios, "failures": sum(one["failures"] for one in scenarios)}


def _print_job(came: dict[Trial, Came]) -> None:
    whole = _summary(came)
    print(f"{whole['seeds']} seeds, {whole['failures']} failures, digest {whole['digest']}")
    print(f"faults {whole['faults']}")
    print(f"kills at {_sum(came, 'kills_at')}")
    print(f"seeds that killed in two lives, one after the other: {sum(one.again for one in came.values())}")


def _print_table(trials: Trials, came: dict[Trial, Came]) -> None:
    files = _by_file(came)
    room = max(len("file"), *(len(file) for file in files))
    titles = {file: trials.title(file) for file in files}
    wide = min(60, max(len("title"), *(len(title) for title in titles.values())))
    print(f"{'file':<{room}}  {'title':<{wide}}  seeds  faults")
    for file, its in files.items():
        told = _summary(its)
        title = titles[file] if len(titles[file]) <= wide else f"{titles[file][: wide - 1]}…"
        verdict = f"{told['failures']} FAILED" if told["failures"] else "ok"
        print(f"{file:<{room}}  {title:<{wide}}  {told['seeds']:>5}  {sum(told['faults'].values()):>6}  {verdict}")
    failures = sum(1 for one in came.values() if one.failures)
    print(f"{_counted(len(files), 'scenario')}, {_counted(len(came), 'seed')}, {_counted(failures, 'failure')}")


def _counted(count: int, what: str) -> str:
    return f"{count} {what}" if count == 1 else f"{count} {what}s"


def _print_failures(trials: Trials, failed: Sequence[Trial], came: dict[Trial, Came]) -> None:
    """Print what is wrong; seeds of a file that failed in the same words are told together."""
    alike: dict[tuple[str, tuple[str, ...]], list[Trial]] = {}
    for trial in failed:
        alike.setdefault((trial.file, tuple(came[trial].failures)), []).append(trial)
    for (file, sentences), those in alike.items():
        seeds = ", ".join(str(trial.seed) for trial in those)
        print(f"{file or trials.target}, {'seed' if len(those) == 1 else 'seeds'} {seeds}:")
        for sentence in sentences:
            print(f"  {sentence}")
        print(f"  replay it with: {trials.replay(those[0])}")
