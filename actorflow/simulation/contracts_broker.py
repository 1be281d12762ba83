"""What must every broker hold that a source and a sink on a log are written for?

One body for each promise of ``broker_seam.py``.  The simulated broker keeps them; what talks to a real one has to, so
that what the simulator proves about a job holds outside.

    @pytest.mark.parametrize("check", BROKER_CHECKS)
    def test_my_broker(check):
        asyncio.run(check(BrokerArm(connect=lambda: my_client("…"), sleep=asyncio.sleep)))

A check is a coroutine function; it raises ``AssertionError`` and returns nothing.  It creates topics and transactional
ids of its own, whose names begin with the arm's ``prefix``.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TypeVar

from actorflow.errors import InvalidConfig, ObjectMissing
from actorflow.simulation.broker_seam import (
    BrokerClient,
    LogTruncated,
    Message,
    OutOfOrder,
    Producer,
    ProducerFenced,
    Record,
    TransactionLost,
    TransactionState,
)

__all__ = ("BROKER_CHECKS", "BrokerArm")

_E = TypeVar("_E", bound=BaseException)


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerArm:
    """A broker, how a fresh process connects to it, and how time passes for it (``sleep`` takes seconds).

    ``timeout_s`` is the time limit of the transactions here, ``longest_s`` what the broker grants no one.  ``trim`` and
    ``lose`` do what only whoever runs the broker can: keep nothing of ``(topic, partition)`` before an offset, and lose
    its last so many offsets.  Without them the checks that need them check nothing.
    """

    connect: Callable[[], BrokerClient]
    sleep: Callable[[float], Awaitable[None]]
    prefix: str = "contract"
    timeout_s: float = 60.0
    longest_s: float = 1e7
    trim: Callable[[str, int, int], Awaitable[None]] | None = None
    lose: Callable[[str, int, int], Awaitable[None]] | None = None

    @property
    def timeout_ms(self) -> int:
        """The time limit in milliseconds."""
        return round(self.timeout_s * 1_000)

    def name(self, check: Callable[..., object], suffix: str = "") -> str:
        """A name that no other check has."""
        return f"{self.prefix}-{check.__name__}{suffix}"

    async def begin(self, check: Callable[..., object], suffix: str = "") -> Producer:
        """A producer, as a fresh process gets one."""
        return await self.connect().init_transactions(self.name(check, suffix), self.timeout_ms)

    async def written(
        self, check: Callable[..., object], values: list[bytes], *, suffix: str = "", commit: bool = True
    ) -> Producer:
        """A producer that has written to partition 0 of the check's topic."""
        client, producer = self.connect(), await self.begin(check, suffix)
        await client.append(producer, self.name(check), 0, _messages(values), sequence=0)
        if commit:
            await client.commit(producer)
        return producer

    async def seen(self, topic: str, partition: int = 0) -> list[bytes]:
        """What a committed reader sees now, as a fresh process."""
        return [record.value for record in await self.records(topic, partition)]

    async def records(self, topic: str, partition: int = 0) -> list[Record]:
        """The records that a committed reader sees now, read a few at a time."""
        client = self.connect()
        offset, epoch = (await client.offsets(topic, partition)).first, None
        records: list[Record] = []
        while True:
            fetched = await client.read(topic, partition, offset, leader_epoch=epoch, most=3)
            records += fetched.records
            if fetched.next_offset == offset:
                assert not fetched.records, "records without an offset to go on at"
                return records
            assert fetched.next_offset > offset
            offset, epoch = fetched.next_offset, fetched.leader_epoch


def _messages(values: list[bytes], key: bytes | None = None) -> list[Message]:
    return [Message(value, key) for value in values]


