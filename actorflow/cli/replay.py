"""``actorflow simulate FILE`` for a recording: run it again, and say where it differs."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from contextlib import redirect_stdout
from pathlib import Path

from actorflow.cli.exits import Exit, UsageMistake
from actorflow.cli.targets import build_job
from actorflow.dataflow.job import Job
from actorflow.simulation.recording_file import is_recording
from actorflow.simulation.replay import Replayed, replay

__all__ = ("Builder", "is_recording", "replay_file")


class Builder:
    """Builds the job of each life as a process of its own would have: with modules of the user's that nobody used."""

    def __init__(self) -> None:
        self._before = frozenset(sys.modules)

    def __call__(self, target: str, arguments: Sequence[str], folder: str) -> Job:
        """Build it from here; ``folder`` is where it was recorded."""
        here = Path.cwd()
        for name in [name for name in sys.modules if name not in self._before]:
            file = getattr(sys.modules[name], "__file__", None)
            if file is not None and Path(file).is_relative_to(here) and not _is_installed(Path(file)):
                del sys.modules[name]
        try:
            return build_job(target, arguments)
        except UsageMistake as mistake:
            if here != Path(folder):
                mistake.add_note(f"it was recorded in {folder}: replay it from there")
            raise


def _is_installed(file: Path) -> bool:
    return not {"site-packages", "dist-packages"}.isdisjoint(file.parts)


def replay_file(path: Path, *, as_json: bool) -> int:
    """Replay a recording and print what it came to; 1 when it diverges."""
    with redirect_stdout(sys.stderr):  # the job may print
        replayed = replay(path, Builder())
    if as_json:
        print(
            json.dumps(
                {
                    "lives": replayed.lives,
                    "entries": replayed.entries,
                    "same": replayed.same,
                    "journal_digest": replayed.journal_digest,
                    "output_digest": replayed.output_digest,
                    "divergence": replayed.divergence,
                    "journal_digests": list(replayed.journal_digests),
                    "not_compared": replayed.not_compared,
                    "unknown": replayed.unknown,
                    "notes": list(replayed.notes),
                }
            ),
            flush=True,
        )
    else:
        _show(replayed)
    return Exit.DONE if replayed.same else Exit.FAILED


def _show(replayed: Replayed) -> None:
    if replayed.divergence is not None:
        print(f"it diverges at {replayed.divergence}")
    elif replayed.unknown is not None:
        print(f"the same as far as it could be compared, which is up to {replayed.unknown}")
    else:
        print("the same")
    for note in replayed.notes:
        print(f"  {note}")
    print(f"{replayed.lives} lives, {replayed.entries} entries compared, {replayed.not_compared} not")
    print(f"journal {replayed.journal_digest}")
    print(f"output  {replayed.output_digest}, {len(replayed.output)} files")
