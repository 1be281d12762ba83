"""Manifests come back as they were, and nothing else passes for one (semantics 3.9, architecture 13)."""

from __future__ import annotations

import dataclasses
from typing import Any

import cbor2
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from actorflow.errors import CorruptObject, IncompatibleState
from actorflow.model.envelope import seal, unseal
from actorflow.model.handles import InlineHandle, ObjectHandle, Scope
from actorflow.model.manifest import ListHandle, Manifest, OperatorSnapshot, Redistribution, SubtaskSnapshot
from actorflow.model.manifest_codec import MANIFEST_VERSION, decode_manifest, encode_manifest
from actorflow.model.paths import is_plain_name

NAME = "words/chk-7/_metadata"

names = st.text(min_size=1, max_size=12).filter(lambda name: is_plain_name(name) and name != "_metadata")
texts = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=8)
numbers = st.integers(0, 2**64 - 1)
handles = st.one_of(
    st.builds(InlineHandle, st.binary(max_size=20)),
    st.builds(ObjectHandle, st.sampled_from(Scope), names, numbers, numbers, st.integers(0, 2**32 - 1)),
)
lists = st.builds(
    ListHandle, state=texts, redistribution=st.sampled_from(Redistribution), count=numbers, handle=handles
)


@st.composite
def operators(draw: st.DrawFn, name: str) -> OperatorSnapshot:
    max_parallelism = draw(st.integers(1, 32_768))
    parallelism = draw(st.integers(1, min(max_parallelism, 4)))
    subtasks = sorted(draw(st.sets(st.integers(0, parallelism - 1))))
    return OperatorSnapshot(
        operator=name,
        parallelism=parallelism,
        max_parallelism=max_parallelism,
        subtasks=tuple(
            SubtaskSnapshot(
                subtask=subtask,
                finished=draw(st.booleans()),
                keyed=tuple(draw(st.lists(handles, max_size=2))),
                lists=tuple(draw(st.lists(lists, max_size=2))),
            )
            for subtask in subtasks
        ),
        states=draw(st.dictionaries(texts, texts, max_size=2)),
        types=draw(st.dictionaries(texts, texts, max_size=2)),
    )


@st.composite
def manifests(draw: st.DrawFn) -> Manifest:
    return Manifest(
        job=draw(texts),
        generation=draw(numbers),
        checkpoint_id=draw(numbers),
        kind=draw(texts),
        key_scheme=draw(texts),
        written_at_ms=draw(numbers),
        operators=tuple(draw(operators(name)) for name in draw(st.lists(texts, unique=True, max_size=2))),
        retained=tuple(sorted(draw(st.sets(numbers, max_size=3)))),
        bytes=draw(numbers),
    )


EXAMPLE = Manifest(
    job="words",
    generation=3,
    checkpoint_id=7,
    kind="periodic",
    key_scheme="crc32/1",
    written_at_ms=1_700_000_000_000,
    retained=(5, 7),
    bytes=1_234,
    operators=(
        OperatorSnapshot(
            operator="count",
            parallelism=2,
            max_parallelism=128,
            states={"n": "value"},
            subtasks=(
                SubtaskSnapshot(subtask=0, keyed=(ObjectHandle(Scope.PRIVATE, "count-0", 0, 900, 77),)),
                SubtaskSnapshot(
                    subtask=1,
                    finished=True,
                    keyed=(InlineHandle(b"few"),),
                    lists=(
                        ListHandle(
                            state="position",
                            redistribution=Redistribution.SPLIT,
                            count=2,
                            handle=ObjectHandle(Scope.SHARED, "lists-1", 10, 20, 78),
                        ),
                    ),
                ),
            ),
        ),
    ),
)


@settings(deadline=None)
@given(manifests())
def test_a_manifest_comes_back_as_it_was(manifest: Manifest) -> None:
    data = encode_manifest(manifest)

    assert decode_manifest(data, NAME) == manifest
    assert encode_manifest(decode_manifest(data, NAME)) == data


