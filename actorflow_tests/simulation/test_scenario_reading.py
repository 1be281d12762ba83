"""A scenario file says what it says, or is refused: with the file, the table, and the nearest known word."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from actorflow.abc.disk import Disk
from actorflow.abc.objects import ObjectStore
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
from actorflow.simulation.scenario_reading import parse_scenario, read_scenario
from actorflow.simulation.scenario_triggers import OPERATIONS
from actorflow.simulation.scenario_writing import write_scenario
from actorflow.simulation.weather import (
    After,
    At,
    Drift,
    FailDisk,
    FailObjects,
    FailRequests,
    Jump,
    Kill,
    LoseAnswer,
    LoseAnswers,
    LoseDisk,
    LoseDiskAnswer,
    Moment,
    OnBroker,
    OnDatabase,
    OnDisk,
    OnObject,
    Partition,
    Pause,
    PowerCut,
    Raise,
    Replace,
    Rewind,
    Service,
    Slow,
    SlowDisk,
    SlowObjects,
    SlowRequests,
    Stall,
    Stop,
    TearDisk,
    TearObjects,
    Trigger,
    Way,
    Weather,
)

BOOK = Path(__file__).parents[2] / "scenarios"

HEAD = 'title = "t"\njob = "a.b:c"\n'
EXPECT = '[[expect]]\noutput = "same as the calm run"\n'

SLOW_SINK = '''
title = "A slow sink does not hold up a checkpoint"
story = """
The sink stalls, so every channel above it fills up.  The barrier cannot reach
the sink through full channels; after one second it overtakes them instead.
"""
job = "actorflow.examples.orders:settle_orders"
arguments = { servers = "not used", dsn = "not used" }
seeds = { first = 1, count = 50 }

[environment]
parallelism = 2
buffers = { per_channel = 2, overdraft = 3 }
checkpoints = { every = "10s" }

[[input]]
source = "orders"
make = "actorflow.examples.orders:make_order"
records = 5_000
per_second = 500

[[input]]
source = "payments"
make = "actorflow.examples.orders:make_payment"
records = 5_000
per_second = 500

[[weather]]
at = "12s"
slow = "settled"
by = "250ms"
until = "60s"

[[weather]]
after = { journal = "CheckpointAcknowledged", checkpoint = 3, actor = "match/1" }
kill = "match/0"

[calm]
within = "120s"

[[expect]]
output = "same as the calm run"

[[expect]]
checkpoint = 2
kind = "unaligned"
completes_within = "5s"

[[expect]]
journal = "BarrierArrived"
at_least = 1
'''


def parse(body: str, head: str = HEAD, tail: str = EXPECT) -> Scenario:
    return parse_scenario(f"{head}{body}\n{tail}", file="x.toml")


# ── what is read ─────────────────────────────────────────────────────────────────────────────


def test_the_slow_sink_of_the_design_is_read() -> None:
    scenario = parse_scenario(SLOW_SINK, file="slow.toml")

    assert (
        Scenario(
            title="A slow sink does not hold up a checkpoint",
            story=(
                "The sink stalls, so every channel above it fills up.  The barrier cannot reach\n"
                "the sink through full channels; after one second it overtakes them instead.\n"
            ),
            job="actorflow.examples.orders:settle_orders",
            arguments={"servers": "not used", "dsn": "not used"},
            seeds=Seeds(first=1, count=50),
            environment={
                "parallelism": 2,
                "buffers": {"per_channel": 2, "overdraft": 3},
                "checkpoints": {"every": "10s"},
            },
            inputs=(
                Input(source="orders", make="actorflow.examples.orders:make_order", count=5_000, per_second=500),
                Input(source="payments", make="actorflow.examples.orders:make_payment", count=5_000, per_second=500),
            ),
            weather=(
                Fault(weather=Slow(At(12_000), "settled", by_ms=250, for_ms=48_000)),
                Fault(weather=Kill(After("CheckpointAcknowledged", {"checkpoint": 3, "actor": "match/1"}), "match/0")),
            ),
            expectations=(
                AboutOutput(compare="same as the calm run"),
                AboutCheckpoint(checkpoint=2, kind="unaligned", completes_within_ms=5_000),
                AboutJournal(entry="BarrierArrived", at_least=1),
            ),
            calm_within_ms=120_000,
            file="slow.toml",
        )
        == scenario
    )


def test_what_is_not_said_is_as_it_would_be_unsaid() -> None:
    assert Scenario(
        title="t", job="a.b:c", expectations=(AboutOutput(compare="same as the calm run"),), file="x.toml"
    ) == parse("")


TRIGGERS: dict[str, Trigger] = {
    'at = "12s"': At(12_000),
    'at = "0"': At(0),
    'after = { journal = "JobStarted", restored_checkpoint = "none" }': After(
        "JobStarted", {"restored_checkpoint": None}
    ),
    'after = { journal = "SinkCommitted", occurrence = 2, later = "5ms", process = "job" }': After(
        "SinkCommitted", occurrence=2, later_ms=5, process="job"
    ),
    'on = { object = "put_if_absent", name = "*chk-*/_metadata", moment = "torn", occurrence = 3 }': OnObject(
        "put_if_absent", "*chk-*/_metadata", Moment.TORN, 3
    ),
    'on = { disk = "rename", path = "*/part-*" }': OnDisk("rename", "*/part-*"),
    'on = { disk = "write", moment = "torn" }': OnDisk("write", moment=Moment.TORN),
    'on = { broker = "commit", moment = "unanswered", process = "job" }': OnBroker(
        "commit", moment=Moment.UNANSWERED, process="job"
    ),
    'on = { database = "commit_prepared", name = "job-*" }': OnDatabase("commit_prepared", "job-*"),
}


@pytest.mark.parametrize(("said", "trigger"), TRIGGERS.items(), ids=list(TRIGGERS))
def test_every_trigger_can_be_said(said: str, trigger: Trigger) -> None:
    assert (Fault(weather=Kill(trigger, "job")),) == parse(f'[[weather]]\n{said}\nkill = "job"').weather


NOW = At(1_000)
VERBS: dict[str, Weather] = {
    'kill = "match/0"': Kill(NOW, "match/0"),
    'kill = "job"\naims_at = "manifest torn"': Kill(NOW, "job", "manifest torn"),
    'power_cut = "m1"': PowerCut(NOW, "m1"),
    'lose_disk = "m1"': LoseDisk(NOW, "m1"),
    'pause = "job"\nfor = "700ms"': Pause(NOW, "job", 700),
    'pause = "job"\nuntil = "3s"': Pause(NOW, "job", 2_000),
    'stop = "job"': Stop(NOW, "job"),
    'replace = "job"\nfor = "2s"': Replace(NOW, "job", 2_000),
    'partition = "job"\nfor = "300ms"': Partition(NOW, "job", 300),
    'partition = "job"\nfrom = "broker"\nway = "in"\nfor = "300ms"': Partition(NOW, "job", 300, Way.IN, Service.BROKER),
    'raise = "match"': Raise(NOW, "match"),
    'raise = "match/1"': Raise(NOW, "match", 1),
    'slow = "match"\nby = "20ms"\nfor = "1s"': Slow(NOW, "match", 20, 1_000),
    'drift = "m1"\nmillionths = -10_000': Drift(NOW, "m1", -10_000),
    'jump = "m1"\nby = "-1h"': Jump(NOW, "m1", -3_600_000),
    'jump = "m1"\nby = "1min"': Jump(NOW, "m1", 60_000),
    'stall = "broker"\nfor = "5s"': Stall(NOW, Service.BROKER, 5_000),
    'rewind = "broker"\nname = "orders/0"\ncount = 3': Rewind(NOW, Service.BROKER, "orders/0", 3),
    'rewind = "database"\ncount = 1': Rewind(NOW, Service.DATABASE),
    'fail = { object = "put*", name = "*chk-*", process = "job" }\ncount = 2': FailObjects(
        NOW, "put*", "*chk-*", 2, "job"
    ),
    'tear = { object = "put*" }': TearObjects(NOW, "put*"),
    'lose_answer = { object = "put_if_absent" }': LoseAnswer(NOW, "put_if_absent"),
    'slow = { object = "*" }\nby = "2s"': SlowObjects(NOW, by_ms=2_000),
    'fail = { disk = "sync*", path = "*" }': FailDisk(NOW, "sync*"),
    'tear = { disk = "write" }': TearDisk(NOW, "write"),
    'lose_answer = { disk = "rename" }': LoseDiskAnswer(NOW, "rename"),
    'slow = { disk = "sync" }\nby = "1s"\ncount = 4': SlowDisk(NOW, "sync", count=4, by_ms=1_000),
    'fail = { broker = "append" }': FailRequests(NOW, Service.BROKER, "append"),
    'fail = { database = "prepare" }': FailRequests(NOW, Service.DATABASE, "prepare"),
    'lose_answer = { database = "commit_prepared" }': LoseAnswers(NOW, Service.DATABASE, "commit_prepared"),
    'slow = { broker = "commit" }\nby = "1s"': SlowRequests(NOW, Service.BROKER, "commit", by_ms=1_000),
}


@pytest.mark.parametrize(("said", "weather"), VERBS.items(), ids=list(VERBS))
def test_every_verb_can_be_said(said: str, weather: Weather) -> None:
    assert (Fault(weather=weather),) == parse(f'[[weather]]\nat = "1s"\n{said}').weather


def test_true_is_the_process_or_the_machine_where_the_trigger_occurred() -> None:
    after = 'after = { journal = "SnapshotTaken" }'
    for verb, weather in {
        "kill = true": Kill(After("SnapshotTaken")),
        "power_cut = true": PowerCut(After("SnapshotTaken")),
        'jump = true\nby = "1s"': Jump(After("SnapshotTaken"), None, 1_000),
    }.items():
        assert (Fault(weather=weather),) == parse(f"[[weather]]\n{after}\n{verb}").weather


def test_a_fault_may_be_kept_for_a_later_life() -> None:
    assert 2 == parse('[[weather]]\nat = "1s"\nkill = "job"\nlife = 2').weather[0].life


def test_a_fault_and_a_step_may_perhaps_never_come() -> None:
    assert parse('[[weather]]\nat = "1s"\nkill = "job"\nperhaps = true').weather[0].perhaps
    assert not parse('[[weather]]\nat = "1s"\nkill = "job"').weather[0].perhaps
    assert parse('[[step]]\nat = "1s"\ndo = "stop"\nperhaps = true').steps[0].perhaps
    assert not parse('[[step]]\nat = "1s"\ndo = "stop"').steps[0].perhaps


def test_steps_are_read() -> None:
    body = """
