"""A target names a function, and its arguments are told and read after its signature."""

from __future__ import annotations

from pathlib import Path

import pytest

from actorflow.cli.exits import UsageMistake
from actorflow.cli.targets import build_job, find_function, help_of
from actorflow_tests.cli.shell import Shell

HEAD = "import actorflow as af\nfrom actorflow.connectors import generator, memory\n"

TELLS = (
    HEAD
    + """
from pathlib import Path

seen = []


def told(name: str, count: int, ratio: float, *, loud: bool, path: Path = None, share: float = 0.5, note: str = "100%"):
    seen.append((name, count, ratio, loud, path, share, note))
    job = af.Job("told")
    job.read(generator.generate(str, records=1), name="numbers").write(memory.collect(seen), name="seen")
    return job
"""
)


def test_a_module_of_the_current_folder_is_found(shell: Shell) -> None:
    assert find_function("jobs:count").__name__ == "count"


def test_a_file_is_found_wherever_it_lies_and_can_import_its_neighbours(shell: Shell) -> None:
    folder = shell.folder / "elsewhere"
    folder.mkdir()
    (folder / "neighbour_of_jobs.py").write_text("NAME = 'x'")
    (folder / "far_jobs.py").write_text("import neighbour_of_jobs\ndef job(): return neighbour_of_jobs.NAME")

    assert find_function(f"{folder}/far_jobs.py:job")() == "x"


def test_an_installed_module_is_found(shell: Shell) -> None:
    assert find_function("actorflow.examples.word_count:word_count").__name__ == "word_count"


@pytest.mark.parametrize("target", ["jobs", "jobs:", ":count", "jobs:not a name", ""])
def test_what_is_no_target_is_told_how_to_write_one(shell: Shell, target: str) -> None:
    with pytest.raises(UsageMistake, match=r"names no job: write MODULE:FUNCTION or FILE\.py:FUNCTION"):
        find_function(target)


def test_a_module_that_is_not_there_is_named_with_the_folder(shell: Shell) -> None:
    with pytest.raises(UsageMistake, match="there is no module 'no_such_jobs', neither installed nor in"):
        find_function("no_such_jobs:count")


def test_a_file_that_is_not_there_is_named(shell: Shell) -> None:
    with pytest.raises(UsageMistake, match=r"there is no file no_such_jobs\.py"):
        find_function("no_such_jobs.py:count")


def test_a_function_that_is_not_there_is_told_with_those_that_are(shell: Shell) -> None:
    with pytest.raises(UsageMistake, match=r"jobs has no function 'cuont'; it has count, row, settled"):
        find_function("jobs:cuont")


def test_what_is_not_a_function_is_refused(shell: Shell) -> None:
    (shell.folder / "no_functions.py").write_text("count = 3")
    with pytest.raises(UsageMistake, match="no_functions has no function 'count'; it has no function at all"):
        find_function("no_functions:count")


@pytest.mark.parametrize("target", ["broken_jobs:job", "broken_jobs.py:job"])
@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("1 / 0", "ZeroDivisionError: division by zero"),
        ("def job(:", "SyntaxError"),
        ("import no_such_module_anywhere", "ModuleNotFoundError: No module named 'no_such_module_anywhere'"),
    ],
)
def test_a_module_that_can_not_be_imported_shows_its_traceback_and_is_a_usage_mistake(
    shell: Shell, capsys: pytest.CaptureFixture[str], target: str, text: str, error: str
) -> None:
    (shell.folder / "broken_jobs.py").write_text(text)

    with pytest.raises(UsageMistake, match=f"importing broken_jobs.* raised {error}"):
        find_function(target)

    assert text in capsys.readouterr().err


def test_arguments_are_read_after_the_signature(shell: Shell) -> None:
    (shell.folder / "telling.py").write_text(TELLS)

    build_job("telling:told", ["x", "-3", "1.5", "--no-loud", "--path", "a/b", "--share", "1e-3"])

    seen = find_function("telling:told").__globals__["seen"]
    assert seen == [("x", -3, 1.5, False, Path("a/b"), 0.001, "100%")]


def test_help_shows_the_docstring_the_arguments_and_their_defaults(shell: Shell) -> None:
    (shell.folder / "telling_help.py").write_text(TELLS)

    text = help_of("telling_help:told")

    assert "usage: actorflow run telling_help:told --" in text
    assert "--share FLOAT" in text
    assert "(default: 0.5)" in text
    assert "(default: '100%')" in text
    assert "--loud" in text

    text = help_of("jobs:count")
    assert "Count words, so many times.\n\npath is a text.\n" in text
    assert "--times INT" in text


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "the following arguments are required: path"),
        (["text", "more"], "unrecognized arguments: more"),
        (["text", "--times", "x"], "argument --times: invalid int value: 'x'"),
        (["text", "--tim", "3"], "unrecognized arguments: --tim 3"),
    ],
)
def test_arguments_that_do_not_fit_are_told_with_the_usage(shell: Shell, arguments: list[str], message: str) -> None:
    with pytest.raises(UsageMistake, match=message) as raised:
        build_job("jobs:count", arguments)
    assert "usage: actorflow run jobs:count" in str(raised.value)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("def job(): return 3", "returned int and not a Job"),
        ("async def job(): return 3", "is an async function; a job is built by a plain one"),
        ("def job(x: dict): ...", "its parameter 'x' is a <class 'dict'>, which a command line can't give; use str"),
        ("def job(x: Nowhere = 1): ...", "the types of its parameters can't be read .NameError: name 'Nowhere'"),
        ("def job(): return open('no-such-file')", "No such file or directory: 'no-such-file'"),
        ("def job(): return 1 / 0", "raised ZeroDivisionError: division by zero"),
    ],
)
def test_a_function_that_gives_no_job_is_refused(shell: Shell, text: str, message: str) -> None:
    number = sum(map(ord, text))
    (shell.folder / f"giving{number}.py").write_text("from __future__ import annotations\n" + text)
    with pytest.raises(UsageMistake, match=message):
        build_job(f"giving{number}:job", [])


def test_parameters_that_only_python_can_give_keep_their_defaults(shell: Shell) -> None:
    (shell.folder / "keeping.py").write_text(
        HEAD
        + """
def job(name: str, /, *rest, table: dict = {}, **more) -> af.Job:
    assert (name, rest, table, more) == ("x", (), {}, {})
    job = af.Job("keeping")
    job.read(generator.generate(str, records=1), name="numbers").write(memory.collect([]), name="seen")
    return job
"""
    )
    assert build_job("keeping:job", ["x"]).name == "keeping"
