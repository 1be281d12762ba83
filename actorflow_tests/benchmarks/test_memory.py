"""The benchmark of memory runs, at a size that takes no time."""

from __future__ import annotations

from actorflow.benchmarks.memory import figures_of, measure, resident_mb


def test_the_highest_of_the_last_four_fifths_is_compared_with_the_end_of_the_first() -> None:
    sizes = [(0, 10.0), (10, 30.0), (20, 20.0), (60, 21.0), (80, 20.5), (100, 20.1)]

    assert figures_of(sizes, 100) == {"at_20_percent_mb": 20, "highest_after_mb": 21, "growth_percent": 5}


def test_a_process_is_in_memory() -> None:
    assert 1 < resident_mb() < 100_000


def test_the_figures_have_the_shape_that_is_promised() -> None:
    lines: list[str] = []

    figures = measure(tell=lines.append, records=100_000)

    assert set(figures) == {"at_20_percent_mb", "highest_after_mb", "growth_percent"}
    assert len(lines) == 1
