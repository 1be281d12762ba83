"""How does a seed become a decision, the same one on every machine and every Python?

A draw is a function of (seed, scope, purpose, how many draws of that purpose came before): it is not taken from one
stream, so that one callback more somewhere does not change the weather everywhere else.  The mixing is the finalizer of
splitmix64 over plain integers: cheap, and it can't change with a release of Python, as the ``random`` module's may.

Not for secrets.
"""

from __future__ import annotations

from zlib import crc32

__all__ = ("Chance", "mix")

_MASK = (1 << 64) - 1
_GOLDEN = 0x9E3779B97F4A7C15


def mix(*parts: int) -> int:
    """Return 64 bits that depend on every bit of every part, and on their order."""
    state = 0
    for part in parts:
        state = (state ^ (part & _MASK)) + _GOLDEN & _MASK
        state = (state ^ (state >> 30)) * 0xBF58476D1CE4E5B9 & _MASK
        state = (state ^ (state >> 27)) * 0x94D049BB133111EB & _MASK
        state ^= state >> 31
    return state


class Chance:
    """The draws of one scope: a seed and, so to say, a name."""

    __slots__ = ("_draws", "key")

    def __init__(self, seed: int, *scope: str) -> None:
        self.key = mix(seed, *(crc32(name.encode()) for name in scope))
        self._draws: dict[str, list[int]] = {}

    def scoped(self, *scope: str) -> Chance:
        """Return the draws of a scope within this one."""
        return Chance(self.key, *scope)

    def bits(self, purpose: str) -> int:
        """Draw 64 bits."""
        draws = self._draws.get(purpose)
        if draws is None:
            draws = self._draws[purpose] = [mix(self.key, crc32(purpose.encode())), 0]
        draws[1] += 1
        state = (draws[0] ^ draws[1]) + _GOLDEN & _MASK  # the last part of what `mix` does with all three
        state = (state ^ (state >> 30)) * 0xBF58476D1CE4E5B9 & _MASK
        state = (state ^ (state >> 27)) * 0x94D049BB133111EB & _MASK
        return state ^ (state >> 31)

    def uniform(self, purpose: str) -> float:
        """Draw from [0, 1)."""
        return (self.bits(purpose) >> 11) * 2.0**-53

    def below(self, purpose: str, limit: int) -> int:
        """Draw one of 0 … ``limit`` - 1."""
        return self.bits(purpose) * limit >> 64

    def between(self, purpose: str, least: int, most: int) -> int:
        """Draw one of ``least`` … ``most``, both included."""
        return least + (self.bits(purpose) * (most - least + 1) >> 64)

    def happens(self, purpose: str, probability: float = 0.5) -> bool:
        """Draw whether something happens that does so in ``probability`` of all cases."""
        return self.uniform(purpose) < probability
