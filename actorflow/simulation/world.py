"""What is shared by all processes of a simulated run, and how do they live and die in it?

A :class:`Universe` is one run's outside: machines with their disks and clocks, object stores, the journal of all
processes, and the weather.  A process is started in it with a world of its own; killing one *severs* that world before
anything else happens, because a killed process runs no ``finally``.

    async def story() -> str:
        universe = Universe(seed=7, weather=[Kill(After("CheckpointCompleted", occurrence=2), "p")])
        first = await universe.start("p", main)            # async def main(world: World) -> …
        assert (await first.wait()).ending is Ending.KILLED
        again = await universe.start("p", main)            # the same machine: its files are still there
        (await again.wait()).result()
        return journal_digest(universe.journal)

    simulation.run(story, seed=7)
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Sequence
from contextvars import copy_context
from typing import TYPE_CHECKING, Any

from actorflow.abc.world import World
from actorflow.model.ids import ActorId
from actorflow.model.journal import ActorStarted, CalmBegan, Entry, Line, WeatherStruck
from actorflow.simulation.chance import Chance
from actorflow.simulation.disk import Platter
from actorflow.simulation.levels import watch
from actorflow.simulation.loop import SimulatedLoop
from actorflow.simulation.objects import Shelf
from actorflow.simulation.process import Ending, Outcome, Process
from actorflow.simulation.seams import world_of
from actorflow.simulation.sky import Sky
from actorflow.simulation.steps import Severed, current_process
from actorflow.simulation.weather import (
    After,
    At,
    Drift,
    FailDisk,
    FailObjects,
    FailRequests,
    Jump,
    Kill,
    LoseDisk,
    Partition,
    Pause,
    PowerCut,
    Raise,
    Replace,
    Rewind,
    Service,
    Slow,
    Stall,
    Stop,
    Weather,
)

if TYPE_CHECKING:
    from actorflow.simulation.broker import Broker
    from actorflow.simulation.database import Database

__all__ = ("Ending", "Machine", "Outcome", "Process", "Universe")

_EPOCH_MS = 1_767_225_600_000
"""What wall clocks show when a universe begins: the first instant of 2026."""

_UNWINDING_ROUNDS = 1_000
"""Rounds of the loop that the code of a dead process may take to unwind; what is left then is buried alive."""

_CANCEL_EVERY = 50
"""Rounds after which what is still there is cancelled once more."""


class Machine:
    """A disk and a wall clock, shared by the processes of one machine."""

    def __init__(self, name: str, loop: SimulatedLoop) -> None:
        self.name, self._loop = name, loop
        self.platter = Platter()
        self._offset_ms, self._ppm, self._since_ms = 0, 0, 0

    def _now_ms(self) -> int:
        return int(self._loop.time() * 1e3 + 1e-6)

    def wall_ms(self) -> int:
        """What its wall clock shows."""
        now = self._now_ms()
        return _EPOCH_MS + now + self._offset_ms + (now - self._since_ms) * self._ppm // 1_000_000

    def jump(self, by_ms: int) -> None:
        """Set its wall clock forward or back."""
        self._offset_ms += by_ms

    def drift(self, ppm: int) -> None:
        """Let its wall clock run fast, or slow."""
        now = self._now_ms()
        self._offset_ms += (now - self._since_ms) * self._ppm // 1_000_000
        self._ppm, self._since_ms = ppm, now


class Universe:
    """Everything outside of the processes of one simulated run; made inside of it.

    ``batch_us`` is how much virtual time a batch takes at most, drawn for each; with 0 all work is done in no time.
    """

    def __init__(self, seed: int = 0, *, weather: Iterable[Weather] = (), batch_us: int = 0) -> None:
        loop = asyncio.get_running_loop()
        assert isinstance(loop, SimulatedLoop), "a universe lives on a simulated loop: use actorflow.simulation.run"
        self.loop, self.seed, self.batch_us = loop, seed, batch_us
        self.chance = Chance(seed, "universe")
        self.context = copy_context()
        self.context.run(current_process.set, None)
        self.journal: list[Line] = []
        self.machines: dict[str, Machine] = {}
        self.processes: dict[str, Process] = {}
        self.sky = Sky()
        self.failing: list[Raise] = []
        self._later: list[Weather] = []
        self._missed: list[Weather] = []
        self.slowing: list[tuple[float, Slow]] = []
        self.stalled: dict[Service, float] = {}
        self._shelves: dict[str, Shelf] = {}
        self._outside: dict[Service, Broker | Database] = {}
        self._incarnations: dict[str, int] = {}
        self._began = loop.time()
        self._calm = False
        self._readers: list[tuple[Callable[[Line], None], tuple[type[Entry], ...]]] = []
        self._readers_of: dict[type[Entry], list[Callable[[Line], None]]] = {}
        self.watched = watch(self)
        for fault in weather:
            self.expect(fault)

    # ── what there is ──

    def now_ms(self) -> int:
        """Virtual milliseconds, as the processes' monotonic clocks show them."""
        return int(self.loop.time() * 1e3 + 1e-6)

    def machine(self, name: str = "m1") -> Machine:
        """Return a machine; one that is not there yet is set up."""
        if name not in self.machines:
            self.machines[name] = Machine(name, self.loop)
        return self.machines[name]

    def shelf(self, bucket: str) -> Shelf:
        """Return what is in the object store ``s3://<bucket>``."""
        return self._shelves.setdefault(bucket, Shelf())

    @property
    def broker(self) -> Broker:
        """The broker that all processes reach; it is set up when it is first asked for."""
        from actorflow.simulation.broker import Broker

        broker = self._outside.get(Service.BROKER)
        if broker is None:
            broker = self._outside[Service.BROKER] = Broker(self.now_ms)
        assert isinstance(broker, Broker)
        return broker

    @property
    def database(self) -> Database:
        """The database that all processes reach; it is set up when it is first asked for."""
        from actorflow.simulation.database import Database

        database = self._outside.get(Service.DATABASE)
        if database is None:
            database = self._outside[Service.DATABASE] = Database(self.now_ms)
        assert isinstance(database, Database)
        return database

    async def settle(self) -> None:
        """Return when no transaction of whoever is gone holds up what others see: the outside ends them in time."""
        for outside in list(self._outside.values()):
            until_ms = outside.unsettled_until_ms()
            if until_ms is not None:
                await asyncio.sleep(max(1, until_ms - self.now_ms()) / 1_000)

    def record(self, process: str, entry: Entry) -> Line:
        """Add a line to the journal."""
        line = Line(len(self.journal) + 1, self.now_ms(), process, entry)
        self.journal.append(line)
        kind = type(entry)
        if (readers := self._readers_of.get(kind)) is None:
            readers = self._readers_of[kind] = [one for one, kinds in self._readers if not kinds or kind in kinds]
        for reader in readers:
            reader(line)
        return line

    def subscribe(self, reader: Callable[[Line], None], *kinds: type[Entry]) -> None:
        """Let somebody outside of all processes read the journal as it grows: entries of some kinds, or all."""
        self._readers.append((reader, kinds))
        self._readers_of = {}

    # ── processes ──

    def process(self, name: str, machine: str = "m1") -> Process:
        """Return a new process that nobody runs: its ``world`` can be used by the test itself, until it is killed."""
        running = self.processes.get(name)
        if running is not None and running.is_alive:
            assert running.replaced.is_set(), f"process {name!r} is still running: kill it or wait for its end"
            self.processes[running.identity] = running  # it is still there, for all that happens to its machine
        self._incarnations[name] = self._incarnations.get(name, 0) + 1
        process = Process(self, name, self.machine(machine), self._incarnations[name])
        process.world = world_of(process)
        self.processes[name] = process
        return process

    def world(self, name: str, machine: str = "m1") -> World:
        """Return the world of a new process that the test itself plays."""
        return self.process(name, machine).world

    async def start(
        self, name: str, function: Callable[..., Awaitable[Any]], *args: Any, machine: str = "m1"
    ) -> Process:
        """Start a process that runs ``function(world, *args)``."""
        process = self.process(name, machine)
        process.root = self.loop.create_task(
            self._live(process, function, args), name=process.identity, context=process.context
        )
        return process

    async def _live(self, process: Process, function: Callable[..., Awaitable[Any]], args: tuple[Any, ...]) -> None:
        try:
            process.check()
            value = await function(process.world, *args)
        except (KeyboardInterrupt, SystemExit):
            raise
        except BaseException as error:  # how a process ends is told by its outcome
            if process.severed:
                return
            if isinstance(error, (asyncio.CancelledError, Severed)):
                self._sever(process, Outcome(Ending.KILLED))  # the whole run is being closed
                process.ended.set()
                raise
            self._end(process, Outcome(Ending.RAISED, error=error))
        else:
            if not process.severed:
                self._end(process, Outcome(Ending.RETURNED, value))

    def kill(self, process: Process, step: str = "") -> None:
        """End a process as ``kill -9`` would."""
        if process.is_alive:
            self.weather_struck("kill", process.name, step)
            self._end(process, Outcome(Ending.KILLED))

    def _end(self, process: Process, outcome: Outcome) -> None:
        """Sever first; then whatever is left of it unwinds, and has no effect."""
        self._sever(process, outcome)
        for task in self.loop.tasks_of(process):
            if task.has_begun:
                task.cancel()
        process.undertaker = self.loop.create_task(
            self._unwind(process), name=f"{process.identity} unwinds", context=self.context
        )

    def _sever(self, process: Process, outcome: Outcome) -> None:
        process.severed = True
        process.outcome = outcome
        process.doom = None
        process.settle()
        self.loop.settle_work(process)
        self.loop.resume(process)

    async def _unwind(self, process: Process) -> None:
        rounds = 0
        # What was handed to a task that is cancelled before its first step would never be awaited, and say so.
        young = [task for task in self.loop.tasks_of(process) if not task.has_begun]
        while (tasks := self.loop.tasks_of(process)) and rounds < _UNWINDING_ROUNDS:
            for _ in range(_CANCEL_EVERY):
                if all(task.done() for task in tasks):
                    break
                rounds += 1
                await asyncio.sleep(0)
                for task in [task for task in young if task.has_begun]:
                    young.remove(task)
                    task.cancel()
            else:
                for task in tasks:
                    task.cancel()
        if tasks:
            self.loop.bury(process)
        process.ended.set()

    def power_cut(self, machine: str = "m1", step: str = "", *, lose_disk: bool = False) -> None:
        """Kill all processes of a machine, and let its disk forget what was not synced, or all it had."""
        found = self.machine(machine)
        self.weather_struck("lose_disk" if lose_disk else "power_cut", machine, step)
        for process in list(self.processes.values()):
            if process.machine is found and process.is_alive:
                self._end(process, Outcome(Ending.KILLED))
        if lose_disk:
            found.platter.wipe()
        else:
            found.platter.cut_power(self.chance.scoped("power", machine))

    def pause(self, process: Process, ms: int) -> None:
        """Let a process stall."""
        if not process.is_alive:
            return
        self.weather_struck("pause", process.name)
        until = self.loop.time() + ms / 1e3
        process.paused_until = max(process.paused_until, until)
        self.loop.pause(process)
        self.loop.call_at(until, self._resume, process, context=self.context)

    def _resume(self, process: Process) -> None:
        if process.paused_until <= self.loop.time():
            self.loop.resume(process)

    # ── weather ──

    def expect(self, weather: Weather) -> None:
        """Add a fault to those that are still to come."""
        if isinstance(weather.when, At):
            at = self._began + weather.when.ms / 1e3
            self.loop.call_at(max(at, self.loop.time()), self._due, weather, None, context=self.context)
        else:
            self.sky.expect(weather)

    def calm(self) -> None:
        """Let the weather lift: nothing strikes any more, and what lies in wait is forgotten."""
        self._calm = True
        self.sky.clear()
        self.failing.clear()
        self.slowing.clear()
        self.stalled.clear()
        for process in self.processes.values():
            process.cut_off.clear()
        self.record("", CalmBegan())

    def weather_struck(self, verb: str, target: str = "", step: str = "") -> None:
        """Tell the journal that a fault took effect."""
        line = self.record("", WeatherStruck(verb=verb, target=target, step=step))
        self.strike_after(line, None)

    def strike_after(self, line: Line, process: Process | None) -> None:
        """Let strike what was waiting for this line of the journal."""
        for weather in self.sky.after(line):
            trigger = weather.when
            assert isinstance(trigger, After)
            if trigger.later_ms:
                self._later.append(weather)
                self.loop.call_later(trigger.later_ms / 1e3, self._due, weather, process, context=self.context)
            else:
                self.strike(weather, process)

    def strike_all(self, weather: Sequence[Weather], process: Process) -> None:
        """Let several faults strike now."""
        for fault in weather:
            self.strike(fault, process)

    def strike_soon(self, weather: Sequence[Weather], process: Process) -> None:
        """Let several faults strike a moment from now, before time goes on."""
        for fault in weather:
            self.loop.call_soon(self._due, fault, process, context=self.context)

    def _due(self, weather: Weather, process: Process | None) -> None:
        if not self._calm:
            self._later = [one for one in self._later if one is not weather]
            self.strike(weather, process)

    @property
    def missed(self) -> list[Weather]:
        """What was due and found nobody, or would have been due later."""
        return [*self._missed, *self._later]

    def strike(self, weather: Weather, process: Process | None = None) -> None:
        """Let a fault take effect now; ``process`` is where its trigger occurred."""
        match weather:
            case Kill(process=name, step=step):
                if (target := self._living(weather, name, process)) is not None:
                    self.kill(target, step)
            case PowerCut(machine=name, step=step) | LoseDisk(machine=name, step=step):
                if (hit := name or (process.machine.name if process else None)) is not None:
                    self.power_cut(hit, step, lose_disk=isinstance(weather, LoseDisk))
            case Pause(process=name, ms=ms):
                if (target := self._living(weather, name, process)) is not None:
                    self.pause(target, ms)
            case Stop(process=name):
                if (target := self._living(weather, name, process)) is not None:
                    self.weather_struck("stop", target.name)
                    target.asked_to_stop.set()
            case Replace(process=name, ms=ms):
                if (target := self._living(weather, name, process)) is not None:
                    self.weather_struck("replace", target.name)
                    self.pause(target, ms)
                    target.replaced.set()
            case Partition(process=name, ms=ms, way=way, service=service):
                if (target := self._living(weather, name, process)) is not None:
                    until = self.loop.time() + ms / 1e3
                    target.cut_off.update((each, (until, way)) for each in Service if service in {None, each})
                    self.weather_struck("partition", target.name)
            case Stall(service=service, ms=ms):
                self.stalled[service] = self.loop.time() + ms / 1e3
                self.weather_struck("stall", service.value)
            case Rewind(service=service, pattern=pattern, count=count):
                outside = self._outside.get(service)
                for lost in [] if outside is None else outside.rewind(pattern, count):
                    self.weather_struck("rewind", lost)
            case Raise():
                self.failing.append(weather)
            case Slow(operator=operator, for_ms=for_ms):
                self.slowing.append((self.loop.time() + for_ms / 1e3, weather))
                self.weather_struck("slow", operator)
            case FailObjects() | FailDisk() | FailRequests():
                self.sky.lie_in_wait(weather)
            case Drift(target=name, ppm=ppm):
                if (clock := self._clock_of(name, process)) is not None:
                    clock.drift(ppm)
                    self.weather_struck("drift", clock.name)
            case Jump(target=name, by_ms=by_ms):
                if (clock := self._clock_of(name, process)) is not None:
                    clock.jump(by_ms)
                    self.weather_struck("jump", clock.name)
            case _:
                raise NotImplementedError(f"this world knows no {type(weather).__name__}")

    def _target(self, name: str | None, process: Process | None) -> Process | None:
        """The process of this name, or the one that started an actor of this name last, or some actor at all."""
        if name is None or name in self.processes:
            return process if name is None else self.processes[name]
        base, _, number = name.rpartition("-")
        if base in self.processes and number.isdecimal():
            return None  # one that was not started beside the first yet
        started = [line for line in self.journal if isinstance(line.entry, ActorStarted)]
        named = [line for line in started if isinstance(line.entry, ActorStarted) and line.entry.actor == name]
        runs = (named or started)[-1:]  # operators behind the first of their chain have no actor of their own name
        return self.processes.get(runs[0].process) if runs else None

    def _living(self, weather: Weather, name: str | None, process: Process | None) -> Process | None:
        """The process that a fault strikes; one that finds nobody alive has missed."""
        target = self._target(name, process)
        if target is not None and target.is_alive:
            return target
        self._missed.append(weather)
        return None

    def _clock_of(self, name: str | None, process: Process | None) -> Machine | None:
        if name is not None and name in self.machines:
            return self.machines[name]
        target = self._target(name, process)
        return None if target is None else target.machine

    def failure_for(self, actor: ActorId, operators: tuple[str, ...]) -> Raise | None:
        """Return the fault that the next batch of this actor meets, if any, and use it up."""
        for fault in self.failing:
            if fault.operator in operators and fault.subtask in {None, actor.subtask}:
                self.failing.remove(fault)
                return fault
        return None

    def slowness_for(self, operators: tuple[str, ...]) -> int:
        """Return how many milliseconds more a batch takes now."""
        now = self.loop.time()
        self.slowing = [(until, fault) for until, fault in self.slowing if until > now]
        return sum(fault.by_ms for _, fault in self.slowing if fault.operator in operators)
