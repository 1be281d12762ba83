from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from actorflow.errors import IncompatibleState, RestoreFailed
from actorflow.model.handles import InlineHandle
from actorflow.model.key_groups import SCHEME, key_group, range_of, subtask_of
from actorflow.model.manifest import ListHandle, Manifest, OperatorSnapshot, Redistribution, SubtaskSnapshot
from actorflow.protocol.recovery import KeyedPiece, OperatorShape, RestorePlan, SubtaskPlan, plan_restore

SPLIT, UNION, BROADCAST, KEYED = Redistribution

# ── a job in miniature: handles hold their content, readable ─────────────────────────────────

Keys = dict[int, dict[str, str]]  # by subtask
Lists = dict[str, list[list[str]]]  # by state, by subtask


def handle(items: Iterable[str]) -> InlineHandle:
    return InlineHandle("\n".join(items).encode())


def content(piece: InlineHandle) -> list[str]:
    return piece.data.decode().split("\n") if piece.data else []


def snapshot(
    name: str = "count",
    parallelism: int = 2,
    *,
    max_parallelism: int = 128,
    keys: Sequence[dict[str, str]] = (),
    lists: Lists | None = None,
    how: dict[str, Redistribution] | None = None,
    finished: Sequence[bool] = (),
    states: dict[str, str] | None = None,
) -> OperatorSnapshot:
    subtasks = []
    for subtask in range(parallelism):
        own = keys[subtask] if keys else {}
        subtasks.append(
            SubtaskSnapshot(
                subtask=subtask,
                finished=bool(finished) and finished[subtask],
                keyed=(handle(f"{key}={value}" for key, value in own.items()),) if own else (),
                lists=tuple(
                    ListHandle(
                        state=state,
                        redistribution=(how or {}).get(state, SPLIT),
                        count=len(held[subtask]),
                        handle=handle(held[subtask]),
                    )
                    for state, held in (lists or {}).items()
                ),
            )
        )
    return OperatorSnapshot(
        operator=name,
        parallelism=parallelism,
        max_parallelism=max_parallelism,
        subtasks=tuple(subtasks),
        states=({"total": "value"} if keys else {}) if states is None else states,
    )


def manifest(*operators: OperatorSnapshot, **more: Any) -> Manifest:
    facts = {"job": "words", "generation": 1, "checkpoint_id": 7, "kind": "periodic", "key_scheme": SCHEME}
    return Manifest(**{**facts, "written_at_ms": 0, "operators": operators, **more})


def shape(name: str = "count", parallelism: int = 2, **more: Any) -> OperatorShape:
    return OperatorShape(
        name=name,
        parallelism=parallelism,
        **{"vertex": name, "max_parallelism": 128, "max_parallelism_is_set": False, "emits_at_end": False, **more},
    )


def restore(snapshots: Sequence[OperatorSnapshot], *shapes: OperatorShape, **more: Any) -> RestorePlan:
    return plan_restore(manifest(*snapshots), shapes, **{"job": "words", **more})


def keys_of(plan: RestorePlan, operator: str, parallelism: int) -> list[dict[str, str]]:
    """What each new subtask reads back, as it would."""
    groups = plan.max_parallelism[operator]
    held: list[dict[str, str]] = []
    for subtask in range(parallelism):
        own: dict[str, str] = {}
        for piece in plan.of(operator, subtask).keyed:
            assert isinstance(piece.handle, InlineHandle)
            for entry in content(piece.handle):
                key, _, value = entry.partition("=")
                if piece.only is None or key_group(key, groups) in piece.only:
                    assert key not in own, f"{key} came twice"
                    own[key] = value
        held.append(own)
    return held


def lists_of(plan: RestorePlan, operator: str, state: str, parallelism: int) -> list[list[str]]:
    held: list[list[str]] = []
    for subtask in range(parallelism):
        own: list[str] = []
        for piece in plan.of(operator, subtask).lists:
            if piece.state == state:
                assert isinstance(piece.handle, InlineHandle)
                own += content(piece.handle)[piece.start : piece.stop]
        held.append(own)
    return held


