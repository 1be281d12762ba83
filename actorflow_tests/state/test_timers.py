"""Timers against a naive model: order, freezing, restoring, and nothing that grows (semantics 5.5)."""

from __future__ import annotations

import random
import tracemalloc
from collections.abc import Iterable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, precondition, rule, run_state_machine_as_test

from actorflow.abc.state import KeyedTimers, StateBackend, StateSnapshot, Timer
from actorflow.errors import CorruptObject, IncompatibleState, InvalidValue
from actorflow.model.codec import Codec
from actorflow.model.key_groups import OwnedKeys, bytes_of_token, key_of_token, range_of, token_of
from actorflow.model.registry import Registry
from actorflow.state import MemoryBackend
from actorflow.state.blocks import Block, encode_block
from actorflow.state.timer_queue import NOTHING, TimerQueue

CODEC = Codec(Registry(alone=True))
OPERATOR = "count"
FOREVER = 1 << 62
SERVICES = {"": "", "alarm": "", "window": "window"}
"""The services of the tests and the kinds of their namespaces."""


def declared(backend: StateBackend) -> KeyedTimers:
    timers = backend.timers(OPERATOR, "event")
    for name, namespaces in SERVICES.items():
        timers.service(name, namespaces)
    return timers


def place(timer: Timer) -> tuple[int, bytes, bytes, str]:
    """Where a timer stands in the order of semantics 5.5."""
    stamp, token, namespace, name = timer
    return stamp, bytes_of_token(token), namespace, name


def register(timers: KeyedTimers, timer: Timer) -> None:
    stamp, token, namespace, name = timer
    timers.service(name, SERVICES[name]).register(stamp, token, namespace)


def delete(timers: KeyedTimers, timer: Timer) -> None:
    stamp, token, namespace, name = timer
    timers.service(name, SERVICES[name]).delete(stamp, token, namespace)


def fired(timers: KeyedTimers, until: int = FOREVER) -> list[Timer]:
    return list(timers.due(until, FOREVER))


def written(snapshot: StateSnapshot) -> list[bytes]:
    return [block for block in snapshot.blocks(OPERATOR) if block]


def restored(blocks: Iterable[bytes], **options: Any) -> MemoryBackend:
    backend = MemoryBackend(CODEC)
    for _ in backend.restore(OPERATOR, blocks, **options):
        pass
    return backend


def rescaled(blocks: list[bytes], parallelism: int) -> list[MemoryBackend]:
    return [
        restored(blocks, keep=OwnedKeys(range_of(subtask, parallelism, 128), 128)) for subtask in range(parallelism)
    ]


def merged(blocks: list[list[bytes]]) -> MemoryBackend:
    return restored([block for of_one in blocks for block in of_one])


# ── any sequence against a set ───────────────────────────────────────────────────────────────

KEYS = st.sampled_from([0, 1, 2, -1, 300, 1 << 70, "", "a", "a\0", "aa", "é", b"a", b"", True, 1.0, None, ("a", 1)])
STAMPS = st.one_of(
    st.integers(-3, 12),
    st.sampled_from([-(1 << 53), -1_025, 1_023, 1_024, 2_000, 1 << 20, (1 << 20) - 1, (1 << 53) - 1]),
)
TIMERS = st.one_of(
    st.tuples(STAMPS, KEYS.map(token_of), st.just(b""), st.sampled_from(["", "alarm"])),
    st.tuples(STAMPS, KEYS.map(token_of), st.sampled_from([b"", b"w", b"w\0"]), st.just("window")),
)


