"""What does the demo count, and how often was each line really read?

The text is on every machine: the sources of the standard library of the running Python, the same files in the same
order each time this is asked.  The job counts its words, one row (word, n) for each word that is read.

So that the demo can say how many records were replayed, the first function of the job keeps a *diary*: a file per
process, and in it the moment of each line that passed, eight bytes.  It is a side effect on purpose.  What is written
there survives a SIGKILL and is never rolled back, so all diaries together tell how many lines were read in all lives,
and each one when its life got to its first record.
"""

from __future__ import annotations

import os
import re
import sysconfig
from collections.abc import Callable
from pathlib import Path
from struct import Struct
from time import monotonic_ns

from actorflow.connectors import files
from actorflow.dataflow.job import Job

__all__ = ("TEXT_BYTES", "demo_words", "library_files", "read_diary", "words_of")

TEXT_BYTES = 3_500_000
"""How much text is chosen: about 100,000 lines, on every version of Python."""

_MOMENT = Struct("=q")

_WORD = re.compile(r"[^\W\d_]+")


def demo_words(output: str, diary: str, per_second: float) -> Job:
    """Count the words of the standard library's sources; what `actorflow demo` kills and starts again.

    output is the folder for the rows, diary one for the moments of the lines that were read, and per_second how many
    lines are read in a second.
    """
    job = Job("demo")
    text = files.lines(library_files(), errors="replace", per_second=per_second)
    (
        job.read(text, name="lines")
        .map(_keep_diary(Path(diary)))
        .flat_map(words_of)
        .key_by(str.lower)
        .count(name="count")
        .write(files.write(output, format=_row), name="rows")
    )
    return job


def library_files() -> list[str]:
    """The text: top-level modules of the standard library, in order of their names, until there is enough."""
    chosen: list[str] = []
    size = 0
    for path in sorted(Path(sysconfig.get_path("stdlib")).glob("*.py")):
        if size >= TEXT_BYTES:
            break
        if path.is_file() and os.access(path, os.R_OK):
            chosen.append(str(path))
            size += path.stat().st_size
    return chosen


def read_diary(diary: Path, process: int) -> list[int]:
    """The moments (of ``monotonic_ns``, which all processes share) at which a process read its lines, in order."""
    try:
        data = (diary / str(process)).read_bytes()
    except FileNotFoundError:  # it read none
        return []
    whole = len(data) // _MOMENT.size * _MOMENT.size
    return [moment for (moment,) in _MOMENT.iter_unpack(data[:whole])]


def _keep_diary(diary: Path) -> Callable[[str], str]:
    opened: int | None = None

    def note(line: str) -> str:
        nonlocal opened
        if opened is None:
            opened = os.open(diary / str(os.getpid()), os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        os.write(opened, _MOMENT.pack(monotonic_ns()))
        return line

    return note


def words_of(line: str) -> list[str]:
    """The runs of letters in a line."""
    return _WORD.findall(line)


def _row(counted: tuple[str, int]) -> str:
    word, count = counted
    return f"{word}\t{count}"
