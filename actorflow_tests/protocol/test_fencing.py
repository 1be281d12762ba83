from __future__ import annotations

import copy
import pickle
from dataclasses import FrozenInstanceError, replace
from typing import Any

import pytest

from actorflow.errors import AbortReason, CorruptObject
from actorflow.protocol.fencing import (
    AbortCheckpoint,
    AlreadyFinished,
    Answer,
    BaseRead,
    BaseWritten,
    CheckpointReady,
    ClaimAnswered,
    ClaimRead,
    CommitPermit,
    Effect,
    Ended,
    Event,
    Fencing,
    HomeListed,
    ListHome,
    ListOwners,
    ManifestAnswered,
    ManifestRead,
    MarkFinished,
    OwnersListed,
    Permit,
    PutManifest,
    ReadBase,
    ReadClaim,
    ReadManifest,
    Restore,
    SetFinishedAside,
    StandDown,
    Started,
    Sweep,
    WriteBase,
    WriteClaim,
)
from actorflow.protocol.fencing_steps import (
    Basing,
    Claiming,
    Confirming,
    ConfirmingEnd,
    Ending,
    Idle,
    Listing,
    Looking,
    ReadingManifests,
    Recognizing,
    Running,
    StoodDown,
)
from actorflow.protocol.machine import replay
from actorflow.protocol.ownership import (
    Base,
    Claim,
    FromCheckpoint,
    FromNothing,
    FromPath,
    Latest,
    Nothing,
    Path,
    Told,
)
from actorflow_tests.protocol.owners import Walk, owner, the_permit
from actorflow_tests.protocol.walking import walk

# ── every order ──────────────────────────────────────────────────────────────────────────────


def test_inv_11_4_four_owners_in_every_order_permit_one_line_of_checkpoints() -> None:
    assert Walk(owner(), owner(), owner(), owner()).run() > 50_000


def test_inv_11_4_three_owners_that_look_step_by_step_permit_one_line() -> None:
    assert Walk(owner(), owner(), owner(), in_steps=True).run() > 5_000


def test_nothing_that_is_restored_was_deleted_by_an_owner_that_stalled() -> None:
    assert Walk(owner(), owner(), owner(), in_steps=True, deletes=True).run() > 10_000


def test_lost_answers_and_writes_that_land_late_leave_one_line() -> None:
    left, right = owner(process="left", losses=1, checkpoints=1), owner(process="right", losses=1)

    assert Walk(left, right, deletes=True).run() > 10_000


def test_an_owner_that_restarts_by_itself_gives_way_to_one_that_started_later() -> None:
    left, right = owner(process="left", restarts=1), owner(process="right", restarts=1, checkpoints=1)

    assert Walk(left, right, deletes=True).run() > 5_000


def test_a_job_that_came_to_its_end_never_begins_again() -> None:
    ending = owner(ends=True, checkpoints=1)

    assert Walk(ending, ending, ending, deletes=True).run() > 5_000


def test_a_start_from_nothing_leaves_the_old_line_for_good() -> None:
    fresh = owner(Nothing(), checkpoints=1, ends=True)

    assert Walk(owner(Nothing(), checkpoints=1), owner(checkpoints=1), fresh, deletes=True).run() > 10_000


@pytest.mark.slow
def test_two_owners_with_lost_answers_and_two_checkpoints_each_leave_one_line() -> None:
    left, right = owner(process="left", losses=1), owner(process="right", losses=1)

    assert Walk(left, right, in_steps=True, deletes=True).run() > 100_000


# ── the walk finds what it should ────────────────────────────────────────────────────────────


class WithoutSecondLook(Fencing):
    """Runs as soon as its base is written."""

    __slots__ = ()

    def decide(self, event: Event) -> list[Effect]:
        effects = super().decide(event)
        if isinstance(self.phase, Confirming):
            assert self.generation is not None
            return super().decide(OwnersListed((self.generation,)))
        return effects


