from __future__ import annotations

import subprocess
import sys
from collections import OrderedDict, defaultdict, deque
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import cbor2
import pytest

from actorflow.errors import CorruptObject, InvalidValue
from actorflow.model.codec import MAX_DEPTH, Codec, Registry
from actorflow.model.packing import Tag
from actorflow_tests.model.likeness import same
from actorflow_tests.model.specimens import BERLIN, REGISTRY, VALUES, Box, Item, Loose, Mutable, Pair

CODEC = Codec(REGISTRY)
ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("value", VALUES, ids=lambda value: f"{type(value).__name__}-{repr(value)[:30]!a}")
def test_a_value_comes_back_exactly_as_it_went_in(value: Any) -> None:
    assert same(value, CODEC.decode(CODEC.encode(value)))


@pytest.mark.parametrize("value", VALUES, ids=lambda value: f"{type(value).__name__}-{repr(value)[:30]!a}")
def test_a_value_comes_back_exactly_inside_of_everything_that_can_hold_it(value: Any) -> None:
    for whole in (
        [value],
        (value, value),
        [[value], [value, 1]],
        {"k": value},
        Box(value),
        deque([value]),
        Pair(value),
    ):
        assert same(whole, CODEC.decode(CODEC.encode(whole)))


@pytest.mark.parametrize("value", VALUES, ids=lambda value: f"{type(value).__name__}-{repr(value)[:30]!a}")
def test_a_column_comes_back_exactly(value: Any) -> None:
    for column in ([value] * 3, [value, None, value], [1, value, "x", 2.5, value]):
        assert same(column, CODEC.decode_column(CODEC.encode_column(column)))


def test_all_values_together_are_one_column() -> None:
    assert same(VALUES, CODEC.decode_column(CODEC.encode_column(VALUES)))
    assert same([], CODEC.decode_column(CODEC.encode_column([])))


def test_a_column_that_mixes_ints_and_bools_keeps_them_apart() -> None:
    column = [1, True, 0, False, 1.0, "1", None]
    assert same(column, CODEC.decode_column(CODEC.encode_column(column)))


def test_lengths_beyond_a_byte_and_many_types_come_back() -> None:
    rows = [list(range(300)), [], [[1] * 256, (2,) * 3, "x", 1.5, None, {"a": 1}, b"", {1}]]
    assert same(rows, CODEC.decode(CODEC.encode(rows)))
    wide = [tuple(range(300))] * 2
    assert same(wide, CODEC.decode(CODEC.encode(wide)))


def test_an_ordered_dict_keeps_the_order_that_was_moved() -> None:
    value = OrderedDict(a=1, b=2)
    value.move_to_end("a")
    assert same([value, value], CODEC.decode(CODEC.encode([value, value])))


def test_dicts_with_the_same_keys_in_another_order_keep_their_order() -> None:
    value = [{"a": 1, "b": 2}, {"b": 3, "a": 4}]
    assert same(value, CODEC.decode(CODEC.encode(value)))


def test_a_key_that_can_change_keeps_its_list_a_list() -> None:
    (key,) = CODEC.decode(CODEC.encode({Mutable([1, 2]): "x"}))
    key.items.append(3)
    assert [1, 2, 3] == key.items


# ── cases that users of other systems reported ───────────────────────────────────────────────


def test_r060_text_that_repeats_does_not_end_up_in_another_field() -> None:
    value = {"timestamp": datetime(2024, 5, 1, 12, 30), "a1": "abc", "a": "abc", "list": ["abc", "abc", "timestamp"]}  # noqa: DTZ001
    assert same(value, CODEC.decode(CODEC.encode(value)))
    assert same([value] * 3, CODEC.decode_column(CODEC.encode_column([value] * 3)))


def test_r062_nested_containers_come_back_as_they_were_and_can_be_changed() -> None:
    value = {"t": {"run": {"p": [5, 122]}}, ("k", 1): [{"x": {1, 2}}]}
    restored = CODEC.decode(CODEC.encode(value))
    assert same(value, restored)
    restored["t"]["run"]["p"].append(7)
    restored["t"]["run"]["more"] = 1
    restored["k", 1][0]["x"].add(3)
    assert {"t": {"run": {"p": [5, 122, 7], "more": 1}}, ("k", 1): [{"x": {1, 2, 3}}]} == restored