class TimersAgainstASet(RuleBasedStateMachine):
    """Register, delete, fire, pause, freeze, restore and rescale in any order: what fires is what a sorted set says."""

    def __init__(self) -> None:
        super().__init__()
        self.start(MemoryBackend(CODEC))
        self.expected: set[Timer] = set()
        self.live: list[tuple[StateSnapshot, set[Timer], list[bytes], Any]] = []

    def start(self, backend: MemoryBackend) -> None:
        self.backend = backend
        self.timers = declared(backend)

    @rule(timer=TIMERS)
    def register(self, timer: Timer) -> None:
        register(self.timers, timer)
        self.expected.add(timer)

    @rule(timer=TIMERS)
    def delete(self, timer: Timer) -> None:
        delete(self.timers, timer)
        self.expected.discard(timer)

    @rule(which=st.randoms(use_true_random=False))
    def delete_one_that_is_there(self, which: random.Random) -> None:
        if self.expected:
            self.delete(which.choice(sorted(self.expected, key=place)))

    @rule(until=STAMPS, most=st.integers(0, 9), meanwhile=st.lists(st.tuples(st.booleans(), TIMERS), max_size=4))
    def fire(self, until: int, most: int, meanwhile: list[tuple[bool, Timer]]) -> None:
        count = 0
        for timer in self.timers.due(until, most):
            count += 1
            assert timer == min(self.expected, key=place)
            assert timer[0] <= until  # INV-5.5
            self.expected.remove(timer)
            if meanwhile:
                is_new, other = meanwhile.pop()
                (self.register if is_new else self.delete)(other)
        assert count == most or all(timer[0] > until for timer in self.expected)

    @rule()
    def look_at_the_next(self) -> None:
        assert self.timers.next_timestamp() == min((timer[0] for timer in self.expected), default=None)
        assert len(self.timers) == len(self.expected)

    @precondition(lambda self: len(self.live) < 3)
    @rule()
    def freeze(self) -> None:
        snapshot = self.backend.freeze()
        self.live.append((snapshot, set(self.expected), [], snapshot.blocks(OPERATOR)))

    @precondition(lambda self: self.live)
    @rule(which=st.integers(0, 2), steps=st.integers(1, 4))
    def write_some(self, which: int, steps: int) -> None:
        _, _, blocks, following = self.live[which % len(self.live)]
        for _ in range(steps):
            blocks.append(next(following, b""))

    @precondition(lambda self: self.live)
    @rule(which=st.integers(0, 2), parallelism=st.sampled_from([0, 1, 2, 3]), go_on=st.booleans())
    def restore(self, which: int, parallelism: int, go_on: bool) -> None:
        snapshot, expected, blocks, following = self.live.pop(which % len(self.live))
        blocks += following
        snapshot.release()
        if parallelism == 0:  # only written, or given up
            return
        backends = rescaled(blocks, parallelism)
        together = [timer for backend in backends for timer in fired(declared(backend))]
        assert sorted(together, key=place) == sorted(expected, key=place)
        if go_on:
            for other, _, _, _ in self.live:
                other.release()
            self.live.clear()
            second = [written(backend.freeze()) for backend in rescaled(blocks, parallelism)]
            self.start(merged(second))
            self.expected = set(expected)

    def teardown(self) -> None:
        assert fired(self.timers) == sorted(self.expected, key=place)


def test_any_sequence_of_register_delete_fire_freeze_restore_and_rescale_fires_as_a_sorted_set_would() -> None:
    run_state_machine_as_test(
        TimersAgainstASet, settings=settings(max_examples=25, stateful_step_count=40, deadline=None)
    )


@given(st.lists(KEYS.map(token_of), min_size=1), st.data())
def test_tokens_of_one_type_compare_as_their_canonical_bytes_do(tokens: list[Any], data: st.DataObject) -> None:
    values: Any = {
        str: st.text(st.characters(exclude_categories=["Cs"])),
        bytes: st.binary(),
        int: st.integers(),
        tuple: st.one_of(st.floats(), st.tuples(st.integers(), st.text(st.characters(exclude_categories=["Cs"])))).map(
            token_of
        ),
    }[type(tokens[0])]
    many = data.draw(st.lists(values))
    assert sorted(many) == sorted(many, key=bytes_of_token)


# ── the same where timers are many ───────────────────────────────────────────────────────────


