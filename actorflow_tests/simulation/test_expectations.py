"""Each expectation holds of a run that is so, and fails of one that is not, or of nothing, in a sentence that says what
was expected and what was there."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import Enum
from typing import Any, Final, NamedTuple

import pytest

from actorflow.model import journal
from actorflow.model.journal import CalmBegan, Entry, JobFinished, Line
from actorflow.model.key_encoding import encode_key
from actorflow.simulation.digest import canonical
from actorflow.simulation.expectations import failures, needs_calm
from actorflow.simulation.runs import Acknowledgement, CheckpointRecord, Run
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
    Mention,
    Scenario,
)
from actorflow.simulation.subject import canonical_row
from actorflow.simulation.weather import At, Kill

HERE = "actorflow_tests.simulation.test_expectations"


def has_two_rows(rows: Sequence[Any]) -> None:
    assert len(rows) == 2, f"{len(rows)} rows"


def has_one_sink(rows: dict[str, list[Any]]) -> None:
    assert ["counts"] == list(rows)


def accepts(rows: Sequence[Any]) -> None:
    pass


def is_wordless(rows: Sequence[Any]) -> None:
    __tracebackhide__ = True
    if list(rows):
        raise AssertionError  # assert [] == list(rows)


def stumbles(rows: Sequence[Any]) -> None:
    raise KeyError("x")


def answers(rows: Sequence[Any]) -> bool:
    return len(rows) == 2


def run_of(
    rows: dict[str, list[Any]] | None = None,
    state: dict[str, dict[Any, Any]] | None = None,
    entries: Sequence[Entry] = (),
    **more: Any,
) -> Run:
    """A run that came to this."""
    rows, state = rows or {}, state or {}
    return Run(
        output={sink: Counter(map(canonical_row, some)) for sink, some in rows.items()},
        state={
            (*name.split("."), encode_key(key)): canonical(value)  # type: ignore[misc]
            for name, pairs in state.items()
            for key, value in pairs.items()
        },
        digest="",
        lives=1,
        faults=Counter(),
        kills_at=Counter(),
        again=False,
        lines=[Line(number, 10 * number, "job", entry) for number, entry in enumerate(entries, 1)],
        rows=rows,
        values={name: sorted(pairs.items(), key=lambda pair: encode_key(pair[0])) for name, pairs in state.items()},
        **more,
    )


def judge(expectation: Expectation, storm: Run, calm: Run | None = None) -> list[str]:
    scenario = Scenario(title="t", job="a:b", expectations=(expectation,))
    return [sentence.removeprefix("[[expect]] 1: ") for sentence in failures(scenario, calm, storm)]


SAME: Final = "same as the calm run"
ABC = run_of({"counts": [("a", 1), ("b", 1), ("b", 2)]})


def test_an_expectation_that_fails_is_told_with_its_number() -> None:
    scenario = Scenario(
        title="t", job="a:b", expectations=(AboutOutput(count=3), AboutOutput(count=4), AboutStatus(lives=2))
    )

    assert [
        "[[expect]] 2: output of every sink has 3 rows and not 4",
        "[[expect]] 3: its process lived once and not 2 times",
    ] == failures(scenario, None, ABC)


def test_weather_that_never_strikes_is_a_failure_unless_it_comes_perhaps() -> None:
    sure, unsure, late = (
        Fault(weather=Kill(At(1))),
        Fault(weather=Kill(At(1)), perhaps=True),
        Fault(weather=Kill(At(2)), life=2),
    )
    scenario = Scenario(title="t", job="a:b", weather=(sure, unsure, late), expectations=(AboutOutput(count=3),))

    assert [
        "[[weather]] 1: never struck; if that may be, say perhaps = true",
        "[[weather]] 3: never struck: its process lived once; or say perhaps = true",
    ] == failures(scenario, None, replace(ABC, unstruck=(sure, unsure), weather=(sure, unsure)))
    assert [] == failures(scenario, None, replace(ABC, unstruck=(unsure,), weather=(sure, unsure, late), lives=2))
    assert [] == failures(scenario, None, replace(ABC, unstruck=(sure,), storm=False))


def test_weather_of_a_life_that_began_when_the_weather_had_lifted_has_not_struck_either() -> None:
    sure, late = Fault(weather=Kill(At(1))), Fault(weather=Kill(At(2)), life=2)
    scenario = Scenario(title="t", job="a:b", weather=(sure, late), expectations=(AboutOutput(count=3),))
    calm = Line(1, 120_000, "", CalmBegan())
    went_on = Line(2, 130_000, "job", JobFinished(job="t"))
    run = replace(ABC, weather=(sure,), lives=2, lines=[calm, went_on])

    assert [
        "[[weather]] 2: never struck before the weather lifted, at 2min; if that may be, say perhaps = true"
    ] == failures(scenario, None, run)
    assert "before" not in failures(scenario, None, replace(run, lines=[calm]))[0]


# ── output ───────────────────────────────────────────────────────────────────────────────────


def test_output_is_the_same_as_that_of_the_calm_run() -> None:
    about = AboutOutput(compare=SAME)
    shuffled = run_of({"counts": [("b", 2), ("a", 1), ("b", 1)]})
    doubled = run_of({"counts": [("a", 1), ("b", 1), ("b", 2), ("b", 2)]})
    less = run_of({"counts": [("a", 1), ("b", 1)]})

    assert needs_calm(Scenario(title="t", job="a:b", expectations=(about,)))
    assert [] == judge(about, shuffled, ABC)
    assert [
        "output of 'counts' is not same as the calm run: 1 rows are there too often or wrong (('b', 2) …)"
    ] == judge(about, doubled, ABC)
    assert ["output of 'counts' is not same as the calm run: 1 rows are missing (('b', 2) …)"] == judge(
        about, less, ABC
    )


def test_output_is_at_least_that_of_the_calm_run() -> None:
    about = AboutOutput(compare="at least the calm run", doubled_at_least=1)
    doubled = run_of({"counts": [("a", 1), ("b", 1), ("b", 2), ("b", 2)]})
    new = run_of({"counts": [("a", 1), ("b", 1), ("b", 2), ("b", 2), ("c", 1)]})
    less = run_of({"counts": [("a", 1), ("a", 1)]})

    assert [] == judge(about, doubled, ABC)
    assert ["output of every sink: 0 rows are there once more, and not 1 at least"] == judge(about, ABC, ABC)
    assert [
        "output of 'counts' is not at least the calm run: 1 rows are there too often or wrong (('c', 1) …)"
    ] == judge(about, new, ABC)
    assert ["output of 'counts' is not at least the calm run: 2 rows are missing (('b', 1) …)"] == judge(
        about, less, ABC
    )


def test_a_row_that_is_missing_is_shown_as_python_has_it() -> None:
    calm = run_of({"counts": [Word("a", 1), Word("b", 1)]})

    (sentence,) = judge(AboutOutput(compare=SAME), run_of({"counts": [Word("a", 1)]}), calm)

    assert "1 rows are missing (Word(word='b', times=1, note=None) …)" in sentence


def test_a_calm_run_that_wrote_nothing_is_nothing_to_compare_with() -> None:
    empty = run_of({"counts": []})

    assert ["output of every sink: the calm run wrote nothing, so there is nothing to compare with"] == judge(
        AboutOutput(compare=SAME), empty, empty
    )
    assert 1 == len(judge(AboutOutput(sink="counts", doubled_at_least=1), ABC, empty))


def test_a_sink_that_is_not_there_is_no_pass() -> None:
    assert ["there is no sink count, only counts"] == judge(AboutOutput(sink="count", count=0), ABC)
    assert ["there is no sink at all, only none"] == judge(AboutOutput(count=0), run_of())


class Word(NamedTuple):
    word: str
    times: int
    note: str | None = None


@dataclass(frozen=True)
class Order:
    number: int
    items: tuple[Any, ...]


class Size(Enum):
    SMALL = "small"


@pytest.mark.parametrize(
    ("row", "said"),
    [
        (("a", 1), ["a", 1]),
        (["a", (1, 2)], ["a", [1, 2]]),
        ({"a": (1,)}, {"a": [1]}),
        (Word("a", 1), {"word": "a", "times": 1}),
        (Order(1, (Word("b", 2, "x"),)), {"number": 1, "items": [{"word": "b", "times": 2, "note": "x"}]}),
        (Size.SMALL, "small"),
        (1, 1),
        (1.0, 1.0),
        ("a", "a"),
        (True, True),
    ],
)
def test_rows_are_compared_as_toml_would_say_them(row: Any, said: Any) -> None:
    there = run_of({"counts": [row]})

    assert [] == judge(AboutOutput(sink="counts", rows=(said,)), there)
    assert [] == judge(AboutOutput(sink="counts", contains=(said,)), there)


@pytest.mark.parametrize(
    ("row", "said"), [(1, 1.0), (1, True), ("1", 1), (("a",), "a"), (Word("a", 1, "x"), {"word": "a", "times": 1})]
)
def test_rows_that_are_only_alike_are_not_the_same(row: Any, said: Any) -> None:
    assert 1 == len(judge(AboutOutput(sink="counts", rows=(said,)), run_of({"counts": [row]})))


def test_rows_are_just_these() -> None:
    assert [] == judge(AboutOutput(sink="counts", rows=(["b", 2], ["b", 1], ["a", 1])), ABC)
    assert [] == judge(AboutOutput(sink="counts", rows=()), run_of({"counts": []}))
    assert [
        "output of 'counts' is not as said: 1 rows are missing (['c', 1] …) 1 rows are there too (('b', 2) …)"
    ] == judge(AboutOutput(sink="counts", rows=(["b", 1], ["a", 1], ["c", 1])), ABC)
    assert ["output of 'counts' is not as said: 1 rows are missing (['a', 1] …)"] == judge(
        AboutOutput(sink="counts", rows=(["b", 1], ["a", 1], ["a", 1], ["b", 2])), ABC
    )


def test_rows_are_among_them() -> None:
    assert [] == judge(AboutOutput(sink="counts", contains=(["b", 2],)), ABC)
    assert ["output of 'counts' lacks rows: 1 rows are missing (['b', 2] …)"] == judge(
        AboutOutput(sink="counts", contains=(["b", 2], ["b", 2])), ABC
    )


def test_rows_are_counted() -> None:
    both = run_of({"counts": [1, 2], "others": [3]})

    assert [] == judge(AboutOutput(sink="counts", count=2), both)
    assert [] == judge(AboutOutput(count=3), both)
    assert ["output of 'counts' has 2 rows and not 3"] == judge(AboutOutput(sink="counts", count=3), both)


def test_an_invariant_is_asked_about_the_rows() -> None:
    two = run_of({"counts": [1, 2]})

    assert [] == judge(AboutOutput(sink="counts", invariant=f"{HERE}:has_two_rows"), two)
    assert [] == judge(AboutOutput(invariant=f"{HERE}:has_one_sink"), two)
    (sentence,) = judge(AboutOutput(invariant=f"{HERE}:stumbles"), two)
    assert re.fullmatch(
        rf"invariant {HERE}:stumbles raised KeyError: 'x' \(test_expectations\.py, line \d+: .*\)", sentence
    )
    (sentence,) = judge(AboutOutput(sink="counts", invariant=f"{HERE}:has_two_rows"), ABC)
    assert f"invariant {HERE}:has_two_rows does not hold: 3 rows" in sentence
    assert [f"invariant {HERE}:answers returned False; one that holds returns nothing, another raises"] == judge(
        AboutOutput(sink="counts", invariant=f"{HERE}:answers"), ABC
    )


def test_an_invariant_that_is_asked_about_no_rows_fails_whatever_it_says() -> None:
    nothing = run_of({"counts": []})

    assert [f"output of 'counts' has no rows, so invariant {HERE}:accepts is asked about nothing"] == judge(
        AboutOutput(sink="counts", invariant=f"{HERE}:accepts"), nothing
    )
    assert [] == judge(AboutOutput(sink="counts", invariant=f"{HERE}:accepts"), ABC)
    assert [] == judge(AboutOutput(sink="counts", count=0), nothing)


def test_an_invariant_without_words_is_told_by_its_line() -> None:
    (sentence,) = judge(AboutOutput(sink="counts", invariant=f"{HERE}:is_wordless"), ABC)

    assert sentence.endswith("assert [] == list(rows)")


# ── state ────────────────────────────────────────────────────────────────────────────────────

TOTALS = run_of(state={"count.total": {"a": 1, "b": 2, ("c", 1): [3]}})


def test_state_is_the_same_as_that_of_the_calm_run() -> None:
    other = run_of(state={"count.total": {"a": 1, "b": 3, ("c", 1): [3]}})

    assert [] == judge(AboutState(compare=SAME), TOTALS, TOTALS)
    assert [] == judge(AboutState(state="count.total", compare=SAME), TOTALS, TOTALS)
    assert [
        "the final state count.total is not same as the calm run: 1 keys differ (count.total of 'b' is 3 and not 2 …)"
    ] == judge(AboutState(compare=SAME), other, TOTALS)
    (sentence,) = judge(AboutState(compare=SAME), run_of(), TOTALS)
    assert "3 keys differ (count.total of 'a' is absent and not 1 …)" in sentence


def test_a_calm_run_without_state_is_nothing_to_compare_with() -> None:
    assert ["the calm run ended without any state, so there is nothing to compare with"] == judge(
        AboutState(compare=SAME), TOTALS, run_of()
    )
    assert ["the calm run ended without count.totals, so there is nothing to compare with"] == judge(
        AboutState(state="count.totals", compare=SAME), TOTALS, TOTALS
    )


def test_keys_of_a_state_have_values() -> None:
    assert [] == judge(AboutState(state="count.total", keys=(("a", 1), (["c", 1], [3]))), TOTALS)
    assert [
        "the final state count.total of 'a' is 1 and not 2",
        "the final state count.total has no key 'x'",
    ] == judge(AboutState(state="count.total", keys=(("a", 2), ("x", 1))), TOTALS)
    assert ["there is no final state count.totals, only count.total"] == judge(
        AboutState(state="count.totals", keys=(("a", 1),)), TOTALS
    )


# ── checkpoints ──────────────────────────────────────────────────────────────────────────────


def record(checkpoint: int, **more: Any) -> CheckpointRecord:
    said: dict[str, Any] = {"kind": "periodic", "life": 1, "attempt": 1, "triggered_at_ms": 100, "completed_at_ms": 150}
    return CheckpointRecord(checkpoint=checkpoint, **(said | more))


RECORDS = run_of(
    checkpoints=[
        record(1, bytes=10, acknowledged={"a/0": Acknowledgement(at_ms=1, bytes=1)}),
        record(2, completed_at_ms=None, aborted_at_ms=130, why="EXPIRED", declined={"a/1": "DECLINED"}),
        record(3, completed_at_ms=None),
        record(3, kind="final", completed_at_ms=400, bytes=20),
        record(4, completed_at_ms=None),
    ]
)


@pytest.mark.parametrize(
    "about",
    [
        AboutCheckpoint(checkpoint=1, kind="periodic", completes_within_ms=50, takes_at_least_ms=50),
        AboutCheckpoint(checkpoint=1, bytes_at_least=10, bytes_at_most=10, actors=("a/0",)),
        AboutCheckpoint(checkpoint=2, aborted="EXPIRED", declined_by="a/1"),
        AboutCheckpoint(checkpoint=2, declined_by="a"),
        AboutCheckpoint(checkpoint=3, kind="final"),
        AboutCheckpoint(bytes_at_least=10, completes_within_ms=300),
    ],
)
def test_checkpoints_are_as_said(about: AboutCheckpoint) -> None:
    assert [] == judge(about, RECORDS)


@pytest.mark.parametrize(
    ("about", "sentence"),
    [
        (AboutCheckpoint(checkpoint=1, kind="final"), "checkpoint 1 is periodic and not final"),
        (AboutCheckpoint(checkpoint=1, completes_within_ms=49), "checkpoint 1 took 50 ms, and not 49ms at most"),
        (AboutCheckpoint(checkpoint=1, takes_at_least_ms=51), "checkpoint 1 took 50 ms, and not 51ms at least"),
        (AboutCheckpoint(checkpoint=1, bytes_at_least=11), "checkpoint 1 has 10 bytes, and not 11 at least"),
        (AboutCheckpoint(checkpoint=1, bytes_at_most=9), "checkpoint 1 has 10 bytes, and not 9 at most"),
        (AboutCheckpoint(checkpoint=1, actors=("a/0", "a/1")), "checkpoint 1 holds a/0 and not a/0, a/1"),
        (AboutCheckpoint(checkpoint=1, aborted="EXPIRED"), "was not aborted because of EXPIRED, but it completed"),
        (AboutCheckpoint(checkpoint=2, aborted="DECLINED"), "was not aborted because of DECLINED, but EXPIRED"),
        (AboutCheckpoint(checkpoint=2, declined_by="a/0"), "was not declined by a/0, but by a/1"),
        (AboutCheckpoint(checkpoint=1, declined_by="a/0"), "was not declined by a/0, but by nobody"),
        (AboutCheckpoint(checkpoint=2), "checkpoint 2 did not complete: it was aborted because of EXPIRED"),
        (AboutCheckpoint(checkpoint=4), "checkpoint 4 did not complete: its process ended before it did"),
        (AboutCheckpoint(checkpoint=9), "checkpoint 9 was never triggered, only 1, 2, 3, 4"),
        (AboutCheckpoint(checkpoint=9, aborted="EXPIRED"), "checkpoint 9 was never triggered, only 1, 2, 3, 4"),
        (AboutCheckpoint(kind="periodic"), "checkpoint 3 is final and not periodic"),
    ],
)
def test_checkpoints_are_not_as_said(about: AboutCheckpoint, sentence: str) -> None:
    (told,) = judge(about, RECORDS)

    assert sentence in told


def test_every_checkpoint_of_none_is_no_pass() -> None:
    assert ["no checkpoint was completed"] == judge(AboutCheckpoint(), run_of())
    assert ["no checkpoint was completed"] == judge(
        AboutCheckpoint(), run_of(checkpoints=[record(1, completed_at_ms=None)])
    )


def test_of_many_checkpoints_that_are_wrong_the_first_are_told() -> None:
    many = run_of(checkpoints=[record(number) for number in range(1, 10)])

    told = judge(AboutCheckpoint(kind="final"), many)

    assert 4 == len(told)
    assert "… and 6 more of them" == told[-1]


# ── journal ──────────────────────────────────────────────────────────────────────────────────


def committed(checkpoint: int, actor: str = "a/0") -> Entry:
    return journal.SinkCommitted(checkpoint=checkpoint, actor=actor, operator="a", committables=1)


STORY = run_of(
    entries=[
        journal.JobStarted(job="t", attempt=1, generation=1, restored_checkpoint=None),
        journal.ManifestWritten(checkpoint=1),
        committed(1),
        journal.ManifestWritten(checkpoint=2),
        committed(2),
        committed(2, "a/1"),
        journal.JobFinished(job="t"),
    ]
)
SAME_ONE = ("checkpoint",)


@pytest.mark.parametrize(
    "about",
    [
        AboutJournal(entry="SinkCommitted"),
        AboutJournal(entry="SinkCommitted", at_least=3, at_most=3),
        AboutJournal(entry="SinkCommitted", where={"checkpoint": 2, "actor": "a/1"}, at_most=1, at_least=1),
        AboutJournal(entry="SinkCommitted", where={"checkpoint": 3}, at_most=0),
        AboutJournal(entry="JobStarted", where={"restored_checkpoint": None}),
        AboutJournal(entry="SinkCommitted", after=Mention(entry="ManifestWritten", same=SAME_ONE)),
        AboutJournal(entry="SinkCommitted", before=Mention(entry="JobFinished")),
        AboutJournal(entry="ManifestWritten", before=Mention(entry="SinkCommitted", same=SAME_ONE)),
        AboutJournal(entry="ManifestWritten", where={"checkpoint": 1}, before=Mention(entry="SinkCommitted")),
    ],
)
def test_the_journal_is_as_said(about: AboutJournal) -> None:
    assert [] == judge(about, STORY)


@pytest.mark.parametrize(
    ("about", "sentence"),
    [
        (AboutJournal(entry="JobFailed"), "JobFailed is in the journal 0 times, and not at least once"),
        (
            AboutJournal(entry="SinkCommitted", where={"checkpoint": 3}),
            "(checkpoint = 3) is in the journal 0 times (3 times with other fields), and not at least once",
        ),
        (AboutJournal(entry="SinkCommitted", at_least=4), "is in the journal 3 times, and not at least 4 times"),
        (AboutJournal(entry="SinkCommitted", at_most=2), "is in the journal 3 times, and not at most 2 times"),
        (AboutJournal(entry="SinkCommitted", at_most=0), "is in the journal 3 times, and not at most 0 times"),
        (
            AboutJournal(entry="SinkCommitted", after=Mention(entry="ManifestWritten", where={"checkpoint": 2})),
            "SinkCommitted in line 3, at 30 ms, does not come after ManifestWritten (checkpoint = 2)",
        ),
        (
            AboutJournal(entry="ManifestWritten", before=Mention(entry="SinkCommitted")),
            "ManifestWritten in line 4, at 40 ms, does not come before SinkCommitted",
        ),
        (
            AboutJournal(entry="JobFinished", before=Mention(entry="JobFailed")),
            "JobFinished in line 7, at 70 ms, does not come before JobFailed",
        ),
        (
            AboutJournal(entry="JobFailed", at_most=3, after=Mention(entry="JobStarted")),
            "JobFailed is in the journal 0 times, and not at least once",
        ),
    ],
)
def test_the_journal_is_not_as_said(about: AboutJournal, sentence: str) -> None:
    (told,) = judge(about, STORY)

    assert sentence in told


# ── storage, and the end ─────────────────────────────────────────────────────────────────────

STORED = run_of(
    storage={3: {"chk-2/_metadata": 1, "chk-3/_metadata": 1, "owner/1": 1}, None: {"finished": 1}},
    retained={3: (2, 3), None: ()},
    disk={"/out/part-0-1": 3, "/out/.pending/x": 1},
    status="FAILED",
    error="more failures than are tolerable",
    attempts=4,
)


@pytest.mark.parametrize(
    "about",
    [
        AboutStorage(pattern="chk-*/_metadata", after_checkpoint=3, names=("chk-3/_metadata", "chk-2/_metadata")),
        AboutStorage(pattern="chk-*", names=()),
        AboutStorage(pattern="chk-*", at_most=0),
        AboutStorage(pattern="chk-*", after_checkpoint=3, at_least=2, at_most=2),
        AboutStorage(pattern="finished"),
        AboutStorage(pattern="*/part-*", on_disk=True, names=("/out/part-0-1",)),
        AboutRegistry(retained=(3, 2), after_checkpoint=3),
        AboutRegistry(retained=()),
        AboutStatus(status="FAILED", lives=1, attempts=4, message_contains="tolerable"),
    ],
)
def test_what_is_left_is_as_said(about: Expectation) -> None:
    assert [] == judge(about, STORED)


@pytest.mark.parametrize(
    ("about", "sentence"),
    [
        (
            AboutStorage(pattern="chk-*", after_checkpoint=3, names=("chk-3/_metadata",)),
            "chk-* in storage after checkpoint 3 is chk-2/_metadata, chk-3/_metadata, and not chk-3/_metadata",
        ),
        (AboutStorage(pattern="x*", names=("x",)), "x* in storage in the end is nothing, and not x"),
        (AboutStorage(pattern="chk-*"), "chk-* is there 0 times in storage in the end, and not at least once"),
        (
            AboutStorage(pattern="chk-*", after_checkpoint=3, at_most=1),
            "is there 2 times in storage after checkpoint 3, and not at most once (chk-2/_metadata, chk-3/_metadata)",
        ),
        (AboutStorage(pattern="*", after_checkpoint=3, at_least=4), "is there 3 times in storage after checkpoint 3"),
        (
            AboutStorage(pattern="*", after_checkpoint=9, at_most=9),
            "nobody looked at the storage after checkpoint 9: it never completed",
        ),
        (
            AboutStorage(pattern="part", on_disk=True),
            "part is there 0 times on the disk in the end, and not at least once",
        ),
        (AboutRegistry(retained=(3,), after_checkpoint=3), "retained after checkpoint 3 is 2, 3 and not 3"),
        (AboutRegistry(retained=(3,)), "retained in the end is nothing and not 3"),
        (
            AboutRegistry(retained=(), after_checkpoint=9),
            "nobody looked at what is retained after checkpoint 9: it never completed",
        ),
        (
            AboutStatus(status="FINISHED"),
            "the job is FAILED and not FINISHED: more failures than are tolerable",
        ),
        (AboutStatus(lives=2), "its process lived once and not 2 times"),
        (AboutStatus(attempts=3), "4 attempts began and not 3"),
        (
            AboutStatus(message_contains="disk"),
            "the job's error does not say 'disk', but more failures than are tolerable",
        ),
    ],
)
def test_what_is_left_is_not_as_said(about: Expectation, sentence: str) -> None:
    (told,) = judge(about, STORED)

    assert sentence in told


def test_an_error_that_is_not_there_says_nothing() -> None:
    finished = replace(STORED, status="FINISHED", error="")

    assert ["the job's error does not say 'x', but nothing"] == judge(AboutStatus(message_contains="x"), finished)


def test_only_what_compares_needs_a_calm_run() -> None:
    def needs(*about: Expectation) -> bool:
        return needs_calm(Scenario(title="t", job="a:b", expectations=about))

    assert needs(AboutStatus(lives=1), AboutState(compare=SAME))
    assert needs(AboutOutput(doubled_at_least=1))
    assert not needs(AboutOutput(count=1), AboutState(state="a.b", keys=(("a", 1),)), AboutCheckpoint(), AboutStatus())
    with pytest.raises(AssertionError, match="calm"):
        judge(AboutOutput(compare=SAME), ABC)
