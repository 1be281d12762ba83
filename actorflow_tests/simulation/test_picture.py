"""Pictures of runs: every actor has its lane, every kind of thing its sign, and nothing a user wrote can break out."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from xml.etree import ElementTree as ET

import pytest

from actorflow.examples.word_count import word_count
from actorflow.model import journal
from actorflow.model.journal import Entry, Line
from actorflow.simulation.levels import Actor, Channel, Levels, Request, watching
from actorflow.simulation.oracle import storm_run
from actorflow.simulation.picture import Caption, Note, Verdict, page, svg
from actorflow.simulation.picture.canvas import cut, number, text_width, wrapped
from actorflow.simulation.picture.choice import MOST_TELLING, chosen, rooms_of
from actorflow.simulation.picture.reading import facts_of
from actorflow.simulation.picture.scale import MOST_WIDTH, scale_of
from actorflow.simulation.subject import Subject

SVG = "{http://www.w3.org/2000/svg}"
LEFT, RIGHT, LAST = "left/0", "right/0", "sum/0"
CHANNELS = (f"{LEFT}>{LAST}", f"{RIGHT}>{LAST}")
CAPTION = Caption(title="A story", story="What happens here.", source="seed 7")


@dataclass(frozen=True, slots=True, kw_only=True)
class BarrierOvertook(Entry):
    """What a later version tells of a barrier that passes what waits."""

    checkpoint: int
    actor: str
    channel: str
    batches: int
    bytes: int = 0


def lines_of(*told: tuple[int, Entry] | tuple[int, Entry, str]) -> list[Line]:
    return [Line(n, one[0], one[2] if len(one) > 2 else "job", one[1]) for n, one in enumerate(told, 1)]


def starts(at: int, restored: int | None = None, generation: int = 1) -> list[tuple[int, Entry]]:
    actors: list[tuple[int, Entry]] = []
    for actor in (LEFT, RIGHT, LAST):
        if restored is not None:
            actors.append((at + 1, journal.ActorRestored(actor=actor, checkpoint=restored)))
        actors.append((at + 2, journal.ActorStarted(actor=actor)))
    return [
        (at, journal.GenerationClaimed(job="j", generation=generation)),
        (at, journal.JobStarted(job="j", attempt=1, generation=generation, restored_checkpoint=restored)),
        *actors,
        (at + 2, journal.JobRunning(job="j", attempt=1)),
    ]


def checkpoint(n: int, at: int) -> list[tuple[int, Entry]]:
    return [
        (at, journal.CheckpointTriggered(checkpoint=n, kind="periodic")),
        (at, journal.SnapshotTaken(checkpoint=n, actor=LEFT)),
        (at + 1, journal.BarrierArrived(checkpoint=n, actor=LAST, channel=CHANNELS[0])),
        (at + 1, journal.AlignmentStarted(checkpoint=n, actor=LAST)),
        (at + 5, journal.SnapshotTaken(checkpoint=n, actor=RIGHT)),
        (at + 8, journal.BarrierArrived(checkpoint=n, actor=LAST, channel=CHANNELS[1])),
        (at + 8, journal.SinkPrepared(checkpoint=n, actor=LAST, operator="rows", committables=2)),
        (at + 8, journal.SnapshotTaken(checkpoint=n, actor=LAST)),
        *((at + 9, journal.SnapshotSettled(checkpoint=n, actor=actor)) for actor in (LEFT, RIGHT, LAST)),
        *((at + 12, journal.CheckpointAcknowledged(checkpoint=n, actor=actor, bytes=9)) for actor in (LEFT, RIGHT)),
        (at + 12, journal.CheckpointAcknowledged(checkpoint=n, actor=LAST, bytes=9)),
        (at + 14, journal.ManifestWritten(checkpoint=n)),
        (at + 14, journal.CheckpointCompleted(checkpoint=n, kind="periodic")),
        (at + 16, journal.SinkCommitted(checkpoint=n, actor=LAST, operator="rows", committables=2)),
    ]


STORY = lines_of(
    *starts(10),
    *checkpoint(1, 20),
    (60, journal.CheckpointTriggered(checkpoint=2, kind="periodic")),
    (61, journal.SnapshotTaken(checkpoint=2, actor=LEFT)),
    (62, journal.BarrierArrived(checkpoint=2, actor=LAST, channel=CHANNELS[0])),
    (62, journal.AlignmentStarted(checkpoint=2, actor=LAST)),
    (70, journal.WeatherStruck(verb="fail", target="chk-2/left-0"), ""),
    (71, journal.StorageFailed(operation="put", cause="StorageFailed")),
    (72, journal.CheckpointAborted(checkpoint=2, reason="EXPIRED")),
    (80, journal.WeatherStruck(verb="kill", target="job", step="instant"), ""),
    *starts(2_300, 1, 2),
    *checkpoint(3, 2_320),
    (2_360, journal.ActorFinished(actor=LEFT)),
    (2_400, journal.JobFinished(job="j")),
    (2_410, journal.CalmBegan(), ""),
)


def levels_for(lines: Sequence[Line]) -> Levels:
    """What somebody would have seen beside this journal."""
    levels = Levels.__new__(Levels)
    levels.times_us = [line.at_ms * 1_000 + 5 for line in lines]
    levels.actors = {("job", actor): Actor((actor.partition("/")[0],)) for actor in (LEFT, RIGHT, LAST)}
    levels.channels = {("job", channel): Channel() for channel in CHANNELS}
    levels.requests = [
        Request("job", "put", "chk-1/sum-0", 29_000, 31_000),
        Request("job", "put_if_absent", "chk-1/_metadata", 32_000, None, failed=True),
    ]
    levels.blocks = True
    levels.machines, levels.spells = {"job": "m1"}, {("slow", "sum", 40_000): 22_000}
    for at_us, waiting in [(15_000, 3), (22_000, 90), (27_000, 250), (30_000, 0)]:
        levels.channels["job", CHANNELS[0]].records.set(at_us, waiting)
    levels.actors["job", LAST].batches = [15_000, 19_000, 26_000]
    levels.actors["job", LAST].calls.set(16_000, 4)
    levels.actors["job", LAST].calls.set(36_000, 0)
    return levels


def texts(drawn: str) -> list[str]:
    return [list(one.itertext())[-1] for one in ET.fromstring(drawn).iter(f"{SVG}text")]


def tips(drawn: str) -> str:
    return "\n".join(one.text or "" for one in ET.fromstring(drawn).iter(f"{SVG}title"))


# ── what is on it ────────────────────────────────────────────────────────────────────────────


def test_every_actor_has_its_lane_upstream_first_and_every_channel_its_strip() -> None:
    drawn = svg(CAPTION, STORY, levels_for(STORY))
    found = texts(drawn)

    assert [found.count(actor) for actor in (LEFT, RIGHT, LAST)] == [1, 1, 1]
    heights = {list(one.itertext())[-1]: float(one.get("y", 0)) for one in ET.fromstring(drawn).iter(f"{SVG}text")}
    assert heights[LEFT] < heights[RIGHT] < heights[LAST] < heights[f"from {LEFT}"] < heights[f"from {RIGHT}"]


def test_each_kind_of_thing_is_drawn_and_explained() -> None:
    drawn = svg(
        Caption(title="t", notes=[Note(at_ms=2_330, text="rescale")], verdicts=[Verdict("it ends well", holds=True)]),
        STORY,
        levels_for(STORY),
    )
    told, found = tips(drawn), texts(drawn)

    for tip in (
        "checkpoint 1 begins at left/0",
        "barrier 1: left/0>sum/0, 1 ms under way",
        "sum/0 waits for the other barriers of checkpoint 1 for 7 ms",
        "left/0>sum/0 is blocked by the barrier of checkpoint 1 for 7 ms",
        "sum/0 takes its snapshot for checkpoint 1 at 28 ms",
        "its state is free of it after 1 ms",
        "durable after 4 ms, 9 bytes",
        "checkpoint 1, triggered at 20 ms\ncompleted after 14 ms",
        "aborted after 12 ms: EXPIRED",
        "sum/0, rows: 2 prepared at 28 ms, of checkpoint 1",
        "sum/0, rows: 2 committed at 36 ms, of checkpoint 1",
        "kill job at 80 ms, instant",
        "fail chk-2/left-0 at 70 ms",
        "StorageFailed put at 71 ms",
        "its state is restored and its operators are opened",
        "life 1, attempt 1, without state, from 10 ms to 80 ms; kill",
        "life 2, attempt 1, from checkpoint 1",
        "put chk-1/sum-0 at 29 ms, 2 ms",
        "records that wait, from left/0; at most 250",
        "async calls under way, at most 4",
        "sum is slow",
        "it finished its input",
        "rescale at 2,330 ms",
        "the weather has lifted",
    ):
        assert tip in told, tip
    for meaning in (
        "snapshot: its instant, the rest of it, and durable",
        "barrier on its way",
        "channel blocked by a barrier",
        "manifest written",
        "output prepared",
        "output visible",
        "batch taken",
        "a process dies",
        "asked from outside",
        "time is shortened, or left out",
    ):
        assert meaning in found, meaning
    assert "it ends well" in found
    assert "barrier that overtakes what waits" not in found


def test_a_barrier_that_overtakes_leaps_and_says_over_how_much() -> None:
    over = BarrierOvertook(checkpoint=1, actor=LAST, channel=CHANNELS[0], batches=17)
    before = [*STORY[:14], Line(0, 21, "job", over), *STORY[14:]]
    at = next(index for index, line in enumerate(STORY) if line.name == "BarrierArrived")
    for lines in (before, [*STORY[:at], Line(0, 21, "job", over), *STORY[at:]]):
        drawn = svg(CAPTION, lines)
        assert "barrier 1: left/0>sum/0, 1 ms under way; it overtook 17 batches" in tips(drawn)
        assert "over 17 batches" in texts(drawn)
        assert "barrier that overtakes what waits" in texts(drawn)


def test_the_story_is_told_with_its_verdicts() -> None:
    caption = Caption(title="T", story="One.\n\nTwo.", verdicts=[Verdict("a", holds=True), Verdict("b", holds=False)])
    found = texts(svg(caption, STORY))

    assert {"T", "One.", "Two.", "failed", "What must be true", "a", "b"} <= set(found)
    assert "passed" in texts(svg(Caption(title="T", verdicts=[Verdict("a", holds=True)]), STORY))
    unknown = texts(svg(Caption(title="T", verdicts=[Verdict("a", holds=None)]), STORY))
    assert not {"passed", "failed"} & set(unknown)


def test_two_processes_have_lanes_of_their_own() -> None:
    other = [Line(line.sequence, line.at_ms + 1, "other" if line.process else "", line.entry) for line in STORY]
    found = texts(svg(CAPTION, sorted([*STORY, *other], key=lambda line: line.at_ms)))

    assert found.count(LAST) == 2
    assert {"process job", "process other"} <= set(found)


def test_whoever_stalls_and_is_fenced_does_not_end_whoever_took_its_place() -> None:
    lines = lines_of(
        *starts(10), *starts(50, None, 2), (70, journal.JobFenced(job="j", generation=1, by_generation=2)),
        *checkpoint(1, 80), (120, journal.JobFinished(job="j")),
    )  # fmt: skip
    bands = facts_of(lines).bands

    assert [(band.generation, band.how) for band in bands] == [(1, "fenced"), (2, "finished")]
    assert all(lived.until is not None for lane in facts_of(lines).lanes.values() for lived in lane.lives)


# ── what may not happen ──────────────────────────────────────────────────────────────────────


NASTY = "</title></svg><script>alert('x')</script>&\"]]>\x00\x1b\ud800"


def test_whatever_users_write_is_text() -> None:
    caption = Caption(
        title=NASTY, story=NASTY, source=NASTY, notes=[Note(30, NASTY)], verdicts=[Verdict(NASTY, holds=False)]
    )
    lines = [
        *STORY,
        *lines_of(
            (2_420, journal.ActorStarted(actor=f"{NASTY}/0")),
            (2_421, journal.WeatherStruck(verb=NASTY, target=NASTY, step=NASTY)),
            (2_422, journal.BarrierArrived(checkpoint=9, actor=f"{NASTY}/0", channel=f"{NASTY}>{NASTY}/0")),
            (2_423, journal.SinkCommitted(checkpoint=9, actor=NASTY, operator=NASTY, committables=1)),
            (2_424, journal.JobFailed(job="j", cause=NASTY, detail=NASTY)),
        ),
    ]
    drawn = svg(caption, lines)
    for document in (drawn, page(NASTY, drawn, lines)):
        assert "<script>alert" not in document
        assert "\x00" not in document
        document.encode("utf-8")
    root = ET.fromstring(drawn)
    assert {one.tag.removeprefix(SVG) for one in root.iter()} <= {
        "svg", "style", "defs", "pattern", "g", "title", "rect", "line", "path", "circle", "text",
    }  # fmt: skip
    assert not re.search(r"\son\w+=|href|javascript:", drawn)


def test_nothing_refers_to_the_outside() -> None:
    drawn = svg(CAPTION, STORY, levels_for(STORY))
    for document in (drawn, page("T", drawn, STORY)):
        without = document.replace("http://www.w3.org/2000/svg", "")
        assert not re.search(r"https?:|//[a-z]|@import|src=|url\((?!#)", without)


def test_the_same_run_gives_the_same_bytes_and_watching_draws_levels() -> None:
    subject = Subject(word_count)
    with watching() as watched:
        lines = storm_run(subject, 4).lines
        storm_run(subject, 4)
    one, other = (svg(CAPTION, levels.lines, levels) for levels in watched)

    assert one == other
    assert "records that wait in a channel" in texts(one)
    assert "records that wait in a channel" not in texts(svg(CAPTION, lines))


@pytest.mark.parametrize("lines", [[], STORY[:1], STORY[:12], lines_of((5, journal.CalmBegan(), ""))])
def test_a_journal_that_ends_anywhere_can_be_drawn(lines: list[Line]) -> None:
    ET.fromstring(svg(CAPTION, lines))


# ── what is chosen ───────────────────────────────────────────────────────────────────────────


def shown(drawn: str) -> set[int]:
    return {int(found) for found in re.findall(r"^checkpoint (\d+), triggered", tips(drawn), re.MULTILINE)}


def long_story(checkpoints: int) -> list[Line]:
    told = starts(10)
    for n in range(1, checkpoints + 1):
        told += checkpoint(n, 50 * n)
        if n == checkpoints // 2:
            told += [(50 * n + 20, journal.WeatherStruck(verb="fail", target="x"))]
    return lines_of(*told, (50 * checkpoints + 100, journal.JobFinished(job="j")))


def test_a_long_run_is_no_smear_and_says_what_it_leaves_out() -> None:
    lines = long_story(300)
    drawn = svg(CAPTION, lines)

    assert len(drawn) < 200_000
    assert f'width="{number(186 + MOST_WIDTH + 24)}"' in drawn
    assert re.search(r"\d+ checkpoints are left out here", tips(drawn))
    assert {1, 2, 300} <= shown(drawn)
    assert "fail x" in texts(drawn)


def test_a_checkpoint_is_shown_whole_or_not_at_all() -> None:
    lines = long_story(60)
    facts = facts_of(lines)
    rooms = rooms_of(facts)
    moments = chosen(facts, rooms)

    assert sum(rooms[moment] for moment in moments) <= MOST_TELLING
    of: dict[int, int] = {}
    for moment in moments:
        number_of = getattr(lines[moment].entry, "checkpoint", None)
        if number_of is not None:
            of[number_of] = of.get(number_of, 0) + 1
    assert set(of.values()) == {len(checkpoint(1, 0))}


def test_a_part_of_a_run_can_be_asked_for() -> None:
    lines = long_story(60)
    drawn = svg(CAPTION, lines, since_us=1_000_000, until_us=1_100_000)

    assert shown(drawn) == {20, 21, 22}


def test_places_rise_with_time_and_with_the_order_of_entries() -> None:
    facts = facts_of(long_story(60))
    scale = scale_of(facts)
    moments = chosen(facts, rooms_of(facts))
    places = [scale.of_moment(moment) for moment in moments]

    assert places == sorted(places)
    assert len(set(places)) == len(places)
    times = [scale.of_time(us) for us in range(0, 4_000_000, 777)]
    assert times == sorted(times)
    assert 0 <= times[0]
    assert times[-1] <= scale.width <= MOST_WIDTH + 1
    left_out = [moment for moment in range(len(facts.lines)) if not scale.shows(moment)]
    assert left_out
    assert all(0 <= scale.of_moment(moment) <= scale.width for moment in left_out)


def test_levels_are_drawn_more_coarsely_when_there_is_too_much_of_them() -> None:
    levels = levels_for(STORY)
    for number_of in range(60):
        channel = levels.channels["job", f"up/{number_of}>{LAST}"] = Channel()
        for at in range(12_000, 40_000, 11):
            channel.records.set(at, at % 13)
    lanes = [f"{LAST[:-1]}{subtask}" for subtask in range(60)]
    levels.channels = {
        ("job", f"up/{index}>{lane}"): channel
        for index, (lane, channel) in enumerate(zip(lanes, levels.channels.values(), strict=False))
    }
    assert len(svg(CAPTION, STORY, levels)) < 1_000_000


# ── letters ──────────────────────────────────────────────────────────────────────────────────


def test_texts_are_cut_and_wrapped_to_their_room() -> None:
    assert cut("short", 10, 100) == "short"
    assert cut("much too long for this", 10, 60).endswith("…")
    assert text_width(cut("w" * 100, 10, 60), 10) <= 60
    lines = wrapped("one two three four five six seven\n\neight", 10, 70, 3)
    assert len(lines) == 3
    assert all(text_width(line, 10) <= 70 for line in lines)
    assert wrapped("", 10, 70, 3) == []
    assert (number(1.0), number(-0.01), number(2.449)) == ("1", "0", "2.4")
