"""A folder of its own to stand in for each test, and what the command line changed of the process put back."""

from __future__ import annotations

import logging
import sys
from collections.abc import Iterator
from contextlib import chdir
from pathlib import Path

import pytest

from actorflow_tests.cli.shell import Shell


@pytest.fixture
def shell(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Iterator[Shell]:
    path, modules, switch = list(sys.path), set(sys.modules), sys.getswitchinterval()
    logger = logging.getLogger("actorflow")
    handlers, level = list(logger.handlers), logger.level
    try:
        with chdir(tmp_path):
            yield Shell(tmp_path, capsys)
    finally:
        sys.path[:] = path
        for name in sorted(set(sys.modules) - modules):
            if getattr(sys.modules[name], "__file__", None) and str(tmp_path) in str(sys.modules[name].__file__):
                del sys.modules[name]
        sys.setswitchinterval(switch)
        logger.handlers[:] = handlers
        logger.setLevel(level)
