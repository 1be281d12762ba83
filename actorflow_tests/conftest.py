"""What holds for every test: chance is seeded, a folder says what kind of test lives in it, and slow ones wait for you.

``pytest`` leaves out what is marked ``slow``.  ``pytest -m slow`` runs that alone, and ``ACTORFLOW_THOROUGH=1 pytest``
everything, with all seeds.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import settings

_LIVE = Path(__file__).parent / "live"

# Runs must be the same for everyone, so nothing is drawn afresh; and a busy machine is no reason to fail.
settings.register_profile("house", deadline=None, derandomize=True, database=None, print_blob=True)
settings.load_profile("house")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Whatever is in ``live`` meets the real world, and is marked so; what is slow runs when it is asked for."""
    for item in items:
        if _LIVE in item.path.parents:
            item.add_marker(pytest.mark.live)
    if config.option.markexpr or os.environ.get("ACTORFLOW_THOROUGH"):
        return
    slow = [item for item in items if item.get_closest_marker("slow")]
    if slow:
        config.hook.pytest_deselected(items=slow)
        items[:] = [item for item in items if not item.get_closest_marker("slow")]
