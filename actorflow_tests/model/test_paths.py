"""The names of objects in a home (architecture 13, Identity; semantics 3.11)."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from actorflow.errors import CorruptObject, InvalidJob
from actorflow.model.handles import ObjectHandle, Scope
from actorflow.model.paths import LAST_GENERATION, MANIFEST_NAME, Home, is_plain_name

BAD_NAMES = [
    "",
    ".",
    "..",
    "../x",
    "a/../b",
    "a..b",
    "/etc/passwd",
    "a/b",
    "a\\b",
    "..\\x",
    "a\0b",
    "a\nb",
    ".hidden",
    "\ud800",
    "x" * 256,
    "é" * 128,
]

prefixes = st.sampled_from(["", "words", "count words", "é", "chk-1", "owner"])


@pytest.mark.parametrize(
    ("prefix", "expected"),
    [
        (
            "",
            [
                "owner/0000000007",
                "owner/0000000007.base",
                "chk-12/_metadata",
                "chk-12/a",
                "shared/a",
                "taskowned/a",
                "finished",
            ],
        ),
        (
            "words",
            [
                "words/owner/0000000007",
                "words/owner/0000000007.base",
                "words/chk-12/_metadata",
                "words/chk-12/a",
                "words/shared/a",
                "words/taskowned/a",
                "words/finished",
            ],
        ),
    ],
)
def test_the_layout_of_a_home(prefix: str, expected: list[str]) -> None:
    home = Home(prefix)

    assert expected == [
        home.owner(7),
        home.base(7),
        home.manifest(12),
        home.private(12, "a"),
        home.shared("a"),
        home.taskowned("a"),
        home.finished(),
    ]
    assert home.owner(7).startswith(home.owners_prefix)
    assert home.manifest(12).startswith(home.checkpoints_prefix)
    assert home.private(12, "a").startswith(home.checkpoint(12))
    assert home.shared("a").startswith(home.shared_prefix)


def test_claims_sort_as_their_generations_do() -> None:
    generations = [0, 1, 9, 10, 99, 12_345, LAST_GENERATION]

    names = [Home("words").owner(generation) for generation in generations]

    assert sorted(names) == names


@given(prefixes, st.integers(0, LAST_GENERATION), st.integers(0, 10**18))
def test_what_a_name_says_is_read_back_from_it_and_from_no_other(prefix: str, generation: int, checkpoint: int) -> None:
    home = Home(prefix)
    readers = [home.generation_of, home.base_of, home.checkpoint_of, home.manifest_of]

    def read(name: str) -> list[int | None]:
        return [reader(name) for reader in readers]

    assert read(home.owner(generation)) == [generation, None, None, None]
    assert read(home.base(generation)) == [None, generation, None, None]
    assert read(home.manifest(checkpoint)) == [None, None, checkpoint, checkpoint]
    assert read(home.private(checkpoint, "a")) == [None, None, checkpoint, None]
    for name in (home.shared("a"), home.taskowned("a"), home.finished()):
        assert read(name) == [None] * 4


@pytest.mark.parametrize(
    "name",
    [
        "",
        "owner/7",
        "owner/00000000071",
        "owner/0000000007.tmp",
        "owner/0000000007.base.tmp",
        "owner/-000000007",
        "owner/０００００００００７",
        "chk-/a",
        "chk-01/a",
        "chk--1/a",
        "chk-1",
        "chk-1/",
        "chk-1/a/b",
        "chk-x/_metadata",
        "chk-" + "9" * 5_000 + "/_metadata",
        "other/chk-1/_metadata",
        "words/chk-1/_metadata/more",
        "wordsowner/0000000007",
        "xwords/owner/0000000007",
    ],
)
def test_names_that_are_not_ours_say_nothing(name: str) -> None:
    for home in (Home(), Home("words")):
        assert home.generation_of(name) is None
        assert home.base_of(name) is None
        assert home.checkpoint_of(name) is None
        assert home.manifest_of(name) is None


def test_a_home_below_another_does_not_read_the_others_names() -> None:
    assert Home("words").manifest_of(Home().manifest(1)) is None
    assert Home().manifest_of(Home("words").manifest(1)) is None


@pytest.mark.parametrize("name", BAD_NAMES)
def test_a_name_that_leads_elsewhere_is_never_followed(name: str) -> None:
    assert not is_plain_name(name)
    home = Home("words")

    for scope in Scope:
        with pytest.raises(CorruptObject, match="not the plain name"):
            home.resolve(ObjectHandle(scope, name, 0, 1, 0), 7)
    with pytest.raises(CorruptObject):
        home.taskowned(name)
    if name:
        with pytest.raises(InvalidJob, match="can't be the name of a job"):
            Home(name)


def test_a_piece_is_not_called_as_the_manifest_is() -> None:
    with pytest.raises(CorruptObject, match="as the manifest is"):
        Home().private(1, MANIFEST_NAME)


def test_handles_resolve_by_their_scope() -> None:
    home = Home("words")

    assert home.resolve(ObjectHandle(Scope.PRIVATE, "a-1", 0, 1, 0), 7) == "words/chk-7/a-1"
    assert home.resolve(ObjectHandle(Scope.SHARED, "a-1", 0, 1, 0), 7) == "words/shared/a-1"


@given(st.text(max_size=8))
def test_whatever_passes_for_a_plain_name_stays_one_part_of_a_path(name: str) -> None:
    if is_plain_name(name):
        assert Home().shared(name).split("/") == ["shared", name]
        assert name not in {".", ".."}
        name.encode()
