"""A scenario that speaks of what its job has not is refused before anything runs."""

from __future__ import annotations

from pathlib import Path

import pytest

import actorflow as af
from actorflow.connectors import generator
from actorflow.connectors.memory import collect
from actorflow.errors import InvalidConfig, InvalidScenario
from actorflow.simulation.play import play_seed, prepare
from actorflow.simulation.scenario_cast import check_cast
from actorflow.simulation.scenario_reading import parse_scenario

HERE = "actorflow_tests.simulation.test_scenario_cast"
HEAD = f'title = "t"\njob = "{HERE}:count_words"\n[environment]\nparallelism = 2\n'
EXPECT = '[[expect]]\noutput = "every sink"\ncount = 3\n'


def count_words() -> af.Job:
    job = af.Job("counts")
    made = generator.generate(str, records=3)
    job.read(made, name="lines").map(str.upper, name="upper").key_by(str).count(name="count").write(
        collect(), name="rows"
    )
    return job


def word(index: int) -> str:
    return str(index % 5)


def silent() -> af.Job:
    job = af.Job("silent")
    job.read(generator.generate(str, records=3), name="lines").discard()
    return job


def holds(rows: object) -> None:
    assert rows


def refusals(body: str, build=count_words) -> list[str]:  # type: ignore[no-untyped-def]
    tail = "" if "[[expect]]" in body else EXPECT
    scenario = parse_scenario(f"{HEAD}{body}\n{tail}", file="x.toml")
    try:
        check_cast(scenario, build())
    except InvalidScenario as refused:
        return list(refused.problems)
    return []


@pytest.mark.parametrize(
    "body",
    [
        '[[input]]\nsource = "lines"\nrecords = [1]',
        '[[output]]\nsink = "rows"\nstand_in = "ledger"',
        *(f'[[weather]]\nat = "1s"\nkill = "{name}"' for name in ("job", "job-2", "count", "count/1", "upper", "rows")),
        '[[weather]]\nat = "1s"\npower_cut = "m1"',
        '[[weather]]\nat = "1s"\njump = "count/0"\nby = "1s"',
        '[[weather]]\nat = "1s"\nraise = "upper/1"',
        '[[weather]]\nat = "1s"\nfail = { object = "put", process = "job" }',
        '[[weather]]\nafter = { journal = "BarrierArrived", channel = "lines/0>count/1" }\nkill = true',
        '[[weather]]\nafter = { journal = "SinkCommitted", operator = "rows", process = "job" }\nkill = true',
        '[[step]]\nat = "1s"\ndo = "rescale"\nparallelism = 3\n[[weather]]\nat = "1s"\nkill = "count/2"',
        '[[step]]\nafter = { journal = "JobStarted", job = "counts" }\ndo = "stop"',
        '[[expect]]\nsink = "rows"\ncount = 3',
        f'[[expect]]\nsink = "rows"\ninvariant = "{HERE}:holds"',
        '[[expect]]\nstate = "count.state"\nkeys = { A = 1 }',
        '[[expect]]\ncheckpoint = 1\nactors = ["lines/0", "count/0", "count/1"]',
        '[[expect]]\ncheckpoint = 1\ndeclined_by = "count"',
        '[[expect]]\nstorage = "*/_metadata"\n[[expect]]\nstorage = "chk-[12]/*"\n[[expect]]\nstorage = "f*"',
        *(
            f'[[expect]]\nstorage = "{pattern}"\nat_most = 0'
            for pattern in (
                "*",
                "chk-*",
                "chk-7/_metadata",
                "*/count-[!1]-*",
                "chk-?/count*",
                "chk-10/lines*-0-12",
            )
        ),
        *(
            f'[[expect]]\nstorage = "{pattern}"\nat_most = 0'
            for pattern in ("owner/0000000002", "owner/*.base", "owner/*[]0]", "shared/*", "taskowned/x?", "f?nished")
        ),
        '[[expect]]\ndisk = "/anywhere"',
        '[[expect]]\njournal = "WeatherStruck"\nwhere = { verb = "kill" }',
        '[[expect]]\njournal = "CheckpointCompleted"\nwhere = { kind = "final" }',
    ],
)
def test_who_is_there_may_be_named(body: str) -> None:
    assert [] == refusals(body)


