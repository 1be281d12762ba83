r"""How is a record written down as one line of text?

* A ``str`` is the line, as it is; anything else is one JSON value (``format=None``, the default).
* ``"text"`` takes nothing but ``str``; ``"json"`` writes everything as JSON, ``str`` included.
* A function makes the line: ``format=lambda pair: f"{pair[0]}\t{pair[1]}"``.

JSON can say ``None``, ``bool``, ``int``, finite ``float``, ``str``, lists and tuples, dicts whose keys are ``str``,
and dataclasses (as a dict of their fields).  Everything else, and a line with a line break inside, is refused with
the place: what is written can be read back.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import fields, is_dataclass
from math import isfinite
from typing import Any, Literal

from actorflow.errors import InvalidJob, InvalidValue, OperatorFailed

__all__ = ("Format", "RowWriter", "check_format")

Format = Literal["text", "json"] | Callable[[Any], str] | None


def check_format(format: Format) -> Format:  # noqa: A002 - the word users look for
    """Return the format, or raise ``InvalidJob``."""
    if format is None or format in ("text", "json") or callable(format):
        return format
    raise InvalidJob(
        f"files.write: format={format!r}; it must be 'text', 'json', None, or a function that returns a str"
    )


class RowWriter:
    """Writes records of one operator down as lines."""

    __slots__ = ("_is_users", "_line", "_operator", "_subtask")

    def __init__(self, format: Format, operator: str, subtask: int) -> None:  # noqa: A002
        self._operator, self._subtask = operator, subtask
        self._is_users = callable(format)
        if callable(format):
            self._line: Callable[[Any], str] = format
        else:
            self._line = {None: _text_or_json, "text": _text, "json": _json}[format]

    def encode(self, records: list[Any]) -> bytes:
        """The lines of some records, each with its line break."""
        lines = self._lines(records)
        try:
            data = "\n".join([*lines, ""]).encode()
        except UnicodeEncodeError as error:
            raise InvalidValue(
                f"operator {self._operator!r}: a line holds half a character ({error.reason}); such text can't be"
                " written"
            ) from error
        except TypeError as error:
            wrong = next(line for line in lines if not isinstance(line, str))
            raise InvalidValue(
                f"operator {self._operator!r}: format returned {type(wrong).__qualname__} for a record; it must"
                " return a str"
            ) from error
        if data.count(b"\n") != len(records) or b"\r\n" in data:
            index = next(i for i, line in enumerate(lines) if "\n" in line or line.endswith("\r"))
            raise InvalidValue(
                f"operator {self._operator!r}: record {index + 1} of a batch of {len(records)} has a line break in its"
                " line; format='json' writes such text on one line"
            )
        return data

    def _lines(self, records: list[Any]) -> list[str]:
        try:
            return list(map(self._line, records))
        except Exception as error:
            if self._is_users:
                raise OperatorFailed(
                    self._operator, self._subtask, cause=f"format raised {type(error).__name__}: {error}"
                ) from error
            if isinstance(error, InvalidValue):
                raise InvalidValue(f"operator {self._operator!r}: {error}") from error.__cause__
            raise


def _text(record: Any) -> str:
    if isinstance(record, str):
        return record
    raise InvalidValue(
        f"format='text' takes str, not {type(record).__qualname__}; leave format out to write JSON, or give a function"
    )


def _text_or_json(record: Any) -> str:
    return record if isinstance(record, str) else _json(record)


def _json(record: Any) -> str:
    try:
        return json.dumps(_sayable(record, "record"), ensure_ascii=False)
    except RecursionError as error:
        raise InvalidValue("a record holds itself, or is nested too deeply for JSON") from error


def _sayable(value: Any, path: str) -> Any:
    """The value as JSON can say it; raises ``InvalidValue`` with the path to what it can't."""
    kind = type(value)
    if value is None or kind is str or kind is int or kind is bool:
        return value
    if kind is float:
        if isfinite(value):
            return value
        raise InvalidValue(f"{path} is {value!r}, which JSON can't say; give files.write a format of your own")
    if isinstance(value, (list, tuple)):
        return [_sayable(item, f"{path}[{index}]") for index, item in enumerate(value)]
    if isinstance(value, dict):
        for key in value:
            if type(key) is not str:
                raise InvalidValue(
                    f"{path} has the key {key!r}; JSON keys are str: give files.write a format of your own"
                )
        return {key: _sayable(item, f"{path}[{key!r}]") for key, item in value.items()}
    if is_dataclass(value) and not isinstance(value, type):
        return {f.name: _sayable(getattr(value, f.name), f"{path}.{f.name}") for f in fields(value)}
    raise InvalidValue(
        f"{path} is of type {kind.__qualname__}, which JSON can't say; give files.write a format of your own"
    )
