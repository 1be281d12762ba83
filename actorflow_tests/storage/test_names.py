from __future__ import annotations

import pytest

from actorflow.errors import StorageFailed
from actorflow.storage.names import check_name, check_prefix


@pytest.mark.parametrize("name", ["a", "chk-1/_metadata", "owner/0000000001.base", "a b/ü", "x..y", "-", "a:b"])
def test_these_are_names(name: str) -> None:
    check_name(name)
    check_prefix(name)


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("", "something"),
        ("/etc/passwd", "something"),
        ("a//b", "something"),
        ("a/", "something"),
        ("..", "dot"),
        ("a/../b", "dot"),
        (".hidden", "dot"),
        ("a\\b", "backslash"),
        ("a\0", "zero byte"),
        ("\ud800", "half of a character"),
    ],
)
def test_these_are_not(name: str, why: str) -> None:
    with pytest.raises(StorageFailed, match=why):
        check_name(name)


@pytest.mark.parametrize("prefix", ["", "a/", "a/b/", "chk-"])
def test_names_may_begin_with(prefix: str) -> None:
    check_prefix(prefix)


@pytest.mark.parametrize("prefix", ["/", "../", "a//", "a/.", ".writers/"])
def test_no_name_begins_with(prefix: str) -> None:
    with pytest.raises(StorageFailed, match="begins with"):
        check_prefix(prefix)
