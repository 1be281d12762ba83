"""How is what came from outside written down by value, and read back?

A *form* says it for one operation: bytes as they are, plain values, a chunk of records, what an async call came to.
Records go through the job's codec, so whatever may stand in a checkpoint may stand in a recording.

An exception is written as its class's name, its text, its notes and what it was built on.  Reading never imports: one
of Python's or ours comes back as itself, any other as a stand-in of the same name and the same kind.
"""

from __future__ import annotations

import builtins
from collections.abc import Callable
from dataclasses import dataclass, fields
from hashlib import sha256
from typing import Any, Final

import actorflow.errors
from actorflow.abc.connectors import Chunk
from actorflow.dataflow.lane import Invocation
from actorflow.model.codec import Codec
from actorflow.model.journal import Entry, Line, lasting_fields
from actorflow.model.packing import dump
from actorflow.model.unpacking import load
from actorflow.simulation.digest import canonical
from actorflow.simulation.recording_entries import Status, dump_told

__all__ = (
    "NOTHING",
    "PLAIN",
    "RAW",
    "REDACTED",
    "Form",
    "JournalDigest",
    "answer_of",
    "chunk_form",
    "error_of",
    "line_of",
    "outcome_form",
)

REDACTED: Final = "(redacted)"
"""What stands in the place of a text that might show a record."""


@dataclass(frozen=True, slots=True)
class Form:
    """How the result of an operation is written (``give``) and read back (``take``).

    ``give`` raises ``InvalidValue`` for what can't be written.  ``holds_records``: whether redaction leaves it out.
    """

    give: Callable[[Any], bytes]
    take: Callable[[bytes], Any]
    holds_records: bool = False


NOTHING: Final = Form(lambda _: b"", lambda _: None)
PLAIN: Final = Form(dump, load)
RAW: Final = Form(bytes, bytes, holds_records=True)


def chunk_form(codec: Codec) -> Form:
    """The next chunk of a source, or ``None`` at its end."""

    def give(chunk: Chunk[Any] | None) -> bytes:
        if chunk is None:
            return b""
        position = codec.encode(chunk.resume_at, "the position of a chunk")
        return len(position).to_bytes(4, "little") + position + _give_records(codec, chunk.records)

    def take(body: bytes) -> Chunk[Any] | None:
        if not body:
            return None
        end = 4 + int.from_bytes(body[:4], "little")
        return Chunk(_take_records(codec, body[end:]), codec.decode(body[4:end], "the position of a chunk"))

    return Form(give, take, holds_records=True)


def outcome_form(codec: Codec, token: Any) -> Form:
    """What an async call came to: a list of outputs, or what a handler did to its key."""

    def give(outcome: Any) -> bytes:
        stroke = type(outcome) is Invocation
        return bytes([stroke]) + codec.encode(outcome.stroke() if stroke else outcome, "what an async call gave")

    def take(body: bytes) -> Any:
        plain = codec.decode(body[1:], "what an async call gave")
        return Invocation.of(token, plain) if body[0] else plain

    return Form(give, take, holds_records=True)


# ── records ──────────────────────────────────────────────────────────────────────────────────


def _give_records(codec: Codec, records: list[Any]) -> bytes:
    try:
        text = "\0".join(records)
    except TypeError:
        return b"\x01" + codec.encode_column(records, "a record")
    if text.count("\0") == len(records) - 1 and {str}.issuperset(map(type, records)):
        return b"\x00" + text.encode("utf-8", "surrogatepass")
    return b"\x01" + codec.encode_column(records, "a record")


def _take_records(codec: Codec, body: bytes) -> list[Any]:
    if body[:1] == b"\x00":
        return body[1:].decode("utf-8", "surrogatepass").split("\0")
    return codec.decode_column(body[1:], "the records of a chunk")


# ── answers ──────────────────────────────────────────────────────────────────────────────────


def answer_of(form: Form, value: Any, error: BaseException | None, *, redact: bool) -> tuple[Status, bytes]:
    """How an operation came out, as it is written."""
    if error is not None:
        if not isinstance(error, Exception):
            return Status.CANCELLED, b""
        return Status.ERROR, dump_told(_plain_error(error, redact=redact))
    try:
        body = form.give(value)
    except Exception as refusal:  # whatever it is, the run goes on and the replay says so
        told = type(refusal).__name__ if redact else f"{type(refusal).__name__}: {refusal}"
        return Status.UNWRITABLE, dump_told([told])
    if redact and form.holds_records:
        return Status.REDACTED, dump([len(value) if isinstance(value, bytes) else 0])
    return Status.VALUE, body


