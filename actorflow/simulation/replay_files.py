"""What would be on the disk, had a replayed run written it?

A replay touches no file.  What the run does to files is done here instead, when the recording says that it succeeded,
so that in the end the output can be told, and compared byte by byte with what the recorded run left.

A process that is killed leaves operations of which nobody knows whether they happened.  Each is kept in doubt until a
later life looks: what it saw of the file decides.
"""

from __future__ import annotations

from hashlib import sha256
from typing import Any, Final

from actorflow.simulation.recording_turns import Operation

__all__ = ("Files", "Unknown", "digest_of_output")


class Unknown(Exception):
    """Raised when a value that was redacted can't be found anywhere."""


OUTPUT: Final = "disk"
"""The disk that connectors write to."""


class File:
    """What was written into a file, and by whom."""

    __slots__ = ("content", "disk")

    def __init__(self, disk: str) -> None:
        self.disk = disk
        self.content = bytearray()


class Files:
    """The files of a replay, over all its lives."""

    def __init__(self) -> None:
        self.contents: dict[str, File] = {}
        self._doubtful: list[Operation] = []

    def create(self, path: str, disk: str) -> None:
        """Begin a file on behalf of ``disk``: of connectors, or of the store of checkpoints."""
        self.contents[path] = File(disk)

    def write(self, path: str, data: bytes) -> None:
        """Append to it."""
        if (file := self.contents.get(path)) is not None:
            file.content += data

    def rename(self, source: str, target: str) -> None:
        """Give a file another name."""
        if (file := self.contents.pop(source, None)) is not None:
            self.contents[target] = file

    def link(self, source: str, target: str) -> None:
        """Give a file a second name."""
        if (file := self.contents.get(source)) is not None:
            self.contents[target] = file

    def remove(self, path: str) -> None:
        """Forget a file."""
        self.contents.pop(path, None)

    def doubt(self, operation: Operation) -> None:
        """Keep an operation of which a killed process did not hear whether it happened."""
        if operation.effect is not None:
            self._doubtful.append(operation)

    def seen(self, path: str, *, is_there: bool) -> None:
        """Take in that a life saw a file, or that it was not there."""
        if is_there is not (path in self.contents):
            for operation in [one for one in self._doubtful if path in one.arguments]:
                self._doubtful.remove(operation)
                assert operation.effect is not None
                operation.effect(self)

    def read(self, path: str, position: int, length: int) -> bytes:
        """Find bytes that the recording left out: in what the replay wrote, or in the file as it is now.

        Raises ``Unknown``.
        """
        try:
            if (mine := self.contents.get(path)) is not None:
                data = bytes(mine.content[position : position + length])
            else:
                with open(path, "rb") as file:  # noqa: PTH123  # a name as the recorded run had it
                    file.seek(position)
                    data = file.read(length)
        except OSError as error:
            raise Unknown(f"{path}, which the recording leaves out, can't be read: {error.strerror}") from error
        if len(data) != length:
            raise Unknown(f"{path}, which the recording leaves out, is not what it was")
        return data

    def output(self) -> dict[str, bytes]:
        """What an outsider would see of the output: files of connectors that are not hidden."""
        return {
            path: bytes(file.content)
            for path, file in sorted(self.contents.items())
            if file.disk == OUTPUT and not any(part.startswith(".") for part in path.rsplit("/", 2)[-2:])
        }


def digest_of_output(files: dict[str, bytes], given: dict[str, Any]) -> str:
    """One digest over files and over what sinks were given."""
    digest = sha256()
    for name, content in sorted(files.items()):
        digest.update(f"{name}\0{len(content)}\0".encode("utf-8", "surrogatepass"))
        digest.update(content)
    for name, one in sorted(given.items()):
        digest.update(f"{name}\0{one.hexdigest()}".encode())
    return digest.hexdigest()