def spread(words: Iterable[str], parallelism: int, groups: int) -> list[dict[str, str]]:
    held: list[dict[str, str]] = [{} for _ in range(parallelism)]
    for word in words:
        held[subtask_of(key_group(word, groups), parallelism, groups)][word] = word.upper()
    return held


WORDS = [f"word{number}" for number in range(60)]


# ── keyed state ──────────────────────────────────────────────────────────────────────────────


@given(groups=st.integers(1, 300), data=st.data())
def test_inv_5_1_every_key_group_goes_to_exactly_one_subtask_and_to_its_owner(groups: int, data: st.DataObject) -> None:
    old, new = (data.draw(st.integers(1, min(groups, 40))) for _ in range(2))
    held = [{str(subtask): ""} for subtask in range(old)]
    plan = restore([snapshot(parallelism=old, max_parallelism=groups, keys=held)], shape(parallelism=new, states=TOTAL))

    received: list[int] = []
    for subtask in range(new):
        for piece in plan.of("count", subtask).keyed:
            there = range_of(piece.subtask, old, groups)
            taken = there if piece.only is None else [group for group in there if group in piece.only]
            assert set(taken) <= set(range_of(subtask, new, groups)), "only what it owns"
            assert taken, "and no piece for nothing"
            received += taken

    assert list(range(groups)) == sorted(received)


TOTAL = {"total": "value"}


@pytest.mark.parametrize("there", [1, 2, 3, 5, 8])
@pytest.mark.parametrize("back", [1, 2, 3, 7])
def test_inv_5_2_rescaling_there_and_back_gives_the_same_map(there: int, back: int) -> None:
    before = spread(WORDS, back, 128)

    away = keys_of(
        restore([snapshot(parallelism=back, keys=before)], shape(parallelism=there, states=TOTAL)), "count", there
    )
    again = keys_of(
        restore([snapshot(parallelism=there, keys=away)], shape(parallelism=back, states=TOTAL)), "count", back
    )

    assert spread(WORDS, there, 128) == away
    assert before == again


@pytest.mark.parametrize("parallelism", [1, 3, 128])
def test_r037_key_groups_that_never_wrote_anything_restore_at_any_parallelism(parallelism: int) -> None:
    held = spread(["lonely"], 5, 128)

    plan = restore([snapshot(parallelism=5, keys=held)], shape(parallelism=parallelism, states=TOTAL))

    assert spread(["lonely"], parallelism, 128) == keys_of(plan, "count", parallelism)


def test_at_the_same_parallelism_a_subtask_reads_its_own_pieces_and_filters_nothing() -> None:
    held = spread(WORDS, 3, 128)
    taken = snapshot(parallelism=3, keys=held)

    plan = restore([taken], shape(parallelism=3, states=TOTAL))

    own = [SubtaskPlan(one.subtask, keyed=(KeyedPiece(one.keyed[0], one.subtask),)) for one in taken.subtasks]
    assert own == list(plan.operators["count"].subtasks)


def test_whoever_takes_over_whole_ranges_filters_nothing() -> None:
    plan = restore([snapshot(parallelism=4, keys=spread(WORDS, 4, 128))], shape(parallelism=2, states=TOTAL))

    assert [(0, None), (1, None)] == [(piece.subtask, piece.only) for piece in plan.of("count", 0).keyed]


# ── list state ───────────────────────────────────────────────────────────────────────────────


def test_split_lists_are_dealt_out_in_chunks_the_remainder_to_the_first_ones() -> None:
    held = [["a", "b", "c"], ["d", "e"], []]

    plan = restore([snapshot(parallelism=3, lists={"files": held})], shape(lists={"files": SPLIT}))

    assert [["a", "b", "c"], ["d", "e"]] == lists_of(plan, "count", "files", 2)


def test_the_first_receiver_goes_round_from_name_to_name() -> None:
    one_each: Lists = {name: [["x"], [], []] for name in ("a", "b", "c", "d")}

    plan = restore(
        [snapshot(parallelism=3, lists=one_each)], shape(parallelism=2, lists=dict.fromkeys(one_each, SPLIT))
    )

    assert [[["x"], []], [[], ["x"]], [["x"], []], [[], ["x"]]] == [
        lists_of(plan, "count", name, 2) for name in one_each
    ]