async def what_is_committed_is_read_in_order(arm: BrokerArm) -> None:
    """Values, keys and order come back; offsets rise, and the time of a record does not go back."""
    topic, client = arm.name(what_is_committed_is_read_in_order), arm.connect()
    await client.create_topic(topic, 2)
    producer = await arm.begin(what_is_committed_is_read_in_order)
    first = await client.append(producer, topic, 1, _messages([b"a", b""], b"key"), sequence=0)
    second = await client.append(producer, topic, 1, _messages([b"c"]), sequence=2)
    assert first.end - first.offset == 2
    assert second.offset >= first.end
    await client.append(producer, topic, 0, _messages([b"other"]), sequence=0)
    await client.commit(producer)
    records = await arm.records(topic, 1)
    assert [(record.value, record.key) for record in records] == [(b"a", b"key"), (b"", b"key"), (b"c", None)]
    assert [record.offset for record in records] == [first.offset, first.offset + 1, second.offset]
    assert sorted(record.timestamp_ms for record in records) == [record.timestamp_ms for record in records]
    assert await arm.seen(topic, 0) == [b"other"]


async def nothing_is_read_before_the_commit(arm: BrokerArm) -> None:
    """An open transaction is invisible in every partition, and the commit shows all of it."""
    topic, client = arm.name(nothing_is_read_before_the_commit), arm.connect()
    await client.create_topic(topic, 2)
    producer = await arm.begin(nothing_is_read_before_the_commit)
    for partition in (0, 1):
        await client.append(producer, topic, partition, _messages([b"x", b"y"]), sequence=0)
        assert await arm.seen(topic, partition) == []
        offsets = await client.offsets(topic, partition)
        assert offsets.stable_end < offsets.end
    await client.commit(producer)
    for partition in (0, 1):
        assert await arm.seen(topic, partition) == [b"x", b"y"]
        offsets = await client.offsets(topic, partition)
        assert offsets.stable_end == offsets.end


async def an_aborted_transaction_is_never_read(arm: BrokerArm) -> None:
    """Readers step over it; an abort may repeat, and takes back nothing that is committed."""
    topic, client = arm.name(an_aborted_transaction_is_never_read), arm.connect()
    await client.create_topic(topic)
    committed = await arm.written(an_aborted_transaction_is_never_read, [b"a"], suffix="1")
    aborted = await arm.written(an_aborted_transaction_is_never_read, [b"no", b"no"], suffix="2", commit=False)
    for _ in range(2):
        await arm.connect().abort(aborted)
        await arm.connect().abort(committed)
    await arm.written(an_aborted_transaction_is_never_read, [b"b"], suffix="3")
    assert await arm.seen(topic) == [b"a", b"b"]
    await _raises(TransactionLost, client.commit(aborted))
    assert await arm.seen(topic) == [b"a", b"b"]


async def an_open_transaction_holds_up_what_follows(arm: BrokerArm) -> None:
    """Records are read in the order of their offsets: those behind an open transaction wait for its end (R117)."""
    topic, client = arm.name(an_open_transaction_holds_up_what_follows), arm.connect()
    await client.create_topic(topic)
    first = await arm.written(an_open_transaction_holds_up_what_follows, [b"a"], suffix="1", commit=False)
    await arm.written(an_open_transaction_holds_up_what_follows, [b"b"], suffix="2")
    assert await arm.seen(topic) == []
    await client.append(first, topic, 0, _messages([b"c"]), sequence=1)
    await client.commit(first)
    assert await arm.seen(topic) == [b"a", b"b", b"c"]


async def a_commit_may_repeat(arm: BrokerArm) -> None:
    """Whoever holds the three numbers can commit, from another process and again and again, and nothing doubles."""
    topic = arm.name(a_commit_may_repeat)
    await arm.connect().create_topic(topic)
    producer = await arm.written(a_commit_may_repeat, [b"a", b"b"], commit=False)
    for _ in range(3):
        await arm.connect().commit(Producer(producer.transactional_id, producer.producer_id, producer.epoch))
        assert await arm.seen(topic) == [b"a", b"b"]


