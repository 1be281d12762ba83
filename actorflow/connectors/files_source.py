"""Lines of text files as records, from where the last checkpoint stood.

A split is a file; a position is the byte after the last whole line (in a compressed file: of its text).  *Files only
grow.* One that was begun is known by its name and by the digest of its first 4 KiB, as far as they were there when
the position was noted; if it is gone, shorter or different when the job goes on, that is an error that names it, or
with ``on_changed="skip"`` the job goes on without it and says so.  One that was read to its end is not looked at
again.

A last line without a line break counts at the end of a bounded file, and waits for its line break in a followed one.

Everything goes through ``context.world``, so storms can tear what is read here.
"""

from __future__ import annotations

import hashlib
from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Literal

from actorflow.abc.connectors import Chunk, Source, SourceContext
from actorflow.abc.world import World
from actorflow.connectors.byte_stream import ByteStream, open_stream
from actorflow.connectors.file_names import find_files
from actorflow.connectors.line_cutter import LineCutter, LineDecoder, after_lines
from actorflow.connectors.pace import Pace, check_rate
from actorflow.errors import InvalidJob, ObjectMissing, RestoreFailed
from actorflow.model.journal import FellBack

__all__ = ("FileLines", "OnChanged")

OnChanged = Literal["fail", "skip"]

HEAD_BYTES = 4096


class _Changed(Exception):
    """A file is not the one that was begun; the text says how."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadSettings:
    """How lines are read; see ``files.lines``."""

    encoding: str
    errors: str
    follow: bool
    on_changed: OnChanged
    per_second: float | None
    chunk_bytes: int
    longest_line: int
    poll_every: timedelta


class FileLines(Source[str]):
    """Text files as a source."""

    runs_in_simulation = True

    def __init__(self, names: tuple[str, ...], settings: ReadSettings, *, discover_every: timedelta) -> None:
        if not names or not all(names):
            raise InvalidJob("files.lines: a file, a folder or a pattern is missing; an empty name stands for nothing")
        if any("\0" in name for name in names):
            raise InvalidJob("files.lines: a file name can't hold a zero byte")
        if settings.on_changed not in ("fail", "skip"):
            raise InvalidJob(f"files.lines: on_changed={settings.on_changed!r}; it must be 'fail' or 'skip'")
        if settings.chunk_bytes < 1 or settings.longest_line < 1:
            raise InvalidJob("files.lines: chunk_bytes and longest_line must be at least 1")
        if settings.poll_every <= timedelta(0) or discover_every <= timedelta(0):
            raise InvalidJob("files.lines: poll_every and discover_every must be longer than nothing")
        check_rate(settings.per_second, "files.lines")
        self.names, self._settings = names, settings
        self._decoder = LineDecoder(settings.encoding, settings.errors)
        self.bounded = not settings.follow
        if settings.follow:
            self.splits_at_once = None
            self.discover_every = discover_every

    def __repr__(self) -> str:
        return f"files.lines({', '.join(self.names)})"

    async def discover(self, world: World) -> Sequence[str]:
        """Return all files there are now, in order of their names."""
        found: dict[str, None] = {}
        for name in self.names:
            found.update(dict.fromkeys(await find_files(world.disk, name)))
        return sorted(found)

    async def verify(self, world: World, splits: Sequence[str], known: Sequence[str]) -> None:
        """Raise when a file can't be opened, or when a name stands for nothing at all."""
        if known and self._settings.follow:
            return  # a file may come and go while a folder is followed; whoever reads it says so
        for split in splits:
            reader = await world.disk.open_reader(split)
            await reader.close()
        if known:
            return  # what a name stood for may have been read to its end and put away since
        for name in self.names:
            if not await find_files(world.disk, name):
                self._found_nothing(world, name)

    def _found_nothing(self, world: World, name: str) -> None:
        if not self._settings.follow:
            raise ObjectMissing(
                f"files.lines: there is no file {name!r}, no file in a folder of that name, and none that fits it as a"
                " pattern"
            )
        world.observer.announce(
            FellBack(
                subject="files.lines",
                wanted="files to follow",
                taken="waiting for the first one",
                why=f"nothing is at {name!r} yet",
            )
        )

    async def read(self, context: SourceContext[Any]) -> AsyncIterator[Chunk[str]]:
        """Read one file from its position on."""
        reading = _Reading(context, self._settings, self._decoder)
        try:
            async with aclosing(reading.chunks()) as chunks:
                async for chunk in chunks:
                    yield chunk
        except _Changed as changed:
            if self._settings.on_changed == "fail":
                raise RestoreFailed(
                    f"operator {context.operator!r}: {context.split} {changed}; files that are read may only grow."
                    "  Put it back, or go on without the rest of it with files.lines(on_changed='skip')"
                ) from changed.__cause__
            context.world.observer.announce(
                FellBack(
                    subject=f"operator {context.operator!r}",
                    wanted="the rest of a file",
                    taken="going on without it",
                    why=f"{context.split} {changed}",
                )
            )