@pytest.mark.parametrize(
    "value",
    [
        datetime(2024, 1, 2, 3, 4, 5),  # noqa: DTZ001
        datetime(2024, 1, 2, 3, 4, 5, 167883),  # noqa: DTZ001
        datetime(2024, 1, 2, tzinfo=UTC),
        datetime(2024, 1, 2, 3, 4, 5, 167883, tzinfo=timezone(-timedelta(minutes=16, seconds=8))),
        datetime(2024, 1, 2, tzinfo=timezone(timedelta(hours=5, minutes=30), "IST")),
        datetime(1969, 12, 31, 23, 59, 59, 999999, tzinfo=UTC),
        datetime(1, 1, 1),  # noqa: DTZ001
        datetime.max.replace(tzinfo=UTC),
        datetime(2107, 3, 4, tzinfo=BERLIN),
        datetime(2024, 10, 27, 2, 30, tzinfo=BERLIN),
        datetime(2024, 10, 27, 2, 30, tzinfo=BERLIN, fold=1),
        datetime(2024, 3, 31, 2, 30, tzinfo=BERLIN),  # does not exist
        datetime(2024, 1, 1, fold=1),  # noqa: DTZ001
    ],
    ids=str,
)
def test_r063_a_datetime_keeps_its_zone_fold_and_microseconds(value: datetime) -> None:
    restored = CODEC.decode(CODEC.encode(value))
    assert same(value, restored)
    assert value == restored
    assert value.utcoffset() == restored.utcoffset()
    assert value.tzname() == restored.tzname()
    if isinstance(value.tzinfo, ZoneInfo):
        assert value.tzinfo is restored.tzinfo


def test_r068_equal_sets_have_equal_bytes_in_every_process() -> None:
    program = (
        "from actorflow.model.codec import Codec\n"
        "parts = ['alpha', 'beta', ('gamma', 1), 2.5, b'x', frozenset(['p', 'q', 3])]\n"
        "codec = Codec()\n"
        "forth, back = set(parts), set(reversed(parts))\n"
        "assert codec.encode(forth) == codec.encode(back)\n"
        "assert codec.encode([forth, set('abcdef')]) == codec.encode([back, set('fedcba')])\n"
        "print(codec.encode({'k': forth}).hex(), codec.encode_column([back, set('words')]).hex())\n"
    )
    outputs = {
        subprocess.run(
            [sys.executable, "-c", program],
            env={"PYTHONHASHSEED": seed, "PYTHONPATH": str(ROOT)},
            capture_output=True,
            check=True,
            text=True,
        ).stdout
        for seed in ("0", "1", "2")
    }
    assert 1 == len(outputs)


# ── refusals ─────────────────────────────────────────────────────────────────────────────────


class Unknown:
    pass


@dataclass
class Unregistered:
    x: int


class MyInt(int):
    pass


class MyStr(str):
    __slots__ = ()


class MyDatetime(datetime):
    pass


class MyDict(dict[str, int]):
    pass


class Where(tzinfo):
    def utcoffset(self, at: datetime | None) -> timedelta:
        return timedelta(0)

    def tzname(self, at: datetime | None) -> str:
        return "where"

    dst = utcoffset


@pytest.mark.parametrize(
    ("value", "path", "why"),
    [
        (Unknown(), "value", r"Unknown"),
        ({"items": [1, 2, 3, Item("a", Unknown())]}, "value['items'][3].price", r"Unknown.*@af\.record"),
        (
            {"items": [Item("a", Unregistered(1))]},
            "value['items'][0].price",
            r"codec:Unregistered'\) above the class",
        ),
        ([MyInt(1)], "value[0]", r"would come back as int; turn it into exactly int"),
        ({"k": (1, MyStr("a"))}, "value['k'][1]", "would come back as str"),
        (MyDict(), "value", "would come back as dict"),
        ({MyStr("a"): 1}, "the key <MyStr> of value", "would come back as str"),
        ({"a": {1, (2, MyInt(3))}}, "the element <tuple> of value['a'][1]", "would come back as int"),
        ("a\ud800", "value", "lone surrogate.*at 1"),
        ({"a": [("x", "\udfff")]}, "value['a'][0][1]", "lone surrogate"),
        ({"\ud800": 1}, "the key '\\ud800' of value", "lone surrogate"),
        (Item("\ud800"), "value.name", "lone surrogate"),
        (timezone(timedelta(0), "\ud800"), "value", "lone surrogate"),
        ([datetime(2024, 1, 1, tzinfo=Where())], "value[0]", "time zone.*zoneinfo"),
        ([defaultdict(lambda: 1)], "value[0]", "default_factory"),
        ([defaultdict(Unknown)], "value[0]", "default_factory"),
        ([Unknown], "value[0]", "type"),
        (MyDatetime(2024, 1, 1), "value", "would come back as datetime"),
        (object(), "value", "object"),
        (print, "value", "builtin_function"),
        (NotImplemented, "value", "NotImplementedType"),
        (memoryview(b"x"), "value", "memoryview"),
        (iter([]), "value", "list_iterator"),
        (ValueError("x"), "value", "ValueError"),
    ],
    ids=lambda part: f"{type(part).__name__}" if not isinstance(part, str) else ascii(part)[:30],
)
def test_what_can_not_be_written_is_refused_with_the_path_to_it(value: Any, path: str, why: str) -> None:
    with pytest.raises(InvalidValue, match=why) as refusal:
        CODEC.encode(value)
    assert str(refusal.value).startswith(f"{path} can't be written down exactly: ")
    with pytest.raises(InvalidValue, match=why) as refusal:
        CODEC.encode_column([1, value], path="count.total")
    assert path.replace("value", "count.total[1]", 1) in str(refusal.value)