REFUSED = {
    '[[expect]]\nstorage = "ckh-*"\nat_most = 0': "storage = 'ckh-*' matches no name that an object in a home can have",
    '[[expect]]\nstorage = "chk-*/_metdata"\nat_most = 0': "; the nearest is 'chk-*/_metadata'",
    '[[expect]]\nstorage = "chk-1/cuont-0-*"\nat_most = 0': "; the nearest is 'chk-1/count-0-1'",
    '[[expect]]\nstorage = "Finished"\nat_most = 0': "; the nearest is 'finished'",
    **{
        f'[[expect]]\nstorage = "{pattern}"\nat_most = 0': f"storage = {pattern!r} matches no name"
        for pattern in (
            "chk-0/*",
            "chk-01/*",
            "chk-[!0-9]/*",
            "*/_metdata",
            "*/count-2-*",
            "owner/1",
            "owner/*.bas",
            "owner/???",
            "shared",
        )
    },
    '[[input]]\nsource = "line"\nrecords = [1]': "[[input]] 1: source = 'line': the job 'counts' has none of "
    "this name; the nearest is 'lines'",
    '[[output]]\nsink = "row"\nstand_in = "ledger"': "[[output]] 1: sink = 'row': the job 'counts' has none",
    '[[weather]]\nat = "1s"\nkill = "counts"': "[[weather]] 1: process = 'counts': the job 'counts' has none",
    '[[weather]]\nat = "1s"\nkill = "count/2"': "[[weather]] 1: process = 'count/2'",
    '[[weather]]\nat = "1s"\npower_cut = "m2"': "[[weather]] 1: machine = 'm2'",
    '[[weather]]\nat = "1s"\njump = "m2"\nby = "1s"': "[[weather]] 1: clock = 'm2'",
    '[[weather]]\nat = "1s"\nraise = "uper"': "operator = 'uper': the job 'counts' has none of",
    '[[weather]]\nat = "1s"\nraise = "upper/2"': "upper/2: operator 'upper' has 2 subtasks at most, from 0",
    '[[weather]]\nat = "1s"\nslow = "nobody"\nby = "1s"\nfor = "1s"': "[[weather]] 1: operator = 'nobody'",
    '[[weather]]\nat = "1s"\nfail = { object = "put", process = "jobs" }': "[[weather]] 1: process = 'jobs'",
    '[[weather]]\nafter = { journal = "SnapshotTaken", actor = "count/7" }\nkill = true': "actor = 'count/7'",
    '[[weather]]\nafter = { journal = "SnapshotTaken", actor = "upper/0" }\nkill = true': "actor = 'upper/0'",
    '[[weather]]\nafter = { journal = "SnapshotTaken", process = "q" }\nkill = true': "[[weather]] 1: process = 'q'",
    '[[weather]]\non = { object = "put", process = "q" }\nkill = true': "[[weather]] 1: process = 'q'",
    '[[weather]]\nafter = { journal = "BarrierArrived", channel = "a/0>count/1" }\nkill = true': "channel = 'a/0'",
    '[[weather]]\nafter = { journal = "SinkCommitted", operator = "lins" }\nkill = true': "operator = 'lins'",
    '[[weather]]\nafter = { journal = "ActorFailed", operator = "count", subtask = 2 }\nkill = true': "count/2: op",
    '[[weather]]\nafter = { journal = "LoopBlocked" }\nkill = true': "LoopBlocked can't occur: time stands still",
    '[[step]]\nafter = { journal = "JobStarted", job = "count" }\ndo = "stop"': "[[step]] 1: job = 'count'",
    '[[expect]]\nsink = "lines"\ncount = 0': "[[expect]] 1: sink = 'lines'",
    '[[expect]]\nsink = "rows"\ninvariant = "nowhere:holds"': "[[expect]] 1: invariant = 'nowhere:holds'",
    f'[[expect]]\nsink = "rows"\ninvariant = "{HERE}:hold"': f"{HERE} has no function 'hold'",
    '[[expect]]\nstate = "count.total"\nkeys = { A = 1 }': "state = 'count.total': the job 'counts' has none "
    "of this name; the nearest is 'count.state'",
    '[[expect]]\ncheckpoint = 1\nactors = ["lines/0", "map/0"]': "[[expect]] 1: actors = 'map/0'",
    '[[expect]]\ncheckpoint = 1\ndeclined_by = "map"': "[[expect]] 1: declined_by = 'map'",
    **{
        f'[[expect]]\ncheckpoint = 1\nkind = "{way}"': f"[[expect]] 1: kind = {way!r}: to ask how barriers travelled "
        "comes with a later version; the kinds are 'periodic', 'requested',"
        for way in ("unaligned", "aligned", "at-least-once", "forced-aligned")
    },
    '[[expect]]\njournal = "CheckpointCompleted"\nwhere = { kind = "fast" }': "[[expect]] 1: kind = 'fast'",
    '[[expect]]\njournal = "SnapshotTaken"\nwhere = { actor = "count" }\nat_most = 1': "actor = 'count'",
    '[[expect]]\njournal = "LoopBlocked"\nat_most = 0': "LoopBlocked can't occur",
    '[[expect]]\njournal = "WeatherStruck"\nwhere = { verb = "kil" }': "verb = 'kil': there is no such",
    '[[expect]]\njournal = "JobFinished"\nafter = { journal = "SnapshotTaken", actor = "map/0" }': "actor = 'map/0'",
}


