"""What README says of settings, commands and names is what there is."""

from __future__ import annotations

import re
from collections import Counter

import actorflow
from actorflow.cli.app import app
from actorflow.config.telling import known_settings
from actorflow.connectors import console, files
from actorflow_tests.house.settings_table import README, settings_table, with_settings_table

DEMO_COMMAND = "python3 -m venv .venv && .venv/bin/pip install -q . && .venv/bin/actorflow demo"

TEXT = README.read_text("utf-8")


def test_the_table_of_settings_has_those_that_the_code_has() -> None:
    assert with_settings_table(TEXT) == TEXT, "run: python -m actorflow_tests.house.settings_table"


def test_each_setting_has_one_line_that_says_what_it_is_for() -> None:
    rows = [line.split(" | ") for line in settings_table().splitlines()[2:]]

    assert Counter(f"| `{one.name}`" for one in known_settings()) == Counter(row[0].split(" (")[0] for row in rows)
    assert all(len(row) == 4 and row[2] for row in rows)


def test_a_stranger_is_told_the_command_that_runs_the_demo() -> None:
    marked = re.findall(r"^# runs the demo\n(.+)\n```$", TEXT, re.MULTILINE)

    assert [DEMO_COMMAND] == marked


def test_the_picture_is_the_one_that_the_plan_draws() -> None:
    (drawn,) = re.findall(r"^```mermaid\n(.*?)^```$", TEXT, re.MULTILINE | re.DOTALL)
    job = actorflow.Job("word-count")
    words = job.read(files.lines("book.txt"), name="lines").flat_map(str.split)
    words.key_by(str.lower).count(name="count").write(console.lines(), name="print")

    assert job.plan().mermaid().strip() == drawn.strip()


def test_every_verb_that_readme_calls_is_there() -> None:
    verbs = {command.name for command in app.registered_commands}

    assert {*re.findall(r"(?:^|[`/])actorflow (\w+)", TEXT, re.MULTILINE)} == verbs


def test_every_name_that_readme_takes_from_the_front_door_is_there() -> None:
    named = {*re.findall(r"\baf\.([A-Za-z_]+)", TEXT)}

    assert not named - {*actorflow.__all__}