class _Reading:
    """One file that is being read: where it stands and by what it is known."""

    def __init__(self, context: SourceContext[Any], settings: ReadSettings, decoder: LineDecoder) -> None:
        self._path, self._world, self._settings, self._decoder = context.split, context.world, settings, decoder
        position = context.resume_at or {}
        self._at: int = position.get("at", 0)
        self._ended: bool = position.get("ended", False)
        self._known: bytes = position.get("head", hashlib.sha256().digest())
        self._known_bytes: int = position.get("head_bytes", 0)
        self._head = b""
        self._position: dict[str, Any] = {}  # the part of a position that stays once 4 KiB were seen
        rate = settings.per_second
        self._pace = Pace(rate and rate / (1 if settings.follow else context.parallelism), context.world.clock)
        self._cutter = LineCutter(
            self._at, chunk_bytes=settings.chunk_bytes, longest_line=settings.longest_line, where=context.split
        )

    async def chunks(self) -> AsyncGenerator[Chunk[str], None]:
        """The lines from here to the end, or for ever."""
        if self._ended:
            if self._settings.follow:
                raise _Changed(
                    "was read to its end as a file that does not grow, and its last line had no line break; it can't be"
                    " followed from there"
                )
            return
        stream = await self._open()
        try:
            block = await self._go_to_position(stream)
            while True:
                for run in self._cutter.feed(block):
                    async for chunk in self._emit(run):
                        yield chunk
                block = await self._next_block(stream)
                if not block:
                    break
            stream.check_end()
            rest = self._cutter.rest()
            if rest:
                await self._pace.take(1)
                lines = self._decoder.lines(rest, self._at, self._path)
                self._at += len(rest)
                yield Chunk(lines, resume_at=self._resume_at(ended=True))
            await self._pace.end()
        finally:
            await stream.close()

    async def _open(self) -> ByteStream:
        follow = self._settings.follow
        while True:
            try:
                stream = await open_stream(self._world.disk, self._path, may_grow=follow)
            except ObjectMissing as error:
                raise _Changed("is gone") from error
            if stream is not None:
                return stream
            await self._wait()

    async def _go_to_position(self, stream: ByteStream) -> bytes:
        """Compare the file with the one that was begun; return the bytes at hand that follow the position."""
        head = b""
        while len(head) < self._known_bytes:
            block = await stream.read()
            if not block:
                raise _Changed(f"is shorter than it was: it ends before byte {self._known_bytes}")
            head += block
        if hashlib.sha256(head[: self._known_bytes]).digest() != self._known:
            raise _Changed("begins differently than it did")
        self._see(head)
        if len(head) >= self._at:
            return head[self._at :]
        if not await stream.skip(self._at - len(head)):
            size = await self._world.disk.size(self._path)
            raise _Changed(f"is shorter than it was: it has {size} bytes and was read to byte {self._at} of its text")
        return b""

    async def _next_block(self, stream: ByteStream) -> bytes:
        """The next bytes; empty at the end of a file that does not grow."""
        grown = False
        while True:
            before = stream.file_position
            block = await stream.read()
            if block or not self._settings.follow:
                self._see(block)
                return block
            if grown and stream.file_position == before:
                raise _Changed("was replaced by another file of its name")
            await self._wait_for_growth(stream.file_position)
            grown = True

    async def _wait_for_growth(self, file_position: int) -> None:
        size: int | None = file_position
        while size == file_position:
            await self._wait()
            size = await self._world.disk.size(self._path)
        if size is None:
            raise _Changed("is gone")
        if size < file_position:
            raise _Changed(f"is {size} bytes long, and was read to byte {file_position}")

    async def _wait(self) -> None:
        await self._world.clock.sleep(self._settings.poll_every.total_seconds() * 1_000)

    def _see(self, block: bytes) -> None:
        """Note by what the file will be known: as much of its first bytes as was seen."""
        if len(self._head) < HEAD_BYTES and block:
            self._head = (self._head + block)[:HEAD_BYTES]
            self._position = {"head": hashlib.sha256(self._head).digest(), "head_bytes": len(self._head)}

    async def _emit(self, run: bytes) -> AsyncGenerator[Chunk[str], None]:
        lines = self._decoder.lines(run, self._at, self._path)
        if self._settings.per_second is None:
            self._at += len(run)
            yield Chunk(lines, resume_at=self._resume_at())
            return
        start, sent, base = 0, 0, self._at
        while sent < len(lines):
            count = await self._pace.take(len(lines) - sent)
            start = after_lines(run, start, count)
            self._at = base + start
            yield Chunk(lines[sent : sent + count], resume_at=self._resume_at())
            sent += count

    def _resume_at(self, *, ended: bool = False) -> dict[str, Any]:
        position = {"at": self._at, **self._position}
        if ended:
            position["ended"] = True
        return position
