from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from actorflow.dataflow.keyed import Context, HookContext, KeyedOperator, Operator
from actorflow.dataflow.states import AggregatingState, ListState, SplitList, UnionList, ValueState
from actorflow.errors import IncompatibleState, InvalidJob, OperatorFailed
from actorflow.model.manifest import Redistribution
from actorflow_tests.dataflow.support import Run, chain_of, given, keyed_batch


class Told(KeyedOperator[str, str, Any]):
    n = ValueState(int)
    words = ListState(str)
    told = SplitList(str)

    def on_record(self, value: str, context: Context[str]) -> None:
        self.n.value += 1
        self.words.append(value)

    def on_open(self, context: HookContext) -> None:
        self.told.append("open")

    def on_restored(self, context: HookContext) -> None:
        self.told.append(f"restored {context.checkpoint_id}")

    def on_snapshot(self, checkpoint_id: int) -> None:
        self.told.append(f"snapshot {checkpoint_id}")

    def on_checkpoint_completed(self, checkpoint_id: int) -> None:
        self.told.append(f"completed {checkpoint_id}")

    def on_checkpoint_aborted(self, checkpoint_id: int) -> None:
        self.told.append(f"aborted {checkpoint_id}")

    def on_end_of_input(self, context: HookContext) -> Iterator[Any]:
        yield dict(context.entries(self.n))
        context.emit(dict(context.entries(self.words)))

    def on_close(self) -> None:
        self.told.append("close")


def told(operator: Any = Told, **options: Any) -> Any:
    job, stream, sink = given("a")
    stream.key_by(str).process(operator, name="told").map(lambda x: x).write(sink, name="out")
    return chain_of(job, "told", **options)


def test_an_operator_is_told_of_every_moment_in_order() -> None:
    chain = told()

    chain.open()
    chain.on_restored(4)
    chain.on_snapshot(5)
    chain.on_completed(5)
    chain.on_snapshot(6)
    chain.on_aborted(6)
    chain.close()

    (found,) = chain.list_states()
    assert ("told", "told", Redistribution.SPLIT) == found[:3]
    assert ["open", "restored 4", "snapshot 5", "completed 5", "snapshot 6", "aborted 6", "close"] == found[3]


@pytest.mark.parametrize("careful", [False, True])
def test_the_end_of_input_sees_all_keys_and_what_it_gives_goes_on_through_the_chain(careful: bool) -> None:
    chain = told(careful=careful)
    chain.process(keyed_batch(["x", "y", "z"], [(1, "k"), "b", (1, "k")]))

    assert [{(1, "k"): 2, "b": 1}, {(1, "k"): ["x", "z"], "b": ["y"]}] == chain.finish()

    with pytest.raises(AssertionError, match="finishes once"):
        chain.finish()


def plus(total: int, x: int) -> int:
    return total + x


def test_entries_of_an_aggregating_state_are_its_results() -> None:
    class Sums(KeyedOperator[str, int, Any]):
        total = AggregatingState[int, str](int, plus, lambda total: f"total {total}")

        def on_record(self, value: int, context: Context[str]) -> None:
            self.total.add(value)

        def on_end_of_input(self, context: HookContext) -> Iterator[Any]:
            yield from context.entries(self.total)
            with pytest.raises(InvalidJob, match="takes a keyed state"):
                list(context.entries(3))

    chain = told(Sums)
    chain.process(keyed_batch([1, 2, 3], ["a", "b", "a"]))

    assert [("a", "total 4"), ("b", "total 2")] == sorted(chain.finish())


def test_two_operators_of_a_chain_finish_in_order_and_the_second_still_gets_what_the_first_gave() -> None:
    class Last(Operator[str, str]):
        def __init__(self, name: str) -> None:
            self.name = name

        def on_record(self, value: str, context: Context[None]) -> list[str]:
            return [f"{value}>{self.name}"]

        def on_end_of_input(self, context: HookContext) -> list[str]:
            return [f"end {self.name}"]

    job, stream, sink = given("x")
    stream.process(Last, "1", name="first").process(Last, "2", name="second").write(sink, name="out")

    Run(job).to_end()

    assert ["x>1>2", "end 1>2", "end 2"] == sink.rows


