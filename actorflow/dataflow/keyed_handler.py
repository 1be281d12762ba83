"""How is ``on_record`` called for the records of a keyed batch?

The value of each record's key is put into the handle's plain slot before the call and stored after it when it changed
(``hot-path.md`` 2).  Which values are loaded beforehand depends on the batch:

* one or two value states and nothing else, tables that offer their dicts: loops written out for exactly that;
* otherwise those that recent records used are loaded beforehand and the rest go through their cells when they are used.
  Which ones are used shows in every 64th batch, in which all go through their cells and count;
* a table without its dict (a snapshot is being written, a store on disk): everything through the cells.

What a key begins with is not stored until it is changed, so looking at a key leaves nothing behind.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from actorflow.abc.state import MISSING
from actorflow.dataflow.cells import Cursor, TableCell
from actorflow.dataflow.handlers import Handler
from actorflow.dataflow.handles import ThroughValue, Value
from actorflow.dataflow.keyed import BaseOperator, Context
from actorflow.dataflow.seat import Seat

__all__ = ("KeyedHandler",)

_SAMPLE_EVERY = 64
"""Every so many batches it is looked at anew which of several value states the records use."""

_FEW = 2
"""So many value states are always loaded beforehand."""


class KeyedHandler(Handler):
    """A user's plain operator behind ``key_by``."""

    def __init__(self, seat: Seat, build: Callable[[], BaseOperator]) -> None:
        self.cursor = Cursor()
        super().__init__(seat, build, lambda table, _: TableCell(table, self.cursor))
        self._context: Context[Any] = Context(seat)
        self._loadable = [handle for handle in self.values if handle._blank is not MISSING]  # noqa: SLF001
        self._only_loadable = len(self._loadable) == len(self.cells)
        self._with_cell: list[tuple[Value[Any], Any]] = [(handle, handle._cell) for handle in self._loadable]  # noqa: SLF001
        self._eager: list[Value[Any]] = self._loadable if len(self._loadable) <= _FEW else []
        self._batches = 0

    def run(self, tokens: Iterable[Any], keys: list[Any], records: list[Any]) -> list[Any]:
        """Call ``on_record`` for each record."""
        outputs: list[Any] = []
        self._context.emit = outputs.append
        eager, careful = self._begin_batch()
        try:
            if not careful and self._only_loadable and len(eager) == len(self.values):
                match eager:
                    case [first]:
                        self._run_one(first, tokens, keys, records, outputs)
                    case [first, second]:
                        self._run_two(first, second, tokens, keys, records, outputs)
                    case _:
                        self._run_any(eager, tokens, keys, records, outputs)
            else:
                self._run_any(eager, tokens, keys, records, outputs)
        finally:
            for cell in self.cells:
                cell.plain = None
        self.check_bound()
        return outputs

    def _begin_batch(self) -> tuple[list[Value[Any]], bool]:
        """Fetch the tables' dicts and decide which values are loaded beforehand."""
        careful = False
        for cell in self.cells:
            cell.plain = plain = cell.table.plain
            if plain is None:
                careful = True
        eager = self._eager
        if len(self._loadable) > _FEW:
            if self._batches % _SAMPLE_EVERY == 1:
                used = [handle for handle in self._loadable if handle.uses]
                most = max((handle.uses for handle in used), default=0)
                self._eager = eager = [handle for handle in used if 4 * handle.uses >= most]
            elif self._batches % _SAMPLE_EVERY == 0:
                for handle in self._loadable:
                    handle.uses = 0
                eager = []
            self._batches += 1
        if careful:
            eager = []
        for handle in self.values:
            wanted = Value if handle in eager else ThroughValue
            if type(handle) is not wanted:
                handle.__class__ = wanted
        return eager, careful

    def _run_one(
        self, slot: Value[Any], tokens: Iterable[Any], keys: list[Any], records: list[Any], outputs: list[Any]
    ) -> None:
        context, on_record, blank = self._context, self.instance.on_record, slot._blank  # noqa: SLF001
        plain = self.cells[0].plain
        get = plain.get
        for token, key, record in zip(tokens, keys, records, strict=False):
            context.key = key
            slot.value = old = get(token, blank)
            result = on_record(record, context)
            if result is not None:
                outputs += result
            new = slot.value
            if new is not old:
                if new is None or new is blank:
                    _store_unusual(slot, plain, token, new)
                else:
                    plain[token] = new

    def _run_two(
        self,
        slot: Value[Any],
        slot_2: Value[Any],
        tokens: Iterable[Any],
        keys: list[Any],
        records: list[Any],
        outputs: list[Any],
    ) -> None:
        context, on_record = self._context, self.instance.on_record
        blank, blank_2 = slot._blank, slot_2._blank  # noqa: SLF001
        plain, plain_2 = self.cells[0].plain, self.cells[1].plain
        get, get_2 = plain.get, plain_2.get
        for token, key, record in zip(tokens, keys, records, strict=False):
            context.key = key
            slot.value = old = get(token, blank)
            slot_2.value = old_2 = get_2(token, blank_2)
            result = on_record(record, context)
            if result is not None:
                outputs += result
            new = slot.value
            if new is not old:
                if new is None or new is blank:
                    _store_unusual(slot, plain, token, new)
                else:
                    plain[token] = new
            new = slot_2.value
            if new is not old_2:
                if new is None or new is blank_2:
                    _store_unusual(slot_2, plain_2, token, new)
                else:
                    plain_2[token] = new

    def _run_any(
        self, eager: list[Value[Any]], tokens: Iterable[Any], keys: list[Any], records: list[Any], outputs: list[Any]
    ) -> None:
        context, on_record, cursor = self._context, self.instance.on_record, self.cursor
        touched = cursor.touched
        loads = [
            (slot, cell.plain, cell.plain.get, slot._blank)  # noqa: SLF001 - a handle is opaque to users only
            for slot, cell in self._with_cell
            if slot in eager
        ]
        for token, key, record in zip(tokens, keys, records, strict=False):
            context.key = key
            cursor.token = token
            for slot, _, get, blank in loads:
                slot.value = slot.loaded = get(token, blank)
            result = on_record(record, context)
            if result is not None:
                outputs += result
            for slot, plain, _, blank in loads:
                new = slot.value
                if new is not slot.loaded:
                    if new is None or new is blank:
                        _store_unusual(slot, plain, token, new)
                    else:
                        plain[token] = new
            if touched:
                cursor.settle()


def _store_unusual(slot: Value[Any], plain: dict[Any, Any], token: Any, new: Any) -> None:
    """Store ``None``, which forgets the key, or what an absent key shows, which does so when ``clear`` put it there."""
    if new is None or slot.cleared:
        plain.pop(token, None)
        slot.cleared = False
    else:
        plain[token] = new