@pytest.mark.parametrize("seed", range(3))
def test_crowded_and_scattered_timestamps_fire_in_order_whatever_is_frozen_meanwhile(seed: int) -> None:
    chance = random.Random(seed)
    backend = MemoryBackend(CODEC)
    timers = declared(backend)
    service = timers.service("")
    expected: set[tuple[int, str]] = set()
    frozen: list[tuple[StateSnapshot, set[tuple[int, str]]]] = []
    now = 0

    def drawn() -> tuple[int, str]:
        kind = chance.random()
        if kind < 0.4:
            return now + chance.randrange(4_000), f"k{chance.randrange(50)}"
        if kind < 0.8:
            return (now // 5_000 + 1) * 5_000, f"k{chance.randrange(15_000)}"  # a window's end, many keys
        if kind < 0.9:
            return now - chance.randrange(3_000), f"k{chance.randrange(50)}"
        return now + chance.randrange(1 << 32), f"k{chance.randrange(50)}"

    def change() -> None:
        stamp, key = drawn()
        if chance.random() < 0.8:
            service.register(stamp, key)
            expected.add((stamp, key))
        else:
            service.delete(stamp, key)
            expected.discard((stamp, key))

    for _ in range(12):
        for _ in range(chance.choice([100, 9_000])):
            change()
        if chance.random() < 0.2:  # most of it is deleted again
            for stamp, key in sorted(expected)[:: chance.choice([1, 2, 7])]:
                service.delete(stamp, key)
                expected.discard((stamp, key))
        if chance.random() < 0.6:
            frozen.append((backend.freeze(), set(expected)))
        now += chance.choice([1, 900, 6_000])
        before: list[tuple[int, str]] = []
        for _ in range(chance.choice([1, 3, 50])):
            due = [timer[:2] for timer in timers.due(now, 200)]
            expected.difference_update(due)
            before += due
            if chance.random() < 0.3:
                break
            change()
        # What came meanwhile may be earlier than what went before, so only slices are in order.
        rest = [timer[:2] for timer in timers.due(now, FOREVER)]
        assert rest == sorted(timer for timer in expected if timer[0] <= now)
        expected.difference_update(rest)
        assert len(timers) == len(expected)
        while frozen and chance.random() < 0.5:
            snapshot, was = frozen.pop(chance.randrange(len(frozen)))
            blocks = written(snapshot)
            snapshot.release()
            assert [timer[:2] for timer in fired(declared(restored(blocks)))] == sorted(was)
            if chance.random() < 0.3:
                for other, _ in frozen:
                    other.release()
                frozen.clear()
                backend, expected = restored(blocks), was
                timers = declared(backend)
                service = timers.service("")
    assert [timer[:2] for timer in fired(timers)] == sorted(expected)


@pytest.mark.parametrize(
    "stamp", [lambda i: i * 7_919 % 20_000, lambda i: 5, lambda i: i % 10], ids=["all", "one", "ten"]
)
def test_order_does_not_depend_on_where_somebody_paused(stamp: Any) -> None:
    together = [(stamp(i), f"k{i:05}", b"", "") for i in range(20_000)]
    orders = []
    for most in (FOREVER, 333):
        timers = declared(MemoryBackend(CODEC))
        for timer in together:
            register(timers, timer)
        order: list[Timer] = []
        while due := list(timers.due(100_000, most)):
            order += due
        orders.append(order)
    assert orders[0] == orders[1] == sorted(together)


def test_what_is_registered_while_timers_fire_is_picked_up_in_its_place() -> None:
    timers = declared(MemoryBackend(CODEC))
    service = timers.service("")
    for key in "bdf":
        service.register(10, key)
    service.register(20, "a")
    seen = []
    for stamp, key, _, _ in timers.due(20, FOREVER):
        seen.append((stamp, key))
        if (stamp, key) == (10, "b"):
            service.register(10, "a")  # before what just fired, at the same time
            service.register(10, "e")
            service.register(5, "z")
            service.register(15, "b")
            service.register(21, "b")
            service.delete(10, "d")
    assert seen == [(10, "b"), (5, "z"), (10, "a"), (10, "e"), (10, "f"), (15, "b"), (20, "a")]
    assert fired(timers) == [(21, "b", b"", "")]


def test_r103_a_timer_fires_when_the_watermark_is_its_timestamp_and_not_before() -> None:
    timers = declared(MemoryBackend(CODEC))
    timers.service("").register(100, "a")
    assert [fired(timers, watermark) for watermark in (99, 100, 101)] == [[], [(100, "a", b"", "")], []]


def test_r106_r101_what_came_due_while_the_job_was_down_fires_once_with_the_time_it_was_set_to() -> None:
    backend = MemoryBackend(CODEC)
    backend.timers(OPERATOR, "processing").service("").register(10, "a")
    backend.timers(OPERATOR, "event").service("").register(11, "a")
    timers = restored(written(backend.freeze())).timers(OPERATOR, "processing")
    assert timers.next_timestamp() == 10
    assert fired(timers, 60) == [(10, "a", b"", "")]
    assert timers.next_timestamp() is None


def test_r043_after_a_rescale_those_that_fired_stay_gone_and_the_others_fire_once() -> None:
    backend = MemoryBackend(CODEC)
    timers = declared(backend)
    for index, key in enumerate("abcdefghijklmnopqrstuvwxyz"):
        timers.service("").register(index, key)
    gone = fired(timers, 12)
    halves = [written(half.freeze()) for half in rescaled(written(backend.freeze()), 2)]
    fifths = rescaled([block for blocks in halves for block in blocks], 5)
    left = [timer for fifth in fifths for timer in fired(declared(fifth))]
    assert len(gone) == 13
    assert sorted([*gone, *left]) == [(i, key, b"", "") for i, key in enumerate("abcdefghijklmnopqrstuvwxyz")]


def test_a_barrier_in_the_middle_of_a_crowded_timestamp_finds_exactly_what_did_not_fire() -> None:
    backend = MemoryBackend(CODEC)
    timers = declared(backend)
    keys = [f"k{i:05}" for i in range(20_000)]
    for key in keys:
        timers.service("").register(7, key)
    first = [key for _, key, _, _ in timers.due(7, 9_000)]
    snapshot = backend.freeze()
    rest = [key for _, key, _, _ in timers.due(7, FOREVER)]
    again = [key for _, key, _, _ in fired(declared(restored(written(snapshot))))]
    assert first + rest == keys
    assert again == rest


# ── nothing grows ────────────────────────────────────────────────────────────────────────────


def grown(rounds: Any) -> int:
    tracemalloc.start()
    try:
        rounds(3)
        before = tracemalloc.get_traced_memory()[0]
        rounds(40)
        return tracemalloc.get_traced_memory()[0] - before
    finally:
        tracemalloc.stop()


def test_r156_registering_again_and_again_takes_no_memory() -> None:
    timers = declared(MemoryBackend(CODEC))

    def rounds(count: int) -> None:
        for _ in range(count):
            for window in range(20):
                for key in range(20):
                    timers.service("window", "window").register(window * 1_000, key, b"%d" % window)

    assert grown(rounds) < 3_000
    assert len(timers) == 400


@pytest.mark.parametrize("opened", [False, True])
def test_registering_and_deleting_in_turn_takes_no_memory(opened: bool) -> None:
    timers = declared(MemoryBackend(CODEC))
    service = timers.service("")
    for stamp in (0, 0, 5_000):
        service.register(stamp, f"k{stamp}")
        service.register(stamp, f"l{stamp}")
    if opened:
        assert len(list(timers.due(0, 1))) == 1

    def rounds(count: int) -> None:
        for _ in range(count):
            for stamp in range(0, 2_000_000, 20_000):
                service.register(stamp, "k")
                service.delete(stamp, "k")
            for key in range(100):
                service.register(0, f"m{key}")
                service.delete(0, f"m{key}")

    assert grown(rounds) < 60_000  # a few marks of what is gone, up to a bound
    assert len(timers) == (3 if opened else 4)


def test_cycles_of_registering_and_firing_take_no_memory() -> None:
    timers = declared(MemoryBackend(CODEC))
    service = timers.service("")
    now = 0

    def rounds(count: int) -> None:
        nonlocal now
        for _ in range(count):
            for index in range(300):
                service.register(now + index * 37 % 1_000, f"k{index % 7}")
            now += 1_000
            assert len(fired(timers, now)) == 300

    assert grown(rounds) < 20_000


def test_a_crowded_queue_that_is_deleted_to_a_few_lets_go_of_its_memory() -> None:
    tracemalloc.start()
    try:
        queue = TimerQueue()
        everything = [(stamp, f"k{key}") for stamp in range(5) for key in range(5_000)]
        everything += [(10_000 + index, "k") for index in range(20_000)]
        empty = tracemalloc.get_traced_memory()[0]
        for stamp, key in everything:
            queue.register(stamp, key)
        full = tracemalloc.get_traced_memory()[0] - empty
        for stamp, key in everything[8:]:
            queue.delete(stamp, key)
        assert tracemalloc.get_traced_memory()[0] - empty < full / 20
    finally:
        tracemalloc.stop()
    left = []
    while (key := queue.pop(FOREVER)) is not NOTHING:
        left.append((queue.now, key))
    assert left == everything[:8]


# ── what is refused ──────────────────────────────────────────────────────────────────────────


def test_namespaces_of_another_kind_than_what_was_restored_are_refused() -> None:
    backend = MemoryBackend(CODEC)
    backend.timers(OPERATOR, "event").service("w", "window").register(1, "a", b"x")
    blocks = written(backend.freeze())
    with pytest.raises(IncompatibleState, match=r"'w': .*declared as 'session' and were restored as 'window'"):
        restored(blocks).timers(OPERATOR, "event").service("w", "session")
    other = MemoryBackend(CODEC)
    other.timers(OPERATOR, "event").service("w")
    with pytest.raises(IncompatibleState, match=r"restored as 'window' and were declared as 'none'"):
        list(other.restore(OPERATOR, blocks))


def test_a_key_whose_class_is_not_known_any_more_is_refused() -> None:
    block = Block("", "timers:event:", [(b"\x43oh\x00no\x00",)], [1])
    with pytest.raises((IncompatibleState, CorruptObject), match="count"):
        restored([encode_block(CODEC, OPERATOR, block)])


def test_a_namespace_where_none_was_declared_is_refused() -> None:
    with pytest.raises(InvalidValue, match="without namespaces"):
        MemoryBackend(CODEC).timers(OPERATOR, "event").service("a").register(1, "k", b"n")


@pytest.mark.parametrize(("kind", "value"), [("", "soon"), ("", b"12345678"), ("window", 5), ("window", b"short")])
def test_what_is_not_a_timer_is_not_restored_as_one(kind: str, value: Any) -> None:
    block = Block("", f"timers:event:{kind}", ["k"], [value])
    with pytest.raises(CorruptObject, match="not a timer"):
        restored([encode_block(CODEC, OPERATOR, block)])


def test_services_that_nobody_declared_are_seen_after_a_restore() -> None:
    backend = MemoryBackend(CODEC)
    backend.timers(OPERATOR, "event").service("old").register(1, "a")
    timers = restored(written(backend.freeze())).timers(OPERATOR, "event")
    timers.service("new")
    assert timers.services() == ["new", "old"]


def test_keys_come_back_as_they_were() -> None:
    backend = MemoryBackend(CODEC)
    service = backend.timers(OPERATOR, "event").service("")
    keys = [None, b"b", "s", ("t", 1), 7, 1.5, True]
    for key in keys:
        service.register(3, token_of(key))
    timers = restored(written(backend.freeze())).timers(OPERATOR, "event")
    assert [key_of_token(token) for _, token, _, _ in fired(timers)] == keys