def test_more_subtasks_than_elements_leave_some_with_nothing() -> None:
    plan = restore(
        [snapshot(parallelism=1, lists={"files": [["a", "b"]]})], shape(parallelism=4, lists={"files": SPLIT})
    )

    assert [["a"], ["b"], [], []] == lists_of(plan, "count", "files", 4)


@given(st.lists(st.lists(st.text("abc", min_size=1), max_size=5), min_size=1, max_size=6), st.integers(1, 8))
def test_every_split_element_goes_to_exactly_one_subtask_in_shares_that_differ_by_one(
    held: list[list[str]], parallelism: int
) -> None:
    old = len(held)
    plan = restore(
        [snapshot(parallelism=old, lists={"files": held})], shape(parallelism=parallelism, lists={"files": SPLIT})
    )
    dealt = lists_of(plan, "count", "files", parallelism)

    if old == parallelism:
        assert held == dealt
    else:
        assert [element for one in held for element in one] == [element for one in dealt for element in one]
        assert max(map(len, dealt)) - min(map(len, dealt)) <= 1


@pytest.mark.parametrize("parallelism", [1, 2, 3])
def test_inv_5_3_every_subtask_sees_the_whole_union(parallelism: int) -> None:
    taken = snapshot(lists={"splits": [["a", "b"], ["c"]]}, how={"splits": UNION})

    plan = restore([taken], shape(parallelism=parallelism, lists={"splits": UNION}))

    assert [["a", "b", "c"]] * parallelism == lists_of(plan, "count", "splits", parallelism)


def test_a_subtask_reads_the_broadcast_copy_of_its_number_modulo_the_old_parallelism() -> None:
    taken = snapshot(lists={"rules": [["copy0"], ["copy1"]]}, how={"rules": BROADCAST})

    plan = restore([taken], shape(parallelism=5, lists={"rules": BROADCAST}))

    assert [["copy0"], ["copy1"], ["copy0"], ["copy1"], ["copy0"]] == lists_of(plan, "count", "rules", 5)


def test_keyed_elements_go_to_whoever_owns_their_key_now() -> None:
    taken = snapshot(lists={"calls": [["a"], ["b"]]}, how={"calls": KEYED})

    same = restore([taken], shape(lists={"calls": KEYED}))
    more = restore([taken], shape(parallelism=3, lists={"calls": KEYED}))
    other_groups = restore([taken], shape(lists={"calls": KEYED}, max_parallelism=64))

    assert [[(0, None)], [(1, None)]] == [only_of(same, subtask) for subtask in range(2)]
    for subtask in range(3):
        owned = range_of(subtask, 3, 128)
        assert [(0, owned), (1, owned)] == only_of(more, subtask)
    assert [(0, range(32)), (1, range(32))] == only_of(other_groups, 0)


def only_of(plan: RestorePlan, subtask: int) -> list[tuple[int, range | None]]:
    return [(piece.subtask, piece.only) for piece in plan.of("count", subtask).lists]


# ── subtasks that had finished ───────────────────────────────────────────────────────────────


def flags_of(plan: RestorePlan, operator: str, parallelism: int) -> list[bool]:
    return [plan.of(operator, subtask).finished for subtask in range(parallelism)]


def test_inv_4_3_at_the_same_parallelism_those_that_had_finished_stay_so() -> None:
    plan = restore([snapshot(finished=(True, False))], shape(emits_at_end=True))

    assert [True, False] == flags_of(plan, "count", 2)


@pytest.mark.parametrize("parallelism", [1, 2, 3])
def test_where_all_had_finished_all_have_at_any_parallelism(parallelism: int) -> None:
    plan = restore([snapshot(finished=(True, True))], shape(parallelism=parallelism, emits_at_end=True))

    assert [True] * parallelism == flags_of(plan, "count", parallelism)


def test_r034_a_source_of_which_one_subtask_had_finished_is_dealt_out_anew_with_all_its_splits() -> None:
    taken = snapshot("read", finished=(True, False), lists={"splits": [["s1@end"], ["s2@3", "s3@0"]]})

    plan = restore([taken], shape("read", parallelism=3, lists={"splits": SPLIT}))

    assert [["s1@end"], ["s2@3"], ["s3@0"]] == lists_of(plan, "read", "splits", 3)
    assert [False] * 3 == flags_of(plan, "read", 3)


