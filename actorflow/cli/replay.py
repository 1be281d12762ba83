"""``actorflow simulate FILE`` for a recording: run it again, and say where it differs."""

from __future__ import annotations

import json
import sys
from contextlib import redirect_stdout
from pathlib import Path

from actorflow.cli.exits import Exit
from actorflow.cli.targets import build_job
from actorflow.simulation.recording_file import is_recording
from actorflow.simulation.replay import Replayed, replay

__all__ = ("is_recording", "replay_file")


def replay_file(path: Path, *, as_json: bool) -> int:
    """Replay a recording and print what it came to; 1 when it diverges."""
    with redirect_stdout(sys.stderr):  # the job may print
        replayed = replay(path, build_job)
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