@pytest.mark.parametrize(("body", "sentence"), REFUSED.items(), ids=list(REFUSED))
def test_who_is_not_there_is_refused(body: str, sentence: str) -> None:
    (told,) = refusals(body)

    assert told.startswith("x.toml [[")
    assert sentence in told


def test_output_and_state_of_a_job_without_any_are_refused() -> None:
    body = '[[expect]]\noutput = "every sink"\ncount = 0\n[[expect]]\nstate = "same as the calm run"'

    assert [
        "x.toml [[expect]] 1: the job 'silent' has no sink, so there is no output",
        "x.toml [[expect]] 2: the job 'silent' keeps no state by key, so there is none in the end",
    ] == refusals(body, silent)


def test_storage_of_a_job_without_any_is_refused() -> None:
    body = 'checkpoints = { storage = "none" }\n[[expect]]\nstorage = "chk-*"\nat_most = 0\n'
    with pytest.raises(InvalidConfig, match="storage"):
        prepare(parse_scenario(HEAD + body))


def test_all_is_told_at_once_and_before_anything_runs() -> None:
    body = '[[weather]]\nat = "1s"\nkill = "x"\n[[expect]]\nsink = "y"\ncount = 1\n'
    with pytest.raises(InvalidScenario) as refused:
        prepare(parse_scenario(HEAD + body))

    assert 2 == len(refused.value.problems)


def test_the_scenario_that_the_guide_reads_aloud_comes_out_as_it_says() -> None:
    guide = (Path(__file__).parents[2] / "scenarios" / "README.md").read_text(encoding="utf-8")
    scenario = parse_scenario(guide.partition("```toml\n")[2].partition("```")[0])

    played = play_seed(scenario, 1)

    assert () == played.failures
    assert 1 < len(played.lines)


def test_every_name_that_lay_in_a_home_is_one_that_can_be_asked_for() -> None:
    text = f"""{HEAD}checkpoints = {{ every = "1ms", inline_below = 0 }}
[[input]]
source = "lines"
make = "{HERE}:word"
records = 60
per_second = 1_000
[[expect]]
storage = "*"
"""
    scenario = parse_scenario(text)
    (run,) = [play_seed(scenario, 1).run]
    assert run is not None
    names = list(dict.fromkeys(name for there in run.storage.values() for name in there))
    assert {"finished", "owner/0000000001", "chk-1/_metadata"} < {*names}
    assert any(name.startswith("chk-1/") and name.endswith("-1") for name in names)
    for name in names:
        assert [] == refusals(f'[[expect]]\nstorage = "{name}"')
