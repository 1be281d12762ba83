"""Settings become the machine that they describe."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

import actorflow as af
from actorflow.config import Checkpoints, Settings
from actorflow.protocol.restart import AttemptFailed, GiveUp, RestartAfter
from actorflow.runtime.restarts import make_restart_strategy


def outcome(settings: Settings, *at_ms: int) -> list[Any]:
    strategy = make_restart_strategy(settings)
    return [effect for at in at_ms for effect in strategy.on(AttemptFailed(at_ms=at, draw=0.5))]


@pytest.mark.parametrize(
    ("restart", "failures", "expected"),
    [
        (af.NoRestart(), [0], [GiveUp]),
        (af.FixedDelay(attempts=2, delay=timedelta(seconds=3)), [0, 5_000, 10_000], [3_000, 3_000, GiveUp]),
        (
            af.FailureRate(max_failures=1, interval=timedelta(seconds=10), delay=timedelta(seconds=1)),
            [0, 20_000, 25_000],
            [1_000, 1_000, GiveUp],
        ),
        (
            af.ExponentialDelay(
                first=timedelta(milliseconds=100),
                at_most=timedelta(milliseconds=250),
                multiplier=2.0,
                jitter=0.0,
                attempts=3,
            ),
            [0, 1_000, 2_000, 3_000],
            [100, 200, 250, GiveUp],
        ),
    ],
)
def test_each_strategy_does_what_its_settings_say(restart: Any, failures: list[int], expected: list[Any]) -> None:
    found = outcome(Settings(restart=restart), *failures)
    shown = [effect.delay_ms if isinstance(effect, RestartAfter) else type(effect) for effect in found]
    assert shown == expected


def test_without_a_word_a_job_with_periodic_checkpoints_restarts_and_one_without_does_not() -> None:
    [effect] = outcome(Settings(checkpoints=Checkpoints(every=timedelta(seconds=1))), 0)
    assert effect == RestartAfter(1_000)
    [effect] = outcome(Settings(), 0)
    assert isinstance(effect, GiveUp)
