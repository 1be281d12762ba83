"""From the settings of a restart strategy to the machine that decides."""

from __future__ import annotations

from actorflow.config import ExponentialDelay, FailureRate, FixedDelay, NoRestart, Settings, milliseconds
from actorflow.protocol.restart import (
    ExponentialDelayStrategy,
    FailureRateStrategy,
    FixedDelayStrategy,
    NoRestartStrategy,
    RestartStrategy,
)

__all__ = ("make_restart_strategy",)


def make_restart_strategy(settings: Settings) -> RestartStrategy:
    """The machine of ``settings.restart_strategy``."""
    match settings.restart_strategy:
        case NoRestart():
            return NoRestartStrategy()
        case FixedDelay(attempts=attempts, delay=delay):
            return FixedDelayStrategy(attempts, milliseconds(delay))
        case FailureRate(max_failures=most, interval=interval, delay=delay):
            return FailureRateStrategy(most, milliseconds(interval), milliseconds(delay))
        case ExponentialDelay() as growing:
            return ExponentialDelayStrategy(
                milliseconds(growing.first),
                milliseconds(growing.at_most),
                growing.multiplier,
                milliseconds(growing.reset_after),
                growing.jitter,
                growing.attempts,
            )
