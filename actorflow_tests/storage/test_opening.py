from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from actorflow.errors import InvalidConfig
from actorflow.storage import FileStore, MemoryStore, open_store
from actorflow.storage.disk import LocalDisk
from actorflow.storage.opening import folder_of


def test_nothing_said_is_memory_and_a_new_one_each_time() -> None:
    first, second = open_store(None, LocalDisk()), open_store(None, LocalDisk())
    assert isinstance(first, MemoryStore)
    assert first is not second


@pytest.mark.parametrize(
    ("location", "folder"),
    [
        ("checkpoints", "checkpoints"),
        ("./.actorflow", "./.actorflow"),
        ("/var/lib/x", "/var/lib/x"),
        ("file:///var/lib/x", "/var/lib/x"),
        ("FILE:///var/lib/x", "/var/lib/x"),
        ("file://localhost/var/lib/x", "/var/lib/x"),
        ("file:///with%20space/%C3%BC", "/with space/ü"),
        ("odd:name", "odd:name"),
    ],
)
def test_folders(location: str, folder: str) -> None:
    assert folder_of(location) == folder
    assert isinstance(open_store(location, LocalDisk()), FileStore)


@pytest.mark.parametrize(
    ("location", "why"),
    [
        ("s3://bucket/x", "S3 comes with a later version"),
        ("gs://bucket/x", "scheme gs:// is not known"),
        ("http://host/x", "scheme http:// is not known"),
        ("file://host/x", "not a folder of this machine"),
        ("file://", "not a folder of this machine"),
        ("file:///a?b", "not a folder of this machine"),
        ("file:///a%00b", "zero byte"),
        ("", "names no folder"),
        ("  ", "names no folder"),
        ("a\0b", "names no folder"),
    ],
)
def test_what_can_not_be_opened_is_refused_by_name(location: str, why: str) -> None:
    with pytest.raises(InvalidConfig, match=why):
        open_store(location, LocalDisk())


def test_opening_loads_no_driver() -> None:
    program = (
        "import sys; from actorflow.storage import open_store; from actorflow.storage.disk import LocalDisk; "
        "open_store('x', LocalDisk()); "
        "assert not {'aiofiles', 'aiobotocore'} & set(sys.modules), sorted(sys.modules)"
    )
    root = Path(__file__).parents[2]
    subprocess.run([sys.executable, "-c", program], check=True, cwd=root)