async def what_was_never_written_is_not_committed(arm: BrokerArm) -> None:
    """A commit of an unknown or an empty transaction says that it is lost."""
    client = arm.connect()
    empty = await arm.begin(what_was_never_written_is_not_committed)
    await _raises(TransactionLost, client.commit(empty))
    unknown = Producer(arm.name(what_was_never_written_is_not_committed, "-unknown"), 1, 0)
    await _raises(TransactionLost, client.commit(unknown))


async def a_newer_owner_fences_the_older_one(arm: BrokerArm) -> None:
    """Who takes a transactional id aborts what its holder left open, and refuses what that one does later (R111)."""
    topic, client = arm.name(a_newer_owner_fences_the_older_one), arm.connect()
    await client.create_topic(topic)
    old = await arm.written(a_newer_owner_fences_the_older_one, [b"old"], commit=False)
    new = await arm.written(a_newer_owner_fences_the_older_one, [b"new"], commit=False)
    assert new.producer_id == old.producer_id
    assert new.epoch > old.epoch
    await _raises(ProducerFenced, client.append(old, topic, 0, _messages([b"late"]), sequence=1))
    await _raises((ProducerFenced, TransactionLost), client.commit(old))
    await _raises(ProducerFenced, client.abort(old))
    await client.commit(new)
    await _raises((ProducerFenced, TransactionLost), client.commit(old))
    assert await arm.seen(topic) == [b"new"]


async def the_same_records_are_appended_once(arm: BrokerArm) -> None:
    """An append that is repeated because its answer was lost adds nothing, and a gap is refused (R114)."""
    topic, client = arm.name(the_same_records_are_appended_once), arm.connect()
    await client.create_topic(topic)
    producer = await arm.begin(the_same_records_are_appended_once)
    first = await client.append(producer, topic, 0, _messages([b"a", b"b"]), sequence=0)
    for _ in range(2):
        assert await arm.connect().append(producer, topic, 0, _messages([b"a", b"b"]), sequence=0) == first
    second = await client.append(producer, topic, 0, _messages([b"c"]), sequence=2)
    assert await client.append(producer, topic, 0, _messages([b"a", b"b"]), sequence=0) == first
    assert await client.append(producer, topic, 0, _messages([b"c"]), sequence=2) == second
    await _raises(OutOfOrder, client.append(producer, topic, 0, _messages([b"e"]), sequence=4))
    await client.commit(producer)
    assert await arm.seen(topic) == [b"a", b"b", b"c"]


async def what_comes_after_the_end_is_refused(arm: BrokerArm) -> None:
    """A request that was on its way when its transaction ended adds nothing, whichever end that was."""
    topic, client = arm.name(what_comes_after_the_end_is_refused), arm.connect()
    await client.create_topic(topic)
    committed = await arm.written(what_comes_after_the_end_is_refused, [b"a"], suffix="1")
    aborted = await arm.written(what_comes_after_the_end_is_refused, [b"b"], suffix="2", commit=False)
    await client.abort(aborted)
    empty = await arm.begin(what_comes_after_the_end_is_refused, "3")
    await client.abort(empty)
    for producer in (committed, aborted):
        await _raises(ProducerFenced, client.append(producer, topic, 0, _messages([b"late"]), sequence=1))
    await _raises(ProducerFenced, client.append(empty, topic, 0, _messages([b"late"]), sequence=0))
    assert await arm.seen(topic) == [b"a"]
    offsets = await client.offsets(topic, 0)
    assert offsets.stable_end == offsets.end, "a late request left the partition hanging"


async def a_limit_that_is_too_long_is_refused(arm: BrokerArm) -> None:
    """Nobody gets a transaction that may last longer than the broker allows: the refusal comes before any record."""
    name = arm.name(a_limit_that_is_too_long_is_refused)
    await _raises(InvalidConfig, arm.connect().init_transactions(name, round(arm.longest_s * 1_000)))
    await arm.connect().init_transactions(name, arm.timeout_ms)


