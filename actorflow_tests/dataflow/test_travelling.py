from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from actorflow.connectors import Inbox
from actorflow.connectors.function import call
from actorflow.dataflow.job import Job
from actorflow.dataflow.keyed import Context, KeyedOperator
from actorflow.dataflow.states import ListState, MapState, SplitList, ValueState
from actorflow_tests.dataflow.support import Given, Kept


@dataclass(frozen=True)
class Inner:
    x: int


@dataclass(frozen=True)
class Outer:
    inner: Inner


class Pair(NamedTuple):
    a: int


@dataclass
class Held:
    n: int = 0


@dataclass
class Rule:
    limit: int = 0


@dataclass
class Item:
    n: int = 0


@dataclass
class Piece:
    n: int = 0


class Orders(Given[Outer]):
    pass


class Keeps(KeyedOperator[str, Outer, Pair]):
    held = ValueState(Held)
    items = ListState(Item)
    rules = MapState(str, Rule)
    pieces = SplitList(Piece)

    def on_record(self, value: Outer, context: Context[str]) -> list[Pair]:
        return []


def registered(job: Job) -> list[str]:
    own = __name__.rpartition(".")[2]
    names = job.plan().registry.names()
    return sorted(name.rpartition(":")[2] for name in names if own in name)


def test_classes_of_sources_states_and_operators_travel_with_what_their_fields_name() -> None:
    job = Job("job")
    job.read(Orders([]), name="in").key_by(str).process(Keeps, name="keep").write(Kept(), name="o")

    assert ["Held", "Inner", "Item", "Outer", "Pair", "Piece", "Rule"] == registered(job)


def test_classes_in_annotations_of_functions_travel() -> None:
    def grow(state: Held | None, x: int) -> tuple[Held, Pair]:
        return Held(), Pair(1)

    def out(item: Item) -> None: ...

    def begin() -> Rule:
        return Rule()

    def add(rule: Rule, piece: Piece) -> Rule:
        return rule

    job = Job("job")
    numbers = job.read(Given([1]), name="in")
    numbers.key_by(str).stateful_map(grow, name="grow").write(Kept(), name="o")
    numbers.map(Item).write(call(out), name="call")
    numbers.map(Piece).key_by(str).aggregate(begin, add, name="sum").write(Kept(), name="o2")

    assert ["Held", "Item", "Pair", "Piece", "Rule"] == registered(job)


def test_the_class_that_an_inbox_takes_travels() -> None:
    job = Job("job")
    job.read(Inbox(Outer), name="in").write(Kept(), name="o")

    assert ["Inner", "Outer"] == registered(job)


def test_the_argument_of_a_generic_source_travels() -> None:
    job = Job("job")
    job.read(Given[Held]([]), name="in").write(Kept(), name="o")

    assert ["Held"] == registered(job)


def test_each_job_has_a_registry_of_its_own() -> None:
    job, other = Job("job"), Job("other")
    job.read(Orders([]), name="in").write(Kept(), name="o")
    other.read(Given([1]), name="in").write(Kept(), name="o")

    assert [] == registered(other)
    assert ["Inner", "Outer"] == registered(job)


def test_functions_that_say_nothing_are_fine() -> None:
    job = Job("job")
    job.read(Given([1]), name="in").map(lambda x: x).map(str).map(int).filter(bool).write(Kept(), name="o")

    assert [] == registered(job)
