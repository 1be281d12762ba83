"""Text files: ``lines`` reads them and can go on where a checkpoint stood, ``write`` writes each row exactly once.

    job.read(files.lines("logs/*.txt.gz"), name="lines")
    ….write(files.write("out"), name="rows")

``committed`` reads, outside of a job, what a sink has committed.  How it is done stands in ``files_source.py`` and
``files_sink.py``.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from datetime import timedelta
from pathlib import Path

from actorflow.connectors.files_sink import FileSink
from actorflow.connectors.files_source import FileLines, OnChanged, ReadSettings
from actorflow.connectors.rows import Format

__all__ = ("FileLines", "FileSink", "committed", "lines", "write")

PathName = str | os.PathLike[str]


def lines(
    path: PathName | Iterable[PathName],
    *,
    encoding: str = "utf-8",
    errors: str = "strict",
    follow: bool = False,
    on_changed: OnChanged = "fail",
    per_second: float | None = None,
    chunk_bytes: int = 20_000,
    longest_line: int = 64 * 1024 * 1024,
    poll_every: timedelta = timedelta(milliseconds=200),
    discover_every: timedelta = timedelta(seconds=1),
) -> FileLines:
    r"""Read the lines of a file, of the files in a folder, of those that fit a pattern, or of a list of such names.

    Files are read in order of their absolute names, several subtasks share them, and compressed ones (gzip) are
    recognised.  Line breaks (``\n`` and ``\r\n``) are not part of a line.

    ``follow`` waits for more, and for more files (``discover_every``).  ``on_changed="skip"`` goes on without a file
    that is gone or different when the job goes on, instead of failing.  ``per_second`` slows reading down to that
    many lines a second, shared by all subtasks (for each file, where files are followed).  ``encoding`` must be one
    in which a line break is one byte; ``errors`` is ``strict``, ``replace``, ``ignore`` or ``backslashreplace``.
    """
    names = [path] if isinstance(path, (str, os.PathLike)) else list(path)
    settings = ReadSettings(
        encoding=encoding,
        errors=errors,
        follow=follow,
        on_changed=on_changed,
        per_second=per_second,
        chunk_bytes=chunk_bytes,
        longest_line=longest_line,
        poll_every=poll_every,
    )
    return FileLines(tuple(os.fspath(name) for name in names), settings, discover_every=discover_every)


def write(folder: PathName, *, format: Format = None, suffix: str | None = None) -> FileSink:  # noqa: A002
    """Write one line per record into files of a folder that belongs to this sink alone, exactly once.

    A ``str`` is written as it is and anything else as JSON; ``format="json"`` writes everything as JSON, ``"text"``
    takes nothing but ``str``, and a function returns the line.  Files are called
    ``part-<subtask>-<checkpoint>.<suffix>`` and appear when their checkpoint is complete; without checkpoints that is
    at the end.  Ignore names that begin with a dot.
    """
    return FileSink(os.fspath(folder), format=format, suffix=suffix or ("jsonl" if format == "json" else "txt"))


def committed(folder: PathName) -> list[str]:
    """The lines that a sink has committed to its folder, in order of the files' names; for use outside of a job."""
    found: list[str] = []
    for path in sorted(Path(folder).glob("part-*")):
        found += path.read_bytes().decode().split("\n")[:-1]
    return found