def test_every_truncation_is_a_corrupt_object_that_names_the_manifest() -> None:
    data = encode_manifest(EXAMPLE)

    for length in range(len(data)):
        with pytest.raises(CorruptObject, match=NAME):
            decode_manifest(data[:length], NAME)
    with pytest.raises(CorruptObject, match=NAME):
        decode_manifest(data + b"\0", NAME)


def test_every_flipped_bit_is_a_corrupt_object_that_names_the_manifest() -> None:
    data = encode_manifest(EXAMPLE)

    for position in range(len(data)):
        for bit in range(8):
            damaged = bytearray(data)
            damaged[position] ^= 1 << bit
            with pytest.raises(CorruptObject, match=NAME):
                decode_manifest(bytes(damaged), NAME)


@settings(deadline=None)
@given(st.data())
def test_damage_under_a_sound_checksum_is_a_manifest_in_its_one_form_or_refused(data: st.DataObject) -> None:
    _, body = unseal("manifest", encode_manifest(EXAMPLE), NAME)
    damaged = bytearray(body)
    for _ in range(data.draw(st.integers(1, 3))):
        damaged[data.draw(st.integers(0, len(damaged) - 1))] = data.draw(st.integers(0, 255))

    sealed = seal("manifest", MANIFEST_VERSION, bytes(damaged))
    try:
        manifest = decode_manifest(sealed, NAME)
    except CorruptObject as error:
        assert NAME in str(error)  # noqa: PT017 - either outcome is right
        return
    assert encode_manifest(manifest) == sealed


@given(st.binary(max_size=60))
def test_any_bytes_under_a_sound_checksum_are_refused(body: bytes) -> None:
    with pytest.raises(CorruptObject, match=NAME):
        decode_manifest(seal("manifest", MANIFEST_VERSION, body), NAME)


def test_deep_nesting_and_huge_lengths_are_refused() -> None:
    for body in (
        b"\x81" * 10_000 + b"\x00",
        b"\x9b" + b"\xff" * 8,
        b"\x5b\x7f" + b"\xff" * 7,
        b"\xbb\x00\x00\x00\xff" + b"\xff" * 4,
    ):
        with pytest.raises(CorruptObject, match=NAME):
            decode_manifest(seal("manifest", MANIFEST_VERSION, body), NAME)


def fields() -> Any:
    _, body = unseal("manifest", encode_manifest(EXAMPLE), NAME)
    return cbor2.loads(body)


def set_at(path: str, value: Any) -> Any:
    """The example's fields with one changed, added or (with ``...``) removed."""
    whole = at = fields()
    *parts, last = [int(part) if part.isdigit() else part for part in path.split(".")]
    for part in parts:
        at = at[part]
    if value is ...:
        del at[last]
    else:
        at[last] = value
    return whole


OPERATOR = "operators.0"
PIECE = "operators.0.subtasks.0.keyed.0"
LIST = "operators.0.subtasks.1.lists.0"


