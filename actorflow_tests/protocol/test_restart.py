from __future__ import annotations

from typing import Any

import pytest

from actorflow.protocol.machine import Machine, replay
from actorflow.protocol.restart import (
    AttemptFailed,
    ExponentialDelayStrategy,
    FailureRateStrategy,
    FixedDelayStrategy,
    GaveUp,
    GiveUp,
    NoRestartStrategy,
    RestartAfter,
    RestartDue,
    RestartStrategy,
    Steady,
)
from actorflow_tests.protocol.walking import walk

HOUR_MS = 3_600_000


def delays(strategy: RestartStrategy, count: int, *, draw: float = 0.5) -> list[int]:
    """Fail again a moment after each restart was due; the delays."""
    now_ms, seen = 1_000_000, []
    for _ in range(count):
        [effect] = strategy.on(AttemptFailed(now_ms, draw))
        assert isinstance(effect, RestartAfter)
        seen.append(effect.delay_ms)
        now_ms += effect.delay_ms + 1
    return seen


def gave_up(effects: list[Any]) -> bool:
    [effect] = effects
    return isinstance(effect, GiveUp)


@pytest.mark.parametrize(
    "strategy",
    [
        NoRestartStrategy(),
        FixedDelayStrategy(attempts=2, delay_ms=3),
        FailureRateStrategy(max_failures=1, interval_ms=4, delay_ms=3),
        ExponentialDelayStrategy(initial_ms=2, max_ms=6, multiplier=2, reset_ms=9, jitter=0.5, attempts=2),
    ],
    ids=lambda strategy: type(strategy).__name__,
)
def test_the_tables_tell_every_edge_of_a_small_world_and_no_other(strategy: RestartStrategy) -> None:
    def moves(machine: RestartStrategy) -> list[AttemptFailed]:
        now_ms = machine.phase.at_ms if isinstance(machine.phase, RestartDue) else 100
        failures = [AttemptFailed(now_ms + after_ms, draw) for after_ms in (-1, 0, 1, 9, 10) for draw in (0.0, 0.99)]
        return [*failures, AttemptFailed(now_ms, recoverable=False)]

    def watch(machine: RestartStrategy, event: AttemptFailed, effects: list[Any]) -> None:
        [effect] = effects
        match machine.phase, effect:
            case GaveUp(reason), GiveUp(said):
                assert reason == said
            case RestartDue(at_ms), RestartAfter(delay_ms):
                assert at_ms == event.at_ms + delay_ms
                assert 0 <= delay_ms <= 6
            case phase, _:
                raise AssertionError(f"{effect} in {phase}")

    walk(strategy, moves, depth=4, watch=watch).compare(type(strategy))


def test_none_gives_up_at_once() -> None:
    assert gave_up(NoRestartStrategy().on(AttemptFailed(0)))


@pytest.mark.parametrize(
    "strategy",
    [FixedDelayStrategy(), FailureRateStrategy(), ExponentialDelayStrategy()],
    ids=lambda s: type(s).__name__,
)
def test_a_failure_that_no_restart_mends_is_the_end_under_every_strategy(strategy: RestartStrategy) -> None:
    assert isinstance(strategy.phase, Steady)
    assert gave_up(strategy.on(AttemptFailed(0, recoverable=False)))
    assert gave_up(strategy.on(AttemptFailed(9 * HOUR_MS)))
    assert strategy.restarts == 0


# ── fixed delay ──────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("attempts", [0, 1, 3])
def test_fixed_delay_grants_as_many_restarts_as_it_says(attempts: int) -> None:
    strategy = FixedDelayStrategy(attempts=attempts, delay_ms=700)

    assert delays(strategy, attempts) == [700] * attempts
    assert gave_up(strategy.on(AttemptFailed(9 * HOUR_MS)))
    assert strategy.restarts == attempts


# ── failure rate ─────────────────────────────────────────────────────────────────────────────


def test_failure_rate_survives_as_many_failures_in_an_interval_and_not_one_more() -> None:
    strategy = FailureRateStrategy(max_failures=2, interval_ms=60_000, delay_ms=50)

    assert strategy.on(AttemptFailed(0)) == [RestartAfter(50)]
    assert strategy.on(AttemptFailed(30_000)) == [RestartAfter(50)]
    assert gave_up(strategy.on(AttemptFailed(59_999)))


@pytest.mark.parametrize(("third_ms", "survives"), [(60_000, False), (60_001, True)])
def test_failure_rate_counts_a_failure_at_the_very_end_of_the_interval(third_ms: int, survives: bool) -> None:
    strategy = FailureRateStrategy(max_failures=2, interval_ms=60_000)
    strategy.on(AttemptFailed(0))
    strategy.on(AttemptFailed(30_000))

    assert gave_up(strategy.on(AttemptFailed(third_ms))) != survives