class WithoutBase(Fencing):
    """Takes the newest manifest of the newest generation that has one for the truth, and writes no base."""

    __slots__ = ()

    def decide(self, event: Event) -> list[Effect]:
        match self.phase, event:
            case Looking(generation), HomeListed(manifests=ids) as home if ids:
                nothing = Base(generation=0, start=FromNothing(), next_id=1, line=0)
                return self._read(ReadingManifests(generation, home, nothing, ids))
            case ReadingManifests(generation, home, best, candidates), ManifestRead(number, by):
                assert by is not None
                if not isinstance(best.start, FromCheckpoint) or by >= best.start.generation:
                    best = Base(generation=0, start=FromCheckpoint(number, by), next_id=1, line=0)
                if candidates[1:]:
                    return self._read(ReadingManifests(generation, home, best, candidates[1:]))
                super()._found(generation, home, best, None)
                return super().decide(BaseWritten())
        effects = super().decide(event)
        return super().decide(BaseWritten()) if [WriteBase] == list(map(type, effects)) else effects


class WithoutLookAfterTheManifest(Fencing):
    """Permits as soon as the manifest is written."""

    __slots__ = ()

    def decide(self, event: Event) -> list[Effect]:
        effects = super().decide(event)
        if isinstance(self.phase, Running) and self.phase.listing:
            assert self.generation is not None
            return super().decide(OwnersListed((self.generation,)))
        return effects


@pytest.mark.parametrize(
    ("kind", "owners"), [(WithoutSecondLook, 2), (WithoutLookAfterTheManifest, 2), (WithoutBase, 4)]
)
def test_the_walk_finds_every_step_that_is_left_out(kind: type[Fencing], owners: int) -> None:
    with pytest.raises(AssertionError, match=r"output doubles|forgets|runs without it") as failure:
        Walk(*[owner()] * owners, kind=kind).run()

    assert "the owners went through" in failure.value.__notes__[0]


# ── claim, look, base ────────────────────────────────────────────────────────────────────────


def fencing(told: Told | None = None) -> Fencing:
    return Fencing(told or Latest(), host="host", process="one")


def base(generation: int, **more: Any) -> Base:
    return Base(**{"generation": generation, "start": FromNothing(), "next_id": 1, "line": generation, **more})


def claims(machine: Fencing, generations: tuple[int, ...] = ()) -> None:
    """It claims the generation after those that there are."""
    machine.on(Started(at_ms=7))
    [written] = machine.on(OwnersListed(generations))
    assert isinstance(written, WriteClaim)
    assert [ListHome()] == machine.on(ClaimAnswered(Answer.WRITTEN))


def looks(machine: Fencing, truth: Base, home: HomeListed | None = None, **manifests: int) -> Base:
    """It claims the next generation, finds a base, and writes its own."""
    claims(machine, (truth.generation,))
    machine.on(home or HomeListed(bases=(truth.generation,)))
    effects = machine.on(BaseRead(truth))
    while isinstance(effects[0], ReadManifest):
        number = effects[0].checkpoint_id
        effects = machine.on(ManifestRead(number, manifests.get(f"m{number}")))
    [written] = effects
    assert isinstance(written, WriteBase)
    return written.base


def starts(machine: Fencing) -> list[Effect]:
    """Its base is written and its claim is still the newest."""
    assert [ListOwners()] == machine.on(BaseWritten())
    assert machine.generation is not None
    return machine.on(OwnersListed((machine.generation,)))


def runs(machine: Fencing) -> None:
    """It runs in an empty home."""
    claims(machine)
    machine.on(HomeListed())
    starts(machine)


def test_an_empty_home_is_started_from_nothing_with_the_first_id() -> None:
    machine = fencing()

    assert [ListOwners()] == machine.on(Started(at_ms=7))
    claim = Claim(generation=1, host="host", process="one", at_ms=7, told="latest")
    assert [WriteClaim(claim)] == machine.on(OwnersListed(()))
    assert [ListHome()] == machine.on(ClaimAnswered(Answer.WRITTEN))
    assert [WriteBase(base(1))] == machine.on(HomeListed())
    assert [ListOwners()] == machine.on(BaseWritten())
    assert [Restore(base(1), None), Sweep(generation=1, below=1, keep=())] == machine.on(OwnersListed((1,)))


