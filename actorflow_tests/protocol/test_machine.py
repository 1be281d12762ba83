from __future__ import annotations

from dataclasses import dataclass

import pytest

from actorflow.protocol.machine import STORY_LENGTH, Machine, replay
from actorflow_tests.protocol.walking import Edges, MachineWorld, explore, table_of, walk


@dataclass(frozen=True, slots=True)
class Closed:
    pass


@dataclass(frozen=True, slots=True)
class Open:
    by: str


@dataclass(frozen=True, slots=True)
class Pushed:
    by: str


@dataclass(frozen=True, slots=True)
class Shut:
    pass


@dataclass(frozen=True, slots=True)
class Ring:
    pass


@dataclass(frozen=True, slots=True)
class Greet:
    by: str


class Door(Machine[Pushed | Shut, Ring | Greet]):
    """A door.

    | phase        | event  | effects → next phase |
    |--------------|--------|----------------------|
    | Closed, Open | Pushed | Ring?, Greet → Open  |
    | Closed, Open | Shut   | – → Closed           |
    """

    __slots__ = ("visits",)
    phase: Closed | Open

    def __init__(self) -> None:
        super().__init__(Closed())
        self.visits = 0

    def decide(self, event: Pushed | Shut) -> list[Ring | Greet]:
        match self.phase, event:
            case Closed(), Pushed(by):
                self.visits += 1
                self.phase = Open(by)
                return [Ring(), Greet(by)]
            case _, Pushed(by):
                self.phase = Open(by)
                return [Greet(by)]
            case _:
                self.phase = Closed()
                return []

    def check(self) -> None:
        assert self.visits < 100


class LyingDoor(Door):
    """Says too much and too little.

    | phase  | event  | effects → next phase |
    |--------|--------|----------------------|
    | Closed | Pushed | Ring, Greet → Open   |
    | Closed | Pushed | – → Closed           |
    """

    __slots__ = ()


EVENTS = (Pushed("ann"), Shut())


def test_a_machine_remembers_its_last_events_and_no_more() -> None:
    door = Door()

    for _ in range(STORY_LENGTH):
        door.on(Pushed("ann"))
        door.on(Shut())

    assert len(door.story) == STORY_LENGTH
    assert door.story[-1] == (Shut(), ())


def test_a_story_can_be_told_again() -> None:
    door = Door()
    for event in (Pushed("ann"), Pushed("ben"), Shut(), Pushed("ben")):
        door.on(event)

    assert door.phase == replay(Door, door.story).phase


def test_a_story_that_ends_differently_is_a_failure_that_says_where() -> None:
    with pytest.raises(AssertionError, match="event 1 of the story"):
        replay(Door, [(Pushed("ann"), [Ring(), Greet("ann")]), (Shut(), [Ring()])])


def test_a_failed_assertion_tells_the_story() -> None:
    door = Door()
    door.on(Pushed("ann"))
    door.on(Shut())
    door.visits = 99

    with pytest.raises(AssertionError) as failure:
        door.on(Pushed("ben"))

    [note] = failure.value.__notes__
    assert "while it took Pushed(by='ben')" in note
    assert "Pushed(by='ann') -> [Ring(), Greet(by='ann')]" in note


def test_the_walk_sees_every_edge_and_a_true_table_passes() -> None:
    edges = walk(Door(), lambda _: EVENTS, depth=3)

    edges.compare(Door)
    assert len(table_of(Door)) == 2


def test_a_table_that_lies_is_found_out_in_both_directions() -> None:
    edges = walk(LyingDoor(), lambda _: EVENTS, depth=3)

    with pytest.raises(AssertionError) as failure:
        edges.compare(LyingDoor)

    assert "not in the table: | Open | Pushed | Greet → Open |" in str(failure.value)
    assert "never seen: | Closed | Pushed | – → Closed |" in str(failure.value)


def test_the_walk_visits_no_state_twice() -> None:
    world = MachineWorld(Door(), lambda _: EVENTS, Edges())

    assert explore(world, depth=6) == 7  # the visits tell states apart: 0..3, open and closed


def test_the_walk_tells_the_shortest_way_to_a_failure() -> None:
    def never_twice(door: Door, _event: object, _effects: object) -> None:
        assert door.visits < 2

    with pytest.raises(AssertionError) as failure:
        walk(Door(), lambda _: EVENTS, depth=5, watch=never_twice)

    assert "Pushed(by='ann')\n    Shut()\n    Pushed(by='ann')" in failure.value.__notes__[-1]
