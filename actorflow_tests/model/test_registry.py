from __future__ import annotations

import subprocess
import sys
from collections import namedtuple
from dataclasses import dataclass, field, make_dataclass
from enum import Enum
from pathlib import Path
from typing import Any, NamedTuple

import attrs
import msgspec
import pytest

from actorflow.errors import CorruptObject, IncompatibleState, InvalidJob, InvalidValue
from actorflow.model.codec import Codec, Registry
from actorflow.model.registry import Upgrade, default_name, default_registry, record

ROOT = Path(__file__).parents[2]


def codec_of(cls: type, *, name: str = "thing", version: int = 1, upgrades: dict[int, Upgrade] | None = None) -> Codec:
    registry = Registry(alone=True)
    registry.register(cls, name=name, version=version, upgrades=upgrades)
    return Codec(registry)


# ── names ────────────────────────────────────────────────────────────────────────────────────


def test_a_class_is_called_after_its_module_and_qualified_name() -> None:
    class Inner:
        pass

    assert default_name(Inner).endswith(
        "test_registry:test_a_class_is_called_after_its_module_and_qualified_name.<locals>.Inner"
    )
    assert "builtins:int" == default_name(int)


def test_a_class_of_a_program_is_called_after_its_file(tmp_path: Path) -> None:
    program = tmp_path / "word_count.py"
    program.write_text(
        "from dataclasses import dataclass\n"
        "from actorflow.model.registry import default_registry, record\n"
        "@record\n"
        "@dataclass\n"
        "class Click:\n"
        "    url: str\n"
        "print(default_registry.name_of(Click))\n"
    )
    run = subprocess.run(
        [sys.executable, program], capture_output=True, check=True, text=True, env={"PYTHONPATH": str(ROOT)}
    )
    assert "word_count:Click\n" == run.stdout


def test_record_marks_a_class_for_the_process_and_gives_it_back() -> None:
    @record
    @dataclass
    class Plain:
        x: int

    @record(name="test_registry.Named", version=2, upgrades={1: dict})
    @dataclass
    class Named:
        x: int

    assert default_name(Plain) == default_registry.name_of(Plain)
    assert "test_registry.Named" == default_registry.name_of(Named)
    assert Named is default_registry.class_of("test_registry.Named")
    assert "test_registry.Named" in Registry().names()
    assert [Plain(1), Named(2)] == Codec().decode(Codec().encode([Plain(1), Named(2)]))
    assert Named(2) == Codec(Registry()).decode(Codec().encode(Named(2)))


def test_a_registry_of_a_job_does_not_tell_the_process_and_one_alone_does_not_ask_it() -> None:
    @record(name="test_registry.Shared")
    @dataclass
    class Shared:
        x: int

    @dataclass
    class Own:
        x: int

    registry = Registry()
    registry.register(Own)
    assert registry.name_of(Own)
    assert default_registry.entry_of(Own) is None
    with pytest.raises(InvalidValue, match="Shared"):
        Registry(alone=True).name_of(Shared)


def test_two_classes_of_one_name_are_refused() -> None:
    @dataclass
    class First:
        x: int

    @dataclass
    class Second:
        x: int

    registry = Registry(alone=True)
    registry.register(First, name="thing")
    with pytest.raises(InvalidJob, match=r"two classes are called 'thing': .*First and .*Second.*another name"):
        registry.register(Second, name="thing")
    default_registry.register(First, name="test_registry.First")
    with pytest.raises(InvalidJob, match="two classes are called"):
        Registry().register(Second, name="test_registry.First")


def test_one_class_of_two_names_is_refused_and_twice_the_same_is_fine() -> None:
    @dataclass
    class Thing:
        x: int

    registry = Registry(alone=True)
    registry.register(Thing, name="thing")
    registry.register(Thing, name="thing")
    with pytest.raises(InvalidJob, match="already registered as 'thing'"):
        registry.register(Thing, name="other")


