"""What is written is read back as it was: whatever a scenario can say, and whatever a seed can draw."""

from __future__ import annotations

import datetime as dt
from dataclasses import fields
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from actorflow.config import duration_text
from actorflow.errors import AbortReason, InvalidScenario
from actorflow.model.elements import CheckpointKind
from actorflow.simulation import swarm, weather
from actorflow.simulation.scenario import (
    AboutCheckpoint,
    AboutJournal,
    AboutOutput,
    AboutRegistry,
    AboutState,
    AboutStatus,
    AboutStorage,
    Expectation,
    Fault,
    Input,
    Mention,
    Output,
    Scenario,
    Schedule,
    Seeds,
    Step,
    TimedRecord,
)
from actorflow.simulation.scenario_entries import FIELDS_OF
from actorflow.simulation.scenario_reading import parse_scenario
from actorflow.simulation.scenario_triggers import OPERATIONS
from actorflow.simulation.scenario_writing import write_scenario
from actorflow.simulation.weather import Moment, Service, Way

NOTHING_ELSE = AboutOutput(compare="same as the calm run")

texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
lines = texts.map(lambda text: " ".join(text.split())).filter(lambda text: text and len(text.splitlines()) == 1)
functions = st.sampled_from(["a:b", "a.b_1.c:d_2", "_x:_y", "jobs/mine.py:build"])
counts, some_ms, ms = st.integers(1, 10**6), st.integers(1, 10**10), st.integers(0, 10**10)
offsets = st.integers(-1_439, 1_439).map(lambda minutes: dt.timezone(dt.timedelta(minutes=minutes)))
leaves = (
    texts
    | st.booleans()
    | st.integers(-(10**30), 10**30)
    | st.floats(allow_nan=False)
    | st.dates()
    | st.times()
    | st.datetimes()
    | st.datetimes(timezones=offsets)
)
values: st.SearchStrategy[Any] = st.recursive(
    leaves, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3), max_leaves=6
)