def test_a_claim_that_was_lost_to_another_is_tried_with_the_next_generation() -> None:
    machine = fencing()
    machine.on(Started(at_ms=7))
    machine.on(OwnersListed((1, 2)))

    assert [ListOwners()] == machine.on(ClaimAnswered(Answer.TAKEN))
    [written] = machine.on(OwnersListed((1, 2, 3)))
    assert isinstance(written, WriteClaim)
    assert 4 == written.claim.generation


def test_the_truth_is_the_newest_manifest_of_the_newest_generation_that_has_a_base() -> None:
    home = HomeListed(bases=(3, 4), checkpoints=(6, 7, 8, 9), manifests=(6, 7, 8, 9))
    machine = fencing()
    claims(machine, (3, 4, 5))

    assert [ReadBase(4)] == machine.on(home)
    assert [ReadManifest(9)] == machine.on(BaseRead(base(4, next_id=7, line=1)))
    assert [ReadManifest(8)] == machine.on(ManifestRead(9, generation=3))  # dead, however new
    [written] = machine.on(ManifestRead(8, generation=4, retained=(7,)))

    assert WriteBase(base(6, start=FromCheckpoint(8, 4, (7,)), next_id=10, line=1)) == written


def test_a_generation_without_manifests_leaves_its_base_to_the_next() -> None:
    start = FromCheckpoint(5, 2, (4,))
    home = HomeListed(bases=(3,), checkpoints=(4, 5, 6), manifests=(4, 5, 6))

    found = looks(fencing(), base(3, start=start, next_id=6, line=1), home, m6=2)

    assert base(4, start=start, next_id=7, line=1) == found


def test_r010_the_next_id_is_beyond_every_name_in_the_home_and_every_id_that_was_ever_given() -> None:
    home = HomeListed(bases=(1,), checkpoints=(4, 5, 6), manifests=(4,))
    swept = HomeListed(bases=(1,), checkpoints=(4,), manifests=(4,))

    assert 7 == looks(fencing(), base(1), home, m4=1).next_id
    assert 12 == looks(fencing(), base(1, next_id=12), swept).next_id


def test_an_empty_manifest_keeps_an_id_and_is_nobodys_checkpoint() -> None:
    home = HomeListed(bases=(1,), checkpoints=(4, 5), manifests=(4, 5))

    found = looks(fencing(), base(1), home, m5=0, m4=1)

    assert FromCheckpoint(4, 1) == found.start
    assert 6 == found.next_id


def test_what_the_restored_checkpoint_left_is_committed_only_after_the_second_look() -> None:
    machine = fencing()
    truth = base(2, start=FromCheckpoint(5, 1, (4,)), next_id=6, line=1)
    mine = looks(machine, truth)

    effects = starts(machine)

    assert [Restore(mine, the_permit(5, 3)), Sweep(generation=3, below=6, keep=(4, 5))] == effects


def test_an_owner_stands_down_when_its_base_came_too_late() -> None:
    machine = fencing()
    claims(machine)
    machine.on(HomeListed())
    machine.on(BaseWritten())

    assert [StandDown(2)] == machine.on(OwnersListed((1, 2)))
    assert [] == machine.on(OwnersListed((1, 2)))
    assert [StandDown(2)] == machine.on(Started(at_ms=9))


def test_an_owner_that_finds_a_newer_base_stands_down_before_it_reads_anything() -> None:
    machine = fencing()
    claims(machine)

    assert [StandDown(2)] == machine.on(HomeListed(bases=(2,)))


# ── restarts in one process ──────────────────────────────────────────────────────────────────


def test_a_restart_claims_anew_and_goes_on_from_its_own_base() -> None:
    machine = fencing()
    runs(machine)

    found = looks(machine, base(1))

    assert base(2, line=1) == found
    assert 2 == machine.generation


def test_a_restart_that_finds_a_newer_claim_gives_way() -> None:
    machine = fencing()
    runs(machine)
    machine.on(Started(at_ms=9))

    assert [ReadClaim(2)] == machine.on(OwnersListed((1, 2)))
    other = Claim(generation=2, host="host", process="two", at_ms=8, told="latest")
    assert [StandDown(2)] == machine.on(ClaimRead(other))