async def a_transaction_that_is_too_old_is_aborted(arm: BrokerArm) -> None:
    """After its time limit it can't be committed, which is told, and it holds up nobody any more (R109)."""
    topic, client = arm.name(a_transaction_that_is_too_old_is_aborted), arm.connect()
    await client.create_topic(topic)
    producer = await arm.written(a_transaction_that_is_too_old_is_aborted, [b"old"], suffix="1", commit=False)
    await arm.written(a_transaction_that_is_too_old_is_aborted, [b"b"], suffix="2")
    await arm.sleep(arm.timeout_s * 1.5)
    assert await arm.seen(topic) == [b"b"]
    await _raises((TransactionLost, ProducerFenced), client.commit(producer))
    await _raises(ProducerFenced, client.append(producer, topic, 0, _messages([b"late"]), sequence=1))
    assert await arm.seen(topic) == [b"b"]


async def transactions_are_found_by_their_prefix(arm: BrokerArm) -> None:
    """Whoever comes after a dead process finds what it left open, and aborts that and nothing else."""
    check = transactions_are_found_by_their_prefix
    topic, client = arm.name(check), arm.connect()
    await client.create_topic(topic)
    kept = await arm.written(check, [b"a"], suffix="-mine-1", commit=False)
    left = await arm.written(check, [b"b"], suffix="-mine-2", commit=False)
    foreign = await arm.written(check, [b"c"], suffix="-yours-1", commit=False)
    done = await arm.written(check, [b"d"], suffix="-mine-3")
    found = await arm.connect().transactions(arm.name(check, "-mine-"))
    assert [one.producer for one in found] == [kept, left, done]
    assert [one.state for one in found][:2] == [TransactionState.OPEN] * 2
    assert found[2].state is TransactionState.COMMITTED
    await arm.connect().abort(found[1].producer)
    assert TransactionState.OPEN not in [one.state for one in await client.transactions(left.transactional_id)]
    for producer in (kept, foreign):
        await client.commit(producer)
    assert await arm.seen(topic) == [b"a", b"c", b"d"]


async def every_offset_can_be_read_from(arm: BrokerArm) -> None:
    """From the offset after some records come the rest, none again and none left out; past the end there is nothing."""
    topic, client = arm.name(every_offset_can_be_read_from), arm.connect()
    await client.create_topic(topic)
    values = [b"%d" % number for number in range(8)]
    await arm.written(every_offset_can_be_read_from, values[:5], suffix="1")
    await client.abort(await arm.written(every_offset_can_be_read_from, [b"no"], suffix="2", commit=False))
    await arm.written(every_offset_can_be_read_from, values[5:], suffix="3")
    offset, epoch, done = (await client.offsets(topic, 0)).first, None, 0
    while done < len(values):
        fetched = await client.read(topic, 0, offset, leader_epoch=epoch, most=1)
        done += len(fetched.records)
        offset, epoch = fetched.next_offset, fetched.leader_epoch
        rest = await arm.connect().read(topic, 0, offset, leader_epoch=epoch)
        assert [record.value for record in rest.records] == values[done:]
    end = (await client.offsets(topic, 0)).end
    nothing = await client.read(topic, 0, end, leader_epoch=epoch)
    assert (nothing.records, nothing.next_offset) == ((), end)
    missing = await _raises(LogTruncated, client.read(topic, 0, end + 7))
    assert (missing.offset, missing.end) == (end + 7, end)
    assert topic in str(missing)


async def what_is_kept_no_longer_is_told(arm: BrokerArm) -> None:
    """A reader whose offset was removed is told so, with the offsets, and never waits or skips in silence (R015)."""
    if arm.trim is None:
        return
    topic, client = arm.name(what_is_kept_no_longer_is_told), arm.connect()
    await client.create_topic(topic)
    await arm.written(what_is_kept_no_longer_is_told, [b"a", b"b", b"c", b"d"])
    await arm.trim(topic, 0, 2)
    gone = await _raises(LogTruncated, client.read(topic, 0, 1, leader_epoch=0))
    assert (gone.offset, gone.first) == (1, 2)
    assert (await client.offsets(topic, 0)).first == 2
    assert await arm.seen(topic) == [b"c", b"d"]


