"""Which names can the objects of a job's home have, and does a pattern match any of them?

An expectation that something is *not* there holds whatever happens if its pattern matches no name at all, so such a
pattern is refused before anything runs.  A pattern and a form of names are both followed letter by letter: there is a
name that fits both if they can come to their ends together.  Nothing is looked up in any storage.
"""

from __future__ import annotations

import string
from collections.abc import Iterable
from fnmatch import fnmatchcase

__all__ = ("can_match", "examples")

_DIGITS = frozenset(string.digits)
_NUMBER = ((_DIGITS - {"0"}, False), (_DIGITS, True))
_COUNT = ((_DIGITS, False), (_DIGITS, True))

_FREE = ("shared/", "taskowned/")

_Piece = tuple[frozenset[str], bool]
"""One of these letters; or, if true, any number of them."""


def _letters(text: str) -> tuple[_Piece, ...]:
    return tuple((frozenset(letter), False) for letter in text)


def _forms(actors: Iterable[str], alphabet: frozenset[str], pattern: str) -> list[tuple[_Piece, ...]]:
    """The forms of names in ``model/paths.py``; a piece of a checkpoint is called after its actor and a generation.

    What lies in folders where names are free is meant only by a pattern that names the folder.
    """
    claim = (*_letters("owner/"), *((_DIGITS, False),) * 10)
    inside = alphabet - {"/"}
    name = ((inside - {"."}, False), (inside, True))
    checkpoint = (*_letters("chk-"), *_NUMBER, *_letters("/"))
    pieces = [(*checkpoint, *_letters(f"{actor.replace('/', '-')}-"), *_COUNT) for actor in actors]
    free = [(*_letters(folder), *name) for folder in _FREE if pattern.startswith(folder)]
    return [
        claim,
        (*claim, *_letters(".base")),
        (*checkpoint, *_letters("_metadata")),
        *pieces,
        *free,
        _letters("finished"),
    ]


def _glob(pattern: str, alphabet: frozenset[str]) -> list[_Piece]:
    """What a pattern says, letter by letter, as ``fnmatch`` reads it."""
    said: list[_Piece] = []
    place = 0
    while place < len(pattern):
        end = place + 1
        match pattern[place]:
            case "*":
                said.append((alphabet, True))
            case "?":
                said.append((alphabet, False))
            case "[" if (close := _closes(pattern, place)) is not None:
                end = close + 1
                one = pattern[place:end]
                said.append((frozenset(letter for letter in alphabet if fnmatchcase(letter, one)), False))
            case letter:
                said.append((frozenset(letter), False))
        place = end
    return said


def _closes(pattern: str, place: int) -> int | None:
    """Where a ``[`` is closed: a ``]`` right behind it, or behind ``[!``, is one of its letters."""
    first = place + (2 if pattern.startswith("!", place + 1) else 1)
    close = pattern.find("]", first + 1)
    return None if close < 0 else close


def can_match(pattern: str, actors: Iterable[str]) -> bool:
    """Whether a pattern matches any name that an object in the home of a job with these actors can have."""
    actors = list(actors)
    alphabet = frozenset("".join([*actors, pattern])) | frozenset(string.printable)
    glob = _glob(pattern, alphabet)
    return any(_meet(glob, form) for form in _forms(actors, alphabet, pattern))


def _meet(one: list[_Piece], other: tuple[_Piece, ...]) -> bool:
    """Whether any text fits both."""
    known = {(0, 0)}
    left = [(0, 0)]
    while left:
        here, there = left.pop()
        if (here, there) == (len(one), len(other)):
            return True
        follows = []
        if here < len(one) and one[here][1]:
            follows.append((here + 1, there))
        if there < len(other) and other[there][1]:
            follows.append((here, there + 1))
        if here < len(one) and there < len(other) and one[here][0] & other[there][0]:
            follows.append((here + (not one[here][1]), there + (not other[there][1])))
        left += [pair for pair in follows if pair not in known]
        known.update(follows)
    return False


def examples(actors: Iterable[str]) -> list[str]:
    """Return a name of each form."""
    pieces = [f"chk-1/{actor.replace('/', '-')}-1" for actor in actors]
    owners = ["owner/0000000001", "owner/0000000001.base"]
    return ["chk-1/_metadata", "chk-*/_metadata", *pieces, *owners, "finished", *(f"{folder}*" for folder in _FREE)]
