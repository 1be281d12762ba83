from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from datetime import UTC, datetime
from typing import Any

import pytest

from actorflow.dataflow.keyed import Context, HookContext, KeyedOperator, Operator
from actorflow.dataflow.states import (
    AggregatingState,
    BroadcastState,
    ListState,
    MapState,
    ReducingState,
    SplitList,
    ValueState,
)
from actorflow.errors import InvalidJob, OperatorFailed
from actorflow_tests.dataflow.support import Kept, Run, chain_of, given, keyed_batch

CAREFUL = pytest.mark.parametrize("careful", [False, True])


def letters(*words: str) -> list[str]:
    return list(words)


def run_keyed(
    operator: Any, words: list[str], *, careful: bool = False, size: int = 3, **options: Any
) -> tuple[Any, Run]:
    job, stream, sink = given(*words)
    stream.key_by(lambda word: word[0]).process(operator, name="it", **options).write(sink, name="out")
    run = Run(job, careful=careful, size=size).to_end()
    return sink.rows, run


# ── the colours of on_record ─────────────────────────────────────────────────────────────────


class Counts(KeyedOperator[str, str, tuple[str, int]]):
    n = ValueState(int)


class Yields(Counts):
    def on_record(self, value: str, context: Context[str]) -> Iterator[tuple[str, int]]:
        self.n.value += 1
        yield context.key, self.n.value


class Lists(Counts):
    def on_record(self, value: str, context: Context[str]) -> list[tuple[str, int]]:
        self.n.value += 1
        return [(context.key, self.n.value)]


class Emits(Counts):
    def on_record(self, value: str, context: Context[str]) -> None:
        self.n.value += 1
        context.emit((context.key, self.n.value))


class Awaits(Counts):
    async def on_record(self, value: str, context: Context[str]) -> list[tuple[str, int]]:
        self.n.value += 1
        return [(context.key, self.n.value)]


class AwaitsAndYields(Counts):
    async def on_record(self, value: str, context: Context[str]) -> AsyncIterator[tuple[str, int]]:
        self.n.value += 1
        yield context.key, self.n.value


class AwaitsAndEmits(Counts):
    async def on_record(self, value: str, context: Context[str]) -> None:
        self.n.value += 1
        context.emit((context.key, self.n.value))


@CAREFUL
@pytest.mark.parametrize("operator", [Yields, Lists, Emits, Awaits, AwaitsAndYields, AwaitsAndEmits])
def test_inv_15_3_every_colour_of_on_record_gives_the_same(operator: Any, careful: bool) -> None:
    rows, run = run_keyed(operator, letters("ab", "b", "a", "ac", "b"), careful=careful)

    assert [("a", 1), ("b", 1), ("a", 2), ("a", 3), ("b", 2)] == rows
    assert {"a": 3, "b": 2} == run.state("it", "n")


def test_emitting_and_yielding_keep_the_order_in_which_they_happen() -> None:
    class Both(KeyedOperator[str, str, str]):
        def on_record(self, value: str, context: Context[str]) -> Iterator[str]:
            context.emit(value + "1")
            yield value + "2"
            context.emit(value + "3")
            yield value + "4"

    rows, _ = run_keyed(Both, ["a", "b"])

    assert ["a1", "a2", "a3", "a4", "b1", "b2", "b3", "b4"] == rows


# ── several states ───────────────────────────────────────────────────────────────────────────


class Two(KeyedOperator[str, str, tuple[int, str]]):
    n = ValueState(int)
    last = ValueState(str)

    def on_record(self, value: str, context: Context[str]) -> Iterator[tuple[int, str]]:
        self.n.value += 1
        yield self.n.value, self.last.value
        self.last.value = value


@CAREFUL
def test_two_values_of_a_key_go_together(careful: bool) -> None:
    rows, run = run_keyed(Two, letters("a1", "b1", "a2", "a3"), careful=careful)

    assert [(1, ""), (1, ""), (2, "a1"), (3, "a2")] == rows
    assert ({"a": 3, "b": 1}, {"a": "a3", "b": "b1"}) == (run.state("it", "n"), run.state("it", "last"))


