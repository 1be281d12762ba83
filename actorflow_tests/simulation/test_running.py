"""Many runs in one process: none leaves anything behind."""

from __future__ import annotations

import gc

from actorflow.simulation.oracle import storm_run
from actorflow.simulation.running import many
from actorflow.simulation.subject import Subject
from actorflow_tests.simulation import shapes


def objects() -> int:
    """How many objects there are that the collector knows, in whatever it was told to leave alone too."""
    gc.collect()
    return len(gc.get_objects()) + gc.get_freeze_count()


def test_memory_stays_flat_over_many_runs() -> None:
    subject = Subject(shapes.mutable_lists)
    with many():
        for seed in range(1, 9):
            storm_run(subject, seed)  # what is remembered at the first time
        before = objects()
        for seed in range(1, 9):
            storm_run(subject, seed)
        assert objects() - before < 100  # one storm's world is more than ten thousand


def test_the_collector_is_as_it_was_when_many_runs_are_over() -> None:
    was, frozen = gc.isenabled(), gc.get_freeze_count()
    with many():
        assert not gc.isenabled()
        with many():
            storm_run(Subject(shapes.mutable_lists), 1)
        assert not gc.isenabled()
        assert gc.get_freeze_count() > 0
    assert gc.isenabled() == was
    assert gc.get_freeze_count() == frozen
