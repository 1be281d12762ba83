"""Within one process a home has one job (R052)."""

from __future__ import annotations

from contextvars import copy_context

import pytest

from actorflow.errors import InvalidJob
from actorflow.runtime.homes import claim_home_in_process, homes_of_process, release_home_in_process


def alone() -> None:
    homes_of_process.set({})


def test_a_home_is_claimed_once_until_it_is_released() -> None:
    def story() -> None:
        alone()
        claim_home_in_process("/a/b")
        claim_home_in_process("/a/c")
        with pytest.raises(InvalidJob, match="'/a/b' already runs in this process; give the second one another name"):
            claim_home_in_process("/a/b")
        release_home_in_process("/a/b")
        claim_home_in_process("/a/b")
        release_home_in_process("never claimed")

    copy_context().run(story)


def test_simulated_processes_do_not_see_each_others_homes() -> None:
    def one() -> None:
        alone()
        claim_home_in_process("/a/b")

    copy_context().run(one)
    copy_context().run(one)
