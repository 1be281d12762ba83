r"""Where do lines end in a stream of bytes?

A line ends with ``\n``; one ``\r`` before that belongs to the line break.  The cutter takes blocks as they come,
gives back runs of whole lines of about ``chunk_bytes`` with the position after each, and keeps what is not a whole
line yet.  A line longer than ``longest_line`` is refused, so that a file without line breaks can't fill the memory.

Pure: it reads nothing.
"""

from __future__ import annotations

import codecs

from actorflow.errors import InvalidJob, InvalidValue

__all__ = ("LineCutter", "LineDecoder", "after_lines")

# Encodings in which no byte of another character looks like a line break, whatever is wrong with the bytes around it.
_DECODES_WHOLE = ("utf-8", "ascii", "iso8859-1", "cp1252")

_ERRORS = ("strict", "replace", "ignore", "backslashreplace")


def after_lines(data: bytes, start: int, count: int) -> int:
    """The index after ``count`` line breaks from ``start``."""
    for _ in range(count):
        start = data.index(b"\n", start) + 1
    return start


class LineCutter:
    """Cuts blocks of bytes into runs of whole lines; ``position`` is the byte after the last whole line."""

    __slots__ = ("_chunk_bytes", "_longest_line", "_rest", "_rest_bytes", "_where", "position")

    def __init__(self, position: int, *, chunk_bytes: int, longest_line: int, where: str) -> None:
        self.position = position
        self._chunk_bytes, self._longest_line, self._where = chunk_bytes, longest_line, where
        self._rest: list[bytes] = []
        self._rest_bytes = 0

    def feed(self, block: bytes) -> list[bytes]:
        """Take the next block; return runs of whole lines, line breaks included, whose lengths add up to positions."""
        cut = block.rfind(b"\n") + 1
        if not cut:
            self._keep(block)
            return []
        self._rest.append(block[:cut])
        whole = b"".join(self._rest)
        self._rest, self._rest_bytes = [], 0
        self.position += len(whole)
        self._keep(block[cut:])
        return self._runs(whole)

    def rest(self) -> bytes:
        """What is not a whole line yet; from now on it counts as taken."""
        rest = b"".join(self._rest)
        self._rest, self._rest_bytes = [], 0
        self.position += len(rest)
        return rest

    def _keep(self, piece: bytes) -> None:
        if piece:
            self._rest.append(piece)
            self._rest_bytes += len(piece)
            if self._rest_bytes > self._longest_line:
                raise InvalidValue(
                    f"{self._where}: the line that begins at byte {self.position} is longer than {self._longest_line}"
                    " bytes; is it a text file?  files.lines(longest_line=…) allows longer ones"
                )

    def _runs(self, whole: bytes) -> list[bytes]:
        runs, start, size = [], 0, self._chunk_bytes
        while len(whole) - start > size:
            end = whole.rfind(b"\n", start, start + size) + 1 or whole.index(b"\n", start + size) + 1
            runs.append(whole[start:end])
            start = end
        if start < len(whole):
            runs.append(whole[start:])
        return runs


class LineDecoder:
    """Turns runs of whole lines into text, in an encoding whose line break is one byte."""

    __slots__ = ("_encoding", "_errors", "_skips_mark", "_whole")

    def __init__(self, encoding: str, errors: str) -> None:
        if errors not in _ERRORS:
            raise InvalidJob(
                f"files.lines: errors={errors!r}; it must be one of {', '.join(_ERRORS)}"
                " (surrogateescape makes text that can't be written down again)"
            )
        try:
            name = codecs.lookup(encoding).name
        except LookupError as error:
            raise InvalidJob(f"files.lines: {error}") from error
        self._skips_mark = name == "utf-8-sig"
        self._encoding, self._errors = "utf-8" if self._skips_mark else name, errors
        self._whole = self._encoding in _DECODES_WHOLE
        if _line_break(self._encoding) != b"\n":
            raise InvalidJob(
                f"files.lines: in {encoding} a line break is not the one byte 0x0A, so lines can't be found; convert"
                " the file to utf-8"
            )

    def lines(self, run: bytes, position: int, where: str) -> list[str]:
        """The lines of a run that begins at ``position``, without their line breaks."""
        if position == 0 and self._skips_mark and run.startswith(codecs.BOM_UTF8):
            run, position = run[3:], 3
        if self._whole:
            lines = self._decode(run, position, where).split("\n")
        else:
            lines = []
            for piece in run.split(b"\n"):
                lines.append(self._decode(piece, position, where))
                position += len(piece) + 1
        if b"\r\n" in run:
            last = lines.pop()  # no line break follows it
            lines = [line.removesuffix("\r") for line in lines]
            lines.append(last)
        if not lines[-1]:
            lines.pop()
        return lines

    def _decode(self, data: bytes, position: int, where: str) -> str:
        try:
            return data.decode(self._encoding, self._errors)
        except UnicodeDecodeError as error:
            raise InvalidValue(
                f"{where}: byte {position + error.start} is not {self._encoding} text ({error.reason});"
                " files.lines takes encoding=…, and errors='replace' to go on with a mark in its place"
            ) from error


def _line_break(encoding: str) -> bytes | None:
    try:
        return "\n".encode(encoding)
    except (LookupError, UnicodeError, TypeError):  # not an encoding of text
        return None
