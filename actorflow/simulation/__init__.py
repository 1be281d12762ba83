"""The wind tunnel: the same shell and machines, in a world that a seed decides.

Open ``loop.py`` first: it puts the steps of a program in order.  ``world.py`` starts processes in a universe and takes
their world away again, ``weather.py`` says what can go wrong, ``objects.py`` and ``disk.py`` are where it goes wrong,
``digest.py`` tells whether two runs were the same.  Nothing here is known to the runtime.

    async def story() -> str:
        universe = Universe(seed=7, weather=[Kill(After("CheckpointAcknowledged", occurrence=2))])
        process = await universe.start("p", main)  # async def main(world: World) -> …
        assert (await process.wait()).ending is Ending.KILLED
        again = await universe.start("p", main)  # the same machine: its files are still there
        (await again.wait()).result()
        return journal_digest(universe.journal)

    simulation.run(story, seed=7)
"""

from actorflow.simulation.digest import digest_of_digests, journal_digest
from actorflow.simulation.loop import Deadlock, Overdue, SimulatedLoop, run
from actorflow.simulation.process import Ending, Outcome, Process
from actorflow.simulation.steps import Severed
from actorflow.simulation.world import Machine, Universe

__all__ = (
    "Deadlock",
    "Ending",
    "Machine",
    "Outcome",
    "Overdue",
    "Process",
    "Severed",
    "SimulatedLoop",
    "Universe",
    "digest_of_digests",
    "journal_digest",
    "run",
)
