"""How does a recording lie in its file, and what of it can be believed?

A mark and a version, then frames: a head (length, checksum of the payload, checksum of the head itself) and a payload,
which is some entries.  A frame is written whole with one call before whatever follows from it happens outside, so after
a ``kill -9`` the file is a prefix of the run, perhaps with a torn frame at its end.  That is how a life ends that was
killed; anything that is wrong before the end is damage, and an error that names the place.

A file holds one life after the other, each begun by an entry of its own: whoever starts the same command again adds to
it.  Only its owner may read it (mode 0600), because it holds the records of the job; and only one process writes.
"""

from __future__ import annotations

import fcntl
import os
import stat
from collections.abc import Iterator
from pathlib import Path
from struct import Struct
from typing import Final
from zlib import crc32

from actorflow.errors import InvalidRecording

__all__ = ("VERSION", "RecordingFile", "frames_of", "is_recording")

VERSION: Final = 1
_MARK: Final = b"\x93actorflow-recording\r\n\x1a\n"
_VERSION: Final = Struct("<H")
_HEAD: Final = Struct("<III")
_HEAD_WITHOUT_CHECK: Final = Struct("<II")
_FIRST_FRAME: Final = len(_MARK) + _VERSION.size


def is_recording(path: Path) -> bool:
    """Whether a file begins as a recording does."""
    try:
        with path.open("rb") as file:
            return file.read(len(_MARK)) == _MARK
    except OSError:
        return False


class RecordingFile:
    """A recording that is being written.

    Raises ``InvalidRecording`` when the file is something else, belongs to another process just now, or can't be
    opened.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            self._number = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise InvalidRecording(f"{path}: it can't be opened for recording: {error.strerror}") from error
        try:
            self._begin()
        except BaseException:
            os.close(self._number)
            raise

    def _begin(self) -> None:
        found = os.fstat(self._number)
        if not stat.S_ISREG(found.st_mode):
            raise InvalidRecording(f"{self.path}: it is no plain file, so nothing is recorded into it")
        try:
            fcntl.flock(self._number, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise InvalidRecording(f"{self.path}: another process is recording into it") from error
        except OSError:
            pass  # a file system that has no locks
        size = os.fstat(self._number).st_size
        if size == 0:
            os.fchmod(self._number, 0o600)
            os.write(self._number, _MARK + _VERSION.pack(VERSION))
            return
        end = _FIRST_FRAME
        for offset, payload in frames_of(self.path):
            end = offset + _HEAD.size + len(payload)
        os.fchmod(self._number, 0o600)
        os.ftruncate(self._number, end)  # what a killed process left torn
        os.lseek(self._number, end, os.SEEK_SET)

    def append(self, payload: bytes) -> None:
        """Write one frame, whole.  Raises ``OSError``."""
        head = _HEAD_WITHOUT_CHECK.pack(len(payload), crc32(payload))
        frame = memoryview(head + crc32(head).to_bytes(4, "little") + payload)
        while frame:
            frame = frame[os.write(self._number, frame) :]

    def close(self) -> None:
        """Let go of the file."""
        os.close(self._number)


def frames_of(path: Path, *, begins: int = 0, ends: int | None = None) -> Iterator[tuple[int, bytes]]:
    """Read the frames of a recording, each with its offset, up to a torn end.

    ``begins`` and ``ends`` are offsets: those that lie between them are given.  Raises ``InvalidRecording`` for a file
    that is none, or that is damaged before its end.
    """
    try:
        with path.open("rb") as file:
            _check_mark(path, file.read(_FIRST_FRAME))
            size = os.fstat(file.fileno()).st_size
            offset = max(_FIRST_FRAME, begins)
            file.seek(offset)
            while offset < (size if ends is None else min(size, ends)):
                head = file.read(_HEAD.size)
                if len(head) < _HEAD.size:
                    return
                length, checksum, head_checksum = _HEAD.unpack(head)
                if crc32(head[:-4]) != head_checksum:
                    if not head.strip(b"\0") and not file.read().strip(b"\0"):
                        return  # the file had grown and its bytes had not arrived when the power went
                    raise _damaged(path, offset)
                payload = file.read(length)
                if len(payload) < length:
                    return
                if crc32(payload) != checksum:
                    if offset + _HEAD.size + length == size:
                        return
                    raise _damaged(path, offset)
                yield offset, payload
                offset += _HEAD.size + length
    except OSError as error:
        raise InvalidRecording(f"{path}: it can't be read: {error.strerror}") from error


def _check_mark(path: Path, begin: bytes) -> None:
    if begin[: len(_MARK)] != _MARK or len(begin) < _FIRST_FRAME:
        raise InvalidRecording(f"{path}: this is no recording of actorflow")
    (version,) = _VERSION.unpack_from(begin, len(_MARK))
    if version != VERSION:
        raise InvalidRecording(
            f"{path}: it is a recording of version {version}, and this actorflow reads version {VERSION};"
            " use the actorflow that wrote it, or a newer one"
        )


def _damaged(path: Path, offset: int) -> InvalidRecording:
    return InvalidRecording(f"{path}: damaged at byte {offset}; what follows can't be believed")
