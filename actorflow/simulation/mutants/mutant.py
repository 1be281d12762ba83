"""What is a planted fault?

One decision or one step of the runtime, replaced from outside, under a name, with the jobs whose storms must find it.
What is replaced is the smallest thing that makes the mistake; everything else is as it is in production, assertions
included, and those may be what finds it.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass

__all__ = ("MUTANTS", "Mutant", "mutant")


@dataclass(frozen=True, slots=True, kw_only=True)
class Mutant:
    """A fault that can be planted."""

    name: str
    broken: str
    """Which decision or step is wrong, and how."""
    seen: str
    """What a user would see of it."""
    jobs: tuple[str, ...]
    """The jobs whose storms must find it, by their names in ``jobs.py``."""
    plant: Callable[[], AbstractContextManager[None]]

    def planted(self) -> AbstractContextManager[None]:
        """Have the fault in place for as long as the block lasts."""
        return self.plant()


MUTANTS: dict[str, Mutant] = {}
"""All of them, by name, in the order in which their modules tell of them."""

Plant = Callable[[], AbstractContextManager[None]]


def mutant(*jobs: str) -> Callable[[Plant], Plant]:
    """Name a fault after the function that plants it; its docstring says what is broken, then what is seen of it."""

    def known(plant: Plant) -> Plant:
        name = plant.__name__.replace("_", "-")
        assert name not in MUTANTS, f"two mutants are called {name}"
        broken, _, seen = (plant.__doc__ or "").partition("\n\n")
        assert seen, f"mutant {name} does not say what is broken and what is seen of it"
        MUTANTS[name] = Mutant(name=name, broken=broken, seen=" ".join(seen.split()), jobs=jobs, plant=plant)
        return plant

    return known