@pytest.mark.parametrize(
    ("path", "value", "why"),
    [
        ("job", ..., "manifest.job is missing"),
        ("job", "", "manifest.job is empty"),
        ("job", 7, "manifest.job should be of type str, not int"),
        ("extra", 1, "manifest has unknown fields: extra"),
        ("generation", -1, "outside 0"),
        ("generation", True, "should be of type int, not bool"),
        ("generation", 2**64, "outside 0"),
        ("retained", [7, 5], "retained should ascend"),
        ("retained", [5, 5], "retained should ascend"),
        ("retained", ["5"], "retained should hold ids"),
        ("operators", {}, "should be of type list"),
        ("operators.0", 5, r"operators\[0\] should be a map"),
        (f"{OPERATOR}.parallelism", 0, "outside 1 to 128"),
        (f"{OPERATOR}.parallelism", 129, "outside 1 to 128"),
        (f"{OPERATOR}.max_parallelism", 32_769, "outside 1 to 32768"),
        (f"{OPERATOR}.parallelism", 1, "names subtask 1 of 1"),
        (f"{OPERATOR}.states", {"n": 1}, "should map text to text"),
        (f"{OPERATOR}.subtasks.1.subtask", 0, "subtasks should ascend"),
        (f"{OPERATOR}.subtasks.1.finished", 1, "should be of type bool"),
        (f"{PIECE}.name", "../../other/chk-1/x", "not the plain name of a piece of state"),
        (f"{PIECE}.name", "/etc/passwd", "not the plain name"),
        (f"{PIECE}.name", "a\\b", "not the plain name"),
        (f"{PIECE}.name", "a\0b", "not the plain name"),
        (f"{PIECE}.name", "..", "not the plain name"),
        (f"{PIECE}.name", "_metadata", "not the plain name"),
        (f"{PIECE}.scope", "foreign", "which this actorflow does not know"),
        (f"{PIECE}.crc32", 2**32, "outside 0 to 4294967295"),
        (f"{PIECE}.offset", -1, "outside 0"),
        (f"{PIECE}.data", b"both", "unknown fields: crc32, length, name, offset, scope"),
        (f"{PIECE}.path", "/x", "unknown fields: path"),
        (f"{LIST}.redistribution", "shuffle", "which this actorflow does not know"),
        (f"{LIST}.handle", {"data": "text"}, "should be of type bytes, not str"),
    ],
)
def test_a_field_that_is_wrong_is_told_with_its_place(path: str, value: Any, why: str) -> None:
    data = seal("manifest", MANIFEST_VERSION, cbor2.dumps(set_at(path, value)))

    with pytest.raises(CorruptObject, match=f"{NAME}: this is no sound manifest: .*{why}"):
        decode_manifest(data, NAME)


def test_an_operator_that_is_named_twice_is_refused() -> None:
    whole = fields()
    whole["operators"] *= 2

    with pytest.raises(CorruptObject, match="names an operator twice"):
        decode_manifest(seal("manifest", MANIFEST_VERSION, cbor2.dumps(whole)), NAME)


def test_another_form_of_the_same_fields_is_refused() -> None:
    whole = dict(reversed(fields().items()))

    with pytest.raises(CorruptObject, match="not written in its one form"):
        decode_manifest(seal("manifest", MANIFEST_VERSION, cbor2.dumps(whole)), NAME)


def test_an_object_of_another_kind_is_no_manifest() -> None:
    with pytest.raises(CorruptObject, match=NAME):
        decode_manifest(seal("base", 1, cbor2.dumps(fields())), NAME)


def test_a_newer_version_is_told_apart_from_damage() -> None:
    with pytest.raises(IncompatibleState, match=f"{NAME}: .*version 2.*up to 1"):
        decode_manifest(seal("manifest", 2, b"whatever"), NAME)


def test_a_manifest_that_could_not_be_read_back_is_not_written() -> None:
    broken = dataclasses.replace(EXAMPLE, retained=(7, 5))

    with pytest.raises(AssertionError):
        encode_manifest(broken)


GOLDEN = (
    "af666c6f770d0a01086d616e69666573740000000100000000000001b84caf5b8ea9636a6f6265776f7264736a67656e6572"
    "6174696f6e036d636865636b706f696e745f696407646b696e6468706572696f6469636a6b65795f736368656d6567637263"
    "33322f316d7772697474656e5f61745f6d731b0000018bcfe568006562797465731904d26872657461696e6564820507696f"
    "70657261746f727381a6686f70657261746f7265636f756e746b706172616c6c656c69736d026f6d61785f706172616c6c65"
    "6c69736d188066737461746573a1616e6576616c7565657479706573a0687375627461736b7382a4677375627461736b0068"
    "66696e6973686564f4656b6579656481a56573636f70656770726976617465646e616d6567636f756e742d30666f66667365"
    "7400666c656e677468190384656372633332184d656c6973747380a4677375627461736b016866696e6973686564f5656b65"
    "79656481a1646461746143666577656c6973747381a465737461746568706f736974696f6e6e726564697374726962757469"
    "6f6e6573706c697465636f756e74026668616e646c65a56573636f706566736861726564646e616d65676c697374732d3166"
    "6f66667365740a666c656e67746814656372633332184e"
)


def test_the_form_on_disk_never_changes() -> None:
    assert encode_manifest(EXAMPLE).hex() == GOLDEN
    assert decode_manifest(bytes.fromhex(GOLDEN), NAME) == EXAMPLE
