"""What holds for every test: chance is seeded, and a folder says what kind of test lives in it."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import settings

_LIVE = Path(__file__).parent / "live"

# Runs must be the same for everyone, so nothing is drawn afresh; and a busy machine is no reason to fail.
settings.register_profile("house", deadline=None, derandomize=True, database=None, print_blob=True)
settings.load_profile("house")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Whatever is in ``live`` meets the real world, and is marked so."""
    for item in items:
        if _LIVE in item.path.parents:
            item.add_marker(pytest.mark.live)
