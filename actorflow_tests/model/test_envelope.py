from __future__ import annotations

import pytest

from actorflow.errors import CorruptObject
from actorflow.model.codec import seal, unseal

BODY = bytes(range(256)) * 3


@pytest.mark.parametrize("body", [b"", b"x", BODY], ids=len)
def test_a_sealed_body_comes_back_with_its_version(body: bytes) -> None:
    for data in (seal("block", 3, body), bytearray(seal("block", 3, body)), memoryview(seal("block", 3, body))):
        assert (3, body) == unseal("block", data, "chk-1/a")


def test_every_truncation_is_refused_and_says_so() -> None:
    sealed = seal("block", 1, BODY)
    for end in range(len(sealed)):
        with pytest.raises(CorruptObject, match=r"^chk-1/a: cut short"):
            unseal("block", sealed[:end], "chk-1/a")


def test_what_was_appended_is_refused() -> None:
    with pytest.raises(CorruptObject, match=r"^chk-1/a: 2 bytes too long"):
        unseal("block", seal("block", 1, BODY) + b"xx", "chk-1/a")


@pytest.mark.parametrize("data", [b"PK\x03\x04" + BODY, b"hello", b"\0", b"{}" * 100, b"\xafflaw\r\n" + BODY], ids=repr)
def test_what_is_no_object_of_ours_is_refused(data: bytes) -> None:
    with pytest.raises(CorruptObject, match=r"^chk-1/a: this is no object of actorflow"):
        unseal("block", data, "chk-1/a")


def test_an_object_of_another_kind_is_refused_with_both_names() -> None:
    with pytest.raises(CorruptObject, match="chk-1/a: this is a 'manifest', and a 'block' is needed here"):
        unseal("block", seal("manifest", 1, BODY), "chk-1/a")


def test_a_newer_version_says_so() -> None:
    with pytest.raises(CorruptObject, match=r"chk-1/a: version 2 .* up to version 1; a newer actorflow"):
        unseal("block", seal("block", 2, BODY), "chk-1/a", newest=1)
    assert (2, BODY) == unseal("block", seal("block", 2, BODY), "chk-1/a", newest=2)
    assert (2, BODY) == unseal("block", seal("block", 2, BODY), "chk-1/a")


def test_a_newer_layout_says_so() -> None:
    sealed = bytearray(seal("block", 1, BODY))
    sealed[7] = 2
    with pytest.raises(CorruptObject, match="chk-1/a: sealed in layout 2"):
        unseal("block", bytes(sealed), "chk-1/a")


def test_a_damaged_body_fails_its_checksum() -> None:
    sealed = bytearray(seal("block", 1, BODY))
    sealed[-5] ^= 1
    with pytest.raises(CorruptObject, match="chk-1/a: its checksum does not fit"):
        unseal("block", bytes(sealed), "chk-1/a")
