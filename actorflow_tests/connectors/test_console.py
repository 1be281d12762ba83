from __future__ import annotations

import asyncio
from typing import Any, cast

import pytest

from actorflow.connectors import console
from actorflow.errors import OperatorFailed, StorageFailed
from actorflow_tests.connectors.support import TestObserver, sink_context, world_of


async def printed(*records: Any, **settings: Any) -> None:
    writer = await console.lines(**settings).open(sink_context(world_of()))
    await writer.write(list(records))


def test_each_record_is_printed_on_a_line_at_once(capsys: pytest.CaptureFixture[str]) -> None:
    asyncio.run(printed("a", ("the", 3), None))
    assert capsys.readouterr().out == "a\n('the', 3)\nNone\n"


def test_a_format_can_be_given(capsys: pytest.CaptureFixture[str]) -> None:
    asyncio.run(printed(("the", 3), format=lambda pair: f"{pair[0]}: {pair[1]}"))
    assert capsys.readouterr().out == "the: 3\n"


def test_it_says_once_that_it_is_at_least_once() -> None:
    async def story() -> None:
        world, sink = world_of(), console.lines()
        for subtask in range(3):
            await sink.open(sink_context(world, subtask))
        [entry] = cast("TestObserver", world.observer).named("SettingIgnored")
        assert "at-least-once" in entry.why
        assert "'out'" in entry.why
        await sink.open(sink_context(world, exactly_once=False))
        assert len(cast("TestObserver", world.observer).entries) == 1

    asyncio.run(story())


def test_it_does_not_run_in_the_simulator_and_runs_once_unless_asked_otherwise() -> None:
    assert not console.lines().runs_in_simulation
    assert console.lines().parallelism == 1


def test_a_format_that_raises_is_named() -> None:
    with pytest.raises(OperatorFailed, match="operator 'out', subtask 0: format raised ZeroDivisionError"):
        asyncio.run(printed(0, format=lambda n: str(1 / n)))


def test_a_stream_that_cannot_be_written_is_an_error(capsys: pytest.CaptureFixture[str]) -> None:
    import sys

    stream, before = open("/dev/null", "w", encoding="utf-8"), sys.stdout  # noqa: PTH123, SIM115
    stream.close()
    sys.stdout = stream
    try:
        with pytest.raises(StorageFailed, match="operator 'out': standard output can't be written"):
            asyncio.run(printed("a"))
    finally:
        sys.stdout = before
