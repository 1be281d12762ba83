"""A text names a function of a module or a file, beside whoever names it or in the current folder."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from actorflow.dataflow.targets import function_of, nearest_of
from actorflow.errors import InvalidConfig, InvalidJob


@pytest.fixture(autouse=True)
def _imports_are_undone() -> Iterator[None]:
    path, modules = list(sys.path), dict(sys.modules)
    yield
    sys.path[:] = path
    for name in [name for name in sys.modules if name not in modules]:
        del sys.modules[name]


def test_a_file_is_looked_for_beside_whoever_names_it_and_loaded_once(tmp_path: Path) -> None:
    (tmp_path / "targets_beside.py").write_text("class A: ...\ndef made(): return A()\ndef other(): return A()\n")
    made = function_of("targets_beside.py:made", tmp_path)()
    assert type(made) is type(function_of("targets_beside.py:other", tmp_path)())
    assert type(made) is type(function_of(f"{tmp_path}/targets_beside.py:made")())
    assert type(made) is type(function_of("targets_beside:made", tmp_path)())


def test_a_wrong_name_is_told_with_what_there_is_and_what_it_is_for() -> None:
    with pytest.raises(InvalidJob, match=r"^make = 'textwrap:fil': textwrap has no function 'fil'; it has .*'fill'\?$"):
        function_of("textwrap:fil", what="make")
    with pytest.raises(InvalidJob, match=r"^'textwrap' names no job: write MODULE:FUNCTION or FILE\.py:FUNCTION$"):
        function_of("textwrap")
    with pytest.raises(InvalidJob, match=r"^make = 'x:': 'x:' names no function: write"):
        function_of("x:", what="make")
    with pytest.raises(InvalidJob, match="has no function 'TextWrapper'"):
        function_of("textwrap:TextWrapper")


def test_what_a_module_raises_is_the_cause_and_one_of_our_errors_stays_itself(tmp_path: Path) -> None:
    (tmp_path / "targets_broken.py").write_text("1 / 0\n")
    with pytest.raises(InvalidJob, match="importing targets_broken raised ZeroDivisionError") as raised:
        function_of("targets_broken:job", tmp_path)
    assert isinstance(raised.value.__cause__, ZeroDivisionError)
    ours = "from actorflow.errors import InvalidConfig\nraise InvalidConfig('said by itself')\n"
    (tmp_path / "targets_ours.py").write_text(ours)
    with pytest.raises(InvalidConfig, match="said by itself"):
        function_of("targets_ours.py:job", tmp_path)
    assert "targets_ours" not in sys.modules


def test_the_nearest_name_is_the_end_of_a_sentence() -> None:
    assert nearest_of("cuont", ["count", "sum"]) == "; did you mean 'count'?"
    assert nearest_of("xyz", ["count", "sum"]) == ""
