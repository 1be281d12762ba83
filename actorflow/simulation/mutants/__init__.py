"""Planted faults: does the swarm find what is really broken?

Each is small, has a name, and replaces one decision or step from outside; production code has no switch for any of
them.  They are what says that storms are worth anything: a swarm that does not find a lost answer taken for a yes would
not find ours either.

    from actorflow.simulation.mutants import MUTANTS, hunt, hunt_one

    hunt_one("commits-before-the-manifest")  # after how many seeds: 3
    with MUTANTS["position-off-by-one"].planted():
        ...

``mutant.py`` says what one is, the modules beside it hold them by where they sit, ``jobs.py`` the jobs in whose storms
they are looked for, ``hunting.py`` looks.
"""

from __future__ import annotations

from actorflow.simulation.mutants import barriers, completing, delivering, owning, reading, restoring, snapshots
from actorflow.simulation.mutants.hunting import control, hunt, hunt_one, summary
from actorflow.simulation.mutants.mutant import MUTANTS, Mutant

__all__ = ("MUTANTS", "Mutant", "control", "hunt", "hunt_one", "summary")

_TOLD = (reading, barriers, snapshots, completing, owning, delivering, restoring)
"""Importing them is what fills ``MUTANTS``, in this order."""
