"""What is written down of a run, how it lies in its file, and what of a file is believed."""

from __future__ import annotations

import asyncio
import errno
import os
import stat
from pathlib import Path
from typing import Any

import pytest

from actorflow.abc.connectors import Chunk
from actorflow.dataflow.lane import Entry as StateEntry
from actorflow.dataflow.lane import Invocation
from actorflow.errors import (
    AbortReason,
    CheckpointAborted,
    InvalidRecording,
    InvalidValue,
    ObjectMissing,
    OperatorFailed,
    StorageFailed,
)
from actorflow.model.codec import Codec
from actorflow.model.journal import ActorFailed, CheckpointCompleted
from actorflow.model.unpacking import load
from actorflow.simulation.recording_entries import (
    Entry,
    Kind,
    Status,
    entries_of,
    pack,
    pack_answer,
    pack_said,
    pack_tree,
)
from actorflow.simulation.recording_file import VERSION, RecordingFile, frames_of, is_recording
from actorflow.simulation.recording_log import RecordingLog
from actorflow.simulation.recording_values import (
    NOTHING,
    PLAIN,
    RAW,
    REDACTED,
    Form,
    answer_of,
    chunk_form,
    error_of,
    line_of,
    outcome_form,
)

CODEC = Codec()


def written(path: Path, *payloads: bytes) -> Path:
    file = RecordingFile(path)
    for payload in payloads:
        file.append(payload)
    file.close()
    return path


def payloads(path: Path) -> list[bytes]:
    return [payload for _, payload in frames_of(path)]


# ── entries ──────────────────────────────────────────────────────────────────────────────────


def test_entries_come_back_as_they_were_written() -> None:
    data = b"".join(
        [
            pack(Kind.NOW_MS, -5),
            pack(Kind.LOOP_TIME, 1.5),
            pack(Kind.SLICE, 3),
            pack(Kind.TIMER, 4, 1 << 40),
            pack(Kind.SIGNAL, 9),
            pack(Kind.WORK),
            pack(Kind.WORK_DONE, 1, 7),
            pack_tree(Kind.OPERATION, ["disk.read", 1, b"x"]),
            pack_answer(12, 34, Status.ERROR, b"body"),
            pack_said(Status.VALUE, b""),
        ]
    )

    assert list(entries_of(data)) == [
        Entry(Kind.NOW_MS, -5),
        Entry(Kind.LOOP_TIME, 1.5),
        Entry(Kind.SLICE, 3),
        Entry(Kind.TIMER, number=4, position=1 << 40),
        Entry(Kind.SIGNAL, position=9),
        Entry(Kind.WORK),
        Entry(Kind.WORK_DONE, number=1, position=7),
        Entry(Kind.OPERATION, ["disk.read", 1, b"x"]),
        Entry(Kind.ANSWER, b"body", number=12, position=34, status=Status.ERROR),
        Entry(Kind.SAID, b"", status=Status.VALUE),
    ]


@pytest.mark.parametrize(
    "data", [b"\xff", pack_tree(Kind.OPERATION, ["abc"])[:-1], pack_answer(1, 2, Status.VALUE, b"x")[:-1]]
)
def test_bytes_that_are_no_entries_are_refused(data: bytes) -> None:
    with pytest.raises(ValueError, match=r"is not a valid Kind|an entry of"):
        list(entries_of(data))


# ── the file ─────────────────────────────────────────────────────────────────────────────────


def test_a_recording_belongs_to_its_owner_alone_and_is_known_by_its_first_bytes(tmp_path: Path) -> None:
    path = tmp_path / "run.rec"
    before = os.umask(0)
    try:
        written(path, b"one")
    finally:
        os.umask(before)

    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert is_recording(path)
    (tmp_path / "text").write_text("hello")
    assert not is_recording(tmp_path / "text")
    assert not is_recording(tmp_path)
    assert not is_recording(tmp_path / "absent")


def test_one_that_somebody_made_readable_for_others_is_closed_to_them_again(tmp_path: Path) -> None:
    path = written(tmp_path / "run.rec", b"one")
    path.chmod(0o644)
    written(path, b"two")
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_what_is_added_later_follows_what_is_there(tmp_path: Path) -> None:
    path = written(tmp_path / "run.rec", b"one", b"two")
    written(path, b"three")
    assert payloads(path) == [b"one", b"two", b"three"]


def test_a_torn_end_is_as_if_it_had_not_been_and_the_next_process_goes_on_before_it(tmp_path: Path) -> None:
    path = written(tmp_path / "run.rec", b"one", b"two")
    whole = path.read_bytes()
    for size in range(len(whole) - len(b"two") - 11, len(whole)):
        path.write_bytes(whole[:size])
        assert payloads(path) == [b"one"], size
        written(path, b"three")
        assert payloads(path) == [b"one", b"three"], size


