"""Which record was it, and how is it shown?

A loop over a batch is given an iterator that the chain made, so after a failure the iterator knows how far the loop had
come (``operator.length_hint``), and the record in hand is the one before.  The happy path pays nothing for it.

A record is shown by a short form: its ``repr`` cut to 200 characters, guarded against one that raises or never ends;
with ``show_records=False`` neither records and keys nor the text of the user's exception appear.
"""

from __future__ import annotations

import reprlib
from collections.abc import Iterable
from operator import length_hint
from typing import Any

from actorflow.errors import OperatorFailed

__all__ = ("failure", "position_in", "short_form")

_LONGEST = 200


class _ShortForm(reprlib.Repr):
    """``repr`` with every container and string cut before it is written out."""

    def __init__(self) -> None:
        super().__init__()
        self.maxstring = self.maxother = self.maxlong = _LONGEST
        self.maxlist = self.maxtuple = self.maxdict = self.maxset = self.maxfrozenset = self.maxdeque = 50

    def repr_instance(self, x: Any, level: int) -> str:
        """Show an object by its own ``repr``, or by its type when that raises."""
        try:
            return repr(x)
        except Exception as error:
            return f"<{type(x).__name__} whose repr raised {type(error).__name__}>"

    def repr_int(self, x: int, level: int) -> str:
        """Show a number; one of more digits than Python writes out is told by its size."""
        if x.bit_length() > 4 * _LONGEST:
            return f"<int of {x.bit_length()} bits>"
        return repr(x)


_SHORT = _ShortForm()


def short_form(value: object) -> str:
    """Return a value's ``repr`` in at most 200 characters; never raises."""
    try:
        text = _SHORT.repr(value)
    except Exception as error:
        text = f"<{type(value).__name__} whose repr raised {type(error).__name__}>"
    return text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…"


def position_in(values: list[Any], iterator: Iterable[Any]) -> int | None:
    """Return the index of the record that a loop had in hand, or ``None`` when it had not begun."""
    position = len(values) - length_hint(iterator) - 1
    return position if position >= 0 else None


def failure(
    error: BaseException,
    operator: str,
    subtask: int,
    *,
    shown: bool,
    record: tuple[object, ...] = (),
    key: tuple[object, ...] = (),
    doing: str = "",
) -> OperatorFailed:
    """Build the error that names an operator; ``record`` and ``key`` are empty or hold one value."""
    if shown:
        try:
            text = str(error)
        except Exception:
            text = "(its message can't be shown)"
        cause = f"{type(error).__name__}: {text}" if text else type(error).__name__
    else:
        cause = type(error).__name__
    return OperatorFailed(
        operator,
        subtask,
        key=short_form(key[0]) if key and shown else None,
        record=short_form(record[0]) if record and shown else None,
        cause=f"{doing}: {cause}" if doing else cause,
    )
