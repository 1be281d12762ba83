"""How does a request reach the broker or the database, and how does its answer come back?

One request is carried out whole, at one instant, by the other side.  On its way there and back is the weather: the
service stalls, a partition cuts, the request is refused, its answer is lost, it is slow, or the process dies while it
is under way and the seed decides whether it arrives, and how late.

A request that nobody waits for any more may be carried out all the same: what stands behind the wire must bear that.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

from actorflow.abc.world import World
from actorflow.errors import InvalidJob, StorageFailed
from actorflow.simulation.sky import Action, at_moment
from actorflow.simulation.steps import current_process
from actorflow.simulation.weather import LoseAnswers, Moment, Service, SlowRequests, Way

if TYPE_CHECKING:
    from actorflow.simulation.process import Process

__all__ = ("Wire", "process_of")

T = TypeVar("T")

_REQUEST_US, _ANSWER_US = 2_000, 1_000
_PATIENCE_MS = (1_000, 5_000)
"""How long a process waits for an answer."""


def process_of(world: World, what: str) -> Process:
    """Return the simulated process whose world this is; ``what`` is what stands in the simulator only."""
    from actorflow.simulation.process import Process

    process = getattr(world.clock, "process", None) or current_process.get()
    if not isinstance(process, Process):
        raise InvalidJob(f"{what} stands in the simulator and nowhere else; run the job there, or use a real connector")
    return process


class Wire:
    """One process's way to a service."""

    def __init__(self, process: Process, service: Service) -> None:
        self._process, self._service = process, service

    async def request(self, operation: str, name: str, effect: Callable[[], T]) -> T:
        """Have something carried out by the service, through the weather.

        What ``effect`` raises is the answer.  Raises a plain ``StorageFailed`` when it was refused on the way, or when
        it is not known whether it was carried out.
        """
        process = self._process
        process.check()
        universe = process.universe
        action = Action(self._service.value, operation, name)
        due = universe.sky.during(action, process.name)
        if due:
            universe.strike_all(at_moment(due, Moment.BEFORE), process)
            process.check()
        if self._service in universe.stalled:
            await self._wait_out_the_stall(action, effect)
        if process.unreachable(self._service) in {Way.BOTH, Way.OUT}:
            await self._give_up(action)
        fault = universe.sky.fault(action, process.name)
        if fault is not None:
            if isinstance(fault, SlowRequests):
                universe.weather_struck("slow", name)
                await process.world.clock.sleep(fault.by_ms)
            elif isinstance(fault, LoseAnswers):
                universe.weather_struck("lose_answer", name)
            else:
                universe.weather_struck("fail", name)
                raise StorageFailed(f"{name}: {operation} was refused by the weather")
        during = at_moment(due, Moment.DURING)
        if during:
            process.doom = (0, during)
        chance = process.chance
        answer = await process.perform(
            Action("wire", operation, name),
            effect,
            most_us=_REQUEST_US,
            answer_us=chance.between("answer", 1, _ANSWER_US),
        )
        if due:
            universe.strike_all(at_moment(due, Moment.UNANSWERED), process)
            process.check()
        if process.unreachable(self._service) in {Way.BOTH, Way.IN}:
            await self._give_up(action)
        if isinstance(fault, LoseAnswers):
            raise StorageFailed(f"{name}: the answer to {operation} was lost by the weather")
        if due:
            universe.strike_soon(at_moment(due, Moment.AFTER), process)
        return answer

    async def _wait_out_the_stall(self, action: Action, effect: Callable[[], object]) -> None:
        process, universe = self._process, self._process.universe
        left_ms = round((universe.stalled[self._service] - universe.loop.time()) * 1_000)
        if left_ms <= 0:
            return
        waits_ms = process.chance.between("patience", *_PATIENCE_MS)
        if left_ms < waits_ms:
            await process.world.clock.sleep(left_ms)
            return
        if process.chance.happens("what nobody waits for is carried out"):
            universe.loop.call_later((left_ms + 1) / 1_000, _unheard, effect, context=universe.context)
        await self._give_up(action, waits_ms, f"the {self._service} stalls")

    async def _give_up(self, action: Action, waits_ms: int = 0, why: str = "a partition") -> None:
        waits_ms = waits_ms or self._process.chance.between("patience", *_PATIENCE_MS)
        await self._process.world.clock.sleep(waits_ms)
        raise StorageFailed(f"{action.name}: {action.operation} got no answer within {waits_ms} ms: {why}")


def _unheard(effect: Callable[[], object]) -> None:
    try:
        effect()
    except StorageFailed:
        return  # an answer to nobody