def test_an_end_of_zeros_is_torn_too(tmp_path: Path) -> None:
    path = written(tmp_path / "run.rec", b"one")
    path.write_bytes(path.read_bytes() + bytes(100))
    assert payloads(path) == [b"one"]


def test_damage_before_the_end_is_an_error_that_names_file_and_place(tmp_path: Path) -> None:
    path = written(tmp_path / "run.rec", b"one", b"two", b"three")
    whole = path.read_bytes()
    second = whole.index(b"two") - 12
    for at in range(second, second + 15):
        path.write_bytes(whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :])
        with pytest.raises(InvalidRecording, match=rf"run\.rec: damaged at byte {second};"):
            payloads(path)
        with pytest.raises(InvalidRecording, match="damaged"):
            RecordingFile(path)


def test_a_version_from_the_future_is_refused_with_both_versions(tmp_path: Path) -> None:
    path = written(tmp_path / "run.rec", b"one")
    whole = bytearray(path.read_bytes())
    at = whole.index(b"\x1a\n") + 2
    whole[at] = VERSION + 6
    path.write_bytes(whole)

    assert is_recording(path)
    with pytest.raises(
        InvalidRecording, match=rf"of version {VERSION + 6}, and this actorflow reads version {VERSION}"
    ):
        payloads(path)


def test_a_file_that_is_something_else_is_never_written_over(tmp_path: Path) -> None:
    path = tmp_path / "book.txt"
    path.write_text("Once upon a time there was a file that somebody needed.")
    with pytest.raises(InvalidRecording, match="no recording"):
        RecordingFile(path)
    assert path.read_text().startswith("Once upon")
    with pytest.raises(InvalidRecording, match="can't be opened"):
        RecordingFile(tmp_path / "absent" / "run.rec")
    with pytest.raises(InvalidRecording, match="no plain file"):
        RecordingFile(Path("/dev/null"))


def test_two_processes_never_record_into_one_file(tmp_path: Path) -> None:
    first = RecordingFile(tmp_path / "run.rec")
    with pytest.raises(InvalidRecording, match="another process"):
        RecordingFile(tmp_path / "run.rec")
    first.close()
    RecordingFile(tmp_path / "run.rec").close()


class Full:
    """A file on a disk that is full."""

    path = Path("run.rec")
    closed = 0

    def append(self, payload: bytes) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    def close(self) -> None:
        self.closed += 1


def test_a_disk_that_is_full_ends_the_recording_and_not_the_job() -> None:
    file: Any = Full()
    told: list[str] = []
    log = RecordingLog(file, told.append)

    for _ in range(3):
        log.add(b"entry")
        log.flush()
    log.close()

    assert told == ["run.rec: No space left on device"]
    assert file.closed == 1


# ── values ───────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    "records",
    [[], [""], ["a"], ["a", "b"], ["a\0b", "c"], ["\ud800"], [1, "a", None, (2.5, b"x")], [True, 1, 1.0], ["a", b"a"]],
)
def test_a_chunk_comes_back_with_its_position(records: list[Any]) -> None:
    form = chunk_form(CODEC)
    if records == ["\ud800"]:
        assert form.take(form.give(Chunk(records, 3))) == Chunk(records, 3)
        return
    found = form.take(form.give(Chunk(records, {"at": 3})))
    assert found == Chunk(records, {"at": 3})
    assert found is not None
    assert [*map(type, found.records)] == [*map(type, records)]


def test_the_end_of_a_split_comes_back() -> None:
    form = chunk_form(CODEC)
    assert form.take(form.give(None)) is None


def test_what_an_async_function_gave_comes_back() -> None:
    form = outcome_form(CODEC, None)
    assert form.take(form.give([1, "two", {"three": [4]}])) == [1, "two", {"three": [4]}]


def test_what_a_handler_did_to_its_key_takes_the_same_effect_when_it_comes_back() -> None:
    class Cell:
        def __init__(self) -> None:
            self.did: list[Any] = []

    invocation = Invocation("key")
    kept, fresh = [1, 2], []  # type: ignore[var-annotated]
    invocation.outputs, invocation.sides = ["out"], [("tag", 5)]
    invocation.entries = {
        0: StateEntry("new", "old"),
        1: StateEntry(kept, kept),
        2: StateEntry(StateEntry.of([]).value, "was there"),
        3: StateEntry(fresh, 7, fresh),
        4: StateEntry([3], 7),
    }
    form = outcome_form(CODEC, "key")

    found = form.take(form.give(invocation))

    assert (found.token, found.outputs, found.sides) == ("key", ["out"], [("tag", 5)])
    assert [entry.effect() for entry in found.entries.values()] == [["new"], [None, None], [], [], [[3]]]
    assert [entry.effect() for entry in invocation.entries.values()] == [["new"], [None, None], [], [], [[3]]]