def test_what_had_partly_emitted_its_last_output_is_not_dealt_out_anew() -> None:
    taken = snapshot(finished=(True, False), keys=spread(WORDS, 2, 128))

    with pytest.raises(IncompatibleState, match=r"'count': its subtasks \[0\] .* go on with parallelism 2, not 3"):
        restore([taken], shape(parallelism=3, emits_at_end=True, states=TOTAL))


@pytest.mark.parametrize(
    ("upstream", "why"),
    [
        ((), "is new"),
        ((snapshot("read", finished=(True, False)),), "had not"),
    ],
)
def test_nothing_unfinished_may_feed_what_had_finished(upstream: tuple[OperatorSnapshot, ...], why: str) -> None:
    with pytest.raises(IncompatibleState, match=rf"'count' had finished.*'read'.*{why}"):
        restore([snapshot(finished=(True, True)), *upstream], shape("read"), shape(upstream=("read",)))


def test_where_one_side_had_partly_finished_its_sources_keep_their_parallelism() -> None:
    taken = [snapshot("read", finished=(True, False)), snapshot(finished=(True, False))]

    kept = restore(taken, shape("read"), shape(upstream=("read",)))

    assert [True, False] == flags_of(kept, "count", 2) == flags_of(kept, "read", 2)
    with pytest.raises(IncompatibleState, match="'read', which feeds it, has another parallelism now"):
        restore(taken, shape("read", parallelism=3), shape(upstream=("read",)))


def test_a_chain_of_finished_and_new_operators_is_refused() -> None:
    with pytest.raises(IncompatibleState, match="'count' and 'shout' run in one chain"):
        restore([snapshot(finished=(True, True))], shape(), shape("shout", vertex="count", upstream=("count",)))


# ── how many key groups ──────────────────────────────────────────────────────────────────────


def test_the_key_groups_of_the_snapshot_win_over_derived_ones_for_the_whole_chain() -> None:
    taken = snapshot(max_parallelism=16, keys=spread(WORDS, 2, 16))

    plan = restore([taken], shape(states=TOTAL, parallelism=3), shape("write", vertex="count", parallelism=3))

    assert {"count": 16} == plan.max_parallelism
    assert spread(WORDS, 3, 16) == keys_of(plan, "count", 3)


def test_key_groups_that_the_user_set_otherwise_are_refused() -> None:
    taken = snapshot(max_parallelism=16, keys=spread(WORDS, 2, 16))

    with pytest.raises(IncompatibleState, match=r"'count'.* 16 key groups.*now set to 32; set 16"):
        restore([taken], shape(states=TOTAL, max_parallelism=32, max_parallelism_is_set=True))


def test_r046_a_parallelism_beyond_the_key_groups_is_refused_with_the_reason() -> None:
    taken = snapshot(max_parallelism=8, keys=spread(WORDS, 2, 8))

    assert 8 == len(restore([taken], shape(parallelism=8, states=TOTAL)).operators["count"].subtasks)
    with pytest.raises(IncompatibleState, match=r"'count'.*8 key groups \(max_parallelism\).*parallelism is 9; lower"):
        restore([taken], shape(parallelism=9, states=TOTAL))


def test_where_there_is_no_keyed_state_the_key_groups_are_the_plans() -> None:
    taken = snapshot("read", max_parallelism=128, lists={"splits": [["a"], ["b"]]})

    plan = restore(
        [taken],
        shape("read", parallelism=200, max_parallelism=512, max_parallelism_is_set=True, lists={"splits": SPLIT}),
    )

    assert {"read": 512} == plan.max_parallelism


def test_two_numbers_of_key_groups_in_one_chain_are_refused() -> None:
    first = snapshot("count", max_parallelism=16, keys=spread(WORDS, 2, 16))
    second = snapshot("top", max_parallelism=32, keys=spread(WORDS, 2, 32))

    with pytest.raises(IncompatibleState, match=r"'count' and 'top' run in one chain.* 16 and 32 key groups"):
        restore([first, second], shape(states=TOTAL), shape("top", vertex="count", states=TOTAL))


