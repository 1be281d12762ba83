"""Price orders by asking another service, many at a time, and add up what each customer has to pay.

    actorflow run actorflow.examples.orders:price_orders

An ``async def`` in ``map`` takes a lane of its own: up to ``in_flight`` questions are on their way at once, and the
answers come out in the order of the orders.  Questions without an answer are part of each checkpoint, and are asked
again after a restore.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta

import actorflow as af
from actorflow.connectors import console, generator

__all__ = ("Order", "Priced", "made_up", "price_orders")


@dataclass(frozen=True, slots=True)
class Order:
    """Somebody orders one piece of an article."""

    number: int
    customer: str
    article: str


@dataclass(frozen=True, slots=True)
class Priced:
    """An order whose price is known."""

    number: int
    customer: str
    cents: int


def price_orders() -> af.Job:
    """Ask for the price of each order, print it, and print in the end what each customer has to pay."""
    job = af.Job("price-orders")
    priced = job.read(generator.generate(made_up, records=200, per_second=100), name="orders").map(
        ask_price, name="ask", in_flight=20, timeout=timedelta(seconds=10)
    )
    priced.map(lambda one: (one.number, one.cents)).write(console.lines(), name="priced")
    priced.key_by(lambda one: one.customer).process(Owed, name="owed").write(console.lines(), name="bills")
    return job


async def ask_price(order: Order) -> Priced:
    """Ask a service that takes its time: a request over the network, in a program that is not an example."""
    await asyncio.sleep(0.05 * len(order.article))
    return Priced(order.number, order.customer, 100 * len(order.article))


class Owed(af.KeyedOperator[str, Priced, tuple[str, int]]):
    """What each customer has to pay, told once there are no more orders."""

    cents = af.ValueState(int)

    def on_record(self, priced: Priced, context: af.Context[str]) -> None:
        """Add an order to what its customer has to pay."""
        self.cents.value += priced.cents

    def on_end_of_input(self, context: af.HookContext) -> Iterator[tuple[str, int]]:
        """Tell all of it."""
        yield from context.entries(self.cents)


def made_up(index: int) -> Order:
    """Order ``index`` of a day that never was."""
    return Order(index, ("ada", "bob", "cyd")[index % 3], ("tea", "milk", "coffee", "cake")[index % 4])