def test_a_restart_knows_its_own_claim_whose_answer_was_lost() -> None:
    machine = fencing()
    runs(machine)
    machine.on(Started(at_ms=9))
    [written] = machine.on(OwnersListed((1,)))
    assert isinstance(written, WriteClaim)

    assert [ListOwners()] == machine.on(ClaimAnswered(Answer.LOST))
    assert [ReadClaim(2)] == machine.on(OwnersListed((1, 2)))
    [again] = machine.on(ClaimRead(written.claim))

    assert isinstance(again, WriteClaim)
    assert 3 == again.claim.generation


def test_a_claim_that_was_swept_while_it_was_looked_at_is_looked_for_again() -> None:
    machine = fencing()
    runs(machine)
    machine.on(Started(at_ms=9))
    machine.on(OwnersListed((1, 2)))

    assert [ListOwners()] == machine.on(ClaimRead(None))


# ── what a start was told ────────────────────────────────────────────────────────────────────


def test_r032_nothing_is_obeyed_once_by_a_process_and_its_restarts_go_on_from_the_latest() -> None:
    machine = fencing(Nothing())
    old = base(3, start=FromCheckpoint(5, 2), next_id=6, line=1)
    home = HomeListed(bases=(3,), checkpoints=(5, 6), manifests=(5, 6))
    claims(machine, (3,))
    machine.on(home)
    fresh = base(4, next_id=7)
    assert [WriteBase(fresh)] == machine.on(BaseRead(old))  # not even asks for the manifests
    assert [Restore(fresh, None), Sweep(generation=4, below=7, keep=())] == starts(machine)

    restarted = looks(machine, fresh, HomeListed(bases=(4,), checkpoints=(7,), manifests=(7,)), m7=4)

    assert base(5, start=FromCheckpoint(7, 4), next_id=8, line=4) == restarted


def test_nothing_is_obeyed_again_by_a_new_process() -> None:
    found = looks(fencing(Nothing()), base(3, start=FromCheckpoint(5, 2), next_id=6, line=1))

    assert base(4, next_id=6) == found


def test_r031_a_path_and_its_options_hold_for_every_attempt_until_a_checkpoint_completes() -> None:
    told = Path(path="/snapshots/chk-9", allow_unclaimed=True)
    start = FromPath("/snapshots/chk-9", allow_unclaimed=True)
    machine = fencing(told)
    first = looks(machine, base(1, next_id=5))
    assert base(2, start=start, next_id=5, obeyed=("/snapshots/chk-9",)) == first
    assert [Restore(first, the_permit(4, 2)), Sweep(generation=2, below=5, keep=())] == starts(machine)

    assert start == looks(machine, first).start
    assert start == looks(fencing(), first).start  # a new process that was told nothing special


def test_r031_after_the_first_checkpoint_of_its_line_the_latest_manifest_wins() -> None:
    machine = fencing(Path(path="/snapshots/chk-9"))
    first = looks(machine, base(1, next_id=5))
    starts(machine)

    restarted = looks(machine, first, HomeListed(bases=(2,), checkpoints=(5,), manifests=(5,)), m5=2)

    assert FromCheckpoint(5, 2) == restarted.start


@pytest.mark.parametrize("again", ["/snapshots/chk-9", "/snapshots/chk-9/", "/snapshots/chk-9/_metadata"])
def test_a_path_is_obeyed_once_per_home_and_a_start_that_repeats_it_says_so(again: str) -> None:
    line = base(2, start=FromPath("/snapshots/chk-9"), obeyed=("/snapshots/chk-9",))
    home = HomeListed(bases=(2,), checkpoints=(5,), manifests=(5,))
    machine = fencing(Path(path=again))

    mine = looks(machine, line, home, m5=2)
    restore = starts(machine)[0]

    assert FromCheckpoint(5, 2) == mine.start
    assert Restore(mine, the_permit(5, 3), ignored_path=again) == restore


