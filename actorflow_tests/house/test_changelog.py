"""CHANGELOG speaks to the person who upgrades: what is not released yet on top, what breaks first."""

from __future__ import annotations

import re

from actorflow_tests.house.sources import REPOSITORY

CHANGELOG = REPOSITORY / "CHANGELOG.md"
ORDER = ["Incompatible", "Added", "Changed", "Fixed"]


def releases(text: str) -> list[tuple[str, list[tuple[str, str]]]]:
    """Return each release with its sections, and each section with its text."""
    found: list[tuple[str, list[tuple[str, str]]]] = []
    for part in re.split(r"^## ", text, flags=re.MULTILINE)[1:]:
        title, _, body = part.partition("\n")
        sections = [section.partition("\n") for section in re.split(r"^### ", body, flags=re.MULTILINE)[1:]]
        found.append((title.strip(), [(name.strip(), entries.strip()) for name, _, entries in sections]))
    return found


def test_what_is_not_released_yet_is_on_top() -> None:
    assert "Unreleased" == releases(CHANGELOG.read_text("utf-8"))[0][0]


def test_each_release_tells_what_breaks_first() -> None:
    for title, sections in releases(CHANGELOG.read_text("utf-8")):
        names = [name for name, _ in sections]
        assert [name for name in ORDER if name in names] == names, f"{title}: {names} is not in the order {ORDER}"


def test_each_section_has_entries() -> None:
    for title, sections in releases(CHANGELOG.read_text("utf-8")):
        for name, entries in sections:
            assert entries.startswith(("* ", "- ")), f"{title}, {name}: no entry"
