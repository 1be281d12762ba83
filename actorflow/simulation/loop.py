"""In which order do things happen, when a seed decides and no time passes?

:class:`SimulatedLoop` is a complete event loop of the public interface, so unmodified asyncio and anyio programs run on
it; nothing is patched.  Three rules make a run a function of its seed:

* **Time is virtual.**  While something is ready it stands still; when nothing is, it jumps to the next timer; when
  there is none either, :class:`Deadlock` says who waits where.  (To a program that spins without ever waiting, time is
  given now and then, as it would be outside.)
* **Order is drawn, from a canonical start.**  All that is ready is first sorted by the creation number of the task that
  a callback steps or wakes (any other callback belongs to whoever scheduled it), then permuted; the order within one
  task is kept.  Without the sorting, the addresses of tasks would shine through: cancelling a group walks a set.  Now
  and then a task is left out until the next round.
* **Nothing comes from outside.**  Sockets, signals, child processes and threads are refused.  What
  ``asyncio.to_thread`` and ``run_in_executor`` are given is run here, whole, after a drawn delay.  The garbage
  collector runs at counted steps, because the clean-up of a forgotten generator is a step like any other.

Several simulated processes can live on one loop: the context of a callback says whose it is (:data:`current_process`),
so that a process can be paused, or buried with all it had begun.
"""

from __future__ import annotations

import asyncio
import gc
import heapq
import logging
import sys
import threading
import weakref
from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine, Generator, Iterator
from contextlib import contextmanager, suppress
from contextvars import Context, copy_context
from datetime import timedelta
from functools import partial
from operator import attrgetter
from typing import Any, TypeVar, TypeVarTuple

from actorflow.errors import ActorflowError
from actorflow.simulation.chance import Chance, mix
from actorflow.simulation.refusals import NothingOutside
from actorflow.simulation.steps import (
    SimulatedTask,
    Step,
    Timer,
    Work,
    WorkFuture,
    current_process,
    is_severed,
    where,
)

__all__ = ("Deadlock", "Overdue", "SimulatedLoop", "run", "surroundings_frozen")

T = TypeVar("T")
Ts = TypeVarTuple("Ts")

_LOGGER = logging.getLogger("actorflow.simulation")

_SPIN_LIMIT = 5_000
"""Rounds without any time passing before a timer is due all the same, though something is still ready."""

_SPIN_FOR_EVER = 1_000_000
"""Rounds without any time passing, and without a timer, after which nothing else will ever happen."""

_COLLECT_EVERY = 250_000
"""Steps between two runs of the garbage collector, which take as long as thousands of steps."""

_GENERATORS = 256
"""Asynchronous generators that may have begun before those that are gone are cleared away."""

_LAST_CANCELLATIONS = 10
"""How often what is still there is cancelled when the loop is closed."""

_CANCELLED_TIMERS = 256
"""Cancelled timers that are kept at least, before all of them are cleared away."""

_MULTIPLIER, _INCREMENT, _MASK = 6364136223846793005, 1442695040888963407, (1 << 64) - 1

_frozen = 0
"""How many of those who run programs have put their surroundings out of the collector's sight, one within another."""


class Deadlock(ActorflowError):
    """Raised when nothing is ready and no timer is set; the message says who waits where."""


class Overdue(ActorflowError):
    """Raised when a simulated program did not end within the virtual time it was given; says who waits where."""