[[step]]
at = "5s"
do = "checkpoint"

[[step]]
after = { journal = "CheckpointCompleted", checkpoint = 2 }
do = "rescale"
parallelism = 4
"""
    assert (
        Step(when=At(5_000), act="checkpoint"),
        Step(when=After("CheckpointCompleted", {"checkpoint": 2}), act="rescale", parallelism=4),
    ) == parse(body).steps


def test_inputs_outputs_lives_and_the_schedule_are_read() -> None:
    body = """
[[input]]
source = "words"
records = ["a", 1, { at = "2s", value = "b" }, { value = { at = 1, value = 2 } }, { at = 1 }]
splits = 2

[[input]]
source = "book"
lines = "words/book.txt"
broker = true

[[output]]
sink = "counts"
stand_in = "database"

[schedule]
shuffle_rounds = 12
batch_us = 0
"""
    scenario = parse(body, head=f"{HEAD}lives = [2, 3]\n")

    records = (
        TimedRecord(value="a"),
        TimedRecord(value=1),
        TimedRecord(value="b", at_ms=2_000),
        TimedRecord(value={"at": 1, "value": 2}),
        TimedRecord(value={"at": 1}),
    )
    assert (
        Input(source="words", records=records, splits=2),
        Input(source="book", lines="words/book.txt", broker=True),
    ) == scenario.inputs
    assert (Output(sink="counts", stand_in="database"),) == scenario.outputs
    assert (2, 3) == scenario.lives
    assert Schedule(shuffle_rounds=12, batch_us=0) == scenario.schedule


EXPECTATIONS: dict[str, Expectation] = {
    'output = "at least the calm run"\nsink = "counts"\ndoubled_at_least = 3': AboutOutput(
        sink="counts", compare="at least the calm run", doubled_at_least=3
    ),
    'output = "every sink"\ncount = 0': AboutOutput(count=0),
    'sink = "counts"\nrows = [["a", 1], { word = "b" }]': AboutOutput(sink="counts", rows=(["a", 1], {"word": "b"})),
    'sink = "counts"\ncontains = [1]\ninvariant = "a.b:holds"': AboutOutput(
        sink="counts", contains=(1,), invariant="a.b:holds"
    ),
    'state = "same as the calm run"': AboutState(compare="same as the calm run"),
    'state = "count.total"\nkeys = { a = 1, b = 2 }': AboutState(state="count.total", keys=(("a", 1), ("b", 2))),
    'state = "count.total"\nkeys = [[1, "a"], [["x", 2], "b"]]': AboutState(
        state="count.total", keys=((1, "a"), (["x", 2], "b"))
    ),
    'state = "count.total"\ncompare = "same as the calm run"': AboutState(
        state="count.total", compare="same as the calm run"
    ),
    "checkpoint = 2": AboutCheckpoint(checkpoint=2),
    'checkpoint = "every"\nkind = "periodic"\nbytes_at_most = "20KiB"\nbytes_at_least = 1': AboutCheckpoint(
        kind="periodic", bytes_at_most=20_480, bytes_at_least=1
    ),
    'checkpoint = 3\naborted = "EXPIRED"\ndeclined_by = "match/1"': AboutCheckpoint(
        checkpoint=3, aborted="EXPIRED", declined_by="match/1"
    ),
    'checkpoint = 3\nactors = ["a/0"]\ntakes_at_least = "1s"': AboutCheckpoint(
        checkpoint=3, actors=("a/0",), takes_at_least_ms=1_000
    ),
    'journal = "SinkCommitted"\nwhere = { checkpoint = 2 }\nat_most = 1': AboutJournal(
        entry="SinkCommitted", where={"checkpoint": 2}, at_most=1
    ),
    'journal = "SinkCommitted"\nafter = { journal = "ManifestWritten", same = ["checkpoint"] }\n'
    'before = "JobFinished"': AboutJournal(
        entry="SinkCommitted",
        after=Mention(entry="ManifestWritten", same=("checkpoint",)),
        before=Mention(entry="JobFinished"),
    ),
    'storage = "chk-*/_metadata"\nafter_checkpoint = 3\nnames = ["chk-3/_metadata"]': AboutStorage(
        pattern="chk-*/_metadata", after_checkpoint=3, names=("chk-3/_metadata",)
    ),
    'disk = "*/part-*"\nat_least = 2\nat_most = 4': AboutStorage(
        pattern="*/part-*", at_least=2, at_most=4, on_disk=True
    ),
    "retained = [2, 3]\nafter_checkpoint = 3": AboutRegistry(retained=(2, 3), after_checkpoint=3),
    "retained = []": AboutRegistry(retained=()),
    'status = "FAILED"\nmessage_contains = "tolerable"': AboutStatus(status="FAILED", message_contains="tolerable"),
    "lives = 3\nattempts = 5": AboutStatus(lives=3, attempts=5),
}


@pytest.mark.parametrize(("said", "expected"), EXPECTATIONS.items(), ids=list(EXPECTATIONS))
def test_every_expectation_can_be_said(said: str, expected: Expectation) -> None:
    assert (expected,) == parse("", tail=f"[[expect]]\n{said}\n").expectations


def test_operations_are_those_that_the_seams_have() -> None:
    def public(seam: type) -> set[str]:
        return {name for name in vars(seam) if name[0] != "_"}

    assert set(OPERATIONS["object"]) == public(ObjectStore) - {"close", "settle"}  # a step of our own, not the store's
    on_files = {"write", "sync", "read", "open"}
    assert set(OPERATIONS["disk"]) == (public(Disk) - {"open_reader", "read_whole", "resolve"}) | on_files
    for seam, trigger in (("broker", OnBroker), ("database", OnDatabase)):
        assert set(OPERATIONS[seam]) == set(re.findall(r"``(\w+)``", trigger.__doc__ or "")), seam


def test_a_file_is_read_and_named(tmp_path: Path) -> None:
    path = tmp_path / "slow.toml"
    path.write_text(SLOW_SINK, encoding="utf-8")

    assert str(path) == read_scenario(path).file


# ── the guide ────────────────────────────────────────────────────────────────────────────────


def blocks(text: str) -> list[str]:
    return re.findall(r"^```toml\n(.*?)^```", text, re.MULTILINE | re.DOTALL)


def test_every_scenario_in_the_guide_is_read() -> None:
    found = blocks((BOOK / "README.md").read_text(encoding="utf-8"))

    assert found, "the guide shows scenarios"
    for block in found:
        is_whole = "title =" in block
        scenario = parse_scenario(block if is_whole else f"{HEAD}\n{block}\n{'' if '[[expect]]' in block else EXPECT}")
        assert scenario == parse_scenario(write_scenario(scenario))


def test_the_guide_names_every_word() -> None:
    from actorflow.simulation.scenario_weather import VERBS
    from actorflow.simulation.scenario_words import CALM, INPUT, OUTPUT, SCHEDULE, SEEDS, STEP, SUBJECTS, TOP

    text = (BOOK / "README.md").read_text(encoding="utf-8")
    tables: list[tuple[Any, ...]] = [TOP, SEEDS, CALM, SCHEDULE, INPUT, OUTPUT, STEP, *SUBJECTS.values()]
    words = {word.name for table in tables for word in table} | {verb.word for verb in VERBS}
    words |= {word.name for verb in VERBS for word in verb.words}

    assert [] == sorted(word for word in words if re.search(rf"\b{word}\b", text) is None)