def test_a_class_that_a_notebook_defines_again_takes_the_place_of_the_older_one() -> None:
    def define(version: int) -> Any:
        @dataclass
        class Cell:
            x: int

        Cell.made = version  # type: ignore[attr-defined]
        return Cell

    older, newer = define(1), define(2)
    registry = Registry(alone=True)
    registry.register(older, name="cell")
    registry.register(newer, name="cell")
    codec = Codec(registry)
    assert newer(1) == codec.decode(codec.encode(newer(1)))
    with pytest.raises(InvalidValue, match="Cell"):
        codec.encode(older(1))


def test_a_running_job_keeps_the_class_it_knows_when_a_notebook_defines_it_again() -> None:
    def define() -> Any:
        @dataclass
        class Running:
            x: int

        return Running

    older, newer = define(), define()
    default_registry.register(older, name="test_registry.Running")
    codec = Codec(Registry())
    data = codec.encode(older(1))
    default_registry.register(newer, name="test_registry.Running")
    assert type(codec.decode(data)) is older
    with pytest.raises(InvalidValue, match="Running"):
        codec.encode(newer(1))
    assert type(Codec(Registry()).decode(data)) is newer


class Solo:
    pass


class MyInt(int):
    pass


@dataclass
class MyDict(dict[str, int]):
    x: int = 0


@dataclass
class MyError(Exception):
    x: int = 0


@pytest.mark.parametrize(
    ("cls", "match"),
    [
        (Solo, "no dataclass.*put @dataclass above the class"),
        (MyInt, "no dataclass"),
        (MyDict, r"holds more than its fields, as it is a subclass of dict; give it a field of type dict"),
        (MyError, "holds more than its fields"),
        (5, "is no class"),
        (print, "is no class"),
    ],
)
def test_what_has_no_known_fields_can_not_be_registered(cls: Any, match: str) -> None:
    with pytest.raises(InvalidJob, match=match):
        record(cls)


@pytest.mark.parametrize(
    ("arguments", "match"),
    [
        ({"name": ""}, "name is printable text"),
        ({"name": "a\nb"}, "name is printable text"),
        ({"name": "a\ud800"}, "name is printable text"),
        ({"name": 5}, "name is printable text"),
        ({"version": 0}, "versions count from 1"),
        ({"version": True}, "versions count from 1"),
        ({"version": "2"}, "versions count from 1"),
        ({"version": 2, "upgrades": {2: dict}}, "must be a lower one"),
        ({"version": 2, "upgrades": {0: dict}}, "must be a lower one"),
        ({"version": 2, "upgrades": {1: "up"}}, "no function"),
    ],
)
def test_arguments_that_can_not_be_meant_are_refused(arguments: dict[str, Any], match: str) -> None:
    @dataclass
    class Thing:
        x: int

    with pytest.raises(InvalidJob, match=match):
        Registry(alone=True).register(Thing, **arguments)


def test_an_unknown_name_is_told() -> None:
    with pytest.raises(IncompatibleState, match=r"'gone'.*import the module"):
        Registry(alone=True).class_of("gone")


# ── evolution ────────────────────────────────────────────────────────────────────────────────


def variants(kind: str, *fields: str | tuple[str, Any]) -> Any:
    """One class of each kind with these fields; a pair is a field with its default."""
    match kind:
        case "dataclass" | "slots" | "frozen":
            specs: list[Any] = [f if isinstance(f, str) else (f[0], Any, field(default=f[1])) for f in fields]
            return make_dataclass("Thing", specs, slots=kind == "slots", frozen=kind == "frozen")
        case "attrs" | "attrs slots":
            members = {
                f if isinstance(f, str) else f[0]: attrs.field() if isinstance(f, str) else attrs.field(default=f[1])
                for f in fields
            }
            return attrs.make_class("Thing", members, slots=kind == "attrs slots")
        case "namedtuple":
            names = [f if isinstance(f, str) else f[0] for f in fields]
            return namedtuple("Thing", names, defaults=[f[1] for f in fields if not isinstance(f, str)])  # noqa: PYI024
        case "struct":
            return msgspec.defstruct("Thing", [f if isinstance(f, str) else (f[0], Any, f[1]) for f in fields])
    raise AssertionError(kind)