def a_table(of: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    return st.dictionaries(texts, of, max_size=3)


def maybe(of: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.none() | of


@st.composite
def wheres(draw: st.DrawFn) -> tuple[str, dict[str, Any]]:
    entry = draw(st.sampled_from(list(FIELDS_OF)))
    kinds = {
        "str": lines,
        "int": st.integers(),
        "int | None": maybe(st.integers()),
        "bool": st.booleans(),
    }
    known = FIELDS_OF[entry]
    names = draw(st.lists(st.sampled_from(list(known)), unique=True)) if known else []
    reason = st.sampled_from(list(AbortReason.__members__))
    return entry, {name: draw(reason if name == "reason" else kinds[known[name]]) for name in names}


@st.composite
def afters(draw: st.DrawFn) -> weather.After:
    entry, where = draw(wheres())
    return weather.After(
        entry,
        where=where,
        occurrence=draw(counts),
        later_ms=draw(ms),
        process=draw(maybe(lines)),
    )


@st.composite
def operations(draw: st.DrawFn) -> weather.OnObject:
    kind, seam = draw(
        st.sampled_from(
            [
                (weather.OnObject, "object"),
                (weather.OnDisk, "disk"),
                (weather.OnBroker, "broker"),
                (weather.OnDatabase, "database"),
            ]
        )
    )
    moments = [moment for moment in Moment if moment is not Moment.TORN]
    return kind(
        draw(st.sampled_from([*OPERATIONS[seam], "*"])),
        draw(texts),
        draw(st.sampled_from([*moments, "during"])),
        draw(counts),
        draw(maybe(lines)),
    )


torn = st.sampled_from(
    [weather.OnObject("put*", "*", Moment.TORN), weather.OnDisk("write", "*", Moment.TORN, occurrence=3)]
)
times = st.builds(weather.At, ms)
triggers = times | afters() | operations() | torn
journal_or_time = times | afters()

FIELDS: dict[str, st.SearchStrategy[Any]] = {
    "ms": some_ms,
    "by_ms": some_ms,
    "for_ms": some_ms,
    "ppm": st.integers(1, 500_000) | st.integers(-500_000, -1),
    "count": counts,
    "step": st.just("") | lines,
    "operator": lines.filter(lambda name: "/" not in name),
    "subtask": maybe(st.integers(0, 100)),
    "pattern": texts,
    "way": st.sampled_from(Way),
    "process": maybe(lines),
    "machine": maybe(lines),
    "target": maybe(lines),
}


KINDS = [
    kind
    for name in weather.__all__
    if isinstance(kind := getattr(weather, name), type)
    and issubclass(kind, weather.Weather)
    and kind is not weather.Weather
]


@st.composite
def weathers(draw: st.DrawFn, kinds: tuple[type[weather.Weather], ...] = tuple(KINDS)) -> weather.Weather:
    kind = draw(st.sampled_from(kinds))
    when = draw(triggers)
    said: dict[str, Any] = {}
    for field in fields(kind)[1:]:
        match field.name:
            case "service" if kind is weather.Partition:
                said[field.name] = draw(maybe(st.sampled_from(Service)))
            case "service":
                said[field.name] = draw(st.sampled_from([Service.BROKER, Service.DATABASE]))
            case "pattern" if kind is weather.Rewind and said["service"] is Service.DATABASE:
                continue  # it goes back as a whole
            case "operation":
                seam = said["service"].value if "service" in said else "disk" if "Disk" in kind.__name__ else "object"
                said[field.name] = draw(st.sampled_from([*OPERATIONS[seam], "*"]))
            case "by_ms" if kind is weather.Jump:
                said[field.name] = draw(some_ms | some_ms.map(lambda by: -by))
            case "process" | "machine" | "target" if isinstance(when, weather.At) and not issubclass(
                kind, weather.FailObjects | weather.FailDisk | weather.FailRequests
            ):
                said[field.name] = draw(lines)  # at a time, nobody is where it struck
            case name:
                said[name] = draw(FIELDS[name])
    return kind(when, **said)


records = st.builds(TimedRecord, value=values, at_ms=maybe(ms))
sources = st.one_of(
    st.builds(Input, source=lines, make=functions, count=counts, per_second=maybe(st.floats(0.001, 1e9))),
    st.builds(Input, source=lines, records=st.lists(records, max_size=4).map(tuple), splits=counts),
    st.builds(Input, source=lines, lines=st.just("words/book.txt"), broker=st.booleans()),
)
outputs = st.builds(Output, sink=lines, stand_in=st.sampled_from(["ledger", "broker", "database", "files"]))
steps = st.one_of(
    st.builds(
        Step,
        when=journal_or_time,
        perhaps=st.booleans(),
        act=st.sampled_from(["checkpoint", "stop", "drain", "cancel", "start"]),
    ),
    st.builds(
        Step, when=journal_or_time, perhaps=st.booleans(), act=st.sampled_from(["rescale", "start"]), parallelism=counts
    ),
)


@st.composite
def mentions(draw: st.DrawFn, same: tuple[str, ...]) -> Mention:
    entry, where = draw(wheres())
    shared = [name for name in same if name in FIELDS_OF[entry]]
    names = draw(st.lists(st.sampled_from(shared), unique=True)) if shared else []
    return Mention(entry=entry, where=where, same=tuple(names))


@st.composite
def about_journal(draw: st.DrawFn) -> AboutJournal:
    entry, where = draw(wheres())
    mention = maybe(mentions(tuple(FIELDS_OF[entry])))
    least = draw(maybe(counts))
    most = draw(maybe(st.integers(least or 1, 10**7)))
    return AboutJournal(
        entry=entry, where=where, at_least=least, at_most=most, before=draw(mention), after=draw(mention)
    )


@st.composite
def about_output(draw: st.DrawFn) -> AboutOutput:
    some = st.lists(values, max_size=3).map(tuple)
    return AboutOutput(
        sink=draw(maybe(lines)),
        compare=draw(st.sampled_from([None, "same as the calm run", "at least the calm run"])),
        rows=draw(maybe(some)),
        contains=draw(maybe(some.filter(bool))),
        doubled_at_least=draw(maybe(counts)),
        invariant=draw(maybe(functions)),
        count=draw(st.integers(0, 9)),
    )


expectations: st.SearchStrategy[Expectation] = st.one_of(
    about_output(),
    about_journal(),
    st.just(AboutState(compare="same as the calm run")),
    st.builds(
        AboutState,
        state=st.just("count.total"),
        compare=st.sampled_from([None, "same as the calm run"]),
        keys=st.lists(st.tuples(values, values), min_size=1, max_size=3).map(tuple),
    ),
    st.builds(
        AboutCheckpoint,
        checkpoint=maybe(counts),
        kind=maybe(st.sampled_from([kind.value for kind in CheckpointKind])),
        completes_within_ms=maybe(st.integers(10**6, 10**7)),
        takes_at_least_ms=maybe(st.integers(1, 10**6)),
        bytes_at_least=maybe(st.integers(0, 10**3)),
        bytes_at_most=maybe(st.integers(10**3, 10**9)),
        actors=maybe(st.lists(lines, min_size=1, max_size=3).map(tuple)),
    ),
    st.builds(
        AboutCheckpoint,
        checkpoint=counts,
        aborted=maybe(st.sampled_from(list(AbortReason.__members__))),
        declined_by=maybe(lines),
    ),
    st.builds(
        AboutStorage,
        pattern=st.just("*"),
        after_checkpoint=maybe(counts),
        names=maybe(st.lists(lines, max_size=3).map(tuple)),
    ),
    st.builds(
        AboutStorage,
        pattern=lines,
        at_least=maybe(st.integers(1, 5)),
        at_most=maybe(st.integers(5, 9)),
        on_disk=st.just(True),
    ),
    st.builds(AboutRegistry, retained=st.lists(counts, max_size=3).map(tuple), after_checkpoint=maybe(counts)),
    st.builds(
        AboutStatus,
        status=st.sampled_from(["FINISHED", "STOPPED", "CANCELED", "FAILED"]),
        lives=maybe(counts),
        attempts=maybe(counts),
        message_contains=maybe(texts.filter(bool)),
    ),
)
environments = st.sampled_from(
    [
        {},
        {"parallelism": 2, "buffers": {"per_channel": 2, "records": 8}, "checkpoints": {"every": "10s"}},
        {"checkpoints.every": "250ms", "checkpoints.storage": "s3://home"},
        {"restart": {"type": "fixed-delay", "attempts": 3, "delay": "1s"}},
    ]
)
scenarios = st.builds(
    Scenario,
    title=lines,
    job=functions,
    story=texts | st.lists(texts, max_size=4).map("\n".join),
    arguments=a_table(values),
    seeds=st.builds(Seeds, first=st.integers(0, 10**6), count=counts),
    environment=environments,
    inputs=st.lists(sources, max_size=3, unique_by=lambda one: one.source).map(tuple),
    outputs=st.lists(outputs, max_size=3, unique_by=lambda one: one.sink).map(tuple),
    lives=st.lists(counts, max_size=4).map(tuple),
    weather=st.lists(st.builds(Fault, weather=weathers(), life=counts, perhaps=st.booleans()), max_size=3).map(tuple),
    steps=st.lists(steps, max_size=3).map(tuple),
    expectations=st.lists(expectations, min_size=1, max_size=4).map(tuple),
    calm_within_ms=some_ms,
    schedule=st.builds(Schedule, shuffle_rounds=maybe(st.integers(0, 10**6)), batch_us=st.integers(0, 10**6)),
)


@settings(max_examples=60, deadline=None)
@given(scenarios)
def test_what_is_written_is_read_back_as_it_was(scenario: Scenario) -> None:
    assert scenario == parse_scenario(write_scenario(scenario))


@settings(max_examples=25, deadline=None)
@given(scenarios)
def test_what_was_read_is_written_as_it_was(scenario: Scenario) -> None:
    text = write_scenario(scenario)

    assert text == write_scenario(parse_scenario(text))


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_every_weather_that_there_is_can_be_said(kind: type[weather.Weather]) -> None:
    @settings(max_examples=5, deadline=None)
    @given(weathers(kinds=(kind,)))
    def said(fault: weather.Weather) -> None:
        scenario = Scenario(title="t", job="a:b", weather=(Fault(weather=fault),), expectations=(NOTHING_ELSE,))
        assert scenario == parse_scenario(write_scenario(scenario))

    said()


def test_whatever_a_seed_draws_can_be_said() -> None:
    for in_files in (False, True):
        shape = swarm.Shape(operators=("read", "count-by.word", "write"), in_files=in_files)
        for seed in range(1, 151):
            drawn = swarm.draw(seed, shape)
            faults = [Fault(weather=one) for one in drawn.weather]
            if drawn.second is not None:
                faults.append(Fault(weather=drawn.second, life=2))
            scenario = Scenario(title="drawn", job="a:b", weather=tuple(faults), expectations=(NOTHING_ELSE,))

            assert scenario == parse_scenario(write_scenario(scenario)), seed


def test_a_scenario_is_written_as_a_story_is_told() -> None:
    scenario = Scenario(
        title="A kill between two commits",
        story="The process dies when one of two pages is visible.\nThe next one commits the other.\n",
        job="actorflow.examples.word_count:word_count",
        arguments={"path": "book.txt"},
        environment={"parallelism": 2, "checkpoints": {"every": "1s"}},
        inputs=(Input(source="words", records=(TimedRecord(value="a"), TimedRecord(value="b", at_ms=1_500))),),
        weather=(Fault(weather=weather.Kill(weather.After("SinkCommitted", {"checkpoint": 2}), "count/0"), life=2),),
        steps=(Step(when=weather.At(3_000), act="rescale", parallelism=4),),
        expectations=(NOTHING_ELSE, AboutCheckpoint(checkpoint=2, completes_within_ms=5_000)),
        calm_within_ms=120_000,
    )

    assert '''title = "A kill between two commits"
story = """
The process dies when one of two pages is visible.
The next one commits the other.
"""
job = "actorflow.examples.word_count:word_count"
arguments = { path = "book.txt" }
seeds = { first = 1, count = 5 }

[environment]
parallelism = 2
checkpoints = { every = "1s" }

[[input]]
source = "words"
records = ["a", { at = "1500ms", value = "b" }]

[[weather]]
after = { journal = "SinkCommitted", checkpoint = 2 }
kill = "count/0"
life = 2

[[step]]
at = "3s"
do = "rescale"
parallelism = 4

[calm]
within = "2min"

[[expect]]
output = "same as the calm run"

[[expect]]
checkpoint = 2
completes_within = "5s"
''' == write_scenario(scenario)


def test_a_long_list_of_records_stands_one_on_a_line() -> None:
    records = tuple(TimedRecord(value=f"a record with number {number}") for number in range(9))
    text = write_scenario(
        Scenario(title="t", job="a:b", inputs=(Input(source="s", records=records),), expectations=(NOTHING_ELSE,))
    )

    assert '\n  "a record with number 8",\n]\n' in text


@settings(max_examples=60, deadline=None)
@given(st.text(st.sampled_from('"\\\n\r\t\x7fa '), max_size=12))
def test_quotes_and_backslashes_of_a_story_are_kept(story: str) -> None:
    scenario = Scenario(title="t", job="a:b", story=story, expectations=(NOTHING_ELSE,))

    assert story == parse_scenario(write_scenario(scenario)).story


def test_a_duration_in_the_settings_is_written_as_text() -> None:
    every = dt.timedelta(seconds=3)
    scenario = Scenario(title="t", job="a:b", environment={"checkpoints.every": every}, expectations=(NOTHING_ELSE,))

    assert {"checkpoints.every": duration_text(every)} == parse_scenario(write_scenario(scenario)).environment


@pytest.mark.parametrize(
    ("value", "why"),
    [
        (None, "NoneType"),
        (b"bytes", "bytes"),
        ({1: 2}, "keys of a table are text"),
        (object, "type"),
        ("\ud800", "not Unicode"),
        (dt.time(1, 2, tzinfo=dt.UTC), "no such time"),
        (dt.datetime(2026, 1, 1, tzinfo=dt.timezone(dt.timedelta(seconds=61))), "no such time"),
    ],
    ids=lambda value: str(type(value).__name__),
)
def test_what_toml_can_not_hold_is_refused(value: Any, why: str) -> None:
    scenario = Scenario(title="t", job="a:b", arguments={"a": [value]}, expectations=(NOTHING_ELSE,))

    with pytest.raises(InvalidScenario, match=why):
        write_scenario(scenario)