async def what_the_broker_lost_is_told(arm: BrokerArm) -> None:
    """A reader who was further than the log is now is told so, also when the log has grown past it again."""
    if arm.lose is None:
        return
    topic, client = arm.name(what_the_broker_lost_is_told), arm.connect()
    await client.create_topic(topic)
    await arm.written(what_the_broker_lost_is_told, [b"a", b"b", b"c", b"d"], suffix="1")
    before = await client.read(topic, 0, 0)
    end = (await client.offsets(topic, 0)).end
    await arm.lose(topic, 0, end - 2)
    await _raises(LogTruncated, client.read(topic, 0, before.next_offset, leader_epoch=before.leader_epoch))
    await arm.written(what_the_broker_lost_is_told, [b"%d" % number for number in range(9)], suffix="2")
    told = await _raises(LogTruncated, client.read(topic, 0, before.next_offset, leader_epoch=before.leader_epoch))
    assert (told.offset, told.end) == (before.next_offset, 2)
    on = await client.read(topic, 0, 2, leader_epoch=before.leader_epoch)
    assert [record.value for record in on.records] == [b"%d" % number for number in range(9)]


async def a_transaction_that_lost_records_is_not_committed(arm: BrokerArm) -> None:
    """Records that were confirmed and are gone end their transaction: neither more of it nor a part of it is shown."""
    if arm.lose is None:
        return
    check = a_transaction_that_lost_records_is_not_committed
    topic, client = arm.name(check), arm.connect()
    await client.create_topic(topic)
    first = await arm.written(check, [b"a", b"b"], suffix="1", commit=False)
    await arm.lose(topic, 0, 1)
    await _raises(OutOfOrder, client.append(first, topic, 0, _messages([b"c"]), sequence=2))
    lost = await _raises(TransactionLost, client.commit(first))
    assert topic in str(lost)
    await arm.written(check, [b"d"], suffix="2")
    assert await arm.seen(topic) == [b"d"]


async def topics_are_created_once(arm: BrokerArm) -> None:
    """Creating a topic again changes nothing, or adds partitions; one that is not there is missing."""
    topic, client = arm.name(topics_are_created_once), arm.connect()
    await _raises(ObjectMissing, client.partitions(topic))
    await client.create_topic(topic, 2)
    await arm.written(topics_are_created_once, [b"a"])
    await arm.connect().create_topic(topic)
    assert await client.partitions(topic) == 2
    await arm.connect().create_topic(topic, 3)
    assert await client.partitions(topic) == 3
    assert await arm.seen(topic) == [b"a"]
    await _raises(ObjectMissing, client.offsets(topic, 3))
    await _raises(ObjectMissing, client.read(f"{topic}-absent", 0, 0))


async def _raises(kind: type[_E] | tuple[type[_E], ...], call: Awaitable[object]) -> _E:
    try:
        answer = await call
    except kind as error:
        return error
    raise AssertionError(f"{kind} was not raised; the answer was {answer!r}")


BROKER_CHECKS: tuple[Callable[[BrokerArm], Awaitable[None]], ...] = (
    what_is_committed_is_read_in_order,
    nothing_is_read_before_the_commit,
    an_aborted_transaction_is_never_read,
    an_open_transaction_holds_up_what_follows,
    a_commit_may_repeat,
    what_was_never_written_is_not_committed,
    a_newer_owner_fences_the_older_one,
    the_same_records_are_appended_once,
    what_comes_after_the_end_is_refused,
    a_limit_that_is_too_long_is_refused,
    a_transaction_that_is_too_old_is_aborted,
    transactions_are_found_by_their_prefix,
    every_offset_can_be_read_from,
    what_is_kept_no_longer_is_told,
    what_the_broker_lost_is_told,
    a_transaction_that_lost_records_is_not_committed,
    topics_are_created_once,
)