KINDS = ["dataclass", "slots", "frozen", "attrs", "attrs slots", "namedtuple", "struct"]


@pytest.mark.parametrize("kind", KINDS)
def test_r065_a_field_that_was_removed_does_not_shift_the_others(kind: str) -> None:
    before = variants(kind, "count", "minor", "launch")
    after = variants(kind, "count", "launch")
    data = codec_of(before).encode([before(1, 2, 3), before(4, 5, 6)])
    first, second = codec_of(after).decode(data)
    assert [1, 3, 4, 6] == [first.count, first.launch, second.count, second.launch]
    assert not hasattr(first, "minor")


@pytest.mark.parametrize("kind", KINDS)
def test_r065_fields_that_changed_places_keep_their_values(kind: str) -> None:
    before = variants(kind, "a", "b", "c")
    after = variants(kind, "c", "a", "b")
    thing = codec_of(after).decode(codec_of(before).encode(before(1, 2, 3)))
    assert [1, 2, 3] == [thing.a, thing.b, thing.c]


@pytest.mark.parametrize("kind", KINDS)
def test_r066_a_field_that_was_added_takes_its_default_at_once(kind: str) -> None:
    before = variants(kind, "a")
    after = variants(kind, "a", ("b", 5))
    assert after(1, 5) == codec_of(after).decode(codec_of(before).encode(before(1)))


@pytest.mark.parametrize("kind", KINDS)
def test_r066_a_field_that_was_added_without_a_default_is_told_while_reading(kind: str) -> None:
    before = variants(kind, "a")
    after = variants(kind, "a", "b")
    with pytest.raises(IncompatibleState, match=r"before .*Thing had the field 'b'; give the field a default"):
        codec_of(after).decode(codec_of(before).encode(before(1)))


def test_a_default_that_is_made_is_made_for_each_instance() -> None:
    @dataclass
    class Before:
        a: int

    @dataclass
    class After:
        a: int
        b: list[int] = field(default_factory=list)
        c: int = field(init=False, default=7)

    @attrs.define
    class AfterAttrs:
        a: int
        b: list[int] = attrs.Factory(list)
        c: int = attrs.field(default=attrs.Factory(lambda self: self.a + 1, takes_self=True))

    data = codec_of(Before).encode([Before(1), Before(2)])
    for cls in (After, AfterAttrs):
        first, second = codec_of(cls).decode(data)
        first.b.append(1)
        assert [] == second.b
        assert (7 if cls is After else 3) == second.c


def test_upgrades_run_one_after_the_other_from_the_version_that_was_written() -> None:
    @dataclass
    class First:
        item: str

    @dataclass
    class Second:
        items: list[str]

    @dataclass
    class Third:
        items: tuple[str, ...]
        count: int

    upgrades: dict[int, Upgrade] = {
        1: lambda fields: {"items": [fields["item"]]},
        2: lambda fields: fields | {"items": tuple(fields["items"]), "count": len(fields["items"])},
    }
    now = codec_of(Third, version=3, upgrades=upgrades)
    assert [Third(("a",), 1), Third(("b",), 1)] == now.decode(codec_of(First).encode([First("a"), First("b")]))
    assert Third(("a", "b"), 2) == now.decode(codec_of(Second, version=2).encode(Second(["a", "b"])))
    assert Third((), 0) == now.decode(now.encode(Third((), 0)))


def test_an_upgrade_that_fails_is_told_with_its_name() -> None:
    @dataclass
    class Thing:
        x: int

    def fail(fields: dict[str, Any]) -> dict[str, Any]:
        return {"x": fields["y"]}

    for upgrade in (fail, lambda fields: 5):
        codec = codec_of(Thing, version=2, upgrades={1: upgrade})  # type: ignore[dict-item]
        with pytest.raises(IncompatibleState, match="upgrade of 'thing' from version 1 to 2 failed"):
            codec.decode(codec_of(Thing).encode(Thing(1)))


