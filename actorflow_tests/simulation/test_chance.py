from __future__ import annotations

from actorflow.simulation.chance import Chance, mix


def test_draws_are_what_they_always_were() -> None:
    """A change here changes the meaning of every seed that anybody ever wrote down."""
    assert mix(1, 2, 3) == 0xD0734750FDE362B3
    chance = Chance(7, "weather")
    assert [chance.below("kill", 100) for _ in range(8)] == [22, 51, 34, 51, 68, 12, 40, 14]


def test_a_purpose_does_not_see_the_draws_of_others() -> None:
    alone, together = Chance(1), Chance(1)
    first = [alone.bits("a") for _ in range(5)]
    second = []
    for _ in range(5):
        together.bits("b")
        second.append(together.bits("a"))
    assert first == second


def test_scopes_and_seeds_differ() -> None:
    draws = {Chance(seed, scope).bits("x") for seed in range(50) for scope in ("a", "b")}
    assert len(draws) == 100
    assert Chance(3).scoped("p", "1").key == Chance(Chance(3).key, "p", "1").key


def test_draws_are_spread_evenly() -> None:
    chance = Chance(5)
    counts = [0] * 10
    for _ in range(10_000):
        counts[chance.between("die", 10, 19) - 10] += 1
    assert all(850 < count < 1_150 for count in counts)
    assert 4_700 < sum(chance.happens("coin") for _ in range(10_000)) < 5_300
    assert all(0 <= chance.uniform("u") < 1 for _ in range(1_000))
