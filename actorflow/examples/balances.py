"""Keep the balance of each customer from two streams: what was ordered, and what was paid.

    actorflow run actorflow.examples.balances:keep_balances

Two sources meet in one operator.  Its checkpoint is the line between what was before and what comes after it in both
of them, which is what barriers are for.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import actorflow as af
from actorflow.connectors import console, generator

__all__ = ("Movement", "keep_balances", "made_up_order", "made_up_payment")


@dataclass(frozen=True, slots=True)
class Movement:
    """Something that changes what a customer owes; payments are negative."""

    kind: str
    number: int
    customer: str
    cents: int


def keep_balances() -> af.Job:
    """Keep balances, and print a receipt for each movement."""
    job = af.Job("balances")
    orders = job.read(generator.generate(made_up_order, records=200, per_second=100), name="orders")
    payments = job.read(generator.generate(made_up_payment, records=200, per_second=100), name="payments")
    (
        orders.union(payments)
        .key_by(lambda movement: movement.customer)
        .process(Balance, name="balance")
        .write(console.lines(), name="receipts")
    )
    return job


class Balance(af.KeyedOperator[str, Movement, tuple[str, int]]):
    """The balance of a customer, in cents."""

    cents = af.ValueState(int)

    def on_record(self, movement: Movement, context: af.Context[str]) -> Iterator[tuple[str, int]]:
        """Change the balance, and give a receipt."""
        self.cents.value += movement.cents
        yield movement.kind, movement.number


def made_up_order(index: int) -> Movement:
    """Order ``index`` of four customers."""
    return Movement("order", index, f"customer {index % 4}", 250)


def made_up_payment(index: int) -> Movement:
    """Payment ``index`` of the same customers."""
    return Movement("payment", index, f"customer {index % 4}", -200)
