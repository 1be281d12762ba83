"""The journal as a person reads it: columns that stay where they are."""

from __future__ import annotations

from dataclasses import dataclass

from actorflow.model import journal
from actorflow.model.journal import Entry, Line
from actorflow.simulation.timeline import HEADING, details_of, timeline, timeline_line, who_of

ARRIVED = journal.BarrierArrived(checkpoint=7, actor="count/1", channel="lines/0>count/1")
KILLED = journal.WeatherStruck(verb="kill", target="job", step="manifest before")


def told(entry: Entry, at_ms: int = 21, process: str = "job", width: int = 160) -> str:
    return timeline_line(Line(1, at_ms, process, entry), width)


def test_each_entry_is_one_line_below_a_heading_and_every_column_begins_where_its_name_does() -> None:
    lines = list(timeline([Line(1, 21, "job", ARRIVED), Line(2, 1_234_567, "", KILLED)]))

    assert len(lines) == 3
    assert lines[0] == HEADING
    for name, first, second in [
        ("process", "job", "-"),
        ("who", "count/1", "job"),
        ("what", "BarrierArrived", "WeatherStruck"),
        ("details", "checkpoint=7 channel=lines/0>count/1", "verb=kill step=manifest before"),
    ]:
        at = HEADING.index(name)
        assert lines[1][at:].startswith(first)
        assert lines[2][at:].startswith(second)
    assert lines[1].startswith("       21  ")
    assert lines[2].startswith("1,234,567  ")


def test_what_is_too_long_for_its_column_is_cut_and_moves_no_other() -> None:
    entry = journal.ActorFailed(operator="o" * 90, subtask=3, cause="ValueError", detail="x" * 500)
    line = told(entry, process="p" * 40, width=100)

    assert len(line) == 100
    assert line.endswith("…")
    assert line[HEADING.index("what") :].startswith("ActorFailed")
    assert line[HEADING.index("who") : HEADING.index("what")] == "o" * 18 + "… "


def test_a_narrow_terminal_gets_narrow_lines_and_never_none() -> None:
    assert len(told(ARRIVED, width=100)) <= 100
    assert "checkpoint=7" in told(ARRIVED, width=1)


def test_whom_an_entry_is_about_is_an_actor_an_operator_with_its_subtask_a_target_or_a_job() -> None:
    assert who_of(ARRIVED) == "count/1"
    assert who_of(journal.ActorFailed(operator="count", subtask=2, cause="KeyError")) == "count/2"
    assert who_of(journal.SinkCommitted(checkpoint=1, actor="rows/0", operator="rows", committables=3)) == "rows/0"
    assert who_of(KILLED) == "job"
    assert who_of(journal.JobRunning(job="words", attempt=1)) == "words"
    assert who_of(journal.CalmBegan()) == ""


def test_nothing_is_told_twice_and_empty_texts_only_where_they_mean_something() -> None:
    assert details_of(journal.ActorFailed(operator="count", subtask=2, cause="KeyError")) == "cause=KeyError"
    committed = journal.SinkCommitted(checkpoint=1, actor="rows/0", operator="rows", committables=3)
    assert details_of(committed) == "checkpoint=1 operator=rows committables=3"
    started = journal.JobStarted(job="words", attempt=1, generation=1, restored_checkpoint=None)
    assert details_of(started) == "attempt=1 generation=1 restored_checkpoint=- restored_from=-"


def test_a_message_of_several_lines_stays_on_one() -> None:
    entry = journal.JobFailed(job="words", cause="ValueError", detail="one\ntwo\x1b[31m\tthree")
    line = told(entry)

    assert line.isprintable()
    assert "one·two·[31m·three" in line


@dataclass(frozen=True, slots=True, kw_only=True)
class Unheard(Entry):
    """An entry of a later version."""

    actor: str
    wonders: int


def test_entries_that_nobody_knows_here_are_told_too() -> None:
    line = told(Unheard(actor="count/0", wonders=7))
    assert line.split() == ["21", "job", "count/0", "Unheard", "wonders=7"]
