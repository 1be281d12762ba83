"""How is what a queue of timers held at an instant read, while the queue goes on?

A pin points at the queue's dicts; the queue changes none of them while the pin lives, so reading may pause anywhere.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from actorflow.state.timer_ranges import Ranges

__all__ = ("TimerPin",)


class TimerPin:
    """What a queue held at an instant, frozen until it is released."""

    __slots__ = ("_dicts", "_release")

    def __init__(self, release: Callable[[], None], dicts: list[dict[int, Any]]) -> None:
        self._release: Callable[[], None] | None = release
        self._dicts = dicts

    def release(self) -> None:
        """Let go; a second time is fine."""
        release, self._release = self._release, None
        if release is not None:
            self._dicts = []
            release()

    def columns(self, count: int) -> Iterator[tuple[list[int], list[Any]]]:
        """Iterate over timestamps and owners, about ``count`` at a time, and never more than ``count + MOST``."""
        stamps: list[int] = []
        owners: list[Any] = []
        for entries in self._dicts:
            for stamp, group in entries.items():
                kind = type(group)
                if kind is dict or kind is Ranges:
                    for piece in (group,) if kind is dict else group.dicts:
                        stamps += [stamp] * len(piece)
                        owners += piece
                        if len(stamps) >= count:
                            yield stamps, owners
                            stamps, owners = [], []
                else:
                    stamps.append(stamp)
                    owners.append(group)
                if len(stamps) >= count:
                    yield stamps, owners
                    stamps, owners = [], []
            assert self._release is not None, "a snapshot was released while it was read"
        if stamps:
            yield stamps, owners
