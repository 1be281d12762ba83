"""In which order do timers come due, when there are a million of them and nothing may take long?

A queue files them in *slots* of time.  A slot is a dict from timestamp to *group*, which is the one owner of a timer
at that timestamp, or a dict of owners, or ranges of owners where they are very many (``timer_ranges.py``).  A slot is
coarse, a quarter of an hour, until it holds more than a thousand timestamps, and is then divided into fine ones, of a
second, which can't hold more.  So registering is two or three accesses to dicts, wherever timers crowd and however far
others are; registering again changes nothing, and deleting leaves nothing behind.

Order is made late, and only for what is next: the slot whose turn has come is the *front*; its timestamps are sorted,
and of these the first group is *opened*: its owners are sorted, or the first range of them.

What is registered while timers fire goes where it belongs, be it into the open group or before it, so it comes in its
turn and the order does not depend on where somebody paused.

An owner is a token, or a token with a namespace; those of one queue compare with each other, in the order of their
canonical bytes (the encoding of keys keeps the order of values of one type).  ``timers.py`` sees to that.

At the instant of a snapshot the dicts are only pointed at.  While a snapshot lives, whatever was not made since its
instant is copied before it is changed: one dict of a few thousand entries at most.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from heapq import heapify, heappop, heappush
from operator import neg
from typing import Any, Final, TypeVar

from actorflow.state.timer_pins import TimerPin
from actorflow.state.timer_ranges import MOST, Opened, Ranges

_E = TypeVar("_E", dict[Any, Any], Ranges)

__all__ = ("NOTHING", "TimerQueue")

NOTHING: Final = object()
"""What a queue answers when no timer is due."""

identity_of: Final = id
"""The one use of addresses in the house: whether a dict is one that was made since an instant.

