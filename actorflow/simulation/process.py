"""What is a simulated process, and what does its death leave behind?

A process is a name, a machine and a switch.  Every seam it holds asks the switch first: once it is off, each of them
raises :class:`Severed` and has no further effect, whatever ``finally`` blocks still run.  Only then are its tasks
cancelled.

Operations that leave the process (on disk, on the wire) arrive after a while, in the world's own time, whether the
process still lives or not.  When it dies, the seed decides for each that has not arrived: it never does, it arrives in
part, it arrives now, or, on the wire, it arrives late.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from contextvars import copy_context
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any, TypeVar

from actorflow.abc.world import World
from actorflow.errors import StorageFailed
from actorflow.simulation.chance import Chance
from actorflow.simulation.sky import Action, at_moment
from actorflow.simulation.steps import Severed, current_process
from actorflow.simulation.weather import FailDisk, LoseDiskAnswer, Moment, Service, SlowDisk, TearDisk, Way, Weather

if TYPE_CHECKING:
    from actorflow.runtime.handle import JobHandle
    from actorflow.simulation.world import Machine, Universe

__all__ = ("Ending", "Outcome", "Process")

T = TypeVar("T")

_NEVER = (0.0, Way.BOTH)

_LATEST_MS = 5_000
"""How late what a dead process had sent may still arrive."""


class Ending(StrEnum):
    """How a process ended."""

    RETURNED = "returned"
    RAISED = "raised"
    KILLED = "killed"


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a process ended, and with what."""

    ending: Ending
    value: Any = None
    error: BaseException | None = None

    def result(self) -> Any:
        """Return what its function returned, or raise what it raised; ``Severed`` if it was killed."""
        if self.error is not None:
            raise self.error
        if self.ending is Ending.KILLED:
            raise Severed("the process was killed")
        return self.value


class _Pending:
    """An operation on its way out of a process."""

    __slots__ = ("answer_us", "arrived", "effect", "future", "lost", "partly", "refusal", "timer", "torn", "unanswered")

    def __init__(self, effect: Callable[[], Any], partly: Callable[[], None] | None, answer_us: int) -> None:
        self.effect, self.partly = effect, partly
        self.answer_us = answer_us  # only what is on the wire has a way back
        self.future: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self.timer: asyncio.TimerHandle | None = None
        self.arrived = self.torn = False
        self.refusal: Exception | None = None
        self.lost: Exception | None = None
        self.unanswered: Callable[[], None] | None = None

    def meet(self, fault: FailDisk, action: Action, universe: Universe) -> float:
        """Be struck by a fault of the disk; return how many seconds longer it takes."""
        if isinstance(fault, SlowDisk):
            universe.weather_struck("slow", action.name)
            return fault.by_ms / 1e3
        if isinstance(fault, LoseDiskAnswer):
            universe.weather_struck("lose_answer", action.name)
            self.lost = StorageFailed(f"{action.name}: the answer to {action.operation} was lost by the weather")
            return 0.0
        self.torn = isinstance(fault, TearDisk)
        self.refusal = StorageFailed(f"{action.name}: {action.operation} was refused by the weather")
        universe.weather_struck("tear" if self.torn else "fail", action.name)
        return 0.0

    def arrive(self) -> None:
        """Take effect, and answer."""
        if self.arrived:
            return
        self.arrived = True
        failure = self.refusal
        value = None
        if failure is None:
            try:
                value = self.effect()
            except Exception as error:  # the answer, whatever it is, belongs to whoever asked
                failure = error
            failure = self.lost or failure
        elif self.torn and self.partly is not None:
            self.partly()
        if self.unanswered is not None:
            self.unanswered()
        if self.answer_us and not self.future.done():
            asyncio.get_running_loop().call_later(self.answer_us / 1e6, self._answer, failure, value)
        else:
            self._answer(failure, value)

    def _answer(self, failure: Exception | None, value: Any) -> None:
        if self.future.done():
            return
        if failure is None:
            self.future.set_result(value)
        else:
            self.future.set_exception(failure)
            self.future.exception()  # whoever asked may be dead, and then nobody will hear of it

    def withdraw(self) -> None:
        """Never arrive."""
        self.arrived = True
        if self.timer is not None:
            self.timer.cancel()


