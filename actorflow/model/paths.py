"""Under which name does an object lie in a job's home?

Here and nowhere else are the names of objects built and read (architecture 13)::

    owner/0000000007        the claim of generation 7
    owner/0000000007.base   where generation 7 starts
    chk-12/_metadata        the manifest of checkpoint 12
    chk-12/<name>           a piece of checkpoint 12 alone
    shared/<name>           a piece that several checkpoints may refer to
    taskowned/<name>        a piece that belongs to whoever wrote it; no checkpoint's end removes it
    finished                the job reached its end

A name that comes out of a manifest is one plain file name or it is refused, so nothing a stranger wrote leads out of
the folder where it belongs.  Parsers answer ``None`` for whatever is not ours, as others may put files beside.
"""

from __future__ import annotations

import re
from typing import Final

from actorflow.errors import CorruptObject, InvalidJob
from actorflow.model.handles import ObjectHandle, Scope

__all__ = ("LAST_GENERATION", "MANIFEST_NAME", "Home", "is_plain_name")

LAST_GENERATION: Final = 10**10 - 1
"""The highest generation that has a name."""

_LONGEST_NAME: Final = 255  # bytes; what file systems take
MANIFEST_NAME: Final = "_metadata"
"""What a manifest is called in the folder of its checkpoint."""

_CLAIM: Final = re.compile(r"owner/([0-9]{10})")
_BASE: Final = re.compile(r"owner/([0-9]{10})\.base")
_PIECE: Final = re.compile(r"chk-(0|[1-9][0-9]{0,18})/[^/]+")
_MANIFEST_NAME: Final = re.compile(r"chk-(0|[1-9][0-9]{0,18})/_metadata")


def is_plain_name(name: str) -> bool:
    """Whether a text can name one file in one folder, anywhere, without leading somewhere else or hiding itself."""
    if not name or name.startswith(".") or ".." in name or "/" in name or "\\" in name or not name.isprintable():
        return False  # a lone surrogate is not printable either
    return len(name.encode()) <= _LONGEST_NAME


class Home:
    """The names of one job's home; ``prefix`` is the job's name, or empty where the whole store is the home."""

    __slots__ = ("prefix",)

    def __init__(self, prefix: str = "") -> None:
        if prefix and not is_plain_name(prefix):
            raise InvalidJob(
                f"{prefix!r} can't be the name of a job, as it names the folder of its checkpoints: use at most "
                f"{_LONGEST_NAME} bytes of printable text without slashes, backslashes, '..' or a dot in front"
            )
        self.prefix = f"{prefix}/" if prefix else ""

    def __repr__(self) -> str:
        return f"Home({self.prefix.rstrip('/')!r})"

    # ── names ──

    @property
    def owners_prefix(self) -> str:
        """What all claims and bases begin with."""
        return f"{self.prefix}owner/"

    @property
    def checkpoints_prefix(self) -> str:
        """What everything that belongs to single checkpoints begins with."""
        return f"{self.prefix}chk-"

    @property
    def shared_prefix(self) -> str:
        """What all pieces of several checkpoints begin with."""
        return f"{self.prefix}shared/"

    def owner(self, generation: int) -> str:
        """Return the name of a generation's claim."""
        assert 0 <= generation <= LAST_GENERATION, generation
        return f"{self.prefix}owner/{generation:010}"

    def base(self, generation: int) -> str:
        """Return the name of the object that says where a generation starts."""
        return f"{self.owner(generation)}.base"

    def checkpoint(self, checkpoint_id: int) -> str:
        """Return what the names of everything that belongs to one checkpoint alone begin with."""
        assert checkpoint_id >= 0, checkpoint_id
        return f"{self.prefix}chk-{checkpoint_id}/"

    def manifest(self, checkpoint_id: int) -> str:
        """Return the name of a checkpoint's manifest."""
        return f"{self.checkpoint(checkpoint_id)}{MANIFEST_NAME}"

    def private(self, checkpoint_id: int, name: str) -> str:
        """Return the name of a piece of one checkpoint."""
        if name == MANIFEST_NAME:
            raise CorruptObject(
                f"{self.manifest(checkpoint_id)}: a piece of state is called {name!r} as the manifest is"
            )
        return self.checkpoint(checkpoint_id) + _checked(name)

    def shared(self, name: str) -> str:
        """Return the name of a piece that several checkpoints may refer to."""
        return self.shared_prefix + _checked(name)

    def taskowned(self, name: str) -> str:
        """Return the name of a piece that the end of no checkpoint removes."""
        return f"{self.prefix}taskowned/{_checked(name)}"

    def finished(self) -> str:
        """Return the name of the mark that the job reached its end."""
        return f"{self.prefix}finished"

    def resolve(self, handle: ObjectHandle, checkpoint_id: int) -> str:
        """Return the name of the object that a handle of a checkpoint's manifest refers to."""
        match handle.scope:
            case Scope.PRIVATE:
                return self.private(checkpoint_id, handle.name)
            case Scope.SHARED:
                return self.shared(handle.name)

    # ── and back ──

    def generation_of(self, name: str) -> int | None:
        """Return the generation whose claim has this name."""
        return self._number(_CLAIM, name)

    def base_of(self, name: str) -> int | None:
        """Return the generation whose base has this name."""
        return self._number(_BASE, name)

    def checkpoint_of(self, name: str) -> int | None:
        """Return the checkpoint in whose folder an object of this name lies."""
        return self._number(_PIECE, name)

    def manifest_of(self, name: str) -> int | None:
        """Return the checkpoint whose manifest has this name."""
        return self._number(_MANIFEST_NAME, name)

    def _number(self, pattern: re.Pattern[str], name: str) -> int | None:
        found = pattern.fullmatch(name, len(self.prefix)) if name.startswith(self.prefix) else None
        return int(found[1]) if found else None


def _checked(name: str) -> str:
    if not is_plain_name(name):
        raise CorruptObject(
            f"{name!r} is not the plain name of an object: a name that leads elsewhere is never followed"
        )
    return name
