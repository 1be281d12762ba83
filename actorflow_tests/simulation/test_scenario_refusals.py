"""What a scenario file may not say: each is refused by one sentence, with the file, the table and what would do."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from actorflow.cli.exits import Exit, exit_code_of
from actorflow.errors import InvalidScenario
from actorflow.simulation.scenario_reading import parse_scenario, read_scenario
from actorflow.simulation.scenario_triggers import OPERATIONS
from actorflow.simulation.scenario_weather import VERBS
from actorflow.simulation.scenario_words import CALM, INPUT, OUTPUT, SCHEDULE, SEEDS, STEP, SUBJECTS, TOP
from actorflow.simulation.scenario_writing import toml_value, write_scenario

HEAD = 'title = "t"\njob = "a.b:c"\n'
EXPECT = '[[expect]]\noutput = "same as the calm run"\n'


def refusals(body: str, head: str = HEAD, tail: str = EXPECT) -> list[str]:
    with pytest.raises(InvalidScenario) as refused:
        parse_scenario(f"{head}{body}\n{tail}", file="x.toml")
    return list(refused.value.problems)


def test_a_file_that_can_not_be_read_is_refused(tmp_path: Path) -> None:
    (tmp_path / "latin.toml").write_bytes(b'title = "\xe4"')
    (tmp_path / "broken.toml").write_text('title = "', encoding="utf-8")
    for name, why in {
        "latin.toml": "is not UTF-8",
        "broken.toml": "is not TOML",
        "missing.toml": "can't be read",
        ".": "can't be read",
    }.items():
        with pytest.raises(InvalidScenario, match=why):
            read_scenario(tmp_path / name)


def test_the_command_line_calls_it_wrong_usage() -> None:
    with pytest.raises(InvalidScenario) as refused:
        parse_scenario("nonsense = 1")

    assert Exit.USAGE == exit_code_of(refused.value)


def test_all_mistakes_of_a_file_are_told_at_once_with_file_and_table() -> None:
    body = """
[environment]
paralelism = 2
checkpoints = { every = "10", min_pause = "1w" }

[[weather]]
at = "-1s"
kill = "job"

[[weather]]
at = "1s"
kil = "job"

