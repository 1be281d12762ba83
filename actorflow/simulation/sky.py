"""Which weather is due?

The sky knows the faults that are still to come, looks at each entry of the journal and at each operation, counts, and
says which of them strike now.  Faults of operations, once they have struck, stay until they have been used up.

It decides only; ``world.py`` carries out.
"""

from __future__ import annotations

from collections.abc import Sequence
from fnmatch import fnmatchcase
from typing import NamedTuple

from actorflow.model.journal import Line
from actorflow.simulation.weather import (
    After,
    FailDisk,
    FailObjects,
    FailRequests,
    Moment,
    OnBroker,
    OnDatabase,
    OnDisk,
    OnObject,
    Weather,
)

__all__ = ("Action", "Sky", "at_moment")


Fault = FailObjects | FailDisk | FailRequests
"""What lies in wait for operations."""


class Action(NamedTuple):
    """One operation: on ``objects``, the ``disk``, the ``broker`` or the ``database``.

    Or on the ``wire`` to one of them, where no weather looks.
    """

    seam: str
    operation: str
    name: str


class _Watch:
    """A fault that waits for its trigger."""

    __slots__ = ("seen", "weather")

    def __init__(self, weather: Weather) -> None:
        self.weather, self.seen = weather, 0


class _Charge:
    """A fault that has struck and fails operations until it is used up."""

    __slots__ = ("fault", "left")

    def __init__(self, fault: Fault) -> None:
        self.fault, self.left = fault, fault.count


class Sky:
    """The faults that are still to come, and those that lie in wait."""

    def __init__(self) -> None:
        self._by_entry: dict[str, list[_Watch]] = {}
        self._by_seam: dict[str, list[_Watch]] = {}
        self._charges: list[_Charge] = []

    def expect(self, weather: Weather) -> None:
        """Wait for the trigger of a fault; ``At`` is for a clock and not for us."""
        match weather.when:
            case After(entry=entry):
                self._by_entry.setdefault(entry, []).append(_Watch(weather))
            case OnDisk():
                self._by_seam.setdefault("disk", []).append(_Watch(weather))
            case OnBroker():
                self._by_seam.setdefault("broker", []).append(_Watch(weather))
            case OnDatabase():
                self._by_seam.setdefault("database", []).append(_Watch(weather))
            case OnObject():
                self._by_seam.setdefault("objects", []).append(_Watch(weather))

    def clear(self) -> None:
        """Forget everything that has not struck, and what lies in wait."""
        self._by_entry.clear()
        self._by_seam.clear()
        self._charges.clear()

    def waiting(self) -> list[Weather]:
        """Return what waits for its trigger, or for the first operation that it fails."""
        watches = [*self._by_entry.values(), *self._by_seam.values()]
        unused = [charge.fault for charge in self._charges if charge.left == charge.fault.count]
        return [*(watch.weather for some in watches for watch in some), *unused]

    def after(self, line: Line) -> Sequence[Weather]:
        """Return what strikes after an entry of the journal."""
        if not self._by_entry:
            return ()
        watches = self._by_entry.get(line.name)
        if not watches:
            return ()
        due = [watch for watch in watches if self._matches(watch, line)]
        for watch in due:
            watches.remove(watch)
        return [watch.weather for watch in due]

    @staticmethod
    def _matches(watch: _Watch, line: Line) -> bool:
        trigger = watch.weather.when
        assert isinstance(trigger, After)
        if trigger.process not in {None, line.process}:
            return False
        if any(getattr(line.entry, name) != value for name, value in trigger.where.items()):
            return False
        watch.seen += 1
        return watch.seen == trigger.occurrence

    def during(self, action: Action, process: str) -> Sequence[Weather]:
        """Return what strikes in the course of an operation that begins now, each at the moment it names."""
        watches = self._by_seam.get(action.seam)
        if not watches:
            return ()
        due = []
        for watch in watches:
            trigger = watch.weather.when
            assert isinstance(trigger, OnObject)
            if _fits(trigger.operation, trigger.pattern, trigger.process, action, process):
                watch.seen += 1
                if watch.seen == trigger.occurrence:
                    due.append(watch)
        for watch in due:
            watches.remove(watch)
        return [watch.weather for watch in due]

    def lie_in_wait(self, fault: Fault) -> None:
        """Let a fault fail the next operations that match."""
        if fault.count > 0:
            self._charges.append(_Charge(fault))

    def fault(self, action: Action, process: str) -> Fault | None:
        """Return the fault that this operation meets, if any, and count it."""
        if not self._charges or action.seam == "wire":
            return None
        for charge in self._charges:
            fault = charge.fault
            if _seam_of(fault) == action.seam and _fits(fault.operation, fault.pattern, fault.process, action, process):
                charge.left -= 1
                if not charge.left:
                    self._charges.remove(charge)
                return fault
        return None


def _seam_of(fault: Fault) -> str:
    if isinstance(fault, FailRequests):
        return fault.service.value
    return "disk" if isinstance(fault, FailDisk) else "objects"


def at_moment(weather: Sequence[Weather], moment: Moment) -> list[Weather]:
    """Return those that strike at this moment of an operation."""
    return [w for w in weather if isinstance(w.when, OnObject) and w.when.moment == moment]


def _fits(operation: str, pattern: str, by: str | None, action: Action, process: str) -> bool:
    return by in {None, process} and fnmatchcase(action.operation, operation) and fnmatchcase(action.name, pattern)