def test_rewind_insists_on_a_path_that_was_obeyed() -> None:
    line = base(2, start=FromPath("/chk-9"), obeyed=("/chk-9",))
    home = HomeListed(bases=(2,), checkpoints=(5,), manifests=(5,))

    mine = looks(fencing(Path(path="/chk-9", rewind=True)), line, home)

    assert base(3, start=FromPath("/chk-9"), next_id=6, obeyed=("/chk-9",)) == mine


def test_a_path_that_is_repeated_before_any_checkpoint_may_bring_other_options() -> None:
    refused = base(2, start=FromPath("/chk-9"), obeyed=("/chk-9",))

    mine = looks(fencing(Path(path="/chk-9", allow_unclaimed=True)), refused)

    assert FromPath("/chk-9", allow_unclaimed=True) == mine.start


def test_a_checkpoint_of_this_home_that_was_restored_by_path_is_never_swept() -> None:
    machine = fencing(Path(path="/home/chk-3", own_checkpoint=3))
    old = base(1, next_id=5)
    mine = looks(machine, old)

    assert (3,) == mine.held
    assert Sweep(generation=2, below=5, keep=(3,)) == starts(machine)[1]
    assert (3,) == looks(fencing(Nothing()), mine).held


# ── complete ─────────────────────────────────────────────────────────────────────────────────


def test_r111_a_checkpoint_is_permitted_only_after_a_look_that_began_when_its_manifest_was_there() -> None:
    machine = fencing()
    runs(machine)

    assert [PutManifest(1)] == machine.on(CheckpointReady(1))
    assert [ListOwners()] == machine.on(ManifestAnswered(1, Answer.WRITTEN))
    assert [Permit(the_permit(1, 1))] == machine.on(OwnersListed((1,)))


def test_r111_a_process_that_was_paused_before_its_commit_is_refused() -> None:
    machine = fencing()
    runs(machine)
    machine.on(CheckpointReady(1))
    machine.on(ManifestAnswered(1, Answer.WRITTEN))

    assert [StandDown(2)] == machine.on(OwnersListed((1, 2)))
    assert [] == machine.on(CheckpointReady(2))
    assert machine.published is None


def test_a_manifest_that_is_written_while_a_look_is_under_way_waits_for_the_next_look() -> None:
    machine = fencing()
    runs(machine)
    for number in (1, 2):
        machine.on(CheckpointReady(number))
    machine.on(ManifestAnswered(1, Answer.WRITTEN))

    assert [] == machine.on(ManifestAnswered(2, Answer.WRITTEN))
    assert [Permit(the_permit(1, 1)), ListOwners()] == machine.on(OwnersListed((1,)))
    assert [Permit(the_permit(2, 1))] == machine.on(OwnersListed((1,)))


def test_a_manifest_that_arrives_after_a_newer_one_was_permitted_changes_nothing() -> None:
    machine = fencing()
    runs(machine)
    for number in (1, 2):
        machine.on(CheckpointReady(number))
    machine.on(ManifestAnswered(2, Answer.WRITTEN))
    machine.on(OwnersListed((1,)))

    assert [] == machine.on(ManifestAnswered(1, Answer.WRITTEN))


@pytest.mark.parametrize("answer", [Answer.TAKEN, Answer.LOST])
def test_when_the_answer_does_not_tell_the_object_does(answer: Answer) -> None:
    machine = fencing()
    looks(machine, base(1))
    starts(machine)
    machine.on(CheckpointReady(1))

    assert [ReadManifest(1)] == machine.on(ManifestAnswered(1, answer))
    ours, older, newer, empty, absent = (replay_from(machine) for _ in range(5))
    assert [ListOwners()] == ours.on(ManifestRead(1, generation=2))
    assert [AbortCheckpoint(1, AbortReason.MANIFEST_PLACE_TAKEN)] == older.on(ManifestRead(1, generation=1))
    assert [StandDown(3)] == newer.on(ManifestRead(1, generation=3))
    assert [AbortCheckpoint(1, AbortReason.MANIFEST_PLACE_TAKEN)] == empty.on(ManifestRead(1, generation=0))
    assert [AbortCheckpoint(1, AbortReason.MANIFEST_IN_DOUBT)] == absent.on(ManifestRead(1, generation=None))