class SimulatedLoop(NothingOutside):
    """An event loop on virtual time whose order is a function of ``seed``.

    ``steps`` counts the callbacks that were run.  ``deadline`` is the virtual time, in seconds, at which it gives up
    (:class:`Overdue`).  ``stories`` are asked what they know when it does.  ``unhandled`` keeps what the exception
    handler was told.  Where a ``horizon`` is set time goes no further than that: the loop stops once all that is due by
    then has run, as whoever holds the time in the hand wants it (``virtual_clock.py``).

    ``rounds`` counts those rounds in which there was a choice, because callbacks of more than one owner were ready.  Of
    these the first ``shuffle_rounds`` are permuted by the seed, and later ones keep the canonical order; ``None`` is
    all of them.  Whoever shrinks a failing run finds out with it how much of the order matters.
    """

    def __init__(self, seed: int = 0) -> None:
        self.seed = seed
        self.steps = 0
        self.rounds = 0
        self.shuffle_rounds: int | None = None
        self.deadline: float | None = None
        self.horizon: float | None = None
        self.stories: list[Callable[[], str]] = []
        self.unhandled: list[dict[str, Any]] = []
        self.chance = Chance(seed, "loop")
        self._order = mix(self.chance.key, 1)
        self._spinning = 0
        self._time = 0.0
        self._ready: list[Step] = []
        self._timers: list[tuple[float, int, Timer]] = []
        self._timers_set = 0
        self._timers_cancelled = 0
        self._owner = 0
        self._tasks_created = 0
        self._collect_at = _COLLECT_EVERY
        self._work: dict[int, Work] = {}
        self._work_begun = 0
        self._held: dict[object, list[Step]] = {}
        self._buried: dict[object, None] = {}
        self._generators: list[weakref.ref[AsyncGenerator[Any, Any]]] = []  # in the order in which they began
        self._generators_at_most = _GENERATORS
        self._thread: int | None = None
        self._stopping = False
        self._closed = False
        self.set_debug(False)
        self._task_factory: Any = None
        self._exception_handler: Any = None

    # ── time ──

    def time(self) -> float:
        """Virtual seconds since the loop was made."""
        return self._time

    def call_soon(self, callback: Callable[[*Ts], object], *args: *Ts, context: Context | None = None) -> Step:
        if self._closed:
            self._check_open()
        target = getattr(callback, "__self__", None)
        step = Step(callback, args, context, target.number if type(target) is SimulatedTask else self._owner)
        self._ready.append(step)
        return step

    def call_later(
        self, delay: float, callback: Callable[[*Ts], object], *args: *Ts, context: Context | None = None
    ) -> Step:
        return self.call_at(self._time + delay, callback, *args, context=context)

    def call_at(
        self, when: float, callback: Callable[[*Ts], object], *args: *Ts, context: Context | None = None
    ) -> Step:
        self._check_open()
        target = getattr(callback, "__self__", None)
        owner = target.number if type(target) is SimulatedTask else self._owner
        step = Timer(callback, args, context, owner, when, self._timer_cancelled)
        self._timers_set += 1
        heapq.heappush(self._timers, (when, self._timers_set, step))
        return step

    def call_soon_threadsafe(
        self, callback: Callable[[*Ts], object], *args: *Ts, context: Context | None = None
    ) -> Step:
        if self._thread is not None and self._thread != threading.get_ident():
            raise RuntimeError(
                "a thread called back into a simulated loop, which has no threads: "
                "use asyncio.to_thread, whose work the loop carries out itself"
            )
        return self.call_soon(callback, *args, context=context)

    def _timer_cancelled(self) -> None:
        self._timers_cancelled += 1
        if self._timers_cancelled > max(_CANCELLED_TIMERS, len(self._timers) // 2):
            # In place: whoever is going through the timers right now holds this very list.
            self._timers[:] = [entry for entry in self._timers if entry[2].callback is not None]
            heapq.heapify(self._timers)
            self._timers_cancelled = 0

    # ── futures and tasks ──

    def create_future(self) -> asyncio.Future[Any]:
        return asyncio.Future(loop=self)

    def nap(self, delay: float) -> asyncio.Future[None]:
        """Return what waits for some seconds: ``asyncio.sleep`` without its coroutine, for those who nap often."""
        future: asyncio.Future[None] = asyncio.Future(loop=self)
        when = self._time + delay
        self._timers_set += 1
        timer = Timer(_wake, (future,), None, self._owner, when, self._timer_cancelled)
        heapq.heappush(self._timers, (when, self._timers_set, timer))
        return future

    def create_task(
        self,
        coro: Coroutine[Any, Any, Any] | Generator[Any, None, Any],
        *,
        name: object = None,
        context: Context | None = None,
        **options: Any,  # newer versions of Python hand more of them to the task
    ) -> asyncio.Task[Any]:
        self._check_open()
        if self._task_factory is not None:
            if context is not None:
                options["context"] = context
            task: asyncio.Task[Any] = self._task_factory(self, coro, **options)
            if name is not None:
                task.set_name(str(name))
            return task
        self._tasks_created += 1
        named = f"task {self._tasks_created}" if name is None else str(name)
        return SimulatedTask(self._tasks_created, coro, loop=self, name=named, context=context, **options)  # type: ignore[arg-type]  # a generator is refused by the task itself

    def set_task_factory(self, factory: Any) -> None:
        """Make tasks otherwise; such tasks have no number, and belong to whoever schedules their steps."""
        self._task_factory = factory

    def get_task_factory(self) -> Any:
        return self._task_factory

    # ── work off the loop ──

    def run_in_executor(self, executor: Any, func: Callable[[*Ts], T], *args: *Ts) -> asyncio.Future[T]:
        """Run ``func`` whole, later, on this thread: there is no executor, whichever was given."""
        self._check_open()
        context = copy_context()
        self._work_begun += 1
        number = self._work_begun
        future = WorkFuture(number, self)
        work = self._work[number] = Work(lambda: func(*args), future, context.get(current_process))
        # Mostly quick; now and then it takes so long that much else happens before.
        most_us = 20_000 if self.chance.happens("slow work", 1 / 16) else 500
        work.timer = self.call_later(
            self.chance.between("work", 0, most_us) / 1e6, self._carry_out, number, context=context
        )
        return future

    def set_default_executor(self, executor: Any) -> None:
        """Accepted, and never asked."""

    async def shutdown_default_executor(self, timeout: float | None = None) -> None:  # noqa: ASYNC109  # as inherited
        """Carry out what is still under way, as joining the threads would."""
        for number in list(self._work):
            if (timer := self._work[number].timer) is not None:
                timer.cancel()
            self._carry_out(number)

    def _carry_out(self, number: int) -> None:
        work = self._work.pop(number)
        if work.future.cancelled() and self.chance.happens("cancelled work"):
            return  # it had not begun; one that had begun can't be stopped
        failure: BaseException
        try:
            result = work.function()
        except (SystemExit, KeyboardInterrupt):
            raise
        except StopIteration as error:  # a future can't hold one
            failure = RuntimeError("work off the loop raised StopIteration")
            failure.__cause__ = error
        except BaseException as error:  # it belongs to whoever waits for it
            failure = error
        else:
            if not work.future.done():
                work.future.set_result(result)
            return
        if not work.future.done():
            work.future.set_exception(failure)

    # ── simulated processes ──

    def tasks_of(self, process: object) -> list[SimulatedTask]:
        """Return the unfinished tasks of a process, oldest first."""
        mine = [t for t in asyncio.all_tasks(self) if isinstance(t, SimulatedTask) and t.process is process]
        return sorted(mine, key=lambda task: task.number)

    def pause(self, process: object) -> None:
        """Hold every callback of a process until it resumes."""
        self._held.setdefault(process, [])

    def resume(self, process: object) -> None:
        """Let a paused process go on with all that became ready meanwhile."""
        self._ready.extend(self._held.pop(process, ()))

    def settle_work(self, process: object) -> None:
        """Decide what becomes of the work that a dying process had off the loop: it was done, or it never will be."""
        for number in [n for n, work in self._work.items() if work.process is process]:
            work = self._work.pop(number)
            if work.timer is not None:
                work.timer.cancel()
            if not self.chance.happens("work of the dead"):
                continue
            try:
                work.function()
            except (SystemExit, KeyboardInterrupt):
                raise
            except BaseException as error:  # nobody is left to be told
                _LOGGER.debug("work of a process that died raised %r", error)

    def bury(self, process: object) -> None:
        """Run nothing of this process any more, whatever it waits for."""
        self._held.pop(process, None)
        self._buried[process] = None
        for task in self.tasks_of(process):
            _drop(task)  # so that closing the loop does not wait for it

    def _living(self, batch: list[Step]) -> list[Step]:
        living = []
        for step in batch:
            process = step.context.get(current_process)
            if process is None or (process not in self._held and process not in self._buried):
                living.append(step)
            elif process in self._held:
                self._held[process].append(step)
        return living

    # ── running ──

    def run_forever(self) -> None:
        self._check_open()
        if self._thread is not None or asyncio._get_running_loop() is not None:  # noqa: SLF001  # meant for loops
            raise RuntimeError("an event loop is already running in this thread")
        hooks = sys.get_asyncgen_hooks()
        self._thread = threading.get_ident()
        sys.set_asyncgen_hooks(firstiter=self._generator_begins, finalizer=self._generator_forgotten)
        asyncio._set_running_loop(self)  # noqa: SLF001  # meant for loops
        try:
            with surroundings_frozen():
                self._run_rounds()
        finally:
            self._stopping = False
            self._thread = None
            asyncio._set_running_loop(None)  # noqa: SLF001  # meant for loops
            sys.set_asyncgen_hooks(*hooks)

    def _run_rounds(self) -> None:
        """Run everything that is ready, and nothing that becomes ready meanwhile; again and again, until stopped."""
        timers = self._timers
        begun, batch = 0, []
        try:
            while True:
                if not self._ready or self._spinning > _SPIN_LIMIT:
                    self._jump()
                now = self._time
                while timers and timers[0][0] <= now:
                    timer = heapq.heappop(timers)[2]
                    if timer.callback is None:
                        self._timers_cancelled -= 1
                    else:
                        timer.cancelled_early = None
                        self._ready.append(timer)
                self._spinning += 1
                begun, batch = 0, self._ready
                self._ready = []
                if self._held or self._buried:
                    batch = self._living(batch)
                if len(batch) > 1:
                    batch = self._permuted(batch)
                for step in batch:
                    begun += 1
                    if (callback := step.callback) is None:
                        continue
                    self._owner = step.owner
                    self.steps += 1
                    try:
                        step.context.run(callback, *step.arguments)
                    except (SystemExit, KeyboardInterrupt):
                        raise
                    except BaseException as error:  # a callback has no caller
                        self.call_exception_handler(
                            {"message": f"exception in callback {callback!r}", "exception": error, "handle": step}
                        )
                if self.steps >= self._collect_at:
                    self._collect_at = self.steps + _COLLECT_EVERY
                    gc.collect()
                if self._stopping:
                    return
        finally:
            self._owner = 0
            self._ready[:0] = batch[begun:]

    def _permuted(self, batch: list[Step]) -> list[Step]:
        """Sort by owner, then draw one of the orders that keep each owner's own order."""
        batch.sort(key=_owner_of)
        if batch[0].owner == batch[-1].owner:
            return batch
        self.rounds += 1
        if self.shuffle_rounds is not None and self.rounds > self.shuffle_rounds:
            return batch
        state = self._order
        drawn = batch.copy()
        for index in range(len(drawn) - 1, 0, -1):
            state = (state * _MULTIPLIER + _INCREMENT) & _MASK
            other = (state >> 32) * (index + 1) >> 32
            drawn[index], drawn[other] = drawn[other], drawn[index]
        self._order = state
        if state & 0x700000000 == 0:  # one round in eight leaves its last owner out, so that others get ahead of it
            late = drawn[-1].owner
            self._ready.extend(step for step in batch if step.owner == late)
            drawn = [step for step in drawn if step.owner != late]
            batch = [step for step in batch if step.owner != late]
        if len({step.owner for step in drawn}) == len(drawn):
            return drawn
        # Whose turn it is was drawn; what an owner does in its turns keeps its order.
        following: dict[int, list[Step]] = {}
        for step in reversed(batch):
            following.setdefault(step.owner, []).append(step)
        return [following[step.owner].pop() for step in drawn]

    def _jump(self) -> None:
        """Move time on to the next timer."""
        timers = self._timers
        while timers and timers[0][2].callback is None:
            heapq.heappop(timers)
            self._timers_cancelled -= 1
        if self.horizon is not None and not (timers and timers[0][0] <= self.horizon):
            self._spinning = 0
            self._time = max(self._time, self.horizon)
            self.stop()
            return
        if not timers:
            if not self._ready:
                raise Deadlock(self.report("deadlock: nothing is ready and no timer is set"))
            if self._spinning > _SPIN_FOR_EVER:
                raise Deadlock(self.report("deadlock: the program spins, and no timer is set that could end it"))
            return
        when = timers[0][0]
        if self.deadline is not None and when > self.deadline:
            problem = f"not finished within {self.deadline:g} virtual seconds"
            self.deadline += 3_600  # whoever cleans up needs time too, though not for ever
            raise Overdue(self.report(problem))
        self._spinning = 0
        self._time = max(self._time, when)

    def run_until_complete(self, future: Generator[Any, None, T] | Awaitable[T]) -> T:
        self._check_open()
        created = not asyncio.isfuture(future)
        task: asyncio.Future[T] = asyncio.ensure_future(future, loop=self)  # type: ignore[arg-type]  # as inherited
        task.add_done_callback(self._stop_for)
        try:
            self.run_forever()
        except BaseException:
            if created and task.done() and not task.cancelled():
                task.exception()  # it is on its way to the caller already
            raise
        finally:
            task.remove_done_callback(self._stop_for)
        if not task.done():
            raise RuntimeError("the event loop was stopped before the future was done")
        return task.result()

    def _stop_for(self, future: asyncio.Future[Any]) -> None:
        if future.cancelled() or not isinstance(future.exception(), (SystemExit, KeyboardInterrupt)):
            self.stop()

    def stop(self) -> None:
        self._stopping = True

    def is_running(self) -> bool:
        return self._thread is not None

    def is_closed(self) -> bool:
        return self._closed

    def close(self) -> None:
        if self._thread is not None:
            raise RuntimeError("a running event loop can't be closed")
        self._end_tasks()
        self._closed = True
        self._ready.clear()
        self._timers.clear()
        self._work.clear()
        self._held.clear()

    def _end_tasks(self) -> None:
        """Cancel what began while everything else was cancelled: the clean-up of a task, the end of a process."""
        with suppress(Deadlock, Overdue):  # who can't come to an end was told before
            for _ in range(_LAST_CANCELLATIONS):
                if not (tasks := asyncio.all_tasks(self)):
                    return
                for task in tasks:
                    task.cancel()
                self.run_until_complete(asyncio.gather(*tasks, return_exceptions=True))
        for task in asyncio.all_tasks(self):
            _drop(task)

    def _check_open(self) -> None:
        if self._closed:
            raise RuntimeError("the event loop is closed")

    # ── async generators ──

    def _generator_begins(self, generator: AsyncGenerator[Any, Any]) -> None:
        self._generators.append(weakref.ref(generator))
        if len(self._generators) >= self._generators_at_most:  # a call for each that is gone would cost more
            self._generators = [one for one in self._generators if one() is not None]
            self._generators_at_most = 2 * len(self._generators) + _GENERATORS

    def _generator_forgotten(self, generator: AsyncGenerator[Any, Any]) -> None:
        if not self._closed:
            self.call_soon(self.create_task, generator.aclose())

    async def shutdown_asyncgens(self) -> None:
        for reference in self._generators:
            if (generator := reference()) is None:
                continue
            try:
                await generator.aclose()
            except Exception as error:  # the others are to be closed all the same
                message = f"an error occurred while closing {generator!r}"
                self.call_exception_handler({"message": message, "exception": error, "asyncgen": generator})

    # ── errors, and who waits for what ──

    def set_exception_handler(self, handler: Any) -> None:
        self._exception_handler = handler

    def get_exception_handler(self) -> Any:
        return self._exception_handler

    def default_exception_handler(self, context: dict[str, Any]) -> None:
        error = context.get("exception")
        _LOGGER.error("%s", context.get("message", "unhandled exception"), exc_info=error or False)

    def call_exception_handler(self, context: dict[str, Any]) -> None:
        if is_severed(context.get("exception")):
            return  # the dead complain to nobody
        self.unhandled.append(context)
        if self._exception_handler is None:
            self.default_exception_handler(context)
        else:
            self._exception_handler(self, context)

    def get_debug(self) -> bool:
        return False  # but see below

    def set_debug(self, enabled: bool) -> None:
        # Each future asks for it when it is made, and takes its time if that is a method written in Python.
        vars(self)["get_debug"] = partial(bool, enabled)

    def report(self, problem: str) -> str:
        """Say who waits where."""
        lines = [f"{problem} (at {self._time:.3f} s, after {self.steps} steps, seed {self.seed})"]
        tasks = [task for task in asyncio.all_tasks(self) if isinstance(task, SimulatedTask)]
        lines.extend(
            f"  {task.get_name()} waits in {' < '.join(where(task.get_coro())) or 'its first step'}"
            for task in sorted(tasks, key=lambda task: task.number)
        )
        lines.extend(story() for story in self.stories)
        return "\n".join(lines)


def _drop(task: asyncio.Task[Any]) -> None:
    """Forget a task that never runs again, and say nothing of it."""
    task._log_destroy_pending = False  # type: ignore[attr-defined]  # noqa: SLF001  # dropped on purpose
    asyncio.tasks._unregister_task(task)  # noqa: SLF001  # closing must not wait for it


_owner_of = attrgetter("owner")


def _wake(future: asyncio.Future[None]) -> None:
    if not future.done():
        future.set_result(None)


@contextmanager
def surroundings_frozen() -> Iterator[None]:
    """Where programs run: the collector stands still, and what was there before is not looked at again and again.

    Between two programs of many, whoever runs them collects; automatic collections would come at any step.
    """
    global _frozen  # noqa: PLW0603  # as the collector is: there is one in a process
    collects = gc.isenabled()
    gc.disable()
    if freezes := not _frozen and gc.get_freeze_count() == 0:  # counting takes as long as there is much to count
        gc.freeze()
    _frozen += 1
    try:
        yield
    finally:
        _frozen -= 1
        if freezes:
            gc.unfreeze()
        if collects:
            gc.enable()


def run(
    function: Callable[..., Coroutine[Any, Any, T]], *args: Any, seed: int = 0, within: timedelta | None = None
) -> T:
    """Run ``function(*args)`` on a loop of its own, on virtual time, and return what it returns.

    ``within`` bounds the *virtual* time: what has not ended by then raises :class:`Overdue` with a report.
    """
    loop = SimulatedLoop(seed)
    if within is not None:
        loop.deadline = within.total_seconds()
    with surroundings_frozen(), asyncio.Runner(loop_factory=lambda: loop) as runner:
        return runner.run(function(*args))