[[expect]]
journal = "SinkComitted"
"""
    assert [
        "x.toml: 'titel' is no word of this table; the nearest is 'title'",
        "x.toml [environment]: paralelism = 2 is not a setting; the nearest is parallelism",
        "x.toml [environment]: checkpoints.every = '10' needs a unit: '10ms', '10s', '10min' …",
        "x.toml [environment]: checkpoints.min_pause = '1w' has the unit 'w', which is none of ms, s, min, h, d",
        "x.toml [[weather]] 1: at = '-1s' must not be negative",
        "x.toml [[weather]] 2: 'kil' is no word of this table; the nearest is 'kill'",
        "x.toml [[expect]] 1: journal = 'SinkComitted' is not an entry of the journal; the nearest is 'SinkCommitted'",
    ] == refusals(body, head='titel = "t"\njob = "a:b"\n')


def test_what_is_misspelled_is_not_told_to_be_missing_as_well() -> None:
    assert ["x.toml: 'titel' is no word of this table; the nearest is 'title'", "x.toml: job is missing"] == refusals(
        "", head='titel = "t"\n'
    )
    assert [
        "x.toml [[weather]] 1: 'kil' is no word of this table; the nearest is 'kill'",
        "x.toml [[weather]] 1: has no trigger: one of at, after, on",
    ] == refusals("[[weather]]\nkil = 1")


def test_a_word_nobody_knows_is_told_with_the_nearest() -> None:
    for body, sentence in {
        'titel = "x"': "x.toml: 'titel' is no word of this table; the nearest is 'title'",
        "[seeds]\ncont = 3": "x.toml [seeds]: 'cont' is no word of this table; the nearest is 'count'",
        "[wether]\na = 1": "x.toml: 'wether' is no word of this table; the nearest is 'weather'",
        '[[input]]\nsorce = "x"': "x.toml [[input]] 1: 'sorce' is no word of this table; the nearest is 'source'",
        '[[output]]\nsnk = "x"\nstand_in = "ledger"': "x.toml [[output]] 1: 'snk' is no word of this "
        "table; the nearest is 'sink'",
        '[[weather]]\nat = "1s"\npause = "job"\nfr = "1s"': "x.toml [[weather]] 1: 'fr' is no word of this table; the "
        "nearest is 'for'",
        '[[weather]]\natt = "1s"\nkill = "job"': "x.toml [[weather]] 1: 'att' is no word of this table; the nearest is "
        "'at'",
        '[[step]]\nat = "1s"\ndoo = "stop"': "x.toml [[step]] 1: 'doo' is no word of this table; the nearest is 'do'",
        '[calm]\nwithn = "1s"': "x.toml [calm]: 'withn' is no word of this table; the nearest is 'within'",
        '[[expect]]\noutpt = "x"': "x.toml [[expect]] 1: 'outpt' is no word of this table; the nearest is 'output'",
        '[[expect]]\ncheckpoint = 1\naktors = ["a/0"]': "x.toml [[expect]] 1: 'aktors' is no word of this table; the "
        "nearest is 'actors'",
    }.items():
        assert [sentence] == refusals(body), body


AFTER = 'after = { journal = "SnapshotTaken" }'
REFUSED: dict[str, str] = {
    # the head
    "story = 3": "story = 3 must be text, not a number",
    "arguments = 3": "arguments = 3 must be a table, not a number",
    "lives = []": "lives = [] must not be empty",
    "lives = [0]": "lives = [0] has something wrong at place 1: 0 must be at least 1",
    "lives = 2": "lives = 2 must be a list, not a number",
    "seeds = { count = 0 }": "[seeds]: count = 0 must be at least 1",
    "seeds = { first = -1 }": "[seeds]: first = -1 must be at least 0",
    "seeds = { first = true }": "[seeds]: first = True must be a whole number, not true or false",
    "seeds = 3": "[seeds]: must be a table, not 3",
    "environment = 3": "[environment]: must be a table, not 3",
    "calm = {}": "[calm]: within is missing",
    'calm = { within = "0" }': "[calm]: within = '0' must be more than nothing",
    'schedule = { batch_us = "2ms" }': "[schedule]: batch_us = '2ms' must be a whole number, not text",
    'weather = { at = "1s" }': "[[weather]]: must be tables: begin each of them with [[weather]]",
    "weather = 3": "[[weather]]: must be tables: begin each of them with [[weather]]",
    # inputs and outputs
    "[[input]]\nrecords = [1]": "[[input]] 1: source is missing",
    '[[input]]\nsource = "a"': "[[input]] 1: needs one of: records = N with make",
    '[[input]]\nsource = "a"\nrecords = 3': "[[input]] 1: needs one of: records = N with make",
    '[[input]]\nsource = "a"\nrecords = [1]\nmake = "a:b"': "[[input]] 1: needs one of: records = N with make",
    '[[input]]\nsource = "a"\nrecords = [1]\nlines = "b"': "[[input]] 1: needs one of: records = N with make",
    '[[input]]\nsource = "a"\nrecords = 0\nmake = "a:b"': "[[input]] 1: records = 0 must be at least 1",
    '[[input]]\nsource = "a"\nrecords = "b"': "[[input]] 1: records = 'b' must be how many, or a list of records",
    '[[input]]\nsource = "a"\nrecords = true': "[[input]] 1: records = True must be how many, or a list of records",
    '[[input]]\nsource = "a"\nrecords = [{ at = 3, value = 1 }]': "place 1: at = 3 needs a unit",
    '[[input]]\nsource = "a"\nrecords = [1]\nsplits = 0': "[[input]] 1: splits = 0 must be at least 1",
    '[[input]]\nsource = "a"\nrecords = [1]\nbroker = 1': "[[input]] 1: broker = 1 must be true or false, not a number",
    '[[input]]\nsource = "a"\nrecords = [1]\nper_second = 0': "per_second = 0 must be more than 0 and at most",
    '[[input]]\nsource = "a"\nrecords = [1]\nper_second = inf': "per_second = inf must be more than 0 and at most",
    '[[input]]\nsource = "a"\nrecords = [{ at = "1s", value = 1 }]\nper_second = 2': "says per_second, and its records",
    '[[input]]\nsource = "a"\nrecords = 3\nmake = "nowhere"': "make = 'nowhere' must be module:function",
    '[[input]]\nsource = "a"\nlines = "../secret.txt"': "lines = '../secret.txt' must stay beside the scenario",
    '[[input]]\nsource = "a"\nlines = "a/../../secret.txt"': "must stay beside the scenario",
    '[[input]]\nsource = "a"\nlines = "/etc/passwd"': "lines = '/etc/passwd' must stay beside the scenario",
    '[[input]]\nsource = "a"\nlines = "a\\\\b"': "must stay beside the scenario",
    '[[input]]\nsource = "a"\nlines = "C:x"': "must stay beside the scenario",
    '[[input]]\nsource = "a"\nrecords = [1]\n[[input]]\nsource = "a"\nrecords = [2]': "[[input]]: 'a' is there 2 times",
    '[[output]]\nsink = "a"': "[[output]] 1: stand_in is missing",
    '[[output]]\nsink = "a"\nstand_in = "kafka"': "stand_in = 'kafka' must be one of 'ledger', 'broker', 'database', "
    "'files'; the nearest is",
    # triggers
    '[[weather]]\nkill = "job"': "[[weather]] 1: has no trigger: one of at, after, on",
    f'[[weather]]\nat = "1s"\n{AFTER}\nkill = "job"': "[[weather]] 1: has 2 triggers, at and after: one is enough",
    '[[weather]]\nat = 3\nkill = "job"': "[[weather]] 1: at = 3 needs a unit: '3ms', '3s', '3min' …",
    '[[weather]]\nat = "1.5ms"\nkill = "job"': "at = '1.5ms' is not a whole number of milliseconds",
    '[[weather]]\nafter = "1s"\nkill = "job"': "after = '1s' must be a table such as { journal = \"SnapshotTaken\" }",
    "[[weather]]\nafter = {}\nkill = true": "after: journal = None is not an entry of the journal; say journal = ",
    '[[weather]]\nafter = { journal = "SnapshotTakn" }\nkill = true': "'SnapshotTakn' is not an entry of the journal; "
    "the nearest is 'SnapshotTaken'",
    '[[weather]]\nafter = { journal = "Entry" }\nkill = true': "'Entry' is not an entry of the journal",
    '[[weather]]\nafter = { journal = "SnapshotTaken", actr = "a/0" }\nkill = true': "has no field 'actr'; the nearest "
    "is 'actor'",
    '[[weather]]\nafter = { journal = "SnapshotTaken", actor = 1 }\nkill = true': "after: actor of SnapshotTaken must "
    "be text, not a number",
    '[[weather]]\nafter = { journal = "SnapshotTaken", checkpoint = true }\nkill = true': "after: checkpoint of "
    "SnapshotTaken must be a number, not true or false",
    '[[weather]]\nafter = { journal = "SnapshotTaken", instant_us = 3 }\nkill = true': "'instant_us' of SnapshotTaken "
    "is measured, and no seed decides it",
    '[[weather]]\nafter = { journal = "CheckpointAborted", reason = "EXPIRD" }\nkill = true': "reason = 'EXPIRD' of "
    "CheckpointAborted is none; the nearest is 'EXPIRED'",
    '[[weather]]\nafter = { journal = "SnapshotTaken", occurrence = 0 }\nkill = true': "after: occurrence = 0 must be "
    "at least 1",
    '[[weather]]\nafter = { journal = "SnapshotTaken", later = "-5ms" }\nkill = true': "after: later = '-5ms' must not "
    "be negative",
    '[[weather]]\non = { objects = "put" }\nkill = true': "on: needs one of object, disk, broker, database",
    '[[weather]]\non = { object = "put", disk = "write" }\nkill = true': "on: needs one of object, disk, broker",
    '[[weather]]\non = { object = "putt" }\nkill = true': "object = 'putt' is nothing that is done here; the "
    "nearest is 'put'",
    '[[weather]]\non = { object = "put", path = "*" }\nkill = true': "on: 'path' is no word of this table",
    '[[weather]]\non = { object = "put", moment = "befor" }\nkill = true': "the nearest is 'before'",
    '[[weather]]\non = { object = "get", moment = "torn" }\nkill = true': "on: moment = 'torn' is not for 'get' on the "
    "object",
    '[[weather]]\non = { disk = "sync", moment = "torn" }\nkill = true': "'torn' is not for 'sync' on the disk",
    '[[weather]]\non = { broker = "append", moment = "torn" }\nkill = true': "is not for 'append' on the broker",
    # verbs
    '[[weather]]\nat = "1s"': "[[weather]] 1: has no verb: one of kill, power_cut,",
    '[[weather]]\nat = "1s"\nkill = "job"\nstop = "job"': "has 2 verbs, kill and stop: each needs a table of its own",
    '[[weather]]\nat = "1s"\nkill = true': "kill = true is where the trigger occurred, and at a time that is nowhere",
    '[[weather]]\nat = "1s"\nkill = false': "kill = False must be text, not true or false",
    '[[weather]]\nat = "1s"\nkill = ""': "kill = '' must be one line of text, without blanks around it",
    '[[weather]]\nat = "1s"\nkill = "job"\nfor = "1s"': "'for' is no word of this table",
    '[[weather]]\nat = "1s"\nkill = "job"\nlife = 0': "life = 0 must be at least 1",
    '[[weather]]\nat = "1s"\nkill = "job"\nperhaps = "no"': "perhaps = 'no' must be true or false, not text",
    '[[weather]]\nat = "1s"\npause = "job"': "[[weather]] 1: for is missing",
    '[[weather]]\nat = "1s"\npause = "job"\nfor = "0"': "for = '0' must be more than nothing",
    '[[weather]]\nat = "1s"\npause = "job"\nfor = "1s"\nuntil = "3s"': "says for and until: one is enough",
    '[[weather]]\nat = "3s"\npause = "job"\nuntil = "3s"': "until = '3s' is not later than at",
    f'[[weather]]\n{AFTER}\npause = "job"\nuntil = "3s"': "until is a time, and goes with at: say for",
    '[[weather]]\nat = "3s"\npause = "job"\nuntil = 3': "until = 3 needs a unit",
    '[[weather]]\nat = "1s"\nslow = "a"\nfor = "1s"': "[[weather]] 1: by is missing",
    '[[weather]]\nat = "1s"\nraise = true': "raise = True must be text, not true or false",
    '[[weather]]\nat = "1s"\nfail = "put"': "fail = 'put' must be a table such as { object = \"put\" }",
    '[[weather]]\nat = "1s"\nfail = { name = "x" }': "fail: needs one of object, disk, broker, database",
    '[[weather]]\nat = "1s"\ntear = { broker = "append" }': "tear: needs one of object, disk, and the operation on it",
    '[[weather]]\nat = "1s"\nfail = { object = "put", nam = "x" }': "fail: 'nam' is no word of this table; the nearest "
    "is 'name'",
    '[[weather]]\nat = "1s"\nfail = { object = "put" }\ncount = 0': "count = 0 must be at least 1",
    '[[weather]]\nat = "1s"\nkill = { object = "put" }': "kill = {'object': 'put'} must be text, not a table",
    '[[weather]]\nat = "1s"\npartition = "job"\nfor = "1s"\nway = "up"': "'up' must be one of 'both', 'out', 'in'",
    '[[weather]]\nat = "1s"\npartition = "job"\nfor = "1s"\nfrom = "kafka"': "from = 'kafka' must be one of 'store'",
    '[[weather]]\nat = "1s"\ndrift = "m1"\nmillionths = 0': "millionths = 0 must be a whole number of millionths",
    '[[weather]]\nat = "1s"\njump = "m1"\nby = "0"': "by = '0' must be more than nothing",
    '[[weather]]\nat = "1s"\nstall = "store"\nfor = "1s"': "stall = 'store' must be one of broker and database",
    '[[weather]]\nat = "1s"\nrewind = "broker"': "[[weather]] 1: count is missing",
    # steps
    '[[step]]\ndo = "stop"': "[[step]] 1: has no trigger: one of at, after",
    '[[step]]\nat = "1s"': "[[step]] 1: do is missing",
    '[[step]]\nat = "1s"\ndo = "halt"': "do = 'halt' must be one of 'checkpoint', 'stop', 'drain', 'cancel'",
    '[[step]]\nat = "1s"\ndo = "rescale"': "[[step]] 1: do = 'rescale' needs parallelism",
    '[[step]]\nat = "1s"\ndo = "stop"\nparallelism = 2': "[[step]] 1: do = 'stop' takes no parallelism",
    '[[step]]\non = { object = "put" }\ndo = "stop"': "[[step]] 1: on is no trigger here: only at and after",
    # expectations
    "[[expect]]": "[[expect]] 1: has no subject: one of output, sink, state, checkpoint, journal",
    "[[expect]]\nat_least = 3": "[[expect]] 1: has no subject: one of output",
    '[[expect]]\ncheckpoint = 1\njournal = "JobFinished"': "has 2 subjects, checkpoint, journal: each needs a table of",
    '[[expect]]\noutput = "the same"': "output = 'the same' must be one of 'same as the calm run', 'at least the calm",
    '[[expect]]\noutput = "every sink"': "[[expect]] 1: says nothing about the output",
    '[[expect]]\nsink = "a"': "[[expect]] 1: says nothing about the output",
    '[[expect]]\noutput = "every sink"\nsink = "a"\ncount = 1': "says every sink, and names one",
    '[[expect]]\nsink = "a"\ncontains = []': "contains = [] must not be empty",
    '[[expect]]\nsink = "a"\nrows = "b"': "rows = 'b' must be a list, not text",
    '[[expect]]\nsink = "a"\ncount = -1': "count = -1 must be at least 0",
    '[[expect]]\nsink = "a"\ndoubled_at_least = 0': "doubled_at_least = 0 must be at least 1",
    '[[expect]]\nsink = "a"\ninvariant = "b"': "invariant = 'b' must be module:function",
    '[[expect]]\nstate = "a.b"': "[[expect]] 1: says nothing about the state",
    '[[expect]]\nstate = "same as the calm run"\nkeys = { a = 1 }': "names keys and not whose",
    '[[expect]]\nstate = "a.b"\nkeys = {}': "keys = {} must not be empty",
    '[[expect]]\nstate = "a.b"\nkeys = [[1, 2, 3]]': "must be a table of keys, or a list of [key, value]",
    "[[expect]]\ncheckpoint = 0": "checkpoint = 0 must be at least 1",
    '[[expect]]\ncheckpoint = "all"': "checkpoint = 'all' must be the number of a checkpoint, or 'every'",
    '[[expect]]\ncheckpoint = 1\nkind = "quick"': "kind = 'quick' must be one of 'periodic', 'requested'",
    '[[expect]]\ncheckpoint = 1\naborted = "LATE"': "aborted = 'LATE' must be one of",
    '[[expect]]\ncheckpoint = 1\naborted = "EXPIRED"\nkind = "final"': "says that a checkpoint is aborted or declined, "
    "and",
    '[[expect]]\ncheckpoint = "every"\ndeclined_by = "a/0"': "says that a checkpoint is aborted or declined, and",
    "[[expect]]\ncheckpoint = 1\nactors = []": "actors = [] must not be empty",
    "[[expect]]\ncheckpoint = 1\nbytes_at_least = 2\nbytes_at_most = 1": "bytes_at_least is more than bytes_at_most",
    '[[expect]]\ncheckpoint = 1\ntakes_at_least = "2s"\ncompletes_within = "1s"': "takes_at_least is more than",
    '[[expect]]\njournal = "Finished"': "journal = 'Finished' is not an entry of the journal; the nearest is",
    '[[expect]]\njournal = "JobFinished"\nwhere = { jb = "a" }': "where: JobFinished has no field 'jb'; the nearest is",
    '[[expect]]\njournal = "JobFinished"\nwhere = 3': "where = 3 must be a table, not a number",
    '[[expect]]\njournal = "JobFinished"\nat_least = 0': "at_least = 0 must be at least 1",
    '[[expect]]\njournal = "JobFinished"\nat_least = 2\nat_most = 1': "at_least is more than at_most",
    '[[expect]]\njournal = "JobFinished"\nbefore = "Nothing"': "before = 'Nothing' is not an entry of the journal",
    '[[expect]]\njournal = "JobFinished"\nbefore = {}': "before = {} must be the name of an entry, or a table such as",
    '[[expect]]\njournal = "JobFinished"\nat_most = 0\nafter = "JobStarted"': "must not be there at all, and",
    '[[expect]]\njournal = "JobFinished"\nafter = { journal = "SinkCommitted", same = ["checkpoint"] }': "after: "
    "JobFinished has no field 'checkpoint' that could be the same",
    '[[expect]]\njournal = "JobFinished"\nafter = { journal = "JobStarted", same = ["checkpint"] }': "JobStarted has "
    "no field 'checkpint'",
    '[[expect]]\nstorage = "a"\ndisk = "b"': "is about storage and about the disk: each needs a table of its own",
    '[[expect]]\ndisk = "b"\nafter_checkpoint = 1': "looks at the disk after a checkpoint",
    '[[expect]]\nstorage = "a"\nnames = ["a"]\nat_least = 1': "says all names, and how many there are",
    '[[expect]]\nstorage = "chk-*"\nnames = ["chk-1", "owner"]': "names 'owner', which 'chk-*' does not match",
    "[[expect]]\nretained = [0]": "retained = [0] has something wrong at place 1: 0 must be at least 1",
    '[[expect]]\nstatus = "DONE"': "status = 'DONE' must be one of 'FINISHED', 'STOPPED', 'CANCELED'",
    '[[expect]]\nmessage_contains = ""': "message_contains is empty, and every message contains that",
    "[[expect]]\nlives = 0": "lives = 0 must be at least 1",
}


@pytest.mark.parametrize(("body", "sentence"), REFUSED.items(), ids=list(REFUSED))
def test_what_makes_no_sense_is_refused(body: str, sentence: str) -> None:
    told = refusals(body)

    assert [one for one in told if one.startswith("x.toml") and sentence in one], told


def test_one_mistake_is_told_once() -> None:
    for body in REFUSED:
        assert 1 == len(refusals(body)), (body, refusals(body))


def test_the_head_must_say_what_runs_and_what_must_be_true() -> None:
    assert [
        "x.toml: title is missing",
        "x.toml: job is missing",
        "x.toml: [[expect]] is missing: say what must be true",
    ] == (refusals("", head="", tail=""))
    assert [
        "x.toml: job = 'a' must be module:function, such as 'actorflow.examples.word_count:word_count'"
    ] == refusals("", head='title = "t"\njob = "a"\n')
    for title in ('""', '" t"', '"two\\nlines"', "3"):
        assert 1 == len(refusals("", head=f'title = {title}\njob = "a:b"\n'))


# ── whatever stands there ────────────────────────────────────────────────────────────────────

TABLES = (TOP, SEEDS, CALM, SCHEDULE, INPUT, OUTPUT, STEP, *SUBJECTS.values(), *(verb.words for verb in VERBS))
WORDS = sorted(
    {word.name for table in TABLES for word in table}
    | {verb.word for verb in VERBS}
    | {"at", "after", "on", "until", "life", "process", "occurrence", "moment", "name", "path", "every", "x"}
    | set(OPERATIONS)
)
scalars = st.sampled_from(
    ["", "1s", "-1s", "job", "true", "every", "none", "put", "*", "a:b", "a/1", "../x", "JobStarted", "EXPIRED", "stop"]
) | st.sampled_from([True, False, 0, 1, -1, 2**70, 1.5, float("inf")])
anything = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(WORDS), inner, max_size=4),
    max_leaves=8,
)


def a_table_of(*words: str) -> st.SearchStrategy[dict[str, Any]]:
    """A table that says the first of some words, and some of the others, and perhaps another."""
    known, (first, *others) = st.sampled_from(WORDS), words
    return st.builds(
        lambda said, more, other: {**more, **other, **said},
        st.fixed_dictionaries({first: anything}),
        st.dictionaries(st.sampled_from(others or WORDS), anything, max_size=4),
        st.dictionaries(known, anything, max_size=1),
    )


triggers = st.sampled_from(
    [
        {"at": "1s"},
        {"after": {"journal": "JobStarted"}},
        {"on": {"object": "put"}},
        {"on": {"disk": "write", "moment": "torn"}},
        {},
    ]
)
struck = st.one_of([a_table_of(verb.word, *(word.name for word in verb.words), "until", "life") for verb in VERBS])
weather = st.builds(lambda when, fault: {**when, **fault}, triggers, struck) | a_table_of("at", "after", "on", "kill")
often = {
    "input": a_table_of(*(word.name for word in INPUT)),
    "output": a_table_of(*(word.name for word in OUTPUT)),
    "weather": weather,
    "step": st.builds(lambda when, step: {**when, **step}, triggers, a_table_of(*(word.name for word in STEP))),
    "expect": st.one_of([a_table_of(*(word.name for word in words)) for words in SUBJECTS.values()]),
}
once = {
    "seeds": a_table_of(*(word.name for word in SEEDS)),
    "calm": a_table_of(*(word.name for word in CALM)),
    "schedule": a_table_of(*(word.name for word in SCHEDULE)),
    "environment": a_table_of("parallelism", "checkpoints", "every"),
}
documents = st.fixed_dictionaries(
    {},
    optional={
        **dict.fromkeys(("title", "story", "job", "arguments", "lives", "wrong"), anything),
        **{name: table | anything for name, table in once.items()},
        **{name: st.lists(table, max_size=3) | anything for name, table in often.items()},
    },
)


@settings(max_examples=50, deadline=None)
@given(documents)
def test_whatever_stands_in_a_file_is_read_or_refused(document: dict[str, Any]) -> None:
    text = "".join(f"{name} = {toml_value(value)}\n" for name, value in document.items())
    with pytest.raises(InvalidScenario) as refused:
        scenario = parse_scenario(text, file="x.toml")
        assert scenario == parse_scenario(write_scenario(scenario), file="x.toml")
        raise InvalidScenario("x.toml")
    assert all(problem.startswith("x.toml") for problem in refused.value.problems)
