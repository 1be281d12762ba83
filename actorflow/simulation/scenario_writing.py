"""How is a scenario written down, so that a person likes to read it and the same scenario is read back?

Only what is not as it would be unsaid is written, in the order in which a story is told: what runs, in which world,
what goes wrong and when, what must be true.  Whatever TOML can't hold (``None``, bytes, objects) is refused, because a
file that says something else would be worse than none.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from datetime import date, datetime, time, timedelta
from typing import Any

from actorflow.config import duration_text
from actorflow.errors import InvalidScenario
from actorflow.simulation.scenario import Input, Scenario, Step
from actorflow.simulation.scenario_subjects import write_expectation
from actorflow.simulation.scenario_tables import write_words
from actorflow.simulation.scenario_triggers import write_trigger
from actorflow.simulation.scenario_weather import write_fault
from actorflow.simulation.scenario_words import CALM, INPUT, OUTPUT, SCHEDULE, SEEDS, STEP

__all__ = ("toml_value", "write_scenario")

_UNSAID = Scenario(title="", job="")
_WIDTH = 100
_BARE = re.compile(r"[A-Za-z0-9_-]+\Z", re.ASCII)
_MOMENT = re.compile(r"(\d{4}-\d\d-\d\d(T[\d:.]+([+-]\d\d:\d\d)?)?|\d\d:[\d:.]+)\Z", re.ASCII)
"""Dates, times and moments as TOML knows them: an offset in whole minutes, and none for a time without a date."""


def write_scenario(scenario: Scenario) -> str:
    """Return the text of a file that says this.  Raises ``InvalidScenario`` for a value that TOML can't hold."""
    blocks = [_top(scenario)]
    if scenario.environment:
        blocks.append(_block("[environment]", scenario.environment.items()))
    blocks += [_block("[[input]]", _input(one).items()) for one in scenario.inputs]
    blocks += [_block("[[output]]", write_words(one, OUTPUT).items()) for one in scenario.outputs]
    blocks += [_block("[[weather]]", write_fault(one).items()) for one in scenario.weather]
    blocks += [_block("[[step]]", _step(one)) for one in scenario.steps]
    if (calm := write_words(scenario, CALM)) != write_words(_UNSAID, CALM):
        blocks.append(_block("[calm]", calm.items()))
    blocks += [_block("[[expect]]", write_expectation(one).items()) for one in scenario.expectations]
    if schedule := write_words(scenario.schedule, SCHEDULE):
        blocks.append(_block("[schedule]", schedule.items()))
    return "\n".join(blocks)


# ── tables ───────────────────────────────────────────────────────────────────────────────────


def _top(scenario: Scenario) -> str:
    lines = [f"title = {toml_value(scenario.title)}"]
    if scenario.story:
        lines.append(f"story = {_long_text(scenario.story)}")
    lines.append(f"job = {toml_value(scenario.job)}")
    if scenario.arguments:
        lines.append(f"arguments = {toml_value(scenario.arguments)}")
    lines.append(f"seeds = {toml_value({word.name: getattr(scenario.seeds, word.field) for word in SEEDS})}")
    if scenario.lives:
        lines.append(f"lives = {toml_value(scenario.lives)}")
    return "".join(f"{line}\n" for line in lines)


def _block(head: str, pairs: Iterable[tuple[str, Any]]) -> str:
    return f"{head}\n" + "".join(f"{_key(name)} = {toml_value(value)}\n" for name, value in pairs)


def _input(one: Input) -> dict[str, Any]:
    words = tuple(word for word in INPUT if not (word.field == "records" and one.count is not None))
    count = {} if one.count is None else {"records": one.count}
    said = write_words(one, words) | count
    return {word.name: said[word.name] for word in INPUT if word.name in said}


def _step(step: Step) -> list[tuple[str, Any]]:
    return [write_trigger(step.when), *write_words(step, STEP).items()]


# ── values ───────────────────────────────────────────────────────────────────────────────────


def _key(name: Any) -> str:
    if not isinstance(name, str):
        raise InvalidScenario(f"a scenario can't hold the key {name!r}: keys of a table are text")
    return name if _BARE.match(name) else toml_value(name)


def toml_value(value: Any) -> str:
    """Return a value as TOML says it.  Raises ``InvalidScenario`` for one that TOML can't hold."""
    match value:
        case bool():
            return "true" if value else "false"
        case str():
            return _short_text(value)
        case int():
            return f"{int(value):_}" if abs(value) >= 10_000 else str(int(value))
        case float():
            return repr(float(value))
        case datetime() | time() | date():
            return _moment(value)
        case timedelta():
            return _short_text(duration_text(value))
        case Mapping():
            return (
                "{ " + ", ".join(f"{_key(name)} = {toml_value(said)}" for name, said in value.items()) + " }"
                if value
                else "{}"
            )
        case list() | tuple():
            items = [toml_value(item) for item in value]
            line = f"[{', '.join(items)}]"
            return line if len(line) <= _WIDTH else "[\n" + "".join(f"  {item},\n" for item in items) + "]"
        case _:
            raise InvalidScenario(f"a scenario can't hold {value!r:.80}: TOML has no {type(value).__name__}")


def _moment(value: datetime | date | time) -> str:
    text = value.isoformat()
    if not _MOMENT.match(text):
        raise InvalidScenario(f"a scenario can't hold {value!r}: TOML has no such time")
    return text


def _short_text(text: str) -> str:
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        raise InvalidScenario(f"a scenario can't hold {text!r:.80}: it is not Unicode") from None
    return json.dumps(str(text), ensure_ascii=False).replace("\x7f", "\\u007F")


def _long_text(text: str) -> str:
    """Text of several lines, as it is read; in it a quote is escaped only where three of them would end it."""
    if "\n" not in text:
        return _short_text(text)
    lines = [_short_text(line)[1:-1].replace('\\"', '"').replace('"""', '""\\"') for line in text.split("\n")]
    body = "\n".join(lines)
    if body.endswith('"'):
        body = body[:-1] + '\\"'
    return f'"""\n{body}"""'