class Refused(RuntimeError):
    def __init__(self, code: int) -> None:
        super().__init__(f"refused with {code}")
        self.code, self.connection = code, object()


def told(error: Exception) -> Exception:
    status, body = answer_of(NOTHING, None, error, redact=False)
    assert status is Status.ERROR
    return error_of(body)


@pytest.mark.parametrize(
    "error",
    [
        ValueError("no"),
        KeyError("missing"),
        OSError(errno.ENOENT, "No such file", "/x"),
        FileExistsError(errno.EEXIST, "File exists", "/x"),
        TimeoutError(),
        ObjectMissing("/x: gone"),
        StorageFailed("refused"),
        OperatorFailed("op", 3, key="'k'", cause="ValueError: no"),
        UnicodeDecodeError("utf-8", b"x", 0, 1, "why"),
    ],
)
def test_an_exception_of_ours_or_of_pythons_comes_back_as_one_of_its_class(error: Exception) -> None:
    error.add_note("a note")
    found = told(error)
    assert isinstance(found, type(error))
    assert type(found).__name__ == type(error).__name__
    assert str(found) == str(error)
    assert found.__notes__ == ["a note"]
    if isinstance(error, OperatorFailed):
        assert isinstance(found, OperatorFailed)
        assert (found.operator, found.subtask, found.key) == ("op", 3, "'k'")


def test_any_other_comes_back_as_a_stand_in_of_its_name_without_its_class_being_looked_for() -> None:
    error = Refused(7)
    error.__cause__ = ObjectMissing("below")
    found = told(error)
    assert type(found).__name__ == "Refused"
    assert not isinstance(found, Refused)
    assert isinstance(found, RuntimeError)
    assert (str(found), getattr(found, "code", None)) == ("refused with 7", 7)
    assert isinstance(found.__cause__, ObjectMissing)


def test_a_group_of_exceptions_comes_back_as_one_of_its_name() -> None:
    found = told(ExceptionGroup("unhandled errors in a TaskGroup", [ValueError("no")]))
    assert type(found).__name__ == "ExceptionGroup"
    assert str(found) == "unhandled errors in a TaskGroup (1 sub-exception)"


def test_text_that_is_no_text_is_spelled_out_where_it_is_only_told() -> None:
    (entry,) = entries_of(pack_tree(Kind.OPERATION, ["disk.size", "/a\udcff", {"k\ud800": ["\ud800"]}]))
    assert entry.value == ["disk.size", "/a\\udcff", {"k\\ud800": ["\\ud800"]}]
    assert str(told(OSError("/a\udcff"))) == "/a\\udcff"
    assert line_of(ActorFailed(operator="op", subtask=1, cause="E", detail="\udcff"), 5, redact=False)[3]


def test_an_answer_that_can_not_be_written_is_told_and_not_raised() -> None:
    status, body = answer_of(outcome_form(CODEC, None), [object()], None, redact=False)
    assert status is Status.UNWRITABLE
    assert "can't be written down" in load(body)[0]
    assert answer_of(NOTHING, None, asyncio.CancelledError(), redact=False) == (Status.CANCELLED, b"")


def test_redaction_leaves_out_records_and_texts_but_not_names_and_lengths() -> None:
    secret = "a secret"
    assert answer_of(RAW, secret.encode(), None, redact=True) == (Status.REDACTED, b"\x81\x08")
    for form, value in (
        (chunk_form(CODEC), Chunk([secret])),
        (outcome_form(CODEC, None), [secret]),
        (outcome_form(CODEC, None), [object(), secret]),
        (NOTHING, ValueError(secret)),
        (Form(lambda _: _refuse(secret), load), 1),
    ):
        error = value if isinstance(value, Exception) else None
        _, body = answer_of(form, value, error, redact=True)
        assert b"secret" not in body
    assert answer_of(PLAIN, ["name"], None, redact=True) == answer_of(PLAIN, ["name"], None, redact=False)
    failed = ActorFailed(operator="op", subtask=1, cause="ValueError", detail=secret)
    assert line_of(failed, 5, redact=True)[3] == {"detail": REDACTED}
    assert line_of(failed, 5, redact=False)[3] == {"detail": secret}


def _refuse(text: str) -> bytes:
    raise InvalidValue(text)


def test_a_line_of_the_journal_keeps_what_lasts_apart_from_what_does_not() -> None:
    entry = CheckpointCompleted(checkpoint=3, kind="periodic", duration_ms=17, bytes=5)
    at_ms, name, lasting, volatile = line_of(entry, 12, redact=False)
    assert (at_ms, name) == (12, "CheckpointCompleted")
    assert load(lasting)[:2] == [3, "periodic"]
    assert volatile["duration_ms"] == 17


def test_an_abort_keeps_its_class() -> None:
    assert isinstance(told(CheckpointAborted(AbortReason.EXPIRED)), CheckpointAborted)