# ── what does not fit ────────────────────────────────────────────────────────────────────────


def test_a_new_operator_starts_empty() -> None:
    plan = restore([], shape("new"))

    assert SubtaskPlan(1) == plan.of("new", 1)
    assert {"new": 128} == plan.max_parallelism


def test_an_operator_without_state_may_go() -> None:
    assert () == restore([snapshot("shout"), snapshot("empty", lists={"files": [[], []]})]).unclaimed


@pytest.mark.parametrize(
    "gone", [snapshot("gone", keys=spread(WORDS, 2, 128)), snapshot("gone", lists={"files": [["a"], []]})]
)
def test_state_of_an_operator_that_is_gone_is_refused_by_name_unless_allowed(gone: OperatorSnapshot) -> None:
    with pytest.raises(IncompatibleState, match=r"operator 'gone', which this job does not have.*ignore-unclaimed"):
        restore([gone], shape())

    assert ("gone",) == restore([gone], shape(), allow_unclaimed=True).unclaimed


def test_a_state_that_is_not_declared_any_more_is_refused_by_name_unless_allowed() -> None:
    taken = snapshot(keys=spread(WORDS, 2, 128), lists={"files": [["a"], []]})

    with pytest.raises(IncompatibleState) as refusal:
        restore([taken], shape())
    plan = restore([taken], shape(), allow_unclaimed=True)

    assert "operator 'count', state 'total': it is not declared any more" in str(refusal.value)
    assert "operator 'count', state 'files': it is not declared any more" in str(refusal.value)
    assert ("total",) == plan.operators["count"].dropped
    assert () == plan.of("count", 0).lists


@pytest.mark.parametrize(
    ("taken", "now", "said"),
    [
        (
            snapshot(states={"total": "value"}),
            shape(states={"total": "map"}),
            "keyed value state and is now a keyed map",
        ),
        (snapshot(states={"total": "value"}), shape(lists={"total": SPLIT}), "now a list dealt out by split"),
        (snapshot(lists={"total": [["a"], []]}), shape(states={"total": "list"}), "list dealt out by split and is now"),
        (snapshot(lists={"total": [["a"], []]}), shape(lists={"total": UNION}), "split and is now a list dealt out by"),
    ],
)
def test_a_state_that_changed_its_kind_is_refused(taken: OperatorSnapshot, now: OperatorShape, said: str) -> None:
    for allowed in (False, True):
        with pytest.raises(IncompatibleState, match=rf"operator 'count', state 'total': it was a .*{said}"):
            restore([taken], now, allow_unclaimed=allowed)


def test_another_way_from_keys_to_key_groups_is_refused() -> None:
    with pytest.raises(IncompatibleState, match=r"by 'md5/9' and this version by 'crc32/1'"):
        plan_restore(manifest(key_scheme="md5/9"), (), job="words")


def test_a_checkpoint_of_another_job_is_refused_unless_a_path_named_it() -> None:
    with pytest.raises(RestoreFailed, match=r"checkpoint 7 of job 'words' is not of job 'letters'"):
        plan_restore(manifest(), (), job="letters")

    assert 7 == plan_restore(manifest(), (), job=None).checkpoint_id


def test_everything_that_does_not_fit_is_told_at_once() -> None:
    with pytest.raises(IncompatibleState) as refusal:
        restore(
            [snapshot("gone", keys=spread(WORDS, 2, 128)), snapshot(states={"total": "value"})],
            shape(states={"total": "map"}, max_parallelism=64, max_parallelism_is_set=True),
        )

    assert str(refusal.value).startswith("checkpoint 7 of job 'words' does not fit this job:\n* ")
    assert 3 == str(refusal.value).count("\n* ")


@pytest.mark.parametrize(
    "damage",
    [
        lambda one: replace(one, subtasks=one.subtasks[:1]),
        lambda one: replace(one, subtasks=(one.subtasks[0], one.subtasks[0])),
        lambda one: replace(one, max_parallelism=1),
    ],
)
def test_a_manifest_that_contradicts_itself_is_refused(damage: Any) -> None:
    with pytest.raises(IncompatibleState, match="it is damaged"):
        restore([damage(snapshot())], shape())
