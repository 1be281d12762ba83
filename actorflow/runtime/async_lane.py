"""Async user functions: bounded, ordered if asked, checkpointed (semantics 15.1).

What was taken from the mailbox and has not left the lane is held here in arrival order: at most ``in_flight`` of it
is *active*, the rest waits.  An invocation's writes and outputs take effect at one stroke, when its result leaves the
lane. One invocation per key at a time; the next of that key starts after the stroke.  A barrier does not wait for
anybody's slow service: a snapshot holds the inputs of everything that has not left, and after a restore they are
called again, before anything new.  So state and output are exactly-once and the outside call is at-least-once.

Calls are made by *runners*, child coroutines that call one input after the other.  A runner starts the next one
before it calls, so a function that never suspends costs no coroutine per record, and one that does has as many
runners as ``in_flight`` allows.  Each invocation runs in its own copy of the context in which the job was started
(R140): a runner whose context was changed by a call is not used for another.
"""

from __future__ import annotations

import asyncio
import contextvars
from collections import deque
from typing import Any

from actorflow.abc.world import Clock
from actorflow.dataflow.blame import short_form
from actorflow.dataflow.chaining import AsyncOperator
from actorflow.errors import ActorflowError, OperatorFailed
from actorflow.model.elements import Batch
from actorflow.model.key_groups import bytes_of_token, token_of
from actorflow.model.manifest import Redistribution
from actorflow.runtime.mailbox import Signal
from actorflow.runtime.pace import breathe
from actorflow.runtime.sheltered import Sheltered, Spawn

__all__ = ("AsyncLane",)

TICK_MS = 0.5
"""How long after its deadline a call is given up: a result that comes in the same millisecond wins (R144)."""


class _Invocation:
    __slots__ = ("done", "key", "outcome", "record", "token")

    def __init__(self, record: Any, key: Any, token: Any) -> None:
        self.record, self.key, self.token = record, key, token
        self.done = False
        self.outcome: Any = None