def test_a_hook_has_no_key_in_hand() -> None:
    class Reaches(KeyedOperator[str, str, Any]):
        n = ValueState(int)

        def on_record(self, value: str, context: Context[str]) -> None:
            self.n.value += 1

        def on_snapshot(self, checkpoint_id: int) -> None:
            self.n.value += 1

        def on_restored(self, context: HookContext) -> None:
            self.n.clear()

        def on_open(self, context: HookContext) -> None:
            context.emit(1)

        def on_end_of_input(self, context: HookContext) -> None:
            _ = context.key

    chain = told(Reaches)
    chain.process(keyed_batch(["x"], ["a"]))
    for moment, hook, words in (
        (lambda: chain.on_snapshot(1), "on_snapshot", "state 'n' belongs to a key"),
        (lambda: chain.on_restored(1), "on_restored", "state 'n' belongs to a key"),
        (chain.open, "on_open", "nothing can be emitted here"),
        (chain.finish, "on_end_of_input", "there is no key here"),
    ):
        with pytest.raises(OperatorFailed, match=rf"operator 'told'.*{hook} raised.*{words}"):
            moment()
    chain.process(keyed_batch(["x"], ["a"]))


def test_all_operators_are_closed_even_when_one_fails() -> None:
    closed: list[str] = []

    class Closes(Operator[str, str]):
        def __init__(self, name: str) -> None:
            self.name = name

        def on_record(self, value: str, context: Context[None]) -> list[str]:
            return [value]

        def on_close(self) -> None:
            closed.append(self.name)
            if self.name == "1":
                raise OSError("gone")

    job, stream, sink = given("x")
    stream.process(Closes, "1", name="first").process(Closes, "2", name="second").write(sink, name="out")

    with pytest.raises(OperatorFailed, match=r"operator 'first'.*on_close raised: OSError: gone"):
        chain_of(job, "in").close()

    assert ["1", "2"] == closed


# ── state of the subtask ─────────────────────────────────────────────────────────────────────


class Holds(Operator[int, int]):
    split = SplitList(int)
    union = UnionList(list[int])

    def on_record(self, value: int, context: Context[None]) -> None:
        self.split.extend([value])
        self.union.append([value])


def holds() -> Any:
    job, stream, sink = given(1)
    stream.process(Holds, name="holds").write(sink, name="out")
    return chain_of(job, "in")


def test_the_instant_holds_copies_of_what_belongs_to_the_subtask() -> None:
    chain = holds()
    chain.process_values([1])
    instant = chain.list_states()
    instant[1][3][0].append(99)
    chain.process_values([2])

    assert [
        ("holds", "split", Redistribution.SPLIT, [1]),
        ("holds", "union", Redistribution.UNION, [[1, 99]]),
    ] == instant
    assert [[1, 2], [[1], [2]]] == [elements for *_, elements in chain.list_states()]


def test_elements_of_several_old_subtasks_add_up() -> None:
    chain = holds()
    chain.restore_lists("holds", "split", [1, 2], Redistribution.SPLIT)
    chain.restore_lists("holds", "split", [7], Redistribution.SPLIT)
    chain.restore_lists("holds", "union", [[1]], Redistribution.UNION)

    assert [[1, 2, 7], [[1]]] == [elements for *_, elements in chain.list_states()]


def test_a_snapshot_that_does_not_fit_is_refused_by_name() -> None:
    chain = holds()
    with pytest.raises(IncompatibleState, match="operator 'holds' has no list state 'gone'"):
        chain.restore_lists("holds", "gone", [], Redistribution.SPLIT)
    with pytest.raises(IncompatibleState, match="operator 'other' has no list state"):
        chain.restore_lists("other", "gone", [], Redistribution.SPLIT)
    with pytest.raises(IncompatibleState, match="state 'split' is split here and union in the snapshot"):
        chain.restore_lists("holds", "split", [], Redistribution.UNION)