def test_failure_rate_forgets_what_lies_behind_the_interval() -> None:
    strategy = FailureRateStrategy(max_failures=1, interval_ms=60_000)

    for number in range(100):
        assert strategy.on(AttemptFailed(number * 60_001)) == [RestartAfter(1_000)]


# ── exponential delay ────────────────────────────────────────────────────────────────────────


def test_exponential_delay_follows_the_sequence_INV_11_3() -> None:
    strategy = ExponentialDelayStrategy(jitter=0)

    assert delays(strategy, 13) == [
        1_000, 1_500, 2_250, 3_375, 5_062, 7_593, 11_390, 17_085, 25_628, 38_443, 57_665, 60_000, 60_000,
    ]  # fmt: skip
    assert strategy.restarts == 13


def test_a_failure_before_the_pending_restart_is_merged_into_it_and_not_counted() -> None:
    strategy = ExponentialDelayStrategy(jitter=0)

    assert strategy.on(AttemptFailed(10_000)) == [RestartAfter(1_000)]
    assert strategy.on(AttemptFailed(10_400)) == [RestartAfter(600)]
    assert strategy.on(AttemptFailed(11_000)) == [RestartAfter(0)]
    assert strategy.restarts == 1
    assert strategy.on(AttemptFailed(11_001)) == [RestartAfter(1_500)]
    assert strategy.restarts == 2


@pytest.mark.parametrize(("since_due_ms", "delay_ms"), [(HOUR_MS - 1, 2_250), (HOUR_MS, 1_000)])
def test_the_delay_starts_over_once_the_threshold_has_passed_since_the_last_restart_was_due(
    since_due_ms: int, delay_ms: int
) -> None:
    strategy = ExponentialDelayStrategy(jitter=0)
    strategy.on(AttemptFailed(0))
    strategy.on(AttemptFailed(1_001))  # due at 2,501

    assert strategy.on(AttemptFailed(2_501 + since_due_ms)) == [RestartAfter(delay_ms)]


def test_the_threshold_counts_from_the_scheduled_restart_and_not_from_the_failure() -> None:
    strategy = ExponentialDelayStrategy(jitter=0, reset_ms=1_200)
    strategy.on(AttemptFailed(0))  # due at 1,000

    assert strategy.on(AttemptFailed(1_300)) == [RestartAfter(1_500)]


@pytest.mark.parametrize(
    ("draw", "delay_ms"), [(0.0, 1_350), (0.25, 1_425), (0.5, 1_500), (0.75, 1_575), (0.9999, 1_650)]
)
def test_jitter_is_a_uniform_whole_number_around_the_delay(draw: float, delay_ms: int) -> None:
    assert delays(ExponentialDelayStrategy(jitter=0.1), 2, draw=draw)[1] == delay_ms


def test_every_whole_number_of_the_jitter_is_as_likely_as_any_other() -> None:
    seen = [delays(ExponentialDelayStrategy(initial_ms=20, jitter=0.1), 2, draw=step / 700)[1] for step in range(700)]

    assert {delay_ms: seen.count(delay_ms) for delay_ms in range(27, 34)} == dict.fromkeys(range(27, 34), 100)


def test_jitter_never_leaves_the_bounds() -> None:
    low = delays(ExponentialDelayStrategy(jitter=0.9), 20, draw=0.0)
    high = delays(ExponentialDelayStrategy(jitter=0.9), 20, draw=0.9999)

    assert min(low) == 1_000
    assert max(high) == 60_000


def test_attempts_bound_the_restarts_in_a_row() -> None:
    strategy = ExponentialDelayStrategy(jitter=0, attempts=2)

    assert delays(strategy, 2) == [1_000, 1_500]
    assert gave_up(strategy.on(AttemptFailed(1_010_000)))


def test_a_reset_grants_the_attempts_anew() -> None:
    strategy = ExponentialDelayStrategy(jitter=0, attempts=1, reset_ms=5_000)

    for number in range(10):
        assert strategy.on(AttemptFailed(number * 6_000)) == [RestartAfter(1_000)]


def test_a_job_may_fail_for_ever() -> None:
    strategy = ExponentialDelayStrategy(multiplier=10)
    strategy.attempt = 100_000

    assert strategy.on(AttemptFailed(0)) == [RestartAfter(60_000)]


def test_a_story_of_restarts_can_be_told_again() -> None:
    strategy: Machine[Any, Any] = ExponentialDelayStrategy()
    for at_ms, draw in ((0, 0.1), (5_000, 0.7), (5_001, 0.2)):
        strategy.on(AttemptFailed(at_ms, draw))

    assert replay(ExponentialDelayStrategy, strategy.story).phase == strategy.phase