class AsyncLane:
    """The unfinished calls of one actor."""

    def __init__(
        self,
        call: AsyncOperator,
        *,
        operator: str,
        subtask: int,
        signal: Signal,
        spawn: Spawn,
        clock: Clock,
        show_records: bool,
    ) -> None:
        self._call, self._operator, self._subtask = call, operator, subtask
        self._signal, self._spawn, self._clock, self._show_records = signal, spawn, clock, show_records
        self._context = contextvars.copy_context()
        self._active: deque[_Invocation] = deque()
        self._waiting: deque[_Invocation] = deque()
        self._runnable: deque[_Invocation] = deque()
        self._completed: deque[_Invocation] = deque()
        self._parked: dict[Any, deque[_Invocation]] = {}
        self._runners = 0
        self._spare = False
        self._failure: ActorflowError | None = None
        self._heard = False

    # ── what the actor asks ──────────────────────────────────────────────────────────────────

    @property
    def redistribution(self) -> Redistribution:
        """Who receives an unfinished input after a restore."""
        return Redistribution.KEYED if self._call.keyed else Redistribution.SPLIT

    @property
    def has_room(self) -> bool:
        """Whether the actor may take another batch."""
        return not self._waiting and len(self._active) < self._call.in_flight

    @property
    def is_empty(self) -> bool:
        """Whether everything has left."""
        return not self._active and not self._waiting

    @property
    def unfinished(self) -> int:
        """How many inputs have not left: their calls are under way, or wait for their turn."""
        return len(self._active) + len(self._waiting)

    @property
    def unheard(self) -> ActorflowError | None:
        """What a call raised when nobody was left to take its result."""
        return None if self._heard else self._failure

    def admit(self, batch: Batch) -> None:
        """Take the records of a batch over."""
        if batch.keys is None:
            self._waiting.extend(_Invocation(value, None, None) for value in batch.values)
        else:
            keys, tokens = batch.keys, batch.tokens
            if type(keys) is not list:
                deferred, keys = keys, keys.keys_of(batch.values)
                tokens = deferred.tokens_of(keys)
            self._waiting.extend(map(_Invocation, batch.values, keys, keys if tokens is None else tokens))
        self._activate()

    def take_ready(self) -> list[Any]:
        """Let out what may leave now, applying its writes at one stroke; return the outputs in order.

        Raises ``OperatorFailed`` when a call failed for good.
        """
        if self._failure is not None:
            self._heard = True
            raise self._failure
        outputs: list[Any] = []
        if self._call.ordered:
            while self._active and self._active[0].done:
                self._leave(self._active.popleft(), outputs)
        else:
            while self._completed:
                invocation = self._completed.popleft()
                self._active.remove(invocation)
                self._leave(invocation, outputs)
        if self._waiting:
            self._activate()
        return outputs

    def inputs(self) -> list[Any]:
        """The inputs of everything that has not left, in arrival order, for a snapshot."""
        return [
            [b"" if one.token is None else bytes_of_token(one.token), one.key, one.record]
            for one in (*self._active, *self._waiting)
        ]

    def restore(self, elements: list[Any]) -> None:
        """Take unfinished inputs of an earlier life back; they are called before anything new."""
        for _, key, record in elements:
            token = token_of(key) if self._call.keyed else None
            self._waiting.append(_Invocation(record, key if self._call.keyed else None, token))

    def open(self) -> None:
        """Start calling what was restored."""
        self._activate()

    # ── inside ───────────────────────────────────────────────────────────────────────────────

    def _leave(self, invocation: _Invocation, outputs: list[Any]) -> None:
        outputs += self._call.apply(invocation.outcome)
        if invocation.token is not None:
            parked = self._parked[invocation.token]
            if parked:
                self._runnable.append(parked.popleft())
                self._start_runner()
            else:
                del self._parked[invocation.token]

    def _activate(self) -> None:
        waiting, active, limit = self._waiting, self._active, self._call.in_flight
        while waiting and len(active) < limit:
            invocation = waiting.popleft()
            active.append(invocation)
            token = invocation.token
            if token is None:
                self._runnable.append(invocation)
            elif token in self._parked:
                self._parked[token].append(invocation)
            else:
                self._parked[token] = deque()
                self._runnable.append(invocation)
        self._start_runner()

    def _start_runner(self) -> None:
        if self._runnable and not self._spare and self._runners < self._call.in_flight:
            self._spare = True
            self._runners += 1
            # Started in the job's own context, not in that of whoever happens to run now.
            self._context.copy().run(self._start)

    def _start(self) -> None:
        shelter = Sheltered(lambda: self._run(shelter))
        shelter.start(self._spawn, name=f"{self._operator}/{self._subtask} calls")

    async def _run(self, shelter: Sheltered) -> None:
        self._spare = False
        pristine = contextvars.copy_context()
        try:
            while self._runnable and self._failure is None and not shelter.is_cancelled:
                invocation = self._runnable.popleft()
                self._start_runner()
                try:
                    invocation.outcome = await self._invoke(invocation)
                except Exception as error:
                    self._fail(error, invocation)
                    return
                invocation.done = True
                if not self._call.ordered:
                    self._completed.append(invocation)
                self._signal.set()
                if contextvars.copy_context() != pristine:
                    return
                if self._clock.slice_is_over():
                    await breathe()
        finally:
            self._runners -= 1
            if self._runnable and self._failure is None and not shelter.is_cancelled:
                self._start_runner()

    async def _invoke(self, invocation: _Invocation) -> Any:
        call = self._call
        if call.timeout_ms is None and call.retries == 0:
            return await call.call(invocation.record, invocation.key, invocation.token)
        deadline = None if call.timeout_ms is None else self._clock.now_ms() + call.timeout_ms
        calls = 0
        while True:
            calls += 1
            try:
                if deadline is None:
                    return await call.call(invocation.record, invocation.key, invocation.token)
                return await self._call_until(deadline, invocation)
            except _TimedOut:
                raise TimeoutError(_too_late(call.timeout_ms, calls)) from None
            except Exception as error:
                if calls > call.retries:
                    if calls > 1:
                        error.add_note(f"after {calls} calls")
                    raise
                if deadline is not None and self._clock.now_ms() + call.retry_delay_ms >= deadline:
                    # No call starts at the deadline or after it (R147).
                    await self._clock.sleep(max(0, deadline - self._clock.now_ms()))
                    raise TimeoutError(_too_late(call.timeout_ms, calls)) from error
                await self._clock.sleep(call.retry_delay_ms)

    async def _call_until(self, deadline_ms: int, invocation: _Invocation) -> Any:
        """Call once; a result that comes in the same tick as the deadline wins (R144)."""
        loop = asyncio.get_running_loop()
        result: asyncio.Future[Any] = loop.create_future()

        async def child() -> None:
            try:
                value = await self._call.call(invocation.record, invocation.key, invocation.token)
            except Exception as error:
                if not result.done():
                    result.set_exception(error)
            else:
                if not result.done():
                    result.set_result(value)

        shelter = Sheltered(child)

        def give_up() -> None:
            if not result.done():
                result.set_exception(_TimedOut())
                shelter.cancel()

        shelter.start(self._spawn, name=f"{self._operator}/{self._subtask} calls, within a time")
        delay_ms = max(0, deadline_ms - self._clock.now_ms()) + TICK_MS
        timer = loop.call_later(delay_ms / 1_000, give_up)
        try:
            return await result
        finally:
            timer.cancel()
            if not result.done():
                shelter.cancel()
            elif not result.cancelled():
                result.exception()

    def _fail(self, error: Exception, invocation: _Invocation) -> None:
        if isinstance(error, OperatorFailed):
            failure = error
        else:
            failure = OperatorFailed(
                self._operator,
                self._subtask,
                key=short_form(invocation.key) if invocation.token is not None and self._show_records else None,
                record=short_form(invocation.record) if self._show_records else None,
                cause=f"{type(error).__name__}: {error}",
            )
            failure.__cause__ = error
        self._failure = failure
        self._signal.set()


class _TimedOut(Exception):
    pass


def _too_late(timeout_ms: int | None, calls: int) -> str:
    times = "one call" if calls == 1 else f"{calls} calls"
    return f"no result within timeout={(timeout_ms or 0) / 1_000:g} s, in {times}"
