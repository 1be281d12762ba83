"""Python's collector is tuned only while the process is ours, and is left as it was."""

from __future__ import annotations

import asyncio
import gc
import sys

from actorflow.runtime.collector import Collector
from actorflow.runtime.real_world import SystemClock
from actorflow.simulation import run
from actorflow.simulation.world import Universe


def settings() -> tuple[object, ...]:
    return gc.get_threshold(), sys.getswitchinterval(), gc.isenabled()


def test_it_freezes_what_is_alive_and_leaves_everything_as_it_was() -> None:
    before, frozen = settings(), gc.get_freeze_count()
    collector = Collector(SystemClock(), lambda: 0)
    try:
        collector.begin()
        assert settings() != before
        assert gc.get_freeze_count() > frozen
        collector.freeze()
    finally:
        collector.end()
    assert settings() == before
    assert gc.get_freeze_count() == 0


def test_cycles_that_were_made_after_the_freeze_are_still_collected() -> None:
    class Node:
        alive = 0

        def __init__(self) -> None:
            self.me = self
            Node.alive += 1

        def __del__(self) -> None:
            Node.alive -= 1

    collector = Collector(SystemClock(), lambda: 0)
    try:
        collector.begin()
        for _ in range(100):
            Node()
        assert collector._collect_young() >= 0
        assert Node.alive == 0
    finally:
        collector.end()


def test_it_runs_until_it_is_cancelled() -> None:
    async def story() -> None:
        collector = Collector(Universe(0).world("p").clock, lambda: 0)
        running = asyncio.ensure_future(collector.run())
        await asyncio.sleep(30)
        assert not running.done()
        running.cancel()
        await asyncio.wait([running])

    run(story)
