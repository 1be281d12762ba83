"""A broker or a database that breaks a promise is found out by the contract: each fault by the check that is named."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from actorflow.simulation import Universe, contracts_broker, contracts_database, run
from actorflow.simulation.broker import Broker
from actorflow.simulation.broker_client import SimulatedBrokerClient
from actorflow.simulation.broker_seam import Appended, Fetched, Message, Producer, Transaction, TransactionState
from actorflow.simulation.contracts_broker import BrokerArm
from actorflow.simulation.contracts_database import DatabaseArm
from actorflow.simulation.database import Database, Session
from actorflow.simulation.database_client import SimulatedDatabaseClient
from actorflow.simulation.database_seam import Row
from actorflow.simulation.weather import Service


class ShowsOpenTransactions(Broker):
    def append(
        self, producer: Producer, topic: str, partition: int, messages: Sequence[Message], sequence: int
    ) -> Appended:
        appended = super().append(producer, topic, partition, messages, sequence)
        self._log(topic, partition)._open.clear()
        return appended


class AppendsTwice(Broker):
    def append(
        self, producer: Producer, topic: str, partition: int, messages: Sequence[Message], sequence: int
    ) -> Appended:
        held = self._held.get(producer.transactional_id)
        expected = held.written(f"{topic}/{partition}") if held is not None else sequence
        return super().append(producer, topic, partition, messages, expected)


class ForgetsThatItCommitted(Broker):
    def commit(self, producer: Producer) -> None:
        super().commit(producer)
        del self._held[producer.transactional_id]


class CommitsWhatItAborted(Broker):
    def commit(self, producer: Producer) -> None:
        held = self._held.get(producer.transactional_id)
        if held is None or held.state is not TransactionState.ABORTED:
            super().commit(producer)


class FencesNobody(Broker):
    def init_transactions(self, transactional_id: str, timeout_ms: int) -> Producer:
        held = self._held.get(transactional_id)
        return super().init_transactions(transactional_id, timeout_ms) if held is None else held.producer


class BeginsAgainAfterTheEnd(Broker):
    def append(
        self, producer: Producer, topic: str, partition: int, messages: Sequence[Message], sequence: int
    ) -> Appended:
        held = self._held[producer.transactional_id]
        if held.state in {TransactionState.COMMITTED, TransactionState.ABORTED}:
            held.state, held.batches = TransactionState.EMPTY, {}
            self._numbers += 1
            held.number, sequence = self._numbers, 0
        return super().append(producer, topic, partition, messages, sequence)


class GrantsAnyLimit(Broker):
    def init_transactions(self, transactional_id: str, timeout_ms: int) -> Producer:
        return super().init_transactions(transactional_id, min(timeout_ms, self.longest_transaction_ms))


class HasAllTheTime(Broker):
    def init_transactions(self, transactional_id: str, timeout_ms: int) -> Producer:
        producer = super().init_transactions(transactional_id, timeout_ms)
        self._held[transactional_id].timeout_ms = 10**9
        return producer


class ListsTooMuch(Broker):
    def transactions(self, prefix: str) -> list[Transaction]:
        return super().transactions(prefix[:-6])


class GoesOnInSilence(Broker):
    def read(self, topic: str, partition: int, offset: int, leader_epoch: int | None, most: int) -> Fetched:
        log = self._log(topic, partition)
        offset = min(max(offset, log.offsets().first), log.end)
        return super().read(topic, partition, offset, None, most)


class CommitsWhatIsLeft(Broker):
    def rewind(self, pattern: str, count: int) -> list[str]:
        told = super().rewind(pattern, count)
        for logs in self._topics.values():
            for log in logs:
                log.leader_epoch = 0
        return told


BROKERS: dict[type[Broker], str] = {
    ShowsOpenTransactions: "nothing_is_read_before_the_commit",
    AppendsTwice: "the_same_records_are_appended_once",
    ForgetsThatItCommitted: "a_commit_may_repeat",
    CommitsWhatItAborted: "an_aborted_transaction_is_never_read",
    FencesNobody: "a_newer_owner_fences_the_older_one",
    BeginsAgainAfterTheEnd: "what_comes_after_the_end_is_refused",
    GrantsAnyLimit: "a_limit_that_is_too_long_is_refused",
    HasAllTheTime: "a_transaction_that_is_too_old_is_aborted",
    ListsTooMuch: "transactions_are_found_by_their_prefix",
    GoesOnInSilence: "what_is_kept_no_longer_is_told",
    CommitsWhatIsLeft: "a_transaction_that_lost_records_is_not_committed",
}


@pytest.mark.parametrize("kind", BROKERS, ids=lambda kind: kind.__name__)
def test_a_broker_that_breaks_a_promise_is_found_out(kind: type[Broker]) -> None:
    async def story() -> None:
        universe = Universe(1)
        universe._outside[Service.BROKER] = kind(universe.now_ms)
        names = map("p{}".format, itertools.count())

        async def trim(topic: str, partition: int, first: int) -> None:
            universe.broker.trim(topic, partition, first)

        async def lose(topic: str, partition: int, count: int) -> None:
            universe.broker.rewind(f"{topic}/{partition}", count)

        check = getattr(contracts_broker, BROKERS[kind])
        arm = BrokerArm(
            connect=lambda: SimulatedBrokerClient(universe.world(next(names))),
            sleep=asyncio.sleep,
            trim=trim,
            lose=lose,
        )
        await _fails(check, arm)

    run(story, seed=1)


class ShowsEachStatement(Database):
    def write(self, session: Session, table: str, rows: Sequence[Row], *, replace: bool) -> None:
        super().write(session, table, rows, replace=replace)
        self._apply(session)
        session.changes = []


class KeepsRolledBackRows(Database):
    def rollback(self, session: Session) -> None:
        if session in self._open:
            self._apply(session)
        super().rollback(session)


class TakesTheSameKeyTwice(Database):
    def write(self, session: Session, table: str, rows: Sequence[Row], *, replace: bool) -> None:
        super().write(session, table, rows, replace=True)


class HoldsNothing(Database):
    def _lock(self, *_: Any) -> None:
        self._reap()


class HoldsReadersToo(Database):
    def get(self, session: Session, table: str, key: bytes, *, share: bool = False) -> bytes | None:
        return super().get(session, table, key, share=False)


class ForgetsWhatWasPrepared(Database):
    def prepare(self, session: Session, gid: str) -> None:
        super().prepare(session, gid)
        self._release(self._prepared.pop(gid))


class LetsGoOfWhatWasPrepared(Database):
    def prepare(self, session: Session, gid: str) -> None:
        super().prepare(session, gid)
        self._release(session)


class SeesNoPrefix(Database):
    def prepared(self, prefix: str) -> list[str]:
        return super().prepared("")


class KeepsDeadConnections(Database):
    def begin(self, process: Any = None) -> Session:
        return super().begin(None)


class WaitsForEver(Database):
    def _reap(self) -> None:
        for session in self._open:
            session.used_ms = self._now_ms()


DATABASES: dict[type[Database], str] = {
    ShowsEachStatement: "a_commit_shows_all_at_once",
    KeepsRolledBackRows: "a_rollback_shows_nothing",
    TakesTheSameKeyTwice: "a_key_is_there_once",
    HoldsNothing: "no_change_is_lost",
    HoldsReadersToo: "those_who_only_look_may_share",
    ForgetsWhatWasPrepared: "what_is_prepared_outlives_its_process",
    LetsGoOfWhatWasPrepared: "what_is_prepared_outlives_its_process",
    SeesNoPrefix: "what_is_prepared_is_found_by_its_prefix",
    KeepsDeadConnections: "a_dead_process_holds_nothing_up",
    WaitsForEver: "a_forgotten_transaction_is_rolled_back",
}


@pytest.mark.parametrize("kind", DATABASES, ids=lambda kind: kind.__name__)
def test_a_database_that_breaks_a_promise_is_found_out(kind: type[Database]) -> None:
    async def story() -> None:
        universe = Universe(1)
        universe._outside[Service.DATABASE] = kind(universe.now_ms)
        names = map("p{}".format, itertools.count())
        await SimulatedDatabaseClient(universe.world(next(names))).create_table("other")
        foreign = universe.database.begin()
        universe.database.prepare(foreign, "of somebody else")

        def doomed() -> tuple[SimulatedDatabaseClient, Callable[[], None]]:
            process = universe.process(next(names))
            return SimulatedDatabaseClient(process.world), process.kill

        check = getattr(contracts_database, DATABASES[kind])
        arm = DatabaseArm(
            connect=lambda: SimulatedDatabaseClient(universe.world(next(names))),
            sleep=asyncio.sleep,
            doomed=doomed,
            idle_s=10.0,
        )
        await _fails(check, arm)

    run(story, seed=1)


async def _fails(check: Callable[[Any], Any], arm: Any) -> None:
    try:
        await check(arm)
    except Exception:  # an assertion that fails, or an answer that nobody expected
        return
    raise AssertionError(f"{check.__name__} did not notice")
