"""How is a table of a scenario read by its words, and written by them?

A :class:`Word` puts a kind and a field of a value under a name.  Reading and writing go by the same words, so that they
can't disagree.  A word that is not known here is refused with the nearest one that is.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping
from dataclasses import MISSING, dataclass, fields
from typing import Any

from actorflow.simulation.scenario_kinds import Kind, nearest

__all__ = ("WRONG", "Table", "Word", "Words", "short", "write_words")

WRONG = object()
"""What was read where something else should stand."""

_SHOWN = 80  # characters of a value in a message


@dataclass(frozen=True, slots=True)
class Word:
    """A name in a table, the field that it fills, and what may stand behind it.

    One that is ``required`` has to be there, and is written even where it says what holds anyway.
    """

    name: str
    field: str
    kind: Kind
    required: bool = False


Words = tuple[Word, ...]


def short(value: Any) -> str:
    """Return a value as a message shows it."""
    text = repr(value)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"


class Table:
    """A table under reading: what it still has to say, and where its mistakes go."""

    def __init__(self, problems: list[str], file: str, place: str, said: Mapping[str, Any]) -> None:
        self._problems, self._where = problems, " ".join(part for part in (file, place) if part)
        self.said = dict(said)
        self.is_sound = True
        self._lacks: list[tuple[str, tuple[str, ...]]] = []
        self._unknown: list[str] = []

    def tell(self, sentence: str) -> None:
        """Note a mistake."""
        self.is_sound = False
        self._problems.append(f"{self._where}: {sentence}" if self._where else sentence)

    def lacks(self, sentence: str, *words: str) -> None:
        """Note that all of these words are missing; :meth:`close` tells it, unless one of them was only misspelled."""
        self.is_sound = False
        self._lacks.append((sentence, words))

    def close(self) -> bool:
        """Tell what is missing; return whether all was well."""
        for sentence, words in self._lacks:
            if not any(difflib.get_close_matches(word, self._unknown) for word in words):
                self.tell(sentence)
        return self.is_sound

    def unknown(self, words: Iterable[str], known: Iterable[str], within: str = "") -> None:
        """Note that there are words which nobody knows."""
        names = list(known)
        for word in words:
            self._unknown.append(word)
            self.tell(f"{within}{word!r} is no word of this table; {nearest(word, names)}")

    def read_one(self, name: str, kind: Kind, value: Any) -> Any:
        """Read one value; :data:`WRONG` when it is wrong, which is noted."""
        try:
            return kind.read(value)
        except ValueError as error:
            self.tell(f"{name} = {short(value)} {error}")
            return WRONG

    def read(self, words: Words, *, beside: Iterable[str] = ()) -> dict[str, Any]:
        """Read all that is left by these words; those ``beside`` are read elsewhere.

        What is wrong is noted and left out.
        """
        return self.read_within("", self.said, words, beside=beside)

    def read_within(
        self, within: str, said: Mapping[str, Any], words: Words, *, beside: Iterable[str] = ()
    ) -> dict[str, Any]:
        """Read a table that stands behind a word of this one."""
        known, prefix = {word.name: word for word in words}, f"{within}: " if within else ""
        self.unknown([name for name in said if name not in known], (*known, *beside), prefix)
        for word in words:
            if word.required and word.name not in said:
                self.lacks(f"{prefix}{word.name} is missing", word.name)
        read = {
            word.field: self.read_one(f"{prefix}{name}", word.kind, said[name])
            for name, word in known.items()
            if name in said
        }
        return {name: value for name, value in read.items() if value is not WRONG}


def write_words(value: Any, words: Iterable[Word]) -> dict[str, Any]:
    """Return what a table says of a value: whatever is not as it would be unsaid, and what has to be said."""
    unsaid = {f.name: f.default if f.default_factory is MISSING else f.default_factory() for f in fields(value)}
    return {
        word.name: word.kind.write(said)
        for word in words
        if word.field in unsaid and ((said := getattr(value, word.field)) != unsaid[word.field] or word.required)
    }
