from __future__ import annotations

import subprocess
import sys
from dataclasses import make_dataclass
from enum import Enum
from pathlib import Path
from typing import Annotated, Any, Optional, Union

import pytest

from actorflow.model.codec import Registry, fingerprint

ROOT = Path(__file__).parents[2]


def of(fields: list[tuple[str, Any]], *, version: int = 1) -> str:
    registry = Registry(alone=True)
    cls = make_dataclass("Thing", fields)
    registry.register(cls, name="thing", version=version)
    return fingerprint(cls, registry)


BASE = of([("a", int), ("b", list[str])])


def test_a_fingerprint_is_short_text_and_always_the_same() -> None:
    assert 32 == len(BASE)
    assert int(BASE, 16)
    assert BASE == of([("a", int), ("b", list[str])])


def test_the_order_of_fields_and_of_a_union_does_not_matter() -> None:
    assert BASE == of([("b", list[str]), ("a", int)])
    assert of([("a", int | None)]) == of([("a", Optional[int])]) == of([("a", Union[None, int])])  # noqa: UP007, UP045
    assert of([("a", Annotated[int, "unit"])]) == of([("a", int)])


@pytest.mark.parametrize(
    "fields",
    [
        [("a", int)],
        [("a", int), ("b", list[str]), ("c", int)],
        [("a", float), ("b", list[str])],
        [("a", int), ("b", list[int])],
        [("a", int), ("c", list[str])],
        [("a", int), ("b", "list[str] | Missing")],
    ],
    ids=str,
)
def test_a_change_of_names_or_types_shows(fields: list[tuple[str, Any]]) -> None:
    assert BASE != of(fields)


def test_a_new_version_shows() -> None:
    assert BASE != of([("a", int), ("b", list[str])], version=2)


def test_a_change_deep_inside_shows_and_classes_may_name_themselves() -> None:
    def build(inner: type) -> str:
        leaf = make_dataclass("Leaf", [("x", inner)])
        node = make_dataclass("Node", [("leaf", dict[str, leaf]), ("next", "Node")])  # type: ignore[valid-type]
        registry = Registry(alone=True)
        registry.register(leaf, name="leaf")
        registry.register(node, name="node")
        return fingerprint(node, registry)

    assert build(int) == build(int)
    assert build(int) != build(str)


def test_members_of_an_enum_count_and_their_order_does_not() -> None:
    registry = Registry(alone=True)

    def build(*names: str) -> str:
        return fingerprint(Enum("Color", names, module="shop"), registry)

    assert build("RED", "BLUE") == build("BLUE", "RED")
    assert build("RED", "BLUE") != build("RED")


def test_plain_annotations_have_fingerprints_too() -> None:
    prints = [
        fingerprint(annotation) for annotation in (int, str, list[int], list[str], dict[str, int], None, Any, "Later")
    ]
    assert len(prints) == len(set(prints))


def test_a_fingerprint_does_not_depend_on_the_process() -> None:
    program = (
        "from dataclasses import dataclass\n"
        "from actorflow.model.codec import fingerprint\n"
        "@dataclass\n"
        "class Thing:\n"
        "    a: 'int | None | str'\n"
        "    b: 'dict[str, Thing]'\n"
        "print(fingerprint(Thing))\n"
    )
    outputs = {
        subprocess.run(
            [sys.executable, "-c", program],
            env={"PYTHONHASHSEED": seed, "PYTHONPATH": str(ROOT)},
            capture_output=True,
            check=True,
            text=True,
        ).stdout
        for seed in ("1", "2")
    }
    assert 1 == len(outputs)
