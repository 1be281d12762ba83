"""The command line within this process, in a folder with a module of jobs and a text."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from actorflow.cli.app import run_app

JOBS = '''
import shutil
from functools import partial
from pathlib import Path

import actorflow as af
from actorflow.connectors import files


def count(path: Path, *, output: str = "counts", times: int = 1, per_second: float = 0.0, loud: bool = False) -> af.Job:
    """Count words, so many times.

    path is a text.
    """
    job = af.Job("count")
    lines = files.lines(path, per_second=per_second or None)
    counted = job.read(lines, name="lines").flat_map(lambda line: line.split() * times).key_by(str.lower)
    counted.count(name="count").write(files.write(output, format=row), name="rows")
    return job


def row(counted):
    return " ".join(map(str, counted))


def settled(path: str) -> af.Job:
    job = af.Job("settled", settings={"checkpoints.every": "1s"})
    job.read(files.lines(path), name="lines").write(files.write("lines"), name="rows")
    return job


def failing(path: str) -> af.Job:
    job = af.Job("failing")
    job.read(files.lines(path), name="lines").map(refuse, name="refuse").write(files.write("lines"), name="rows")
    return job


def refuse(line):
    raise ValueError("not that")


def unnamed(path: str) -> af.Job:
    job = af.Job("unnamed")
    job.read(files.lines(path), name="lines").key_by(len).count().write(files.write("lines"), name="rows")
    return job


def kept(path: str, *, output: str = "counts", snapshot: str = "snapshot") -> af.Job:
    """Count lines, and put a copy of a checkpoint of this job aside."""
    job = af.Job("kept")
    lines = job.read(files.lines(path, per_second=200), name="lines").map(partial(keep, Path(snapshot)), name="keep")
    lines.key_by(lambda line: "line").count(name="count").write(files.write(output, format=row), name="rows")
    return job


def keep(snapshot, line):
    for part in Path("counts").glob("part-*"):  # of what was committed, so it holds some lines
        checkpoint = Path(".actorflow/kept") / f"chk-{int(part.stem.split('-')[2])}"
        if not snapshot.exists() and (checkpoint / "_metadata").exists():
            shutil.copytree(checkpoint, snapshot)
    return line


def overtaken(path: str) -> af.Job:
    """While it reads its third line, somebody else claims its home."""
    job = af.Job("overtaken")
    lines = job.read(files.lines(path, per_second=50), name="lines").map(overtake, name="overtake")
    lines.write(files.write("lines"), name="rows")
    return job


def overtake(line):
    if line == "three":
        owners = Path(".actorflow/overtaken/owner")
        shutil.copy(owners / "0000000001", owners / "0000000002")
    return line
'''


@dataclass(frozen=True)
class Said:
    """What a command line came to."""

    code: int
    out: str
    err: str

    @property
    def last(self) -> Any:
        """The last line of stdout, which is a JSON object."""
        return json.loads(self.out.splitlines()[-1])


class Shell:
    """A folder with ``jobs.py`` and a text in it, and the command line."""

    def __init__(self, folder: Path, captured: pytest.CaptureFixture[str]) -> None:
        self.folder, self._captured = folder, captured
        (folder / "jobs.py").write_text(JOBS)
        self.write("text", "one two", "two", "three")

    def __call__(self, *arguments: str) -> Said:
        self._captured.readouterr()
        code = run_app(list(arguments))
        said = self._captured.readouterr()
        return Said(code, said.out, said.err)

    def write(self, name: str, *lines: str) -> None:
        """Write a text."""
        (self.folder / name).write_text("".join(f"{line}\n" for line in lines))

    def rows(self, folder: str = "counts") -> list[str]:
        """The committed rows, sorted."""
        return sorted(row for part in (self.folder / folder).glob("part-*") for row in part.read_text().splitlines())