def test_a_version_without_an_upgrade_is_read_by_its_fields() -> None:
    @dataclass
    class Thing:
        x: int

    assert Thing(1) == codec_of(Thing, version=5).decode(codec_of(Thing).encode(Thing(1)))


def test_a_newer_version_is_refused() -> None:
    @dataclass
    class Thing:
        x: int

    with pytest.raises(IncompatibleState, match="version 3 of 'thing' was written, and this program has version 2"):
        codec_of(Thing, version=2).decode(codec_of(Thing, version=3).encode(Thing(1)))


class Before(Enum):
    RED = 1
    GREEN = 2


class After(Enum):
    GREEN = 1
    CRIMSON = 2


def test_members_travel_by_name_and_a_lost_one_is_told() -> None:
    data = codec_of(Before).encode([Before.RED, Before.GREEN])
    assert After.GREEN is codec_of(After).decode(codec_of(Before).encode(Before.GREEN))
    with pytest.raises(IncompatibleState, match=r"After has no member 'RED'; .*version=2, upgrades=\{1"):
        codec_of(After).decode(data)

    def rename(fields: dict[str, Any]) -> dict[str, Any]:
        return {"member": "CRIMSON" if fields["member"] == "RED" else fields["member"]}

    assert [After.CRIMSON, After.GREEN] == codec_of(After, version=2, upgrades={1: rename}).decode(data)


def test_an_enum_that_became_a_class_is_told_and_the_other_way_round() -> None:
    @dataclass
    class Thing:
        x: int

    with pytest.raises(IncompatibleState, match="was written as an Enum"):
        codec_of(Thing).decode(codec_of(Before).encode(Before.RED))
    with pytest.raises(IncompatibleState, match="is an Enum now"):
        codec_of(Before).decode(codec_of(Thing).encode(Thing(1)))


def test_neither_init_nor_post_init_nor_converters_run_when_reading() -> None:
    calls: list[str] = []

    def convert(value: Any) -> int:
        calls.append("attrs")
        return int(value)

    @dataclass
    class Noisy:
        x: Any

        def __post_init__(self) -> None:
            calls.append("dataclass")

    @attrs.define
    class NoisyAttrs:
        x: int = attrs.field(converter=convert)

    class NoisyTuple(NamedTuple):
        x: int

    for cls in (Noisy, NoisyAttrs, NoisyTuple):
        value = cls("5")  # type: ignore[arg-type]
        value_codec = codec_of(cls)
        data = value_codec.encode(value)
        calls.clear()
        assert value == value_codec.decode(data)
        assert [] == calls


# ── tools ────────────────────────────────────────────────────────────────────────────────────


def test_a_tool_sees_unknown_classes_as_mappings() -> None:
    @dataclass(frozen=True)
    class Key:
        x: int

    registry = Registry(alone=True)
    registry.register(Key, name="shop.Key")
    registry.register(Before, name="shop.Color")
    value = {"keys": [Key(1), Key(2)], "color": Before.RED, "set": {Key(1)}, "map": {Key(1): 2}}
    data = Codec(registry).encode(value)
    key = {"@": "shop.Key", "x": 1}
    assert {
        "keys": [key, {"@": "shop.Key", "x": 2}],
        "color": {"@": "shop.Color", "member": "RED"},
        "set": {"@": "set", "items": [key]},
        "map": {"@": "dict", "items": [[key, 2]]},
    } == Codec(Registry(alone=True), foreign=True).decode(data)
    assert value == Codec(registry, foreign=True).decode(data)
    with pytest.raises(IncompatibleState, match="'shop"):
        Codec(Registry(alone=True)).decode(data)
    with pytest.raises(CorruptObject):
        Codec(Registry(alone=True), foreign=True).decode(data[:-1])