class Many(KeyedOperator[str, str, int]):
    """Uses one of four values for most records, and another one from the 100th record on."""

    first = ValueState(int)
    second = ValueState(int)
    third = ValueState(str)
    unused = ValueState(float)

    def __init__(self) -> None:
        self.seen = 0

    def on_record(self, value: str, context: Context[str]) -> list[int]:
        self.seen += 1
        self.first.value += 1
        if self.seen > 100:
            self.second.value += 1
        if self.seen % 50 == 0:
            self.third.value = value
        return [self.first.value]


@CAREFUL
@pytest.mark.parametrize("size", [1, 3, 64])
def test_values_that_are_rarely_used_are_as_right_as_those_that_are_loaded_beforehand(careful: bool, size: int) -> None:
    words = [f"{'abc'[index % 3]}{index}" for index in range(300)]
    rows, run = run_keyed(Many, words, careful=careful, size=size)

    assert [index // 3 + 1 for index in range(300)] == rows
    assert {"a": 100, "b": 100, "c": 100} == run.state("it", "first")
    assert 200 == sum(run.state("it", "second").values())
    assert ["a249", "b199", "c299"] == sorted(run.state("it", "third").values())
    assert {} == run.state("it", "unused")


# ── clearing ─────────────────────────────────────────────────────────────────────────────────


class Clears(KeyedOperator[str, str, Any]):
    n = ValueState(int)
    order = ValueState(str, default=None)

    def on_record(self, value: str, context: Context[str]) -> Iterator[Any]:
        match value[1:]:
            case "none":
                self.n.value = None  # type: ignore[assignment]  # the untyped way to clear
            case "clear":
                self.n.clear()
                self.order.clear()
                assert self.n.value == 0
            case "clear-and-set":
                self.n.clear()
                self.n.value = 5
            case "zero":
                self.n.value = 0
            case _:
                self.n.value += 1
                self.order.value = value
        yield self.n.value, self.order.value


@CAREFUL
@pytest.mark.parametrize("clearing", ["anone", "aclear"])
def test_none_is_no_value(careful: bool, clearing: str) -> None:
    rows, run = run_keyed(Clears, ["ax", "ax", clearing, "ax"], careful=careful)

    assert (1, "ax") == rows[-1]
    assert {"a": 1} == run.state("it", "n")


@CAREFUL
def test_a_cleared_key_is_gone_from_the_state(careful: bool) -> None:
    _, run = run_keyed(Clears, ["ax", "bx", "aclear"], careful=careful)

    assert ({"b": 1}, {"b": "bx"}) == (run.state("it", "n"), run.state("it", "order"))


@CAREFUL
def test_a_value_set_after_clearing_stays(careful: bool) -> None:
    _, run = run_keyed(Clears, ["ax", "aclear-and-set"], careful=careful)

    assert {"a": 5} == run.state("it", "n")


@CAREFUL
def test_looking_at_a_key_leaves_nothing_behind_and_what_was_set_to_what_it_began_with_stays(careful: bool) -> None:
    class Looks(KeyedOperator[str, str, Any]):
        n = ValueState(int)
        found = ValueState(list[int])

        def on_record(self, value: str, context: Context[str]) -> list[Any]:
            return [self.n.value, self.found.value]

    rows, run = run_keyed(Looks, ["a", "b"], careful=careful)
    assert [0, [], 0, []] == rows
    assert ({}, {}) == (run.state("it", "n"), run.state("it", "found"))

    _, run = run_keyed(Clears, ["ax", "azero"], careful=careful)
    assert {"a": 0} == run.state("it", "n")


# ── values that are changed in place ─────────────────────────────────────────────────────────


@CAREFUL
@pytest.mark.parametrize("asynchronous", [False, True])
def test_a_value_that_is_changed_in_place_is_kept(careful: bool, asynchronous: bool) -> None:
    class Gathers(KeyedOperator[str, str, int]):
        words = ValueState(list[str])

        def on_record(self, value: str, context: Context[str]) -> Any:
            self.words.value.append(value)
            return [len(self.words.value)]

    class GathersLater(Gathers):
        async def on_record(self, value: str, context: Context[str]) -> Any:
            return super().on_record(value, context)

    rows, run = run_keyed(GathersLater if asynchronous else Gathers, ["a1", "b1", "a2", "a3"], careful=careful)

    assert [1, 1, 2, 3] == rows
    assert {"a": ["a1", "a2", "a3"], "b": ["b1"]} == run.state("it", "words")


@CAREFUL
def test_a_mutable_default_is_not_shared_between_keys(careful: bool) -> None:
    class Gathers(KeyedOperator[str, str, Any]):
        words = ValueState(list, default=["begin"])

        def on_record(self, value: str, context: Context[str]) -> list[Any]:
            self.words.value.append(value)
            return [list(self.words.value)]

    rows, _ = run_keyed(Gathers, ["a1", "b1"], careful=careful)

    assert [["begin", "a1"], ["begin", "b1"]] == rows


# ── lists, maps, reducing and aggregating state ──────────────────────────────────────────────


def plus(total: int, x: int) -> int:
    return total + x


class Kinds(KeyedOperator[str, str, Any]):
    words = ListState(str)
    lengths = MapState(str, int)
    longest = ReducingState[int](max)
    total = AggregatingState[int, str](int, plus, lambda total: f"total {total}")

    def on_record(self, value: str, context: Context[str]) -> Any:
        yield from self.told(value)

    def told(self, value: str) -> Iterator[Any]:
        if value.endswith("!"):
            self.words.clear()
            self.lengths.clear()
            self.longest.clear()
            self.total.clear()
        elif value.endswith("?"):
            yield self.words.get(), dict(self.lengths), self.longest.get(), self.total.get()
        else:
            self.words.append(value)
            self.lengths[value] = len(value)
            self.longest.add(len(value))
            self.total.add(len(value))


class KindsLater(Kinds):
    async def on_record(self, value: str, context: Context[str]) -> AsyncIterator[Any]:
        for result in self.told(value):
            yield result


@CAREFUL
@pytest.mark.parametrize("operator", [Kinds, KindsLater])
def test_r026_every_kind_of_state_holds_what_its_own_key_gave_it(operator: Any, careful: bool) -> None:
    rows, run = run_keyed(operator, ["a1", "b", "a22", "a?", "a!", "a?", "b?"], careful=careful)

    assert [
        (["a1", "a22"], {"a1": 2, "a22": 3}, 3, "total 5"),
        ([], {}, None, None),
        (["b"], {"b": 1}, 1, "total 1"),
    ] == rows
    assert {"b": ["b"]} == run.state("it", "words")
    assert {"b": {"b": 1}} == run.state("it", "lengths")
    assert {"b": 1} == run.state("it", "longest")
    assert {"b": 1} == run.state("it", "total")


@CAREFUL
def test_lists_and_maps_speak_python(careful: bool) -> None:
    class Speaks(KeyedOperator[str, str, Any]):
        words = ListState(str)
        lengths = MapState(str, int)

        def on_record(self, value: str, context: Context[str]) -> Iterator[Any]:
            self.words.extend(["x", "y"])
            self.words.replace(["p", "q", "r"])
            yield len(self.words), list(self.words), self.words[1], bool(self.words)
            self.lengths.update(p=1, q=2)
            self.lengths["r"] = self.lengths.pop("p") + self.lengths.get("zzz", 10)
            yield sorted(self.lengths.items()), "q" in self.lengths, len(self.lengths)
            del self.lengths["q"]
            del self.lengths["r"]
            self.words.replace([])
            yield len(self.words), len(self.lengths), self.lengths.get("q")
            with pytest.raises(KeyError):
                del self.lengths["q"]
            with pytest.raises(IndexError):
                _ = self.words[0]

    rows, run = run_keyed(Speaks, ["a"], careful=careful)

    assert [
        (3, ["p", "q", "r"], "q", True),
        ([("q", 2), ("r", 11)], True, 2),
        (0, 0, None),
    ] == rows
    assert ({}, {}) == (run.state("it", "words"), run.state("it", "lengths"))


def test_what_get_returns_may_be_emitted_because_it_is_the_callers_own() -> None:
    class Shows(KeyedOperator[str, str, list[str]]):
        words = ListState(str)

        def on_record(self, value: str, context: Context[str]) -> list[list[str]]:
            self.words.append(value)
            return [self.words.get()]

    rows, _ = run_keyed(Shows, ["a1", "a2"])

    assert [["a1"], ["a1", "a2"]] == rows


# ── errors ───────────────────────────────────────────────────────────────────────────────────


class Fails(KeyedOperator[str, int, int]):
    n = ValueState(int)

    def on_record(self, value: int, context: Context[str]) -> Any:
        self.n.value += 1
        return [1 // value]


class FailsWhenConsumed(Fails):
    def on_record(self, value: int, context: Context[str]) -> Any:
        self.n.value += 1
        yield 1 // value


class FailsWithTwo(Fails):
    m = ValueState(int)


class FailsWithMany(FailsWithTwo):
    o = ValueState(int)
    words = ListState(str)


@CAREFUL
@pytest.mark.parametrize("operator", [Fails, FailsWhenConsumed, FailsWithTwo, FailsWithMany])
@pytest.mark.parametrize("bad", [0, 1, 3])
def test_the_record_and_its_key_are_named_in_every_loop(operator: Any, careful: bool, bad: int) -> None:
    job, stream, sink = given(1)
    stream.key_by(str).process(operator, name="fails").write(sink, name="out")
    chain = chain_of(job, "fails", careful=careful)
    values = [4, 3, 2, 1]
    values[bad] = 0

    with pytest.raises(OperatorFailed) as caught:
        chain.process(keyed_batch(values, [f"key-{index}" for index in range(4)]))

    assert ("fails", repr(f"key-{bad}"), "0") == (caught.value.operator, caught.value.key, caught.value.record)
    assert isinstance(caught.value.__cause__, ZeroDivisionError)


def test_without_show_records_neither_record_nor_key_nor_the_users_text_appear() -> None:
    class Tells(KeyedOperator[str, str, str]):
        def on_record(self, value: str, context: Context[str]) -> None:
            raise ValueError(f"bad card {value}")

    job, stream, sink = given("x")
    stream.key_by(str).process(Tells, name="tells").write(sink, name="out")
    chain = chain_of(job, "tells", show_records=False)

    with pytest.raises(OperatorFailed) as caught:
        chain.process(keyed_batch(["4711"], ["owner"]))

    assert "4711" not in str(caught.value)
    assert "owner" not in str(caught.value)
    assert "ValueError" in str(caught.value)
    assert (None, None) == (caught.value.key, caught.value.record)


def test_assigning_to_the_state_itself_instead_of_its_value_is_told() -> None:
    class Forgets(KeyedOperator[str, str, str]):
        level = ValueState(float)

        def on_record(self, value: str, context: Context[str]) -> None:
            self.level = 1.0  # type: ignore[assignment]  # the mistake

    job, stream, sink = given("x")
    stream.key_by(str).process(Forgets, name="forgets").write(sink, name="out")

    with pytest.raises(OperatorFailed, match=r"operator 'forgets'.*assign to self\.level\.value"):
        chain_of(job, "forgets").process(keyed_batch(["x"], ["k"]))


def test_a_state_can_not_be_used_before_the_operator_runs() -> None:
    class TooEarly(KeyedOperator[str, str, str]):
        level = ValueState(float)

        def __init__(self) -> None:
            self.level.value = 3

        def on_record(self, value: str, context: Context[str]) -> None: ...

    class InItsPlace(TooEarly):
        def __init__(self) -> None:
            self.level = 3  # type: ignore[assignment]  # the mistake

    for operator, words in ((TooEarly, "not in __init__"), (InItsPlace, "declared state")):
        job, stream, sink = given("x")
        stream.key_by(str).process(operator, name="early").write(sink, name="out")
        with pytest.raises(InvalidJob, match=words):
            Run(job)


def test_an_init_that_fails_names_the_operator() -> None:
    class Breaks(KeyedOperator[str, str, str]):
        def __init__(self) -> None:
            raise RuntimeError("no licence")

        def on_record(self, value: str, context: Context[str]) -> None: ...

    job, stream, sink = given("x")
    stream.key_by(str).process(Breaks, name="breaks").write(sink, name="out")
    with pytest.raises(OperatorFailed, match=r"operator 'breaks'.*opening it raised: RuntimeError: no licence"):
        Run(job)


# ── what is refused when the job is built ────────────────────────────────────────────────────


class Bare(Operator[str, str]):
    def on_record(self, value: str, context: Context[None]) -> list[str]:
        return [value]


class Abstract(KeyedOperator[str, str, str]):
    pass


class NeedsLimit(KeyedOperator[str, str, str]):
    def __init__(self, limit: int) -> None:
        self.limit = limit

    def on_record(self, value: str, context: Context[str]) -> list[str]:
        return [value] * self.limit


class AsyncHook(KeyedOperator[str, str, str]):
    def on_record(self, value: str, context: Context[str]) -> None: ...

    async def on_snapshot(self, checkpoint_id: int) -> None: ...  # type: ignore[override]  # the mistake


class RulesWithoutSide(KeyedOperator[str, str, str]):
    rules = BroadcastState(str, int)

    def on_record(self, value: str, context: Context[str]) -> None: ...


@pytest.mark.parametrize(
    ("operator", "args", "words"),
    [
        (Abstract, (), "Abstract does not define on_record"),
        (NeedsLimit, (), "can't be made with the arguments given"),
        (NeedsLimit, (1, 2), "can't be made with the arguments given"),
        (AsyncHook, (), "on_snapshot must be a plain function"),
        (RulesWithoutSide, (), "use connect_broadcast"),
        (len, (), "takes a subclass of KeyedOperator"),
        (NeedsLimit(1), (), "not an instance of NeedsLimit; each subtask makes its own"),
    ],
)
def test_operator_classes_that_could_not_run_are_refused(operator: Any, args: tuple[Any, ...], words: str) -> None:
    _job, stream, _ = given("a")
    with pytest.raises(InvalidJob, match=words) as caught:
        stream.key_by(str).process(operator, *args, name="it")
    assert "operator 'it'" in str(caught.value)


def test_arguments_reach_the_instance_of_each_subtask() -> None:
    rows, _ = run_keyed(NeedsLimit, ["a"], limit=2)
    assert ["a", "a"] == rows


def test_keyed_state_needs_a_key_by() -> None:
    _job, stream, _ = given("a")
    with pytest.raises(InvalidJob, match="needs a key_by"):
        stream.process(Yields, name="it")

    class WithState(Operator[str, str]):
        n = ValueState(int)

        def on_record(self, value: str, context: Context[None]) -> None: ...

    with pytest.raises(InvalidJob, match=r"state 'n' of .*WithState belongs to a key"):
        stream.process(WithState, name="it")


def test_process_needs_a_name() -> None:
    _job, stream, _ = given("a")
    with pytest.raises(InvalidJob, match=r"process\(\) needs a name="):
        stream.process(Bare)


ANYTHING: Any = NeedsLimit
THREE: Any = 3
ABS: Any = abs


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: ValueState(ANYTHING), "needs arguments.*default=None"),
        (lambda: ValueState(THREE), r"ValueState\(int, default=3\)"),
        (lambda: ReducingState(ABS), "called with 2 arguments"),
        (lambda: AggregatingState(list, ABS, len), "its add"),
    ],
)
def test_declarations_that_could_not_work_are_refused_where_they_stand(make: Any, words: str) -> None:
    with pytest.raises(InvalidJob, match=words):
        make()


