"""What did a recorded life do next, and how is that said to a person?

A script is the entries of one life, in order, with one to look ahead at.  Lines that code outside announced are of the
journal but not of the run: they are taken in when the script comes past them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields
from hashlib import blake2b
from pathlib import Path
from typing import Any

from actorflow.errors import InvalidRecording
from actorflow.model import journal
from actorflow.model.journal import Line, lasting_fields
from actorflow.model.unpacking import load
from actorflow.simulation.digest import canonical
from actorflow.simulation.recording_entries import Entry, Kind, Status, entries_of
from actorflow.simulation.recording_file import frames_of

__all__ = ("RecordedLife", "Script", "lives_of", "tell", "tell_line")


@dataclass(slots=True)
class RecordedLife:
    """One life of a recording: its header, and where in the file it begins and ends."""

    path: Path
    number: int
    header: dict[str, Any]
    begins: int
    ends: int

    def entries(self) -> Iterator[Entry]:
        """The entries after the header."""
        for offset, payload in frames_of(self.path, begins=self.begins, ends=self.ends):
            try:
                yield from (entry for entry in entries_of(payload) if entry.kind is not Kind.LIFE)
            except Exception as error:
                raise InvalidRecording(
                    f"{self.path}: the frame at byte {offset} holds no entries: {type(error).__name__}: {error}"
                ) from error


def lives_of(path: Path) -> list[RecordedLife]:
    """Read a recording.  Raises ``InvalidRecording``."""
    lives: list[RecordedLife] = []
    for offset, payload in frames_of(path):
        if payload[:1] == bytes([Kind.LIFE]):
            header = next(entries_of(payload)).value
            lives.append(RecordedLife(path, len(lives) + 1, header, offset, offset))
        if not lives:
            raise InvalidRecording(f"{path}: the frame at byte {offset} belongs to no life")
        lives[-1].ends = offset + 1
    return lives


class Script:
    """The entries of one life, one after the other."""

    def __init__(self, life: RecordedLife) -> None:
        self.process: str = life.header["process"]
        self.number = life.number
        self.taken = 0
        self.lines: list[Line] = []
        self.operations: dict[int, object] = {}
        self.given: dict[str, Any] = {}
        self.raised: dict[tuple[int, int], str] = {}
        for entry in life.entries():
            if entry.kind is Kind.RAISED:
                writer, batch, cause = entry.value
                self.raised[writer, batch] = cause
        self._entries = (entry for entry in life.entries() if entry.kind is not Kind.RAISED)
        self._next: list[Entry] = []

    def peek(self) -> Entry | None:
        """The next entry, or ``None`` at the end."""
        while not self._next:
            entry = next(self._entries, None)
            if entry is None:
                return None
            if entry.kind is Kind.ASIDE:
                self.taken += 1
                self._take_in(entry)
                continue
            self._next.append(entry)
        return self._next[0]

    def take(self) -> None:
        """Go on to the one after it."""
        self._next.pop()
        self.taken += 1

    def put_back(self, entry: Entry) -> None:
        """Come back to an entry that was taken."""
        self._next.append(entry)
        self.taken -= 1

    def rest(self) -> int:
        """How many entries were not taken; to be asked at the end."""
        return len(self._next) + sum(1 for _ in self._entries)

    def given_to(self, name: str) -> Any:
        """A function that takes records in the place of a sink's, and remembers their digest."""
        digest = self.given.setdefault(name, blake2b(digest_size=16))
        return lambda record: digest.update(canonical(record))

    def differs(self, what: str) -> str:
        """Say that the replay does something else than the next entry."""
        entry = self.peek()
        recorded = "nothing more" if entry is None else self._told(entry)
        return self.place(f"recorded: {recorded}; the replay: {what}")

    def place(self, what: str) -> str:
        """Say something of the next entry."""
        return f"life {self.number}, entry {self.taken + 1}: {what}"

    def _told(self, entry: Entry) -> str:
        if entry.kind is Kind.ANSWER:
            asked = self.operations.get(entry.number, f"operation {entry.number}")
            came = {Status.ERROR: "raised", Status.CANCELLED: "was cancelled"}.get(entry.status, "gave its result")
            return f"{asked} {came}, after {entry.position} turns"
        return tell(entry)

    def _take_in(self, entry: Entry) -> None:
        """Take in a line that code outside announced; one of an entry that this version does not know is left out."""
        at_ms, name, lasting, volatile = entry.value
        cls, plain = _entry_class(name), load(lasting)
        if cls is not None and len(plain) == len(_lasting_names(cls)):
            values = {**volatile, **dict(zip(_lasting_names(cls), plain, strict=True))}
            self.lines.append(Line(len(self.lines) + 1, at_ms, self.process, cls(**values)))


def tell(entry: Entry) -> str:
    """An entry in words."""
    match entry.kind:
        case Kind.NOW_MS | Kind.NOW_US | Kind.WALL_MS | Kind.LOOP_TIME:
            return f"reads the clock ({entry.kind.name.lower()})"
        case Kind.DRAW:
            return "draws a number"
        case Kind.SLICE:
            return f"lets the others have a turn, after {entry.value} batches more"
        case Kind.TIMER:
            return f"timer {entry.number} is due, after {entry.position} turns"
        case Kind.SIGNAL:
            return f"is asked to stop by a signal, after {entry.position} turns"
        case Kind.WORK:
            return "gives work to a thread"
        case Kind.WORK_DONE:
            return f"work {entry.number} in a thread is done, after {entry.position} turns"
        case Kind.OPERATION:
            name, *arguments = entry.value
            return f"{name}({', '.join(map(_shown, arguments))})"
        case Kind.SAID:
            return "an answer that was there at once"
        case Kind.LINE | Kind.ASIDE:
            _, name, lasting, _ = entry.value
            return f"journal: {_fields(name, load(lasting))}"
        case Kind.END:
            ending, error, _ = entry.value
            return f"the end of this life ({ending}{f' {error}' if error else ''})"
        case _:
            return entry.kind.name.lower()


def tell_line(entry: journal.Entry) -> str:
    """A line of the journal in the same words."""
    return f"journal: {_fields(type(entry).__name__, [value for _, value in lasting_fields(entry)])}"


def _fields(name: str, values: list[Any]) -> str:
    cls = _entry_class(name)
    names = [] if cls is None else _lasting_names(cls)
    if len(names) != len(values):
        return f"{name}({', '.join(map(_shown, values))})"
    return f"{name}({', '.join(f'{one}={_shown(value)}' for one, value in zip(names, values, strict=True))})"


def _entry_class(name: str) -> type[journal.Entry] | None:
    cls = getattr(journal, name, None)
    return cls if isinstance(cls, type) and issubclass(cls, journal.Entry) else None


def _lasting_names(cls: type[journal.Entry]) -> list[str]:
    return [one.name for one in fields(cls) if not one.metadata.get("volatile")]


def _shown(value: Any) -> str:
    if isinstance(value, bytes):
        return value.hex()
    return repr(str(value)) if isinstance(value, str) else repr(value)
