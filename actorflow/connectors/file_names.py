"""Which files does somebody mean who names a file, a folder, a pattern, or a list of those?

A folder stands for the files in it, not for those in its sub-folders; names that begin with a dot are hidden from
folders and from ``*`` and ``?``, as in a shell.  In a pattern ``*``, ``?`` and ``[…]`` stay within one name, and
``**`` stands for any number of folders.  A name that exists is never taken for a pattern.  What comes out is
absolute, resolved, without doubles, and in order of the names, so two machines with the same files agree.
"""

from __future__ import annotations

from fnmatch import fnmatchcase

from actorflow.abc.disk import Disk

__all__ = ("find_files",)

_MAGIC = ("*", "?", "[")


async def find_files(disk: Disk, name: str) -> list[str]:
    """The files that ``name`` stands for; empty when there are none."""
    if await disk.size(name) is not None:
        return [await disk.resolve(name)]
    found = [f"{name.rstrip('/') or '/'}/{file}" for file in await disk.list_folder(name) if not file.startswith(".")]
    if not found and any(mark in name for mark in _MAGIC):
        found = await _matches(disk, name)
    return sorted({await disk.resolve(file): None for file in found})


async def _matches(disk: Disk, pattern: str) -> list[str]:
    parts = pattern.split("/")
    first = next(index for index, part in enumerate(parts) if any(mark in part for mark in _MAGIC))
    folder = "/".join(parts[:first]) or ("/" if pattern.startswith("/") else ".")
    wanted = [part for part in parts[first:] if part]
    is_flat = len(wanted) == 1 and wanted != ["**"]
    names = await (disk.list_folder(folder) if is_flat else disk.list_tree(folder))
    found = [f"{folder.rstrip('/')}/{name}" for name in names if _fits(name.split("/"), wanted)]
    # A pipe or a socket below the folder is no file, and opening one would wait for ever.
    return found if is_flat else [name for name in found if await disk.size(name) is not None]


def _fits(parts: list[str], wanted: list[str]) -> bool:
    """Whether a path fits a pattern, part by part."""
    if not wanted:
        return not parts
    if wanted[0] == "**":
        rest = wanted[1:] or ["*"]  # a `**` at the end is every file below
        return _fits(parts, rest) or (bool(parts) and not parts[0].startswith(".") and _fits(parts[1:], wanted))
    if not parts or (parts[0].startswith(".") and not wanted[0].startswith(".")):
        return False
    return fnmatchcase(parts[0], wanted[0]) and _fits(parts[1:], wanted[1:])