def replay_from(machine: Fencing) -> Fencing:
    return replay(fencing, machine.story)


def test_what_may_be_published_is_known_from_the_moment_it_is_put() -> None:
    machine = fencing()
    assert machine.published is None
    runs(machine)
    assert 0 == machine.published

    machine.on(CheckpointReady(1))

    assert 1 == machine.published


# ── the end ──────────────────────────────────────────────────────────────────────────────────


def test_a_finished_job_says_so_in_its_base_before_its_checkpoints_go() -> None:
    machine = fencing()
    runs(machine)

    assert [WriteBase(base(1, next_id=4, finished=True))] == machine.on(Ended(finished=True, next_id=4))
    assert [ListOwners()] == machine.on(BaseWritten())
    assert [MarkFinished(), Sweep(generation=1, below=4, keep=())] == machine.on(OwnersListed((1,)))


def test_an_owner_that_ends_while_a_newer_one_started_deletes_nothing() -> None:
    machine = fencing()
    runs(machine)
    machine.on(Ended(finished=True, next_id=4))
    machine.on(BaseWritten())

    assert [StandDown(2)] == machine.on(OwnersListed((1, 2)))


def test_checkpoints_that_the_policy_deletes_leave_a_home_that_starts_from_nothing() -> None:
    machine = fencing(Path(path="/chk-9", own_checkpoint=2))
    looks(machine, base(1, next_id=4))
    starts(machine)

    [written] = machine.on(Ended(finished=False, next_id=6))
    machine.on(BaseWritten())

    assert WriteBase(base(2, next_id=6, held=(2,))) == written
    assert [Sweep(generation=2, below=6, keep=(2,))] == machine.on(OwnersListed((2,)))


def test_a_start_after_the_end_is_finished_at_once_and_completes_what_a_kill_left() -> None:
    over = base(2, start=FromCheckpoint(5, 1), next_id=9, line=1, finished=True)
    marked = HomeListed(bases=(2,), checkpoints=(5,), manifests=(5,), finished=True)
    killed, calm = fencing(), fencing()

    looks(killed, over, HomeListed(bases=(2,)))
    looks(calm, over, marked)

    sweep = Sweep(generation=3, below=9, keep=())
    assert [MarkFinished(), sweep, AlreadyFinished()] == starts(killed)
    assert [sweep, AlreadyFinished()] == starts(calm)


@pytest.mark.parametrize("told", [Nothing(), Path(path="/chk-9")])
def test_a_start_that_was_told_otherwise_sets_finished_aside(told: Told) -> None:
    over = base(2, next_id=9, finished=True)
    machine = fencing(told)
    mine = looks(machine, over, HomeListed(bases=(2,), finished=True))

    assert not mine.finished
    assert SetFinishedAside() == starts(machine)[0]


def test_a_path_that_is_repeated_after_the_end_is_finished_too() -> None:
    over = base(2, start=FromPath("/chk-9"), next_id=9, obeyed=("/chk-9",), finished=True)
    machine = fencing(Path(path="/chk-9"))
    looks(machine, over, HomeListed(bases=(2,), finished=True))

    assert AlreadyFinished() == starts(machine)[-1]


# ── permits and records ──────────────────────────────────────────────────────────────────────


def test_nobody_else_can_make_a_permit() -> None:
    with pytest.raises(TypeError, match="given by Fencing"):
        CommitPermit(7, 1)
    with pytest.raises(TypeError, match="given by Fencing"):
        CommitPermit(7, 1, seal=object())
    with pytest.raises(TypeError, match="given by Fencing"):
        replace(the_permit(7, 1), checkpoint_id=8)


def test_a_permit_does_not_change_and_does_not_travel() -> None:
    permit = the_permit(7, 2)

    with pytest.raises(FrozenInstanceError):
        permit.generation = 3  # type: ignore[misc]  # the point
    with pytest.raises(TypeError, match="does not leave its process"):
        pickle.dumps(permit)
    assert copy.copy(permit) is copy.deepcopy(permit) is permit
    assert {permit} == {the_permit(7, 2)}
    assert permit != the_permit(7, 3)
    assert "CommitPermit(checkpoint_id=7, generation=2)" == repr(permit)