def line_of(entry: Entry, at_ms: int, *, redact: bool) -> list[Any]:
    """A line of the journal as it is written: time, name, what lasts in canonical form, and what is volatile."""
    lasting = lasting_fields(entry)
    names = {name for name, _ in lasting}
    volatile = {
        field.name: _plain(getattr(entry, field.name), redact=redact)
        for field in fields(entry)
        if field.name not in names
    }
    return [at_ms, type(entry).__name__, canonical([value for _, value in lasting]), volatile]


class JournalDigest:
    """The digest of a journal whose lines are not kept: what ``journal_digest`` says of them."""

    def __init__(self) -> None:
        self._digest = sha256()

    def add(self, line: Line) -> None:
        """Take a line."""
        values = [value for _, value in lasting_fields(line.entry)]
        self._digest.update(canonical([line.at_ms, line.process, line.name, *values]))

    def hexdigest(self) -> str:
        """The digest of the lines so far, with nothing visible at the end."""
        digest = self._digest.copy()
        digest.update(sha256(b"").digest())
        return digest.hexdigest()


def _plain(value: Any, *, redact: bool) -> Any:
    if value is None or type(value) in (int, float, bool):
        return value
    return REDACTED if redact else str(value)


# ── exceptions ───────────────────────────────────────────────────────────────────────────────

_DEEPEST: Final = 5


def _plain_error(error: BaseException, *, redact: bool, depth: int = 0) -> list[Any]:
    """Class, the nearest class of Python's or ours that it is one of, text, notes, plain attributes, cause."""
    cls = type(error)
    base = next(one for one in cls.__mro__ if _room_of(one) is not None)
    notes = [str(note) for note in getattr(error, "__notes__", ())]
    attributes = {
        name: value for name, value in vars(error).items() if name != "__notes__" and _is_plain(value) and not redact
    }
    cause = error.__cause__
    return [
        _room_of(cls) or cls.__module__,
        cls.__name__,
        _room_of(base),
        base.__name__,
        REDACTED if redact else _text(error),
        [] if redact else notes,
        attributes,
        _errno(error),
        None if cause is None or depth >= _DEEPEST else _plain_error(cause, redact=redact, depth=depth + 1),
    ]


def error_of(body: bytes) -> Exception:
    """Return an exception that code can tell from the recorded one by nothing but its identity."""
    return _error(load(body))


def _error(plain: list[Any]) -> Exception:
    module, name, base_module, base_name, text, notes, attributes, errno, cause = plain
    base = _known(base_module, base_name) or Exception
    if issubclass(base, ExceptionGroup):
        base = Exception  # there is none without its members, and nobody inside looks at them
    error = base.__new__(base, text)
    if (module, name) != (base_module, base.__name__) or _text(error) != text:
        stand_in: Any = type(name, (base,), {"__module__": module, "__str__": lambda _: text})
        error = stand_in.__new__(stand_in, text)
    if isinstance(error, OSError) and errno is not None:
        error.errno = errno
    for key, value in attributes.items():
        if not key.startswith("_"):
            setattr(error, key, value)
    for note in notes:
        error.add_note(note)
    if cause is not None:
        error.__cause__ = _error(cause)
    return error


_ROOMS: Final = {"builtins": builtins, "actorflow.errors": actorflow.errors}
"""Where a class is looked for; what a file says beyond that is not searched for."""


def _room_of(cls: type) -> str | None:
    return next((room for room, module in _ROOMS.items() if getattr(module, cls.__name__, None) is cls), None)


def _known(room: str, name: str) -> type[Exception] | None:
    found = getattr(_ROOMS.get(room), name, None)
    return found if isinstance(found, type) and issubclass(found, Exception) else None


def _text(error: BaseException) -> str:
    try:
        return str(error)
    except Exception as second:  # an exception of somebody else's
        return f"its text could not be made: {type(second).__name__}"


def _errno(error: BaseException) -> int | None:
    return error.errno if isinstance(error, OSError) else None


def _is_plain(value: Any) -> bool:
    return value is None or type(value) in (str, int, float, bool)
