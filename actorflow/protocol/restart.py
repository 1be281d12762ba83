"""An attempt failed: again, and when?

Four strategies, with the sequences of Flink.  A failure that no repetition can mend ends the job under each of them.

*None* gives up.  *Fixed delay* grants a number of restarts.  *Failure rate* grants a number of failures within any
interval of a given length.  *Exponential delay* waits longer each time, up to a limit, and starts over once the reset
threshold has passed since its last restart was due; a failure that comes before the pending restart is merged into it.

Pure: time and chance come with the event.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections import deque
from dataclasses import dataclass

from actorflow.protocol.machine import Machine

__all__ = (
    "AttemptFailed",
    "Effect",
    "ExponentialDelayStrategy",
    "FailureRateStrategy",
    "FixedDelayStrategy",
    "GaveUp",
    "GiveUp",
    "NoRestartStrategy",
    "RestartAfter",
    "RestartDue",
    "RestartStrategy",
    "Steady",
)


@dataclass(frozen=True, slots=True)
class AttemptFailed:
    """An attempt failed; ``draw`` from [0, 1) decides the jitter, ``recoverable`` whether trying again can help."""

    at_ms: int
    draw: float = 0.5
    recoverable: bool = True


@dataclass(frozen=True, slots=True)
class RestartAfter:
    """Start the next attempt after this delay, instead of any that is already due."""

    delay_ms: int


@dataclass(frozen=True, slots=True)
class GiveUp:
    """The job failed for good; ``reason`` is a sentence."""

    reason: str


Effect = RestartAfter | GiveUp


@dataclass(frozen=True, slots=True)
class Steady:
    """No attempt has failed yet."""


@dataclass(frozen=True, slots=True)
class RestartDue:
    """The latest restart was or is due at this time."""

    at_ms: int


@dataclass(frozen=True, slots=True)
class GaveUp:
    """There is no next attempt."""

    reason: str


class RestartStrategy(Machine[AttemptFailed, Effect]):
    """What all strategies share; ``restarts`` counts those that were granted, merged ones once.

    | phase              | event                           | effects → next phase        |
    |--------------------|---------------------------------|-----------------------------|
    | GaveUp             | AttemptFailed                   | GiveUp → GaveUp             |
    | Steady, RestartDue | AttemptFailed [not recoverable] | GiveUp → GaveUp             |
    | Steady, RestartDue | AttemptFailed                   | as the strategy itself says |
    """

    __slots__ = ("restarts",)

    phase: Steady | RestartDue | GaveUp

    def __init__(self) -> None:
        super().__init__(Steady())
        self.restarts = 0

    def decide(self, event: AttemptFailed) -> list[Effect]:
        if isinstance(self.phase, GaveUp):
            return [GiveUp(self.phase.reason)]
        if not event.recoverable:
            return self._give_up("the failure is of a kind that a restart can't mend")
        return self._again(event)

    @abstractmethod
    def _again(self, event: AttemptFailed) -> list[Effect]:
        """Decide about a failure that a restart may mend."""

    def _restart(self, at_ms: int, delay_ms: int) -> list[Effect]:
        self.restarts += 1
        self.phase = RestartDue(at_ms + delay_ms)
        return [RestartAfter(delay_ms)]

    def _give_up(self, reason: str) -> list[Effect]:
        self.phase = GaveUp(reason)
        return [GiveUp(reason)]

    def check(self) -> None:
        assert self.restarts >= 0
        assert not (isinstance(self.phase, Steady) and self.restarts), "restarted and yet nothing failed"


class NoRestartStrategy(RestartStrategy):
    """Never again.

    | phase  | event         | effects → next phase |
    |--------|---------------|----------------------|
    | Steady | AttemptFailed | GiveUp → GaveUp      |
    | GaveUp | AttemptFailed | GiveUp → GaveUp      |
    """

    __slots__ = ()

    def _again(self, event: AttemptFailed) -> list[Effect]:
        return self._give_up("no restart strategy is set")


class FixedDelayStrategy(RestartStrategy):
    """A number of times, always after the same delay.

    | phase              | event         | effects → next phase      |
    |--------------------|---------------|---------------------------|
    | Steady, RestartDue | AttemptFailed | RestartAfter → RestartDue |
    | Steady, RestartDue | AttemptFailed | GiveUp → GaveUp           |
    | GaveUp             | AttemptFailed | GiveUp → GaveUp           |
    """

    __slots__ = ("attempts", "delay_ms", "failures")

    def __init__(self, attempts: int = 1, delay_ms: int = 1_000) -> None:
        super().__init__()
        self.attempts, self.delay_ms = attempts, delay_ms
        self.failures = 0

    def _again(self, event: AttemptFailed) -> list[Effect]:
        self.failures += 1
        if self.failures > self.attempts:
            return self._give_up(f"it failed {self.failures} times and {self.attempts} restarts are granted")
        return self._restart(event.at_ms, self.delay_ms)


class FailureRateStrategy(RestartStrategy):
    """As long as no more than ``max_failures`` fall into any ``interval_ms``.

    | phase              | event         | effects → next phase      |
    |--------------------|---------------|---------------------------|
    | Steady, RestartDue | AttemptFailed | RestartAfter → RestartDue |
    | Steady, RestartDue | AttemptFailed | GiveUp → GaveUp           |
    | GaveUp             | AttemptFailed | GiveUp → GaveUp           |
    """

    __slots__ = ("delay_ms", "failed_at_ms", "interval_ms", "max_failures")

    def __init__(self, max_failures: int = 1, interval_ms: int = 60_000, delay_ms: int = 1_000) -> None:
        super().__init__()
        self.max_failures, self.interval_ms, self.delay_ms = max_failures, interval_ms, delay_ms
        self.failed_at_ms: deque[int] = deque(maxlen=max_failures + 1)

    def _again(self, event: AttemptFailed) -> list[Effect]:
        self.failed_at_ms.append(event.at_ms)
        within_ms = event.at_ms - self.failed_at_ms[0]
        if len(self.failed_at_ms) > self.max_failures and within_ms <= self.interval_ms:
            return self._give_up(
                f"it failed {len(self.failed_at_ms)} times within {within_ms} ms; at most {self.max_failures} times "
                f"within {self.interval_ms} ms are granted"
            )
        return self._restart(event.at_ms, self.delay_ms)

    def check(self) -> None:
        super().check()
        assert len(self.failed_at_ms) <= self.max_failures + 1


class ExponentialDelayStrategy(RestartStrategy):
    """Each time after a longer delay.

    | phase              | event         | effects → next phase      |
    |--------------------|---------------|---------------------------|
    | Steady, RestartDue | AttemptFailed | RestartAfter → RestartDue |
    | Steady, RestartDue | AttemptFailed | GiveUp → GaveUp           |
    | GaveUp             | AttemptFailed | GiveUp → GaveUp           |
    """

    __slots__ = ("attempt", "attempts", "initial_ms", "jitter", "max_ms", "multiplier", "reset_ms")

    def __init__(
        self,
        initial_ms: int = 1_000,
        max_ms: int = 60_000,
        multiplier: float = 1.5,
        reset_ms: int = 3_600_000,
        jitter: float = 0.1,
        attempts: int | None = None,
    ) -> None:
        super().__init__()
        self.initial_ms, self.max_ms, self.multiplier = initial_ms, max_ms, float(multiplier)
        self.reset_ms, self.jitter, self.attempts = reset_ms, jitter, attempts
        self.attempt = 0  # restarts since the delay was last reset

    def _again(self, event: AttemptFailed) -> list[Effect]:
        if isinstance(self.phase, RestartDue):
            due_ms = self.phase.at_ms
            if event.at_ms <= due_ms:
                return [RestartAfter(due_ms - event.at_ms)]
            if event.at_ms - due_ms >= self.reset_ms:  # from the last scheduled restart, not from the last failure
                self.attempt = 0
        delay_ms = self._delay_ms(event.draw)
        self.attempt += 1
        if self.attempts is not None and self.attempt > self.attempts:
            return self._give_up(
                f"it failed {self.attempt} times without running for {self.reset_ms} ms in between, and "
                f"{self.attempts} restarts are granted"
            )
        return self._restart(event.at_ms, delay_ms)

    def _delay_ms(self, draw: float) -> int:
        try:
            base_ms = int(self.initial_ms * self.multiplier**self.attempt)
        except OverflowError:
            return max(self.initial_ms, self.max_ms)
        widest_ms = math.floor(base_ms * self.jitter)
        jitter_ms = int(draw * (2 * widest_ms + 1)) - widest_ms
        return max(self.initial_ms, min(base_ms + jitter_ms, self.max_ms))

    def check(self) -> None:
        super().check()
        assert self.attempt >= 0