@pytest.mark.parametrize(
    "written",
    [
        base(3),
        base(3, start=FromCheckpoint(5, 2, (3, 4)), next_id=6, line=1, obeyed=("/a", "/b"), held=(2,), finished=True),
        base(3, start=FromPath("/a", allow_unclaimed=True)),
    ],
)
def test_a_base_comes_back_from_its_fields(written: Base) -> None:
    assert written == Base.from_fields(written.to_fields(), "owner/0000000003.base")


def test_a_claim_comes_back_from_its_fields() -> None:
    claim = Claim(generation=3, host="h", process="p", at_ms=5, told=str(Path(path="/a")))

    assert claim == Claim.from_fields(claim.to_fields(), "owner/0000000003")


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"next_id": "6"}, "next_id"),
        ({"next_id": True}, "next_id"),
        ({"surprise": 1}, "surprise"),
        ({"start": {"from": "the moon"}}, "the moon"),
        ({"start": {}}, "None"),
        ({"start": {"from": ["nothing"]}}, "nothing"),
        ({"start": {"from": "path", "path": 1, "allow_unclaimed": False}}, "path"),
        ({"held": ["2"]}, "held"),
        ({"obeyed": [2]}, "obeyed"),
    ],
)
def test_a_base_that_was_tampered_with_is_refused_by_name(change: dict[str, Any], said: str) -> None:
    with pytest.raises(CorruptObject, match=rf"owner/0000000003\.base: .*{said}"):
        Base.from_fields({**base(3).to_fields(), **change}, "owner/0000000003.base")


def test_a_base_that_lacks_a_field_is_refused_by_name() -> None:
    fields = base(3).to_fields()
    del fields["line"]

    with pytest.raises(CorruptObject, match="line"):
        Base.from_fields(fields, "owner/0000000003.base")


# ── the table ────────────────────────────────────────────────────────────────────────────────


def what_may_come(machine: Fencing) -> list[Event]:
    """All that may happen to an owner that ran once, and at what may come too late."""
    match machine.phase:
        case Idle():
            return [Started(0)]
        case Listing():
            return [OwnersListed((1, 2) if machine.generation else ())]
        case Recognizing():
            return [Started(1), ClaimRead(None)]
        case Claiming():
            return [ClaimAnswered(Answer.WRITTEN)]
        case Looking():
            return [HomeListed(), HomeListed(finished=True)]
        case Basing():
            return [BaseWritten()]
        case Confirming():
            return [OwnersListed((1,))]
        case Running(_, _, published):
            return [
                *([CheckpointReady(published + 1)] if published < 2 else []),
                *[ManifestAnswered(number, answer) for number in (1, 2) for answer in Answer],
                *[ManifestRead(number, generation) for number in (1, 2) for generation in (None, 0, 1, 2)],
                *[OwnersListed((1,)), OwnersListed((1, 2))],
                *[Ended(finished=finished, next_id=3) for finished in (True, False)],
            ]
        case Ending():
            return [BaseWritten()]
        case ConfirmingEnd():
            return [OwnersListed((1,))]
        case StoodDown():
            late: list[Event] = [
                CheckpointReady(2),
                ManifestAnswered(1, Answer.LOST),
                ManifestRead(1, 1),
                OwnersListed((1,)),
            ]
            return [Started(1), *late, Ended(finished=False, next_id=3)]
    return [Started(1)] if machine.generation == 1 else []


def test_the_table_of_fencing_tells_what_it_does() -> None:
    edges = walk(fencing(), what_may_come, depth=14)
    for owners in (
        (owner(checkpoints=1), owner(Nothing(), checkpoints=1, process="b")),
        (owner(process="a", losses=1, restarts=1, ends=True, checkpoints=1), owner(process="b", checkpoints=1)),
    ):
        Walk(*owners, in_steps=True, deletes=True, edges=edges).run()

    edges.compare(Fencing)
