"""Which sessions does a key have, and where is what they hold?

A session is a window that grows: a record's own window is joined with all that it overlaps or touches.  What a session
holds is filed under its *state window*, the window under which it was begun, so that growing moves nothing: only where
two sessions become one is the content of one put to that of the other.

:class:`MergingWindows` is the mapping (window → state window) of one key, and is state itself: ``encode`` gives plain
numbers, and what they came from comes back out of them.  What a merge asks for, the answer says in the order in which
it is to be done: ``trigger.on_merge``, clear the triggers of the windows that were merged and take back their clean-up
timers, put the content of ``absorbed`` to that of ``state_window``.

Sessions of a key never overlap nor touch, so they are kept in order, and a record finds its own by halving.  Pure.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from actorflow.dataflow.lateness import is_window_late
from actorflow.dataflow.windows import Window

__all__ = ("Added", "MergingWindows")


@dataclass(frozen=True, slots=True)
class Added:
    """What became of a record's window."""

    window: Window
    """The session that holds the record now."""
    state_window: Window
    """Where its content is."""
    merged: tuple[Window, ...] = ()
    """The sessions that this one came from and that are no more, the earliest first; none where none has changed."""
    absorbed: tuple[Window, ...] = ()
    """The state windows whose content belongs to ``state_window`` now, the earliest session's first."""


class MergingWindows:
    """The sessions of one key."""

    __slots__ = ("_starts", "_state_windows", "_windows")

    def __init__(self, sessions: Iterable[tuple[Window, Window]] = ()) -> None:
        """Begin with pairs of window and state window."""
        pairs = sorted(sessions)
        self._windows = [window for window, _ in pairs]
        self._starts = [window.start for window in self._windows]
        self._state_windows = dict(pairs)

    def add(self, own: Window, *, allowed_ms: int = 0, watermark: int) -> Added | None:
        """Put a record's own window to the others; ``None`` if it is late, so that nothing changes.

        One that is late by itself but meets a session that is not, belongs to that session.
        """
        windows = self._windows
        # From the first that does not end before it begins, to the last that does not begin after it ends.
        first = bisect_left(windows, own.start, key=_end)
        behind = bisect_right(self._starts, own.end)
        met = windows[first:behind]
        if not met:
            if is_window_late(own.last, allowed_ms, watermark):
                return None
            self._replace(first, behind, own, own)
            return Added(own, own)
        merged = Window(min(own.start, met[0].start), max(own.end, met[-1].end))
        assert not is_window_late(merged.last, allowed_ms, watermark), (
            f"the session {merged} would be late at {watermark}: it should have been retired before"
        )
        kept, *absorbed = [self._state_windows[window] for window in met]
        if met == [merged]:
            return Added(merged, kept)
        for window in met:
            del self._state_windows[window]
        self._replace(first, behind, merged, kept)
        return Added(merged, kept, tuple(met), tuple(absorbed))

    def _replace(self, first: int, behind: int, window: Window, state_window: Window) -> None:
        self._windows[first:behind] = [window]
        self._starts[first:behind] = [window.start]
        self._state_windows[window] = state_window

    def state_window(self, window: Window) -> Window | None:
        """Return where the content of a session is, or ``None`` if there is no such session."""
        return self._state_windows.get(window)

    def retire(self, window: Window) -> Window | None:
        """Forget a session, and return where its content is, which goes too; ``None`` if there is no such session."""
        state_window = self._state_windows.pop(window, None)
        if state_window is not None:
            index = bisect_left(self._starts, window.start)
            del self._windows[index], self._starts[index]
        return state_window

    def encode(self) -> list[tuple[int, int, int, int]]:
        """Return what a snapshot keeps: start and end of each session and of its state window."""
        return [(*window, *self._state_windows[window]) for window in self._windows]

    @classmethod
    def decode(cls, written: Iterable[tuple[int, int, int, int]]) -> MergingWindows:
        """Return what :meth:`encode` was asked of."""
        return cls((Window(start, end), Window(begun, until)) for start, end, begun, until in written)

    def check(self) -> None:
        """Assert what must always hold: sessions in order, apart, and no two with one state window."""
        for one, other in zip(self._windows, self._windows[1:], strict=False):
            assert one.end < other.start, (one, other)
        assert self._starts == [window.start for window in self._windows]
        assert sorted(self._state_windows) == self._windows
        assert len(set(self._state_windows.values())) == len(self._windows), self._state_windows

    def __iter__(self) -> Iterator[Window]:
        return iter(tuple(self._windows))

    def __len__(self) -> int:
        return len(self._windows)


def _end(window: Window) -> int:
    return window.end
