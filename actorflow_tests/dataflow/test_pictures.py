from __future__ import annotations

from typing import Any
from xml.etree import ElementTree as ET

from actorflow.dataflow.job import Job
from actorflow.dataflow.keyed import Context, HookContext, KeyedBroadcastOperator
from actorflow.dataflow.states import BroadcastState
from actorflow_tests.dataflow.support import Given, Kept

SVG = "{http://www.w3.org/2000/svg}"


class Judge(KeyedBroadcastOperator[str, str, int, str]):
    rules = BroadcastState(str, int)

    def on_record(self, value: str, context: Context[str]) -> None: ...

    def on_broadcast(self, value: int, context: HookContext) -> None: ...


def watch() -> Job:
    job = Job("watch")
    words = job.read(Given(["a"]), name="words").flat_map(str.split)
    rules = job.read(Given([1]), name="rules", parallelism=1)
    judged = words.key_by(str.lower).connect_broadcast(rules, Judge, name="judge", max_parallelism=64)
    judged.side_output("alarms").write(Kept(), name="alarms")
    judged.union(words).map(str).write(Kept(), name="out")
    return job


def test_text_tells_actors_and_exchanges_upstream_first() -> None:
    told = """\
job watch

  [words (read) → flat_map] ×2

  [rules (read)] ×1

  flat_map ──key_by──▶
  rules ──broadcast──▶
  [judge (connect_broadcast)] ×2, at most 64

  judge ──alarms: forward──▶
  [alarms (write)] ×2

  judge ──forward──▶
  flat_map ──forward──▶
  [map → out (write)] ×2"""

    assert told == str(watch().plan(parallelism=2))


def test_mermaid_draws_the_same() -> None:
    lines = watch().plan(parallelism=2).mermaid().splitlines()

    assert "flowchart LR" == lines[0]
    assert '    v0["words (read)<br/>flat_map<br/>×2"]' in lines
    assert '    v1 -.->|"broadcast"| v2' in lines
    assert 5 + 5 == len(lines) - 1


def test_the_picture_is_well_formed_shows_every_operator_and_reaches_for_nothing_outside() -> None:
    picture = watch().plan(parallelism=2).svg()

    root = ET.fromstring(picture)
    shown = [text.text for text in root.iter(f"{SVG}text")]
    for name in ("words (read)", "flat_map", "judge (connect_broadcast)", "alarms: forward", "key_by", "×2", "×1"):
        assert name in shown
    assert 5 + 1 == len(list(root.iter(f"{SVG}rect")))
    for word in ("script", "href", "url(", "style"):
        assert word not in picture


def test_no_line_passes_behind_an_actor() -> None:
    """Every column that a line passes has a place of its own for it."""
    job = Job("long")
    words = job.read(Given(["a"]), name="words")
    far = words
    for number in range(4):
        far = far.rebalance().map(str, name=f"step-{number}")
    words.union(far).write(Kept(), name="out")

    root = ET.fromstring(job.plan().svg())
    boxes = [
        tuple(float(rect.get(side, "0")) for side in ("x", "y", "width", "height"))
        for rect in list(root.iter(f"{SVG}rect"))[1:]
    ]
    for path in root.iter(f"{SVG}path"):
        if path.get("fill") != "none":
            continue
        for x, y in _points(path.get("d", "")):
            for left, top, width, height in boxes:
                assert not (left + 1 < x < left + width - 1 and top < y < top + height), f"{x},{y} is behind an actor"


def _points(path: str) -> list[tuple[float, float]]:
    """Points along the straight parts of a path."""
    found: list[tuple[float, float]] = []
    x = y = 0.0
    words = path.replace("M", " M ").replace("C", " C ").replace("H", " H ").split()
    while words:
        match words.pop(0):
            case "M":
                x, y = float(words.pop(0)), float(words.pop(0))
            case "C":
                *_, x, y = [float(words.pop(0)) for _ in range(6)]
            case _:
                end = float(words.pop(0))
                found += [(x + (end - x) * step / 20, y) for step in range(1, 20)]
                x = end
    return found


def test_names_are_escaped_wherever_they_stand() -> None:
    """Names are plain by rule; a label that came in another way still can't end its element."""
    from actorflow.dataflow.picture import _escaped

    assert "&lt;b&gt;&quot;&amp;" == _escaped('<b>"&')


def test_a_notebook_shows_a_job_by_itself_and_says_what_is_missing_of_an_unfinished_one() -> None:
    bundle = watch()._repr_mimebundle_()
    assert bundle["image/svg+xml"].startswith("<svg")
    assert bundle["text/plain"].startswith("job watch")
    assert watch()._repr_html_().startswith("<svg")
    assert watch().plan()._repr_mimebundle_()["image/svg+xml"].startswith("<svg")

    unfinished: Any = Job("unfinished")
    unfinished.read(Given([1]), name="in")
    assert "not complete yet:\noperator 'in'" in unfinished._repr_mimebundle_()["text/plain"]
    assert "&#x27;in&#x27;" in unfinished._repr_html_()


def test_jobs_and_streams_say_what_they_are() -> None:
    job = Job("small")
    assert "<job 'small': no operators yet>" == repr(job)
    words = job.read(Given(["a"]), name="words").map(str)
    assert "<job 'small': words, map>" == repr(job)
    assert "<Stream of map>" == repr(words)
    assert "<KeyedStream of map and map>" == repr(words.key_by(str).union(words.key_by(str)))