def test_an_error_calls_the_value_what_it_was_told() -> None:
    with pytest.raises(InvalidValue, match=r"^the state 'total' of key 'k'\[0\] can't"):
        CODEC.encode([Unknown()], path="the state 'total' of key 'k'")


def test_what_an_instance_holds_beside_its_fields_is_refused_not_lost() -> None:
    loose = Loose(1)
    loose.more = 2  # type: ignore[attr-defined]
    item = Item("a")
    item.more = 2  # type: ignore[attr-defined]
    for value in (loose, item):
        with pytest.raises(InvalidValue, match=r"value\[0\] .* 'more' is no field"):
            CODEC.encode([value])
        with pytest.raises(InvalidValue, match="'more' is no field"):
            CODEC.copy([value])


def test_what_typing_leaves_on_an_instance_may_go() -> None:
    value = Box[int](1)
    assert "__orig_class__" in vars(value)
    assert same(value, CODEC.decode(CODEC.encode(value)))
    assert same(value, CODEC.copy(value))


def test_a_field_that_is_not_set_is_refused() -> None:
    value = Item("a")
    del value.derived
    with pytest.raises(InvalidValue, match="'derived' is not set"):
        CODEC.encode(value)


def test_a_slot_that_is_no_field_is_refused_when_it_is_set() -> None:
    class Base:
        __slots__ = ("hidden",)

    @dataclass(slots=True)
    class Child(Base):
        x: int

    registry = Registry(alone=True)
    registry.register(Child)
    codec = Codec(registry)
    value = Child(1)
    assert same(value, codec.decode(codec.encode(value)))
    value.hidden = 2  # type: ignore[attr-defined]
    with pytest.raises(InvalidValue, match="slot 'hidden'"):
        codec.encode(value)


def test_a_subclass_of_a_registered_class_is_another_class() -> None:
    class Child(Item):
        pass

    with pytest.raises(InvalidValue, match="Child"):
        CODEC.encode(Child("a"))


def test_values_that_hold_themselves_are_refused_and_soon() -> None:
    once: list[Any] = []
    once.append(once)
    twice: list[Any] = []
    twice += [twice, twice]
    mapping: dict[str, Any] = {}
    mapping["self"] = [mapping]
    parent = Item("parent")
    parent.price = [Item("child", parent) for _ in range(100)]
    for value, path in (
        (once, "value[0]"),
        (twice, "value[0]"),
        (mapping, "value['self'][0]"),
        (parent, "value.price[0].price"),
    ):
        with pytest.raises(InvalidValue, match="it is value again") as refusal:
            CODEC.encode(value)
        assert str(refusal.value).startswith(f"{path} can't")
        with pytest.raises(InvalidValue, match="holds itself"):
            CODEC.copy(value)


def nested(depth: int, wrap: Any = lambda inner: [inner]) -> Any:
    value: Any = 1
    for _ in range(depth):
        value = wrap(value)
    return value


@pytest.mark.parametrize(
    "wrap",
    [
        lambda v: [v],
        lambda v: (v,),
        lambda v: {"k": v},
        lambda v: [v, "x", 2.5],
        Box,
        lambda v: deque([v]),
    ],
    ids=["list", "tuple", "dict", "union", "class", "deque"],
)
def test_a_hundred_levels_are_written_and_read_and_one_more_is_refused(wrap: Any) -> None:
    value = nested(MAX_DEPTH, wrap)
    assert same(value, CODEC.decode(CODEC.encode(value)))
    assert same(value, CODEC.copy(value))
    with pytest.raises(InvalidValue, match="more than 100 deep"):
        CODEC.encode(wrap(value))
    with pytest.raises(InvalidValue, match="more than 100 deep"):
        CODEC.copy(wrap(value))


def test_what_nests_too_deep_is_refused_when_it_is_read() -> None:
    tree: Any = [1]
    for _ in range(MAX_DEPTH + 1):
        tree = cbor2.CBORTag(Tag.SEQUENCES, ["list", 1, tree])
    with pytest.raises(CorruptObject, match="more than 100 deep"):
        CODEC.decode(cbor2.dumps(tree))
    for open_end in (b"\x81" * 100_000, b"\xd9\xa0\x28\x82" * 10_000, b"\xd9\xa0\x29" * 50_000):
        with pytest.raises(CorruptObject):
            CODEC.decode(open_end)
