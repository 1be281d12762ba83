from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from actorflow.connectors.line_cutter import LineCutter, LineDecoder, after_lines
from actorflow.errors import InvalidJob, InvalidValue


def cutter(**settings: Any) -> LineCutter:
    return LineCutter(0, **{"chunk_bytes": 10, "longest_line": 1_000, "where": "/a.txt", **settings})


@given(st.lists(st.sampled_from([b"a", b"\n", b"\r\n", b"bcd" * 9, b"\r"]), max_size=40), st.integers(1, 12), st.data())
def test_however_the_blocks_fall_the_runs_are_the_whole_lines(pieces: list[bytes], size: int, data: Any) -> None:
    text = b"".join(pieces)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(text)), max_size=8)))
    blocks = [text[start:end] for start, end in zip([0, *cuts], [*cuts, len(text)], strict=True)]
    cutting = cutter(chunk_bytes=size)

    runs = [run for block in blocks for run in cutting.feed(block)]

    whole = text[: text.rfind(b"\n") + 1]
    assert b"".join(runs) == whole
    assert all(run.endswith(b"\n") for run in runs)
    assert all(len(run) <= size or run.count(b"\n") == 1 for run in runs)
    assert cutting.position == len(whole)
    assert cutting.rest() == text[len(whole) :]
    assert cutting.position == len(text)


def test_a_line_that_never_ends_is_refused_with_its_place() -> None:
    cutting = cutter(longest_line=5)
    cutting.feed(b"ab\nabc")

    with pytest.raises(InvalidValue, match=r"/a\.txt: the line that begins at byte 3 is longer than 5"):
        cutting.feed(b"def")


@given(
    st.text(alphabet="aä€\r\n\x0b\x85\u2028", max_size=60),
    st.sampled_from(["utf-8", "latin-1", "gb18030", "utf-8-sig"]),
)
def test_only_line_feeds_end_lines(text: str, encoding: str) -> None:
    data = text.encode("utf-8" if encoding == "utf-8-sig" else encoding, "replace")
    text = data.decode("utf-8" if encoding == "utf-8-sig" else encoding)
    whole = text[: text.rfind("\n") + 1]
    expected = [line.removesuffix("\r") for line in whole.split("\n")[:-1]]

    raw = data[: data.rfind(b"\n") + 1]
    assert LineDecoder(encoding, "strict").lines(raw, 0, "/a") == expected


def test_a_byte_order_mark_is_left_out_where_asked_and_only_at_the_start() -> None:
    decoder = LineDecoder("utf-8-sig", "strict")

    assert decoder.lines(b"\xef\xbb\xbfa\n", 0, "/a") == ["a"]
    assert decoder.lines(b"\xef\xbb\xbfa\n", 7, "/a") == ["\ufeffa"]
    assert LineDecoder("utf-8", "strict").lines(b"\xef\xbb\xbfa\n", 0, "/a") == ["\ufeffa"]


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "shift_jis"])
def test_a_byte_that_is_no_text_is_named_with_its_place(encoding: str) -> None:
    with pytest.raises(InvalidValue, match=r"/a\.txt: byte 106 .*errors='replace'"):
        LineDecoder(encoding, "strict").lines(b"good\nb\xff\n", 100, "/a.txt")


@pytest.mark.parametrize("encoding", ["utf-8", "gb18030", "shift_jis", "big5", "euc_jp", "cp1252", "ascii"])
@pytest.mark.parametrize("errors", ["replace", "ignore", "backslashreplace"])
def test_a_line_break_survives_whatever_is_wrong_beside_it(encoding: str, errors: str) -> None:
    decoder = LineDecoder(encoding, errors)
    for wrong in range(0x80, 0x100):
        lines = decoder.lines(bytes([wrong]) + b"\nb\n", 0, "/a")
        assert len(lines) == 2
        assert lines[1] == "b"


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-32", "cp037", "rot13", "base64", "nonsense"])
def test_an_encoding_in_which_lines_cannot_be_found_is_refused(encoding: str) -> None:
    with pytest.raises(InvalidJob, match=encoding):
        LineDecoder(encoding, "strict")


@pytest.mark.parametrize("errors", ["surrogateescape", "surrogatepass", "nonsense"])
def test_text_that_could_not_be_written_down_again_is_not_made(errors: str) -> None:
    with pytest.raises(InvalidJob, match=errors):
        LineDecoder("utf-8", errors)


def test_lines_are_counted_off() -> None:
    assert after_lines(b"a\nbb\n\nc\n", 2, 2) == 6
