"""The wind tunnel: the same shell and machines, in a world that a seed decides.

Open ``loop.py`` first: it puts the steps of a program in order.  ``world.py`` gives a simulated process its seams and
takes them away again, ``weather.py`` says what can go wrong, ``objects.py`` and ``disk.py`` are where it goes wrong.
Nothing here is known to the runtime.
"""

from actorflow.simulation.loop import Deadlock, Overdue, SimulatedLoop, run
from actorflow.simulation.steps import Severed

__all__ = ("Deadlock", "Overdue", "Severed", "SimulatedLoop", "run")