Nothing is ordered by it.  What a snapshot needs lives as long as the snapshot, so nothing new can have its address.
"""

_FINE: Final = 10  # a fine slot is 2 ** 10 ms long
_COARSE: Final = 20
_STAMPS: Final = 1 << _FINE  # in a slot
_FRONT: Final = 2 * _STAMPS  # timestamps that may gather in the front
_OPENED: Final = 2 * MOST  # owners that may gather in an open group
_STALE: Final = 256  # timestamps that are gone and may still be noted somewhere, besides as many as there are
_SHRUNK: Final = (16, 128)  # a dict that removals leave with so many is copied, for it would keep its room
_NEVER: Final = -(1 << 80)  # before every timestamp


class TimerQueue:
    """Timers whose owners compare with each other."""

    __slots__ = ("_coarse", "_end", "_fine", "_front", "_made", "_order", "_pins", "_starts", "now")

    def __init__(self) -> None:
        self._fine: dict[int, dict[int, Any]] = {}  # by timestamp >> _FINE
        self._coarse: dict[int, dict[int, Any] | int] = {}  # by timestamp >> _COARSE; of a divided one, into how many
        self._starts: list[int] = []  # a heap of the slots' first timestamps; some may be gone
        self._front: dict[int, Any] = {}  # all before ``_end``, by timestamp
        self._end = _NEVER
        self._order: list[int] = []  # the front's timestamps, the next one last, as negative numbers; some may be gone
        self._pins = 0
        self._made: set[int] | None = None  # while a snapshot lives: which dicts were made since its instant
        self.now = 0
        """The timestamp of the timer that ``pop`` returned last."""

    # ── registering ──

    def register(self, stamp: int, owner: Any) -> None:
        """Add a timer; one that is there stays."""
        if stamp < self._end:
            self._register_in_front(stamp, owner)
            return
        slot = self._fine.get(stamp >> _FINE)
        made = self._made
        if slot is None:
            slot = self._slot(stamp)
        elif made is not None:
            self._fine[stamp >> _FINE] = slot = self._own(slot)
        group = slot.get(stamp)
        if group is None:
            slot[stamp] = owner
            if len(slot) > _STAMPS:
                self._divide(stamp >> _COARSE)
        elif made is None and type(group) is dict:
            group[owner] = None
            if len(group) > MOST:
                self._widen(slot, stamp, group)
        else:
            self._add(slot, stamp, group, owner)

    def _slot(self, stamp: int) -> dict[int, Any]:
        """Return the slot of a timestamp for which there is no fine one; it may be changed."""
        index = stamp >> _COARSE
        slot = self._coarse.get(index)
        if type(slot) is dict:
            if self._made is not None:
                self._coarse[index] = slot = self._own(slot)
            return slot
        new: dict[int, Any] = {}
        if slot is None:
            self._coarse[index] = new
            self._start(index << _COARSE)
        else:
            assert type(slot) is int
            self._coarse[index] = slot + 1
            self._fine[stamp >> _FINE] = new
            self._start(stamp >> _FINE << _FINE)
        return new

    def _start(self, stamp: int) -> None:
        """Note where a new slot begins."""
        heappush(self._starts, stamp)
        if len(self._starts) > 2 * (len(self._fine) + len(self._coarse)) + _STALE:
            self._starts = [index << _FINE for index in self._fine]
            self._starts += [index << _COARSE for index, slot in self._coarse.items() if type(slot) is dict]
            heapify(self._starts)

    def _divide(self, index: int) -> None:
        """Put fine slots in the place of a coarse one."""
        slot = self._coarse[index]
        assert type(slot) is dict, "a fine slot has no room for more timestamps than it may hold"
        self._coarse[index] = 0
        for stamp, group in slot.items():
            fine = self._fine.get(stamp >> _FINE)
            if fine is None:
                fine = self._slot(stamp)
            fine[stamp] = group

    def _vacate(self, index: int) -> None:
        """Note that a coarse slot has one fine slot less."""
        slot = self._coarse[index]
        assert type(slot) is int
        if slot == 1:
            del self._coarse[index]
        else:
            self._coarse[index] = slot - 1

    def _register_in_front(self, stamp: int, owner: Any) -> None:
        front = self._front
        if not front:
            # Nothing is in order, and need not be before it is its turn.
            self._order.clear()
            self._end = _NEVER
            self.register(stamp, owner)
            return
        group = front.get(stamp)
        if group is not None:
            self._add(front, stamp, group, owner)
            return
        front[stamp] = owner
        insort(self._order, -stamp)
        if len(front) > _FRONT:
            self._shorten_front()
        elif len(self._order) > 2 * len(front) + _STALE:
            self._order = sorted(map(neg, front))

    def _shorten_front(self) -> None:
        """Give the later half of the front back to the slots."""
        front = self._front
        stamps = sorted(front)
        later = stamps[len(stamps) // 2 :]
        self._end = later[0]
        for stamp in later:
            group: Any = front.pop(stamp)
            slot = self._fine.get(stamp >> _FINE)
            if slot is None:
                slot = self._slot(stamp)
            elif self._made is not None:
                self._fine[stamp >> _FINE] = slot = self._own(slot)
            slot[stamp] = group.closed() if type(group) is Opened else group
            if len(slot) > _STAMPS:
                self._divide(stamp >> _COARSE)
        self._order = sorted(map(neg, front))

    def _add(self, entries: dict[int, Any], stamp: int, group: Any, owner: Any) -> None:
        kind = type(group)
        if kind is dict:
            entries[stamp] = group = self._own(group)
            group[owner] = None
            if len(group) > MOST:
                self._widen(entries, stamp, group)
        elif kind is Ranges:
            entries[stamp] = group = self._own(group)
            self._add_to_ranges(group, owner)
        elif kind is Opened:
            self._add_to_opened(group, owner)
        elif group != owner:
            entries[stamp] = {group: None, owner: None}

    def _widen(self, entries: dict[int, Any], stamp: int, group: dict[Any, None]) -> None:
        entries[stamp] = ranges = Ranges([next(iter(group))], [group])
        ranges.split(0)

    def _add_to_ranges(self, ranges: Ranges, owner: Any) -> None:
        index = ranges.index_of(owner)
        owners = ranges.dicts[index]
        if self._made is not None:
            ranges.dicts[index] = owners = self._own(owners)
        owners[owner] = None
        if len(owners) > MOST:
            ranges.split(index)

    def _add_to_opened(self, opened: Opened, owner: Any) -> None:
        owners = opened.owners
        if owners and owner <= owners[-1]:
            index = bisect_left(owners, owner, opened.at)
            if index == len(owners) or owners[index] != owner:
                owners.insert(index, owner)
                if opened.at > _OPENED:
                    del owners[: opened.at]
                    opened.at = 0
                if len(owners) - opened.at > _OPENED:
                    self._shorten_opened(opened)
        elif opened.rest is None:
            opened.rest = Ranges([owner], [{owner: None}])
        else:
            self._add_to_ranges(opened.rest, owner)

    def _shorten_opened(self, opened: Opened) -> None:
        """Give the later half of an open group back to its ranges."""
        later = dict.fromkeys(opened.owners[opened.at + MOST :])
        del opened.owners[opened.at + MOST :]
        if opened.rest is None:
            opened.rest = Ranges([next(iter(later))], [later])
        else:
            opened.rest.dicts[0] = later | opened.rest.dicts[0]
        opened.rest.split(0)

    # ── deleting ──

    def delete(self, stamp: int, owner: Any) -> None:
        """Take a timer out; one that is absent is fine."""
        if stamp < self._end:
            self._remove(self._front, stamp, owner)
            return
        index = stamp >> _FINE
        slot = self._fine.get(index)
        if slot is not None:
            if stamp in slot:
                self._fine[index] = slot = self._own(slot)
                self._remove(slot, stamp, owner)
                if not slot:
                    del self._fine[index]
                    self._vacate(stamp >> _COARSE)
                elif len(slot) in _SHRUNK:
                    self._fine[index] = slot.copy()
            return
        index = stamp >> _COARSE
        coarse = self._coarse.get(index)
        if type(coarse) is dict and stamp in coarse:
            self._coarse[index] = coarse = self._own(coarse)
            self._remove(coarse, stamp, owner)
            if not coarse:
                del self._coarse[index]
            elif len(coarse) in _SHRUNK:
                self._coarse[index] = coarse.copy()

    def _remove(self, entries: dict[int, Any], stamp: int, owner: Any) -> None:
        group: Any = entries.get(stamp)
        kind = type(group)
        if kind is dict:
            if owner in group:
                entries[stamp] = group = self._own(group)
                del group[owner]
                if len(group) == 1:
                    (entries[stamp],) = group
                elif len(group) in _SHRUNK:
                    entries[stamp] = group.copy()
        elif kind is Ranges:
            entries[stamp] = group = self._own(group)
            if self._remove_from_ranges(group, owner):
                del entries[stamp]
        elif kind is Opened:
            self._remove_from_opened(group, owner)
        elif group == owner:
            del entries[stamp]

    def _remove_from_ranges(self, ranges: Ranges, owner: Any) -> bool:
        """Take an owner out and say whether none is left."""
        index = ranges.index_of(owner)
        owners = ranges.dicts[index]
        if owner in owners:
            ranges.dicts[index] = owners = self._own(owners)
            del owners[owner]
            ranges.join(index)
        return len(ranges.dicts) == 1 and not ranges.dicts[0]

    def _remove_from_opened(self, opened: Opened, owner: Any) -> None:
        owners = opened.owners
        index = bisect_left(owners, owner, opened.at)
        if index < len(owners):
            if owners[index] == owner:
                del owners[index]
        elif opened.rest is not None and self._remove_from_ranges(opened.rest, owner):
            opened.rest = None

    # ── firing ──

    def pop(self, until: int) -> Any:
        """Take the next timer out and return its owner, with its timestamp in ``now``; ``NOTHING`` if none is due."""
        while True:
            order = self._order
            if not order:
                if not self._bring_forward(until):
                    return NOTHING
                continue
            stamp = -order[-1]
            if stamp > until:
                return NOTHING
            front = self._front
            group: Any = front.get(stamp)
            kind = type(group)
            if kind is Opened:
                at = group.at
                if at < len(group.owners) or not group.is_over():
                    at = group.at
                    group.at = at + 1
                    self.now = stamp
                    return group.owners[at]
                del front[stamp]
                order.pop()
            elif kind is dict or kind is Ranges:
                front[stamp] = Opened(group)
            else:
                order.pop()
                if group is not None:
                    del front[stamp]
                    self.now = stamp
                    return group

    def head(self) -> tuple[int, Any] | None:
        """Return timestamp and owner of the next timer, due or not, and leave it."""
        while True:
            order = self._order
            if not order:
                if not self._bring_forward(None):
                    return None
                continue
            stamp = -order[-1]
            front = self._front
            group: Any = front.get(stamp)
            kind = type(group)
            if kind is Opened:
                if not group.is_over():
                    return stamp, group.owners[group.at]
                del front[stamp]
                order.pop()
            elif kind is dict or kind is Ranges:
                front[stamp] = Opened(group)
            elif group is not None:
                return stamp, group
            else:
                order.pop()

    def _bring_forward(self, until: int | None) -> bool:
        """Make the first slot the front, unless it begins later than ``until``; say whether there was one."""
        starts = self._starts
        while starts and (until is None or starts[0] <= until):
            start = heappop(starts)
            slot = self._coarse.get(start >> _COARSE)
            if type(slot) is dict:
                del self._coarse[start >> _COARSE]
                self._end = (start >> _COARSE) + 1 << _COARSE
            else:
                slot = self._fine.pop(start >> _FINE, None)
                if slot is None:
                    continue  # it was emptied, or divided
                self._vacate(start >> _COARSE)
                self._end = (start >> _FINE) + 1 << _FINE
            self._front = slot if self._made is None else slot.copy()
            self._order = sorted(map(neg, slot))
            return True
        return False

    # ── instants ──

    def pin(self) -> TimerPin:
        """Freeze what is there now."""
        front = {stamp: group.closed() if type(group) is Opened else group for stamp, group in self._front.items()}
        self._pins += 1
        self._made = set()
        coarse = [slot for slot in self._coarse.values() if type(slot) is dict]
        return TimerPin(self._unpin, [front, *self._fine.values(), *coarse])

    def _unpin(self) -> None:
        """Take back one pin."""
        self._pins -= 1
        if not self._pins:
            self._made = None

    def _own(self, entries: _E) -> _E:
        """Return a dict, or ranges, that may be changed: the one given, or a copy where a snapshot needs it."""
        made = self._made
        if made is None or identity_of(entries) in made:
            return entries
        copied = entries.copy()
        made.add(identity_of(copied))
        return copied
