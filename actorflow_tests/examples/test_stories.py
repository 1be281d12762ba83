"""The examples that scenarios are told with: each runs as it stands, and does what it says."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

import pytest

import actorflow as af
from actorflow.examples import balances, deposits, orders
from actorflow.simulation import Harness, check

JOBS: dict[str, tuple[Callable[[], af.Job], list[str]]] = {
    "orders": (orders.price_orders, ["orders"]),
    "deposits": (deposits.book_deposits, ["deposits"]),
    "balances": (balances.keep_balances, ["orders", "payments"]),
}


@pytest.mark.parametrize("name", JOBS)
def test_it_runs_as_it_stands(name: str) -> None:
    build, sources = JOBS[name]
    with Harness(build, keep=sources) as job:
        job.advance(seconds=10)
        assert job.status.status is af.JobStatus.FINISHED
        sink = {"orders": "priced", "deposits": "booked", "balances": "receipts"}[name]
        assert len(job.committed(sink)) == (400 if name == "balances" else 200)


@pytest.mark.slow
@pytest.mark.parametrize("name", JOBS)
def test_it_survives_storms(name: str) -> None:
    check(JOBS[name][0], seeds=range(3))


def test_orders_are_priced_in_their_order_and_billed_in_the_end() -> None:
    with Harness(orders.price_orders) as job:
        job.push(orders.Order(0, "ada", "coffee"), orders.Order(1, "bob", "tea"), orders.Order(2, "ada", "milk"))
        job.advance(milliseconds=295)
        assert job.rows("priced") == []  # the tea is priced, and waits for the coffee
        job.advance(milliseconds=10)
        assert job.rows("priced") == [(0, 600), (1, 300), (2, 400)]
        job.finish()
        job.expect([("ada", 1_000), ("bob", 300)], sink="bills")


def test_a_deposit_is_booked_and_confirmed_or_neither() -> None:
    with Harness(deposits.book_deposits) as job:
        job.push(*[deposits.Deposit("a", 100)] * 3)
        job.advance(milliseconds=120)
        assert job.rows() == [("a", 100, 100)]  # one at a time for each account
        job.checkpoint()
        job.kill()
        job.restore()
        assert job.query("book.booked", key="a") == job.query("book.confirmed", key="a")
        job.finish()
        job.expect([("a", 100, 100), ("a", 200, 200), ("a", 300, 300)])
        deposits.no_half_of_a_handler(job.committed())
    with pytest.raises(AssertionError, match="a: 200 cents are booked and 100 confirmed"):
        deposits.no_half_of_a_handler([("a", 200, 100)])


def test_a_balance_is_what_was_ordered_less_what_was_paid() -> None:
    with Harness(balances.keep_balances) as job:
        for index in range(8):
            job.push(balances.made_up_order(index), source="orders")
            job.push(balances.made_up_payment(index), source="payments")
        assert job.query("balance.cents", key="customer 1") == 2 * (250 - 200)
        assert Counter(kind for kind, _ in job.rows()) == {"order": 8, "payment": 8}