class Process:
    """A simulated process.  ``name`` is the same in every incarnation, ``identity`` is not."""

    def __init__(self, universe: Universe, name: str, machine: Machine, incarnation: int) -> None:
        self.universe, self.name, self.machine = universe, name, machine
        self.identity = f"{name}.{incarnation}"
        self.chance: Chance = universe.chance.scoped(name, str(incarnation))
        self.world: World  # set by the universe, which builds the seams
        self.severed = False
        self.outcome: Outcome | None = None
        self.paused_until = 0.0
        self.cut_off: dict[Service, tuple[float, Way]] = {}
        self.doom: tuple[int, Sequence[Weather]] | None = None
        self.handle: JobHandle | None = None  # what its program shows of the job that it runs
        self.asked_to_stop = asyncio.Event()
        self.replaced = asyncio.Event()
        self.ended = asyncio.Event()
        self.root: asyncio.Task[Any] | None = None
        self.undertaker: asyncio.Task[Any] | None = None
        self.context = copy_context()
        self.context.run(current_process.set, self)
        self._pending: dict[int, _Pending] = {}
        self._performed = 0

    def __repr__(self) -> str:
        return f"<process {self.identity} on {self.machine.name}{', severed' if self.severed else ''}>"

    # ── for whoever tells the story ──

    @property
    def is_alive(self) -> bool:
        """Whether it can still have any effect."""
        return not self.severed

    def kill(self, step: str = "") -> None:
        """End it as ``kill -9`` would; ``step`` is what the strike is counted under."""
        self.universe.kill(self, step)

    def pause(self, ms: int) -> None:
        """Let it stall for some virtual milliseconds."""
        self.universe.pause(self, ms)

    async def wait(self) -> Outcome:
        """Wait until it has ended and the last of its code has unwound."""
        await self.ended.wait()
        assert self.outcome is not None
        return self.outcome

    # ── for its seams ──

    def check(self) -> None:
        """Raise ``Severed`` if it is dead."""
        if self.severed:
            raise Severed(self.identity)

    @property
    def cut_off_until(self) -> float:
        """Until when a partition cuts it off from anything, as the loop tells time."""
        return max((until for until, _ in self.cut_off.values()), default=0.0)

    def unreachable(self, service: Service) -> Way | None:
        """Which way a partition cuts it off from a service just now."""
        if not self.cut_off:
            return None
        until, way = self.cut_off.get(service, _NEVER)
        return way if until > self.universe.loop.time() else None

    async def perform(
        self,
        action: Action,
        effect: Callable[[], T],
        *,
        partly: Callable[[], None] | None = None,
        most_us: int = 200,
        answer_us: int = 0,
    ) -> T:
        """Carry an operation out of the process: it takes effect after up to ``most_us``, whole and at one instant."""
        self.check()
        universe = self.universe
        due = universe.sky.during(action, self.name)
        if due:
            universe.strike_all(at_moment(due, Moment.BEFORE), self)
            self.check()
        pending = _Pending(effect, partly, answer_us)
        delay = self.chance.between(action.operation, 0, most_us) / 1e6
        if (fault := universe.sky.fault(action, self.name)) is not None:
            assert isinstance(fault, FailDisk), fault
            delay += pending.meet(fault, action, universe)
        if due:
            pending.unanswered = lambda: universe.strike_all(at_moment(due, Moment.UNANSWERED), self)
        self._performed += 1
        number = self._performed
        self._pending[number] = pending
        pending.timer = universe.loop.call_later(delay, pending.arrive, context=universe.context)
        try:
            if due or self.doom is not None:
                self._meet_weather(pending, due)
            answer: T = await pending.future
        except asyncio.CancelledError:
            if not (pending.arrived or self.severed) and self.chance.happens("a cancelled operation is withdrawn"):
                pending.withdraw()
            raise
        finally:
            self._pending.pop(number, None)
            if pending.future.done() and not pending.future.cancelled():
                pending.future.exception()  # known here, also when nobody waits for it any more
        self.check()
        if due:
            universe.strike_soon(at_moment(due, Moment.AFTER), self)
        return answer

    def _meet_weather(self, pending: _Pending, due: Sequence[Weather]) -> None:
        """Let strike what strikes while an operation is under way."""
        if torn := at_moment(due, Moment.TORN):
            if pending.partly is not None:
                pending.partly()
            pending.withdraw()
            self.universe.strike_all(torn, self)
        self.universe.strike_all(at_moment(due, Moment.DURING), self)
        if self.doom is not None:
            left, weather = self.doom
            self.doom = (left - 1, weather) if left else None
            if not left:
                self.universe.strike_all(weather, self)
        self.check()

    def settle(self) -> None:
        """Decide what becomes of the operations that a dead process had sent."""
        pending, self._pending = self._pending, {}
        for operation in pending.values():
            if operation.arrived:
                continue
            on_the_wire = operation.answer_us > 0
            match self.chance.below("fate", 4):
                case 0:
                    operation.arrive()
                case 1 if operation.partly is not None:
                    operation.withdraw()
                    operation.partly()
                case 2 if on_the_wire:
                    late = self.chance.between("late", 0, _LATEST_MS) / 1e3
                    assert operation.timer is not None
                    operation.timer.cancel()
                    operation.timer = self.universe.loop.call_later(
                        late, operation.arrive, context=self.universe.context
                    )
                case _:
                    operation.withdraw()
