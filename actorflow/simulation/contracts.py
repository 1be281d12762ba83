"""What must a source, a sink, a store, a disk, a state backend, a broker and a database hold, whoever wrote them?

One page that shows the contract suites.  Ours and yours run against the same ones, in the simulator and outside of it.

    @pytest.mark.parametrize("check", SOURCE_CHECKS)
    def test_my_source(check):
        asyncio.run(check(SourceArm(make=lambda: my_source("…"), world=my_world)))

    @pytest.mark.parametrize("check", TRANSACTIONAL_SINK_CHECKS)
    def test_my_sink(check):
        asyncio.run(check(TransactionalSinkArm(make=lambda: my_sink("…"), world=my_world)))

    def test_my_store():
        asyncio.run(check_object_store(my_store))

    @pytest.mark.parametrize("check", BACKEND_CHECKS)
    def test_my_backend(check):
        check(BackendArm(make=MyBackend))

The promises of connectors stand in ``contracts_connectors.py``, those of storage in ``contracts_storage.py``, those of
state in ``contracts_backends.py``; those of what a connector talks to in ``contracts_broker.py`` (a replayable log) and
``contracts_database.py`` (a transactional table).  A promise that is not kept is an ``AssertionError``.
"""

from __future__ import annotations

from actorflow.simulation.contracts_backends import BACKEND_CHECKS, BackendArm
from actorflow.simulation.contracts_broker import BROKER_CHECKS, BrokerArm
from actorflow.simulation.contracts_connectors import (
    SINK_CHECKS,
    SOURCE_CHECKS,
    TRANSACTIONAL_SINK_CHECKS,
    Permit,
    SinkArm,
    SourceArm,
    TransactionalSinkArm,
)
from actorflow.simulation.contracts_database import DATABASE_CHECKS, DatabaseArm
from actorflow.simulation.contracts_storage import check_disk, check_object_store

__all__ = (
    "BACKEND_CHECKS",
    "BROKER_CHECKS",
    "DATABASE_CHECKS",
    "SINK_CHECKS",
    "SOURCE_CHECKS",
    "TRANSACTIONAL_SINK_CHECKS",
    "BackendArm",
    "BrokerArm",
    "DatabaseArm",
    "Permit",
    "SinkArm",
    "SourceArm",
    "TransactionalSinkArm",
    "check_disk",
    "check_object_store",
)
