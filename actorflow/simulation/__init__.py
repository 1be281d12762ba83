"""The wind tunnel: the same shell and machines, in a world that a seed decides.

For a job of yours: ``check`` runs it in calm weather and in the storms of many seeds and demands that both come to the
same output and the same state.  What ``actorflow simulate`` does, as a test.

    def test_my_job_survives_anything() -> None:
        simulation.check(my_job, seeds=range(50))

A scenario says itself what goes wrong and what must be true, and is checked in the same way, by its path:
``simulation.check("scenarios/recovery/kill.toml")``.

For one story of that job, told step by step: a ``Harness`` pushes its records, holds its time in the hand, kills and
restores it.  Both come to pytest as fixtures, by a plugin (``pytest_plugin.py``).

For a program of yours: ``run`` is ``asyncio.run`` on virtual time, in an order that a seed draws.  A ``Universe`` has
machines, disks, storage and processes that can be killed; the weather says what goes wrong, and when.

    async def story() -> str:
        universe = Universe(seed=7, weather=[Kill(After("CheckpointAcknowledged", occurrence=2))])
        process = await universe.start("p", main)  # async def main(world: World) -> …
        assert (await process.wait()).ending is Ending.KILLED
        again = await universe.start("p", main)  # the same machine: its files are still there
        (await again.wait()).result()
        return journal_digest(universe.journal)

    simulation.run(story, seed=7)

For a job that reads from a log, or writes to one or to a database: ``BrokerSource``, ``BrokerSink``, ``DatabaseSink``
stand on ``universe.broker`` and ``universe.database``, which outlive every process.

For a connector or a store of yours: ``actorflow.simulation.contracts``.

**The room.** Open ``loop.py`` first: it puts the steps of a program in order.  ``world.py`` starts processes in a
universe and takes their world away again, ``weather.py`` says what can go wrong, ``objects.py``, ``disk.py``,
``broker.py`` and ``database.py`` are where it goes wrong.  ``lives.py`` lives a run from its first process to the end
of its job; ``swarm.py`` draws one from a seed, ``play.py`` takes it from a scenario.  ``oracle.py`` compares storm and
calm, ``digest.py`` tells whether two runs were the same.  ``guide.py`` chooses which storm comes next, ``shrink.py``
makes a failing one small, ``mutants/`` holds planted faults that storms must find.  ``timeline.py`` tells a run to
people, ``picture/`` draws it, with what ``levels.py`` has seen.  ``recording.py`` writes a real run down, and
``replay.py`` runs it again.  Nothing here is known to the runtime.

The door is lazy: a module loads when its name is first used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from actorflow.simulation import contracts
    from actorflow.simulation.broker_sink import BrokerSink
    from actorflow.simulation.broker_source import BrokerSource
    from actorflow.simulation.database_sink import DatabaseSink
    from actorflow.simulation.digest import digest_of_digests, journal_digest
    from actorflow.simulation.harness import Harness
    from actorflow.simulation.loop import Deadlock, Overdue, SimulatedLoop, run
    from actorflow.simulation.oracle import Report, SeedFailed, check
    from actorflow.simulation.process import Ending, Outcome, Process
    from actorflow.simulation.steps import Severed
    from actorflow.simulation.virtual_clock import VirtualClock
    from actorflow.simulation.weather import (
        After,
        At,
        Drift,
        FailDisk,
        FailObjects,
        FailRequests,
        Jump,
        Kill,
        LoseAnswer,
        LoseAnswers,
        LoseDisk,
        LoseDiskAnswer,
        Moment,
        OnBroker,
        OnDatabase,
        OnDisk,
        OnObject,
        Partition,
        Pause,
        PowerCut,
        Raise,
        Replace,
        Rewind,
        Service,
        Slow,
        SlowDisk,
        SlowObjects,
        SlowRequests,
        Stall,
        Stop,
        StruckByWeather,
        TearDisk,
        TearObjects,
        Trigger,
        Way,
        Weather,
    )
    from actorflow.simulation.world import Machine, Universe

__all__ = (
    "After",
    "At",
    "BrokerSink",
    "BrokerSource",
    "DatabaseSink",
    "Deadlock",
    "Drift",
    "Ending",
    "FailDisk",
    "FailObjects",
    "FailRequests",
    "Harness",
    "Jump",
    "Kill",
    "LoseAnswer",
    "LoseAnswers",
    "LoseDisk",
    "LoseDiskAnswer",
    "Machine",
    "Moment",
    "OnBroker",
    "OnDatabase",
    "OnDisk",
    "OnObject",
    "Outcome",
    "Overdue",
    "Partition",
    "Pause",
    "PowerCut",
    "Process",
    "Raise",
    "Replace",
    "Report",
    "Rewind",
    "SeedFailed",
    "Service",
    "Severed",
    "SimulatedLoop",
    "Slow",
    "SlowDisk",
    "SlowObjects",
    "SlowRequests",
    "Stall",
    "Stop",
    "StruckByWeather",
    "TearDisk",
    "TearObjects",
    "Trigger",
    "Universe",
    "VirtualClock",
    "Way",
    "Weather",
    "check",
    "contracts",
    "digest_of_digests",
    "journal_digest",
    "run",
)

_BESIDE_WEATHER = {
    "BrokerSink": "broker_sink",
    "BrokerSource": "broker_source",
    "DatabaseSink": "database_sink",
    "Deadlock": "loop",
    "Ending": "process",
    "Harness": "harness",
    "Machine": "world",
    "Outcome": "process",
    "Overdue": "loop",
    "Process": "process",
    "Report": "oracle",
    "SeedFailed": "oracle",
    "Severed": "steps",
    "SimulatedLoop": "loop",
    "Universe": "world",
    "VirtualClock": "virtual_clock",
    "check": "oracle",
    "digest_of_digests": "digest",
    "journal_digest": "digest",
    "run": "loop",
}
"""Which module a name comes from; those that are not here are weather."""


def __getattr__(name: str) -> Any:
    if name == "contracts":
        return import_module("actorflow.simulation.contracts")
    if name not in __all__:
        raise AttributeError(f"module 'actorflow.simulation' has no attribute {name!r}; it has {', '.join(__all__)}")
    module = import_module(f"actorflow.simulation.{_BESIDE_WEATHER.get(name, 'weather')}")
    value = globals()[name] = getattr(module, name)
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
