"""Inputs of a scenario take the place of sources, and can be read again exactly."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

import actorflow as af
from actorflow.model.codec import Codec, Registry
from actorflow.simulation import contracts, run
from actorflow.simulation.inputs import InputSource, Records, records_of
from actorflow.simulation.play import play, prepare
from actorflow.simulation.scenario import Input, Output, TimedRecord
from actorflow.simulation.world import Universe
from actorflow_tests.simulation.played import HERE, NUMBERS, Order, records, scenario

BESIDE = Path(__file__).parent


def made(**said: Any) -> Records:
    return records_of(Input(source="numbers", make=f"{HERE}:make_number", **said))


INPUTS = {
    "made": lambda: made(count=50, splits=3),
    "made with a draw": lambda: records_of(Input(source="orders", make=f"{HERE}:make_order", count=40)),
    "paced": lambda: made(count=50, per_second=200, splits=2),
    "inline": lambda: records_of(Input(source="numbers", records=records(1, [2, 3], {"a": 4}, "five"), splits=2)),
    "timed": lambda: records_of(
        Input(source="numbers", records=records(1, TimedRecord(value=2, at_ms=500), 3, TimedRecord(value=4, at_ms=900)))
    ),
    "lines": lambda: records_of(Input(source="numbers", lines="shapes.py"), BESIDE),
    "more splits than records": lambda: made(count=2, splits=5),
}


@pytest.mark.parametrize("check", contracts.SOURCE_CHECKS, ids=lambda check: check.__name__)
@pytest.mark.parametrize("name", INPUTS)
def test_an_input_holds_what_every_source_must(name: str, check: Any) -> None:
    found = INPUTS[name]()

    async def story() -> None:
        universe = Universe(1)
        processes = iter(range(10_000))
        registry = Registry()
        registry.register_annotations(Order)
        arm = contracts.SourceArm(
            make=lambda: InputSource(found, 1),
            world=lambda: universe.world(f"p{next(processes)}"),
            codec=Codec(registry),
        )
        await check(arm)

    run(story)


async def read(found: Records, seed: int = 1, splits: int = 1) -> list[tuple[int, Any]]:
    """Read all splits one after the other: (virtual time, record)."""
    universe = Universe(seed)
    world = universe.world("p")
    read: list[tuple[int, Any]] = []
    for split in range(splits):
        context: af.SourceContext[Any] = af.SourceContext(
            operator="numbers", split=str(split), resume_at=None, subtask=0, parallelism=1, world=world
        )
        async for chunk in InputSource(found, seed).read(context):
            read += [(world.clock.now_ms(), record) for record in chunk.records]
    return read


def test_records_come_no_sooner_than_they_are_said_to_and_wait_for_those_before_them() -> None:
    timed = records(TimedRecord(value="a", at_ms=300), "b", TimedRecord(value="c", at_ms=1_000), "d")
    assert run(read, records_of(Input(source="numbers", records=timed))) == [
        (300, "a"),
        (300, "b"),
        (1_000, "c"),
        (1_000, "d"),
    ]


def test_lines_end_where_those_of_a_file_do(tmp_path: Path) -> None:
    def lines(text: str) -> list[str]:
        (tmp_path / "some.txt").write_bytes(text.encode())
        found = records_of(Input(source="numbers", lines="some.txt"), tmp_path)
        return [found.record(1, index) for index in range(found.count)]

    assert lines("a\u2028b\x0cc\n\r\nd\re\n") == ["a\u2028b\x0cc", "", "d\re"]
    assert lines("a\n\n") == ["a", ""]
    assert lines("a") == ["a"]
    assert lines("") == []


def test_a_rate_is_that_of_the_world_so_whoever_comes_late_finds_a_backlog() -> None:
    found = made(count=100, per_second=100)
    times = run(read, found)
    assert [record for _, record in times] == list(range(100))
    assert all(10 * record <= at_ms <= 10 * record + 20 for at_ms, record in times)

    async def late() -> list[tuple[int, Any]]:
        universe = Universe(1)
        world = universe.world("p")
        await world.clock.sleep(600)
        context: af.SourceContext[Any] = af.SourceContext(
            operator="n", split="0", resume_at=10, subtask=0, parallelism=1, world=world
        )
        return [(world.clock.now_ms(), r) async for chunk in InputSource(found, 1).read(context) for r in chunk.records]

    came = run(late)
    assert [record for _, record in came] == list(range(10, 100))
    assert [record for at_ms, record in came if at_ms == 600] == list(range(10, 61))


def test_a_draw_belongs_to_the_seed_the_source_and_the_number() -> None:
    one = records_of(Input(source="orders", make=f"{HERE}:make_order", count=200))
    other = records_of(Input(source="payments", make=f"{HERE}:make_order", count=200))
    draws = [one.record(1, index).price for index in range(200)]
    assert draws == [one.record(1, index).price for index in range(200)]
    assert all(0 <= draw < 1 for draw in draws)
    assert len(set(draws)) == 200
    assert draws != [one.record(2, index).price for index in range(200)]
    assert draws != [other.record(1, index).price for index in range(200)]


def test_a_record_that_a_job_changes_is_whole_again_in_the_next_life() -> None:
    found = records_of(Input(source="numbers", records=records({"a": [1]})))
    first = found.record(1, 0)
    first["a"].append(2)
    assert found.record(1, 0) == {"a": [1]}


def test_a_position_beyond_the_end_is_refused() -> None:
    async def story() -> None:
        world = Universe(1).world("p")
        context = af.SourceContext(operator="n", split="0", resume_at=7, subtask=0, parallelism=1, world=world)
        async for _ in InputSource(made(count=3), 1).read(context):
            pass

    with pytest.raises(af.RestoreFailed, match="record 7 of split 0, which has 3"):
        run(story)


@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        ({"make": f"{HERE}:make_numbre", "count": 3}, "did you mean 'make_number'"),
        ({"make": "nowhere_at_all:make", "count": 3}, "there is no module"),
        ({"make": "make", "count": 3}, "names no "),
        ({"make": "actorflow.model.envelope:unseal", "count": 3}, "must take"),
        ({"make": f"{HERE}:make_number", "count": 3, "per_second": 0}, "per_second is 0"),
        ({"make": f"{HERE}:make_number", "count": 3, "splits": 0}, "splits must be at least 1"),
        ({"lines": "no-such-file.txt"}, "lines = 'no-such-file.txt' can't be read"),
    ],
)
def test_an_input_that_can_not_be_is_refused(wrong: dict[str, Any], told: str) -> None:
    with pytest.raises(af.InvalidJob, match=told):
        records_of(Input(source="numbers", **wrong), BESIDE)


# ── in the place of a source ─────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("broker", [False, True], ids=["read", "from the broker"])
def test_the_job_reads_its_input_each_record_once_also_through_kills(broker: bool) -> None:
    inputs = (
        Input(source="numbers", make=f"{HERE}:make_number", count=300, per_second=2_000, splits=3, broker=broker),
    )
    found = play(scenario("counting", inputs=inputs, every="20ms"), 3)
    assert Counter(found.rows["rows"]) == Counter((key, number) for key in range(3) for number in range(1, 101))
    assert dict(found.values["count.state"]) == {0: 100, 1: 100, 2: 100}
    assert found.status == "FINISHED"


def test_classes_of_what_a_function_makes_are_known_to_the_job() -> None:
    inputs = (Input(source="orders", make=f"{HERE}:make_order", count=20, broker=True),)
    found = play(scenario("orders", inputs=inputs), 2)
    assert sorted(order.number for order in found.rows["rows"]) == list(range(20))


@pytest.mark.parametrize("stand_in", ["ledger", "broker", "database", "files"])
def test_every_stand_in_of_a_sink_shows_the_rows_to_an_outsider(stand_in: Any) -> None:
    found = play(scenario("counting", outputs=(Output(sink="rows", stand_in=stand_in),)), 1)
    assert sum(found.output["rows"].values()) == NUMBERS.count
    assert len(found.output["rows"]) == NUMBERS.count


def test_a_source_that_reaches_the_outside_is_refused_with_the_table_that_would_help() -> None:
    with pytest.raises(
        af.InvalidJob, match=r"operator 'numbers': its source Wire .* \[\[input\]\] with source = \"num"
    ):
        prepare(scenario("counting", inputs=()))


def test_an_input_and_an_output_that_the_job_has_not_are_refused() -> None:
    with pytest.raises(af.InvalidJob, match=r"\[\[input\]\] source = 'nombers': the job has no source of this name"):
        prepare(scenario("endless", inputs=(Input(source="nombers", records=records(1)),)))
    with pytest.raises(af.InvalidJob, match=r"\[\[output\]\] sink = 'rous': the job has no sink .* but 'rows'"):
        prepare(scenario("counting", outputs=(Output(sink="rous"),)))
