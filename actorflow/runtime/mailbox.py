"""Bounded channels and a control lane: everything that one actor can be woken by.

Batches need a buffer of their channel: ``per_channel`` exclusive ones, then floating ones that the channels of one gate
(the input side of one exchange) share, up to ``most_per_channel``.  Control elements queue behind the batches of their
channel but never wait for a buffer, so a barrier can always be enqueued (INV-1.7).

There is one place to wait, :class:`Signal`, and it wakes for mail, for credit and for control alike.  Nothing is
awaited between looking and waiting, hence no wake-up is lost and no lock is needed.

This module does not know what an element means.
"""

from __future__ import annotations

import asyncio
from collections import deque
from typing import Any

from actorflow.model.elements import Batch
from actorflow.model.ids import ChannelId

__all__ = ("Channel", "Gate", "Mailbox", "Signal")


class Signal:
    """Something one coroutine waits for and anybody may set; setting it while nobody waits does nothing."""

    __slots__ = ("_waiter",)

    def __init__(self) -> None:
        self._waiter: asyncio.Future[None] | None = None

    def set(self) -> None:
        """Wake whoever waits."""
        waiter = self._waiter
        if waiter is not None and not waiter.done():
            waiter.set_result(None)

    def wait(self) -> asyncio.Future[None]:
        """Return what waits until somebody calls ``set``, from now on; to be awaited at once."""
        assert self._waiter is None or self._waiter.done(), "two coroutines wait for one signal"
        waiter = self._waiter = asyncio.get_running_loop().create_future()
        return waiter


class Gate:
    """The input side of one exchange at one actor: its channels and the floating buffers that they share."""

    __slots__ = ("channels", "floating", "starved")

    def __init__(self, floating: int) -> None:
        self.floating = floating
        self.channels: list[Channel] = []
        self.starved = False


class Channel:
    """A bounded queue of elements from one upstream actor to one downstream actor."""

    __slots__ = (
        "blocked",
        "exclusive",
        "gate",
        "id",
        "listed",
        "mailbox",
        "most",
        "queue",
        "role",
        "starved",
        "used",
        "writer",
    )

    def __init__(
        self, channel_id: ChannelId, mailbox: Mailbox, gate: Gate, *, exclusive: int, most: int, role: int = 0
    ) -> None:
        self.id, self.mailbox, self.gate = channel_id, mailbox, gate
        self.exclusive, self.most, self.role = exclusive, max(most, exclusive), role
        self.queue: deque[Any] = deque()
        self.used = 0
        self.blocked = False
        self.listed = False
        self.starved = False
        self.writer: Signal | None = None
        gate.channels.append(self)

    def try_put(self, batch: Any) -> bool:
        """Enqueue a batch if there is a buffer for it; otherwise the writer is woken when there is one."""
        used = self.used
        if used >= self.exclusive:
            gate = self.gate
            if used >= self.most or gate.floating <= 0:
                self.starved = gate.starved = True
                return False
            gate.floating -= 1
        self.used = used + 1
        self.queue.append(batch)
        if not self.listed and not self.blocked:
            self.mailbox.list_channel(self)
        return True

    def put_control(self, element: Any) -> None:
        """Enqueue a control element; never waits and never fails."""
        self.queue.append(element)
        if not self.listed and not self.blocked:
            self.mailbox.list_channel(self)

    def release(self) -> None:
        """Give the buffer of a batch back that was taken out of the queue, and wake writers that starved for one."""
        self.used -= 1
        gate = self.gate
        if self.used >= self.exclusive:
            gate.floating += 1
        if gate.starved:
            gate.starved = False
            for channel in gate.channels:
                if channel.starved:
                    channel.starved = False
                    if channel.writer is not None:
                        channel.writer.set()


class Mailbox:
    """All input channels of an actor, and its control lane."""

    __slots__ = ("channels", "control", "ready", "signal")

    def __init__(self) -> None:
        self.signal = Signal()
        self.channels: list[Channel] = []
        self.control: deque[Any] = deque()
        self.ready: deque[Channel] = deque()

    def list_channel(self, channel: Channel) -> None:
        """Note that an open channel holds something."""
        channel.listed = True
        self.ready.append(channel)
        self.signal.set()

    def put_control(self, mail: Any) -> None:
        """Put something into the control lane, which is always looked at first."""
        self.control.append(mail)
        self.signal.set()

    def try_take(self) -> tuple[Channel, Any] | None:
        """Take the next element of the open channels, round robin; ``None`` when there is none."""
        ready = self.ready
        if not ready:
            return None
        channel = ready[0]
        queue = channel.queue
        element = queue.popleft()
        if not queue:
            channel.listed = False
            ready.popleft()
        elif len(ready) > 1:
            ready.rotate(-1)
        if type(element) is Batch:
            channel.release()
        return channel, element

    def try_take_control(self) -> tuple[Channel, Any] | None:
        """Take a control element that stands at the head of an open channel; for who has no room for a batch now."""
        for channel in self.ready:
            queue = channel.queue
            if type(queue[0]) is not Batch:
                element = queue.popleft()
                if not queue:
                    channel.listed = False
                    self.ready.remove(channel)
                return channel, element
        return None

    def block(self, channel: Channel) -> None:
        """Take nothing more from this channel until it is resumed; its sender may still fill its buffers."""
        channel.blocked = True
        if channel.listed:
            channel.listed = False
            self.ready.remove(channel)

    def resume(self, channel: Channel) -> None:
        """Open a channel again; one that is open is fine."""
        if channel.blocked:
            channel.blocked = False
            if channel.queue and not channel.listed:
                self.list_channel(channel)

    def statistics(self) -> dict[str, int]:
        """Numbers for people: what waits in the mailbox now."""
        return {
            "channels": len(self.channels),
            "blocked": sum(channel.blocked for channel in self.channels),
            "batches": sum(channel.used for channel in self.channels),
            "control": len(self.control),
        }
