"""What does an operator reach when it has been opened in one subtask?

A seat: where the operator is (name, subtask, parallelism), the tables of its state, the clock, and the side outputs
that somebody reads.  The plan holds descriptions of operators; a chain gives each of them a seat and gets back
something that runs.

Refuses to know channels, checkpoints or storage.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, Protocol

from actorflow.abc.state import KeyedTable, StateBackend
from actorflow.abc.world import Clock
from actorflow.dataflow.deferred_keys import DeferredKeys
from actorflow.errors import InvalidJob
from actorflow.model.manifest import Redistribution

__all__ = ("DeferredLoop", "Each", "Hooks", "KeyedLoop", "ListContent", "Opened", "Seat", "SideOutputs", "Stage")

Stage = Callable[[Iterable[Any]], list[Any]]
"""From the records of a batch to what becomes of them.  It iterates over its argument exactly once and in order."""

KeyedLoop = Callable[[Iterable[Any], list[Any], list[Any]], list[Any]]
"""The same behind a keyed exchange: tokens, iterated over exactly once and in order, keys and values in parallel."""

Each = Callable[[Any], object]
"""A sink that is a plain function, called once per record."""

DeferredLoop = Callable[[DeferredKeys, Iterator[Any], list[Any], Each | None], list[Any] | None]
"""The same where the loop computes the keys: what computes them, an iterator over the values, the values.

With a last argument, outputs are given to it one by one as far as that goes; what comes back are those that were not.
``None`` says that this batch needs its keys listed; then nothing of the iterator was taken.
"""

ListContent = tuple[str, Redistribution, list[Any]]
"""A state of an operator that belongs to no key: its name, who receives it after a restore, its elements."""


class SideOutputs:
    """What the operators of a chain emitted beside their main output, by tag, until somebody takes it."""

    __slots__ = ("_filled", "_optional", "_read")

    def __init__(self, read: Iterable[str], optional: Iterable[str] = ()) -> None:
        self._read = frozenset(read)
        self._optional = frozenset(optional)
        self._filled: dict[str, list[Any]] = {}

    def column(self, tag: str) -> list[Any]:
        """Return the list that collects a tag's records; it is good until the next ``take``."""
        found = self._filled.get(tag)
        if found is None:
            self.check(tag)
            found = []
            if tag in self._read:
                self._filled[tag] = found
        return found

    def check(self, tag: str) -> None:
        """Refuse a tag that nobody reads and that may not stay unread."""
        if tag not in self._read and tag not in self._optional:
            raise InvalidJob(
                f"side output {tag!r} is read by nobody, so its records would be lost: read it with "
                f".side_output({tag!r}), or add it to the operator's optional_outputs"
            )

    def take(self) -> dict[str, list[Any]] | None:
        """Return what was emitted since the last call, or ``None`` when nothing was."""
        if not self._filled:
            return None
        filled, self._filled = self._filled, {}
        return filled

    @property
    def content(self) -> dict[str, list[Any]]:
        """What is there to take."""
        return self._filled


class Hooks(Protocol):
    """The moments besides records at which an operator runs.  Each raises what the user's code raised."""

    def open(self) -> None: ...
    def restored(self, checkpoint_id: int) -> None: ...
    def snapshot(self, checkpoint_id: int) -> None: ...
    def completed(self, checkpoint_id: int) -> None: ...
    def aborted(self, checkpoint_id: int) -> None: ...
    def finish(self) -> list[Any]: ...
    def close(self) -> None: ...
    def list_states(self) -> list[ListContent]: ...
    def restore_list(self, state: str, elements: list[Any], redistribution: Redistribution) -> None: ...


class Opened:
    """An operator that sits in a subtask: the loops that the chain calls, and its hooks when it has any."""

    __slots__ = ("hooks", "run", "run_broadcast", "run_deferred", "run_keyed")

    def __init__(
        self,
        *,
        run: Stage | None = None,
        run_keyed: KeyedLoop | None = None,
        run_deferred: DeferredLoop | None = None,
        run_broadcast: Stage | None = None,
        hooks: Hooks | None = None,
    ) -> None:
        self.run, self.run_keyed, self.run_broadcast, self.hooks = run, run_keyed, run_broadcast, hooks
        self.run_deferred = run_deferred


class Seat:
    """An operator's place in one subtask.

    ``copy`` copies what can be changed in place and nothing else; ``names`` are the registered classes, for keys that
    are made of them.
    """

    __slots__ = (
        "_backend",
        "clock",
        "copy",
        "names",
        "operator",
        "parallelism",
        "sides",
        "states",
        "subtask",
        "tables",
    )

    def __init__(
        self,
        *,
        operator: str,
        subtask: int,
        parallelism: int,
        backend: StateBackend,
        copy: Callable[[Any], Any],
        clock: Clock,
        sides: SideOutputs,
        names: Any = None,
    ) -> None:
        self.operator, self.subtask, self.parallelism = operator, subtask, parallelism
        self._backend, self.copy, self.clock, self.sides, self.names = backend, copy, clock, sides, names
        self.states: dict[str, str] = {}
        self.tables: list[KeyedTable] = []

    def table(self, state: str, kind: str) -> KeyedTable:
        """Return the table of one declared state of this operator."""
        table = self._backend.table(self.operator, state, kind)
        self.states[state] = kind
        self.tables.append(table)
        return table