def test_one_declaration_can_not_be_two_states() -> None:
    shared = ValueState(int)
    with pytest.raises((InvalidJob, RuntimeError)) as caught:
        type("Twice", (), {"a": shared, "b": shared})
    error = caught.value if isinstance(caught.value, InvalidJob) else caught.value.__cause__  # Python 3.11 wraps it
    assert "one and the same declaration" in str(error)


# ── without keys ─────────────────────────────────────────────────────────────────────────────


def test_an_operator_without_keys_has_hooks_and_state_of_its_subtask() -> None:
    class Window(Operator[int, list[int]]):
        waiting = SplitList(int)

        def on_record(self, value: int, context: Context[None]) -> Iterator[list[int]]:
            self.waiting.append(value)
            if len(self.waiting) == 2:
                yield list(self.waiting)
                self.waiting.clear()

        def on_end_of_input(self, context: HookContext) -> list[list[int]]:
            return [list(self.waiting)]

    job, stream, sink = given(1, 2, 3, 4, 5)
    stream.process(Window, name="pairs").map(sum).write(sink, name="out")

    run = Run(job).to_end()

    assert [3, 7, 5] == sink.rows
    assert 1 == len(run.plan.vertices)


def test_an_operator_without_keys_may_be_async() -> None:
    class Looks(Operator[int, int]):
        async def on_record(self, value: int, context: Context[None]) -> list[int]:
            return [value * 2]

    job, stream, sink = given(1, 2)
    stream.process(Looks, name="look").write(sink, name="out")
    Run(job).to_end()
    assert [2, 4] == sink.rows


