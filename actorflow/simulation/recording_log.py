"""When does what was written down leave the process?

Entries are kept until somebody asks for them to be handed over: before something is done outside that leaves a trace,
and with each line of the journal.  Then they are one frame.  What a killed process had not handed over, it had not
acted upon.

A recording is never a reason for a job to fail: when the file can't be written any more, that is told once, and the
recording ends there.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Final

from actorflow.simulation.recording_file import RecordingFile

__all__ = ("RecordingLog",)

MOST_BYTES: Final = 256 * 1024
"""What is kept at most before it is handed over unasked."""


class RecordingLog:
    """Entries on their way into a file; ``failed`` is told why when there will be no more."""

    def __init__(self, file: RecordingFile, failed: Callable[[str], None]) -> None:
        self._file: RecordingFile | None = file
        self._failed = failed
        self._entries: list[bytes] = []
        self._bytes = 0

    def add(self, entry: bytes) -> None:
        """Take an entry."""
        self._entries.append(entry)
        self._bytes += len(entry)
        if self._bytes > MOST_BYTES:
            self.flush()

    def flush(self) -> None:
        """Hand over what was taken."""
        if not self._entries:
            return
        payload = b"".join(self._entries)
        self._entries.clear()
        self._bytes = 0
        if self._file is None:
            return
        try:
            self._file.append(payload)
        except OSError as error:
            file, self._file = self._file, None
            with contextlib.suppress(OSError):
                file.close()
            self._failed(f"{file.path}: {error.strerror or error}")

    def close(self) -> None:
        """Hand over what was taken, and let go of the file; what is added later is lost."""
        self.flush()
        file, self._file = self._file, None
        if file is not None:
            file.close()
