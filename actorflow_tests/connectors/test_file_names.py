from __future__ import annotations

import asyncio

import pytest

from actorflow.connectors.file_names import find_files
from actorflow_tests.connectors.support import MemoryDisk


def disk() -> MemoryDisk:
    files = MemoryDisk()
    for name in ("b.txt", "a.txt", "c.log", ".hidden.txt", "one/a.txt", "one/two/a.txt", "one/.git/a.txt", "x[1].txt"):
        files.put(f"/in/{name}", b"")
    return files


@pytest.mark.parametrize(
    ("name", "found"),
    [
        ("/in/b.txt", ["b.txt"]),
        ("/in", ["a.txt", "b.txt", "c.log", "x[1].txt"]),
        ("/in/", ["a.txt", "b.txt", "c.log", "x[1].txt"]),
        ("/in/*.txt", ["a.txt", "b.txt", "x[1].txt"]),
        ("/in/?.txt", ["a.txt", "b.txt"]),
        ("/in/[bc].*", ["b.txt", "c.log"]),
        ("/in/.*.txt", [".hidden.txt"]),
        ("/in/*/a.txt", ["one/a.txt"]),
        ("/in/**/a.txt", ["a.txt", "one/a.txt", "one/two/a.txt"]),
        ("/in/one/**", ["one/a.txt", "one/two/a.txt"]),
        ("/*/one/*.txt", ["one/a.txt"]),
        ("/in/x[1].txt", ["x[1].txt"]),  # a name that exists is no pattern
        ("/in/X*.txt", []),
        ("/in/d.txt", []),
        ("/nowhere", []),
        ("/nowhere/*", []),
    ],
)
def test_names_folders_and_patterns_stand_for_files(name: str, found: list[str]) -> None:
    assert asyncio.run(find_files(disk(), name)) == [f"/in/{file}" for file in found]


def test_relative_names_become_absolute() -> None:
    files = MemoryDisk()
    files.put("/here/logs/a.txt", b"")

    assert asyncio.run(find_files(files, "logs")) == ["/here/logs/a.txt"]
    assert asyncio.run(find_files(files, "*/a.txt")) == ["/here/logs/a.txt"]
    assert asyncio.run(find_files(files, "./logs/../logs/a.txt")) == ["/here/logs/a.txt"]


def test_two_names_of_one_file_are_one() -> None:
    files = disk()
    files.links["/in/also.txt"] = "/in/a.txt"
    files.put("/in/also.txt", b"")

    assert asyncio.run(find_files(files, "/in/a*.txt")) == ["/in/a.txt"]
