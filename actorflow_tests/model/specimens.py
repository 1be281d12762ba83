"""One class of every kind that travels, and values that are easily changed on the way."""

from __future__ import annotations

import math
import struct
from collections import Counter, OrderedDict, defaultdict, deque, namedtuple
from dataclasses import dataclass, field
from datetime import UTC, date, time, timedelta, timezone
from decimal import Decimal
from enum import Enum, Flag, IntEnum, StrEnum, auto
from fractions import Fraction
from functools import cached_property
from typing import Any, ClassVar, Generic, NamedTuple, TypeVar
from uuid import UUID, SafeUUID
from zoneinfo import ZoneInfo

import attrs
import msgspec

from actorflow.model.codec import Registry

T = TypeVar("T")


class Color(Enum):
    RED = 1
    BLUE = "blue"
    CRIMSON = RED


class Level(IntEnum):
    LOW = 1


class Word(StrEnum):
    HI = "hi"


class Access(Flag):
    READ = auto()
    WRITE = auto()
    BOTH = READ | WRITE


@dataclass
class Item:
    name: str
    price: Any = 0
    tags: list[str] = field(default_factory=list)
    count: int = field(default=1, kw_only=True)
    derived: str = field(init=False)
    kind: ClassVar[str] = "item"

    def __post_init__(self) -> None:
        self.derived = f"{self.name}!"


@dataclass(frozen=True, slots=True)
class Point:
    x: float
    y: float
    parent: Point | None = None


@dataclass
class Empty:
    pass


@dataclass(eq=False)
class Mutable:
    """May be a key, by identity, although it can change."""

    items: list[int]


@dataclass
class Box(Generic[T]):
    content: T


@attrs.define
class Ball:
    size: int
    marks: list[int] = attrs.Factory(list)
    __private: int = 7


@attrs.frozen(cache_hash=True)
class Name:
    text: str


@attrs.define(slots=False)
class Loose:
    size: int = attrs.field(converter=int)


@attrs.define
class Lazy:
    size: int

    @cached_property
    def double(self) -> int:
        return self.size * 2


class Pair(NamedTuple):
    left: Any
    right: Any = "right"


Old = namedtuple("Old", ["a", "b"])  # noqa: PYI024


class Trade(msgspec.Struct):
    price: Any
    notes: list[Any] = []


class Frozen(msgspec.Struct, frozen=True, kw_only=True, cache_hash=True):
    a: int
    b: int = 3

    def __post_init__(self) -> None:
        msgspec.structs.force_setattr(self, "b", 99)


CLASSES: tuple[type, ...] = (
    *(Color, Level, Word, Access),
    *(Item, Point, Empty, Mutable, Box),
    *(Ball, Name, Loose, Lazy),
    *(Pair, Old, Trade, Frozen),
)
REGISTRY = Registry(alone=True)
for each in CLASSES:
    REGISTRY.register(each)


def doubles(bits: int) -> float:
    return float(struct.unpack("<d", struct.pack("<Q", bits))[0])


def changed_frozen() -> Frozen:
    value = Frozen(a=1)
    msgspec.structs.force_setattr(value, "b", 5)
    return value


def changed_item() -> Item:
    value = Item("changed", Decimal("1.50"), ["a"], count=2)
    value.derived = "another"
    return value


def warmed(value: Any) -> Any:
    """A value that has remembered its hash, or what a cached property gave."""
    hash(value) if isinstance(value, Name) else value.double
    return value


BERLIN = ZoneInfo("Europe/Berlin")
VALUES: list[Any] = [
    *(None, True, False),
    *(0, 1, -1, 23, 24, 2**63, -(2**63), 2**64 - 1, 2**64, -(2**64), -(2**64) - 1, 7**1000, -(7**1000)),
    *(0.0, -0.0, 1.5, 1e308, 5e-324, math.inf, -math.inf, math.nan),
    *(doubles(0xFFF8000000000123), doubles(0x7FF0000000000001)),
    *(complex(-0.0, 1), complex(math.nan, -math.inf)),
    *("", "ü\0\U0001f600", "e\u0301", "\u00e9", b"", b"\xff\0", bytearray(), bytearray(b"ab")),
    *([], (), {}, set(), frozenset(), deque(), OrderedDict(), Counter(), defaultdict(), range(0)),
    *([1, [2.5, [None]]], (1, (2, "a")), ((), ()), [(), []], [[], [1], [1, 2]], ((1,), [2], {3})),
    *({"a": 1, "b": [1]}, {1: 2, (1, 2): [3], None: {}, b"x": 1.0, frozenset({1}): "y"}, {math.nan: 1}),
    *({True: 1, 0: 2}, {1, 2, 3}, {"a", 1, (2, "b")}, frozenset({frozenset({1}), 2}), {-0.0, 1.5}, {math.nan}),
    *(Decimal("1.10"), Decimal("-0E-9"), Decimal("-sNaN123"), Decimal("NaN7"), Decimal("-Infinity"), Decimal("1E+999")),
    *(Fraction(-1, 3), Fraction(7**50, 11**50)),
    *(UUID(int=5), UUID(int=6, is_safe=SafeUUID.safe), UUID(int=6, is_safe=SafeUUID.unsafe)),
    *(date.min, date.max, timedelta.min, timedelta.max, timedelta(-1, 5, 6)),
    *(time(1, 2, 3, 4), time(2, 30, tzinfo=UTC), time(2, 30, fold=1)),
    time(1, tzinfo=timezone(timedelta(hours=2), "x:y")),
    *(UTC, timezone(timedelta(0), "UTC"), timezone(-timedelta(minutes=16, seconds=8)), timezone(timedelta.resolution)),
    *(BERLIN, ZoneInfo("UTC")),
    *(deque([1, [2]], maxlen=4), deque(maxlen=0), range(5, -7, -3)),
    *(OrderedDict(b=1, a=[2]), Counter("abcab"), Counter(a=-1), defaultdict(list, a=[1]), defaultdict(None, a=1)),
    *(Color.RED, Color.CRIMSON, Color.BLUE, Level.LOW, Word.HI, Access.READ, Access.BOTH, Access(0)),
    *(Item("a"), changed_item(), Item("nested", Item("inner", (1, {"deep": Item("x")})))),
    *(Point(1.0, -0.0), Point(1.0, 2.0, Point(math.nan, 3.0)), Empty(), Mutable([1]), Box(Box([1]))),
    *(Ball(1), Ball(2, [3]), Name("x"), warmed(Name("y")), Loose("3"), Lazy(1), warmed(Lazy(2))),
    *(Pair(1), Pair((1, 2), [Pair(None)]), Old(1, "b"), Trade(1.5), Trade(Trade(1), [2])),
    *(Frozen(a=1), changed_frozen()),
    *([Item("a"), Item("b")], [Empty(), Empty()], [Pair(1), (1, "right")], [Color.RED, 1, True, 1.0, "1"]),
    *([{"a": 1, "b": 2.0}, {"a": "x", "b": None}], [{"a": 1}, {"b": 1}], [(1, 2.0), (3, math.nan)]),
    [OrderedDict(a=1)] * 2,
]  # fmt: skip
