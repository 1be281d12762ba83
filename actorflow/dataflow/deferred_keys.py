"""When are a batch's keys computed, if nobody has to route by them?

Behind a keyed exchange with a single channel there is nothing to route, so the batch brings its key function along.
The loop that wants a key calls it for each record, once, and saves a list and a pass over it (25 ns of about 300 per
record). That works while all keys are exactly of one plain type, so that a key is its own token; the first batch
finds out which one, and the first key of another type sends the rest of its batch, and everything after it, the
general way.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from operator import length_hint
from typing import Any

from actorflow.dataflow.blame import short_form
from actorflow.errors import InvalidValue, OperatorFailed
from actorflow.model.key_encoding import ClassNames
from actorflow.model.key_groups import tokens_of

__all__ = ("DeferredKeys",)

_PLAIN = (str, int, bytes)


class DeferredKeys:
    """The key function of an exchange, at one sender."""

    __slots__ = ("_names", "_operator", "_shown", "_subtask", "function", "kind", "open_to_all")

    def __init__(
        self, function: Callable[[Any], Any], *, operator: str, subtask: int, shown: bool, names: ClassNames | None
    ) -> None:
        self.function = function
        self._operator, self._subtask, self._shown, self._names = operator, subtask, shown, names
        self.kind: type | None = None
        """The one plain type that all keys had so far; ``None`` before the first batch and after a key of another."""
        self.open_to_all = False

    def keys_of(self, values: list[Any]) -> list[Any]:
        """The keys of some records.  Raises ``OperatorFailed`` naming the record for which the function raised."""
        records, key = iter(values), self.function
        try:
            return [key(value) for value in records]
        except Exception as error:
            raise self.failed(error, values[len(values) - length_hint(records) - 1]) from error

    def tokens_of(self, keys: list[Any]) -> list[Any] | None:
        """Their tokens, or ``None`` where the keys are their own.  Raises ``InvalidValue`` for what can't be a key."""
        try:
            tokens = tokens_of(keys, self._names)
        except InvalidValue as error:
            raise self._invalid(keys, error) from error
        if self.kind is None and not self.open_to_all:
            self._learn(keys, tokens)
        return tokens

    def _invalid(self, keys: list[Any], first: InvalidValue) -> InvalidValue:
        """The error of a key that can't be one, with that key."""
        for key in keys:
            try:
                tokens_of([key], self._names)
            except InvalidValue as error:
                shown = f", key {short_form(key)}" if self._shown else ""
                return InvalidValue(f"operator {self._operator!r}, subtask {self._subtask}{shown}: {error}")
        return InvalidValue(f"operator {self._operator!r}, subtask {self._subtask}: {first}")

    def _learn(self, keys: list[Any], tokens: list[Any] | None) -> None:
        if not keys:
            return
        kind = type(keys[0])
        if tokens is None and kind in _PLAIN and all(type(key) is kind for key in keys):
            self.kind = kind
        else:
            self.give_up()

    def give_up(self) -> None:
        """From here on keys are listed and looked at batch by batch."""
        self.kind, self.open_to_all = None, True

    def rest(self, key: Any, records: Iterator[Any]) -> tuple[list[Any], list[Any] | None]:
        """The keys and tokens of what is left of a batch, whose next key is known and of another type."""
        self.give_up()
        keys = [key, *self.keys_of(list(records))]
        return keys, self.tokens_of(keys)

    def first_seen(self, key: Any) -> None:
        """Refuse a key that no state is filed under yet and that can't be written down.

        The loops look at ``__class__``, which is cheaper than ``type`` and which only a key that lies about itself
        makes wrong; such a one is refused here, before anything is filed under it.
        """
        if type(key) is not self.kind or (type(key) is str and not key.isascii()):
            self.tokens_of([key])

    def failed(self, error: Exception, record: Any) -> OperatorFailed:
        """The error of a key function that raised."""
        return OperatorFailed(
            self._operator,
            self._subtask,
            record=short_form(record) if self._shown else None,
            cause=f"its key function raised {type(error).__name__}: {error}",
        )