# ── the context ──────────────────────────────────────────────────────────────────────────────


def test_the_context_says_where_and_when() -> None:
    class Asks(KeyedOperator[str, str, Any]):
        def on_record(self, value: str, context: Context[str]) -> Iterator[Any]:
            yield context.operator, context.subtask, context.parallelism, context.now()

    rows, _ = run_keyed(Asks, ["a"])

    assert [("it", 0, 1, datetime(2023, 11, 14, 22, 13, 20, 123_000, tzinfo=UTC))] == rows


def test_side_outputs_are_read_by_their_tags() -> None:
    class Sorts(KeyedOperator[str, str, str]):
        optional_outputs = ("trace",)

        def on_record(self, value: str, context: Context[str]) -> Iterator[str]:
            context.emit_to("trace", value)
            if value.isupper():
                context.emit_to("loud", value)
            else:
                yield value

    job, stream, sink = given("a", "B", "c")
    loud = Kept()
    sorted_out = stream.key_by(str).process(Sorts, name="sort")
    sorted_out.side_output("loud", str).write(loud, name="loud")
    sorted_out.write(sink, name="out")

    Run(job).to_end()

    assert (["a", "c"], ["B"]) == (sink.rows, loud.rows)


@pytest.mark.parametrize("asynchronous", [False, True])
def test_a_side_output_that_nobody_reads_is_an_error_because_its_records_would_be_lost(asynchronous: bool) -> None:
    class Sorts(KeyedOperator[str, str, str]):
        def on_record(self, value: str, context: Context[str]) -> Any:
            context.emit_to("lowd", value)

    class SortsLater(Sorts):
        async def on_record(self, value: str, context: Context[str]) -> Any:
            context.emit_to("lowd", value)

    job, stream, sink = given("a")
    stream.key_by(str).process(SortsLater if asynchronous else Sorts, name="sort").write(sink, name="out")
    with pytest.raises((OperatorFailed, InvalidJob), match=r"side output 'lowd' is read by nobody.*optional_outputs"):
        Run(job).to_end()


def test_only_process_has_side_outputs() -> None:
    _job, stream, _ = given("a")
    with pytest.raises(InvalidJob, match="'map': map has no side outputs"):
        stream.map(str).side_output("late")
    with pytest.raises(InvalidJob, match="side output 'a b'"):
        stream.process(Bare, name="bare").side_output("a b")
    with pytest.raises(InvalidJob, match="right after the operator"):
        stream.process(Bare, name="bare2").rebalance().side_output("late")
